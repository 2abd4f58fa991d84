/* SPDX-License-Identifier: MIT */

/*
 * Verifies that the database is the one that the directory had, all of it, and as it was written: the identity beside
 * it, the check of every page after an unclean end, and the operator's commands (ipclabd --adopt, --backup, --check).
 */

#include "daemon/store/integrity.h"
#include "daemon/log.h"
#include "daemon/store/pages.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

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
        else { /* the UUID stays as it is: other threads read it (store_identity()) */
                s->identity.change = now.change;
                s->identity.experiment = now.experiment;
                s->identity.run = now.run;
                s->identity.open = now.open;
        }
}

int integrity_before_open(struct store *s) {
        enum pages_kind kind;
        struct identity noted = {0};
        int known = identity_read(s->dir, &noted);
        if (known < 0 && known != -ENOENT) {
                log_error("%s/" IDENTITY_FILE ": %s; " WAY_OUT, s->dir, strerrordesc_np(-known), s->dir);
                return -EUCLEAN;
        }
        int r = pages_kind(s->path, &kind);
        if (r < 0) {
                log_error("%s: %s", s->path, r == -EBADMSG ? "it is no database" : strerrordesc_np(-r));
                return r;
        }
        if (known == 0 && kind != PAGES_CHECKED) {
                log_error("%s %s, and this directory had the store %s with experiments up to %" PRId64 "; " WAY_OUT,
                          s->path, kind == PAGES_NONE ? "is missing or empty" : "was written by another program",
                          noted.store, noted.experiment, s->dir);
                return -EUCLEAN;
        }
        s->identity = noted;
        return kind == PAGES_PLAIN ? db_convert(s->path) : 0;
}

static int compare_identity(const struct store *s, const struct identity *found) {
        const struct identity *noted = &s->identity;
        if (!noted->store[0])
                return 0;
        if (strcmp(noted->store, found->store) != 0) {
                log_error("%s is the store %s, and this directory had the store %s; " WAY_OUT, s->path, found->store,
                          noted->store, s->dir);
                return -EUCLEAN;
        }
        if (noted->change > found->change || noted->experiment > found->experiment || noted->run > found->run) {
                log_error("%s ends with change %" PRId64 ", experiment %" PRId64 " and run %" PRId64
                          ", and change %" PRId64 ", experiment %" PRId64 " and run %" PRId64
                          " had been acknowledged: it is an older copy, or its log (%s-wal) was lost or "
                          "damaged; " WAY_OUT,
                          s->path, found->change, found->experiment, found->run, noted->change, noted->experiment,
                          noted->run, s->path, s->dir);
                return -EUCLEAN;
        }
        return 0;
}

static int keep_identity(struct store *s, const struct identity *identity) {
        static const char *const others[] = {LOCK_FILE, IDENTITY_FILE};
        struct identity now = *identity;
        now.open = true;
        int r = identity_create(s->dir, &now, &s->identity_fd);
        if (r == -ENOSPC && strcmp(s->identity.store, now.store) == 0) /* it is there, and needs no room */
                r = identity_rewrite(s->dir, &now, &s->identity_fd);
        if (r < 0) {
                log_error("%s/" IDENTITY_FILE ": %s", s->dir, strerrordesc_np(-r));
                return r;
        }
        s->identity = now;
        db_on_commit(s->db, note_commit, s);
        return db_watch_files(s->db, s->dir, others, ELEMENTS(others));
}

int integrity_after_open(struct store *s) {
        struct identity found;
        bool unclean = s->identity.open;
        int r = read_noted(s->db, &found);
        if (r == 0)
                r = compare_identity(s, &found);
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

void store_integrity(const struct store *s, struct store_integrity *ret) {
        struct pages_damage d;
        pages_damage(s->path, &d);
        *ret = (struct store_integrity){.damaged = d.n,
                                        .damaged_page = d.page,
                                        .pages_checked = s->scrub_next ? s->scrub_next - 1 : s->scrub_total,
                                        .pages_to_check = s->scrub_total,
                                        .files_gone = db_check_files(s->db) == -ESTALE,
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

int integrity_verify(struct store *s, void (*report)(const char *fault), unsigned *ret_faults) {
        struct pages_damage d;
        unsigned faults = 0;
        int r = report_faults(s->db, report, &faults);
        pages_damage(s->path, &d);
        if (r == -EBADMSG && d.n > 0)
                r = 0; /* it ends at some pages, which have been logged by number */
        if (r < 0)
                return r;
        *ret_faults = faults > d.n ? faults : d.n;
        return 0;
}
