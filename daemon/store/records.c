/* SPDX-License-Identifier: MIT */

/*
 * The names of states, and the functions that free records. Records are plain data: the store fills them, the api
 * prints them, and their owner frees them here.
 */

#include "daemon/store/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[STATE_COUNT] = {
        [STATE_QUEUED] = "queued", [STATE_RUNNING] = "running",     [STATE_DONE] = "done",
        [STATE_FAILED] = "failed", [STATE_CANCELLED] = "cancelled", [STATE_INTERRUPTED] = "interrupted",
};

const char *state_name(enum state s) {
        return (unsigned) s < STATE_COUNT ? state_names[s] : NULL;
}

int state_from_name(const char *name, enum state *ret) {
        for (unsigned i = 0; i < STATE_COUNT; i++)
                if (strcmp(name, state_names[i]) == 0) {
                        *ret = (enum state) i;
                        return 0;
                }
        return -EINVAL;
}

void experiment_record_deinit(struct experiment_record *r) {
        free(r->name);
        free(r->error);
        free(r->spec_json);
        free(r->merged_json);
        free(r->skipped_json);
        free(r->until_json);
        free(r->flags_json);
        free(r->version);
        free(r->imported_json);
        memset(r, 0, sizeof(*r));
}

void run_record_deinit(struct run_record *r) {
        free(r->point_json);
        free(r->error);
        free(r->flags_json);
        free(r->agents_json);
        free(r->result_json);
        free(r->environment_json);
        free(r->probes_json);
        memset(r, 0, sizeof(*r));
}

void sample_record_deinit(struct sample_record *r) {
        free(r->agent);
        free(r->latency_v2);
        free(r->latency);
        free(r->counters_json);
        memset(r, 0, sizeof(*r));
}

void result_record_deinit(struct result_record *r) {
        free(r->run_ids);
        free(r->point_json);
        free(r->flags_json);
        free(r->flag_runs_json);
        free(r->reasons_json);
        free(r->effective_json);
        free(r->loop);
        free(r->verify);
        free(r->counted_by);
        free(r->error);
        memset(r, 0, sizeof(*r));
}

void imported_run_deinit(struct imported_run *r) {
        run_record_deinit(&r->run);
        free(r->role);
        free(r->latency);
        *r = (struct imported_run){0};
}
