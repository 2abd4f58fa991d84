/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_GATHER_H
#define IPCLAB_TESTS_HAND_GATHER_H

/* A message that lies in eight allocations, for the loops by hand that gather it: writev(2), sendmsg(2). */

#include "tests/bench/hand-loops.h"

#include <sys/uio.h>

#define HAND_FIELDS 8u

/* The fields and their lengths; a message shorter than they are many has fewer. */
struct gathered {
        struct iovec iov[HAND_FIELDS];
        int n;
};

static inline int open_gathered(struct hand_end *e) {
        struct gathered *g = calloc(1, sizeof *g);
        unsigned n = e->size < HAND_FIELDS ? (unsigned) e->size : HAND_FIELDS;
        if (!g)
                return -1;
        g->n = (int) n;
        for (unsigned i = 0; i < n; i++) {
                g->iov[i].iov_len = e->size / n + (i < e->size % n);
                g->iov[i].iov_base = malloc(g->iov[i].iov_len);
                if (!g->iov[i].iov_base)
                        return -1;
                memset(g->iov[i].iov_base, 0x5a, g->iov[i].iov_len);
        }
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

/* What is left of a message of which `done` bytes have gone, until all have. */
static inline int send_gathered_rest(struct hand_end *e, size_t done) {
        const struct gathered *g = e->own;
        while (done < e->size) {
                struct iovec rest[HAND_FIELDS];
                size_t skip = done;
                int n = 0;
                for (int i = 0; i < g->n; i++) {
                        size_t gone = skip < g->iov[i].iov_len ? skip : g->iov[i].iov_len;
                        skip -= gone;
                        if (gone < g->iov[i].iov_len)
                                rest[n++] =
                                        (struct iovec){(char *) g->iov[i].iov_base + gone, g->iov[i].iov_len - gone};
                }
                ssize_t sent = writev(e->out, rest, n);
                if (sent <= 0)
                        return -1;
                done += (size_t) sent;
        }
        return 0;
}

#endif
