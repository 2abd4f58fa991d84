/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The calibration probes of a run: as JSON, read back from it, and compared, so that the state of the machine is known
 * beside the figures that were measured on it.
 *
 * Two series of one operation on the same CPUs are of two states of the machine when both hold:
 *
 *      - the exact rank-sum test of their rounds (analysis/statistics/rank.h), which compares a series with its own
 *        scatter, has a two-sided p below PROBE_LEVEL, and of many series below its part of PROBE_BY_CHANCE, so that
 *        two sittings of 64 CPUs are no more often called unlike by chance than those of two;
 *      - the ratio between them (Hodges and Lehmann, on logarithms) is further from 1 than the operation's tolerance
 *        (schema/measure/probe.c): neighbouring rounds are alike, so the test alone reports changes that do not matter.
 *
 * Beside them stands the share of the time for which the probing thread had its CPU: another program there lengthens
 * few rounds, by its whole slices, and leaves their median as it was. A difference of more than PROBE_SHARE_TOLERANCE
 * is a change, too, where the thread had more than PROBE_SHARE_ALONE in one of the two: of a CPU that is shared in
 * both, the share depends on how many slices fall into some tens of milliseconds.
 *
 * That is judged for the CPU of each thread that took a probe both times; CPUs that the run measured and of which one
 * is missing are listed as not probed. A run is held against the experiment's first run on the same CPUs. Where no
 * earlier run probed the same CPUs of further threads, too, that is the first one with the same CPUs of threads 0, and
 * of the others those are compared that both have.
 *
 * The tolerances are those at which at most 2 of 100 undisturbed runs are called changed where the machine cannot have
 * changed; docs/reading-the-figures.md has the counts. A machine that goes from one state to another and back again and
 * again makes changes that are usual (struct probe_past): they are listed, and alone they give no flag. Whether a
 * change is usual is not known at first: then it gives a flag of its own.
 */

#include "schema/measure/probe.h"
#include "schema/protocol/protocol.h"
#include "schema/terms.h"

#include <stdbool.h>
#include <stddef.h>

struct json_writer;

#define PROBE_LEVEL 0.001
#define PROBE_BY_CHANCE 0.035 /* of all series of two sittings together; the tolerances leave half of it */
#define PROBE_SHARE_TOLERANCE 0.15
#define PROBE_SHARE_ALONE 0.8
#define PROBE_SHARE_LEAST 1e-3 /* of which a ratio is taken */

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

/* Whether the machine makes such changes of itself: struct probe_past. */
enum probe_habit { PROBE_UNUSUAL, PROBE_USUAL, PROBE_UNKNOWN };
struct probe_change {
        enum end end;
        uint32_t thread, cpu;
        int what;     /* enum probe_kind or PROBE_SHARE */
        double ratio; /* of the later over the earlier one */
        enum probe_habit habit;
        size_t known; /* the number of earlier sittings that `habit` rests on */
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

/*
 * What the probes of earlier runs found, since the daemon started: whether a change of the machine's state is one that
 * this machine makes again and again of itself. A guest whose neighbours come and go has a getpid() of 157 and of 230
 * ns within seconds; each two probes of it differ, and a flag for that would be on every run and tell none apart.
 *
 * A change is usual when the latest PROBE_PAST_SITTINGS on the same CPUs have gone at least the middle half of the same
 * way (on logarithms) there and back: those before runs, or those after them. The two are apart, as a machine that each
 * run leaves in another state than it found, by its heat, say, would go there and back with each run. A change that
 * stays is never usual: nothing has come back from it. Neither is one of a CPU's share: that is no state of the machine
 * but another program's work.
 *
 * Where they have not, it is unusual if they are PROBE_PAST_LEAST or more, and else not known: a machine that has
 * another state in a share p of its sittings is in it for the first time after N others in 2p(1 - p)^N of its runs, of
 * which each has two, so in at most 2 / (e (N + 1)). For 2 of 100, whatever p is, N has to be 36. Owned by the
 * scheduler.
 */
#define PROBE_PAST_LEAST 36u
#define PROBE_PAST_SITTINGS 64u /* what has not been seen for longer is not usual */
#define PROBE_PAST_VALUES 8192u /* 63 sittings of all threads that take a probe */

/* A figure of one sitting on one CPU: the logarithm of the median of its rounds. */
struct probe_value {
        uint8_t what;  /* enum probe_kind */
        uint8_t time;  /* PROBE_BEFORE or PROBE_AFTER its run */
        uint32_t cpu;  /* of the thread that took it */
        int64_t other; /* the CPU of the other end; -1: it is of one CPU alone */
        double value;
};

struct probe_past {
        struct probe_value values[PROBE_PAST_VALUES]; /* a ring */
        size_t n;                                     /* how many there have been */
};

/* What changed between the two probes of a run, or since the reference. */
struct probe_flags {
        bool changed; /* otherwise than the machine usually does */
        bool unknown; /* of some change it is not known */
};

/* The run's "probes" object (malloc()ed), and its flags. reference may be NULL. The run's sittings are added to the
 * past; where that is NULL, each change is unusual. 0; -ENOMEM; -EINVAL. */
int run_probes_judge(const struct run_probes *p, const struct probe_reference *reference, struct probe_past *past,
                     char **ret_json, struct probe_flags *ret_flags);

/* The "before" of such an object. 0; -EBADMSG; -ENOMEM. */
int probe_sitting_parse(const char *probes_json, struct probe_sitting *ret);
