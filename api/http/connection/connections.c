/* SPDX-License-Identifier: MIT */

/*
 * Deadlines and limits of one listener's connections; called by http.c. It handles sockets, and HTTP only as the texts
 * that it is given.
 */

#include "api/http/connection/connections.h"

#include "schema/util.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define TICK_MS 1000

struct connection {
        struct connection *prev, *next; /* oldest first */
        int fd;
        struct peer *peer;
        uint64_t number; /* the client's */
        enum connection_state state;
        uint64_t since; /* the state */
        bool ended;     /* shut down here, and not counted any more */
};

struct connections {
        struct connection_limits limits;
        pthread_mutex_t lock;
        pthread_t thread;
        int wake_fd;
        bool stopping;
        struct connection *first, *last;
        unsigned count;
};

static bool waits_for_request(enum connection_state state) {
        return state <= CONNECTION_BODY;
}

static bool has_unread(const struct connection *connection) {
        int unread = 0;
        return ioctl(connection->fd, FIONREAD, &unread) == 0 && unread > 0;
}

static void wake(struct connections *c) {
        uint64_t one = 1;
        /* full means it is awake already */
        ssize_t n = write(c->wake_fd, &one, sizeof(one));
        (void) n;
}

static void mark_ended(struct connection *connection) {
        connection->ended = true;
        peer_give(connection->peer, PEER_CONNECTIONS, 1);
}

static void end(struct connection *connection) {
        mark_ended(connection);
        (void) shutdown(connection->fd, SHUT_RDWR); /* ENOTCONN: it ended by itself */
}

/* The text is a courtesy: it counts only when it could be sent. */
static void end_with(struct connections *c, struct connection *connection, unsigned status, const char *text,
                     size_t length) {
        if (send(connection->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t) length)
                c->limits.answered(c->limits.userdata, status);
        end(connection);
}

static void end_late(struct connections *c, struct connection *connection) {
        if (connection->state == CONNECTION_HEAD || connection->state == CONNECTION_BODY)
                end_with(c, connection, 408, c->limits.timeout_response, c->limits.timeout_length);
        else
                end(connection);
}

static uint64_t patience(const struct connections *c, enum connection_state state) {
        switch (state) {
        case CONNECTION_FRESH:
        case CONNECTION_HEAD:
                return c->limits.head_ns;
        case CONNECTION_IDLE:
                return c->limits.idle_ns;
        case CONNECTION_BODY:
                return c->limits.body_ns;
        default:
                return UINT64_MAX;
        }
}

/* Whether the client closed its side without a whole request, and there is nothing left to read. The library, which
 * waits for edges, misses an end of the stream that arrived together with the last bytes. */
static bool left_early(const struct connection *connection, uint64_t now) {
        return waits_for_request(connection->state) && now - connection->since > NSEC_PER_SEC &&
               connection_hung_up(connection) && !has_unread(connection);
}

static void end_all_late(struct connections *c, uint64_t now) {
        for (struct connection *i = c->first; i; i = i->next) {
                if (i->ended)
                        continue;
                if (now - i->since > patience(c, i->state))
                        end_late(c, i);
                else if (left_early(i, now))
                        end(i);
        }
}

/* Sleeps until the next deadline or wake-up; without a timeout while there is no connection. */
static void wait_for_work(struct connections *c) {
        struct pollfd fd = {.fd = c->wake_fd, .events = POLLIN};
        pthread_mutex_lock(&c->lock);
        int timeout = c->stopping ? 0 : c->count > 0 ? TICK_MS : -1;
        pthread_mutex_unlock(&c->lock);
        (void) poll(&fd, 1, timeout);
        if (fd.revents) {
                uint64_t count;
                ssize_t k = read(c->wake_fd, &count, sizeof(count));
                (void) k;
        }
}

static void *watch(void *userdata) {
        struct connections *c = userdata;
        uint64_t ticked = 0;
        for (;;) {
                wait_for_work(c);
                pthread_mutex_lock(&c->lock);
                uint64_t now = util_now_ns(); /* under the lock: no state is younger */
                bool stopping = c->stopping;
                end_all_late(c, now);
                pthread_mutex_unlock(&c->lock);
                if (stopping)
                        return NULL;
                if (now - ticked >= (uint64_t) TICK_MS * NSEC_PER_MSEC / 2) {
                        ticked = now;
                        c->limits.tick(c->limits.userdata);
                }
        }
}

int connections_new(struct connections **ret, const struct connection_limits *limits) {
        struct connections *c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->limits = *limits;
        c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (c->wake_fd < 0) {
                int k = -errno;
                free(c);
                return k;
        }
        pthread_mutex_init(&c->lock, NULL);
        int k = pthread_create(&c->thread, NULL, watch, c);
        if (k != 0) {
                pthread_mutex_destroy(&c->lock);
                util_close(c->wake_fd);
                free(c);
                return -k;
        }
        *ret = c;
        return 0;
}

void connections_free(struct connections *c) {
        if (!c)
                return;
        pthread_mutex_lock(&c->lock);
        c->stopping = true;
        pthread_mutex_unlock(&c->lock);
        wake(c);
        pthread_join(c->thread, NULL);
        while (c->first)
                connections_remove(c, c->first);
        pthread_mutex_destroy(&c->lock);
        util_close(c->wake_fd);
        free(c);
}

/* Ends the connection, of those that count as `full`, that has waited longest without a request, else the answer that
 * has taken longest, of those that take long or that the client does not take. Event streams have a share of their own.
 */
static bool make_room(struct connections *c, const struct peer *full, uint64_t now) {
        struct connection *victim = NULL;
        bool victim_waits = false;
        for (struct connection *i = c->first; i; i = i->next) {
                if (i->ended || !peer_is_below(i->peer, full) || i->state == CONNECTION_STREAM)
                        continue;
                /* for its client: what that has sent may wait for the library, which begins connections that come
                 * together before it reads the first one's request */
                bool waits = waits_for_request(i->state) && !has_unread(i);
                if (victim && (waits == victim_waits ? i->since >= victim->since : !waits))
                        continue;
                /* the kernel is queried for the last one */
                if (waits || now - i->since >= c->limits.busy_ns ||
                    c->limits.stands_still(c->limits.userdata, i->number)) {
                        victim = i;
                        victim_waits = waits;
                }
        }
        if (victim)
                end(victim);
        return victim != NULL;
}

struct connection *connections_add(struct connections *c, int fd, struct peer *peer, uint64_t number) {
        struct connection *connection = calloc(1, sizeof(*connection));
        if (!connection)
                return NULL;
        *connection = (struct connection){.fd = fd, .peer = peer_ref(peer), .number = number};

        pthread_mutex_lock(&c->lock);
        uint64_t now = connection->since = util_now_ns();
        const struct peer *full;
        while ((full = peer_full(peer, PEER_CONNECTIONS)) && make_room(c, full, now))
                ;
        peer_add(peer, PEER_CONNECTIONS, 1);
        if (full) {
                enum peer_level level = peer_level(full);
                end_with(c, connection, 503, c->limits.full_response[level], c->limits.full_length[level]);
        }
        connection->prev = c->last;
        if (c->last)
                c->last->next = connection;
        else
                c->first = connection;
        c->last = connection;
        bool first = c->count++ == 0;
        pthread_mutex_unlock(&c->lock);
        if (first)
                wake(c);
        return connection;
}

void connections_remove(struct connections *c, struct connection *connection) {
        pthread_mutex_lock(&c->lock);
        if (connection->prev)
                connection->prev->next = connection->next;
        else
                c->first = connection->next;
        if (connection->next)
                connection->next->prev = connection->prev;
        else
                c->last = connection->prev;
        c->count--;
        if (!connection->ended)
                mark_ended(connection);
        pthread_mutex_unlock(&c->lock);
        peer_unref(connection->peer);
        free(connection);
}

struct peer *connection_peer(const struct connection *connection) {
        return connection->peer;
}

bool connection_enter(struct connections *c, struct connection *connection, enum connection_state state) {
        pthread_mutex_lock(&c->lock);
        bool alive = !connection->ended;
        if (connection->state != state) {
                connection->state = state;
                connection->since = util_now_ns();
        }
        pthread_mutex_unlock(&c->lock);
        return alive;
}

bool connection_hung_up(const struct connection *connection) {
        struct pollfd fd = {.fd = connection->fd, .events = POLLRDHUP};
        return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void connection_refuse(struct connections *c, struct connection *connection, const char *text, size_t length) {
        pthread_mutex_lock(&c->lock);
        if (!connection->ended) {
                /* nothing was sent on this connection since its last whole response, so a few hundred bytes fit */
                ssize_t n = send(connection->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
                (void) n;
                (void) shutdown(connection->fd, SHUT_WR);
                mark_ended(connection);
        }
        pthread_mutex_unlock(&c->lock);
}

unsigned connections_count(struct connections *c) {
        pthread_mutex_lock(&c->lock);
        unsigned n = c->count;
        pthread_mutex_unlock(&c->lock);
        return n;
}

void connections_shutdown(struct connections *c, bool all) {
        pthread_mutex_lock(&c->lock);
        for (struct connection *i = c->first; i; i = i->next)
                if (!i->ended && (all || waits_for_request(i->state)))
                        end(i);
        pthread_mutex_unlock(&c->lock);
}
