/* SPDX-License-Identifier: MIT */

/* Run directories: made closed, removed whole, and nothing followed on the way. */

#include "daemon/run/sandbox/rundir.h"

#include "check.h"
#include "daemon/log.h"
#include "schema/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* In memory where that can be had, as the runtime directory of the service is. */
static char base[] = "/dev/shm/ipclab-test-rundir-XXXXXX";
static char runs[64], run7[80];

/* Counts the pauses of who waits; this one stands in for libc's. */
static unsigned pauses;

int nanosleep(const struct timespec *wanted, struct timespec *rest) {
        pauses++;
        errno = clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, rest);
        return errno == 0 ? 0 : -1;
}

#define SOON (util_now_ns() + 60 * NSEC_PER_SEC)

static unsigned entries(const char *path) {
        unsigned n = 0;
        DIR *dir = opendir(path);
        while (dir && readdir(dir))
                n++;
        if (dir)
                closedir(dir);
        return n > 2 ? n - 2 : 0;
}

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
        CHECK_UINT(entries(runs), 0);
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
        CHECK(rundir_settle(root, SOON));
        CHECK_UINT(entries(runs), 0);
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
        rundir_root_free(root); /* closes; what is in use is not removed, and stays, as after a kill */
        CHECK_INT(access(run7, F_OK), 0);
        CHECK_INT(rundir_root_new(&second, base), 0);
        CHECK_INT(access(run7, F_OK), -1); /* its name is free at once */
        CHECK(rundir_settle(second, SOON));
        CHECK_UINT(entries(runs), 0);
        rundir_root_free(second);
        CHECK_UINT(entries(runs), 0);
}

/* The next start may have no block of the disk for a new one. */
static void the_directory_itself_stays(void) {
        struct rundir_root *root;
        struct stat first, second;
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK_INT(stat(runs, &first), 0);
        rundir_root_free(root);
        CHECK_INT(stat(runs, &second), 0);
        CHECK_UINT(second.st_ino, first.st_ino);
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK_INT(stat(runs, &second), 0);
        CHECK_UINT(second.st_ino, first.st_ino);
        rundir_root_free(root);
}

/* The directory is removed as a clean-up does it: runs go on. */
static void what_is_removed_meanwhile_is_made_anew(void) {
        struct rundir_root *root, *second;
        struct stat st;
        for (int above = 0; above < 2; above++) {
                int fd = -1;
                CHECK_INT(rundir_root_new(&root, base), 0);
                CHECK_INT(rmdir(runs), 0);
                if (above)
                        CHECK_INT(rmdir(base), 0);
                CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), 0);
                CHECK_INT(fstat(fd, &st), 0);
                ino_t inode = st.st_ino;
                CHECK_INT(stat(run7, &st), 0);
                CHECK_UINT(st.st_ino, inode);
                CHECK_INT(stat(runs, &st), 0);
                CHECK_INT(st.st_mode & 07777, 0700);
                CHECK_INT(rundir_root_new(&second, base), -EBUSY); /* it is locked as before */
                close(fd);
                CHECK_INT(rundir_remove(root, 7), 0);
                CHECK_UINT(entries(runs), 0);
                rundir_root_free(root);
        }
}

/* Nothing is made through a link that took its place, nor where another daemon has it. */
static void what_took_its_place_is_not_used(void) {
        struct rundir_root *root, *second;
        char moved[80], aside[100];
        int fd = -1;
        (void) snprintf(moved, sizeof(moved), "%s-moved", base);
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK_INT(rmdir(runs), 0);
        CHECK_INT(rundir_root_new(&second, base), 0);
        pauses = 0;
        CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), -EBUSY);
        CHECK_UINT(pauses, 0); /* the main loop waits for it */
        rundir_root_free(second);
        CHECK_INT(rmdir(runs), 0);
        CHECK_INT(rename(base, moved), 0);
        CHECK_INT(symlink(moved, base), 0);
        CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), -ELOOP);
        (void) snprintf(aside, sizeof(aside), "%s/runs", moved);
        CHECK_INT(access(aside, F_OK), -1);
        CHECK_INT(unlink(base), 0);
        CHECK_INT(rename(moved, base), 0);
        CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), 0);
        close(fd);
        CHECK_INT(rundir_remove(root, 7), 0);
        rundir_root_free(root);
}

/* An empty one of another user is replaced, as at the start. */
static void another_users_in_its_place_is_replaced(void) {
        struct rundir_root *root;
        struct stat st;
        int fd = -1;
        if (geteuid() != 0)
                SKIP("giving a directory to another user takes root");
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK_INT(rmdir(runs), 0);
        CHECK_INT(mkdir(runs, 0700), 0);
        CHECK_INT(chown(runs, 65534, (gid_t) -1), 0);
        CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), 0);
        close(fd);
        CHECK_INT(stat(runs, &st), 0);
        CHECK_UINT(st.st_uid, 0);
        CHECK_INT(rundir_remove(root, 7), 0);
        rundir_root_free(root);
}

static void missing_parents_are_made_anew(void) {
        struct rundir_root *root;
        char above[64], below[80], own[96];
        int fd = -1;
        (void) snprintf(above, sizeof(above), "%s/above", base);
        (void) snprintf(below, sizeof(below), "%s/below", above);
        (void) snprintf(own, sizeof(own), "%s/runs", below);
        CHECK_INT(mkdir(above, 0755), 0);
        CHECK_INT(mkdir(below, 0755), 0);
        CHECK_INT(rundir_root_new(&root, below), 0);
        CHECK_INT(rmdir(own), 0);
        CHECK_INT(rmdir(below), 0);
        CHECK_INT(rmdir(above), 0);
        CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), 0);
        close(fd);
        CHECK_INT(rundir_remove(root, 7), 0);
        rundir_root_free(root);
        CHECK_INT(rmdir(own), 0);
        CHECK_INT(rmdir(below), 0);
        CHECK_INT(rmdir(above), 0);
}

/* In the runtime directory of another user, whose daemon could not use it. */
static void it_does_not_stay_in_a_foreign_directory(void) {
        struct rundir_root *root;
        if (geteuid() != 0)
                SKIP("giving a directory to another user takes root");
        CHECK_INT(chown(base, 65534, (gid_t) -1), 0);
        int r = rundir_root_new(&root, base);
        if (r == 0)
                rundir_root_free(root);
        CHECK_INT(chown(base, 0, (gid_t) -1), 0);
        CHECK_INT(r, 0);
        CHECK_INT(access(runs, F_OK), -1);
}

/* A start as `uid`; what it logs is kept. */
static int start_as(uid_t uid, char *words, size_t size) {
        int ends[2], status = -1;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        (void) fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
                struct rundir_root *root;
                if (dup2(ends[1], STDERR_FILENO) < 0)
                        _exit(100);
                log_open(LOG_ERR);
                if (setresuid(uid, uid, uid) < 0)
                        _exit(100);
                _exit(-rundir_root_new(&root, base));
        }
        close(ends[1]);
        size_t n = 0;
        for (ssize_t k = 1; k > 0 && n<size - 1; n += k> 0 ? (size_t) k : 0)
                k = read(ends[0], words + n, size - 1 - n);
        words[n] = '\0';
        close(ends[0]);
        return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

static void what_another_users_daemon_left_is_named(void) {
        struct rundir_root *root;
        char words[2000], content[80];
        struct stat st;
        if (geteuid() != 0)
                SKIP("a start as another user takes root");
        CHECK_INT(rundir_root_new(&root, base), 0);
        rundir_root_free(root);
        CHECK_INT(chmod(base, 0777), 0);
        CHECK_INT(start_as(65534, words, sizeof(words)), -EPERM);
        CHECK_INT(chmod(base, 0700), 0);
        CHECK(strstr(words, runs) && strstr(words, "user root") && strstr(words, "--runtime-dir"));

        /* an empty one is replaced, and so by root, which may look into it */
        CHECK_INT(chown(runs, 65534, (gid_t) -1), 0);
        CHECK_INT(start_as(0, words, sizeof(words)), 0);
        CHECK_INT(stat(runs, &st), 0);
        CHECK_UINT(st.st_uid, 0);

        CHECK_INT(chown(runs, 65534, (gid_t) -1), 0);
        (void) snprintf(content, sizeof(content), "%s/content", runs);
        CHECK_INT(mkdir(content, 0700), 0);
        CHECK_INT(start_as(0, words, sizeof(words)), -EPERM);
        CHECK(strstr(words, runs) && strstr(words, "--runtime-dir"));
        CHECK_INT(rmdir(content), 0);
        int used = open(runs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(used >= 0 && flock(used, LOCK_EX) == 0);
        int r = start_as(0, words, sizeof(words));
        close(used);
        CHECK_INT(r, -EBUSY);
        CHECK_INT(rmdir(runs), 0);
}

static void foreign_roots_are_refused(void) {
        struct rundir_root *root;
        char target[80];
        (void) rmdir(runs);
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
                CHECK_INT(mkdir(run7, 0777), 0);
                CHECK_INT(chown(runs, 65534, (gid_t) -1), 0);
                CHECK_INT(rundir_root_new(&root, base), -EPERM);
                CHECK_INT(rmdir(run7), 0);
                CHECK_INT(rmdir(runs), 0);
        }
}

/* The directory itself shall be no link; one on the way to it, as /var/run is, may be. */
static void a_linked_runtime_dir_is_refused(void) {
        struct rundir_root *root;
        char real[80], link[80], slash[90], below[100];
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
        (void) snprintf(below, sizeof(below), "%s/below/runs", link);
        CHECK_INT(rmdir(below), 0);
        (void) snprintf(below, sizeof(below), "%s/below", link);
        CHECK_INT(rmdir(below), 0);
        CHECK_INT(unlink(link), 0);
        CHECK_INT(rmdir(real), 0);
}

/* Directories below `fd`, which is closed, each in the one before; so deep that no path could name the last. */
static bool nest(int fd, unsigned depth) {
        for (unsigned i = 0; i < depth; i++) {
                if (mkdirat(fd, "d", 0700) < 0)
                        return false;
                int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                close(openat(fd, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
                if (i % 3 == 2 && fchmod(fd, 0) < 0)
                        return false;
                close(fd);
                fd = next;
        }
        close(fd);
        return true;
}

/* A fresh descriptor for reading of the directory that an agent has one of. */
static int open_run(struct rundir_root *root, int64_t id, uid_t uid) {
        int fd = -1;
        if (rundir_new(root, id, uid, (gid_t) -1, &fd) < 0)
                return -1;
        int at = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        return at;
}

static void depth_has_no_limit(void) {
        struct rundir_root *root;
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK(nest(open_run(root, 7, (uid_t) -1), 3000));
        unsigned open_before = entries("/proc/self/fd");
        CHECK_INT(rundir_remove(root, 7), 0);
        int fd = -1;
        CHECK_INT(rundir_new(root, 7, (uid_t) -1, 0, &fd), 0); /* the run's next attempt does not wait */
        close(fd);
        CHECK_INT(rundir_remove(root, 7), 0);
        CHECK(rundir_settle(root, SOON));
        CHECK_UINT(entries(runs), 0);
        CHECK_UINT(entries("/proc/self/fd"), open_before);
        CHECK_UINT(rundir_left(root, NULL, 0), 0);
        rundir_root_free(root);
        CHECK_UINT(entries(runs), 0);
}

/* The names that the removal gives are taken, by directories with something in them and by files. */
static void names_may_be_taken(void) {
        struct rundir_root *root;
        char name[32];
        CHECK_INT(rundir_root_new(&root, base), 0);
        int at = open_run(root, 7, (uid_t) -1);
        for (int i = 0; i < 50; i++) {
                (void) snprintf(name, sizeof(name), "deep-%d", i);
                if (i % 2)
                        close(openat(at, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
                else {
                        CHECK_INT(mkdirat(at, name, 0700), 0);
                        CHECK(nest(openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 3));
                }
        }
        close(at);
        CHECK_INT(rundir_remove(root, 7), 0);
        CHECK(rundir_settle(root, SOON));
        CHECK_UINT(entries(runs), 0);
        CHECK_UINT(rundir_left(root, NULL, 0), 0);
        rundir_root_free(root);
}

static bool fill(int at, unsigned files) {
        char name[32];
        for (unsigned i = 0; i < files; i++) {
                (void) snprintf(name, sizeof(name), "%u", i);
                if (mknodat(at, name, S_IFREG | 0600, 0) < 0)
                        return false;
        }
        return true;
}

/* More than one portion; neither the caller nor the next start is delayed meanwhile, and a stop does not wait for all
 * of it. */
static void many_files_go_in_the_background(void) {
        struct rundir_root *root;
        char left[200] = "";
        CHECK_INT(rundir_root_new(&root, base), 0);
        int at = open_run(root, 7, (uid_t) -1);
        CHECK(fill(at, 120000));
        close(at);
        CHECK_INT(rundir_remove(root, 7), 0);
        CHECK(!rundir_settle(root, 0)); /* it has returned, and they are still there */
        CHECK(rundir_settle(root, SOON));
        CHECK_UINT(entries(runs), 0);
        CHECK_UINT(rundir_left(root, left, sizeof(left)), 0);
        at = open_run(root, 8, (uid_t) -1);
        CHECK(fill(at, 120000));
        close(at);
        rundir_root_free(root); /* as a killed daemon leaves it */
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK(!rundir_settle(root, 0)); /* the start has not waited */
        CHECK(rundir_settle(root, SOON));
        CHECK_UINT(entries(runs), 0);
        rundir_root_free(root);
}

/* What it still empties is no longer there. */
static void it_is_made_anew_while_the_remover_is_at_work(void) {
        struct rundir_root *root;
        char doomed[80], elsewhere[80];
        struct stat full, st;
        int fd = -1;
        (void) snprintf(doomed, sizeof(doomed), "%s/removed-0", runs);
        (void) snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", base);
        CHECK_INT(rundir_root_new(&root, base), 0);
        int at = open_run(root, 7, (uid_t) -1);
        CHECK(fill(at, 120000));
        CHECK_INT(fstat(at, &full), 0);
        CHECK_INT(rundir_remove(root, 7), 0);
        for (st = full; st.st_mtim.tv_sec == full.st_mtim.tv_sec && st.st_mtim.tv_nsec == full.st_mtim.tv_nsec;)
                CHECK_INT(fstat(at, &st), 0); /* until the remover is at work */
        close(at);
        CHECK_INT(rename(doomed, elsewhere), 0);
        CHECK_INT(rmdir(runs), 0);
        int r = rundir_new(root, 8, (uid_t) -1, 0, &fd);
        CHECK(!rundir_settle(root, 0));
        CHECK_INT(r, 0);
        close(fd);
        CHECK_INT(rundir_remove(root, 8), 0);
        CHECK(rundir_settle(root, SOON));
        CHECK_UINT(rundir_left(root, NULL, 0), 0);
        CHECK_INT(rmdir(elsewhere), 0);
        rundir_root_free(root);
        CHECK_UINT(entries(runs), 0);
}

/* A directory that cannot be removed is one that something is mounted in. In a mount namespace of this process's own.
 */
static void what_stays_is_named_and_delays_no_start(void) {
        struct rundir_root *root;
        char inner[200], left[300] = "", want[200];
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                SKIP("no mount namespace: %s", strerrordesc_np(errno));
        CHECK_INT(rundir_root_new(&root, base), 0);
        int at = open_run(root, 7, (uid_t) -1);
        CHECK(mkdirat(at, "mounted", 0700) == 0 && mkdirat(at, "other", 0700) == 0);
        close(at);
        (void) snprintf(inner, sizeof(inner), "%s/mounted", run7);
        CHECK_INT(mount("none", inner, "tmpfs", 0, NULL), 0);
        CHECK_INT(rundir_remove(root, 7), 0);
        CHECK(rundir_settle(root, SOON));
        CHECK_UINT(rundir_left(root, left, sizeof(left)), 1);
        (void) snprintf(want, sizeof(want), "%s/removed-0 cannot be removed: Invalid cross-device link", runs);
        CHECK_STRING(left, want);
        (void) snprintf(inner, sizeof(inner), "%s/removed-0", runs);
        CHECK_UINT(entries(inner), 1); /* all else is gone */
        rundir_root_free(root);
        for (int life = 0; life < 2; life++) { /* neither does it stop a start, nor a run of the same number */
                CHECK_INT(rundir_root_new(&root, base), 0);
                CHECK(rundir_settle(root, SOON));
                CHECK_UINT(rundir_left(root, left, sizeof(left)), 1);
                close(open_run(root, 7, (uid_t) -1));
                CHECK_INT(rundir_remove(root, 7), 0);
                rundir_root_free(root);
        }
        (void) snprintf(inner, sizeof(inner), "%s/removed-0/mounted", runs);
        CHECK_INT(umount2(inner, MNT_DETACH), 0);
        CHECK_INT(rundir_root_new(&root, base), 0);
        CHECK(rundir_settle(root, SOON));
        CHECK_UINT(rundir_left(root, left, sizeof(left)), 0);
        rundir_root_free(root);
        CHECK_UINT(entries(runs), 0);
}

/* A process with a descriptor of a directory from before goes on adding to it, as fast as it is emptied. */
static void a_process_that_goes_on_adding_is_shut_out(void) {
        struct rundir_root *root;
        if (geteuid() != 0)
                SKIP("only root has agents of another user");
        CHECK_INT(rundir_root_new(&root, base), 0);
        int at = open_run(root, 7, 65534);
        CHECK_INT(mkdirat(at, "deep", 0700), 0);
        CHECK_INT(fchownat(at, "deep", 65534, (gid_t) -1, 0), 0);
        int deep = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        pid_t pid = fork();
        if (pid == 0) {
                char name[32];
                if (setresuid(65534, 65534, 65534) < 0)
                        _exit(2);
                for (unsigned i = 0;; i++) {
                        (void) snprintf(name, sizeof(name), "%u", i);
                        if (mknodat(deep, name, S_IFREG | 0600, 0) < 0 && errno != EEXIST)
                                _exit(errno == EACCES || errno == ENOENT ? 0 : 1);
                }
        }
        close(deep);
        char adding[100];
        (void) snprintf(adding, sizeof(adding), "%s/deep", run7);
        for (uint64_t until = SOON; entries(adding) < 100 && util_now_ns() < until;)
                (void) poll(NULL, 0, 1);
        CHECK_INT(rundir_remove(root, 7), 0);
        CHECK(rundir_settle(root, SOON));
        CHECK_UINT(entries(runs), 0);
        int status = -1;
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK_INT(status, 0);
        rundir_root_free(root);
}

int main(void) {
        log_open(LOG_ERR - 1); /* the failures are wanted */
        if (!mkdtemp(base)) {
                (void) snprintf(base, sizeof(base), "/tmp/ipclab-test-rundir-XXXXXX");
                if (!mkdtemp(base))
                        return 1;
        }
        (void) snprintf(runs, sizeof(runs), "%s/runs", base);
        (void) snprintf(run7, sizeof(run7), "%s/run-7", runs);
        RUN(directory_is_private_and_goes);
        RUN(links_are_removed_not_followed);
        RUN(leftovers_are_removed_at_start);
        RUN(the_directory_itself_stays);
        RUN(what_is_removed_meanwhile_is_made_anew);
        RUN(what_took_its_place_is_not_used);
        RUN(another_users_in_its_place_is_replaced);
        RUN(missing_parents_are_made_anew);
        RUN(it_does_not_stay_in_a_foreign_directory);
        RUN(what_another_users_daemon_left_is_named);
        RUN(foreign_roots_are_refused);
        RUN(a_linked_runtime_dir_is_refused);
        RUN(depth_has_no_limit);
        RUN(names_may_be_taken);
        RUN(many_files_go_in_the_background);
        RUN(it_is_made_anew_while_the_remover_is_at_work);
        RUN(a_process_that_goes_on_adding_is_shut_out);
        RUN(what_stays_is_named_and_delays_no_start); /* the last one: it leaves the mount namespace */
        return rmdir(runs) < 0 || rmdir(base) < 0 ? 1 : check_end();
}
