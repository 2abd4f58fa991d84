/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * TCP on loopback, as its files share it:
 *
 *      tcp.c        the transport: a worker's memory, the settings in force
 *      connect.c    the creation of the connections
 *      loops.h      streams whose messages carry their send time, one way or both
 *      modes.h      the three copy modes
 *      syscall.c    … by system calls
 *      uring.c      … by io_uring
 *      multishot.h  receiving by io_uring, many short messages at a time
 *
 * The server (first end) listens, the client connects; connection i belongs to thread i of both. A message is assembled
 * from fields that lie apart:
 *
 *      two-copy   packed into one buffer, which is sent and which the kernel copies. A single field is not packed
 *      one-copy   gathered by the kernel, which copies the fields (sendmsg)
 *      zero-copy  sent from its own pages (MSG_ZEROCOPY), from a pool of messages (zerocopy.h)
 */

#include "agent/base/agent.h"
#include "agent/loop/fields.h"
#include "agent/transport/tcp/zerocopy.h"
#include "agent/transport/transport.h"

#include <stdbool.h>
#include <stdint.h>

struct effective;
struct tcp_multishot;
struct uring_zerocopy;

#define TCP_STAMP 8u /* bytes at a message's start that hold its send time */
/* Bytes between two readings of the clock at each end: moving them costs at least a hundred times as much. */
#define TCP_STAMP_BYTES 4096u

/* A thread's state, at w->channel. */
struct tcp_channel {
        struct fields *fields;           /* the message to be sent, except in zero-copy; NULL where nothing is sent */
        unsigned char *packed;           /* two-copy: the buffer that the fields are packed into, or the only field */
        size_t packed_length;            /* of its own mapping; 0: in the worker's buffer or the fields' memory */
        struct zerocopy *zerocopy;       /* zero-copy: the messages */
        struct uring_zerocopy *uring;    /* and the ring that sends them, with engine io_uring */
        struct tcp_multishot *multishot; /* by io_uring: receives short messages; NULL: they are received one by one */
        const char *no_multishot;        /* the reason, where multishot was to be used; static */
        uint64_t stamp_mask;             /* a message whose number has none of these bits is stamped */
        uint64_t no_buffers_ns;          /* since when sends have failed with ENOBUFS; 0: they have not */
};

/* The agent's state, at a->transport_data. */
struct tcp {
        int listener; /* -1: closed */
        uint16_t port;
        uint32_t refused; /* connections refused, as not the client's */
        unsigned char token[12];
};

/* Makes every worker's connection. 0; negative errno with a->failure. */
int tcp_connect_all(struct agent *a, struct tcp *t);
/* As sent_again of struct agent. */
const char *tcp_sent_again(const struct agent *a, struct message_sent_again *ret);
/* Adds the rows that are read from the sockets. */
void tcp_sockets_effective(const struct agent *a, struct effective *e);

/* Parts of struct transport_ops that both engines have. */
int tcp_open(struct agent *a);
void tcp_close(struct agent *a);
int tcp_attach(struct worker *w);
void tcp_detach(struct worker *w);
void tcp_effective(const struct agent *a, struct effective *e);
int tcp_pages(const struct agent *a, struct page_list *list);

/* The loops of the copy modes, by system calls. */
const struct transport_loops *tcp_syscall_loops(const struct agent *a);

/* Whether every thread receives many short messages at a time, as a result has one value for all threads. *ret_reason
 * is the first reason of a thread that does not where it was to (static), or NULL. */
bool tcp_receives_many(const struct agent *a, const char **ret_reason);

/* The name of the effective engine's and copy mode's call. */
const char *tcp_send_method(const struct agent *a);

/* Whether this agent sends messages, and whether it receives them. */
bool tcp_agent_sends(const struct agent *a);
bool tcp_agent_receives(const struct agent *a);
/* Whether messages carry their send time, or in an open loop their due time (schema/spec/spec.h). */
bool tcp_stamps(const struct agent *a);

/* The message that is to be sent next. */
static inline struct fields *tcp_fields(const struct tcp_channel *c) {
        return c->zerocopy ? c->zerocopy->messages[c->zerocopy->current] : c->fields;
}
