/* SPDX-License-Identifier: MIT */

/*
 * The presets, as they ship, and what they are on this host: the time by the plan of an experiment of each, and the
 * last one that was measured here. A plan takes a millisecond of the caller's thread.
 */

#include "schema/presets.h"
#include "daemon/analysis/findings/studies.h"
#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* experiment_id 0: there is none. */
static int find_last(struct store *store, struct preset_last *ret) {
        int error = 0;
        for (size_t i = 0; (error == 0 || error == -ENOENT) && i < n_presets; i++)
                error = store_last_of_preset(store, presets[i].name, &ret[i]);
        return error == -ENOENT ? 0 : error;
}

static void put_last(struct json_writer *w, const struct preset_last *last, const char *why_not) {
        json_member_string(w, "last_reason", why_not);
        json_put_key(w, "last");
        if (why_not || last->experiment_id == 0) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        json_member_i64(w, "experiment_id", last->experiment_id);
        json_member_time(w, "finished_at", last->finished_at);
        json_member_double_if(w, "took_seconds", last->started_at > 0,
                              (double) (last->finished_at - last->started_at) / 1000);
        json_object_end(w);
}

static int put_here(struct service *s, struct json_writer *w, const struct preset *p, const struct preset_last *last,
                    const char *why_no_last, struct refusal *r) {
        char body[128];
        struct plan *plan = NULL;
        int length = snprintf(body, sizeof(body), "{\"preset\": \"%s\"}", p->name);
        if (length < 0 || (size_t) length >= sizeof(body))
                return service_fail(s, r, -ENAMETOOLONG, "planning a preset", 0);
        int error = service_plan(s, body, (size_t) length, NULL, &plan, r);
        if (error < 0 && r->status >= 500)
                return error;
        json_member_object(w, "here");
        json_member_double_if(w, "estimated_seconds", error == 0, plan ? plan->seconds : 0);
        json_member_string(w, "reason", error < 0 ? r->detail : NULL);
        put_last(w, last, why_no_last);
        json_object_end(w);
        plan_free(plan);
        return 0;
}

/* Puts a study's questions that have a published figure; another preset has none. */
static int put_published(struct json_writer *w, const char *preset) {
        const struct findings_input no_rows = {0};
        struct study *study;
        int r = study_answer(preset, NULL, &no_rows, &(const struct findings){0}, &study);
        if (r < 0)
                return r;
        json_member_array(w, "published");
        for (size_t i = 0; study && i < study->n; i++) {
                const struct study_answer *a = &study->answers[i];
                if (!a->has_published)
                        continue;
                json_object_begin(w);
                json_member_string(w, "question", a->question);
                json_member_double(w, "value", a->published);
                json_member_string(w, "unit", a->unit);
                json_object_end(w);
        }
        json_array_end(w);
        study_free(study);
        return 0;
}

/* Puts the preset's members as it ships. */
static int put_members(struct json_writer *w, const struct preset *p) {
        static const char *const members[] = {"title", "description", "question", "expected", "spec"};
        _cleanup_(json_freep) struct json *tree = NULL;
        int r = json_parse(p->json, p->length, &tree, NULL);
        if (r < 0)
                return r;
        json_member_string(w, "name", p->name);
        for (size_t i = 0; r == 0 && i < ELEMENTS(members); i++) {
                const struct json *member = json_get(tree, members[i]);
                _cleanup_free_ char *text = member ? json_print(member) : NULL;
                if (member && !text)
                        r = -ENOMEM;
                else
                        json_member_raw(w, members[i], text);
        }
        return r < 0 ? r : put_published(w, p->name);
}

static int put_preset(struct service *s, struct json_writer *w, const struct preset *p, const struct preset_last *last,
                      const char *why_no_last, struct refusal *r) {
        json_object_begin(w);
        int error = put_members(w, p);
        if (error < 0)
                return service_fail(s, r, error, "reading the presets", 0);
        error = put_here(s, w, p, last, why_no_last, r);
        json_object_end(w);
        return error;
}

static int put_presets(struct service *s, struct json_writer *w, const struct preset_last *last,
                       const char *why_no_last, struct refusal *r) {
        int error = 0;
        json_object_begin(w);
        json_member_array(w, "items");
        for (size_t i = 0; error == 0 && i < n_presets; i++)
                error = put_preset(s, w, &presets[i], &last[i], why_no_last, r);
        json_array_end(w);
        json_member_null(w, "next");
        json_object_end(w);
        return error;
}

int service_presets_json(struct service *s, char **ret, struct refusal *r) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        _cleanup_free_ struct preset_last *last = calloc(n_presets, sizeof(*last));
        if (!last)
                return service_fail(s, r, -ENOMEM, "reading the presets", 0);
        struct refusal why_no_last;
        /* a store that cannot be read does not hide the presets */
        bool known = SERVICE_READ(s, &why_no_last, "reading the last experiments", 0, find_last(store, last)) == 0;
        int error = put_presets(s, &w, last, known ? NULL : why_no_last.detail, r);
        if (error < 0)
                return error;
        error = json_writer_steal(&w, ret, NULL);
        return error < 0 ? service_fail(s, r, error, "reading the presets", 0) : 0;
}
