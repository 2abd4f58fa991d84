/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_FACTS_H
#define IPCLAB_SCHEMA_FACTS_H

/*
 * The facts and settings of a host, and of the build that measures: the members of a run's environment that stay the
 * same while nobody changes them. The daemon reads each (daemon/host/environment-facts.c, build.c), and `require` of a
 * spec may ask for any of them; how a requirement is parsed and described follows from the row.
 */

enum fact_name {
        FACT_HOSTNAME,
        FACT_KERNEL_RELEASE,
        FACT_KERNEL_VERSION,
        FACT_KERNEL_CMDLINE,
        FACT_BOOT_ID,
        FACT_CLOCKSOURCE,
        FACT_SMT,
        FACT_THP,
        FACT_THP_DEFRAG,
        FACT_THP_SHMEM,
        FACT_CPUIDLE_DRIVER,
        FACT_SCHED_EXT,
        FACT_SCHED_EXT_OPS,
        FACT_SCHED_BASE_SLICE,
        FACT_ISOLATED_CPUS,
        FACT_NOHZ_FULL_CPUS,
        FACT_IRQ_DEFAULT_AFFINITY,
        FACT_LSM,
        FACT_NUMA_BALANCING,
        FACT_RANDOMIZE_VA_SPACE,
        FACT_SWAPPINESS,
        FACT_OVERCOMMIT_MEMORY,
        FACT_ZONE_RECLAIM_MODE,
        FACT_NR_HUGEPAGES,
        FACT_NMI_WATCHDOG,
        FACT_SCHED_AUTOGROUP,
        FACT_PERF_EVENT_PARANOID,
        FACT_PIPE_MAX_SIZE,
        FACT_PIPE_USER_PAGES_SOFT,
        FACT_MSGMAX,
        FACT_MSGMNB,
        FACT_SHMMAX,
        FACT_MQUEUE_MSG_MAX,
        FACT_MQUEUE_MSGSIZE_MAX,
        FACT_WMEM_MAX,
        FACT_WMEM_DEFAULT,
        FACT_RMEM_MAX,
        FACT_RMEM_DEFAULT,
        FACT_OPTMEM_MAX,
        FACT_TCP_WMEM,
        FACT_TCP_RMEM,
        FACT_TCP_CONGESTION_CONTROL,
        FACT_LOOPBACK_MTU,
        FACT_IO_URING_DISABLED,
        FACT_MACHINE,
        FACT_CPU_MODEL,
        FACT_MICROCODE,
        FACT_VIRTUALIZATION,
        FACT_CPUFREQ_DRIVER,
        FACT_CPUFREQ_GOVERNOR,
        FACT_CPUFREQ_MIN_KHZ,
        FACT_CPUFREQ_MAX_KHZ,
        FACT_CPUFREQ_ENERGY_PREFERENCE,
        FACT_CPUIDLE_STATES,
        FACT_TURBO,
        FACT_CPUIDLE_GOVERNOR,
        FACT_PREEMPTION,
        FACT_RCU_NOCBS_CPUS,
        FACT_CGROUP_CPU_LIMIT,
        FACT_GLIBC,
        FACT_COUNT,
};

enum build_fact {
        BUILD_VERSION,
        BUILD_COMMIT,
        BUILD_DAEMON_SHA256,
        BUILD_AGENT_SHA256,
        BUILD_COUNT,
};

enum fact_form {
        FACT_TEXT,   /* one line */
        FACT_NUMBER, /* int64_t */
        FACT_CHOICE, /* one of the words that the kernel offers */
        FACT_SHA256, /* 64 hexadecimal digits */
};

#define FACT_CHOICES_MAX 8u

struct fact_row {
        const char *name;
        enum fact_form form;
        const char *choices[FACT_CHOICES_MAX]; /* of FACT_CHOICE: those of any kernel; NULL ends them */
};

extern const struct fact_row fact_rows[FACT_COUNT];
extern const struct fact_row build_rows[BUILD_COUNT]; /* members of the object "build" */

#endif
