/* SPDX-License-Identifier: MIT */

/* What ipclab-tune keeps, on a disk that is full, in a directory that is not its own, in files that are damaged. The
 * way through test-tuning is the good one. */

#include "daemon/tune/kept.h"
#include "daemon/tune/setting.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#define NAME "numa_balancing"
#define FILE_OF_IT "/proc/sys/kernel/numa_balancing"

struct keeper {
        char tree[64], dir[128];
        int fd;
};

static bool keeper_open(struct keeper *k, const char *value) {
        *k = (struct keeper){.tree = "/tmp/ipclab-kept.XXXXXX", .fd = -1};
        if (!mkdtemp(k->tree) || (value && host_tree_write(k->tree, FILE_OF_IT, value) < 0))
                return false;
        (void) snprintf(k->dir, sizeof k->dir, "%s/kept", k->tree);
        if (mkdir(k->dir, 0700) < 0)
                return false;
        k->fd = kept_open(k->dir);
        return k->fd >= 0;
}

static void keeper_close(struct keeper *k) {
        util_close(k->fd);
        host_tree_remove(k->tree);
}
#define KEEPER __attribute__((cleanup(keeper_close))) struct keeper

static int change(struct keeper *k, const char *value) {
        return kept_change(k->tree, k->fd, NAME, value);
}

static int restore(struct keeper *k) {
        return kept_restore(k->tree, k->fd, NAME);
}

static const char *value_of(const struct keeper *k) {
        static char value[SETTING_VALUE_MAX];
        return setting_read(k->tree, NAME, value) == 0 ? value : "none";
}

static const char *kept_of(const struct keeper *k) {
        static char text[100];
        _cleanup_close_ int fd = openat(k->fd, NAME, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        return fd < 0 ? "none" : text;
}

static void the_directory_must_be_ours(void) {
        static const mode_t open_to_others[] = {0720, 0702, 0722, 0777};
        char path[200];
        KEEPER k;
        CHECK(keeper_open(&k, NULL));
        for (size_t i = 0; i < ELEMENTS(open_to_others); i++) {
                CHECK_INT(chmod(k.dir, open_to_others[i]), 0);
                CHECK_INT(kept_open(k.dir), -EPERM);
        }
        CHECK_INT(chmod(k.dir, 0755), 0); /* others may look */
        int fd = kept_open(k.dir);
        CHECK(fd >= 0);
        util_close(fd);
        (void) snprintf(path, sizeof path, "%s/link", k.tree);
        CHECK_INT(symlink(k.dir, path), 0);
        CHECK_INT(kept_open(path), -ENOTDIR);
        CHECK(host_tree_write(k.tree, "/file", "") == 0);
        (void) snprintf(path, sizeof path, "%s/file", k.tree);
        CHECK_INT(kept_open(path), -ENOTDIR);
        if (geteuid() == 0) {
                CHECK_INT(chown(k.dir, 4711, (gid_t) -1), 0);
                CHECK_INT(kept_open(k.dir), -EPERM);
        }
}

/* No file may grow beyond `bytes`, as on a disk that is full. */
static void limit_files(rlim_t bytes, struct rlimit *ret_before) {
        (void) signal(SIGXFSZ, SIG_IGN);
        (void) getrlimit(RLIMIT_FSIZE, ret_before);
        (void) setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = bytes, .rlim_max = ret_before->rlim_max});
}

/* Without the original in its file nothing is changed, and what was kept before is kept on. */
static void what_cannot_be_kept_is_not_changed(void) {
        for (rlim_t bytes = 0; bytes < 4; bytes++) {
                struct rlimit before;
                KEEPER k;
                CHECK(keeper_open(&k, "0\n"));
                limit_files(bytes, &before);
                int r = change(&k, "1");
                (void) setrlimit(RLIMIT_FSIZE, &before);
                CHECK_INT(r, bytes == 0 ? -EFBIG : -EIO);
                CHECK_STRING(value_of(&k), "0");
                CHECK_STRING(kept_of(&k), "none");
                CHECK_INT(restore(&k), -ENOENT);

                CHECK_INT(change(&k, "2"), 0); /* the next one is not disturbed by what was left */
                CHECK_STRING(kept_of(&k), "0 2\n");
                limit_files(bytes, &before);
                r = change(&k, "1");
                (void) setrlimit(RLIMIT_FSIZE, &before);
                CHECK(r < 0);
                CHECK_STRING(kept_of(&k), "0 2\n");
                CHECK_STRING(value_of(&k), "2");
                CHECK_INT(restore(&k), 0);
                CHECK_STRING(value_of(&k), "0");
        }
}

/* What is no pair of values of the table is damage: nothing is written over it, and nothing is set by it. */
static void damage_is_neither_used_nor_hidden(void) {
        static const char *const texts[] = {"",       "1",        "1\n",
                                            "9 0\n",  "10 1\n",   "on off\n",
                                            "-1 0\n", "/etc 0\n", "0000000000000000000000000000000000000000 1\n"};
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                KEEPER k;
                CHECK(keeper_open(&k, "0\n"));
                CHECK(host_tree_write(k.tree, "/kept/" NAME, texts[i]) == 0);
                int restored = restore(&k), changed = change(&k, "1");
                if (restored != -EBADMSG || changed != -EBADMSG || strcmp(kept_of(&k), texts[i]) != 0)
                        CHECK_FAIL("\"%s\" gave %d and %d", texts[i], restored, changed);
                CHECK_STRING(value_of(&k), "0");
        }
}

static void links_are_not_followed(void) {
        char target[128];
        KEEPER k;
        CHECK(keeper_open(&k, "0\n"));
        CHECK(host_tree_write(k.tree, "/target", "2 0\n") == 0);
        (void) snprintf(target, sizeof target, "%s/target", k.tree);
        CHECK_INT(symlinkat(target, k.fd, NAME), 0);
        CHECK_INT(restore(&k), -ELOOP);
        CHECK_INT(change(&k, "1"), -ELOOP);
        CHECK_STRING(value_of(&k), "0");
        CHECK_INT(unlinkat(k.fd, NAME, 0), 0);
        CHECK_INT(symlinkat(target, k.fd, "." NAME), 0); /* where it is written first */
        CHECK_INT(change(&k, "1"), -ELOOP);
        CHECK_STRING(value_of(&k), "0");
}

/* The setting is gone, or cannot be read: what is kept stays kept. */
static void a_setting_that_is_gone_is_still_owed(void) {
        KEEPER k;
        CHECK(keeper_open(&k, "0\n"));
        CHECK_INT(change(&k, "1"), 0);
        CHECK(host_tree_write(k.tree, FILE_OF_IT, NULL) == 0);
        CHECK_INT(restore(&k), -ENXIO); /* and not -ENOENT, which says that nothing is owed */
        CHECK_INT(change(&k, "2"), -ENOENT);
        CHECK_STRING(kept_of(&k), "0 1\n");
        CHECK(host_tree_write(k.tree, FILE_OF_IT, "1\n") == 0);
        CHECK_INT(restore(&k), 0);
        CHECK_STRING(value_of(&k), "0");
        CHECK_STRING(kept_of(&k), "none");
}

int main(void) {
        RUN(the_directory_must_be_ours);
        RUN(what_cannot_be_kept_is_not_changed);
        RUN(damage_is_neither_used_nor_hidden);
        RUN(links_are_not_followed);
        RUN(a_setting_that_is_gone_is_still_owed);
        return check_end();
}
