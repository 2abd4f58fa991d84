/* SPDX-License-Identifier: MIT */
/* Processes and run directories where a filter knows neither clone3(2) nor openat2(2), as under systemd. */

#include "tests/unit/check.h"

#include "daemon/run/sandbox/rundir.h"
#include "daemon/run/spawn/process.h"
#include "schema/util.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static bool forbid_new_calls(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 2, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        };
        struct sock_fprog program = {.len = ELEMENTS(code), .filter = code};
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* A step that failed, from 1; 0: all went well; 77: no filter can be had. */
static int in_filtered_child(int (*steps)(void)) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
                _exit(forbid_new_calls() ? steps() : 77);
        return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int end_of(int pidfd) {
        siginfo_t info = {0};
        return waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED) == 0 && info.si_code == CLD_EXITED ? info.si_status : -1;
}

static int make_process(void) {
        int pidfd = -1, joins = 0;
        pid_t pid = process_clone(0, 4711, &pidfd, &joins);
        if (pid == 0)
                _exit(joins == 4711 ? 42 : 1);
        if (pid < 0)
                return 1;
        return joins == 4711 && pidfd >= 0 && end_of(pidfd) == 42 ? 0 : 2;
}

static void a_process_without_clone3(void) {
        int r = in_filtered_child(make_process);
        if (r == 77)
                SKIP("no filter of system calls can be made here");
        CHECK_INT(r, 0);
}

static void a_process_with_clone3(void) {
        int pidfd = -1, joins = 0;
        pid_t pid = process_clone(0, -1, &pidfd, &joins);
        if (pid == 0)
                _exit(joins == -1 ? 42 : 1);
        CHECK(pid > 0);
        int status = end_of(pidfd);
        util_close(pidfd);
        CHECK_INT(joins, -1);
        CHECK_INT(status, 42);
}

/* joining is a write to cgroup.procs below the descriptor, of the writer itself */
static void joining_writes_to_the_group(void) {
        char dir[] = "/tmp/ipclab-process.XXXXXX", path[64], text[8] = "";
        CHECK(mkdtemp(dir) != NULL);
        _cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int missing = process_join(fd);
        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
        _cleanup_close_ int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        int joined = process_join(fd);
        ssize_t n = pread(file, text, sizeof(text) - 1, 0);
        (void) unlink(path);
        (void) rmdir(dir);
        CHECK_INT(missing, ENOENT);
        CHECK_INT(joined, 0);
        CHECK_INT(n, 1);
        CHECK_STRING(text, "0");
}

static char runtime[] = "/tmp/ipclab-process.XXXXXX";

static int make_run_directory(void) {
        struct rundir_root *root;
        int fd;
        char link[128];
        if (rundir_root_new(&root, runtime) < 0)
                return 1;
        if (rundir_new(root, 7, (uid_t) -1, (gid_t) -1, &fd) < 0)
                return 2;
        if (mkdirat(fd, "below", 0000) < 0 || symlinkat("/etc", fd, "link") < 0)
                return 3;
        util_close(fd);
        if (rundir_remove(root, 7) < 0)
                return 4;
        /* a link in the place of a run's directory is not followed, and no run is made in it */
        (void) snprintf(link, sizeof(link), "%s/runs/run-8", runtime);
        if (symlink("/etc", link) < 0)
                return 5;
        if (rundir_new(root, 8, (uid_t) -1, (gid_t) -1, &fd) < 0 || access("/etc/passwd", F_OK) < 0)
                return 6;
        util_close(fd);
        if (rundir_remove(root, 8) < 0)
                return 7;
        rundir_root_free(root);
        return 0;
}

static void run_directories_without_openat2(void) {
        CHECK(mkdtemp(runtime) != NULL);
        int r = in_filtered_child(make_run_directory);
        char runs[64];
        (void) snprintf(runs, sizeof(runs), "%s/runs", runtime);
        int removed = rmdir(runs) < 0 ? -1 : rmdir(runtime);
        if (r == 77)
                SKIP("no filter of system calls can be made here");
        CHECK_INT(r, 0);
        CHECK_INT(removed, 0);
}

int main(void) {
        RUN(a_process_with_clone3);
        RUN(a_process_without_clone3);
        RUN(joining_writes_to_the_group);
        RUN(run_directories_without_openat2);
        return check_end();
}
