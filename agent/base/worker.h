/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_WORKER_H
#define IPCLAB_AGENT_WORKER_H

/*
 * One measured thread. It owns its channel, its buffer and its counters; the leader reads the counters whenever it
 * likes and writes nothing but the limit. What the worker writes per message, what the leader writes, and what neither
 * writes while the loop runs lie in cache lines apart.
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
/* What a loop or a transport's send or receive returns when the limit was reached with no message in flight. */
#define WORKER_STOP 1

struct agent;
struct histogram;
struct worker;

typedef int (*worker_loop)(struct worker *w);

enum worker_command { WORKER_RUN, WORKER_QUIT };

struct worker {
        /* Written by the worker, only ever growing, relaxed. */
        alignas(WORKER_LINE) uint64_t messages; /* completed since the agent began */
        uint64_t partial_sends, partial_receives, eagain, eintr;
        uint64_t sent;      /* by a worker that sends and receives at once; messages are those received */
        uint32_t sent_last; /* atomic: 1 = it has reached send_limit, and sends no more */
        uint64_t zerocopy_sends, zerocopy_completions, zerocopy_copied, enobufs;

        /* Written by the leader. The loop ends when messages has reached it; 0 = after the message under way. */
        alignas(WORKER_LINE) uint64_t limit;
        uint64_t send_limit; /* of a worker that sends and receives at once */

        /* Constant while a loop runs. */
        alignas(WORKER_LINE) size_t size; /* of a message */
        int send_fd, receive_fd;          /* of transports that are descriptors, else -1 */
        unsigned char *buffer;            /* page aligned, first touched by this worker; `size` bytes */
        struct histogram *latency;        /* NULL where nothing is timed */
        double pace_ns;                   /* from one message to the next in an open loop; 0 = closed */
        void *channel;                    /* the transport's own, per thread */
        void *engine;                     /* the engine's, where it is not the system calls */
        void (*settle)(struct worker *w); /* behind the last message, before the thread rests; may be NULL */
        void *to_settle;                  /* its argument */
        struct agent *agent;
        worker_loop loop;
        double pace_offset_ns; /* from the start to the first message */
        uint32_t index;
        bool is_notified;  /* the kernel notifies it of what it sends (zero-copy) */
        bool parts_unseen; /* the engine completes a message by itself, in an unknown number of parts */
        uint64_t sink;     /* where the bytes that a receiver touches end up, so that the reads are not dropped */

        /* Between leader and worker while the worker is at rest. */
        alignas(WORKER_LINE) pthread_t thread;
        pid_t tid;
        sem_t go;
        enum worker_command command;
        uint64_t start_ns;    /* when the next loop begins */
        uint64_t finished_ns; /* when the last loop ended */
        uint32_t resting;     /* atomic: 1 = at rest, what it left can be read */
        struct failure failure;
        struct thread_proof proof;
        size_t buffer_length;
};

/* In the worker's thread: w->latency, empty, where samples are taken at all. 0; negative errno with w->failure. */
int worker_make_histogram(struct worker *w);
/* Gets a worker out of the system call that it may sit in (SIGUSR1, see workers_init_signals()); repeat until it rests.
 */
void worker_kick(struct worker *w);

/* For the leader. Whether all are at rest. */
bool workers_resting(const struct agent *a);
/* The failure of the first worker at rest that has one, or NULL. */
const struct failure *workers_failure(const struct agent *a);

static inline void worker_set_limit(struct worker *w, uint64_t limit) {
        __atomic_store_n(&w->limit, limit, __ATOMIC_RELEASE);
}

static inline uint64_t worker_limit(const struct worker *w) {
        return __atomic_load_n(&w->limit, __ATOMIC_RELAXED);
}

static inline uint64_t worker_messages(const struct worker *w) {
        return __atomic_load_n(&w->messages, __ATOMIC_RELAXED);
}

/* For a send or receive that was interrupted before its first byte: whether there is nothing more to do. */
static inline bool worker_over(const struct worker *w) {
        return worker_messages(w) >= worker_limit(w);
}

/* One writer: a plain add, without a locked instruction, that the leader can read at any time. */
static inline void worker_add(uint64_t *counter, uint64_t n) {
        __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

static inline void worker_count(uint64_t *counter) {
        worker_add(counter, 1);
}

#endif
