/* SPDX-License-Identifier: MIT */

/*
 * The wrapper of libmicrohttpd. This file and connections.c add what the library lacks: absolute deadlines, eviction
 * when all connections are in use, limits on the bytes of bodies, handlers in threads of their own, streams that sleep
 * while there is nothing to send, and a stop that leaves no connection suspended (the library aborts the process
 * otherwise).
 *
 * Debian has a version before 1.0; the comments name its behaviour where it is the reason.
 */

#include "api/http/http.h"

#include "api/http/connection/connections.h"
#include "api/http/connection/relay.h"
#include "api/http/connection/workers.h"
#include "schema/util.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define CONNECTION_MEMORY (64u * 1024u) /* fits the gate's longest head, with the library's copies of it */
#define STREAM_BLOCK (16u * 1024u)
#define HEAD_NS (10 * NSEC_PER_SEC)
#define BODY_NS (20 * NSEC_PER_SEC)
#define IDLE_NS (30 * NSEC_PER_SEC)
#define BUSY_NS (30 * NSEC_PER_SEC)
#define INACTIVE_SECONDS 60u /* libmicrohttpd's own timeout, above those of connections.c */
#define STALLED_SECONDS 10u  /* the same for a client that does not read its response */
/* The library closes a connection above its limit without a response, so the limit must never be reached. The library
 * still counts those that connections.c has ended until its thread closes them: at most as many as the relay can
 * replace meanwhile. */
#define LIBRARY_CONNECTIONS_MAX (2 * RELAY_CLIENTS_MAX)

struct http {
        struct http_handler handler;
        bool local;
        struct MHD_Daemon *daemon;
        struct relay *relay;
        int listen_fd;
        struct connections *connections;
        struct workers *workers, *exporters;
        struct peers *peers;
        struct budget *bodies;
        char *timeout_response, *full_responses[PEER_LEVELS];
        pthread_mutex_t lock;
        bool stopping, closing; /* written under the lock; no more requests, no more work */
        struct http_stream *streams;
};

enum step { STEP_HEAD, STEP_BODY, STEP_REFUSED, STEP_HANDED, STEP_ANSWERED };

/* One request and its response; the library's con_cls. */
struct exchange {
        struct job job;
        struct http *http;
        struct MHD_Connection *mhd;
        struct connection *connection;
        enum step step;
        struct request request;
        struct response response;
        char *target; /* as received, until the head is complete */
        size_t body_size;
};

/* The library carries an address with a connection; here it has what the relay knows of the client. */
struct client_address {
        struct sockaddr generic;
        uint64_t number;
        char user[PEER_NAME_MAX], host[PEER_NAME_MAX];
};

struct http_stream {
        struct job job;
        const struct http_stream_ops *ops;
        void *userdata;
        pthread_mutex_t lock;
        bool woken, suspended, working, gone;
        _Atomic uint64_t sent_at;
        struct http *http; /* NULL until it is being sent */
        struct MHD_Connection *mhd;
        struct connection *connection;
        struct http_stream *prev, *next; /* of http->streams, under its lock */
};

static const struct client_address *address_of(struct MHD_Connection *mhd) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        return info ? (const void *) info->client_addr : NULL;
}

/* ---- streams ---- */

int http_stream_new(struct http_stream **ret, const struct http_stream_ops *ops, void *userdata) {
        struct http_stream *s = calloc(1, sizeof(*s));
        if (!s) {
                ops->free(userdata);
                return -ENOMEM;
        }
        *s = (struct http_stream){.ops = ops, .userdata = userdata};
        pthread_mutex_init(&s->lock, NULL);
        *ret = s;
        return 0;
}

void http_stream_free(struct http_stream *s) {
        if (!s)
                return;
        if (s->http) {
                pthread_mutex_lock(&s->http->lock);
                if (s->prev)
                        s->prev->next = s->next;
                else
                        s->http->streams = s->next;
                if (s->next)
                        s->next->prev = s->prev;
                pthread_mutex_unlock(&s->http->lock);
        }
        s->ops->free(s->userdata); /* no wake comes after this */
        pthread_mutex_destroy(&s->lock);
        free(s);
}

/* Locked. */
static void stream_resume(struct http_stream *s) {
        if (s->suspended && !s->working) {
                s->suspended = false;
                MHD_resume_connection(s->mhd);
        }
}

void http_stream_wake(struct http_stream *s) {
        pthread_mutex_lock(&s->lock);
        s->woken = true;
        stream_resume(s);
        pthread_mutex_unlock(&s->lock);
}

/* While the connection is suspended. */
static bool client_has_gone(struct http *h, struct MHD_Connection *mhd, struct connection *connection) {
        const struct client_address *address = address_of(mhd);
        return !connection_enter(h->connections, connection, CONNECTION_BUSY) ||
               (address && relay_has_gone(h->relay, address->number));
}

/* The server's lock keeps the stream alive, which may be freed as soon as it is resumed. */
static void run_work(struct job *job) {
        struct http_stream *s = (struct http_stream *) job; /* its first member */
        struct http *h = s->http;
        bool gone = !s->ops->waits && client_has_gone(h, s->mhd, s->connection);
        bool ready = gone || s->ops->work(s->userdata);
        pthread_mutex_lock(&h->lock);
        pthread_mutex_lock(&s->lock);
        s->working = false;
        s->gone |= gone;
        if (ready || s->woken)
                stream_resume(s);
        pthread_mutex_unlock(&s->lock);
        pthread_mutex_unlock(&h->lock);
}

/* False: the server ends. */
static bool stream_suspend(struct http_stream *s) {
        struct http *h = s->http;
        pthread_mutex_lock(&h->lock);
        bool ends = h->closing || (h->stopping && s->ops->waits);
        if (!ends) {
                pthread_mutex_lock(&s->lock);
                s->suspended = s->working = true;
                MHD_suspend_connection(s->mhd);
                pthread_mutex_unlock(&s->lock);
                s->job = (struct job){
                        .run = run_work, .client = peer_owner(connection_peer(s->connection)), .slow = !s->ops->waits};
                workers_push(h->exporters, &s->job);
        }
        pthread_mutex_unlock(&h->lock);
        return !ends;
}

/* If it returned 0 without suspending, the library would call it in a busy loop. */
static ssize_t stream_read(void *userdata, uint64_t position, char *buffer, size_t size) {
        struct http_stream *s = userdata;
        (void) position;
        pthread_mutex_lock(&s->lock);
        s->woken = false;
        bool gone = s->gone;
        pthread_mutex_unlock(&s->lock);
        ssize_t n = !gone           ? s->ops->read(s->userdata, buffer, size)
                    : s->ops->waits ? HTTP_STREAM_END
                                    : HTTP_STREAM_BROKEN;
        if (n > 0) {
                atomic_store(&s->sent_at, util_now_ns());
                return n;
        }
        if (n == HTTP_STREAM_WAIT && stream_suspend(s))
                return 0;
        return n == HTTP_STREAM_END || (n == HTTP_STREAM_WAIT && s->ops->waits) ? MHD_CONTENT_READER_END_OF_STREAM
                                                                                : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void stream_free(void *userdata) {
        http_stream_free(userdata);
}

static void stream_enter(struct http *h, struct exchange *x, struct http_stream *s) {
        s->http = h;
        s->mhd = x->mhd;
        s->connection = x->connection;
        atomic_store(&s->sent_at, util_now_ns());
        pthread_mutex_lock(&h->lock);
        s->next = h->streams;
        if (s->next)
                s->next->prev = s;
        h->streams = s;
        pthread_mutex_unlock(&h->lock);
}

/* Called once a second for heartbeats, and for clients that have disconnected. The library does neither while a
 * connection is suspended. */
static void tick(void *userdata) {
        struct http *h = userdata;
        uint64_t now = util_now_ns();
        pthread_mutex_lock(&h->lock);
        for (struct http_stream *s = h->streams; s; s = s->next) {
                bool gone = s->ops->waits && connection_hung_up(s->connection);
                if (gone) {
                        pthread_mutex_lock(&s->lock);
                        s->gone = true;
                        pthread_mutex_unlock(&s->lock);
                }
                if (!s->ops->waits || gone || h->stopping || atomic_load(&s->sent_at) + HTTP_STREAM_QUIET_NS <= now)
                        http_stream_wake(s);
        }
        pthread_mutex_unlock(&h->lock);
}

static void on_answered(void *userdata, unsigned status) {
        struct http *h = userdata;
        h->handler.count(h->handler.userdata, status);
}

static bool stands_still(void *userdata, uint64_t number) {
        struct http *h = userdata;
        return relay_stands_still(h->relay, number);
}

/* ---- responses ---- */

static ssize_t nothing_read(void *userdata, uint64_t position, char *buffer, size_t size) {
        (void) userdata, (void) position, (void) buffer, (void) size;
        return MHD_CONTENT_READER_END_OF_STREAM;
}

static struct MHD_Response *make_response(struct http *h, struct exchange *x) {
        struct response *p = &x->response;
        struct MHD_Response *m;
        if (p->stream && x->request.method == METHOD_HEAD) {
                /* A length is not known. In HTTP/1.1 the library would end a body that it does not send, with bytes
                 * that the client takes for the beginning of the next response. */
                m = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, nothing_read, NULL, NULL);
                if (m && MHD_set_response_options(m, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END) != MHD_YES) {
                        MHD_destroy_response(m);
                        return NULL;
                }
        } else if (p->stream) {
                stream_enter(h, x, p->stream);
                m = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read, p->stream,
                                                      stream_free);
                if (m)
                        p->stream = NULL; /* the library frees it */
        } else {
                m = MHD_create_response_from_buffer(p->length, p->body,
                                                    p->borrowed ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
                if (m)
                        p->body = NULL;
        }
        if (!m)
                return NULL;
        for (size_t i = 0; i < p->headers.n; i++)
                if (MHD_add_response_header(m, p->headers.items[i].name, p->headers.items[i].value) != MHD_YES) {
                        MHD_destroy_response(m);
                        return NULL;
                }
        return m;
}

/* The handler is through with it: others may have its memory, also while the answer is sent. What is counted is given
 * back when it has been freed. */
static void give_body(struct http *h, struct request *q) {
        free(q->body);
        q->body = NULL;
        q->body_length = 0;
        peer_give(q->peer, PEER_SENT_BYTES, q->body_cost);
        budget_give(h->bodies, q->body_cost);
        q->body_cost = 0;
}

static enum MHD_Result queue(struct http *h, struct exchange *x) {
        struct response *p = &x->response;
        give_body(h, &x->request);
        if (p->error < 0) {
                struct refusal r;
                refuse(&r, 500, "internal-error", "", "The answer could not be made: %s.", strerrordesc_np(-p->error));
                h->handler.refuse(h->handler.userdata, &x->request, &r, p);
        }
        if (!connection_enter(h->connections, x->connection,
                              p->stream && p->stream->ops->waits ? CONNECTION_STREAM : CONNECTION_BUSY))
                return MHD_NO;
        unsigned status = (unsigned) p->status;
        struct MHD_Response *m = make_response(h, x);
        if (!m)
                return MHD_NO;
        enum MHD_Result k = MHD_queue_response(x->mhd, status, m);
        MHD_destroy_response(m);
        if (k != MHD_YES)
                return k;
        const struct client_address *address = address_of(x->mhd);
        if (address)
                relay_responded(h->relay, address->number);
        return MHD_set_connection_option(x->mhd, MHD_CONNECTION_OPTION_TIMEOUT, STALLED_SECONDS);
}

static void refuse_exchange(struct http *h, struct exchange *x, const struct refusal *r) {
        h->handler.refuse(h->handler.userdata, &x->request, r, &x->response);
}

/* ---- requests ---- */

static bool announces_body(const struct request *q) {
        const char *length = request_header(q, "Content-Length");
        return request_header(q, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

struct header_copy {
        struct pairs *headers;
        int error;
};

/* White space behind a value is no part of it (RFC 9112, 5); the library leaves it there. */
static size_t trimmed(const char *value, size_t length) {
        while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
                length--;
        return length;
}

static enum MHD_Result copy_header(void *userdata, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                   const char *value, size_t value_length) {
        struct header_copy *copy = userdata;
        (void) kind;
        copy->error = pairs_add(copy->headers, name, name_length, value ? value : "",
                                value ? trimmed(value, value_length) : 0);
        return copy->error < 0 ? MHD_NO : MHD_YES;
}

/* For a handler's thread. */
static bool has_gone(void *userdata) {
        struct exchange *x = userdata;
        return client_has_gone(x->http, x->mhd, x->connection);
}

static int read_head(struct exchange *x, const char *method, const char *version, struct refusal *r) {
        struct request *q = &x->request;
        q->gone = has_gone;
        q->gone_userdata = x;
        q->method = method_from_name(method);
        q->local = x->http->local;
        q->http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
        int k = request_parse_target(q, x->target, r);
        if (k < 0)
                return k;
        struct header_copy copy = {.headers = &q->headers};
        MHD_get_connection_values_n(x->mhd, MHD_HEADER_KIND, copy_header, &copy);
        return copy.error;
}

/* Called with the complete head. A refusal is sent at once when a body follows, which is dropped; without a body it
 * waits for the final call, as the library closes a connection whose response is early. */
static enum MHD_Result on_head(struct http *h, struct exchange *x, const char *method, const char *version) {
        struct refusal r = {0};
        int k = read_head(x, method, version, &r);
        if (k == -EINVAL)
                refuse_exchange(h, x, &r);
        else if (k < 0)
                return MHD_NO;
        bool admitted = k >= 0 && h->handler.admit(h->handler.userdata, &x->request, &x->response);
        x->step = admitted ? STEP_BODY : STEP_REFUSED;
        if (!connection_enter(h->connections, x->connection, CONNECTION_BODY))
                return MHD_NO;
        if (admitted || (k >= 0 && !announces_body(&x->request)))
                return MHD_YES;
        return queue(h, x);
}

static size_t body_max(const struct request *q) {
        return q->body_max ? q->body_max : HTTP_BODY_MAX;
}

/* The library has no moment for an answer in the middle of a body, so this one goes past it. */
static enum MHD_Result refuse_body(struct http *h, struct exchange *x) {
        struct refusal r;
        char most[24];
        (void) snprintf(most, sizeof(most), "%zu", body_max(&x->request));
        refuse_limit(&r, "", "body bytes", most, "", "The body is larger than %s bytes.", most);
        r.status = 413;
        snprintf(r.code, sizeof(r.code), "body-too-large");
        refuse_exchange(h, x, &r);
        size_t length;
        _cleanup_free_ char *text = response_print(&x->response, &length);
        if (text)
                connection_refuse(h->connections, x->connection, text, length);
        return MHD_NO;
}

static enum MHD_Result on_body(struct http *h, struct exchange *x, const char *data, size_t length) {
        struct request *q = &x->request;
        if (x->step == STEP_REFUSED)
                return MHD_YES;
        if (length > body_max(q) - q->body_length)
                return refuse_body(h, x);
        if (q->body_length + length + 1 > x->body_size) {
                size_t size = x->body_size ? x->body_size * 2 : 4096;
                while (size < q->body_length + length + 1)
                        size *= 2;
                if (size > body_max(q) + 1)
                        size = body_max(q) + 1;
                char *body = realloc(q->body, size);
                if (!body)
                        return MHD_NO;
                q->body = body;
                x->body_size = size;
        }
        memcpy(q->body + q->body_length, data, length);
        q->body_length += length;
        q->body[q->body_length] = '\0';
        return MHD_YES;
}

static void run_handler(struct job *job) {
        struct exchange *x = (struct exchange *) job; /* its first member */
        struct http *h = x->http;
        h->handler.handle(h->handler.userdata, &x->request, &x->response);
        x->step = STEP_ANSWERED;
        MHD_resume_connection(x->mhd); /* x may be gone after this */
}

static enum MHD_Result on_whole(struct http *h, struct exchange *x) {
        if (!connection_enter(h->connections, x->connection, CONNECTION_BUSY))
                return MHD_NO;
        pthread_mutex_lock(&h->lock);
        bool stopping = h->stopping;
        if (!stopping) {
                x->step = STEP_HANDED;
                x->job = (struct job){
                        .run = run_handler, .client = peer_owner(x->request.peer), .slow = x->request.slow};
                MHD_suspend_connection(x->mhd);
                workers_push(h->workers, &x->job);
        }
        pthread_mutex_unlock(&h->lock);
        if (!stopping)
                return MHD_YES;
        struct refusal r;
        refuse(&r, 503, "unavailable", "", "The daemon is stopping.");
        refuse_exchange(h, x, &r);
        return queue(h, x);
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *mhd, const char *url, const char *method,
                                  const char *version, const char *data, size_t *length, void **con_cls) {
        struct http *h = userdata;
        struct exchange *x = *con_cls;
        (void) mhd;
        (void) url;
        if (!x || !x->connection || !x->target)
                return MHD_NO;
        if (x->step == STEP_HEAD)
                return on_head(h, x, method, version);
        if (*length > 0) {
                size_t n = *length;
                *length = 0;
                return on_body(h, x, data, n);
        }
        if (x->step == STEP_BODY)
                return on_whole(h, x);
        return x->step == STEP_HANDED ? MHD_YES : queue(h, x);
}

static struct connection *connection_of(struct MHD_Connection *mhd) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        return info ? info->socket_context : NULL;
}

/* The request line is there; its result becomes con_cls. */
static void *on_request_line(void *userdata, const char *target, struct MHD_Connection *mhd) {
        struct http *h = userdata;
        struct exchange *x = calloc(1, sizeof(*x));
        if (!x)
                return NULL;
        *x = (struct exchange){
                .http = h, .mhd = mhd, .connection = connection_of(mhd), .target = strdup(target ? target : "")};
        if (x->connection) {
                x->request.peer = connection_peer(x->connection);
                connection_enter(h->connections, x->connection, CONNECTION_HEAD);
        }
        return x;
}

static void on_completed(void *userdata, struct MHD_Connection *mhd, void **con_cls,
                         enum MHD_RequestTerminationCode code) {
        struct http *h = userdata;
        struct exchange *x = *con_cls;
        (void) code;
        if (!x)
                return;
        if (x->connection)
                connection_enter(h->connections, x->connection, CONNECTION_IDLE);
        (void) MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT, INACTIVE_SECONDS);
        if (x->request.dear)
                peer_give(x->request.peer, PEER_DEAR, 1);
        give_body(h, &x->request);
        request_deinit(&x->request);
        response_deinit(&x->response);
        free(x->target);
        free(x);
        *con_cls = NULL;
}

static struct connection *add_connection(struct http *h, int fd, const struct client_address *address) {
        struct peer *peer = peers_get(h->peers, address->user, address->host);
        if (!peer)
                return NULL;
        struct connection *connection = connections_add(h->connections, fd, peer, address->number);
        peer_unref(peer);
        return connection;
}

static void on_connection(void *userdata, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code) {
        static _Thread_local bool lowered; /* the library makes its thread itself */
        struct http *h = userdata;
        if (!lowered)
                workers_lower_priority();
        lowered = true;
        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
                const struct client_address *address = address_of(mhd);
                *context = info && address ? add_connection(h, info->connect_fd, address) : NULL;
        } else if (*context) {
                connections_remove(h->connections, *context);
                *context = NULL;
        }
}

/* Paths are decoded by request.c, segment by segment. */
static size_t keep_escaped(void *userdata, struct MHD_Connection *mhd, char *text) {
        (void) userdata;
        (void) mhd;
        return strlen(text);
}

/* ---- start and stop ---- */

/* A whole refusal, for where the library has no moment for one; NULL: no memory. */
static char *print_refusal(struct http *h, const struct refusal *r, size_t *ret_length) {
        struct response p = {0};
        h->handler.refuse(h->handler.userdata, NULL, r, &p);
        char *text = response_print(&p, ret_length);
        response_deinit(&p);
        return text;
}

static int start_daemon(struct http *h) {
        errno = 0;
        h->daemon = MHD_start_daemon(
                MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
                NULL, NULL, on_request, h, MHD_OPTION_CONNECTION_LIMIT, LIBRARY_CONNECTIONS_MAX,
                MHD_OPTION_CONNECTION_TIMEOUT, INACTIVE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                (size_t) CONNECTION_MEMORY, MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped, NULL,
                MHD_OPTION_URI_LOG_CALLBACK, on_request_line, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
                MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
                /* -1: a space before a header's colon is an error, and a missing Host is ours to refuse */
                MHD_OPTION_STRICT_FOR_CLIENT, -1, MHD_OPTION_END);
        return h->daemon ? 0 : errno > 0 ? -errno : -EIO;
}

static int on_accepted(void *userdata, int fd, const char *user, const char *host, uint64_t number) {
        struct http *h = userdata;
        struct client_address address = {.generic.sa_family = AF_UNIX, .number = number};
        (void) snprintf(address.user, sizeof(address.user), "%s", user);
        (void) snprintf(address.host, sizeof(address.host), "%s", host);
        errno = 0;
        if (MHD_add_connection(h->daemon, fd, &address.generic, sizeof(address)) == MHD_YES)
                return 0;
        return errno > 0 ? -errno : -EIO; /* it closed the socket */
}

static char *on_refused(void *userdata, const struct refusal *r, size_t *ret_length) {
        struct http *h = userdata;
        on_answered(h, (unsigned) r->status);
        return print_refusal(h, r, ret_length);
}

/* The last step of a start: the listening socket is ours if it succeeds. */
static int start_relay(struct http *h, const struct http_options *o) {
        int flags = fcntl(o->fd, F_GETFL);
        if (flags < 0 || fcntl(o->fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return -errno;
        struct relay_options options = {
                .fd = o->fd, .clients = o->clients, .accepted = on_accepted, .refused = on_refused, .userdata = h};
        int k = relay_new(&h->relay, &options);
        if (k >= 0)
                h->listen_fd = o->fd;
        return k;
}

static int start_connections(struct http *h, const struct http_options *o) {
        struct connection_limits limits = {.head_ns = HEAD_NS,
                                           .body_ns = BODY_NS,
                                           .idle_ns = IDLE_NS,
                                           .busy_ns = BUSY_NS,
                                           .tick = tick,
                                           .answered = on_answered,
                                           .stands_still = stands_still,
                                           .userdata = h};
        struct refusal r;
        refuse(&r, 408, "request-timeout", "",
               "The request did not arrive within %u seconds for its head and %u for its body.",
               (unsigned) (HEAD_NS / NSEC_PER_SEC), (unsigned) (BODY_NS / NSEC_PER_SEC));
        limits.timeout_response = h->timeout_response = print_refusal(h, &r, &limits.timeout_length);
        if (!h->timeout_response)
                return -ENOMEM;
        for (enum peer_level i = 0; i < PEER_LEVELS; i++) {
                (void) peer_refuse(o->limits, i, PEER_CONNECTIONS, &r);
                limits.full_response[i] = h->full_responses[i] = print_refusal(h, &r, &limits.full_length[i]);
                if (!h->full_responses[i])
                        return -ENOMEM;
        }
        return connections_new(&h->connections, &limits);
}

/* The library must find nothing suspended: what is worked for is waited for, what sleeps is woken, and ends. */
static void http_free(struct http *h, uint64_t deadline_ns) {
        workers_free(h->workers);
        pthread_mutex_lock(&h->lock);
        h->closing = true;
        pthread_mutex_unlock(&h->lock);
        workers_free(h->exporters);
        pthread_mutex_lock(&h->lock);
        for (struct http_stream *s = h->streams; s; s = s->next)
                http_stream_wake(s);
        pthread_mutex_unlock(&h->lock);
        if (h->daemon)
                MHD_stop_daemon(h->daemon);
        relay_free(h->relay, deadline_ns);
        connections_free(h->connections);
        peers_free(h->peers);
        util_close(h->listen_fd);
        free(h->timeout_response);
        for (size_t i = 0; i < PEER_LEVELS; i++)
                free(h->full_responses[i]);
        pthread_mutex_destroy(&h->lock);
        free(h);
}

int http_start(struct http **ret, const struct http_options *o) {
        struct http *h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        *h = (struct http){.handler = o->handler, .local = o->local, .bodies = o->bodies, .listen_fd = -1};
        pthread_mutex_init(&h->lock, NULL);
        int k = peers_new(&h->peers, o->limits);
        if (k >= 0)
                k = start_connections(h, o);
        if (k >= 0)
                k = workers_new(&h->workers, o->workers);
        if (k >= 0)
                k = workers_new(&h->exporters, o->exporters);
        if (k >= 0)
                k = start_daemon(h);
        if (k >= 0)
                k = start_relay(h, o);
        if (k < 0) {
                http_free(h, 0);
                return k;
        }
        *ret = h;
        return 0;
}

void http_quiesce(struct http *h) {
        if (!h)
                return;
        relay_quiesce(h->relay);
        pthread_mutex_lock(&h->lock);
        h->stopping = true;
        for (struct http_stream *s = h->streams; s; s = s->next)
                http_stream_wake(s);
        pthread_mutex_unlock(&h->lock);
        connections_shutdown(h->connections, false);
}

unsigned http_stop(struct http *h, uint64_t deadline_ns) {
        if (!h)
                return 0;
        http_quiesce(h);
        while (connections_count(h->connections) > 0 && util_now_ns() < deadline_ns) {
                connections_shutdown(h->connections, false); /* those that have just been answered */
                nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
        }
        unsigned cut_off = connections_count(h->connections);
        connections_shutdown(h->connections, true);
        http_free(h, deadline_ns);
        return cut_off;
}

size_t http_used(struct http *h, enum peer_share share) {
        return h ? peers_used(h->peers, share) : 0;
}
