/* SPDX-License-Identifier: MIT */

/*
 * Memory of the queues' messages, and the handling of a packet that was not sent or received at the first call. For
 * msgq-sysv.c and msgq-posix.c; runs in the worker's thread.
 */

#include "agent/transport/queue/queues.h"

#include "agent/loop/buffer.h"
#include "agent/transport/transport.h"

#include <inttypes.h>

bool queues_chunked(const struct agent *a) {
        return a->setup.chunk_bytes && a->setup.chunk_bytes < a->setup.point.message_size;
}

size_t queues_packet(const struct agent *a) {
        return (size_t) (queues_chunked(a) ? a->setup.chunk_bytes : a->setup.point.message_size);
}

/* 0: the caller tries again; else its result. */
static int after_error(struct worker *w, size_t length, size_t moved, const char *what) {
        int error = errno;
        switch (error) {
        case EINTR:
                worker_count(&w->eintr);
                return moved == 0 && worker_over(w) ? WORKER_STOP : 0;
        case EIDRM:
        case EINVAL: /* System V: a call after the removal; open() has excluded its other causes */
                return failure_set_peer(&w->failure, w->agent->peer_role, error,
                                        "removed the queue of thread %" PRIu32 " in message %" PRIu64 ": %s", w->index,
                                        w->messages, strerrordesc_np(error));
        default:
                return failure_set(&w->failure, error,
                                   "%s of %zu bytes failed in thread %" PRIu32 ", message %" PRIu64 ": %s", what,
                                   length, w->index, w->messages, strerrordesc_np(error));
        }
}

int queue_send_again(struct worker *w, unsigned char *packet, size_t length, size_t moved, ssize_t n, queue_call send) {
        while (n < 0) {
                int r = after_error(w, length, moved, "send");
                if (r)
                        return r;
                n = send(w, packet, length);
        }
        return 0;
}

int queue_receive_again(struct worker *w, unsigned char *packet, size_t length, size_t moved, ssize_t n,
                        queue_call receive) {
        while (n < 0) {
                int r = after_error(w, length, moved, "receive");
                if (r)
                        return r;
                n = receive(w, packet, length);
        }
        if ((size_t) n == length)
                return 0;
        return failure_set(&w->failure, EBADMSG,
                           "a packet of %zd bytes where one of %zu was due, in thread %" PRIu32 ", message %" PRIu64, n,
                           length, w->index, w->messages);
}

int queues_attach(struct worker *w) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE), packet = queues_packet(w->agent);
        size_t room = (w->size + packet - 1) / packet *
                      packet; /* the receive of the last packet needs room for a whole one */
        struct queue *q = aligned_alloc(WORKER_LINE, (sizeof *q + WORKER_LINE - 1) / WORKER_LINE * WORKER_LINE);
        if (!q)
                return failure_set(&w->failure, ENOMEM, "no memory for the queue of thread %" PRIu32, w->index);
        *q = (struct queue){.packet = packet, .length = page + (room + page - 1) / page * page};
        int r = buffer_map(w, q->length, &q->memory);
        if (r < 0) {
                free(q);
                return r;
        }
        q->message = q->memory + page;
        w->channel = q;
        return 0;
}

void queues_detach(struct worker *w) {
        struct queue *q = w->channel;
        if (q)
                buffer_unmap(q->memory, q->length);
        free(q);
        w->channel = NULL;
}

int queues_pages(const struct agent *a, struct page_list *list) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct queue *q = a->workers[i].channel;
                if (q)
                        r = page_list_add(list, PAGES_BUFFER, i, q->memory, q->length);
        }
        return r;
}

void queues_effective(const struct agent *a, struct effective *e) {
        if (queues_chunked(a))
                transport_put_chunks(a, e);
}
