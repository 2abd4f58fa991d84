/* SPDX-License-Identifier: MIT */

/*
 * Advice: gathers the figures of the stored experiments that belong to a question, has them ranked by
 * daemon/analysis/advice.h, and writes the spec that would settle what stays open. Only experiments whose runs had the
 * environment that is in force now are used, and only those with a closed loop on a host as it is. Of another host,
 * whose experiments came as bundles, it is the environment of the newest.
 */

#include "daemon/host/environment/environment.h"
#include "daemon/host/topology.h"
#include "daemon/service/advice/advice-internal.h"
#include "daemon/service/advice/failing.h"
#include "daemon/service/evidence.h"
#include "daemon/service/service.h"
#include "schema/hash.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A question, and all that its answer depends on. */
struct inquiry {
        struct service *service;
        const struct advice_question *question;
        const char *host;                        /* NULL: this one */
        char *environment, *state;               /* in force; the state with all that may make runs fail, or NULL */
        struct experiment_change *list, *failed; /* that were measured; that failed */
        size_t n, n_failed;
        struct refusal *refusal; /* the caller's, for the reason of an error */
};

static void inquiry_deinit(struct inquiry *i) {
        free(i->environment);
        free(i->state);
        free(i->list);
        free(i->failed);
}

static int fail(const struct inquiry *i, int error, const char *what) {
        return service_fail(i->service, i->refusal, error, what, 0);
}

/* ---- gathering ---- */

struct gathering {
        struct advice_row *rows;
        struct findings_run **runs; /* of each row, what it points to */
        size_t n, size;
        struct failing_unreadable unreadable; /* are counted already */
};

static void gathering_deinit(struct gathering *g) {
        for (size_t i = 0; i < g->n; i++)
                free(g->runs[i]);
        free(g->runs);
        free(g->rows);
}

static int grow(struct gathering *g) {
        if (g->n < g->size)
                return 0;
        size_t size = g->size ? 2 * g->size : 64;
        struct advice_row *rows = reallocarray(g->rows, size, sizeof(*rows));
        if (rows)
                g->rows = rows;
        struct findings_run **runs = reallocarray(g->runs, size, sizeof(void *));
        if (runs)
                g->runs = runs;
        if (!rows || !runs)
                return -ENOMEM;
        g->size = size;
        return 0;
}

/* The record keeps the settings and versions of its experiments, each once; the rows of a gathering own their runs. */
static int keep_text(struct advice_record *a, const char *text, const char **ret) {
        for (size_t i = 0; i < a->n_texts; i++)
                if (strcmp(a->texts[i], text) == 0) {
                        *ret = a->texts[i];
                        return 0;
                }
        char **texts = reallocarray(a->texts, a->n_texts + 1, sizeof(void *));
        if (!texts)
                return -ENOMEM;
        a->texts = texts;
        texts[a->n_texts] = strdup(text);
        if (!texts[a->n_texts])
                return -ENOMEM;
        *ret = texts[a->n_texts++];
        return 0;
}

static int take_evidence(const struct advice_question *q, const struct evidence *e, int64_t experiment_id,
                         struct advice_record *a, struct gathering *g) {
        bool used = false;
        for (size_t i = 0; i < e->n_rows; i++) {
                const struct findings_row *row = &e->rows[i];
                const char *settings;
                if (row->n_runs == 0 || !advice_concerns(q, &row->point))
                        continue;
                int r = keep_text(a, e->settings, &settings);
                if (r == 0)
                        r = grow(g);
                struct findings_run *runs = r == 0 ? reallocarray(NULL, row->n_runs, sizeof(*runs)) : NULL;
                if (!runs)
                        return -ENOMEM;
                memcpy(runs, row->runs, row->n_runs * sizeof(*runs));
                g->runs[g->n] = runs;
                g->rows[g->n] = (struct advice_row){.experiment_id = experiment_id,
                                                    .measured_at = e->measured_at,
                                                    .settings = settings,
                                                    .row = *row};
                axis_clear(&axes[AXIS_INSTANCE], &g->rows[g->n].row.point); /* two of one thing are no two mechanisms */
                g->rows[g->n++].row.runs = runs;
                used = true;
        }
        a->experiments += used;
        return 0;
}

/* A bit for each placement that a question has words for, of which the experiment would answer the question. */
static unsigned known_placements(const struct advice_question *q, const struct evidence *e) {
        struct advice_question other = *q;
        unsigned bits = 0;
        for (size_t i = 0; i < e->n_rows; i++) {
                other.placement = e->rows[i].point.placement.kind;
                if (other.placement < PLACEMENT_ALL_NODE_PAIRS && e->rows[i].n_runs > 0 &&
                    advice_concerns(&other, &e->rows[i].point))
                        bits |= 1u << other.placement;
        }
        return bits;
}

/* The other numbers of threads of which the experiment would answer the question. */
static void take_threads(const struct advice_question *q, const struct evidence *e, struct advice_record *a) {
        struct advice_question other = *q;
        for (size_t i = 0; i < e->n_rows; i++) {
                size_t k = 0;
                other.threads = e->rows[i].point.threads;
                while (k < a->n_threads && a->threads[k] != other.threads)
                        k++;
                if (other.threads != q->threads && e->rows[i].n_runs > 0 && k == a->n_threads &&
                    k < ADVICE_THREADS_NAMED_MAX && advice_concerns(&other, &e->rows[i].point))
                        a->threads[a->n_threads++] = other.threads;
        }
}

/* Whether a member of two environments (environment_print()) is another; without memory it counts as one. */
static bool is_other(const struct json *then, const struct json *now, const char *name) {
        const struct json *was = json_get(then, name), *is = json_get(now, name);
        _cleanup_free_ char *before = was ? json_print(was) : NULL, *after = is ? json_print(is) : NULL;
        return before && after ? strcmp(before, after) != 0 : was || is;
}

/* What differs between the environment of an experiment and the one in force. */
static int take_differences(const char *then, const char *now, struct advice_record *a) {
        struct json *was = NULL, *is = NULL;
        int r = then && *now ? json_parse(then, strlen(then), &was, NULL) : -ENODATA;
        if (r == 0)
                r = json_parse(now, strlen(now), &is, NULL);
        for (size_t i = 0; r == 0 && i < FACT_COUNT; i++)
                a->facts[i] |= is_other(was, is, fact_rows[i].name);
        if (r == 0)
                a->mitigations |= is_other(was, is, "mitigations");
        else if (r != -ENOMEM)
                a->changed_environment++;
        json_free(was);
        json_free(is);
        return r == -ENOMEM ? r : 0;
}

/* One damaged experiment does not hide the others' figures. */
static void count_unreadable(int64_t experiment_id, const struct failing_unreadable *counted, struct advice_record *a) {
        for (size_t i = 0; i < counted->n; i++)
                if (counted->ids[i] == experiment_id)
                        return;
        a->unreadable++;
}

static int take_experiment(const struct inquiry *by, const struct experiment_change *x, struct advice_record *a,
                           struct gathering *g) {
        const struct advice_question *q = by->question;
        const struct evidence *e;
        struct cache_item *item;
        int error = evidence_get(by->service, x->id, x->change, &e, &item, by->refusal);
        if (error == -ENOENT) /* forgotten meanwhile */
                return 0;
        if (error == -EBADMSG) {
                count_unreadable(x->id, &g->unreadable, a);
                return 0;
        }
        if (error < 0)
                return error;
        unsigned placements = known_placements(q, e);
        bool concerns = placements & 1u << q->placement;
        bool alike = e->environment && strcmp(e->environment, by->environment) == 0;
        bool usable = alike && !e->open_loop && !e->tuned;
        a->other_environment += concerns && !alike;
        a->unlike += concerns && alike && !usable;
        a->open_loops += concerns && alike && e->open_loop;
        a->tuned += concerns && alike && e->tuned;
        if (concerns && !alike)
                error = take_differences(e->environment, by->environment, a);
        else if (concerns && usable)
                error = take_evidence(q, e, x->id, a, g);
        if (usable) {
                a->placements |= placements & ~(1u << q->placement);
                take_threads(q, e, a);
        }
        cache_release(&by->service->cache, item);
        return error < 0 ? fail(by, error, "gathering what is known") : 0;
}

/* The versions of the experiments that the answer rests on; that of one that cannot be read any more stays NULL. */
static int take_versions(struct service *s, struct advice_record *a, struct refusal *r) {
        for (size_t i = 0; i < a->advice.n; i++) {
                _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
                struct advice_item *item = &a->advice.items[i];
                for (size_t k = 0; k < i && !item->version; k++)
                        if (a->advice.items[k].experiment_id == item->experiment_id)
                                item->version = a->advice.items[k].version;
                int error = item->version ? 0 : service_experiment(s, item->experiment_id, &e, r);
                if (error < 0 && error != -ENOENT && error != -EBADMSG)
                        return error;
                if (e.version && keep_text(a, e.version, &item->version) < 0)
                        return service_fail(s, r, -ENOMEM, "the versions", 0);
        }
        return 0;
}

/* *ret_state: with all that may make runs fail. */
static int environment_now(struct service *s, char **ret, char **ret_state, struct refusal *r) {
        _cleanup_free_ char *text = NULL, *environment = NULL;
        struct json *root = NULL;
        int error = service_environment_json(s, &text, r);
        if (error < 0)
                return error;
        error = json_parse(text, strlen(text), &root, NULL);
        if (error == 0)
                error = environment_print(root, &environment);
        if (error == 0)
                error = failing_state_now(s, root, ret_state);
        if (error == 0)
                *ret = util_steal(&environment);
        json_free(root);
        return error < 0 ? service_fail(s, r, error, "reading the environment", 0) : 0;
}

/* What failed affects the answer, too. */
static int list_failed(struct service *s, struct experiment_change **ret, size_t *ret_n, struct refusal *r) {
        struct reader *reader;
        int error = service_reader_get(s, &reader, r);
        if (error < 0)
                return error;
        error = store_failed(reader->store, FAILING_EXPERIMENTS_MAX, ret, ret_n);
        service_reader_put(s, reader);
        return error < 0 ? service_fail(s, r, error, "listing what failed", 0) : 0;
}

static int list_measured(struct service *s, const char *host, struct experiment_change **ret, size_t *ret_n,
                         struct refusal *r) {
        struct reader *reader;
        int error = service_reader_get(s, &reader, r);
        if (error < 0)
                return error;
        error = store_measured(reader->store, host, ret, ret_n);
        service_reader_put(s, reader);
        if (error < 0)
                return service_fail(s, r, error, "listing what was measured", 0);
        if (host && *ret_n == 0)
                return refuse(r, 404, "not-found", "",
                              "No experiment of a host \"%s\" with a run that is done was taken in.", host);
        return 0;
}

/* That of the newest experiment which has one; "" where none has one: no environment is empty. */
static int environment_of_newest(struct service *s, const struct experiment_change *list, size_t n, char **ret,
                                 struct refusal *r) {
        char *found = NULL;
        for (size_t i = 0; i < n && !found; i++) {
                const struct evidence *e;
                struct cache_item *item;
                int error = evidence_get(s, list[i].id, list[i].change, &e, &item, r);
                if (error == -ENOENT || error == -EBADMSG)
                        continue;
                if (error < 0)
                        return error;
                bool known = e->environment != NULL;
                found = known ? strdup(e->environment) : NULL;
                cache_release(&s->cache, item);
                if (known && !found)
                        return service_fail(s, r, -ENOMEM, "the environment", 0);
        }
        *ret = found ? found : strdup("");
        return *ret ? 0 : service_fail(s, r, -ENOMEM, "the environment", 0);
}

/* ---- the cache ---- */

static void record_free(void *payload) {
        struct advice_record *a = payload;
        advice_deinit(&a->advice);
        for (size_t i = 0; i < a->n_texts; i++)
                free(a->texts[i]);
        free(a->texts);
        free(a->sentence);
        free(a->settle_json);
        free(a->environment);
        free(a->state);
        for (size_t i = 0; i < a->n_failing; i++)
                free(a->failing[i].error);
        free(a->host);
        free(a);
}

void service_advice_release(struct service *s, struct advice_record *a) {
        if (a)
                cache_release(&s->cache, a->item);
}

static bool is_same_question(const struct advice_question *x, const struct advice_question *y) {
        bool same = x->workload == y->workload && x->message_size == y->message_size && x->placement == y->placement &&
                    x->threads == y->threads && x->both_ways == y->both_ways && x->want == y->want;
        for (size_t i = 0; i < WANT_COUNT; i++) /* NAN is as NAN */
                same = same && (x->limits[i] == y->limits[i] || (isnan(x->limits[i]) && isnan(y->limits[i])));
        return same;
}

/* The key is a hash of the question and of all experiments with their changes. The record's own question and
 * environment are compared too, as two may have one hash. */
static void make_key(const struct inquiry *by, struct cache_item *ret) {
        const struct advice_question *q = by->question;
        uint64_t id = HASH_BEGIN, change = id;
        const uint64_t parts[] = {q->workload, q->message_size, q->placement, q->threads, q->both_ways, q->want};
        id = hash_more(id, parts, sizeof(parts));
        if (by->host)
                id = hash_more(id, by->host, strlen(by->host));
        for (size_t i = 0; i < WANT_COUNT; i++)
                if (!isnan(q->limits[i]))
                        id = hash_more(hash_more(id, &i, sizeof(i)), &q->limits[i], sizeof(q->limits[i]));
        change = hash_more(change, by->environment, strlen(by->environment));
        if (by->state)
                change = hash_more(change, by->state, strlen(by->state));
        for (size_t i = 0; i < by->n; i++)
                change = hash_more(hash_more(change, &by->list[i].id, sizeof(by->list->id)), &by->list[i].change,
                                   sizeof(by->list->change));
        if (by->failed)
                change = hash_more(change, by->failed, by->n_failed * sizeof(*by->failed));
        ret->id = (int64_t) id;
        ret->change = (int64_t) change;
}

static size_t record_bytes(const struct advice_record *a) {
        size_t bytes = sizeof(*a) + a->advice.n * sizeof(*a->advice.items) + strlen(a->sentence) +
                       strlen(a->environment) + (a->settle_json ? strlen(a->settle_json) : 0) +
                       (a->host ? strlen(a->host) : 0) + (a->state ? strlen(a->state) : 0);
        for (size_t i = 0; i < a->n_failing; i++)
                bytes += strlen(a->failing[i].error);
        for (size_t i = 0; i < a->n_texts; i++)
                bytes += strlen(a->texts[i]) + 1 + sizeof(char *);
        return bytes;
}

static int make_record(const struct inquiry *by, struct advice_record *a) {
        _cleanup_(gathering_deinit) struct gathering g = {0};
        uint32_t repetitions = 0; /* that are proposed */
        int error = 0;
        if (!a->host) /* nothing can be queued there */
                error = failing_list(by->service, &a->question, a->state, a->failing, &a->n_failing, &g.unreadable,
                                     by->refusal);
        a->unreadable = (uint32_t) g.unreadable.n;
        for (size_t i = 0; error == 0 && i < by->n; i++)
                error = take_experiment(by, &by->list[i], a, &g);
        if (error < 0)
                return error;
        error = advice_draw(&a->question, g.rows, g.n, &a->advice);
        if (error < 0)
                return fail(by, error, "ranking what is known");
        error = take_versions(by->service, a, by->refusal);
        if (error < 0)
                return error;
        if (!a->host)
                error = advice_write_settling(by->service, a, &repetitions);
        if (error == 0)
                error = advice_write_sentence(a, repetitions);
        return error < 0 ? fail(by, error, "ranking what is known") : 0;
}

/* The record of this question and state; NULL without memory. */
static struct advice_record *record_new(const struct inquiry *by) {
        struct advice_record *a = calloc(1, sizeof(*a));
        if (!a)
                return NULL;
        a->question = *by->question;
        a->environment = strdup(by->environment);
        a->state = by->state ? strdup(by->state) : NULL;
        a->host = by->host ? strdup(by->host) : NULL;
        if (a->environment && !a->state == !by->state && !a->host == !by->host)
                return a;
        record_free(a);
        return NULL;
}

static int remember(const struct inquiry *by, const struct cache_item *key, struct advice_record **ret) {
        struct advice_record *a = record_new(by);
        if (!a)
                return fail(by, -ENOMEM, "the advice");
        int error = make_record(by, a);
        if (error == 0) {
                struct cache_item item = *key;
                item.payload = a;
                item.free_payload = record_free;
                item.bytes = record_bytes(a);
                error = cache_add(&by->service->cache, &item, &a->item);
                if (error < 0)
                        (void) fail(by, error, "keeping the advice");
        }
        if (error < 0) {
                record_free(a);
                return error;
        }
        *ret = a;
        return 0;
}

static bool are_same(const char *x, const char *y) {
        return x && y ? strcmp(x, y) == 0 : x == y;
}

static bool is_answer_to(const struct advice_record *a, const struct inquiry *by) {
        return is_same_question(&a->question, by->question) && are_same(a->host, by->host) &&
               strcmp(a->environment, by->environment) == 0 && are_same(a->state, by->state);
}

static int read_state(struct inquiry *by) {
        int error = list_measured(by->service, by->host, &by->list, &by->n, by->refusal);
        if (error == 0)
                error = by->host ? environment_of_newest(by->service, by->list, by->n, &by->environment, by->refusal)
                                 : environment_now(by->service, &by->environment, &by->state, by->refusal);
        if (error == 0 && !by->host)
                error = list_failed(by->service, &by->failed, &by->n_failed, by->refusal);
        return error;
}

int service_advice(struct service *s, const struct advice_question *q, const char *host, struct advice_record **ret,
                   struct refusal *r) {
        _cleanup_(inquiry_deinit) struct inquiry by = {.service = s, .question = q, .host = host, .refusal = r};
        struct cache_item key = {.kind = CACHE_ADVICE};
        int error = read_state(&by);
        if (error < 0)
                return error;
        make_key(&by, &key);
        struct cache_item *item = cache_get(&s->cache, CACHE_ADVICE, key.id, key.change);
        struct advice_record *found = item ? item->payload : NULL;
        if (found && is_answer_to(found, &by)) {
                *ret = found;
                return 0;
        }
        cache_release(&s->cache, item);
        return remember(&by, &key, ret);
}

/* ---- to settle it ---- */

/* Whether a body that was stored with a key is a spec of this question's. */
static bool is_of_question(const char *body, const struct advice_question *q) {
        char wanted[SPEC_NAME_MAX + 1];
        struct json *spec = NULL;
        const char *name = "";
        if (json_parse(body, strlen(body), &spec, NULL) < 0)
                return false;
        const struct json *member = json_type(spec) == JSON_OBJECT ? json_get(spec, "name") : NULL;
        if (member)
                (void) json_as_string(member, &name); /* stays "" when it is none */
        advice_name_question(q, wanted);
        bool same = strcmp(name, wanted) == 0;
        json_free(spec);
        return same;
}

/* 1: the key is known with this question; 0: it is new. */
static int find_first(struct service *s, const char *key, const struct advice_question *q, int64_t *ret_id,
                      struct refusal *r) {
        _cleanup_free_ char *body = NULL;
        struct reader *reader;
        int error = service_reader_get(s, &reader, r);
        if (error < 0)
                return error;
        error = store_find_idempotency(reader->store, key, ret_id, &body);
        service_reader_put(s, reader);
        if (error == -ENOENT)
                return 0;
        if (error < 0)
                return service_fail(s, r, error, "looking up the Idempotency-Key", 0);
        if (!is_of_question(body, q))
                return refuse(r, 422, "idempotency-key-reused", "",
                              "Idempotency-Key \"%s\" was used with another body, for experiment %" PRId64, key,
                              *ret_id);
        return 1;
}

int service_settle(struct service *s, const struct advice_question *q, const char *idempotency_key, int64_t *ret_id,
                   bool *ret_created, struct refusal *r) {
        struct advice_record *advice;
        int64_t first = 0;
        int error = idempotency_key ? find_first(s, idempotency_key, q, &first, r) : 0;
        if (error > 0) {
                *ret_id = first;
                *ret_created = false;
                return 0;
        }
        if (error == 0)
                error = service_advice(s, q, NULL, &advice, r);
        if (error < 0)
                return error;
        error = advice->settle_json ? service_submit(s, advice->settle_json, strlen(advice->settle_json),
                                                     idempotency_key, ret_id, ret_created, r)
                                    : refuse(r, 409, "nothing-open", "", "%s %.400s",
                                             advice->too_long ? "What is open would take too long."
                                                              : "There is nothing that runs would settle.",
                                             advice->sentence);
        service_advice_release(s, advice);
        return error;
}
