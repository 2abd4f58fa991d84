/* SPDX-License-Identifier: MIT */
/*
 * An end that spins on the CPU that another spins on waits for the scheduler and measures its time slice. So each end
 * must have a CPU that its peer is not bound to, and ends that are bound a CPU each. Called by admission.c.
 */

#include "daemon/admission-internal.h"

#include "schema/util.h"

#include <inttypes.h>

static size_t cpus_to_choose_from(const struct asked *a) {
        size_t n = 0;
        for (size_t i = 0; i < a->t->n_cpus; i++)
                n += a->t->cpus[i].online && a->t->cpus[i].allowed;
        return n;
}

/* Where thread i is bound to one CPU: that; else -1. */
static int bound_to(const struct agent_placement *p, uint32_t i) {
        if (p->n_cpus == 0 || (p->roam && p->n_cpus > 1))
                return -1;
        return p->cpus[i % p->n_cpus];
}

/* Ends of all threads that are bound to one CPU, and the CPUs that they are bound to. */
static void count_bound(const struct asked *a, const struct run_placement *placement, size_t *ret_ends,
                        size_t *ret_cpus) {
        *ret_ends = *ret_cpus = 0;
        for (size_t c = 0; c < a->t->n_cpus; c++) {
                size_t before = *ret_ends;
                for (uint32_t i = 0; i < END_COUNT * a->p->threads; i++)
                        *ret_ends += bound_to(&placement->ends[i % END_COUNT], i / END_COUNT) == a->t->cpus[c].id;
                *ret_cpus += *ret_ends > before;
        }
}

int check_spin(struct asked *a, const struct run_placement *placement) {
        if (!point_has_wait(a->p->workload, a->p->transport) || a->p->wait != WAIT_SPIN)
                return 0;
        if (cpus_to_choose_from(a) < 2)
                return asked_refuse(a, "/wait", "CPUs allowed", cpus_to_choose_from(a), 2,
                                    "wait spin needs each end on a CPU of its own");
        for (uint32_t i = 0; i < a->p->threads; i++) {
                int cpu = bound_to(&placement->ends[END_FIRST], i);
                if (cpu >= 0 && cpu == bound_to(&placement->ends[END_SECOND], i))
                        return refuse(a->r, 422, "impossible-combination", "/wait",
                                      "wait spin needs each end on a CPU of its own, and this placement puts both ends "
                                      "of thread %" PRIu32 " on CPU %d",
                                      i, cpu);
        }
        size_t ends, cpus;
        count_bound(a, placement, &ends, &cpus);
        return ends > cpus ? asked_refuse(a, "/threads", "CPUs of the placement", cpus, ends,
                                          "wait spin needs each end of each thread on a CPU of its own")
                           : 0;
}
