/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_FILE_H
#define IPCLAB_TESTS_HAND_FILE_H

/*
 * A plain file with slots, and two semaphores per direction in memory that both ends inherit: what hand-file.c and
 * hand-uring.c move messages through, each by its own calls. As many slots as the agents use
 * (agent/transport/file/slots.c).
 */

#include "tests/bench/hand-loops.h"

#include <semaphore.h>

struct hand_signals {
        sem_t filled, empty;
};

struct hand_file {
        struct hand_signals *out, *in;
        size_t slots, stride, put, got; /* the slots that are next */
};

/* A struct hand_file as e->own. 0 or -1. */
int hand_file_begin(struct hand_end *e);

HAND_INLINE off_t hand_file_wait(sem_t *s, size_t slot, const struct hand_file *f) {
        while (sem_wait(s) < 0)
                ;
        return (off_t) (slot * f->stride);
}

HAND_INLINE void hand_file_pass(sem_t *s, size_t *slot, const struct hand_file *f) {
        *slot = *slot + 1 == f->slots ? 0 : *slot + 1;
        (void) sem_post(s);
}

#endif
