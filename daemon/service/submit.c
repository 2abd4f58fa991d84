/* SPDX-License-Identifier: MIT */

/*
 * The service's changes: submit, cancel, forget. All checks of a submission run on the
 * caller's thread; only a reading of the machine, before them, and the commit hop to the main thread.
 */

#include "daemon/admission/admission.h"
#include "daemon/placement/placement.h"
#include "daemon/result/search.h"
#include "daemon/result/until.h"
#include "daemon/run/sequence.h"
#include "daemon/service/service.h"
#include "daemon/service/submission.h"
#include "daemon/tune/tuning.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>

#define KEY_MAX 200u
#define SKIPPED_MAX (1024u * 1024u)        /* bytes of the points that are left out, as JSON with their reasons */
#define RUN_OVERHEAD_NS (NSEC_PER_SEC / 2) /* around the window, generously: the first done run corrects it */
/* A window of messages has no known length until the first run has ended, here or in an earlier experiment: else these
 * are estimates per message and per byte. A rate gives the window's length. */
#define EARLIER_TIMES_MAX 1024u /* points whose earlier runs are looked at, each in some tens of microseconds */
#define MESSAGE_NS 1000.0
#define BYTE_NS 1.0

void submission_free(void *p) {
        struct submission *sub = p;
        if (!sub)
                return;
        free(sub->body);
        free(sub->compact);
        free(sub->key);
        free(sub->skipped_json);
        free(sub->measures);
        spec_free(sub->spec);
        point_list_deinit(&sub->points);
        free(sub->message_ns);
        free(sub->until_json);
        free(sub->order);
        store_adding_deinit(&sub->adding);
        struct service *large = sub->large;
        free(sub);
        if (large)
                service_large_end(large);
}

/* The body's compact form */

static bool is_space(char c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Part of a number or a word, which white space separates from the next; a string's quote does that itself. */
static bool is_bare(char c) {
        return c != '\0' && !is_space(c) && !strchr("{}[],:\"", c);
}

/* Takes the white space between tokens out of JSON, in place. Text that is no JSON does not become JSON by it: a space
 * stays between two bare tokens. */
static void compact(char *json) {
        char *to = json;
        for (const char *from = json; *from;) {
                const char *begin = from;
                if (is_space(*from)) {
                        from += strspn(from, " \t\n\r");
                        if (to > json && is_bare(to[-1]) && is_bare(*from))
                                *to++ = ' ';
                        continue;
                }
                if (*from++ == '"') {
                        while (*from && *from != '"')
                                from += *from == '\\' && from[1] ? 2 : 1;
                        from += *from == '"';
                }
                memmove(to, begin, (size_t) (from - begin));
                to += from - begin;
        }
        *to = '\0';
}

/* Idempotency */

int idempotency_check(const char *key, struct refusal *r) {
        size_t length = strnlen(key, KEY_MAX + 1);
        if (length == 0 || length > KEY_MAX)
                return refuse(r, 400, "invalid-idempotency-key", "",
                              "Idempotency-Key must have 1 to %u characters, this one has %s", KEY_MAX,
                              length ? "more" : "none");
        for (size_t i = 0; i < length; i++)
                if (key[i] < 0x21 || key[i] > 0x7e)
                        return refuse(r, 400, "invalid-idempotency-key", "",
                                      "Idempotency-Key must be visible ASCII; byte %zu is not", i + 1);
        return 0;
}

int idempotency_find(struct service *s, struct store *store, const char *key, const char *text, int64_t *ret_id,
                     struct refusal *r) {
        _cleanup_free_ char *known = NULL;
        int64_t id;
        int error = store_find_idempotency(store, key, &id, &known);
        if (error == -ENOENT) {
                *ret_id = 0;
                return 0;
        }
        if (error < 0)
                return service_fail(s, r, error, "looking up the Idempotency-Key", 0);
        compact(known); /* an earlier version stored it as posted */
        if (!text || strcmp(known, text) != 0)
                return refuse(r, 422, "idempotency-key-reused", "",
                              "Idempotency-Key \"%s\" was used with another body, for experiment %" PRId64, key, id);
        *ret_id = id;
        return 0;
}

/* NULL: no other text is the same, as the body has a NUL in it. */
static const char *text_of(const struct submission *sub) {
        return strlen(sub->body) == sub->length ? sub->compact : NULL;
}

/* Room */

static int refuse_room(struct refusal *r, int status, const char *limit, uint64_t most, uint64_t needed,
                       const char *what) {
        char most_text[24], needed_text[24];
        (void) snprintf(most_text, sizeof(most_text), "%" PRIu64, most);
        (void) snprintf(needed_text, sizeof(needed_text), "%" PRIu64, needed);
        int error = refuse_limit(r, "", limit, most_text, needed_text,
                                 "with this experiment there would be %s %s, and %s is %s (to raise it: %s = N in "
                                 "ipclabd.conf)",
                                 needed_text, what, limit, most_text, limit);
        (void) snprintf(r->code, sizeof(r->code), "%s", status == 507 ? "insufficient-storage" : "queue-full");
        r->status = status;
        return error;
}

static int check_bytes(const struct service *s, const struct store_backlog *now, struct refusal *r) {
        uint64_t most = s->hooks.max_database_bytes;
        if (most == 0 || now->bytes <= most)
                return 0;
        return refuse_room(r, 507, "max_database_bytes", most, now->bytes, "bytes in the database");
}

int submission_check_bytes(struct service *s, struct refusal *r) {
        struct store_backlog now;
        int error = store_backlog(s->store, &now);
        return error < 0 ? service_fail(s, r, error, "counting what is stored", 0) : check_bytes(s, &now, r);
}

/* Checks whether n runs more may wait. A full queue empties by itself: 429; a full database does not: 507. */
int submission_check_room(struct service *s, struct store *store, unsigned experiments, uint64_t runs,
                          struct refusal *r) {
        const struct service_hooks *most = &s->hooks;
        struct store_backlog waiting;
        int error = store_backlog(store, &waiting);
        if (error < 0)
                return service_fail(s, r, error, "counting what waits", 0);
        if (most->max_queued_experiments && waiting.experiments + experiments > most->max_queued_experiments)
                return refuse_room(r, 429, "max_queued_experiments", most->max_queued_experiments,
                                   waiting.experiments + experiments, "experiments that wait");
        if (most->max_queued_runs && waiting.runs + runs > most->max_queued_runs)
                return refuse_room(r, 429, "max_queued_runs", most->max_queued_runs, waiting.runs + runs,
                                   "runs that wait");
        return check_bytes(s, &waiting, r);
}

/* Points */

/* The list is part of the experiment from then on, which is stored, and answered, as a whole. */
static int write_skipped(struct service *s, struct json_writer *w, const struct point *point, const char *reason,
                         struct refusal *r) {
        _cleanup_free_ char *json = point_to_json(point);
        if (!json)
                return service_fail(s, r, -ENOMEM, "the list of skipped points", 0);
        json_object_begin(w);
        json_member_raw(w, "point", json);
        json_member_string(w, "reason", reason);
        json_object_end(w);
        if (w->length <= SKIPPED_MAX)
                return 0;
        char most[24];
        (void) snprintf(most, sizeof(most), "%u", SKIPPED_MAX);
        return refuse_limit(r, "", "skipped bytes", most, "",
                            "the points that would be left out are listed with their reasons, and the list would be "
                            "longer than %s bytes: post fewer points at once",
                            most);
}

/* Admits the points that are tried first, or those with a fallback placement (`otherwise`). */
static int admit_some(struct service *s, struct submission *sub, const struct admission_host *host, bool otherwise,
                      size_t *admitted, struct refusal *reason, struct json_writer *w, struct refusal *r) {
        struct point_list *list = &sub->points;
        for (size_t i = *admitted; i < list->n_points; i++) {
                struct refusal *why = sub->spec->skip_impossible ? reason : r;
                if (list->points[i].placement.otherwise != otherwise)
                        continue;
                int error = admission_check(host, sub->spec, &list->points[i], why);
                if (error == 0) { /* to the front of the list, behind the others that are admitted */
                        struct point point = list->points[i];
                        list->points[i] = list->points[*admitted];
                        point.placement.otherwise = false; /* it is the placement to use now */
                        list->points[(*admitted)++] = point;
                        continue;
                }
                if (error != -EINVAL)
                        return service_fail(s, r, error, "looking at this host's limits", 0);
                if (!sub->spec->skip_impossible)
                        return error;
                error = write_skipped(s, w, &list->points[i], reason->detail, r);
                if (error < 0)
                        return error;
        }
        return 0;
}

/* Admits the points that this host can run; the others are listed as skipped, or refuse the whole submission. */
static int admit_points(struct service *s, struct submission *sub, struct json_writer *w, struct refusal *r) {
        struct point_list *list = &sub->points;
        struct admission_host host = service_admission_host(s);
        struct admission_session session;
        struct refusal reason = {0};
        size_t admitted = 0;
        int error = admission_session_init(&session, host.root);
        if (error < 0)
                return service_fail(s, r, error, "looking at this host's limits", 0);
        host.session = &session;
        error = admit_some(s, sub, &host, false, &admitted, &reason, w, r);
        if (error == 0 && admitted == 0)
                error = admit_some(s, sub, &host, true, &admitted, &reason, w, r);
        admission_session_deinit(&session);
        if (error < 0)
                return error;
        if (admitted == 0) {
                const char *first = reason.detail[0]  ? reason.detail
                                    : list->n_skipped ? list->skipped[0].reason
                                                      : "the spec spans none";
                return refuse(r, 422, "no-points", "", "no point is left to run; one reason: %s", first);
        }
        list->n_points = admitted;
        return 0;
}

static int choose_points(struct service *s, struct submission *sub, struct refusal *r) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_array_begin(&w);
        int error = 0;
        for (size_t i = 0; error == 0 && i < sub->points.n_skipped; i++)
                error = write_skipped(s, &w, &sub->points.skipped[i].point, sub->points.skipped[i].reason, r);
        if (error == 0)
                error = admit_points(s, sub, &w, r);
        if (error == 0) {
                json_array_end(&w);
                error = json_writer_steal(&w, &sub->skipped_json, NULL);
                if (error < 0)
                        (void) service_fail(s, r, error, "the list of skipped points", 0);
        }
        return error;
}

/* How long a message of the points has taken here, where the window ends after a number of them. What cannot be read of
 * earlier runs is not known. */
static int find_message_times(struct service *s, struct submission *sub, struct refusal *r) {
        struct reader *reader;
        if (sub->spec->end.duration_ns)
                return 0;
        sub->message_ns = reallocarray(NULL, sub->points.n_points, sizeof(*sub->message_ns));
        if (!sub->message_ns)
                return service_fail(s, r, -ENOMEM, "the submission", 0);
        int error = service_reader_get(s, &reader, r);
        if (error < 0)
                return error;
        for (size_t i = 0; i < sub->points.n_points; i++) {
                sub->message_ns[i] = NAN;
                _cleanup_free_ char *json =
                        error == 0 && i < EARLIER_TIMES_MAX ? point_to_json(&sub->points.points[i]) : NULL;
                if (error == 0 && i < EARLIER_TIMES_MAX)
                        error = json ? store_earlier_time(reader->store, json, &sub->message_ns[i]) : -ENOMEM;
                if (error == -ENOENT || error == -EBADMSG)
                        error = 0;
        }
        service_reader_put(s, reader);
        return error < 0 ? service_fail(s, r, error, "reading earlier runs", 0) : 0;
}

static double guess_window(const struct spec *spec, const struct point *p) {
        double n = (double) window_end_messages(&spec->end, p), hops = 1;
        if (p->workload == WORKLOAD_PINGPONG)
                hops = 2;
        else if (workload_has_processes(p->workload))
                hops = p->processes;
        return n * hops * (MESSAGE_NS + BYTE_NS * (double) (p->message_size + p->working_set));
}

static double estimate_window(const struct submission *sub, size_t i) {
        const struct spec *spec = sub->spec;
        const struct point *p = &sub->points.points[i];
        double n = (double) window_end_messages(&spec->end, p), rate = spec_point_rate(spec, p);
        if (spec->end.duration_ns)
                return (double) spec->end.duration_ns;
        double window =
                sub->message_ns && isfinite(sub->message_ns[i]) ? n * sub->message_ns[i] : guess_window(spec, p);
        return rate > 0 ? fmax(window, n / rate * (double) NSEC_PER_SEC) : window;
}

uint64_t submission_estimate(const struct submission *sub, size_t i) {
        double ns = (double) sub->spec->warmup_ns + estimate_window(sub, i) + (double) RUN_OVERHEAD_NS;
        return (uint64_t) fmin(ns, (double) sub->run_timeout_ns);
}

double submission_block_seconds(const struct submission *sub) {
        double ns = 0;
        for (size_t i = 0; i < sub->points.n_points; i++)
                ns += (double) submission_estimate(sub, i);
        return ns / (double) NSEC_PER_SEC;
}

static int choose_order(struct service *s, struct submission *sub, struct refusal *r) {
        sub->seed = sub->spec->seed;
        if (!sub->spec->has_seed) {
                uint64_t bits;
                if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
                        return service_fail(s, r, -errno, "getrandom", 0);
                sub->seed = bits >> 11; /* 53 bits: exact in every JSON reader */
        }
        sub->repetitions = sub->spec->repetitions;
        _cleanup_free_ uint32_t *groups = NULL;
        int error = points_group(sub->spec, sub->points.points, sub->points.n_points, &groups);
        if (error == 0 && sub->spec->until.relative_ci > 0)
                error = until_begin(sub->spec, submission_block_seconds(sub), &sub->repetitions, &sub->until_json);
        if (error == 0 && sub->spec->search.latency_p99_below_us > 0)
                error = search_begin(sub->spec, &sub->until_json);
        if (error == 0)
                error = sequence_make(sub->spec->order, sub->seed, groups, sub->points.n_points, 0, sub->repetitions,
                                      &sub->order);
        return error < 0 ? service_fail(s, r, error, "the order of the runs", 0) : 0;
}

/* Submit */

/* Main thread. */
static int commit_submission(struct service *s, void *payload, struct refusal *r) {
        struct submission *sub = payload;
        if (sub->key) {
                /* checked again: two may have come at once */
                int error = idempotency_find(s, s->store, sub->key, text_of(sub), &sub->id, r);
                if (error < 0 || sub->id > 0)
                        return error;
        }
        int error = submission_check_room(s, s->store, 1, (uint64_t) sub->points.n_points * sub->repetitions, r);
        if (error < 0)
                return error;
        error = store_add_some(
                s->store,
                &(struct new_experiment){
                        .spec_json = sub->compact,
                        .spec = sub->spec,
                        .points = &sub->points,
                        .skipped_json = sub->skipped_json,
                        .measures = sub->measures,
                        .seed = sub->seed,
                        .order = sub->order,
                        .repetitions = sub->repetitions,
                        .until_json = sub->until_json,
                        .estimate_ns = (uint64_t) (submission_block_seconds(sub) * (double) NSEC_PER_SEC /
                                                   (double) sub->points.n_points),
                        .idempotency_key = sub->key,
                },
                &sub->adding);
        if (error < 0) {
                service_arm_tidy(s); /* removes the portions that are stored */
                return service_fail(s, r, error, "storing the experiment", 0);
        }
        if (error > 0)
                return error;
        sub->id = sub->adding.id;
        sub->created = true;
        service_changed(s, sub->id);
        if (s->hooks.submitted)
                s->hooks.submitted(s->hooks.userdata);
        return 0;
}

/* A window as long as the limit is refused too, as starting and ending a run takes time as well. The runner checks
 * again, as a stored experiment may come from a daemon with a higher limit. */
static int check_run_timeout(const struct service *s, const struct spec *spec, struct refusal *r) {
        uint64_t most = s->hooks.run_timeout_ns, planned = spec->warmup_ns + spec->end.duration_ns;
        char most_text[32], planned_text[32];
        if (most == 0 || planned < most)
                return 0;
        (void) snprintf(most_text, sizeof(most_text), "%.9g", (double) most / 1e9);
        (void) snprintf(planned_text, sizeof(planned_text), "%.9g", (double) planned / 1e9);
        return refuse_limit(r, spec->end.duration_ns ? "/duration_seconds" : "/warmup_seconds", "run_timeout",
                            most_text, planned_text,
                            "warm-up and window take %s seconds, and a whole run may take no longer than run_timeout, "
                            "which is %s (to raise it: run_timeout = SECONDS in ipclabd.conf)",
                            planned_text, most_text);
}

static int span_points(struct service *s, struct submission *sub, struct refusal *r) {
        int error = placement_expand_pairs(s->hooks.topology, sub->spec, r);
        if (error == 0)
                error = tuning_check(s->root, s->hooks.host_tuning, &sub->spec->tune, r);
        if (error == 0)
                error = spec_points(sub->spec, &sub->points, r);
        if (error == -ENOMEM)
                return service_fail(s, r, error, "reading the spec", 0);
        if (error < 0)
                return error;
        /* before the points are examined, which takes a while if they are many; they may be left out of it yet */
        uint64_t n = sub->spec->skip_impossible ? 1 : (uint64_t) sub->points.n_points * sub->spec->repetitions;
        error = SERVICE_READ(s, r, NULL, 0, submission_check_room(s, store, 1, n, r));
        return error < 0 ? error : choose_points(s, sub, r);
}

/* The caller has the turn already where the body is large. */
static int take_turn(struct service *s, struct submission *sub, struct refusal *r) {
        if (sub->length > SERVICE_LARGE_BODY || spec_points_most(sub->spec) <= SERVICE_MANY_POINTS)
                return 0;
        int error = service_large_begin(s, r);
        if (error == 0)
                sub->large = s;
        return error;
}

int submission_prepare(struct service *s, struct submission *sub, struct refusal *r) {
        int error = spec_parse(sub->body, sub->length, &sub->spec, r);
        if (error == -ENOMEM)
                return service_fail(s, r, error, "reading the spec", 0);
        if (error == 0)
                error = check_run_timeout(s, sub->spec, r);
        const struct agent_identity *agents = s->hooks.agents;
        if (error == 0 && agents && agents->trouble[0]) /* a problem of the host, not of the experiment */
                error = refuse(r, 503, "not-available", "", "no run can be started: %s", agents->trouble);
        if (error == 0)
                error = take_turn(s, sub, r);
        if (error == 0)
                error = service_look_at_machine(s, r);
        if (error < 0)
                return error;
        topology_hold(); /* all points are checked against the same machine */
        error = span_points(s, sub, r);
        topology_release();
        if (error == 0)
                error = find_message_times(s, sub, r);
        return error < 0 ? error : choose_order(s, sub, r);
}

int submission_new(struct service *s, const char *body, size_t length, const char *key, struct submission **ret,
                   struct refusal *r) {
        _cleanup_(submission_freep) struct submission *sub = calloc(1, sizeof(*sub));
        if (!sub)
                return service_fail(s, r, -ENOMEM, "the submission", 0);
        sub->body = malloc(length + 1);
        sub->key = key ? strdup(key) : NULL;
        if (!sub->body || (key && !sub->key))
                return service_fail(s, r, -ENOMEM, "the submission", 0);
        memcpy(sub->body, body, length);
        sub->body[length] = '\0';
        sub->length = length;
        sub->run_timeout_ns = s->hooks.run_timeout_ns ? s->hooks.run_timeout_ns : INT64_MAX;
        sub->compact = strdup(sub->body);
        if (!sub->compact)
                return service_fail(s, r, -ENOMEM, "the submission", 0);
        compact(sub->compact);
        *ret = util_steal(&sub);
        return 0;
}

int service_submit(struct service *s, const char *body, size_t length, const char *idempotency_key, int64_t *ret_id,
                   bool *ret_created, struct refusal *r) {
        static const struct call_type type = {OPERATION_SUBMIT, commit_submission, submission_free};
        _cleanup_(submission_freep) struct submission *sub = NULL;
        int error = idempotency_key ? idempotency_check(idempotency_key, r) : 0;
        if (error == 0)
                error = submission_new(s, body, length, idempotency_key, &sub, r);
        if (error == 0 && sub->key)
                error = SERVICE_READ(s, r, NULL, 0, idempotency_find(s, store, sub->key, text_of(sub), &sub->id, r));
        if (error == 0 && sub->id == 0) {
                error = submission_prepare(s, sub, r);
                if (error == 0) /* which the main thread need not find in a spec of a megabyte */
                        error = SERVICE_READ(s, r, "reading the spec", 0,
                                             store_measures(store, sub->spec->merged_json, &sub->measures));
                if (error == 0)
                        error = service_call(s, &type, (void **) &sub, r);
        }
        if (error < 0)
                return error;
        *ret_id = sub->id;
        *ret_created = sub->created;
        return 0;
}

/* Cancel and forget */

static int run_cancel(struct service *s, void *payload, struct refusal *r) {
        int64_t id = *(int64_t *) payload, running;
        int error = store_cancel_experiment(s->store, id, &running);
        int more = error > 0;
        if (error == -EALREADY) {
                (void) refuse(r, 409, "already-finished", "", "experiment %" PRId64 " has ended already", id);
                return error;
        }
        if (error < 0)
                return service_fail(s, r, error, "experiment", id);
        if (running > 0 && s->hooks.cancel_running)
                s->hooks.cancel_running(s->hooks.userdata, running);
        service_changed(s, id);
        return more;
}

static int run_delete(struct service *s, void *payload, struct refusal *r) {
        int64_t id = *(int64_t *) payload;
        int error = store_delete_experiment(s->store, id);
        if (error == -EBUSY) {
                (void) refuse(r, 409, "running", "", "experiment %" PRId64 " is running: cancel it first", id);
                return error;
        }
        if (error == -EEXIST)
                return service_refuse_pinned(s, s->store, id, r);
        if (error == -EPERM)
                return service_refuse_unexported(s, id, r);
        if (error < 0)
                return service_fail(s, r, error, "experiment", id);
        service_changed(s, id);
        service_arm_tidy(s);
        return 0;
}

static int call_with_id(struct service *s, const struct call_type *type, int64_t id, struct refusal *r) {
        _cleanup_free_ int64_t *payload = malloc(sizeof(*payload));
        if (!payload)
                return service_fail(s, r, -ENOMEM, "the call", 0);
        *payload = id;
        return service_call(s, type, (void **) &payload, r);
}

int service_cancel(struct service *s, int64_t id, struct refusal *r) {
        static const struct call_type type = {OPERATION_CANCEL, run_cancel, free};
        return call_with_id(s, &type, id, r);
}

int service_delete(struct service *s, int64_t id, struct refusal *r) {
        static const struct call_type type = {OPERATION_DELETE, run_delete, free};
        return call_with_id(s, &type, id, r);
}
