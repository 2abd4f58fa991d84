/* SPDX-License-Identifier: MIT */

/* All threads move away and come back. */

#include "daemon/run/housekeeping.h"

#include "check.h"
#include "schema/util.h"

#include <pthread.h>

#define THREADS 4

static pthread_barrier_t look, done;
static struct affinity seen[THREADS];
static bool ended;

static void *thread(void *userdata) {
        struct affinity *mine = userdata;
        for (;;) {
                (void) pthread_barrier_wait(&look);
                if (ended)
                        return NULL;
                if (affinity_get(0, mine) < 0)
                        memset(mine, 0, sizeof(*mine));
                (void) pthread_barrier_wait(&done);
        }
}

static bool all_are(const struct affinity *want) {
        (void) pthread_barrier_wait(&look);
        (void) pthread_barrier_wait(&done);
        for (int i = 0; i < THREADS; i++)
                if (memcmp(&seen[i], want, sizeof(*want)) != 0)
                        return false;
        return true;
}

static void all_threads_move_and_return(void) {
        pthread_t threads[THREADS];
        struct affinity before, one, now;
        int32_t cpu = 0;
        CHECK_INT(affinity_get(0, &before), 0);
        while (!(before.bits[cpu / 64] >> (cpu % 64) & 1))
                cpu++;
        CHECK_INT(affinity_from_list(&cpu, 1, &one), 0);
        if (memcmp(&before, &one, sizeof(one)) == 0)
                SKIP("only one CPU");
        CHECK(pthread_barrier_init(&look, NULL, THREADS + 1) == 0 &&
              pthread_barrier_init(&done, NULL, THREADS + 1) == 0);
        for (int i = 0; i < THREADS; i++)
                CHECK_INT(pthread_create(&threads[i], NULL, thread, &seen[i]), 0);
        CHECK_INT(housekeeping_move(&one), 0);
        CHECK_INT(affinity_get(0, &now), 0);
        CHECK(memcmp(&now, &one, sizeof(one)) == 0);
        CHECK(all_are(&one));
        CHECK_INT(housekeeping_move(&before), 0);
        CHECK(all_are(&before));
        ended = true;
        (void) pthread_barrier_wait(&look);
        for (int i = 0; i < THREADS; i++)
                CHECK_INT(pthread_join(threads[i], NULL), 0);
}

/* Unless it was put somewhere: there it stays. */
static void home_is_everywhere(void) {
        struct affinity start, all, one, home, now;
        int32_t cpu = 0;
        memset(&all, 0xff, sizeof(all));
        CHECK_INT(affinity_get(0, &start), 0);
        CHECK_INT(affinity_set(0, &all), 0);
        CHECK_INT(affinity_initial(&home), 0);
        CHECK(memcmp(&home, &all, sizeof(all)) == 0);
        CHECK_INT(affinity_get(0, &now), 0);
        while (!(now.bits[cpu / 64] >> (cpu % 64) & 1))
                cpu++;
        CHECK_INT(affinity_from_list(&cpu, 1, &one), 0);
        if (memcmp(&now, &one, sizeof(one)) != 0) {
                CHECK_INT(affinity_set(0, &one), 0);
                CHECK_INT(affinity_initial(&home), 0);
                CHECK(memcmp(&home, &one, sizeof(one)) == 0);
                CHECK_INT(affinity_get(0, &now), 0);
                CHECK(memcmp(&now, &one, sizeof(one)) == 0);
        }
        CHECK_INT(affinity_set(0, &start), 0);
}

static void impossible_cpus_are_refused(void) {
        struct affinity none, a;
        const int32_t bad[] = {-1}, high[] = {(int32_t) AFFINITY_CPUS};
        memset(&none, 0, sizeof(none));
        CHECK_INT(housekeeping_move(&none), -EINVAL);
        CHECK_INT(affinity_from_list(bad, 1, &a), -ERANGE);
        CHECK_INT(affinity_from_list(high, 1, &a), -ERANGE);
}

int main(void) {
        RUN(all_threads_move_and_return);
        RUN(home_is_everywhere);
        RUN(impossible_cpus_are_refused);
        return check_end();
}
