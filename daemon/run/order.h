/* SPDX-License-Identifier: MIT */
#pragma once

/* What a run is made from, and what becomes of it: the scheduler's order to the runner, and the runner's verdict. */

#include "daemon/admission/queues.h"
#include "daemon/placement/placement.h"
#include "daemon/result/probes.h"
#include "daemon/store/records.h"

struct environment;

/* The run to execute. Everything pointed to must outlive the runner. */
struct run_order {
        int64_t experiment_id, run_id;
        const struct spec *spec;
        const struct point *point;
        const struct run_placement *placement;
        uint64_t chunk_bytes;                    /* the size of the pieces of a message; 0 = whole */
        uint64_t queue_settings[QUEUE_SETTINGS]; /* of the run's IPC namespace; 0: kernel default */
        uint64_t timeout_ns;
        struct environment *environment; /* before the run; its settings are observed during it. NULL: not observed */
};

#define RUN_FLAGS_MAX 32u

struct run_verdict {
        enum state state; /* done, failed, cancelled, interrupted */
        char *error;      /* words of a failure */
        char *agents_json, *result_json;
        const char *flags[RUN_FLAGS_MAX]; /* static */
        size_t n_flags;
        struct run_probes *probes; /* NULL: no probe has come, not even before the warm-up */
};

void run_verdict_deinit(struct run_verdict *v);
