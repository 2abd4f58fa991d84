/* SPDX-License-Identifier: MIT */
/* Settings of a made-up host are changed, journalled and put back, whoever dies in between. */

#include "tests/unit/check.h"

#include "daemon/setting.h"
#include "daemon/tuning.h"
#include "tests/unit/host-tree.h"
#include "tests/unit/store-fixture.h"

#define BALANCING "/proc/sys/kernel/numa_balancing"

struct host {
        char tree[64];
        struct fixture f;
        char detail[TUNING_DETAIL_MAX];
};

static bool host_open(struct host *h, const char *value) {
        *h = (struct host){.tree = "/tmp/ipclab-tuning.XXXXXX"};
        fixture_open(&h->f);
        return mkdtemp(h->tree) && (!value || host_tree_write(h->tree, BALANCING, value) == 0);
}

static void host_close(struct host *h) {
        host_tree_remove(h->tree);
        fixture_end(&h->f);
}
#define HOST __attribute__((cleanup(host_close))) struct host

static int apply(struct host *h, enum toggle t, int64_t run) {
        return tuning_apply(h->f.store, h->tree, true, &(struct spec_tune){.numa_balancing = t}, run, h->detail);
}

static const char *value_of(const struct host *h) {
        static char value[SETTING_VALUE_MAX];
        return setting_read(h->tree, "numa_balancing", value) == 0 ? value : "none";
}

static int64_t journalled(struct host *h) {
        return number(&h->f, "SELECT count(*) FROM tunings");
}

static void changed_and_put_back(void) {
        HOST h;
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 7), 0);
        CHECK_STRING(value_of(&h), "1");
        CHECK_INT(number(&h.f, "SELECT run_id FROM tunings WHERE original = '0' AND wanted = '1'"), 7);
        CHECK_INT(tuning_restore(h.f.store, h.tree), 0);
        CHECK_STRING(value_of(&h), "0");
        CHECK_INT(journalled(&h), 0);
        CHECK_INT(tuning_restore(h.f.store, h.tree), 0); /* nothing is owed */
        CHECK_STRING(value_of(&h), "0");
}

static void what_is_so_already_is_left_alone(void) {
        static const struct {
                const char *now;
                enum toggle asked;
        } cases[] = {{"1\n", TOGGLE_ON}, {"2\n", TOGGLE_ON}, {"0\n", TOGGLE_OFF}, {"1\n", TOGGLE_UNSET}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HOST h;
                CHECK(host_open(&h, cases[i].now));
                CHECK_INT(apply(&h, cases[i].asked, 1), 0);
                CHECK_INT(journalled(&h), 0);
                CHECK(value_of(&h)[0] == cases[i].now[0]);
        }
}

static void the_value_of_before_comes_back_as_it_was(void) {
        HOST h;
        CHECK(host_open(&h, "2\n"));
        CHECK_INT(apply(&h, TOGGLE_OFF, 1), 0);
        CHECK_STRING(value_of(&h), "0");
        CHECK_INT(tuning_restore(h.f.store, h.tree), 0);
        CHECK_STRING(value_of(&h), "2");
}

/* As after a kill: another connection, no memory of the change but the journal. */
static void a_later_daemon_pays_the_debt(void) {
        HOST h;
        CHECK(host_open(&h, "1\n"));
        CHECK_INT(apply(&h, TOGGLE_OFF, 1), 0);
        store_close(util_steal(&h.f.store));
        CHECK_INT(store_open(&h.f.store, h.f.dir), 0);
        CHECK_INT(tuning_restore(h.f.store, h.tree), 0);
        CHECK_STRING(value_of(&h), "1");
        CHECK_INT(journalled(&h), 0);
}

/* The row is there and the change is not: killed between the two. */
static void a_row_without_a_change(void) {
        HOST h;
        char name[] = "numa_balancing", original[] = "1", wanted[] = "0";
        struct tuning_record record = {.name = name, .original = original, .wanted = wanted};
        CHECK(host_open(&h, "1\n"));
        CHECK_INT(store_add_tuning(h.f.store, &record), 0);
        CHECK_INT(store_add_tuning(h.f.store, &record), -EEXIST);
        CHECK_INT(tuning_restore(h.f.store, h.tree), 0);
        CHECK_STRING(value_of(&h), "1");
        CHECK_INT(journalled(&h), 0);
}

static void what_somebody_else_set_stays(void) {
        HOST h;
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 1), 0);
        CHECK_INT(host_tree_write(h.tree, BALANCING, "2\n"), 0);
        CHECK_INT(tuning_restore(h.f.store, h.tree), 0);
        CHECK_STRING(value_of(&h), "2");
        CHECK_INT(journalled(&h), 0);
}

static void what_cannot_be_put_back_stays_in_the_journal(void) {
        HOST h;
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 1), 0);
        CHECK_INT(host_tree_write(h.tree, BALANCING, NULL), 0);
        CHECK_INT(tuning_restore(h.f.store, h.tree), -ENOENT);
        CHECK_INT(journalled(&h), 1);
        CHECK_INT(host_tree_write(h.tree, BALANCING, "1\n"), 0);
        CHECK_INT(tuning_restore(h.f.store, h.tree), 0);
        CHECK_STRING(value_of(&h), "0");
}

static void refusals(void) {
        HOST h;
        const struct spec_tune on = {.numa_balancing = TOGGLE_ON}, unset = {.numa_balancing = TOGGLE_UNSET};
        struct refusal r = {0};
        CHECK(host_open(&h, NULL));
        CHECK_INT(tuning_check(h.tree, false, &unset, &r), 0);
        CHECK_INT(tuning_check(h.tree, false, &on, &r), -EINVAL);
        CHECK_INT(r.status, 422);
        CHECK_STRING(r.pointer, "/tune/numa_balancing");
        CHECK_STRING(r.limit, "host_tuning");
        CHECK_INT(tuning_check(h.tree, true, &on, &r), -EINVAL);
        CHECK_STRING(r.limit, "kernel.numa_balancing");
        CHECK_INT(apply(&h, TOGGLE_ON, 1), -EPERM);
        CHECK_INT(journalled(&h), 0);
        CHECK_INT(host_tree_write(h.tree, BALANCING, "0\n"), 0);
        CHECK_INT(tuning_check(h.tree, true, &on, &r), 0);
        CHECK_INT(tuning_apply(h.f.store, h.tree, false, &on, 1, h.detail), -EPERM);
        CHECK_STRING(value_of(&h), "0");
}

static void only_what_the_table_has_is_written(void) {
        static const struct {
                const char *name, *value;
        } cases[] = {{"numa_balancing", "7"},
                     {"numa_balancing", ""},
                     {"numa_balancing", "10"},
                     {"numa_balancing", "1\n"},
                     {"core_pattern", "1"},
                     {"../kernel/numa", "1"},
                     {"", "1"}};
        HOST h;
        CHECK(host_open(&h, "0\n"));
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK_INT(setting_write(h.tree, cases[i].name, cases[i].value), -EINVAL);
        CHECK_STRING(value_of(&h), "0");
}

int main(void) {
        RUN(changed_and_put_back);
        RUN(what_is_so_already_is_left_alone);
        RUN(the_value_of_before_comes_back_as_it_was);
        RUN(a_later_daemon_pays_the_debt);
        RUN(a_row_without_a_change);
        RUN(what_somebody_else_set_stays);
        RUN(what_cannot_be_put_back_stays_in_the_journal);
        RUN(refusals);
        RUN(only_what_the_table_has_is_written);
        return check_end();
}
