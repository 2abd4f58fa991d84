/* SPDX-License-Identifier: MIT */

/* The relay thread between clients and the HTTP library; started and stopped by http.c. */

#include "api/http/connection/relay.h"

#include "api/http/connection/gate.h"
#include "api/http/connection/peer-user.h"
#include "api/http/connection/workers.h"
#include "schema/util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define LINGER_NS (2 * NSEC_PER_SEC)
#define LINGER_BYTES_MAX (16u * 1024u * 1024u)
#define SEND_BUFFER (128 * 1024) /* autotuning grows to megabytes for a client that does not read */
#define RESPONSE_BLOCK (64u * 1024u)
#define UNIX_PIECE 4096u /* is sent at once over a unix socket: peer_untaken() counts whole pieces */
#define TICK_MS 1000
#define PAUSE_NS (100 * NSEC_PER_MSEC)
#define END_GAP_MIN_NS NSEC_PER_MSEC
#define END_GAP_MAX_NS NSEC_PER_SEC

struct client {
        int fd, inner; /* inner: our end of the pair, -1 when the library has closed its own */
        uint64_t number;
        _Atomic uint64_t responses; /* known to the library */
        struct gate gate;
        char in[RELAY_BUFFER]; /* from `sent` to `length`: may pass, and not yet forwarded */
        size_t sent, length;
        bool in_ended;    /* the client sends no more, or its further bytes are dropped */
        uint64_t end_at;  /* when the socket to the library is shut down once more; 0: it was not shut down yet */
        uint64_t end_gap; /* between the last two times */
        bool in_full;
        atomic_bool out_full;
        bool answered; /* the library has sent bytes since the last complete head passed */
        char *refusal; /* to be sent when the library has closed */
        size_t refusal_length;
        size_t piece;              /* of the response, at most, in one send() */
        _Atomic uint64_t moved_at; /* bytes of the response */
        uint64_t looked_at;        /* whether it takes them */
        uint64_t untaken;          /* bytes then */
        uint64_t lingers_until;    /* 0: it does not linger */
        size_t dropped;            /* bytes, while it lingers */
};

struct relay {
        struct relay_options options;
        pthread_t thread;
        int wake_fd;
        int diag_fd;               /* for peer_user() and peer_untaken(); may be a negative errno */
        pthread_mutex_t accepting; /* held while a client is accepted: none reaches the library after relay_quiesce() */
        /* Held by the thread when it changes the list below, by others when they read it, and by both while they query
         * the kernel for a client's end. */
        pthread_mutex_t listing;
        atomic_bool quiet, stopping;
        _Atomic uint64_t deadline_ns;
        struct client *clients[RELAY_CLIENTS_MAX];
        unsigned n;
        uint64_t last_number;
        uint64_t paused_until; /* accepting is paused until then */
        char block[RESPONSE_BLOCK];
};

static void client_free(struct client *c) {
        util_close(c->fd);
        util_close(c->inner);
        free(c->refusal);
        free(c);
}

static bool would_block(void) {
        return errno == EAGAIN || errno == EINTR;
}

/* ---- from the client to the library ---- */

static int read_client(struct relay *r, struct client *c) {
        ssize_t n = recv(c->fd, c->in, sizeof(c->in), MSG_DONTWAIT);
        if (n < 0)
                return would_block() ? 0 : -errno;
        if (n == 0) {
                c->in_ended = true;
                return 0;
        }
        struct refusal why = {0};
        size_t passed;
        bool in_body = c->gate.in_body;
        c->sent = 0;
        c->length = gate_pass(&c->gate, c->in, (size_t) n, &passed, &why);
        if (c->gate.in_body && !in_body)
                c->answered = false;
        if (passed < (size_t) n) {
                c->in_ended = true;
                c->refusal = r->options.refused(r->options.userdata, &why, &c->refusal_length);
        }
        return 0;
}

/* False: the library has closed its end, or its queue is full. */
static bool pass_on(struct client *c) {
        while (c->sent < c->length) {
                ssize_t n = send(c->inner, c->in + c->sent, c->length - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0) {
                        c->in_full = would_block();
                        if (!c->in_full) { /* what it has sent before can still be read */
                                c->sent = c->length = 0;
                                c->in_ended = true;
                        }
                        return false;
                }
                c->sent += (size_t) n;
        }
        c->in_full = false;
        return true;
}

/* The library waits for edges, and misses an end that it finds together with the last bytes. Each shutdown() is another
 * edge (unix_shutdown() of net/unix/af_unix.c). */
static void pass_end(struct client *c, uint64_t now) {
        if (now < c->end_at)
                return;
        (void) shutdown(c->inner, SHUT_WR); /* ENOTCONN: the library was faster */
        c->end_gap = c->end_gap == 0 ? END_GAP_MIN_NS : c->end_gap < END_GAP_MAX_NS ? 2 * c->end_gap : END_GAP_MAX_NS;
        c->end_at = now + c->end_gap;
}

static int take_request(struct relay *r, struct client *c, short events, uint64_t now) {
        int k = 0;
        if (c->inner < 0)
                return 0;
        if (c->sent == c->length && !c->in_ended && (events & (POLLIN | POLLHUP | POLLERR)))
                k = read_client(r, c);
        /* the library has a response to every whole request by then */
        if (k >= 0 && pass_on(c) && c->in_ended && atomic_load(&c->responses) >= c->gate.requests)
                pass_end(c, now);
        return k;
}

/* ---- from the library to the client ---- */

/* Reads and drops what the client still sends: a socket that is closed with unread bytes resets the connection, and the
 * client would not receive the refusal. */
static void begin_linger(struct client *c, uint64_t now) {
        util_close(c->inner);
        c->inner = -1;
        /* A courtesy, and small: there is room for it as nothing is on its way. A request that is found to be bad amid
         * its body may have been answered by then, for its head. */
        if (c->refusal && !(c->gate.in_body && c->answered))
                (void) send(c->fd, c->refusal, c->refusal_length, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void) shutdown(c->fd, SHUT_WR);
        c->lingers_until = now + LINGER_NS;
}

/* How much of the block the client's socket takes; a negative errno. */
static ssize_t send_block(const struct relay *r, const struct client *c, size_t have) {
        size_t done = 0;
        while (done < have) {
                size_t piece = have - done < c->piece ? have - done : c->piece;
                ssize_t n = send(c->fd, r->block + done, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0)
                        return would_block() ? (ssize_t) done : -errno;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

static int give_response(struct relay *r, struct client *c, uint64_t now) {
        ssize_t have = recv(c->inner, r->block, sizeof(r->block), MSG_DONTWAIT | MSG_PEEK);
        if (have < 0 && would_block())
                return 0;
        if (have <= 0) { /* ECONNRESET: it left bytes of the request unread */
                begin_linger(c, now);
                return 0;
        }
        ssize_t n = send_block(r, c, (size_t) have);
        if (n < 0)
                return (int) n;
        c->out_full = n < have;
        if (n > 0) {
                c->moved_at = now;
                c->answered = true;
                if (recv(c->inner, r->block, (size_t) n, MSG_DONTWAIT) != n)
                        return -EIO;
        }
        return 0;
}

static int linger(struct relay *r, struct client *c, uint64_t now) {
        for (;;) {
                if (now >= c->lingers_until || c->dropped > LINGER_BYTES_MAX)
                        return -ETIME;
                ssize_t n = recv(c->fd, r->block, sizeof(r->block), MSG_DONTWAIT);
                if (n < 0)
                        return would_block() ? 0 : -errno;
                if (n == 0)
                        return -ESHUTDOWN;
                c->dropped += (size_t) n;
        }
}

/* Looks whether the client has taken bytes since the last look. Its socket has room for more only when a large part of
 * what it holds was taken, so a slow reader would seem to stand still. Where the kernel does not answer, only room
 * counts. */
static void look(struct relay *r, struct client *c, uint64_t now) {
        uint64_t untaken;
        c->looked_at = now;
        if (peer_untaken(r->diag_fd, c->fd, &untaken) < 0 || untaken == c->untaken)
                return;
        c->untaken = untaken;
        c->moved_at = now;
}

static bool stands_still(struct relay *r, struct client *c, uint64_t now) {
        pthread_mutex_lock(&r->listing);
        if (now > c->looked_at + (uint64_t) TICK_MS * NSEC_PER_MSEC)
                look(r, c, now);
        pthread_mutex_unlock(&r->listing);
        return now > c->moved_at + RELAY_STALLED_NS;
}

/* A negative errno: it is over. */
static int serve(struct relay *r, struct client *c, short outer, short inner, uint64_t now) {
        if (c->lingers_until > 0)
                return linger(r, c, now);
        int k = take_request(r, c, outer, now);
        if (k >= 0 && c->out_full && (outer & (POLLOUT | POLLHUP | POLLERR)))
                c->out_full = false;
        if (k >= 0 && !c->out_full && (inner || outer))
                k = give_response(r, c, now);
        if (k >= 0 && c->out_full && stands_still(r, c, now))
                k = -ETIME;
        return k;
}

/* ---- clients ---- */

/* "": of a unix socket, or unknown. */
static void print_address(int fd, char ret[static INET6_ADDRSTRLEN]) {
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof(address);
        const void *bytes = NULL;
        ret[0] = '\0';
        if (getpeername(fd, (struct sockaddr *) &address, &length) < 0)
                return;
        if (address.ss_family == AF_INET)
                bytes = &((const struct sockaddr_in *) &address)->sin_addr;
        else if (address.ss_family == AF_INET6)
                bytes = &((const struct sockaddr_in6 *) &address)->sin6_addr;
        if (bytes && !inet_ntop(address.ss_family, bytes, ret, INET6_ADDRSTRLEN))
                ret[0] = '\0';
}

/* Clients of one address share its limits where the kernel does not know the user. */
static int announce(struct relay *r, int fd, int inner, uint64_t number) {
        char user[16] = "", address[INET6_ADDRSTRLEN];
        uid_t uid;
        pthread_mutex_lock(&r->listing);
        if (peer_user(r->diag_fd, fd, &uid) == 0)
                (void) snprintf(user, sizeof(user), "%u", uid);
        pthread_mutex_unlock(&r->listing);
        print_address(fd, address);
        return r->options.accepted(r->options.userdata, inner, user, address, number);
}

static int client_new(struct relay *r, int fd, struct client **ret) {
        int pair[2], size = SEND_BUFFER, domain;
        socklen_t length = sizeof(domain);
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0)
                return -errno;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return -errno;
        struct client *c = calloc(1, sizeof(*c));
        if (!c) {
                util_close(pair[0]);
                util_close(pair[1]);
                return -ENOMEM;
        }
        /* only memory is saved: nothing is to be done where it fails */
        (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        (void) setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        *c = (struct client){.fd = -1,
                             .inner = pair[0],
                             .number = ++r->last_number,
                             .piece = domain == AF_UNIX ? UNIX_PIECE : RESPONSE_BLOCK,
                             .moved_at = util_now_ns()};
        int k = announce(r, fd, pair[1], c->number);
        if (k < 0) {
                client_free(c);
                return k;
        }
        c->fd = fd;
        *ret = c;
        return 0;
}

static void remove_client(struct relay *r, unsigned i) {
        struct client *c = r->clients[i];
        pthread_mutex_lock(&r->listing);
        r->clients[i] = r->clients[--r->n];
        pthread_mutex_unlock(&r->listing);
        client_free(c);
}

/* Whether the library has ended the connection, and what it had written is still on its way: while the client takes no
 * more, nothing else reports that end. */
static bool is_ended(const struct client *c) {
        struct pollfd inner = {.fd = c->inner};
        return c->out_full && poll(&inner, 1, 0) > 0 && (inner.revents & (POLLHUP | POLLERR));
}

/* One that is over already, and lingers or has not taken all of its answer, gives its place; r->n: there is none. */
static unsigned find_over(const struct relay *r) {
        unsigned i = 0;
        while (i < r->n && r->clients[i]->lingers_until == 0)
                i++;
        if (i < r->n)
                return i;
        for (i = 0; i < r->n && !is_ended(r->clients[i]);)
                i++;
        return i;
}

static bool make_room(struct relay *r) {
        unsigned i = find_over(r);
        if (i == r->n)
                return false;
        remove_client(r, i);
        return true;
}

static void accept_clients(struct relay *r) {
        while (!r->quiet && (r->n < r->options.clients || make_room(r))) {
                int fd = accept4(r->options.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd < 0) {
                        if (errno != EAGAIN) /* no descriptor, no memory: they wait in the queue */
                                r->paused_until = util_now_ns() + PAUSE_NS;
                        return;
                }
                struct client *c = NULL;
                if (client_new(r, fd, &c) < 0) {
                        util_close(fd);
                        continue;
                }
                pthread_mutex_lock(&r->listing);
                r->clients[r->n++] = c;
                pthread_mutex_unlock(&r->listing);
                /* its request is before the library when the clients behind it want its place */
                if (serve(r, r->clients[r->n - 1], POLLIN, 0, util_now_ns()) < 0)
                        remove_client(r, r->n - 1);
        }
}

/* ---- the thread ---- */

static nfds_t list_fds(struct relay *r, struct pollfd *fds) {
        bool paused = util_now_ns() < r->paused_until;
        bool full = r->n >= r->options.clients && find_over(r) == r->n;
        fds[0] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = full || paused || atomic_load(&r->quiet) ? -1 : r->options.fd, .events = POLLIN};
        for (unsigned i = 0; i < r->n; i++) {
                const struct client *c = r->clients[i];
                bool reads = c->lingers_until > 0 || (!c->in_ended && c->sent == c->length);
                short outer = (short) ((reads ? POLLIN : 0) | (c->out_full ? POLLOUT : 0));
                short inner = (short) ((c->out_full ? 0 : POLLIN) | (c->in_full ? POLLOUT : 0));
                /* without events a descriptor still reports its end, again and again */
                fds[2 + 2 * i] = (struct pollfd){.fd = outer ? c->fd : -1, .events = outer};
                fds[3 + 2 * i] = (struct pollfd){.fd = inner ? c->inner : -1, .events = inner};
        }
        return 2 + 2 * r->n;
}

/* For poll(), in milliseconds. */
static int find_timeout(const struct relay *r) {
        uint64_t now = util_now_ns(), least = (uint64_t) TICK_MS * NSEC_PER_MSEC;
        for (unsigned i = 0; i < r->n; i++) {
                const struct client *c = r->clients[i];
                uint64_t left = c->end_at > now ? c->end_at - now : 0;
                if (c->end_at > 0 && c->inner >= 0 && left < least)
                        least = left;
        }
        return r->n > 0 || r->paused_until > 0 ? (int) ((least + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC) : -1;
}

static void *relay_run(void *userdata) {
        struct relay *r = userdata;
        struct pollfd fds[2 + 2 * RELAY_CLIENTS_MAX];
        workers_lower_priority();
        for (;;) {
                nfds_t n = list_fds(r, fds);
                (void) poll(fds, n, find_timeout(r));
                uint64_t now = util_now_ns(), count;
                if (fds[0].revents && read(r->wake_fd, &count, sizeof(count)) < 0 && !would_block())
                        return NULL;
                for (unsigned i = r->n; i-- > 0;)
                        if (serve(r, r->clients[i], fds[2 + 2 * i].revents, fds[3 + 2 * i].revents, now) < 0)
                                remove_client(r, i);
                if (fds[1].revents) {
                        pthread_mutex_lock(&r->accepting);
                        accept_clients(r);
                        pthread_mutex_unlock(&r->accepting);
                }
                if (atomic_load(&r->stopping) && (r->n == 0 || now >= atomic_load(&r->deadline_ns)))
                        return NULL;
        }
}

static void wake(struct relay *r) {
        uint64_t one = 1;
        if (write(r->wake_fd, &one, sizeof(one)) < 0)
                return; /* full: it is awake already */
}

static void relay_destroy(struct relay *r) {
        util_close(r->wake_fd);
        util_close(r->diag_fd);
        pthread_mutex_destroy(&r->listing);
        pthread_mutex_destroy(&r->accepting);
        free(r);
}

int relay_new(struct relay **ret, const struct relay_options *o) {
        struct relay *r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        r->options = *o;
        r->diag_fd = peer_user_open();
        pthread_mutex_init(&r->accepting, NULL);
        pthread_mutex_init(&r->listing, NULL);
        r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        pthread_mutex_lock(&r->accepting); /* *ret is written before a client is accepted, whose responses need it */
        int k = r->wake_fd < 0 ? -errno : -pthread_create(&r->thread, NULL, relay_run, r);
        if (k >= 0)
                *ret = r;
        pthread_mutex_unlock(&r->accepting);
        if (k < 0)
                relay_destroy(r);
        return k;
}

void relay_responded(struct relay *r, uint64_t number) {
        pthread_mutex_lock(&r->listing);
        for (unsigned i = 0; i < r->n; i++)
                if (r->clients[i]->number == number)
                        atomic_fetch_add(&r->clients[i]->responses, 1);
        pthread_mutex_unlock(&r->listing);
}

bool relay_stands_still(struct relay *r, uint64_t number) {
        uint64_t now = util_now_ns();
        bool still = false;
        pthread_mutex_lock(&r->listing);
        for (unsigned i = 0; i < r->n && !still; i++) {
                struct client *c = r->clients[i];
                if (c->number != number || !atomic_load(&c->out_full) || now <= c->moved_at + RELAY_CROWDED_NS)
                        continue;
                look(r, c, now);
                still = now > c->moved_at + RELAY_CROWDED_NS;
        }
        pthread_mutex_unlock(&r->listing);
        return still;
}

bool relay_has_gone(struct relay *r, uint64_t number) {
        bool gone = true;
        pthread_mutex_lock(&r->listing);
        for (unsigned i = 0; i < r->n; i++)
                if (r->clients[i]->number == number)
                        gone = peer_has_closed(r->diag_fd, r->clients[i]->fd);
        pthread_mutex_unlock(&r->listing);
        return gone;
}

void relay_quiesce(struct relay *r) {
        pthread_mutex_lock(&r->accepting);
        atomic_store(&r->quiet, true);
        pthread_mutex_unlock(&r->accepting);
        wake(r);
}

void relay_free(struct relay *r, uint64_t deadline_ns) {
        if (!r)
                return;
        atomic_store(&r->deadline_ns, deadline_ns);
        atomic_store(&r->stopping, true);
        relay_quiesce(r);
        pthread_join(r->thread, NULL);
        for (unsigned i = 0; i < r->n; i++)
                client_free(r->clients[i]);
        relay_destroy(r);
}
