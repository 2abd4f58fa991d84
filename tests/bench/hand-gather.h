/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_GATHER_H
#define IPCLAB_TESTS_HAND_GATHER_H

/* A message through a stream, by write(2) and read(2); and one that lies in eight allocations, for the loops by hand
 * that gather it: writev(2), sendmsg(2). */

#include "tests/bench/hand-loops.h"

#include <sys/uio.h>

HAND_INLINE int receive_stream(struct hand_end *e) {
        for (size_t got = 0; got < e->size;) {
                ssize_t n = read(e->in, e->buffer + got, e->size - got);
                if (n <= 0)
                        return -1;
                got += (size_t) n;
        }
        return 0;
}

HAND_INLINE int send_stream(struct hand_end *e, unsigned char *message) {
        for (size_t sent = 0; sent < e->size;) {
                ssize_t n = write(e->out, message + sent, e->size - sent);
                if (n <= 0)
                        return -1;
                sent += (size_t) n;
        }
        return 0;
}

#define HAND_FIELDS 8u
#define HAND_LINE 64u

/* The fields and their lengths; a message shorter than they are many has fewer. */
struct gathered {
        struct iovec iov[HAND_FIELDS];
        int n;
};

/* The fields lie where the agents' do (agent/loop/fields.c): on lines of their own, and from half a page on each at the
 * begin of a page. How many pages a field touches is part of what it costs. */
static inline int open_gathered(struct hand_end *e) {
        struct gathered *g = calloc(1, sizeof *g);
        unsigned n = e->size < HAND_FIELDS ? (unsigned) e->size : HAND_FIELDS;
        size_t longest = (e->size + n - 1) / n, page = (size_t) sysconf(_SC_PAGESIZE);
        size_t unit = longest >= page / 2 ? page : HAND_LINE, stride = (longest + HAND_LINE + unit - 1) / unit * unit;
        unsigned char *memory = hand_memory(n * stride);
        if (!g || !memory)
                return -1;
        g->n = (int) n;
        for (unsigned i = 0; i < n; i++)
                g->iov[i] = (struct iovec){.iov_base = memory + i * stride, .iov_len = e->size / n + (i < e->size % n)};
        e->own = g;
        return 0;
}

HAND_INLINE void fill_gathered(struct hand_end *e, unsigned char *message, uint64_t key) {
        const struct gathered *g = e->own;
        size_t offset = 0;
        (void) message;
        for (int i = 0; i < g->n; i++) {
                pattern_fill_part(g->iov[i].iov_base, offset, g->iov[i].iov_len, key);
                offset += g->iov[i].iov_len;
        }
}

/* What is left of a message of which `done` bytes have gone; how many pieces that are. */
static inline int gathered_after(const struct gathered *g, size_t done, struct iovec rest[HAND_FIELDS]) {
        int n = 0;
        for (int i = 0; i < g->n; i++) {
                size_t gone = done < g->iov[i].iov_len ? done : g->iov[i].iov_len;
                done -= gone;
                if (gone < g->iov[i].iov_len)
                        rest[n++] = (struct iovec){(char *) g->iov[i].iov_base + gone, g->iov[i].iov_len - gone};
        }
        return n;
}

/* The same, sent until all has gone. */
static inline int send_gathered_rest(struct hand_end *e, size_t done) {
        while (done < e->size) {
                struct iovec rest[HAND_FIELDS];
                ssize_t sent = writev(e->out, rest, gathered_after(e->own, done, rest));
                if (sent <= 0)
                        return -1;
                done += (size_t) sent;
        }
        return 0;
}

#endif
