/* SPDX-License-Identifier: MIT */

/* A budget is never exceeded, whoever takes of it at the same time. */

#include "api/http/connection/budget.h"

#include "check.h"
#include "schema/util.h"

#include <pthread.h>

#define THREADS 4u
#define ROUNDS 20000u

static void it_is_taken_and_given_back(void) {
        struct budget b = {.most = 100};
        struct refusal r = {0};
        CHECK_INT(budget_take(&b, 60, "request bytes", &r), 0);
        CHECK_INT(budget_take(&b, 41, "request bytes", &r), -EAGAIN);
        CHECK_INT(r.status, 503);
        CHECK_STRING(r.detail,
                     "There may be 100 request bytes of all clients at once, and 40 of them are free, not 41: "
                     "try again.");
        CHECK_STRING(r.limit, "request bytes of all clients");
        CHECK_STRING(r.limit_value, "100");
        CHECK_STRING(r.value, "41");
        CHECK_INT(budget_take(&b, 40, "request bytes", &r), 0);
        CHECK_INT(budget_take(&b, SIZE_MAX, "request bytes", &r), -EAGAIN);
        budget_give(&b, 60);
        CHECK_INT(budget_take(&b, 60, "request bytes", &r), 0);
        budget_give(&b, 40);
        budget_give(&b, 60);
        CHECK_UINT(atomic_load(&b.used), 0);
}

static struct budget shared = {.most = 2};
static atomic_uint holders, most_holders;

static void *take_and_give(void *unused) {
        struct refusal r;
        (void) unused;
        for (unsigned i = 0; i < ROUNDS; i++) {
                if (budget_take(&shared, 1, "words", &r) < 0)
                        continue;
                unsigned now = atomic_fetch_add(&holders, 1) + 1, most = atomic_load(&most_holders);
                while (now > most && !atomic_compare_exchange_weak(&most_holders, &most, now))
                        ;
                atomic_fetch_sub(&holders, 1);
                budget_give(&shared, 1);
        }
        return NULL;
}

static void threads_do_not_exceed_it(void) {
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++)
                CHECK_INT(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
        for (size_t i = 0; i < THREADS; i++)
                CHECK_INT(pthread_join(threads[i], NULL), 0);
        CHECK(atomic_load(&most_holders) >= 1 && atomic_load(&most_holders) <= 2);
        CHECK_UINT(atomic_load(&shared.used), 0);
}

int main(void) {
        RUN(it_is_taken_and_given_back);
        RUN(threads_do_not_exceed_it);
        return check_end();
}
