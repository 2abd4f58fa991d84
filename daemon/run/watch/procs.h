/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What /proc shows of an agent's processes. They may be hostile: what is looked at of one is limited, as the main loop
 * waits for it.
 */

#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Threads of one process that are looked at: one agent of both ends has two for each of its point, and a few more. */
#define PROCS_TASKS_MAX (2 * SPEC_THREADS_MAX + 64)
#define PROCS_CHILDREN_MAX SPEC_PROCESSES_MAX /* and its children: no workload forks more */

struct procs_stat {
        char state; /* its letter */
        pid_t parent;
        uint64_t start_ticks; /* since the boot */
        char name[16];        /* its command's */
};

/* /proc/PID/task/TID/stat; of a whole process pid twice. False: it cannot be read. Source: man 5 proc_pid_stat. */
bool procs_read_stat(pid_t pid, pid_t tid, struct procs_stat *ret);
/* State letter of /proc/PID/stat, '?' when it cannot be read. Source: man 5 proc_pid_stat. */
char procs_state(pid_t pid);
bool procs_is_stopped(pid_t pid);
/* /proc/PID/task/TID/children, of a thread, or NULL with errno: pids with blanks between, which a reader takes one by
 * one, as a hostile process may have many. Source: man 5 proc_pid_task. */
FILE *procs_open_children(pid_t pid, pid_t tid);
/* The first stopped one of the first children of its main thread, 0: none is. *ret_more: it has further ones, which
 * were not looked at. A kernel without CONFIG_PROC_CHILDREN lists none. */
pid_t procs_stopped_child(pid_t pid, bool *ret_more);

/* Whether a child of any of its threads lives, or it has more than are looked at. */
bool procs_has_live_child(pid_t pid);

/* Whether no thread of a killed process runs any more, and yet it is there: a tracer holds it, of its first thread or
 * of another one, as a zombie or in its exit (PTRACE_O_TRACEEXIT). *ret_tracer: its pid; 0: it is not seen from here.
 * False too of one with more than PROCS_TASKS_MAX threads: not all are looked at.
 * Source: man 2 ptrace, man 5 proc_pid_status (TracerPid). */
bool procs_is_held(pid_t pid, pid_t *ret_tracer);
