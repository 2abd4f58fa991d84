/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bytes that all listeners together may hold of one kind. Unlike a share (peers.h) it is never exceeded: it is what the
 * process has. Any thread may call.
 */

#include "schema/refusal.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
        size_t most;
        _Atomic size_t used;
};

/* Takes n; or -EAGAIN, with *r (503) naming the budget, `what` it is of and what is left of it. */
int budget_take(struct budget *b, size_t n, const char *what, struct refusal *r);
void budget_give(struct budget *b, size_t n);
