/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One measured thread. It owns its channel, its buffer and its counters; the leader reads the counters at any time and
 * writes nothing but the limits. The fields that the worker writes per message, those that the leader writes, and those
 * that are constant while the loop runs lie in separate cache lines.
 */

#include "agent/base/failure.h"
#include "agent/base/thread-proof.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WORKER_LINE 64
#define WORKER_UNLIMITED UINT64_MAX
/* A loop or a transport's send or receive returns this when the limit is reached with no message in flight. */
#define WORKER_STOP 1

struct agent;
struct fields;
struct recorder;
struct worker;

typedef int (*worker_loop)(struct worker *w);

/* The memory of a cold source (loop/source.h). */
struct worker_source {
        unsigned char *memory; /* NULL: in fields, or hot */
        size_t length;         /* of memory */
        unsigned char *first, *end;
        size_t stride;         /* from one message to the next */
        uint64_t messages;     /* 0: hot */
        uint64_t cache_bytes;  /* of the last cache; 0: the kernel does not show it */
        struct fields *fields; /* the messages, where they are assembled */
};

enum worker_command { WORKER_RUN, WORKER_PROBE, WORKER_QUIT };
enum worker_stage { WORKER_DUE, WORKER_LOOPS, WORKER_ENDED };

struct worker {
        /* The worker writes these; they only grow, and are accessed relaxed. */
        alignas(WORKER_LINE) uint64_t messages; /* completed since the agent started */
        uint64_t partial_sends, partial_receives, eagain, eintr;
        uint64_t sent;      /* of a worker that sends and receives at once; `messages` counts those received */
        uint32_t sent_last; /* atomic: 1 = send_limit is reached, and no more are sent */
        uint64_t zerocopy_sends, zerocopy_completions, zerocopy_copied, enobufs;

        /* The leader writes these. The loop ends when `messages` reaches limit; 0 = after the message under way. */
        alignas(WORKER_LINE) uint64_t limit;
        uint64_t send_limit; /* of a worker that sends and receives at once */

        /* Constant while a loop runs. */
        alignas(WORKER_LINE) size_t size; /* of a message */
        int send_fd, receive_fd;          /* of transports that are descriptors, else -1 */
        unsigned char *buffer;            /* page aligned, first touched by this worker; `size` bytes */
        unsigned char *source; /* of a cold one, the next message to send; NULL: it lies where the channel has it */
        void (*source_next)(struct worker *w); /* a cold source's next message; NULL: it is hot */
        struct recorder *latency;              /* NULL where messages are not timed */
        double pace_ns;                        /* from one message to the next in an open loop; 0 = closed */
        void *channel;                         /* the transport's own, per thread */
        void *engine;                          /* the engine's, where it is not the system calls */
        void (*settle)(struct worker *w);      /* behind the last message, before the thread rests; may be NULL */
        void *to_settle;                       /* its argument */
        struct agent *agent;
        worker_loop loop;
        double pace_offset_ns; /* from the start to the first message */
        uint32_t index;
        bool fresh;        /* each message is written anew before it is sent */
        bool is_notified;  /* the kernel notifies it of its completed sends (zero-copy) */
        bool parts_unseen; /* the engine completes a message by itself, in an unknown number of parts */
        uint64_t sink;     /* the sum of the bytes that a receiver touches, so that the compiler keeps the reads */

        /* Leader and worker exchange these while the worker is at rest. */
        alignas(WORKER_LINE) pthread_t thread;
        pid_t tid;
        sem_t go;
        enum worker_command command;
        uint64_t start_ns;    /* when the next loop begins */
        uint32_t stage;       /* atomic: a worker_stage, of the last loop */
        uint64_t finished_ns; /* when the last loop ended; for a worker at rest */
        uint64_t cpu_ns;      /* atomic: the thread's CPU time in the loops that ended */
        uint64_t cpu_base_ns; /* of one that loops: its CPU time less this is that in all loops */
        uint64_t cpu_seen_ns; /* the leader's own: what it has counted of it */
        uint32_t resting;     /* atomic: 1 = at rest, and its results can be read */
        struct failure failure;
        struct thread_proof proof;
        size_t buffer_length;
        struct worker_source cold;
};

static inline void worker_set_limit(struct worker *w, uint64_t limit) {
        __atomic_store_n(&w->limit, limit, __ATOMIC_RELEASE);
}

static inline uint64_t worker_limit(const struct worker *w) {
        return __atomic_load_n(&w->limit, __ATOMIC_RELAXED);
}

static inline uint64_t worker_messages(const struct worker *w) {
        return __atomic_load_n(&w->messages, __ATOMIC_RELAXED);
}

/* For a send or receive that was interrupted before its first byte: whether the loop is over. */
static inline bool worker_over(const struct worker *w) {
        return worker_messages(w) >= worker_limit(w);
}

/* Adds without a locked instruction, as each counter has one writer; the leader can read it at any time. */
static inline void worker_add(uint64_t *counter, uint64_t n) {
        __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

static inline void worker_count(uint64_t *counter) {
        worker_add(counter, 1);
}
