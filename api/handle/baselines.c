/* SPDX-License-Identifier: MIT */

/* Baselines: pin, list, show, forget. */

#include "api/handle/handlers.h"
#include "api/handle/render.h"
#include "schema/util.h"

#include <string.h>

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
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
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
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
        json_object_begin(&w);
        json_put_key(&w, "items");
        json_array_begin(&w);
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
        struct json *body;
        struct json_error e;
        int k = json_parse(q->body ? q->body : "", q->body_length, &body, &e);
        if (k == -EINVAL)
                return refuse(r, 400, "invalid-json", e.pointer, "%s", e.detail);
        if (k < 0)
                return k;
        const struct json *id = json_type(body) == JSON_OBJECT ? json_get(body, "experiment") : NULL;
        if (json_type(body) != JSON_OBJECT)
                k = refuse(r, 422, "wrong-type", "", "a baseline is an object: {\"experiment\": ID}");
        else if (!id)
                k = refuse(r, 422, "missing-field", "/experiment",
                           "experiment: the id of what is to be pinned is missing");
        else if (json_length(body) != 1)
                k = refuse(r, 422, "unknown-field", "", "a baseline has the field experiment and no other");
        else if (json_as_i64(id, ret) < 0 || *ret < 1)
                k = refuse(r, 422, "wrong-type", "/experiment", "experiment: an experiment's id, a positive integer");
        json_free(body);
        return k;
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
