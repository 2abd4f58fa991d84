/* SPDX-License-Identifier: MIT */

/*
 * What the agents do when TCP goes wrong: ends that die or stop, connections that are reset, bytes that change, foreign
 * clients at the port, ports and buffers that run out, and a thousand connections. A relay stands between the two
 * agents' peer channels; on request it puts a port of its own in the place of the server's.
 */

#include "agent/base/peer.h"
#include "check.h"
#include "figure.h"
#include "interrupt.h"
#include "lanes.h"
#include "pairs.h"
#include "rings.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define STALL_NS                                                                                                       \
        NSEC_PER_SEC /* for a thread whose peer is stopped; a busy machine may hold one up for a while, too            \
                      */
#define CONNECTIONS_MAX 4
#define GREETING 16u /* bytes that the client sends first on each connection */
#define NEVER SIZE_MAX

static const enum engine engines[] = {ENGINE_SYSCALL, ENGINE_IO_URING};
static size_t n_engines = ELEMENTS(engines);
static const char *no_rings; /* why the last of them is left out; NULL: it is not */

static const enum data_direction directions[] = {DIRECTION_DOWN, DIRECTION_BOTH}; /* which have loops of their own */

static const char *isolation_trouble; /* NULL: what is left is this program's own */

static struct driver_spec fault_spec(enum engine engine, enum copy_mode mode) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = TRANSPORT_TCP;
        s.point.engine = engine;
        s.point.copy_mode = mode;
        s.point.threads = 2;
        s.point.message_size = 20000;
        s.verify = VERIFY_CHECKSUM;
        s.messages = 200;
        s.interval_ns = 50 * NSEC_PER_MSEC;
        s.stamp = true;
        return s;
}

/* One that only a fault ends. */
static struct driver_spec endless_spec(enum engine engine, enum copy_mode mode) {
        struct driver_spec s = fault_spec(engine, mode);
        s.messages = 0;
        s.duration_ns = INTERRUPT_ENDLESS_NS;
        return s;
}

/* The ways in which an end can sit in the kernel when the other goes. */
static const struct {
        enum workload workload;
        enum data_direction direction;
        enum copy_mode mode;
} jobs[] = {
        {WORKLOAD_STREAM, DIRECTION_DOWN, COPY_TWO},    {WORKLOAD_STREAM, DIRECTION_UP, COPY_ZERO},
        {WORKLOAD_STREAM, DIRECTION_BOTH, COPY_ONE},    {WORKLOAD_STREAM, DIRECTION_BOTH, COPY_ZERO},
        {WORKLOAD_PINGPONG, DIRECTION_DOWN, COPY_ZERO}, {WORKLOAD_PINGPONG, DIRECTION_DOWN, COPY_TWO},
        {WORKLOAD_PINGPONG, DIRECTION_DOWN, COPY_ONE},
};

static struct driver_spec job_spec(size_t k) {
        struct driver_spec s = endless_spec(engines[k % n_engines], jobs[k / n_engines].mode);
        s.point.workload = jobs[k / n_engines].workload;
        s.point.direction = jobs[k / n_engines].direction;
        return s;
}

static void test_killed_end(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        IN_LANES(lanes_of_locked_pages(), interrupt_isolate, test_killed_end);
        for (size_t k = 0; k < ELEMENTS(jobs) * n_engines; k++)
                for (enum end victim = END_FIRST; victim < END_COUNT; victim++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d;
                        struct driver_spec s = job_spec(k);
                        s.verify = interrupt_verify(k, victim);
                        CHECK_NO_FAULT(interrupt_check(&d, &s, victim, SIGKILL));
                        driver_deinit(&d);
                }
}

/* The same for a stream of short messages. */
static void test_interrupted_end_of_short_messages(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        if (no_rings)
                SKIP("%s", no_rings);
        IN_LANES(lanes_of_locked_pages(), interrupt_isolate, test_interrupted_end_of_short_messages);
        for (enum end victim = END_FIRST; victim < END_COUNT; victim++)
                for (unsigned stop = 0; stop < 2; stop++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d;
                        struct driver_spec s = endless_spec(ENGINE_IO_URING, COPY_TWO);
                        s.point.message_size = 1000;
                        if (stop) {
                                s.duration_ns = 0;
                                s.messages = SPEC_COUNT_MAX / s.point.threads;
                                s.stall_ns = STALL_NS;
                        }
                        CHECK_NO_FAULT(interrupt_check(&d, &s, victim, stop ? SIGSTOP : SIGKILL));
                        driver_deinit(&d);
                }
}

/* Found out by the second. */
static void test_stopped_end(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        IN_LANES(lanes_of_locked_pages(), interrupt_isolate, test_stopped_end);
        for (size_t k = 0; k < ELEMENTS(jobs) * n_engines; k++)
                for (enum end victim = END_FIRST; victim < END_COUNT; victim++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d;
                        struct driver_spec s = job_spec(k);
                        s.verify = interrupt_verify(k, victim);
                        s.duration_ns = 0;
                        s.messages = SPEC_COUNT_MAX / s.point.threads;
                        s.stall_ns = STALL_NS;
                        CHECK_NO_FAULT(interrupt_check(&d, &s, victim, SIGSTOP));
                        driver_deinit(&d);
                }
}

/* One direction of a connection through the relay. */
struct pump {
        struct relay *relay;
        int from, to, thread_number;
        bool down; /* server to client: where faults are */
        pthread_t thread;
        bool started;
};

struct relay {
        int sides[END_COUNT]; /* ours, of the server's channel and of the client's */
        bool proxy;           /* connections go through us */
        bool foreign;         /* some come before the client does */
        int late_ms;          /* delay before the first byte on the client's first connection */
        int victim;           /* the connection that has the fault */
        size_t flip, reset;   /* at this byte of what the server sends, or NEVER */
        size_t n_silent;
        int silent[200]; /* foreign clients that send nothing */
        uint16_t port;   /* of the server */
        int listener;
        pthread_t packets, accepting;
        struct pump pumps[2 * CONNECTIONS_MAX];
};

static int connect_to(uint16_t port) {
        struct sockaddr_in a = {
                .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *) &a, sizeof a) < 0)
                fd = util_close(fd);
        return fd;
}

static void reset(int fd) {
        struct linger hard = {.l_onoff = 1};
        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

static int write_all(int fd, const unsigned char *data, size_t n) {
        while (n) {
                ssize_t w = send(fd, data, n, MSG_NOSIGNAL);
                if (w <= 0)
                        return -1;
                data += w;
                n -= (size_t) w;
        }
        return 0;
}

static void *pump_bytes(void *userdata) {
        struct pump *p = userdata;
        const struct relay *relay = p->relay;
        bool faulty = p->down && p->thread_number == relay->victim;
        unsigned char data[8192];
        for (size_t at = 0;;) {
                ssize_t n = recv(p->from, data, sizeof data, 0);
                if (n <= 0)
                        break;
                if (faulty && relay->flip >= at && relay->flip < at + (size_t) n)
                        data[relay->flip - at] ^= 0x10;
                at += (size_t) n;
                if (faulty && at > relay->reset) {
                        reset(p->from);
                        reset(p->to);
                        break;
                }
                if (write_all(p->to, data, (size_t) n) < 0)
                        break;
        }
        /* wakes the pump of the other direction; the descriptors are closed when both are done */
        (void) shutdown(p->from, SHUT_RDWR);
        (void) shutdown(p->to, SHUT_RDWR);
        return NULL;
}

static void start_pump(struct relay *r, int i, int thread_number, bool down, int from, int to) {
        struct pump *p = &r->pumps[i];
        *p = (struct pump){.relay = r, .from = from, .to = to, .thread_number = thread_number, .down = down};
        p->started = pthread_create(&p->thread, NULL, pump_bytes, p) == 0;
}

/* The client's connections come in the order of its threads. */
static void *take_connections(void *userdata) {
        struct relay *r = userdata;
        for (int i = 0; i < CONNECTIONS_MAX; i++) {
                int client = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
                if (client < 0)
                        break;
                int server = connect_to(r->port);
                if (i == 0)
                        (void) poll(NULL, 0, r->late_ms);
                start_pump(r, 2 * i, i, true, server, client);
                start_pump(r, 2 * i + 1, i, false, client, server);
        }
        return NULL;
}

static uint16_t open_listener(struct relay *r) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof a;
        r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (r->listener < 0 || bind(r->listener, (struct sockaddr *) &a, sizeof a) < 0 || listen(r->listener, 8) < 0 ||
            getsockname(r->listener, (struct sockaddr *) &a, &length) < 0 ||
            pthread_create(&r->accepting, NULL, take_connections, r))
                abort();
        return ntohs(a.sin_port);
}

/* Connects without being the client: with a wrong greeting, with a part of one, without any. */
static void connect_foreign(struct relay *r) {
        static const unsigned char words[GREETING] = "GET / HTTP/1.1\r\n";
        int wrong = connect_to(r->port), short_one = connect_to(r->port);
        (void) write_all(wrong, words, sizeof words);
        (void) write_all(short_one, words, 5);
        (void) util_close(wrong);
        (void) util_close(short_one);
        for (r->n_silent = 0; r->n_silent < ELEMENTS(r->silent); r->n_silent++)
                r->silent[r->n_silent] = connect_to(r->port);
}

static void look_at(struct relay *r, struct peer_packet *packet) {
        if (packet->kind != PEER_TRANSPORT || packet->thread != 0 || r->port)
                return;
        r->port = (uint16_t) packet->value;
        if (r->proxy)
                packet->value = open_listener(r);
        if (r->foreign)
                connect_foreign(r);
}

static void *relay_packets(void *userdata) {
        struct relay *r = userdata;
        for (bool open = true; open;) {
                struct pollfd fds[2] = {{.fd = r->sides[0], .events = POLLIN}, {.fd = r->sides[1], .events = POLLIN}};
                if (poll(fds, 2, 60000) <= 0)
                        break;
                for (int i = 0; i < 2; i++) {
                        struct peer_packet packet;
                        if (!open || !fds[i].revents)
                                continue;
                        open = recv(r->sides[i], &packet, sizeof packet, 0) == sizeof packet;
                        if (open)
                                look_at(r, &packet);
                        if (open)
                                open = send(r->sides[1 - i], &packet, sizeof packet, MSG_NOSIGNAL) == sizeof packet;
                }
        }
        (void) close(r->sides[0]);
        (void) close(r->sides[1]);
        return NULL;
}

static void relay_end(struct relay *r) {
        (void) pthread_join(r->packets, NULL);
        if (r->proxy && r->port) {
                (void) shutdown(r->listener, SHUT_RDWR);
                (void) pthread_join(r->accepting, NULL);
                (void) close(r->listener);
        }
        for (size_t i = 0; i < ELEMENTS(r->pumps); i++)
                if (r->pumps[i].started)
                        (void) pthread_join(r->pumps[i].thread, NULL);
        for (size_t i = 0; i < ELEMENTS(r->pumps); i += 2)
                if (r->pumps[i].started) {
                        (void) close(r->pumps[i].from);
                        (void) close(r->pumps[i].to);
                }
        for (size_t i = 0; i < r->n_silent; i++)
                (void) util_close(r->silent[i]);
}

static int run_relayed(struct driver *d, struct relay *r, struct driver_spec *s) {
        for (int end = 0; end < END_COUNT; end++) {
                int pair[2];
                if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                        return -errno;
                r->sides[end] = pair[0];
                s->peer_fds[end] = pair[1];
        }
        if (pthread_create(&r->packets, NULL, relay_packets, r))
                abort();
        int result = driver_run(d, s);
        relay_end(r);
        return result;
}

/* That the relay itself does no harm. */
static void test_relay(void) {
        struct driver d = {};
        struct relay r = {.proxy = true, .flip = NEVER, .reset = NEVER};
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        CHECK_INT(run_relayed(&d, &r, &s), 0);
        CHECK_UINT(d.ends[END_SECOND].report.messages, s.messages * s.point.threads);
        driver_deinit(&d);
}

/* One of several threads has its connection reset: the run fails for that, and everything ends. An end that finds the
 * other gone before its own thread has reported the reset knows no better. */
static void test_reset_connection(void) {
        static const char words[] = "closed the channel of thread 1";
        IN_LANES(lanes_of_locked_pages(), NULL, test_reset_connection);
        for (size_t e = 0; e < n_engines; e++)
                for (size_t k = 0; k < COPY_COUNT * ELEMENTS(directions); k++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d = {};
                        struct relay r = {.proxy = true, .flip = NEVER, .reset = 300000, .victim = 1};
                        struct driver_spec s = endless_spec(engines[e], (enum copy_mode)(k % COPY_COUNT));
                        s.point.direction = directions[k / COPY_COUNT];
                        s.point.threads = 3;
                        CHECK(run_relayed(&d, &r, &s) < 0);
                        CHECK(strstr(d.ends[END_FIRST].error.detail, words) ||
                              strstr(d.ends[END_SECOND].error.detail, words));
                        for (enum end end = END_FIRST; end < END_COUNT; end++)
                                CHECK(WIFEXITED(d.ends[end].status) && WEXITSTATUS(d.ends[end].status) == 1);
                        driver_deinit(&d);
                }
}

static void test_changed_byte(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_changed_byte);
        for (size_t e = 0; e < n_engines; e++)
                for (size_t k = 0; k < COPY_COUNT * ELEMENTS(directions); k++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d = {};
                        struct relay r = {.proxy = true, .flip = 3 * 20000 + 777, .reset = NEVER, .victim = 2};
                        struct driver_spec s = endless_spec(engines[e], (enum copy_mode)(k % COPY_COUNT));
                        s.point.direction = directions[k / COPY_COUNT];
                        s.point.threads = 3;
                        CHECK_INT(run_relayed(&d, &r, &s), -EBADMSG);
                        CHECK(strstr(d.trouble, "thread 2, message 3, offset 777"));
                        CHECK(strstr(d.trouble, "(1 of 20000 bytes differ)"));
                        driver_deinit(&d);
                }
}

/* The time in a message is no part of the pattern; one that cannot be is found all the same. */
static void test_changed_stamp(void) {
        struct driver d = {};
        struct relay r = {.proxy = true, .flip = 5 * 20000 + 7, .reset = NEVER};
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_ONE);
        s.verify = VERIFY_NONE;
        CHECK_INT(run_relayed(&d, &r, &s), -EBADMSG);
        CHECK(strstr(d.trouble, "thread 0, message 5 has the send time "));
        driver_deinit(&d);
}

/* The same of short messages, which io_uring receives many at a time. */
static void test_faults_of_short_messages(void) {
        for (size_t k = 0; k < n_engines; k++) {
                struct driver d = {};
                struct relay reset = {.proxy = true, .flip = NEVER, .reset = 300000, .victim = 1};
                struct driver_spec s = endless_spec(engines[k], COPY_TWO);
                s.point.threads = 3;
                s.point.message_size = 1000;
                CHECK(run_relayed(&d, &reset, &s) < 0);
                CHECK(strstr(d.trouble, "closed the channel of thread 1"));
                driver_deinit(&d);
                struct relay flip = {.proxy = true, .flip = 70 * 1000 + 777, .reset = NEVER, .victim = 2};
                CHECK_INT(run_relayed(&d, &flip, &s), -EBADMSG);
                CHECK(strstr(d.trouble, "thread 2, message 70, offset 777"));
                driver_deinit(&d);
                struct relay stamp = {.proxy = true, .flip = 80 * 1000 + 7, .reset = NEVER, .victim = 0};
                CHECK_INT(run_relayed(&d, &stamp, &s), -EBADMSG);
                CHECK(strstr(d.trouble, "thread 0, message 80 has the send time "));
                driver_deinit(&d);
        }
}

/* More of them than are listened to at once, before the client's first connection. */
static void test_foreign_clients(void) {
        struct driver d = {};
        struct relay r = {.foreign = true, .flip = NEVER, .reset = NEVER};
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        CHECK_INT(run_relayed(&d, &r, &s), 0);
        size_t all = 2 + ELEMENTS(r.silent); /* they are let in in the order of coming, and so before the client */
        CHECK_INT(figure(d.ends[END_FIRST].effective_at_end, "strangers_refused"), all);
        driver_deinit(&d);
}

/* A client that did not run between its first connection and its greeting is not taken for a foreign one. */
static void test_late_client(void) {
        struct driver d = {};
        struct relay r = {.proxy = true, .late_ms = 600, .flip = NEVER, .reset = NEVER};
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        CHECK_INT(run_relayed(&d, &r, &s), 0);
        CHECK_INT(figure(d.ends[END_FIRST].effective_at_end, "strangers_refused"), 0);
        driver_deinit(&d);
}

/* A network namespace of its own, whose settings no other process uses. */
static bool enter_own_network(void) {
        struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
        int fd = -1;
        if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER) == 0)
                fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
}

#define MEMLOCK_BYTES (1u << 20)

/* Pages that a send pins count against RLIMIT_MEMLOCK of all but the privileged, which agents then are not. */
static bool lower_memlock(void) {
        struct rlimit limit = {.rlim_cur = MEMLOCK_BYTES, .rlim_max = MEMLOCK_BYTES};
        if (geteuid() == 0 && prctl(PR_CAPBSET_DROP, (unsigned long) CAP_IPC_LOCK, 0UL, 0UL, 0UL) < 0)
                return false;
        return setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

static const char *prepare_memlock(void) {
        return lower_memlock() ? NULL : "RLIMIT_MEMLOCK cannot be made to hold";
}

/* Runs f in a process of its own that has been prepared. 0; 77 where it cannot be; else a failure. */
static int in_child(bool (*prepare)(void), int (*f)(void)) {
        (void) fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
                _exit(prepare() ? f() : 77);
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
                return 1;
        return WEXITSTATUS(status);
}

static bool set(const char *path, const char *value) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd >= 0 && write(fd, value, strlen(value)) == (ssize_t) strlen(value);
}

static bool fails_with(struct driver_spec *s, const char *words) {
        struct driver d;
        int r = driver_run(&d, s);
        bool as_expected = r < 0 && strstr(d.trouble, words);
        if (!as_expected)
                fprintf(stderr, "r %d, \"%s\"; expected: %s\n", r, d.trouble, words);
        driver_deinit(&d);
        return as_expected;
}

#define PORT 40000

/* The one port that there is is taken; then it is the server's, and the client has none. */
static int one_port(void) {
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        struct sockaddr_in a = {
                .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(PORT)};
        if (!set("/proc/sys/net/ipv4/ip_local_port_range", "40000 40000"))
                return 77;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *) &a, sizeof a) < 0 || listen(fd, 1) < 0)
                return 1;
        if (!fails_with(&s, "no port of 127.0.0.1 is free for the server: Address already in use"))
                return 1;
        (void) close(fd);
        return fails_with(&s, "cannot connect to 127.0.0.1:40000: Cannot assign requested address (no port is free")
                       ? 0
                       : 1;
}

/* Buffers for one notification, of 16 messages in the pool: sends fail, are counted and made again. */
static int few_buffers(void) {
        struct driver d;
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_ZERO);
        if (!set("/proc/sys/net/core/optmem_max", "1000"))
                return 77;
        s.messages = 5000;
        int r = driver_run(&d, &s);
        double enobufs = figure(d.ends[END_FIRST].counters, "enobufs");
        double sends = figure(d.ends[END_FIRST].counters, "zerocopy_sends");
        bool whole = d.ends[END_SECOND].report.messages == s.messages * s.point.threads;
        if (r < 0 || enobufs <= 0 || sends <= 0 || !whole)
                fprintf(stderr, "%s: ENOBUFS %.0f, sends %.0f\n", d.trouble, enobufs, sends);
        driver_deinit(&d);
        return r == 0 && enobufs > 0 && sends > 0 && whole ? 0 : 1;
}

/* Not enough for a single one. */
static int no_buffers(void) {
        struct driver_spec s = endless_spec(ENGINE_SYSCALL, COPY_ZERO);
        if (!set("/proc/sys/net/core/optmem_max", "100"))
                return 77;
        s.stall_ns = 0; /* the thread finds out before it counts as stalled */
        return fails_with(&s, "net.core.optmem_max is 100 bytes") ? 0 : 1;
}

static bool memlock_is_enough(enum engine engine, enum data_direction direction, uint32_t threads) {
        struct driver d;
        struct driver_spec s = fault_spec(engine, COPY_ZERO);
        s.point.message_size = 600000; /* no two of which go together, so that the second fails as long as */
        s.verify = VERIFY_NONE;        /* the first is on its way; and the sender does nothing in between */
        s.messages = threads == 1 ? 500 : 200;
        s.point.threads = threads; /* each of which must have its turn */
        s.point.direction = direction;
        int r = driver_run(&d, &s);
        double enobufs = figure(d.ends[END_FIRST].counters, "enobufs");
        if (direction == DIRECTION_BOTH && enobufs == 0) /* they are of one user: either is in the other's way */
                enobufs = figure(d.ends[END_SECOND].counters, "enobufs");
        uint64_t messages = d.ends[END_SECOND].report.messages;
        const char *effective = d.ends[END_FIRST].effective_at_end; /* the limits that explain the refusals */
        bool named = effective && strstr(effective, "\"memlock_bytes\":1048576") &&
                     !strstr(effective, "\"optmem_max_bytes\":") == (engine == ENGINE_IO_URING);
        if (r < 0 || !named || enobufs <= 0 || messages != s.messages * threads)
                fprintf(stderr, "engine %s, %s, %" PRIu32 " threads: %s: ENOBUFS %.0f, %" PRIu64 " messages\n",
                        engine_name(engine), direction_name(direction), threads, d.trouble, enobufs, messages);
        driver_deinit(&d);
        return r == 0 && named && enobufs > 0 && messages == s.messages * threads;
}

/* Enough pages for one of the pool's messages at a time, and too few to register them all. */
static void check_few_pages(void) {
        for (size_t e = 0; e < n_engines; e++)
                for (uint32_t threads = 1; threads <= 4; threads *= 2)
                        for (size_t k = 0; k < ELEMENTS(directions); k++)
                                if (lanes_my_turn())
                                        CHECK(memlock_is_enough(engines[e], directions[k], threads));
}

/* Pools of short messages, of which some threads' would fill the limit before the others have sent a thing: they are
 * registered where those of all threads fit, at both ends where both send, and else by none. */
static void check_many_pools(void) {
        static const struct {
                enum workload workload;
                uint32_t threads;
                const char *buffers; /* in `effective` */
        } cases[] = {
                {WORKLOAD_STREAM, 2, "\"registered_buffers\":true"},
                {WORKLOAD_STREAM, 20, "\"registered_buffers_reason\":\"RLIMIT_MEMLOCK"},
                {WORKLOAD_PINGPONG, 2, "\"registered_buffers\":true"},
                {WORKLOAD_PINGPONG, 8, "\"registered_buffers_reason\":\"RLIMIT_MEMLOCK"},
        };
        for (size_t i = 0; !no_rings && i < ELEMENTS(cases); i++) {
                if (!lanes_my_turn())
                        continue;
                struct driver d;
                struct driver_spec s = fault_spec(ENGINE_IO_URING, COPY_ZERO);
                s.point.workload = cases[i].workload;
                s.point.threads = cases[i].threads;
                s.point.message_size = 1000;
                s.point.fields = 1; /* which every kernel that sends so takes from registered memory */
                int r = driver_run(&d, &s);
                const char *effective = d.ends[END_FIRST].effective_at_end;
                if (r < 0 || !effective || !strstr(effective, cases[i].buffers))
                        CHECK_FAIL("%s, %" PRIu32 " threads: %s; %s", workload_name(s.point.workload), s.point.threads,
                                   d.trouble, effective ? effective : "no report");
                driver_deinit(&d);
        }
}

/* Not enough for a message. */
static void check_no_pages(void) {
        for (size_t e = 0; e < n_engines; e++) {
                if (!lanes_my_turn())
                        continue;
                struct driver_spec s = endless_spec(engines[e], COPY_ZERO);
                s.point.message_size = 4 * MEMLOCK_BYTES;
                CHECK(fails_with(&s, "RLIMIT_MEMLOCK is 1048576 bytes for all of the user's sends"));
        }
}

#define CHECK_IN_OWN_NETWORK(f)                                                                                        \
        do {                                                                                                           \
                int code = in_child(enter_own_network, f);                                                             \
                if (code == 77)                                                                                        \
                        SKIP("no network namespace with this setting in it can be had here");                          \
                CHECK_INT(code, 0);                                                                                    \
        } while (0)

static void test_no_port(void) {
        CHECK_IN_OWN_NETWORK(one_port);
}

static void test_few_buffers(void) {
        CHECK_IN_OWN_NETWORK(few_buffers);
}

static void test_no_buffers(void) {
        CHECK_IN_OWN_NETWORK(no_buffers);
}

static int do_nothing(void) {
        return 0;
}

static void test_pages_that_sends_pin(void) {
        if (!lanes && in_child(lower_memlock, do_nothing) == 77)
                SKIP("RLIMIT_MEMLOCK cannot be made to hold here");
        IN_LANES(1, prepare_memlock, test_pages_that_sends_pin); /* whose pages would count together */
        check_few_pages();
        check_many_pools();
        check_no_pages();
}

/* Each has a descriptor at both ends, and its rings; the soft limit is far too low for most, as agents may find it. */
static void test_thousand_connections(void) {
        static const enum copy_mode modes[] = {COPY_ONE, COPY_ZERO};
        static const uint32_t counts[] = {20, SPEC_THREADS_MAX};
        struct rlimit limit;
        IN_LANES(1, NULL, test_thousand_connections); /* one case has threads for all CPUs */
        CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
        limit.rlim_cur = 200; /* the lane's, which ends with its cases */
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
        for (size_t k = 0; k < ELEMENTS(modes) * n_engines; k++)
                for (size_t c = 0; c < ELEMENTS(counts); c++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d;
                        size_t engine = k / ELEMENTS(modes), mode = k % ELEMENTS(modes);
                        struct driver_spec s = fault_spec(engines[engine], modes[mode]);
                        s.point.workload = engine == mode ? WORKLOAD_STREAM : WORKLOAD_PINGPONG;
                        s.point.threads = counts[c];
                        s.point.message_size = 1000;
                        s.messages = 3;
                        s.interval_ns = NSEC_PER_SEC;
                        if (driver_run(&d, &s) < 0)
                                fprintf(stderr, "%s\n", d.trouble);
                        CHECK_UINT(d.ends[END_FIRST].report.messages, 3 * counts[c]);
                        CHECK_UINT(d.ends[END_SECOND].report.messages, 3 * counts[c]);
                        driver_deinit(&d);
                }
}

static void test_options_that_cannot_be(void) {
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        s.options.sndbuf = (UINT64_C(1) << 30) - 1;
        CHECK(fails_with(&s, "sndbuf: 1073741823 needed, net.core.wmem_max is "));
        s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        s.options.rcvbuf = (UINT64_C(1) << 30) - 1;
        CHECK(fails_with(&s, "rcvbuf: 1073741823 needed, net.core.rmem_max is "));
        s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        (void) snprintf(s.options.congestion, sizeof s.options.congestion, "no-such");
        CHECK(fails_with(&s, "congestion no-such: "));
}

/* Cases that need a ring are left out below; one of them gives the reason. */
static void test_rings_that_are_not_to_be_had(void) {
        SKIP("%s: nothing is done by io_uring", no_rings);
}

int main(void) {
        isolation_trouble = interrupt_isolate();
        (void) signal(SIGPIPE, SIG_IGN);
        no_rings = ring_trouble();
        if (no_rings) {
                n_engines--;
                RUN(test_rings_that_are_not_to_be_had);
        }
        RUN(test_killed_end);
        RUN(test_stopped_end);
        RUN(test_interrupted_end_of_short_messages);
        RUN(test_relay);
        RUN(test_reset_connection);
        RUN(test_changed_byte);
        RUN(test_changed_stamp);
        RUN(test_faults_of_short_messages);
        RUN(test_foreign_clients);
        RUN(test_late_client);
        RUN(test_no_port);
        RUN(test_few_buffers);
        RUN(test_no_buffers);
        RUN(test_pages_that_sends_pin);
        RUN(test_thousand_connections);
        RUN(test_options_that_cannot_be);
        return check_end();
}
