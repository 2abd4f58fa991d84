/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The experiment spec: what a person posts, as a C struct, and the points that its axes span.
 *
 * spec_parse() knows words, types, ranges and which fields go together. It does not know the host: the daemon's
 * admission checks, point by point, whether a queue is long enough or a node exists.
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
#define SPEC_PAIRS_MAX 1024 /* of points that `until` compares */
/* The first interim analysis: with fewer there is no interval. Without a suffix: it stands in sentences. */
#define SPEC_UNTIL_REPETITIONS_LEAST 6
#define SPEC_UNTIL_REPETITIONS_MAX 200u /* the last interim analysis of daemon/analysis/adaptive.h */
#define SPEC_RATE_MIN_MILLIONTHS 10u    /* about a message in the longest window */
#define SPEC_RATE_MAX 1e9
#define SPEC_SEARCH_REPETITIONS 3u /* of each rate, unless the spec sets "repetitions" */
#define SPEC_SEARCH_RATES_MAX 32u  /* of one point */
#define SPEC_FIELDS_MAX 64u
#define SPEC_FIELDS_DEFAULT 1u  /* a message that is one contiguous buffer */
#define SPEC_FIELDS_OF_STUDY 8u /* for comparing copy modes: presets/tcp-copy-modes.json */
#define SPEC_QUEUE_DEPTH_MAX 256u
#define SPEC_POOL_MESSAGES_MAX 16u /* of a thread that sends without copying */
#define SPEC_POOL_BYTES (UINT64_C(4) << 20)
#define SPEC_INSTANCES 2u /* of each point of an experiment whose points stand twice */
#define SPEC_PROCESSES_MIN 2u
#define SPEC_PROCESSES_MAX 64u
#define SPEC_WORKING_SET_MAX (UINT64_C(1) << 20)
#define SPEC_GOVERNOR_MAX 31u
#define SPEC_CHOICE_MAX 15u /* of THP: "within_size" */
#define SPEC_DURATION_MAX_NS (UINT64_C(86400) * 1000000000)
#define SPEC_COUNT_MAX UINT64_C(9007199254740991) /* 2^53 - 1, messages and bytes */

struct node_set {
        uint64_t bits[SPEC_NODES_MAX / 64];
};

/* Where one end shall be; -1 and MEMORY_DEFAULT where the spec does not set it. */
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
        char governor[SPEC_GOVERNOR_MAX + 1]; /* cpufreq governor of every CPU; "" = not required */
};

/* One member of an experiment's `require` that is a row of schema/facts.h, or a mitigation. */
enum fact_group { GROUP_HOST, GROUP_BUILD, GROUP_MITIGATIONS };

struct spec_fact {
        enum fact_group group;
        char *name;
        char *text; /* NULL: it is a number */
        int64_t number;
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
        AXIS_QUEUE_DEPTH,
        AXIS_SOURCE,
        AXIS_CALL,
        AXIS_PROCESSES,
        AXIS_WORKING_SET,
        AXIS_PLACEMENT,
        AXIS_INSTANCE,
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
        uint32_t queue_depth; /* messages of a stream that io_uring has under way at once; 0 where there is no such
                                 queue */
        enum source source;   /* of a sender's bytes */
        enum system_call call;
        uint32_t processes;   /* that switch to each other in a ring */
        uint64_t working_set; /* bytes that each of them touches between two switches */
        struct placement placement;
        uint32_t instance; /* 1 or 2 of a point that stands twice in its experiment; 0: it stands once */
};

/* When the measured window ends: exactly one is nonzero. bytes is turned into messages per point, rounded up. */
struct window_end {
        uint64_t duration_ns;
        uint64_t messages;
        uint64_t bytes;
};

#define SPEC_BUFFER_MIN UINT64_C(4096)
#define SPEC_BUFFER_MAX (UINT64_C(1) << 29) /* what SO_SNDBUF takes; it is doubled into an int */
#define SPEC_CONGESTION_MAX 15u             /* TCP_CA_NAME_MAX without its NUL */

/* Settings of the mechanisms. Zero, TOGGLE_UNSET and "" stand for an option that was not given. */
struct transport_options {
        uint64_t buffer_bytes;  /* of whatever buffer the mechanism has, a power of two; 0 = by its own option */
        uint64_t pipe_size;     /* bytes for F_SETPIPE_SZ; 0 = the kernel's default */
        uint64_t msgq_depth;    /* messages that a queue holds; 0 = the kernel's default */
        uint64_t ring_bytes;    /* of shared memory, a power of two; 0 = the agent chooses */
        uint64_t sndbuf;        /* bytes for SO_SNDBUF, which the kernel doubles; 0 = the kernel's default */
        uint64_t rcvbuf;        /* bytes for SO_RCVBUF; likewise */
        uint64_t busy_poll;     /* microseconds for SO_BUSY_POLL; 0 = the kernel's default */
        enum toggle nodelay;    /* TCP_NODELAY; on unless it is TOGGLE_OFF */
        enum toggle huge_pages; /* of shared memory; off unless it is TOGGLE_ON */
        enum toggle gather;     /* of messages in a stream's ring; on unless it is TOGGLE_OFF */
        enum file_sync file_sync;
        enum memfd_source memfd;
        char congestion[SPEC_CONGESTION_MAX + 1]; /* TCP_CONGESTION */
};

/* Settings of the host that the daemon changes for the runs and restores after them. */
struct spec_tune {
        enum toggle numa_balancing;
        char governor[SPEC_GOVERNOR_MAX + 1]; /* "": as it is; likewise below */
        enum toggle idle_states;              /* those after the first of each CPU */
        char thp[SPEC_CHOICE_MAX + 1], thp_shmem[SPEC_CHOICE_MAX + 1];
};

/* Compare the points that have the baseline's value of an axis with those that equal them but for that axis; without a
 * baseline each point with each that equals it but for that axis. */
struct spec_compare {
        bool given, every_pair; /* every_pair: there is no baseline */
        enum axis_name axis;
        struct point baseline; /* its value of the axis; nothing else of it */
};

/* Blocks are repeated until every point's figure is known so well; with `compare`, until every pair's ratio is, or it
 * is known which of the two is better. */
struct spec_until {
        double relative_ci;       /* half the width of the 95 % interval, over the median; 0: no `until` */
        unsigned figure;          /* an index of until_figure_words; until_figure() */
        uint32_t max_repetitions; /* 1 … SPEC_UNTIL_REPETITIONS_MAX */
        double budget_seconds;    /* of runs; 0: none */
        struct spec_compare compare;
};

/* A search for the highest rate at which the latency stays below a limit. */
struct spec_search {
        double latency_p99_below_us; /* 0: no search */
};

/* The members of a spec beside its axes, by what they decide, in the order of the table of fields (fields.c), which has
 * the rest of each. The list stands here because the store's SQL is made of it. INCIDENTAL members hold what the spec
 * is called, which of its points run, and how often and in which order: not what is measured. Runs of a point are
 * measured alike where WINDOW and SETTING members are the same; of these a SETTING affects the figures as an axis does.
 */
#define SPEC_FIELDS(OTHER, INCIDENTAL, WINDOW, SETTING)                                                                \
        OTHER("preset")                                                                                                \
        INCIDENTAL("name")                                                                                             \
        SETTING("verify")                                                                                              \
        WINDOW("duration_seconds")                                                                                     \
        WINDOW("messages")                                                                                             \
        WINDOW("bytes")                                                                                                \
        WINDOW("warmup_seconds")                                                                                       \
        INCIDENTAL("repetitions")                                                                                      \
        INCIDENTAL("order")                                                                                            \
        OTHER("points")                                                                                                \
        WINDOW("rate")                                                                                                 \
        OTHER("search")                                                                                                \
        SETTING("chunk")                                                                                               \
        SETTING("fresh")                                                                                               \
        SETTING("stamp")                                                                                               \
        INCIDENTAL("skip_impossible")                                                                                  \
        INCIDENTAL("seed")                                                                                             \
        OTHER("require")                                                                                               \
        WINDOW("tune")                                                                                                 \
        INCIDENTAL("until")                                                                                            \
        SETTING("transport_options")
#define SPEC_NO_FIELD(name)
/* Experiments that differ in these alone are of the same spec. */
#define SPEC_INCIDENTAL(X) SPEC_FIELDS(SPEC_NO_FIELD, X, SPEC_NO_FIELD, SPEC_NO_FIELD)
#define SPEC_MEASURED_ALIKE(X) SPEC_FIELDS(SPEC_NO_FIELD, SPEC_NO_FIELD, X, X)
#define SPEC_SETTINGS(X) SPEC_FIELDS(SPEC_NO_FIELD, SPEC_NO_FIELD, SPEC_NO_FIELD, X)

struct spec {
        char *name; /* NULL when not given */
        char *preset;
        enum verify verify;
        struct window_end end;
        uint64_t warmup_ns;
        uint32_t repetitions; /* 1 where `until` decides */
        enum spec_order order;
        struct spec_until until;
        struct spec_search search;
        double rate; /* messages per second, 0 = closed loop */
        bool skip_impossible;
        bool has_seed;
        uint64_t seed; /* 0 … 2^53 - 1 */
        bool chunk;    /* a message above the mechanism's limit goes in several */
        bool fresh;    /* a sender writes each message anew before it sends it */
        bool stamp;    /* messages carry the time of their sending, of streams whose transport can */
        struct transport_options options;
        struct spec_require require;
        struct spec_fact *facts; /* required, too */
        size_t n_facts;
        struct spec_tune tune;

        struct axis_list axes[AXIS_COUNT];

        /* Preset and overrides as one object without "preset": parses to this same spec. NULL of a stored one. */
        char *merged_json;
};

/* Parses a posted body. preset_find() finds its "preset", and the body's fields override the preset's. Returns 0 and a
 * spec; -EINVAL with *r filled (400 not strictly JSON, 422 else; pointer names the field); -ENOMEM. */
int spec_parse(const char *text, size_t length, struct spec **ret, struct refusal *r);
/* The same for the merged_json of an earlier parse, perhaps by a version that accepted more: a field without a meaning
 * is ignored here, as an experiment that was accepted is not refused later. */
int spec_parse_stored(const char *text, size_t length, struct spec **ret, struct refusal *r);
void spec_free(struct spec *spec);
/* The axes that have a meaning for any of the spec's points, as bits (1u << axis). Spans only what decides on that. */
unsigned spec_axes_met(const struct spec *spec);

/* The first setting of the whole experiment in which the runs of both differ: it is no axis, and what is measured
 * depends on it. NULL: none. */
const char *spec_unlike_setting(const struct spec *a, const struct spec *b);

/* Whether a run of the point changes a setting of the host, or requires something that such a setting changes. */
bool spec_depends_on_host(const struct spec *spec, const struct point *p);

/* Replaces the placements "all-node-pairs" and "all-cpu-pairs" by an explicit one for each ordered pair, a thing with
 * itself included: nodes and cpus are what one end of such a pair gets on this host. A workload of one agent takes the
 * pairs of a thing with itself. Call it between spec_parse() and spec_points(). 0; -EINVAL with *r; -ENOMEM. */
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

/* How many points spec_points() spans at most, before and after spec_expand_pairs(). */
uint64_t spec_points_most(const struct spec *spec);

/* Spans the axes: each combination once, in axis order (workload outermost, instance innermost), meaningless fields
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

/* Whether its messages go over a carrier of this kind; never of a workload that has no transport. */
static inline bool point_has_carrier(const struct point *p, enum carrier carrier) {
        return workload_has_transport(p->workload) && transport_terms[p->transport].carrier == carrier;
}

/* Whether each end both sends and receives messages. */
static inline bool point_goes_both_ways(const struct point *p) {
        return p->workload == WORKLOAD_PINGPONG || p->direction == DIRECTION_BOTH;
}

/* Streams between the two ends at once: figures of messages and bytes are their sum, a rate is of each. */
static inline unsigned point_streams(const struct point *p) {
        return p->workload == WORKLOAD_STREAM && p->direction == DIRECTION_BOTH ? 2 : 1;
}

static inline bool point_sends(const struct point *p, enum end end) {
        return point_goes_both_ways(p) || end == (p->direction == DIRECTION_UP ? END_SECOND : END_FIRST);
}

static inline bool point_receives(const struct point *p, enum end end) {
        return point_goes_both_ways(p) || !point_sends(p, end);
}

/* Messages that a thread takes turns with when it sends over tcp without copying, as the kernel owns their bytes until
 * its completion notification: as many as a send buffer holds that has grown to tcp_wmem's default maximum, two at
 * least. */
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

/* Bytes of all fields of a message, in whole pages; 0 where it has none. */
static inline uint64_t point_field_bytes(const struct point *p, uint64_t page) {
        uint32_t n = p->fields < p->message_size ? p->fields : (uint32_t) p->message_size;
        uint64_t bytes = n ? n * point_field_stride(p->message_size, n, page) : 0;
        return (bytes + page - 1) / page * page;
}

/* Bytes that a thread of an end that sends over tcp holds beside its buffer: the fields, and a buffer to pack them into
 * where its own is needed for receiving. */
static inline uint64_t point_sent_bytes(const struct point *p, uint64_t page) {
        uint64_t fields = point_field_bytes(p, page);
        if (p->copy_mode == COPY_ZERO)
                return point_pool_messages(p->message_size) * fields;
        return p->copy_mode == COPY_TWO && point_goes_both_ways(p) ? fields + p->message_size : fields;
}

/* io_uring receives the short messages of a stream over tcp by multishot requests, many at a time, into a ring of
 * provided buffers (agent/transport/tcp/multishot.h): up to this size a receiver saves more by it than the longer way
 * to the bytes costs. */
#define SPEC_MULTISHOT_MESSAGE_MAX 4096u
#define SPEC_MULTISHOT_BUFFERS 8u /* a power of two */
#define SPEC_MULTISHOT_BUFFER_BYTES 16384u

/* Bytes of those buffers, beside the thread's own; 0: it receives each message into its own. */
static inline uint64_t point_multishot_bytes(const struct point *p) {
        bool one_way = p->workload == WORKLOAD_STREAM && p->direction != DIRECTION_BOTH;
        if (!transport_terms[p->transport].has_multishot || p->engine != ENGINE_IO_URING || !one_way ||
            p->message_size > SPEC_MULTISHOT_MESSAGE_MAX)
                return 0;
        return (uint64_t) SPEC_MULTISHOT_BUFFERS * SPEC_MULTISHOT_BUFFER_BYTES;
}

/* A cold source (agent/loop/source.h): as many messages as have SPEC_SOURCE_CACHES times the bytes of the last cache,
 * from one to the next `stride`. */
#define SPEC_SOURCE_CACHES 2u
#define SPEC_LAST_CACHE_DEFAULT (UINT64_C(32) << 20) /* where the kernel does not show the host's */
#define SPEC_SECTOR 512u                             /* direct transfers of whole ones are aligned to it */

/* Whether a message that is sent is assembled from fields; else it lies in one piece. */
static inline bool point_sends_fields(const struct point *p) {
        return transport_terms[p->transport].assembles_fields || p->copy_mode == COPY_ONE;
}

/* The pieces of memory that a message is sent from: its fields, at most as many as bytes, or one. */
static inline uint32_t point_source_pieces(const struct point *p) {
        uint32_t n = p->fields < p->message_size ? p->fields : (uint32_t) p->message_size;
        return point_sends_fields(p) && n > 0 ? n : 1;
}

/* What counts are the lines that the caches would have to hold. */
static inline uint64_t point_source_messages(const struct point *p, uint64_t cache_bytes) {
        uint64_t n = point_source_pieces(p), piece = (p->message_size + n - 1) / n;
        uint64_t lines = (piece + SPEC_LINE - 1) / SPEC_LINE, bytes = n * (lines ? lines : 1) * SPEC_LINE;
        uint64_t messages = (SPEC_SOURCE_CACHES * cache_bytes + bytes - 1) / bytes;
        return messages < 2 ? 2 : messages;
}

static inline uint64_t point_source_stride(const struct point *p, uint64_t page) {
        uint32_t n = point_source_pieces(p);
        if (point_has_carrier(p, CARRIER_FILE) && p->message_size % SPEC_SECTOR == 0)
                return p->message_size;
        return n * point_field_stride(p->message_size, n, page);
}

/* Bytes of a sending thread's cold source, and of a page before it; 0: it has none. */
static inline uint64_t point_source_bytes(const struct point *p, uint64_t cache_bytes, uint64_t page) {
        if (p->source != SOURCE_COLD)
                return 0;
        return page + point_source_messages(p, cache_bytes) * point_source_stride(p, page);
}

#define SPEC_FILL_NS UINT64_C(10) /* a byte of memory that is touched for the first time: 100 MB/s */

/* For how long a thread may make and touch what it sends from, with a last cache of this size. The daemon and the
 * agents wait this long for each thread. */
static inline uint64_t point_fill_ns(const struct point *p, uint64_t cache_bytes, uint64_t page) {
        return (p->message_size + point_source_bytes(p, cache_bytes, page)) * SPEC_FILL_NS;
}

/* Bytes of a message of a stream that is long enough to carry the time of its sending. Without a suffix: it
 * stands in sentences. */
#define SPEC_STAMPED_MIN 16

/* Whether messages of a stream are under way several at a time (agent/transport/uring/batch.h). */
static inline bool point_is_queued(const struct point *p) {
        return p->queue_depth > 1;
}

/* Bytes of the messages under way, which have a buffer each, beside the thread's own. */
static inline uint64_t point_queued_bytes(const struct point *p, bool sends, uint64_t page) {
        uint64_t message = sends && p->copy_mode == COPY_ONE ? point_field_bytes(p, page)
                                                             : (p->message_size + page - 1) / page * page;
        return point_is_queued(p) ? p->queue_depth * message : 0;
}

/* Entries of a ring: the operations under way, and a cancellation. */
#define SPEC_RING_ENTRIES 4u
static inline uint32_t point_ring_entries(const struct point *p) {
        uint32_t n = SPEC_RING_ENTRIES;
        while (n < p->queue_depth + 1)
                n *= 2;
        return n;
}

/* Pages of a ring: its entries of 64 bytes, and, with a head, their indices and twice as many completions of 16 bytes.
 */
static inline uint32_t point_pages_of_ring(const struct point *p) {
        const uint32_t page = 4096, n = point_ring_entries(p);
        return (64 * n + page - 1) / page + (64 + 36 * n + page - 1) / page;
}

/* Pages of the rings of a thread, at both its ends together: two of a ring, and a third where it has many completions
 * (agent/transport/uring/zerocopy.h) or buffers (agent/transport/tcp/multishot.h). Whether the kernel counts them
 * against RLIMIT_MEMLOCK depends on its version. 0: there are none. */
static inline uint32_t point_ring_pages(const struct point *p) {
        bool zerocopy = point_zero_copy(p) == ZERO_COPY_NOTIFY;
        if (p->engine != ENGINE_IO_URING)
                return 0;
        if (point_goes_both_ways(p))
                return 2 * (zerocopy ? 2 + 3 : 2);
        return (point_multishot_bytes(p) > 0 ? 3 : point_pages_of_ring(p)) + (zerocopy ? 3 : point_pages_of_ring(p));
}

/* Connections that a server accepts before they have identified themselves. */
#define POINT_PENDING_MAX 128u

/* Descriptors that one agent holds at once, at the end that holds more: its threads' channels and rings, what it takes
 * to make them, and what every agent has open. The hard limit RLIMIT_NOFILE must allow them: the daemon checks it
 * before a run, and the agent raises the soft one. */
uint64_t point_descriptors(const struct point *p);

/* The point as the API shows it: only the fields that mean something for it. malloc()ed JSON object; NULL = no memory.
 */
char *point_to_json(const struct point *p);
/* The inverse of point_to_json(); -EINVAL when the text is no point. */
int point_from_json(const char *text, size_t length, struct point *ret);

/* A spec's options that mean something for the point; the others are as if they had not been given. Options that size
 * the mechanism's buffer and are not given are buffer_bytes; how many messages a queue holds depends on the size of a
 * piece: options_queue_depth(). */
struct transport_options options_for_point(const struct transport_options *t, const struct point *p);
/* Which field of a spec's transport_options decides on the option at this JSON pointer: buffer_bytes where that is
 * given and the option is not. */
const char *options_pointer(const struct transport_options *t, const char *pointer);
/* How many messages, or pieces of them, of piece_bytes a queue is to hold; 0: the kernel's default, or not one fits. */
static inline uint64_t options_queue_depth(const struct transport_options *t, uint64_t piece_bytes) {
        return t->msgq_depth ? t->msgq_depth : t->buffer_bytes / piece_bytes;
}

/* The JSON Schema (2020-12) of an experiment; and that of a point, whose "$ref"s are definitions of the former.
 * malloc()ed text; -ENOMEM. */
int spec_schema(char **ret);
int point_schema(char **ret);

/* The words that `until` may name: "throughput", "latency_p99", …, and the figure of the word at this index. */
extern const struct vocabulary until_figure_words;
enum figure until_figure(unsigned word);
/* The reason why a run of this point does not have the spec's figure; NULL: it has. */
const char *until_figure_missing(const struct spec *s, const struct point *p);
/* The reason why a run of this point has no latency; NULL: it has. */
const char *spec_latency_missing(const struct spec *s, const struct point *p);

/* Whether the messages of a stream carry a time, which the receiver's latency counts from: in a closed loop where
 * `stamp` is set, that of their sending. In an open loop both ends compute a message's due time from the schedule, but
 * where streams go both ways a message carries it, whatever `stamp` is. */
static inline bool point_is_stamped(const struct point *p, bool stamp, double rate) {
        if (p->workload != WORKLOAD_STREAM || !transport_terms[p->transport].stamps ||
            p->message_size < SPEC_STAMPED_MIN)
                return false;
        return rate > 0 ? p->direction == DIRECTION_BOTH : stamp;
}

/* Why a figure of one point is not compared with that of the other, whatever they are; NULL: it is. The sum of two
 * streams at once is no throughput beside which that of one is less. */
const char *points_incomparable(const struct point *a, const struct point *b, enum figure f);
/* Whether the points have the same value in each axis that both of them have, but for this one. */
bool points_match(const struct point *a, const struct point *b, enum axis_name except);
/* Steps to the next pair of points that `c` compares; false: there is none left. Begins with a zeroed one. Where there
 * is no baseline each two points are a pair once, and the first of them takes its place. */
struct point_pair {
        size_t baseline, candidate, next; /* indices; next: where the search goes on, for this function alone */
};
bool points_next_pair(const struct spec_compare *c, const struct point *points, size_t n, struct point_pair *pair);
/* Whether the points of a spec have groups, other than each its own. */
bool spec_compares_points(const struct spec *s);
/* Groups of those points that the spec compares with each other, as a number for each of the n points in the order of
 * spec_points(): the two instances of a point, and the pairs of `until`, also those that have a point in common. A
 * point that is compared with none has a group of its own. malloc()ed; NULL where the spec compares no points.
 * -ENOMEM. */
int points_group(const struct spec *s, const struct point *points, size_t n, uint32_t **ret);

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
