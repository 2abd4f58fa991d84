/* SPDX-License-Identifier: MIT */

/* The shapes of experiment, run, sample and result row; the only place that knows them in JSON. */

#include "api/handle/render.h"

#include "api/handle/shorten.h"
#include "api/http/text.h"
#include "schema/util.h"

#include <math.h>
#include <string.h>

bool render_time_text(int64_t ms, char ret[static RENDER_TIME_MAX]) {
        struct tm tm;
        time_t seconds = (time_t) (ms / 1000);
        if (ms <= 0 || !gmtime_r(&seconds, &tm))
                return false;
        size_t n = strftime(ret, RENDER_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(ret + n, RENDER_TIME_MAX - n, ".%03dZ", (int) (ms % 1000));
        return true;
}

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
        json_put_key(w, "progress");
        json_object_begin(w);
        json_member_u64(w, "runs_total", e->runs_total);
        json_member_u64(w, "runs_done", e->runs_done);
        json_member_u64(w, "runs_failed", e->runs_failed);
        json_member_u64(w, "runs_cancelled", e->runs_cancelled);
        json_object_end(w);
        if (e->eta_seconds >= 0)
                json_member_i64(w, "eta_seconds", e->eta_seconds);
        else
                json_member_null(w, "eta_seconds");
        if (e->queue_position > 0)
                json_member_i64(w, "queue_position", e->queue_position);
        else
                json_member_null(w, "queue_position");
        json_member_time(w, "created_at", e->created_at);
        json_member_time(w, "started_at", e->started_at);
        json_member_time(w, "finished_at", e->finished_at);
        json_member_u64(w, "seed", e->seed);
        member_list(w, "skipped", e->skipped_json);
        json_member_raw(w, "until", e->until_json);
        member_list(w, "flags", e->flags_json);
        json_member_raw(w, "effective_spec", e->merged_json);
        json_member_string(w, "version", e->version);
        json_object_end(w);
}

/* As stored, or with what is too long for a list left out. */
static void member_stored(struct json_writer *w, const char *key, const char *json, const struct run_record *run,
                          bool briefly) {
        _cleanup_(text_deinit) struct text text = {0};
        if (json && briefly) {
                shorten_put(&text, json, run->id);
                if (text.error < 0 && w->error == 0)
                        w->error = text.error;
        }
        json_member_raw(w, key, text.data ? text.data : json);
}

static void put_run(struct json_writer *w, const struct run_record *run, bool briefly) {
        json_object_begin(w);
        json_member_i64(w, "id", run->id);
        json_member_i64(w, "experiment_id", run->experiment_id);
        json_member_raw(w, "point", run->point_json);
        json_member_u64(w, "repetition", run->repetition);
        if (run->block > 0)
                json_member_u64(w, "block", run->block);
        else
                json_member_null(w, "block");
        json_member_u64(w, "position", run->position);
        json_member_string(w, "state", state_name(run->state));
        json_member_u64(w, "attempt", run->attempt);
        json_member_string(w, "error", run->error);
        member_list(w, "flags", run->flags_json);
        member_stored(w, "agents", run->agents_json ? run->agents_json : "[]", run, briefly);
        member_stored(w, "result", run->result_json, run, briefly);
        json_member_raw(w, "environment", run->environment_json);
        json_member_time(w, "started_at", run->started_at);
        json_member_time(w, "finished_at", run->finished_at);
        json_object_end(w);
}

void render_run(struct json_writer *w, const struct run_record *run) {
        put_run(w, run, false);
}

void render_run_briefly(struct json_writer *w, const struct run_record *run) {
        put_run(w, run, true);
}

static const struct {
        const char *workload, *kind;
} kinds[] = {{"pingpong", "rtt"}, {"syscall", "call"}, {"context-switch", "switch"}};

const char *render_latency_kind(const char *point_json) {
        struct json *point;
        if (!point_json || json_parse(point_json, strlen(point_json), &point, NULL) < 0)
                return "one_way";
        const char *workload = NULL;
        const struct json *member = json_get(point, "workload");
        if (member)
                (void) json_as_string(member, &workload); /* stays NULL when it is none */
        const char *kind = "one_way";
        for (size_t i = 0; workload && i < ELEMENTS(kinds); i++)
                if (strcmp(workload, kinds[i].workload) == 0)
                        kind = kinds[i].kind;
        json_free(point);
        return kind;
}

static void put_summary(struct json_writer *w, const struct latency_summary *s, const char *kind) {
        json_member_u64(w, "min", s->min);
        json_member_u64(w, "p50", s->p50);
        json_member_u64(w, "p90", s->p90);
        json_member_u64(w, "p99", s->p99);
        json_member_u64(w, "p99_9", s->p99_9);
        json_member_u64(w, "max", s->max);
        json_member_u64(w, "mean", (uint64_t) (s->mean + 0.5));
        json_member_string(w, "kind", kind);
        json_member_u64(w, "count", s->count);
}

static void member_histogram(struct json_writer *w, const struct histogram *h) {
        _cleanup_free_ char *text = NULL;
        int k = histogram_export(h, &text);
        if (k < 0 && w->error == 0)
                w->error = k;
        json_member_string(w, "histogram", text);
}

static void render_latency(struct json_writer *w, const struct histogram *h, const char *kind, bool histogram) {
        struct latency_summary s;
        if (!h || histogram_summarize(h, &s) < 0) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        put_summary(w, &s, kind);
        if (histogram)
                member_histogram(w, h);
        json_object_end(w);
}

#define TICKS_PER_NINE 10u

/* 0, 0.1, 0.2 … nines, as far as a value of its own stands for them, and the highest. */
static void member_percentiles(struct json_writer *w, const struct histogram *h, const struct latency_summary *s) {
        json_put_key(w, "percentiles");
        json_array_begin(w);
        for (unsigned tick = 0;; tick++) {
                double nines = (double) tick / TICKS_PER_NINE, beyond = pow(10, -nines);
                bool last = beyond * (double) s->count < 1;
                json_object_begin(w);
                json_put_key(w, "nines");
                if (last)
                        json_put_null(w);
                else
                        json_put_double(w, nines);
                json_member_double(w, "quantile", last ? 1 : 1 - beyond);
                json_member_u64(w, "value_ns", last ? s->max : histogram_quantile(h, 1 - beyond));
                json_object_end(w);
                if (last)
                        break;
        }
        json_array_end(w);
}

void render_distribution(struct json_writer *w, const struct histogram *h, const char *kind) {
        struct latency_summary s;
        if (!h || histogram_summarize(h, &s) < 0) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        put_summary(w, &s, kind);
        member_histogram(w, h);
        member_percentiles(w, h, &s);
        json_object_end(w);
}

void render_sample(struct json_writer *w, const struct sample_record *s, const char *latency_kind, bool histogram) {
        json_object_begin(w);
        json_member_i64(w, "run_id", s->run_id);
        json_member_string(w, "agent", s->agent);
        json_member_u64(w, "thread", s->thread);
        json_member_u64(w, "second", s->second);
        json_put_key(w, "begin_ns");
        if (s->begin_ns)
                json_put_u64(w, s->begin_ns);
        else
                json_put_null(w);
        json_member_u64(w, "interval_ns", s->interval_ns);
        json_member_u64(w, "messages", s->messages);
        json_member_u64(w, "bytes", s->bytes);
        json_put_key(w, "latency_ns");
        render_latency(w, s->latency, latency_kind, histogram);
        json_member_raw(w, "counters", s->counters_json);
        json_object_end(w);
}

static void member_if(struct json_writer *w, const char *key, bool known, double value) {
        if (known)
                json_member_double(w, key, value);
        else
                json_member_null(w, key);
}

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
        member_if(w, "cov", s->has_variation, s->variation);
        member_if(w, "hodges_lehmann", s->has_hodges_lehmann, s->hodges_lehmann);
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

void render_result(struct json_writer *w, const struct result_record *row, const struct histogram *latency,
                   bool histogram) {
        json_object_begin(w);
        json_member_raw(w, "point", row->point_json);
        json_member_u64(w, "runs", row->runs);
        json_member_u64(w, "runs_planned", row->runs_planned);
        json_member_u64(w, "runs_failed", row->runs_failed);
        member_figures(w, FIGURES_RATE, NULL, row);
        member_figures(w, FIGURES_LATENCY, row->figures[FIGURE_LATENCY_P50].n > 0 ? row->latency_kind : NULL, row);
        member_figures(w, FIGURES_ONE_WAY, row->figures[FIGURE_ONE_WAY_P50].n > 0 ? "one_way" : NULL, row);
        json_member_string(w, "loop", row->loop);
        json_member_raw(w, "steady", row->steady);
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
