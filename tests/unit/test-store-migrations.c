/* SPDX-License-Identifier: MIT */

/* Databases of other versions: the migration of earlier ones, and the refusal of later ones. */

#include "daemon/store/database/pages.h"
#include "daemon/store/internal.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/child.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>
#include <sqlite3.h>

/* What another program does to the file: with PAGES_VFS another ipclab, without (NULL) one whose pages have no
 * checksums. */
static int edit(const struct fixture *f, const char *vfs, const char *sql) {
        sqlite3 *db;
        int code = sqlite3_open_v2(fixture_path(f, "ipclab.db"), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs);
        if (code == SQLITE_OK)
                code = sqlite3_exec(db, sql, NULL, NULL, NULL);
        if (code != SQLITE_OK)
                fprintf(stderr, "%s\n", sqlite3_errmsg(db));
        (void) sqlite3_close(db);
        return code;
}

static char *text(const char *path) {
        FILE *file = fopen(path, "re");
        if (!file)
                return NULL;
        char *s = NULL;
        size_t size = 0;
        ssize_t n = getdelim(&s, &size, '\0', file);
        fclose(file);
        if (n < 0) {
                free(s);
                return NULL;
        }
        return s;
}

static void test_newer_database_is_refused(void) {
        FIXTURE f;
        struct store *s = NULL;
        fixture_open(&f);
        store_close(util_steal(&f.store));
        CHECK_INT(edit(&f, PAGES_VFS, "PRAGMA user_version = 4711"), SQLITE_OK);
        CHECK_INT(store_open(&s, f.dir), -EPROTONOSUPPORT);
        CHECK(s == NULL);
        CHECK_INT(edit(&f, PAGES_VFS, "SELECT count(*) FROM experiments"), SQLITE_OK); /* and untouched */
}

static void test_migrations_step_by_step(void) {
        static const struct migration good[] = {
                {"0001-a", "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1);"},
                {"0002-b", "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = 2 * x;"},
                {"0003-c", "CREATE TABLE c (z); INSERT INTO c VALUES (1); INSERT INTO nowhere VALUES (1);"},
        };
        FIXTURE f;
        fixture_dir(&f);
        struct db *db;
        CHECK_INT(db_open(&db, fixture_path(&f, "other.db"), DB_WRITER), 0);
        int64_t v;
        int first = store_migrate(db, good, 1), bad = store_migrate(db, good, 3);
        int version = db_get_one(db, &v, "PRAGMA user_version");
        int64_t y, c;
        int second = db_get_one(db, &y, "SELECT y FROM a");
        int third = db_get_one(db, &c, "SELECT count(*) FROM sqlite_schema WHERE name = 'c'");
        int again = store_migrate(db, good, 2), older = store_migrate(db, good, 1);
        db_close(db);
        CHECK_INT(first, 0);
        CHECK(bad < 0);
        CHECK_INT(version, 0);
        CHECK_INT(v, 2); /* the second step stands */
        CHECK_INT(second, 0);
        CHECK_INT(y, 2);
        CHECK_INT(third, 0);
        CHECK_INT(c, 0); /* nothing is left of the third */
        CHECK_INT(again, 0);
        CHECK_INT(older, -EPROTONOSUPPORT);
}

/* The tables as text; the caller frees it. */
static char *schema_of(struct fixture *f) {
        _cleanup_query_ struct db_query q = {0};
        if (db_select_all(f->store->db, &q,
                          "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema ORDER BY type, name)") <
                    0 ||
            db_step(&q) <= 0)
                return NULL;
        return db_column_text(&q, 0);
}

static void ignore_fault(const char *fault) {
        (void) fault;
}

/* For --check and --backup it needs no start of this version; a copy has checksums. */
static bool is_whole_and_copied(const struct fixture *f) {
        unsigned faults = 1;
        enum pages_kind kind;
        char copy[128];
        (void) snprintf(copy, sizeof(copy), "%s", fixture_path(f, "copy"));
        return store_verify(f->dir, ignore_fault, &faults) == 0 && faults == 0 && store_backup(f->dir, copy) == 0 &&
               pages_kind(copy, &kind) == 0 && kind == PAGES_CHECKED;
}

/* A database as an earlier version wrote it: every later ipclab must open and read it. */
static bool opens_version(struct fixture *f, unsigned version) {
        char path[512];
        const char *root = getenv("IPCLAB_SOURCE_ROOT");
        snprintf(path, sizeof(path), "%s/tests/unit/data/db/v%u.sql", root ? root : ".", version);
        _cleanup_free_ char *sql = text(path);
        enum pages_kind before, after;
        return sql && edit(f, NULL, sql) == SQLITE_OK && pages_kind(fixture_path(f, "ipclab.db"), &before) == 0 &&
               before == PAGES_PLAIN && is_whole_and_copied(f) && store_open(&f->store, f->dir) == 0 &&
               pages_kind(fixture_path(f, "ipclab.db"), &after) == 0 && after == PAGES_CHECKED &&
               number(f, "PRAGMA auto_vacuum") == 2 && number(f, "PRAGMA user_version") == (int64_t) n_migrations;
}

static void check_version(unsigned version) {
        FIXTURE f;
        fixture_dir(&f);
        CHECK(opens_version(&f, version));
        FIXTURE fresh;
        fixture_open(&fresh);
        _cleanup_free_ char *migrated = schema_of(&f), *made = schema_of(&fresh);
        CHECK_STRING(migrated, made);

        struct experiment_record e;
        CHECK_INT(store_experiment(f.store, 1, util_now_ms(), &e), 0);
        bool good = e.state == STATE_FAILED && e.runs_total == 3 && e.runs_done == 2 && e.runs_failed == 1 &&
                    strcmp(e.name, "Version 1") == 0 && strcmp(e.error, "pipe: broken") == 0;
        experiment_record_deinit(&e);
        CHECK(good);
        struct sample_record *samples;
        size_t n;
        CHECK_INT(store_samples(f.store, 1, 0, 0, 100, &samples, &n), 0);
        good = n == 2 && samples[0].messages == 10 && samples[1].latency && samples[1].latency->sum_ns == 5555;
        store_samples_free(samples, n);
        CHECK(good);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE block IS NULL"), 3); /* there were none yet */
        CHECK_INT(number(&f,
                         "SELECT count(*) FROM points WHERE point = '{\"workload\":\"stream\",\"transport\":\"pipe\","
                         "\"message_size\":' || (1 << ordinal) || ',\"threads\":1,\"copy_mode\":\"two-copy\","
                         "\"engine\":\"syscall\",\"source\":\"hot\",\"placement\":\"default\"}'"),
                  3); /* as points are written now */
        int64_t id;
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(id, 3); /* 2 was deleted */
}

static void test_version_1(void) {
        check_version(1);
}

static void test_version_2(void) {
        struct tuning_record record;
        check_version(2);
        FIXTURE f;
        fixture_dir(&f);
        CHECK(opens_version(&f, 2));
        CHECK_INT(store_next_tuning(f.store, "", &record), 0);
        bool good = strcmp(record.name, "numa_balancing") == 0 && record.run_id == 3 &&
                    strcmp(record.original, "0") == 0 && strcmp(record.wanted, "1") == 0 && !record.boot_id;
        tuning_record_deinit(&record);
        CHECK(good);
}

static void test_version_3(void) {
        struct tuning_record record;
        check_version(3);
        FIXTURE f;
        fixture_dir(&f);
        CHECK(opens_version(&f, 3));
        CHECK_INT(store_next_tuning(f.store, "", &record), 0);
        bool good = record.boot_id && strcmp(record.boot_id, "5f2e86b0-7a1c-4a4e-9d55-0c1b7e3f6a21") == 0;
        tuning_record_deinit(&record);
        CHECK(good);
}

static void test_version_4(void) {
        check_version(4);
}

/* An earlier ipclab, without checksums, that was killed: 0 when its log has what is not in the database. */
static int leave_log_of_version_4(void *fixture) {
        const struct fixture *f = fixture;
        char path[512];
        sqlite3 *db;
        struct stat st;
        const char *root = getenv("IPCLAB_SOURCE_ROOT");
        snprintf(path, sizeof(path), "%s/tests/unit/data/db/v4.sql", root ? root : ".");
        _cleanup_free_ char *sql = text(path);
        if (!sql || edit(f, NULL, sql) != SQLITE_OK || edit(f, NULL, "PRAGMA journal_mode = WAL") != SQLITE_OK)
                return 1;
        if (sqlite3_open_v2(fixture_path(f, "ipclab.db"), &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
            sqlite3_exec(db, "CREATE TABLE in_the_log (x)", NULL, NULL, NULL) != SQLITE_OK)
                return 2;
        return stat(fixture_path(f, "ipclab.db-wal"), &st) == 0 && st.st_size > 0 ? 0 : 3;
}

static void test_version_4_that_was_killed(void) {
        FIXTURE f;
        fixture_dir(&f);
        CHECK_INT(child_does(leave_log_of_version_4, &f), 0);
        CHECK_INT(store_open(&f.store, f.dir), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM sqlite_master WHERE name = 'in_the_log'"), 1);
        CHECK_INT(number(&f, "PRAGMA user_version"), (int64_t) n_migrations);
}

/* Specs of before there was a choice, and what is made of them. */
static void test_stored_defaults(void) {
        static const struct {
                const char *before, *after;
        } cases[] = {
                {"{\"workload\":\"stream\",\"transport\":\"tcp\",\"repetitions\":2,\"skip_impossible\":true}",
                 "{\"workload\":\"stream\",\"transport\":\"tcp\",\"order\":\"shuffled\",\"repetitions\":2,"
                 "\"stamp\":true,\"skip_impossible\":true}"},
                {"{\"workload\":[\"pingpong\",\"stream\"],\"transport\":[\"pipe\",\"tcp\"],\"order\":\"blocks\","
                 "\"tune\":{},\"skip_impossible\":true}",
                 "{\"workload\":[\"pingpong\",\"stream\"],\"transport\":[\"pipe\",\"tcp\"],\"order\":\"blocks\","
                 "\"stamp\":true,\"tune\":{},\"skip_impossible\":true}"},
                {"{\"workload\":\"stream\",\"transport\":\"tcp\",\"placement\":{\"kind\":\"default\",\"require\":"
                 "{\"smt\":true}},\"order\":\"blocks\",\"require\":{\"smt\":true},\"skip_impossible\":false,\"seed\":"
                 "7}",
                 "{\"workload\":\"stream\",\"transport\":\"tcp\",\"placement\":{\"kind\":\"default\",\"require\":"
                 "{\"smt\":true}},\"order\":\"blocks\",\"stamp\":true,\"require\":{\"smt\":true},\"skip_impossible\":"
                 "false,"
                 "\"seed\":7}"},
                {"{", NULL}, /* of which the daemon reports that it cannot be read */
                {"{\"workload\":\"stream\",\"transport\":\"tcp\"}",
                 "{\"workload\":\"stream\",\"transport\":\"tcp\",\"order\":\"shuffled\",\"stamp\":true}"},
                {"{\"workload\":\"stream\",\"transport\":\"tcp\",\"order\":\"blocks\",\"stamp\":false}",
                 "{\"workload\":\"stream\",\"transport\":\"tcp\",\"order\":\"blocks\"}"},
                {"{\"workload\":\"stream\",\"transport\":\"tcp\",\"order\":\"blocks\",\"rate\":10}", NULL},
                {"{\"workload\":\"pingpong\",\"transport\":\"tcp\",\"order\":\"blocks\"}", NULL},
                {"{\"workload\":\"stream\",\"transport\":\"pipe\",\"order\":\"blocks\"}", NULL},
        };
        FIXTURE f;
        fixture_dir(&f);
        struct db *db;
        CHECK_INT(db_open(&db, fixture_path(&f, "other.db"), DB_WRITER), 0);
        int r = store_migrate(db, migrations, 20);
        if (r == 0)
                r = db_run(db, "UPDATE counters SET value = ?1 WHERE name = 'change'", DB_INT(ELEMENTS(cases)));
        for (size_t i = 0; r == 0 && i < ELEMENTS(cases); i++)
                r = db_run(db,
                           "INSERT INTO experiments (id, change, state, seed, estimate_ns, created_at, runs_total, "
                           "version, skipped, merged, spec, measures) "
                           "VALUES (?1, ?1, 'done', 1, 1, 1, 0, '', '[]', ?2, '{}', ?2)",
                           DB_INT((int64_t) i), DB_TEXT(cases[i].before));
        if (r == 0)
                r = store_migrate(db, migrations, n_migrations);
        for (size_t i = 0; r == 0 && i < ELEMENTS(cases); i++) {
                const char *after = cases[i].after ? cases[i].after : cases[i].before;
                int64_t alike = 0;
                r = db_get(db, &alike,
                           "SELECT merged = ?2 AND (change > ?3) = ?4 AND measures = CASE WHEN json_valid(?2) THEN "
                           "json_remove(?2, '$.repetitions', '$.seed', '$.order', '$.skip_impossible') ELSE ?2 END "
                           "FROM " EXPERIMENT_TABLES " WHERE id = ?1",
                           DB_INT((int64_t) i), DB_TEXT(after), DB_INT(ELEMENTS(cases)),
                           DB_INT(cases[i].after != NULL));
                if (!alike)
                        CHECK_FAIL("not as it is to be: %s", after);
        }
        int64_t changes = 0;
        if (r == 0)
                r = db_get_one(
                        db, &changes,
                        "SELECT count(DISTINCT change) = count(*) AND max(change) = value FROM experiments, counters "
                        "WHERE counters.name = 'change'");
        db_close(db);
        CHECK_INT(r, 0);
        CHECK(changes);
}

/* What was stored before there were texts for searching is found by what it would be found by now. */
static void test_migration_of_search_texts(void) {
        FIXTURE f;
        fixture_dir(&f);
        struct db *db;
        int64_t same = 0;
        CHECK_INT(db_open(&db, fixture_path(&f, "other.db"), DB_WRITER), 0);
        int r = store_migrate(db, migrations, 24);
        for (int64_t id = 1; r == 0 && id <= 2; id++) {
                r = db_run(db,
                           "INSERT INTO experiments (id, change, state, seed, estimate_ns, created_at, runs_total, "
                           "version) VALUES (?1, ?1, 'done', 1, 1, 1, 0, '')",
                           DB_INT(id));
                if (r == 0)
                        r = db_run(db,
                                   "INSERT INTO specs (experiment_id, skipped, merged, spec) VALUES (?1, '[]', '{}', "
                                   "'{\"transport\":\"FIFO\",\"x\":\"' || hex(zeroblob(?2)) || '\",\"y\":\"Last\"}')",
                                   DB_INT(id), DB_INT(id == 1 ? 4 : 40000));
        }
        if (r == 0)
                r = store_migrate(db, migrations, n_migrations);
        if (r == 0)
                r = db_get_one(db, &same,
                               "SELECT count(*) = 2 AND min(CASE experiment_id WHEN 1 "
                               "THEN text = '{\"transport\":\"fifo\",\"x\":\"00000000\",\"y\":\"last\"}' "
                               "ELSE length(text) BETWEEN 2048 AND 4096 AND text LIKE '{\"transport\":\"fifo\",%' END) "
                               "FROM search_texts");
        db_close(db);
        CHECK_INT(r, 0);
        CHECK(same);
}

static void test_migration_of_presets(void) {
        FIXTURE f;
        fixture_dir(&f);
        struct db *db;
        int64_t same = 0;
        CHECK_INT(db_open(&db, fixture_path(&f, "other.db"), DB_WRITER), 0);
        int r = store_migrate(db, migrations, 29);
        if (r == 0)
                r = db_run_script(
                        db, "INSERT INTO experiments (id, change, state, seed, estimate_ns, created_at, runs_total, "
                            "version) "
                            "VALUES (1, 1, 'done', 1, 1, 1, 0, ''), (2, 2, 'done', 1, 1, 1, 0, ''), "
                            "(3, 3, 'done', 1, 1, 1, 0, ''), (4, 4, 'done', 1, 1, 1, 0, ''); "
                            "INSERT INTO specs (experiment_id, skipped, merged, spec) VALUES (1, '[]', '{}', "
                            "'{\"preset\":\"quick\"}'), (2, '[]', '{}', '{\"name\":\"a \\\"preset\\\"\"}'), "
                            "(3, '[]', '{}', '{\"preset\":\"quick\"}'), (4, '[]', '{}', '{\"preset\"'); "
                            "INSERT INTO search_texts SELECT experiment_id, spec FROM specs; "
                            "INSERT INTO bundles (experiment_id, sha256, host, taken_at) VALUES (3, 'x', 'there', 1)");
        if (r == 0)
                r = store_migrate(db, migrations, n_migrations);
        if (r == 0)
                r = db_get_one(db, &same,
                               "SELECT group_concat(id || COALESCE(preset, '')) = '1quick,2,3,4' "
                               "FROM (SELECT * FROM experiments ORDER BY id)");
        db_close(db);
        CHECK_INT(r, 0);
        CHECK(same);
}

int main(void) {
        RUN(test_newer_database_is_refused);
        RUN(test_migrations_step_by_step);
        RUN(test_stored_defaults);
        RUN(test_migration_of_search_texts);
        RUN(test_migration_of_presets);
        RUN(test_version_1);
        RUN(test_version_2);
        RUN(test_version_3);
        RUN(test_version_4);
        RUN(test_version_4_that_was_killed);
        return check_end();
}
