/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The facts and settings of a host, and of the build that measures: the members of a run's environment that stay the
 * same until a person changes them. The daemon reads each (daemon/host/environment/environment-facts.c, build.c), and
 * `require` of a spec may name any of them. How a requirement is parsed and described, what a bundle has of a fact,
 * which hosts are alike and its description in the OpenAPI follow from the row.
 *
 * Source of the choices: Documentation/admin-guide/mm/transhuge.rst.
 */

#include <stdbool.h>
#include <stddef.h>

#define FACT_OF_EACH_CPU "One value for all CPUs, or \"VALUE CPUS; VALUE CPUS\" where they differ."

/* Enumerator; name; form; what a bundle has of it, a bundle_form (api/handle/bundle/bundle-fields.h); whether figures
 * are comparable only where it is the same; the file that has it, NULL where it takes several; its description, NULL
 * where the name suffices; the choices. A new fact is a row here, and a reader where it is not a file. */
#define FACTS(ROW)                                                                                                     \
        ROW(HOSTNAME, "hostname", TEXT, OUT, false, "/proc/sys/kernel/hostname", NULL, NULL)                           \
        ROW(KERNEL_RELEASE, "kernel_release", TEXT, RELEASE, true, "/proc/sys/kernel/osrelease", NULL, NULL)           \
        ROW(KERNEL_VERSION, "kernel_version", TEXT, OUT, true, "/proc/sys/kernel/version", NULL, NULL)                 \
        ROW(KERNEL_CMDLINE, "kernel_cmdline", TEXT, CMDLINE, false, "/proc/cmdline", NULL, NULL)                       \
        ROW(BOOT_ID, "boot_id", TEXT, OUT, false, "/proc/sys/kernel/random/boot_id", "Another one after each boot.",   \
            NULL)                                                                                                      \
        ROW(CLOCKSOURCE, "clocksource", TEXT, PLAIN, true,                                                             \
            "/sys/devices/system/clocksource/clocksource0/current_clocksource", NULL, NULL)                            \
        ROW(SMT, "smt", TEXT, PLAIN, true, "/sys/devices/system/cpu/smt/control", NULL, NULL)                          \
        ROW(THP, "transparent_hugepage", CHOICE, PLAIN, true, "/sys/kernel/mm/transparent_hugepage/enabled",           \
            "The setting of private memory: /sys/kernel/mm/transparent_hugepage/enabled.", "always", "madvise",        \
            "never")                                                                                                   \
        ROW(THP_DEFRAG, "transparent_hugepage_defrag", CHOICE, PLAIN, true,                                            \
            "/sys/kernel/mm/transparent_hugepage/defrag", "Whether a page fault waits for a huge page to be made.",    \
            "always", "defer", "defer+madvise", "madvise", "never")                                                    \
        ROW(THP_SHMEM, "transparent_hugepage_shmem", CHOICE, PLAIN, true,                                              \
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled", "The setting of shared memory: …/shmem_enabled.",     \
            "always", "within_size", "advise", "never", "deny", "force")                                               \
        ROW(THP_SIZES, "transparent_hugepage_sizes", TEXT, PLAIN, true, NULL,                                          \
            "The sizes of huge pages that the kernel makes of private memory: those whose hugepages-*kB/enabled is "   \
            "not never, with its word (\"64kB always, 2048kB inherit\"); inherit: as transparent_hugepage has it. "    \
            "\"never\": none.",                                                                                        \
            NULL)                                                                                                      \
        ROW(THP_SHMEM_SIZES, "shmem_hugepage_sizes", TEXT, PLAIN, true, NULL,                                          \
            "The same of shared memory: hugepages-*kB/shmem_enabled; inherit: as transparent_hugepage_shmem has it.",  \
            NULL)                                                                                                      \
        ROW(CPUIDLE_DRIVER, "cpuidle_driver", TEXT, PLAIN, true, "/sys/devices/system/cpu/cpuidle/current_driver",     \
            NULL, NULL)                                                                                                \
        ROW(SCHED_EXT, "sched_ext", TEXT, PLAIN, true, "/sys/kernel/sched_ext/state",                                  \
            "Whether a scheduler of sched_ext is at work.", NULL)                                                      \
        ROW(SCHED_EXT_OPS, "sched_ext_ops", TEXT, OUT, true, "/sys/kernel/sched_ext/root/ops", "Its name.", NULL)      \
        ROW(SCHED_BASE_SLICE, "sched_base_slice_ns", NUMBER, COUNT, true, "/sys/kernel/debug/sched/base_slice_ns",     \
            NULL, NULL)                                                                                                \
        ROW(ISOLATED_CPUS, "isolated_cpus", TEXT, PLAIN, true, "/sys/devices/system/cpu/isolated",                     \
            "isolcpus= and the like; \"\": none.", NULL)                                                               \
        ROW(NOHZ_FULL_CPUS, "nohz_full_cpus", TEXT, PLAIN, true, "/sys/devices/system/cpu/nohz_full", NULL, NULL)      \
        ROW(IRQ_DEFAULT_AFFINITY, "irq_default_affinity", TEXT, PLAIN, false, "/proc/irq/default_smp_affinity",        \
            "Mask of the CPUs that new interrupts may be sent to.", NULL)                                              \
        ROW(LSM, "lsm", TEXT, PLAIN, true, "/sys/kernel/security/lsm", "Security modules at work.", NULL)              \
        ROW(NUMA_BALANCING, "numa_balancing", NUMBER, COUNT, true, "/proc/sys/kernel/numa_balancing", NULL, NULL)      \
        ROW(RANDOMIZE_VA_SPACE, "randomize_va_space", NUMBER, COUNT, false, "/proc/sys/kernel/randomize_va_space",     \
            NULL, NULL)                                                                                                \
        ROW(SWAPPINESS, "swappiness", NUMBER, COUNT, false, "/proc/sys/vm/swappiness", NULL, NULL)                     \
        ROW(OVERCOMMIT_MEMORY, "overcommit_memory", NUMBER, COUNT, false, "/proc/sys/vm/overcommit_memory", NULL,      \
            NULL)                                                                                                      \
        ROW(ZONE_RECLAIM_MODE, "zone_reclaim_mode", NUMBER, COUNT, false, "/proc/sys/vm/zone_reclaim_mode", NULL,      \
            NULL)                                                                                                      \
        ROW(NR_HUGEPAGES, "nr_hugepages", NUMBER, COUNT, false, "/proc/sys/vm/nr_hugepages", NULL, NULL)               \
        ROW(NMI_WATCHDOG, "nmi_watchdog", NUMBER, COUNT, false, "/proc/sys/kernel/nmi_watchdog", NULL, NULL)           \
        ROW(SCHED_AUTOGROUP, "sched_autogroup_enabled", NUMBER, COUNT, false,                                          \
            "/proc/sys/kernel/sched_autogroup_enabled", NULL, NULL)                                                    \
        ROW(PERF_EVENT_PARANOID, "perf_event_paranoid", NUMBER, NUMBER, false, "/proc/sys/kernel/perf_event_paranoid", \
            NULL, NULL)                                                                                                \
        ROW(PIPE_MAX_SIZE, "pipe_max_size", NUMBER, COUNT, false, "/proc/sys/fs/pipe-max-size", NULL, NULL)            \
        ROW(PIPE_USER_PAGES_SOFT, "pipe_user_pages_soft", NUMBER, COUNT, false, "/proc/sys/fs/pipe-user-pages-soft",   \
            NULL, NULL)                                                                                                \
        ROW(MSGMAX, "msgmax", NUMBER, COUNT, false, "/proc/sys/kernel/msgmax", NULL, NULL)                             \
        ROW(MSGMNB, "msgmnb", NUMBER, COUNT, false, "/proc/sys/kernel/msgmnb", NULL, NULL)                             \
        ROW(SHMMAX, "shmmax", TEXT, PLAIN, false, "/proc/sys/kernel/shmmax",                                           \
            "A decimal number, which may be above 2^63.", NULL)                                                        \
        ROW(MQUEUE_MSG_MAX, "mqueue_msg_max", NUMBER, COUNT, false, "/proc/sys/fs/mqueue/msg_max", NULL, NULL)         \
        ROW(MQUEUE_MSGSIZE_MAX, "mqueue_msgsize_max", NUMBER, COUNT, false, "/proc/sys/fs/mqueue/msgsize_max", NULL,   \
            NULL)                                                                                                      \
        ROW(WMEM_MAX, "wmem_max", NUMBER, COUNT, false, "/proc/sys/net/core/wmem_max", NULL, NULL)                     \
        ROW(WMEM_DEFAULT, "wmem_default", NUMBER, COUNT, false, "/proc/sys/net/core/wmem_default", NULL, NULL)         \
        ROW(RMEM_MAX, "rmem_max", NUMBER, COUNT, false, "/proc/sys/net/core/rmem_max", NULL, NULL)                     \
        ROW(RMEM_DEFAULT, "rmem_default", NUMBER, COUNT, false, "/proc/sys/net/core/rmem_default", NULL, NULL)         \
        ROW(OPTMEM_MAX, "optmem_max", NUMBER, COUNT, false, "/proc/sys/net/core/optmem_max", NULL, NULL)               \
        ROW(TCP_WMEM, "tcp_wmem", TEXT, PLAIN, false, "/proc/sys/net/ipv4/tcp_wmem", NULL, NULL)                       \
        ROW(TCP_RMEM, "tcp_rmem", TEXT, PLAIN, false, "/proc/sys/net/ipv4/tcp_rmem", NULL, NULL)                       \
        ROW(TCP_CONGESTION_CONTROL, "tcp_congestion_control", TEXT, PLAIN, true,                                       \
            "/proc/sys/net/ipv4/tcp_congestion_control", NULL, NULL)                                                   \
        ROW(LOOPBACK_MTU, "loopback_mtu", NUMBER, COUNT, true, "/sys/class/net/lo/mtu", NULL, NULL)                    \
        ROW(IO_URING_DISABLED, "io_uring_disabled", NUMBER, COUNT, false, "/proc/sys/kernel/io_uring_disabled", NULL,  \
            NULL)                                                                                                      \
        ROW(MACHINE, "machine", TEXT, OUT, true, NULL,                                                                 \
            "The machine id as ipclab derives it for itself; the id itself is not shown.", NULL)                       \
        ROW(CPU_MODEL, "cpu_model", TEXT, TEXT, true, NULL, NULL, NULL)                                                \
        ROW(MICROCODE, "microcode", TEXT, PLAIN, true, NULL, NULL, NULL)                                               \
        ROW(VIRTUALIZATION, "virtualization", TEXT, MAKE, true, NULL, NULL, NULL)                                      \
        ROW(CPUFREQ_DRIVER, "cpufreq_driver", TEXT, PLAIN, true, NULL, FACT_OF_EACH_CPU, NULL)                         \
        ROW(CPUFREQ_GOVERNOR, "cpufreq_governor", TEXT, PLAIN, true, NULL, FACT_OF_EACH_CPU, NULL)                     \
        ROW(CPUFREQ_MIN_KHZ, "cpufreq_min_khz", TEXT, PLAIN, true, NULL, FACT_OF_EACH_CPU, NULL)                       \
        ROW(CPUFREQ_MAX_KHZ, "cpufreq_max_khz", TEXT, PLAIN, true, NULL, FACT_OF_EACH_CPU, NULL)                       \
        ROW(CPUFREQ_ENERGY_PREFERENCE, "cpufreq_energy_preference", TEXT, PLAIN, true, NULL, FACT_OF_EACH_CPU, NULL)   \
        ROW(CPUIDLE_STATES, "cpuidle_states", TEXT, PLAIN, true, NULL,                                                 \
            "As the kernel numbers them, with (off) for what is disabled. " FACT_OF_EACH_CPU, NULL)                    \
        ROW(TURBO, "turbo", CHOICE, PLAIN, true, NULL, NULL, "on", "off")                                              \
        ROW(CPUIDLE_GOVERNOR, "cpuidle_governor", TEXT, PLAIN, true, NULL, NULL, NULL)                                 \
        ROW(DEVICE_IRQS, "device_irqs", TEXT, PLAIN, false, NULL,                                                      \
            "How many device interrupts are routed to each CPU: \"COUNT CPUS; COUNT CPUS\".", NULL)                    \
        ROW(PREEMPTION, "preemption", TEXT, PLAIN, true, NULL, "none, voluntary, lazy, full or rt.", NULL)             \
        ROW(RCU_NOCBS_CPUS, "rcu_nocbs_cpus", TEXT, PLAIN, true, NULL,                                                 \
            "The value on the kernel's command line; \"\": none.", NULL)                                               \
        ROW(CGROUP_CPU_LIMIT, "cgroup_cpu_limit", TEXT, PLAIN, true, NULL,                                             \
            "CPU limits of the daemon's cgroup and of those above it, each \"QUOTA PERIOD\" in microseconds; max: "    \
            "none.",                                                                                                   \
            NULL)                                                                                                      \
        ROW(AGENT_SCHEDULING, "agent_scheduling", TEXT, PLAIN, true, NULL,                                             \
            "Policy and nice, or priority, that agents inherit (each one's is effective.scheduling).", NULL)           \
        ROW(AGENT_SECCOMP, "agent_seccomp", CHOICE, PLAIN, true, NULL,                                                 \
            "Whether a filter runs at each system call of an agent (effective.seccomp).", "disabled", "strict",        \
            "filter")                                                                                                  \
        ROW(GLIBC, "glibc", TEXT, PLAIN, true, NULL, NULL, NULL)                                                       \
        ROW(AUDIT, "audit", CHOICE, PLAIN, true, NULL,                                                                 \
            "The value on the kernel's command line, with which nobody can begin it; null where that leaves it open.", \
            "off")                                                                                                     \
        ROW(NTP, "ntp", CHOICE, PLAIN, false, NULL,                                                                    \
            "Whether the kernel's clock is disciplined by a reference, which slews CLOCK_MONOTONIC (adjtimex(2)).",    \
            "synchronized", "unsynchronized")

enum fact_name {
#define ROW(id, ...) FACT_##id,
        FACTS(ROW)
#undef ROW
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
        bool comparable; /* figures are, only where it is the same */
        const char *path, *description;
        const char *choices[FACT_CHOICES_MAX]; /* of FACT_CHOICE: those of any kernel; NULL ends them */
};

extern const struct fact_row fact_rows[FACT_COUNT];
extern const struct fact_row build_rows[BUILD_COUNT]; /* members of the object "build" */
