/* SPDX-License-Identifier: MIT */

/*
 * A state directory on a file system that is read-only: it is read, whatever an earlier daemon has left there, nothing
 * in it changes, and it is written to again when that is possible.
 */

#include "check.h"
#include "daemon/log.h"
#include "daemon/store/internal.h"
#include "tests/unit/child.h"
#include "tests/unit/store-fixture.h"

#include <sqlite3.h>
#include <sys/mman.h>

/* NOLINTBEGIN(bugprone-reserved-identifier) */
int __real_futimens(int fd, const struct timespec times[2]);
int __wrap_futimens(int fd, const struct timespec times[2]); /* by the linker's --wrap */
/* NOLINTEND(bugprone-reserved-identifier) */

static bool is_read_only;

int __wrap_futimens(int fd, const struct timespec times[2]) {
        if (!is_read_only)
                return __real_futimens(fd, times);
        errno = EROFS;
        return -1;
}

enum { BEFORE = 3 };

static int open_and_fill(struct store **ret, const struct fixture *f) {
        int64_t id = 0;
        if (store_open(ret, f->dir) < 0)
                return 1;
        for (unsigned i = 0; i < BEFORE; i++)
                if (fixture_add(*ret, 2, 2, NULL, &id) < 0)
                        return 1;
        return id == BEFORE ? 0 : 1;
}

static int fill(void *userdata) {
        struct store *s = NULL;
        return open_and_fill(&s, userdata);
}

static int fill_and_close(void *userdata) {
        struct store *s = NULL;
        int r = open_and_fill(&s, userdata);
        store_close(s);
        return r;
}

static FILE *open_file(int dir_fd, const char *name) {
        int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? NULL : fdopen(fd, "r");
}

/* Names, lengths, contents and times of all files there. */
static uint64_t digest(const struct fixture *f) {
        uint64_t sum = 0;
        DIR *dir = opendir(f->dir);
        for (struct dirent *d; dir && (d = readdir(dir));) {
                uint64_t file = 14695981039346656037u;
                struct stat st;
                _cleanup_fclose_ FILE *in = open_file(dirfd(dir), d->d_name);
                if (!in || fstat(fileno(in), &st) < 0 || !S_ISREG(st.st_mode))
                        continue;
                for (int c; (c = fgetc(in)) != EOF;)
                        file = (file ^ (uint64_t) c) * 1099511628211u;
                for (const char *c = d->d_name; *c; c++)
                        file = (file ^ (uint64_t) *c) * 1099511628211u;
                sum += file ^ (uint64_t) st.st_mtim.tv_nsec ^ (uint64_t) st.st_size;
        }
        if (dir)
                closedir(dir);
        return sum;
}

static bool reads_all(struct store *s) {
        for (int64_t id = 1; id <= BEFORE; id++)
                if (fixture_experiment_state(s, id) != STATE_QUEUED)
                        return false;
        return true;
}

static const struct left {
        child_work work;
        bool crashes;
        const char *lacks; /* the suffix of a file that is not there any more */
} lefts[] = {
        {fill, true, NULL},
        {fill, true, "-shm"},
        {fill_and_close, false, NULL},
        {fill_and_close, false, "-shm"},
        {fill_and_close, false, "-wal"},
};

/* A store as one of these has left it, on a file system that is read-only. */
static bool leave(struct fixture *f, const struct left *l) {
        char name[32];
        is_read_only = false;
        fixture_dir(f);
        if ((l->crashes ? child_crashes_after(l->work, f) : child_does(l->work, f)) != 0)
                return false;
        (void) snprintf(name, sizeof(name), "ipclab.db%s", l->lacks ? l->lacks : "");
        is_read_only = true;
        return !l->lacks || unlink(fixture_path(f, name)) == 0;
}

static void test_what_was_left_is_read(void) {
        for (size_t i = 0; i < ELEMENTS(lefts); i++) {
                FIXTURE f;
                int64_t id;
                struct store *reader = NULL;
                CHECK(leave(&f, &lefts[i]));
                uint64_t before = digest(&f);
                int r = store_open(&f.store, f.dir);
                if (r < 0)
                        CHECK_FAIL("case %zu: %s", i, strerror(-r));
                bool read = reads_all(f.store);
                int opened = store_open_beside(&reader, f.store);
                bool beside = opened == 0 && reads_all(reader);
                int added = fixture_add(f.store, 1, 1, NULL, &id), deleted = store_delete_experiment(f.store, 1);
                store_close(reader);
                store_close(util_steal(&f.store));
                if (!read || !beside || added != -EROFS || deleted != -EROFS || digest(&f) != before)
                        CHECK_FAIL("case %zu: %d %d %d %d", i, read, beside, added, deleted);
        }
}

static void test_it_is_written_to_again(void) {
        for (size_t i = 0; i < ELEMENTS(lefts); i++) {
                FIXTURE f;
                int64_t id = 0;
                struct store *reader = NULL;
                CHECK(leave(&f, &lefts[i]));
                CHECK_INT(store_open(&f.store, f.dir), 0);
                CHECK(store_is_read_only(f.store));
                CHECK_INT(store_reopen(f.store), -EROFS);
                is_read_only = false;
                CHECK_INT(store_open_beside(&reader, f.store), 0);
                int held = store_reopen(f.store);
                bool still = store_is_read_only(f.store) && reads_all(f.store) && reads_all(reader);
                store_close(reader);
                CHECK_INT(held, -EBUSY);
                CHECK(still);
                CHECK_INT(store_reopen(f.store), 0);
                CHECK(!store_is_read_only(f.store) && reads_all(f.store));
                CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
                CHECK_INT(id, BEFORE + 1);
                CHECK_INT(store_open_beside(&reader, f.store), 0);
                bool seen = fixture_experiment_state(reader, id) == STATE_QUEUED;
                store_close(reader);
                CHECK(seen);
                CHECK_INT(fixture_reopen(&f), 0);
                CHECK(reads_all(f.store) && fixture_experiment_state(f.store, id) == STATE_QUEUED);
        }
}

static void test_what_cannot_be_read_is_refused(void) {
        FIXTURE f;
        struct store *s = NULL;
        is_read_only = true;
        fixture_dir(&f);
        CHECK(store_open(&s, f.dir) < 0); /* there is nothing */
        CHECK(access(fixture_path(&f, "ipclab.db"), F_OK) < 0);
        CHECK(s == NULL);

        CHECK(leave(&f, &lefts[0]));
        CHECK_INT(store_adopt(f.dir), -EROFS);
        CHECK_INT(unlink(fixture_path(&f, "ipclab.db-wal")), 0);
        CHECK_INT(store_open(&s, f.dir), -EUCLEAN); /* acknowledged experiments were in it */
        CHECK(s == NULL);
}

static int make_earlier(void *userdata) {
        struct fixture *f = userdata;
        char sql[64];
        struct db *db = NULL;
        if (fill_and_close(f) != 0 || db_open(&db, fixture_path(f, "ipclab.db"), DB_WRITER) < 0)
                return 1;
        (void) snprintf(sql, sizeof(sql), "PRAGMA user_version = %zu", n_migrations - 1);
        int r = db_run_script(db, sql);
        db_close(db);
        return r < 0 ? 1 : 0;
}

/* Its migration would write. The reason is the version's and the file system's, and neither alone. */
static void test_an_earlier_version_is_named(void) {
        FIXTURE f;
        struct store *s = NULL;
        char log[2048] = "", versions[96];
        CHECK(leave(&f, &(struct left){make_earlier, false, NULL}));
        uint64_t before = digest(&f);
        int saved = dup(STDERR_FILENO), file = memfd_create("log", MFD_CLOEXEC);
        CHECK(saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
        log_open(LOG_ERR);
        int r = store_open(&s, f.dir);
        (void) dup2(saved, STDERR_FILENO);
        log_open(LOG_EMERG);
        ssize_t n = pread(file, log, sizeof(log) - 1, 0);
        (void) close(saved);
        (void) close(file);
        CHECK_INT(r, -EROFS);
        CHECK(s == NULL && n > 0);
        (void) snprintf(versions, sizeof(versions), "has version %zu, and this ipclab needs version %zu",
                        n_migrations - 1, n_migrations);
        if (!strstr(log, versions) || !strstr(log, f.dir) || strstr(log, "migration "))
                CHECK_FAIL("%s", log);
        CHECK(digest(&f) == before);
}

/* Its copy is what an operator wants first. */
static void test_it_can_be_copied(void) {
        for (size_t i = 0; i < ELEMENTS(lefts); i++) {
                FIXTURE f;
                char to[80];
                CHECK(leave(&f, &lefts[i]));
                (void) snprintf(to, sizeof(to), "%s.copy", f.dir);
                int r = store_backup(f.dir, to);
                (void) unlink(to);
                if (r < 0)
                        CHECK_FAIL("case %zu: %s", i, strerror(-r));
        }
}

int main(void) {
        log_open(LOG_EMERG); /* each is an error in the log */
        RUN(test_what_was_left_is_read);
        RUN(test_it_is_written_to_again);
        RUN(test_what_cannot_be_read_is_refused);
        RUN(test_an_earlier_version_is_named);
        RUN(test_it_can_be_copied);
        return check_end();
}
