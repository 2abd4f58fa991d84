/* SPDX-License-Identifier: MIT */

/* What the cache holds, for how long, and who frees it. */

#include "daemon/service/cache.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static unsigned freed;

static void count_free(void *payload) {
        freed++;
        free(payload);
}

static struct cache_item *add(struct cache *c, int64_t id, int64_t change, size_t bytes) {
        struct cache_item *item = NULL;
        const struct cache_item wanted = {.kind = CACHE_FINDINGS,
                                          .id = id,
                                          .change = change,
                                          .bytes = bytes,
                                          .payload = malloc(1),
                                          .free_payload = count_free};
        return wanted.payload && cache_add(c, &wanted, &item) == 0 ? item : NULL;
}

static void test_until_it_changes(void) {
        struct cache c;
        cache_init(&c);
        freed = 0;
        struct cache_item *item = add(&c, 1, 10, 100);
        CHECK(item);
        CHECK(cache_get(&c, CACHE_FINDINGS, 1, 10) == item);
        CHECK(!cache_get(&c, CACHE_EVIDENCE, 1, 10));
        CHECK(!cache_get(&c, CACHE_FINDINGS, 2, 10));
        CHECK(!cache_get(&c, CACHE_FINDINGS, 1, 11)); /* dropped, but it is in use twice */
        CHECK_UINT(freed, 0);
        CHECK_UINT(c.bytes, 0);
        cache_release(&c, item);
        CHECK_UINT(freed, 0);
        cache_release(&c, item);
        CHECK_UINT(freed, 1);
        cache_release(&c, NULL);
        cache_deinit(&c);
}

static void test_budget(void) {
        struct cache c;
        cache_init(&c);
        freed = 0;
        for (int64_t id = 1; id <= 4; id++)
                cache_release(&c, add(&c, id, 1, CACHE_BUDGET_BYTES / 4));
        cache_release(&c, cache_get(&c, CACHE_FINDINGS, 1, 1)); /* now 2 is the oldest */
        CHECK_UINT(freed, 0);
        cache_release(&c, add(&c, 5, 1, 1));
        CHECK_UINT(freed, 1);
        CHECK(!cache_get(&c, CACHE_FINDINGS, 2, 1));
        struct cache_item *large = add(&c, 6, 1, CACHE_BUDGET_BYTES + 1);
        CHECK(large && !cache_get(&c, CACHE_FINDINGS, 6, 1));
        cache_release(&c, large);
        CHECK_UINT(freed, 2);
        struct cache_item *all = add(&c, 7, 1, CACHE_BUDGET_BYTES);
        CHECK_UINT(freed, 6);
        CHECK_UINT(c.bytes, CACHE_BUDGET_BYTES);
        cache_release(&c, all);
        cache_deinit(&c);
        CHECK_UINT(freed, 7);
}

int main(void) {
        RUN(test_until_it_changes);
        RUN(test_budget);
        return check_end();
}
