/* SPDX-License-Identifier: MIT */

/* What the agents do when something goes wrong: a peer that dies or stops, a byte that changes, a daemon that goes. */

#include "check.h"
#include "interrupt.h"
#include "lanes.h"
#include "pairs.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STALL_NS (300 * NSEC_PER_MSEC)

static const char *isolation_trouble; /* NULL: what is left is this program's own */

static struct driver_spec fault_spec(enum transport t, enum workload k) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = t;
        s.point.workload = k;
        s.duration_ns = 300 * NSEC_PER_MSEC;
        s.interval_ns = 50 * NSEC_PER_MSEC;
        s.stall_ns = STALL_NS;
        return s;
}

static const struct {
        enum transport transport;
        enum workload workload;
} combinations[] = {
        {TRANSPORT_PIPE, WORKLOAD_STREAM},        {TRANSPORT_PIPE, WORKLOAD_PINGPONG},
        {TRANSPORT_FIFO, WORKLOAD_STREAM},        {TRANSPORT_FIFO, WORKLOAD_PINGPONG},
        {TRANSPORT_UNIX_STREAM, WORKLOAD_STREAM}, {TRANSPORT_UNIX_STREAM, WORKLOAD_PINGPONG},
};

#define SETUP_KILLS 120u
#define SETUP_US 60000u /* from its first end's start until a pair is ready, or nearly so */

struct kill_later {
        const pid_t *pid;
        unsigned us;
};

static void *kill_later(void *userdata) {
        const struct kill_later *k = userdata;
        pid_t pid;
        while ((pid = __atomic_load_n(k->pid, __ATOMIC_ACQUIRE)) == 0)
                (void) poll(NULL, 0, 1);
        (void) usleep(k->us);
        (void) kill(pid, SIGKILL);
        return NULL;
}

/* Wherever the pair was: its threads may be at the probe, by memory that both ends share. */
static void test_killed_in_setup(void) {
        IN_LANES(LANES, NULL, test_killed_in_setup);
        for (unsigned i = 0; i < SETUP_KILLS; i++) {
                if (!lanes_my_turn())
                        continue;
                struct driver d = {};
                struct driver_spec s = fault_spec(TRANSPORT_PIPE, WORKLOAD_STREAM);
                enum end victim = i % 2 ? END_FIRST : END_SECOND, peer = i % 2 ? END_SECOND : END_FIRST;
                struct kill_later k = {&d.ends[victim].pid, SETUP_US * i / SETUP_KILLS};
                pthread_t thread;
                s.probes = true;
                s.duration_ns = INTERRUPT_ENDLESS_NS;
                CHECK_INT(pthread_create(&thread, NULL, kill_later, &k), 0);
                int r = driver_open(&d, &s);
                if (r == 0)
                        r = driver_start(&d);
                if (r == 0)
                        r = driver_collect(&d, util_now_ns() + INTERRUPT_DEADLINE_NS);
                (void) pthread_join(thread, NULL);
                CHECK(r < 0);
                CHECK_INT(driver_close(&d), 0);
                if (!WIFEXITED(d.ends[peer].status)) /* 1; or 3, where it was hung up on first */
                        CHECK_FAIL("killed after %u us: the peer ended with status %#x, %s", k.us,
                                   (unsigned) d.ends[peer].status, d.trouble);
                driver_deinit(&d);
        }
}

/* By count: found out when nothing moves any more. By time, and by SIGKILL: test-agent-table.c. */
static void test_stopped_peer(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        IN_LANES(LANES, interrupt_isolate, test_stopped_peer);
        for (size_t i = 0; i < ELEMENTS(combinations); i++)
                for (enum end victim = END_FIRST; victim < END_COUNT; victim++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d;
                        struct driver_spec s = fault_spec(combinations[i].transport, combinations[i].workload);
                        s.duration_ns = 0;
                        s.messages = UINT64_C(1) << 40;
                        /* a busy machine may hold a thread up before the signal arrives */
                        s.stall_ns = NSEC_PER_SEC;
                        s.verify = interrupt_verify(i, victim);
                        CHECK_NO_FAULT(interrupt_check(&d, &s, victim, SIGSTOP));
                        driver_deinit(&d);
                }
}

/* The id of a worker, by the agent's own proof; -1: it has none. */
static pid_t worker_tid(const struct driver_end *e, uint32_t thread) {
        struct json *root;
        int64_t tid = -1;
        if (!e->proof || json_parse(e->proof, strlen(e->proof), &root, NULL) < 0)
                return -1;
        const struct json *i = json_first(json_get(root, "threads"));
        for (; i && thread; thread--)
                i = json_next(i);
        if (i && json_as_i64(json_get(i, "tid"), &tid) < 0)
                tid = -1;
        json_free(root);
        return (pid_t) tid;
}

/* Holds one thread of one end from the middle of the run on. */
static int run_with_frozen_thread(struct driver *d, const struct driver_spec *s, enum end victim, uint32_t thread) {
        int r = driver_open(d, s);
        if (r == 0)
                r = driver_start(d);
        pid_t tid = worker_tid(&d->ends[victim], thread);
        if (r < 0 || tid < 0)
                return r < 0 ? r : -ESRCH;
        (void) poll(NULL, 0, 100);
        if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
                return -errno;
        r = driver_collect(d, util_now_ns() + 60 * NSEC_PER_SEC);
        (void) kill(d->ends[victim].pid, SIGKILL);
        /* a tracer is notified of its thread's end first, and the parent only then of the process's */
        for (int status; waitpid(tid, &status, __WALL) == tid && !WIFEXITED(status) && !WIFSIGNALED(status);)
                ;
        if (tid == d->ends[victim].pid)
                d->ends[victim].pid = 0;
        return r == 0 ? -EPROTO : 0;
}

/* Many a container does not let one. */
static bool may_trace(void) {
        pid_t pid = fork();
        if (pid == 0)
                for (;;)
                        (void) pause();
        bool may = pid > 0 && (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 || errno != EPERM);
        if (pid > 0) {
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
        }
        return may;
}

static void check_frozen(const struct driver_spec *s, enum end victim, uint32_t thread, enum end witness,
                         const char *words) {
        struct driver d;
        int r = run_with_frozen_thread(&d, s, victim, thread);
        /* the two ends find out together, and the one that reports second may miss the other already */
        const char *detail = d.ends[witness].error.detail;
        if (strncmp(detail, "peer ", 5) == 0)
                detail = d.ends[!witness].error.detail;
        if (r < 0 || !strstr(detail, words))
                fprintf(stderr, "%d, %s: \"%s\"; expected words: %s\n", r, d.trouble, detail, words);
        CHECK_INT(r, 0);
        CHECK(strstr(detail, words) != NULL);
        CHECK_INT(driver_close(&d), 0);
        driver_deinit(&d);
}

/* One thread of several hangs: the window does not go on to its end without it. */
static void test_frozen_thread_in_window(void) {
        if (!may_trace())
                SKIP("no process may be traced here");
        IN_LANES(LANES, NULL, test_frozen_thread_in_window);
        for (enum end victim = END_FIRST; victim < END_COUNT; victim++)
                for (unsigned counted = 0; counted < 2; counted++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver_spec s = fault_spec(TRANSPORT_PIPE, WORKLOAD_STREAM);
                        s.point.threads = 2;
                        s.stall_ns = NSEC_PER_SEC; /* the other thread may have to wait for its turn */
                        s.duration_ns = counted ? 0 : 3600 * NSEC_PER_SEC;
                        s.messages = counted ? UINT64_C(1) << 40 : 0;
                        check_frozen(&s, victim, 1, victim, "stalled: thread 1 has moved no message for ");
                }
}

/* Holds a thread at its first getpid() from now on, which is the probe's after the window, for as long as it lives. */
struct holder {
        pid_t tid;
        int for_ms; /* 0: for ever */
        int held;   /* 1; negative errno */
};

static int hold_at_getpid(pid_t tid) {
        struct __ptrace_syscall_info info;
        int status;
        if (ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD) < 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
                return -errno;
        for (;;) {
                if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
                        return -ESRCH;
                bool call = WSTOPSIG(status) == (SIGTRAP | 0x80);
                if (call && ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) > 0 &&
                    info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_getpid)
                        return 1;
                bool signal = !call && status >> 16 == 0;
                if (ptrace(PTRACE_SYSCALL, tid, NULL, signal ? (long) WSTOPSIG(status) : 0L) < 0)
                        return -errno;
        }
}

static void *hold(void *userdata) {
        struct holder *h = userdata;
        h->held = hold_at_getpid(h->tid);
        if (h->held == 1 && h->for_ms > 0) {
                (void) poll(NULL, 0, h->for_ms);
                if (ptrace(PTRACE_DETACH, h->tid, NULL, NULL) < 0)
                        h->held = -errno;
        } else if (h->held == 1) /* the tracer alone learns of a traced thread's end */
                (void) waitid(P_PID, (id_t) h->tid, &(siginfo_t){0}, WEXITED | WNOWAIT | __WALL);
        return NULL;
}

/* A whole run, in which one of the victim's threads is held at its probe after the window. 0; negative errno. */
static int run_held(struct driver *d, const struct driver_spec *s, enum end victim, unsigned thread, struct holder *h) {
        pthread_t holder;
        int r = driver_open(d, s);
        if (r < 0)
                return r;
        h->tid = worker_tid(&d->ends[victim], thread);
        r = -pthread_create(&holder, NULL, hold, h);
        if (r < 0)
                return r;
        r = driver_start(d);
        if (r == 0)
                r = driver_collect(d, util_now_ns() + 60 * NSEC_PER_SEC);
        if (r < 0)
                fprintf(stderr, "%d, %s: \"%s\"\n", r, d->trouble, d->ends[victim].error.detail);
        int closed = driver_close(d);
        (void) pthread_join(holder, NULL);
        return r < 0 ? r : closed;
}

/* The window is closed when the thread gets no CPU any more: the run is whole, and its second probe has no figures. */
static void test_no_cpu_for_the_probe_after_the_window(void) {
        if (!may_trace())
                SKIP("no process may be traced here");
        IN_LANES(LANES, NULL, test_no_cpu_for_the_probe_after_the_window);
        for (enum end victim = END_FIRST; victim < END_COUNT; victim++) {
                if (!lanes_my_turn())
                        continue;
                struct driver d;
                struct driver_spec s = fault_spec(TRANSPORT_PIPE, WORKLOAD_STREAM);
                struct holder h = {0};
                s.probes = true;
                s.stall_ns = 0; /* each system call is traced */
                CHECK_INT(run_held(&d, &s, victim, 0, &h), 0);
                CHECK_INT(h.held, 1);
                CHECK_INT(d.ends[victim].status, 0);
                driver_deinit(&d);
        }
}

/* Both ends on one CPU, which the placement lists for each of the threads. */
static struct driver_spec probing_spec(uint32_t threads) {
        struct driver_spec s = fault_spec(TRANSPORT_PIPE, WORKLOAD_STREAM);
        s.probes = true;
        s.stall_ns = 0; /* each system call of one may be traced, and a busy machine may have no CPU for another */
        s.point.threads = s.cpus_listed = threads;
        s.cpus[END_FIRST] = s.cpus[END_SECOND] = sched_getcpu();
        return s;
}

/* The number of threads behind thread 0 that took a probe the last time but `back`; -1: they are not in their order. */
static int count_others(const struct driver_end *e, unsigned back) {
        uint32_t end = e->n_probes;
        for (;; back--) {
                uint32_t first = end;
                while (first > 0 && e->probes[first - 1].thread > 0)
                        first--;
                for (uint32_t i = first; i < end; i++)
                        if (e->probes[i].thread != i - first + 1)
                                return -1;
                if (first == 0)
                        return -1;
                if (back == 0)
                        return (int) (end - first);
                end = first - 1;
        }
}

/* There are more threads than may be probed, on CPUs of their own by the placement. Each began within the time for all.
 */
static void test_probes_of_further_threads(void) {
        IN_LANES(LANES, NULL, test_probes_of_further_threads);
        if (!lanes_my_turn())
                return;
        struct driver d;
        struct driver_spec s = probing_spec(PROBE_OTHERS_MAX + 3);
        int r = driver_run(&d, &s);
        if (r < 0)
                fprintf(stderr, "%d, %s: \"%s\"\n", r, d.trouble, d.ends[END_FIRST].error.detail);
        CHECK_INT(r, 0);
        for (enum end end = END_FIRST; end < END_COUNT; end++)
                for (unsigned back = 0; back < PROBE_TIMES; back++) {
                        const struct driver_end *e = &d.ends[end];
                        int n = count_others(e, back);
                        CHECK(n >= 1 && n <= (int) PROBE_OTHERS_MAX);
                        uint32_t last = e->n_probes - 1 - (back ? (uint32_t) count_others(e, 0) + 1 : 0);
                        uint64_t before_last_ns = 0;
                        for (int i = 1; i < n; i++)
                                before_last_ns += e->probes[last - (uint32_t) i].cost_ns;
                        CHECK(before_last_ns <= PROBE_OTHERS_NS);
                        for (int i = 0; i < n; i++)
                                CHECK(e->probes[last - (uint32_t) i].cpu == (uint32_t) s.cpus[end] &&
                                      e->probes[last - (uint32_t) i].offset.absence == PROBE_OTHER_THREAD);
                }
        driver_deinit(&d);
}

/* After the window a further thread is held at its probe: for so long that the next one would begin too late, or for
 * ever. The run is whole, and the other end takes its own. */
static void test_no_cpu_for_a_further_thread(void) {
        if (!may_trace())
                SKIP("no process may be traced here");
        IN_LANES(LANES, NULL, test_no_cpu_for_a_further_thread);
        for (unsigned i = 0; i < 2 * END_COUNT; i++) {
                if (!lanes_my_turn())
                        continue;
                enum end victim = i % 2 ? END_SECOND : END_FIRST, peer = i % 2 ? END_FIRST : END_SECOND;
                struct driver d;
                struct driver_spec s = probing_spec(3);
                struct holder h = {.for_ms = i / 2 ? 0 : (int) (PROBE_OTHERS_NS / NSEC_PER_MSEC) + 100};
                CHECK_INT(run_held(&d, &s, victim, 1, &h), 0);
                CHECK_INT(h.held, 1);
                CHECK_INT(d.ends[victim].status, 0);
                CHECK_INT(count_others(&d.ends[victim], 0), 1);
                CHECK(count_others(&d.ends[victim], 1) >= 1 && count_others(&d.ends[peer], 0) >= 1);
                const struct probe *p = &d.ends[victim].probes[d.ends[victim].n_probes - 1];
                CHECK(p->cpu == (uint32_t) s.cpus[victim] && p->series[PROBE_HAND_OVER].absence == PROBE_OTHER_THREAD);
                if (h.for_ms == 0)
                        CHECK(p->series[PROBE_GETPID].absence == PROBE_STARVED && p->cpu_ns == 0);
                driver_deinit(&d);
        }
}

/* At the window's end a message is waited for as long as it may take. The thread is known, the end at fault is not. In
 * the last case neither end waits for room: the pipe has it for all messages of the window. */
static void test_frozen_thread_at_the_end(void) {
        static const struct {
                enum end victim, witness;
                double rate;
                const char *words;
        } cases[] = {
                {END_FIRST, END_FIRST, 0, " ms (it is in state t)"},
                {END_SECOND, END_FIRST, 0, "thread 0 did not finish its message within "},
                {END_SECOND, END_SECOND, 5, "messages that peer sender sent, and no more for "},
        };
        if (!may_trace())
                SKIP("no process may be traced here");
        IN_LANES(LANES, NULL, test_frozen_thread_at_the_end);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                if (!lanes_my_turn())
                        continue;
                struct driver_spec s = fault_spec(TRANSPORT_PIPE, WORKLOAD_STREAM);
                s.stall_ns = 5 * NSEC_PER_SEC;    /* which a crowded machine is given all the same */
                s.duration_ns = 2 * NSEC_PER_SEC; /* it is to be open when the thread is held */
                s.rate = cases[i].rate;
                check_frozen(&s, cases[i].victim, 0, cases[i].witness, cases[i].words);
        }
}

/* The daemon's death is noticed at once, in every phase. */
static void test_daemon_gone(void) {
        for (unsigned started = 0; started < 2; started++) {
                struct driver d;
                struct driver_spec s = fault_spec(TRANSPORT_FIFO, WORKLOAD_STREAM);
                s.duration_ns = 20 * NSEC_PER_SEC;
                CHECK_INT(driver_open(&d, &s), 0);
                if (started) {
                        CHECK_INT(driver_start(&d), 0);
                        (void) poll(NULL, 0, 50);
                }
                CHECK_INT(driver_close(&d), 0); /* which kills and reports an agent that does not end by itself */
                /* hung up on one after the other: one of them may see its peer go first, which is 1 */
                int first = d.ends[END_FIRST].status, second = d.ends[END_SECOND].status;
                CHECK(WIFEXITED(first) && WIFEXITED(second));
                CHECK(WEXITSTATUS(first) == 3 || WEXITSTATUS(second) == 3);
                CHECK(WEXITSTATUS(first) != 0 && WEXITSTATUS(second) != 0);
                driver_deinit(&d);
        }
}

/* Stands between the two agents' peer channels and puts a pipe of its own in the place of the one that is passed. */
struct interposer {
        int sides[2]; /* ours, of the first's channel and of the second's */
        size_t flip;  /* byte to change, counted from the first message's beginning */
        bool drop;    /* leave the byte out instead */
        pthread_t relay, pump;
        int from, to;
        bool pumping;
};

static bool keep(const struct interposer *p, size_t at, size_t n) {
        return p->flip < at || p->flip >= at + n;
}

static void *pump_bytes(void *userdata) {
        struct interposer *p = userdata;
        unsigned char data[4096];
        size_t at = 0;
        for (;;) {
                ssize_t n = read(p->from, data, sizeof data);
                if (n <= 0)
                        break;
                size_t length = (size_t) n;
                if (!keep(p, at, length)) {
                        size_t i = p->flip - at;
                        if (p->drop)
                                memmove(data + i, data + i + 1, --length - i);
                        else
                                data[i] ^= 0x10;
                }
                at += (size_t) n;
                if (write_all(p->to, data, length) < 0)
                        break;
        }
        (void) close(p->from);
        (void) close(p->to);
        return NULL;
}

/* Takes the descriptor that was passed and returns the one to pass on. */
static int interpose(struct interposer *p, int fd) {
        int own[2];
        if (pipe2(own, O_CLOEXEC) < 0)
                return fd;
        p->from = fd;
        p->to = own[1];
        p->pumping = pthread_create(&p->pump, NULL, pump_bytes, p) == 0;
        return own[0];
}

static bool relay_packet(struct interposer *p, int from, int to) {
        char data[256];
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec iov = {.iov_base = data, .iov_len = sizeof data};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        ssize_t n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
        if (n <= 0)
                return false;
        iov.iov_len = (size_t) n;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        int fd = -1;
        if (c) {
                memcpy(&fd, CMSG_DATA(c), sizeof fd);
                fd = interpose(p, fd);
                memcpy(CMSG_DATA(c), &fd, sizeof fd);
        }
        bool sent = sendmsg(to, &m, MSG_NOSIGNAL) == n;
        (void) util_close(fd);
        return sent;
}

static void *relay_packets(void *userdata) {
        struct interposer *p = userdata;
        bool open = true;
        while (open) {
                struct pollfd fds[2] = {{.fd = p->sides[0], .events = POLLIN}, {.fd = p->sides[1], .events = POLLIN}};
                if (poll(fds, 2, 30000) <= 0)
                        break;
                for (int i = 0; i < 2; i++)
                        if (open && fds[i].revents)
                                open = relay_packet(p, p->sides[i], p->sides[1 - i]);
        }
        (void) close(p->sides[0]);
        (void) close(p->sides[1]);
        return NULL;
}

/* A stream over a pipe through the interposer: of so many messages; 0: of a second, which has more than enough. */
static int run_interposed(struct driver *d, struct interposer *p, enum verify verify, uint64_t size,
                          uint64_t messages) {
        struct driver_spec s = fault_spec(TRANSPORT_PIPE, WORKLOAD_STREAM);
        int first[2] = {-1, -1}, second[2] = {-1, -1};
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, first) < 0 ||
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, second) < 0)
                return -errno;
        s.messages = messages;
        s.duration_ns = messages ? 0 : NSEC_PER_SEC;
        s.stall_ns = 0; /* a thread that has no turn is not what is to be found */
        s.point.message_size = size;
        s.verify = verify;
        s.peer_fds[END_FIRST] = first[1];
        s.peer_fds[END_SECOND] = second[1];
        p->sides[0] = first[0];
        p->sides[1] = second[0];
        int r = pthread_create(&p->relay, NULL, relay_packets, p);
        if (r)
                return -r;
        r = driver_run(d, &s);
        (void) pthread_join(p->relay, NULL);
        if (p->pumping)
                (void) pthread_join(p->pump, NULL);
        return r;
}

static void test_checksum_finds_a_changed_byte(void) {
        struct driver d = {};
        struct interposer p = {.flip = 3 * 1000 + 777};
        CHECK(run_interposed(&d, &p, VERIFY_CHECKSUM, 1000, 100) < 0);
        CHECK(d.ends[END_SECOND].failed);
        CHECK_INT(d.ends[END_SECOND].error.error, EBADMSG);
        CHECK(strstr(d.ends[END_SECOND].error.detail, "thread 0, message 3, offset 777: expected 0x"));
        CHECK(strstr(d.ends[END_SECOND].error.detail, "(1 of 1000 bytes differ)"));
        driver_deinit(&d);
}

static void test_checksum_finds_a_lost_byte(void) {
        struct driver d = {};
        struct interposer p = {.flip = 5 * 64 + 10, .drop = true};
        CHECK(run_interposed(&d, &p, VERIFY_CHECKSUM, 64, 100) < 0);
        CHECK_INT(d.ends[END_SECOND].error.error, EBADMSG);
        CHECK(strstr(d.ends[END_SECOND].error.detail, "thread 0, message 5, offset 10"));
        driver_deinit(&d);
}

/* The same fault without verification: this is what checksum is for, and the interposer itself does no harm. */
static void test_touch_does_not_verify(void) {
        struct driver d = {};
        struct interposer p = {.flip = 3777};
        CHECK_INT(run_interposed(&d, &p, VERIFY_TOUCH, 1000, 100), 0);
        driver_deinit(&d);
}

/* A lost byte shows in the counts, under every verification. */
static void test_lost_byte_is_counted(void) {
        struct driver d = {};
        struct interposer p = {.flip = 3777, .drop = true};
        CHECK(run_interposed(&d, &p, VERIFY_NONE, 1000, 0) < 0);
        if (d.ends[END_SECOND].error.error != ETIMEDOUT)
                fprintf(stderr, "sender: \"%s\", receiver: \"%s\"\n", d.ends[END_FIRST].error.detail,
                        d.ends[END_SECOND].error.detail);
        CHECK_INT(d.ends[END_SECOND].error.error, ETIMEDOUT);
        CHECK(strstr(d.ends[END_SECOND].error.detail, "of the "));
        driver_deinit(&d);
}

static int refused(struct driver_spec *s, const char *words) {
        struct driver d;
        int r = driver_run(&d, s);
        bool named = strstr(d.trouble, words) != NULL;
        if (r == 0 || !named)
                fprintf(stderr, "r %d, \"%s\"; expected words: %s\n", r, d.trouble, words);
        driver_deinit(&d);
        return r < 0 && named ? 0 : -1;
}

static void test_impossible_setups(void) {
        struct driver_spec s = fault_spec(TRANSPORT_PIPE, WORKLOAD_STREAM);
        s.messages = 5;
        CHECK_INT(refused(&s, "exactly one of setup.duration_ns"), 0);
        s = fault_spec(TRANSPORT_PIPE, WORKLOAD_STREAM);
        s.point.message_size = SPEC_MESSAGE_SIZE_MAX + 1;
        CHECK_INT(refused(&s, "setup.point: message_size is 1 … 1073741824, not 1073741825"), 0);
}

static int run_by_hand(const char *argument, char *output, size_t size) {
        char command[700];
        (void) snprintf(command, sizeof command, "'%s' %s 2>&1", agent_path(), argument);
        FILE *f = popen(command, "r");
        if (!f)
                return -1;
        size_t n = fread(output, 1, size - 1, f);
        output[n] = '\0';
        int status = pclose(f);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_by_hand(void) {
        char output[2048];
        CHECK_INT(run_by_hand("--help", output, sizeof output), 0);
        CHECK(strstr(output, "usage: ipclab-agent"));
        CHECK_INT(run_by_hand("--version", output, sizeof output), 0);
        CHECK(strstr(output, "ipclab-agent "));
        CHECK_INT(run_by_hand("sender", output, sizeof output), 2);
        CHECK(strstr(output, "started by ipclabd"));
        CHECK_INT(run_by_hand("bystander", output, sizeof output), 2);
        CHECK_INT(run_by_hand("", output, sizeof output), 2);
}

int main(void) {
        isolation_trouble = interrupt_isolate();
        (void) signal(SIGPIPE, SIG_IGN);
        RUN(test_killed_in_setup);
        RUN(test_stopped_peer);
        RUN(test_frozen_thread_in_window);
        RUN(test_frozen_thread_at_the_end);
        RUN(test_no_cpu_for_the_probe_after_the_window);
        RUN(test_probes_of_further_threads);
        RUN(test_no_cpu_for_a_further_thread);
        RUN(test_daemon_gone);
        RUN(test_checksum_finds_a_changed_byte);
        RUN(test_checksum_finds_a_lost_byte);
        RUN(test_touch_does_not_verify);
        RUN(test_lost_byte_is_counted);
        RUN(test_impossible_setups);
        RUN(test_by_hand);
        return check_end();
}
