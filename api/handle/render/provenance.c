/* SPDX-License-Identifier: MIT */

#include "api/handle/render/provenance.h"

#include "api/handle/render/render.h"
#include "api/http/tag.h"
#include "schema/hash.h"
#include "schema/json/json.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RUNS_LOOKED_AT 8u /* runs are executed by position: the first have an environment as soon as any has */

void provenance_deinit(struct provenance *p) {
        free(p->name);
        free(p->host);
        free(p->kernel);
        free(p->version);
        *p = (struct provenance){0};
}

/* A string's copy; of anything else, none. */
static int copy_string(const char *object, const char *key, char **ret) {
        struct json_part part = {0};
        if (!json_find_member(object, key, &part.text, &part.length))
                return 0;
        int k = json_part_string(&part, ret);
        return k == -EINVAL ? 0 : k;
}

static int copy_environment(struct api *a, struct provenance *p, struct refusal *r) {
        _cleanup_free_ char *environment = NULL;
        const char *before;
        size_t length;
        int k = service_first_environment(a->service, p->experiment_id, RUNS_LOOKED_AT, &environment, r);
        if (k < 0 || !environment || !json_find_member(environment, "before", &before, &length))
                return k;
        if (!p->host)
                k = copy_string(before, "hostname", &p->host);
        return k < 0 ? k : copy_string(before, "kernel_release", &p->kernel);
}

/* The name of a preset has nothing that JSON escapes. */
static void copy_preset(const char *spec_json, char *ret, size_t size) {
        const char *value;
        size_t length;
        *ret = '\0';
        if (spec_json && json_find_member(spec_json, "preset", &value, &length) && length >= 2 && *value == '"')
                snprintf(ret, size, "%.*s", (int) (length - 2), value + 1);
}

bool provenance_tag(const struct provenance *p, const struct request *q, struct response *response, const char *type) {
        return p->version_hash != 0 && tag_version(q, response, type, p->version_hash);
}

int provenance_load(struct api *a, int64_t experiment_id, bool columns, struct provenance *ret, struct refusal *r) {
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        struct provenance p = {.experiment_id = experiment_id};
        const char *search;
        size_t length;
        int k = service_experiment(a->service, experiment_id, &e, r);
        if (k < 0)
                return k;
        p.started_at = e.started_at;
        p.seed = e.seed;
        p.runs_total = e.runs_total;
        if (e.state == STATE_DONE || e.state == STATE_FAILED || e.state == STATE_CANCELLED) {
                /* each change of an ended experiment, as more runs of it or a deletion, has a number of its own */
                const int64_t parts[] = {(int64_t) a->started_ns, e.id, e.change};
                p.version_hash = hash_more(HASH_BEGIN, parts, sizeof(parts));
        }
        copy_preset(e.spec_json, p.preset, sizeof(p.preset));
        p.searched = json_find_member(e.merged_json ? e.merged_json : "{}", "search", &search, &length);
        p.name = util_steal(&e.name);
        p.version = util_steal(&e.version);
        /* the label of the host that a bundle came from */
        k = e.imported_json ? copy_string(e.imported_json, "host", &p.host) : 0;
        if (k >= 0 && columns)
                k = point_columns_of(e.merged_json, &p.points);
        if (k >= 0)
                k = copy_environment(a, &p, r);
        if (k < 0) {
                provenance_deinit(&p);
                return k;
        }
        *ret = p;
        return 0;
}

void provenance_header(struct text *t) {
        text_puts(t, ",experiment,host,kernel,version,date,seed\r\n");
}

void provenance_cells(const struct provenance *p, struct text *t) {
        char date[JSON_TIME_MAX];
        text_printf(t, ",%" PRId64 ",", p->experiment_id);
        text_csv(t, p->host);
        text_puts(t, ",");
        text_csv(t, p->kernel);
        text_puts(t, ",");
        text_csv(t, p->version);
        text_printf(t, ",%s,%" PRIu64 "\r\n", json_time_text(p->started_at, date) ? date : "", p->seed);
}

static void put_units(struct json_writer *w) {
        static const struct {
                const char *name, *unit;
        } counted[] = {
                {"interval_ns", "ns"}, {"window_ns", "ns"},  {"messages", "count"},
                {"bytes", "bytes"},    {"latency_ns", "ns"}, {"latency_one_way_ns", "ns"},
        };
        json_member_object(w, "units");
        for (size_t i = 0; i < ELEMENTS(counted); i++)
                json_member_string(w, counted[i].name, counted[i].unit);
        for (size_t f = 0; f < FIGURE_COUNT; f++) {
                char name[64]; /* in a row: each end has a figure of its own */
                figure_name((enum figure) f, name, sizeof(name));
                if (!figure_groups[figure_terms[f].group].in_row)
                        json_member_string(w, name, figure_terms[f].unit);
        }
        json_object_end(w);
}

void provenance_put(const struct provenance *p, struct json_writer *w) {
        char date[JSON_TIME_MAX];
        json_object_begin(w);
        json_member_i64(w, "experiment", p->experiment_id);
        json_member_string(w, "name", p->name);
        json_member_string(w, "host", p->host);
        json_member_string(w, "kernel", p->kernel);
        json_member_string(w, "version", p->version);
        json_member_string(w, "date", json_time_text(p->started_at, date) ? date : NULL);
        json_member_u64(w, "seed", p->seed);
        put_units(w);
        json_object_end(w);
}

void provenance_list_end(const struct provenance *p, struct text *t, bool begun, const char *next) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        provenance_put(p, &w);
        if (!begun)
                text_puts(t, "{\"items\":[");
        text_puts(t, "],\"provenance\":");
        text_json(t, &w);
        if (*next)
                text_printf(t, ",\"next\":\"%s\"}", next);
        else
                text_puts(t, ",\"next\":null}");
}
