/* SPDX-License-Identifier: MIT */

/* Pipe sizes: set as requested or refused with the reason, and reported as they are. */

#include "agent/base/agent.h"
#include "agent/transport/stream/pipes.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/effective.h"

#include <fcntl.h>

static struct agent agent;
static struct worker workers[3]; /* static: see test-counters.c */

struct pipe {
        int fds[2];
};

static void pipe_close(struct pipe *p) {
        util_close(p->fds[0]);
        util_close(p->fds[1]);
}
#define PIPE __attribute__((cleanup(pipe_close))) struct pipe

static bool pipe_open(struct pipe *p) {
        p->fds[0] = p->fds[1] = -1;
        return pipe2(p->fds, O_CLOEXEC | O_NONBLOCK) == 0;
}

static void reset(uint64_t pipe_size) {
        memset(&agent, 0, sizeof agent);
        memset(workers, 0, sizeof workers);
        agent.workers = workers;
        agent.n_workers = ELEMENTS(workers);
        agent.setup.options.pipe_size = pipe_size;
        for (size_t i = 0; i < ELEMENTS(workers); i++)
                workers[i].send_fd = workers[i].receive_fd = -1;
}

static void sizes_are_set_as_requested(void) {
        PIPE p;
        CHECK(pipe_open(&p));
        int before = fcntl(p.fds[1], F_GETPIPE_SZ);
        reset(0);
        CHECK_INT(pipes_set_size(&agent, p.fds[1]), 0);
        CHECK_INT(fcntl(p.fds[1], F_GETPIPE_SZ), before);
        CHECK_INT(pipes_set_size(&agent, -1), 0); /* no size is requested, nothing is done */
        reset(8192);
        CHECK_INT(pipes_set_size(&agent, p.fds[1]), 0);
        CHECK_INT(fcntl(p.fds[0], F_GETPIPE_SZ), 8192);
        CHECK_STRING(agent.failure.detail, "");
}

static void refusals_name_the_size(void) {
        static const char bytes[8192];
        PIPE p;
        CHECK(pipe_open(&p));
        reset((uint64_t) INT32_MAX + 1);
        CHECK_INT(pipes_set_size(&agent, p.fds[1]), -EINVAL);
        CHECK_STRING(agent.failure.detail, "pipe_size 2147483648 is beyond what F_SETPIPE_SZ takes (2147483647)");
        reset((UINT64_C(1) << 32) + 4096); /* which would pass where it is cut */
        CHECK_INT(pipes_set_size(&agent, p.fds[1]), -EINVAL);
        reset(4096);
        CHECK_INT(write(p.fds[1], bytes, sizeof bytes), sizeof bytes);
        CHECK_INT(pipes_set_size(&agent, p.fds[1]), -EBUSY);
        CHECK_STRING(agent.failure.detail, "pipe_size 4096: the pipe holds more already");
        reset(4096);
        CHECK_INT(pipes_set_size(&agent, -1), -EBADF);
        CHECK_STRING(agent.failure.detail, "pipe_size 4096: Bad file descriptor");
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        reset(4096);
        CHECK_INT(pipes_set_size(&agent, null), -EBADF);
}

/* malloc()ed; NULL when it cannot be */
static char *shown(void) {
        EFFECTIVE *e = effective_new();
        pipes_effective(&agent, e);
        return effective_text(e);
}

static void sizes_are_reported_as_they_are(void) {
        PIPE a, b;
        CHECK(pipe_open(&a) && pipe_open(&b));
        CHECK(fcntl(a.fds[1], F_SETPIPE_SZ, 4096) == 4096 && fcntl(b.fds[1], F_SETPIPE_SZ, 16384) == 16384);
        reset(0);
        workers[0].receive_fd = a.fds[0];
        workers[1].receive_fd = a.fds[0];
        _cleanup_free_ char *same = shown();
        /* and nothing about sending, by an end that only receives */
        CHECK_STRING(same, "{\"pipe_size\":4096,\"buffer_bytes\":4096}");
        workers[2].send_fd = b.fds[1];
        _cleanup_free_ char *differing = shown();
        CHECK_STRING(differing, "{\"pipe_size\":4096,\"buffer_bytes\":4096,\"pipe_size_max\":16384}");
        workers[0].send_fd = b.fds[1];
        _cleanup_free_ char *sending = shown();
        CHECK(sending && strstr(sending, "\"send_method\":\"") && strstr(sending, "\"pipe_size_max\":16384"));
}

static void what_is_no_pipe_has_no_size(void) {
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        reset(0);
        workers[0].receive_fd = null;
        _cleanup_free_ char *text = shown();
        CHECK_STRING(text, "{\"pipe_size\":null,\"pipe_size_reason\":\"F_GETPIPE_SZ failed\"}");
}

int main(void) {
        RUN(sizes_are_set_as_requested);
        RUN(refusals_name_the_size);
        RUN(sizes_are_reported_as_they_are);
        RUN(what_is_no_pipe_has_no_size);
        return check_end();
}
