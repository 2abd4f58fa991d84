/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whether a run was steady: the parts of its ends' seconds (schema/protocol), put on a grid of tenths of a second and
 * judged by daemon/analysis/statistics/segments.h. When the messages of a part came that was late, as its agent did not
 * run, is taken from the other end's counts. The messages of the ends whose counts make the figures are one series, the
 * medians of each end's latencies another; a run is as steady as the worst of them.
 */

#include "daemon/analysis/statistics/segments.h"
#include "daemon/host/disturbance/disturbance.h"
#include "schema/protocol/protocol.h"

/* Segments are alike when their means differ by no more. */
#define STEADINESS_TOLERANCE 0.10

/* A part that ended late, in nanoseconds since the end's window began. */
struct late_part {
        uint64_t begin_ns, interval_ns, messages;
};

/* The parts of one end, on its own grid, which begins with its window. */
struct steadiness_end {
        uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
        double *messages;          /* in each tenth of a second */
        double *p50_ns;            /* in the middle of each; 0: none */
        size_t n, size;            /* tenths that have begun */
        struct late_part *late;    /* those of its parts that took two tenths or more */
        size_t n_late;
};

/* A series that was judged. */
struct steadiness_series {
        bool is_latency; /* else messages per second */
        int end;         /* enum end; -1: both together */
        bool sparse;     /* not judged: most tenths of a second have no latency */
        bool untaken;    /* not judged: with so many threads an agent does not read latencies ten times a second */
        uint64_t begin_ns;
        struct segments segments;
};

struct steadiness {
        struct steadiness_end ends[END_COUNT];
        struct steadiness_series *series; /* steadiness_judge() */
        size_t n;
};

/* The next parts of an end. 0; -ENOMEM. */
int steadiness_add(struct steadiness *s, enum end end, const struct message_parts *parts);
/* When all have come; `measured`: whether an end's counts make the run's figures; `timed`: whether its samples have
 * latencies; `threads` of each end. 0; -ENOMEM. */
int steadiness_judge(struct steadiness *s, const bool measured[END_COUNT], const bool timed[END_COUNT],
                     uint32_t threads);
/* After it. Whether a series is known not to be flat; else, whether all are known to be. */
bool steadiness_is_lost(const struct steadiness *s);
bool steadiness_is_known(const struct steadiness *s);
/* The members "steady", "steady_reason" and "steadiness" of a result. `beside`: disturbances of each second;
 * NULL: not observed. */
void steadiness_put(const struct steadiness *s, const char *const roles[END_COUNT], const struct disturbance *beside,
                    struct json_writer *w);
void steadiness_deinit(struct steadiness *s);
