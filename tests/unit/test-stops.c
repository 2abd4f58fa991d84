/* SPDX-License-Identifier: MIT */

/* Sleeps that lasted too long: which of them were a stop. The thread's own wait for a CPU, which is the kernel's and
 * long on a busy machine, makes a nap as much longer. */

#include "agent/measure/stops.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define MS NSEC_PER_MSEC
#define TENTH (100 * MS)

struct nap {
        uint64_t late_ns, cpu_ns; /* beyond its tenth of a second; CPU time used in all of it */
};

static void use_cpu(uint64_t ns) {
        struct timespec ts = {0};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        uint64_t until = (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec + ns;
        while ((uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec < until)
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
}

static uint64_t waited_for_cpu_ns(void) {
        uint64_t waited = 0;
        _cleanup_fclose_ FILE *f = fopen("/proc/thread-self/schedstat", "re");
        return f && fscanf(f, "%*u %" SCNu64, &waited) == 1 ? waited : 0;
}

/* The total of these naps; UINT64_MAX: the time that it waits for a CPU could not be read. */
static uint64_t total_of(const struct nap *naps, size_t n, uint32_t threads) {
        struct stops s;
        uint64_t now = NSEC_PER_SEC;
        stops_begin(&s, threads);
        for (size_t i = 0; i < n; i++) {
                stops_sleep(&s, now);
                uint64_t waited_ns = waited_for_cpu_ns();
                use_cpu(naps[i].cpu_ns);
                uint64_t late_ns = naps[i].late_ns + waited_for_cpu_ns() - waited_ns;
                now += TENTH;
                stops_wake(&s, now, now + late_ns);
                now += late_ns;
        }
        stops_end(&s);
        return s.fd == -EBADF ? s.total_ns : UINT64_MAX;
}

/* This thread may wait for a CPU while it uses it, which is taken off. */
static void test_which_is_one(void) {
        static const struct {
                struct nap nap;
                uint32_t threads;
                bool stop;
        } table[] = {
                {{0, 0}, 1, false},
                {{49 * MS, 0}, 1, false},         /* too short */
                {{500 * MS, 0}, 1, true},         /* nothing ran */
                {{500 * MS, 60 * MS}, 1, true},   /* what ran did so before */
                {{500 * MS, 160 * MS}, 1, false}, /* more than one thread can */
                {{500 * MS, 160 * MS}, 2, true},  /* and less than two can */
                {{10 * NSEC_PER_SEC, 60 * MS}, 1, true},
        };
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                uint64_t total = total_of(&table[i].nap, 1, table[i].threads);
                if ((total > 0) != table[i].stop || total > table[i].nap.late_ns)
                        CHECK_FAIL("case %zu: %" PRIu64 " ns", i, total);
        }
}

static void test_they_add_up(void) {
        static const struct nap naps[] = {{100 * MS, 0}, {0, 0}, {60 * MS, 0}, {0, 0}};
        uint64_t total = total_of(naps, ELEMENTS(naps), 1);
        CHECK(total >= 150 * MS && total <= 160 * MS);
}

/* A window by a number of messages ends at the last one, of which the leader knows later. */
static void test_what_is_before_a_moment(void) {
        struct stops s;
        stops_begin(&s, 1);
        stops_sleep(&s, NSEC_PER_SEC);
        stops_wake(&s, NSEC_PER_SEC + TENTH, NSEC_PER_SEC + TENTH + 70 * MS);
        uint64_t first_ns = s.total_ns, begin_ns = 2 * NSEC_PER_SEC + TENTH, end_ns = begin_ns + 5 * TENTH;
        stops_sleep(&s, 2 * NSEC_PER_SEC);
        stops_wake(&s, begin_ns, end_ns);
        stops_end(&s);
        if (s.last_end_ns != end_ns)
                SKIP("this thread waited for a CPU");
        CHECK(first_ns > 0);
        CHECK_UINT(stops_until(&s, UINT64_MAX), s.total_ns);
        CHECK_UINT(stops_until(&s, end_ns), s.total_ns);
        CHECK_UINT(stops_until(&s, end_ns - 100), s.total_ns - 100);
        CHECK_UINT(stops_until(&s, begin_ns - 100), first_ns);
}

/* An event that ends a sleep before its time makes it no stop. */
static void test_woken_early(void) {
        struct stops s;
        stops_begin(&s, 1);
        stops_sleep(&s, 1000);
        stops_wake(&s, TENTH, 500 * 1000);
        CHECK_UINT(s.total_ns, 0);
        stops_end(&s);
}

static void test_not_known(void) {
        struct stops s;
        stops_begin(&s, 1);
        stops_end(&s);
        s.fd = -ENOENT;
        stops_sleep(&s, 1000);
        stops_wake(&s, TENTH, 5 * TENTH);
        CHECK_UINT(s.total_ns, 0);
        CHECK_INT(s.fd, -ENOENT);
}

int main(void) {
        RUN(test_which_is_one);
        RUN(test_they_add_up);
        RUN(test_what_is_before_a_moment);
        RUN(test_woken_early);
        RUN(test_not_known);
        return check_end();
}
