/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The program that agents execute. It is checked once, when the daemon starts, and copied into sealed memory that its
 * user may execute and nobody may read: a program that is replaced on disk, even in place, does not run under a daemon
 * of another version, and its processes are not dumpable from the first instruction. A process without CAP_SYS_PTRACE
 * may not use ptrace(2), pidfd_getfd(2), /proc/PID/fd or /proc/PID/mem on one that is not dumpable.
 *
 * Source: man 2 memfd_create, fcntl (F_ADD_SEALS), man 5 proc (/proc/PID, fs.suid_dumpable), prctl (PR_SET_DUMPABLE).
 */

/* The agent at `path`, as a descriptor for spawn_request.program_fd. A symbolic link, and a file that another user may
 * change, are refused. Where the kernel executes no memory (vm.memfd_noexec = 2) it is the file itself, with a notice
 * in the log: its agents can be inspected until they have made themselves undumpable. 0; negative errno, logged. */
int program_open(const char *path, int *ret_fd);

/* A copy of an open, readable program in sealed memory of mode 0111. 0; -EACCES where the kernel executes no memory;
 * negative errno. */
int program_copy(int fd, int *ret_fd);
