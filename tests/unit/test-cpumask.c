/* SPDX-License-Identifier: MIT */

/* Sets of CPUs: their edges, their union, this thread's own, and as JSON. */

#include "agent/os/cpumask.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <sched.h>

static unsigned count(const struct cpumask *m) {
        unsigned n = 0;
        for (unsigned cpu = 0; cpu < CPUMASK_CPUS; cpu++)
                n += cpumask_has(m, cpu);
        return n;
}

static void lists_become_sets(void) {
        static const int32_t cpus[] = {8191, 0, 63, 64, 63};
        static const int32_t bad[][2] = {{1, -1}, {1, 8192}, {INT32_MIN, 1}, {INT32_MAX, 1}};
        struct cpumask m, before;
        CHECK_INT(cpumask_from_list(cpus, ELEMENTS(cpus), &m), 0);
        CHECK_UINT(count(&m), 4);
        CHECK_UINT(cpumask_count(&m), 4);
        CHECK(cpumask_has(&m, 0) && cpumask_has(&m, 63) && cpumask_has(&m, 64) && cpumask_has(&m, 8191));
        before = m;
        for (size_t i = 0; i < ELEMENTS(bad); i++)
                CHECK_INT(cpumask_from_list(bad[i], 2, &m), -ERANGE);
        CHECK(cpumask_equal(&m, &before));
        CHECK_INT(cpumask_from_list(NULL, 0, &m), 0);
        CHECK_UINT(count(&m), 0);
        CHECK_UINT(cpumask_count(&m), 0);
}

/* A CPU that no kernel has is in no set, and adding it writes nowhere. */
static void beyond_the_last_cpu_there_is_nothing(void) {
        struct {
                struct cpumask m;
                unsigned long behind;
        } s = {.behind = 0};
        cpumask_add(&s.m, CPUMASK_CPUS);
        cpumask_add(&s.m, CPUMASK_CPUS + 1);
        cpumask_add(&s.m, UINT32_MAX);
        CHECK_UINT(count(&s.m), 0);
        CHECK_UINT(s.behind, 0);
        memset(&s, 0xff, sizeof s);
        CHECK_UINT(cpumask_count(&s.m), CPUMASK_CPUS);
        CHECK(!cpumask_has(&s.m, CPUMASK_CPUS) && !cpumask_has(&s.m, UINT32_MAX));
        CHECK(cpumask_has(&s.m, CPUMASK_CPUS - 1));
}

static void unions(void) {
        static const int32_t low[] = {1, 2}, high[] = {2, 8000}, both[] = {1, 2, 8000};
        struct cpumask a, b, want;
        CHECK(cpumask_from_list(low, 2, &a) == 0 && cpumask_from_list(high, 2, &b) == 0 &&
              cpumask_from_list(both, 3, &want) == 0);
        CHECK(!cpumask_equal(&a, &want));
        cpumask_merge(&a, &b);
        CHECK(cpumask_equal(&a, &want));
        CHECK_UINT(count(&b), 2);
}

static void this_threads_own(void) {
        struct cpumask start, one = {}, now, none = {};
        CHECK_INT(cpumask_get_affinity(0, &start), 0);
        CHECK(count(&start) > 0);
        unsigned cpu = CPUMASK_CPUS;
        while (!cpumask_has(&start, --cpu))
                ;
        cpumask_add(&one, cpu);
        CHECK_INT(cpumask_set_affinity(0, &one), 0);
        memset(&now, 0xff, sizeof now);
        int r = cpumask_get_affinity(0, &now), on = sched_getcpu();
        int refused = cpumask_set_affinity(0, &none);
        CHECK_INT(cpumask_set_affinity(0, &start), 0);
        CHECK_INT(r, 0);
        CHECK(cpumask_equal(&now, &one));
        CHECK_INT(on, cpu);
        CHECK_INT(refused, -EINVAL);
        CHECK_INT(cpumask_get_affinity(1 << 30, &now), -ESRCH);
        CHECK(cpumask_equal(&now, &one)); /* written on success only */
        CHECK_INT(cpumask_set_affinity(1 << 30, &start), -ESRCH);
}

int main(void) {
        RUN(lists_become_sets);
        RUN(beyond_the_last_cpu_there_is_nothing);
        RUN(unions);
        RUN(this_threads_own);
        return check_end();
}
