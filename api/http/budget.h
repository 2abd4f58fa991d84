/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_BUDGET_H
#define IPCLAB_API_BUDGET_H

/*
 * The bytes of bodies that one listener holds for its clients, all together: what a client takes slowly, or not at all,
 * stays in memory, and a client without a token may have many connections.
 *
 * The budget is open until it is used up: what is taken then may go above it once, by one body for each thread that
 * makes bodies, so that a body larger than the budget can be had at all. Any thread may call.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define BUDGET_BYTES ((size_t) 8 << 20)
#define BUDGET_SMALL ((size_t) 16 << 10) /* a body up to this is not counted: a refusal must always be possible */

struct budget {
        atomic_size_t used;
};

/* Bytes of a body, as the budget counts them. */
static inline size_t budget_cost(size_t bytes) {
        return bytes > BUDGET_SMALL ? bytes : 0;
}

static inline bool budget_is_open(struct budget *b) {
        return atomic_load(&b->used) < BUDGET_BYTES;
}

/* Of a body that is made: who makes one looks first whether the budget is open. */
static inline void budget_take(struct budget *b, size_t cost) {
        atomic_fetch_add(&b->used, cost);
}

static inline void budget_give(struct budget *b, size_t cost) {
        atomic_fetch_sub(&b->used, cost);
}

#endif
