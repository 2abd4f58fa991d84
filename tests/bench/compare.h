/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_COMPARE_H
#define IPCLAB_TESTS_COMPARE_H

/*
 * Rows of a bench: what is compared is measured turn about in rounds, until the ratio is known well enough, and
 * printed and counted in the same way whatever it is. A bench makes its list of rows beforehand, so that the time there
 * is can be shared out among them.
 */

#include "schema/spec/spec.h"
#include "tests/bench/options.h"
#include "tests/bench/series.h"

#define MATCH_MAX 5u
#define JUDGEMENTS_MAX 3u
#define NOWHERE UINT_MAX

struct bench;
struct bench_row;

/* Rows of one kind, below a heading of their own. */
struct bench_part {
        const char *name;
        const char *heading;        /* what is compared, for a person */
        const char *to, *of, *also; /* heads of columns; also: of the second ratio, "" where there is none */
        int (*run)(struct bench *b, const struct bench_row *row); /* 0; -errno with a line on stderr */
};

struct bench_row {
        const struct bench_part *part;
        struct point point;
        struct transport_options options;
        int cpus[END_COUNT];
        double seconds; /* of a round */
};

/* What is printed of a row: series `of` beside series `to`. */
struct judgement {
        unsigned of, to;
        unsigned also_of, also_to; /* another ratio to stand beside it; NOWHERE: none */
        double limit;              /* 0: it has none, and is not counted */
        double width;              /* half of the interval that is wanted; 0: that of the options */
        const char *note;          /* "", or what distinguishes it from other judgements of the same row */
        const char *explanation;   /* printed where the limit is missed and the other ratio reaches it; or NULL */
};

/* One row's measurement. */
struct match {
        /* One round of contender `which`: its rate. 0; -errno with a line on stderr. */
        int (*once)(void *userdata, unsigned which, double *ret_rate);
        /* What follows from the rates of a turn, as further series: from rates[n] on. May be NULL. */
        void (*derive)(void *userdata, double *rates);
        void *userdata;
        unsigned n, n_derived;
        struct judgement judgements[JUDGEMENTS_MAX];
        unsigned n_judgements;
        struct series series[MATCH_MAX];
};

/* A window of measurement, the same for every contender of a row. */
struct window {
        uint64_t warmup_ns, duration_ns;
        uint64_t chunk; /* messages that a loop by hand moves between two readings of the clock */
};

struct bench {
        struct bench_options options;
        struct bench_row *rows;
        unsigned n_rows;
        uint64_t begin_ns;
        unsigned at;       /* the row that is being measured */
        uint64_t least_ns; /* that the rows so far took for the rounds that each of them has */
        uint64_t extra_ns; /* that the row may take beyond those */
        unsigned failed, unjudged;
        unsigned counts[VERDICT_COUNT];
        char *names[VERDICT_COUNT]; /* a line each; NULL while there is none */
};

/* Adds a row of that part and point, on the CPUs of the options; the caller may change it. Never NULL. */
struct bench_row *bench_add(struct bench *b, const struct bench_part *part, const struct point *point);
/* All rows, and the summary. Returns the exit status. */
int bench_run(struct bench *b);
void bench_deinit(struct bench *b);

/* For a part's run(): measures, prints a line per judgement, and counts them. 0; what once() returned. */
int bench_compare(struct bench *b, const struct bench_row *row, struct match *m);

/* rate: of messages, as far as it is known; 0 = not. */
struct window bench_window(const struct bench_row *row, double rate);

#endif
