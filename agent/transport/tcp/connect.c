/* SPDX-License-Identifier: MIT */

/*
 * How the connections come to be, in the leaders' threads. The server listens on a port of loopback that the kernel
 * chooses and tells the client, over the peer channel, the port and a random token:
 *
 *      server  port, token (two packets)
 *      client  connects once for each thread, and says the token and the thread's number on each connection
 *      server  "accepted", when each of its threads has a connection
 *
 * Anyone on the host may connect to a port: who says anything else than the token is hung up on, and counted. Who says
 * nothing may be our client, which does not run just then: he may stay until all are there, unless more come than there
 * is room for, and he has been silent for longest. Options are set before a connection is made (a receive buffer's size
 * is agreed upon then), and read back from it.
 *
 * Source: man 7 tcp, man 7 ip, man 7 socket. The kernel doubles what SO_SNDBUF and SO_RCVBUF ask for and cuts it at
 * net.core.wmem_max and rmem_max without an error: what was cut is refused here.
 */

#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/transport/tcp/tcp.h"
#include "schema/json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define LOOK_NS NSEC_PER_MSEC

/* What the client says on each connection; both are of the same build. */
struct greeting {
        unsigned char token[12];
        uint32_t thread;
};
_Static_assert(sizeof(struct greeting) == 16, "sixteen bytes, none of them padding");

struct caller {
        int fd;
        size_t got;
        struct greeting greeting;
        uint64_t number; /* in the order of coming */
};

struct door {
        struct agent *agent;
        struct tcp *tcp;
        struct caller callers[POINT_PENDING_MAX];
        uint32_t n_callers, n_bound;
        uint64_t n_came;
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

/* The connection is thread i's from now on, and closed with it. */
static int bind_thread(struct agent *a, uint32_t i, int fd) {
        struct worker *w = &a->workers[i];
        const struct point *p = &a->setup.point;
        w->send_fd = w->receive_fd = fd;
        if (p->copy_mode == COPY_ZERO && p->engine == ENGINE_SYSCALL && tcp_agent_sends(a))
                return set_number(a, fd, SOL_SOCKET, SO_ZEROCOPY, "SO_ZEROCOPY", 1);
        return 0;
}

static int listen_somewhere(struct agent *a, struct tcp *t) {
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
                                   "no port of 127.0.0.1 is free for the server: %s (net.ipv4.ip_local_port_range says "
                                   "which there are)",
                                   strerrordesc_np(errno));
        if (listen(t->listener, SOMAXCONN) < 0 || getsockname(t->listener, (struct sockaddr *) &address, &length) < 0)
                return failure_set(&a->failure, errno, "listen: %s", strerrordesc_np(errno));
        t->port = ntohs(address.sin_port);
        return 0;
}

static int tell(struct agent *a, const struct tcp *t, uint64_t deadline_ns) {
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

static int hear(struct agent *a, struct tcp *t, uint64_t deadline_ns) {
        uint64_t port = 0, low = 0, high = 0;
        int r = peer_receive(a, PEER_TRANSPORT, 0, &port, deadline_ns);
        if (r == 0)
                r = peer_receive(a, PEER_TRANSPORT, 1, &low, deadline_ns);
        if (r == 0)
                r = peer_receive(a, PEER_TRANSPORT, 2, &high, deadline_ns);
        if (r < 0)
                return r;
        if (port == 0 || port > UINT16_MAX)
                return failure_blame(&a->failure, a->peer_role, EBADMSG, "listens on port %" PRIu64 ", which is none",
                                     port);
        uint32_t short_high = (uint32_t) high;
        t->port = (uint16_t) port;
        memcpy(t->token, &low, sizeof low);
        memcpy(t->token + sizeof low, &short_high, sizeof short_high);
        return 0;
}

static void dismiss(struct door *d, uint32_t i) {
        (void) util_close(d->callers[i].fd);
        d->callers[i] = d->callers[--d->n_callers];
        d->tcp->strangers++;
}

/* Whether this is the client's connection for a thread that has none yet. */
static bool is_ours(const struct door *d, const struct greeting *g) {
        return memcmp(g->token, d->tcp->token, sizeof g->token) == 0 && g->thread < d->agent->n_workers &&
               d->agent->workers[g->thread].send_fd < 0;
}

/* 1 when the caller is gone from the list, one way or the other. */
static int listen_to(struct door *d, uint32_t i) {
        struct caller *c = &d->callers[i];
        ssize_t n = recv(c->fd, (char *) &c->greeting + c->got, sizeof c->greeting - c->got, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        c->got += n > 0 ? (size_t) n : 0;
        if (n > 0 && c->got < sizeof c->greeting)
                return 0;
        if (n <= 0 || !is_ours(d, &c->greeting)) {
                dismiss(d, i);
                return 1;
        }
        int r = bind_thread(d->agent, c->greeting.thread, c->fd);
        if (r == 0)
                r = set_options(d->agent, c->fd);
        d->callers[i] = d->callers[--d->n_callers];
        d->n_bound++;
        return r < 0 ? r : 1;
}

/* Room for one more: who has been silent for longest goes, unless he has spoken at last. 0; negative errno. */
static int make_room(struct door *d) {
        uint32_t oldest = 0;
        if (d->n_callers < POINT_PENDING_MAX)
                return 0;
        for (uint32_t i = 1; i < d->n_callers; i++)
                if (d->callers[i].number < d->callers[oldest].number)
                        oldest = i;
        int r = listen_to(d, oldest);
        if (r == 0)
                dismiss(d, oldest);
        return r < 0 ? r : 0;
}

/* Lets in who waits at the door. 1 when somebody came. */
static int let_in(struct door *d) {
        struct agent *a = d->agent;
        int fd = accept4(d->tcp->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
                if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO)
                        return 0;
                return failure_set(&a->failure, errno, "accept, connection %" PRIu32 " of %" PRIu32 ": %s",
                                   d->n_bound + d->n_callers + 1, a->n_workers, strerrordesc_np(errno));
        }
        int r = make_room(d);
        if (r < 0) {
                (void) util_close(fd);
                return r;
        }
        d->callers[d->n_callers++] = (struct caller){.fd = fd, .number = d->n_came++};
        return 1;
}

/* One round at the door. How much happened; negative errno. */
static int attend(struct door *d) {
        int happened = 0, r = 0;
        while (happened < (int) POINT_PENDING_MAX && (r = let_in(d)) > 0)
                happened++;
        for (uint32_t i = 0; r >= 0 && i < d->n_callers;) {
                r = listen_to(d, i);
                happened += r > 0;
                i += r == 0;
        }
        return r < 0 ? r : happened;
}

static int accept_all(struct agent *a, struct tcp *t, uint64_t deadline_ns) {
        _cleanup_free_ struct door *d = calloc(1, sizeof *d);
        int r = 0;
        if (!d)
                return failure_set(&a->failure, ENOMEM, "no memory to accept connections with");
        d->agent = a;
        d->tcp = t;
        while (r >= 0 && d->n_bound < a->n_workers) {
                r = attend(d);
                if (r == 0)
                        r = agent_wait(a, util_now_ns() + LOOK_NS, 0);
                if (r >= 0 && util_now_ns() >= deadline_ns)
                        r = failure_blame(&a->failure, a->peer_role, ETIMEDOUT,
                                          "has made %" PRIu32 " of %" PRIu32 " connections, and no more in time "
                                          "(%" PRIu32 " of strangers were refused)",
                                          d->n_bound, a->n_workers, t->strangers);
        }
        while (d->n_callers > 0)
                dismiss(d, 0);
        return r < 0 ? r : 0;
}

static int open_server(struct agent *a, struct tcp *t, uint64_t deadline_ns) {
        int r = listen_somewhere(a, t);
        if (r == 0 && getrandom(t->token, sizeof t->token, 0) != sizeof t->token)
                r = failure_set(&a->failure, errno ? errno : EIO, "getrandom: %s", strerrordesc_np(errno));
        if (r == 0)
                r = tell(a, t, deadline_ns);
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

/* A connection that is under way comes, or fails, or is given up. */
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
        int r = hear(a, t, deadline_ns);
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

static void put_unknown(struct json_writer *w, const char *name, const char *reason) {
        char key[48];
        json_member_null(w, name);
        (void) snprintf(key, sizeof key, "%s_reason", name);
        json_member_string(w, key, reason);
}

/* A socket option of all connections: the least, and the most where they differ. */
static void put_option(const struct agent *a, struct json_writer *w, int level, int option, const char *name) {
        int least = 0, most = 0;
        char key[48];
        for (uint32_t i = 0; i < a->n_workers; i++) {
                int value = 0;
                socklen_t length = sizeof value;
                if (getsockopt(a->workers[i].send_fd, level, option, &value, &length) < 0) {
                        put_unknown(w, name, strerrordesc_np(errno));
                        return;
                }
                least = i == 0 || value < least ? value : least;
                most = i == 0 || value > most ? value : most;
        }
        json_member_i64(w, name, least);
        (void) snprintf(key, sizeof key, "%s_max", name);
        if (most != least)
                json_member_i64(w, key, most);
}

static const char differ[] = "the connections differ in it";

static void put_congestion(const struct agent *a, struct json_writer *w) {
        char first[SPEC_CONGESTION_MAX + 1] = "";
        for (uint32_t i = 0; i < a->n_workers; i++) {
                char name[sizeof first] = "";
                socklen_t length = sizeof name - 1;
                if (getsockopt(a->workers[i].send_fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) < 0) {
                        put_unknown(w, "congestion", strerrordesc_np(errno));
                        return;
                }
                if (i == 0)
                        memcpy(first, name, sizeof first);
                if (strcmp(name, first) != 0) {
                        put_unknown(w, "congestion", differ);
                        return;
                }
        }
        json_member_string(w, "congestion", first);
}

static void put_retransmits(const struct agent *a, struct json_writer *w) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                struct tcp_info info = {};
                socklen_t length = sizeof info;
                if (getsockopt(a->workers[i].send_fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) {
                        put_unknown(w, "retransmits", strerrordesc_np(errno));
                        return;
                }
                sum += info.tcpi_total_retrans;
        }
        json_member_u64(w, "retransmits", sum);
}

static void put_nodelay(const struct agent *a, struct json_writer *w) {
        bool all_on = true, all_off = true;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                int on = 0;
                socklen_t length = sizeof on;
                if (getsockopt(a->workers[i].send_fd, IPPROTO_TCP, TCP_NODELAY, &on, &length) < 0) {
                        put_unknown(w, "nodelay", strerrordesc_np(errno));
                        return;
                }
                all_on = all_on && on;
                all_off = all_off && !on;
        }
        if (all_on || all_off)
                json_member_bool(w, "nodelay", all_on);
        else
                put_unknown(w, "nodelay", differ);
}

void tcp_sockets_effective(const struct agent *a, struct json_writer *w) {
        put_nodelay(a, w);
        put_option(a, w, SOL_SOCKET, SO_SNDBUF, "sndbuf_bytes");
        put_option(a, w, SOL_SOCKET, SO_RCVBUF, "rcvbuf_bytes");
        put_option(a, w, SOL_SOCKET, SO_BUSY_POLL, "busy_poll_us");
        put_option(a, w, IPPROTO_TCP, TCP_MAXSEG, "segment_bytes");
        put_congestion(a, w);
        put_retransmits(a, w);
}
