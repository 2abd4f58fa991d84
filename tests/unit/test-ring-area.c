/* SPDX-License-Identifier: MIT */

/* What is told of a ring's memory, by a made-up agent whose threads are not started. */

#include "agent/proof/proof.h"
#include "agent/transport/ring/area.h"

#include "check.h"
#include "schema/json/json.h"
#include "schema/util.h"

#define ALONE UINT64_C(10000000000) /* bytes per second that one thread copies */

/* What a stream's sender says that its threads copy, with that many CPUs to run on; -1: nothing. */
static int64_t told(uint32_t threads, size_t pinned, unsigned allowed) {
        static const struct ring_carrier carrier = {};
        struct proof proof = {.sizes = {.error = -ENOENT}};
        struct ring_area area = {.carrier = &carrier, .layout = {.directions = 1}, .copy_rate = threads * ALONE};
        struct agent a = {.end = END_FIRST, .transport_data = &area, .proof = &proof, .n_workers = threads};
        _cleanup_free_ char *text = NULL;
        struct json *root = NULL;
        struct json_writer w;
        int64_t rate = -1;
        a.setup.point = (struct point){.workload = WORKLOAD_STREAM, .threads = threads, .wait = WAIT_SPIN};
        a.setup.placement.n_cpus = pinned;
        for (unsigned cpu = 0; cpu < allowed; cpu++)
                cpumask_add(&a.affinity, cpu);
        json_writer_init(&w);
        json_object_begin(&w);
        ring_area_effective(&a, &w);
        json_object_end(&w);
        if (json_writer_steal(&w, &text, NULL) == 0 && json_parse(text, strlen(text), &root, NULL) == 0)
                (void) json_as_i64(json_get(root, "memcpy_bytes_per_second"), &rate); /* stays -1 */
        json_free(root);
        json_writer_deinit(&w);
        return rate;
}

/* Who shares a CPU was measured in a time slice of its own. */
static void threads_copy_as_fast_as_their_cpus_let_them(void) {
        CHECK_INT(told(1, 1, 1), ALONE);
        CHECK_INT(told(8, 1, 1), ALONE);
        CHECK_INT(told(8, 1, 64), ALONE); /* what it was started on is no more where it is pinned */
        CHECK_INT(told(8, 2, 2), 2 * ALONE);
        CHECK_INT(told(256, 3, 3), 3 * ALONE);
        CHECK_INT(told(8, 8, 8), 8 * ALONE);
        CHECK_INT(told(2, 8, 8), 2 * ALONE);
}

static void threads_that_are_not_pinned_have_the_agents_cpus(void) {
        CHECK_INT(told(8, 0, 1), ALONE);
        CHECK_INT(told(8, 0, 4), 4 * ALONE);
        CHECK_INT(told(2, 0, 4), 2 * ALONE);
}

int main(void) {
        RUN(threads_copy_as_fast_as_their_cpus_let_them);
        RUN(threads_that_are_not_pinned_have_the_agents_cpus);
        return check_end();
}
