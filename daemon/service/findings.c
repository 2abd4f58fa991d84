/* SPDX-License-Identifier: MIT */

/*
 * Findings of an experiment: loads the figures of its runs for daemon/analysis/findings/findings.h, and caches the
 * findings until the experiment changes. To parse ten thousand results takes most of a second; to look the findings up
 * again takes the time of reading the experiment's record.
 */

#include "daemon/service/evidence.h"
#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

static void record_free(void *payload) {
        struct findings_record *record = payload;
        findings_free(record->findings);
        study_free(record->study);
        free(record);
}

void service_findings_release(struct service *s, struct findings_record *record) {
        if (record)
                cache_release(&s->cache, record->item);
}

/* Data and unified caches, each size of a level once. */
static size_t list_caches(const struct topology *t, struct findings_limit ret[FINDINGS_LIMITS_MAX]) {
        static const char *const names[] = {"the L1 data cache", "the L2 cache", "the L3 cache", "the L4 cache"};
        size_t n = 0;
        for (size_t i = 0; i < t->n_caches && n < FINDINGS_LIMITS_MAX; i++) {
                const struct topology_cache *c = &t->caches[i];
                struct findings_limit limit = {.bytes = (double) c->size_bytes};
                bool seen = false;
                if (strcmp(c->type, "Instruction") == 0 || c->level < 1 || (size_t) c->level > ELEMENTS(names))
                        continue;
                limit.what = names[c->level - 1];
                for (size_t k = 0; k < n; k++)
                        seen |= ret[k].what == limit.what && ret[k].bytes == limit.bytes;
                if (!seen)
                        ret[n++] = limit;
        }
        return n;
}

/* The preset of a posted spec; "" where it names none. */
static void read_preset(const char *spec_json, char *ret, size_t size) {
        struct json *spec = NULL;
        const char *name = "";
        if (spec_json && json_parse(spec_json, strlen(spec_json), &spec, NULL) == 0 && json_type(spec) == JSON_OBJECT) {
                const struct json *member = json_get(spec, "preset");
                if (member)
                        (void) json_as_string(member, &name); /* stays "" when it is none */
        }
        (void) snprintf(ret, size, "%s", name);
        json_free(spec);
}

/* 0 for null. */
static double number_of(const struct json *object, const char *key) {
        const struct json *member = json_get(object, key);
        double value = 0;
        if (member)
                (void) json_as_double(member, &value); /* stays 0 when it is null */
        return value;
}

/* One rate of component Search. */
static void take_rate(const struct json *rate, struct findings_search *search) {
        const double per_second = number_of(rate, "rate"), runs = number_of(rate, "runs");
        const struct json *member = json_get(rate, "kept");
        bool kept = false;
        if (member)
                (void) json_as_bool(member, &kept); /* stays false when it is none */
        if (search->n_rates == 0 || runs < search->runs_least)
                search->runs_least = (uint32_t) runs;
        search->n_rates++;
        search->n_runs += (uint32_t) runs;
        search->n_below += !kept && per_second <= search->kept;
        search->n_beyond += kept && search->not_kept > 0 && per_second >= search->not_kept;
}

static struct findings_search search_of(const struct json *point, const char *state, uint32_t row) {
        const struct json *curve = json_get(point, "curve");
        struct findings_search search = {
                .row = row,
                .kept = number_of(point, "highest_rate"),
                .not_kept = number_of(point, "lowest_rate_not_kept"),
                .closed_loop = number_of(point, "closed_loop_messages_per_second"),
                .wide = strcmp(state, "wide") == 0,
        };
        for (const struct json *rate = curve ? json_first(curve) : NULL; rate; rate = json_next(rate))
                take_rate(rate, &search);
        return search;
}

struct search_list {
        struct findings_search *items;
        size_t n;
        double limit_us;
};

/* The points of a search that is concluded, which stand in the order of their closed loops' rows (component Search). */
static int list_searches(const struct json *root, size_t n_rows, struct search_list *ret) {
        static const char *const concluded[] = {"found", "wide", "none_kept", "all_kept"};
        const struct json *points = json_type(root) == JSON_OBJECT ? json_get(root, "points") : NULL;
        uint32_t row = 0;
        ret->items = calloc(n_rows + 1, sizeof(*ret->items));
        if (!ret->items)
                return -ENOMEM;
        ret->limit_us = json_type(root) == JSON_OBJECT ? number_of(root, "latency_p99_below_us") : 0;
        for (const struct json *p = points ? json_first(points) : NULL; p && row < n_rows; p = json_next(p)) {
                const struct json *member = json_get(p, "state");
                const char *state = "";
                if (member)
                        (void) json_as_string(member, &state); /* stays "" when it is none */
                for (size_t i = 0; i < ELEMENTS(concluded); i++)
                        if (strcmp(state, concluded[i]) == 0)
                                ret->items[ret->n++] = search_of(p, state, row);
                row++;
        }
        return 0;
}

/* Whether a rate was reached decides whether it is kept, and is no doubt of that. */
static void take_rate_flags(void *userdata, uint32_t ordinal, const char *flags_json) {
        struct search_list *searches = userdata;
        for (size_t i = 0; i < searches->n; i++)
                if (searches->items[i].row == ordinal) {
                        evidence_read_flags(flags_json, &searches->items[i].rates);
                        searches->items[i].rates.n_disputed[DISPUTED_RATE] = 0;
                }
}

/* Runs that cannot be read may have been disturbed. */
static int read_rate_flags(struct service *s, int64_t experiment_id, struct search_list *searches, struct refusal *r) {
        struct reader *reader;
        int error = searches->n > 0 ? service_reader_get(s, &reader, r) : 0;
        if (error < 0 || searches->n == 0)
                return error;
        error = store_rate_flags(reader->store, experiment_id, take_rate_flags, searches);
        service_reader_put(s, reader);
        for (size_t i = 0; error == -EBADMSG && i < searches->n; i++)
                searches->items[i].rates.noisy = true;
        return error == -EBADMSG ? 0 : error;
}

static int read_searches(struct service *s, const struct experiment_record *e, size_t n_rows, struct search_list *ret,
                         struct refusal *refusal) {
        struct json *root = NULL;
        int r = e->searches && e->until_json ? json_parse_written(e->until_json, strlen(e->until_json), &root) : 0;
        if (r == 0 && root)
                r = list_searches(root, n_rows, ret);
        json_free(root);
        return r < 0 ? r : read_rate_flags(s, e->id, ret, refusal);
}

/* The answers of the preset's study to the experiment's questions. A spec that another version wrote and this one
 * cannot read is taken for the preset's own, and the study's points alone count all the same. */
static int answer_study(const struct experiment_record *e, const struct findings_input *in,
                        struct findings_record *ret) {
        char preset[64];
        struct spec *spec = NULL;
        struct refusal ignored;
        read_preset(e->spec_json, preset, sizeof(preset));
        int r = *preset && e->merged_json ? spec_parse_stored(e->merged_json, strlen(e->merged_json), &spec, &ignored)
                                          : 0;
        if (r == 0 || r == -EINVAL)
                r = study_answer(preset, spec, in, ret->findings, &ret->study);
        spec_free(spec);
        return r;
}

static int draw(struct service *s, const struct experiment_record *e, const struct evidence *evidence,
                const struct search_list *searches, struct findings_record *ret) {
        struct findings_limit caches[FINDINGS_LIMITS_MAX];
        topology_hold();
        size_t n = e->imported_json ? 0 : list_caches(s->hooks.topology, caches); /* they are this host's */
        topology_release();
        const struct findings_input in = {.rows = evidence->rows,
                                          .n_rows = evidence->n_rows,
                                          .caches = caches,
                                          .n_caches = n,
                                          .searches = searches->items,
                                          .n_searches = searches->n,
                                          .search_limit_us = searches->limit_us,
                                          .uncounted = evidence->uncounted};
        int r = findings_draw(&in, &ret->findings);
        return r < 0 ? r : answer_study(e, &in, ret);
}

/* Makes the findings from the experiment's figures, which may be in the cache already. */
static int make_record(struct service *s, const struct experiment_record *e, struct findings_record **ret,
                       struct refusal *r) {
        const struct evidence *evidence;
        struct cache_item *item;
        struct search_list searches = {0};
        int error = evidence_get(s, e->id, e->change, &evidence, &item, r);
        if (error < 0)
                return error;
        struct findings_record *record = calloc(1, sizeof(*record));
        error = record ? read_searches(s, e, evidence->n_rows, &searches, r) : -ENOMEM;
        if (error >= 0)
                error = draw(s, e, evidence, &searches, record);
        cache_release(&s->cache, item);
        free(searches.items);
        if (error < 0) {
                if (record)
                        record_free(record);
                return service_fail(s, r, error, "drawing conclusions", 0);
        }
        record->experiment_id = e->id;
        *ret = record;
        return 0;
}

static int make_item(struct service *s, const struct experiment_record *e, struct findings_record **ret,
                     struct refusal *r) {
        struct findings_record *record = NULL;
        int error = make_record(s, e, &record, r);
        if (error < 0 || !record)
                return error;
        error = cache_add(
                &s->cache,
                &(struct cache_item){
                        .kind = CACHE_FINDINGS,
                        .id = e->id,
                        .change = e->change,
                        .bytes = sizeof(*record) + findings_bytes(record->findings) + study_bytes(record->study),
                        .payload = record,
                        .free_payload = record_free,
                },
                &record->item);
        if (error < 0) {
                record_free(record);
                return service_fail(s, r, error, "keeping the findings", 0);
        }
        *ret = record;
        return 0;
}

static bool find_item(struct service *s, const struct experiment_record *e, struct findings_record **ret) {
        struct cache_item *item = cache_get(&s->cache, CACHE_FINDINGS, e->id, e->change);
        if (item)
                *ret = item->payload;
        return item;
}

/* Requests that come at once would each take the time that the findings of a point take: the others wait for the first.
 * Submissions do not wait for readers. */
static int make_in_turn(struct service *s, const struct experiment_record *e, struct findings_record **ret,
                        struct refusal *r) {
        int error = service_turn_begin(s, &s->findings, "the drawing of other findings", r);
        if (error < 0)
                return error;
        if (!find_item(s, e, ret))
                error = make_item(s, e, ret, r);
        (void) malloc_trim(0); /* as after a large request */
        service_turn_end(s, &s->findings);
        return error;
}

int service_findings(struct service *s, int64_t experiment_id, struct findings_record **ret, struct refusal *r) {
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        int error = service_experiment(s, experiment_id, &e, r);
        if (error < 0 || find_item(s, &e, ret))
                return error;
        return e.runs_total > SERVICE_MANY_POINTS ? make_in_turn(s, &e, ret, r) : make_item(s, &e, ret, r);
}
