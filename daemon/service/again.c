/* SPDX-License-Identifier: MIT */

/*
 * More runs of an existing experiment: `extend` adds repetitions, `retry` queues runs that did not succeed. Both are
 * committed on the main thread before they are answered, as a submission is.
 */

#include "daemon/run/blocks.h"
#include "daemon/run/sequence.h"
#include "daemon/service/service.h"
#include "daemon/service/submission.h"
#include "schema/json/json.h"
#include "schema/spec/value.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* A call's payload. Both go in portions. */
struct again {
        int64_t id;
        const char *field;    /* that gives the number: "blocks" or "repetitions"; static, NULL for a retry */
        uint32_t repetitions; /* to add */
        char *key;            /* NULL: none */
        uint32_t *groups;     /* of an extension's points that are compared */
        char text[80];        /* the request in one form, for the key's comparison */
        bool begun;           /* a portion is stored */
        bool replayed;        /* result */
};

static void again_free(void *p) {
        struct again *a = p;
        if (!a)
                return;
        free(a->groups);
        free(a->key);
        free(a);
}

UTIL_FREEP(again, again_free)

/* The body of `extend`. */
struct amount {
        uint32_t blocks, repetitions;
};

static const struct value amounts[] = {
        {"blocks", "Blocks to add, of each point once", VALUE(value_number, struct amount, blocks), .least = 1,
         .most = SPEC_REPETITIONS_MAX},
        {"repetitions", "The same", VALUE(value_number, struct amount, repetitions), .least = 1,
         .most = SPEC_REPETITIONS_MAX},
};
static const struct value_table amount_values = {VALUE_ROWS(amounts)};

static int read_amount(struct service *s, const char *body, size_t length, struct again *a, struct refusal *r) {
        _cleanup_(json_freep) struct json *root = NULL;
        struct json_error e;
        struct amount amount = {0};
        int error = json_parse_request(body, length, &root, &e);
        if (error == -EINVAL)
                return refuse(r, 400, "invalid-json", e.pointer, "%s", e.detail);
        if (error < 0)
                return service_fail(s, r, error, "reading the body", 0);
        error = values_read(&amount_values, root, "", &amount, r);
        if (error < 0)
                return error;
        if (amount.blocks > 0 && amount.repetitions > 0)
                return refuse(r, 422, "wrong-combination", "/repetitions",
                              "blocks and repetitions are the same number; both are given");
        if (amount.blocks == 0 && amount.repetitions == 0)
                return refuse(r, 422, "missing-field", "/blocks", "how many blocks are to be added is not given");
        a->field = amount.blocks > 0 ? "blocks" : "repetitions";
        a->repetitions = amount.blocks > 0 ? amount.blocks : amount.repetitions;
        return 0;
}

static int check_state(int64_t id, const struct experiment_extent *e, struct refusal *r) {
        if (e->cancelling || e->state == STATE_CANCELLED)
                return refuse(r, 409, "not-extensible", "",
                              "experiment %" PRId64 " was cancelled: retry what was cancelled first", id);
        if (e->searches)
                return refuse(r, 409, "not-extensible", "",
                              "experiment %" PRId64 " searches, and its rates are its own", id);
        return 0;
}

static int check_limit(const struct again *a, const char *limit, uint64_t n, unsigned most, struct refusal *r) {
        char pointer[32], value[32], most_text[32];
        if (n <= most)
                return 0;
        (void) snprintf(pointer, sizeof(pointer), "/%s", a->field);
        (void) snprintf(value, sizeof(value), "%" PRIu64, n);
        (void) snprintf(most_text, sizeof(most_text), "%u", most);
        return refuse_limit(r, pointer, limit, most_text, value,
                            "experiment %" PRId64 " would have %s %s in all, at most %s are allowed", a->id, value,
                            limit, most_text);
}

static int check_extension(struct service *s, struct store *store, const struct again *a,
                           const struct experiment_extent *e, const struct spec *spec, struct refusal *r) {
        uint64_t repetitions = (uint64_t) e->repetitions + a->repetitions;
        unsigned most = spec->until.relative_ci > 0 ? SPEC_UNTIL_REPETITIONS_MAX : SPEC_REPETITIONS_MAX;
        int error = check_limit(a, "repetitions", repetitions, most, r);
        if (error == 0)
                error = check_limit(a, "runs", repetitions * e->n_points, SPEC_RUNS_MAX, r);
        if (error == 0)
                error = submission_check_room(s, store, e->state == STATE_DONE || e->state == STATE_FAILED,
                                              (uint64_t) a->repetitions * e->n_points, r);
        return error;
}

/* *ret is the caller's, also after an error. */
static int read_checked(struct service *s, struct store *store, const struct again *a,
                        const struct experiment_extent *e, struct spec **ret, struct refusal *r) {
        int error = check_state(a->id, e, r);
        if (error < 0)
                return error;
        error = spec_parse_stored(e->merged_json, strlen(e->merged_json), ret, r);
        if (error == -ENOMEM)
                return service_fail(s, r, error, "reading the spec", 0);
        return error < 0 ? error : check_extension(s, store, a, e, *ret, r);
}

/* Stores the extension with its first portion. */
static int begin_extension(struct service *s, const struct again *a, const struct experiment_extent *e,
                           struct refusal *r) {
        _cleanup_free_ uint32_t *points = NULL;
        struct spec *spec = NULL;
        int error = read_checked(s, s->store, a, e, &spec, r);
        if (error < 0) {
                spec_free(spec);
                return error;
        }
        struct extension x = {.n_points = e->n_points,
                              .first_repetition = e->repetitions + 1,
                              .repetitions = a->repetitions,
                              .in_blocks = spec->order == ORDER_BLOCKS};
        error = sequence_make(spec->order, e->seed, a->groups, e->n_points, e->repetitions, a->repetitions, &points);
        spec_free(spec);
        x.order = points;
        if (error == 0)
                error = store_extend_some(s->store, a->id, &x, &(struct request_record){a->key, a->text});
        return error < 0 ? service_fail(s, r, error, "extending the experiment", 0) : error;
}

/* An extension that was begun before is whole before another one begins. Should a portion fail, housekeeping adds the
 * rest. */
static int extend(struct service *s, struct again *a, const struct experiment_extent *e, struct refusal *r) {
        int error = store_extend_more(s->store, a->id);
        if (error < 0) {
                service_arm_tidy(s);
                return service_fail(s, r, error, "extending the experiment", 0);
        }
        if (error > 0 || a->begun)
                return error;
        error = begin_extension(s, a, e, r);
        a->begun = error > 0;
        return error;
}

/* Queues a portion. The experiment waits or runs from the first portion on; runs that are not queued yet stay as they
 * were. A cancellation meanwhile ends the retry. */
static int retry(struct service *s, struct again *a, const struct experiment_extent *e, struct refusal *r) {
        if (e->cancelling && (a->begun || e->state == STATE_RUNNING)) {
                (void) refuse(r, 409, "running", "",
                              "experiment %" PRId64 " is being cancelled: a run of it still ends", a->id);
                return -EBUSY;
        }
        uint64_t n = 0;
        int error = a->begun ? 0 : store_retryable(s->store, a->id, &n);
        if (error < 0)
                return service_fail(s, r, error, "counting the runs", 0);
        if (n > 0) {
                bool waits = e->state == STATE_QUEUED || e->state == STATE_RUNNING;
                error = submission_check_room(s, s->store, !waits, n, r);
                if (error < 0)
                        return error;
        }
        error = store_retry_some(s->store, a->id, a->begun, &(struct request_record){a->key, a->text});
        if (error == -ENODATA) {
                (void) refuse(r, 409, "nothing-to-retry", "",
                              "experiment %" PRId64 " has no run that failed, was cancelled or was interrupted", a->id);
                return error;
        }
        a->begun = error > 0;
        return error < 0 ? service_fail(s, r, error, "queueing the runs again", 0) : error;
}

/* Main thread. */
static int commit_again(struct service *s, void *payload, struct refusal *r) {
        struct again *a = payload;
        int64_t known = 0;
        bool is_own = a->field && a->begun; /* an extension's key is remembered with its first portion */
        int error = a->key && !is_own ? idempotency_find(s, s->store, a->key, a->text, &known, r) : 0;
        a->replayed = known > 0;
        if (error < 0 || a->replayed)
                return error;
        struct experiment_extent e = {0};
        error = store_read_extent(s->store, a->id, &e);
        if (error < 0)
                return service_fail(s, r, error, "experiment", a->id);
        if (e.imported)
                error = refuse(r, 409, "imported", "", "experiment %" PRId64 " is of another host: it is read-only",
                               a->id);
        else if (!a->begun) /* later ones are compared with it as it is */
                error = service_refuse_pinned(s, s->store, a->id, r);
        if (error == 0)
                error = a->field ? extend(s, a, &e, r) : retry(s, a, &e, r);
        experiment_extent_deinit(&e);
        if (error < 0)
                return error;
        service_changed(s, a->id);
        if (s->hooks.submitted)
                s->hooks.submitted(s->hooks.userdata);
        return error;
}

static int again_new(struct service *s, int64_t id, const char *key, struct again **ret, struct refusal *r) {
        int error = key ? idempotency_check(key, r) : 0;
        if (error < 0)
                return error;
        _cleanup_(again_freep) struct again *a = calloc(1, sizeof(*a));
        if (!a)
                return service_fail(s, r, -ENOMEM, "the call", 0);
        a->id = id;
        a->key = key ? strdup(key) : NULL;
        if (key && !a->key)
                return service_fail(s, r, -ENOMEM, "the call", 0);
        *ret = util_steal(&a);
        return 0;
}

static int call_again(struct service *s, struct again **a, bool *ret_replayed, struct refusal *r) {
        static const struct call_type type = {OPERATION_AGAIN, commit_again, again_free};
        int error = service_call(s, &type, (void **) a, r);
        if (error == 0)
                *ret_replayed = (*a)->replayed;
        return error;
}

/* What was extended with this key before needs no groups. What the main thread refuses in any case is refused here,
 * before the points are read; another host's experiment is left to it. */
static int read_groups(struct service *s, struct store *store, struct again *a, struct refusal *r) {
        struct experiment_extent e = {0};
        struct spec *spec = NULL;
        int64_t known = 0;
        int error = a->key ? idempotency_find(s, store, a->key, a->text, &known, r) : 0;
        if (error < 0 || known > 0)
                return error;
        error = store_read_extent(store, a->id, &e);
        if (error < 0)
                return service_fail(s, r, error, "experiment", a->id);
        if (!e.imported)
                error = service_refuse_pinned(s, store, a->id, r);
        if (error == 0 && !e.imported)
                error = read_checked(s, store, a, &e, &spec, r);
        if (error == 0 && spec) {
                error = blocks_groups(store, a->id, spec, &a->groups);
                if (error < 0)
                        (void) service_fail(s, r, error, "reading the points", 0);
        }
        spec_free(spec);
        experiment_extent_deinit(&e);
        return error;
}

int service_extend(struct service *s, int64_t id, const char *body, size_t length, const char *idempotency_key,
                   bool *ret_replayed, struct refusal *r) {
        _cleanup_(again_freep) struct again *a = NULL;
        int error = again_new(s, id, idempotency_key, &a, r);
        if (error == 0)
                error = read_amount(s, body, length, a, r);
        if (error < 0)
                return error;
        (void) snprintf(a->text, sizeof(a->text), "extend %" PRId64 " %" PRIu32, id, a->repetitions);
        error = SERVICE_READ(s, r, NULL, 0, read_groups(s, store, a, r)); /* on this thread: many points take long */
        return error < 0 ? error : call_again(s, &a, ret_replayed, r);
}

int service_retry(struct service *s, int64_t id, const char *idempotency_key, bool *ret_replayed, struct refusal *r) {
        _cleanup_(again_freep) struct again *a = NULL;
        int error = again_new(s, id, idempotency_key, &a, r);
        if (error < 0)
                return error;
        (void) snprintf(a->text, sizeof(a->text), "retry %" PRId64, id);
        return call_again(s, &a, ret_replayed, r);
}
