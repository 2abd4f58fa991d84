/* SPDX-License-Identifier: MIT */

/* Sends without copying by io_uring, into a socket that fills up: what is counted is what went, whole and in parts, and
 * each message is the sender's again when all of it has been notified. */

#include "agent/base/agent.h"
#include "agent/transport/uring/zerocopy.h"
#include "check.h"
#include "rings.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#define SIZE (64u << 10)
#define SOCKET_BYTES (256 << 10)
#define REFUSED 5u /* attempts on a socket that is full */
#define DEADLINE_MS 10000

static struct agent agent = {.n_workers = 1};

/* A connection over loopback, of which nothing is read yet. The same bytes fit in on every machine. */
struct connection {
        int listener, fds[2];
};

static bool connection_open(struct connection *c) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof a;
        int bytes = SOCKET_BYTES;
        c->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        c->fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (setsockopt(c->listener, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) < 0 ||
            setsockopt(c->fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) < 0 ||
            bind(c->listener, (struct sockaddr *) &a, sizeof a) < 0 || listen(c->listener, 1) < 0 ||
            getsockname(c->listener, (struct sockaddr *) &a, &length) < 0 ||
            connect(c->fds[0], (struct sockaddr *) &a, sizeof a) < 0)
                return false;
        c->fds[1] = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
        return c->fds[1] >= 0;
}

static void connection_close(struct connection *c) {
        (void) close(c->listener);
        (void) close(c->fds[0]);
        (void) close(c->fds[1]);
}

/* Reads what is there; false when the other end's bytes do not come. */
static bool receive_all(int fd, uint64_t bytes) {
        static unsigned char buffer[SIZE];
        while (bytes > 0) {
                struct pollfd p = {.fd = fd, .events = POLLIN};
                if (poll(&p, 1, DEADLINE_MS) != 1)
                        return false;
                ssize_t n = read(fd, buffer, sizeof buffer);
                if (n <= 0)
                        return false;
                bytes -= (uint64_t) n;
        }
        return true;
}

/* Sends until the socket is full, and a few attempts more. Each took some bytes, or none for want of room. */
static void fill_socket(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, uint64_t *ret_sends,
                        uint64_t *ret_bytes) {
        size_t sent = 0;
        *ret_sends = *ret_bytes = 0;
        for (unsigned refused = 0; refused < REFUSED;) {
                ssize_t n = uring_zerocopy_send(w, u, z, sent, MSG_DONTWAIT);
                if (n < 0) {
                        CHECK_INT(errno, EAGAIN);
                        refused++;
                        continue;
                }
                CHECK(n > 0);
                ++*ret_sends;
                *ret_bytes += (uint64_t) n;
                sent += (size_t) n;
                if (sent == SIZE) {
                        sent = 0;
                        zerocopy_advance(z);
                }
        }
}

static void send_and_receive(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, int peer) {
        uint64_t sends, bytes, all = 0;
        for (unsigned round = 0; round < 3; round++) {
                fill_socket(w, u, z, &sends, &bytes);
                CHECK(sends > 1);
                CHECK_UINT(w->zerocopy_sends, all += sends);
                CHECK(receive_all(peer, bytes));
                for (unsigned waited = 0; zerocopy_under_way(z) > 0 && waited < DEADLINE_MS; waited++) {
                        CHECK_INT(uring_zerocopy_collect(w, u, z), 0);
                        (void) poll(NULL, 0, 1);
                }
                CHECK_UINT(zerocopy_under_way(z), 0);
                CHECK_UINT(w->zerocopy_completions, all);
                CHECK_UINT(w->zerocopy_copied, all); /* over loopback the kernel copies each */
        }
}

static void run(unsigned n_fields) {
        struct connection c;
        struct zerocopy *z = NULL;
        struct uring_zerocopy *u = NULL;
        struct worker *w = aligned_alloc(WORKER_LINE, sizeof *w);
        if (!w)
                abort();
        memset(w, 0, sizeof *w);
        w->agent = &agent;
        w->size = SIZE;
        w->limit = WORKER_UNLIMITED;
        CHECK(connection_open(&c));
        w->send_fd = c.fds[0];
        CHECK_INT(zerocopy_new(w, SIZE, n_fields, &z), 0);
        (void) uring_zerocopy_new(w, z, 1, &u);
        CHECK_STRING(w->failure.detail, "");
        send_and_receive(w, u, z, c.fds[1]);
        (void) uring_zerocopy_free(u);
        (void) zerocopy_free(z);
        connection_close(&c);
        free(w);
}

static void test_what_finds_no_room_is_no_send(void) {
        const char *trouble = ring_trouble();
        if (trouble)
                SKIP("%s", trouble);
        run(1);
}

static void test_so_with_several_fields(void) {
        const char *trouble = ring_trouble();
        if (trouble)
                SKIP("%s", trouble);
        run(SPEC_FIELDS_OF_STUDY);
}

int main(void) {
        RUN(test_what_finds_no_room_is_no_send);
        RUN(test_so_with_several_fields);
        return check_end();
}
