/* SPDX-License-Identifier: MIT */
#pragma once

/* Signals are the main thread's: whatever else runs has them blocked. SIGBUS is an exception where the store may be
 * read, which handles it in the thread where it occurs. */

#include <pthread.h>
#include <signal.h>

/* Blocks all signals of the calling thread, and of what it starts, but for `but` (0: for none). 0; -errno. */
static inline int signals_block(int but, sigset_t *ret_before) {
        sigset_t all;
        (void) sigfillset(&all);
        if (but)
                (void) sigdelset(&all, but);
        return -pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

static inline void signals_restore(const sigset_t *before) {
        (void) pthread_sigmask(SIG_SETMASK, before, NULL); /* fails for an unknown `how` only */
}

/* pthread_create() of a thread that takes no signal but SIGBUS. 0; -errno. */
static inline int signals_start_thread(pthread_t *ret, void *(*run)(void *userdata), void *userdata) {
        sigset_t before;
        int r = signals_block(SIGBUS, &before);
        if (r < 0)
                return r;
        r = -pthread_create(ret, NULL, run, userdata);
        signals_restore(&before);
        return r;
}
