/* SPDX-License-Identifier: MIT */

/*
 * Through the life of an experiment each allocation and each operation on a file fails, once or from then on. What is
 * acknowledged then is there, what was refused can be repeated, what is read is what was stored or an error, and when
 * memory and disk are back everything goes on.
 *
 * Of the uses of a step each IPCLAB_FAULTS-th fails, from another one on for each kind of failure.
 */

#include "daemon/log.h"
#include "daemon/store/database/reserve.h"
#include "tests/unit/campaign.h"
#include "tests/unit/check.h"
#include "tests/unit/fail-at.h"
#include "tests/unit/lanes.h"
#include "tests/unit/service-harness.h"

#define STRIDE 31u
/* An attempt to migrate makes 60000 allocations, nearly all of them in SQLite, for one loop over the migrations. */
#define STRIDE_OF_MIGRATIONS 641u
#define STRIDE_OF_RECOVERY 97u
#define USES_MAX 200000 /* of a step: more of them mean that it does not end */
#define RESULT "{\"messages_per_second\": 3}"
#define WRONG_COUNTS                                                                                                   \
        "SELECT count(*) FROM experiments AS e WHERE " SHOWN(                                                          \
                "id") " AND ("                                                                                         \
                      "runs_total <> (SELECT count(*) FROM runs WHERE experiment_id = e.id) OR "                       \
                      "runs_done <> (SELECT count(*) FROM runs WHERE experiment_id = e.id AND state = 'done'))"

/* Where a step is that is attempted again until it is done. */
struct life {
        struct harness *h;
        struct fixture *f; /* of a step without a service */
        unsigned number;   /* of the case */
        int64_t ids[2];    /* done experiments */
        int64_t id, run;   /* the step's own */
        unsigned done;     /* parts of the step */
        char *reference;   /* what a read returns */
};

/* A step in a service, or without one in a directory; attempt: 0 or a negative errno, again until 0. */
struct step {
        const char *name;
        unsigned stride; /* of the uses at which it fails, unless IPCLAB_FAULTS is set */
        bool without_service;
        int (*attempt)(struct life *l);
        bool (*holds)(struct life *l); /* after it; NULL: nothing more is to be checked */
};

static int job_number(void *harness, void *argument) {
        struct harness *h = harness;
        const char *sql = *(const char **) argument;
        return (int) number(&h->f, sql);
}

static int64_t number_in(struct life *l, const char *sql) {
        return l->h ? on_main(l->h, job_number, &sql) : number(l->f, sql);
}

/* ---- submit ---- */

static int submit(struct life *l) {
        char key[24];
        bool created;
        struct refusal r = {0};
        int64_t id = 0;
        (void) snprintf(key, sizeof(key), "key-%u", l->number);
        int error = SUBMIT(l->h, "{\"message_size\": [1, 2], \"repetitions\": 3}", key, &id, &created, &r);
        if (error < 0)
                return r.status >= 500 ? error : -EILSEQ; /* it is no fault of the client's */
        if (l->id != 0 && l->id != id)
                return -EILSEQ;
        l->id = id;
        return 0;
}

static bool submitted_once(struct life *l) {
        char sql[200];
        (void) snprintf(sql, sizeof(sql), "SELECT count(*) FROM experiments WHERE idempotency_key = 'key-%u'",
                        l->number);
        struct refusal r = {0};
        return number_in(l, sql) == 1 && number_in(l, WRONG_COUNTS) == 0 &&
               service_delete(l->h->service, l->id, &r) == 0;
}

/* ---- run ---- */

static int job_run(void *harness, void *argument) {
        struct harness *h = harness;
        struct life *l = argument;
        struct store *s = h->f.store;
        struct run_record run;
        struct experiment_record e;
        struct sample_record sample;
        int r = 0;
        if (l->done == 0 && (r = store_next_run(s, &run, &e)) == 0) {
                l->id = run.experiment_id;
                l->run = run.id;
                run_record_deinit(&run);
                experiment_record_deinit(&e);
                l->done++;
        }
        if (l->done == 1 && (r = store_start_run(s, l->run)) == 0)
                l->done++;
        sample = sample_of(l->id, l->run, 0);
        if (l->done == 2 && (r = store_add_samples(s, &sample, 1)) == 0)
                l->done++;
        if (l->done == 3 && (r = fixture_finish(s, l->run, STATE_DONE, NULL)) == 0)
                l->done++;
        service_changed(h->service, l->id);
        return r;
}

static int run(struct life *l) {
        struct refusal r = {0};
        int64_t id;
        bool created;
        if (l->id == 0) { /* before anything fails: see at() */
                int error = SUBMIT(l->h, "{}", NULL, &id, &created, &r);
                l->id = id;
                return error;
        }
        return on_main(l->h, job_run, l);
}

static bool ran_once(struct life *l) {
        struct refusal r = {0};
        return number_in(l, WRONG_COUNTS) == 0 &&
               number_in(l, "SELECT count(*) FROM runs WHERE state = 'running'") == 0 &&
               number_in(l, "SELECT count(*) - count(DISTINCT run_id) FROM samples") == 0 &&
               service_delete(l->h->service, l->id, &r) == 0;
}

/* ---- read and compare ---- */

static int put_experiment(void *userdata, const struct experiment_record *e) {
        fprintf(userdata, "%" PRId64 " %s %u %s\n", e->id, state_name(e->state), e->runs_done, e->spec_json);
        return 0;
}

static int put_run(void *userdata, const struct run_record *run) {
        fprintf(userdata, "%" PRId64 " %s %s %s\n", run->id, state_name(run->state), run->point_json, run->result_json);
        return 0;
}

static int put_sample(void *userdata, const struct sample_record *s) {
        fprintf(userdata, "%u %" PRIu64 " %" PRIu64 " %s\n", s->second, s->messages, s->bytes, s->agent);
        return 0;
}

static int put_row(void *userdata, const struct result_record *row) {
        fprintf(userdata, "%s %u %g\n", row->point_json, row->runs, row->figures[FIGURE_MESSAGES].median);
        return 0;
}

static int put_change(void *userdata, const struct change_record *c) {
        fprintf(userdata, "%" PRId64 " %s\n", c->change, c->pin ? c->pin->name : "");
        return 0;
}

static int put_rest(struct life *l, FILE *out, struct refusal *r) {
        struct service *s = l->h->service;
        int64_t last = 0;
        int error = service_results(s, l->ids[0], 0, UINT32_MAX, put_row, out, r);
        if (error == 0)
                error = service_changes(s, 0, 0, 1000, put_change, out, r);
        if (error == 0)
                error = service_last_change(s, &last, r);
        struct findings_record *findings = NULL;
        if (error == 0)
                error = service_findings(s, l->ids[0], &findings, r);
        fprintf(out, "%" PRId64 "\n", last);
        if (error == 0)
                service_findings_release(s, findings);
        return error;
}

static int put_all(struct life *l, FILE *out, struct refusal *r) {
        struct service *s = l->h->service;
        struct run_record one;
        struct experiment_query q = {.limit = 100};
        int error = service_experiments(s, &q, put_experiment, out, r);
        for (unsigned i = 0; error == 0 && i < ELEMENTS(l->ids); i++) {
                error = service_runs(s, l->ids[i], 0, 100, put_run, out, r);
                if (error == 0)
                        error = service_samples(s, l->ids[i], 0, 0, 100, put_sample, out, r);
        }
        if (error == 0)
                error = service_run(s, 1, &one, r);
        if (error < 0)
                return error;
        (void) put_run(out, &one);
        run_record_deinit(&one);
        return put_rest(l, out, r);
}

static int put_comparison(struct life *l, FILE *out, struct refusal *r) {
        const struct comparison_query q = {.experiments = {l->ids[0], l->ids[1]}, .margin = 0.03};
        struct comparison_answer *answer;
        int error = service_compare(l->h->service, &q, &answer, r);
        if (error < 0)
                return error;
        for (size_t i = 0; i < answer->n_rows; i++)
                fprintf(out, "%s\n", answer->rows[i].sides[SIDE_BASELINE].point_json);
        for (size_t i = 0; i < answer->n_tests; i++)
                fprintf(out, "%g %s\n", answer->comparisons[i].ratio,
                        comparison_verdict(answer->comparisons[i].verdict));
        comparison_answer_release(answer);
        return 0;
}

/* Compares what is read with what was read first, each time without the help of the cache. */
static int read_again(struct life *l, int (*put)(struct life *l, FILE *out, struct refusal *r)) {
        char *text = NULL;
        size_t size;
        struct refusal r = {0};
        cache_deinit(&l->h->service->cache);
        cache_init(&l->h->service->cache);
        FILE *out = open_memstream(&text, &size);
        if (!out)
                abort();
        int error = put(l, out, &r);
        fclose(out);
        if (error == 0 && l->reference && strcmp(text, l->reference) != 0) {
                fprintf(stderr, "read: %s\ninstead of: %s\n", text, l->reference);
                error = -EILSEQ;
        }
        if (error < 0 && r.status < 500)
                error = -EILSEQ;
        if (error == 0 && !l->reference)
                l->reference = util_steal(&text);
        free(text);
        return error;
}

static int read_all(struct life *l) {
        return read_again(l, put_all);
}

static int compare(struct life *l) {
        return read_again(l, put_comparison);
}

/* ---- change ---- */

static int delete (struct life *l) {
        struct refusal r = {0};
        int64_t id;
        bool created;
        if (l->id == 0) { /* before anything fails */
                int error = SUBMIT(l->h, "{\"repetitions\": 5}", NULL, &id, &created, &r);
                l->id = id;
                return error;
        }
        int error = service_delete(l->h->service, l->id, &r);
        return error == -ENOENT ? 0 : error; /* an attempt before this one had done it */
}

static int job_tidy(void *harness, void *argument) {
        struct harness *h = harness;
        (void) argument;
        int r;
        while ((r = store_tidy_forgotten(h->f.store)) > 0)
                continue;
        return r;
}

static bool deleted(struct life *l) {
        struct refusal r = {0};
        struct experiment_record e;
        char sql[100];
        (void) snprintf(sql, sizeof(sql), "SELECT count(*) FROM runs WHERE experiment_id = %" PRId64, l->id);
        return service_experiment(l->h->service, l->id, &e, &r) == -ENOENT && on_main(l->h, job_tidy, NULL) == 0 &&
               number_in(l, sql) == 0;
}

static int extend(struct life *l) {
        char key[24];
        bool replayed;
        struct refusal r = {0};
        static const char body[] = "{\"blocks\": 1}";
        (void) snprintf(key, sizeof(key), "more-%u", l->number);
        int error = service_extend(l->h->service, l->ids[0], body, strlen(body), key, &replayed, &r);
        return error < 0 && r.status < 500 ? -EILSEQ : error;
}

/* It is ended again, so that the next one finds it as it was. */
static bool extended_once(struct life *l) {
        char sql[160];
        (void) snprintf(sql, sizeof(sql),
                        "SELECT count(*) FROM runs WHERE state = 'queued' AND experiment_id = %" PRId64, l->ids[0]);
        return number_in(l, sql) == 1 && number_in(l, WRONG_COUNTS) == 0 &&
               run_next(l->h, STATE_DONE, RESULT, "[]", NULL) == 0 && number_in(l, sql) == 0;
}

static int pin(struct life *l) {
        struct refusal r = {0};
        char name[24];
        (void) snprintf(name, sizeof(name), "base-%u", l->number);
        return service_pin_baseline(l->h->service, name, l->ids[0], &r);
}

static bool pinned(struct life *l) {
        struct refusal r = {0};
        char name[24];
        struct baseline_record b;
        (void) snprintf(name, sizeof(name), "base-%u", l->number);
        if (service_baseline(l->h->service, name, &b, &r) < 0)
                return false;
        bool good = b.experiment_id == l->ids[0];
        baseline_record_deinit(&b);
        return good && service_remove_baseline(l->h->service, name, &r) == 0;
}

/* ---- import ---- */

static int import_runs(struct import **i, struct refusal *r) {
        struct imported_run one = {.run = {.repetition = 1, .state = STATE_DONE, .attempt = 1}, .window_ns = 1};
        one.run.point_json = strdup("{}");
        one.run.flags_json = strdup("[]");
        one.run.agents_json = strdup("[]");
        one.run.result_json = strdup(RESULT);
        one.role = strdup("receiver");
        if (!one.run.point_json || !one.run.flags_json || !one.run.agents_json || !one.run.result_json || !one.role) {
                imported_run_deinit(&one);
                r->status = 500;
                return -ENOMEM;
        }
        return service_import_runs(i, &one, 1, r);
}

static int import_whole(struct life *l, const char *sha256, struct refusal *r) {
        struct import *i = NULL;
        bool created;
        static uint8_t data[5000];
        struct bundle_file file = {.data = data, .length = sizeof(data)};
        struct experiment_record e = {.state = STATE_DONE, .runs_total = 1, .runs_done = 1, .created_at = 1};
        (void) snprintf(file.sha256, sizeof(file.sha256), "%s", sha256);
        e.spec_json = strdup("{}");
        e.merged_json = strdup("{}");
        e.skipped_json = strdup("[]");
        e.version = strdup("0.1.0");
        int error = e.spec_json && e.merged_json && e.skipped_json && e.version ? 0 : -ENOMEM;
        if (error < 0)
                r->status = 500;
        if (error == 0)
                error = service_import_begin(l->h->service, &e, &i, r);
        experiment_record_deinit(&e);
        if (error == 0)
                error = import_runs(&i, r);
        if (error == 0)
                error = service_import_end(&i, &file, &l->id, &created, r);
        service_import_free(i);
        return error;
}

static int import(struct life *l) {
        char digest[24];
        int64_t found = 0;
        struct refusal r = {0};
        (void) snprintf(digest, sizeof(digest), "%u", l->number);
        int error = service_find_bundle(l->h->service, digest, &found, &r);
        if (error == 0 && found == 0 && l->id != 0)
                return -EILSEQ; /* it had been acknowledged */
        if (error == 0 && found == 0)
                error = import_whole(l, digest, &r);
        if (error == 0 && found != 0)
                l->id = found;
        return error < 0 && r.status < 500 ? -EILSEQ : error;
}

static bool imported_once(struct life *l) {
        char sql[100];
        struct refusal r = {0};
        (void) snprintf(sql, sizeof(sql), "SELECT count(*) FROM bundles WHERE sha256 = '%u'", l->number);
        return number_in(l, sql) == 1 && number_in(l, WRONG_COUNTS) == 0 && on_main(l->h, job_tidy, NULL) == 0 &&
               number_in(l, "SELECT count(*) FROM forgotten") == 0 &&
               number_in(l, "SELECT count(*) FROM runs WHERE experiment_id NOT IN (SELECT id FROM experiments)") == 0 &&
               service_delete(l->h->service, l->id, &r) == 0;
}

/* ---- open: a database of an earlier version, and one whose daemon was killed ---- */

static char *file_text(const char *path, size_t *ret_size) {
        char *text = NULL;
        size_t size = 0;
        FILE *file = fopen(path, "re");
        ssize_t n = file ? getdelim(&text, &size, EOF, file) : -1;
        if (file)
                fclose(file);
        if (n < 0) {
                perror(path);
                abort();
        }
        *ret_size = (size_t) n;
        return text;
}

static void make_old(struct fixture *f) {
        char path[512];
        sqlite3 *db = NULL;
        size_t size;
        const char *root = getenv("IPCLAB_SOURCE_ROOT");
        (void) snprintf(path, sizeof(path), "%s/tests/unit/data/db/v1.sql", root ? root : ".");
        char *sql = file_text(path, &size);
        if (sqlite3_open(fixture_path(f, "ipclab.db"), &db) != SQLITE_OK ||
            sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
                abort();
        (void) sqlite3_close(db);
        free(sql);
}

/* With a run under way, and an import that has not come to its end. */
static void make_killed(struct fixture *f) {
        struct importing i = {0};
        int64_t id;
        if (store_open(&f->store, f->dir) < 0 || fixture_add(f->store, 2, 2, NULL, &id) < 0 ||
            fixture_start(f->store) < 0 || fixture_begin_import(f->store, &i) < 0 || fixture_import_runs(&i, 0) < 0)
                abort();
        store_import_deinit(&i);
        store_close(util_steal(&f->store));
}

static int open_again(struct life *l) {
        struct recovery recovery;
        store_close(util_steal(&l->f->store));
        int r = store_open(&l->f->store, l->f->dir);
        if (r == 0)
                r = store_recover(l->f->store, &recovery);
        while (r == 0 && (r = store_tidy_forgotten(l->f->store)) > 0)
                r = 0;
        return r;
}

static int migrate(struct life *l) {
        if (l->done++ == 0) { /* before anything fails */
                make_old(l->f);
                return 0;
        }
        return open_again(l);
}

static bool migrated(struct life *l) {
        struct experiment_record e;
        if (number(l->f, "PRAGMA user_version") != (int64_t) n_migrations ||
            store_experiment(l->f->store, 1, 0, &e) < 0)
                return false;
        bool good = e.runs_total == 3 && e.runs_done == 2 && strcmp(e.name, "Version 1") == 0;
        experiment_record_deinit(&e);
        return good && number(l->f, "SELECT count(*) FROM samples") == 2;
}

static int recover(struct life *l) {
        if (l->done++ == 0) {
                make_killed(l->f);
                return 0;
        }
        return open_again(l);
}

static bool recovered(struct life *l) {
        return number(l->f, "SELECT count(*) FROM runs WHERE state = 'queued' AND experiment_id = 1") == 4 &&
               number(l->f, "SELECT count(*) FROM experiments") == 1 &&
               number(l->f, "SELECT count(*) FROM forgotten") == 0 && number(l->f, "SELECT count(*) FROM runs") == 4;
}

/* ---- all of them ---- */

static const struct step steps[] = {
        {"submit", STRIDE, false, submit, submitted_once},
        {"run", STRIDE, false, run, ran_once},
        {"read", STRIDE, false, read_all, NULL},
        {"compare", STRIDE, false, compare, NULL},
        {"extend", STRIDE, false, extend, extended_once},
        {"pin", STRIDE, false, pin, pinned},
        {"import", STRIDE, false, import, imported_once},
        {"delete", STRIDE, false, delete, deleted},
        {"migrate", STRIDE_OF_MIGRATIONS, true, migrate, migrated},
        {"recover", STRIDE_OF_RECOVERY, true, recover, recovered},
};

/* Some of them are begun, or have their reference, before anything fails. */
static bool has_beginning(const struct step *step) {
        return step->attempt == run || step->attempt == delete || step->attempt == read_all ||
               step->attempt == compare || step->without_service;
}

/* The step while its use `at` fails, and then without a failure. Whether it failed in *ret_happened; NULL or what is
 * wrong. */
static const char *fail_one(const struct step *step, struct life *l, enum fail_kind kind, bool onwards, long at,
                            bool *ret_happened) {
        static char wrong[200];
        int r = has_beginning(step) ? step->attempt(l) : 0;
        if (r < 0)
                return "it does not begin";
        fail_arm(kind, onwards, at);
        r = step->attempt(l);
        *ret_happened = fail_disarm();
        int again = r == -EILSEQ ? r : step->attempt(l);
        bool holds = again == 0 && (!step->holds || step->holds(l));
        if (again == 0 && holds && (r == 0 || *ret_happened))
                return NULL;
        (void) snprintf(wrong, sizeof(wrong), "%s, then %s%s", strerror(-r), strerror(-again),
                        holds ? "" : ", and not what it should be");
        return wrong;
}

static void set_up(struct life *l) {
        struct refusal r = {0};
        bool created;
        for (size_t i = 0; i < ELEMENTS(l->ids); i++) {
                CHECK_INT(SUBMIT(l->h, "{\"repetitions\": 2}", NULL, &l->ids[i], &created, &r), 0);
                for (unsigned k = 0; k < 2; k++)
                        CHECK_INT(run_next(l->h, STATE_DONE, RESULT, "[]", NULL), 0);
        }
}

static atomic_uint *failures; /* of all lanes */

/* From `first` on each stride-th use, until the step is through before that one. */
static void fail_in_service(const struct step *step, enum fail_kind kind, bool onwards, long first, long stride) {
        HARNESS h;
        struct life l = {.h = &h};
        harness_start(&h);
        set_up(&l);
        bool happened = !check_case_failed;
        for (long at = first; happened && at < USES_MAX; at += stride) {
                l = (struct life){
                        .h = &h, .number = (unsigned) at, .ids = {l.ids[0], l.ids[1]}, .reference = l.reference};
                const char *wrong = fail_one(step, &l, kind, onwards, at, &happened);
                if (wrong)
                        CHECK_FAIL("%s, %s %ld%s: %s", step->name, fail_kinds[kind].name, at,
                                   onwards ? " and all after it" : "", wrong);
                (*failures)++;
                lanes_advance();
        }
        free(l.reference);
        CHECK(!happened);
}

static void fail_in_directory(const struct step *step, enum fail_kind kind, bool onwards, long first, long stride) {
        bool happened = true;
        for (long at = first; happened && at < USES_MAX; at += stride) {
                FIXTURE f;
                struct life l = {.f = &f};
                fixture_dir(&f);
                fault_reset(FAULT_NONE, 0);
                const char *wrong = fail_one(step, &l, kind, onwards, at, &happened);
                if (wrong)
                        CHECK_FAIL("%s, %s %ld%s: %s", step->name, fail_kinds[kind].name, at,
                                   onwards ? " and all after it" : "", wrong);
                (*failures)++;
                lanes_advance();
        }
        CHECK(!happened);
}

static void fail_everywhere(void) {
        long first = 1;
        for (size_t i = 0; i < ELEMENTS(steps); i++) {
                long stride = campaign_count("IPCLAB_FAULTS", steps[i].stride);
                for (int kind = 0; kind < FAIL_KIND_COUNT; kind++)
                        for (int onwards = 0; onwards < 2; onwards++) {
                                first = 1 + (first + 36) % stride;
                                if (!lanes_my_turn())
                                        continue;
                                if (steps[i].without_service)
                                        fail_in_directory(&steps[i], kind, onwards, first, stride);
                                else
                                        fail_in_service(&steps[i], kind, onwards, first, stride);
                                if (check_case_failed)
                                        return;
                        }
        }
}

static void test_everything_fails_once(void) {
        failures = mmap(NULL, sizeof(*failures), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(failures != MAP_FAILED);
        CHECK_LANES(LANES_THAT_COMPUTE, NULL, fail_everywhere);
        printf("counted: %u failures, at each %u. allocation and file operation of %zu steps, %u. of migrations, "
               "once and from then on\n",
               *failures, campaign_count("IPCLAB_FAULTS", STRIDE), ELEMENTS(steps),
               campaign_count("IPCLAB_FAULTS", STRIDE_OF_MIGRATIONS));
}

/* A statement that the transaction has made stale is prepared anew, which takes memory: without it, the transaction
 * would take in what is stored later, and nothing of that would be there after the next start. */
static void test_a_transaction_that_cannot_be_rolled_back_takes_nothing_in(void) {
        FIXTURE f;
        struct db_transaction t = {0};
        struct db *other = NULL;
        int64_t n = -1;
        fixture_open(&f);
        CHECK_INT(db_begin_write(f.store->db, &t), 0);
        CHECK_INT(db_run_script(f.store->db, "CREATE TABLE half (x); INSERT INTO half VALUES (1)"), 0);
        fail_arm(FAIL_MEMORY, true, 1);
        db_transaction_end(&t);
        CHECK(fail_disarm());
        CHECK_INT(db_run_script(f.store->db, "CREATE TABLE whole (x)"), 0);
        CHECK_INT(db_run(f.store->db, "INSERT INTO whole VALUES (1)"), 0);
        CHECK_INT(db_open(&other, fixture_path(&f, "ipclab.db"), DB_READER), 0);
        CHECK_INT(db_get(other, &n, "SELECT count(*) FROM whole"), 0);
        CHECK_INT(n, 1);
        CHECK_INT(db_get(other, &n, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"), 0);
        CHECK_INT(n, 0);
        db_close(other);
}

int main(void) {
        log_open(LOG_EMERG); /* each fault is an error in the log */
        fail_install();
        if (access("/dev/shm", W_OK) == 0)
                fixture_base = "/dev/shm";
        RUN(test_a_transaction_that_cannot_be_rolled_back_takes_nothing_in);
        RUN(test_everything_fails_once);
        return check_end();
}
