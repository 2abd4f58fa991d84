/* SPDX-License-Identifier: MIT */

/* The reported memory of a ring, by a made-up agent whose threads are not started. */

#include "agent/proof/proof.h"
#include "agent/transport/ring/area.h"

#include "check.h"
#include "schema/util.h"
#include "tests/unit/effective.h"

#define ALONE UINT64_C(10000000000) /* bytes per second that one thread copies */

/* The rate at which a stream's sender reports that its threads copy, with that many CPUs to run on; -1: none. */
static int64_t reported_rate(uint32_t threads, size_t pinned, unsigned allowed) {
        static const struct ring_carrier carrier = {};
        struct proof proof = {.sizes = {.error = -ENOENT}};
        struct ring_area area = {.carrier = &carrier, .layout = {.directions = 1}, .copy_rate = threads * ALONE};
        struct agent a = {.end = END_FIRST, .transport_data = &area, .proof = &proof, .n_workers = threads};
        EFFECTIVE *e = effective_new();
        a.setup.point = (struct point){.workload = WORKLOAD_STREAM, .threads = threads, .wait = WAIT_SPIN};
        a.setup.placement.n_cpus = pinned;
        for (unsigned cpu = 0; cpu < allowed; cpu++)
                cpumask_add(&a.affinity, cpu);
        ring_area_effective(&a, e);
        const struct effective_row *rate = effective_find(e, SETTING_MEMCPY_BYTES_PER_SECOND);
        return rate ? (int64_t) rate->number : -1;
}

/* A thread that shares a CPU was measured in a time slice of its own. */
static void threads_copy_as_fast_as_their_cpus_let_them(void) {
        CHECK_INT(reported_rate(1, 1, 1), ALONE);
        CHECK_INT(reported_rate(8, 1, 1), ALONE);
        CHECK_INT(reported_rate(8, 1, 64), ALONE); /* what it was started on is no more where it is pinned */
        CHECK_INT(reported_rate(8, 2, 2), 2 * ALONE);
        CHECK_INT(reported_rate(256, 3, 3), 3 * ALONE);
        CHECK_INT(reported_rate(8, 8, 8), 8 * ALONE);
        CHECK_INT(reported_rate(2, 8, 8), 2 * ALONE);
}

static void threads_that_are_not_pinned_have_the_agents_cpus(void) {
        CHECK_INT(reported_rate(8, 0, 1), ALONE);
        CHECK_INT(reported_rate(8, 0, 4), 4 * ALONE);
        CHECK_INT(reported_rate(2, 0, 4), 2 * ALONE);
}

int main(void) {
        RUN(threads_copy_as_fast_as_their_cpus_let_them);
        RUN(threads_that_are_not_pinned_have_the_agents_cpus);
        return check_end();
}
