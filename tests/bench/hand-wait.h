/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_WAIT_H
#define IPCLAB_TESTS_HAND_WAIT_H

/*
 * How loops by hand wait for each other on a word in shared memory: they spin, sleep on a futex, or spin before they
 * sleep. The lowest bit of the word is set while an end sleeps.
 */

#include "schema/terms.h"
#include "schema/util.h"

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HAND_SPIN_NS (50 * NSEC_PER_USEC) /* of hybrid, before it sleeps: as long as the agents do */
#define HAND_LOOKS_PER_CLOCK 64u

/* One wait: how often it has looked, and until when it may. */
struct hand_spin_limit {
        uint32_t looks;
        uint64_t until_ns;
};

static inline void hand_pause(void) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
}

static inline bool hand_may_spin(struct hand_spin_limit *p, enum wait_mode wait) {
        if (wait != WAIT_HYBRID)
                return wait == WAIT_SPIN;
        if (++p->looks % HAND_LOOKS_PER_CLOCK)
                return true;
        uint64_t now_ns = util_now_ns();
        if (p->until_ns == 0)
                p->until_ns = now_ns + HAND_SPIN_NS;
        return now_ns < p->until_ns;
}

static inline void hand_await_change(uint32_t *word, uint32_t seen, enum wait_mode wait, struct hand_spin_limit *p) {
        if (hand_may_spin(p, wait)) {
                hand_pause();
                return;
        }
        if (seen & 1 || __atomic_compare_exchange_n(word, &seen, seen | 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                (void) syscall(SYS_futex, word, FUTEX_WAIT, seen | 1, NULL, NULL, 0);
}

static inline void hand_store_and_wake(uint32_t *word, uint32_t value, enum wait_mode wait) {
        if (wait == WAIT_SPIN)
                __atomic_store_n(word, value, __ATOMIC_RELEASE);
        else if (__atomic_exchange_n(word, value, __ATOMIC_RELEASE) & 1)
                (void) syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline uint32_t *hand_state_of(unsigned char *slot) {
        return (uint32_t *) (void *) slot;
}

#endif
