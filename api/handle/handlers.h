/* SPDX-License-Identifier: MIT */
#pragma once

/* The functions of the route table; struct route documents their contract. */

#include "api/state.h"

#define HANDLER(name) int name(struct api *a, const struct request *q, struct response *p, struct refusal *r)

/* experiments.c */
HANDLER(handle_submit);
HANDLER(handle_experiments);
HANDLER(handle_experiment);
HANDLER(handle_cancel);
HANDLER(handle_extend);
HANDLER(handle_retry);
HANDLER(handle_delete);
/* exported.c */
HANDLER(handle_exported);
/* runs.c */
HANDLER(handle_runs);
HANDLER(handle_run);
/* results.c */
HANDLER(handle_results);
/* findings.c */
HANDLER(handle_findings);
/* bundle.c */
HANDLER(handle_bundle);
/* bundle-import.c */
HANDLER(handle_take_bundle);
/* report.c */
HANDLER(handle_report);
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
/* samples.c */
HANDLER(handle_experiment_samples);
HANDLER(handle_run_samples);
/* events.c */
HANDLER(handle_events);
HANDLER(handle_experiment_events);
/* host.c */
HANDLER(handle_document);
HANDLER(handle_host);
HANDLER(handle_health);
HANDLER(handle_metrics);
HANDLER(handle_openapi);
/* assets.c */
HANDLER(handle_dashboard);
HANDLER(handle_asset);

/* Shared by several handlers: the body, which the caller frees (400 where it is not JSON); the header, NULL where there
 * is none (400 where there are two); the experiment; and 201 with the one that was submitted. */
int request_json(const struct request *q, struct json **ret, struct refusal *r);
int request_idempotency_key(const struct request *q, const char **ret, struct refusal *r);
int respond_experiment(struct api *a, int64_t id, int status, struct response *p, struct refusal *r);
int respond_submitted(struct api *a, int64_t id, bool created, struct response *p, struct refusal *r);
