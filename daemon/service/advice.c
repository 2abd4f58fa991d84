/* SPDX-License-Identifier: MIT */

/*
 * Advice: gathers the figures of the stored experiments that belong to a question, has them ranked by
 * daemon/analysis/advice.h, and writes the spec that would settle what stays open. Only experiments whose runs had the
 * environment that is in force now are used, and only those with a closed loop on a host as it is. Of another host,
 * whose experiments came as bundles, it is the environment of the newest.
 */

#include "daemon/admission/admission.h"
#include "daemon/analysis/phrase.h"
#include "daemon/host/environment.h"
#include "daemon/host/topology.h"
#include "daemon/service/evidence.h"
#include "daemon/service/failing.h"
#include "daemon/service/service.h"
#include "schema/hash.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define SETTLE_REPETITIONS 12u /* pairs enough for six mechanisms */
#define SETTLE_REPETITIONS_MAX 60u
#define SETTLE_MECHANISMS_MAX 8u
#define LEFT_NAMED_MAX 4u /* that the sentence names of those that the runs leave open */
#define SETTLE_DURATION 1.0
#define SETTLE_WARMUP 0.25
/* From this size on, a window for a 99th percentile ends after the messages that it takes, however long that is. */
#define SETTLE_COUNTED_SIZE (UINT64_C(128) << 10)
/* A longer one is not proposed: 12 repetitions of 11 transports would take hours. The messages' bytes are known before,
 * and 1 GB/s is about what a slow transport of long messages carries. */
#define SETTLE_WINDOW_MAX_SECONDS 60.0
#define SETTLE_BYTES_PER_SECOND 1e9

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

/* One damaged experiment does not hide the others' figures. */
static void count_unreadable(int64_t experiment_id, const struct failing_unreadable *counted, struct advice_record *a) {
        for (size_t i = 0; i < counted->n; i++)
                if (counted->ids[i] == experiment_id)
                        return;
        a->unreadable++;
}

static int take_experiment(struct service *s, const struct experiment_change *x, const char *environment,
                           const struct advice_question *q, struct advice_record *a, struct gathering *g,
                           struct refusal *r) {
        const struct evidence *e;
        struct cache_item *item;
        int error = evidence_get(s, x->id, x->change, &e, &item, r);
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
        bool alike = e->environment && strcmp(e->environment, environment) == 0;
        if (concerns && !alike)
                a->other_environment++;
        else if (concerns && !e->closed_loop)
                a->unlike++;
        else if (concerns && take_evidence(q, e, x->id, a, g) < 0)
                error = service_fail(s, r, -ENOMEM, "gathering what is known", 0);
        if (alike && e->closed_loop)
                a->placements |= placements & ~(1u << q->placement);
        cache_release(&s->cache, item);
        return error;
}

/* Those of the experiments that the answer rests on; of one that cannot be read any more it stays NULL. */
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

/* ---- the spec that would settle it ---- */

static bool is_open(const struct advice_item *item) {
        return item->standing == STANDING_OPEN;
}

/* Whether runs without the leader would say more of it. */
static bool is_told_alone(const struct advice_item *item) {
        return item->reason == REASON_INTERPOLATED || item->reason == REASON_TOO_FEW_RUNS ||
               item->reason == REASON_LIMIT_UNDECIDED;
}

/* The leader and the open items of these settings, the first SETTLE_MECHANISMS_MAX; 0 where runs would say nothing. */
static size_t list_group(const struct advice *a, const char *settings,
                         const struct advice_item *ret[static SETTLE_MECHANISMS_MAX]) {
        size_t n = 0;
        bool says = false;
        for (size_t i = 0; i < a->n && n < SETTLE_MECHANISMS_MAX; i++) {
                const struct advice_item *item = &a->items[i];
                if ((!item->leads && !is_open(item)) || strcmp(item->settings, settings) != 0)
                        continue;
                ret[n++] = item;
                says |= is_open(item) && (ret[0]->leads || is_told_alone(item));
        }
        return says ? n : 0;
}

/* The mechanisms that the spec is about. An experiment has one of all settings, so they are those with the leader's, or
 * else, where these leave nothing open or nobody leads, with those of the first open item of which runs would say more.
 */
static size_t list_contenders(const struct advice *a, const struct advice_item *ret[static SETTLE_MECHANISMS_MAX]) {
        size_t n = 0;
        for (size_t i = 0; i < a->n && n == 0; i++)
                if (a->items[i].leads || is_open(&a->items[i]))
                        n = list_group(a, a->items[i].settings, ret);
        return n;
}

/* That decide all of it, as far as it is known how many do. `until` takes no such number, but it decides by what it
 * compares alone, with another correction than that of the whole answer. */
static uint32_t repetitions_wanted(const struct advice_item *const *items, size_t n) {
        uint32_t wanted = SETTLE_REPETITIONS;
        for (size_t i = 0; i < n; i++)
                if (items[i]->runs_needed > wanted)
                        wanted = items[i]->runs_needed;
        return wanted;
}

/* The values of an axis that the mechanisms have, each once; none where it has a meaning for none of them. */
static void member_axis(struct json_writer *w, const struct axis *a, const struct advice_item *const *items, size_t n) {
        bool begun = false;
        for (size_t i = 0; i < n; i++) {
                bool seen = !axis_applies(a, &items[i]->point);
                for (size_t k = 0; k < i && !seen; k++)
                        seen = axis_applies(a, &items[k]->point) &&
                               a->value.type->equal(&a->value, axis_of(a, &items[k]->point),
                                                    axis_of(a, &items[i]->point));
                if (seen)
                        continue;
                if (!begun) {
                        json_put_key(w, a->value.name);
                        json_array_begin(w);
                        begun = true;
                }
                a->value.type->write(&a->value, w, axis_of(a, &items[i]->point));
        }
        if (begun)
                json_array_end(w);
}

/* Whether it is about the latency of a stream, whose messages have to carry the time of their sending. */
static bool is_stamped(const struct advice_question *q) {
        bool latency = q->want == WANT_LATENCY_P50 || q->want == WANT_LATENCY_P99 ||
                       !isnan(q->limits[WANT_LATENCY_P50]) || !isnan(q->limits[WANT_LATENCY_P99]);
        return latency && q->workload == WORKLOAD_STREAM;
}

/* Whether runs of the transport have the figures that are asked for. */
static bool can_answer(const struct advice_question *q, enum transport t) {
        return !is_stamped(q) || (transport_terms[t].stamps && q->message_size >= SPEC_STAMPED_MIN);
}

/* Whether runs of it are worth while: it can answer, and does not only fail. */
static bool is_proposed(const struct advice_record *a, enum transport t) {
        for (size_t i = 0; i < a->n_failing; i++)
                if (a->failing[i].transport == t)
                        return false;
        return can_answer(&a->question, t);
}

/* Where nothing is known, or one mechanism alone: every transport, with default options. */
static void members_of_all(struct json_writer *w, const struct advice_record *a) {
        const struct advice_question *q = &a->question;
        json_member_string(w, "workload", workload_words.name(q->workload));
        json_put_key(w, "transport");
        json_array_begin(w);
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                if (is_proposed(a, t))
                        json_put_string(w, transport_words.name(t));
        json_array_end(w);
        if (is_stamped(q))
                json_member_bool(w, "stamp", true);
        json_member_u64(w, "message_size", q->message_size);
        json_member_u64(w, "threads", q->threads);
        json_member_string(w, "placement", placement_kind_name(q->placement));
}

static int members_of_settings(struct json_writer *w, const char *settings) {
        struct json *root;
        int r = json_parse(settings, strlen(settings), &root, NULL);
        if (r < 0)
                return r;
        for (const struct json *i = json_first(root); r == 0 && i; i = json_next(i)) {
                _cleanup_free_ char *text = json_print(i);
                r = text ? 0 : -ENOMEM;
                json_member_raw(w, json_key(i), text);
        }
        json_free(root);
        return r;
}

/* The experiment's name holds the whole question: service_settle() recognizes the question by it. */
static void name_question(const struct advice_question *q, char ret[static SPEC_NAME_MAX + 1]) {
        int used = snprintf(ret, SPEC_NAME_MAX + 1, "Advice: %s, %s, %" PRIu64 " B, threads %u, %s",
                            advice_terms[q->want].name, workload_words.name(q->workload), q->message_size, q->threads,
                            placement_kind_name(q->placement));
        for (size_t i = 0; i < WANT_COUNT && used < (int) SPEC_NAME_MAX; i++)
                if (!isnan(q->limits[i]))
                        used += snprintf(ret + used, SPEC_NAME_MAX + 1 - (size_t) used, ", %s %.6g %s",
                                         advice_terms[i].limit_words, q->limits[i] / advice_terms[i].limit_unit,
                                         advice_terms[i].limit_unit_name);
}

/* One mechanism is no ranking, and that each keeps the limits may be unknown. */
static bool is_incomplete(const struct advice *a) {
        size_t n_unknown = 0;
        for (size_t i = 0; i < a->n; i++)
                n_unknown += a->items[i].reason == REASON_LIMIT_NOT_KNOWN;
        return a->n <= 1 || n_unknown > 0;
}

static int has_stamp(const char *settings, bool *ret) {
        struct json *root;
        bool stamp = false;
        int r = json_parse(settings, strlen(settings), &root, NULL);
        if (r < 0)
                return r;
        if (json_get(root, "stamp"))
                r = json_as_bool(json_get(root, "stamp"), &stamp);
        json_free(root);
        *ret = stamp;
        return r;
}

/* The transports that can answer and have no item, a bit each. One that has an item which does not keep a limit for
 * certain, as its runs were too short for a percentile or had other options, has no better one after runs of all. */
static int find_unmeasured(const struct advice_record *a, unsigned *ret) {
        unsigned bits = 0;
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                bits |= is_proposed(a, t) ? 1u << t : 0;
        for (size_t i = 0; i < a->advice.n; i++) {
                bool answers = true;
                int r = is_stamped(&a->question) ? has_stamp(a->advice.items[i].settings, &answers) : 0;
                if (r < 0)
                        return r;
                if (answers)
                        bits &= ~(1u << a->advice.items[i].point.transport);
        }
        *ret = bits;
        return 0;
}

static int find_admitted(struct service *s, const struct spec *spec, const struct point_list *points, unsigned *ret) {
        struct admission_host host = service_admission_host(s);
        struct admission_session session;
        struct refusal why;
        unsigned bits = 0;
        int r = admission_session_init(&session, host.root);
        if (r < 0)
                return r;
        host.session = &session;
        topology_hold();
        for (size_t i = 0; (r == 0 || r == -EINVAL) && i < points->n_points; i++) {
                r = admission_check(&host, spec, &points->points[i], &why);
                bits |= r == 0 ? 1u << points->points[i].transport : 0;
        }
        topology_release();
        admission_session_deinit(&session);
        *ret = bits;
        return r == -EINVAL ? 0 : r;
}

/* The transports of the spec that this host can run, a bit each: a message may be too long for the others. */
static int find_possible(struct service *s, const char *json, unsigned *ret) {
        struct point_list points = {.points = NULL};
        struct spec *spec = NULL;
        struct refusal why;
        int r = spec_parse(json, strlen(json), &spec, &why);
        if (r == 0)
                r = spec_points(spec, &points, &why);
        if (r == 0)
                r = find_admitted(s, spec, &points, ret);
        point_list_deinit(&points);
        spec_free(spec);
        if (r == -EINVAL) /* it has no point that is possible */
                *ret = 0;
        return r == -EINVAL ? 0 : r;
}

static bool is_of_p99(const struct advice_question *q) {
        return q->want == WANT_LATENCY_P99 || !isnan(q->limits[WANT_LATENCY_P99]);
}

/* Whether a window ends after this many messages; 0: after a time. */
static uint64_t counted_messages(const struct advice_question *q) {
        bool counted = is_of_p99(q) && q->message_size >= SETTLE_COUNTED_SIZE;
        return counted ? (uint64_t) FIGURE_P99_LATENCIES_LEAST * q->threads : 0;
}

static bool is_too_long(const struct advice_question *q) {
        double transfers = q->workload == WORKLOAD_PINGPONG ? 2 : 1;
        double bytes = transfers * (double) counted_messages(q) * (double) q->message_size;
        return bytes > SETTLE_WINDOW_MAX_SECONDS * SETTLE_BYTES_PER_SECOND;
}

/* n == 0: of every transport. */
static int write_spec(struct advice_record *a, const struct advice_item *const *items, size_t n, uint32_t repetitions) {
        char name[SPEC_NAME_MAX + 1];
        struct json_writer w;
        int r = 0;
        name_question(&a->question, name);
        json_writer_init(&w);
        json_object_begin(&w);
        json_member_string(&w, "name", name);
        if (n == 0)
                members_of_all(&w, a);
        for (size_t i = 0; n > 0 && i < AXIS_COUNT; i++)
                member_axis(&w, &axes[i], items, n);
        if (n > 0)
                r = members_of_settings(&w, items[0]->settings);
        uint64_t messages = counted_messages(&a->question);
        if (messages > 0)
                json_member_u64(&w, "messages", messages);
        else
                json_member_double(&w, "duration_seconds", SETTLE_DURATION);
        json_member_double(&w, "warmup_seconds", SETTLE_WARMUP);
        json_member_u64(&w, "repetitions", repetitions);
        json_member_bool(&w, "skip_impossible", true);
        json_object_end(&w);
        if (r == 0)
                r = json_writer_steal(&w, &a->settle_json, NULL);
        json_writer_deinit(&w);
        return r;
}

/* Runs of all are of use only while there is a transport that they give its first item. */
static int propose_all(struct service *s, struct advice_record *a) {
        unsigned unmeasured = 0, possible = 0;
        int r = find_unmeasured(a, &unmeasured);
        if (r < 0 || unmeasured == 0 || !is_incomplete(&a->advice))
                return r;
        r = write_spec(a, NULL, 0, SETTLE_REPETITIONS);
        if (r < 0 || a->advice.n == 0) /* where nothing is known, a refusal of the spec is an answer, too */
                return r;
        r = find_possible(s, a->settle_json, &possible);
        if (r == 0 && !(unmeasured & possible))
                free(util_steal(&a->settle_json));
        return r;
}

/* One mechanism alone is compared with nothing: runs of all come first. */
static int choose_spec(struct service *s, struct advice_record *a, uint32_t *ret_repetitions) {
        const struct advice_item *items[SETTLE_MECHANISMS_MAX];
        size_t n = list_contenders(&a->advice, items);
        int r = n == 0 || a->advice.n == 1 ? propose_all(s, a) : 0;
        *ret_repetitions = SETTLE_REPETITIONS;
        if (r < 0 || n == 0 || a->settle_json)
                return r;
        uint32_t wanted = repetitions_wanted(items, n);
        *ret_repetitions = wanted < SETTLE_REPETITIONS_MAX ? wanted : SETTLE_REPETITIONS_MAX;
        return write_spec(a, items, n, *ret_repetitions);
}

static int write_settling(struct service *s, struct advice_record *a, uint32_t *ret_repetitions) {
        int r = choose_spec(s, a, ret_repetitions);
        if (r == 0 && a->settle_json && is_too_long(&a->question)) {
                a->too_long = true;
                free(util_steal(&a->settle_json));
        }
        return r;
}

/* ---- in words ---- */

static void write_mechanism(FILE *f, const struct point *p) {
        char words[PHRASE_MAX];
        phrase_axis(AXIS_TRANSPORT, p, words);
        (void) fputs(words, f);
        for (enum axis_name x = AXIS_TRANSPORT + 1; x < AXIS_COUNT; x++) {
                const struct value *v = &axes[x].value;
                if (x == AXIS_MESSAGE_SIZE || x == AXIS_THREADS || x == AXIS_PLACEMENT || !axis_applies(&axes[x], p) ||
                    v->type->equal(v, axis_of(&axes[x], p), v->standard))
                        continue;
                phrase_axis(x, p, words);
                (void) fprintf(f, " with %s %s", v->name, words);
        }
}

/* "1 is worse, 2 are undecided", of those that do not lead; nothing where there are none. */
static void write_counts(FILE *f, const struct advice *a, const char *before) {
        static const struct {
                enum advice_standing standing;
                enum advice_reason reason; /* REASON_NONE: any without a row of its own */
                const char *words;
        } rows[] = {{STANDING_WORSE, REASON_NONE, "worse"},
                    {STANDING_EQUAL, REASON_NONE, "equal within 3 %"},
                    {STANDING_OPEN, REASON_NONE, "undecided"},
                    {STANDING_OPEN, REASON_LIMIT_UNDECIDED, "too near a limit to tell whether it is kept"},
                    {STANDING_EXCLUDED, REASON_LIMIT, "beyond the limits"},
                    {STANDING_EXCLUDED, REASON_LIMIT_NOT_KNOWN, "without a figure that has a limit"}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                size_t n = 0;
                for (size_t k = 0; k < a->n; k++) {
                        enum advice_reason reason = a->items[k].reason;
                        bool any = rows[i].reason == REASON_NONE && reason != REASON_LIMIT_UNDECIDED;
                        n += !a->items[k].leads && a->items[k].standing == rows[i].standing &&
                             (any || reason == rows[i].reason);
                }
                if (n > 0)
                        (void) fprintf(f, "%s%zu %s %s", before, n, n == 1 ? "is" : "are", rows[i].words);
                before = n > 0 ? ", " : before;
        }
        (void) fputs(".", f);
}

static bool has_limits(const struct advice_question *q) {
        for (size_t i = 0; i < WANT_COUNT; i++)
                if (!isnan(q->limits[i]))
                        return true;
        return false;
}

static void write_leader(FILE *f, const struct advice_record *a, const struct advice_item *leader) {
        const struct advice_term *term = &advice_terms[a->question.want];
        const char *unit = figure_terms[term->figure].unit;
        char value[PHRASE_MAX], low[PHRASE_MAX], high[PHRASE_MAX];
        size_t n_better = a->advice.n_better;
        phrase_value(leader->value, unit, value);
        phrase_value(leader->low, unit, low);
        phrase_value(leader->high, unit, high);
        write_mechanism(f, &leader->point);
        if (a->advice.n == 1)
                (void) fprintf(f, " alone was measured: its %s is %s", term->words, value);
        else if (leader->standing != STANDING_BEST || n_better > 0)
                (void) fprintf(f, " leads: its %s is %s", term->words, value);
        else
                (void) fprintf(f, " has the %s %s %s, %s", term->less_is_better ? "lowest" : "greatest", term->words,
                               has_limits(&a->question) ? "of those that keep the limits" : "that was measured", value);
        if (leader->has_interval)
                (void) fprintf(f, " [%s, %s]", low, high);
        if (leader->reason == REASON_TOO_FEW_RUNS)
                (void) fprintf(f,
                               ". This is not confirmed: fewer than %u runs of it have this figure, too few to compare",
                               FINDINGS_RUNS_LEAST);
        else if (leader->standing != STANDING_BEST)
                (void) fprintf(f, ". This is not confirmed: experiments disagree on which is the best");
        write_counts(f, &a->advice, ". Of the others ");
        if (n_better > 0)
                (void) fprintf(f, " %zu of them %s a %s one by %s own runs, which no experiment with both confirms.",
                               n_better, n_better == 1 ? "has" : "have", term->less_is_better ? "lower" : "greater",
                               n_better == 1 ? "its" : "their");
}

/* Nothing leads: no size was measured, or none is known to keep the limits. */
static void write_none(FILE *f, const struct advice *a) {
        size_t n_measured = 0;
        for (size_t i = 0; i < a->n; i++)
                n_measured += !a->items[i].interpolated;
        if (n_measured > 0 || a->n_excluded == a->n)
                (void) fputs("nothing that was measured is known to keep the limits", f);
        else
                (void) fputs("this size was not measured; what there is was interpolated from other sizes", f);
        write_counts(f, a, ": ");
}

/* Whether the item has a version that none before it has. */
static bool is_new_version(const struct advice_item *items, size_t i) {
        for (size_t k = 0; items[i].version && k < i; k++)
                if (items[k].version && strcmp(items[k].version, items[i].version) == 0)
                        return false;
        return items[i].version != NULL;
}

static void write_versions(FILE *f, const struct advice *a) {
        const char *joint = " The figures come from different versions of ipclab: ";
        size_t n_ranked = a->n - a->n_excluded, n = 0;
        for (size_t i = 0; i < n_ranked; i++)
                n += is_new_version(a->items, i);
        for (size_t i = 0; n > 1 && i < n_ranked; i++)
                if (is_new_version(a->items, i)) {
                        (void) fprintf(f, "%s%s", joint, a->items[i].version);
                        joint = ", ";
                }
        if (n > 1)
                (void) fputs(".", f);
}

/* What the spec is for, and what stays open after its runs. */
static void write_proposal(FILE *f, const struct advice_record *a, uint32_t repetitions) {
        const struct advice_item *items[SETTLE_MECHANISMS_MAX];
        size_t n = list_contenders(&a->advice, items), n_left = 0;
        uint32_t wanted = repetitions_wanted(items, n);
        if (a->host || a->too_long)
                return;
        if (n > 0 && wanted > repetitions)
                (void) fprintf(f, " To decide more takes about %u runs of each: the %u that are proposed may not do.",
                               wanted, repetitions);
        else if (n > 0)
                (void) fprintf(f, " To decide more, %u runs of each are proposed.", repetitions);
        for (size_t i = 0; i < a->advice.n; i++) {
                const struct advice_item *item = &a->advice.items[i];
                bool listed = !is_open(item);
                for (size_t k = 0; k < n && !listed; k++)
                        listed = items[k] == item;
                if (listed || n_left++ >= LEFT_NAMED_MAX)
                        continue;
                (void) fputs(n_left > 1 ? ", " : n > 0 ? " They leave open " : " No runs would decide ", f);
                write_mechanism(f, &item->point);
                if (strcmp(item->settings, "{}") != 0)
                        (void) fprintf(f, " with %s", item->settings);
        }
        if (n_left > LEFT_NAMED_MAX)
                (void) fprintf(f, " and %zu more", n_left - LEFT_NAMED_MAX);
        if (n_left > 0)
                (void) fprintf(f, ": all mechanisms of an experiment have the same settings%s.",
                               n == SETTLE_MECHANISMS_MAX ? ", and eight are proposed at most" : "");
}

/* Why nothing is ranked. */
static void write_nothing(FILE *f, const struct advice_record *a) {
        const struct advice_term *term = &advice_terms[a->question.want];
        const char *few = a->advice.few ? figure_terms[term->figure].few : NULL;
        if (a->experiments == 0)
                (void) fprintf(f, "nothing is known of it under the environment %s.",
                               a->host ? "of its newest experiment" : "that is in force now");
        else if (a->advice.measured)
                (void) fprintf(f, "it was measured, but has no %s to rank by%s%s.", term->words, few ? ": " : "",
                               few ? few : "");
        else
                (void) fprintf(f,
                               "this size was not measured, and those that were do not tell it: to interpolate takes "
                               "%d sizes of a mechanism in one experiment, smaller ones and larger ones, whose times "
                               "straight lines fit.",
                               ADVICE_SIZES_LEAST);
}

static void write_placements(FILE *f, unsigned placements) {
        const char *joint = " Runs with another placement are stored: ";
        for (unsigned i = 0; i < PLACEMENT_ALL_NODE_PAIRS; i++)
                if (placements & 1u << i) {
                        (void) fprintf(f, "%s%s", joint, placement_kind_name(i));
                        joint = ", ";
                }
        if (placements)
                (void) fprintf(f, ".");
}

/* Why no other transport is asked about a stream's latency. */
static void write_stamps(FILE *f, const struct advice_question *q) {
        const char *joint = " over ";
        if (!is_stamped(q))
                return;
        (void) fprintf(f, " In a closed loop messages of %d B and more carry the time of their sending",
                       SPEC_STAMPED_MIN);
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                if (transport_terms[t].stamps) {
                        (void) fprintf(f, "%s%s", joint, transport_words.name(t));
                        joint = ", ";
                }
        (void) fprintf(f, " alone; elsewhere an open loop or a pingpong measures a latency.");
}

static void write_failing(FILE *f, const struct advice_record *a) {
        for (size_t i = 0; i < a->n_failing; i++) {
                const struct failing_transport *t = &a->failing[i];
                (void) fprintf(f,
                               " No runs of %s are proposed: all its %u runs of experiment %" PRId64
                               " failed on the machine as it is now, the last one with \"%s\".",
                               transport_words.name(t->transport), t->runs, t->experiment_id, t->error);
        }
}

static void write_too_long(FILE *f, const struct advice_record *a) {
        if (a->too_long)
                (void) fprintf(f,
                               " No runs are proposed: a 99th percentile takes %d latencies of each thread, for which "
                               "one run would last more than %.0f s at 1 GB/s.",
                               FIGURE_P99_LATENCIES_LEAST, SETTLE_WINDOW_MAX_SECONDS);
}

static int write_sentence(struct advice_record *a, uint32_t repetitions) {
        const struct advice_question *q = &a->question;
        char size[PHRASE_MAX];
        size_t length = 0;
        FILE *f = open_memstream(&a->sentence, &length);
        if (!f)
                return -ENOMEM;
        phrase_axis(AXIS_MESSAGE_SIZE, &(struct point){.message_size = q->message_size}, size);
        if (a->host)
                (void) fprintf(f, "Host %s, ", a->host);
        (void) fprintf(f, "%s, %s, %u %s, %s: ", workload_words.name(q->workload), size, q->threads,
                       q->threads == 1 ? "thread" : "threads", placement_kind_name(q->placement));
        if (a->advice.n == 0)
                write_nothing(f, a);
        else if (a->advice.items[0].leads)
                write_leader(f, a, &a->advice.items[0]);
        else
                write_none(f, &a->advice);
        write_versions(f, &a->advice);
        write_proposal(f, a, repetitions);
        if (a->advice.n == 0)
                write_placements(f, a->placements);
        if (a->other_environment > 0)
                (void) fprintf(f, " %u other %s left out: the environment was another.", a->other_environment,
                               a->other_environment == 1 ? "experiment was" : "experiments were");
        write_stamps(f, q);
        write_failing(f, a);
        write_too_long(f, a);
        bool failed = ferror(f);
        return fclose(f) != 0 || failed ? -ENOMEM : 0;
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
                    x->threads == y->threads && x->want == y->want;
        for (size_t i = 0; i < WANT_COUNT; i++) /* NAN is as NAN */
                same = same && (x->limits[i] == y->limits[i] || (isnan(x->limits[i]) && isnan(y->limits[i])));
        return same;
}

/* The key is a hash of the question and of all experiments with their changes. The record's own question and
 * environment are compared too, as two may have one hash. */
static void make_key(const struct advice_question *q, const char *host, const char *environment, const char *state,
                     const struct experiment_change *list, size_t n, int64_t *ret_id, int64_t *ret_change) {
        uint64_t id = HASH_BEGIN, change = id;
        const uint64_t parts[] = {q->workload, q->message_size, q->placement, q->threads, q->want};
        id = hash_more(id, parts, sizeof(parts));
        if (host)
                id = hash_more(id, host, strlen(host));
        for (size_t i = 0; i < WANT_COUNT; i++)
                if (!isnan(q->limits[i]))
                        id = hash_more(hash_more(id, &i, sizeof(i)), &q->limits[i], sizeof(q->limits[i]));
        change = hash_more(change, environment, strlen(environment));
        if (state)
                change = hash_more(change, state, strlen(state));
        for (size_t i = 0; i < n; i++)
                change = hash_more(hash_more(change, &list[i].id, sizeof(list->id)), &list[i].change,
                                   sizeof(list->change));
        *ret_id = (int64_t) id;
        *ret_change = (int64_t) change;
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

static int make_record(struct service *s, struct advice_record *a, const struct experiment_change *list, size_t n,
                       struct refusal *r) {
        _cleanup_(gathering_deinit) struct gathering g = {0};
        uint32_t repetitions = 0; /* that are proposed */
        int error = 0;
        if (!a->host) /* nothing can be queued there */
                error = failing_list(s, &a->question, a->state, a->failing, &a->n_failing, &g.unreadable, r);
        a->unreadable = (uint32_t) g.unreadable.n;
        for (size_t i = 0; error == 0 && i < n; i++)
                error = take_experiment(s, &list[i], a->environment, &a->question, a, &g, r);
        if (error < 0)
                return error;
        error = advice_draw(&a->question, g.rows, g.n, &a->advice);
        if (error < 0)
                return service_fail(s, r, error, "ranking what is known", 0);
        error = take_versions(s, a, r);
        if (error < 0)
                return error;
        if (!a->host)
                error = write_settling(s, a, &repetitions);
        if (error == 0)
                error = write_sentence(a, repetitions);
        return error < 0 ? service_fail(s, r, error, "ranking what is known", 0) : 0;
}

/* Takes the environment and the state over. */
static int remember(struct service *s, const struct advice_question *q, const char *host, char *environment,
                    char *state, const struct experiment_change *list, size_t n, const struct cache_item *key,
                    struct advice_record **ret, struct refusal *r) {
        struct advice_record *a = calloc(1, sizeof(*a));
        if (!a) {
                free(environment);
                free(state);
                return service_fail(s, r, -ENOMEM, "the advice", 0);
        }
        a->question = *q;
        a->environment = environment;
        a->state = state;
        a->host = host ? strdup(host) : NULL;
        int error = host && !a->host ? service_fail(s, r, -ENOMEM, "the advice", 0) : make_record(s, a, list, n, r);
        if (error == 0) {
                struct cache_item item = *key;
                item.payload = a;
                item.free_payload = record_free;
                item.bytes = record_bytes(a);
                error = cache_add(&s->cache, &item, &a->item);
                if (error < 0)
                        (void) service_fail(s, r, error, "keeping the advice", 0);
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

int service_advice(struct service *s, const struct advice_question *q, const char *host, struct advice_record **ret,
                   struct refusal *r) {
        _cleanup_free_ struct experiment_change *list = NULL, *failed = NULL;
        _cleanup_free_ char *environment = NULL, *state = NULL;
        struct cache_item key = {.kind = CACHE_ADVICE};
        size_t n = 0, n_failed = 0;
        int error = list_measured(s, host, &list, &n, r);
        if (error == 0)
                error = host ? environment_of_newest(s, list, n, &environment, r)
                             : environment_now(s, &environment, &state, r);
        if (error == 0 && !host)
                error = list_failed(s, &failed, &n_failed, r);
        if (error < 0)
                return error;
        make_key(q, host, environment, state, list, n, &key.id, &key.change);
        if (n_failed > 0)
                key.change = (int64_t) hash_more((uint64_t) key.change, failed, n_failed * sizeof(*failed));
        struct cache_item *item = cache_get(&s->cache, CACHE_ADVICE, key.id, key.change);
        struct advice_record *found = item ? item->payload : NULL;
        if (found && is_same_question(&found->question, q) && are_same(found->host, host) &&
            strcmp(found->environment, environment) == 0 && are_same(found->state, state)) {
                *ret = found;
                return 0;
        }
        cache_release(&s->cache, item);
        return remember(s, q, host, util_steal(&environment), util_steal(&state), list, n, &key, ret, r);
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
        name_question(q, wanted);
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
