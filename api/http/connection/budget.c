/* SPDX-License-Identifier: MIT */

/* See the header. Owned by the API, used by dispatch.c and http.c. */

#include "api/http/connection/budget.h"

#include <errno.h>
#include <stdio.h>

int budget_take(struct budget *b, size_t n, const char *what, struct refusal *r) {
        size_t used = atomic_load(&b->used);
        do {
                size_t left = b->most > used ? b->most - used : 0;
                if (n > left) {
                        refuse(r, 503, "unavailable", "",
                               "There may be %zu %s of all clients at once, and %zu of them are free, not %zu: try "
                               "again.",
                               b->most, what, left, n);
                        (void) snprintf(r->limit, sizeof(r->limit), "%s of all clients", what);
                        (void) snprintf(r->limit_value, sizeof(r->limit_value), "%zu", b->most);
                        (void) snprintf(r->value, sizeof(r->value), "%zu", n);
                        return -EAGAIN;
                }
        } while (!atomic_compare_exchange_weak(&b->used, &used, used + n));
        return 0;
}

void budget_give(struct budget *b, size_t n) {
        atomic_fetch_sub(&b->used, n);
}
