/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Records as the JSON that clients see. Every key is always there; what is not known is null. Times are ISO 8601 in
 * UTC with milliseconds.
 */

#include "api/handle/render/sample-noise.h"
#include "daemon/service/service.h"
#include "schema/json/json.h"
#include "schema/json/view.h"

void render_experiment(struct json_writer *w, const struct experiment_record *e);
void render_run(struct json_writer *w, const struct run_record *run);
void render_run_members(struct json_writer *w, const struct run_record *run); /* of the object that is open */
void render_run_briefly(struct json_writer *w, const struct run_record *run); /* in lists and events: shorten.h */
/* latency_kind: "rtt" or "one_way", NULL when the sample has no latency. noise: of its run. */
void render_sample(struct json_writer *w, const struct sample_record *s, const char *latency_kind,
                   const struct sample_noise *noise, bool histogram);
/* With `histogram`, the latencies of all its runs together, which may be NULL, are a member. */
void render_result(struct json_writer *w, const struct result_record *row, const struct histogram *latency,
                   bool histogram);
/* For documents with the figures of a whole experiment: the members of a row, and of a run with its result, that charts
 * are drawn from. What was not measured is left out, and without `latency`, that of all runs of the row, its curve. The
 * latter: 0 or -ENOMEM. */
void render_result_charted(struct json_writer *w, const struct result_record *row, const struct histogram *latency);
int render_run_charted(struct json_writer *w, const char *point_json, const struct json_part *result);
/* A histogram whole: its summary, its HdrHistogram V2, and its percentiles at log-nines for drawing. NULL, or empty:
 * null. */
void render_distribution(struct json_writer *w, const struct histogram *h, const char *kind);

/* An interval as a member: {"low", "high", "level"}, or null when it is not known. level 0: not known. */
/* An object: in how many runs is each flag that disputes their figures, and is in some. */
void render_disputed(struct json_writer *w, const char *key, const uint32_t n[DISPUTED_COUNT]);
void render_interval(struct json_writer *w, const char *key, bool known, double low, double high, double level);

/* The kind of the latencies of a point's samples: "rtt" for a pingpong, "one_way" else. */
const char *render_latency_kind(const char *point_json);
