/* SPDX-License-Identifier: MIT */

/* Run directories: made closed, removed whole, and nothing followed on the way. */

#include "daemon/run/rundir.h"

#include "check.h"
#include "daemon/log.h"
#include "schema/util.h"

#include <fcntl.h>
#include <sys/stat.h>

static char base[] = "/tmp/ipclab-test-rundir-XXXXXX";
static char runs[64], run7[80];

static void directory_is_private_and_goes(void) {
        struct rundir_root *root;
        struct stat st;
        int fd = -1;
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK_INT(stat(runs, &st), 0);
        CHECK_INT(st.st_mode & 07777, 0700);
        uid_t uid = geteuid() == 0 ? 65534 : (uid_t) -1;
        CHECK_INT(rundir_new(root, 7, uid, 65534, &fd), 0);
        CHECK_INT(stat(run7, &st), 0);
        CHECK_INT(st.st_mode & 07777, 0700);
        CHECK_INT(st.st_uid, geteuid() == 0 ? 65534 : geteuid());
        CHECK_INT(fcntl(fd, F_GETFD), FD_CLOEXEC);
        CHECK_INT(mkfifoat(fd, "data", 0600), 0); /* a descriptor is all that an agent needs */
        close(fd);
        CHECK_INT(rundir_remove(root, 7), 0);
        CHECK_INT(access(run7, F_OK), -1);
        CHECK_INT(rundir_remove(root, 7), 0); /* once more is no error */
        rundir_root_free(root);
        CHECK_INT(access(runs, F_OK), -1);
}

static void links_are_removed_not_followed(void) {
        struct rundir_root *root;
        char outside[80];
        int fd;
        (void) snprintf(outside, sizeof(outside), "%s/precious", base);
        CHECK_INT(mkdir(outside, 0700), 0);
        int file = openat(AT_FDCWD, outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(openat(file, "keep", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), 0);
        CHECK_INT(symlinkat(outside, fd, "link"), 0);
        CHECK_INT(symlinkat("../../precious", fd, "up"), 0);
        CHECK_INT(mkdirat(fd, "deep", 0700), 0);
        CHECK_INT(symlinkat(outside, fd, "deep/link"), 0);
        CHECK_INT(mkdirat(fd, "deep/er", 0000), 0);
        close(fd);
        CHECK_INT(rundir_remove(root, 7), 0);
        CHECK_INT(access(run7, F_OK), -1);
        CHECK_INT(faccessat(file, "keep", F_OK, 0), 0);
        CHECK_INT(unlinkat(file, "keep", 0), 0);
        close(file);
        CHECK_INT(rmdir(outside), 0);
        rundir_root_free(root);
}

static void leftovers_are_removed_at_start(void) {
        struct rundir_root *root;
        int fd;
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), 0);
        close(openat(fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        close(fd);
        struct rundir_root *second;
        CHECK_INT(rundir_root_new(&second, base), -EBUSY); /* not while the first daemon lives */
        CHECK_INT(access(run7, F_OK), 0);
        rundir_root_free(root); /* closes; the directory is not empty and stays, as after a kill */
        CHECK_INT(access(run7, F_OK), 0);
        CHECK_INT(rundir_root_new(&second, base), 0);
        CHECK_INT(access(run7, F_OK), -1);
        rundir_root_free(second);
}

static void foreign_roots_are_refused(void) {
        struct rundir_root *root;
        char target[80];
        (void) snprintf(target, sizeof(target), "%s/elsewhere", base);
        CHECK_INT(mkdir(target, 0700), 0);
        CHECK_INT(symlink(target, runs), 0);
        int r = rundir_root_new(&root, base);
        CHECK(r == -ELOOP || r == -ENOTDIR);
        CHECK_INT(unlink(runs), 0);
        CHECK_INT(rmdir(target), 0);
        CHECK_INT(rundir_root_new(&root, "/nonexistent"), -ENOENT);
        if (geteuid() == 0) {
                CHECK_INT(mkdir(runs, 0777), 0);
                CHECK_INT(chown(runs, 65534, (gid_t) -1), 0);
                CHECK_INT(rundir_root_new(&root, base), -EPERM);
                CHECK_INT(rmdir(runs), 0);
        }
}

/* The directory itself shall be no link; one on the way to it, as /var/run is, may be. */
static void a_linked_runtime_dir_is_refused(void) {
        struct rundir_root *root;
        char real[80], link[80], slash[90], below[90];
        (void) snprintf(real, sizeof(real), "%s/real", base);
        (void) snprintf(link, sizeof(link), "%s/link", base);
        (void) snprintf(slash, sizeof(slash), "%s//", link);
        (void) snprintf(below, sizeof(below), "%s/below", link);
        CHECK_INT(mkdir(real, 0700), 0);
        CHECK_INT(symlink(real, link), 0);
        CHECK_INT(rundir_root_new(&root, link), -ELOOP);
        CHECK_INT(rundir_root_new(&root, slash), -ELOOP);
        CHECK_INT(mkdir(below, 0700), 0);
        CHECK_INT(rundir_root_new(&root, below), 0);
        rundir_root_free(root);
        CHECK_INT(rmdir(below), 0);
        CHECK_INT(unlink(link), 0);
        CHECK_INT(rmdir(real), 0);
}

static void depth_has_a_limit(void) {
        struct rundir_root *root;
        int fd, at;
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), 0);
        at = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        for (int i = 0; i < 40; i++) {
                CHECK_INT(mkdirat(at, "d", 0700), 0);
                int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                close(at);
                at = next;
        }
        close(at);
        CHECK_INT(rundir_remove(root, 7), -ELOOP);
        /* by hand, from the bottom */
        for (int depth = 40; depth >= 0; depth--) {
                char path[256];
                int n = snprintf(path, sizeof(path), "%s", run7);
                for (int i = 0; i < depth; i++)
                        n += snprintf(path + n, sizeof(path) - (size_t) n, "/d");
                CHECK_INT(rmdir(path), 0);
        }
        rundir_root_free(root);
}

int main(void) {
        log_open(LOG_ERR - 1); /* the failures are wanted */
        if (!mkdtemp(base))
                return 1;
        (void) snprintf(runs, sizeof(runs), "%s/runs", base);
        (void) snprintf(run7, sizeof(run7), "%s/run-7", runs);
        RUN(directory_is_private_and_goes);
        RUN(links_are_removed_not_followed);
        RUN(leftovers_are_removed_at_start);
        RUN(foreign_roots_are_refused);
        RUN(a_linked_runtime_dir_is_refused);
        RUN(depth_has_a_limit);
        return rmdir(base) < 0 ? 1 : check_end();
}
