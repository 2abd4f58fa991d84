/* SPDX-License-Identifier: MIT */

/* The undo journal of ipclab-tune on a full disk, in a directory of another user, with damaged records. test-tuning has
 * the cases that succeed. */

#include "daemon/tune/setting.h"
#include "daemon/tune/undo.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#define NAME "numa_balancing"
#define FILE_OF_IT "/proc/sys/kernel/numa_balancing"

struct journal {
        char tree[64], dir[128];
        int fd;
};

static bool journal_open(struct journal *j, const char *value) {
        *j = (struct journal){.tree = "/tmp/ipclab-undo.XXXXXX", .fd = -1};
        if (!mkdtemp(j->tree) || (value && host_tree_write(j->tree, FILE_OF_IT, value) < 0))
                return false;
        (void) snprintf(j->dir, sizeof j->dir, "%s/undo", j->tree);
        if (mkdir(j->dir, 0700) < 0)
                return false;
        j->fd = undo_open(j->dir);
        return j->fd >= 0;
}

static void journal_close(struct journal *j) {
        util_close(j->fd);
        host_tree_remove(j->tree);
}
#define JOURNAL __attribute__((cleanup(journal_close))) struct journal

static int change(struct journal *j, const char *value) {
        return undo_change(j->tree, j->fd, NAME, value);
}

static int restore(struct journal *j) {
        return undo_restore(j->tree, j->fd, NAME);
}

static const char *value_of(const struct journal *j) {
        static char value[SETTING_VALUE_MAX];
        return setting_read(j->tree, NAME, value) == 0 ? value : "none";
}

static const char *record_of(const struct journal *j) {
        static char text[100];
        _cleanup_close_ int fd = openat(j->fd, NAME, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        return fd < 0 ? "none" : text;
}

static void the_directory_must_be_ours(void) {
        static const mode_t open_to_others[] = {0720, 0702, 0722, 0777};
        char path[200];
        JOURNAL j;
        CHECK(journal_open(&j, NULL));
        for (size_t i = 0; i < ELEMENTS(open_to_others); i++) {
                CHECK_INT(chmod(j.dir, open_to_others[i]), 0);
                CHECK_INT(undo_open(j.dir), -EPERM);
        }
        CHECK_INT(chmod(j.dir, 0755), 0); /* others may look */
        int fd = undo_open(j.dir);
        CHECK(fd >= 0);
        util_close(fd);
        (void) snprintf(path, sizeof path, "%s/link", j.tree);
        CHECK_INT(symlink(j.dir, path), 0);
        CHECK_INT(undo_open(path), -ENOTDIR);
        CHECK(host_tree_write(j.tree, "/file", "") == 0);
        (void) snprintf(path, sizeof path, "%s/file", j.tree);
        CHECK_INT(undo_open(path), -ENOTDIR);
        if (geteuid() == 0) {
                CHECK_INT(chown(j.dir, 4711, (gid_t) -1), 0);
                CHECK_INT(undo_open(j.dir), -EPERM);
        }
}

/* No file may grow beyond `bytes`, as on a disk that is full. */
static void limit_files(rlim_t bytes, struct rlimit *ret_before) {
        (void) signal(SIGXFSZ, SIG_IGN);
        (void) getrlimit(RLIMIT_FSIZE, ret_before);
        (void) setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = bytes, .rlim_max = ret_before->rlim_max});
}

/* Without its undo record a setting is not changed, and an earlier record stays. */
static void without_a_record_nothing_is_changed(void) {
        for (rlim_t bytes = 0; bytes < 4; bytes++) {
                struct rlimit before;
                JOURNAL j;
                CHECK(journal_open(&j, "0\n"));
                limit_files(bytes, &before);
                int r = change(&j, "1");
                (void) setrlimit(RLIMIT_FSIZE, &before);
                CHECK_INT(r, bytes == 0 ? -EFBIG : -EIO);
                CHECK_STRING(value_of(&j), "0");
                CHECK_STRING(record_of(&j), "none");
                CHECK_INT(restore(&j), -ENOENT);

                CHECK_INT(change(&j, "2"), 0); /* a leftover of the failure does not disturb the next change */
                CHECK_STRING(record_of(&j), "0 2\n");
                limit_files(bytes, &before);
                r = change(&j, "1");
                (void) setrlimit(RLIMIT_FSIZE, &before);
                CHECK(r < 0);
                CHECK_STRING(record_of(&j), "0 2\n");
                CHECK_STRING(value_of(&j), "2");
                CHECK_INT(restore(&j), 0);
                CHECK_STRING(value_of(&j), "0");
        }
}

/* A record that is no pair of values of the table is damaged: it is neither overwritten nor restored from. */
static void damage_is_neither_used_nor_hidden(void) {
        static const char *const texts[] = {"",       "1",        "1\n",
                                            "9 0\n",  "10 1\n",   "on off\n",
                                            "-1 0\n", "/etc 0\n", "0000000000000000000000000000000000000000 1\n"};
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                JOURNAL j;
                CHECK(journal_open(&j, "0\n"));
                CHECK(host_tree_write(j.tree, "/undo/" NAME, texts[i]) == 0);
                int restored = restore(&j), changed = change(&j, "1");
                if (restored != -EBADMSG || changed != -EBADMSG || strcmp(record_of(&j), texts[i]) != 0)
                        CHECK_FAIL("\"%s\" gave %d and %d", texts[i], restored, changed);
                CHECK_STRING(value_of(&j), "0");
        }
}

static void links_are_not_followed(void) {
        char target[128];
        JOURNAL j;
        CHECK(journal_open(&j, "0\n"));
        CHECK(host_tree_write(j.tree, "/target", "2 0\n") == 0);
        (void) snprintf(target, sizeof target, "%s/target", j.tree);
        CHECK_INT(symlinkat(target, j.fd, NAME), 0);
        CHECK_INT(restore(&j), -ELOOP);
        CHECK_INT(change(&j, "1"), -ELOOP);
        CHECK_STRING(value_of(&j), "0");
        CHECK_INT(unlinkat(j.fd, NAME, 0), 0);
        CHECK_INT(symlinkat(target, j.fd, "." NAME), 0); /* the temporary file */
        CHECK_INT(change(&j, "1"), -ELOOP);
        CHECK_STRING(value_of(&j), "0");
}

/* The setting is gone, or cannot be read: its record stays. */
static void a_missing_setting_keeps_its_record(void) {
        JOURNAL j;
        CHECK(journal_open(&j, "0\n"));
        CHECK_INT(change(&j, "1"), 0);
        CHECK(host_tree_write(j.tree, FILE_OF_IT, NULL) == 0);
        CHECK_INT(restore(&j), -ENXIO); /* and not -ENOENT, which is for a missing record */
        CHECK_INT(change(&j, "2"), -ENOENT);
        CHECK_STRING(record_of(&j), "0 1\n");
        CHECK(host_tree_write(j.tree, FILE_OF_IT, "1\n") == 0);
        CHECK_INT(restore(&j), 0);
        CHECK_STRING(value_of(&j), "0");
        CHECK_STRING(record_of(&j), "none");
}

int main(void) {
        RUN(the_directory_must_be_ours);
        RUN(without_a_record_nothing_is_changed);
        RUN(damage_is_neither_used_nor_hidden);
        RUN(links_are_not_followed);
        RUN(a_missing_setting_keeps_its_record);
        return check_end();
}
