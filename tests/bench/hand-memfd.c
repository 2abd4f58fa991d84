/* SPDX-License-Identifier: MIT */

/*
 * Sealed memory by hand: a memfd for each message, or a pool that is passed once and used in turn, over a socket pair.
 * As many messages are under way as with the agents, whose reader of a stream reports every quarter of them how many it
 * has read.
 */

#include "schema/transport/file-layout.h"
#include "tests/bench/hand-loops.h"

#include <fcntl.h>
#include <stdalign.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL /* since Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SLOTS_MAX FILE_LAYOUT_SLOTS_MAX
#define SEALS_POOL (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SEALS_FRESH (SEALS_POOL | F_SEAL_WRITE)

static unsigned create_flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL;

struct memory {
        uint64_t n, put, got, room, unacknowledged, quarter;
        bool streams, made, taken;
        int fd, mine[SLOTS_MAX], theirs[SLOTS_MAX];
};

static int send_fds(int socket, uint64_t number, const int *fds, size_t n) {
        alignas(struct cmsghdr) char control[CMSG_SPACE(SLOTS_MAX * sizeof(int))];
        struct iovec iov = {&number, sizeof number};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (n > 0) {
                m.msg_control = control;
                m.msg_controllen = CMSG_SPACE(n * sizeof(int));
                struct cmsghdr *c = CMSG_FIRSTHDR(&m);
                *c = (struct cmsghdr){
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
                memcpy(CMSG_DATA(c), fds, n * sizeof(int));
        }
        return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static int receive_fds(int socket, uint64_t *number, int *fds, size_t n) {
        alignas(struct cmsghdr) char control[CMSG_SPACE(SLOTS_MAX * sizeof(int))];
        struct iovec iov = {number, sizeof *number};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        m.msg_control = n ? control : NULL;
        m.msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0;
        if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) != (ssize_t) sizeof *number)
                return -1;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (n == 0)
                return 0;
        if (!c || c->cmsg_len != CMSG_LEN(n * sizeof(int)))
                return -1;
        memcpy(fds, CMSG_DATA(c), n * sizeof(int));
        return 0;
}

HAND_INLINE int make(const struct hand_end *e) {
        int fd = memfd_create("message", create_flags);
        return fd >= 0 && ftruncate(fd, (off_t) e->size) == 0 ? fd : -1;
}

HAND_INLINE int write_into(const struct hand_end *e, int fd, const unsigned char *message) {
        void *p = mmap(NULL, e->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
                return -1;
        memcpy(p, message, e->size);
        return munmap(p, e->size);
}

/* With the first message of an end, long before the clock. */
static int make_pool(struct hand_end *e, struct memory *m) {
        for (uint64_t i = 0; i < m->n; i++) {
                m->mine[i] = make(e);
                if (m->mine[i] < 0 || write_into(e, m->mine[i], e->buffer) < 0 ||
                    fcntl(m->mine[i], F_ADD_SEALS, SEALS_POOL) < 0)
                        return -1;
        }
        m->made = true;
        return send_fds(e->out, m->n, m->mine, m->n);
}

static int take_pool(struct hand_end *e, struct memory *m) {
        uint64_t n;
        m->taken = true;
        return receive_fds(e->in, &n, m->theirs, m->n);
}

static int open_memory(struct hand_end *e) {
        const struct point p = {.workload = e->h->workload, .threads = 1, .message_size = e->size};
        struct memory *m = calloc(1, sizeof *m);
        int fd = make(e);
        if (fd < 0) /* before Linux 6.3 */
                create_flags &= ~MFD_NOEXEC_SEAL;
        (void) close(fd);
        if (!m)
                return -1;
        m->n = m->room = file_layout_of(&p, (uint64_t) sysconf(_SC_PAGESIZE)).slots;
        m->quarter = m->n < 4 ? 1 : m->n / 4;
        m->streams = e->h->workload == WORKLOAD_STREAM;
        e->own = m;
        return 0;
}

HAND_INLINE int await_room(struct hand_end *e, struct memory *m) {
        if (m->room == 0 && receive_fds(e->out, &m->room, NULL, 0) < 0)
                return -1;
        m->room -= m->streams;
        return 0;
}

HAND_INLINE int send_fresh(struct hand_end *e, unsigned char *message) {
        struct memory *m = e->own;
        if (await_room(e, m) < 0)
                return -1;
        int fd = make(e);
        if (fd < 0 || write_into(e, fd, message) < 0 || fcntl(fd, F_ADD_SEALS, SEALS_FRESH) < 0 ||
            send_fds(e->out, m->put, &fd, 1) < 0)
                return -1;
        m->put = m->put + 1 == m->n ? 0 : m->put + 1;
        return close(fd);
}

HAND_INLINE int map(struct hand_end *e, int fd) {
        void *p = mmap(NULL, e->size, PROT_READ, MAP_PRIVATE, fd, 0);
        e->message = p;
        return p == MAP_FAILED ? -1 : 0;
}

HAND_INLINE int receive_fresh(struct hand_end *e) {
        struct memory *m = e->own;
        struct stat st;
        uint64_t number;
        if (receive_fds(e->in, &number, &m->fd, 1) < 0)
                return -1;
        int seals = fcntl(m->fd, F_GET_SEALS);
        if (seals < 0 || (seals & SEALS_FRESH) != SEALS_FRESH || fstat(m->fd, &st) < 0 || st.st_size != (off_t) e->size)
                return -1;
        return map(e, m->fd);
}

HAND_INLINE int release_pool(struct hand_end *e) {
        struct memory *m = e->own;
        if (munmap(e->message, e->size) < 0)
                return -1;
        if (!m->streams || ++m->unacknowledged < m->quarter)
                return 0;
        m->unacknowledged = 0;
        return send_fds(e->in, m->quarter, NULL, 0);
}

HAND_INLINE int release_fresh(struct hand_end *e) {
        struct memory *m = e->own;
        return close(m->fd) < 0 ? -1 : release_pool(e);
}

HAND_INLINE int send_pool(struct hand_end *e, unsigned char *message) {
        struct memory *m = e->own;
        if (!m->made && make_pool(e, m) < 0)
                return -1;
        if (await_room(e, m) < 0 || write_into(e, m->mine[m->put], message) < 0 ||
            send_fds(e->out, m->put, NULL, 0) < 0)
                return -1;
        m->put = m->put + 1 == m->n ? 0 : m->put + 1;
        return 0;
}

HAND_INLINE int receive_pool(struct hand_end *e) {
        struct memory *m = e->own;
        uint64_t slot;
        if (!m->taken && take_pool(e, m) < 0)
                return -1;
        return receive_fds(e->in, &slot, NULL, 0) < 0 || slot >= m->n ? -1 : map(e, m->theirs[slot]);
}

static const struct hand_way fresh_way = {.open = open_memory,
                                          .next = hand_next_buffer,
                                          .send = send_fresh,
                                          .receive = receive_fresh,
                                          .release = release_fresh};
static const struct hand_way pool_way = {.open = open_memory,
                                         .next = hand_next_buffer,
                                         .send = send_pool,
                                         .receive = receive_pool,
                                         .release = release_pool};
HAND_LOOPS(memfd_fresh, fresh_way);
HAND_LOOPS(memfd_pool, pool_way);
