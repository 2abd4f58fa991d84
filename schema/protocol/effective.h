/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The settings that were in force at one end of a run: sizes, modes, methods, with units in their names. An agent
 * collects them in the order in which they are to be shown, the protocol carries them as they are, and the daemon looks
 * values up by their number. Text is made of them once, when the run is stored.
 *
 * A setting that could not be read is null with a reason. A value may have a reason beside it, too: why a method was
 * not the one that the point requests.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer;

/* The settings: enumerator, name, kind of the value. Any value may be null instead. A new one is a row here. */
#define SETTINGS(ROW)                                                                                                  \
        /* what is sent, and how */                                                                                    \
        ROW(SEND_METHOD, "send_method", TEXT)                                                                          \
        ROW(RECEIVE_METHOD, "receive_method", TEXT)                                                                    \
        ROW(FIELDS, "fields", NUMBER)                                                                                  \
        ROW(CHUNK_BYTES, "chunk_bytes", NUMBER)                                                                        \
        ROW(CHUNKS_PER_MESSAGE, "chunks_per_message", NUMBER)                                                          \
        ROW(FRESH, "fresh", BOOL)                                                                                      \
        ROW(SOURCE_BYTES, "source_bytes", NUMBER)                                                                      \
        ROW(SOURCE_MESSAGES, "source_messages", NUMBER)                                                                \
        ROW(LAST_CACHE_BYTES, "last_cache_bytes", NUMBER)                                                              \
        ROW(STAMP, "stamp", BOOL)                                                                                      \
        ROW(LATENCY_EVERY_MESSAGES, "latency_every_messages", NUMBER)                                                  \
        ROW(PACE_SPIN_NS, "pace_spin_ns", NUMBER)                                                                      \
        ROW(PACE_SPIN, "pace_spin", TEXT)                                                                              \
        ROW(CLOCK_COST_NS, "clock_cost_ns", NUMBER)                                                                    \
        ROW(STOPPED_NS, "stopped_ns", NUMBER)                                                                          \
        ROW(SCHEDULING, "scheduling", TEXT)                                                                            \
        ROW(SECCOMP, "seccomp", TEXT)                                                                                  \
        /* of several transports */                                                                                    \
        ROW(BUFFER_BYTES, "buffer_bytes", NUMBER)                                                                      \
        ROW(SLOTS, "slots", NUMBER)                                                                                    \
        ROW(SLOT_BYTES, "slot_bytes", NUMBER)                                                                          \
        ROW(SLOTS_OF, "slots_of", TEXT)                                                                                \
        ROW(RECEIVER_READS, "receiver_reads", TEXT)                                                                    \
        ROW(POOL_BUFFERS, "pool_buffers", NUMBER)                                                                      \
        ROW(POOL_BYTES, "pool_bytes", NUMBER)                                                                          \
        ROW(POOL_MESSAGES, "pool_messages", NUMBER)                                                                    \
        /* pipes */                                                                                                    \
        ROW(PIPE_SIZE, "pipe_size", NUMBER)                                                                            \
        ROW(PIPE_SIZE_MAX, "pipe_size_max", NUMBER)                                                                    \
        /* sockets */                                                                                                  \
        ROW(SNDBUF_BYTES, "sndbuf_bytes", NUMBER)                                                                      \
        ROW(SNDBUF_BYTES_MAX, "sndbuf_bytes_max", NUMBER)                                                              \
        ROW(RCVBUF_BYTES, "rcvbuf_bytes", NUMBER)                                                                      \
        ROW(RCVBUF_BYTES_MAX, "rcvbuf_bytes_max", NUMBER)                                                              \
        ROW(BUSY_POLL_US, "busy_poll_us", NUMBER)                                                                      \
        ROW(BUSY_POLL_US_MAX, "busy_poll_us_max", NUMBER)                                                              \
        ROW(SEGMENT_BYTES, "segment_bytes", NUMBER)                                                                    \
        ROW(SEGMENT_BYTES_MAX, "segment_bytes_max", NUMBER)                                                            \
        ROW(NODELAY, "nodelay", BOOL)                                                                                  \
        ROW(CONGESTION, "congestion", TEXT)                                                                            \
        ROW(RETRANSMITS, "retransmits", NUMBER)                                                                        \
        ROW(SPURIOUS_RETRANSMITS, "spurious_retransmits", NUMBER)                                                      \
        ROW(RETRANSMISSION_TIMEOUTS, "retransmission_timeouts", NUMBER)                                                \
        ROW(STRANGERS_REFUSED, "strangers_refused", NUMBER)                                                            \
        ROW(MEMLOCK_BYTES, "memlock_bytes", NUMBER)                                                                    \
        ROW(OPTMEM_MAX_BYTES, "optmem_max_bytes", NUMBER)                                                              \
        ROW(RECEIVE_BUFFERS, "receive_buffers", NUMBER)                                                                \
        ROW(RECEIVE_BUFFER_BYTES, "receive_buffer_bytes", NUMBER)                                                      \
        /* queues */                                                                                                   \
        ROW(QUEUE_BYTES, "queue_bytes", NUMBER)                                                                        \
        ROW(QUEUE_MESSAGES, "queue_messages", NUMBER)                                                                  \
        ROW(QUEUE_MESSAGE_BYTES, "queue_message_bytes", NUMBER)                                                        \
        /* memory that the ends share */                                                                               \
        ROW(RING_BYTES, "ring_bytes", NUMBER)                                                                          \
        ROW(RING_MESSAGES, "ring_messages", NUMBER)                                                                    \
        ROW(RING_SLOT_BYTES, "ring_slot_bytes", NUMBER)                                                                \
        ROW(RING_PAGES_OF, "ring_pages_of", TEXT)                                                                      \
        ROW(SHARED_BYTES, "shared_bytes", NUMBER)                                                                      \
        ROW(PAGE_BYTES, "page_bytes", NUMBER)                                                                          \
        ROW(HUGE_PAGES, "huge_pages", BOOL)                                                                            \
        ROW(GATHER_NS, "gather_ns", NUMBER)                                                                            \
        ROW(SPIN_NS, "spin_ns", NUMBER)                                                                                \
        ROW(FUTEX_WAITS, "futex_waits", NUMBER)                                                                        \
        ROW(FUTEX_WAKES, "futex_wakes", NUMBER)                                                                        \
        ROW(MEMCPY_BYTES_PER_SECOND, "memcpy_bytes_per_second", NUMBER)                                                \
        ROW(OBJECT, "object", TEXT)                                                                                    \
        ROW(MEMFD, "memfd", TEXT)                                                                                      \
        ROW(SEALS, "seals", TEXT)                                                                                      \
        ROW(PTRACE_SCOPE, "ptrace_scope", NUMBER)                                                                      \
        /* files */                                                                                                    \
        ROW(FILE_SYNC, "file_sync", TEXT)                                                                              \
        ROW(FILE_SYSTEM, "file_system", TEXT)                                                                          \
        ROW(FILE_SYSTEM_IN_MEMORY, "file_system_in_memory", BOOL)                                                      \
        ROW(FILE_BYTES, "file_bytes", NUMBER)                                                                          \
        ROW(BLOCK_BYTES, "block_bytes", NUMBER)                                                                        \
        ROW(DIRECT_ALIGNMENT_BYTES, "direct_alignment_bytes", NUMBER)                                                  \
        /* system calls and context switches */                                                                        \
        ROW(BATCH_CALLS, "batch_calls", NUMBER)                                                                        \
        ROW(CLOCKSOURCE, "clocksource", TEXT)                                                                          \
        ROW(GLIBC, "glibc", TEXT)                                                                                      \
        ROW(PROCESSES, "processes", NUMBER)                                                                            \
        ROW(WORKING_SET_BYTES, "working_set_bytes", NUMBER)                                                            \
        ROW(PIPE_OVERHEAD_NS, "pipe_overhead_ns", REAL)                                                                \
        ROW(PIPE_OVERHEAD_ROUNDS, "pipe_overhead_rounds", NUMBER)                                                      \
        /* groups: objects whose members are settings of groups */                                                     \
        ROW(IO_URING, "io_uring", GROUP)                                                                               \
        ROW(IO_URING_ZERO_COPY, "io_uring_zero_copy", GROUP)
/* The members of the groups, and of nothing else. */
#define SETTINGS_OF_GROUPS(ROW)                                                                                        \
        ROW(QUEUE_DEPTH, "queue_depth", NUMBER)                                                                        \
        ROW(SETUP_FLAGS, "setup_flags", TEXT)                                                                          \
        ROW(REGISTERED_FILES, "registered_files", BOOL)                                                                \
        ROW(REGISTERED_BUFFERS, "registered_buffers", BOOL)                                                            \
        ROW(WORKERS_AFFINITY, "workers_affinity", BOOL)

enum setting {
#define SETTING_ENUMERATOR(upper, name, kind) SETTING_##upper,
        SETTINGS(SETTING_ENUMERATOR) SETTINGS_OF_GROUPS(SETTING_ENUMERATOR)
#undef SETTING_ENUMERATOR
                SETTING_COUNT
};

enum effective_kind {
        EFFECTIVE_NULL,
        EFFECTIVE_NUMBER,
        EFFECTIVE_BOOL,
        EFFECTIVE_REAL,
        EFFECTIVE_TEXT,
        EFFECTIVE_REASON, /* of the setting's value, behind it */
        EFFECTIVE_GROUP,  /* no row has it, only the settings that are groups */
        EFFECTIVE_KIND_COUNT
};

struct setting_term {
        const char *name;
        enum effective_kind kind;
        bool in_group;
};
extern const struct setting_term setting_terms[SETTING_COUNT];

#define EFFECTIVE_TEXT_MAX 120u /* bytes, with the NUL */
#define EFFECTIVE_ROWS_MAX 64u

struct effective_row {
        enum setting setting;
        enum setting group; /* SETTING_COUNT: none */
        enum effective_kind kind;
        union {
                uint64_t number; /* also 0 or 1 of a bool */
                double real;     /* finite */
                char text[EFFECTIVE_TEXT_MAX];
        };
};

struct effective {
        int error; /* the first of the functions below, which do nothing after it; 0: none */
        enum setting group;
        size_t n;
        struct effective_row rows[EFFECTIVE_ROWS_MAX];
};

/* A list without rows, malloc()ed; NULL: out of memory. */
struct effective *effective_new(void);

/* Each adds a row. error: -ENOBUFS beyond EFFECTIVE_ROWS_MAX rows; -EMSGSIZE for a text beyond EFFECTIVE_TEXT_MAX;
 * -EINVAL for a value of another kind than the setting's, and for whatever effective_check() refuses. */
void effective_add_number(struct effective *e, enum setting setting, uint64_t value);
void effective_add_bool(struct effective *e, enum setting setting, bool value);
void effective_add_real(struct effective *e, enum setting setting, double value);
void effective_add_text(struct effective *e, enum setting setting, const char *value); /* NULL: null */
void effective_add_null(struct effective *e, enum setting setting);
void effective_add_reason(struct effective *e, enum setting setting, const char *reason);
/* A null with its reason. */
void effective_add_unknown(struct effective *e, enum setting setting, const char *reason);
/* The rows that follow are members of this group, until another begins; SETTING_COUNT: of none. */
void effective_group(struct effective *e, enum setting group);

/* Whether the last row may stand behind those before it: a known setting with a value of its kind, in a group where it
 * belongs to one, no second row of the same key, and no group that begins twice. 0 or -EINVAL. */
int effective_check(const struct effective *e);

/* The row of a setting in no group; NULL where it is not reported. A reason is a row of its own. */
const struct effective_row *effective_find(const struct effective *e, enum setting setting);
const struct effective_row *effective_find_reason(const struct effective *e, enum setting setting);
/* The number of a setting in no group; 0 for anything else. */
uint64_t effective_number(const struct effective *e, enum setting setting);

/* Writes a member: the row's name, for a reason NAME_reason, and its value. */
void effective_put_row(const struct effective_row *row, struct json_writer *w);
/* Writes an object with a member for each row. */
void effective_put(const struct effective *e, struct json_writer *w);
