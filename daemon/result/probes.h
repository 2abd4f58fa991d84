/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The calibration probes of a run: as JSON, read back from it, and compared, so that the state of the machine is known
 * beside the figures that were measured on it.
 *
 * Two series of one operation on the same CPUs are of two states of the machine when both hold:
 *
 *      - the exact rank-sum test of their rounds (analysis/statistics/rank.h), which compares a series with its own
 *        scatter, has a two-sided p below PROBE_LEVEL;
 *      - the ratio between them (Hodges and Lehmann, on logarithms) is further from 1 than the operation's tolerance
 *        (schema/measure/probe.c): neighbouring rounds are alike, so the test alone reports changes that do not matter.
 *
 * Beside them stands the share of the time for which the probing thread had its CPU: another program there lengthens
 * few rounds, by its whole slices, and leaves their median as it was. A difference of more than PROBE_SHARE_TOLERANCE
 * is a change, too.
 *
 * That is judged for the CPU of each thread that took a probe both times; CPUs that the run measured and of which one
 * is missing are listed as not probed. A run is held against the experiment's first run on the same CPUs. Where no
 * earlier run probed the same CPUs of further threads, too, that is the first one with the same CPUs of threads 0, and
 * of the others those are compared that both have.
 *
 * The tolerances are those at which at most 2 of 100 undisturbed runs are called changed; docs/reading-the-figures.md
 * has the counts.
 */

#include "schema/measure/probe.h"
#include "schema/protocol/protocol.h"
#include "schema/terms.h"

#include <stdbool.h>
#include <stddef.h>

struct json_writer;

#define PROBE_LEVEL 0.001
#define PROBE_SHARE_TOLERANCE 0.15

/* The probe of one thread. */
struct probe_end {
        bool moved; /* it was on several CPUs */
        uint32_t cpu;
        double cpu_share, cost_ns;
        enum probe_absence absences[PROBE_KIND_COUNT];
        double rounds[PROBE_KIND_COUNT][PROBE_ROUNDS]; /* nanoseconds per operation */
};

/* The probes of all ends of a run at one time: tens of KiB. */
struct probe_sitting {
        bool known; /* all ends have sent theirs */
        unsigned n_ends;
        struct probe_end ends[END_COUNT];                     /* of threads 0 */
        struct probe_end others[END_COUNT][PROBE_OTHERS_MAX]; /* of threads 1, 2 …, the n_others first */
        uint32_t n_others[END_COUNT];
};

struct run_probes {
        const char *roles[END_COUNT];                        /* static */
        const struct agent_placement *placements[END_COUNT]; /* of the run's order; NULL: the run has no such end */
        uint32_t threads;                                    /* of each end */
        struct probe_sitting at[PROBE_TIMES];
};

/* The probes of n_ends threads 0; and those of an end's further threads, from 1 on. */
void probe_sitting_init(struct probe_sitting *s, const struct probe *const probes[END_COUNT], unsigned n_ends);
void probe_sitting_add_others(struct probe_sitting *s, enum end end, const struct probe *others, uint32_t n);

/* NULL: the sitting has none of that thread. */
const struct probe_end *probe_sitting_of(const struct probe_sitting *s, unsigned end, uint32_t thread);

/* Whether both were known, those of threads 0 on the same CPUs, and nowhere else. */
bool probe_sitting_comparable(const struct probe_sitting *a, const struct probe_sitting *b);

enum { PROBE_SHARE = PROBE_KIND_COUNT, PROBE_WHATS };
struct probe_change {
        enum end end;
        uint32_t thread, cpu;
        int what;     /* enum probe_kind or PROBE_SHARE */
        double ratio; /* of the later over the earlier one */
};
#define PROBE_CHANGES_MAX ((size_t) END_COUNT * (1 + PROBE_OTHERS_MAX) * PROBE_WHATS)

/* Lists the differences between two that are comparable, of the further threads as far as each was on one CPU, the same
 * in both. 0; -ENOMEM; -EINVAL: the rounds are no positive numbers. */
int probe_sitting_compare(const struct probe_sitting *earlier, const struct probe_sitting *later,
                          struct probe_change ret[PROBE_CHANGES_MAX], size_t *ret_n);

/* "[0,1]", of threads 0: by which an experiment's runs on the same CPUs are found. False: some end is not known to have
 * stayed on one, or nothing is known. */
#define PROBE_CPUS_MAX 48u
bool probe_sitting_cpus(const struct probe_sitting *s, char ret[PROBE_CPUS_MAX]);

/* The CPUs of which both have a probe that probe_sitting_compare() compares, each once: "[0,1,2,3]". */
#define PROBE_ALL_CPUS_MAX (4u + END_COUNT * (1 + PROBE_OTHERS_MAX) * 11u)
void probe_sitting_compared(const struct probe_sitting *a, const struct probe_sitting *b, char ret[PROBE_ALL_CPUS_MAX]);

/* The reference of an experiment's runs: its first run on the same CPUs, see above. */
struct probe_reference {
        int64_t run_id;              /* 0: there is none */
        struct probe_sitting before; /* its probe */
};

/* The run's "probes" object (malloc()ed), and whether the machine's state has changed: between its two probes, or
 * since the reference. reference may be NULL. 0; -ENOMEM; -EINVAL. */
int run_probes_judge(const struct run_probes *p, const struct probe_reference *reference, char **ret_json,
                     bool *ret_changed);

/* The "before" of such an object. 0; -EBADMSG; -ENOMEM. */
int probe_sitting_parse(const char *probes_json, struct probe_sitting *ret);
