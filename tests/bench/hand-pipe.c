/* SPDX-License-Identifier: MIT */

/* Pipes and FIFOs by hand: read(2), and write(2), writev(2) or vmsplice(2), in a process with one thread. */

#include "tests/bench/hand-gather.h"

#include <fcntl.h>
#include <unistd.h>

static const struct hand_way pipe_way = {.next = hand_next_buffer, .send = send_stream, .receive = receive_stream};
HAND_LOOPS(pipe, pipe_way);

HAND_INLINE int send_gathered(struct hand_end *e, unsigned char *message) {
        const struct gathered *g = e->own;
        (void) message;
        ssize_t n = writev(e->out, g->iov, g->n);
        if (n < 0)
                return -1;
        return (size_t) n == e->size ? 0 : send_gathered_rest(e, (size_t) n);
}

static const struct hand_way gathered_way = {.open = open_gathered,
                                             .next = hand_next_buffer,
                                             .fill = fill_gathered,
                                             .send = send_gathered,
                                             .receive = receive_stream};
HAND_LOOPS(gathered, gathered_way);

/* As many buffers in turn as the pipe can hold messages, and one more: agent/transport/stream/splice.h has the
 * reasoning. */
struct spliced {
        unsigned char *memory;
        size_t stride, count, next;
};

static int open_spliced(struct hand_end *e) {
        struct spliced *s = calloc(1, sizeof *s);
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        if (!s)
                return -1;
        e->own = s;
        if (e->out < 0)
                return 0;
        size_t slots = (size_t) fcntl(e->out, F_GETPIPE_SZ) / page, pages = (e->size + page - 1) / page;
        s->stride = pages * page;
        s->count = (slots + pages - 1) / pages + 1;
        s->memory = hand_memory(s->count * s->stride);
        return s->memory ? 0 : -1;
}

HAND_INLINE unsigned char *next_spliced(struct hand_end *e) {
        struct spliced *s = e->own;
        s->next = s->next + 1 == s->count ? 0 : s->next + 1;
        return s->memory + s->next * s->stride;
}

HAND_INLINE int send_spliced(struct hand_end *e, unsigned char *message) {
        struct iovec v = {message, e->size};
        while (v.iov_len) {
                ssize_t n = vmsplice(e->out, &v, 1, 0);
                if (n <= 0)
                        return -1;
                v.iov_base = (char *) v.iov_base + n;
                v.iov_len -= (size_t) n;
        }
        return 0;
}

static const struct hand_way spliced_way = {
        .open = open_spliced, .next = next_spliced, .send = send_spliced, .receive = receive_stream};
HAND_LOOPS(spliced, spliced_way);
