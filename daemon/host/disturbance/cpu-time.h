/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads how long each CPU has run tasks, from the most exact source that this kernel has, and the other times of
 * /proc/stat.
 * The files stay open, so that a reading every second costs two system calls for each. Called by run/watch/watch.c.
 *
 *      cpuacct    cpuacct.usage_percpu of the root cgroup (v1): ns, charged as a task's own CPU time is
 *      schedstat  /proc/schedstat, run time of each CPU: ns, credited when a task leaves the CPU. A task that does not
 *                 leave for long is credited late, never wrongly.
 *      idle       the time that passed less idle, iowait and steal of /proc/stat: the kernel measures idle time where
 *                 it enters and leaves it (NO_HZ), and shows it in steps of 10 ms
 *
 * All are of the same kind as a task's own CPU time: none is a sample by tick, as user and system of /proc/stat are.
 * The last two contain the time of interrupts. Where a task's own CPU time does not (IRQ_TIME_ACCOUNTING), interrupts
 * and softirqs of /proc/stat are taken off: they are exact there, but for ksoftirqd's time. That is the own CPU time of
 * a task, and the kernel counts it among the softirqs, too, by the tick. So it is in cpuacct's figure, and in the other
 * two only where interrupts are not taken off.
 *
 * Source: Documentation/admin-guide/cgroup-v1/cpuacct.rst, Documentation/scheduler/sched-stats.rst, man 5 proc_stat,
 * kernel/sched/cputime.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cpu_time_source { CPU_TIME_CPUACCT, CPU_TIME_SCHEDSTAT, CPU_TIME_IDLE, CPU_TIME_SOURCES };

const char *cpu_time_source_name(enum cpu_time_source source); /* "cpuacct", "schedstat", "idle" */

/* The step in which /proc/stat shows times, each rounded down. */
#define CPU_TIME_STEP_NS INT64_C(10000000)
/* How much rounding may add to the sum of such a time over n_cpus CPUs, of each of which a step may have begun long
 * before: for few CPUs as many steps, for many about the root of their number, of which twice as much is rare. */
double cpu_time_rounding_ns(size_t n_cpus);

/* The times of one CPU, since some moment before; only differences mean something. */
struct cpu_times {
        int64_t run_ns;                                /* tasks of all processes */
        int64_t idle_ns, irq_ns, softirq_ns, steal_ns; /* in steps of 10 ms; idle with iowait */
        int64_t counted_ns;                            /* likewise, of whatever kind: a CPU that runs counts all time */
        bool known;                                    /* false: the CPU was not listed, as one that is offline */
};

struct cpu_time {
        enum cpu_time_source source;
        bool irq_apart; /* tasks' times do not contain interrupts */
        int source_fd, stat_fd;
        uint64_t stat_ns[2]; /* CLOCK_MONOTONIC just before and after /proc/stat was read last */
        int *possible;       /* CPUs in the order of cpuacct.usage_percpu */
        size_t n_possible;
        char *buffer;
        size_t size;
};

/* The first source that can be opened and read. 0; -ENOMEM; -errno when not even /proc/stat can be read. root: "", or
 * the folder of a captured tree. */
int cpu_time_open(const char *root, struct cpu_time *ret);
void cpu_time_close(struct cpu_time *c);
/* Whether softirqs, and with them the time of ksoftirqd, are taken off run_ns. */
bool cpu_time_softirqs_apart(const struct cpu_time *c);
/* ret[i] is of CPU ids[i]; ids ascending. now_ns: CLOCK_MONOTONIC, just before. 0; -errno; -EBADMSG. */
int cpu_time_read(struct cpu_time *c, uint64_t now_ns, const int *ids, size_t n, struct cpu_times *ret);
