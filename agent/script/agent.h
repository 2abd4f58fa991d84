/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_AGENT_H
#define IPCLAB_AGENT_AGENT_H

/*
 * The agent as its modules share it.
 *
 * Threads: the main thread is the worker of thread 0, so that what /proc says of the process is what is measured;
 * further workers have threads of their own; the leader (leader.c) has another, off the measured CPUs where there are
 * others. Workers run nothing but their loop (loops.h). The leader speaks with the daemon and with the other agent,
 * takes snapshots of the workers' counters, and starts and stops them.
 */

#include "agent/measure/sampler.h"
#include "agent/os/twin.h"
#include "agent/proof/proof.h"
#include "agent/script/failure.h"
#include "agent/script/worker.h"
#include "agent/transport/transport.h"
#include "agent/workload/workload.h"
#include "schema/protocol/protocol.h"

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

/* Exit codes beside 0: the run went wrong (the daemon was told), bad usage, the daemon is gone. */
#define AGENT_EXIT_FAILED 1
#define AGENT_EXIT_USAGE 2
#define AGENT_EXIT_ORPHANED 3

struct agent {
        enum end end;
        const char *role, *peer_role;
        int control_fd, peer_fd, run_dir_fd;
        int event_fd; /* written by a worker that has come to rest */

        struct twin_memory inherited; /* of agents that share memory by descent */
        struct cpumask affinity;      /* of the process as it was started */
        struct message_setup setup;
        const struct transport_ops *transport;
        const struct workload_ops *workload;
        void *transport_data; /* the transport's own, for the whole agent */

        struct worker *workers;
        uint32_t n_workers;
        uint32_t busy;       /* workers not at rest; atomic */
        sem_t workers_ready; /* posted once the threads can be started */

        const char *phase;                     /* of the alive messages; NULL before the start */
        uint64_t spoke_ns;                     /* when the daemon last heard of us */
        bool peer_done;                        /* nothing more is expected of the other agent: it may go */
        uint64_t clock_cost_ns;                /* of one reading of the clock; 0: not measured here */
        struct page_list pages;                /* the leader's: what the proof looks at */
        struct counters *counters;             /* the leader's: opened when the workers are ready */
        struct kernel_threads *kernel_threads; /* the leader's; NULL before the first look, and where there are none */
        int uncounted; /* negative errno: the daemon gave no answer on counters; no more is asked */
        struct window window;
        struct failure failure; /* the leader's */
};

#endif
