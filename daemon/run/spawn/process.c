/* SPDX-License-Identifier: MIT */

/* Making a process in one of two ways. Owns nothing. Called for agents (spawn.c) and for the helpers of IPC namespaces
 * (ipcns.c). Source: man 2 clone, Documentation/admin-guide/cgroup-v2.rst (cgroup.procs). */

#include "daemon/run/spawn/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t process_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd, int *ret_joins) {
        struct clone_args args = {.flags = flags | CLONE_PIDFD, .pidfd = (uintptr_t) ret_pidfd, .exit_signal = SIGCHLD};
        if (cgroup_fd >= 0) {
                args.flags |= CLONE_INTO_CGROUP;
                args.cgroup = (uint64_t) cgroup_fd;
        }
        *ret_joins = -1;
        long pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid >= 0)
                return (pid_t) pid;
        if (errno != ENOSYS)
                return -errno;
        *ret_joins = cgroup_fd;
        /* Without CLONE_VM and a stack the order of the arguments, which differs by architecture, does not matter
         * beyond the first and the third. */
        pid = syscall(SYS_clone, (unsigned long) (flags | CLONE_PIDFD | SIGCHLD), 0UL, ret_pidfd, 0UL, 0UL);
        return pid < 0 ? -errno : (pid_t) pid;
}

int process_join(int cgroup_fd) {
        int fd = openat(cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return errno;
        int e = write(fd, "0", 1) == 1 ? 0 : errno; /* 0 stands for the writing process */
        (void) close(fd);
        return e;
}
