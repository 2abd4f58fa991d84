/* SPDX-License-Identifier: MIT */
/* Settings of a made-up host are changed, journalled and restored, whichever process dies in between; and the undo
 * journal of ipclab-tune and its protocol. */

#include "tests/unit/check.h"

#include "daemon/tune/setting.h"
#include "daemon/tune/tuning.h"
#include "daemon/tune/undo.h"
#include "tests/unit/host-tree.h"
#include "tests/unit/store-fixture.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BALANCING "/proc/sys/kernel/numa_balancing"
#define BOOT "/proc/sys/kernel/random/boot_id"
#define THIS_BOOT "5f2e86b0-7a1c-4a4e-9d55-0c1b7e3f6a21"

struct host {
        char tree[64];
        struct fixture f;
        char detail[TUNING_DETAIL_MAX];
};

static bool host_open(struct host *h, const char *value) {
        *h = (struct host){.tree = "/tmp/ipclab-tuning.XXXXXX"};
        fixture_open(&h->f);
        return mkdtemp(h->tree) && host_tree_write(h->tree, BOOT, THIS_BOOT "\n") == 0 &&
               (!value || host_tree_write(h->tree, BALANCING, value) == 0);
}

static void host_close(struct host *h) {
        host_tree_remove(h->tree);
        fixture_end(&h->f);
}
#define HOST __attribute__((cleanup(host_close))) struct host

static int apply(struct host *h, enum toggle t, int64_t run) {
        return tuning_apply(h->f.store, h->tree, true, &(struct spec_tune){.numa_balancing = t}, run, h->detail);
}

static int restore(struct host *h) {
        h->detail[0] = '\0';
        return tuning_restore(h->f.store, h->tree, h->detail);
}

static const char *value_of(const struct host *h) {
        static char value[SETTING_VALUE_MAX];
        return setting_read(h->tree, "numa_balancing", value) == 0 ? value : "none";
}

static int64_t journalled(struct host *h) {
        return number(&h->f, "SELECT count(*) FROM tunings");
}

static void changed_and_restored(void) {
        HOST h;
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 7), 0);
        CHECK_STRING(value_of(&h), "1");
        CHECK_INT(number(&h.f, "SELECT run_id FROM tunings WHERE original = '0' AND wanted = '1'"), 7);
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(value_of(&h), "0");
        CHECK_INT(journalled(&h), 0);
        CHECK_INT(restore(&h), 0); /* there is nothing to restore */
        CHECK_STRING(value_of(&h), "0");
}

static void a_value_in_force_is_not_changed(void) {
        static const struct {
                const char *now;
                enum toggle wanted;
        } cases[] = {{"1\n", TOGGLE_ON}, {"2\n", TOGGLE_ON}, {"0\n", TOGGLE_OFF}, {"1\n", TOGGLE_UNSET}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HOST h;
                CHECK(host_open(&h, cases[i].now));
                CHECK_INT(apply(&h, cases[i].wanted, 1), 0);
                CHECK_INT(journalled(&h), 0);
                CHECK(value_of(&h)[0] == cases[i].now[0]);
        }
}

static void the_value_of_before_comes_back_as_it_was(void) {
        HOST h;
        CHECK(host_open(&h, "2\n"));
        CHECK_INT(apply(&h, TOGGLE_OFF, 1), 0);
        CHECK_STRING(value_of(&h), "0");
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(value_of(&h), "2");
}

/* As after a kill: another connection, no memory of the change but the journal. */
static void the_next_daemon_restores(void) {
        HOST h;
        CHECK(host_open(&h, "1\n"));
        CHECK_INT(apply(&h, TOGGLE_OFF, 1), 0);
        store_close(util_steal(&h.f.store));
        CHECK_INT(store_open(&h.f.store, h.f.dir), 0);
        CHECK_INT(restore(&h), 0);
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
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(value_of(&h), "1");
        CHECK_INT(journalled(&h), 0);
}

/* The same, or ipclab-tune restored it and replied too late: the log, which has the failure, must have the success
 * too. */
static void a_late_restore_is_logged(void) {
        HOST h;
        char logged[1024] = "";
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 7), 0);
        CHECK_INT(host_tree_write(h.tree, BALANCING, "0\n"), 0);
        int log = memfd_create("log", MFD_CLOEXEC), stderr_fd = dup(STDERR_FILENO);
        CHECK(log >= 0 && stderr_fd >= 0 && dup2(log, STDERR_FILENO) >= 0);
        int r = restore(&h);
        CHECK(dup2(stderr_fd, STDERR_FILENO) >= 0);
        CHECK_INT(r, 0);
        CHECK(pread(log, logged, sizeof(logged) - 1, 0) >= 0);
        CHECK(strstr(logged, "kernel.numa_balancing is 0, as before run 7") != NULL);
        util_close(log);
        util_close(stderr_fd);
}

static void what_somebody_else_set_stays(void) {
        HOST h;
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 1), 0);
        CHECK_INT(host_tree_write(h.tree, BALANCING, "2\n"), 0);
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(value_of(&h), "2");
        CHECK_INT(journalled(&h), 0);
}

static void a_failed_restore_stays_in_the_journal(void) {
        HOST h;
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 1), 0);
        CHECK_INT(host_tree_write(h.tree, BALANCING, NULL), 0);
        CHECK_INT(restore(&h), -ENOENT);
        CHECK(strstr(h.detail, "kernel.numa_balancing cannot be restored to 0") != NULL);
        CHECK_INT(journalled(&h), 1);
        CHECK_INT(host_tree_write(h.tree, BALANCING, "1\n"), 0);
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(value_of(&h), "0");
}

/* The change is gone with the boot in which it was made; the value of now is this boot's own. */
static void another_boot_needs_no_restore(void) {
        HOST h;
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 1), 0);
        CHECK_INT(host_tree_write(h.tree, BOOT, "00000000-7a1c-4a4e-9d55-0c1b7e3f6a21\n"), 0);
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(value_of(&h), "1");
        CHECK_INT(journalled(&h), 0);
}

/* As a version without the column left it: it may be of this boot. */
static void a_record_of_an_unknown_boot_is_restored(void) {
        HOST h;
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 1), 0);
        CHECK_INT(db_run(h.f.store->db, "UPDATE tunings SET boot_id = NULL"), 0);
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(value_of(&h), "0");
        CHECK_INT(journalled(&h), 0);
}

static void without_its_boot_nothing_is_changed(void) {
        HOST h;
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(host_tree_write(h.tree, BOOT, NULL), 0);
        CHECK_INT(apply(&h, TOGGLE_ON, 1), -ENOENT);
        CHECK_STRING(value_of(&h), "0");
        CHECK_INT(journalled(&h), 0);
}

/* ipclab-tune's side */

struct journal {
        struct host h;
        int fd;
};

static bool journal_open(struct journal *j, const char *value) {
        char path[128];
        *j = (struct journal){.fd = -1};
        bool opened = host_open(&j->h, value);
        (void) snprintf(path, sizeof(path), "%s/undo", j->h.tree);
        if (!opened || mkdir(path, 0700) < 0)
                return false;
        j->fd = undo_open(path);
        return j->fd >= 0;
}

static void journal_close(struct journal *j) {
        util_close(j->fd);
        host_close(&j->h);
}
#define JOURNAL __attribute__((cleanup(journal_close))) struct journal

static int set(struct journal *j, const char *value) {
        return undo_change(j->h.tree, j->fd, "numa_balancing", value);
}

static int undo(struct journal *j) {
        return undo_restore(j->h.tree, j->fd, "numa_balancing");
}

static void the_helper_saves_the_value_before(void) {
        JOURNAL j;
        CHECK(journal_open(&j, "2\n"));
        CHECK_INT(undo(&j), -ENOENT);
        CHECK_INT(set(&j, "1"), 0);
        CHECK_STRING(value_of(&j.h), "1");
        CHECK_INT(set(&j, "0"), 0); /* without a restore in between: the first saved value counts */
        CHECK_STRING(value_of(&j.h), "0");
        CHECK_INT(undo(&j), 0);
        CHECK_STRING(value_of(&j.h), "2");
        CHECK_INT(undo(&j), -ENOENT);
        CHECK_STRING(value_of(&j.h), "2");
}

static void the_helper_leaves_what_somebody_else_set(void) {
        JOURNAL j;
        CHECK(journal_open(&j, "0\n"));
        CHECK_INT(set(&j, "1"), 0);
        CHECK_INT(host_tree_write(j.h.tree, BALANCING, "2\n"), 0);
        CHECK_INT(set(&j, "1"), 0); /* 2 is the administrator's by now */
        CHECK_INT(undo(&j), 0);
        CHECK_STRING(value_of(&j.h), "2");
        CHECK_INT(set(&j, "1"), 0);
        CHECK_INT(host_tree_write(j.h.tree, BALANCING, "0\n"), 0);
        CHECK_INT(undo(&j), 0);
        CHECK_STRING(value_of(&j.h), "0");
}

static void the_helper_saves_nothing_of_a_value_in_force(void) {
        JOURNAL j;
        CHECK(journal_open(&j, "1\n"));
        CHECK_INT(set(&j, "1"), 0);
        CHECK_INT(undo(&j), -ENOENT);
        CHECK_INT(set(&j, "7"), -EINVAL);
        CHECK_INT(undo_change(j.h.tree, j.fd, "core_pattern", "1"), -EINVAL);
        CHECK_INT(undo_restore(j.h.tree, j.fd, "../undo"), -EINVAL);
        CHECK_STRING(value_of(&j.h), "1");
}

/* The saved value comes from the kernel alone, so one that is not in the table is damage, and stays to be seen. */
static void a_damaged_record_is_not_written(void) {
        JOURNAL j;
        CHECK(journal_open(&j, "0\n"));
        CHECK_INT(host_tree_write(j.h.tree, "/undo/numa_balancing", "9 0\n"), 0);
        CHECK_INT(undo(&j), -EBADMSG);
        CHECK_INT(set(&j, "1"), -EBADMSG);
        CHECK_STRING(value_of(&j.h), "0");
}

static void a_directory_that_others_may_write_is_refused(void) {
        HOST h;
        char path[128];
        CHECK(host_open(&h, "0\n"));
        (void) snprintf(path, sizeof(path), "%s/undo", h.tree);
        CHECK_INT(undo_open(path), -ENOENT);
        CHECK_INT(mkdir(path, 0700), 0);
        CHECK_INT(chmod(path, 0770), 0);
        CHECK_INT(undo_open(path), -EPERM);
}

/* Stands in for systemd's socket: a connection for each reply, "": closed without one. */
struct replies {
        int fd;
        const char *lines[2];
        char received[2][64];
};

static void *reply(void *userdata) {
        struct replies *a = userdata;
        for (size_t i = 0; i < ELEMENTS(a->lines) && a->lines[i]; i++) {
                int fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC);
                if (a->lines[i][0] && read(fd, a->received[i], sizeof(a->received[i]) - 1) > 0)
                        (void) !write(fd, a->lines[i], strlen(a->lines[i]));
                close(fd);
        }
        return NULL;
}

static int request(const char *first, const char *second, struct replies *ret, char *detail) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        pthread_t thread;
        HOST h;
        *ret = (struct replies){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .lines = {first, second}};
        if (!host_open(&h, NULL))
                return -ENOTDIR;
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", h.tree);
        if (bind(ret->fd, (const struct sockaddr *) &address, sizeof(address)) < 0 || listen(ret->fd, 2) < 0 ||
            pthread_create(&thread, NULL, reply, ret) != 0)
                return -EIO;
        int r = setting_request(address.sun_path, "numa_balancing=1\n", detail);
        pthread_join(thread, NULL);
        close(ret->fd);
        return r;
}

static void a_busy_helper_gets_the_request_again(void) {
        struct replies a;
        char detail[SETTING_DETAIL_MAX];
        CHECK_INT(request("", "ok\n", &a, detail), 0);
        CHECK_STRING(a.received[1], "numa_balancing=1\n");
        CHECK(request("", "", &a, detail) < 0); /* and no third time */
        CHECK_INT(request("host_tuning is not true\n", NULL, &a, detail), -EPERM);
        CHECK_STRING(detail, "ipclab-tune refuses: host_tuning is not true");
        CHECK_INT(request(SETTING_NO_UNDO_RECORD "\n", NULL, &a, detail), -ESTALE);
        CHECK_INT(setting_request("/nowhere/s", "x\n", detail), -ENOENT);
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
        RUN(changed_and_restored);
        RUN(a_value_in_force_is_not_changed);
        RUN(the_value_of_before_comes_back_as_it_was);
        RUN(the_next_daemon_restores);
        RUN(a_row_without_a_change);
        RUN(a_late_restore_is_logged);
        RUN(what_somebody_else_set_stays);
        RUN(a_failed_restore_stays_in_the_journal);
        RUN(another_boot_needs_no_restore);
        RUN(a_record_of_an_unknown_boot_is_restored);
        RUN(without_its_boot_nothing_is_changed);
        RUN(the_helper_saves_the_value_before);
        RUN(the_helper_leaves_what_somebody_else_set);
        RUN(the_helper_saves_nothing_of_a_value_in_force);
        RUN(a_damaged_record_is_not_written);
        RUN(a_directory_that_others_may_write_is_refused);
        RUN(a_busy_helper_gets_the_request_again);
        RUN(refusals);
        RUN(only_what_the_table_has_is_written);
        return check_end();
}
