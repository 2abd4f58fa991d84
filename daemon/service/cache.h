/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Caches what was computed from experiments' runs, until these change or items that were used later need the room.
 * Items are shared and do not change; a caller that got one must release it. Any thread.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 10 000 runs are 2.5 MB of figures; the findings from them are some hundred kilobytes. */
#define CACHE_BUDGET_BYTES ((size_t) 8 << 20)

enum cache_kind { CACHE_EVIDENCE, CACHE_FINDINGS, CACHE_ADVICE, CACHE_RESULTS, CACHE_COMPARISON };

struct cache_item {
        enum cache_kind kind;
        /* The experiment's change when its runs were read; for results, advice and comparisons see their files. */
        int64_t id, change;
        size_t bytes;
        void *payload;
        void (*free_payload)(void *payload);
        /* the cache's */
        struct cache_item *older;
        unsigned users;
        bool cached;
};

struct cache {
        pthread_mutex_t lock;
        struct cache_item *newest; /* a list by last use */
        size_t bytes;
};

void cache_init(struct cache *c);
void cache_deinit(struct cache *c); /* no item may be in use any more */
/* NULL: not there; one of another change is dropped. */
struct cache_item *cache_get(struct cache *c, enum cache_kind kind, int64_t id, int64_t change);
/* Takes the item over, which the caller uses already. One that is larger than the whole budget is not cached. The
 * oldest items are dropped for it. -ENOMEM: *item still belongs to the caller. */
int cache_add(struct cache *c, const struct cache_item *item, struct cache_item **ret);
void cache_release(struct cache *c, struct cache_item *item); /* NULL-safe */
