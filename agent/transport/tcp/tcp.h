/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_TCP_H
#define IPCLAB_AGENT_TCP_H

/*
 * TCP on loopback, as its files share it:
 *
 *      transport-tcp.c  the transport: what a worker owns, what was in force
 *      tcp-connect.c    how the connections come to be
 *      tcp-loops.h      streams whose messages carry the time of their sending, one way or both
 *      tcp-modes.h      the three copy modes
 *      tcp-syscall.c    … by system calls
 *      tcp-uring.c      … by io_uring
 *      tcp-multishot.h  receiving by it, many short messages at a time
 *
 * The server (first end) listens, the client connects; connection i belongs to thread i of both. A message is assembled
 * from fields that lie apart:
 *
 *      two-copy   packed into one buffer, which is sent; the kernel copies that. A single field is not packed
 *      one-copy   gathered by the kernel, which copies the fields (sendmsg)
 *      zero-copy  sent from where it lies (MSG_ZEROCOPY), from a pool of messages (zerocopy.h)
 */

#include "agent/base/agent.h"
#include "agent/loop/fields.h"
#include "agent/transport/tcp/zerocopy.h"
#include "agent/transport/transport.h"

#include <stdbool.h>
#include <stdint.h>

struct json_writer;
struct tcp_multishot;
struct uring_zerocopy;

#define TCP_STAMP 8u /* bytes at a message's begin that hold the time of its sending */
/* A clock is read, at each end, once for so many bytes: what it costs stays below a hundredth of what they do. */
#define TCP_STAMP_BYTES 4096u

/* A thread's own, at w->channel. */
struct tcp_channel {
        struct fields *fields;           /* the message to be sent, but for zero-copy; NULL where nothing is sent */
        unsigned char *packed;           /* two-copy: the buffer that the fields are packed into, or the only field */
        size_t packed_length;            /* of a mapping of its own; 0: the worker's buffer, or the fields' memory */
        struct zerocopy *zerocopy;       /* zero-copy: the messages */
        struct uring_zerocopy *uring;    /* and the ring that sends them, where that is the engine */
        struct tcp_multishot *multishot; /* by io_uring: where short messages come from; NULL: they come one by one */
        const char *no_multishot;        /* why they do, where they should not; static */
        uint64_t stamp_mask;             /* a message whose number has none of these bits is stamped */
        uint64_t no_buffers_ns;          /* since when sends have failed with ENOBUFS; 0: they do not */
};

/* The agent's, at a->transport_data. */
struct tcp {
        int listener; /* -1: closed */
        uint16_t port;
        uint32_t strangers; /* connections that were refused as not the client's */
        unsigned char token[12];
};

/* Makes every worker's connection. 0; negative errno with a->failure. */
int tcp_connect_all(struct agent *a, struct tcp *t);
/* Members of `effective` that the sockets can tell. */
void tcp_sockets_effective(const struct agent *a, struct json_writer *w);

/* Parts of struct transport_ops that both engines have. */
int tcp_open(struct agent *a);
void tcp_close(struct agent *a);
int tcp_attach(struct worker *w);
void tcp_detach(struct worker *w);
void tcp_effective(const struct agent *a, struct json_writer *w);
int tcp_pages(const struct agent *a, struct page_list *list);

/* The loops of the copy modes, by system calls. */
const struct transport_loops *tcp_syscall_loops(const struct agent *a);

/* Whether every thread receives many short messages at a time: what only some do, a result cannot say of all.
 * *ret_reason is the first reason why one does not where it should (static), or NULL. */
bool tcp_receives_many(const struct agent *a, const char **ret_reason);

/* How the effective engine and copy mode send, by name. */
const char *tcp_send_method(const struct agent *a);

/* Which way this agent's messages go. */
bool tcp_agent_sends(const struct agent *a);
bool tcp_agent_receives(const struct agent *a);
/* Whether messages carry the time of their sending: an open loop has it from the schedule, but where streams go both
 * ways. */
bool tcp_stamps(const struct agent *a);

/* The message that is to be sent next. */
static inline struct fields *tcp_fields(const struct tcp_channel *c) {
        return c->zerocopy ? c->zerocopy->messages[c->zerocopy->current] : c->fields;
}

#endif
