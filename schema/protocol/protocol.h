/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages between ipclabd and ipclab-agent: one binary packet each, over a SOCK_SEQPACKET pair. Their layout is
 * wire.h's, a row for each field. The decoder checks every field: another version or type, a field out of its range, a
 * length beyond the packet's end, or bytes behind the last field are -EBADMSG, and end the run.
 *
 *      agent                     daemon
 *      hello           ->
 *                      <-        setup
 *      count …         ->                    a thread that is to have counters, each after the answer to the last
 *                      <-        counting …  with the descriptors that are to be read
 *      probe …         ->                    where the set-up orders them, those before the warm-up: of thread 0,
 *                                            and of further threads in their order
 *      ready           ->                    placement checked, transport set up
 *                      <-        start       both are ready: the barrier
 *      alive …         ->                    at least once a second while no sample is due
 *      parts           ->                    a second of all threads in ten parts, as soon as it is over
 *      sample …        ->                    the same second of each thread
 *      thread …        ->                    the whole window of each thread, in their order
 *      probe …         ->                    those after the window, likewise
 *      report          ->                    the window is over, both ends have agreed on the message count
 *                      <-        (closes)    the agent exits 0
 *      error           ->                    at any time: the agent fails, with the reason and which end's fault it is
 *
 * An agent is started with the descriptors below and no arguments but its role. It needs no path: every name that it
 * makes lies in RUN_DIR_FD. The daemon checks the sender of each packet: only the agent itself may send.
 */

#include "schema/measure/counters.h"
#include "schema/measure/histogram.h"
#include "schema/measure/probe.h"
#include "schema/protocol/effective.h"
#include "schema/protocol/proof-report.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define PROTOCOL_VERSION 12
#define PROTOCOL_PACKET_MAX (128u * 1024u)

/* Descriptors that an agent inherits. */
#define AGENT_CONTROL_FD 3 /* SOCK_SEQPACKET to the daemon */
#define AGENT_PEER_FD 4    /* SOCK_SEQPACKET to the run's other agent: rendezvous (SCM_RIGHTS), end of window */
#define AGENT_RUN_DIR_FD 5 /* O_PATH directory of this run, writable by the agent, removed by the daemon */

#define AGENT_CPUS_MAX 1024u

/*
 * Two agents that share memory by descent (mmap-anonymous) begin as one program, started with both roles and the number
 * of bytes to share: `ipclab-agent ROLE PEER-ROLE BYTES [huge]`. It maps them, forks its peer as a child of its own
 * parent, and is the first agent from then on. The forked peer inherits these descriptors, and moves them to the
 * numbers above:
 *
 *      program                     daemon
 *      forked_report   ->                            with the forked peer's pid, or the errno of the failed step
 *                      <-          forked_placement  of the peer, which applies it before it touches any memory
 */
#define AGENT_FORKED_CONTROL_FD 6
#define AGENT_FORKED_PEER_FD 7
#define AGENT_FORKED_REPORT_FD 8 /* SOCK_SEQPACKET: the two packets above; closed by both after them */

struct forked_report {
        int32_t pid;
        int32_t error; /* errno; 0: forked */
        char step[24]; /* "mmap", "clone" */
};

struct forked_placement {
        uint64_t cpus[SPEC_CPUS_MAX / 64];
        uint32_t set_memory; /* 0: a kernel without memory policies */
        uint32_t memory;     /* enum memory_policy */
        struct node_set memory_nodes;
};

enum message_type {
        MESSAGE_HELLO,
        MESSAGE_SETUP,
        MESSAGE_COUNT,
        MESSAGE_COUNTING,
        MESSAGE_PROBE,
        MESSAGE_READY,
        MESSAGE_START,
        MESSAGE_ALIVE,
        MESSAGE_PARTS,
        MESSAGE_SAMPLE,
        MESSAGE_THREAD,
        MESSAGE_REPORT,
        MESSAGE_ERROR,
};

struct message_hello {
        int32_t pid;
};

/* Where this agent runs, resolved: the daemon has set the same before exec, and the agent verifies it. */
struct agent_placement {
        int32_t *cpus; /* CPU of thread i is cpus[i % n_cpus]; n_cpus 0: not pinned (placement default) */
        size_t n_cpus;
        bool roam; /* every thread may run on any of cpus, as under numactl --cpunodebind: {"node": 0} without "cpu" */
        int32_t *leader_cpus; /* where the leader thread shall run; n 0: anywhere the agent may */
        size_t n_leader_cpus;
        enum memory_policy memory;
        struct node_set memory_nodes;
        enum memory_policy buffer; /* of the pages that carry messages; MEMORY_DEFAULT: as `memory` */
        struct node_set buffer_nodes;
};

struct message_setup {
        enum end end;
        struct point point; /* its placement is not sent: agent_placement is */
        enum verify verify;
        uint64_t duration_ns;   /* 0 when messages ends the window */
        uint64_t messages;      /* per thread (calls, round trips); 0 when duration does */
        uint64_t messages_over; /* the number of threads, from the first on, that have one more: fewer than there are */
        uint64_t warmup_ns;
        uint64_t interval_ns; /* of the samples; 0: no samples (for measuring what they cost) */
        uint64_t stall_ns;    /* a thread that moves nothing for this long fails the run; 0: the agent's own */
        double rate;          /* messages per second per thread; the threads take turns. 0 = closed loop */
        uint64_t chunk_bytes; /* messages go in pieces of this size, the last one shorter; 0 = whole */
        struct transport_options options;
        struct agent_placement placement;
        bool probes; /* calibration probes are to be taken: before ready, and before the report */
        bool fresh;  /* each message is written anew before it is sent */
        bool stamp;  /* messages of a closed-loop stream carry the time of their sending, where the transport can */
};

/* A thread of the agent's own process. The daemon alone chooses the events that are counted of it. */
struct message_count {
        int32_t tid;
};

/* 0 or errno, by event. For each 0 the packet has a descriptor (SCM_RIGHTS), in this order. */
struct message_counting {
        int errors[PERF_EVENT_COUNT][PERF_MODE_COUNT];
};

struct message_ready {
        struct proof_report *proof;  /* malloc()ed: placement after set-up */
        struct effective *effective; /* malloc()ed: what is in force */
};

struct message_start {
        uint64_t start_ns; /* CLOCK_MONOTONIC: warm-up begins for both ends at this instant */
};

/* The phases of a run; no message has PHASE_SETUP. */
enum phase { PHASE_SETUP, PHASE_WARMUP, PHASE_WINDOW, PHASE_DRAINING, PHASE_COUNT };

struct message_alive {
        enum phase phase;
};

/* A tenth of a second, or as long as it really was, of all threads together. */
struct message_part {
        uint64_t interval_ns; /* true length, not 0 */
        uint64_t messages;
        uint64_t p50_ns;     /* of its latencies; 0: none was measured in it, or there are too many threads */
        uint64_t stopped_ns; /* how long the agent stood still at its end, as far as that is known */
};

/* The most threads of which parts have a median: copying a histogram takes microseconds. */
#define MESSAGE_PARTS_TIMED_THREADS 64

#define MESSAGE_PARTS_PER_SAMPLE 10u
#define MESSAGE_PARTS_MAX (2 * MESSAGE_PARTS_PER_SAMPLE)

/* What the agent's connections sent again in the time of a packet of parts. */
enum sent_again_known { SENT_AGAIN_UNKNOWN, SENT_AGAIN_SEGMENTS, SENT_AGAIN_TIMEOUTS, SENT_AGAIN_COUNT };
struct message_sent_again {
        enum sent_again_known known; /* nothing: there are none, or they cannot be read; or all but timeouts; or all */
        uint64_t segments;
        uint64_t spurious; /* of them the other end reported to have got twice */
        uint64_t timeouts; /* how often a connection stood still until its timer sent again */
};

/* The series by which a run's steadiness is judged. One part begins where the last one ended, also across packets. */
struct message_parts {
        uint64_t begin_ns; /* CLOCK_MONOTONIC, of the first */
        struct message_sent_again sent_again;
        uint32_t n;
        struct message_part list[MESSAGE_PARTS_MAX];
};

struct message_sample {
        uint32_t thread;
        uint32_t second;      /* of the window, from 0, in which it begins: the same at both ends */
        uint64_t begin_ns;    /* CLOCK_MONOTONIC, which both ends and the daemon share */
        uint64_t interval_ns; /* true length */
        uint64_t messages;
        uint64_t bytes;
        struct counters_totals counters;
        struct histogram *latency; /* NULL where the workload has none */
        /* The histogram as it is sent, HdrHistogram's V2 encoding with the exact sum behind it. The decoder leaves it
         * here, to be stored as it is; a sender may leave it NULL. */
        uint8_t *latency_v2;
        size_t latency_length;
};

/* A thread's part of the report. A packet of its own, as those of a thousand threads do not fit into one. */
struct message_thread {
        uint32_t thread;
        uint64_t messages;
        uint64_t bytes;
        struct counters_totals counters;
};

/* The clock that messages are timed by, as thread 0 read it on its own CPU before the warm-up. */
struct clock_facts {
        uint64_t cost_ns;    /* of one reading; 0: not measured */
        uint64_t quantum_ns; /* the step in which it advances; 1: a few nanoseconds or less; 0: not measured */
};

/* Totals of the window, all threads. */
struct message_report {
        uint64_t window_ns; /* this end's own window */
        uint64_t messages;
        uint64_t bytes;
        struct proof_report *proof;  /* malloc()ed: placement at the end */
        struct effective *effective; /* malloc()ed: what was really in force */
        struct counters_totals counters;
        struct clock_facts clock;
};

/* "own", "peer". FAULT_PEER is only what the agent observed of its peer: the peer's own error message or exit status
 * names the cause, and takes precedence. */
enum fault { FAULT_OWN, FAULT_PEER };

struct message_error {
        enum fault fault;
        int error;        /* errno, 0 when it has none */
        char detail[400]; /* names the thing, the limit, the value */
};

struct message {
        enum message_type type;
        union {
                struct message_hello hello;
                struct message_setup setup;
                struct message_count count;
                struct message_counting counting;
                struct probe probe;
                struct message_ready ready;
                struct message_start start;
                struct message_alive alive;
                struct message_parts parts;
                struct message_sample sample;
                struct message_thread thread;
                struct message_report report;
                struct message_error error;
        };
};

const char *message_type_name(enum message_type type); /* "hello" …; NULL out of range */
const char *phase_name(enum phase phase);              /* "set-up", "warmup", "window", "draining"; the same */

/* malloc()ed packet. 0; -ENOMEM; -EMSGSIZE above PROTOCOL_PACKET_MAX; -EINVAL for an unknown type. */
int message_encode(const struct message *m, uint8_t **ret, size_t *ret_length);
/* 0 and a message for message_deinit(); -EBADMSG with a sentence in ret_detail[DETAIL_MAX] (may be NULL); -ENOMEM. */
int message_decode(const uint8_t *data, size_t length, struct message *ret, char *ret_detail);
void message_deinit(struct message *m);

/* One packet over the socket, with a deadline on CLOCK_MONOTONIC (0 = do not wait). 0; -ETIMEDOUT, -EAGAIN;
 * -ECONNRESET when the other side has closed the socket; -EBADMSG; errno. */
int message_send(int fd, const struct message *m, uint64_t deadline_ns);
int message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail);

/* Descriptors beside a message: copies, which the receiver closes. */
struct message_rights {
        int fds[PERF_HANDLES_MAX];
        size_t n;
};
int message_send_with(int fd, const struct message *m, const struct message_rights *rights, uint64_t deadline_ns);
/* None are left open on failure. Fewer arrive than were sent when the table of descriptors is full. */
int message_receive_with(int fd, struct message *ret, struct message_rights *rights, uint64_t deadline_ns,
                         char *ret_detail);
void message_rights_close(struct message_rights *rights);
/* Receives without waiting, together with the sender's credentials as the kernel attests them: the socket must have
 * SO_PASSCRED set before the sender exists. pid 0: unknown. -EBADMSG sets *ret_sender, too. Source: man 7 unix
 * (SCM_CREDENTIALS). */
int message_receive_from(int fd, struct message *ret, struct ucred *ret_sender, char *ret_detail);
