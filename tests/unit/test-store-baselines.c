/* SPDX-License-Identifier: MIT */

/* Baselines in the store: what was compared with one has a hundred thousand rows, and leaves in portions. */

#include "check.h"
#include "store-fixture.h"

#include <inttypes.h>

enum { RATIOS = 2 * STORE_STEP_ROWS + 3 };

/* Three finished experiments of one spec, of which the first is pinned as "base". */
static int pinned(struct fixture *f) {
        int64_t id;
        int r = 0;
        fixture_open(f);
        for (int i = 0; r == 0 && i < 3; i++)
                r = fixture_add(f->store, 1, 1, NULL, &id);
        if (r == 0)
                r = db_run_script(f->store->db, "UPDATE experiments SET state = 'done', finished_at = 1");
        return r < 0 ? r : store_pin_baseline(f->store, "base", 1);
}

static int begin_next(struct fixture *f, struct pending_check *ret) {
        int r = store_pending_check(f->store, &(struct pending_check){0}, ret);
        while (r == 0 && (r = store_begin_check(f->store, ret)) > 0)
                r = 0;
        return r;
}

static int add_ratios(struct fixture *f, const struct pending_check *p, uint32_t first, uint32_t n) {
        static char points[RATIOS][16];
        static struct new_ratio ratios[RATIOS];
        for (uint32_t i = 0; i < n; i++) {
                (void) snprintf(points[i], sizeof(points[i]), "%" PRIu32, first + i);
                ratios[i] = (struct new_ratio){
                        .figure = "messages_per_second", .point_json = points[i], .verdict = "slower", .ratio = 0.5};
        }
        return store_add_ratios(f->store, p, ratios, n);
}

static const struct new_check slower = {.slower = 1, .differences_json = "[]"};

/* The next check that is due, with this many ratios. */
static int check_next(struct fixture *f, uint32_t n) {
        struct pending_check p = {0};
        int r = begin_next(f, &p);
        if (r == 0)
                r = add_ratios(f, &p, 0, n);
        if (r == 0)
                r = store_end_check(f->store, &p, &slower);
        free(p.name);
        return r;
}

/* The experiment that the next check is of; 0: none is due. */
static int64_t pending(struct fixture *f) {
        struct pending_check p = {0};
        int r = store_pending_check(f->store, &(struct pending_check){0}, &p);
        free(p.name);
        return r == -ENOENT ? 0 : r < 0 ? r : p.experiment_id;
}

static int64_t rows(struct fixture *f) {
        return number(f, "SELECT (SELECT count(*) FROM baseline_ratios) + (SELECT count(*) FROM baseline_checks)");
}

/* How many checks a reader is shown; -1: it is shown some ratios of another number of experiments. */
static int64_t history(struct fixture *f) {
        struct check_record *checks = NULL;
        struct series_record *series = NULL;
        size_t n = 0, n_series = 0;
        if (store_history(f->store, "base", 100, &checks, &n, &series, &n_series) < 0)
                return INT64_MIN;
        bool whole = true;
        for (size_t i = 0; i < n_series; i++)
                whole &= series[i].n == n;
        check_records_free(checks, n);
        series_records_free(series, n_series);
        return whole ? (int64_t) n : -1;
}

static bool is_flagged(struct fixture *f, int64_t id) {
        struct experiment_record e;
        if (store_experiment(f->store, id, 0, &e) < 0)
                return false;
        bool flagged = strstr(e.flags_json, "slower_than_baseline:base") != NULL;
        experiment_record_deinit(&e);
        return flagged;
}

/* The experiment that is pinned; 0: none. */
static int64_t pin_of(struct fixture *f) {
        struct baseline_record b;
        int r = store_baseline(f->store, "base", &b);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        int64_t id = b.experiment_id;
        baseline_record_deinit(&b);
        return id;
}

static size_t listed(struct fixture *f, int64_t experiment_id) {
        struct baseline_record *items = NULL;
        size_t n = 0;
        if (store_baselines(f->store, experiment_id, &items, &n) < 0)
                return SIZE_MAX;
        store_baselines_free(items, n);
        return n;
}

/* Housekeeping to its end, a crash after each step of it; the number of steps in which it removed such rows, -1 where
 * one removed more than a step may. */
static int64_t tidy(struct fixture *f) {
        int64_t before, left = rows(f), steps = 0;
        int r;
        do {
                before = left;
                r = store_tidy_forgotten(f->store);
                if (r < 0 || fixture_reopen(f) < 0)
                        return INT64_MIN;
                left = rows(f);
                if (before - left > (int64_t) STORE_STEP_ROWS)
                        return -1;
                steps += left < before;
        } while (r > 0);
        return steps;
}

static void test_a_removed_pin_is_gone_at_once(void) {
        FIXTURE f;
        int64_t first;
        CHECK_INT(pinned(&f), 0);
        CHECK_INT(check_next(&f, RATIOS), 0);
        CHECK_INT(check_next(&f, RATIOS), 0);
        CHECK_INT(history(&f), 2);
        CHECK(is_flagged(&f, 2) && is_flagged(&f, 3));
        CHECK_INT(store_delete_experiment(f.store, 1), -EEXIST);
        CHECK_INT(store_remove_baseline(f.store, "base"), 0);
        CHECK(2 * (RATIOS + 1) - rows(&f) <= (int64_t) STORE_STEP_ROWS);
        CHECK_INT(pin_of(&f), 0);
        CHECK_UINT(listed(&f, 0) + listed(&f, 1), 0);
        CHECK_INT(history(&f), 0);
        CHECK(!is_flagged(&f, 2) && !is_flagged(&f, 3));
        CHECK_INT(pending(&f), 0);
        CHECK_INT(store_remove_baseline(f.store, "base"), -ENOENT);
        CHECK_INT(store_delete_experiment(f.store, 1), 0);
        first = tidy(&f);
        CHECK(first >= 3);
        CHECK_INT(rows(&f), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM baselines"), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM experiments"), 2);
        CHECK_INT(number(&f, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

static void test_a_moved_pin_begins_anew(void) {
        FIXTURE f;
        CHECK_INT(pinned(&f), 0);
        CHECK_INT(check_next(&f, RATIOS), 0);
        CHECK_INT(store_pin_baseline(f.store, "base", 2), 0);
        CHECK(RATIOS + 1 - rows(&f) <= (int64_t) STORE_STEP_ROWS);
        CHECK_INT(pin_of(&f), 2);
        CHECK_UINT(listed(&f, 0), 1);
        CHECK_UINT(listed(&f, 1), 0);
        CHECK_UINT(listed(&f, 2), 1);
        CHECK_INT(history(&f), 0);
        CHECK(!is_flagged(&f, 2));
        CHECK_INT(store_delete_experiment(f.store, 2), -EEXIST);
        CHECK_INT(store_delete_experiment(f.store, 1), 0);
        CHECK(tidy(&f) >= 2);
        CHECK_INT(rows(&f), 0);
        CHECK_INT(pin_of(&f), 2);
        CHECK_INT(pending(&f), 3);
        CHECK_INT(check_next(&f, 1), 0);
        CHECK_INT(history(&f), 1);
        CHECK(is_flagged(&f, 3));
        CHECK_INT(number(&f, "SELECT count(*) FROM experiments"), 2);
}

/* A check of which a part was removed is made again. */
static void test_a_pin_that_returns(void) {
        FIXTURE f;
        struct pending_check p = {0};
        CHECK_INT(pinned(&f), 0);
        CHECK_INT(check_next(&f, RATIOS), 0);
        CHECK_INT(begin_next(&f, &p), 0);
        CHECK_INT(add_ratios(&f, &p, 0, 10), 0);
        CHECK_INT(store_remove_baseline(f.store, "base"), 0);
        CHECK_INT(store_pin_baseline(f.store, "base", 1), 0);
        int under_way = add_ratios(&f, &p, 10, 1), end = store_end_check(f.store, &p, &slower);
        free(p.name);
        CHECK_INT(under_way, -ENOENT); /* it is another pin */
        CHECK_INT(end, -ENOENT);
        CHECK_INT(pin_of(&f), 1);
        CHECK_INT(history(&f), 0);
        CHECK(tidy(&f) >= 0);
        CHECK_INT(pending(&f), 2);
        CHECK_INT(check_next(&f, RATIOS), 0);
        CHECK_INT(check_next(&f, RATIOS), 0);
        CHECK_INT(history(&f), 2);
        CHECK_INT(rows(&f), 2 * (RATIOS + 1));
        CHECK_INT(pending(&f), 0);
}

/* An experiment that went on is compared anew: the earlier outcome leaves in portions first. */
static void test_a_check_is_made_again(void) {
        FIXTURE f;
        struct pending_check p = {0};
        CHECK_INT(pinned(&f), 0);
        CHECK_INT(check_next(&f, RATIOS), 0);
        CHECK_INT(db_run_script(f.store->db, "UPDATE experiments SET finished_at = 2 WHERE id = 2"), 0);
        CHECK_INT(store_pending_check(f.store, &(struct pending_check){0}, &p), 0);
        int64_t left = rows(&f), portions = 0;
        int r;
        bool good = true;
        do {
                r = store_begin_check(f.store, &p);
                good &= left - rows(&f) <= (int64_t) STORE_STEP_ROWS && history(&f) == 0 && !is_flagged(&f, 2);
                left = rows(&f);
        } while (r == 1 && ++portions < 10);
        if (r == 0)
                r = add_ratios(&f, &p, 0, 5);
        if (r == 0)
                r = store_end_check(f.store, &p, &slower);
        free(p.name);
        CHECK_INT(r, 0);
        CHECK(good);
        CHECK_INT(portions, 2);
        CHECK_INT(rows(&f), 6);
        CHECK_INT(history(&f), 1);
}

static void test_the_checks_of_a_deleted_experiment(void) {
        FIXTURE f;
        struct pending_check p = {0};
        CHECK_INT(pinned(&f), 0);
        CHECK_INT(check_next(&f, RATIOS), 0);
        CHECK_INT(begin_next(&f, &p), 0);
        CHECK_INT(store_delete_experiment(f.store, 2), 0);
        CHECK_INT(store_delete_experiment(f.store, 3), 0);
        int r = add_ratios(&f, &p, 0, 1);
        free(p.name);
        CHECK_INT(r, -ENOENT);
        CHECK_INT(history(&f), 0);
        CHECK(tidy(&f) >= 3);
        CHECK_INT(rows(&f), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM experiments"), 1);
        CHECK_INT(pin_of(&f), 1);
}

/* One that cannot be made now does not hold those behind it. */
static void test_checks_behind_another(void) {
        static const int64_t expected[] = {2, 2, 3, 3};
        FIXTURE f;
        struct pending_check after = {0}, p = {0};
        int r;
        unsigned n = 0;
        bool good = true;
        CHECK_INT(pinned(&f), 0);
        CHECK_INT(store_pin_baseline(f.store, "other", 1), 0);
        while ((r = store_pending_check(f.store, &after, &p)) == 0 && n < ELEMENTS(expected)) {
                good &= p.experiment_id == expected[n] && strcmp(p.name, n % 2 ? "other" : "base") == 0;
                n++;
                free(after.name);
                after = p;
        }
        free(after.name);
        CHECK_INT(r, -ENOENT);
        CHECK(good);
        CHECK_UINT(n, ELEMENTS(expected));
}

/* Earlier versions noted no changes of pins. */
static void test_a_pin_without_its_change(void) {
        FIXTURE f;
        CHECK_INT(pinned(&f), 0);
        CHECK_INT(db_run_script(f.store->db, "DELETE FROM pin_changes"), 0);
        CHECK_INT(check_next(&f, RATIOS), 0);
        CHECK_INT(pin_of(&f), 1);
        CHECK_INT(history(&f), 1);
        CHECK_INT(tidy(&f), 0);
        CHECK_INT(store_pin_baseline(f.store, "base", 1), 0);
        CHECK_INT(history(&f), 1);
        CHECK_INT(store_pin_baseline(f.store, "base", 2), 0);
        CHECK_INT(history(&f), 0);
        CHECK(tidy(&f) >= 2);
        CHECK_INT(rows(&f), 0);
}

int main(void) {
        RUN(test_a_removed_pin_is_gone_at_once);
        RUN(test_a_moved_pin_begins_anew);
        RUN(test_a_pin_that_returns);
        RUN(test_a_check_is_made_again);
        RUN(test_the_checks_of_a_deleted_experiment);
        RUN(test_checks_behind_another);
        RUN(test_a_pin_without_its_change);
        return check_end();
}
