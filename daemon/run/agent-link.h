/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_AGENT_LINK_H
#define IPCLAB_DAEMON_AGENT_LINK_H

/*
 * The daemon's end of one agent: its control socket and its process, watched together. Holds the agent to the
 * protocol (schema/protocol/protocol.h), to its deadlines and to its word; says in a sentence what went wrong. It
 * decides nothing about the run: that is the runner's.
 */

#include "daemon/run/spawn.h"
#include "schema/protocol/protocol.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

enum agent_state {
        AGENT_STARTED,    /* hello is expected */
        AGENT_SETTING_UP, /* ready is expected */
        AGENT_READY,      /* nothing is expected until it is started */
        AGENT_RUNNING,    /* alive, samples, in the end a report */
        AGENT_REPORTED,   /* nothing more */
        AGENT_LEAVING,    /* it was told to go and should exit 0 */
        AGENT_FAILED,     /* not listened to any more */
};

/* How much a failure tells. What an agent says may be a consequence of what became of the other one; what it says of
 * the other one is. */
enum agent_failure { AGENT_BLAMED_PEER, AGENT_SAID_SO, AGENT_WENT_SILENT, AGENT_BROKE_PROTOCOL, AGENT_DIED };

struct agent_link;

struct agent_link_ops {
        void (*ready)(void *userdata, struct agent_link *l);
        void (*parts)(void *userdata, struct agent_link *l, const struct message_parts *parts);
        /* Taking the encoded latency over means leaving NULL in its place. */
        void (*sample)(void *userdata, struct agent_link *l, struct message_sample *sample);
        void (*reported)(void *userdata, struct agent_link *l);
        void (*failed)(void *userdata, struct agent_link *l, enum agent_failure failure, const char *words);
        void (*ended)(void *userdata, struct agent_link *l); /* reaped; exactly once */
};

struct agent_link_options {
        sd_event *event;
        const char *role;                  /* static */
        const struct message_setup *setup; /* must outlive the link */
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
        bool has_ended;               /* reaped: the two below are known */
        int exit_code;                /* of siginfo_t: CLD_EXITED … */
        int exit_status;              /* status or signal */
        uint64_t cpu_ns;              /* user and system time, all threads */
        struct message ready, report; /* type MESSAGE_READY, MESSAGE_REPORT once they have come, else MESSAGE_HELLO */
        uint64_t sampled_messages, sampled_bytes;
        uint64_t parts_messages;        /* of the samples' parts */
        struct message_thread *threads; /* of the point's threads, the n_threads first */
        uint32_t n_threads;

        /* its own */
        sd_event *event;
        const struct message_setup *setup;
        const struct agent_link_ops *ops;
        void *userdata;
        int control_fd, pidfd;
        sd_event_source *control_source, *process_source, *timer;
        uint64_t spawned_ns, start_ns, heard_ns;
        uint64_t parts_end_ns; /* of the last part; 0: none has come */
        uint64_t deadline_ns;  /* of the next message, UINT64_MAX: none */
        uint64_t packets;
        uint32_t *next_second; /* per thread */
        uint32_t n_counted;    /* threads whose counters were asked for */
        bool hung_up;
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
/* SIGKILL, and no more listening; `ended` follows. */
void agent_link_kill(struct agent_link *l);
/* Appends to the words of a failure what others may wait for: "; ROLE (pid 12) is stopped", if that is wanted of the
 * agent itself, and "; process 13 of ROLE (pid 12) is stopped" of the first such that its main thread has forked. */
void agent_link_tell_stopped(const struct agent_link *l, bool itself, char *words, size_t size);

#endif
