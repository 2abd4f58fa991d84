/* SPDX-License-Identifier: MIT */
/*
 * An end that spins on the CPU that another spins on waits for the scheduler and measures its time slice. So all ends
 * of all threads must find a CPU each among those that their placement leaves them. Called by admission.c.
 */

#include "daemon/admission/internal.h"

#include "schema/util.h"

#include <inttypes.h>

static bool may_choose(const struct topology_cpu *cpu) {
        return cpu->online && cpu->allowed;
}

static size_t cpus_to_choose_from(const struct admission *a) {
        size_t n = 0;
        for (size_t i = 0; i < a->t->n_cpus; i++)
                n += may_choose(&a->t->cpus[i]);
        return n;
}

/* Where thread i is bound to one CPU: that; else -1. */
static int bound_to(const struct agent_placement *p, uint32_t i) {
        if (p->n_cpus == 0 || (p->roam && p->n_cpus > 1))
                return -1;
        return p->cpus[i % p->n_cpus];
}

/* Whether a thread of this end is bound to the CPU, or may go there. */
static bool may_use(const struct admission *a, const struct agent_placement *p, const struct topology_cpu *cpu) {
        size_t n = p->roam || p->n_cpus < a->p->threads ? p->n_cpus : a->p->threads;
        if (p->n_cpus == 0)
                return may_choose(cpu);
        for (size_t i = 0; i < n; i++)
                if (p->cpus[i] == cpu->id)
                        return true;
        return false;
}

/* Checks n ends from `first` on. */
static int check_room(struct admission *a, const struct agent_placement *first, unsigned n) {
        uint64_t cpus = 0, spinning = (uint64_t) n * a->p->threads;
        for (size_t c = 0; c < a->t->n_cpus; c++) {
                bool used = false;
                for (unsigned e = 0; e < n; e++)
                        used |= may_use(a, &first[e], &a->t->cpus[c]);
                cpus += used;
        }
        return spinning > cpus ? admission_refuse(a, "/threads", "CPUs of the placement", cpus, spinning,
                                                  "wait spin needs each end of each thread on a CPU of its own")
                               : 0;
}

int check_spin(struct admission *a, const struct run_placement *placement) {
        if (!point_has_wait(a->p->workload, a->p->transport) || a->p->wait != WAIT_SPIN)
                return 0;
        if (cpus_to_choose_from(a) < 2)
                return admission_refuse(a, "/wait", "CPUs allowed", cpus_to_choose_from(a), 2,
                                        "wait spin needs each end on a CPU of its own");
        for (uint32_t i = 0; i < a->p->threads; i++) {
                int cpu = bound_to(&placement->ends[END_FIRST], i);
                if (cpu >= 0 && cpu == bound_to(&placement->ends[END_SECOND], i))
                        return refuse(a->r, 422, "impossible-combination", "/wait",
                                      "wait spin needs each end on a CPU of its own, and this placement puts both ends "
                                      "of thread %" PRIu32 " on CPU %d",
                                      i, cpu);
        }
        /* When both ends together have room, and each by itself, all threads have: those of an end that are not bound
         * may all go to the same CPUs. */
        int x = check_room(a, placement->ends, END_COUNT);
        for (unsigned e = 0; x == 0 && e < END_COUNT; e++)
                x = check_room(a, &placement->ends[e], 1);
        return x;
}
