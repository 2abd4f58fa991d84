/* SPDX-License-Identifier: MIT */

/*
 * The service's reads of single records, lists and changes. A list is read a page at a time, each in a transaction of
 * its own, and visited when the connection has been given back: a client that takes its time over a long export holds
 * up neither the other readers nor the write-ahead log's checkpoint. Runs alone are visited before that, without a copy
 * of their texts.
 */

#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>

/* Records per page, at most: the store ends it earlier where they are large. */
#define EXPERIMENTS_PER_PAGE 16u
#define RECORDS_PER_PAGE 64u

/* The rest of a function that visits a list of one kind of record, at most `limit` of them. `call` reads the next ones
 * from `store`, `some` at the most, into page and n; `failed` is the result where the call has returned `error`.
 * `passed` moves the place where the next page begins behind `record`. */
#define VISIT_PAGES(kind, limit, most, call, failed, passed)                                                           \
        do {                                                                                                           \
                for (uint32_t left = (limit); left > 0;) {                                                             \
                        struct kind##_record *page = NULL;                                                             \
                        size_t n = 0;                                                                                  \
                        uint32_t some = left < (most) ? left : (most);                                                 \
                        struct reader *reader;                                                                         \
                        int error = service_reader_get(s, &reader, r);                                                 \
                        if (error < 0)                                                                                 \
                                return error;                                                                          \
                        struct store *store = reader->store;                                                           \
                        error = (call);                                                                                \
                        service_reader_put(s, reader);                                                                 \
                        if (error < 0)                                                                                 \
                                return (failed);                                                                       \
                        for (size_t i = 0; error == 0 && i < n; i++) {                                                 \
                                const struct kind##_record *record = &page[i];                                         \
                                passed;                                                                                \
                                error = visit(userdata, record);                                                       \
                        }                                                                                              \
                        store_##kind##s_free(page, n);                                                                 \
                        if (error != 0 || n == 0)                                                                      \
                                return error;                                                                          \
                        left -= (uint32_t) n;                                                                          \
                }                                                                                                      \
                return 0;                                                                                              \
        } while (false)

int service_experiment(struct service *s, int64_t id, struct experiment_record *ret, struct refusal *r) {
        return SERVICE_READ(s, r, "experiment", id, store_experiment(store, id, util_now_ms(), ret));
}

int service_run(struct service *s, int64_t id, struct run_record *ret, struct refusal *r) {
        return SERVICE_READ(s, r, "run", id, store_run(store, id, ret));
}

int service_last_change(struct service *s, int64_t *ret, struct refusal *r) {
        return SERVICE_READ(s, r, "reading the newest change", 0, store_last_change(store, ret));
}

/* Names the first record of a list that cannot be read, for the client. */
static int fail_at_experiment(struct service *s, const struct experiment_query *q, int64_t before, int error,
                              struct refusal *r) {
        struct experiment_query rest = {.filter = q->filter, .before_id = before, .limit = 1};
        int64_t id;
        bool more;
        if (error == -EBADMSG && service_experiments_end(s, &rest, &id, &more, r) == 0 && id > 0)
                return service_fail(s, r, error, "experiment", id);
        return service_fail(s, r, error, "listing experiments", 0);
}

static int fail_at_run(struct service *s, int64_t experiment_id, uint32_t position, int error, struct refusal *r) {
        char what[100];
        if (error != -EBADMSG)
                return service_fail(s, r, error, "experiment", experiment_id);
        (void) snprintf(what, sizeof(what), "the run of experiment %" PRId64 " at position %" PRIu32, experiment_id,
                        position);
        return service_fail(s, r, error, what, 0);
}

static int fail_at_sample(struct service *s, int64_t experiment_id, int64_t run_id, int64_t after_change, int error,
                          struct refusal *r) {
        const char *of = run_id > 0 ? "run" : "experiment";
        int64_t id = run_id > 0 ? run_id : experiment_id;
        char what[100];
        if (error != -EBADMSG)
                return service_fail(s, r, error, of, id);
        (void) snprintf(what, sizeof(what), "the sample of %s %" PRId64 " after change %" PRId64, of, id, after_change);
        return service_fail(s, r, error, what, 0);
}

int service_experiments(struct service *s, const struct experiment_query *q,
                        int (*visit)(void *userdata, const struct experiment_record *e), void *userdata,
                        struct refusal *r) {
        int64_t before = q->before_id;
        VISIT_PAGES(experiment, q->limit, EXPERIMENTS_PER_PAGE,
                    store_experiments(store, &q->filter, before, some, util_now_ms(), &page, &n),
                    fail_at_experiment(s, q, before, error, r), before = record->id);
}

int service_experiments_end(struct service *s, const struct experiment_query *q, int64_t *ret_last, bool *ret_more,
                            struct refusal *r) {
        struct reader *reader;
        int error = service_reader_get(s, &reader, r);
        if (error < 0)
                return error;
        error = store_experiments_end(reader->store, &q->filter, q->before_id, q->limit, ret_last, ret_more);
        service_reader_put(s, reader);
        if (error < 0)
                return service_fail(s, r, error, q->before_id > 0 ? "experiments below" : "listing experiments",
                                    q->before_id);
        return 0;
}

struct run_visit {
        int (*visit)(void *userdata, const struct run_record *run);
        void *userdata;
        uint32_t n, next; /* visited; the position behind them */
        int result;       /* of the last visit */
};

static bool visit_run(void *userdata, const struct run_record *run) {
        struct run_visit *v = userdata;
        v->n++;
        v->next = run->position + 1;
        v->result = v->visit(v->userdata, run);
        return v->result == 0;
}

int service_runs(struct service *s, int64_t experiment_id, uint32_t from_position, uint32_t limit,
                 int (*visit)(void *userdata, const struct run_record *run), void *userdata, struct refusal *r) {
        struct run_visit v = {.visit = visit, .userdata = userdata, .next = from_position};
        for (uint32_t left = limit; left > 0; left -= v.n) {
                uint32_t some = left < RECORDS_PER_PAGE ? left : RECORDS_PER_PAGE;
                struct reader *reader;
                int error = service_reader_get(s, &reader, r);
                if (error < 0)
                        return error;
                v.n = 0;
                error = store_runs(reader->store, experiment_id, v.next, some, visit_run, &v);
                service_reader_put(s, reader);
                if (error < 0)
                        return fail_at_run(s, experiment_id, v.next, error, r);
                if (v.result != 0 || v.n == 0)
                        return v.result;
        }
        return 0;
}

int service_first_environment(struct service *s, int64_t experiment_id, uint32_t positions, char **ret,
                              struct refusal *r) {
        *ret = NULL;
        int error = SERVICE_READ(s, r, NULL, 0, store_first_environment(store, experiment_id, positions, ret));
        return error == 0 || error == -ENOENT
                       ? 0
                       : service_fail(s, r, error, "the environment of experiment", experiment_id);
}

int service_samples(struct service *s, int64_t experiment_id, int64_t run_id, int64_t after_change, uint32_t limit,
                    int (*visit)(void *userdata, const struct sample_record *sample), void *userdata,
                    struct refusal *r) {
        VISIT_PAGES(sample, limit, RECORDS_PER_PAGE,
                    store_samples(store, experiment_id, run_id, after_change, some, &page, &n),
                    fail_at_sample(s, experiment_id, run_id, after_change, error, r), after_change = record->change);
}

int service_changes(struct service *s, int64_t experiment_id, int64_t after_change, uint32_t limit,
                    int (*visit)(void *userdata, const struct change_record *change), void *userdata,
                    struct refusal *r) {
        VISIT_PAGES(change, limit, RECORDS_PER_PAGE,
                    store_changes(store, experiment_id, after_change, some, util_now_ms(), &page, &n),
                    service_fail(s, r, error, "experiment", experiment_id), after_change = record->change);
}
