/* SPDX-License-Identifier: MIT */

/*
 * Listening sockets. Owns the unix socket's file: its mode and group are the daemon's access control. A socket file
 * that refuses connections is a leftover of a killed daemon, and is replaced; one that accepts belongs to another
 * process. Called by main.
 */

#include "daemon/listen.h"

#include "daemon/log.h"
#include "schema/detail.h"
#include "schema/util.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#define BACKLOG 128

/* 0: a process listens on the address; -ECONNREFUSED: none does; other errno. */
static int probe(const struct sockaddr_un *address) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *) address, sizeof(*address)) == 0 || errno == EAGAIN)
                return 0; /* EAGAIN: its backlog is full */
        return -errno;
}

static int remove_stale(const struct sockaddr_un *address, char *detail) {
        struct stat st;
        const char *path = address->sun_path;
        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0 : detail_fail(detail, -errno, "%s: %s", path, strerrordesc_np(errno));
        if (!S_ISSOCK(st.st_mode))
                return detail_fail(detail, -EEXIST, "%s exists and is not a socket: it is not replaced", path);
        int r = probe(address);
        if (r == 0)
                return detail_fail(detail, -EADDRINUSE, "%s accepts connections: another ipclabd is running", path);
        if (r != -ECONNREFUSED)
                return detail_fail(detail, r, "it is unknown whether another process listens on %s: %s", path,
                                   strerrordesc_np(-r));
        if (unlink(path) < 0 && errno != ENOENT)
                return detail_fail(detail, -errno, "cannot remove the stale socket %s: %s", path,
                                   strerrordesc_np(errno));
        return 0;
}

static gid_t find_group(const char *name) {
        struct group *g = getgrnam(name); /* NOLINT(concurrency-mt-unsafe): main thread, before the others */
        if (g)
                return g->gr_gid;
        log_notice("group %s does not exist: the socket belongs to the daemon's own group", name);
        return (gid_t) -1;
}

static int make_parent(const char *path, char *detail) {
        char parent[sizeof(((struct sockaddr_un *) 0)->sun_path)];
        (void) snprintf(parent, sizeof(parent), "%s", path);
        char *slash = strrchr(parent, '/');
        if (!slash || slash == parent)
                return 0;
        *slash = 0;
        if (mkdir(parent, 0755) < 0 && errno != EEXIST)
                return detail_fail(detail, -errno, "cannot make %s: %s", parent, strerrordesc_np(errno));
        return 0;
}

static int open_unix(const struct config *c, int *ret, char *detail) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        if (strlen(c->socket_path) >= sizeof(address.sun_path))
                return detail_fail(detail, -ENAMETOOLONG, "socket path %.160s is longer than %zu bytes", c->socket_path,
                                   sizeof(address.sun_path) - 1);
        strcpy(address.sun_path, c->socket_path);
        int r = make_parent(c->socket_path, detail);
        if (r == 0)
                r = remove_stale(&address, detail);
        if (r < 0)
                return r;
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return detail_fail(detail, -errno, "cannot make a unix socket: %s", strerrordesc_np(errno));
        mode_t old = umask(0117); /* 0660 from the start, so that the mode need not be changed by path */
        r = bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ? -errno : 0;
        umask(old);
        if (r < 0)
                return detail_fail(detail, r, "cannot bind %s: %s", c->socket_path, strerrordesc_np(-r));
        gid_t group = find_group(c->socket_group);
        struct stat made;
        bool given =
                lstat(c->socket_path, &made) == 0 && made.st_gid == group; /* a service may be forbidden to chown() */
        if (group != (gid_t) -1 && !given && lchown(c->socket_path, (uid_t) -1, group) < 0)
                log_notice("cannot give %s to group %s: %s", c->socket_path, c->socket_group, strerrordesc_np(errno));
        if (listen(fd, BACKLOG) < 0) {
                r = -errno;
                (void) unlink(c->socket_path);
                return detail_fail(detail, r, "cannot open %s: %s", c->socket_path, strerrordesc_np(-r));
        }
        *ret = util_steal_fd(&fd);
        return 0;
}

union address {
        struct sockaddr sa;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
};

/* The address in `listen`. */
static int parse_address(const struct config *c, union address *ret, char *detail) {
        char host[64];
        uint16_t port;
        if (config_parse_listen(c->listen, host, &port) < 0)
                return detail_fail(detail, -EINVAL, "cannot listen on %s", c->listen);
        union address v4 = {.v4 = {.sin_family = AF_INET, .sin_port = htons(port)}};
        union address v6 = {.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};
        bool six = inet_pton(AF_INET, host, &v4.v4.sin_addr) != 1;
        if (six && inet_pton(AF_INET6, host, &v6.v6.sin6_addr) != 1)
                return detail_fail(detail, -EINVAL, "cannot listen on %s", c->listen);
        *ret = six ? v6 : v4;
        return 0;
}

static int open_tcp(const struct config *c, int *ret, char *detail) {
        union address a;
        int r = parse_address(c, &a, detail);
        if (r < 0)
                return r;
        socklen_t length = a.sa.sa_family == AF_INET6 ? sizeof(a.v6) : sizeof(a.v4);
        _cleanup_close_ int fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int one = 1;
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 || bind(fd, &a.sa, length) < 0 ||
            listen(fd, BACKLOG) < 0)
                return detail_fail(detail, -errno, "cannot listen on %s: %s", c->listen, strerrordesc_np(errno));
        *ret = util_steal_fd(&fd);
        return 0;
}

/* The address of a bound TCP socket; one that is not loopback is refused. */
static int describe_tcp(int fd, char **ret_url, char *detail) {
        union address a;
        socklen_t length = sizeof(a);
        char host[INET6_ADDRSTRLEN];
        if (getsockname(fd, &a.sa, &length) < 0)
                return detail_fail(detail, -errno, "the address of the TCP socket is unknown: %s",
                                   strerrordesc_np(errno));
        bool six = a.sa.sa_family == AF_INET6;
        bool loopback = six ? IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr)
                            : a.sa.sa_family == AF_INET && ntohl(a.v4.sin_addr.s_addr) >> 24 == 127;
        if (!loopback)
                return detail_fail(detail, -EADDRNOTAVAIL,
                                   "the TCP socket from systemd is not bound to a loopback address: "
                                   "ipclabd serves this machine only");
        (void) inet_ntop(a.sa.sa_family, six ? (void *) &a.v6.sin6_addr : (void *) &a.v4.sin_addr, host, sizeof(host));
        if (asprintf(ret_url, six ? "http://[%s]:%u/" : "http://%s:%u/", host,
                     ntohs(six ? a.v6.sin6_port : a.v4.sin_port)) < 0) {
                *ret_url = NULL;
                return detail_fail(detail, -ENOMEM, "out of memory");
        }
        return 0;
}

int listeners_open_tcp(const struct config *c, struct listeners *l, char *ret_detail) {
        int r = open_tcp(c, &l->tcp_fd, ret_detail);
        if (r < 0)
                return r;
        free(l->url); /* of a socket that could not be served */
        l->url = NULL;
        r = describe_tcp(l->tcp_fd, &l->url, ret_detail);
        if (r < 0)
                l->tcp_fd = util_close(l->tcp_fd);
        return r;
}

/* Sockets from systemd, distinguished by family. They override the settings, with a notice for each difference. Source:
 * sd_listen_fds(3). */
static int take_activated(struct listeners *l, char *detail) {
        int n = sd_listen_fds(1);
        if (n < 0)
                return detail_fail(detail, n, "cannot take the sockets from systemd: %s", strerrordesc_np(-n));
        for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + n; fd++) {
                int *slot = NULL;
                if (sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) > 0)
                        slot = &l->unix_fd;
                else if (sd_is_socket(fd, AF_INET, SOCK_STREAM, 1) > 0 ||
                         sd_is_socket(fd, AF_INET6, SOCK_STREAM, 1) > 0)
                        slot = &l->tcp_fd;
                if (!slot)
                        return detail_fail(detail, -EINVAL,
                                           "descriptor %d from systemd is not a listening stream socket", fd);
                if (*slot >= 0)
                        return detail_fail(
                                detail, -EINVAL,
                                "systemd passed two sockets of one kind; at most one unix and one TCP socket are "
                                "supported");
                if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                        return detail_fail(detail, -errno, "descriptor %d from systemd: %s", fd,
                                           strerrordesc_np(errno));
                *slot = fd;
        }
        return 0;
}

static bool same_address(const union address *wanted, const union address *bound) {
        if (wanted->sa.sa_family != bound->sa.sa_family)
                return false;
        if (wanted->sa.sa_family == AF_INET6)
                return memcmp(&wanted->v6.sin6_addr, &bound->v6.sin6_addr, sizeof(bound->v6.sin6_addr)) == 0 &&
                       (wanted->v6.sin6_port == 0 || wanted->v6.sin6_port == bound->v6.sin6_port);
        return wanted->v4.sin_addr.s_addr == bound->v4.sin_addr.s_addr &&
               (wanted->v4.sin_port == 0 || wanted->v4.sin_port == bound->v4.sin_port);
}

static int compare_tcp(const struct config *c, const struct listeners *l, char *detail) {
        union address wanted, bound;
        socklen_t length = sizeof(bound);
        int r = parse_address(c, &wanted, detail);
        if (r < 0)
                return r;
        if (getsockname(l->tcp_fd, &bound.sa, &length) < 0)
                return detail_fail(detail, -errno, "the address of the TCP socket is unknown: %s",
                                   strerrordesc_np(errno));
        if (!same_address(&wanted, &bound))
                log_notice("listen = %s is not followed: the TCP socket from systemd is bound to %s (ListenStream= of "
                           "the socket unit)",
                           c->listen, l->url);
        return 0;
}

static void compare_group(const struct config *c, const char *path) {
        struct stat st;
        if (stat(path, &st) < 0) {
                log_notice("socket_group = %s is not followed: the socket is systemd's, and the group of %s is "
                           "unknown: %s",
                           c->socket_group, path, strerrordesc_np(errno));
                return;
        }
        struct group *g = getgrnam(c->socket_group); /* NOLINT(concurrency-mt-unsafe): main thread, before the others */
        if (g && g->gr_gid == st.st_gid)
                return;
        g = getgrgid(st.st_gid); /* NOLINT(concurrency-mt-unsafe): likewise */
        log_notice("socket_group = %s is not followed: %s from systemd belongs to group %ju (%s; SocketGroup= of the "
                   "socket unit)",
                   c->socket_group, path, (uintmax_t) st.st_gid, g ? g->gr_name : "without a name");
}

/* The path to which systemd has bound it; NULL: a socket without a file. */
static const char *find_path(int fd, struct sockaddr_un *a) {
        socklen_t length = sizeof(*a);
        bool has = getsockname(fd, (struct sockaddr *) a, &length) == 0 &&
                   length > offsetof(struct sockaddr_un, sun_path) && a->sun_path[0] == '/';
        return has ? a->sun_path : NULL;
}

static void compare_unix(const struct config *c, const char *path) {
        if (!path) {
                log_notice("socket = %s and socket_group = %s are not followed: the socket from systemd has no file",
                           c->socket_path, c->socket_group);
                return;
        }
        if (strcmp(path, c->socket_path) != 0)
                log_notice("socket = %s is not followed: the socket from systemd is %s (ListenStream= of the socket "
                           "unit)",
                           c->socket_path, path);
        compare_group(c, path);
}

static int name_unix(const struct config *c, struct listeners *l, char *detail) {
        struct sockaddr_un a;
        struct stat st;
        const char *path = c->socket_path;
        bool has_file = true;
        if (!l->made_unix) {
                const char *bound = find_path(l->unix_fd, &a);
                compare_unix(c, bound);
                path = bound ? bound : path;
                has_file = bound != NULL;
        }
        if (has_file && stat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
                l->socket_device = st.st_dev;
                l->socket_inode = st.st_ino;
        }
        l->socket_path = strdup(path);
        return l->socket_path ? 0 : detail_fail(detail, -ENOMEM, "out of memory");
}

int listeners_open(const struct config *c, struct listeners *ret, char *ret_detail) {
        struct listeners l = {.unix_fd = -1, .tcp_fd = -1};
        int r = take_activated(&l, ret_detail);
        bool made_tcp = l.tcp_fd < 0;
        if (r == 0 && l.unix_fd < 0) {
                r = open_unix(c, &l.unix_fd, ret_detail);
                l.made_unix = r == 0;
        }
        if (r == 0)
                r = name_unix(c, &l, ret_detail);
        bool want_tcp = strcmp(c->listen, "none") != 0;
        if (r == 0 && l.tcp_fd >= 0 && !want_tcp) {
                log_notice("listen = none: the TCP socket from systemd is closed");
                l.tcp_fd = util_close(l.tcp_fd);
        }
        if (r == 0 && made_tcp && want_tcp) {
                r = listeners_open_tcp(c, &l, ret_detail);
                if (r == -EADDRINUSE)
                        r = (l.tcp_problem = strdup(ret_detail)) ? 0
                                                                 : detail_fail(ret_detail, -ENOMEM, "out of memory");
        } else if (r == 0 && l.tcp_fd >= 0) {
                r = describe_tcp(l.tcp_fd, &l.url, ret_detail);
                if (r == 0)
                        r = compare_tcp(c, &l, ret_detail);
        }
        if (r < 0) {
                listeners_close(&l);
                return r;
        }
        *ret = l;
        return 0;
}

const char *listeners_lost_socket(const struct listeners *l) {
        struct stat st;
        if (l->socket_inode == 0)
                return NULL;
        bool there = stat(l->socket_path, &st) == 0 && st.st_dev == l->socket_device && st.st_ino == l->socket_inode;
        return there ? NULL : l->socket_path;
}

void listeners_close(struct listeners *l) {
        if (l->made_unix && l->socket_path)
                (void) unlink(l->socket_path);
        free(l->socket_path);
        free(l->url);
        free(l->tcp_problem);
        util_close(l->unix_fd);
        util_close(l->tcp_fd);
        *l = (struct listeners){.unix_fd = -1, .tcp_fd = -1};
}
