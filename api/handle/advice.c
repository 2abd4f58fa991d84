/* SPDX-License-Identifier: MIT */

/*
 * Advice: the ranking that the stored runs support, and the runs that would settle it. A GET has the question in its
 * query, a POST the same fields in its body; one table reads both.
 */

#include "api/handle/bundle/bundle-fields.h"
#include "api/handle/handlers.h"
#include "api/handle/render/render.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MAX 1e12 /* in the unit of the field's name */

static const char limit_wanted[] = "a number above 0, 1e12 at most";

/* Reads a field's text; false where the field cannot have it. */
typedef bool (*read_function)(const char *text, size_t which, struct advice_question *q);

static bool read_number(const char *text, int64_t most, int64_t *ret) {
        return decimal_parse(text, ret) == 0 && *ret >= 1 && *ret <= most;
}

static bool read_size(const char *text, size_t which, struct advice_question *q) {
        int64_t value;
        (void) which;
        if (!read_number(text, SPEC_MESSAGE_SIZE_MAX, &value))
                return false;
        q->message_size = (uint64_t) value;
        return true;
}

static bool read_threads(const char *text, size_t which, struct advice_question *q) {
        int64_t value;
        (void) which;
        if (!read_number(text, SPEC_THREADS_MAX, &value))
                return false;
        q->threads = (uint32_t) value;
        return true;
}

static bool read_workload(const char *text, size_t which, struct advice_question *q) {
        (void) which;
        for (enum workload w = 0; w < WORKLOAD_COUNT; w++)
                if (workload_has_transport(w) && strcmp(text, workload_words.name(w)) == 0) {
                        q->workload = w;
                        return true;
                }
        return false;
}

static bool read_placement(const char *text, size_t which, struct advice_question *q) {
        (void) which;
        for (enum placement_kind k = 0; k <= PLACEMENT_CROSS_NODE; k++)
                if (strcmp(text, placement_kind_name(k)) == 0) {
                        q->placement = k;
                        return true;
                }
        return false;
}

static bool read_direction(const char *text, size_t which, struct advice_question *q) {
        (void) which;
        q->both_ways = strcmp(text, direction_words.name(DIRECTION_BOTH)) == 0;
        return q->both_ways;
}

static bool read_want(const char *text, size_t which, struct advice_question *q) {
        (void) which;
        for (enum advice_want w = 0; w < WANT_COUNT; w++)
                if (strcmp(text, advice_terms[w].name) == 0) {
                        q->want = w;
                        return true;
                }
        return false;
}

static bool read_limit(const char *text, size_t which, struct advice_question *q) {
        double value;
        if (number_parse(text, &value) < 0 || value <= 0 || value > LIMIT_MAX)
                return false;
        q->limits[which] = value * advice_terms[which].limit_unit;
        return true;
}

static const struct field {
        const char *name, *wanted;
        read_function read;
        size_t which; /* of read_limit() */
} fields[] = {
        {"message_size", "bytes, 1 to 1073741824", read_size, 0},
        {"workload", "stream or pingpong", read_workload, 0},
        {"placement", "default, same-cpu, same-core, same-node or cross-node", read_placement, 0},
        {"threads", "a number from 1 to 1024", read_threads, 0},
        {"direction", "both, of streams that go both ways at once", read_direction, 0},
        {"want", "throughput, latency_p50, latency_p99 or cpu_per_message", read_want, 0},
        {"throughput_above_mb_per_second", limit_wanted, read_limit, WANT_THROUGHPUT},
        {"latency_p50_below_us", limit_wanted, read_limit, WANT_LATENCY_P50},
        {"latency_p99_below_us", limit_wanted, read_limit, WANT_LATENCY_P99},
        {"cpu_per_message_below_us", limit_wanted, read_limit, WANT_CPU},
};

/* The defaults, which are those of a spec's fields. */
static struct advice_question standard(void) {
        struct advice_question q = {
                .workload = WORKLOAD_STREAM, .message_size = 4096, .threads = 1, .want = WANT_THROUGHPUT};
        for (size_t i = 0; i < WANT_COUNT; i++)
                q.limits[i] = NAN;
        return q;
}

/* A round trip has both directions in one. */
static int check_direction(const struct advice_question *q, struct refusal *r) {
        if (!q->both_ways || q->workload == WORKLOAD_STREAM)
                return 0;
        return refuse(r, 422, "wrong-combination", "/direction", "direction is of streams, not of %s",
                      workload_words.name(q->workload));
}

static int read_query(const struct request *q, struct advice_question *ret, struct refusal *r) {
        for (size_t i = 0; i < ELEMENTS(fields); i++) {
                const char *text = request_parameter(q, fields[i].name);
                if (text && !fields[i].read(text, fields[i].which, ret))
                        return refuse_parameter(r, fields[i].name, text, "%s", fields[i].wanted);
        }
        return check_direction(ret, r);
}

static const struct field *find_field(const char *name) {
        for (size_t i = 0; i < ELEMENTS(fields); i++)
                if (strcmp(fields[i].name, name) == 0)
                        return &fields[i];
        return NULL;
}

static int read_member(const struct json *member, struct advice_question *ret, struct refusal *r) {
        char pointer[JSON_POINTER_MAX];
        const struct field *field = find_field(json_key(member));
        _cleanup_free_ char *printed = json_print(member);
        const char *text = printed;
        if (!printed)
                return -ENOMEM;
        json_pointer_key(pointer, "", json_key(member));
        if (!field)
                return refuse(r, 422, "unknown-field", pointer, "%s: advice has no such field", json_key(member));
        bool word = json_as_string(member, &text) == 0; /* a number stays as it is printed */
        bool is_word = field->read == read_workload || field->read == read_placement || field->read == read_direction ||
                       field->read == read_want;
        if (word != is_word || !field->read(text, field->which, ret))
                return refuse(r, 422, "bad-value", pointer, "%s must be %s, not %s", field->name, field->wanted,
                              printed);
        return 0;
}

static int read_body(const struct request *q, struct advice_question *ret, struct refusal *r) {
        struct json *body;
        int k = request_json(q, &body, r);
        if (k < 0)
                return k;
        if (json_type(body) != JSON_OBJECT)
                k = refuse(r, 422, "wrong-type", "", "The body must be an object.");
        for (const struct json *i = k == 0 ? json_first(body) : NULL; k == 0 && i; i = json_next(i))
                k = read_member(i, ret, r);
        json_free(body);
        return k == 0 ? check_direction(ret, r) : k;
}

/* ---- rendering ---- */

/* Writes the flags of the runs and the settings of the mechanism. */
static void put_remarks(struct json_writer *w, const struct advice_item *item) {
        json_member_bool(w, "noisy", item->noisy);
        json_member_bool(w, "unsteady", item->unsteady);
        json_member_bool(w, "not_observed", item->unobserved);
        json_member_bool(w, "environment_changed", item->changed);
        render_disputed(w, "runs_disputed", item->n_disputed);
        json_member_bool(w, "neighbours_alike", item->alike);
        json_member_u64(w, "repetitions_added", item->n_added);
        json_member_double_if(w, "buffer_bytes", item->in_force.buffer_bytes > 0, item->in_force.buffer_bytes);
        json_member_bool(w, "gathers", item->in_force.gather_ns > 0);
}

static void put_item(struct json_writer *w, const struct advice_item *item, const struct advice_record *a) {
        int64_t now = util_now_ms();
        const struct figure_term *figure = &figure_terms[advice_terms[a->question.want].figure];
        _cleanup_free_ char *point = point_to_json(&item->point);
        if (!point && w->error == 0)
                w->error = -ENOMEM;
        json_object_begin(w);
        json_member_raw(w, "point", point);
        json_member_raw(w, "settings", item->settings);
        json_member_string(w, "standing", advice_standing_names[item->standing]);
        json_member_string(w, "reason", advice_reason_names[item->reason]);
        json_member_bool(w, "leads", item->leads);
        json_member_double(w, "value", item->value);
        json_member_string(w, "unit", figure->unit);
        render_interval(w, "interval", item->has_interval, item->low, item->high, item->level);
        if (!item->has_interval)
                json_member_string(w, "interval_reason",
                                   item->alike ? "the runs are like those before them, so that even from the least to "
                                                 "the greatest they do not cover the median at 95 %; more runs, at "
                                                 "other times, do"
                                               : "fewer than 6 runs have the figure");
        json_put_key(w, "over_best");
        if (item->has_ratio) {
                json_object_begin(w);
                json_member_double(w, "ratio", item->ratio.ratio);
                render_interval(w, "interval", item->ratio.has_interval, item->ratio.low, item->ratio.high,
                                item->ratio.level);
                json_object_end(w);
        } else {
                json_put_null(w);
        }
        json_put_key(w, "fit");
        if (item->interpolated) {
                json_object_begin(w);
                json_member_double(w, "residual", item->residual);
                json_member_double(w, "left_out_error", item->left_out_error);
                json_object_end(w);
        } else {
                json_put_null(w);
        }
        json_member_i64(w, "experiment_id", item->experiment_id);
        json_member_string(w, "version", item->version);
        json_member_time(w, "measured_at", item->measured_at);
        json_member_i64(w, "age_seconds", now > item->measured_at ? (now - item->measured_at) / 1000 : 0);
        json_member_u64(w, "runs", item->n_runs);
        put_remarks(w, item);
        if (item->runs_needed > 0)
                json_member_u64(w, "runs_needed", item->runs_needed);
        else
                json_member_null(w, "runs_needed");
        json_object_end(w);
}

/* How long the runs that would settle it take, by their plan. A spec that this host does not take any more, as after a
 * limit was lowered, has no plan: the refusal of POST /advice has the reason. */
static void put_seconds(struct json_writer *w, struct api *a, const char *settle) {
        struct plan *plan = NULL;
        struct refusal why_not;
        bool planned = settle && service_plan(a->service, settle, strlen(settle), NULL, &plan, &why_not) == 0;
        json_put_key(w, "settle_seconds");
        if (planned)
                json_put_double(w, plan->seconds);
        else
                json_put_null(w);
        plan_free(plan);
}

static int respond_advice(struct api *api, struct response *p, const struct advice_record *a) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_writer_init(&w);
        json_object_begin(&w);
        json_member_string(&w, "sentence", a->sentence);
        json_member_string(&w, "want", advice_terms[a->question.want].name);
        json_member_string(&w, "host", a->host);
        json_member_array(&w, "items");
        for (size_t i = 0; i < a->advice.n; i++)
                put_item(&w, &a->advice.items[i], a);
        json_array_end(&w);
        json_member_null(&w, "next");
        json_member_object(&w, "experiments");
        json_member_u64(&w, "used", a->experiments);
        json_member_u64(&w, "other_environment", a->other_environment);
        json_member_u64(&w, "open_loop_or_tuned", a->unlike);
        json_member_u64(&w, "unreadable", a->unreadable);
        json_object_end(&w);
        json_member_array(&w, "other_placements");
        for (unsigned i = 0; i < PLACEMENT_ALL_NODE_PAIRS; i++)
                if (a->placements & 1u << i)
                        json_put_string(&w, placement_kind_name(i));
        json_array_end(&w);
        json_member_array(&w, "failing");
        for (size_t i = 0; i < a->n_failing; i++) {
                json_object_begin(&w);
                json_member_string(&w, "transport", transport_words.name(a->failing[i].transport));
                json_member_i64(&w, "experiment_id", a->failing[i].experiment_id);
                json_member_u64(&w, "runs_failed", a->failing[i].runs);
                json_member_string(&w, "error", a->failing[i].error);
                json_object_end(&w);
        }
        json_array_end(&w);
        json_member_raw(&w, "settle", a->settle_json);
        put_seconds(&w, api, a->settle_json);
        json_object_end(&w);
        return response_json(p, 200, &w);
}

HANDLER(handle_advice) {
        struct advice_question question = standard();
        struct advice_record *advice;
        const char *host = request_parameter(q, "host");
        int k = read_query(q, &question, r);
        if (k == 0 && host && !bundle_is_label(host))
                k = refuse_parameter(r, "host", host, BUNDLE_LABEL_WORDS, BUNDLE_LABEL_MAX);
        if (k == 0)
                k = service_advice(a->service, &question, host, &advice, r);
        if (k < 0)
                return k;
        k = respond_advice(a, p, advice);
        service_advice_release(a->service, advice);
        return k;
}

/* Queues what would settle the question. */
HANDLER(handle_settle) {
        struct advice_question question = standard();
        const char *key = NULL;
        int64_t id;
        bool created;
        int k = request_idempotency_key(q, &key, r);
        if (k == 0)
                k = read_body(q, &question, r);
        if (k == 0)
                k = service_settle(a->service, &question, key, &id, &created, r);
        return k < 0 ? k : respond_submitted(a, id, created, p, r);
}
