/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Hardware counters of one thread, by perf_event_open(2). perf.c is the only file that knows that call. They are
 * opened twice, for user and for kernel mode, so that the two are known apart; an event that the machine or its
 * settings do not provide is null with the reason beside it. An event that the kernel multiplexed is scaled by
 * enabled/running time, and the fraction is reported. Where CPUs have cores of several types, a generic event is of one
 * of them: a thread that stayed on the others has none, one that was on both has what was counted on the first, scaled.
 * What the kernel does for a thread in threads of its own (io_uring's workers, softirqs that hit another CPU) is not
 * counted; a caller that detects such work discards the other counts, too.
 *
 * Opening takes a privilege that a process under measurement does not have, reading takes none: the daemon opens, with
 * its own privileges, and the agent reads the descriptors that it receives (perf-pass.h).
 *
 * The kernel's software events are left alone: as long as a thread has one, each of its context switches takes it off
 * and puts it on again (15 % of a round trip between two processes on one CPU), while the same figures stand in /proc
 * at no cost (agent/measure/usage.h). Hardware counters have the same cost.
 *
 * The events are opened for each worker's thread before the loop, read at each snapshot and subtracted
 * (agent/measure/counters.h): a read costs the measured thread the interrupt by which the kernel reads its CPU's count.
 *
 * Source: man 2 perf_event_open.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct json_writer;

enum perf_event {
        PERF_CYCLES,
        PERF_INSTRUCTIONS,
        PERF_L1D_READ_MISSES,
        PERF_LLC_MISSES,
        PERF_DTLB_MISSES,
        PERF_BRANCH_MISSES,
        PERF_EVENT_COUNT,
};

enum perf_mode { PERF_USER, PERF_KERNEL, PERF_MODE_COUNT };
#define PERF_HANDLES_MAX ((size_t) PERF_EVENT_COUNT * PERF_MODE_COUNT)

/* A thread's events, each opened (>= 0; the kernel's are descriptors) or not (the negative errno). */
struct perf_handles {
        int of[PERF_EVENT_COUNT][PERF_MODE_COUNT];
};

/* As read(2) returns it with both times. */
struct perf_reading {
        uint64_t value, enabled_ns, running_ns;
};

/* Where events come from: the kernel, the daemon, or a recording in a test. open() starts those that it could open. */
struct perf_source {
        void (*open)(void *userdata, pid_t tid, struct perf_handles *ret);
        int (*read)(void *userdata, int handle, struct perf_reading *ret);
        void (*close)(void *userdata, int handle);
        void *userdata;
};
/* Opens with the caller's own privileges. Its read and close also take descriptors that were received. */
extern const struct perf_source perf_source_kernel;
/* Opens an event of whatever runs on a CPU, which counts from then on. leader: that of its group, which is read as a
 * whole: the number of events and each value, as u64; -1: it leads one. The descriptor; -errno. */
int perf_open_cpu(int cpu, uint32_t type, uint64_t config, int leader);
/* Has nothing: where counting would change what is measured. */
extern const struct perf_source perf_source_none;

/* One thread's events. */
struct perf_set {
        const struct perf_source *source;
        struct perf_handles handles;
};

struct perf_snapshot {
        struct perf_reading readings[PERF_EVENT_COUNT][PERF_MODE_COUNT];
        int errors[PERF_EVENT_COUNT][PERF_MODE_COUNT]; /* 0 or a negative errno: this reading means nothing */
};

/* All events unopened for one reason, a negative errno; the second closes those that were opened. */
void perf_handles_fill(struct perf_handles *handles, int error);
void perf_handles_close(struct perf_handles *handles, const struct perf_source *source, int error);

/* Remembers the errno of each event that could not be opened; cannot fail as a whole. The source outlives the set. */
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
/* Makes unknown what is known, for this reason: a negative errno. */
void perf_totals_discard(struct perf_totals *t, int error);

/* An event in both modes: known when both are. */
struct perf_count perf_totals_of(const struct perf_totals *t, enum perf_event event);
/* Whether any count is scaled from a part of the time. */
bool perf_totals_are_scaled(const struct perf_totals *t);
/* Why a count is unknown, in a sentence; never NULL. error: that of the count, 0 when there was nothing to count. */
const char *perf_reason(int error);

/* Whether nothing at all is known, for one and the same reason. */
bool perf_totals_are_none(const struct perf_totals *t);
/* Members of a counters object under construction: "cycles", "instructions", "l1d_read_misses", "llc_misses",
 * "dtlb_misses", "branch_misses", and beside each NAME_user and NAME_kernel where one of the two is known; null where
 * unknown, and then "reasons": {NAME: sentence}, which is {"hardware": sentence} when perf_totals_are_none();
 * "multiplexed": {NAME: fraction} where scaled. */
void perf_totals_to_json(const struct perf_totals *t, struct json_writer *w);
