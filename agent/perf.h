/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PERF_H
#define IPCLAB_AGENT_PERF_H

/*
 * Performance counters of one thread, by perf_event_open(2). perf.c is the only file that knows that call. Hardware
 * events are opened twice, for user and for kernel mode, so that the two are known apart; what the machine or its
 * settings do not give stays null with the reason beside it. An event that the kernel multiplexed is scaled by
 * enabled/running time, and the fraction is told.
 *
 * The leader opens the set for each worker's thread before the loop, reads it at each snapshot and subtracts: a read
 * costs the measured thread nothing but the interrupt when the kernel has to ask another CPU for the count.
 *
 * Source: man 2 perf_event_open.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct json_writer;
struct perf_event_attr;

enum perf_event {
        /* hardware, user and kernel apart */
        PERF_CYCLES,
        PERF_INSTRUCTIONS,
        PERF_L1D_READ_MISSES,
        PERF_LLC_MISSES,
        PERF_DTLB_MISSES,
        PERF_BRANCH_MISSES,
        /* the kernel's own */
        PERF_CONTEXT_SWITCHES,
        PERF_MIGRATIONS,
        PERF_PAGE_FAULTS,
        PERF_TASK_CLOCK,
        PERF_EVENT_COUNT,
};
#define PERF_HARDWARE_COUNT ((size_t) PERF_CONTEXT_SWITCHES)

enum perf_mode { PERF_USER, PERF_KERNEL, PERF_MODE_COUNT };

/* As read(2) gives it with both times. */
struct perf_reading {
        uint64_t value, enabled_ns, running_ns;
};

/* Where events come from: the kernel, or a recording in a test. open returns a handle >= 0 or a negative errno. */
struct perf_source {
        int (*open)(void *userdata, const struct perf_event_attr *attr, pid_t tid);
        int (*read)(void *userdata, int handle, struct perf_reading *ret);
        void (*close)(void *userdata, int handle);
        void *userdata;
};
extern const struct perf_source perf_source_kernel;

/* One thread's events. A software event counts both modes in [PERF_USER]. */
struct perf_set {
        const struct perf_source *source;
        int handles[PERF_EVENT_COUNT][PERF_MODE_COUNT]; /* >= 0, or the negative errno of the open */
};

struct perf_snapshot {
        struct perf_reading readings[PERF_EVENT_COUNT][PERF_MODE_COUNT];
        int errors[PERF_EVENT_COUNT][PERF_MODE_COUNT]; /* 0 or a negative errno: this reading means nothing */
};

/* Opens and starts what can be had; what cannot is remembered with its errno. Cannot fail as a whole. */
void perf_set_init(struct perf_set *set, const struct perf_source *source, pid_t tid);
void perf_set_deinit(struct perf_set *set);
void perf_set_read(const struct perf_set *set, struct perf_snapshot *ret);

/* What happened between two snapshots of one or more threads. */
struct perf_count {
        bool known;
        uint64_t value;  /* scaled */
        double fraction; /* of the time that the event was counted; 1 unless multiplexed */
        int error;       /* when not known: negative errno; -ENODATA: it never got onto the hardware */
};
struct perf_totals {
        struct perf_count counts[PERF_EVENT_COUNT][PERF_MODE_COUNT];
        uint32_t threads;
};

void perf_subtract(const struct perf_snapshot *later, const struct perf_snapshot *earlier, struct perf_totals *ret);
/* Adds a thread's totals; a count that is unknown in either is unknown in the sum. */
void perf_totals_add(struct perf_totals *into, const struct perf_totals *t);

/* Members of a counters object under construction: "cycles", "cycles_user", "cycles_kernel", …, "context_switches",
 * "migrations", "page_faults", "task_clock_ns"; null where unknown, and then "reasons": {name: sentence};
 * "multiplexed": {name: fraction} where scaled. */
void perf_totals_to_json(const struct perf_totals *t, struct json_writer *w);

#endif
