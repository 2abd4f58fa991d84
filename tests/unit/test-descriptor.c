/* SPDX-License-Identifier: MIT */

/* Messages that do not go whole: parts, interruptions, descriptors that are not ready, a peer that is gone; by a script
 * of results, and through a pipe that is too small. And how many descriptors there may be. */

#include "agent/base/agent.h"
#include "agent/transport/stream/descriptor.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Static: see test-counters.c. */
static struct agent agent = {.peer_role = "receiver"};
static struct worker worker;

/* ---- calls that return scripted results ---- */

static struct {
        const int *results; /* > 0 and 0: bytes; < 0: -errno */
        size_t at;
        size_t offsets[8]; /* what each call was given as done before */
        unsigned limit_at; /* the limit falls in this call, from 1 */
} script;

static ssize_t next(size_t done) {
        script.offsets[script.at] = done;
        int r = script.results[script.at++];
        if (script.at == script.limit_at)
                worker_set_limit(&worker, 0);
        errno = r < 0 ? -r : 0;
        return r < 0 ? -1 : r;
}

STREAM_SEND(stream, descriptor_write, "write")
STREAM_RECEIVE(stream, descriptor_read, "read")

static ssize_t scripted_send(struct worker *w, const unsigned char *message, size_t sent) {
        (void) w;
        (void) message;
        return next(sent);
}

static ssize_t scripted_receive(struct worker *w, unsigned char *message, size_t got) {
        (void) w;
        (void) message;
        return next(got);
}

static int ready_fd = -1; /* poll(2) finds it ready for both */

static void worker_reset(size_t size, uint64_t limit) {
        memset(&worker, 0, sizeof worker);
        worker.agent = &agent;
        worker.index = 3;
        worker.messages = 7;
        worker.size = size;
        worker.limit = limit;
        worker.send_fd = worker.receive_fd = ready_fd;
}

/* The first result is the first call's, made by the hot function; the rest are scripted. */
static int play(bool sends, const int *results, uint64_t limit, unsigned limit_at) {
        static unsigned char message[100];
        worker_reset(sizeof message, limit);
        memset(&script, 0, sizeof script);
        script.results = results;
        script.limit_at = limit_at;
        ssize_t first = next(0);
        return sends ? descriptor_finish_send(&worker, message, first, scripted_send, "vmsplice")
                     : descriptor_finish_receive(&worker, message, first, scripted_receive, "recv");
}

static void parts_are_completed_and_counted(void) {
        static const int results[] = {40, -EINTR, 1, -EAGAIN, 0, 59};
        CHECK_INT(play(true, results, WORKER_UNLIMITED, 0), 0);
        CHECK_UINT(script.at, 6);
        static const size_t offsets[] = {0, 40, 40, 41, 41, 41};
        CHECK(memcmp(script.offsets, offsets, sizeof offsets) == 0);
        CHECK_UINT(worker.partial_sends, 3);
        CHECK_UINT(worker.partial_receives, 0);
        CHECK_UINT(worker.eintr, 1);
        CHECK_UINT(worker.eagain, 1);
        CHECK_STRING(worker.failure.detail, "");

        static const int parts[] = {-EAGAIN, 99, -EINTR, 1};
        CHECK_INT(play(false, parts, WORKER_UNLIMITED, 0), 0);
        CHECK_UINT(script.at, 4);
        CHECK_UINT(script.offsets[3], 99);
        CHECK_UINT(worker.partial_receives, 1);
        CHECK_UINT(worker.partial_sends, 0);
}

/* The limit ends a worker only where no byte of the message has moved: half a message is never left. */
static void the_limit_counts_before_the_first_byte(void) {
        static const int interrupted[] = {-EINTR, 100}, full[] = {-EAGAIN, 100};
        static const int begun[] = {1, -EINTR, -EAGAIN, 99};
        for (unsigned sends = 0; sends < 2; sends++) {
                CHECK_INT(play(sends, interrupted, 7, 0), WORKER_STOP);
                CHECK_UINT(script.at, 1);
                CHECK_INT(play(sends, full, 7, 0), WORKER_STOP);
                CHECK_UINT(script.at, 1);
                CHECK_INT(play(sends, interrupted, 8, 0), 0); /* one more is due */
                CHECK_INT(play(sends, interrupted, WORKER_UNLIMITED, 1), WORKER_STOP);
                CHECK_INT(play(sends, begun, 7, 0), 0);
                CHECK_UINT(script.at, 4);
                CHECK_STRING(worker.failure.detail, "");
        }
}

static void failures_name_the_thing(void) {
        static const struct {
                bool sends;
                int results[3];
                int r;
                const char *detail;
        } cases[] = {
                {true, {-EPIPE}, -EPIPE, "peer receiver closed the channel of thread 3 in message 7: Broken pipe"},
                {true,
                 {40, -ECONNRESET},
                 -ECONNRESET,
                 "peer receiver closed the channel of thread 3 in message 7: Connection reset by peer"},
                {true, {40, -ENOMEM}, -ENOMEM, "vmsplice failed in thread 3, message 7: Cannot allocate memory"},
                {false, {-EIO}, -EIO, "recv failed in thread 3, message 7: Input/output error"},
                {false, {0}, -EPIPE, "peer receiver closed the channel of thread 3 after 0 of 100 bytes of message 7"},
                {false,
                 {99, 0},
                 -EPIPE,
                 "peer receiver closed the channel of thread 3 after 99 of 100 bytes of message 7"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CHECK_INT(play(cases[i].sends, cases[i].results, WORKER_UNLIMITED, 0), cases[i].r);
                CHECK_STRING(worker.failure.detail, cases[i].detail);
                CHECK_INT(worker.failure.error, -cases[i].r);
        }
}

/* ---- a pipe ---- */

#define LONG 300000u
static unsigned char sent[LONG], received[LONG];

/* Both sides at once, as both never wait longer than for each other. */
static void *send_long(void *result) {
        *(int *) result = stream_send(&worker, sent);
        return NULL;
}

static void a_message_longer_than_the_pipe(void) {
        for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
                static struct worker reader;
                int fds[2], result = 1;
                unsigned char *where = NULL;
                pthread_t thread;
                CHECK_INT(pipe2(fds, O_CLOEXEC | flags), 0);
                worker_reset(LONG, WORKER_UNLIMITED);
                reader = worker;
                reader.receive_fd = fds[0];
                reader.buffer = received;
                worker.send_fd = fds[1];
                for (size_t i = 0; i < LONG; i++)
                        sent[i] = (unsigned char) (i * 31 + i / 4096);
                memset(received, 0, LONG);
                CHECK_INT(pthread_create(&thread, NULL, send_long, &result), 0);
                int r = stream_receive(&reader, &where);
                pthread_join(thread, NULL);
                util_close(fds[0]);
                util_close(fds[1]);
                CHECK_INT(result, 0);
                CHECK_INT(r, 0);
                CHECK(where == received && memcmp(sent, received, LONG) == 0);
                CHECK(reader.partial_receives > 0);
        }
}

/* What lies behind the message in the pipe is the next one's. */
static void a_message_takes_no_more_than_its_own(void) {
        int fds[2], left;
        CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
        CHECK_INT(write(fds[1], sent, 170), 170);
        worker_reset(100, WORKER_UNLIMITED);
        worker.receive_fd = fds[0];
        CHECK_INT(descriptor_finish_receive(&worker, received, 30, stream_more, "read"), 0);
        CHECK_INT(ioctl(fds[0], FIONREAD, &left), 0);
        CHECK_INT(left, 100);
        util_close(fds[0]);
        util_close(fds[1]);
}

static void a_pipe_without_its_other_end(void) {
        int fds[2];
        unsigned char *where;
        CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
        worker_reset(100, WORKER_UNLIMITED);
        worker.buffer = received;
        worker.receive_fd = fds[0];
        CHECK_INT(write(fds[1], sent, 30), 30);
        util_close(fds[1]);
        CHECK_INT(stream_receive(&worker, &where), -EPIPE);
        CHECK(strstr(worker.failure.detail, "after 30 of 100 bytes"));
        util_close(fds[0]);

        CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
        util_close(fds[0]);
        worker_reset(100, WORKER_UNLIMITED);
        worker.send_fd = fds[1];
        CHECK_INT(stream_send(&worker, sent), -EPIPE);
        util_close(fds[1]);
        worker_reset(100, WORKER_UNLIMITED);
        worker.send_fd = -1;
        CHECK_INT(stream_send(&worker, sent), -EBADF);
        CHECK_STRING(worker.failure.detail, "write failed in thread 3, message 7: Bad file descriptor");
}

/* ---- how many there may be; in a child, as a hard limit that was lowered stays so ---- */

static struct {
        rlim_t soft, hard, soft_after;
        int result;
} want;

static void reserve_in_child(void) {
        static struct agent a;
        struct rlimit limit = {.rlim_cur = want.soft, .rlim_max = want.hard};
        memset(&a, 0, sizeof a);
        a.n_workers = 20;
        a.setup.point = (struct point){.workload = WORKLOAD_PINGPONG, .transport = TRANSPORT_PIPE, .threads = 20};
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                _exit(2);
        if (descriptor_reserve(&a) != want.result || getrlimit(RLIMIT_NOFILE, &limit) < 0)
                _exit(3);
        if (limit.rlim_cur != want.soft_after)
                _exit(4);
        _exit(want.result == 0 || strstr(a.failure.detail, "needed, RLIMIT_NOFILE is ") ? 0 : 5);
}

static void room_for_descriptors(void) {
        const struct point p = {.workload = WORKLOAD_PINGPONG, .transport = TRANSPORT_PIPE, .threads = 20};
        rlim_t need = point_descriptors(&p), wish = need + (rlim_t) 20 * PERF_EVENT_COUNT * PERF_MODE_COUNT;
        const struct {
                rlim_t soft, hard, soft_after;
                int result;
        } cases[] = {
                {10, wish + 100, wish, 0},     {wish + 1, wish + 100, wish + 1, 0}, /* enough: nothing is lowered */
                {need, need + 5, need + 5, 0},                                      /* counters do without */
                {10, need, need, 0},                                                /* just enough */
                {10, need - 1, 10, -EMFILE},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                int status;
                want.soft = cases[i].soft;
                want.hard = cases[i].hard;
                want.soft_after = cases[i].soft_after;
                want.result = cases[i].result;
                pid_t pid = fork();
                if (pid == 0)
                        reserve_in_child();
                CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
                if (WEXITSTATUS(status) != 0)
                        CHECK_FAIL("case %zu ended with %d", i, WEXITSTATUS(status));
        }
}

int main(void) {
        int fds[2];
        (void) signal(SIGPIPE, SIG_IGN);
        if (pipe2(fds, O_CLOEXEC) < 0)
                return 1;
        ready_fd = fds[1];
        RUN(parts_are_completed_and_counted);
        RUN(the_limit_counts_before_the_first_byte);
        RUN(failures_name_the_thing);
        RUN(a_message_longer_than_the_pipe);
        RUN(a_message_takes_no_more_than_its_own);
        RUN(a_pipe_without_its_other_end);
        RUN(room_for_descriptors);
        return check_end();
}
