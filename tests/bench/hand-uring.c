/* SPDX-License-Identifier: MIT */

/*
 * Pipes, Unix sockets and files by hand, with io_uring: an operation at a time, descriptors registered, and the buffer
 * where reads and writes move it (send, recv and what gathers fields take no registered memory).
 */

#include "tests/bench/hand-file.h"
#include "tests/bench/hand-gather.h"

#include <liburing.h>
#include <sched.h>
#include <sys/socket.h>

enum { OUT, IN };

/* One per process. */
static struct io_uring ring;

static int open_socket(struct hand_end *e) {
        int fds[] = {[OUT] = e->out, [IN] = e->in};
        cpu_set_t mine;
        if (io_uring_queue_init(4, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) < 0 ||
            io_uring_register_files(&ring, fds, 2) < 0)
                return -1;
        /* where the kernel's threads for the ring run, as the agent's do; kernels before 5.14 cannot be given an
         * affinity */
        if (sched_getaffinity(0, sizeof mine, &mine) == 0)
                (void) io_uring_register_iowq_aff(&ring, sizeof mine, &mine);
        (void) io_uring_register_ring_fd(&ring);
        return 0;
}

static int open_pipe(struct hand_end *e) {
        struct iovec buffer = {e->buffer, e->size};
        return open_socket(e) == 0 && io_uring_register_buffers(&ring, &buffer, 1) == 0 ? 0 : -1;
}

static int open_file(struct hand_end *e) {
        return hand_file_begin(e) == 0 ? open_pipe(e) : -1;
}

static int open_gathered_pipe(struct hand_end *e) {
        return open_gathered(e) == 0 ? open_pipe(e) : -1;
}

static int open_gathered_socket(struct hand_end *e) {
        return open_gathered(e) == 0 ? open_socket(e) : -1;
}

HAND_INLINE struct io_uring_sqe *entry(void) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
        if (!sqe)
                abort();
        return sqe;
}

HAND_INLINE ssize_t complete(struct io_uring_sqe *sqe) {
        struct io_uring_cqe *cqe;
        sqe->flags |= IOSQE_FIXED_FILE;
        if (io_uring_submit_and_wait(&ring, 1) < 0 || io_uring_wait_cqe(&ring, &cqe) < 0)
                return -1;
        ssize_t n = cqe->res;
        io_uring_cqe_seen(&ring, cqe);
        return n;
}

HAND_INLINE ssize_t put(const unsigned char *data, size_t length, uint64_t offset) {
        struct io_uring_sqe *sqe = entry();
        io_uring_prep_write_fixed(sqe, OUT, data, (unsigned) length, offset, 0);
        return complete(sqe);
}

HAND_INLINE ssize_t get(unsigned char *data, size_t length, uint64_t offset) {
        struct io_uring_sqe *sqe = entry();
        io_uring_prep_read_fixed(sqe, IN, data, (unsigned) length, offset, 0);
        return complete(sqe);
}

HAND_INLINE ssize_t transmit(const unsigned char *data, size_t length) {
        struct io_uring_sqe *sqe = entry();
        io_uring_prep_send(sqe, OUT, data, length, MSG_NOSIGNAL);
        return complete(sqe);
}

HAND_INLINE ssize_t take(unsigned char *data, size_t length) {
        struct io_uring_sqe *sqe = entry();
        io_uring_prep_recv(sqe, IN, data, length, 0);
        return complete(sqe);
}

HAND_INLINE int send_pipe(struct hand_end *e, unsigned char *message) {
        for (size_t sent = 0; sent < e->size;) {
                ssize_t n = put(message + sent, e->size - sent, (uint64_t) -1);
                if (n <= 0)
                        return -1;
                sent += (size_t) n;
        }
        return 0;
}

HAND_INLINE int receive_pipe(struct hand_end *e) {
        for (size_t got = 0; got < e->size;) {
                ssize_t n = get(e->buffer + got, e->size - got, (uint64_t) -1);
                if (n <= 0)
                        return -1;
                got += (size_t) n;
        }
        return 0;
}

/* Streams and packets alike: a packet comes whole. */
HAND_INLINE int send_socket(struct hand_end *e, unsigned char *message) {
        for (size_t sent = 0; sent < e->size;) {
                ssize_t n = transmit(message + sent, e->size - sent);
                if (n <= 0)
                        return -1;
                sent += (size_t) n;
        }
        return 0;
}

HAND_INLINE int receive_socket(struct hand_end *e) {
        for (size_t got = 0; got < e->size;) {
                ssize_t n = take(e->buffer + got, e->size - got);
                if (n <= 0)
                        return -1;
                got += (size_t) n;
        }
        return 0;
}

/* The fields' bytes from `done` on, of a pipe or of a socket. */
HAND_INLINE ssize_t put_fields(struct iovec *iov, int n) {
        struct io_uring_sqe *sqe = entry();
        io_uring_prep_writev(sqe, OUT, iov, (unsigned) n, (uint64_t) -1);
        return complete(sqe);
}

HAND_INLINE ssize_t transmit_fields(struct iovec *iov, int n) {
        struct io_uring_sqe *sqe = entry();
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t) n};
        io_uring_prep_sendmsg(sqe, OUT, &m, MSG_NOSIGNAL);
        return complete(sqe);
}

HAND_INLINE int gather(struct hand_end *e, ssize_t (*go)(struct iovec *iov, int n)) {
        struct gathered *g = e->own;
        ssize_t n = go(g->iov, g->n);
        for (size_t sent = 0; n > 0;) {
                struct iovec rest[HAND_FIELDS];
                sent += (size_t) n;
                if (sent == e->size)
                        return 0;
                n = go(rest, gathered_after(g, sent, rest));
        }
        return -1;
}

HAND_INLINE int gather_pipe(struct hand_end *e, unsigned char *message) {
        (void) message;
        return gather(e, put_fields);
}

/* Packets go whole or not at all. */
HAND_INLINE int gather_socket(struct hand_end *e, unsigned char *message) {
        (void) message;
        return gather(e, transmit_fields);
}

HAND_INLINE int send_slot(struct hand_end *e, unsigned char *message) {
        struct hand_file *f = e->own;
        off_t at = hand_file_wait(&f->out->empty, f->put, f);
        if (put(message, e->size, (uint64_t) at) != (ssize_t) e->size)
                return -1;
        hand_file_pass(&f->out->filled, &f->put, f);
        return 0;
}

HAND_INLINE int send_slot_synced(struct hand_end *e, unsigned char *message) {
        struct hand_file *f = e->own;
        off_t at = hand_file_wait(&f->out->empty, f->put, f);
        if (put(message, e->size, (uint64_t) at) != (ssize_t) e->size)
                return -1;
        struct io_uring_sqe *sqe = entry();
        io_uring_prep_fsync(sqe, OUT, 0);
        if (complete(sqe) < 0)
                return -1;
        hand_file_pass(&f->out->filled, &f->put, f);
        return 0;
}

HAND_INLINE int receive_slot(struct hand_end *e) {
        struct hand_file *f = e->own;
        off_t at = hand_file_wait(&f->in->filled, f->got, f);
        if (get(e->buffer, e->size, (uint64_t) at) != (ssize_t) e->size)
                return -1;
        hand_file_pass(&f->in->empty, &f->got, f);
        return 0;
}

static const struct hand_way pipe_way = {
        .open = open_pipe, .next = hand_next_buffer, .send = send_pipe, .receive = receive_pipe};
static const struct hand_way socket_way = {
        .open = open_socket, .next = hand_next_buffer, .send = send_socket, .receive = receive_socket};
static const struct hand_way gathered_pipe_way = {.open = open_gathered_pipe,
                                                  .next = hand_next_buffer,
                                                  .fill = fill_gathered,
                                                  .send = gather_pipe,
                                                  .receive = receive_pipe};
static const struct hand_way gathered_socket_way = {.open = open_gathered_socket,
                                                    .next = hand_next_buffer,
                                                    .fill = fill_gathered,
                                                    .send = gather_socket,
                                                    .receive = receive_socket};
static const struct hand_way file_way = {
        .open = open_file, .next = hand_next_buffer, .send = send_slot, .receive = receive_slot};
static const struct hand_way synced_file_way = {
        .open = open_file, .next = hand_next_buffer, .send = send_slot_synced, .receive = receive_slot};
HAND_LOOPS(uring_pipe, pipe_way);
HAND_LOOPS(uring_socket, socket_way);
HAND_LOOPS(uring_gathered_pipe, gathered_pipe_way);
HAND_LOOPS(uring_gathered_socket, gathered_socket_way);
HAND_LOOPS(uring_file, file_way);
HAND_LOOPS(uring_synced_file, synced_file_way);
