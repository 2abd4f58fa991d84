/* SPDX-License-Identifier: MIT */

/*
 * The power fails at each single operation of the steps, and the disk is full at each write: everything
 * that the store has acknowledged is in the database afterwards, and nothing else except, perhaps, the step in
 * progress.
 *
 * A run without a fault records the content of the database after each step. After a cut in step k it must be that
 * after k - 1 or k.
 */

#include "daemon/log.h"
#include "daemon/store/database/reserve.h"
#include "daemon/store/internal.h"
#include "tests/unit/campaign.h"
#include "tests/unit/check.h"
#include "tests/unit/fault-vfs.h"
#include "tests/unit/lanes.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>

#define STEPS 25
#define RANDOM_CUTS 60u
#define MAKING_STRIDE 5u /* the migrations are transactions of one kind: of their operations each fifth is cut */

/* A directory for the store, with a sparse file in place of its reserve: 16 MiB written at each of thousands of
 * openings would take most of the time. */
static void make_dir(struct fixture *f) {
        char path[300];
        fixture_dir(f);
        (void) snprintf(path, sizeof(path), "%s/" RESERVE_FILE, f->dir);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && ftruncate(fd, RESERVE_BYTES) == 0);
}

static int add_samples(struct store *s, int64_t experiment, int64_t run, uint32_t n) {
        static char agent[] = "receiver";
        struct sample_record batch[64];
        for (uint32_t i = 0; i < n; i++)
                batch[i] = (struct sample_record){
                        .experiment_id = experiment, .run_id = run, .agent = agent, .second = i, .interval_ns = 1};
        return store_add_samples(s, batch, n);
}

static struct importing importing; /* of the steps' store */

static int step(struct store *s, unsigned n) {
        int64_t id, running;
        int r;
        switch (n) {
        case 0:
                return fixture_add(s, 4, 2, "first", &id);
        case 1:
                return fixture_add(s, 2, 1, NULL, &id);
        case 2:
                return store_start_run(s, 1);
        case 3:
                return add_samples(s, 1, 1, 64);
        case 4:
                return fixture_finish(s, 1, STATE_DONE, NULL);
        case 5:
                return fixture_add(s, 1, 1, "third", &id);
        case 6:
                return store_delete_experiment(s, 3); /* the newest */
        case 7:                                       /* removes the deleted one's samples */
        case 8:                                       /* checkpoints: the log starts anew */
                r = store_tidy(s);
                return r < 0 ? r : 0;
        case 9:
                return fixture_add(s, 16, 4, NULL, &id);
        case 10:
                return store_start_run(s, 2);
        case 11:
                return add_samples(s, 1, 2, 64);
        case 12:
                return store_cancel_experiment(s, 1, &running);
        case 13:
                return fixture_finish(s, 2, STATE_CANCELLED, NULL);
        case 14:
                return store_start_run(s, 9);
        case 15:
                return fixture_finish(s, 9, STATE_FAILED, "pipe: broken");
        case 16:
                return fixture_add(s, 3, 3, "last", &id);
        case 17:
                return fixture_begin_import(s, &importing);
        case 18:
        case 19:
                return fixture_import_runs(&importing, n - 18);
        case 20:
        case 21:
                return fixture_import_part(&importing, n - 20);
        case 22:
                r = fixture_end_import(&importing, "whole");
                if (r == 0) /* else it can be ended again */
                        store_import_deinit(&importing);
                return r;
        case 23:
                r = fixture_begin_import(s, &importing);
                store_import_deinit(&importing); /* it is abandoned */
                return r;
        case 24:
                r = store_tidy(s);
                return r < 0 ? r : 0;
        }
        return -EINVAL;
}

/* The content that does not depend on the clock, as one text. */
static char *digest(struct store *s) {
        _cleanup_query_ struct db_query q = {0};
        if (db_select_all(
                    s->db, &q,
                    "SELECT (SELECT group_concat(name || value) FROM counters) || '#' ||"
                    "(SELECT COALESCE(group_concat(seq), '') FROM sqlite_sequence) || '#' ||"
                    "(SELECT COALESCE(group_concat(id || state || change || ' ' || runs_total || ' ' || runs_done "
                    "|| ' ' || runs_failed || ' ' || runs_cancelled || COALESCE(error, '') || "
                    "COALESCE(idempotency_key, '') || spec), '') FROM " EXPERIMENT_TABLES ") || '#' ||"
                    "(SELECT COALESCE(group_concat(id || ' ' || experiment_id || point), '') FROM points) || '#' ||"
                    "(SELECT COALESCE(group_concat(id || state || change || ' ' || point_id || ' ' || attempt || "
                    "COALESCE(result, '')), '') FROM runs) || '#' ||"
                    "(SELECT COALESCE(group_concat(change || ' ' || run_id), '') FROM samples) || '#' ||"
                    "(SELECT COALESCE(group_concat(change || ' ' || experiment_id), '') FROM deletions) || '#' ||"
                    "(SELECT COALESCE(group_concat(experiment_id || sha256), '') FROM bundles) || '#' ||"
                    "(SELECT COALESCE(group_concat(experiment_id || ' ' || part || hex(data)), '') FROM bundle_parts) "
                    "|| '#' ||"
                    "(SELECT COALESCE(group_concat(experiment_id), '') FROM forgotten)") < 0 ||
            db_step(&q) <= 0)
                return NULL;
        return db_column_text(&q, 0);
}

/* The expected content after each acknowledged step; [0]: a fresh database. */
static char *expected[STEPS + 1];

static void free_expected(void) {
        for (unsigned i = 0; i <= STEPS; i++) {
                free(expected[i]);
                expected[i] = NULL;
        }
}

/* The number of operations of all steps; of those that make the database before them. */
static struct { unsigned operations, writes, syncs, making; } taken;

/* An empty database, as it lies on the disk: what the steps begin with, as making it anew for each cut takes longer
 * than all of them. */
static struct {
        uint8_t *data;
        size_t size;
} made;

static bool make(void) {
        FIXTURE f;
        make_dir(&f);
        fault_reset(FAULT_NONE, 0);
        if (store_open(&f.store, f.dir) < 0)
                return false;
        taken.making = fault.operations;
        store_close(util_steal(&f.store));
        for (unsigned i = 0; i < fault.n_files; i++) /* all that the log held is in the database */
                if (fault.files[i].exists && !strstr(fault.files[i].path, "-wal")) {
                        made.size = fault.files[i].size;
                        made.data = fault_check(realloc(made.data, made.size));
                        memcpy(made.data, fault.files[i].durable, made.size);
                }
        return made.size > 0;
}

static int open_made(struct fixture *f, enum fault_kind kind, unsigned at) {
        char path[300];
        make_dir(f);
        (void) snprintf(path, sizeof(path), "%s/ipclab.db", f->dir);
        FILE *file = fopen(path, "we");
        if (!file)
                return -errno;
        size_t n = fwrite(made.data, 1, made.size, file);
        if (fclose(file) != 0 || n != made.size)
                return -EIO;
        fault_reset(kind, at);
        return store_open(&f->store, f->dir);
}

static bool learn(void) {
        FIXTURE f;
        free_expected();
        if (!make() || open_made(&f, FAULT_NONE, 0) < 0)
                return false;
        expected[0] = digest(f.store);
        for (unsigned i = 0; i < STEPS; i++) {
                int r = step(f.store, i);
                if (r < 0) {
                        fprintf(stderr, "step %u: %s\n", i, strerror(-r));
                        return false;
                }
                expected[i + 1] = digest(f.store);
                if (!expected[i + 1])
                        return false;
        }
        taken.writes = fault.writes;
        taken.syncs = fault.syncs;
        store_close(util_steal(&f.store)); /* checkpoints: a cut may fall there, too */
        taken.operations = fault.operations;
        return true;
}

/* Runs the steps on a disk that fails at operation `at`. Returns the number of acknowledged steps, -1 when opening
 * fails. */
static int work(struct fixture *f, enum fault_kind kind, unsigned at, const char *pragma) {
        if (open_made(f, kind, at) < 0)
                return -1;
        if (pragma && db_run_script(f->store->db, pragma) < 0)
                return -1;
        importing = (struct importing){0};
        for (int i = 0; i < STEPS; i++)
                if (step(f->store, (unsigned) i) < 0)
                        return i;
        return STEPS;
}

/* Whether the image opens, is sound and has the acknowledged content. */
static bool image_holds(int acknowledged, unsigned percent, unsigned seed) {
        FIXTURE image;
        make_dir(&image);
        fault_write_image(image.dir, percent, seed);
        enum fault_kind kind = fault.kind;
        bool dead = fault.dead;
        fault.kind = FAULT_NONE; /* the machine is up again, the disk's history stays */
        fault.dead = false;
        unsigned n_files = fault.n_files;
        bool good = store_open(&image.store, image.dir) == 0;
        int64_t sound;
        good = good &&
               db_get_one(image.store->db, &sound,
                          "SELECT count(*) = 1 AND max(integrity_check) = 'ok' FROM pragma_integrity_check") == 0;
        good = good && sound;
        /* what a read returns has all of its runs, also of another host */
        good = good &&
               db_get_one(image.store->db, &sound,
                          "SELECT NOT EXISTS (SELECT 1 FROM experiments AS e WHERE " SHOWN(
                                  "id") " AND "
                                        "runs_total <> (SELECT count(*) FROM runs WHERE experiment_id = e.id))") == 0;
        good = good && sound;
        char *found = good ? digest(image.store) : NULL;
        good = found && (strcmp(found, expected[acknowledged < 0 ? 0 : acknowledged]) == 0 ||
                         (acknowledged >= 0 && acknowledged < STEPS && strcmp(found, expected[acknowledged + 1]) == 0));
        free(found);
        store_close(util_steal(&image.store));
        for (unsigned i = n_files; i < fault.n_files; i++) {
                fault_forget_pending(&fault.files[i]);
                free(fault.files[i].durable);
        }
        fault.n_files = n_files;
        fault.kind = kind;
        fault.dead = dead;
        return good;
}

/* How much of the unsynced sectors has reached the disk. One of two neighbouring cuts, which have most sectors in
 * common, is tried with the first two and the other with the last. */
static const unsigned percents[][2] = {{0, 50}, {100, 90}};

/* Whether the images of the disk after a cut hold, of which the first that does not is printed. */
static bool images_hold(int acknowledged, unsigned at, const unsigned of_the_rest[2], unsigned seed, bool quiet) {
        bool good = true;
        for (unsigned k = 0; good && k < ELEMENTS(percents[0]); k++) {
                good = image_holds(acknowledged, of_the_rest[k], seed + k);
                if (!good && !quiet)
                        fprintf(stderr, "cut at operation %u, after %d steps, %u %% of the rest written, seed %u\n", at,
                                acknowledged, of_the_rest[k], seed + k);
        }
        return good;
}

static bool cut_with(unsigned at, const unsigned of_the_rest[2], unsigned seed, const char *pragma, bool quiet) {
        FIXTURE f;
        int acknowledged = work(&f, FAULT_POWER, at, pragma);
        if (!fault.happened) /* it falls in the last checkpoint */
                store_close(util_steal(&f.store));
        bool good = images_hold(acknowledged, at, of_the_rest, seed, quiet);
        store_close(util_steal(&f.store)); /* a dead disk: it can change nothing any more */
        return good;
}

static bool cut_at(unsigned at, const char *pragma, bool quiet) {
        return cut_with(at, percents[at % ELEMENTS(percents)], at * 7, pragma, quiet);
}

static void cut_anywhere(void) {
        for (unsigned at = 1; at <= taken.operations; at++)
                if (lanes_my_turn())
                        CHECK(cut_at(at, NULL, false));
}

/* Any of the unsynced sectors, whatever their order and however few of a write. */
static void cut_at_random(void) {
        unsigned n = campaign_count("IPCLAB_POWERCUTS", RANDOM_CUTS);
        for (unsigned i = 0; i < n; i++) {
                unsigned seed = i;
                const unsigned at = 1 + (unsigned) rand_r(&seed) % taken.operations;
                const unsigned of_the_rest[] = {(unsigned) rand_r(&seed) % 101, (unsigned) rand_r(&seed) % 101};
                if (lanes_my_turn())
                        CHECK(cut_with(at, of_the_rest, seed, NULL, false));
        }
}

static void cut_while_made(void) {
        for (unsigned at = 1; at <= taken.making; at += MAKING_STRIDE) {
                if (!lanes_my_turn())
                        continue;
                FIXTURE f;
                make_dir(&f);
                fault_reset(FAULT_POWER, at);
                CHECK(store_open(&f.store, f.dir) < 0 || at == taken.making);
                CHECK(images_hold(-1, at, percents[at % ELEMENTS(percents)], at * 7, false));
                store_close(util_steal(&f.store));
        }
}

static void test_power_cut_anywhere(void) {
        CHECK(learn());
        CHECK(taken.operations > 100);
        CHECK_LANES(LANES_THAT_COMPUTE, NULL, cut_anywhere);
        CHECK_LANES(LANES_THAT_COMPUTE, NULL, cut_while_made);
        CHECK_LANES(LANES_THAT_COMPUTE, NULL, cut_at_random);
        printf("counted: %u power cuts at random among %u operations, one at each of them and %u while the database "
               "is made: two torn images of each\n",
               campaign_count("IPCLAB_POWERCUTS", RANDOM_CUTS), taken.operations,
               (taken.making + MAKING_STRIDE - 1) / MAKING_STRIDE);
}

/* The same test must fail with synchronous=NORMAL, or it would prove nothing. */
static void test_the_cut_is_real(void) {
        bool good = true;
        CHECK(learn());
        for (unsigned at = 1; good && at <= taken.operations; at += 7)
                good = cut_at(at, "PRAGMA synchronous = NORMAL", true);
        CHECK(!good);
}

/* The disk is full at the n-th write, and has space after it: the error is -ENOSPC, nothing is lost, the rest succeeds.
 */
static void full_anywhere(void) {
        for (unsigned at = 1; at <= taken.writes; at++) {
                if (!lanes_my_turn())
                        continue;
                FIXTURE f;
                int acknowledged = work(&f, FAULT_FULL, at, NULL);
                CHECK(fault.happened);
                if (acknowledged < 0)
                        continue; /* full while it was opened: the daemon does not start */
                int64_t sound;
                CHECK_INT(db_get_one(f.store->db, &sound, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
                          0);
                CHECK_INT(sound, 1);
                _cleanup_free_ char *found = digest(f.store);
                CHECK_STRING(found, expected[acknowledged]); /* the step was undone as a whole */
                for (int i = acknowledged; i < STEPS; i++)
                        CHECK_INT(step(f.store, (unsigned) i), 0);
                _cleanup_free_ char *end = digest(f.store);
                CHECK_STRING(end, expected[STEPS]);
        }
}

static void test_full_anywhere(void) {
        CHECK(learn());
        CHECK(taken.writes > 50);
        CHECK_LANES(LANES_THAT_COMPUTE, NULL, full_anywhere);
}

static void test_full_is_called_full(void) {
        FIXTURE f;
        int64_t id;
        make_dir(&f);
        fault_reset(FAULT_NONE, 0);
        CHECK_INT(store_open(&f.store, f.dir), 0);
        fault.kind = FAULT_FULL;
        fault.countdown = 3;
        CHECK_INT(fixture_add(f.store, 4, 4, NULL, &id), -ENOSPC);
        CHECK(fault.happened);
        CHECK_INT(fixture_add(f.store, 4, 4, NULL, &id), 0);
        CHECK_INT(id, 1);
}

/* A step whose sync fails is not acknowledged. */
static void failed_sync(void) {
        for (unsigned at = 1; at <= taken.syncs; at++) {
                if (!lanes_my_turn())
                        continue;
                FIXTURE f;
                int acknowledged = work(&f, FAULT_SYNC, at, NULL);
                CHECK(fault.happened);
                if (acknowledged < 0)
                        continue;
                for (unsigned k = 0; k < ELEMENTS(percents[0]); k++)
                        CHECK(image_holds(acknowledged, percents[at % ELEMENTS(percents)][k], at + k));
                store_close(util_steal(&f.store));
        }
}

static void test_failed_sync(void) {
        CHECK(learn());
        CHECK(taken.syncs > 10);
        CHECK_LANES(LANES_THAT_COMPUTE, NULL, failed_sync);
}

int main(void) {
        log_open(LOG_EMERG); /* each fault is an error in the log */
        fault_install();
        if (access("/dev/shm", W_OK) == 0)
                fixture_base = "/dev/shm"; /* what a disk would do is the VFS's part */
        RUN(test_power_cut_anywhere);
        RUN(test_the_cut_is_real);
        RUN(test_full_anywhere);
        RUN(test_full_is_called_full);
        RUN(test_failed_sync);
        free_expected();
        free(made.data);
        fault_reset(FAULT_NONE, 0);
        return check_end();
}
