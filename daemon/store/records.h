/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The store's records as plain structs, which daemon and api share. Members named *_json are JSON text made by the
 * daemon, and are sent to the client unchanged. Strings are malloc()ed and belong to the record; NULL stands
 * for JSON null. Times are milliseconds since the epoch, UTC, 0 for "not yet". `change` is the store's sequence number
 * of the record's last visible change.
 */

#include "daemon/analysis/statistics/order.h"
#include "daemon/analysis/statistics/serial.h"
#include "schema/figures.h"
#include "schema/measure/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum state { STATE_QUEUED, STATE_RUNNING, STATE_DONE, STATE_FAILED, STATE_CANCELLED, STATE_INTERRUPTED, STATE_COUNT };

const char *state_name(enum state s);
int state_from_name(const char *name, enum state *ret); /* 0 or -EINVAL */

/* Which experiments: those in `state` where by_state, and those whose name or search_text() of the specification as
 * posted contains `words`, in either case of ASCII letters; NULL: all. */
struct experiment_filter {
        bool by_state;
        enum state state;
        const char *words;
};

struct experiment_record {
        int64_t id;
        int64_t change;
        char *name;
        enum state state;
        char *error;
        char *spec_json;    /* as posted, but for white space between its tokens */
        char *merged_json;  /* preset and overrides as one object */
        char *skipped_json; /* list of {"point", "reason"} */
        uint64_t seed;
        char *version;
        int64_t created_at, started_at, finished_at;
        uint32_t runs_total, runs_done, runs_failed, runs_cancelled;
        int64_t measured_ms;    /* length of the done runs together */
        bool searches;          /* for a rate; until_json then has its progress */
        char *until_json;       /* object; NULL: it has the repetitions of its spec */
        char *flags_json;       /* list: "slower_than_baseline:NAME" */
        char *imported_json;    /* {"host", "sha256", "taken_at"}, of another host's; NULL: it is this host's own */
        int64_t eta_seconds;    /* -1: null (finished) */
        int64_t queue_position; /* 1 = next to start; 0: null (not waiting) */
};

struct run_record {
        int64_t id;
        int64_t change;
        int64_t experiment_id;
        char *point_json;
        uint32_t repetition; /* from 1 */
        uint32_t block;      /* from 1; 0: it is of none */
        uint64_t rate;       /* messages per second, of a search; 0: the spec's */
        uint32_t position;   /* in the order in which they run, from 0 */
        enum state state;
        uint32_t attempt;
        char *error;
        char *flags_json;  /* list */
        char *agents_json; /* list */
        char *result_json; /* object or NULL */
        char *environment_json;
        char *probes_json; /* object or NULL */
        int64_t started_at, finished_at;
};

struct sample_record {
        int64_t change;
        int64_t experiment_id, run_id;
        char *agent; /* role */
        uint32_t thread, second;
        uint64_t begin_ns; /* CLOCK_MONOTONIC of its boot; 0: of an earlier version, which did not store it */
        uint64_t interval_ns, messages, bytes;
        char *counters_json; /* object or NULL */
        /* To be stored: as the agent encoded it (HdrHistogram V2), with the exact sum beside it; NULL: none. */
        uint8_t *latency_v2;
        size_t latency_length;
        uint64_t latency_sum_ns;
        struct histogram *latency; /* as it was read from the store; NULL: none */
};

/* A run of another host. */
struct imported_run {
        struct run_record run; /* with its point; ids and change are not used */
        uint32_t ordinal;      /* of its point, in the rows' order */
        char *role;            /* of the agent whose counts stand for the window */
        uint64_t window_ns, messages, bytes;
        struct histogram *latency; /* of the window; NULL: none */
};
void imported_run_deinit(struct imported_run *r);

/* The file that an experiment of another host came as. */
struct bundle_file {
        char sha256[65];  /* of the JSON, in hex */
        const char *host; /* a label; NULL: none */
        const void *data; /* gzip */
        size_t length;
};

/* An experiment that was deleted. */
struct deletion_record {
        int64_t change, experiment_id;
};

/* A baseline that was pinned, or whose name was freed. */
struct pin_record {
        int64_t change;
        int64_t experiment_id; /* 0: the name is free */
        char *name;
};

/* What changed, with its number in the sequence of changes; exactly one of the others is non-NULL. */
struct change_record {
        int64_t change;
        struct experiment_record *experiment;
        struct run_record *run;
        struct sample_record *sample;
        struct deletion_record *deletion;
        struct pin_record *pin;
};

/* A row per point of /results. */
struct result_record {
        char *point_json;
        uint64_t rate; /* messages per second, of a search; 0: the spec's */
        uint32_t runs; /* that are done, from which the statistics are made */
        uint32_t runs_planned, runs_failed;
        int64_t *run_ids;         /* of the done ones */
        const char *latency_kind; /* "rtt", "one_way", "call", "switch" or NULL; static */
        /* A statistic of the runs' own figures; n = 0 where no run has one. */
        struct statistic figures[FIGURE_COUNT];
        enum figure serial_figure; /* the one that the row is ranked by: its runs, in their order in time */
        struct serial serial;
        char *loop;           /* "open" or "closed", from the runs; NULL where none has it */
        const char *steady;   /* "true", "false" (of one run at least), or NULL: of one it is not known; static */
        char *verify;         /* "none", "touch" or "checksum", likewise */
        char *counted_by;     /* role of the agent whose counters the figures have, from the runs' results; NULL without
                                 runs */
        char *reasons_json;   /* {"cycles": sentence}: why a statistic is missing although there are runs */
        char *flags_json;     /* union over the runs */
        char *flag_runs_json; /* {"noisy:load": 2}: in how many of them each is */
        char *effective_json; /* {"chunk_bytes": 8192}: values in force, a list where the runs differ */
        char *error;          /* of the last failed run, or NULL */
};

/* A name for an experiment that later ones are compared with. */
#define BASELINE_NAME_MAX 64u
#define BASELINES_MAX 1000u
struct baseline_record {
        char *name;
        int64_t experiment_id;
        char *experiment_name; /* NULL: it has none */
        int64_t pinned_at;
};
void baseline_record_deinit(struct baseline_record *b);

/* The comparison of a later experiment of a baseline's spec with it. */
struct check_record {
        int64_t experiment_id;
        char *experiment_name; /* NULL: it has none */
        char *version;
        int64_t finished_at;
        bool alike;                                     /* nothing in the two environments is unlike */
        uint32_t undecided, faster, slower, equivalent; /* figures, of all rows */
        char *error;                                    /* why it could not be compared; NULL: it was */
        char *differences_json;                         /* list, of the environments */
};
void check_records_free(struct check_record *checks, size_t n);

/* One figure of one point over these experiments, oldest first. */
struct series_value {
        int64_t experiment_id;
        double ratio; /* over the baseline */
        bool has_interval;
        double low, high;
        double level; /* of the interval; 0: it was stored before levels were */
        char verdict[12];
};
struct series_record {
        char *point_json, *figure;
        struct series_value *values;
        size_t n;
};
void series_records_free(struct series_record *series, size_t n);

void experiment_record_deinit(struct experiment_record *r);
void run_record_deinit(struct run_record *r);
void sample_record_deinit(struct sample_record *r);
void result_record_deinit(struct result_record *r);
