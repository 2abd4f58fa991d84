/* SPDX-License-Identifier: MIT */
/*
 * Compares the snapshots before and after a run: counts since boot, and settings that have changed. Use of CPU time in
 * each second of the window is observed during the run (disturbance.c). A flag is a label on the result and never a
 * reason to drop it. Each threshold stands below with its reason.
 */

#include "daemon/host/disturbance/disturbance.h"
#include "daemon/host/environment/environment-internal.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <math.h>
#include <string.h>

/* Steal: below 1 % it is less than the usual difference of repetitions. */
#define STEAL_SHARE 0.01

/* An agent that is not pinned may be anywhere. */
static bool is_measured(const struct run_placement *p, bool one_end, int cpu) {
        for (unsigned e = 0; e < (one_end ? 1 : END_COUNT); e++) {
                if (p->ends[e].n_cpus == 0)
                        return true;
                for (size_t i = 0; i < p->ends[e].n_cpus; i++)
                        if (p->ends[e].cpus[i] == cpu)
                                return true;
        }
        return false;
}

static const struct cpu_state *state_of(const struct environment *e, int cpu) {
        for (size_t i = 0; i < e->n_cpus; i++)
                if (e->cpus[i].id == cpu)
                        return &e->cpus[i];
        return NULL;
}

/* Counters of a CPU that went and came back start at 0 again. */
static uint64_t grown(uint64_t before, uint64_t after) {
        return after > before ? after - before : 0;
}

struct noise {
        double window_seconds;
        size_t n_measured;
        uint64_t steal_ns;     /* on the measured CPUs */
        uint64_t few_steal_ns; /* likewise, without a step of each that may have begun long before */
        uint64_t most_device_interrupts;
        bool throttled;
};

static void add_measured_cpu(struct noise *n, const struct cpu_state *b, const struct cpu_state *a) {
        const uint64_t steal_ns = grown(b->steal_ns, a->steal_ns);
        n->n_measured++;
        n->steal_ns += steal_ns;
        n->few_steal_ns += grown(CPU_TIME_STEP_NS, steal_ns);
        if (b->has_interrupts && a->has_interrupts) {
                uint64_t interrupts = grown(b->device_interrupts, a->device_interrupts);
                if (interrupts > n->most_device_interrupts)
                        n->most_device_interrupts = interrupts;
        }
        n->throttled |= b->has_throttles && a->has_throttles && a->throttles > b->throttles;
}

/* A second of the window may have given the same flag already. */
static void put_once(const struct flags_found *found, struct json_writer *flags, const char *flag) {
        for (size_t i = 0; i < found->n; i++)
                if (strcmp(found->flags[i], flag) == 0)
                        return;
        json_put_string(flags, flag);
}

/* More than STEAL_SHARE, and at least half of it without what rounding may have added: on each CPU a step, or on many
 * together as much as is likely. */
static bool has_steal(const struct noise *n) {
        const double available_ns = n->window_seconds * (double) NSEC_PER_SEC * (double) n->n_measured,
                     together_ns = (double) n->steal_ns - cpu_time_rounding_ns(n->n_measured),
                     least_ns = fmax((double) n->few_steal_ns, together_ns);
        return (double) n->steal_ns > STEAL_SHARE * available_ns && least_ns >= STEAL_SHARE / 2 * available_ns;
}

static void put_noise(const struct noise *n, const struct flags_found *found, struct json_writer *flags) {
        if (has_steal(n))
                put_once(found, flags, "noisy:steal");
        if ((double) n->most_device_interrupts > DISTURBANCE_DEVICE_INTERRUPTS_PER_SECOND * n->window_seconds)
                put_once(found, flags, "noisy:interrupts");
        if (n->throttled)
                put_once(found, flags, "noisy:throttled");
}

static void put_fact(struct json_writer *flags, const char *kind, const char *key) {
        char flag[96];
        (void) snprintf(flag, sizeof(flag), "environment-%s:%s", kind, key);
        json_put_string(flags, flag);
}

static void put_changed(struct json_writer *flags, const char *key) {
        put_fact(flags, "changed", key);
}

bool fact_equal(const struct fact *a, const struct fact *b) {
        if ((a->reason[0] == '\0') != (b->reason[0] == '\0'))
                return false;
        if (a->reason[0])
                return true;
        return a->is_number ? a->number == b->number : strcmp(a->text, b->text) == 0;
}

static bool mitigations_equal(const struct environment *b, const struct environment *a) {
        if (b->n_mitigations != a->n_mitigations)
                return false;
        for (size_t i = 0; i < b->n_mitigations; i++)
                if (strcmp(b->mitigations[i].name, a->mitigations[i].name) != 0 ||
                    strcmp(b->mitigations[i].text, a->mitigations[i].text) != 0)
                        return false;
        return true;
}

static void put_changes(const struct environment *b, const struct environment *a, struct json_writer *flags) {
        for (size_t i = 0; i < b->n_facts && i < a->n_facts; i++)
                if (b->facts[i].changed || !fact_equal(&b->facts[i], &a->facts[i]))
                        put_changed(flags, b->facts[i].key);
        if (!mitigations_equal(b, a))
                put_changed(flags, "mitigations");
}

void environment_flags(const struct environment *before, const struct environment *after,
                       const struct run_placement *placement, const struct flags_found *found,
                       struct json_writer *flags) {
        struct noise n = {
                .window_seconds = (double) grown(before->uptime_ns, after->uptime_ns) / (double) NSEC_PER_SEC,
        };
        bool cpus_changed = before->n_cpus != after->n_cpus;

        for (size_t i = 0; i < before->n_cpus; i++) {
                const struct cpu_state *b = &before->cpus[i], *a = state_of(after, b->id);
                if (a && is_measured(placement, found->one_end, b->id))
                        add_measured_cpu(&n, b, a);
                cpus_changed |= !a;
        }
        if (n.window_seconds > 0)
                put_noise(&n, found, flags);
        if (cpus_changed)
                put_changed(flags, "cpus");
        put_changes(before, after, flags);
        if (placement->shares_cpus)
                json_put_string(flags, "placement:shared-cpus");
        if (placement->shares_cores)
                json_put_string(flags, "placement:shared-cores");
        if (placement->memory_elsewhere)
                json_put_string(flags, "placement:memory-elsewhere");
}

void environment_differs(const struct environment *first, const struct environment *e, struct json_writer *flags) {
        for (size_t i = 0; i < first->n_facts && i < e->n_facts; i++)
                if (first->facts[i].key && !fact_equal(&first->facts[i], &e->facts[i]))
                        put_fact(flags, "differs", e->facts[i].key);
        if (!first->mitigations_reason[0] && !mitigations_equal(first, e))
                put_fact(flags, "differs", "mitigations");
}
