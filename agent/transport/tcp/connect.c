/* SPDX-License-Identifier: MIT */

/*
 * Creates the connections, in the leaders' threads. The server listens on a port of loopback that the kernel chooses
 * and sends the client, over the peer channel, the port and a random token:
 *
 *      server  port, token (two packets)
 *      client  connects once for each thread, and sends the token and the thread's number on each connection
 *      server  "accepted", when each of its threads has a connection
 *
 * Any process on the host may connect to a port: the server closes and counts a connection whose greeting has another
 * token. A connection without a greeting may be the client's, whose process does not run at that moment: it stays
 * pending until all threads are connected, unless the pending connections exceed their limit and it is the oldest.
 * Options are set before a connection is made (its receive window is negotiated then), and read back from it.
 *
 * Source: man 7 tcp, man 7 ip, man 7 socket. The kernel doubles the values of SO_SNDBUF and SO_RCVBUF and cuts them at
 * net.core.wmem_max and rmem_max without an error: a cut value is refused here.
 */

#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/transport/tcp/tcp.h"
#include "schema/protocol/effective.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/tcp.h> /* its struct tcp_info has tcpi_dsack_dups, the C library's does not */
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define LOOK_NS NSEC_PER_MSEC

/* The client's first bytes on each connection; both ends run the same build. */
struct greeting {
        unsigned char token[12];
        uint32_t thread;
};
_Static_assert(sizeof(struct greeting) == 16, "sixteen bytes, none of them padding");

struct pending {
        int fd;
        size_t got;
        struct greeting greeting;
        uint64_t sequence; /* in the order of accept(2) */
};

struct acceptor {
        struct agent *agent;
        struct tcp *tcp;
        struct pending pending[POINT_PENDING_MAX];
        uint32_t n_pending, n_bound;
        uint64_t n_accepted;
};

static int set_number(struct agent *a, int fd, int level, int option, const char *name, int value) {
        if (setsockopt(fd, level, option, &value, sizeof value) < 0)
                return failure_set(&a->failure, errno, "%s %d: %s", name, value, strerrordesc_np(errno));
        return 0;
}

static int set_buffer(struct agent *a, int fd, int option, const char *name, enum host_limit limit, uint64_t bytes) {
        int got = 0;
        socklen_t length = sizeof got;
        if (bytes == 0)
                return 0;
        if (bytes > INT32_MAX / 2)
                return failure_set(&a->failure, EINVAL, "%s %" PRIu64 " is beyond what a socket takes (%d)", name,
                                   bytes, INT32_MAX / 2);
        int r = set_number(a, fd, SOL_SOCKET, option, name, (int) bytes);
        if (r < 0)
                return r;
        if (getsockopt(fd, SOL_SOCKET, option, &got, &length) < 0)
                return failure_set(&a->failure, errno, "%s: %s", name, strerrordesc_np(errno));
        if ((uint64_t) got < 2 * bytes)
                return failure_limit(&a->failure, EPERM, limit, (uint64_t) got / 2, bytes, name);
        return 0;
}

static int set_congestion(struct agent *a, int fd) {
        const char *name = a->setup.options.congestion;
        if (name[0] == '\0' || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t) strlen(name)) == 0)
                return 0;
        return failure_set(&a->failure, errno,
                           "congestion %s: %s (net.ipv4.tcp_allowed_congestion_control has those that may be chosen)",
                           name, strerrordesc_np(errno));
}

static int set_options(struct agent *a, int fd) {
        const struct transport_options *o = &a->setup.options;
        int r = set_number(a, fd, IPPROTO_TCP, TCP_NODELAY, "nodelay", o->nodelay != TOGGLE_OFF);
        if (r == 0)
                r = set_buffer(a, fd, SO_SNDBUF, "sndbuf", HOST_WMEM_MAX, o->sndbuf);
        if (r == 0)
                r = set_buffer(a, fd, SO_RCVBUF, "rcvbuf", HOST_RMEM_MAX, o->rcvbuf);
        if (r == 0 && o->busy_poll)
                r = set_number(a, fd, SOL_SOCKET, SO_BUSY_POLL, "busy_poll (above net.core.busy_read?)",
                               (int) o->busy_poll);
        if (r == 0)
                r = set_congestion(a, fd);
        return r;
}

/* Assigns the connection to thread i, with which it is closed. */
static int bind_thread(struct agent *a, uint32_t i, int fd) {
        struct worker *w = &a->workers[i];
        const struct point *p = &a->setup.point;
        w->send_fd = w->receive_fd = fd;
        if (p->copy_mode == COPY_ZERO && p->engine == ENGINE_SYSCALL && tcp_agent_sends(a))
                return set_number(a, fd, SOL_SOCKET, SO_ZEROCOPY, "SO_ZEROCOPY", 1);
        return 0;
}

static int open_listener(struct agent *a, struct tcp *t) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;

        t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (t->listener < 0)
                return failure_set(&a->failure, errno, "socket: %s", strerrordesc_np(errno));
        int r = set_options(a, t->listener);
        if (r < 0)
                return r;
        if (bind(t->listener, (struct sockaddr *) &address, sizeof address) < 0)
                return failure_set(&a->failure, errno,
                                   "no port of 127.0.0.1 is free for the server: %s (net.ipv4.ip_local_port_range has "
                                   "the range)",
                                   strerrordesc_np(errno));
        if (listen(t->listener, SOMAXCONN) < 0 || getsockname(t->listener, (struct sockaddr *) &address, &length) < 0)
                return failure_set(&a->failure, errno, "listen: %s", strerrordesc_np(errno));
        t->port = ntohs(address.sin_port);
        return 0;
}

static int send_address(struct agent *a, const struct tcp *t, uint64_t deadline_ns) {
        uint64_t low = 0;
        uint32_t high = 0;
        memcpy(&low, t->token, sizeof low);
        memcpy(&high, t->token + sizeof low, sizeof high);
        int r = peer_send(a, PEER_TRANSPORT, 0, t->port, deadline_ns);
        if (r == 0)
                r = peer_send(a, PEER_TRANSPORT, 1, low, deadline_ns);
        if (r == 0)
                r = peer_send(a, PEER_TRANSPORT, 2, high, deadline_ns);
        return r;
}

static int receive_address(struct agent *a, struct tcp *t, uint64_t deadline_ns) {
        uint64_t port = 0, low = 0, high = 0;
        int r = peer_receive(a, PEER_TRANSPORT, 0, &port, deadline_ns);
        if (r == 0)
                r = peer_receive(a, PEER_TRANSPORT, 1, &low, deadline_ns);
        if (r == 0)
                r = peer_receive(a, PEER_TRANSPORT, 2, &high, deadline_ns);
        if (r < 0)
                return r;
        if (port == 0 || port > UINT16_MAX)
                return failure_set_peer(&a->failure, a->peer_role, EBADMSG,
                                        "listens on port %" PRIu64 ", which is none", port);
        uint32_t short_high = (uint32_t) high;
        t->port = (uint16_t) port;
        memcpy(t->token, &low, sizeof low);
        memcpy(t->token + sizeof low, &short_high, sizeof short_high);
        return 0;
}

static void drop_pending(struct acceptor *q, uint32_t i) {
        (void) util_close(q->pending[i].fd);
        q->pending[i] = q->pending[--q->n_pending];
        q->tcp->refused++;
}

/* Whether a greeting is the client's, for a thread without a connection. */
static bool is_ours(const struct acceptor *q, const struct greeting *g) {
        return memcmp(g->token, q->tcp->token, sizeof g->token) == 0 && g->thread < q->agent->n_workers &&
               q->agent->workers[g->thread].send_fd < 0;
}

/* Receives a pending connection's greeting. 1 when the connection is no longer pending, as it was assigned or refused;
 * 0; negative errno. */
static int receive_greeting(struct acceptor *q, uint32_t i) {
        struct pending *c = &q->pending[i];
        ssize_t n = recv(c->fd, (char *) &c->greeting + c->got, sizeof c->greeting - c->got, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        c->got += n > 0 ? (size_t) n : 0;
        if (n > 0 && c->got < sizeof c->greeting)
                return 0;
        if (n <= 0 || !is_ours(q, &c->greeting)) {
                drop_pending(q, i);
                return 1;
        }
        int r = bind_thread(q->agent, c->greeting.thread, c->fd);
        if (r == 0)
                r = set_options(q->agent, c->fd);
        q->pending[i] = q->pending[--q->n_pending];
        q->n_bound++;
        return r < 0 ? r : 1;
}

/* Makes room for one more: refuses the oldest pending connection, unless its greeting has arrived. 0; negative
 * errno. */
static int make_room(struct acceptor *q) {
        uint32_t oldest = 0;
        if (q->n_pending < POINT_PENDING_MAX)
                return 0;
        for (uint32_t i = 1; i < q->n_pending; i++)
                if (q->pending[i].sequence < q->pending[oldest].sequence)
                        oldest = i;
        int r = receive_greeting(q, oldest);
        if (r == 0)
                drop_pending(q, oldest);
        return r < 0 ? r : 0;
}

/* Accepts a connection as pending. 1; 0 when there is none; negative errno. */
static int accept_one(struct acceptor *q) {
        struct agent *a = q->agent;
        int fd = accept4(q->tcp->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
                if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO)
                        return 0;
                return failure_set(&a->failure, errno, "accept, connection %" PRIu32 " of %" PRIu32 ": %s",
                                   q->n_bound + q->n_pending + 1, a->n_workers, strerrordesc_np(errno));
        }
        int r = make_room(q);
        if (r < 0) {
                (void) util_close(fd);
                return r;
        }
        q->pending[q->n_pending++] = (struct pending){.fd = fd, .sequence = q->n_accepted++};
        return 1;
}

/* Accepts connections and receives greetings. Returns the number of changes; negative errno. */
static int accept_round(struct acceptor *q) {
        int changed = 0, r = 0;
        while (changed < (int) POINT_PENDING_MAX && (r = accept_one(q)) > 0)
                changed++;
        for (uint32_t i = 0; r >= 0 && i < q->n_pending;) {
                r = receive_greeting(q, i);
                changed += r > 0;
                i += r == 0;
        }
        return r < 0 ? r : changed;
}

static int accept_all(struct agent *a, struct tcp *t, uint64_t deadline_ns) {
        _cleanup_free_ struct acceptor *q = calloc(1, sizeof *q);
        int r = 0;
        if (!q)
                return failure_set(&a->failure, ENOMEM, "no memory to accept connections with");
        q->agent = a;
        q->tcp = t;
        while (r >= 0 && q->n_bound < a->n_workers) {
                r = accept_round(q);
                if (r == 0)
                        r = agent_wait(a, util_now_ns() + LOOK_NS, 0);
                if (r >= 0 && util_now_ns() >= deadline_ns)
                        r = failure_set_peer(&a->failure, a->peer_role, ETIMEDOUT,
                                             "has made %" PRIu32 " of %" PRIu32 " connections, and no more in time "
                                             "(%" PRIu32 " of other processes were refused)",
                                             q->n_bound, a->n_workers, t->refused);
        }
        while (q->n_pending > 0)
                drop_pending(q, 0);
        return r < 0 ? r : 0;
}

static int open_server(struct agent *a, struct tcp *t, uint64_t deadline_ns) {
        int r = open_listener(a, t);
        if (r == 0 && getrandom(t->token, sizeof t->token, 0) != sizeof t->token)
                r = failure_set(&a->failure, errno ? errno : EIO, "getrandom: %s", strerrordesc_np(errno));
        if (r == 0)
                r = send_address(a, t, deadline_ns);
        if (r == 0)
                r = accept_all(a, t, deadline_ns);
        t->listener = util_close(t->listener);
        if (r == 0)
                r = peer_send(a, PEER_TRANSPORT, 3, a->n_workers, deadline_ns);
        return r;
}

static int cannot_connect(struct agent *a, const struct tcp *t, uint32_t thread, int error) {
        return failure_set(&a->failure, error, "with peer %s, thread %" PRIu32 " cannot connect to 127.0.0.1:%u: %s%s",
                           a->peer_role, thread, t->port, strerrordesc_np(error),
                           error == EADDRNOTAVAIL ? " (no port is free; net.ipv4.ip_local_port_range)" : "");
}

/* Waits until a connection in progress is established, fails or reaches the deadline. */
static int await_connected(struct agent *a, const struct tcp *t, uint32_t thread, int fd, uint64_t deadline_ns) {
        for (;;) {
                struct pollfd p = {.fd = fd, .events = POLLOUT};
                int error = 0, n = poll(&p, 1, 0);
                socklen_t length = sizeof error;
                if (n > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
                        error = errno;
                if (n > 0)
                        return error ? cannot_connect(a, t, thread, error) : 0;
                if (util_now_ns() >= deadline_ns)
                        return cannot_connect(a, t, thread, ETIMEDOUT);
                int r = agent_wait(a, util_now_ns() + LOOK_NS, 0);
                if (r < 0)
                        return r;
        }
}

static int connect_one(struct agent *a, const struct tcp *t, uint32_t thread, uint64_t deadline_ns) {
        struct sockaddr_in address = {
                .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(t->port)};
        struct greeting g = {.thread = thread};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return failure_set(&a->failure, errno, "socket of thread %" PRIu32 ": %s", thread,
                                   strerrordesc_np(errno));
        int r = bind_thread(a, thread, fd);
        if (r == 0)
                r = set_options(a, fd);
        if (r == 0 && connect(fd, (struct sockaddr *) &address, sizeof address) < 0)
                r = errno == EINPROGRESS || errno == EINTR ? await_connected(a, t, thread, fd, deadline_ns)
                                                           : cannot_connect(a, t, thread, errno);
        if (r < 0)
                return r;
        memcpy(g.token, t->token, sizeof g.token);
        if (send(fd, &g, sizeof g, MSG_NOSIGNAL) != sizeof g || fcntl(fd, F_SETFL, 0) < 0)
                return cannot_connect(a, t, thread, errno);
        return 0;
}

static int open_client(struct agent *a, struct tcp *t, uint64_t deadline_ns) {
        int r = receive_address(a, t, deadline_ns);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++)
                r = connect_one(a, t, i, deadline_ns);
        if (r == 0)
                r = peer_receive(a, PEER_TRANSPORT, 3, NULL, deadline_ns);
        return r;
}

int tcp_connect_all(struct agent *a, struct tcp *t) {
        uint64_t deadline_ns = util_now_ns() + AGENT_RENDEZVOUS_NS + a->n_workers * AGENT_THREAD_NS;
        return a->end == END_FIRST ? open_server(a, t, deadline_ns) : open_client(a, t, deadline_ns);
}

/* Reports a socket option of all connections: the least value, and the most where they differ. Returns the least; -1:
 * unknown. */
static int put_option(const struct agent *a, struct effective *e, int level, int option, enum setting setting,
                      enum setting setting_max) {
        int least = 0, most = 0;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                int value = 0;
                socklen_t length = sizeof value;
                if (getsockopt(a->workers[i].send_fd, level, option, &value, &length) < 0) {
                        effective_add_unknown(e, setting, strerrordesc_np(errno));
                        return -1;
                }
                least = i == 0 || value < least ? value : least;
                most = i == 0 || value > most ? value : most;
        }
        effective_add_number(e, setting, (uint64_t) least);
        if (most != least)
                effective_add_number(e, setting_max, (uint64_t) most);
        return least;
}

static const char differ[] = "the connections differ in it";

static void put_congestion(const struct agent *a, struct effective *e) {
        char first[SPEC_CONGESTION_MAX + 1] = "";
        for (uint32_t i = 0; i < a->n_workers; i++) {
                char name[sizeof first] = "";
                socklen_t length = sizeof name - 1;
                if (getsockopt(a->workers[i].send_fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) < 0) {
                        effective_add_unknown(e, SETTING_CONGESTION, strerrordesc_np(errno));
                        return;
                }
                if (i == 0)
                        memcpy(first, name, sizeof first);
                if (strcmp(name, first) != 0) {
                        effective_add_unknown(e, SETTING_CONGESTION, differ);
                        return;
                }
        }
        effective_add_text(e, SETTING_CONGESTION, first);
}

/* The kernel's struct tcp_info up to the count of retransmission timeouts, which has been at its end since Linux 6.7;
 * Debian 12's header ends before it. */
struct info {
        struct tcp_info head; /* as far as tcpi_dsack_dups */
        uint8_t rest[64];
};
#define INFO_SPURIOUS offsetof(struct tcp_info, tcpi_dsack_dups)
#define INFO_TIMEOUTS (INFO_SPURIOUS + 6 * sizeof(uint32_t))

/* Segments that were sent again; those of them that the other end had already, of which it reports most (DSACK, RFC
 * 2883); and how often a connection stood still until its timer sent again. */
const char *tcp_sent_again(const struct agent *a, struct message_sent_again *ret) {
        struct message_sent_again sum = {.known = SENT_AGAIN_TIMEOUTS};
        *ret = (struct message_sent_again){.known = SENT_AGAIN_UNKNOWN};
        for (uint32_t i = 0; i < a->n_workers; i++) {
                struct info info = {};
                socklen_t length = sizeof info;
                uint16_t n;
                if (getsockopt(a->workers[i].send_fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
                        return strerrordesc_np(errno);
                if (length < INFO_SPURIOUS + sizeof info.head.tcpi_dsack_dups)
                        return "this kernel's TCP_INFO does not have the segments that arrived twice";
                sum.segments += info.head.tcpi_total_retrans;
                sum.spurious += info.head.tcpi_dsack_dups;
                if (length < INFO_TIMEOUTS + sizeof n)
                        sum.known = SENT_AGAIN_SEGMENTS;
                memcpy(&n, (const uint8_t *) &info + INFO_TIMEOUTS, sizeof n);
                sum.timeouts += n;
        }
        *ret = sum;
        return NULL;
}

static void put_retransmits(const struct agent *a, struct effective *e) {
        struct message_sent_again s;
        const char *reason = tcp_sent_again(a, &s);
        if (reason) {
                effective_add_unknown(e, SETTING_RETRANSMITS, reason);
                effective_add_unknown(e, SETTING_SPURIOUS_RETRANSMITS, reason);
                effective_add_unknown(e, SETTING_RETRANSMISSION_TIMEOUTS, reason);
                return;
        }
        effective_add_number(e, SETTING_RETRANSMITS, s.segments);
        effective_add_number(e, SETTING_SPURIOUS_RETRANSMITS, s.spurious);
        if (s.known == SENT_AGAIN_TIMEOUTS)
                effective_add_number(e, SETTING_RETRANSMISSION_TIMEOUTS, s.timeouts);
        else
                effective_add_unknown(e, SETTING_RETRANSMISSION_TIMEOUTS, "only Linux 6.7 and later count them");
}

static void put_nodelay(const struct agent *a, struct effective *e) {
        bool all_on = true, all_off = true;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                int on = 0;
                socklen_t length = sizeof on;
                if (getsockopt(a->workers[i].send_fd, IPPROTO_TCP, TCP_NODELAY, &on, &length) < 0) {
                        effective_add_unknown(e, SETTING_NODELAY, strerrordesc_np(errno));
                        return;
                }
                all_on = all_on && on;
                all_off = all_off && !on;
        }
        if (all_on || all_off)
                effective_add_bool(e, SETTING_NODELAY, all_on);
        else
                effective_add_unknown(e, SETTING_NODELAY, differ);
}

void tcp_sockets_effective(const struct agent *a, struct effective *e) {
        put_nodelay(a, e);
        int sndbuf = put_option(a, e, SOL_SOCKET, SO_SNDBUF, SETTING_SNDBUF_BYTES, SETTING_SNDBUF_BYTES_MAX);
        if (sndbuf >= 0)
                effective_add_number(e, SETTING_BUFFER_BYTES, (uint64_t) sndbuf / 2);
        (void) put_option(a, e, SOL_SOCKET, SO_RCVBUF, SETTING_RCVBUF_BYTES, SETTING_RCVBUF_BYTES_MAX);
        (void) put_option(a, e, SOL_SOCKET, SO_BUSY_POLL, SETTING_BUSY_POLL_US, SETTING_BUSY_POLL_US_MAX);
        (void) put_option(a, e, IPPROTO_TCP, TCP_MAXSEG, SETTING_SEGMENT_BYTES, SETTING_SEGMENT_BYTES_MAX);
        put_congestion(a, e);
        put_retransmits(a, e);
}
