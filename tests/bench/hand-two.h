/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_TWO_H
#define IPCLAB_TESTS_HAND_TWO_H

/*
 * Two forked processes, pinned, and what one of them has measured back through a shared page: what every loop by hand
 * runs in.
 */

#include <stdint.h>

struct hand_result {
        uint64_t messages, ns; /* within the clock; ns 0: it failed, or had no clock */
};

struct hand_two {
        int (*run)(void *userdata, int end, struct hand_result *ret); /* in the process of that end; 0 or -1 */
        void (*forked)(void *userdata);                               /* in the parent; may be NULL */
        void *userdata;
        const int *cpus; /* -1: not pinned */
        int clocked;     /* the end whose result counts; the other is ended with it, unless it has ended itself */
};

/* 0 and the result of the end with the clock; -errno. */
int hand_two_run(const struct hand_two *t, struct hand_result *ret);

#endif
