/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_HANDLERS_H
#define IPCLAB_API_HANDLERS_H

/* The functions that the route table names; see struct route for what they promise. */

#include "api/handle/state.h"

#define HANDLER(name) int name(struct api *a, const struct request *q, struct response *p, struct refusal *r)

/* handle-experiments.c */
HANDLER(handle_submit);
HANDLER(handle_experiments);
HANDLER(handle_experiment);
HANDLER(handle_cancel);
HANDLER(handle_extend);
HANDLER(handle_retry);
HANDLER(handle_delete);
/* handle-runs.c */
HANDLER(handle_runs);
HANDLER(handle_run);
/* results.c */
HANDLER(handle_results);
/* findings.c */
HANDLER(handle_findings);
/* advice.c */
HANDLER(handle_advice);
HANDLER(handle_settle);
/* baselines.c */
HANDLER(handle_pin_baseline);
HANDLER(handle_baselines);
HANDLER(handle_baseline);
HANDLER(handle_remove_baseline);
HANDLER(handle_history);
/* compare.c */
HANDLER(handle_compare);
/* histograms.c */
HANDLER(handle_run_histogram);
/* handle-samples.c */
HANDLER(handle_experiment_samples);
HANDLER(handle_run_samples);
/* handle-events.c */
HANDLER(handle_events);
HANDLER(handle_experiment_events);
/* handle-host.c */
HANDLER(handle_presets);
HANDLER(handle_transports);
HANDLER(handle_topology);
HANDLER(handle_environment);
HANDLER(handle_health);
HANDLER(handle_metrics);
HANDLER(handle_openapi);
/* assets.c */
HANDLER(handle_dashboard);
HANDLER(handle_asset);

/* What several of them share: the header, NULL where there is none (400 where there are two); and 201 with the
 * experiment that was submitted. */
int request_idempotency_key(const struct request *q, const char **ret, struct refusal *r);
int respond_submitted(struct api *a, int64_t id, bool created, struct response *p, struct refusal *r);

#endif
