/* SPDX-License-Identifier: MIT */

/*
 * What an experiment's runs let one conclude: loads the figures of its runs for daemon/analysis/findings.h, and keeps
 * what was drawn from them until the experiment changes. To parse ten thousand results takes most of a second; to look
 * the findings up again takes the time of reading the experiment's record.
 */

#include "daemon/log.h"
#include "daemon/service/evidence.h"
#include "daemon/service/internal.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* ---- the cache ---- */

void findings_cache_init(struct findings_cache *c) {
        *c = (struct findings_cache){0};
        (void) pthread_mutex_init(&c->lock, NULL); /* with default attributes it cannot fail on Linux */
}

static void record_free(struct findings_record *record) {
        findings_free(record->findings);
        study_free(record->study);
        free(record);
}

/* Locked. Whoever uses it still frees it. */
static void drop(struct findings_cache *c, struct findings_record **at) {
        struct findings_record *record = *at;
        *at = record->older;
        c->bytes -= record->bytes;
        record->cached = false;
        if (record->users == 0)
                record_free(record);
}

void findings_cache_deinit(struct findings_cache *c) {
        while (c->newest)
                drop(c, &c->newest);
        (void) pthread_mutex_destroy(&c->lock);
}

/* The record of that change, which goes to the front; one of an earlier change goes. */
static struct findings_record *look_up(struct findings_cache *c, int64_t experiment_id, int64_t change) {
        struct findings_record *found = NULL;
        pthread_mutex_lock(&c->lock);
        for (struct findings_record **at = &c->newest; *at && !found; at = *at ? &(*at)->older : at) {
                if ((*at)->experiment_id != experiment_id)
                        continue;
                if ((*at)->change != change) {
                        drop(c, at);
                        break;
                }
                found = *at;
                *at = found->older;
                found->older = c->newest;
                c->newest = found;
                found->users++;
        }
        pthread_mutex_unlock(&c->lock);
        return found;
}

/* The oldest go until there is room. One that is larger than the whole budget is not kept. */
static void remember(struct findings_cache *c, struct findings_record *record) {
        pthread_mutex_lock(&c->lock);
        if (record->bytes <= FINDINGS_BUDGET_BYTES) {
                while (c->bytes + record->bytes > FINDINGS_BUDGET_BYTES) {
                        struct findings_record **at = &c->newest;
                        while ((*at)->older)
                                at = &(*at)->older;
                        drop(c, at);
                }
                record->older = c->newest;
                record->cached = true;
                c->newest = record;
                c->bytes += record->bytes;
        }
        pthread_mutex_unlock(&c->lock);
}

void service_findings_release(struct service *s, struct findings_record *record) {
        if (!record)
                return;
        pthread_mutex_lock(&s->findings.lock);
        bool last = --record->users == 0 && !record->cached;
        pthread_mutex_unlock(&s->findings.lock);
        if (last)
                record_free(record);
}

/* ---- drawing ---- */

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

/* Of a posted spec; "" where it names none. */
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

static int draw(struct service *s, const struct experiment_record *e, const struct evidence *evidence,
                struct findings_record *ret) {
        struct findings_limit caches[FINDINGS_LIMITS_MAX];
        char preset[64];
        topology_hold();
        size_t n = list_caches(s->hooks.topology, caches);
        topology_release();
        const struct findings_input in = {
                .rows = evidence->rows, .n_rows = evidence->n_rows, .caches = caches, .n_caches = n};
        int r = findings_draw(&in, &ret->findings);
        if (r < 0)
                return r;
        read_preset(e->spec_json, preset, sizeof(preset));
        return study_answer(preset, &in, ret->findings, &ret->study);
}

int service_findings(struct service *s, int64_t experiment_id, struct findings_record **ret, struct refusal *r) {
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        _cleanup_(evidence_deinit) struct evidence evidence = {0};
        int error = service_experiment(s, experiment_id, &e, r);
        if (error < 0)
                return error;
        struct findings_record *record = look_up(&s->findings, experiment_id, e.change);
        if (record) {
                *ret = record;
                return 0;
        }
        error = evidence_load(s, experiment_id, &evidence, r);
        if (error < 0)
                return error;
        record = calloc(1, sizeof(*record));
        error = record ? draw(s, &e, &evidence, record) : -ENOMEM;
        if (error < 0) {
                if (record)
                        record_free(record);
                return service_fail(s, r, error, "drawing conclusions", 0);
        }
        record->experiment_id = experiment_id;
        record->change = e.change;
        record->users = 1;
        record->bytes = sizeof(*record) + findings_bytes(record->findings) + study_bytes(record->study);
        remember(&s->findings, record);
        *ret = record;
        return 0;
}
