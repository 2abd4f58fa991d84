/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_DISTURBANCE_H
#define IPCLAB_DAEMON_DISTURBANCE_H

/*
 * Finds other use of a run's CPUs in each second of its window, and the flags for it: pure arithmetic on readings that
 * run/watch/watch.c takes. Flags are labels on the result and never a reason to drop it; each threshold stands
 * in the .c with its reason.
 *
 *      noisy:foreign-cpu       others ran on a measured CPU
 *      noisy:softirq           softirqs on the measured CPUs that are not the run's own: all of a run that does not use
 *                              the network, else those for packets that did not pass the loopback device; or many such
 *                              packets
 *      noisy:smt-sibling       the other hardware thread of a measured CPU's core was at work
 *      noisy:daemon            ipclabd itself, which had no other CPU to be on
 *      noisy:preemption        involuntary switches of a thread that has its CPU to itself
 *      noisy:run-queue-delay   such a thread waited for its CPU
 *      noisy:quota             a CPU limit of a cgroup stopped it
 *      noisy:frequency         a measured CPU's clock changed within the window
 *      noisy:throttled         a measured CPU, or its package, was throttled for its temperature in some
 *                              second (noise.c: from start to end)
 *      noisy:retransmits       a TCP connection of the run stood still for a lost segment, or some were lost
 *      noisy:stopped           an agent did not run although nothing kept it from running
 *      noisy:load              foreign work anywhere on the machine, in some second or in the mean of the run
 *      noisy:steal             the hypervisor took a measured CPU away in some second (noise.c: in the mean of the run)
 *      noisy:interrupts        many interrupts of devices on a measured CPU in some second (likewise), or much time in
 *                              hard interrupts, where the kernel accounts for it
 *      noisy:standstill        a measured CPU had no clock interrupts, and the kernel counted no steal: whatever runs
 *                              the machine stopped it, or took the CPU away without a count of it
 *
 * A value that is not known is kept as -1 and written as null, with its reason: the worst of several CPUs is of those
 * that were listed, a sum of which one part is missing is not known.
 *
 * The lack of those flags means something only where the window was watched. It was not, and the run has not_observed,
 * where
 *
 *      a part is missing       more than a twentieth of the window lies in no second, or of a window shorter than two
 *                              seconds more than a tenth of a second. What a window by a number of messages loses at
 *                              its end by plan, as no one knows when that comes, does not count: up to half a second.
 *      a second is long        one is longer than 1.6 s, so that its mean hides a disturbance: a reading came late, or
 *                              failed. By plan a second is up to 1.5 s long, as the last one has what is left over.
 *
 * Neither is so beside a quiet machine: by plan, 5 ms at the end of a window are missing, and the first reading of
 * 1135 runs of half a second, on a guest with two CPUs, came 1 ms late in the median and 6 ms at most.
 */

#include "daemon/host/disturbance/cpu-time.h"
#include "daemon/host/disturbance/packets.h"

#include "schema/json/json.h"
#include "schema/observed.h"
#include "schema/terms.h"
#include "schema/util.h"

/* Interrupts of devices a second on one CPU: at 1 to 5 µs each, with the cache lines they take, 1000 cost up to 0.5 %.
 * Timer ticks and IPIs do not count: they are there in every run, and a run's own wake-ups are IPIs. */
#define DISTURBANCE_DEVICE_INTERRUPTS_PER_SECOND 1000.0

enum disturbance_kind {
        DISTURBANCE_FOREIGN_CPU,
        DISTURBANCE_SOFTIRQ,
        DISTURBANCE_SMT_SIBLING,
        DISTURBANCE_DAEMON,
        DISTURBANCE_PREEMPTION,
        DISTURBANCE_RUN_QUEUE_DELAY,
        DISTURBANCE_QUOTA,
        DISTURBANCE_FREQUENCY,
        DISTURBANCE_THROTTLED,
        DISTURBANCE_RETRANSMITS,
        DISTURBANCE_STOPPED,
        DISTURBANCE_LOAD,
        DISTURBANCE_STEAL,
        DISTURBANCE_INTERRUPTS,
        DISTURBANCE_STANDSTILL,
        DISTURBANCE_KINDS
};

/* What agents count. */
enum disturbance_noted {
        DISTURBANCE_STOP_NS, /* how long it stood still */
        DISTURBANCE_MIGRATIONS,
        DISTURBANCE_SENT_AGAIN, /* segments, by its connections */
        DISTURBANCE_SPURIOUS,   /* those of them that are known to have arrived the first time */
        DISTURBANCE_TIMED_OUT,  /* how often a connection stood still until its timer sent again */
        DISTURBANCE_NOTED,
};

/* A CPU of the machine as the run sees it. */
struct disturbance_cpu {
        int id;
        bool measured;
        bool sibling; /* not measured, and of the same core as one that is */
};

/* Properties of the run that the caller knows before its window begins. */
struct disturbance_run {
        enum cpu_time_source source;
        const char *frequency_source;       /* as cpu_frequency_source() */
        const char *no_frequency;           /* why there is none: static; NULL: the machine has none */
        const char *no_throttles;           /* why those of some CPU are not read: likewise */
        const struct disturbance_cpu *cpus; /* all that are online, ascending; must outlive the object */
        size_t n_cpus;
        size_t n_threads;    /* that are observed one by one; 0: none */
        bool roams;          /* threads may move among the measured CPUs, which are then judged together */
        bool shares_cpus;    /* no thread has a CPU to itself: switches and delays are the run's own */
        bool network;        /* softirqs, and what ksoftirqd uses, are the run's own */
        bool softirqs_apart; /* as cpu_time_softirqs_apart(): run_ns contains neither softirqs nor ksoftirqd */
        bool irq_apart;  /* as in struct cpu_time: irq_ns is accounted, and not by the tick, which sees next to none */
        int64_t tick_ns; /* from one clock interrupt to the next, at each of which a softirq is met or not */
        const char *no_interrupts; /* why device_interrupts are not read: static; NULL: they are */
        bool cgroups;              /* a cgroup of the run, or above it, has a CPU controller */
        bool daemon_measured;      /* the daemon may run on a measured CPU */
};

/* Counts since some moment before, all taken at about one time. A count that could not be read is -1. */
struct disturbance_reading {
        uint64_t at_ns;             /* CLOCK_MONOTONIC */
        uint64_t stat_ns[2];        /* likewise, as in struct cpu_time */
        struct cpu_times *cpus;     /* n_cpus */
        int64_t *own_ns;            /* n_cpus: the agents' CPU time on each; not where they roam */
        int64_t *frequency_khz;     /* n_cpus: at this moment, or on average since the reading before */
        int64_t *ksoftirqd_ns;      /* n_cpus: CPU time of the thread that runs a CPU's softirqs when they are many */
        int64_t *device_interrupts; /* n_cpus */
        int64_t *throttles;         /* n_cpus: for their temperature, of core and package */
        struct packets_reading packets;
        int64_t *involuntary, *delay_ns; /* n_threads; -1 also of one that has no measured CPU to itself */
        int64_t own_total_ns;            /* the agents' CPU time */
        int64_t own_measured_ns;         /* likewise, without the threads that are kept off the measured CPUs */
        int64_t daemon_ns;
        int64_t throttled; /* periods in which a quota stopped the run's cgroup, or one above it */
};

/* In shares of one CPU's time, -1: not known; of all measured CPUs together softirq and steal are those of the mean
 * CPU. */
struct disturbance_second {
        uint64_t begin_ns, interval_ns;
        int cpu; /* the measured one with the most foreign time; -1: all of them together, or none was listed */
        double foreign, softirq, steal;                                /* of that CPU */
        double worst_softirq, worst_irq, worst_steal, sibling, daemon; /* of any that is measured, or its sibling */
        double worst_standstill;                                       /* of those of which it is known */
        double involuntary_per_second, delay; /* of the thread with the most; -1: not observed */
        bool standstill_known;                /* of each measured CPU */
        double device_interrupts;             /* per second, of the measured CPU with the most; -1: not known */
        double packets;                       /* per second, others', of all measured CPUs; -1: not known */
        double foreign_softirq;               /* their share of the softirqs; -1: not known */
        double all_softirq;                   /* softirqs of all measured CPUs together; -1: as above */
        int64_t slowest_khz;                  /* of the measured CPUs at the end; -1: not known */
        double clock_change;                  /* of the measured CPU whose clock changed the most; -1: not known */
        int64_t throttled;                    /* periods; -1: not known */
        int64_t throttles;                    /* of the measured CPU with the most; -1: not known */
        int64_t noted[END_COUNT][DISTURBANCE_NOTED]; /* of each agent, by disturbance_end() */
        double load;                                 /* foreign work on the whole machine, in CPUs */
        const char *load_reason;                     /* why it is not known */
};

/* What an agent counted in a time of its own, which lies in one second or in several. */
struct disturbance_note {
        uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
        enum end end;
        enum disturbance_noted what;
        int64_t n; /* -1: not known */
};

/* What was to be watched. */
struct disturbance_window {
        uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; equal: there was none */
        bool counted;              /* it ended with a number of messages */
};

struct disturbance {
        struct disturbance_run run;
        size_t n_measured;
        struct disturbance_second *seconds;
        size_t n, size;
        double least_standstill;            /* of the seconds whose worst_standstill is known; -1: there is none */
        int64_t *carry_ns;                  /* n_cpus, one for those that are measured together, one for all */
        int64_t *slowest_khz, *fastest_khz; /* n_cpus; -1: not known */
        int64_t foreign_total_ns, interval_total_ns;
        bool load_unknown;              /* of some second, as a CPU was not listed */
        int64_t throttled;              /* in the seconds in which it is known */
        bool throttled_unknown;         /* of some second, as a cgroup's count could not be read */
        struct disturbance_note *notes; /* of those with a count above 0 */
        size_t n_notes, notes_size;
        int64_t noted[DISTURBANCE_NOTED]; /* of all agents in the window; -1: not known of some time, or of none */
        bool unknown[DISTURBANCE_NOTED];
        struct disturbance_window window;
        int64_t stopped_ns;   /* of the agent that stood still the longest, in the window: set by the caller; -1: not
                                 known */
        int64_t ksoftirqd_ns; /* on all measured CPUs, in all seconds; -1: not known of each */
};

/* Reasons of values that are not known. */
#define DISTURBANCE_NO_SECOND "the window was over before a second reading"
#define DISTURBANCE_NO_KSOFTIRQD                                                                                       \
        "a thread ksoftirqd of a measured CPU could not be read in every second: the daemon's PID namespace does "     \
        "not show it, or the daemon had no descriptor to spare"
#define DISTURBANCE_NO_CPU "a measured CPU was not listed in /proc/stat at both readings"

/* 0; -ENOMEM. */
int disturbance_init(struct disturbance *d, const struct disturbance_run *run);
void disturbance_deinit(struct disturbance *d);
/* The second between two readings, of about a second; any other length will do. 0; -ENOMEM. */
int disturbance_add(struct disturbance *d, const struct disturbance_reading *before,
                    const struct disturbance_reading *after);
/* What an agent counted, in any order with the seconds. 0; -ENOMEM. */
int disturbance_note(struct disturbance *d, const struct disturbance_note *note);
/* Once, when the window is over and nothing more is added: puts what was counted into the second that it has the most
 * time in common with, and a stop into each of its seconds. What is counted beyond the last second is in none. */
void disturbance_end(struct disturbance *d, const struct disturbance_window *window);
bool disturbance_has(const struct disturbance *d, enum disturbance_kind kind);
/* Why the window was not watched well enough for a lack of flags to mean something, by the rule above: static. NULL:
 * it was. */
const char *disturbance_unobserved(const struct disturbance *d);
const char *disturbance_flag(enum disturbance_kind kind); /* "noisy:…", static */
/* One of its seconds, that in which at_ns (CLOCK_MONOTONIC) lies, as an element of "seconds"; null where there is none,
 * also of d NULL. */
void disturbance_put_at(const struct disturbance *d, uint64_t at_ns, struct json_writer *w);
/* The members of a result's "noise", in an object under construction. */
void disturbance_put(const struct disturbance *d, struct json_writer *w);

#endif
