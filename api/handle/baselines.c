/* SPDX-License-Identifier: MIT */

/* Baselines: pin, list, show, forget. */

#include "api/handle/handlers.h"
#include "api/handle/render/lists.h"
#include "api/handle/render/render.h"
#include "schema/util.h"

#include <math.h>
#include <string.h>

#define HISTORY_LIMIT_DEFAULT 100u

static void put_baseline(struct json_writer *w, const struct baseline_record *b) {
        json_object_begin(w);
        json_member_string(w, "name", b->name);
        json_member_i64(w, "experiment_id", b->experiment_id);
        json_member_string(w, "experiment_name", b->experiment_name);
        json_member_time(w, "pinned_at", b->pinned_at);
        json_object_end(w);
}

static int respond_baseline(struct api *a, const char *name, struct response *p, struct refusal *r) {
        _cleanup_(baseline_record_deinit) struct baseline_record b = {0};
        int k = service_baseline(a->service, name, &b, r);
        if (k < 0)
                return k;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        put_baseline(&w, &b);
        return response_json(p, 200, &w);
}

HANDLER(handle_baseline) {
        return respond_baseline(a, q->name, p, r);
}

HANDLER(handle_baselines) {
        struct baseline_record *list = NULL;
        size_t n = 0;
        (void) q;
        int k = service_baselines(a->service, &list, &n, r);
        if (k < 0)
                return k;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        json_member_array(&w, "items");
        for (size_t i = 0; i < n; i++)
                put_baseline(&w, &list[i]);
        json_array_end(&w);
        json_member_null(&w, "next");
        json_object_end(&w);
        for (size_t i = 0; i < n; i++)
                baseline_record_deinit(&list[i]);
        free(list);
        return response_json(p, 200, &w);
}

/* {"experiment": 12} and nothing else. */
static int read_body(const struct request *q, int64_t *ret, struct refusal *r) {
        _cleanup_(json_freep) struct json *body = NULL;
        int k = request_json(q, &body, r);
        if (k < 0)
                return k;
        const struct json *id = json_type(body) == JSON_OBJECT ? json_get(body, "experiment") : NULL;
        if (json_type(body) != JSON_OBJECT)
                return refuse(r, 422, "wrong-type", "", "a baseline is an object: {\"experiment\": ID}");
        if (!id)
                return refuse(r, 422, "missing-field", "/experiment",
                              "experiment: the id of what is to be pinned is missing");
        if (json_length(body) != 1)
                return refuse(r, 422, "unknown-field", "", "a baseline has the field experiment and no other");
        if (json_as_i64(id, ret) < 0 || *ret < 1)
                return refuse(r, 422, "wrong-type", "/experiment",
                              "experiment: an experiment's id, a positive integer");
        return 0;
}

HANDLER(handle_pin_baseline) {
        int64_t id;
        int k = read_body(q, &id, r);
        if (k == 0)
                k = service_pin_baseline(a->service, q->name, id, r);
        return k < 0 ? k : respond_baseline(a, q->name, p, r);
}

HANDLER(handle_remove_baseline) {
        int k = service_remove_baseline(a->service, q->name, r);
        if (k == 0)
                p->status = 204;
        return k;
}

/* ---- history ---- */

static void put_check(struct json_writer *w, const struct check_record *c) {
        json_object_begin(w);
        json_member_i64(w, "experiment_id", c->experiment_id);
        json_member_string(w, "name", c->experiment_name);
        json_member_string(w, "version", c->version);
        json_member_time(w, "finished_at", c->finished_at);
        json_member_bool(w, "alike", c->alike);
        json_member_raw(w, "differences", c->differences_json);
        json_member_object(w, "verdicts");
        json_member_u64(w, "undecided", c->undecided);
        json_member_u64(w, "faster", c->faster);
        json_member_u64(w, "slower", c->slower);
        json_member_u64(w, "equivalent", c->equivalent);
        json_object_end(w);
        json_member_string(w, "error", c->error);
        json_object_end(w);
}

static void put_value(struct json_writer *w, const struct series_value *v) {
        json_object_begin(w);
        json_member_i64(w, "experiment_id", v->experiment_id);
        json_member_double(w, "ratio", v->ratio);
        json_put_key(w, "interval");
        if (v->has_interval) {
                json_array_begin(w);
                json_put_double(w, v->low);
                json_put_double(w, v->high);
                json_array_end(w);
        } else {
                json_put_null(w);
        }
        json_member_double_if(w, "level", v->has_interval && v->level > 0, v->level);
        json_member_string(w, "verdict", v->verdict);
        json_object_end(w);
}

/* Segments of one level each; where the second and each further one begins is a change point. */
static void put_changes(struct json_writer *w, const struct history_series *s) {
        json_put_key(w, "segments");
        if (s->n_segments == 0) {
                json_put_null(w);
                json_member_null(w, "change_points");
                json_member_string(w, "change_points_reason",
                                   "not searched: there are fewer than " UTIL_TEXT(HISTORY_VALUES_MIN) " experiments");
                return;
        }
        json_array_begin(w);
        for (size_t i = 0; i < s->n_segments; i++) {
                json_object_begin(w);
                json_member_i64(w, "from", s->record.values[s->segments[i].begin].experiment_id);
                json_member_i64(w, "to", s->record.values[s->segments[i].end - 1].experiment_id);
                json_member_double(w, "ratio", exp(s->segments[i].mean));
                json_object_end(w);
        }
        json_array_end(w);
        json_member_array(w, "change_points");
        for (size_t i = 1; i < s->n_segments; i++)
                json_put_i64(w, s->record.values[s->segments[i].begin].experiment_id);
        json_array_end(w);
        json_member_null(w, "change_points_reason");
}

static void put_series(struct json_writer *w, const struct history_series *s) {
        json_object_begin(w);
        json_member_raw(w, "point", s->record.point_json);
        json_member_string(w, "figure", s->record.figure);
        json_member_array(w, "values");
        for (size_t i = 0; i < s->record.n; i++)
                put_value(w, &s->record.values[i]);
        json_array_end(w);
        put_changes(w, s);
        json_object_end(w);
}

static void put_history_head(struct json_writer *w, const void *history) {
        json_put_key(w, "baseline");
        put_baseline(w, &((const struct history *) history)->baseline);
}

static const char *const history_keys[] = {"items", "series", NULL};

static size_t history_length(const void *history, size_t list) {
        const struct history *h = history;
        return list == 0 ? h->n_checks : h->n_series;
}

static void put_history_item(struct json_writer *w, const void *history, size_t list, size_t i) {
        const struct history *h = history;
        if (list == 0)
                put_check(w, &h->checks[i]);
        else
                put_series(w, &h->series[i]);
}

static void history_release(void *history) {
        history_free(history);
}

static const struct lists_source history_source = {.keys = history_keys,
                                                   .put_head = put_history_head,
                                                   .length = history_length,
                                                   .put_item = put_history_item,
                                                   .free = history_release};

HANDLER(handle_history) {
        uint32_t limit;
        struct history *history;
        int k = request_parameter_u32(q, "limit", 1, HISTORY_LIMIT_MAX, HISTORY_LIMIT_DEFAULT, &limit, r);
        if (k == 0)
                k = lists_admit(q, r);
        if (k == 0)
                k = service_history(a->service, q->name, limit, &history, r);
        if (k < 0)
                return k;
        return lists_respond(q, p, &history_source, history, history_bytes(history), r);
}
