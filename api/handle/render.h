/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_RENDER_H
#define IPCLAB_API_RENDER_H

/*
 * Records as the JSON that clients see. Every key is always there; what is not known is null. Times are ISO 8601 in
 * UTC with milliseconds.
 */

#include "daemon/service/service.h"
#include "schema/json/json.h"

#define RENDER_TIME_MAX 40
/* ISO 8601 in UTC of milliseconds since the epoch; false, and nothing written, for "not yet". */
bool render_time_text(int64_t ms, char ret[static RENDER_TIME_MAX]);

void render_experiment(struct json_writer *w, const struct experiment_record *e);
void render_run(struct json_writer *w, const struct run_record *run);
void render_run_briefly(struct json_writer *w, const struct run_record *run); /* in lists and events: shorten.h */
/* latency_kind: "rtt" or "one_way", NULL when the sample has no latency. */
void render_sample(struct json_writer *w, const struct sample_record *s, const char *latency_kind, bool histogram);
/* With `histogram`, the latencies of all its runs together, which may be NULL, are a member. */
void render_result(struct json_writer *w, const struct result_record *row, const struct histogram *latency,
                   bool histogram);
/* A histogram whole: its summary, its HdrHistogram V2, and its percentiles at log-nines for drawing. NULL, or empty:
 * null. */
void render_distribution(struct json_writer *w, const struct histogram *h, const char *kind);

/* What the latencies of a point's samples are: "rtt" for a pingpong, "one_way" else. */
const char *render_latency_kind(const char *point_json);

#endif
