/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_CACHE_H
#define IPCLAB_DAEMON_SERVICE_CACHE_H

/*
 * What was made of experiments' runs, until these change or what was used later needs the room. Items are
 * shared and do not change; whoever got one gives it back. Any thread.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 10 000 runs are 2.5 MB of figures; what is drawn from them is some hundred kilobytes. */
#define CACHE_BUDGET_BYTES ((size_t) 8 << 20)

enum cache_kind { CACHE_EVIDENCE, CACHE_FINDINGS, CACHE_ADVICE };

struct cache_item {
        enum cache_kind kind;
        int64_t id, change; /* of an experiment as it was when the runs were read; of advice see there */
        size_t bytes;
        void *payload;
        void (*free_payload)(void *payload);
        /* the cache's */
        struct cache_item *older;
        unsigned users;
        bool kept;
};

struct cache {
        pthread_mutex_t lock;
        struct cache_item *newest; /* a list by last use */
        size_t bytes;
};

void cache_init(struct cache *c);
void cache_deinit(struct cache *c); /* nobody uses an item any more */
/* NULL: not there; one of another change is dropped. */
struct cache_item *cache_get(struct cache *c, enum cache_kind kind, int64_t id, int64_t change);
/* Takes the item over, which the caller uses already. One that is larger than the whole budget is not kept. The oldest
 * go for it. -ENOMEM: *item is the caller's still. */
int cache_add(struct cache *c, const struct cache_item *item, struct cache_item **ret);
void cache_release(struct cache *c, struct cache_item *item); /* NULL-safe */

#endif
