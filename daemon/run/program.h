/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_PROGRAM_H
#define IPCLAB_DAEMON_PROGRAM_H

/*
 * The program that agents execute. It is looked at once, when the daemon starts, and copied into sealed memory that its
 * user may execute and nobody may read: an agent that is replaced on disk, even in place, does not meet a daemon that
 * does not know it, and a process of such a program is not dumpable from its first instruction. Of what is not dumpable
 * no other process without CAP_SYS_PTRACE may use ptrace(2), pidfd_getfd(2), /proc/PID/fd or /proc/PID/mem.
 *
 * Source: man 2 memfd_create, fcntl (F_ADD_SEALS), man 5 proc (/proc/PID, fs.suid_dumpable), prctl (PR_SET_DUMPABLE).
 */

/* The agent at `path`, as a descriptor for spawn_request.program_fd. Neither a symbolic link nor what another user may
 * change is taken. Where the kernel executes no memory (vm.memfd_noexec = 2) it is the file itself, with a notice in
 * the log: its agents can be looked into until they have made themselves undumpable. 0; negative errno, logged. */
int program_open(const char *path, int *ret_fd);

/* A copy of an open, readable program in sealed memory of mode 0111. 0; -EACCES where the kernel executes no memory;
 * negative errno. */
int program_copy(int fd, int *ret_fd);

#endif
