/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_SPEC_H
#define IPCLAB_SCHEMA_SPEC_H

/*
 * The experiment spec: what a person posts, as a C struct, and the points that its axes span.
 *
 * spec_parse() knows words, types, ranges and which fields go together. It does not know the host: whether a queue
 * is long enough or a node exists is asked by the daemon's admission, point by point.
 */

#include "schema/figures.h"
#include "schema/refusal.h"
#include "schema/terms.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer;

#define SPEC_BODY_MAX (1024u * 1024u)
#define SPEC_NAME_MAX 200u
#define SPEC_MESSAGE_SIZE_MAX (UINT64_C(1) << 30)
#define SPEC_THREADS_MAX 1024u
#define SPEC_POINTS_MAX 16384u /* each of 128 CPUs with each */
#define SPEC_RUNS_MAX 16384u
#define SPEC_NODES_MAX 1024u /* highest node id + 1 */
#define SPEC_CPUS_MAX 8192u  /* highest CPU id + 1 */
#define SPEC_LIST_MAX 1024u  /* values of one axis */
#define SPEC_SEED_MAX UINT64_C(9007199254740991)
#define SPEC_REPETITIONS_MAX 1000u
#define SPEC_UNTIL_REPETITIONS_MAX 200u /* as far as the looks of daemon/analysis/adaptive.h go */
#define SPEC_RATE_MAX 1e9
#define SPEC_FIELDS_MAX 64u
#define SPEC_FIELDS_DEFAULT 1u     /* as what has no fields sends its messages */
#define SPEC_FIELDS_OF_STUDY 8u    /* that copy modes are told apart with: presets/tcp-copy-modes.json */
#define SPEC_POOL_MESSAGES_MAX 16u /* that a thread keeps for sending without copying */
#define SPEC_POOL_BYTES (UINT64_C(4) << 20)
#define SPEC_PROCESSES_MIN 2u
#define SPEC_PROCESSES_MAX 64u
#define SPEC_WORKING_SET_MAX (UINT64_C(1) << 20)
#define SPEC_GOVERNOR_MAX 31u
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
        enum memory_policy buffer;    /* of the pages that carry messages; MEMORY_DEFAULT: as `memory` */
        struct node_set buffer_nodes;
};

/* Preconditions on the host. */
struct spec_require {
        enum toggle numa_balancing;
        enum toggle smt;                      /* simultaneous multithreading in use */
        char governor[SPEC_GOVERNOR_MAX + 1]; /* cpufreq governor of every CPU; "" = not asked */
};

/* A placement with its precondition: {"kind": "default", "require": {"numa_balancing": true}}. An explicit one has
 * none; what the whole experiment needs is in struct spec. */
struct placement {
        enum placement_kind kind;
        enum role_pair roles;                 /* the words that an explicit one used: it fits these workloads only */
        struct end_placement ends[END_COUNT]; /* of PLACEMENT_EXPLICIT */
        struct spec_require require;          /* of the runs placed so */
        bool otherwise;                       /* to be used only where no point of another placement is left */
};

/* The axes, outermost first: the fields of a spec that may be lists. Points are spanned, written and read in this
 * order. Each has its row in axes.c. */
enum axis_name {
        AXIS_WORKLOAD,
        AXIS_TRANSPORT,
        AXIS_MESSAGE_SIZE,
        AXIS_THREADS,
        AXIS_COPY_MODE,
        AXIS_ENGINE,
        AXIS_WAIT,
        AXIS_FIELDS,
        AXIS_DIRECTION,
        AXIS_CALL,
        AXIS_PROCESSES,
        AXIS_WORKING_SET,
        AXIS_PLACEMENT,
        AXIS_COUNT,
};

/* The values of an axis, in the order that a spec lists them, each of the type that it has in struct point; none twice.
 */
struct axis_list {
        void *values;
        size_t n;
};

/* One combination of the axes. A field without meaning for the point's workload or transport holds its first enum
 * value (threads: 1) and is left out of the point's JSON. */
struct point {
        enum workload workload;
        enum transport transport;
        uint64_t message_size;
        uint32_t threads;
        enum copy_mode copy_mode;
        enum engine engine;
        enum wait_mode wait;
        uint32_t fields; /* that a message is assembled from, as many as bytes at most; they differ by at most a byte */
        enum data_direction direction;
        enum system_call call;
        uint32_t processes;   /* that hand the CPU round */
        uint64_t working_set; /* bytes that each of them touches between two switches */
        struct placement placement;
};

/* When the measured window ends: exactly one is nonzero. bytes is turned into messages per point, rounded up. */
struct window_end {
        uint64_t duration_ns;
        uint64_t messages;
        uint64_t bytes;
};

#define SPEC_CONGESTION_MAX 15u /* TCP_CA_NAME_MAX without its NUL */

/* Settings of the mechanisms. Zero, TOGGLE_UNSET and "" are what was not asked for. */
struct transport_options {
        uint64_t pipe_size;     /* bytes for F_SETPIPE_SZ; 0 = as it comes */
        uint64_t msgq_depth;    /* messages that a queue holds; 0 = as it comes */
        uint64_t ring_bytes;    /* of shared memory, a power of two; 0 = the agent chooses */
        uint64_t sndbuf;        /* bytes for SO_SNDBUF, which the kernel doubles; 0 = as it comes */
        uint64_t rcvbuf;        /* bytes for SO_RCVBUF */
        uint64_t busy_poll;     /* microseconds for SO_BUSY_POLL; 0 = as it comes */
        enum toggle nodelay;    /* TCP_NODELAY; on unless it is TOGGLE_OFF */
        enum toggle huge_pages; /* of shared memory; off unless it is TOGGLE_ON */
        enum toggle gather;     /* of messages in a stream's ring; on unless it is TOGGLE_OFF */
        enum file_sync file_sync;
        enum memfd_source memfd;
        char congestion[SPEC_CONGESTION_MAX + 1]; /* TCP_CONGESTION */
};

/* Settings of the host to be changed for the runs, and put back after them. */
struct spec_tune {
        enum toggle numa_balancing;
};

/* Blocks are repeated until every point's figure is known so well. */
struct spec_until {
        double relative_ci;       /* half the width of the 95 % interval, over the median; 0: not asked for */
        unsigned figure;          /* an index of until_figure_words; until_figure() */
        uint32_t max_repetitions; /* 1 … SPEC_UNTIL_REPETITIONS_MAX */
        double budget_seconds;    /* of runs; 0: none */
};

struct spec {
        char *name; /* NULL when not given */
        char *preset;
        enum verify verify;
        struct window_end end;
        uint64_t warmup_ns;
        uint32_t repetitions; /* 1 where `until` decides */
        enum spec_order order;
        struct spec_until until;
        double rate; /* messages per second, 0 = closed loop */
        bool skip_impossible;
        bool has_seed;
        uint64_t seed; /* 0 … 2^53 - 1 */
        bool chunk;    /* a message above the mechanism's limit goes in several */
        struct transport_options options;
        struct spec_require require;
        struct spec_tune tune;

        struct axis_list axes[AXIS_COUNT];

        /* Preset and overrides as one object without "preset": parses to this same spec. NULL of a stored one. */
        char *merged_json;
};

/* Parses a posted body. A "preset" is looked up with preset_find() and overridden field by field. Returns 0 and a
 * spec; -EINVAL with *r filled (400 not strictly JSON, 422 else; pointer names the field); -ENOMEM. */
int spec_parse(const char *text, size_t length, struct spec **ret, struct refusal *r);
/* The same for the merged_json of an earlier parse, perhaps by a version that let more pass: what is left without a
 * meaning there gives way, as an experiment that was accepted is not refused later. */
int spec_parse_stored(const char *text, size_t length, struct spec **ret, struct refusal *r);
void spec_free(struct spec *spec);
/* The axes that have a meaning for any of the spec's points, as bits (1u << axis). Spans only what decides on that. */
unsigned spec_axes_met(const struct spec *spec);

/* Replaces the placements "all-node-pairs" and "all-cpu-pairs" by an explicit one for each ordered pair, a thing with
 * itself included: nodes and cpus are what one end of such a pair gets on this host. A workload of one agent takes the
 * pairs of a thing with itself. To be called between spec_parse() and spec_points(). 0; -EINVAL with *r; -ENOMEM. */
int spec_expand_pairs(struct spec *spec, const struct end_placement *nodes, size_t n_nodes,
                      const struct end_placement *cpus, size_t n_cpus, struct refusal *r);

/* A point that the mechanism itself cannot do, whatever the host ("zero-copy on a unix socket"). With skip_impossible
 * such points are listed here, without it spec_points() refuses. */
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

/* The shuffled order: `repetitions` permutations of 0 … n_points - 1 from one sequence of random numbers (xoshiro256**,
 * stable for ever: a recorded seed gives the recorded order, whatever the version that recorded it). More repetitions
 * of the same seed begin with the same runs. order has n_points * repetitions entries. */
void spec_shuffle(uint64_t seed, size_t n_points, uint32_t repetitions, uint32_t *order);

/* Messages per second of a point's open loop; 0: its loop is closed, as it always is where none are sent. */
static inline double spec_point_rate(const struct spec *s, const struct point *p) {
        return workload_has_transport(p->workload) ? s->rate : 0;
}

/* Ways that messages go between the ends of a channel that has pipes, queues, rings or slots of its own for each:
 * there, and in a round trip back. (A connection has both in one.) */
static inline unsigned point_directions(const struct point *p) {
        return p->workload == WORKLOAD_PINGPONG ? 2 : 1;
}

/* Messages that a thread takes turns with when it sends over tcp without copying, as their bytes are the kernel's until
 * it says otherwise: as many as a send buffer holds that has grown as far as tcp_wmem lets it by default, two at least.
 */
static inline uint32_t point_pool_messages(uint64_t message_size) {
        uint64_t n = SPEC_POOL_BYTES / message_size;
        return n < 2 ? 2 : n > SPEC_POOL_MESSAGES_MAX ? SPEC_POOL_MESSAGES_MAX : (uint32_t) n;
}

/* How the messages of a point go without being copied; ZERO_COPY_NONE: they are copied. */
static inline enum zero_copy point_zero_copy(const struct point *p) {
        return p->copy_mode == COPY_ZERO ? transport_terms[p->transport].zero_copy : ZERO_COPY_NONE;
}

/* From the start of one field of a message to that of the next (agent/loop/fields.h): whole cache lines, or pages for a
 * field of half a one at least, with a line between them. At most as many as bytes. */
#define SPEC_LINE 64u
static inline uint64_t point_field_stride(uint64_t message_size, uint32_t fields, uint64_t page) {
        uint64_t longest = (message_size + fields - 1) / fields, unit = longest >= page / 2 ? page : SPEC_LINE;
        return (longest + SPEC_LINE + unit - 1) / unit * unit;
}

/* All of a message's, in whole pages; 0 where it has none. */
static inline uint64_t point_field_bytes(const struct point *p, uint64_t page) {
        uint32_t n = p->fields < p->message_size ? p->fields : (uint32_t) p->message_size;
        uint64_t bytes = n ? n * point_field_stride(p->message_size, n, page) : 0;
        return (bytes + page - 1) / page * page;
}

/* What a thread of an end that sends over tcp holds beside its buffer: the fields, and what they are packed into where
 * the buffer is needed for receiving. */
static inline uint64_t point_sent_bytes(const struct point *p, uint64_t page) {
        bool receives = p->workload == WORKLOAD_PINGPONG || p->direction == DIRECTION_BOTH;
        uint64_t fields = point_field_bytes(p, page);
        if (p->copy_mode == COPY_ZERO)
                return point_pool_messages(p->message_size) * fields;
        return p->copy_mode == COPY_TWO && receives ? fields + p->message_size : fields;
}

/* Short messages of a stream over tcp are received by io_uring as they come, many at a time, into buffers of a ring
 * (agent/transport/tcp/multishot.h): up to this size a receiver saves more by it than the longer way to the bytes
 * costs. */
#define SPEC_MULTISHOT_MESSAGE_MAX 4096u
#define SPEC_MULTISHOT_BUFFERS 8u /* a power of two */
#define SPEC_MULTISHOT_BUFFER_BYTES 16384u

/* What a thread that receives so holds beside its buffer; 0: it receives each message into that. */
static inline uint64_t point_multishot_bytes(const struct point *p) {
        bool one_way = p->workload == WORKLOAD_STREAM && p->direction != DIRECTION_BOTH;
        if (!transport_terms[p->transport].has_multishot || p->engine != ENGINE_IO_URING || !one_way ||
            p->message_size > SPEC_MULTISHOT_MESSAGE_MAX)
                return 0;
        return (uint64_t) SPEC_MULTISHOT_BUFFERS * SPEC_MULTISHOT_BUFFER_BYTES;
}

/* Bytes of a message of a stream that is long enough to carry the time of its sending. Without a suffix: it
 * stands in sentences. */
#define SPEC_STAMPED_MIN 16

/* Pages of the rings of a thread, at both its ends together: two of a ring, and a third where it has many completions
 * (agent/transport/uring/zerocopy.h) or buffers (agent/transport/tcp/multishot.h). Whether the kernel counts them
 * against RLIMIT_MEMLOCK depends on its version. 0: there are none. */
static inline uint32_t point_ring_pages(const struct point *p) {
        bool zerocopy = point_zero_copy(p) == ZERO_COPY_NOTIFY;
        bool both_receive = p->workload == WORKLOAD_PINGPONG || p->direction == DIRECTION_BOTH;
        if (p->engine != ENGINE_IO_URING)
                return 0;
        if (both_receive)
                return 2 * (zerocopy ? 2 + 3 : 2);
        return (point_multishot_bytes(p) > 0 ? 3 : 2) + (zerocopy ? 3 : 2);
}

/* Connections that a server accepts before they have identified themselves. */
#define POINT_PENDING_MAX 128u

/* Descriptors that one agent holds at once, at the end that holds more: its threads' channels and rings, what it takes
 * to make them, and what an agent has open whatever it measures. The hard limit RLIMIT_NOFILE must allow them: the
 * daemon asks before a run, and the agent raises the soft one. */
uint64_t point_descriptors(const struct point *p);

/* The point as the API shows it: only the fields that mean something for it. malloc()ed JSON object; NULL = no memory.
 */
char *point_to_json(const struct point *p);
/* Back from point_to_json(); -EINVAL when it is not one. */
int point_from_json(const char *text, size_t length, struct point *ret);

/* Of a spec's options those that mean something for the point; the others are as if nobody had given them. */
struct transport_options options_for_point(const struct transport_options *t, const struct point *p);

/* The JSON Schema (2020-12) of an experiment; and that of a point, whose "$ref"s are definitions of the former.
 * malloc()ed text; -ENOMEM. */
int spec_schema(char **ret);
int point_schema(char **ret);

/* What `until` may name: "throughput", "latency_p99", …, and the figure that the word at this index stands for. */
extern const struct vocabulary until_figure_words;
enum figure until_figure(unsigned word);
/* Why a run of this point does not have the spec's; NULL: it has. */
const char *until_figure_missing(const struct spec *s, const struct point *p);

/* Names of the transport_options that mean something for a transport, as a list. */
void transport_option_names_put(struct json_writer *w, enum transport t);

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
