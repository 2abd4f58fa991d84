/* SPDX-License-Identifier: MIT */

/*
 * Another database, or an older copy of the same one, in the place of the one that was there, at work and before a
 * start: each of its pages is whole, and none may be served or built upon.
 */

#include "daemon/log.h"
#include "daemon/store/database/pages.h"
#include "daemon/store/integrity.h"
#include "tests/unit/check.h"
#include "tests/unit/child.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>
#include <sqlite3.h>
#include <zlib.h>

/* Over what is there, in place. */
static int write_over(const char *from, const char *to) {
        _cleanup_fclose_ FILE *in = fopen(from, "re"), *out = fopen(to, "r+e");
        char buffer[PAGES_SIZE];
        size_t n;
        if (!in)
                return -errno;
        if (!out)
                out = fopen(to, "we");
        if (!out)
                return -errno;
        while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
                if (fwrite(buffer, 1, n, out) != n)
                        return -EIO;
        return ferror(in) || fflush(out) != 0 ? -EIO : 0;
}

static int copy_within(const struct fixture *f, const char *from, const char *to) {
        char source[128];
        (void) snprintf(source, sizeof(source), "%s", fixture_path(f, from));
        return write_over(source, fixture_path(f, to));
}

static int copy_between(const struct fixture *from, const struct fixture *to, const char *name) {
        char source[128];
        (void) snprintf(source, sizeof(source), "%s", fixture_path(from, name));
        return write_over(source, fixture_path(to, name));
}

static int64_t size_of(const struct fixture *f, const char *name) {
        struct stat st;
        return stat(fixture_path(f, name), &st) < 0 ? -errno : st.st_size;
}

static uint32_t damaged(const struct fixture *f) {
        struct pages_damage d;
        pages_damage(fixture_path(f, "ipclab.db"), &d);
        return d.n;
}

/* A store whose experiments have all been moved into the database, with a large table that its cache does not hold. */
static int make(struct fixture *f, const char *word) {
        int64_t id;
        char sql[200];
        fixture_open(f);
        (void) snprintf(
                sql, sizeof(sql),
                "CREATE TABLE words (x INTEGER PRIMARY KEY, word TEXT); INSERT INTO words (word) WITH RECURSIVE "
                "n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT '%s' || i FROM n",
                word);
        int r = fixture_add(f->store, 4, 2, NULL, &id);
        if (r == 0)
                r = db_run_script(f->store->db, sql);
        return r < 0 ? r : db_checkpoint(f->store->db);
}

/* What a read at work may find: its own words, or an error. */
static int read_words(struct store *s, const char *word) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select_all(s->db, &q, "SELECT word FROM words ORDER BY x");
        while (r == 0 && (r = db_step(&q)) > 0) {
                const char *found = db_column_peek(&q, 0);
                r = q.error;
                if (r == 0 && strncmp(found, word, strlen(word)) != 0) {
                        fprintf(stderr, "\"%s\" was read in place of \"%s\"\n", found, word);
                        return 1;
                }
        }
        return r;
}

static void test_another_database_written_over_this_one(void) {
        FIXTURE f, other;
        const char *path = NULL;
        struct store *reader = NULL, *later = NULL;
        int64_t id;
        struct store_integrity i;
        CHECK_INT(make(&f, "own"), 0);
        CHECK_INT(make(&other, "foreign"), 0);
        CHECK_INT(store_open_beside(&reader, f.store), 0);
        store_close(util_steal(&other.store));
        CHECK_INT(copy_between(&other, &f, "ipclab.db"), 0);
        CHECK_INT(db_run_script(f.store->db, "PRAGMA shrink_memory"), 0);
        int read = read_words(f.store, "own"), beside = read_words(reader, "own");
        int found = store_check_files(reader, &path), opened = store_open_beside(&later, f.store);
        store_close(reader);
        store_close(later);
        CHECK_INT(read, -EBADMSG);
        CHECK_INT(beside, -EBADMSG);
        CHECK_INT(found, -ESTALE);
        CHECK_STRING(path, fixture_path(&f, "ipclab.db"));
        CHECK_INT(opened, -ESTALE);
        CHECK(damaged(&f) > 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), -EBADMSG);
        store_integrity(f.store, &i);
        CHECK_STRING(i.gone, fixture_path(&f, "ipclab.db"));
}

/* Beside the store is an older copy of its database, whose log has begun anew since. */
static int make_with_older_copy(struct fixture *f) {
        int64_t id;
        int r = make(f, "own");
        if (r == 0)
                r = copy_within(f, "ipclab.db", "older");
        if (r == 0)
                r = fixture_add(f->store, 1, 1, NULL, &id);
        if (r == 0)
                r = db_checkpoint(f->store->db);
        return r < 0 ? r : fixture_add(f->store, 1, 1, NULL, &id);
}

/* Its pages have this database's mark. */
static void test_an_older_copy_written_over_this_one(void) {
        FIXTURE f;
        int64_t id;
        CHECK_INT(make_with_older_copy(&f), 0);
        CHECK_INT(store_check_files(f.store, NULL), 0);
        CHECK_INT(copy_within(&f, "older", "ipclab.db"), 0);
        CHECK_INT(store_check_files(f.store, NULL), -ESTALE);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), -ESTALE);
}

/* Neither a checkpoint at work nor the one of a clean end moves the log into the older copy, which would look whole. */
static void test_an_older_copy_that_the_log_is_not_moved_into(void) {
        for (unsigned moves = 0; moves < 2; moves++) {
                FIXTURE f;
                CHECK_INT(make_with_older_copy(&f), 0);
                CHECK_INT(copy_within(&f, "older", "ipclab.db"), 0);
                if (moves)
                        CHECK(db_checkpoint(f.store->db) < 0);
                CHECK_INT(store_check_files(f.store, NULL), -ESTALE);
                store_close(util_steal(&f.store));
                CHECK(size_of(&f, "ipclab.db-wal") > 0);
                CHECK_INT(store_open(&f.store, f.dir), -EUCLEAN);
        }
}

/* It is not named as the one that goes with the database, and not moved into it. */
static void test_the_log_of_another_store_at_work(void) {
        FIXTURE f, other;
        int64_t id;
        bool goes = true;
        CHECK_INT(make(&f, "own"), 0);
        CHECK_INT(make(&other, "foreign"), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(fixture_add(other.store, 1, 1, NULL, &id), 0);
        CHECK_INT(copy_between(&other, &f, "ipclab.db-wal"), 0);
        CHECK(db_checkpoint(f.store->db) < 0);
        store_close(util_steal(&f.store));
        CHECK_INT(pages_goes_with_log(fixture_path(&f, "ipclab.db"), &goes), 0);
        CHECK(!goes);
        CHECK_INT(store_open(&f.store, f.dir), -EUCLEAN);
}

/* A copy that VACUUM has made is another file, though of the same store. */
static void test_a_backup_written_over_this_one(void) {
        FIXTURE f;
        int64_t id;
        CHECK_INT(make(&f, "own"), 0);
        CHECK_INT(store_backup(f.dir, fixture_path(&f, "backup")), 0);
        CHECK_INT(copy_within(&f, "backup", "ipclab.db"), 0);
        CHECK_INT(db_run_script(f.store->db, "PRAGMA shrink_memory"), 0);
        CHECK_INT(read_words(f.store, "own"), -EBADMSG);
        CHECK_INT(store_check_files(f.store, NULL), -ESTALE);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), -EBADMSG);
}

/* The index that SQLite has mapped: an access behind the end of its file is SIGBUS. */

static int loses_nothing_with_the_index(void *fixture) {
        struct fixture *f = fixture;
        const char *path = NULL;
        struct store *reader = NULL;
        struct store_integrity i;
        int64_t id, n = 0;
        bool good = store_open(&f->store, f->dir) == 0 && fixture_add(f->store, 1, 1, NULL, &id) == 0 &&
                    store_open_beside(&reader, f->store) == 0 && fixture_experiment_state(reader, 1) == STATE_QUEUED &&
                    truncate(fixture_path(f, "ipclab.db-shm"), 0) == 0;
        /* before anybody has looked at it, and afterwards */
        good = good && store_check_files(reader, &path) == -ESTALE &&
               strcmp(path, fixture_path(f, "ipclab.db-shm")) == 0;
        good = good && db_get_one(reader->db, &n, "SELECT count(*) FROM experiments") == -ESTALE;
        good = good && fixture_add(f->store, 1, 1, NULL, &id) == -ESTALE;
        path = "";
        good = good && store_check_files(reader, &path) == -ESTALE &&
               strcmp(path, fixture_path(f, "ipclab.db-shm")) == 0;
        store_integrity(f->store, &i);
        good = good && i.damaged == 0 && i.gone && strcmp(i.gone, fixture_path(f, "ipclab.db-shm")) == 0;
        store_close(reader);
        store_close(util_steal(&f->store));
        return good;
}

static void leave_log(void *userdata) {
        (void) userdata;
}

/* What has been moved from a long log is still in the index, and what has not is cut off. */
static int loses_nothing_with_half_the_index(void *fixture) {
        struct fixture *f = fixture;
        struct store *reader = NULL;
        struct db_transaction t = {0};
        int64_t id, n = 0;
        bool good =
                store_open(&f->store, f->dir) == 0 && db_on_long_log(f->store->db, leave_log, NULL) == 0 &&
                fixture_add(f->store, 1, 1, NULL, &id) == 0 &&
                db_run_script(f->store->db,
                              "CREATE TABLE large AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                              "WHERE i < 1500) SELECT zeroblob(3900) AS x FROM n") == 0 &&
                store_open_beside(&reader, f->store) == 0;
        /* The reader's snapshot keeps the log from beginning anew once all of it is moved. */
        good = good && db_begin_read(reader->db, &t) == 0 &&
               db_get_one(reader->db, &n, "SELECT count(*) FROM experiments") == 0 && db_move_log(f->store->db) == 0 &&
               fixture_add(f->store, 1, 1, NULL, &id) == 0;
        db_transaction_end(&t);
        store_close(reader);
        good = good && size_of(f, "ipclab.db-wal") > 1500 * (int64_t) PAGES_SIZE &&
               truncate(fixture_path(f, "ipclab.db-shm"), 4096) == 0 && db_checkpoint(f->store->db) < 0;
        store_close(util_steal(&f->store));
        return good && size_of(f, "ipclab.db-wal") > 0;
}

/* In a process of its own, for which the index stays lost. */
static void check_index(child_work loses_nothing, int64_t n_experiments) {
        FIXTURE f;
        int64_t id;
        fixture_dir(&f);
        CHECK_INT(child_does(loses_nothing, &f), 1);
        CHECK_INT(store_open(&f.store, f.dir), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM experiments"), n_experiments);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(id, n_experiments + 1);
}

static void test_an_index_that_was_cut_off(void) {
        check_index(loses_nothing_with_the_index, 1);
}

static void test_an_index_of_which_a_part_was_cut_off(void) {
        check_index(loses_nothing_with_half_the_index, 2);
}

/* A directory that cannot be searched any more, as after chmod(1): root's test has a loop of links in its place. */
static void test_a_name_that_cannot_be_looked_up(void) {
        FIXTURE f;
        char away[80];
        int64_t id;
        struct store_integrity before, meanwhile, after;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        store_integrity(f.store, &before);
        (void) snprintf(away, sizeof(away), "%s.away", f.dir);
        bool looped = rename(f.dir, away) == 0 && symlink(f.dir, f.dir) == 0;
        int pinned = store_pin_baseline(f.store, "base", 1);
        store_integrity(f.store, &meanwhile);
        looped = unlink(f.dir) == 0 && rename(away, f.dir) == 0 && looped;
        store_integrity(f.store, &after);
        CHECK(looped);
        CHECK_INT(pinned, -ELOOP);
        CHECK(!before.gone && !after.gone);
        CHECK_INT(meanwhile.gone_error, -ELOOP);
        CHECK_STRING(meanwhile.gone, fixture_path(&f, "ipclab.db"));
        CHECK_INT(store_pin_baseline(f.store, "base", 1), 0);
}

/* Before a start */

static void ignore_fault(const char *fault) {
        (void) fault;
}

enum copy_kind { COPY_OF_FILE, COPY_BY_BACKUP };

struct making {
        struct fixture *f;
        enum copy_kind kind;
};

static int fill_and_copy(void *userdata) {
        const struct making *m = userdata;
        struct fixture *f = m->f;
        int64_t id;
        int r = store_open(&f->store, f->dir);
        if (r == 0)
                r = fixture_add(f->store, 1, 1, NULL, &id);
        if (r == 0)
                r = db_checkpoint(f->store->db);
        if (r == 0)
                r = m->kind == COPY_OF_FILE ? copy_within(f, "ipclab.db", "older")
                                            : store_backup(f->dir, fixture_path(f, "older"));
        if (r == 0)
                r = fixture_add(f->store, 64, 32, NULL, &id);
        if (r == 0)
                r = db_checkpoint(f->store->db);
        return r == 0 ? fixture_add(f->store, 1, 1, NULL, &id) : r;
}

/* Ends as by a kill, with what was added last in the log alone, and an older copy at "older". */
static int make_and_die(struct fixture *f, enum copy_kind kind) {
        struct making m = {f, kind};
        fixture_dir(f);
        return child_crashes_after(fill_and_copy, &m);
}

static void check_mixture(struct fixture *f) {
        struct store *s = NULL;
        unsigned faults = 0;
        int64_t log = size_of(f, "ipclab.db-wal"), id;
        CHECK(log > 0);
        CHECK_INT(store_verify(f->dir, ignore_fault, &faults), 0);
        CHECK(faults > 0);
        CHECK_INT(store_backup(f->dir, fixture_path(f, "copy")), -EUCLEAN);
        CHECK(access(fixture_path(f, "copy"), F_OK) < 0);
        CHECK_INT(store_open(&s, f->dir), -EUCLEAN);
        CHECK_INT(store_adopt(f->dir), -EUCLEAN);
        CHECK_INT(size_of(f, "ipclab.db-wal"), log);
        CHECK_INT(unlink(fixture_path(f, "ipclab.db-wal")), 0);
        CHECK_INT(store_open(&s, f->dir), -EUCLEAN); /* it is older than what was acknowledged */
        CHECK_INT(store_adopt(f->dir), 0);
        CHECK_INT(store_open(&f->store, f->dir), 0);
        CHECK_INT(fixture_add(f->store, 1, 1, NULL, &id), 0);
        CHECK_INT(id, 4);
}

/* The log's pages lie over those of the copy, the newest numbers among them. */
static void test_an_older_copy_with_the_newer_log(void) {
        for (enum copy_kind kind = COPY_OF_FILE; kind <= COPY_BY_BACKUP && !check_case_failed; kind++) {
                FIXTURE f;
                CHECK_INT(make_and_die(&f, kind), 0);
                CHECK_INT(copy_within(&f, "older", "ipclab.db"), 0);
                CHECK_INT(truncate(fixture_path(&f, "ipclab.db"), size_of(&f, "older")), 0);
                check_mixture(&f);
        }
}

static void test_the_log_of_another_store(void) {
        FIXTURE f, other;
        struct store *s = NULL;
        CHECK_INT(make_and_die(&f, COPY_OF_FILE), 0);
        CHECK_INT(make_and_die(&other, COPY_OF_FILE), 0);
        CHECK_INT(copy_between(&other, &f, "ipclab.db-wal"), 0);
        CHECK_INT(store_open(&s, f.dir), -EUCLEAN);
        CHECK(s == NULL);
}

/* A log that goes with its database is taken, whatever it went through. */
static void test_the_own_log_is_taken(void) {
        FIXTURE f;
        bool goes = false;
        CHECK_INT(make_and_die(&f, COPY_OF_FILE), 0);
        CHECK_INT(pages_goes_with_log(fixture_path(&f, "ipclab.db"), &goes), 0);
        CHECK(goes);
        CHECK_INT(store_open(&f.store, f.dir), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM experiments"), 3);
}

/* Databases of earlier versions */

/* The checksums as they were before there were marks. */
static int seal_unmarked(const char *path) {
        uint8_t page[PAGES_SIZE];
        _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
        off_t at = 0;
        for (uint32_t number = 1; pread(fd, page, sizeof(page), at) == (ssize_t) sizeof(page); number++) {
                uint32_t be = htobe32(number);
                memcpy(page + PAGES_SIZE - 8, &be, sizeof(be));
                be = htobe32((uint32_t) crc32(0, page, PAGES_SIZE - 4));
                memcpy(page + PAGES_SIZE - 4, &be, sizeof(be));
                if (pwrite(fd, page, sizeof(page), at) != (ssize_t) sizeof(page))
                        return -EIO;
                at += PAGES_SIZE;
        }
        return at > 0 ? 0 : -EIO;
}

static int make_unmarked(const struct fixture *f) {
        sqlite3 *db;
        int bytes = PAGES_TRAILER_UNMARKED, code = sqlite3_open(fixture_path(f, "ipclab.db"), &db);
        if (code == SQLITE_OK)
                code = sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
        if (code == SQLITE_OK)
                code = sqlite3_exec(db, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL", NULL, NULL,
                                    NULL);
        for (size_t i = 0; code == SQLITE_OK && i < 12; i++)
                code = sqlite3_exec(db, migrations[i].sql, NULL, NULL, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_exec(db, "PRAGMA user_version = 12", NULL, NULL, NULL);
        (void) sqlite3_close(db);
        return code == SQLITE_OK ? seal_unmarked(fixture_path(f, "ipclab.db")) : -EIO;
}

static bool is_marked(const struct fixture *f) {
        uint8_t header[21] = {0};
        _cleanup_close_ int fd = open(fixture_path(f, "ipclab.db"), O_RDONLY | O_CLOEXEC);
        return pread(fd, header, sizeof(header), 0) == (ssize_t) sizeof(header) && header[20] == PAGES_TRAILER;
}

static void test_a_database_without_marks(void) {
        FIXTURE f;
        char backup[128];
        unsigned faults = 1;
        int64_t id;
        fixture_dir(&f);
        CHECK_INT(make_unmarked(&f), 0);
        CHECK_INT(store_open(&f.store, f.dir), 0);
        for (int i = 0; i < 3; i++) {
                CHECK_INT(fixture_add(f.store, 16, 16, NULL, &id), 0);
                CHECK_INT(db_checkpoint(f.store->db), 0);
                CHECK_INT(fixture_reopen(&f), 0);
        }
        store_close(util_steal(&f.store));
        CHECK(!is_marked(&f));
        CHECK_INT(store_verify(f.dir, ignore_fault, &faults), 0);
        CHECK_UINT(faults, 0);
        CHECK_UINT(damaged(&f), 0);
        /* the documented way to marks */
        (void) snprintf(backup, sizeof(backup), "%s", fixture_path(&f, "backup"));
        CHECK_INT(store_backup(f.dir, backup), 0);
        CHECK_INT(rename(backup, fixture_path(&f, "ipclab.db")), 0);
        CHECK(is_marked(&f));
        CHECK_INT(store_open(&f.store, f.dir), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM experiments"), 3);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(id, 4);
}

int main(void) {
        log_open(LOG_EMERG);
        RUN(test_another_database_written_over_this_one);
        RUN(test_an_older_copy_written_over_this_one);
        RUN(test_an_older_copy_that_the_log_is_not_moved_into);
        RUN(test_the_log_of_another_store_at_work);
        RUN(test_a_backup_written_over_this_one);
        RUN(test_a_name_that_cannot_be_looked_up);
        RUN(test_an_index_that_was_cut_off);
        RUN(test_an_index_of_which_a_part_was_cut_off);
        RUN(test_an_older_copy_with_the_newer_log);
        RUN(test_the_log_of_another_store);
        RUN(test_the_own_log_is_taken);
        RUN(test_a_database_without_marks);
        return check_end();
}
