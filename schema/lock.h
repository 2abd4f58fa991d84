/* SPDX-License-Identifier: MIT */
#pragma once

/* A lock that a process has while it lives. Header only. */

#include "schema/util.h"

#include <sys/file.h>

#define LOCK_PATIENCE_NS (2 * NSEC_PER_SEC)

/* An exclusive flock(2) of the open file. -EBUSY: it is another's; negative errno. */
static inline int lock_try(int fd) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
                return 0;
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/*
 * lock_try() with patience, which is not for the main loop. A child that a killed process was about to execute a
 * program in still has its lock for a moment, longer on a busy machine: -EBUSY when the lock is another's for
 * LOCK_PATIENCE_NS; negative errno.
 */
static inline int lock_take(int fd) {
        const struct timespec pause = {.tv_nsec = 10 * (long) NSEC_PER_MSEC};
        uint64_t until = util_now_ns() + LOCK_PATIENCE_NS;
        int r;
        while ((r = lock_try(fd)) == -EBUSY || r == -EINTR) {
                if (util_now_ns() >= until)
                        return -EBUSY;
                (void) nanosleep(&pause, NULL);
        }
        return r;
}
