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
HANDLER(handle_delete);
/* handle-runs.c */
HANDLER(handle_runs);
HANDLER(handle_run);
/* results.c */
HANDLER(handle_results);
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

#endif
