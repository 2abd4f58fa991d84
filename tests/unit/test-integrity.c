/* SPDX-License-Identifier: MIT */

/*
 * What the store does with data that was damaged, lost or exchanged behind its back: it serves no wrong value, names
 * what it has lost, and serves the rest.
 */

#include "daemon/log.h"
#include "daemon/store/database/pages.h"
#include "daemon/store/integrity.h"
#include "tests/unit/campaign.h"
#include "tests/unit/check.h"
#include "tests/unit/child.h"
#include "tests/unit/damage.h"
#include "tests/unit/listed-runs.h"
#include "tests/unit/recorded.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>
#include <sqlite3.h>
#include <sys/wait.h>

/* Files */

static const char *const database_files[] = {"ipclab.db", "ipclab.db-wal", IDENTITY_FILE};

static int copy_file(const char *from, const char *to) {
        _cleanup_fclose_ FILE *in = fopen(from, "re");
        char buffer[4096];
        size_t n;
        if (!in)
                return errno == ENOENT ? 0 : -errno;
        _cleanup_fclose_ FILE *out = fopen(to, "we");
        if (!out)
                return -errno;
        while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
                if (fwrite(buffer, 1, n, out) != n)
                        return -EIO;
        return ferror(in) || fflush(out) != 0 ? -EIO : 0;
}

/* The files of a store, into a directory of their own. */
static int copy_store(const struct fixture *from, struct fixture *to) {
        fixture_dir(to);
        for (size_t i = 0; i < ELEMENTS(database_files); i++) {
                char source[128];
                snprintf(source, sizeof(source), "%s", fixture_path(from, database_files[i]));
                int r = copy_file(source, fixture_path(to, database_files[i]));
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Content */

#define EXPERIMENTS 8
#define RUNS_EACH 4
#define SAMPLES_EACH 20
#define READS_MAX 256
#define RANDOM_FLIPS 40u
#define BLOCKS_MORE 130u /* more than a portion of runs */

static int run_one(struct store *s) {
        static uint64_t value = 1;
        struct sample_record batch[SAMPLES_EACH];
        struct histogram h = {0};
        int64_t run = fixture_start(s), experiment;
        int r = run < 0 ? (int) run
                        : db_get(s->db, &experiment, "SELECT experiment_id FROM runs WHERE id = ?", DB_INT(run));
        for (uint32_t i = 0; r == 0 && i < SAMPLES_EACH; i++) {
                for (unsigned k = 0; k < 200; k++)
                        histogram_record(&h, value++ * 97);
                batch[i] = sample_of(experiment, run, i);
                if (!sample_has_latency(&batch[i], &h))
                        return -ENOMEM;
        }
        if (r == 0)
                r = store_add_samples(s, batch, SAMPLES_EACH);
        for (uint32_t i = 0; i < SAMPLES_EACH; i++)
                free(batch[i].latency_v2);
        return r < 0 ? r : fixture_finish(s, run, STATE_DONE, NULL);
}

/* An extension of which a part is still to be added, with the request that asked for it. */
static int fill_extension(struct store *s) {
        static uint32_t order[RUNS_EACH * BLOCKS_MORE];
        for (uint32_t i = 0; i < ELEMENTS(order); i++)
                order[i] = i % RUNS_EACH;
        const struct extension x = {
                .order = order, .n_points = RUNS_EACH, .first_repetition = 2, .repetitions = BLOCKS_MORE};
        int r = store_extend_some(s, EXPERIMENTS, &x, &(struct request_record){.key = "more", .text = "{}"});
        return r < 0 ? r : r == 1 ? 0 : -EILSEQ;
}

static int fill_check(struct store *s) {
        struct pending_check p;
        const struct new_ratio ratio = {.figure = "messages_per_second",
                                        .point_json = "{}",
                                        .verdict = "undecided",
                                        .ratio = 1.5,
                                        .low = 1,
                                        .high = 2,
                                        .has_interval = true};
        int r = store_pin_baseline(s, "base", 1);
        if (r == 0)
                r = store_pending_check(s, &(struct pending_check){0}, &p);
        if (r < 0)
                return r;
        r = store_begin_check(s, &p);
        if (r == 0)
                r = store_add_ratios(s, &p, &ratio, 1);
        if (r == 0)
                r = store_end_check(s, &p, &(struct new_check){.undecided = 1, .differences_json = "[]"});
        free(p.name);
        return r;
}

static int fill_import(struct store *s) {
        struct importing i = {0};
        int r = fixture_begin_import(s, &i);
        if (r == 0)
                r = fixture_import_runs(&i, 0);
        if (r == 0)
                r = fixture_import_runs(&i, 1);
        for (uint32_t part = 0; r == 0 && part < 2; part++)
                r = fixture_import_part(&i, part);
        if (r == 0)
                r = fixture_end_import(&i, "digest");
        store_import_deinit(&i);
        return r;
}

/* Something in every table. */
static int fill(struct store *s) {
        int64_t id;
        int r = 0;
        for (int i = 0; r == 0 && i < EXPERIMENTS; i++) {
                char key[16];
                snprintf(key, sizeof(key), "key-%d", i);
                r = fixture_add(s, RUNS_EACH, 1, key, &id);
        }
        for (int i = 0; r == 0 && i < (EXPERIMENTS - 1) * RUNS_EACH; i++)
                r = run_one(s);
        if (r == 0)
                r = store_delete_experiment(s, 3);
        static char name[] = "numa_balancing", zero[] = "0", one[] = "1";
        struct tuning_record tuning = {.name = name, .run_id = 1, .original = one, .wanted = zero};
        if (r == 0)
                r = store_add_tuning(s, &tuning);
        if (r == 0)
                r = fill_extension(s);
        if (r == 0)
                r = fill_check(s);
        if (r == 0)
                r = fill_import(s);
        return r < 0 ? r : store_acknowledge_export(s, 7, &id);
}

static void test_every_table_is_filled(void) {
        FIXTURE f;
        fixture_open(&f);
        CHECK_INT(fill(f.store), 0);
        _cleanup_query_ struct db_query q = {0};
        CHECK_INT(db_select_all(f.store->db, &q,
                                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_stat%'"),
                  0);
        unsigned tables = 0;
        for (; db_step(&q) > 0; tables++) {
                char sql[100];
                _cleanup_free_ char *table = db_column_text(&q, 0);
                CHECK(table);
                (void) snprintf(sql, sizeof(sql), "SELECT count(*) FROM \"%.60s\"", table);
                if (number(&f, sql) < 1)
                        CHECK_FAIL("%s is empty", table);
        }
        CHECK(tables > 10);
}

/* What each read of the store returns, as text; NULL: it was refused as damaged. */
struct content {
        char *texts[READS_MAX];
        size_t n;
};

static void content_deinit(struct content *c) {
        for (size_t i = 0; i < c->n; i++)
                free(c->texts[i]);
}

/* An answer that is no refusal as damaged is one that the client believes. */
static void add_text(struct content *c, int r, char *text) {
        if (r < 0) {
                free(text);
                text = NULL;
        }
        if (r < 0 && r != -EBADMSG && asprintf(&text, "error %d", r) < 0)
                abort();
        if (c->n == READS_MAX)
                abort();
        c->texts[c->n++] = text;
}

static char *text_of_run(const struct run_record *run) {
        char *text = NULL;
        if (asprintf(&text, "%" PRId64 " %" PRId64 " %s %s %s", run->id, run->change, state_name(run->state),
                     run->point_json, run->result_json) < 0)
                abort();
        return text;
}

static void read_run(struct store *s, int64_t id, struct content *c) {
        struct run_record run;
        int r = store_run(s, id, &run);
        add_text(c, r, r == 0 ? text_of_run(&run) : NULL);
        if (r == 0)
                run_record_deinit(&run);
}

static void read_experiment(struct store *s, int64_t id, struct content *c) {
        struct experiment_record e;
        char *text = NULL;
        int r = store_experiment(s, id, 0, &e);
        if (r == 0) {
                if (asprintf(&text, "%" PRId64 " %s %s %s %u %u", e.change, e.name, state_name(e.state), e.spec_json,
                             e.runs_total, e.runs_done) < 0)
                        abort();
                experiment_record_deinit(&e);
        }
        add_text(c, r, text);
}

/* A list is read to its end, which is an empty page: a short one may have a damaged record behind it. */

static int put_runs(struct store *s, int64_t experiment, uint32_t *position, FILE *out) {
        struct run_record *runs = NULL;
        size_t n = 0;
        int r = listed_runs(s, experiment, *position, 1000, &runs, &n);
        for (size_t i = 0; r == 0 && i < n; i++) {
                char *one = text_of_run(&runs[i]);
                fputs(one, out);
                free(one);
                *position = runs[i].position + 1;
        }
        if (r == 0)
                listed_runs_free(runs, n);
        return r < 0 ? r : n > 0;
}

static int put_samples(struct store *s, int64_t run, int64_t *change, FILE *out) {
        struct sample_record *samples = NULL;
        size_t n = 0;
        int r = store_samples(s, 0, run, *change, 1000, &samples, &n);
        for (size_t i = 0; r == 0 && i < n; i++) {
                *change = samples[i].change;
                fprintf(out, "%" PRId64 " %u %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %" PRIu64 "\n", samples[i].change,
                        samples[i].second, samples[i].messages, samples[i].bytes, samples[i].agent,
                        samples[i].latency ? histogram_total(samples[i].latency) : 0,
                        samples[i].latency ? samples[i].latency->sum_ns : 0);
        }
        if (r == 0)
                store_samples_free(samples, n);
        return r < 0 ? r : n > 0;
}

static void read_runs(struct store *s, int64_t experiment, struct content *c) {
        char *text = NULL;
        size_t size;
        uint32_t position = 0;
        FILE *out = open_memstream(&text, &size);
        int r;
        while ((r = put_runs(s, experiment, &position, out)) > 0)
                continue;
        fclose(out);
        add_text(c, r, text);
}

static void read_samples(struct store *s, int64_t run, struct content *c) {
        char *text = NULL;
        size_t size;
        int64_t change = 0;
        FILE *out = open_memstream(&text, &size);
        int r;
        while ((r = put_samples(s, run, &change, out)) > 0)
                continue;
        fclose(out);
        add_text(c, r, text);
}

static void read_key(struct store *s, const char *key, struct content *c) {
        int64_t id = 0;
        char *spec = NULL, *text = NULL;
        int r = store_find_idempotency(s, key, &id, &spec);
        if (r == 0 && asprintf(&text, "%" PRId64 " %s", id, spec) < 0)
                abort();
        free(spec);
        add_text(c, r, text);
}

static void read_baseline(struct store *s, struct content *c) {
        struct baseline_record b;
        struct check_record *checks = NULL;
        struct series_record *series = NULL;
        size_t n = 0, n_series = 0;
        char *text = NULL;
        int r = store_baseline(s, "base", &b);
        if (r == 0 && asprintf(&text, "%" PRId64, b.experiment_id) < 0)
                abort();
        if (r == 0)
                baseline_record_deinit(&b);
        add_text(c, r, text);
        text = NULL;
        r = store_history(s, "base", 10, &checks, &n, &series, &n_series);
        if (r == 0 && asprintf(&text, "%zu %zu %" PRId64 " %s", n, n_series, n ? checks[0].experiment_id : 0,
                               n_series ? series[0].point_json : "") < 0)
                abort();
        if (r == 0) {
                check_records_free(checks, n);
                series_records_free(series, n_series);
        }
        add_text(c, r, text);
}

/* Reads the records of which the store has only one. */
static void read_rest(struct store *s, struct content *c) {
        int64_t id = 0, exported = 0;
        char *text = NULL;
        read_baseline(s, c);
        read_key(s, "more", c);
        read_experiment(s, EXPERIMENTS + 1, c);
        read_runs(s, EXPERIMENTS + 1, c);
        int r = store_find_bundle(s, "digest", &id);
        if (r == 0 && asprintf(&text, "%" PRId64, id) < 0)
                abort();
        add_text(c, r, text);
        for (uint32_t part = 0; part < 2; part++) {
                uint8_t *data = NULL;
                size_t length = 0;
                bool last;
                text = NULL;
                r = store_bundle_part(s, EXPERIMENTS + 1, part, &data, &length, &last);
                if (r == 0 && asprintf(&text, "%zu %.*s", length, (int) length, (char *) data) < 0)
                        abort();
                free(data);
                add_text(c, r, text);
        }
        text = NULL;
        r = store_exported(s, &exported);
        if (r == 0 && asprintf(&text, "%" PRId64, exported) < 0)
                abort();
        add_text(c, r, text);
}

static void read_all(struct store *s, struct content *c) {
        for (int64_t id = 1; id <= EXPERIMENTS; id++) {
                char key[16];
                snprintf(key, sizeof(key), "key-%" PRId64, id - 1);
                read_experiment(s, id, c);
                read_runs(s, id, c);
                read_key(s, key, c);
        }
        for (int64_t id = 1; id <= EXPERIMENTS * RUNS_EACH; id++) {
                read_run(s, id, c);
                read_samples(s, id, c);
        }
        struct tuning_record tuning;
        int r = store_next_tuning(s, "", &tuning);
        add_text(c, r, r == 0 ? strdup(tuning.original) : NULL);
        if (r == 0)
                tuning_record_deinit(&tuning);
        struct store_totals totals = {0};
        char *text = NULL;
        read_rest(s, c);
        r = store_totals(s, &totals);
        if (r == 0 &&
            asprintf(&text, "%u %" PRIu64 " %" PRIu64, totals.experiments_queued, totals.runs_done, totals.samples) < 0)
                abort();
        add_text(c, r, text);
}

/* Counts what was refused; -1 when something else was read than was written. */
static int compare(const struct content *written, const struct content *found) {
        int refused = 0;
        for (size_t i = 0; i < found->n; i++) {
                if (!found->texts[i])
                        refused++;
                else if (strcmp(found->texts[i], written->texts[i]) != 0) {
                        fprintf(stderr, "read %zu: \"%s\" was written, and \"%s\" was read\n", i, written->texts[i],
                                found->texts[i]);
                        return -1;
                }
        }
        return refused;
}

static unsigned faults_reported;
static void count_fault(const char *fault) {
        (void) fault;
        faults_reported++;
}

/* A bit in the database file */

static void check_flipped(const struct fixture *whole, const struct content *written, int64_t byte, unsigned bit,
                          unsigned *not_opened, unsigned *served) {
        FIXTURE f;
        __attribute__((cleanup(content_deinit))) struct content found = {0};
        CHECK_INT(copy_store(whole, &f), 0);
        CHECK_INT(flip_bit(&f, "ipclab.db", byte, bit), 0);
        int r = store_open(&f.store, f.dir);
        if (r < 0) {
                (*not_opened)++;
                CHECK(r == -EBADMSG || r == -EUCLEAN);
                return;
        }
        read_all(f.store, &found);
        int refused = compare(written, &found);
        CHECK(refused >= 0);
        *served += found.n - (size_t) refused > 0;
        /* where no read came by, the check of all pages does */
        f.store->scrub_next = 1;
        while ((r = integrity_scrub(f.store)) > 0)
                continue;
        CHECK_INT(r, 0);
        CHECK_UINT(damaged(&f), 1);
}

/* In a process of its own, since one notes no more than PAGES_DAMAGE_MAX damaged pages. */
static void flip_apart(const struct fixture *whole, const struct content *written, int64_t byte, unsigned bit,
                       unsigned *not_opened, unsigned *served) {
        int status = -1;
        (void) fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
                unsigned refused = 0, rest = 0;
                check_flipped(whole, written, byte, bit, &refused, &rest);
                (void) fflush(NULL);
                _exit(check_case_failed ? 4 : (int) (refused + 2 * rest));
        }
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 4);
        *not_opened += WEXITSTATUS(status) & 1;
        *served += WEXITSTATUS(status) >> 1;
}

static void test_no_flipped_bit_is_served(void) {
        FIXTURE f;
        __attribute__((cleanup(content_deinit))) struct content written = {0};
        fixture_open(&f);
        CHECK_INT(fill(f.store), 0);
        read_all(f.store, &written);
        store_close(util_steal(&f.store));
        int64_t pages = file_size(&f, "ipclab.db") / PAGES_SIZE;
        unsigned not_opened = 0, served = 0, seed = 4711;
        CHECK(pages >= 40);
        for (int64_t page = 0; page < pages && !check_case_failed; page++)
                flip_apart(&f, &written, page * PAGES_SIZE + rand_r(&seed) % PAGES_SIZE, (unsigned) rand_r(&seed) % 8,
                           &not_opened, &served);
        const unsigned flips = campaign_count("IPCLAB_BITS", RANDOM_FLIPS);
        for (unsigned i = 0; i < flips && !check_case_failed; i++)
                flip_apart(&f, &written, ((int64_t) rand_r(&seed) << 16 | rand_r(&seed)) % (pages * PAGES_SIZE),
                           (unsigned) rand_r(&seed) % 8, &not_opened, &served);
        CHECK(!check_case_failed);
        printf("counted: a flipped bit in each of %" PRId64 " pages and %u anywhere: %u copies were not opened, %u "
               "served the rest, and none of them the bit\n",
               pages, flips, not_opened, served);
        CHECK(served >= 40);
}

/* The copy is not compared while the log still has the page: SQLite reads it from there. */
static void test_a_flipped_bit_in_the_log_is_not_served(void) {
        FIXTURE f;
        __attribute__((cleanup(content_deinit))) struct content written = {0};
        fixture_open(&f);
        CHECK_INT(fill(f.store), 0);
        read_all(f.store, &written);
        int64_t size = file_size(&f, "ipclab.db-wal"), frame = 24 + PAGES_SIZE;
        int refused = 0;
        CHECK(size > 40 * frame);
        for (int64_t at = 32; at + frame <= size; at += frame)
                CHECK_INT(flip_bit(&f, "ipclab.db-wal", at + 24 + 100, 3), 0);
        CHECK_INT(db_run_script(f.store->db, "PRAGMA shrink_memory"), 0); /* SQLite forgets the pages it has read */
        __attribute__((cleanup(content_deinit))) struct content found = {0};
        read_all(f.store, &found);
        refused = compare(&written, &found);
        CHECK(refused > 0);
        CHECK(damaged(&f) > 0);
        struct store_integrity i;
        store_integrity(f.store, &i);
        CHECK_UINT(i.damaged, damaged(&f));
        CHECK_UINT(i.damaged_page, 0);
}

/* Cut off in place, so that each file still has its name. SQLite takes a page behind the end for one of zeros, of which
 * a long text or a histogram would be read as its rest. */
static void test_what_was_cut_off_is_not_served(void) {
        FIXTURE whole;
        __attribute__((cleanup(content_deinit))) struct content written = {0};
        fixture_open(&whole);
        CHECK_INT(fill(whole.store), 0);
        read_all(whole.store, &written);
        store_close(util_steal(&whole.store));
        int64_t pages = file_size(&whole, "ipclab.db") / PAGES_SIZE;
        int cuts_noticed = 0;
        for (int64_t left = pages - 1; left > 0 && !check_case_failed; left -= 5) {
                FIXTURE f;
                __attribute__((cleanup(content_deinit))) struct content found = {0};
                CHECK_INT(copy_store(&whole, &f), 0);
                CHECK_INT(store_open(&f.store, f.dir), 0);
                /* from then on the log has the number of pages, and not the file */
                CHECK_INT(db_run_script(f.store->db, "UPDATE counters SET value = value + 1 WHERE name = 'change'"), 0);
                CHECK_INT(truncate(fixture_path(&f, "ipclab.db"), left * PAGES_SIZE), 0);
                read_all(f.store, &found);
                int refused = compare(&written, &found);
                if (refused < 0 || (refused > 0) != (damaged(&f) > 0))
                        CHECK_FAIL("%" PRId64 " of %" PRId64 " pages: %d refused, %u damaged", left, pages, refused,
                                   damaged(&f));
                cuts_noticed += refused > 0;
        }
        CHECK(cuts_noticed > 10);
}

static void check_cut_log(int64_t parts) {
        FIXTURE f;
        __attribute__((cleanup(content_deinit))) struct content written = {0}, found = {0};
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fill(f.store), 0);
        read_all(f.store, &written);
        CHECK_INT(truncate(fixture_path(&f, "ipclab.db-wal"), file_size(&f, "ipclab.db-wal") * parts / 4), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), -EBADMSG); /* a start would find none of it */
        CHECK(damaged(&f) > 0);
        CHECK_INT(db_run_script(f.store->db, "PRAGMA shrink_memory"), 0);
        read_all(f.store, &found);
        CHECK(compare(&written, &found) >= 0);
}

static void test_a_log_that_was_cut_off_takes_nothing_in(void) {
        for (int64_t parts = 0; parts < 4 && !check_case_failed; parts++)
                check_cut_log(parts);
}

/* Over what is there, in place: `length` bytes from the beginning, 0: all. */
static int write_over(const struct fixture *from, const struct fixture *to, const char *name, size_t length) {
        _cleanup_fclose_ FILE *in = fopen(fixture_path(from, name), "re"), *out = fopen(fixture_path(to, name), "r+e");
        uint8_t buffer[PAGES_SIZE];
        size_t n = 0, left = length ? length : SIZE_MAX;
        if (!in || !out)
                return -errno;
        while (left > 0 && (n = fread(buffer, 1, left < sizeof(buffer) ? left : sizeof(buffer), in)) > 0) {
                if (fwrite(buffer, 1, n, out) != n)
                        return -EIO;
                left -= n;
        }
        return ferror(in) || fflush(out) != 0 ? -EIO : 0;
}

/* Its frames match the checksums that are among them: all of it, or its header alone, which is all that a recovery
 * needs to drop what comes behind. */
static void test_another_log_in_place_is_not_served(void) {
        static const size_t lengths[] = {0, 32};
        FIXTURE other;
        fixture_open(&other);
        CHECK_INT(fill(other.store), 0);
        for (size_t i = 0; i < ELEMENTS(lengths) && !check_case_failed; i++) {
                FIXTURE f;
                __attribute__((cleanup(content_deinit))) struct content written = {0}, found = {0};
                int64_t id;
                fixture_open(&f);
                CHECK_INT(fill(f.store), 0);
                read_all(f.store, &written);
                CHECK_INT(write_over(&other, &f, "ipclab.db-wal", lengths[i]), 0);
                CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), -EBADMSG);
                CHECK(damaged(&f) > 0);
                CHECK_INT(db_run_script(f.store->db, "PRAGMA shrink_memory"), 0);
                read_all(f.store, &found);
                CHECK(compare(&written, &found) > 0);
        }
}

/* A page at another's place has a good checksum of its own. */
static void test_a_page_at_anothers_place(void) {
        FIXTURE f;
        uint8_t page[PAGES_SIZE];
        fixture_open(&f);
        CHECK_INT(fill(f.store), 0);
        store_close(util_steal(&f.store));
        int64_t last = file_size(&f, "ipclab.db") / PAGES_SIZE - 1;
        _cleanup_close_ int fd = open(fixture_path(&f, "ipclab.db"), O_RDWR | O_CLOEXEC);
        CHECK_INT(pread(fd, page, sizeof(page), last * PAGES_SIZE), PAGES_SIZE);
        CHECK_INT(pwrite(fd, page, sizeof(page), (last - 1) * PAGES_SIZE), PAGES_SIZE);
        struct db *db;
        uint32_t next = 1, total = 0;
        CHECK_INT(db_open(&db, fixture_path(&f, "ipclab.db"), DB_WRITER), 0);
        int r = db_scrub(db, 1, 1000000, &next, &total);
        db_close(db);
        CHECK_INT(r, 0);
        CHECK_UINT(next, 0);
        CHECK_UINT(total, (uint32_t) last + 1);
        CHECK_UINT(damaged(&f), 1);
}

/* What SQLite reads of its own uncommitted frames, written twice, is no damage. */
static void test_a_large_transaction_reads_itself(void) {
        FIXTURE f;
        fixture_open(&f);
        CHECK_INT(db_run_script(f.store->db, "PRAGMA cache_size = 10; CREATE TABLE large (x INTEGER PRIMARY KEY, y)"),
                  0);
        for (int round = 0; round < 3; round++) {
                CHECK_INT(db_run_script(f.store->db,
                                        "BEGIN IMMEDIATE; INSERT INTO large (y) WITH RECURSIVE n(i) AS (SELECT 1 UNION "
                                        "ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT randomblob(500) FROM n; "
                                        "UPDATE large SET y = randomblob(400); DELETE FROM large WHERE x % 3 = 0; "
                                        "UPDATE large SET y = randomblob(450)"),
                          0);
                CHECK_INT(number(&f, "SELECT count(*) FROM large WHERE length(y) = 450") > 0, 1);
                CHECK_INT(db_run_script(f.store->db, round == 1 ? "ROLLBACK" : "COMMIT"), 0);
        }
        CHECK_INT(number(&f, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
        CHECK_UINT(damaged(&f), 0);
}

/* The database that the directory had */

static int open_and_fill(void *fixture) {
        struct fixture *f = fixture;
        int r = store_open(&f->store, f->dir);
        return r < 0 ? r : fill(f->store);
}

/* Kills a store at work: its log stays. */
static int fill_and_die(struct fixture *f) {
        return child_crashes_after(open_and_fill, f);
}

static void test_an_unclean_end_is_checked(void) {
        FIXTURE f;
        struct store_integrity i;
        fixture_dir(&f);
        CHECK_INT(fill_and_die(&f), 0);
        CHECK_INT(store_open(&f.store, f.dir), 0);
        store_integrity(f.store, &i);
        CHECK(i.pages_checked < i.pages_to_check);
        for (int step = 0; step < 1000 && store_tidy(f.store) > 0; step++)
                continue;
        store_integrity(f.store, &i);
        CHECK(i.pages_to_check > 20);
        CHECK_UINT(i.pages_checked, i.pages_to_check);
        CHECK_UINT(i.damaged, 0);
        CHECK_INT(fixture_reopen(&f), 0); /* a clean end needs none */
        store_integrity(f.store, &i);
        CHECK_UINT(i.pages_to_check, 0);
}

/* What a start refuses, ipclabd --check does not call whole, and --backup does not copy. */
static void check_not_whole(const char *what, const struct fixture *f) {
        unsigned faults = 0;
        char to[128], part[128];
        snprintf(to, sizeof(to), "%s", fixture_path(f, "copy"));
        snprintf(part, sizeof(part), "%s", fixture_path(f, "copy.part"));
        int64_t log = file_size(f, "ipclab.db-wal");
        faults_reported = 0;
        int r = store_verify(f->dir, count_fault, &faults), copied = store_backup(f->dir, to);
        if (r != 0 || faults == 0 || faults_reported == 0)
                CHECK_FAIL("%s: store_verify() is %d, with %u faults", what, r, faults);
        if (copied != -EUCLEAN || access(to, F_OK) == 0 || access(part, F_OK) == 0)
                CHECK_FAIL("%s: store_backup() is %d", what, copied);
        if (log > 0 && file_size(f, "ipclab.db-wal") != log)
                CHECK_FAIL("%s: the log has changed", what);
}

static void check_refused(const char *what, int (*lose)(struct fixture *f)) {
        FIXTURE f;
        struct store *s = NULL;
        fixture_dir(&f);
        CHECK_INT(fill_and_die(&f), 0);
        CHECK_INT(lose(&f), 0);
        check_not_whole(what, &f);
        int r = store_open(&s, f.dir);
        store_close(s);
        if (r != -EUCLEAN && r != -EBADMSG)
                CHECK_FAIL("%s: store_open() is %d", what, r);
        /* the documented way out: ids go on above the highest */
        int64_t id = 0;
        CHECK_INT(store_adopt(f.dir), 0);
        CHECK_INT(store_open(&f.store, f.dir), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(id, EXPERIMENTS + 2); /* one more came as a bundle */
}

static int lose_database(struct fixture *f) {
        (void) unlink(fixture_path(f, "ipclab.db-wal"));
        (void) unlink(fixture_path(f, "ipclab.db-shm"));
        return unlink(fixture_path(f, "ipclab.db"));
}

static int empty_database(struct fixture *f) {
        (void) unlink(fixture_path(f, "ipclab.db-wal"));
        return truncate(fixture_path(f, "ipclab.db"), 0);
}

static int lose_log(struct fixture *f) {
        return unlink(fixture_path(f, "ipclab.db-wal"));
}

static int empty_log(struct fixture *f) {
        return truncate(fixture_path(f, "ipclab.db-wal"), 0);
}

/* SQLite's recovery ends at the first frame that does not match, and drops all that were committed after it. */
static int damage_log(struct fixture *f) {
        return flip_bit(f, "ipclab.db-wal", file_size(f, "ipclab.db-wal") / 2, 5);
}

static int exchange_database(struct fixture *f) {
        FIXTURE other;
        char source[128];
        fixture_open(&other);
        store_close(util_steal(&other.store));
        snprintf(source, sizeof(source), "%s", fixture_path(&other, "ipclab.db"));
        (void) unlink(fixture_path(f, "ipclab.db-wal"));
        return copy_file(source, fixture_path(f, "ipclab.db"));
}

/* Changed by a program without checksums. */
static int rewrite_database(struct fixture *f) {
        sqlite3 *db;
        (void) unlink(fixture_path(f, "ipclab.db-wal"));
        (void) unlink(fixture_path(f, "ipclab.db"));
        int code = sqlite3_open(fixture_path(f, "ipclab.db"), &db);
        for (size_t i = 0; code == SQLITE_OK && i < 4; i++)
                code = sqlite3_exec(db, migrations[i].sql, NULL, NULL, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_exec(db, "PRAGMA user_version = 4", NULL, NULL, NULL);
        (void) sqlite3_close(db);
        return code == SQLITE_OK ? 0 : -EIO;
}

static int damage_identity(struct fixture *f) {
        return truncate(fixture_path(f, IDENTITY_FILE), 150);
}

static void test_what_was_lost_is_refused(void) {
        static const struct {
                const char *what;
                int (*lose)(struct fixture *f);
        } ways[] = {
                {"the database is missing", lose_database},
                {"the database is empty", empty_database},
                {"the log is missing", lose_log},
                {"the log is empty", empty_log},
                {"the log is damaged", damage_log},
                {"another store's database", exchange_database},
                {"a database without checksums", rewrite_database},
                {"the identity is damaged", damage_identity},
        };
        for (size_t i = 0; i < ELEMENTS(ways) && !check_case_failed; i++)
                check_refused(ways[i].what, ways[i].lose);
}

static int add_two(void *fixture) {
        struct fixture *f = fixture;
        int64_t id;
        int r = store_open(&f->store, f->dir);
        if (r == 0)
                r = fixture_add(f->store, 1, 1, NULL, &id);
        if (r == 0)
                r = db_checkpoint(f->store->db);
        return r == 0 ? fixture_add(f->store, 1, 1, NULL, &id) : r;
}

static int add_two_and_die(struct fixture *f) {
        return child_crashes_after(add_two, f);
}

/* The log belongs to the database that was there, and is needed when that is put back. */
static void test_a_refused_start_leaves_the_log(void) {
        FIXTURE f, other;
        struct store *s = NULL;
        char path[128], away[128];
        fixture_dir(&f);
        fixture_open(&other);
        store_close(util_steal(&other.store));
        CHECK_INT(add_two_and_die(&f), 0);
        (void) snprintf(path, sizeof(path), "%s", fixture_path(&f, "ipclab.db"));
        (void) snprintf(away, sizeof(away), "%s", fixture_path(&f, "away"));
        int64_t log = file_size(&f, "ipclab.db-wal");
        CHECK(log > 0);
        CHECK_INT(rename(path, away), 0);
        CHECK_INT(copy_file(fixture_path(&other, "ipclab.db"), path), 0);
        CHECK_INT(store_open(&s, f.dir), -EUCLEAN);
        CHECK_INT(file_size(&f, "ipclab.db-wal"), log);
        CHECK_INT(rename(away, path), 0);
        CHECK_INT(store_open(&f.store, f.dir), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM experiments"), 2);
}

/* A copy of an earlier time. */
static void test_an_older_copy_is_refused(void) {
        FIXTURE f;
        struct store *s = NULL;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(store_backup(f.dir, fixture_path(&f, "backup")), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        store_close(util_steal(&f.store));
        char backup[128];
        snprintf(backup, sizeof(backup), "%s", fixture_path(&f, "backup"));
        CHECK_INT(rename(backup, fixture_path(&f, "ipclab.db")), 0);
        check_not_whole("an older copy", &f);
        CHECK_INT(store_open(&s, f.dir), -EUCLEAN);
        CHECK_INT(store_adopt(f.dir), 0);
        CHECK_INT(store_open(&f.store, f.dir), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(id, 3); /* the second experiment's is not given out again */
}

static int nothing(struct store *s) {
        (void) s;
        return 0;
}

static int pin(struct store *s) {
        return store_pin_baseline(s, "base", 1);
}

static int unpin(struct store *s) {
        return store_remove_baseline(s, "base");
}

static int acknowledge(struct store *s) {
        int64_t newest;
        return store_acknowledge_export(s, 1, &newest);
}

/* What no experiment or run tells of. */
static void test_an_older_copy_without_a_pin_is_refused(void) {
        static const struct {
                int (*before)(struct store *s);
                int (*after)(struct store *s);
        } ways[] = {{nothing, pin}, {pin, unpin}, {nothing, acknowledge}};
        for (size_t i = 0; i < ELEMENTS(ways) && !check_case_failed; i++) {
                FIXTURE f;
                struct store *s = NULL;
                char backup[128];
                int64_t id;
                fixture_open(&f);
                CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
                CHECK_INT(ways[i].before(f.store), 0);
                CHECK_INT(store_backup(f.dir, fixture_path(&f, "backup")), 0);
                CHECK_INT(ways[i].after(f.store), 0);
                store_close(util_steal(&f.store));
                snprintf(backup, sizeof(backup), "%s", fixture_path(&f, "backup"));
                CHECK_INT(rename(backup, fixture_path(&f, "ipclab.db")), 0);
                CHECK_INT(store_open(&s, f.dir), -EUCLEAN);
        }
}

/* Whoever adopts a database may be root, and the daemon need not be. */
static void test_what_root_adopts_is_the_owners(void) {
        static const char *const names[] = {"ipclab.db", "ipclab.identity"};
        enum { SOMEBODY = 12345 };
        FIXTURE f;
        struct stat st;
        if (geteuid() != 0)
                SKIP("giving files to another user takes root");
        fixture_dir(&f);
        CHECK_INT(fill_and_die(&f), 0);
        CHECK_INT(unlink(fixture_path(&f, "ipclab.identity")), 0);
        CHECK(chown(f.dir, SOMEBODY, SOMEBODY) == 0 && chown(fixture_path(&f, "ipclab.db"), SOMEBODY, SOMEBODY) == 0);
        CHECK_INT(store_adopt(f.dir), 0);
        for (size_t i = 0; i < ELEMENTS(names); i++) {
                CHECK_INT(stat(fixture_path(&f, names[i]), &st), 0);
                CHECK_UINT(st.st_uid, SOMEBODY);
                CHECK_UINT(st.st_gid, SOMEBODY);
        }
}

static int remove_one(const struct fixture *f, const char *name) {
        return unlink(fixture_path(f, name));
}

static void check_gone(const char *name) {
        FIXTURE f;
        int64_t id = 0;
        struct store_integrity i;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(remove_one(&f, name), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), -ESTALE);
        store_integrity(f.store, &i);
        CHECK_STRING(i.gone, fixture_path(&f, name));
        CHECK_INT(number(&f, "SELECT count(*) FROM experiments"), 1); /* nothing of it stays */
}

static void test_files_removed_at_work(void) {
        static const char *const names[] = {"ipclab.db", "ipclab.db-wal", "ipclab.db-shm", LOCK_FILE, IDENTITY_FILE};
        for (size_t i = 0; i < ELEMENTS(names) && !check_case_failed; i++)
                check_gone(names[i]);
}

static int exchange_one(const struct fixture *f, const char *name) {
        char away[128], path[128];
        (void) snprintf(path, sizeof(path), "%s", fixture_path(f, name));
        (void) snprintf(away, sizeof(away), "%s", fixture_path(f, "away"));
        return rename(path, away) < 0 ? -errno : copy_file(away, path);
}

static int link_one(const struct fixture *f, const char *name) {
        char away[128];
        (void) snprintf(away, sizeof(away), "%s", fixture_path(f, "away"));
        return rename(fixture_path(f, name), away) < 0 || symlink(away, fixture_path(f, name)) < 0 ? -errno : 0;
}

static void check_beside(const char *name, int (*lose)(const struct fixture *f, const char *name)) {
        FIXTURE f;
        int64_t id;
        const char *path = "";
        struct store *before = NULL, *after = NULL;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(store_open_beside(&before, f.store), 0);
        int found = store_check_files(before, &path), lost = lose(&f, name);
        bool there = access(fixture_path(&f, name), F_OK) == 0;
        int opened = store_open_beside(&after, f.store), gone = store_check_files(before, &path);
        store_close(before);
        CHECK_INT(found, 0);
        CHECK_INT(lost, 0);
        CHECK_INT(opened, -ESTALE);
        CHECK(after == NULL);
        CHECK_INT(gone, -ESTALE);
        CHECK_STRING(path, fixture_path(&f, name));
        CHECK(there == (access(fixture_path(&f, name), F_OK) == 0)); /* none was made for the reader */
}

/* SQLite opens what has the name: the log of another database, or an empty one. */
static void test_a_reader_has_the_writers_files(void) {
        static const char *const names[] = {"ipclab.db", "ipclab.db-wal", "ipclab.db-shm"};
        for (size_t i = 0; i < ELEMENTS(names) && !check_case_failed; i++) {
                check_beside(names[i], remove_one);
                check_beside(names[i], exchange_one);
                check_beside(names[i], link_one);
        }
}

/* They are for whoever writes. */
static void test_a_reader_needs_no_other_files(void) {
        static const char *const names[] = {LOCK_FILE, IDENTITY_FILE};
        FIXTURE f;
        int64_t id;
        struct store *before = NULL, *after = NULL;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(store_open_beside(&before, f.store), 0);
        for (size_t i = 0; i < ELEMENTS(names); i++)
                (void) unlink(fixture_path(&f, names[i]));
        int added = fixture_add(f.store, 1, 1, NULL, &id), found = store_check_files(before, NULL);
        int opened = store_open_beside(&after, f.store);
        enum state state = opened == 0 ? fixture_experiment_state(after, 1) : STATE_COUNT;
        store_close(before);
        store_close(after);
        CHECK_INT(added, -ESTALE);
        CHECK_INT(found, 0);
        CHECK_INT(opened, 0);
        CHECK_INT(state, STATE_QUEUED);
}

/* Copies and checks */

static int back_up_and_verify(void *fixture) {
        struct fixture *f = fixture;
        unsigned faults = 1;
        return store_backup(f->dir, fixture_path(f, "copy")) < 0 || store_verify(f->dir, count_fault, &faults) < 0 ||
               faults > 0;
}

/* What the kernel drops with a closed descriptor are the process's locks: the log of a store without them is removed by
 * the next program that closes the database. */
static void test_another_process_leaves_the_log(void) {
        FIXTURE f;
        int64_t id;
        struct store *reader = NULL;
        fixture_open(&f);
        f.store->scrub_next = 1;
        CHECK_INT(integrity_scrub(f.store), 0);
        CHECK_INT(store_open_beside(&reader, f.store), 0);
        store_close(reader);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(child_does(back_up_and_verify, &f), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
}

static void test_backup_of_a_store_at_work(void) {
        FIXTURE f;
        FIXTURE copy;
        __attribute__((cleanup(content_deinit))) struct content written = {0}, found = {0};
        fixture_open(&f);
        fixture_dir(&copy);
        CHECK_INT(fill(f.store), 0);
        read_all(f.store, &written);
        char to[128];
        snprintf(to, sizeof(to), "%s", fixture_path(&copy, "ipclab.db"));
        CHECK_INT(store_backup(f.dir, to), 0);
        CHECK_INT(store_backup(f.dir, to), -EEXIST);
        CHECK_INT(store_backup(f.dir, "/nonexistent/copy") < 0, 1);
        CHECK_INT(store_open(&copy.store, copy.dir), 0);
        read_all(copy.store, &found);
        CHECK_INT(compare(&written, &found), 0);
        CHECK_STRING(store_identity(copy.store), store_identity(f.store));
}

static void test_verify_names_what_is_damaged(void) {
        FIXTURE f;
        unsigned faults = 7;
        fixture_open(&f);
        CHECK_INT(fill(f.store), 0);
        CHECK_INT(store_verify(f.dir, count_fault, &faults), 0); /* of a store at work */
        CHECK_UINT(faults, 0);
        store_close(util_steal(&f.store));
        CHECK_INT(store_verify(f.dir, count_fault, &faults), 0);
        CHECK_UINT(faults, 0);
        CHECK_INT(flip_bit(&f, "ipclab.db", file_size(&f, "ipclab.db") - PAGES_SIZE + 7, 1), 0);
        CHECK_INT(flip_bit(&f, "ipclab.db", 20 * PAGES_SIZE + 2000, 1), 0);
        faults_reported = 0;
        CHECK_INT(store_verify(f.dir, count_fault, &faults), 0);
        CHECK(faults >= 2);
}

int main(void) {
        log_open(LOG_EMERG);
        RUN(test_every_table_is_filled);
        RUN(test_no_flipped_bit_is_served);
        RUN(test_a_flipped_bit_in_the_log_is_not_served);
        RUN(test_what_was_cut_off_is_not_served);
        RUN(test_a_log_that_was_cut_off_takes_nothing_in);
        RUN(test_another_log_in_place_is_not_served);
        RUN(test_a_page_at_anothers_place);
        RUN(test_a_large_transaction_reads_itself);
        RUN(test_an_unclean_end_is_checked);
        RUN(test_what_was_lost_is_refused);
        RUN(test_a_refused_start_leaves_the_log);
        RUN(test_an_older_copy_is_refused);
        RUN(test_an_older_copy_without_a_pin_is_refused);
        RUN(test_what_root_adopts_is_the_owners);
        RUN(test_files_removed_at_work);
        RUN(test_a_reader_has_the_writers_files);
        RUN(test_a_reader_needs_no_other_files);
        RUN(test_another_process_leaves_the_log);
        RUN(test_backup_of_a_store_at_work);
        RUN(test_verify_names_what_is_damaged);
        return check_end();
}
