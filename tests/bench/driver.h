/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_DRIVER_H
#define IPCLAB_TESTS_DRIVER_H

/*
 * Runs a pair of real agents, or the one that a workload has, without a daemon: spawns them as the runner does
 * (descriptors, affinity before exec), speaks the protocol, and stores what they send. For the bench and for the
 * agent's tests.
 */

#include "schema/protocol/protocol.h"

#include <stdbool.h>
#include <sys/types.h>

#define DRIVER_PROBES_MAX ((uint32_t) PROBE_TIMES * (1 + PROBE_OTHERS_MAX))

struct driver_end {
        struct probe probes[DRIVER_PROBES_MAX]; /* as they came, the n_probes first */
        uint32_t n_probes;
        pid_t pid;
        int control_fd;
        const char *role;
        bool ready, reported, failed, gone; /* gone: hung up */
        int32_t count_tid;                  /* thread whose request for counters has no answer yet; 0: there is none */
        uint32_t counted;                   /* threads whose counters it requested */
        int status;                         /* of waitpid, after driver_close() */
        char *proof, *effective;            /* from ready */
        char *proof_at_end, *effective_at_end; /* from report */
        struct proof_report *proof_at_start;   /* the structure of `proof` */
        struct message_report report;
        char *counters; /* the report's, as JSON */
        struct message_error error;
        uint32_t samples, threads; /* how many came */
        uint64_t threads_messages, threads_bytes, threads_cpu_ns;
        uint64_t sampled_messages, sampled_bytes;
        uint64_t sampled_ns;     /* of thread 0 */
        uint64_t sampled_cpu_ns; /* by the samples' counters */
        uint32_t alive;
        struct histogram latency; /* all samples' */
};

struct driver_spec {
        const char *agent; /* path of ipclab-agent */
        struct point point;
        enum verify verify;
        uint64_t duration_ns, messages, warmup_ns, interval_ns, stall_ns;
        double rate; /* per thread; 0 = closed loop */
        bool stamp, fresh, probes;
        uint64_t chunk_bytes;
        struct transport_options options;
        enum memory_policy buffer; /* where both ends' buffers are to be */
        struct node_set buffer_nodes;
        int cpus[END_COUNT];      /* given to the agent and set before exec; -1: not pinned */
        uint32_t cpus_listed;     /* how often each of these is in the placement, for as many threads; 0: once */
        int real_cpus[END_COUNT]; /* what is set before exec instead, where `lie` is true */
        bool lie;
        const struct perf_source *perf;                                            /* of the agents' counters */
        enum { COUNTERS_GIVEN, COUNTERS_GIVEN_LATE, COUNTERS_NOT_GIVEN } counters; /* late: once an agent is ready */
        int peer_fds[END_COUNT]; /* -1: a socketpair; else the agent's side, owned by the driver from then on */
};

struct driver {
        struct driver_spec spec;
        struct driver_end ends[END_COUNT];
        unsigned n_ends; /* that the workload has */
        char run_dir[64];
        char trouble[300]; /* what the driver itself has to complain of */
};

struct driver_spec driver_spec_default(const char *agent);

/* Spawns, sends the set-ups, waits until both are ready. 0; -errno with d->trouble (an agent's error included). */
int driver_open(struct driver *d, const struct driver_spec *spec);
/* Gives both the start, a few milliseconds from now. */
int driver_start(struct driver *d);
/* Until both have reported, failed or gone. 0 when both reported. */
int driver_collect(struct driver *d, uint64_t deadline_ns);
/* Hangs up, waits for the agents (20 s; then kills), removes the run's directory. 0 when it was empty and both
 * exited by themselves. */
int driver_close(struct driver *d);

/* open, start, collect, close. 0 when all was well; else -errno with d->trouble. */
int driver_run(struct driver *d, const struct driver_spec *spec);
void driver_deinit(struct driver *d);

#endif
