/* SPDX-License-Identifier: MIT */

/*
 * System V message queues: one per thread and direction, which the first end makes and whose ids it sends to the
 * second. A queue outlives its creator: each end removes the queues when it ends, also after a failure, and any that
 * both leave end with the run's IPC namespace.
 *
 * A message is preceded by its type, a long, which lies before the page-aligned message; the type of a later chunk
 * overwrites the end of the chunk before it for the duration of the call.
 *
 * Source: man 2 msgget, msgop, msgctl; man 7 sysvipc. The calls go through syscall(2), for the reason in descriptor.h.
 */

#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/transport/queue/queues.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"

#include <inttypes.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/syscall.h>

#define TYPE 1L

/* The ids of the queue from the first end to the second, and of that back (pingpong only); -1: none. */
struct ids {
        int there, back;
};

/* --- hot --- */

LOOP_INLINE ssize_t sysv_send(struct worker *w, unsigned char *packet, size_t length) {
        const struct queue *q = w->channel;
        long r = syscall(SYS_msgsnd, q->send_id, packet - sizeof(long), length, 0);
        return r < 0 ? r : (ssize_t) length;
}

LOOP_INLINE ssize_t sysv_receive(struct worker *w, unsigned char *packet, size_t length) {
        const struct queue *q = w->channel;
        return syscall(SYS_msgrcv, q->receive_id, packet - sizeof(long), length, 0L, 0);
}

/* The type of every chunk but the first overlaps the message. */
LOOP_INLINE ssize_t sysv_send_chunk(struct worker *w, unsigned char *packet, size_t length) {
        long saved, type = TYPE;
        memcpy(&saved, packet - sizeof saved, sizeof saved);
        memcpy(packet - sizeof type, &type, sizeof type);
        ssize_t n = sysv_send(w, packet, length);
        memcpy(packet - sizeof saved, &saved, sizeof saved);
        return n;
}

LOOP_INLINE ssize_t sysv_receive_chunk(struct worker *w, unsigned char *packet, size_t length) {
        long saved;
        memcpy(&saved, packet - sizeof saved, sizeof saved);
        ssize_t n = sysv_receive(w, packet, length);
        memcpy(packet - sizeof saved, &saved, sizeof saved);
        return n;
}

QUEUE_LOOPS(sysv, sysv_send, sysv_receive, sysv_send_chunk, sysv_receive_chunk)

/* --- set-up --- */

/* Checks the namespace's limits, as msgsnd(2) would wait forever with a message that is longer than the queue. */
static int check_limits(struct agent *a) {
        struct msginfo info;
        size_t packet = queues_packet(a);
        if (msgctl(0, IPC_INFO, (struct msqid_ds *) (void *) &info) < 0)
                return failure_set(&a->failure, errno, "msgctl(IPC_INFO): %s", strerrordesc_np(errno));
        if (packet <= (size_t) info.msgmax && packet <= (size_t) info.msgmnb)
                return 0;
        bool message = packet > (size_t) info.msgmax;
        return failure_limit(&a->failure, EMSGSIZE, message ? HOST_MSGMAX : HOST_MSGMNB,
                             (uint64_t) (message ? info.msgmax : info.msgmnb), packet, "the message is too long");
}

/* Sets the queue's size to the set-up's number of messages, where it gives one. */
static int set_depth(struct agent *a, int id) {
        uint64_t depth = a->setup.options.msgq_depth, bytes = depth * queues_packet(a);
        struct msqid_ds ds;
        if (depth == 0)
                return 0;
        if (msgctl(id, IPC_STAT, &ds) < 0)
                return failure_set(&a->failure, errno, "msgctl(IPC_STAT): %s", strerrordesc_np(errno));
        ds.msg_qbytes = bytes;
        if (msgctl(id, IPC_SET, &ds) < 0)
                return failure_set(
                        &a->failure, errno, "msgq_depth %" PRIu64 " needs a queue of %" PRIu64 " bytes: %s%s", depth,
                        bytes, strerrordesc_np(errno),
                        errno == EPERM ? " (kernel.msgmnb is less, and to exceed it is for the privileged)" : "");
        return 0;
}

static int make_queue(struct agent *a, int *ret) {
        int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
        if (id < 0)
                return failure_set(&a->failure, errno, "msgget: %s%s", strerrordesc_np(errno),
                                   errno == ENOSPC ? " (kernel.msgmni queues exist already)" : "");
        *ret = id;
        return set_depth(a, id);
}

static int send_ids(struct agent *a, uint32_t thread, struct ids *q, uint64_t deadline_ns) {
        int r = make_queue(a, &q->there);
        if (r == 0 && point_directions(&a->setup.point) == 2)
                r = make_queue(a, &q->back);
        /* both in one packet: neither is negative, as both are made where two are due */
        uint64_t value = (uint64_t) (uint32_t) q->there << 32 | (uint32_t) q->back;
        return r < 0 ? r : peer_send(a, PEER_TRANSPORT, thread, value, deadline_ns);
}

static int receive_ids(struct agent *a, uint32_t thread, struct ids *q, uint64_t deadline_ns) {
        uint64_t value = 0;
        int r = peer_receive(a, PEER_TRANSPORT, thread, &value, deadline_ns);
        if (r == 0)
                *q = (struct ids){.there = (int) (value >> 32), .back = (int) (uint32_t) value};
        return r;
}

static int sysv_open(struct agent *a) {
        uint64_t deadline_ns = util_now_ns() + AGENT_RENDEZVOUS_NS;
        struct ids *all = malloc(a->n_workers * sizeof *all);
        if (!all)
                return failure_set(&a->failure, ENOMEM, "no memory for %" PRIu32 " queues", a->n_workers);
        for (uint32_t i = 0; i < a->n_workers; i++)
                all[i] = (struct ids){.there = -1, .back = -1};
        a->transport_data = all;
        int r = check_limits(a);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++)
                r = a->end == END_FIRST ? send_ids(a, i, &all[i], deadline_ns)
                                        : receive_ids(a, i, &all[i], deadline_ns);
        return r;
}

static int sysv_attach(struct worker *w) {
        const struct ids *all = w->agent->transport_data, *mine = &all[w->index];
        int r = queues_attach(w);
        if (r < 0)
                return r;
        struct queue *q = w->channel;
        long type = TYPE;
        memcpy(q->message - sizeof type, &type, sizeof type); /* a received message has the same type */
        for (unsigned char *at = w->source; at && at < w->cold.end; at += w->cold.stride)
                memcpy(at - sizeof type, &type, sizeof type);
        q->send_id = w->agent->end == END_FIRST ? mine->there : mine->back;
        q->receive_id = w->agent->end == END_FIRST ? mine->back : mine->there;
        return 0;
}

/* Both ends remove the queues, as the other one may have died. */
static void sysv_close(struct agent *a) {
        struct ids *all = a->transport_data;
        for (uint32_t i = 0; all && i < a->n_workers; i++) {
                /* the only possible error is that the queue is already removed */
                if (all[i].there >= 0)
                        (void) msgctl(all[i].there, IPC_RMID, NULL);
                if (all[i].back >= 0)
                        (void) msgctl(all[i].back, IPC_RMID, NULL);
        }
        free(all);
        a->transport_data = NULL;
}

static void sysv_effective(const struct agent *a, struct effective *e) {
        const struct ids *all = a->transport_data;
        struct msqid_ds ds;
        queues_effective(a, e);
        errno = ENOENT; /* where no queue exists to query */
        if (all && msgctl(all[0].there, IPC_STAT, &ds) == 0) {
                effective_add_number(e, SETTING_QUEUE_BYTES, ds.msg_qbytes);
                effective_add_number(e, SETTING_BUFFER_BYTES, ds.msg_qbytes);
                effective_add_number(e, SETTING_QUEUE_MESSAGES, ds.msg_qbytes / queues_packet(a));
        } else {
                effective_add_unknown(e, SETTING_QUEUE_BYTES, strerrordesc_np(errno));
        }
}

const struct transport_ops transport_msgq_sysv = {
        .transport = TRANSPORT_MSGQ_SYSV,
        .engine = ENGINE_SYSCALL,
        .open = sysv_open,
        .attach = sysv_attach,
        .detach = queues_detach,
        .close = sysv_close,
        .loops = sysv_loops,
        .effective = sysv_effective,
        .pages = queues_pages,
};
