/* SPDX-License-Identifier: MIT */

/*
 * Verifies that the database is the one that the directory had, all of it, and as it was written: the identity beside
 * it, the check of every page after an unclean end, and the operator's commands (ipclabd --adopt, --backup, --check).
 */

#include "daemon/store/integrity.h"
#include "daemon/log.h"
#include "daemon/store/database/pages.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRUB_PAGES 1024u /* 4 MiB at a step */
#define WAY_OUT "put back the files that were there, or accept what is there now with: ipclabd --adopt --state-dir %s"

/* The identity */

static int read_noted(struct db *db, struct identity *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select_all(db, &q,
                              "SELECT store, (SELECT value FROM counters WHERE name = 'change'), "
                              "(SELECT seq FROM sqlite_sequence WHERE name = 'experiments'), "
                              "(SELECT seq FROM sqlite_sequence WHERE name = 'runs') FROM identity");
        if (r == 0)
                r = db_step(&q);
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        struct identity i = {
                .change = db_column_i64(&q, 1), .experiment = db_column_i64(&q, 2), .run = db_column_i64(&q, 3)};
        const char *store = db_column_peek(&q, 0);
        if (q.error < 0 || !store || strlen(store) != IDENTITY_UUID)
                return q.error < 0 ? q.error : -EBADMSG;
        memcpy(i.store, store, IDENTITY_UUID);
        *ret = i;
        return 0;
}

/* The UUID stays as it is where it is the same: other threads read it (store_identity()). */
static void set_identity(struct store *s, const struct identity *i) {
        if (strcmp(s->identity.store, i->store) != 0)
                memcpy(s->identity.store, i->store, sizeof(i->store));
        s->identity.change = i->change;
        s->identity.experiment = i->experiment;
        s->identity.run = i->run;
        s->identity.open = i->open;
}

/* The next commit tries again. */
static void note_commit(void *userdata) {
        struct store *s = userdata;
        struct identity now;
        int r = read_noted(s->db, &now);
        if (r == 0) {
                now.open = true;
                r = identity_note(s->identity_fd, &now);
        }
        if (r < 0)
                log_warning("%s/" IDENTITY_FILE " is not up to date: %s", s->dir, strerrordesc_np(-r));
        else
                set_identity(s, &now);
}

/* The sentence on what is wrong, malloc()ed. -EUCLEAN. */
__attribute__((format(printf, 2, 3))) static int wrong(char **ret, const char *format, ...) {
        char *words;
        va_list args;
        va_start(args, format);
        int n = vasprintf(&words, format, args);
        va_end(args);
        if (n < 0)
                return -ENOMEM;
        *ret = words;
        return -EUCLEAN;
}

/* What SQLite would read as one. The log may have the newest numbers, beside an older copy of the database. */
static int compare_log(const struct store *s, char **ret_wrong) {
        bool goes = false;
        int r = pages_goes_with_log(s->path, &goes);
        if (r == -EAGAIN)
                log_error("%s-wal begins anew all the time: something writes it", s->path);
        else if (r < 0)
                log_error("%s-wal: %s", s->path, strerrordesc_np(-r));
        if (r < 0 || goes)
                return r;
        return wrong(ret_wrong,
                     "%s-wal does not go with %s: one of them is an older copy, or of another store; put back the "
                     "files that were there, or move the log away and accept the database without it with: ipclabd "
                     "--adopt --state-dir %s",
                     s->path, s->path, s->dir);
}

/* Has to come before anything of the database is read: a daemon may be at work, and the identity is never ahead. */
static int read_identity(struct store *s, char **ret_wrong) {
        struct identity noted = {0};
        int r = identity_read(s->dir, &noted);
        if (r == -EAGAIN) /* nothing is known to be damaged */
                return r;
        if (r < 0 && r != -ENOENT)
                return wrong(ret_wrong, "%s/" IDENTITY_FILE ": %s; " WAY_OUT, s->dir, strerrordesc_np(-r), s->dir);
        set_identity(s, &noted);
        return compare_log(s, ret_wrong);
}

static int compare_kind(const struct store *s, enum pages_kind kind, char **ret_wrong) {
        const struct identity *noted = &s->identity;
        if (!noted->store[0] || kind == PAGES_CHECKED)
                return 0;
        return wrong(ret_wrong,
                     "%s %s, and this directory had the store %s with experiments up to %" PRId64 "; " WAY_OUT, s->path,
                     kind == PAGES_NONE ? "is missing or empty" : "was written by another program", noted->store,
                     noted->experiment, s->dir);
}

static int compare_numbers(const struct store *s, const struct identity *found, char **ret_wrong) {
        const struct identity *noted = &s->identity;
        if (strcmp(noted->store, found->store) != 0)
                return wrong(ret_wrong, "%s is the store %s, and this directory had the store %s; " WAY_OUT, s->path,
                             found->store, noted->store, s->dir);
        if (noted->change > found->change || noted->experiment > found->experiment || noted->run > found->run)
                return wrong(ret_wrong,
                             "%s ends with change %" PRId64 ", experiment %" PRId64 " and run %" PRId64
                             ", and change %" PRId64 ", experiment %" PRId64 " and run %" PRId64
                             " had been acknowledged: it is an older copy, or its log (%s-wal) was lost or "
                             "damaged; " WAY_OUT,
                             s->path, found->change, found->experiment, found->run, noted->change, noted->experiment,
                             noted->run, s->path, s->dir);
        return 0;
}

int integrity_before_open(struct store *s) {
        _cleanup_free_ char *words = NULL;
        enum pages_kind kind = PAGES_NONE;
        int r = read_identity(s, &words);
        if (r == 0) {
                r = pages_kind(s->path, &kind);
                if (r < 0)
                        log_error("%s: %s", s->path, r == -EBADMSG ? "it is no database" : strerrordesc_np(-r));
        }
        if (r == 0)
                r = compare_kind(s, kind, &words);
        if (words)
                log_error("%s", words);
        return r == 0 && kind == PAGES_PLAIN ? db_convert(s->path) : r;
}

static int keep_identity(struct store *s, const struct identity *identity) {
        static const char *const others[] = {LOCK_FILE, IDENTITY_FILE};
        struct identity now = *identity;
        now.open = true;
        int r = identity_create(s->dir, &now, &s->identity_fd);
        if (r < 0 && pages_is_full(-r) &&
            strcmp(s->identity.store, now.store) == 0) /* it is there, and needs no room */
                r = identity_rewrite(s->dir, &now, &s->identity_fd);
        if (r < 0) {
                log_error("%s/" IDENTITY_FILE ": %s", s->dir, strerrordesc_np(-r));
                return r;
        }
        set_identity(s, &now);
        db_on_commit(s->db, note_commit, s);
        return db_watch_files(s->db, s->dir, others, ELEMENTS(others));
}

/* Compares what a connection reads with what the directory had, as a start does. */
static int compare_database(const struct store *s, struct db *db, char **ret_wrong) {
        enum pages_kind kind;
        int64_t knows;
        struct identity found;
        if (!s->identity.store[0]) /* of an earlier version, or copied alone */
                return 0;
        int r = db_kind(db, &kind);
        if (r == 0)
                r = compare_kind(s, kind, ret_wrong);
        if (r == 0)
                r = db_get_one(db, &knows, "SELECT count(*) FROM sqlite_schema WHERE name = 'identity'");
        if (r == 0 && knows == 0) /* of an earlier version, or none at all */
                return wrong(ret_wrong,
                             "%s has no identity, and this directory had the store %s with experiments up to %" PRId64
                             ": it is another database, or its log (%s-wal) was lost; " WAY_OUT,
                             s->path, s->identity.store, s->identity.experiment, s->path, s->dir);
        if (r == 0)
                r = read_noted(db, &found);
        return r == 0 ? compare_numbers(s, &found, ret_wrong) : r;
}

int integrity_compare(struct store *s) {
        _cleanup_free_ char *words = NULL;
        int r = compare_database(s, s->db, &words);
        if (words)
                log_error("%s", words);
        return r;
}

int integrity_know(struct store *s) {
        struct identity found;
        int r = read_noted(s->db, &found);
        if (r == 0 && !s->identity.store[0])
                set_identity(s, &found);
        return r;
}

int integrity_keep(struct store *s) {
        struct identity found;
        bool unclean = s->identity.open;
        int r = read_noted(s->db, &found);
        if (r == 0)
                r = keep_identity(s, &found);
        if (r == 0 && unclean) {
                log_notice("ipclabd ended without notice: every page of the database is compared with its checksum");
                s->scrub_next = 1;
                s->scrub_total = 1; /* until the first step knows */
        }
        return r;
}

void integrity_close(struct store *s) {
        if (s->identity_fd < 0)
                return;
        s->identity.open = false;
        int r = identity_note(s->identity_fd, &s->identity);
        if (r < 0)
                log_warning("%s/" IDENTITY_FILE ": %s", s->dir, strerrordesc_np(-r));
        s->identity_fd = util_close(s->identity_fd);
}

const char *store_identity(const struct store *s) {
        return s->identity.store;
}

/* The check after an unclean end */

/* Pages that a power cut has torn are in the log still: it goes into the database first. */
int integrity_scrub(struct store *s) {
        if (s->scrub_next == 0)
                return 0;
        uint32_t next = 0, total = 0;
        int r = s->scrub_next == 1 ? db_checkpoint(s->db) : 0;
        if (r == -EBUSY)
                return 0; /* a reader blocks it: the next call tries again */
        if (r == 0)
                r = db_scrub(s->db, s->scrub_next, SCRUB_PAGES, &next, &total);
        if (r < 0)
                return r;
        s->scrub_total = total;
        s->scrub_next = next;
        return next > 0;
}

int store_check_files(const struct store *s, const char **ret_path) {
        return db_check_files(s->db, ret_path);
}

void store_integrity(struct store *s, struct store_integrity *ret) {
        struct pages_damage d;
        const char *gone = NULL;
        pages_damage(s->path, &d);
        pthread_mutex_lock(&s->lock);
        int r = store_check_files(s, &gone);
        pthread_mutex_unlock(&s->lock);
        *ret = (struct store_integrity){.damaged = d.n,
                                        .damaged_page = d.page,
                                        .pages_checked = s->scrub_next ? s->scrub_next - 1 : s->scrub_total,
                                        .pages_to_check = s->scrub_total,
                                        .gone = r < 0 ? gone : NULL,
                                        .gone_error = r,
                                        .path = s->path};
}

/* For the operator */

static int raise_numbers(struct db *db, const struct identity *above) {
        const struct {
                const char *table;
                int64_t least;
        } sequences[] = {{"experiments", above->experiment}, {"runs", above->run}};
        int r = db_run(db, "UPDATE counters SET value = max(value, ?) WHERE name = 'change'", DB_INT(above->change));
        for (size_t i = 0; r == 0 && i < ELEMENTS(sequences); i++) {
                r = db_run(db,
                           "INSERT INTO sqlite_sequence (name, seq) SELECT ?1, 0 WHERE NOT EXISTS "
                           "(SELECT 1 FROM sqlite_sequence WHERE name = ?1)",
                           DB_TEXT(sequences[i].table));
                if (r == 0)
                        r = db_run(db, "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?",
                                   DB_INT(sequences[i].least), DB_TEXT(sequences[i].table));
        }
        return r;
}

int integrity_compare_log(struct store *s) {
        _cleanup_free_ char *words = NULL;
        int r = compare_log(s, &words);
        if (words)
                log_error("%s", words);
        return r;
}

int integrity_adopt(struct store *s, const struct identity *above) {
        struct identity identity;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = db_run_script(s->db, "UPDATE identity SET store = substr(store, 1, 9) || "
                                         "lower(substr(hex(randomblob(2)), 1, 4)) || substr(store, 14, 10) || '-' || "
                                         "lower(hex(randomblob(6)))");
        if (r == 0)
                r = raise_numbers(s->db, above);
        if (r == 0)
                r = db_commit(&t);
        if (r == 0)
                r = read_noted(s->db, &identity);
        if (r == 0)
                r = keep_identity(s, &identity);
        if (r == 0)
                log_notice("%s is the store %s from now on; the next experiment has an id above %" PRId64, s->path,
                           identity.store, identity.experiment);
        return r;
}

static int report_faults(struct db *db, void (*report)(const char *fault), unsigned *ret) {
        _cleanup_query_ struct db_query q = {0};
        unsigned faults = 0;
        int r = db_select_all(db, &q, "PRAGMA integrity_check(1000)");
        while (r == 0 && (r = db_step(&q)) > 0) {
                const char *line = db_column_peek(&q, 0);
                r = q.error;
                if (r == 0 && line && strcmp(line, "ok") != 0) {
                        report(line);
                        faults++;
                }
        }
        if (r == 0)
                r = q.error;
        if (r == 0)
                *ret = faults;
        return r;
}

/* A database of a version before the identity can be one of a version before the checksums. */
static enum db_mode reader_mode(const struct store *s) {
        enum pages_kind kind;
        if (s->identity.store[0] || pages_kind(s->path, &kind) < 0 || kind != PAGES_PLAIN)
                return DB_READER;
        log_notice("%s has no checksums yet, so that values in it are not compared: its first start gives it some",
                   s->path);
        return DB_PLAIN_READER;
}

static int open_compared(struct store *s, char **ret_wrong) {
        int known = read_identity(s, ret_wrong), r = db_open(&s->db, s->path, reader_mode(s));
        if (known < 0)
                return known;
        if (r == -ENOENT && s->identity.store[0])
                return compare_kind(s, PAGES_NONE, ret_wrong);
        return r < 0 ? r : compare_database(s, s->db, ret_wrong);
}

int integrity_verify(struct store *s, void (*report)(const char *fault), unsigned *ret_faults) {
        _cleanup_free_ char *words = NULL;
        struct pages_damage d;
        unsigned others = 0, faults = 0;
        int r = open_compared(s, &words);
        if (r == -EUCLEAN || (r == -EBADMSG && s->db)) {
                report(words ? words : "the database's identity cannot be read");
                others = 1;
                r = 0;
        }
        if (r == 0 && s->db)
                r = report_faults(s->db, report, &faults);
        pages_damage(s->path, &d);
        if (r == -EBADMSG && (d.n > 0 || others > 0))
                r = 0; /* it ends at some pages, which have been logged by number, or at a mixture of two databases */
        if (r < 0)
                return r;
        *ret_faults = others + (faults > d.n ? faults : d.n);
        return 0;
}

struct backup {
        const struct store *store;
        char *wrong;
};

static int accept_source(struct db *db, void *userdata) {
        struct backup *b = userdata;
        return compare_database(b->store, db, &b->wrong);
}

int integrity_backup(struct store *s, const char *to) {
        struct backup b = {.store = s};
        int r = read_identity(s, &b.wrong);
        if (r == 0)
                r = db_backup(s->path, reader_mode(s), to, accept_source, &b);
        if (r == -ENOENT && s->identity.store[0] && access(s->path, F_OK) < 0)
                r = compare_kind(s, PAGES_NONE, &b.wrong);
        if (b.wrong)
                log_error("%s is not made: %s", to, b.wrong);
        free(b.wrong);
        return r;
}
