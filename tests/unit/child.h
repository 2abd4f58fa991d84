/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_CHILD_H
#define IPCLAB_TESTS_CHILD_H

/* Children of a test: those that do a piece of work and end, and those that report when they are ready, so that it
 * needs no pause of a fixed length. */

#include "schema/util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*child_work)(void *userdata);

/* Does the work in a process of its own. What it returned, 0 to 255; -1: a signal ended it, or there was no process. */
static inline int child_does(child_work work, void *userdata) {
        int status;
        (void) fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
                _exit(work(userdata));
        return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Does the work in a process that is killed when it is done, as by a crash. 0; -EIO: the work has failed; -errno. */
static inline int child_crashes_after(child_work work, void *userdata) {
        int status;
        (void) fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
                _exit(work(userdata) == 0 && raise(SIGKILL) == 0);
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                return -errno;
        return WIFSIGNALED(status) ? 0 : -EIO;
}

/* fork(2), with the end of a pipe at which the child reports, and from which the parent reads. */
static inline pid_t child_fork(int *ret_ready) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -1;
        pid_t pid = fork();
        *ret_ready = ends[pid == 0];
        util_close(ends[pid != 0]);
        if (pid < 0)
                *ret_ready = util_close(*ret_ready);
        return pid;
}

/* In the child. */
static inline bool child_report(int ready) {
        return write(ready, "y", 1) == 1;
}

/* In the parent: whether the child, or those that it has forked, have reported n times. Closes its end. */
static inline bool child_is_ready(pid_t pid, int ready, unsigned n) {
        char byte;
        bool is = pid > 0;
        while (is && n-- > 0)
                is = read(ready, &byte, 1) == 1 && byte == 'y';
        if (pid > 0)
                util_close(ready);
        return is;
}

#endif
