/* SPDX-License-Identifier: MIT */

/* The memory that vmsplice(2) sends from; see splice.h. The sending worker owns it. */

#include "agent/transport/stream/splice.h"

#include "agent/loop/buffer.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static size_t divide_up(size_t a, size_t b) {
        return (a + b - 1) / b;
}

size_t splice_buffers(size_t size, size_t pipe_size, size_t page) {
        size_t slots = divide_up(pipe_size, page), pages = divide_up(size, page);
        return divide_up(slots, pages) + 1;
}

int splice_pool_new(struct worker *w, size_t size, int pipe_fd, struct splice_pool **ret) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        int pipe_size = fcntl(pipe_fd, F_GETPIPE_SZ);
        if (pipe_size < 0)
                return -errno;
        _cleanup_free_ struct splice_pool *p = malloc(sizeof *p);
        if (!p)
                return -ENOMEM;
        *p = (struct splice_pool){.size = size,
                                  .stride = divide_up(size, page) * page,
                                  .count = splice_buffers(size, (size_t) pipe_size, page)};
        int r = buffer_map(w, p->count * p->stride, &p->memory);
        if (r < 0)
                return r;
        *ret = util_steal(&p);
        return 0;
}

struct splice_pool *splice_pool_free(struct splice_pool *p) {
        if (p)
                buffer_unmap(p->memory, p->count * p->stride);
        free(p);
        return NULL;
}
