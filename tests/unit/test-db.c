/* SPDX-License-Identifier: MIT */

#include "daemon/log.h"
#include "daemon/store/database/db.h"
#include "tests/unit/check.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>
#include <sys/stat.h>

static struct {
        struct fixture f;
        struct db *db;
} t;

static void close_database(const int *unused) {
        (void) unused;
        db_close(t.db);
        t.db = NULL;
        fixture_end(&t.f);
}

/* A database with one table, for the length of the scope. */
#define DATABASE                                                                                                       \
        __attribute__((cleanup(close_database), unused)) int scope = 0;                                                \
        fixture_dir(&t.f);                                                                                             \
        CHECK_INT(db_open(&t.db, fixture_path(&t.f, "test.db"), DB_WRITER), 0);                                        \
        CHECK_INT(db_run_script(t.db, "CREATE TABLE a (x INTEGER UNIQUE, y TEXT, z BLOB) STRICT"), 0)

static int64_t count(void) {
        int64_t n;
        return db_get_one(t.db, &n, "SELECT count(*) FROM a") < 0 ? -1 : n;
}

static void test_values_come_back(void) {
        static const int64_t integers[] = {0, -1, INT64_MAX, INT64_MIN};
        static const uint8_t blob[] = {0, 1, 0, 255};
        DATABASE;
        for (size_t i = 0; i < ELEMENTS(integers); i++)
                CHECK_INT(db_run(t.db, "INSERT INTO a VALUES (?, ?, ?)", DB_INT(integers[i]), DB_TEXT("ü"),
                                 DB_BLOB(blob, sizeof(blob))),
                          0);
        _cleanup_query_ struct db_query q = {0};
        CHECK_INT(db_select_all(t.db, &q, "SELECT x, y, z FROM a ORDER BY rowid"), 0);
        for (size_t i = 0; i < ELEMENTS(integers); i++) {
                size_t length;
                CHECK_INT(db_step(&q), 1);
                CHECK_INT(db_column_i64(&q, 0), integers[i]);
                CHECK_STRING(db_column_peek(&q, 1), "ü");
                const void *data = db_column_blob(&q, 2, &length);
                CHECK_UINT(length, sizeof(blob));
                CHECK(memcmp(data, blob, length) == 0);
                CHECK_INT(q.error, 0);
        }
        CHECK_INT(db_step(&q), 0);
}

/* Bit for bit, whether they are stored as whole numbers or not. */
static void test_reals_come_back(void) {
        static const double reals[] = {0.1, -1e300, 5e-324, 3};
        DATABASE;
        CHECK_INT(db_run_script(t.db, "CREATE TABLE r (x REAL) STRICT"), 0);
        for (size_t i = 0; i < ELEMENTS(reals); i++)
                CHECK_INT(db_run(t.db, "INSERT INTO r VALUES (?)", DB_REAL(reals[i])), 0);
        _cleanup_query_ struct db_query q = {0};
        CHECK_INT(db_select_all(t.db, &q, "SELECT x, 7, NULL, 'text' FROM r ORDER BY rowid"), 0);
        for (size_t i = 0; i < ELEMENTS(reals); i++) {
                CHECK_INT(db_step(&q), 1);
                CHECK(db_column_double(&q, 0) == reals[i]);
                CHECK(db_column_double(&q, 1) == 7 && db_column_double(&q, 2) == 0);
                CHECK_INT(q.error, 0);
        }
        CHECK(db_column_double(&q, 3) == 0);
        CHECK_INT(q.error, -EBADMSG);
}

static void test_null_is_null(void) {
        DATABASE;
        CHECK_INT(db_run(t.db, "INSERT INTO a VALUES (?, ?, ?)", DB_NULL(), DB_TEXT(NULL), DB_BLOB(NULL, 0)), 0);
        _cleanup_query_ struct db_query q = {0};
        size_t length = 7;
        CHECK_INT(db_select_all(t.db, &q, "SELECT x, y, z FROM a"), 0);
        CHECK_INT(db_step(&q), 1);
        CHECK(db_column_is_null(&q, 0) && db_column_is_null(&q, 1) && db_column_is_null(&q, 2));
        CHECK_INT(db_column_i64(&q, 0), 0);
        CHECK(db_column_text(&q, 1) == NULL);
        CHECK(db_column_blob(&q, 2, &length) == NULL);
        CHECK_UINT(length, 0);
        CHECK_INT(q.error, 0);
}

/* A column of another type is a fault that sticks, not a zero. */
static void test_wrong_types(void) {
        DATABASE;
        CHECK_INT(db_run(t.db, "INSERT INTO a VALUES (?, ?, NULL)", DB_INT(-1), DB_TEXT("12")), 0);
        for (int column = 0; column < 3; column++) {
                _cleanup_query_ struct db_query q = {0};
                CHECK_INT(db_select_all(t.db, &q, "SELECT x, y, 1.5 FROM a"), 0);
                CHECK_INT(db_step(&q), 1);
                if (column == 0)
                        CHECK(db_column_peek(&q, 0) == NULL);
                else
                        CHECK_INT(db_column_i64(&q, column), 0);
                CHECK_INT(q.error, -EBADMSG);
                CHECK_INT(db_step(&q), -EBADMSG);
        }
        _cleanup_query_ struct db_query q = {0};
        CHECK_INT(db_select_all(t.db, &q, "SELECT x FROM a"), 0);
        CHECK_INT(db_step(&q), 1);
        CHECK_UINT(db_column_u32(&q, 0), 0); /* -1 is none */
        CHECK_INT(q.error, -EBADMSG);
}

static void test_errors_have_names(void) {
        DATABASE;
        int64_t v = 7;
        CHECK_INT(db_run(t.db, "INSERT INTO a VALUES (?, NULL, NULL)", DB_INT(1)), 0);
        CHECK_INT(db_run(t.db, "INSERT INTO a VALUES (?, NULL, NULL)", DB_INT(1)), -EEXIST);
        CHECK_INT(db_run(t.db, "INSERT INTO a VALUES (?, NULL, NULL)", DB_TEXT("text")), -EEXIST); /* STRICT */
        CHECK_INT(db_run(t.db, "INSERT INTO a VALUES (?, ?, NULL)", DB_INT(1)), -EINVAL); /* a value is missing */
        CHECK_INT(db_run(t.db, "INSERT INTO nowhere VALUES (?)", DB_INT(1)), -EIO);
        CHECK_INT(db_run_script(t.db, "no SQL"), -EIO);
        CHECK_INT(db_get(t.db, &v, "SELECT x FROM a WHERE x = ?", DB_INT(99)), -ENOENT);
        CHECK_INT(v, 7);
        CHECK_INT(count(), 1);
}

static int insert_and_leave(bool commit) {
        _cleanup_transaction_ struct db_transaction transaction = {0};
        int r = db_begin_write(t.db, &transaction);
        if (r == 0)
                r = db_run(t.db, "INSERT INTO a VALUES (?, NULL, NULL)", DB_INT(count()));
        if (r == 0 && commit)
                r = db_commit(&transaction);
        return r;
}

static void test_transactions(void) {
        DATABASE;
        CHECK_INT(insert_and_leave(false), 0);
        CHECK_INT(count(), 0);
        CHECK_INT(insert_and_leave(true), 0);
        CHECK_INT(insert_and_leave(true), 0);
        CHECK_INT(count(), 2);
        CHECK_UINT(db_changed_rows(t.db), 1);
        CHECK_INT(db_last_id(t.db), 2);
}

static void test_the_same_statement_twice_at_once(void) {
        DATABASE;
        for (int i = 0; i < 3; i++)
                CHECK_INT(db_run(t.db, "INSERT INTO a VALUES (?, NULL, NULL)", DB_INT(i)), 0);
        _cleanup_query_ struct db_query outer = {0};
        int rows = 0;
        CHECK_INT(db_select_all(t.db, &outer, "SELECT x FROM a ORDER BY x"), 0);
        while (db_step(&outer) > 0) {
                _cleanup_query_ struct db_query inner = {0};
                CHECK_INT(db_select_all(t.db, &inner, "SELECT x FROM a ORDER BY x"), 0);
                CHECK_INT(db_step(&inner), 1);
                CHECK_INT(db_column_i64(&inner, 0), 0);
                CHECK_INT(db_column_i64(&outer, 0), rows++);
        }
        CHECK_INT(rows, 3);
}

static void test_readers(void) {
        DATABASE;
        struct db *reader;
        CHECK_INT(db_open(&reader, fixture_path(&t.f, "test.db"), DB_READER), 0);
        int write = db_run(reader, "INSERT INTO a VALUES (?, NULL, NULL)", DB_INT(1));
        struct db_transaction transaction = {0};
        int64_t before = -1, during = -1, after = -1;
        int r = db_begin_read(reader, &transaction);
        if (r == 0)
                r = db_get_one(reader, &before, "SELECT count(*) FROM a");
        int inserted = insert_and_leave(true);
        if (r == 0)
                r = db_get_one(reader, &during, "SELECT count(*) FROM a"); /* the same snapshot */
        int busy = db_checkpoint(t.db);                                    /* must not wait for the reader */
        db_transaction_end(&transaction);
        if (r == 0)
                r = db_get_one(reader, &after, "SELECT count(*) FROM a");
        int checkpoint = db_checkpoint(t.db);
        db_close(reader);
        CHECK_INT(write, -EROFS);
        CHECK_INT(r, 0);
        CHECK_INT(inserted, 0);
        CHECK_INT(before, 0);
        CHECK_INT(during, 0);
        CHECK_INT(after, 1);
        CHECK_INT(busy, -EBUSY);
        CHECK_INT(checkpoint, 0);
}

static void count_call(void *userdata) {
        ++*(unsigned *) userdata;
}

/* Bytes of the database's file, without those of its log. */
static int64_t file_bytes(void) {
        struct stat st;
        return stat(fixture_path(&t.f, "test.db"), &st) < 0 ? -1 : (int64_t) st.st_size;
}

static int insert_bytes(int64_t n) {
        return db_run(t.db, "INSERT INTO a VALUES (NULL, NULL, zeroblob(?))", DB_INT(n));
}

/* The commit itself moves it, unless a callback is set. */
static void test_a_long_log_is_moved(void) {
        const int64_t large = 5 << 20;
        unsigned calls = 0;
        DATABASE;
        CHECK_INT(insert_bytes(1 << 20), 0);
        CHECK(file_bytes() < 1 << 20);
        CHECK_INT(insert_bytes(large), 0);
        CHECK(file_bytes() > large);

        CHECK_INT(db_on_long_log(t.db, count_call, &calls), 0);
        CHECK_INT(insert_bytes(1 << 20), 0);
        CHECK_UINT(calls, 0);
        CHECK_INT(insert_bytes(large), 0);
        CHECK_UINT(calls, 1);
        CHECK(file_bytes() < 2 * large);
        CHECK_INT(db_move_log(t.db), 0);
        CHECK(file_bytes() > 2 * large);
        CHECK_INT(insert_bytes(1), 0); /* in a log that begins again */
        CHECK_UINT(calls, 1);

        CHECK_INT(db_on_long_log(t.db, NULL, NULL), 0);
        CHECK_INT(insert_bytes(large), 0);
        CHECK_UINT(calls, 1);
        CHECK(file_bytes() > 3 * large);
}

static void test_locked_by_another(void) {
        DATABASE;
        struct db *other;
        CHECK_INT(db_open(&other, fixture_path(&t.f, "test.db"), DB_WRITER), 0);
        struct db_transaction transaction = {0};
        int r = db_begin_write(other, &transaction);
        int shortened = db_run_script(t.db, "PRAGMA busy_timeout = 50");
        uint64_t start = util_now_ns();
        int busy = insert_and_leave(true);
        uint64_t waited = util_now_ns() - start;
        db_transaction_end(&transaction);
        int later = insert_and_leave(true);
        db_close(other);
        CHECK_INT(r, 0);
        CHECK_INT(shortened, 0);
        CHECK_INT(busy, -EBUSY);
        CHECK(waited >= 40 * NSEC_PER_MSEC);
        CHECK_INT(later, 0);
}

int main(void) {
        log_open(LOG_EMERG);
        RUN(test_values_come_back);
        RUN(test_reals_come_back);
        RUN(test_null_is_null);
        RUN(test_wrong_types);
        RUN(test_errors_have_names);
        RUN(test_transactions);
        RUN(test_the_same_statement_twice_at_once);
        RUN(test_readers);
        RUN(test_a_long_log_is_moved);
        RUN(test_locked_by_another);
        return check_end();
}
