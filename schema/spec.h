/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_SPEC_H
#define IPCLAB_SCHEMA_SPEC_H

/*
 * The experiment spec: what a person posts, as a C struct, and the points that its axes span.
 *
 * spec_parse() knows words, types, ranges and which fields go together. It does not know the host: whether a queue
 * is long enough or a node exists is asked by the daemon's admission, point by point.
 */

#include "schema/refusal.h"
#include "schema/terms.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_BODY_MAX (1024u * 1024u)
#define SPEC_NAME_MAX 200u
#define SPEC_MESSAGE_SIZE_MAX (UINT64_C(1) << 30)
#define SPEC_THREADS_MAX 1024u
#define SPEC_POINTS_MAX 4096u
#define SPEC_RUNS_MAX 16384u
#define SPEC_NODES_MAX 1024u /* highest node id + 1 */
#define SPEC_CPUS_MAX 8192u  /* highest CPU id + 1 */
#define SPEC_LIST_MAX 1024u  /* values of one axis */
#define SPEC_SEED_MAX UINT64_C(9007199254740991)
#define SPEC_REPETITIONS_MAX 1000u
#define SPEC_RATE_MAX 1e9
#define SPEC_PIPE_SIZE_MIN UINT64_C(4096)
#define SPEC_PIPE_SIZE_MAX (UINT64_C(1) << 30)
#define SPEC_DURATION_MAX_NS (UINT64_C(86400) * 1000000000)
#define SPEC_COUNT_MAX UINT64_C(9007199254740991) /* 2^53 - 1, messages and bytes */

struct node_set {
        uint64_t bits[SPEC_NODES_MAX / 64];
};

/* Where one end shall be; -1 and MEMORY_DEFAULT where the spec does not say. */
struct end_placement {
        int node;
        int cpu;
        enum memory_policy memory;
        struct node_set memory_nodes; /* bind, preferred (one), interleave */
};

struct placement {
        enum placement_kind kind;
        enum role_pair roles;                 /* the words that an explicit one used: it fits these workloads only */
        struct end_placement ends[END_COUNT]; /* of PLACEMENT_EXPLICIT */
};

/* One combination of the axes. A field without meaning for the point's workload or transport holds its first enum
 * value and is left out of the point's JSON. */
struct point {
        enum workload workload;
        enum transport transport;
        uint64_t message_size;
        uint32_t threads;
        enum copy_mode copy_mode;
        enum engine engine;
        enum wait_mode wait;
        struct placement placement;
};

/* When the measured window ends: exactly one is nonzero. bytes is turned into messages per point, rounded up. */
struct window_end {
        uint64_t duration_ns;
        uint64_t messages;
        uint64_t bytes;
};

struct transport_options {
        uint64_t pipe_size; /* bytes for F_SETPIPE_SZ, 0 = as it comes */
};

/* Preconditions; -1 = not asked, 0 = must be off, 1 = must be on. */
struct spec_require {
        int numa_balancing;
};

struct spec {
        char *name; /* NULL when not given */
        char *preset;
        enum verify verify;
        struct window_end end;
        uint64_t warmup_ns;
        uint32_t repetitions;
        double rate; /* messages per second, 0 = closed loop */
        bool skip_impossible;
        bool has_seed;
        uint64_t seed; /* 0 … 2^53 - 1 */
        struct transport_options options;
        struct spec_require require;

        /* axes, in the order that the spec lists them; no value twice */
        enum workload *workloads;
        size_t n_workloads;
        enum transport *transports;
        size_t n_transports;
        uint64_t *message_sizes;
        size_t n_message_sizes;
        uint32_t *threads;
        size_t n_threads;
        enum copy_mode *copy_modes;
        size_t n_copy_modes;
        enum engine *engines;
        size_t n_engines;
        enum wait_mode *waits;
        size_t n_waits;
        struct placement *placements;
        size_t n_placements;

        char *merged_json; /* preset and overrides as one object without "preset": parses to this same spec */
};

/* Parses a posted body. A "preset" is looked up with preset_find() and overridden field by field. Returns 0 and a
 * spec; -EINVAL with *r filled (400 not strictly JSON, 422 else; pointer names the field); -ENOMEM. */
int spec_parse(const char *text, size_t length, struct spec **ret, struct refusal *r);
void spec_free(struct spec *spec);

/* A point that the mechanism itself cannot do, whatever the host ("zero-copy on a unix socket"), or that this build
 * cannot. With skip_impossible such points are listed here, without it spec_points() refuses. */
struct point_skipped {
        struct point point;
        char reason[256];
};

struct point_list {
        struct point *points;
        size_t n_points;
        struct point_skipped *skipped;
        size_t n_skipped;
};

/* Spans the axes: each combination once, in axis order (workload outermost, placement innermost), meaningless fields
 * folded away. Returns 0; -EINVAL with *r (too many points, impossible point, all points left out); -ENOMEM. */
int spec_points(const struct spec *spec, struct point_list *ret, struct refusal *r);
void point_list_deinit(struct point_list *list);

/* Order of the runs: `repetitions` blocks, each a permutation of 0 … n_points - 1 of its own, from the seed
 * (xoshiro256**, stable for ever: a recorded seed gives the recorded order). order has n_points * repetitions
 * entries. */
void spec_shuffle(uint64_t seed, size_t n_points, uint32_t repetitions, uint32_t *order);

/* The point as the API shows it: only the fields that mean something for it. malloc()ed JSON object; NULL = no memory.
 */
char *point_to_json(const struct point *p);
/* Back from point_to_json(); -EINVAL when it is not one. */
int point_from_json(const char *text, size_t length, struct point *ret);

/* Messages of all threads together that end the window, from messages or bytes; 0 when time does. */
uint64_t window_end_messages(const struct window_end *e, const struct point *p);

static inline bool node_set_has(const struct node_set *s, unsigned node) {
        return node < SPEC_NODES_MAX && (s->bits[node / 64] >> (node % 64) & 1);
}
static inline void node_set_add(struct node_set *s, unsigned node) {
        if (node < SPEC_NODES_MAX)
                s->bits[node / 64] |= UINT64_C(1) << (node % 64);
}

#endif
