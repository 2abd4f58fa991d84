/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_BENCH_OPTIONS_H
#define IPCLAB_TESTS_BENCH_OPTIONS_H

/* The options that every bench has; a bench adds its own. */

#include "schema/terms.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bench_options {
        const char *program;
        const char *agent;
        unsigned rounds, rounds_max; /* per row: at least, at most */
        double seconds;              /* of a round's window */
        double row_seconds;          /* after which a row ends, settled or not */
        double minutes;              /* that the whole is to take; 0 = as long as its rows do */
        double width;                /* half of the interval, at which a row is settled */
        int cpus[2];                 /* -1: not pinned */
        enum verify verify;
        const char *part;        /* NULL: all */
        int transport, workload; /* -1: all */
        uint64_t size;           /* 0: all */
        bool quick, check;
};

/* What a bench has of its own. */
struct bench_extra {
        const struct option *table;             /* ends with {} */
        int (*parse)(int c, const char *value); /* 0; -EINVAL for what is no value of this option */
        const char *usage;                      /* lines for --help */
        const char *const *parts;               /* ends with NULL */
        double minutes, quick_minutes;          /* what the whole takes, by default */
};

/* 0: go on; 1: help was requested and printed; -EINVAL with a line on stderr. */
int bench_options_parse(int argc, char **argv, const struct bench_extra *extra, struct bench_options *ret);

/* Whether --part, --transport, --workload and --size want this. */
bool bench_options_want(const struct bench_options *o, const char *part, enum transport t, enum workload w,
                        uint64_t size);

/* Numbers, whole and within limits, or -EINVAL. */
int bench_parse_u64(const char *value, uint64_t min, uint64_t max, uint64_t *ret);
/* The value of a word; 0 or -EINVAL. */
int bench_parse_word(const struct vocabulary *words, const char *value, int *ret);

#endif
