/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A calibration probe: a few operations whose cost is the machine's alone, timed on a run's own CPUs before its warm-up
 * and after its window. An agent takes and sends it (agent/measure/probe.h); the daemon compares it with others
 * (daemon/result/probes.h). What a run moves, and how, has no part in it.
 *
 * Thread 0 of an end takes all of it. Then its further threads, where they are pinned to CPUs of their own, take what
 * concerns one CPU alone, one after the other: at the same time each would change the others' figures, by the core that
 * two CPUs share and by the clock that falls as more cores work.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum probe_kind {
        PROBE_GETPID,    /* a system call that does next to nothing */
        PROBE_MEMCPY,    /* PROBE_COPY_BYTES, which lie in the CPU's own caches */
        PROBE_HAND_OVER, /* of a cache line from one end's CPU to the other's, both spinning */
        PROBE_WAKE_UP,   /* by futex(2), of a thread of the other end that sleeps, until it runs */
        PROBE_KIND_COUNT,
};
#define PROBE_OWN_KINDS PROBE_HAND_OVER /* the first kinds, of one CPU alone */

#define PROBE_COPY_BYTES (64u * 1024u)
#define PROBE_ROUNDS 15u
#define PROBE_ROUND_MAX_NS UINT64_C(10000000000)
#define PROBE_WORK_NS UINT64_C(1000000000) /* after which getpid and memcpy, which take milliseconds, are given up */

/* The most further threads of an end that are probed, and how long after the first of them the last one may begin. */
#define PROBE_OTHERS_MAX 31u
#define PROBE_OTHERS_NS UINT64_C(500000000)

/* How many of them have CPUs on which no earlier thread is: those of the threads from 1 on, and of the first ones. */
uint32_t probe_others(uint32_t threads, size_t n_cpus, bool roam);

struct probe_term {
        const char *name;    /* as in the JSON of a run: nanoseconds per operation */
        uint64_t operations; /* of a round */
        double tolerance;    /* ratios nearer to 1 are no change of the machine's state (daemon/result/probes.h) */
};
extern const struct probe_term probe_terms[PROBE_KIND_COUNT];

/* Why a series has no figures. */
enum probe_absence {
        PROBE_TAKEN,
        PROBE_ONE_END,      /* the run has no other end */
        PROBE_AT_OTHER_END, /* the first end has taken it for both */
        PROBE_SAME_CPU,     /* both ends are on one CPU: a line has nowhere to go */
        PROBE_LATE,         /* the other end did not answer in time */
        PROBE_STARVED,      /* others had the CPU for nearly all of the time that a probe may take */
        PROBE_NO_MEMORY,    /* that it needs could not be mapped, here or at the other end */
        PROBE_OTHER_THREAD, /* threads 0 take it for all */
        PROBE_ABSENCE_COUNT,
};
/* A sentence; NULL for PROBE_TAKEN and out of range. */
const char *probe_absence_reason(enum probe_absence absence);

struct probe_series {
        uint32_t absence;                /* enum probe_absence */
        uint64_t round_ns[PROBE_ROUNDS]; /* time of a round; none is 0, or all are where it is absent */
};

/*
 * The difference between the clocks (CLOCK_MONOTONIC) of the two ends' CPUs, second minus first, within bounds: in each
 * of many round trips of a cache line the second end read its clock between two readings of the first one's. Latencies
 * that begin at one end and end at the other contain it.
 */
struct probe_offset {
        uint32_t absence;        /* enum probe_absence; the bounds are 0 where it is absent */
        int64_t low_ns, high_ns; /* low > high: it changed meanwhile */
};

/* The times of a run at which probes are taken. */
enum probe_time { PROBE_BEFORE, PROBE_AFTER, PROBE_TIMES };

/* The probe of a thread at one of the two times. */
struct probe {
        uint32_t cpu;     /* that the thread was on */
        uint32_t moved;   /* 1: it was on others, too, which a thread that is not pinned may be */
        uint64_t work_ns; /* what getpid and memcpy took by the clock, warming up included */
        uint64_t cpu_ns;  /* of these, what the thread ran for */
        uint64_t cost_ns; /* the whole probe, waiting for the other end included */
        struct probe_series series[PROBE_KIND_COUNT];
        struct probe_offset offset;
        uint32_t thread;
};
