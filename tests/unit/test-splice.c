/* SPDX-License-Identifier: MIT */

/*
 * The pool that vmsplice(2) sends from. One thread plays both ends, so that the reader is as late as can be: the pipe
 * is filled to the brim before anything is read. With the pool's own number of buffers every message arrives as it was
 * sent; with one fewer the oldest is overwritten, which shows that the test would notice.
 */

#include "agent/base/agent.h"
#include "agent/loop/pattern.h"
#include "agent/transport/stream/splice.h"
#include "check.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>

#define PAGE 4096u

static struct agent agent;
static struct worker worker = {.agent = &agent};

static void test_how_many(void) {
        static const struct {
                size_t size, pipe_size, buffers;
        } cases[] = {
                {1, 65536, 17},      {4096, 65536, 17}, {4097, 65536, 9},  {65536, 65536, 2}, {65537, 65536, 2},
                {1 << 20, 65536, 2}, {1, 4096, 2},      {1, 1 << 20, 257}, {12288, 65536, 7}, {8192, 65536, 9},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK_UINT(splice_buffers(cases[i].size, cases[i].pipe_size, 4096), cases[i].buffers);
}

struct bench_pipe {
        int fds[2];
        struct splice_pool *pool;
        uint64_t sent, received, damaged;
        size_t sent_of_next; /* bytes of message `sent` that have gone already */
        unsigned char *in;
};

static bool pipe_init(struct bench_pipe *b, size_t size, int pipe_size) {
        *b = (struct bench_pipe){.fds = {-1, -1}, .in = malloc(size)};
        return b->in && pipe2(b->fds, O_CLOEXEC | O_NONBLOCK) == 0 && fcntl(b->fds[1], F_SETPIPE_SZ, pipe_size) >= 0 &&
               splice_pool_new(&worker, size, b->fds[1], &b->pool) == 0;
}

static void pipe_deinit(struct bench_pipe *b) {
        (void) util_close(b->fds[0]);
        (void) util_close(b->fds[1]);
        splice_pool_free(b->pool);
        free(b->in);
}

/* Messages until nothing more goes in. */
static void fill_up(struct bench_pipe *b) {
        for (;;) {
                unsigned char *m = splice_pool_buffer(b->pool);
                if (b->sent_of_next == 0)
                        pattern_fill(m, b->pool->size, pattern_key(0, 0, b->sent));
                while (b->sent_of_next < b->pool->size) {
                        struct iovec v = {m + b->sent_of_next, b->pool->size - b->sent_of_next};
                        ssize_t n = vmsplice(b->fds[1], &v, 1, SPLICE_F_NONBLOCK);
                        if (n < 0)
                                return;
                        b->sent_of_next += (size_t) n;
                }
                b->sent_of_next = 0;
                b->sent++;
                splice_pool_advance(b->pool);
        }
}

/* One message out, a page at a time, and the pipe full again after each. */
static void take_one(struct bench_pipe *b) {
        for (size_t got = 0, left; (left = b->pool->size - got) > 0; fill_up(b)) {
                ssize_t n = read(b->fds[0], b->in + got, left < PAGE ? left : PAGE);
                got += n < 0 ? 0 : (size_t) n;
        }
        b->damaged += !pattern_matches(b->in, b->pool->size, pattern_key(0, 0, b->received));
        b->received++;
}

static const struct {
        size_t size;
        int pipe_size;
} pipes[] = {{1, 65536},     {64, 4096},     {4096, 65536},  {4097, 65536},   {8192, 65536},
             {12288, 65536}, {65536, 65536}, {65549, 65536}, {300001, 65536}, {100, 262144}};

static void test_a_reader_that_is_late(void) {
        for (size_t i = 0; i < ELEMENTS(pipes); i++) {
                struct bench_pipe b;
                CHECK(pipe_init(&b, pipes[i].size, pipes[i].pipe_size));
                for (unsigned k = 0; k < 400; k++) {
                        fill_up(&b);
                        take_one(&b);
                }
                CHECK_UINT(b.damaged, 0);
                CHECK_UINT(b.received, 400);
                pipe_deinit(&b);
        }
}

static void test_a_pool_too_small_is_noticed(void) {
        for (size_t i = 0; i < ELEMENTS(pipes); i++) {
                struct bench_pipe b;
                CHECK(pipe_init(&b, pipes[i].size, pipes[i].pipe_size));
                size_t count = b.pool->count;
                b.pool->count = count - 1;
                for (unsigned k = 0; k < 400; k++) {
                        fill_up(&b);
                        take_one(&b);
                }
                b.pool->count = count; /* what is to be unmapped */
                CHECK(b.damaged > 0);
                pipe_deinit(&b);
        }
}

int main(void) {
        RUN(test_how_many);
        RUN(test_a_reader_that_is_late);
        RUN(test_a_pool_too_small_is_noticed);
        return check_end();
}
