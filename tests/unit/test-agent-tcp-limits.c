/* SPDX-License-Identifier: MIT */

/*
 * What the agents do over TCP where ports, buffers and pages to lock run out, and with a thousand connections.
 */

#include "check.h"
#include "figure.h"
#include "lanes.h"
#include "schema/util.h"
#include "tcp-faults.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

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

static void check_connections(uint32_t threads, enum copy_mode mode, enum engine engine) {
        struct driver d;
        struct driver_spec s = fault_spec(engine, mode);
        s.point.workload = (engine == ENGINE_SYSCALL) == (mode == COPY_ONE) ? WORKLOAD_STREAM : WORKLOAD_PINGPONG;
        s.point.threads = threads;
        s.point.message_size = 1000;
        s.messages = 3;
        s.interval_ns = NSEC_PER_SEC;
        if (driver_run(&d, &s) < 0)
                fprintf(stderr, "%s\n", d.trouble);
        CHECK_UINT(d.ends[END_FIRST].report.messages, 3 * threads);
        CHECK_UINT(d.ends[END_SECOND].report.messages, 3 * threads);
        driver_deinit(&d);
}

/* Each has a descriptor at both ends, and its rings; the soft limit is far too low for most, as agents may find it.
 * Hundreds of threads run the code that a few do: the first case, which sanitizers see, has a few in every mode. */
static void test_thousand_connections(void) {
        static const enum copy_mode modes[] = {COPY_ONE, COPY_ZERO};
        struct rlimit limit;
        lanes_of_trials = true;
        IN_LANES(1, NULL, test_thousand_connections); /* one case has threads for all CPUs */
        CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
        limit.rlim_cur = 200; /* the lane's, which ends with its cases */
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const size_t n = ELEMENTS(modes) * n_engines;
        bool few = lanes_my_turn();
        for (size_t k = 0; few && k < n; k++) {
                check_connections(20, modes[k % ELEMENTS(modes)], engines[k / ELEMENTS(modes)]);
                lanes_advance();
        }
        for (size_t k = 0; k < n; k++)
                if (lanes_my_turn())
                        check_connections(SPEC_THREADS_MAX, modes[k % ELEMENTS(modes)], engines[k / ELEMENTS(modes)]);
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

int main(void) {
        (void) signal(SIGPIPE, SIG_IGN);
        find_engines();
        RUN(test_no_port);
        RUN(test_few_buffers);
        RUN(test_no_buffers);
        RUN(test_pages_that_sends_pin);
        RUN(test_thousand_connections);
        RUN(test_options_that_cannot_be);
        return check_end();
}
