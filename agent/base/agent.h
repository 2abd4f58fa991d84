/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The agent as its modules share it.
 *
 * Threads: the main thread is the worker of thread 0, so that /proc's figures of the process are those of a measured
 * thread; further workers have threads of their own; the leader (agent/script/leader.c) has another one, off the
 * measured CPUs where other CPUs exist. Workers run nothing but their loop (agent/loop/loops.h). The leader exchanges
 * messages with the daemon and with the other agent, takes snapshots of the workers' counters, and starts and stops
 * them.
 */

#include "agent/base/failure.h"
#include "agent/base/worker.h"
#include "agent/os/cpumask.h"
#include "agent/os/fork-peer.h"
#include "schema/protocol/protocol.h"

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

/* Exit codes beside 0: the run failed (the daemon has the reason), bad usage, the daemon is gone. */
#define AGENT_EXIT_FAILED 1
#define AGENT_EXIT_USAGE 2
#define AGENT_EXIT_ORPHANED 3

struct counters;
struct kernel_threads;
struct probe;
struct probe_order;
struct proof;
struct transport_ops;
struct workload_ops;

struct agent {
        enum end end;
        const char *role, *peer_role;
        int control_fd, peer_fd, run_dir_fd;
        int event_fd; /* a worker that has come to rest writes it */

        struct forked_memory inherited; /* the mapping that a program and its forked peer share */
        struct cpumask affinity;        /* of the process as it was started */
        struct message_setup setup;
        const struct transport_ops *transport; /* NULL: the workload has none */
        const struct workload_ops *workload;
        void *transport_data; /* the transport's own, for the whole agent */
        /* Reads what the transport's connections have sent again since they were made. Why it is not known; NULL: it
         * is. NULL itself: the transport has no connections. */
        const char *(*sent_again)(const struct agent *a, struct message_sent_again *ret);

        struct worker *workers;
        uint32_t n_workers;
        uint32_t busy;       /* workers not at rest; atomic */
        sem_t workers_ready; /* posted once the threads can be started */

        enum phase phase;         /* of the alive messages; PHASE_SETUP before the start */
        uint64_t sent_ns;         /* when the last message to the daemon was sent */
        bool daemon_gone;         /* the control socket was closed too early: the process ends as an orphan */
        bool peer_done;           /* no more packets are due from the other agent: it may close its end */
        struct clock_facts clock; /* as worker 0 has it, from its set-up on */
        const struct probe_order *probe_order; /* of the probe that a worker takes now */
        struct probe *probe;

        /* These belong to the leader and are NULL before set-up. */
        struct proof *proof;
        struct counters *counters;
        int uncounted; /* negative errno: the daemon did not return counters; no more are requested */
        struct kernel_threads *kernel_threads; /* NULL also before the first scan, and where none exist */
        struct failure failure;
};

/* In the worker's thread: allocates w->latency, empty, where samples are taken. 0; negative errno with w->failure. */
int worker_make_recorder(struct worker *w);
/* Interrupts the system call that a worker may be blocked in (SIGUSR1, see workers_init_signals()). The caller repeats
 * it until the worker rests. */
void worker_kick(struct worker *w);

/* For the leader: whether all workers are at rest. */
bool workers_resting(const struct agent *a);
/* Whether the loops of all workers ended, though some may not rest yet. Where they did not, the last to end does so
 * after any reading of the clock that came before this call. */
bool workers_ended(const struct agent *a);
/* Returns the failure of the first worker at rest that has one, or NULL. */
const struct failure *workers_failure(const struct agent *a);

/* Whether this end's messages are the run's: those of the first end, except in a stream upwards. This end stops first
 * and sends the number of its messages. */
static inline bool agent_sends(const struct agent *a) {
        bool up = a->setup.point.workload == WORKLOAD_STREAM && a->setup.point.direction == DIRECTION_UP;
        return a->end == (up ? END_SECOND : END_FIRST);
}

/* Whether streams go both ways at once: each worker sends and receives, and counts the messages that it received. */
static inline bool agent_is_duplex(const struct agent *a) {
        return a->setup.point.workload == WORKLOAD_STREAM && a->setup.point.direction == DIRECTION_BOTH;
}
