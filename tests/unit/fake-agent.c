/* SPDX-License-Identifier: MIT */

/*
 * An agent that sends the messages of an agent and measures nothing, and that misbehaves on request: for the tests of
 * the runner. An agent gets neither arguments nor environment, so the wish is in the program's name: "ROLE.WISH" is the
 * role that misbehaves, and how; the other role behaves. See test-runner.c for the wishes.
 */

#include "schema/measure/perf-pass.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"
#include "tests/unit/effective.h"
#include "tests/unit/proof-report.h"
#include "tests/unit/recorded.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MESSAGES 1000u

static char wish[64];
static struct message_setup setup;

static bool wished(const char *what) {
        return strcmp(wish, what) == 0;
}

static void read_wish(const char *role) {
        char exe[512];
        ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
        if (n <= 0)
                _exit(90);
        exe[n] = 0;
        const char *name = strrchr(exe, '/') + 1;
        size_t length = strlen(role);
        if (strncmp(name, role, length) == 0 && name[length] == '.')
                (void) snprintf(wish, sizeof(wish), "%s", name + length + 1);
}

static void send_message(const struct message *m) {
        if (message_send(AGENT_CONTROL_FD, m, util_now_ns() + NSEC_PER_SEC) < 0)
                _exit(91);
}

static void send_raw(const void *data, size_t length) {
        if (send(AGENT_CONTROL_FD, data, length, MSG_NOSIGNAL) < 0)
                _exit(92);
}

/* Sends it as an agent of another build would: the version stands behind four bytes. */
static void send_in_another_version(const struct message *m) {
        uint8_t *data;
        size_t length;
        if (message_encode(m, &data, &length) < 0)
                _exit(98);
        memcpy(data + 4, &(uint16_t){99}, 2);
        send_raw(data, length);
        free(data);
}

static void give_up(enum fault fault, int error, const char *words) {
        struct message m = {.type = MESSAGE_ERROR, .error = {.fault = fault, .error = error}};
        (void) snprintf(m.error.detail, sizeof(m.error.detail), "%s", words);
        send_message(&m);
        _exit(1);
}

static void receive(struct message *ret, enum message_type type) {
        if (message_receive(AGENT_CONTROL_FD, ret, util_now_ns() + 30 * NSEC_PER_SEC, NULL) < 0 || ret->type != type)
                _exit(3);
}

static void sleep_ns(uint64_t ns) {
        struct timespec ts = {.tv_sec = (time_t) (ns / NSEC_PER_SEC), .tv_nsec = (long) (ns % NSEC_PER_SEC)};
        while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
                ;
}

static struct proof_report *proof(bool lie) {
        _cleanup_free_ char *text = NULL;
        const struct agent_placement *p = &setup.placement;
        int cpu = p->n_cpus ? p->cpus[0] : 0, leader = p->n_leader_cpus ? p->leader_cpus[0] : 0;
        if (asprintf(&text,
                     "{\"affinity\":[%d],\"leader\":{\"tid\":%d,\"affinity\":[%d],\"cpu\":%d},"
                     "\"policy\":\"default\",\"policy_nodes\":[],\"threads\":[{\"thread\":0,\"tid\":%d,"
                     "\"affinity\":[%d],\"cpu\":%d,\"node\":0,\"cpus_seen\":[%d],\"migrations\":%s}],"
                     "\"threads_total\":1,\"pages_placed_together\":1,\"pages\":[%s]}",
                     cpu, getpid(), leader, leader, getpid(), cpu, cpu, lie ? cpu + 1 : cpu,
                     wished("uncounted") ? "null,\"migrations_reason\":\"not counted\"" : "0",
                     wished("wandered")
                             ? "{\"what\":\"stack\",\"thread\":0,\"total\":4,\"nodes\":{\"0\":4},\"absent\":0,"
                               "\"nodes_seen\":[0,1],\"moved\":4}"
                             : "") < 0)
                _exit(93);
        return proof_report_of(text);
}

static void leave_files(void) {
        int fd = openat(AGENT_RUN_DIR_FD, "file", O_CREAT | O_WRONLY, 0600);
        if (fd < 0 || symlinkat("/etc", AGENT_RUN_DIR_FD, "link") < 0)
                _exit(94);
        close(fd);
}

static void leave_a_directory(void) {
        leave_files();
        if (mkdirat(AGENT_RUN_DIR_FD, "dir", 0700) < 0 || mkfifoat(AGENT_RUN_DIR_FD, "dir/fifo", 0600) < 0 ||
            symlinkat("..", AGENT_RUN_DIR_FD, "dir/up") < 0)
                _exit(94);
}

/* A GiB, for messages of some KiB: no page of it is written if it is allowed. */
static void fill_the_disk(void) {
        char words[64];
        int fd = openat(AGENT_RUN_DIR_FD, "file", O_CREAT | O_WRONLY, 0600);
        (void) signal(SIGXFSZ, SIG_IGN);
        int error = ftruncate(fd, 1 << 30) < 0 ? errno : 0;
        (void) snprintf(words, sizeof(words), "a long file: %s", strerrorname_np(error));
        give_up(FAULT_OWN, error, words);
}

static void make_many_files(void) {
        char name[32];
        for (int i = 0; i < 100000; i++) {
                (void) snprintf(name, sizeof(name), "file-%d", i);
                (void) close(openat(AGENT_RUN_DIR_FD, name, O_CREAT | O_WRONLY, 0600));
                (void) unlinkat(AGENT_RUN_DIR_FD, name, 0);
        }
        _exit(94);
}

/* As deep as no removal by recursion would go; and dies of it. */
static void bury(void) {
        int at = AGENT_RUN_DIR_FD;
        for (int i = 0; i < 300; i++) {
                int next = mkdirat(at, "d", 0700) < 0 ? -1 : openat(at, "d", O_RDONLY | O_DIRECTORY);
                if (next < 0 || close(openat(next, "f", O_CREAT | O_WRONLY, 0600)) < 0)
                        _exit(94);
                if (i > 0)
                        close(at);
                at = next;
        }
        raise(SIGKILL);
}

/* Out of the run's cgroup into the one above it, as whoever owns both may. */
static void leave_cgroup(void) {
        static const char *const mounts[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
        char line[512], path[600];
        bool left = false;
        FILE *f = fopen("/proc/self/cgroup", "re");
        while (f && !left && fgets(line, sizeof(line), f)) {
                char *slash = strrchr(line, '/');
                if (strncmp(line, "0::/", 4) != 0 || !slash)
                        continue;
                *slash = 0;
                for (size_t i = 0; !left && i < ELEMENTS(mounts); i++) {
                        (void) snprintf(path, sizeof(path), "%s%s/cgroup.procs", mounts[i], line + strlen("0::"));
                        int fd = open(path, O_WRONLY | O_CLOEXEC);
                        left = fd >= 0 && write(fd, "0", 1) == 1;
                        if (fd >= 0)
                                close(fd);
                }
        }
        if (f)
                fclose(f);
        if (!left)
                _exit(95);
}

/* Its parent ends at once. It ends itself, whatever the daemon does. */
static void leave_grandchild(void) {
        pid_t child = fork();
        if (child == 0) {
                if (wished("escaped"))
                        leave_cgroup(); /* what it forks is outside, too */
                if (fork() != 0)
                        _exit(0);
                (void) setsid();
                close(AGENT_CONTROL_FD);
                close(AGENT_PEER_FD);
                (void) alarm(60);
                for (;;)
                        pause();
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
                _exit(93);
}

static void leave_child(void) {
        if (fork() == 0) {
                close(AGENT_CONTROL_FD);
                close(AGENT_PEER_FD);
                for (;;)
                        pause();
        }
}

/* A machine that is as it was before, unless it is to be a fifth slower. */
static void send_probe(bool slower) {
        struct message m = {.type = MESSAGE_PROBE, .probe = {.work_ns = 100, .cpu_ns = 100, .cost_ns = 200}};
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                struct probe_series *s = &m.probe.series[kind];
                s->absence = kind < PROBE_HAND_OVER ? PROBE_TAKEN : PROBE_LATE;
                for (size_t i = 0; s->absence == PROBE_TAKEN && i < PROBE_ROUNDS; i++)
                        s->round_ns[i] = (slower ? 120000 : 100000) + i;
        }
        if (setup.probes && !wished("unprobed"))
                send_message(&m);
}

static void report(uint64_t window) {
        uint64_t messages = wished("miscounts") ? MESSAGES + 1 : MESSAGES;
        struct message m = {.type = MESSAGE_REPORT,
                            .report = {.window_ns = wished("long-window") ? window + 1 : window,
                                       .messages = messages,
                                       .bytes = messages * setup.point.message_size,
                                       .proof = proof(wished("lies-at-report")),
                                       .effective = effective_of("{\"pipe_size\": 65536, \"clock_cost_ns\": 20}")}};
        struct message thread = {
                .type = MESSAGE_THREAD,
                .thread = {.messages = wished("short-threads") ? messages - 1 : messages, .bytes = m.report.bytes}};
        if (!wished("no-threads") && !wished("early-report"))
                send_message(&thread);
        if (wished("same-thread-twice"))
                send_message(&thread);
        message_deinit(&thread);
        if (!wished("early-report"))
                send_probe(wished("slowed"));
        send_message(&m);
        message_deinit(&m);
}

static void stop_a_child(void) {
        pid_t pid = fork();
        if (pid == 0) {
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                        _exit(1);
                for (;;)
                        (void) raise(SIGSTOP);
        }
        if (waitpid(pid, NULL, WUNTRACED) != pid)
                _exit(96);
}

/* Signals arrive when they may; that it has arrived the kernel shows. */
static bool is_stopped(pid_t pid) {
        char path[64], text[512];
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        const char *after = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
        return after && strncmp(after, ") T", 3) == 0;
}

static void stop_the_peer(void) {
        pid_t pid = 0;
        if (recv(AGENT_PEER_FD, &pid, sizeof(pid), 0) != sizeof(pid) || kill(pid, SIGSTOP) < 0)
                _exit(97);
        while (!is_stopped(pid))
                sleep_ns(NSEC_PER_MSEC);
}

/* What is refused is refused with ESRCH; what this machine cannot count, or the daemon may not, has other reasons. */
static void count(pid_t tid, bool own) {
        struct perf_handles handles;
        if (perf_pass_request(AGENT_CONTROL_FD, tid, util_now_ns() + 5 * NSEC_PER_SEC, &handles) < 0)
                _exit(95);
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        if ((handles.of[event][mode] != -ESRCH) != own)
                                give_up(FAULT_OWN, EPROTO,
                                        own ? "its own thread was refused" : "a stranger's thread was not");
}

static void be_counted(void) {
        if (wished("counts-itself") || wished("counts-too-much"))
                count(getpid(), true);
        if (wished("counts-too-much"))
                send_message(&(struct message){.type = MESSAGE_COUNT, .count = {.tid = getpid()}});
        if (wished("counts-the-daemon"))
                count(getppid(), false);
        if (wished("counts-init"))
                count(1, false);
        if (wished("counts-nobody"))
                count(INT32_MAX, false);
}

static void report_options(void) {
        const struct transport_options *o = &setup.options;
        char words[300];
        (void) snprintf(words, sizeof(words),
                        "its set-up has pipe_size %" PRIu64 ", ring_bytes %" PRIu64 ", huge_pages %d, file_sync %s, "
                        "congestion '%s', and a stall limit of %" PRIu64 " ms",
                        o->pipe_size, o->ring_bytes, o->huge_pages == TOGGLE_ON, file_sync_name(o->file_sync),
                        o->congestion, setup.stall_ns / NSEC_PER_MSEC);
        give_up(FAULT_OWN, EPROTO, words);
}

static void be_ready(void) {
        struct message m = {.type = MESSAGE_READY};
        be_counted();
        if (wished("early-report"))
                report(0);
        if (wished("fills-the-disk"))
                fill_the_disk();
        if (wished("makes-many-files"))
                make_many_files();
        if (wished("buries"))
                bury();
        if (wished("leaves-files"))
                leave_files();
        if (wished("leaves-a-directory"))
                leave_a_directory();
        if (wished("child"))
                leave_child();
        if (wished("grandchild") || wished("escaped"))
                leave_grandchild();
        send_probe(false);
        m.ready.proof = proof(wished("lies-at-ready"));
        m.ready.effective = effective_of("{\"pipe_size\": 65536}");
        send_message(&m);
        if (wished("ready-twice"))
                send_message(&m);
        message_deinit(&m);
}

/* Sleeps, and gives up when the peer is gone, as a good agent does; but it reports a fault of its own, so that the
 * daemon does not take it for a fault of the peer. */
static void wait_until(uint64_t until_ns) {
        for (;;) {
                uint64_t now = util_now_ns();
                if (now >= until_ns)
                        return;
                struct pollfd p = {.fd = AGENT_PEER_FD};
                int n = poll(&p, 1, (int) ((until_ns - now) / NSEC_PER_MSEC) + 1);
                if (n > 0 && p.revents & POLLHUP)
                        give_up(FAULT_OWN, ECONNRESET, "cannot go on alone");
        }
}

static void misbehave_in_window(void) {
        if (wished("counts-late"))
                send_message(&(struct message){.type = MESSAGE_COUNT, .count = {.tid = getpid()}});
        if (wished("killed"))
                raise(SIGKILL);
        if (wished("stops"))
                raise(SIGSTOP);
        if (wished("stops-its-child")) {
                stop_a_child();
                sleep_ns(20 * NSEC_PER_SEC);
        }
        if (wished("stops-its-peer")) {
                stop_the_peer();
                give_up(FAULT_PEER, ETIMEDOUT, "peer sender is silent");
        }
        if (wished("exits"))
                _exit(5);
        if (wished("silent"))
                sleep_ns(20 * NSEC_PER_SEC);
        if (wished("garbage"))
                send_raw("not a message", 13);
        if (wished("gives-up"))
                give_up(FAULT_OWN, EPERM, "F_SETPIPE_SZ: 2097152 bytes are above fs.pipe-max-size = 1048576");
        if (wished("blames"))
                give_up(FAULT_PEER, ECONNRESET, "nobody is there");
        if (wished("sounds-like-blame"))
                give_up(FAULT_OWN, EPROTO, "peer sender is not understood here");
        if (wished("hangs-up")) {
                close(AGENT_CONTROL_FD);
                sleep_ns(20 * NSEC_PER_SEC);
        }
        if (wished("lets-a-child-speak")) {
                if (fork() == 0) {
                        send_message(&(struct message){.type = MESSAGE_ALIVE, .alive = {PHASE_WINDOW}});
                        _exit(0);
                }
                sleep_ns(20 * NSEC_PER_SEC);
        }
        while (wished("floods"))
                send_message(&(struct message){.type = MESSAGE_ALIVE, .alive = {PHASE_WINDOW}});
}

static void measure(uint64_t start_ns) {
        uint64_t begin = start_ns + setup.warmup_ns, window = setup.duration_ns ? setup.duration_ns : NSEC_PER_SEC / 10;
        wait_until(begin + window / 2);
        misbehave_in_window();
        wait_until(begin + window);
        if (wished("later")) {
                begin += window / 2;
                window -= window / 2;
        }
        struct message m = {.type = MESSAGE_SAMPLE,
                            .sample = {.thread = wished("impossible-sample") ? 7 : 0,
                                       .begin_ns = begin,
                                       .interval_ns = wished("endless-sample") ? UINT64_MAX / 2 : window,
                                       .messages = wished("vast-sample")     ? UINT64_MAX
                                                   : wished("short-samples") ? MESSAGES - 1
                                                                             : MESSAGES,
                                       .bytes = MESSAGES * setup.point.message_size}};
        if (setup.point.workload == WORKLOAD_PINGPONG && setup.end == END_FIRST) {
                m.sample.latency = calloc(1, sizeof(*m.sample.latency));
                for (uint64_t i = 0; m.sample.latency && i < MESSAGES; i++)
                        histogram_record(m.sample.latency, 2000 + i);
        }
        if (!wished("no-parts"))
                send_message(
                        &(struct message){.type = MESSAGE_PARTS,
                                          .parts = {.begin_ns = begin, .n = 1, .list = {{window, MESSAGES, 0, 0}}}});
        send_message(&m);
        if (wished("same-second-twice"))
                send_message(&m);
        message_deinit(&m);
        report(window);
}

/* As an agent that is to fork its peer, and does not report it. */
static void hide_the_peer(void) {
        (void) syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0UL, NULL, 0UL, 0UL);
        for (;;)
                (void) pause();
}

/* As an agent whose peer is refused. */
static void fail_to_fork(void) {
        const struct forked_report born = {.error = EAGAIN, .step = "clone"};
        if (send(AGENT_FORKED_REPORT_FD, &born, sizeof born, MSG_NOSIGNAL) < 0)
                _exit(92);
        _exit(1);
}

int main(int argc, char **argv) {
        struct message m = {.type = MESSAGE_HELLO, .hello = {.pid = getpid()}};
        if (argc < 2)
                return 2;
        read_wish(argv[1]);
        if (wished("hides-its-peer")) {
                send_message(&m);
                hide_the_peer();
        }
        if (wished("cannot-fork"))
                fail_to_fork();
        if (argc != 2)
                return 2;
        if (wished("silent-hello"))
                sleep_ns(20 * NSEC_PER_SEC);
        if (wished("counts-at-once"))
                send_message(&(struct message){.type = MESSAGE_COUNT, .count = {.tid = getpid()}});
        if (wished("wrong-version"))
                send_in_another_version(&m);
        if (wished("wrong-pid"))
                m.hello.pid++;
        send_message(&m);
        /* the other may stop this one; if it is gone that is noticed later */
        (void) send(AGENT_PEER_FD, &(pid_t){getpid()}, sizeof(pid_t), MSG_NOSIGNAL);
        receive(&m, MESSAGE_SETUP);
        setup = m.setup; /* its lists live as long as we */
        if (wished("dies-in-setup"))
                abort();
        if (wished("unpaced") && setup.rate != 0)
                give_up(FAULT_OWN, EPROTO, "its set-up has a rate");
        if (wished("reports-its-options"))
                report_options();
        be_ready();
        receive(&m, MESSAGE_START);
        measure(m.start.start_ns);

        struct pollfd p = {.fd = AGENT_CONTROL_FD};
        if (wished("lingers"))
                sleep_ns(20 * NSEC_PER_SEC);
        if (poll(&p, 1, 30000) != 1)
                return 4;
        return wished("exits-badly") ? 6 : 0;
}
