/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RECORDS_H
#define IPCLAB_DAEMON_RECORDS_H

/*
 * The store's records as plain structs, which daemon and api share. Members named *_json are JSON text made by the
 * daemon, and are sent to the client unchanged. Strings are malloc()ed and belong to the record; NULL stands
 * for JSON null. Times are milliseconds since the epoch, UTC, 0 for "not yet". `change` is the store's sequence number
 * of the record's last visible change.
 */

#include "schema/measure/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum state { STATE_QUEUED, STATE_RUNNING, STATE_DONE, STATE_FAILED, STATE_CANCELLED, STATE_INTERRUPTED, STATE_COUNT };

const char *state_name(enum state s);
int state_from_name(const char *name, enum state *ret); /* 0 or -EINVAL */

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
        int64_t eta_seconds;    /* -1: null (finished) */
        int64_t queue_position; /* 1 = next to start; 0: null (not waiting) */
};

struct run_record {
        int64_t id;
        int64_t change;
        int64_t experiment_id;
        char *point_json;
        uint32_t repetition; /* from 1 */
        uint32_t position;   /* in the shuffled order, from 0 */
        enum state state;
        uint32_t attempt;
        char *error;
        char *flags_json;  /* list */
        char *agents_json; /* list */
        char *result_json; /* object or NULL */
        char *environment_json;
        int64_t started_at, finished_at;
};

struct sample_record {
        int64_t change;
        int64_t experiment_id, run_id;
        char *agent; /* role */
        uint32_t thread, second;
        uint64_t interval_ns, messages, bytes;
        struct histogram *latency; /* NULL: none */
        char *counters_json;       /* object or NULL */
};

struct statistic {
        uint32_t n; /* 0: no value, all else is undefined */
        double median, min, max;
        bool has_ci95;
        double ci95_low, ci95_high;
};

/* A row per point of /results. */
struct result_record {
        char *point_json;
        uint32_t runs; /* that are done, from which the statistics are made */
        uint32_t runs_planned, runs_failed;
        struct statistic throughput_bytes_per_second, messages_per_second;
        struct statistic both_ways_bytes_per_second; /* pingpong: both directions together */
        struct statistic cost_ns; /* per call or context switch; n = 0 for workloads that move data */
        struct statistic hop_ns;  /* of context-switch: with the cost of the pipe, which cost_ns excludes */
        /* percentiles of each run's whole window, then the statistic over the runs; n = 0 without latency */
        const char *latency_kind; /* "rtt", "one_way", "call", "switch" or NULL; static */
        struct statistic latency_min, latency_p50, latency_p90, latency_p99, latency_p99_9, latency_max, latency_mean;
        /* pingpong: half of the round trips' */
        struct statistic one_way_min, one_way_p50, one_way_p90, one_way_p99, one_way_p99_9, one_way_max, one_way_mean;
        char *loop;         /* "open" or "closed", from the runs; NULL where no run has it */
        const char *steady; /* "true", "false" (one run at least is not), or NULL (unknown for a run); static */
        char *verify;       /* "none", "touch" or "checksum", likewise */
        char *counted_by; /* role of the agent that counted the following, from the runs' results; NULL without runs */
        /* n = 0 where there is no such counter */
        struct statistic cycles, instructions, l1d_read_misses, llc_misses, dtlb_misses, branch_misses;
        struct statistic context_switches;
        struct statistic cpu_ns_per_message, cpu_ns_per_gigabyte, cycles_per_byte;
        char *reasons_json;   /* {"cycles": sentence}: the reason for a missing statistic although there are runs */
        char *flags_json;     /* union over the runs */
        char *effective_json; /* {"chunk_bytes": 8192}: values in force, a list where the runs differ */
        char *error;          /* of the last failed run, or NULL */
};

void experiment_record_deinit(struct experiment_record *r);
void run_record_deinit(struct run_record *r);
void sample_record_deinit(struct sample_record *r);
void result_record_deinit(struct result_record *r);

#endif
