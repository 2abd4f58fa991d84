/* SPDX-License-Identifier: MIT */

/* Starts and stops the HTTP interface: what it serves from, and a server on each of the two sockets. */

#include "api/api.h"

#include "api/handle/assets.h"
#include "api/handle/route/dispatch.h"
#include "api/http/connection/relay.h"
#include "api/openapi/openapi.h"
#include "api/state.h"
#include "schema/limits.h"
#include "schema/signals.h"
#include "schema/util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* How much each listener takes. They share nothing but the memory for bodies, of which each leaves some to the other: a
 * flood on TCP leaves the unix socket as it is. */
#define WORKERS 4u
#define EXPORTERS 3u
#define MIB ((size_t) 1 << 20)
#define MEMORY_PER_BODY 4u
#define BODY_PER_REST 4u

static const struct peer_limits limits[LISTENER_COUNT] = {
        [LISTENER_TCP].most =
                {
                        /*                  PEER_ALL, PEER_USER, PEER_ADDRESS */
                        [PEER_CONNECTIONS] = {192, 160, 128},
                        [PEER_DEAR] = {48, 32, 16},
                        [PEER_STREAMS] = {64, 48, 32},
                        [PEER_BODY_BYTES] = {8 * MIB, 6 * MIB, 4 * MIB},
                        [PEER_HELD_BYTES] = {8 * MIB, 6 * MIB, 4 * MIB},
                        [PEER_SENT_BYTES] = {8 * MIB, 6 * MIB, 4 * MIB},
                },
        [LISTENER_LOCAL].most =
                {
                        [PEER_CONNECTIONS] = {128, 96},
                        [PEER_DEAR] = {32, 16},
                        [PEER_STREAMS] = {48, 32},
                        [PEER_BODY_BYTES] = {8 * MIB, 4 * MIB},
                        [PEER_HELD_BYTES] = {8 * MIB, 4 * MIB},
                        [PEER_SENT_BYTES] = {8 * MIB, 4 * MIB},
                },
};

/* Descriptors that clients take are not there for the next run: where there are few, so are clients. */
static int fit_clients(struct api *a) {
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        uint64_t most = descriptors_clients_most(limit.rlim_cur);
        a->clients = most < RELAY_CLIENTS_MAX ? (unsigned) most : RELAY_CLIENTS_MAX;
        for (size_t i = 0; i < LISTENER_COUNT; i++) {
                a->limits[i] = limits[i];
                for (size_t level = 0; level < PEER_LEVELS; level++) {
                        size_t *n = &a->limits[i].most[PEER_CONNECTIONS][level];
                        *n = (*n * a->clients + RELAY_CLIENTS_MAX - 1) / RELAY_CLIENTS_MAX;
                }
        }
        return 0;
}

/* A body is held whole, and the kernel kills a process that exceeds its limit of memory. Beside the largest body there
 * is room for those of the other listener: a listener's share is exceeded by one body, and scaled as the largest is. */
static void fit_bodies(struct api *a, uint64_t memory_bytes) {
        a->body_max = REQUEST_FILE_MAX;
        if (memory_bytes > 0 && memory_bytes / MEMORY_PER_BODY < REQUEST_FILE_MAX)
                a->body_max = (size_t) (memory_bytes / MEMORY_PER_BODY);
        a->bodies.most = a->body_max + a->body_max / BODY_PER_REST;
        for (size_t i = 0; i < LISTENER_COUNT; i++)
                for (size_t level = 0; level < PEER_LEVELS; level++) {
                        size_t *n = &a->limits[i].most[PEER_SENT_BYTES][level];
                        *n = (size_t) ((uint64_t) *n * a->body_max / REQUEST_FILE_MAX);
                }
}

static int add_host(struct api *a, const char *host, size_t length) {
        if (a->n_hosts == API_HOSTS_MAX)
                return -E2BIG;
        a->hosts[a->n_hosts] = strndup(host, length);
        return a->hosts[a->n_hosts] ? (a->n_hosts++, 0) : -ENOMEM;
}

static int add_host_port(struct api *a, const char *host, unsigned port) {
        char text[128];
        int n = snprintf(text, sizeof(text), "%s:%u", host, port);
        int k = add_host(a, text, (size_t) n);
        /* a client leaves http's own port out */
        return k >= 0 && port == 80 ? add_host(a, host, strlen(host)) : k;
}

/* Adds the address that the socket is bound to, unless that is the wildcard address. */
static int add_bound_host(struct api *a, const struct sockaddr_storage *address, unsigned port) {
        char text[INET6_ADDRSTRLEN], host[INET6_ADDRSTRLEN + 2];
        if (address->ss_family == AF_INET) {
                const struct in_addr *in = &((const struct sockaddr_in *) address)->sin_addr;
                if (in->s_addr == htonl(INADDR_ANY) || !inet_ntop(AF_INET, in, host, sizeof(host)))
                        return 0;
        } else {
                const struct in6_addr *in = &((const struct sockaddr_in6 *) address)->sin6_addr;
                if (IN6_IS_ADDR_UNSPECIFIED(in) || !inet_ntop(AF_INET6, in, text, sizeof(text)))
                        return 0;
                snprintf(host, sizeof(host), "[%s]", text);
        }
        return add_host_port(a, host, port);
}

static int add_hosts(struct api *a, int tcp_fd, const char *extra) {
        static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof(address);
        if (getsockname(tcp_fd, (struct sockaddr *) &address, &length) < 0)
                return -errno;
        if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
                return -EAFNOSUPPORT;
        unsigned port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *) &address)->sin_port
                                                           : ((struct sockaddr_in6 *) &address)->sin6_port);
        int k = 0;
        for (size_t i = 0; i < ELEMENTS(names) && k >= 0; i++)
                k = add_host_port(a, names[i], port);
        if (k >= 0)
                k = add_bound_host(a, &address, port);
        while (k >= 0 && extra && *extra) {
                extra += strspn(extra, ", ");
                size_t n = strcspn(extra, ", ");
                if (n > 0)
                        k = add_host(a, extra, n);
                extra += n;
        }
        return k;
}

static int start_listener(struct api *a, unsigned listener) {
        if (a->fds[listener] < 0)
                return 0;
        struct http *http = NULL;
        int k = http_start(&http, &(struct http_options){
                                          .fd = a->fds[listener],
                                          .local = listener == LISTENER_LOCAL,
                                          .clients = a->clients,
                                          .limits = &a->limits[listener],
                                          .bodies = &a->bodies,
                                          .workers = WORKERS,
                                          .exporters = EXPORTERS,
                                          .handler = {.admit = dispatch_admit,
                                                      .handle = dispatch_handle,
                                                      .refuse = dispatch_refuse,
                                                      .count = dispatch_count,
                                                      .userdata = a},
                                  });
        if (k < 0)
                return k;
        a->fds[listener] = -1;
        atomic_store(&a->listeners[listener], http);
        return 0;
}

/* The threads that the servers start inherit the mask. */
static int start_listeners(struct api *a) {
        sigset_t before;
        int k = signals_block(SIGBUS, &before);
        if (k < 0)
                return k;
        for (unsigned i = 0; i < LISTENER_COUNT && k >= 0; i++)
                k = start_listener(a, i);
        signals_restore(&before);
        return k;
}

/* problem NULL: there is none. */
static void replace_tcp_problem(struct api *a, char *problem) {
        pthread_mutex_lock(&a->tcp_problem_lock);
        free(a->tcp_problem);
        a->tcp_problem = problem;
        pthread_mutex_unlock(&a->tcp_problem_lock);
}

int api_set_tcp_problem(struct api *a, const char *problem) {
        char *copy = strdup(problem);
        if (!copy)
                return -ENOMEM;
        replace_tcp_problem(a, copy);
        return 0;
}

static void free_hosts(struct api *a) {
        while (a->n_hosts > 0)
                free(a->hosts[--a->n_hosts]);
}

int api_serve_tcp(struct api *a, int tcp_fd, const char *extra_hosts) {
        a->fds[LISTENER_TCP] = tcp_fd;
        int k = add_hosts(a, tcp_fd, extra_hosts); /* which the requests over TCP alone are held against */
        if (k >= 0)
                k = start_listeners(a);
        if (k >= 0) {
                replace_tcp_problem(a, NULL);
        } else {
                a->fds[LISTENER_TCP] = util_close(a->fds[LISTENER_TCP]); /* clients are refused, and do not wait */
                free_hosts(a);
        }
        return k;
}

unsigned api_stop(struct api *a, uint64_t deadline_ns) {
        unsigned cut_off = 0;
        if (!a)
                return 0;
        for (size_t i = 0; i < LISTENER_COUNT; i++)
                http_quiesce(a->listeners[i]);
        for (size_t i = 0; i < LISTENER_COUNT; i++) {
                cut_off += http_stop(a->listeners[i], deadline_ns);
                util_close(a->fds[i]);
        }
        free_hosts(a);
        assets_free(a->assets);
        free(a->openapi);
        free(a->token);
        free(a->tcp_problem);
        pthread_mutex_destroy(&a->tcp_problem_lock);
        free(a);
        return cut_off;
}

int api_start(const struct api_options *o, struct api **ret) {
        struct api *a = calloc(1, sizeof(*a));
        if (!a) {
                util_close(o->unix_fd);
                util_close(o->tcp_fd);
                return -ENOMEM;
        }
        a->fds[LISTENER_TCP] = o->tcp_fd;
        a->fds[LISTENER_LOCAL] = o->unix_fd;
        a->service = o->service;
        a->started_ns = util_now_ns();
        a->token = strdup(o->token ? o->token : "");
        pthread_mutex_init(&a->tcp_problem_lock, NULL);
        int k = a->token ? 0 : -ENOMEM;
        if (k >= 0 && o->tcp_problem)
                k = api_set_tcp_problem(a, o->tcp_problem);
        if (k >= 0)
                k = fit_clients(a);
        if (k >= 0)
                fit_bodies(a, o->memory_bytes);
        if (k >= 0 && o->tcp_fd >= 0)
                k = add_hosts(a, o->tcp_fd, o->extra_hosts);
        if (k >= 0)
                k = assets_load(&a->assets, o->web_dir);
        if (k >= 0)
                k = openapi_make(&a->openapi, &a->openapi_length);
        if (k >= 0)
                k = start_listeners(a);
        if (k < 0) {
                (void) api_stop(a, 0);
                return k;
        }
        *ret = a;
        return 0;
}
