/* SPDX-License-Identifier: MIT */

/*
 * Counters that one process opens for another. This program is the daemon, its children are agents that exit 0 when all
 * was as they expected; their other exits are lines of this file. Instead of the hardware, which few machines have, the
 * kernel's clock of a task is counted, for each event and in both modes.
 */

#include "schema/measure/perf-pass.h"

#include "check.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NOBODY 65534
#define SOON (util_now_ns() + 100 * NSEC_PER_SEC) /* a deadline that no test is to reach */

static int open_clock(pid_t tid, enum perf_mode mode) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .type = PERF_TYPE_SOFTWARE,
                .config = PERF_COUNT_SW_TASK_CLOCK,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        };
        attr.exclude_kernel = mode == PERF_USER;
        long fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, (unsigned long) PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : (int) fd;
}

/* What the daemon opens by. */
struct opening {
        unsigned calls;
        int kernel_error; /* of each event in kernel mode; 0: opened */
        bool ends_thread; /* the thread is gone by the time that it is open */
        int end_fd;
        pid_t pid;
};

static void clock_open(void *userdata, pid_t tid, struct perf_handles *ret) {
        struct opening *o = userdata;
        o->calls++;
        for (enum perf_event event = 0; event < PERF_EVENT_COUNT; event++)
                for (enum perf_mode mode = 0; mode < PERF_MODE_COUNT; mode++)
                        ret->of[event][mode] =
                                mode == PERF_KERNEL && o->kernel_error ? o->kernel_error : open_clock(tid, mode);
        if (o->ends_thread && write(o->end_fd, "", 1) == 1)
                while (tgkill(o->pid, tid, 0) == 0)
                        usleep(1000);
}

static void clock_close(void *userdata, int handle) {
        (void) userdata;
        util_close(handle);
}

/* --- an agent --- */

/* In a child: what is not so ends it, with the line. */
#define EXPECT(condition)                                                                                              \
        do {                                                                                                           \
                if (!(condition)) {                                                                                    \
                        fprintf(stderr, "%s:%d: the agent missed: %s\n", __FILE__, __LINE__, #condition);              \
                        _exit(1);                                                                                      \
                }                                                                                                      \
        } while (0)

static bool all_are(const struct perf_handles *h, int error) {
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        if (h->of[event][mode] != error)
                                return false;
        return true;
}

static unsigned open_descriptors(void) {
        unsigned n = 0;
        for (int fd = 0; fd < 100; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static void burn(void) {
        for (volatile unsigned i = 0; i < 3000000; i++)
                ;
}

static void expect_counting(const struct perf_handles *h, enum perf_mode mode) {
        struct perf_reading before, after;
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++) {
                int fd = h->of[event][mode];
                EXPECT(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
                EXPECT(perf_source_kernel.read(NULL, fd, &before) == 0);
                burn();
                EXPECT(perf_source_kernel.read(NULL, fd, &after) == 0);
                EXPECT(after.value > before.value && after.running_ns > before.running_ns);
        }
}

static void request(int fd, pid_t tid, struct perf_handles *ret) {
        int r = perf_pass_request(fd, tid, SOON, ret);
        if (r < 0)
                fprintf(stderr, "no answer: %s\n", strerrordesc_np(-r));
        EXPECT(r == 0);
}

static void counts_itself(int fd) {
        struct perf_handles h;
        request(fd, getpid(), &h);
        expect_counting(&h, PERF_USER);
        expect_counting(&h, PERF_KERNEL);
}

/* Its first thread sleeps while another is counted: a clock that goes is the other's. */
static void *count_own_thread(void *userdata) {
        struct perf_handles h;
        request(*(int *) userdata, (pid_t) syscall(SYS_gettid), &h);
        expect_counting(&h, PERF_USER);
        return NULL;
}

static void counts_a_thread(int fd) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, count_own_thread, &fd) == 0);
        EXPECT(pthread_join(thread, NULL) == 0);
}

static void counts_its_parent(int fd) {
        struct perf_handles h;
        unsigned before = open_descriptors();
        request(fd, getppid(), &h);
        EXPECT(all_are(&h, -ESRCH) && open_descriptors() == before);
}

/* The other's only thread is no thread of this one, be it the same user's. */
static void counts_its_child(int fd) {
        struct perf_handles h;
        int hold[2];
        EXPECT(pipe2(hold, O_CLOEXEC) == 0);
        pid_t child = fork();
        if (child == 0) {
                char byte;
                util_close(hold[1]);
                _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
        }
        EXPECT(child > 0);
        request(fd, child, &h);
        EXPECT(all_are(&h, -ESRCH));
        util_close(hold[1]);
        EXPECT(waitpid(child, NULL, 0) == child);
}

static void has_no_kernel_mode(int fd) {
        struct perf_handles h;
        request(fd, getpid(), &h);
        expect_counting(&h, PERF_USER);
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                EXPECT(h.of[event][PERF_KERNEL] == -EACCES);
}

static void has_room_for_three(int fd) {
        struct perf_handles h;
        struct rlimit few = {.rlim_cur = 64, .rlim_max = 64};
        int fillers[64], n = 0;
        EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
        while ((fillers[n] = fcntl(fd, F_DUPFD_CLOEXEC, 0)) >= 0)
                n++;
        for (int i = 0; i < 3; i++)
                EXPECT(close(fillers[--n]) == 0);
        request(fd, getpid(), &h);
        unsigned opened = 0;
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        opened += h.of[event][mode] >= 0;
                        EXPECT(h.of[event][mode] >= 0 || h.of[event][mode] == -EMFILE);
                }
        EXPECT(opened == 3);
}

static int end_pipe[2] = {-1, -1};

static void *waits_for_its_end(void *userdata) {
        char byte;
        __atomic_store_n((pid_t *) userdata, (pid_t) syscall(SYS_gettid), __ATOMIC_SEQ_CST);
        (void) !read(end_pipe[0], &byte, 1);
        return NULL;
}

static void counts_a_thread_that_ends(int fd) {
        struct perf_handles h;
        pthread_t thread;
        pid_t tid = 0;
        unsigned before = open_descriptors();
        EXPECT(pthread_create(&thread, NULL, waits_for_its_end, &tid) == 0);
        while (__atomic_load_n(&tid, __ATOMIC_SEQ_CST) == 0)
                usleep(1000);
        request(fd, tid, &h);
        EXPECT(all_are(&h, -ESRCH) && open_descriptors() == before);
        EXPECT(pthread_join(thread, NULL) == 0);
}

/* --- the daemon --- */

/* One question of one agent. Whether it was answered and all was as the agent expected. */
static bool serve(void (*agent)(int fd), struct opening *o) {
        struct perf_source source = {.open = clock_open, .close = clock_close, .userdata = o};
        struct message m;
        int pair[2], status = -1;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return false;
        pid_t pid = fork();
        if (pid == 0) {
                util_close(pair[0]);
                agent(pair[1]);
                _exit(0);
        }
        util_close(pair[1]);
        o->pid = pid;
        unsigned before = open_descriptors();
        int r = message_receive(pair[0], &m, SOON, NULL);
        if (r == 0)
                r = m.type == MESSAGE_COUNT ? perf_pass_answer(pair[0], &source, pid, m.count.tid) : -EBADMSG;
        bool leaks = open_descriptors() != before;
        util_close(pair[0]);
        return waitpid(pid, &status, 0) == pid && r == 0 && !leaks && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A reason why the clock cannot be opened here, even of this process itself. */
static const char *no_clock(enum perf_mode mode) {
        int fd = open_clock(0, mode);
        if (fd < 0)
                return strerrordesc_np(-fd);
        util_close(fd);
        return NULL;
}

#define NEEDS_CLOCK(mode)                                                                                              \
        do {                                                                                                           \
                const char *_reason = no_clock(mode);                                                                  \
                if (_reason)                                                                                           \
                        SKIP("perf_event_open: %s", _reason);                                                          \
        } while (0)

static void an_agent_is_counted(void) {
        struct opening o = {0};
        NEEDS_CLOCK(PERF_KERNEL);
        CHECK(serve(counts_itself, &o));
        CHECK_UINT(o.calls, 1);
}

static void each_of_its_threads_is(void) {
        struct opening o = {.kernel_error = -EACCES};
        NEEDS_CLOCK(PERF_USER);
        CHECK(serve(counts_a_thread, &o));
}

static void others_are_not_even_opened(void) {
        struct opening o = {0};
        CHECK(serve(counts_its_parent, &o));
        CHECK(serve(counts_its_child, &o));
        CHECK_UINT(o.calls, 0);
}

static void a_thread_that_ends_meanwhile_is_not_given(void) {
        struct opening o = {.ends_thread = true};
        CHECK_INT(pipe2(end_pipe, O_CLOEXEC), 0);
        o.end_fd = end_pipe[1];
        CHECK(serve(counts_a_thread_that_ends, &o));
        CHECK_UINT(o.calls, 1);
        end_pipe[0] = util_close(end_pipe[0]);
        end_pipe[1] = util_close(end_pipe[1]);
}

static void reasons_come_along(void) {
        struct opening o = {.kernel_error = -EACCES};
        NEEDS_CLOCK(PERF_USER);
        CHECK(serve(has_no_kernel_mode, &o));
}

static void what_does_not_fit_is_refused(void) {
        struct opening o = {0};
        NEEDS_CLOCK(PERF_KERNEL);
        CHECK(serve(has_room_for_three, &o));
}

/* --- permissions --- */

static void drop_privileges(void) {
        EXPECT(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
               setresuid(NOBODY, NOBODY, NOBODY) == 0);
        EXPECT(prctl(PR_SET_DUMPABLE, 1) == 0); /* as after an exec */
}

static void set_capabilities(uint64_t caps) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
        for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
                data[i].effective = data[i].permitted = (uint32_t) (caps >> (32 * i));
        EXPECT(syscall(SYS_capset, &header, data) == 0);
}

static void counts_itself_by_favour(int fd) {
        set_capabilities(0);
        EXPECT(open_clock(0, PERF_KERNEL) == -EACCES);
        counts_itself(fd);
}

/* In a child that has no capability but `caps`: the exit code of `main`. */
static int without_privileges(uint64_t caps, int (*main)(void)) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
                EXPECT(prctl(PR_SET_KEEPCAPS, 1) == 0);
                drop_privileges();
                set_capabilities(caps);
                _exit(main());
        }
        return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int everybody_may(void) {
        return open_clock(0, PERF_KERNEL) >= 0;
}

static int gives_to_an_agent(void) {
        struct opening o = {0};
        return serve(counts_itself_by_favour, &o) ? 0 : 1;
}

/* As the service's unit has it: the daemon has an unprivileged user and one capability, its agents are the same user
 * and have none. */
static void the_one_capability_is_enough(void) {
        if (geteuid() != 0)
                SKIP("only root can give a capability away");
        NEEDS_CLOCK(PERF_KERNEL);
        if (without_privileges(0, everybody_may) == 1)
                SKIP("kernel.perf_event_paranoid lets everybody count in kernel mode");
        CHECK_INT(without_privileges(UINT64_C(1) << CAP_PERFMON, gives_to_an_agent), 0);
}

/* --- daemons that do not do as they should --- */

static void a_silent_daemon(void) {
        struct perf_handles h;
        int pair[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        CHECK_INT(perf_pass_request(pair[0], getpid(), util_now_ns() + 20 * NSEC_PER_MSEC, &h), -ETIMEDOUT);
        util_close(pair[1]);
        CHECK_INT(perf_pass_request(pair[0], getpid(), SOON, &h), -ECONNRESET);
        util_close(pair[0]);
}

/* An answer that is malformed, and one with more descriptors than it announces. Nothing of them stays open. */
static void an_answer_that_is_none(void) {
        struct message start = {.type = MESSAGE_START}, counting = {.type = MESSAGE_COUNTING};
        struct message_rights rights = {.fds = {STDIN_FILENO, STDERR_FILENO}, .n = 2};
        struct perf_handles h;
        int pair[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        unsigned before = open_descriptors();
        CHECK_INT(message_send_with(pair[1], &start, &rights, 0), 0);
        CHECK_INT(perf_pass_request(pair[0], getpid(), SOON, &h), -EBADMSG);
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        counting.counting.errors[event][mode] = event == PERF_CYCLES && mode == PERF_USER ? 0 : ENOENT;
        CHECK_INT(message_send_with(pair[1], &counting, &rights, 0), 0);
        CHECK_INT(perf_pass_request(pair[0], getpid(), SOON, &h), -EBADMSG);
        CHECK_INT(send(pair[1], "x", 1, 0), 1);
        CHECK_INT(perf_pass_request(pair[0], getpid(), SOON, &h), -EBADMSG);
        CHECK_UINT(open_descriptors(), before);
        util_close(pair[0]);
        util_close(pair[1]);
}

/* Descriptors beside a message that is not expected to have any are gone with it. */
static void unrequested_descriptors(void) {
        struct message start = {.type = MESSAGE_START, .start = {.start_ns = 5}}, got;
        struct message_rights rights = {.fds = {STDIN_FILENO, STDERR_FILENO}, .n = 2};
        int pair[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        unsigned before = open_descriptors();
        CHECK_INT(message_send_with(pair[1], &start, &rights, 0), 0);
        CHECK_INT(message_receive(pair[0], &got, SOON, NULL), 0);
        CHECK_UINT(got.start.start_ns, 5);
        CHECK_UINT(open_descriptors(), before);
        util_close(pair[0]);
        util_close(pair[1]);
}

int main(void) {
        RUN(an_agent_is_counted);
        RUN(each_of_its_threads_is);
        RUN(others_are_not_even_opened);
        RUN(a_thread_that_ends_meanwhile_is_not_given);
        RUN(reasons_come_along);
        RUN(what_does_not_fit_is_refused);
        RUN(the_one_capability_is_enough);
        RUN(a_silent_daemon);
        RUN(an_answer_that_is_none);
        RUN(unrequested_descriptors);
        return check_end();
}
