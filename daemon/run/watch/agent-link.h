/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The daemon's end of one agent: its control socket and its process, watched together. It checks that the agent keeps
 * to the protocol (schema/protocol/protocol.h), to its deadlines and to its earlier messages, and reports a failure as
 * one sentence. The runner decides about the run.
 */

#include "daemon/run/spawn/spawn.h"
#include "schema/protocol/protocol.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

enum agent_state {
        AGENT_STARTED,    /* hello is expected */
        AGENT_SETTING_UP, /* ready is expected, behind probes where the set-up orders them */
        AGENT_READY,      /* nothing is expected before the start */
        AGENT_RUNNING,    /* alive, samples, and at last a report */
        AGENT_REPORTED,   /* nothing more */
        AGENT_LEAVING,    /* its control socket is closed; it should exit 0 */
        AGENT_FAILED,     /* nothing is received from it any more */
};

/* The kinds of failure, by how much each explains. An error that an agent reports may be a consequence of its peer's
 * failure; an error that names the peer as its cause is one. */
enum agent_failure { AGENT_BLAMED_PEER, AGENT_REPORTED_ERROR, AGENT_WENT_SILENT, AGENT_BROKE_PROTOCOL, AGENT_DIED };

struct agent_link;

struct agent_link_ops {
        void (*ready)(void *userdata, struct agent_link *l);
        void (*parts)(void *userdata, struct agent_link *l, const struct message_parts *parts);
        /* A callback that takes the encoded latency over leaves NULL in its place. */
        void (*sample)(void *userdata, struct agent_link *l, struct message_sample *sample);
        void (*reported)(void *userdata, struct agent_link *l);
        void (*failed)(void *userdata, struct agent_link *l, enum agent_failure failure, const char *words);
        void (*ended)(void *userdata, struct agent_link *l); /* reaped, or left to its tracer; exactly once */
};

struct agent_link_options {
        sd_event *event;
        const char *role;                  /* static */
        const struct message_setup *setup; /* must outlive the link */
        uint64_t cache_bytes;              /* topology_last_cache() */
        int control_fd;                    /* of agent_link_socketpair(); taken over */
        struct spawned process;            /* taken over */
        const struct agent_link_ops *ops;
        void *userdata;
};

struct agent_link {
        /* for the runner to read */
        const char *role;
        pid_t pid;
        enum agent_state state;
        bool has_ended;
        bool has_status;              /* it was reaped: the three below are known */
        bool held;                    /* it was not: agent_link_leave_to_tracer() */
        int exit_code;                /* of siginfo_t: CLD_EXITED … */
        int exit_status;              /* status or signal */
        uint64_t cpu_ns;              /* user and system time, all threads */
        struct message ready, report; /* type MESSAGE_READY, MESSAGE_REPORT once they have come, else MESSAGE_HELLO */
        struct probe probes[PROBE_TIMES]; /* of thread 0, the n_probes first */
        uint32_t n_probes;
        struct probe others[PROBE_TIMES][PROBE_OTHERS_MAX]; /* of threads 1, 2 …, the n_others first */
        uint32_t n_others[PROBE_TIMES];
        uint64_t sampled_messages, sampled_bytes;
        uint64_t sampled_ns;            /* of thread 0 */
        uint64_t parts_messages;        /* of the samples' parts */
        struct message_thread *threads; /* of the point's threads, the n_threads first */
        uint32_t n_threads;

        /* its own */
        sd_event *event;
        const struct message_setup *setup;
        uint64_t cache_bytes;
        const struct agent_link_ops *ops;
        void *userdata;
        int control_fd, pidfd;
        sd_event_source *control_source, *process_source, *timer;
        uint64_t spawned_ns, start_ns;
        uint64_t received_ns;  /* the last message; at first the spawn, then the start or the dismissal */
        uint64_t parts_end_ns; /* of the last part; 0: none has come */
        uint64_t deadline_ns;  /* of the next message, UINT64_MAX: none */
        uint64_t packets;
        uint32_t *next_second; /* per thread */
        uint32_t n_counted;    /* threads that have requested their counters */
        bool control_closed;   /* by the agent */
        bool knows_oom_kills;
        uint64_t oom_kills; /* oom_kills() at the start */
};

/* The two ends of a control socket, both closed by exec; to be made before the agent is started. The kernel attaches
 * the sender's credentials to what the daemon's end receives, and a message that another process than the agent sent
 * ends the run. 0 or negative errno. */
int agent_link_socketpair(int *ret_daemons, int *ret_agents);

/* 0 or negative errno; on failure descriptors and process are still the caller's. */
int agent_link_new(struct agent_link **ret, const struct agent_link_options *o);
/* Also kills and reaps an agent that has not ended. NULL-safe. */
void agent_link_free(struct agent_link *l);

/* The barrier: READY -> RUNNING. 0 or negative errno. */
int agent_link_start(struct agent_link *l, uint64_t start_ns);
/* REPORTED -> LEAVING: closes the control socket. */
void agent_link_dismiss(struct agent_link *l);
/* Sends SIGSTOP, to be killed next: an agent that notices that its peer was killed would end by itself before it is. */
void agent_link_stop(struct agent_link *l);
/* Sends SIGKILL and receives no more messages; `ended` follows. */
void agent_link_kill(struct agent_link *l);
/* A killed agent that is still there because a tracer holds it, which may be for ever: calls `ended`, and leaves the
 * process to spawn_reap_strays(). *ret_tracer: its pid; 0: it is not seen from here. False: nothing is known to hold
 * it; one that only waited for its reaping has ended then (has_ended), with its status. */
bool agent_link_leave_to_tracer(struct agent_link *l, pid_t *ret_tracer);
/* Appends stopped processes, which others may be waiting for, to the words of a failure: "; ROLE (pid 12) is stopped"
 * if `itself`, and "; process 13 of ROLE (pid 12) is stopped" for the first such child of its main thread. An agent may
 * have any number of them: of more than PROCS_CHILDREN_MAX (procs.h) the others are not read, and the words
 * contain that. */
void agent_link_append_stopped(const struct agent_link *l, bool itself, char *words, size_t size);
