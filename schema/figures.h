/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The table of figures: one row for each number of a run that the table of results has a statistic of. Where it lies in
 * a run's result, its place and name in a row of results (JSON and CSV), its unit, its title and why a workload may
 * have none come from the row; so do its description in openapi.json, from which the dashboard and the command line
 * read it, and the columns of the CSV. A new figure is a row here and the code that computes it for a run.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Costs of a message or a byte, of both ends together and of each: names of figures from a prefix. */
#define FIGURES_OF_ENDS(prefix)                                                                                        \
        prefix##CPU_PER_MESSAGE, prefix##CPU_PER_GIGABYTE, prefix##CYCLES_PER_BYTE, prefix##CYCLES,                    \
                prefix##INSTRUCTIONS, prefix##L1D_READ_MISSES, prefix##LLC_MISSES, prefix##DTLB_MISSES,                \
                prefix##BRANCH_MISSES, prefix##CONTEXT_SWITCHES

enum figure {
        FIGURE_THROUGHPUT,
        FIGURE_MESSAGES,
        FIGURE_BOTH_WAYS,
        FIGURE_COST,
        FIGURE_HOP,
        FIGURE_LATENCY_MIN,
        FIGURE_LATENCY_P50,
        FIGURE_LATENCY_P90,
        FIGURE_LATENCY_P99,
        FIGURE_LATENCY_P99_9,
        FIGURE_LATENCY_MAX,
        FIGURE_LATENCY_MEAN,
        FIGURE_ONE_WAY_MIN,
        FIGURE_ONE_WAY_P50,
        FIGURE_ONE_WAY_P90,
        FIGURE_ONE_WAY_P99,
        FIGURE_ONE_WAY_P99_9,
        FIGURE_ONE_WAY_MAX,
        FIGURE_ONE_WAY_MEAN,
        FIGURES_OF_ENDS(FIGURE_),
        FIGURE_KSOFTIRQD_PER_MESSAGE,
        FIGURES_OF_ENDS(FIGURE_SENDER_),
        FIGURES_OF_ENDS(FIGURE_RECEIVER_),
        FIGURE_COUNT,
};

/* The end that a figure describes. */
enum figure_end { FIGURE_OF_RUN, FIGURE_OF_COUNTED, FIGURE_OF_OTHER };

/* Figures that stand together, in the order in which they are shown. */
enum figure_group {
        FIGURES_RATE,     /* members of a row, before the latencies */
        FIGURES_LATENCY,  /* members of latency_ns, with one kind and one reason for all */
        FIGURES_ONE_WAY,  /* of latency_one_way_ns, likewise */
        FIGURES_PER_UNIT, /* counts of both ends, and of the kernel for them, by what went from one to the other */
        FIGURES_SENDER,   /* the same of the end that the result names in counted_by */
        FIGURES_RECEIVER, /* and of the other one */
        FIGURES_GROUPS,
};

extern const struct figure_group_term {
        const char *in_run;  /* object of a run's result that has them; NULL: the result itself */
        const char *in_row;  /* object of a row that has them, and prefix of their CSV columns; NULL: the row itself */
        enum figure_end end; /* in that object's member for that end */
        const char *suffix;  /* of their names in a row; NULL: none */
        const char *title, *description;
        const char *const *kinds; /* that the object of a row may have as its "kind", up to NULL; NULL: no object */
} figure_groups[FIGURES_GROUPS];

/* Which way a figure is the faster one, where /compare holds it against another experiment's. */
enum figure_faster { FIGURE_NOT_COMPARED, FIGURE_MORE_IS_FASTER, FIGURE_LESS_IS_FASTER };

extern const struct figure_term {
        enum figure_group group;
        const char *name;
        const char *unit;
        const char *title;       /* in a heading: a noun, without its unit */
        const char *description; /* a sentence or more; NULL: the title has it all */
        bool usual;              /* among the columns of a CSV without columns=all */
        const char *usual_in;    /* a study (a preset's name) among whose usual columns it is, too; NULL: none */
        bool quantile;      /* of a run's latencies, the least and the greatest among them: a mean of two is none */
        unsigned workloads; /* that can have it, as bits; 0: any */
        const char *absent; /* why the others have none; NULL: each run has its own reason */
        struct figure_scaled {
                const char *name;       /* NULL: none */
                double factor, divisor; /* value x factor / divisor, as 1e-3 is no double and would leave its trace */
                const char *usual_in;
        } scaled[2]; /* further columns of the CSV, in the units that studies have published */
        enum figure_faster faster;
        /* For a percentile above the median: how many latencies a run needs so that FIGURE_BEYOND_LEAST of them lie
         * beyond it, and why nothing is concluded from one of fewer. 0 and NULL: any number is enough. */
        uint32_t latencies_least;
        const char *few;
        const char
                *requested; /* why nothing is concluded from that of an open loop; NULL: it was measured there, too */
} figure_terms[FIGURE_COUNT];

/*
 * A percentile is known where enough latencies of the run lie beyond it: ten, so 1000 in all for the 99th. The nearest
 * rank of n latencies lies at the quantile k / (n + 1) on average: the 99th percentile of 1000 at 0.989, that of 100 at
 * 0.980, and that of 50 is the longest latency. Of latencies whose logarithm has a standard deviation of 0.5 the second
 * is 9 % too small, beside runs that have more messages, and the first 2 %, which is within the margin of a comparison.
 */
#define FIGURE_BEYOND_LEAST 10
#define FIGURE_P90_LATENCIES_LEAST 100
#define FIGURE_P99_LATENCIES_LEAST 1000
#define FIGURE_P99_9_LATENCIES_LEAST 10000

struct json_part;

/* The objects of a run's result (as GET /runs/{id} has it) that have the figures of each group, or would have them;
 * NULL where there is none. Results of early versions halve round trips of open loops, too: these halves are none. The
 * root of the result is NULL, or any value. */
void figure_objects(const struct json_part *result, const struct json_part *ret[FIGURES_GROUPS]);

/* A figure of a run. FIGURE_FEW: it is a percentile of fewer latencies than it takes: *ret is what the run reports, of
 * which nothing is to be concluded. Runs that do not report how many there are count as having enough.
 * FIGURE_REQUESTED: of an open loop, it follows from the rate that was requested. *ret is written unless
 * FIGURE_ABSENT. */
enum figure_state { FIGURE_KNOWN, FIGURE_FEW, FIGURE_REQUESTED, FIGURE_ABSENT };
enum figure_state figure_read(const struct json_part *const objects[FIGURES_GROUPS], enum figure f, double *ret);

/* "latency_ns_p50", "cpu_ns_per_message_sender": the figure's name in a row where there is no object around it. */
void figure_name(enum figure f, char *ret, size_t size);

/* The figures by which experiments are compared, in the order of the table. */
struct compared_figures {
        enum figure of[FIGURE_COUNT];
        size_t n;
};
void figures_compared(struct compared_figures *ret);
