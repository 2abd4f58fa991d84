/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_FIGURES_H
#define IPCLAB_SCHEMA_FIGURES_H

/*
 * The table of figures: one row for each number of a run that the table of results has a statistic of. Where it lies in
 * a run's result, its place and name in a row of results (JSON and CSV), its unit, its title and why a workload may
 * have none come from the row; so do its description in openapi.json, from which the dashboard and the command line
 * read it, and the columns of the CSV. A new figure is a row here and whoever computes it for a run.
 */

#include <stdbool.h>
#include <stddef.h>

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
        FIGURE_CYCLES,
        FIGURE_INSTRUCTIONS,
        FIGURE_L1D_READ_MISSES,
        FIGURE_LLC_MISSES,
        FIGURE_DTLB_MISSES,
        FIGURE_BRANCH_MISSES,
        FIGURE_CONTEXT_SWITCHES,
        FIGURE_CPU_PER_MESSAGE,
        FIGURE_CPU_PER_GIGABYTE,
        FIGURE_CYCLES_PER_BYTE,
        FIGURE_COUNT,
};

/* Figures that stand together, in the order in which they are shown. */
enum figure_group {
        FIGURES_RATE,     /* members of a row, before the latencies */
        FIGURES_LATENCY,  /* members of latency_ns, with one kind and one reason for all */
        FIGURES_ONE_WAY,  /* of latency_one_way_ns, likewise */
        FIGURES_COUNTERS, /* counted by one agent of the run, which the result names in counted_by */
        FIGURES_PER_UNIT, /* counts divided by what that agent carried */
        FIGURES_GROUPS,
};

extern const struct figure_group_term {
        const char *in_run; /* object of a run's result that has them; NULL: the result itself */
        const char *in_row; /* object of a row that has them, and prefix of their CSV columns; NULL: the row itself */
        bool by_role;       /* in that object's member for the agent that counted */
        const char *title, *description;
        const char *const *kinds; /* that the object of a row may have as its "kind", up to NULL; NULL: no object */
} figure_groups[FIGURES_GROUPS];

extern const struct figure_term {
        enum figure_group group;
        const char *name;
        const char *unit;
        const char *title;       /* in a heading: a noun, without its unit */
        const char *description; /* a sentence or more; NULL: the title has it all */
        bool usual;              /* among the columns of a CSV that does not ask for all of them */
        const char *absent;      /* why some workloads have none; NULL: every run says so itself */
        /* A second CSV column in the unit that people plot: value x factor / divisor, as 1e-3 is no double and would
         * leave its trace in the last digits. NULL: none. */
        const char *scaled;
        double factor, divisor;
} figure_terms[FIGURE_COUNT];

struct json;

/* The object of a run's result (as GET /runs/{id} has it) that has the figure, or would have it; NULL where there is
 * none. Results of early versions halve round trips of open loops, too: these halves are none. */
const struct json *figure_object(enum figure f, const struct json *result);

/* "latency_ns_p50": the figure's name where there is no object around it. */
void figure_name(enum figure f, char *ret, size_t size);

#endif
