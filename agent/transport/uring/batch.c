/* SPDX-License-Identifier: MIT */

/* Several messages of a stream under way at a time; see batch.h. All of it runs in the worker's thread. */

#include "agent/transport/uring/batch.h"

#include "agent/base/agent.h"
#include "agent/loop/buffer.h"
#include "agent/loop/fields.h"
#include "agent/transport/stream/descriptor.h"
#include "agent/transport/stream/packet.h"
#include "agent/transport/transport.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ID (URING_CANCEL_ID + 1) /* user_data of the batch's first operation */
#define PENDING INT_MIN                /* a result that is not there yet */
/* The largest batch whose end a sender awaits at once, as it takes little time; of a larger one it counts each
 * message. */
#define WAIT_FOR_ALL_BYTES (UINT64_C(4) << 20)

static const struct point *point_of(const struct worker *w) {
        return &w->agent->setup.point;
}

static bool is_pipe(const struct worker *w) {
        return transport_terms[point_of(w)->transport].carrier == CARRIER_PIPE;
}

static bool is_packet(const struct worker *w) {
        return transport_terms[point_of(w)->transport].delivery == DELIVERY_WHOLE;
}

bool uring_batch_hides_parts(const struct worker *w) {
        return !is_pipe(w) && !is_packet(w);
}

static int send_flags(const struct worker *w) {
        return MSG_NOSIGNAL | (is_packet(w) ? 0 : MSG_WAITALL);
}

static struct uring_batch *batch_of(const struct worker *w) {
        const struct uring *u = w->engine;
        return u->batch;
}

/* --- memory --- */

static int make_messages(struct worker *w, struct uring_batch *b) {
        const struct point *p = point_of(w);
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        int r = 0;
        if (!b->sends || p->copy_mode != COPY_ONE) {
                b->stride = (w->size + page - 1) / page * page;
                b->length = p->queue_depth * b->stride;
                return buffer_map(w, b->length, &b->memory);
        }
        for (uint32_t i = 0; r == 0 && i < p->queue_depth; i++) {
                r = fields_new(w, w->size, p->fields, &b->fields[i]);
                if (r == 0)
                        b->headers[i] = (struct msghdr){.msg_iov = b->fields[i]->iov, .msg_iovlen = b->fields[i]->n};
        }
        return r;
}

int uring_batch_new(struct worker *w, struct uring_batch **ret) {
        struct uring_batch *b = calloc(1, sizeof *b);
        if (!b)
                return failure_set(&w->failure, ENOMEM, "no memory for the queue of thread %" PRIu32, w->index);
        b->sends = agent_sends(w->agent);
        int r = make_messages(w, b);
        if (r < 0) {
                (void) uring_batch_free(b);
                return failure_set(&w->failure, -r, "no memory for %" PRIu32 " messages of thread %" PRIu32 ": %s",
                                   point_of(w)->queue_depth, w->index, strerrordesc_np(-r));
        }
        *ret = b;
        return 0;
}

struct uring_batch *uring_batch_free(struct uring_batch *b) {
        for (size_t i = 0; b && i < ELEMENTS(b->fields); i++)
                (void) fields_free(b->fields[i]);
        if (b)
                buffer_unmap(b->memory, b->length);
        free(b);
        return NULL;
}

int uring_batch_pages(const struct uring_batch *b, uint32_t thread, struct page_list *list) {
        int r = b && b->memory ? page_list_add(list, PAGES_BUFFER, thread, b->memory, b->length) : 0;
        for (size_t i = 0; b && r == 0 && i < ELEMENTS(b->fields) && b->fields[i]; i++)
                r = page_list_add(list, PAGES_BUFFER, thread, b->fields[i]->memory, b->fields[i]->length);
        return r;
}

/* --- both directions --- */

/* Submits the queue, and waits. A chain submitted in parts would be two chains. */
static int enter(struct worker *w, struct uring *u, unsigned wait) {
        int r = io_uring_submit_and_wait(&u->ring, wait);
        if (r > 0 && io_uring_sq_ready(&u->ring) > 0)
                return failure_set(&w->failure, EIO, "io_uring took %d of the operations of thread %" PRIu32, r,
                                   w->index);
        if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
                return failure_set(&w->failure, -r, "io_uring_enter in thread %" PRIu32 ": %s", w->index,
                                   strerrordesc_np(-r));
        return r;
}

/* Takes all completions. Returns the number of completed operations of the batch. */
static unsigned reap(struct uring *u, bool *cancel_completed) {
        struct io_uring_cqe *cqe;
        unsigned n = 0;
        while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
                if (cqe->user_data == URING_CANCEL_ID) {
                        *cancel_completed = true;
                } else {
                        u->batch->results[cqe->user_data - FIRST_ID] = cqe->res;
                        n++;
                }
                io_uring_cqe_seen(&u->ring, cqe);
        }
        u->batch->reaped += n;
        return n;
}

/* Cancels the one operation of a chain that is under way, the first without a result; those after it are cancelled with
 * it. */
static void cancel(struct uring *u) {
        unsigned i = 0;
        while (i + 1 < u->batch->n && u->batch->results[i] != PENDING)
                i++;
        struct io_uring_sqe *sqe = uring_entry(u);
        io_uring_prep_cancel64(sqe, FIRST_ID + i, 0);
        sqe->user_data = URING_CANCEL_ID;
}

/* Waits until operation i has completed, or all have where i is the batch's number. A signal ends a wait; when the loop
 * is over, or at once with give_up, incomplete operations are cancelled. 0; negative errno with w->failure. */
static int await(struct worker *w, struct uring *u, unsigned i, bool give_up) {
        const struct uring_batch *b = u->batch;
        bool cancelling = false, cancel_completed = false, interrupted = give_up;
        (void) reap(u, &cancel_completed);
        for (;;) {
                bool over = i < b->n ? b->results[i] != PENDING : b->reaped == b->n;
                if (over && (!cancelling || cancel_completed))
                        return 0;
                if (cancel_completed) /* it could not be cancelled at that time: cancel again */
                        cancelling = cancel_completed = false;
                if (interrupted && !cancelling && (give_up || worker_over(w))) {
                        cancel(u);
                        cancelling = true;
                }
                int r = enter(w, u, 1);
                if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
                        return r;
                unsigned n = reap(u, &cancel_completed);
                bool signalled = r == -EINTR || (r > 0 && n == 0 && !cancel_completed);
                if (signalled)
                        worker_count(&w->eintr);
                interrupted = give_up || signalled;
        }
}

/* Begins an empty batch for the next messages, as many as the limit permits. */
static void begin(const struct worker *w, struct uring_batch *b, uint64_t messages) {
        uint64_t limit = worker_limit(w), left = limit > messages ? limit - messages : 1;
        b->n = left < point_of(w)->queue_depth ? (unsigned) left : point_of(w)->queue_depth;
        b->reaped = b->taken = 0;
        for (unsigned i = 0; i < b->n; i++)
                b->results[i] = PENDING;
}

static void chain(struct uring *u, struct io_uring_sqe *sqe, unsigned i) {
        sqe->flags |= u->sqe_flags | (i + 1 < u->batch->n ? IOSQE_IO_LINK : 0);
        sqe->user_data = FIRST_ID + i;
}

/* Converts a completion's result to a system call's. */
static ssize_t as_call(int result) {
        if (result >= 0)
                return result;
        errno = result == -ECANCELED ? EINTR : -result;
        return -1;
}

/* --- sending --- */

static void prepare_send(struct worker *w, struct uring *u, unsigned i) {
        struct uring_batch *b = u->batch;
        struct io_uring_sqe *sqe = uring_entry(u);
        const struct fields *f = b->fields[i];
        if (f && is_pipe(w))
                io_uring_prep_writev(sqe, u->fds[URING_OUT], f->iov, f->n, URING_STREAM);
        else if (f && f->n == 1 && transport_terms[point_of(w)->transport].assembles_fields)
                io_uring_prep_send(sqe, u->fds[URING_OUT], f->iov->iov_base, w->size, send_flags(w));
        else if (f)
                io_uring_prep_sendmsg(sqe, u->fds[URING_OUT], &b->headers[i], (unsigned) send_flags(w));
        else if (!is_pipe(w))
                io_uring_prep_send(sqe, u->fds[URING_OUT], uring_batch_message(b, i), w->size, send_flags(w));
        else if (u->fixed_buffer)
                io_uring_prep_write_fixed(sqe, u->fds[URING_OUT], uring_batch_message(b, i), (unsigned) w->size,
                                          URING_STREAM, 0);
        else
                io_uring_prep_write(sqe, u->fds[URING_OUT], uring_batch_message(b, i), (unsigned) w->size,
                                    URING_STREAM);
        chain(u, sqe, i);
}

/* Sends bytes [from, from + length) of the message that is completed on its own. */
static ssize_t send_part(struct worker *w, const unsigned char *message, size_t from, size_t length) {
        (void) message;
        const struct uring_batch *b = batch_of(w);
        struct iovec part[SPEC_FIELDS_MAX];
        if (b->fields[b->at]) {
                unsigned n = fields_part(b->fields[b->at], from, length, part);
                struct msghdr m = {.msg_iov = part, .msg_iovlen = n};
                return is_pipe(w) ? uring_writev(w, part, n) : uring_sendmsg(w, &m, (unsigned) send_flags(w));
        }
        const unsigned char *data = uring_batch_message(b, b->at) + from;
        return is_pipe(w) ? uring_write(w, data, length, URING_STREAM) : uring_send(w, data, length, send_flags(w));
}

static ssize_t send_again(struct worker *w, const unsigned char *message, size_t sent) {
        return send_part(w, message, sent, w->size - sent);
}

/* Handles a chain that broke at message i: the operations after it are cancelled. */
static int finish_send(struct worker *w, struct uring *u, unsigned i) {
        struct uring_batch *b = u->batch;
        int r = await(w, u, b->n, false);
        if (r < 0)
                return r;
        b->at = i;
        ssize_t n = as_call(b->results[i]);
        return is_packet(w) ? packet_finish_send(w, NULL, 0, w->size, n, send_part)
                            : descriptor_finish_send(w, NULL, n, send_again, is_pipe(w) ? "write" : "send");
}

int uring_batch_send(struct worker *w, uring_batch_writer write) {
        struct uring *u = w->engine;
        struct uring_batch *b = u->batch;
        uint64_t n = w->messages;
        while (n < worker_limit(w)) {
                begin(w, b, n);
                for (unsigned i = 0; i < b->n; i++) {
                        if (write)
                                write(w, i, n + i);
                        prepare_send(w, u, i);
                }
                int r = enter(w, u, b->n * w->size <= WAIT_FOR_ALL_BYTES ? b->n : 1);
                for (unsigned i = 0; i < b->n && (r >= 0 || r == -EINTR || r == -EAGAIN || r == -EBUSY); i++) {
                        r = await(w, u, i, false);
                        bool broken = r == 0 && b->results[i] != (int) w->size;
                        if (LOOP_UNLIKELY(broken))
                                r = finish_send(w, u, i);
                        if (r == 0)
                                loop_completed(w, ++n);
                        if (LOOP_UNLIKELY(broken || r))
                                break;
                }
                if (LOOP_UNLIKELY(r))
                        return r;
        }
        return 0;
}

/* --- receiving --- */

static void prepare_receive(struct worker *w, struct uring *u, unsigned i) {
        struct io_uring_sqe *sqe = uring_entry(u);
        unsigned char *message = uring_batch_message(u->batch, i);
        if (!is_pipe(w))
                io_uring_prep_recv(sqe, u->fds[URING_IN], message, w->size, is_packet(w) ? MSG_TRUNC : MSG_WAITALL);
        else if (u->fixed_buffer)
                io_uring_prep_read_fixed(sqe, u->fds[URING_IN], message, (unsigned) w->size, URING_STREAM, 0);
        else
                io_uring_prep_read(sqe, u->fds[URING_IN], message, (unsigned) w->size, URING_STREAM);
        chain(u, sqe, i);
}

static ssize_t receive_more(struct worker *w, unsigned char *message, size_t got) {
        return is_pipe(w) ? uring_read(w, message + got, w->size - got, URING_STREAM)
                          : uring_receive(w, message + got, w->size - got, MSG_WAITALL);
}

static ssize_t read_packet(struct worker *w, void *packet, size_t length) {
        return uring_receive(w, packet, length, MSG_TRUNC);
}

/* As finish_send(); the batch is complete. */
static int finish_receive(struct worker *w, struct uring *u, unsigned i) {
        struct uring_batch *b = u->batch;
        unsigned char *message = uring_batch_message(b, i);
        int r = await(w, u, b->n, false);
        if (r < 0)
                return r;
        ssize_t n = as_call(b->results[i]);
        b->n = b->reaped = b->taken = 0;
        return is_packet(w) ? packet_finish_receive(w, message, w->size, 0, n, read_packet)
                            : descriptor_finish_receive(w, message, n, receive_more, is_pipe(w) ? "read" : "recv");
}

int uring_batch_receive(struct worker *w, unsigned char **ret) {
        struct uring *u = w->engine;
        struct uring_batch *b = u->batch;
        if (b->taken == b->n) {
                begin(w, b, w->messages);
                for (unsigned i = 0; i < b->n; i++)
                        prepare_receive(w, u, i);
        }
        unsigned i = b->taken;
        int r = b->results[i] == PENDING ? await(w, u, i, false) : 0;
        if (LOOP_UNLIKELY(r < 0))
                return r;
        *ret = uring_batch_message(b, i);
        if (LOOP_UNLIKELY(b->results[i] != (int) w->size))
                return finish_receive(w, u, i);
        b->taken++;
        return 0;
}

/* Cancels the operations that are under way when a loop has reached its limit, as nothing may write to the memory while
 * the thread rests. The next loop uses the messages received before. */
void uring_batch_settle(struct worker *w) {
        struct uring *u = w->to_settle;
        struct uring_batch *b = u->batch;
        if (b->taken == b->n || await(w, u, b->n, true) < 0)
                return;
        unsigned n = b->taken;
        while (n < b->n && b->results[n] == (int) w->size)
                n++;
        if (n < b->n && b->results[n] != -ECANCELED && b->results[n] != -EINTR)
                n++; /* a part, or an error, which uring_batch_receive() handles */
        b->n = b->reaped = n;
}

/* --- the loops --- */

static void write_pattern(struct worker *w, unsigned i, uint64_t number) {
        const struct uring_batch *b = batch_of(w);
        uint64_t key = pattern_key(w->index, 0, number);
        if (b->fields[i])
                fields_fill(b->fields[i], key);
        else
                pattern_fill(uring_batch_message(b, i), w->size, key);
}

static int sender(struct worker *w) {
        bool writes = w->agent->setup.verify == VERIFY_CHECKSUM || w->fresh;
        return uring_batch_send(w, writes ? write_pattern : NULL);
}

static const struct channel channel = {.receive = uring_batch_receive, .release = loop_release_nothing};

LOOP_RECEIVER(batch, channel)

const struct transport_loops uring_batch_loops = {.sender = sender, .receiver = batch_receiver};
