/* SPDX-License-Identifier: MIT */

/* The shapes of experiment, run, sample and result row; the only place that knows them in JSON. */

#include "api/handle/render/render.h"

#include "api/handle/render/shorten.h"
#include "api/http/text.h"
#include "schema/json/view.h"
#include "schema/terms.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* A list that the daemon left out is an empty one. */
static void member_list(struct json_writer *w, const char *key, const char *json) {
        json_member_raw(w, key, json ? json : "[]");
}

void render_experiment(struct json_writer *w, const struct experiment_record *e) {
        json_object_begin(w);
        json_member_i64(w, "id", e->id);
        json_member_string(w, "name", e->name);
        json_member_string(w, "state", state_name(e->state));
        json_member_raw(w, "spec", e->spec_json);
        json_member_string(w, "error", e->error);
        json_member_object(w, "progress");
        json_member_u64(w, "runs_total", e->runs_total);
        json_member_u64(w, "runs_done", e->runs_done);
        json_member_u64(w, "runs_failed", e->runs_failed);
        json_member_u64(w, "runs_cancelled", e->runs_cancelled);
        json_object_end(w);
        json_member_i64_if(w, "eta_seconds", e->eta_seconds >= 0, e->eta_seconds);
        json_member_i64_if(w, "queue_position", e->queue_position > 0, e->queue_position);
        json_member_time(w, "created_at", e->created_at);
        json_member_time(w, "started_at", e->started_at);
        json_member_time(w, "finished_at", e->finished_at);
        json_member_u64(w, "seed", e->seed);
        member_list(w, "skipped", e->skipped_json);
        json_member_raw(w, "until", e->searches ? NULL : e->until_json);
        json_member_raw(w, "search", e->searches ? e->until_json : NULL);
        member_list(w, "flags", e->flags_json);
        json_member_raw(w, "effective_spec", e->merged_json);
        json_member_string(w, "version", e->version);
        json_member_raw(w, "imported", e->imported_json);
        json_object_end(w);
}

/* Writes a member as stored, or shortened for a list. */
static void member_stored(struct json_writer *w, const char *key, const char *json, const struct run_record *run,
                          bool briefly) {
        _cleanup_(text_deinit) struct text text = {0};
        int k = json && briefly ? shorten_put(&text, json, run->id) : 0;
        if (k < 0 && w->error == 0)
                w->error = k;
        json_member_raw(w, key, text.data ? text.data : json);
}

static void put_run(struct json_writer *w, const struct run_record *run, bool briefly) {
        json_member_i64(w, "id", run->id);
        json_member_i64(w, "experiment_id", run->experiment_id);
        json_member_raw(w, "point", run->point_json);
        json_member_u64(w, "repetition", run->repetition);
        json_member_u64_if(w, "block", run->block > 0, run->block);
        json_member_u64_if(w, "rate", run->rate > 0, run->rate);
        json_member_u64(w, "position", run->position);
        json_member_string(w, "state", state_name(run->state));
        json_member_u64(w, "attempt", run->attempt);
        json_member_string(w, "error", run->error);
        member_list(w, "flags", run->flags_json);
        briefly &= shorten_may_apply(run->point_json);
        member_stored(w, "agents", run->agents_json ? run->agents_json : "[]", run, briefly);
        member_stored(w, "result", run->result_json, run, briefly);
        json_member_raw(w, "environment", run->environment_json);
        member_stored(w, "probes", run->probes_json, run, briefly);
        json_member_time(w, "started_at", run->started_at);
        json_member_time(w, "finished_at", run->finished_at);
}

void render_run_members(struct json_writer *w, const struct run_record *run) {
        put_run(w, run, false);
}

void render_run(struct json_writer *w, const struct run_record *run) {
        json_object_begin(w);
        put_run(w, run, false);
        json_object_end(w);
}

void render_run_briefly(struct json_writer *w, const struct run_record *run) {
        json_object_begin(w);
        put_run(w, run, true);
        json_object_end(w);
}

const char *render_latency_kind(const char *point_json) {
        const char *value;
        char workload[32];
        size_t length = 0;
        int w = -EINVAL;
        if (point_json && json_find_member(point_json, "workload", &value, &length) && length > 2 &&
            length - 2 < sizeof(workload)) {
                (void) snprintf(workload, sizeof(workload), "%.*s", (int) length - 2, value + 1);
                w = vocabulary_find(&workload_words, workload);
        }
        return latency_kinds[w < 0 ? WORKLOAD_STREAM : w];
}

static void member_histogram(struct json_writer *w, const struct histogram *h) {
        _cleanup_free_ char *text = NULL;
        int k = histogram_export(h, &text);
        if (k < 0 && w->error == 0)
                w->error = k;
        json_member_string(w, "histogram", text);
}

#define TICKS_PER_NINE 10u

/* 0, 0.1, 0.2 … nines, as far as a value of its own stands for them, and the highest. */
static void member_percentiles(struct json_writer *w, const struct histogram *h, const struct latency_summary *s) {
        json_member_array(w, "percentiles");
        for (unsigned tick = 0;; tick++) {
                double nines = (double) tick / TICKS_PER_NINE, beyond = pow(10, -nines);
                bool last = beyond * (double) s->count < 1;
                json_object_begin(w);
                json_member_double_if(w, "nines", !last, nines);
                json_member_double(w, "quantile", last ? 1 : 1 - beyond);
                json_member_u64(w, "value_ns", last ? s->max : histogram_quantile(h, 1 - beyond));
                json_object_end(w);
                if (last)
                        break;
        }
        json_array_end(w);
}

/* A summary, with the histogram itself and its percentiles where these are wanted; null without a latency. */
static void put_latency(struct json_writer *w, const struct histogram *h, const char *kind, bool histogram,
                        bool percentiles) {
        struct latency_summary s;
        if (!h || histogram_summarize(h, &s) < 0) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        latency_summary_put(w, &s, kind, 1);
        if (histogram)
                member_histogram(w, h);
        if (percentiles)
                member_percentiles(w, h, &s);
        json_object_end(w);
}

void render_distribution(struct json_writer *w, const struct histogram *h, const char *kind) {
        put_latency(w, h, kind, true, true);
}

void render_sample(struct json_writer *w, const struct sample_record *s, const char *latency_kind,
                   const struct sample_noise *noise, bool histogram) {
        json_object_begin(w);
        json_member_i64(w, "run_id", s->run_id);
        json_member_string(w, "agent", s->agent);
        json_member_u64(w, "thread", s->thread);
        json_member_u64(w, "second", s->second);
        json_member_u64_if(w, "begin_ns", s->begin_ns, s->begin_ns);
        json_member_u64(w, "interval_ns", s->interval_ns);
        json_member_u64(w, "messages", s->messages);
        json_member_u64(w, "bytes", s->bytes);
        json_put_key(w, "latency_ns");
        put_latency(w, s->latency, latency_kind, histogram, false);
        json_member_raw(w, "counters", s->counters_json);
        sample_noise_put(noise, s, w);
        json_object_end(w);
}

#define NO_SERIAL_INTERVAL                                                                                             \
        "the runs are so much alike that they count as no more than effective_runs independent ones: even from the "   \
        "least "                                                                                                       \
        "to the greatest they do not cover the median at 95 %; more runs, at other times, do"

static void member_statistic(struct json_writer *w, const char *key, const struct statistic *s) {
        json_put_key(w, key);
        if (s->n == 0) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        json_member_u64(w, "n", s->n);
        json_member_double(w, "median", s->median);
        json_member_double(w, "min", s->min);
        json_member_double(w, "max", s->max);
        json_member_double_if(w, "cov", s->has_variation, s->variation);
        json_member_double_if(w, "hodges_lehmann", s->has_hodges_lehmann, s->hodges_lehmann);
        json_put_key(w, "ci95");
        if (s->has_ci95) {
                json_array_begin(w);
                json_put_double(w, s->ci95_low);
                json_put_double(w, s->ci95_high);
                json_array_end(w);
                json_member_double(w, "level", s->level);
        } else {
                json_put_null(w);
                json_member_null(w, "level");
        }
        json_member_double_if(w, "widening", s->widening > 0, s->widening);
        if (!s->has_ci95 && s->widening > 1)
                json_member_string(w, "ci95_reason", NO_SERIAL_INTERVAL);
        json_object_end(w);
}

void render_disputed(struct json_writer *w, const char *key, const uint32_t n[DISPUTED_COUNT]) {
        json_member_object(w, key);
        for (enum disputed i = 0; i < DISPUTED_COUNT; i++)
                if (n[i] > 0)
                        json_member_u64(w, disputed_flags[i].flag, n[i]);
        json_object_end(w);
}

void render_interval(struct json_writer *w, const char *key, bool known, double low, double high, double level) {
        json_put_key(w, key);
        if (!known) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        json_member_double(w, "low", low);
        json_member_double(w, "high", high);
        json_member_double_if(w, "level", level > 0, level);
        json_object_end(w);
}

/* All of a group, in an object with their kind where the group has one. */
static void member_figures(struct json_writer *w, enum figure_group group, const char *kind,
                           const struct result_record *row) {
        const char *object = figure_groups[group].in_row;
        if (object)
                json_put_key(w, object);
        if (object && !kind) {
                json_put_null(w);
                return;
        }
        if (object) {
                json_object_begin(w);
                json_member_string(w, "kind", kind);
        }
        for (size_t f = 0; f < FIGURE_COUNT; f++)
                if (figure_terms[f].group == group) {
                        char name[64];
                        figure_name((enum figure) f, name, sizeof(name));
                        member_statistic(w, object ? figure_terms[f].name : name, &row->figures[f]);
                }
        if (object)
                json_object_end(w);
}

/* The figures that charts are drawn from: the usual ones, and every percentile. */
static bool is_charted(enum figure f) {
        return figure_terms[f].usual || figure_terms[f].group == FIGURES_LATENCY;
}

static void member_charted(struct json_writer *w, enum figure_group group, const struct result_record *row) {
        for (enum figure f = 0; f < FIGURE_COUNT; f++)
                if (figure_terms[f].group == group && is_charted(f) && row->figures[f].n > 0)
                        member_statistic(w, figure_terms[f].name, &row->figures[f]);
}

/* The latencies as far as they are drawn. */
static void member_curve(struct json_writer *w, const struct histogram *h) {
        struct latency_summary s;
        if (!h || histogram_summarize(h, &s) < 0)
                return;
        json_member_object(w, "latency_histogram");
        member_percentiles(w, h, &s);
        json_object_end(w);
}

void render_result_charted(struct json_writer *w, const struct result_record *row, const struct histogram *latency) {
        json_object_begin(w);
        json_member_raw(w, "point", row->point_json);
        json_member_u64(w, "runs", row->runs);
        json_member_u64(w, "runs_planned", row->runs_planned);
        json_member_u64(w, "runs_failed", row->runs_failed);
        member_charted(w, FIGURES_RATE, row);
        if (row->latency_kind && row->figures[FIGURE_LATENCY_P50].n > 0) {
                json_member_object(w, figure_groups[FIGURES_LATENCY].in_row);
                json_member_string(w, "kind", row->latency_kind);
                member_charted(w, FIGURES_LATENCY, row);
                json_object_end(w);
                member_curve(w, latency);
        }
        member_charted(w, FIGURES_PER_UNIT, row);
        json_member_raw(w, "effective", row->effective_json ? row->effective_json : "{}");
        member_list(w, "flags", row->flags_json);
        json_member_string(w, "error", row->error);
        json_object_end(w);
}

/* Writes a run's figures of a group, as single numbers. */
static void member_numbers(struct json_writer *w, enum figure_group group, const struct json_part *object) {
        double number;
        for (enum figure f = 0; f < FIGURE_COUNT; f++)
                if (figure_terms[f].group == group && is_charted(f) &&
                    json_part_double(json_part_get(object, figure_terms[f].name), &number))
                        json_member_double(w, figure_terms[f].name, number);
}

int render_run_charted(struct json_writer *w, const char *point_json, const struct json_part *result) {
        const struct json_part *objects[FIGURES_GROUPS];
        _cleanup_free_ char *kind = NULL;
        figure_objects(result, objects);
        int k = json_part_string(json_part_get(objects[FIGURES_LATENCY], "kind"), &kind);
        json_object_begin(w);
        json_member_raw(w, "point", point_json);
        json_member_object(w, "result");
        member_numbers(w, FIGURES_RATE, objects[FIGURES_RATE]);
        member_numbers(w, FIGURES_PER_UNIT, objects[FIGURES_PER_UNIT]);
        if (kind) {
                json_member_object(w, figure_groups[FIGURES_LATENCY].in_run);
                json_member_string(w, "kind", kind);
                member_numbers(w, FIGURES_LATENCY, objects[FIGURES_LATENCY]);
                json_object_end(w);
        }
        json_object_end(w);
        json_object_end(w);
        return k == -EINVAL ? 0 : k;
}

/* How much a run depends on the one before it, and the interval that counts it. */
static void member_autocorrelation(struct json_writer *w, const struct result_record *row) {
        const struct serial *s = &row->serial;
        char name[64];
        json_put_key(w, "autocorrelation");
        if (!s->known) {
                json_put_null(w);
                return;
        }
        figure_name(row->serial_figure, name, sizeof(name));
        json_object_begin(w);
        json_member_string(w, "figure", name);
        json_member_double(w, "lag1", s->correlation);
        json_member_double(w, "effective_runs", s->effective_runs);
        render_interval(w, "interval", s->interval.has_interval, s->interval.low, s->interval.high, s->interval.level);
        if (!s->interval.has_interval)
                json_member_string(w, "interval_reason", NO_SERIAL_INTERVAL);
        json_object_end(w);
}

void render_result(struct json_writer *w, const struct result_record *row, const struct histogram *latency,
                   bool histogram) {
        json_object_begin(w);
        json_member_raw(w, "point", row->point_json);
        json_member_u64_if(w, "rate", row->rate > 0, row->rate);
        json_member_u64(w, "runs", row->runs);
        json_member_u64(w, "runs_planned", row->runs_planned);
        json_member_u64(w, "runs_failed", row->runs_failed);
        json_member_array(w, "run_ids");
        for (uint32_t i = 0; row->run_ids && i < row->runs; i++)
                json_put_i64(w, row->run_ids[i]);
        json_array_end(w);
        member_figures(w, FIGURES_RATE, NULL, row);
        member_figures(w, FIGURES_LATENCY, row->figures[FIGURE_LATENCY_P50].n > 0 ? row->latency_kind : NULL, row);
        member_figures(w, FIGURES_ONE_WAY, row->figures[FIGURE_ONE_WAY_P50].n > 0 ? "one_way" : NULL, row);
        json_member_string(w, "loop", row->loop);
        json_member_raw(w, "steady", row->steady);
        member_autocorrelation(w, row);
        json_member_string(w, "verify", row->verify);
        json_member_string(w, "counted_by", row->counted_by);
        for (enum figure_group group = FIGURES_PER_UNIT; group < FIGURES_GROUPS; group++)
                member_figures(w, group, NULL, row);
        json_member_raw(w, "reasons", row->reasons_json ? row->reasons_json : "{}");
        json_member_raw(w, "effective", row->effective_json ? row->effective_json : "{}");
        if (histogram) {
                json_put_key(w, "latency_histogram");
                render_distribution(w, latency, row->latency_kind);
        }
        member_list(w, "flags", row->flags_json);
        json_member_raw(w, "flag_runs", row->flag_runs_json ? row->flag_runs_json : "{}");
        json_member_string(w, "error", row->error);
        json_object_end(w);
}
