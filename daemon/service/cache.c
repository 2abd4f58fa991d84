/* SPDX-License-Identifier: MIT */

#include "daemon/service/cache.h"

#include <errno.h>
#include <stdlib.h>

void cache_init(struct cache *c) {
        *c = (struct cache){0};
        (void) pthread_mutex_init(&c->lock, NULL); /* with default attributes it cannot fail on Linux */
}

static void item_free(struct cache_item *item) {
        item->free_payload(item->payload);
        free(item);
}

/* The caller holds the lock. An item that is still in use is freed by its last user. */
static void drop(struct cache *c, struct cache_item **at) {
        struct cache_item *item = *at;
        *at = item->older;
        c->bytes -= item->bytes;
        item->cached = false;
        if (item->users == 0)
                item_free(item);
}

void cache_deinit(struct cache *c) {
        while (c->newest)
                drop(c, &c->newest);
        (void) pthread_mutex_destroy(&c->lock);
}

struct cache_item *cache_get(struct cache *c, enum cache_kind kind, int64_t id, int64_t change) {
        struct cache_item *found = NULL;
        pthread_mutex_lock(&c->lock);
        struct cache_item **at = &c->newest;
        while (*at && ((*at)->kind != kind || (*at)->id != id))
                at = &(*at)->older;
        if (*at && (*at)->change != change) {
                drop(c, at);
        } else if (*at) {
                found = *at;
                *at = found->older;
                found->older = c->newest;
                c->newest = found;
                found->users++;
        }
        pthread_mutex_unlock(&c->lock);
        return found;
}

int cache_add(struct cache *c, const struct cache_item *item, struct cache_item **ret) {
        struct cache_item *copy = malloc(sizeof(*copy));
        if (!copy)
                return -ENOMEM;
        *copy = *item;
        copy->users = 1;
        copy->cached = item->bytes <= CACHE_BUDGET_BYTES;
        pthread_mutex_lock(&c->lock);
        while (copy->cached && c->bytes + copy->bytes > CACHE_BUDGET_BYTES) {
                struct cache_item **at = &c->newest;
                while ((*at)->older)
                        at = &(*at)->older;
                drop(c, at);
        }
        copy->older = copy->cached ? c->newest : NULL;
        if (copy->cached) {
                c->newest = copy;
                c->bytes += copy->bytes;
        }
        *ret = copy; /* before another thread can find it */
        pthread_mutex_unlock(&c->lock);
        return 0;
}

void cache_release(struct cache *c, struct cache_item *item) {
        if (!item)
                return;
        pthread_mutex_lock(&c->lock);
        bool last = --item->users == 0 && !item->cached;
        pthread_mutex_unlock(&c->lock);
        if (last)
                item_free(item);
}
