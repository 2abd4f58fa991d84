/* SPDX-License-Identifier: MIT */

/* Sets of CPUs: made from lists, set and read back on this thread, and where a thread is at home. */

#include "daemon/run/spawn/affinity.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#define WORD (8u * sizeof(unsigned long))

static bool has(const struct affinity *a, unsigned cpu) {
        return a->bits[cpu / WORD] >> (cpu % WORD) & 1;
}

static unsigned count(const struct affinity *a) {
        unsigned n = 0;
        for (unsigned cpu = 0; cpu < AFFINITY_CPUS; cpu++)
                n += has(a, cpu);
        return n;
}

/* Puts the thread back where the test began, whatever the case did. */
static struct affinity at_start;
static void go_back(const int *unused) {
        (void) unused;
        (void) affinity_set(0, &at_start);
}
#define GOES_BACK __attribute__((cleanup(go_back), unused)) int back = 0

static void lists_become_sets(void) {
        static const int32_t cpus[] = {0, 63, 64, 127, 8191, 63};
        static const int32_t bad[][2] = {{0, -1}, {0, 8192}, {INT32_MIN, 0}, {INT32_MAX, 0}};
        struct affinity a;
        memset(&a, 0xff, sizeof a);
        CHECK_INT(affinity_from_list(cpus, ELEMENTS(cpus), &a), 0);
        CHECK_UINT(count(&a), 5);
        CHECK(has(&a, 0) && has(&a, 63) && has(&a, 64) && has(&a, 127) && has(&a, 8191));
        for (size_t i = 0; i < ELEMENTS(bad); i++)
                CHECK_INT(affinity_from_list(bad[i], 2, &a), -ERANGE);
        CHECK_UINT(count(&a), 5); /* untouched by failures */
        CHECK_INT(affinity_from_list(NULL, 0, &a), 0);
        CHECK_UINT(count(&a), 0);
}

/* The last CPU of the allowed ones alone. */
static void narrow(struct affinity *ret) {
        int32_t last = 0;
        for (int32_t cpu = 0; cpu < (int32_t) AFFINITY_CPUS; cpu++)
                if (has(&at_start, (unsigned) cpu))
                        last = cpu;
        (void) affinity_from_list(&last, 1, ret);
}

static void what_is_set_is_read_back(void) {
        GOES_BACK;
        struct affinity one, now;
        narrow(&one);
        CHECK_INT(affinity_set(0, &one), 0);
        memset(&now, 0xff, sizeof now); /* the kernel writes fewer bytes than there is room for */
        CHECK_INT(affinity_get(0, &now), 0);
        CHECK(memcmp(&now, &one, sizeof now) == 0);
        CHECK(has(&one, (unsigned) sched_getcpu()));
}

static void errors_are_returned(void) {
        GOES_BACK;
        struct affinity none = {0}, now;
        CHECK_INT(affinity_set(0, &none), -EINVAL);
        CHECK_INT(affinity_set(1 << 30, &at_start), -ESRCH);
        memset(&now, 0x5a, sizeof now);
        CHECK_INT(affinity_get(1 << 30, &now), -ESRCH);
        CHECK(now.bits[0] == (unsigned long) 0x5a5a5a5a5a5a5a5a);
        CHECK_INT(affinity_get(0, &now), 0);
        CHECK(memcmp(&now, &at_start, sizeof now) == 0);
}

/* A process that may be everywhere is at home everywhere, also on CPUs that are not there yet; a confined one stays
 * confined. And reading the home leaves every thread where it was. */
static void home_is_everywhere_unless_confined(void) {
        GOES_BACK;
        struct affinity all, home, now, one;
        memset(&all, 0xff, sizeof all);
        CHECK_INT(affinity_set(0, &all), 0);
        CHECK_INT(affinity_get(0, &now), 0);
        CHECK_INT(affinity_initial(&home), 0);
        CHECK(memcmp(&home, &all, sizeof home) == 0);
        struct affinity after;
        CHECK_INT(affinity_get(0, &after), 0);
        CHECK(memcmp(&after, &now, sizeof now) == 0);

        if (count(&now) < 2)
                SKIP("one CPU is all that this test may use: nothing can be confined further");
        narrow(&one);
        CHECK_INT(affinity_set(0, &one), 0);
        CHECK_INT(affinity_initial(&home), 0);
        CHECK(memcmp(&home, &one, sizeof home) == 0);
        CHECK_INT(affinity_get(0, &now), 0);
        CHECK(memcmp(&now, &one, sizeof now) == 0);
}

int main(void) {
        if (affinity_get(0, &at_start) < 0)
                return 1;
        RUN(lists_become_sets);
        RUN(what_is_set_is_read_back);
        RUN(errors_are_returned);
        RUN(home_is_everywhere_unless_confined);
        return check_end();
}
