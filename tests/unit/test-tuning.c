/* SPDX-License-Identifier: MIT */
/* Settings of a made-up host are changed, journalled and restored, whichever process dies in between; and the undo
 * journal of ipclab-tune and its protocol. */

#include "tests/unit/check.h"

#include "daemon/tune/setting.h"
#include "daemon/tune/tuning.h"
#include "daemon/tune/undo.h"
#include "schema/detail.h"
#include "schema/spec/internal.h"
#include "tests/unit/host-tree.h"
#include "tests/unit/store-fixture.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BALANCING "/proc/sys/kernel/numa_balancing"
#define BOOT "/proc/sys/kernel/random/boot_id"
#define THIS_BOOT "5f2e86b0-7a1c-4a4e-9d55-0c1b7e3f6a21"

/* In the place of setting_restore(), by the linker's --wrap: an ipclab-tune that does not reply. */
static struct hanging_helper {
        bool hangs;
        unsigned requests;
} helper;

int __real_setting_restore(const char *root, const char *name, const char *original, const char *wanted,
                           char *ret_detail);
int __wrap_setting_restore(const char *root, const char *name, const char *original, const char *wanted,
                           char *ret_detail);
int __wrap_setting_restore(const char *root, const char *name, const char *original, const char *wanted,
                           char *ret_detail) {
        if (!helper.hangs)
                return __real_setting_restore(root, name, original, wanted, ret_detail);
        helper.requests++;
        return detail_fail(ret_detail, -ETIMEDOUT, "ipclab-tune has not replied within 5 s");
}

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

#define LOGGED_MAX 4096u

/* What restore() returns, with what it logs. */
static int restore_logged(struct host *h, char *ret /* [LOGGED_MAX] */) {
        _cleanup_close_ int log = memfd_create("log", MFD_CLOEXEC), stderr_fd = dup(STDERR_FILENO);
        if (log < 0 || stderr_fd < 0 || dup2(log, STDERR_FILENO) < 0)
                return -ENOTDIR;
        int r = restore(h);
        ssize_t n = dup2(stderr_fd, STDERR_FILENO) < 0 ? -1 : pread(log, ret, LOGGED_MAX - 1, 0);
        if (n < 0)
                return -ENOTDIR;
        ret[n] = '\0';
        return r;
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
        } cases[] = {{"1\n", TOGGLE_ON}, {"3\n", TOGGLE_ON}, {"0\n", TOGGLE_OFF}, {"1\n", TOGGLE_UNSET}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HOST h;
                CHECK(host_open(&h, cases[i].now));
                CHECK_INT(apply(&h, cases[i].wanted, 1), 0);
                CHECK_INT(journalled(&h), 0);
                CHECK(value_of(&h)[0] == cases[i].now[0]);
        }
}

/* 2 is memory tiering alone, which is not balancing: `require` takes it for off, too. */
static void the_value_of_before_comes_back_as_it_was(void) {
        static const struct {
                enum toggle wanted;
                const char *now;
        } cases[] = {{TOGGLE_OFF, "0"}, {TOGGLE_ON, "1"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HOST h;
                CHECK(host_open(&h, "2\n"));
                CHECK_INT(apply(&h, cases[i].wanted, 1), 0);
                CHECK_STRING(value_of(&h), cases[i].now);
                CHECK_INT(restore(&h), 0);
                CHECK_STRING(value_of(&h), "2");
        }
}

/* The state after a kill: another connection, no memory of the change but the journal. */
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
        char logged[LOGGED_MAX];
        CHECK(host_open(&h, "0\n"));
        CHECK_INT(apply(&h, TOGGLE_ON, 7), 0);
        CHECK_INT(host_tree_write(h.tree, BALANCING, "0\n"), 0);
        CHECK_INT(restore_logged(&h, logged), 0);
        CHECK(strstr(logged, "kernel.numa_balancing is 0, as before run 7") != NULL);
}

static void a_foreign_change_stays(void) {
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

/* A record as a version without the column left it: it may be of this boot. */
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

/* Settings that are several files, or a word among several. */

#define CPU(n) "/sys/devices/system/cpu/cpu" #n
#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define GOVERNORS "performance powersave schedutil\n"
#define LIST "/sys/devices/system/cpu/online"
#define PRESENT "/sys/devices/system/cpu/present"
#define POSSIBLE "/sys/devices/system/cpu/possible"

/* Three CPUs: of two governors, and with two, two and no idle states beside the first. */
static bool lab_open(struct host *h) {
        static const struct {
                const char *file, *content;
        } files[] = {
                {LIST, "0-2\n"},
                {CPU(0) "/cpufreq/scaling_governor", "powersave\n"},
                {CPU(0) "/cpufreq/scaling_available_governors", GOVERNORS},
                {CPU(1) "/cpufreq/scaling_governor", "schedutil\n"},
                {CPU(1) "/cpufreq/scaling_available_governors", GOVERNORS},
                {CPU(2) "/cpufreq/scaling_governor", "powersave\n"},
                {CPU(2) "/cpufreq/scaling_available_governors", GOVERNORS},
                {CPU(0) "/cpuidle/state0/disable", "0\n"},
                {CPU(0) "/cpuidle/state1/disable", "0\n"},
                {CPU(0) "/cpuidle/state2/disable", "1\n"},
                {CPU(1) "/cpuidle/state0/disable", "0\n"},
                {CPU(1) "/cpuidle/state1/disable", "0\n"},
                {CPU(1) "/cpuidle/state2/disable", "0\n"},
                {CPU(2) "/cpuidle/state0/disable", "0\n"},
                {THP, "always [madvise] never\n"},
        };
        if (!host_open(h, "0\n"))
                return false;
        for (size_t i = 0; i < ELEMENTS(files); i++)
                if (host_tree_write(h->tree, files[i].file, files[i].content) < 0)
                        return false;
        return true;
}

static const char *read_setting(const struct host *h, const char *name) {
        static char value[SETTING_VALUE_MAX];
        return setting_read(h->tree, name, value) == 0 ? value : "none";
}

static const struct spec_tune all_of_it = {
        .numa_balancing = TOGGLE_ON, .governor = "performance", .idle_states = TOGGLE_OFF, .thp = "never"};

static int tune_all(struct host *h) {
        return tuning_apply(h->f.store, h->tree, true, &all_of_it, 7, h->detail);
}

static void every_file_of_a_setting_is_changed_and_restored(void) {
        HOST h;
        CHECK(lab_open(&h));
        CHECK_STRING(read_setting(&h, "governor"), "powersave@0,2;schedutil@1");
        CHECK_STRING(read_setting(&h, "idle_states"), "01@0;0@1");
        CHECK_STRING(read_setting(&h, "transparent_hugepage"), "madvise");
        CHECK_INT(tune_all(&h), 0);
        CHECK_INT(journalled(&h), 4);
        CHECK_STRING(value_of(&h), "1");
        CHECK_STRING(read_setting(&h, "governor"), "performance");
        CHECK_STRING(read_setting(&h, "idle_states"), "1");
        CHECK_STRING(read_setting(&h, "transparent_hugepage"), "never");
        CHECK_INT(restore(&h), 0);
        CHECK_INT(journalled(&h), 0);
        CHECK_STRING(value_of(&h), "0");
        CHECK_STRING(read_setting(&h, "governor"), "powersave@0,2;schedutil@1");
        CHECK_STRING(read_setting(&h, "idle_states"), "01@0;0@1");
        CHECK_STRING(read_setting(&h, "transparent_hugepage"), "madvise");
}

/* Killed between the files of one setting; and somebody has set another of them since. */
static void a_setting_that_is_half_changed_is_restored(void) {
        HOST h;
        CHECK(lab_open(&h));
        CHECK_INT(tune_all(&h), 0);
        CHECK_INT(host_tree_write(h.tree, CPU(1) "/cpufreq/scaling_governor", "schedutil\n"), 0);
        CHECK_INT(host_tree_write(h.tree, CPU(1) "/cpuidle/state2/disable", "0\n"), 0);
        CHECK_INT(host_tree_write(h.tree, CPU(2) "/cpufreq/scaling_governor", "ondemand\n"), 0);
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(read_setting(&h, "governor"), "powersave@0;schedutil@1;ondemand@2");
        CHECK_STRING(read_setting(&h, "idle_states"), "01@0;0@1");
        CHECK_INT(journalled(&h), 0);
}

/* A CPU that went offline in between is restored when it is back; one that came meanwhile has its own setting. */
static void cpus_may_come_and_go(void) {
        HOST h;
        CHECK(lab_open(&h));
        CHECK_INT(host_tree_write(h.tree, PRESENT, "0-2\n"), 0);
        CHECK_INT(host_tree_write(h.tree, LIST, "0-1\n"), 0);
        CHECK_INT(tune_all(&h), 0);
        CHECK_INT(host_tree_write(h.tree, LIST, "1-2\n"), 0);
        CHECK_INT(restore(&h), -EAGAIN);
        CHECK(strstr(h.detail, "cpufreq/scaling_governor cannot be restored to powersave@0;schedutil@1: CPUs 0 are "
                               "offline and may have performance, of run 7, when they are back") != NULL);
        CHECK_INT(journalled(&h), 2);
        CHECK_INT(number(&h.f, "SELECT count(*) FROM tunings WHERE name IN ('governor', 'idle_states')"), 2);
        CHECK_STRING(read_setting(&h, "governor"), "schedutil@1;powersave@2");
        CHECK_INT(restore(&h), -EAGAIN);
        CHECK_INT(host_tree_write(h.tree, LIST, "0-2\n"), 0);
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(read_setting(&h, "governor"), "powersave@0,2;schedutil@1");
        CHECK_STRING(read_setting(&h, "idle_states"), "01@0;0@1");
        CHECK_INT(journalled(&h), 0);
}

/* What was never changed is not waited for, even when all other CPUs had one value. */
static void a_cpu_that_was_offline_throughout_is_no_restore(void) {
        HOST h;
        CHECK(lab_open(&h));
        CHECK_INT(host_tree_write(h.tree, PRESENT, "0-2\n"), 0);
        CHECK_INT(host_tree_write(h.tree, LIST, "0\n"), 0);
        CHECK_INT(tune_all(&h), 0);
        CHECK_INT(restore(&h), 0);
        CHECK_INT(journalled(&h), 0);
        CHECK_STRING(read_setting(&h, "governor"), "powersave");
}

/* The two ways in which a restore is given up, both by name. */
static void a_cpu_that_is_gone_is_given_up(void) {
        HOST h;
        char logged[LOGGED_MAX];
        CHECK(lab_open(&h));
        CHECK_INT(host_tree_write(h.tree, POSSIBLE, "0-3\n"), 0);
        CHECK_INT(tune_all(&h), 0);
        CHECK_INT(host_tree_write(h.tree, PRESENT, "1-2\n"), 0);
        CHECK_INT(host_tree_write(h.tree, LIST, "1-2\n"), 0);
        CHECK_INT(restore_logged(&h, logged), 0);
        CHECK(strstr(logged, "cpufreq/scaling_governor of CPUs 0 is not restored, as this machine no longer has") !=
              NULL);
        CHECK_INT(journalled(&h), 0);

        HOST other;
        CHECK(lab_open(&other));
        CHECK_INT(host_tree_write(other.tree, PRESENT, "0-2\n"), 0);
        CHECK_INT(tune_all(&other), 0);
        CHECK_INT(host_tree_write(other.tree, LIST, "1-2\n"), 0);
        CHECK_INT(restore(&other), -EAGAIN);
        CHECK_INT(host_tree_write(other.tree, BOOT, "00000000-7a1c-4a4e-9d55-0c1b7e3f6a21\n"), 0);
        CHECK_INT(restore_logged(&other, logged), 0);
        CHECK(strstr(logged, "cpufreq/scaling_governor was changed by run 7 before this boot") != NULL);
        CHECK_INT(journalled(&other), 0);
}

/* One that cannot be restored does not keep those after it. */
static void the_others_are_restored_when_one_is_not(void) {
        HOST h;
        CHECK(lab_open(&h));
        CHECK_INT(tune_all(&h), 0);
        CHECK_INT(host_tree_write(h.tree, CPU(0) "/cpufreq/scaling_governor", ""), 0);
        CHECK_INT(restore(&h), -ENODATA);
        CHECK(strstr(h.detail, "cpufreq/scaling_governor cannot be restored to powersave@0,2;schedutil@1") != NULL);
        CHECK_INT(journalled(&h), 1);
        CHECK_STRING(value_of(&h), "0");
        CHECK_STRING(read_setting(&h, "transparent_hugepage"), "madvise");
        CHECK_INT(host_tree_write(h.tree, CPU(0) "/cpufreq/scaling_governor", "performance\n"), 0);
        CHECK_INT(restore(&h), 0);
        CHECK_STRING(read_setting(&h, "governor"), "powersave@0,2;schedutil@1");
}

/* The text that is returned belongs to the errno; the log has the others. */
static void the_first_failure_is_returned(void) {
        HOST h;
        char logged[LOGGED_MAX];
        CHECK(lab_open(&h));
        CHECK_INT(tune_all(&h), 0);
        CHECK_INT(host_tree_write(h.tree, CPU(0) "/cpufreq/scaling_governor", ""), 0);
        CHECK_INT(host_tree_write(h.tree, THP, NULL), 0);
        CHECK_INT(restore_logged(&h, logged), -ENODATA);
        CHECK(strstr(h.detail, "cpufreq/scaling_governor cannot be restored to powersave@0,2;schedutil@1") != NULL);
        CHECK(strstr(logged, "cpufreq/scaling_governor cannot be restored") != NULL);
        CHECK(strstr(logged, "transparent_hugepage/enabled cannot be restored to madvise") != NULL);
        CHECK_INT(journalled(&h), 2);
}

/* Each request to an ipclab-tune that hangs takes five seconds of the daemon's event loop. */
static void a_helper_that_hangs_gets_no_further_request(void) {
        HOST h;
        CHECK(lab_open(&h));
        CHECK_INT(tune_all(&h), 0);
        CHECK_INT(journalled(&h), 4);
        helper = (struct hanging_helper){.hangs = true};
        CHECK_INT(restore(&h), -ETIMEDOUT);
        CHECK_UINT(helper.requests, 1);
        CHECK(strstr(h.detail, "ipclab-tune has not replied within 5 s") != NULL);
        CHECK_INT(journalled(&h), 4);
        helper.hangs = false;
        CHECK_INT(restore(&h), 0);
        CHECK_INT(journalled(&h), 0);
        CHECK_STRING(read_setting(&h, "governor"), "powersave@0,2;schedutil@1");
}

static void what_a_host_lacks_is_refused_by_name(void) {
        static const struct {
                struct spec_tune tune;
                const char *gone, *content; /* a file that the host lacks, or has so */
                const char *pointer, *limit, *limit_value, *detail;
        } cases[] = {
                {{.governor = "ondemand"},
                 NULL,
                 NULL,
                 "/tune/governor",
                 "cpufreq/scaling_governor",
                 "performance powersave schedutil",
                 "cpufreq/scaling_governor of this host has the values performance powersave schedutil, not ondemand"},
                {{.governor = "performance"},
                 LIST,
                 "7\n",
                 "/tune/governor",
                 "cpufreq/scaling_governor",
                 "none",
                 "no CPU of this machine has a governor (no cpufreq driver)"},
                {{.idle_states = TOGGLE_OFF},
                 LIST,
                 "2\n",
                 "/tune/idle_states",
                 "cpuidle/state*/disable",
                 "none",
                 "no CPU of this machine has an idle state beside the first that can be switched"},
                {{.thp = "never"},
                 THP,
                 NULL,
                 "/tune/transparent_hugepage",
                 "transparent_hugepage/enabled",
                 "none",
                 "this kernel has no transparent huge pages"},
                {{.thp = "always"},
                 THP,
                 "[madvise] never\n",
                 "/tune/transparent_hugepage",
                 "transparent_hugepage/enabled",
                 "[madvise] never",
                 "transparent_hugepage/enabled of this host has the values [madvise] never, not always"},
                {{.thp_shmem = "advise"},
                 NULL,
                 NULL,
                 "/tune/transparent_hugepage_shmem",
                 "transparent_hugepage/shmem_enabled",
                 "none",
                 "this kernel has no transparent huge pages of shared memory"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HOST h;
                struct refusal r = {0};
                CHECK(lab_open(&h));
                if (cases[i].gone)
                        CHECK_INT(host_tree_write(h.tree, cases[i].gone, cases[i].content), 0);
                CHECK_INT(tuning_check(h.tree, true, &cases[i].tune, &r), -EINVAL);
                CHECK_STRING(r.pointer, cases[i].pointer);
                CHECK_STRING(r.limit, cases[i].limit);
                CHECK_STRING(r.limit_value, cases[i].limit_value);
                CHECK_STRING(r.detail, cases[i].detail);
                CHECK_INT(tuning_apply(h.f.store, h.tree, true, &cases[i].tune, 1, h.detail), -EPERM);
                CHECK_STRING(h.detail, cases[i].detail);
                CHECK_INT(journalled(&h), 0);
        }
}

/* What restore() would not accept from the journal must not get there. */
static void a_value_that_cannot_be_restored_is_not_changed(void) {
        static const struct {
                struct spec_tune tune;
                const char *file, *content, *name, *detail;
        } cases[] = {
                {{.numa_balancing = TOGGLE_OFF},
                 BALANCING,
                 "7\n",
                 "numa_balancing",
                 "kernel.numa_balancing is 7, to which it could not be restored"},
                {{.governor = "performance"},
                 CPU(0) "/cpufreq/scaling_governor",
                 "Power.Save\n",
                 "governor",
                 "cpufreq/scaling_governor is Power.Save@0;schedutil@1;powersave@2, to which it could not be restored"},
                {{.governor = "performance"},
                 CPU(0) "/cpufreq/scaling_governor",
                 "a-governor-with-a-name-of-32-byte\n",
                 "governor",
                 "cpufreq/scaling_governor cannot be saved: its value is too long, or differs between too many CPUs"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HOST h;
                char before[SETTING_VALUE_MAX], after[SETTING_VALUE_MAX];
                struct refusal r = {0};
                CHECK(lab_open(&h));
                CHECK_INT(host_tree_write(h.tree, cases[i].file, cases[i].content), 0);
                int e = setting_read(h.tree, cases[i].name, before);
                CHECK_INT(tuning_check(h.tree, true, &cases[i].tune, &r), -EINVAL);
                CHECK_STRING(r.detail, cases[i].detail);
                CHECK_INT(tuning_apply(h.f.store, h.tree, true, &cases[i].tune, 1, h.detail), -EPERM);
                CHECK_STRING(h.detail, cases[i].detail);
                CHECK_INT(setting_read(h.tree, cases[i].name, after), e);
                CHECK_STRING(after, before);
                CHECK_INT(journalled(&h), 0);
        }
}

/* A folder in the place of a file stands for whatever error a read may have. */
static void what_cannot_be_read_is_not_called_absent(void) {
        static const struct {
                const char *file, *detail;
        } cases[] = {
                {CPU(0) "/cpufreq/scaling_governor", "cpufreq/scaling_governor cannot be read: Is a directory"},
                {CPU(1) "/cpufreq/scaling_available_governors",
                 "the values of cpufreq/scaling_governor cannot be read: Is a directory"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HOST h;
                char inner[128];
                struct refusal r = {0};
                CHECK(lab_open(&h));
                (void) snprintf(inner, sizeof(inner), "%s/x", cases[i].file);
                CHECK_INT(host_tree_write(h.tree, cases[i].file, NULL), 0);
                CHECK_INT(host_tree_write(h.tree, inner, ""), 0);
                CHECK_INT(tuning_check(h.tree, true, &(struct spec_tune){.governor = "performance"}, &r), -EINVAL);
                CHECK_STRING(r.pointer, "/tune/governor");
                CHECK_STRING(r.detail, cases[i].detail);
        }
}

/* The parser's rows and the daemon's settings are in two rooms. */
static void every_member_of_tune_changes_a_setting(void) {
        HOST h;
        const enum toggle on = TOGGLE_ON;
        CHECK(host_open(&h, NULL));
        for (size_t i = 0; i < tune_values.n; i++) {
                const struct value *v = value_at(&tune_values, i);
                struct spec_tune tune = {0};
                struct refusal r = {0};
                char pointer[64];
                bool toggle = v->type == &value_toggle;
                memcpy((char *) &tune + v->offset, toggle ? (const char *) &on : "x", toggle ? sizeof(on) : 1);
                (void) snprintf(pointer, sizeof(pointer), "/tune/%s", v->name);
                CHECK(setting_title(v->name) != NULL);
                CHECK_INT(tuning_check(h.tree, false, &tune, &r), -EINVAL);
                CHECK_STRING(r.pointer, pointer);
        }
}

static void values_that_no_host_can_have_had(void) {
        static const struct {
                const char *name, *value;
                bool allowed;
        } cases[] = {
                {"governor", "powersave@0,2;schedutil@1", true},
                {"governor", "user_space-2", true},
                {"governor", "powersave@", false},
                {"governor", "powersave@0;", true}, /* a separator at the end is no group */
                {"governor", ";powersave@0", false},
                {"governor", "../x@0", false},
                {"governor", "powersave@x", false},
                {"idle_states", "01@0;1@1-3", true},
                {"idle_states", "02", false},
                {"idle_states", "00000000000000000", false},
                {"transparent_hugepage", "madvise", true},
                {"transparent_hugepage", "madvise@0", false},
                {"transparent_hugepage", "sometimes", false},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK_INT(setting_allows_saved(cases[i].name, cases[i].value), cases[i].allowed);
        CHECK(!setting_allows("governor", "powersave@0") && !setting_allows("idle_states", "01"));
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

static void the_helper_saves_every_file_of_a_setting(void) {
        JOURNAL j;
        CHECK(journal_open(&j, "0\n"));
        struct host lab = {.detail = ""};
        CHECK(lab_open(&lab));
        CHECK_INT(undo_change(lab.tree, j.fd, "governor", "performance"), 0);
        CHECK_STRING(read_setting(&lab, "governor"), "performance");
        CHECK_INT(undo_change(lab.tree, j.fd, "governor", "performance@0"), -EINVAL);
        CHECK_INT(undo_restore(lab.tree, j.fd, "governor"), 0);
        CHECK_STRING(read_setting(&lab, "governor"), "powersave@0,2;schedutil@1");
        host_close(&lab);
}

static void the_helper_keeps_a_record_of_an_offline_cpu(void) {
        JOURNAL j;
        CHECK(journal_open(&j, "0\n"));
        HOST lab;
        CHECK(lab_open(&lab));
        CHECK_INT(host_tree_write(lab.tree, PRESENT, "0-2\n"), 0);
        CHECK_INT(undo_change(lab.tree, j.fd, "governor", "performance"), 0);
        CHECK_INT(host_tree_write(lab.tree, LIST, "1-2\n"), 0);
        CHECK_INT(undo_restore(lab.tree, j.fd, "governor"), 0);
        CHECK_STRING(read_setting(&lab, "governor"), "schedutil@1;powersave@2");
        CHECK_INT(host_tree_write(lab.tree, LIST, "0-2\n"), 0);
        CHECK_INT(undo_restore(lab.tree, j.fd, "governor"), 0);
        CHECK_STRING(read_setting(&lab, "governor"), "powersave@0,2;schedutil@1");
        CHECK_INT(undo_restore(lab.tree, j.fd, "governor"), -ENOENT);
}

static void the_helper_leaves_a_foreign_change(void) {
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

static void the_helper_keeps_a_value_that_it_could_not_restore(void) {
        JOURNAL j;
        CHECK(journal_open(&j, "7\n"));
        CHECK_INT(set(&j, "1"), -EBADMSG);
        CHECK_STRING(value_of(&j.h), "7");
        CHECK_INT(undo(&j), -ENOENT);
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
        char detail[DETAIL_MAX];
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
        RUN(a_foreign_change_stays);
        RUN(a_failed_restore_stays_in_the_journal);
        RUN(another_boot_needs_no_restore);
        RUN(a_record_of_an_unknown_boot_is_restored);
        RUN(without_its_boot_nothing_is_changed);
        RUN(every_file_of_a_setting_is_changed_and_restored);
        RUN(a_setting_that_is_half_changed_is_restored);
        RUN(cpus_may_come_and_go);
        RUN(a_cpu_that_was_offline_throughout_is_no_restore);
        RUN(a_cpu_that_is_gone_is_given_up);
        RUN(the_others_are_restored_when_one_is_not);
        RUN(a_helper_that_hangs_gets_no_further_request);
        RUN(the_first_failure_is_returned);
        RUN(what_a_host_lacks_is_refused_by_name);
        RUN(every_member_of_tune_changes_a_setting);
        RUN(what_cannot_be_read_is_not_called_absent);
        RUN(a_value_that_cannot_be_restored_is_not_changed);
        RUN(values_that_no_host_can_have_had);
        RUN(the_helper_saves_the_value_before);
        RUN(the_helper_saves_every_file_of_a_setting);
        RUN(the_helper_keeps_a_record_of_an_offline_cpu);
        RUN(the_helper_leaves_a_foreign_change);
        RUN(the_helper_saves_nothing_of_a_value_in_force);
        RUN(the_helper_keeps_a_value_that_it_could_not_restore);
        RUN(a_damaged_record_is_not_written);
        RUN(a_directory_that_others_may_write_is_refused);
        RUN(a_busy_helper_gets_the_request_again);
        RUN(refusals);
        RUN(only_what_the_table_has_is_written);
        return check_end();
}
