/* SPDX-License-Identifier: MIT */

/* Listening sockets: modes, stale files, other people's files, port 0, and sockets from systemd. */

#include "daemon/listen.h"

#include "check.h"
#include "daemon/log.h"
#include "schema/detail.h"
#include "schema/util.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static char dir[] = "/tmp/ipclab-test-listen-XXXXXX";
static char path[100], detail[DETAIL_MAX];
static char none[] = "none", group[] = "no-such-group", any_port[] = "127.0.0.1:0", six[] = "[::1]:0";
static struct config config;

static int connect_to(const char *to) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        (void) snprintf(a.sun_path, sizeof(a.sun_path), "%s", to);
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        return connect(fd, (struct sockaddr *) &a, sizeof(a)) < 0 ? -errno : 0;
}

static void unix_socket_is_for_owner_and_group(void) {
        struct listeners l;
        struct stat st;
        CHECK_INT(listeners_open(&config, &l, detail), 0);
        CHECK_INT(stat(path, &st), 0);
        CHECK(S_ISSOCK(st.st_mode));
        CHECK_INT(st.st_mode & 07777, 0660);
        CHECK_INT(connect_to(path), 0);
        CHECK_INT(l.tcp_fd, -1);
        CHECK(l.url == NULL);
        CHECK_STRING(l.socket_path, path);
        listeners_close(&l);
        CHECK_INT(access(path, F_OK), -1);
}

static void a_socket_without_its_name_is_noticed(void) {
        struct listeners l;
        char other[120];
        (void) snprintf(other, sizeof(other), "%s-other", path);
        CHECK_INT(listeners_open(&config, &l, detail), 0);
        CHECK(listeners_lost_socket(&l) == NULL);
        CHECK_INT(chmod(path, 0600), 0);
        CHECK(listeners_lost_socket(&l) == NULL);
        CHECK_INT(rename(path, other), 0);
        CHECK_STRING(listeners_lost_socket(&l), path);
        CHECK_INT(mknod(path, S_IFSOCK | 0600, 0), 0);
        CHECK_STRING(listeners_lost_socket(&l), path);
        CHECK_INT(rename(other, path), 0);
        CHECK(listeners_lost_socket(&l) == NULL);
        CHECK_INT(unlink(path), 0);
        CHECK_STRING(listeners_lost_socket(&l), path);
        listeners_close(&l);
}

static void live_socket_stays_and_a_stale_one_is_replaced(void) {
        struct listeners l, second;
        CHECK_INT(listeners_open(&config, &l, detail), 0);
        CHECK_INT(listeners_open(&config, &second, detail), -EADDRINUSE);
        CHECK(strstr(detail, path) != NULL);
        CHECK_INT(connect_to(path), 0); /* the first still answers */
        l.made_unix = false;            /* as after SIGKILL: the file stays */
        listeners_close(&l);
        CHECK_INT(connect_to(path), -ECONNREFUSED);
        CHECK_INT(listeners_open(&config, &l, detail), 0);
        CHECK_INT(connect_to(path), 0);
        listeners_close(&l);
}

static void other_files_are_not_replaced(void) {
        struct listeners l;
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
        close(fd);
        CHECK_INT(listeners_open(&config, &l, detail), -EEXIST);
        CHECK_INT(access(path, F_OK), 0);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(symlink("/etc/passwd", path), 0);
        CHECK_INT(listeners_open(&config, &l, detail), -EEXIST);
        CHECK_INT(unlink(path), 0);

        char longer[200];
        struct config c = config;
        memset(longer, 'a', sizeof(longer));
        longer[0] = '/';
        longer[sizeof(longer) - 1] = 0;
        c.socket_path = longer;
        CHECK_INT(listeners_open(&c, &l, detail), -ENAMETOOLONG);
}

static void port_0_is_resolved(void) {
        struct listeners l;
        struct config c = config;
        c.listen = any_port;
        CHECK_INT(listeners_open(&c, &l, detail), 0);
        CHECK(strncmp(l.url, "http://127.0.0.1:", 17) == 0);
        unsigned long port = strtoul(l.url + 17, NULL, 10);
        CHECK(port > 0 && port <= UINT16_MAX);
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_INT(connect(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        close(fd);

        char taken[64], wrong[] = "nowhere";
        struct listeners second;
        char other[120];
        (void) snprintf(taken, sizeof(taken), "127.0.0.1:%lu", port);
        (void) snprintf(other, sizeof(other), "%s.other", path);
        c.listen = taken;
        c.socket_path = other;
        CHECK_INT(listeners_open(&c, &second, detail), 0);
        CHECK(second.unix_fd >= 0 && second.tcp_fd < 0 && !second.url);
        CHECK(second.tcp_problem && strstr(second.tcp_problem, taken));
        CHECK_INT(listeners_open_tcp(&c, &second, detail), -EADDRINUSE);
        listeners_close(&l);
        CHECK_INT(listeners_open_tcp(&c, &second, detail), 0);
        CHECK(second.tcp_fd >= 0 && strstr(second.url, taken));
        listeners_close(&second);

        c.listen = wrong;
        CHECK_INT(listeners_open(&c, &second, detail), -EINVAL);
        CHECK_INT(access(other, F_OK), -1); /* a start that failed leaves no socket */
}

static void ipv6_loopback_has_its_brackets(void) {
        struct listeners l;
        struct config c = config;
        c.listen = six;
        int r = listeners_open(&c, &l, detail);
        if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT)
                SKIP("no IPv6: %s", detail);
        CHECK_INT(r, 0);
        CHECK(strncmp(l.url, "http://[::1]:", 13) == 0);
        listeners_close(&l);
}

/* Two sockets on descriptors 3 and 4, as systemd passes them. */
static int pass_sockets(int tcp_address, const char *name) {
        char text[32];
        struct sockaddr_un u = {.sun_family = AF_UNIX};
        struct sockaddr_in a = {.sin_family = AF_INET};
        socklen_t length = name ? sizeof(u) : sizeof(sa_family_t); /* a name of the kernel's, without a file */
        a.sin_addr.s_addr = htonl((uint32_t) tcp_address);
        (void) snprintf(u.sun_path, sizeof(u.sun_path), "%s", name ? name : "");
        int tcp = socket(AF_INET, SOCK_STREAM, 0), un = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(tcp, (struct sockaddr *) &a, sizeof(a)) < 0 || listen(tcp, 5) < 0 ||
            bind(un, (struct sockaddr *) &u, length) < 0 || listen(un, 5) < 0)
                return -errno;
        tcp = fcntl(tcp, F_DUPFD, 20);
        un = fcntl(un, F_DUPFD, 20);
        if (dup2(tcp, 3) < 0 || dup2(un, 4) < 0)
                return -errno;
        (void) snprintf(text, sizeof(text), "%d", getpid());
        setenv("LISTEN_PID", text, 1);
        setenv("LISTEN_FDS", "2", 1);
        return 0;
}

/* A child that systemd would have started. Exit status 0: as expected. */
static int activated(int tcp_address, const char *listen_on, int want, bool want_tcp) {
        pid_t pid = fork();
        if (pid == 0) {
                struct listeners l;
                struct config c = config;
                if (pass_sockets(tcp_address, path) < 0)
                        _exit(10);
                c.listen = strdup(listen_on);
                int r = listeners_open(&c, &l, detail);
                if (r != want)
                        _exit(12);
                if (r == 0 && (l.unix_fd != 4 || l.tcp_fd != (want_tcp ? 3 : -1) || l.made_unix ||
                               strcmp(l.socket_path, path) != 0 || (l.url != NULL) != want_tcp || getenv("LISTEN_FDS")))
                        _exit(13);
                if (r == 0)
                        listeners_close(&l);
                _exit(access(path, F_OK) == 0 ? 0 : 14); /* systemd's socket stays */
        }
        int status = 0;
        (void) waitpid(pid, &status, 0);
        (void) unlink(path);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void sockets_from_systemd_are_distinguished(void) {
        CHECK_INT(activated(INADDR_LOOPBACK, "127.0.0.1:8620", 0, true), 0);
        CHECK_INT(activated(INADDR_LOOPBACK, "none", 0, false), 0);
        CHECK_INT(activated(INADDR_ANY, "127.0.0.1:8620", -EADDRNOTAVAIL, false), 0);
}

/* The log of a daemon with these settings that is passed a socket of this name and one on 127.0.0.1. */
static int read_notices(const struct config *c, const char *name, char *text, size_t size) {
        int out[2], status = 0;
        if (pipe(out) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0) {
                struct listeners l;
                unsetenv("JOURNAL_STREAM");
                if (dup2(out[1], STDERR_FILENO) < 0 || pass_sockets(INADDR_LOOPBACK, name) < 0)
                        _exit(10);
                log_open(LOG_NOTICE);
                _exit(listeners_open(c, &l, detail) == 0 ? 0 : 11);
        }
        close(out[1]);
        size_t length = 0;
        for (ssize_t n = 1; n > 0; length += n > 0 ? (size_t) n : 0)
                n = read(out[0], text + length, size - 1 - length);
        text[length] = '\0';
        close(out[0]);
        (void) waitpid(pid, &status, 0);
        if (name)
                (void) unlink(name);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void settings_that_sockets_from_systemd_do_not_follow_are_named(void) {
        char text[4096], other[120], own[64], loopback_6[] = "[::1]:8620", taken[] = "127.0.0.1:1";
        struct config c = config;
        struct group *g = getgrgid(getegid()); /* NOLINT(concurrency-mt-unsafe): one thread */
        (void) snprintf(other, sizeof(other), "%s.other", path);
        (void) snprintf(own, sizeof(own), "%s", g ? g->gr_name : "");

        c.listen = taken;
        CHECK_INT(read_notices(&c, other, text, sizeof(text)), 0);
        CHECK(strstr(text,
                     "listen = 127.0.0.1:1 is not followed: the TCP socket from systemd is bound to http://127."));
        CHECK(strstr(text, "socket_group = no-such-group is not followed"));
        char words[400];
        (void) snprintf(words, sizeof(words), "socket = %s is not followed: the socket from systemd is %s ", path,
                        other);
        CHECK(strstr(text, words));
        (void) snprintf(words, sizeof(words), "belongs to group %ju (%s;", (uintmax_t) getegid(),
                        g ? own : "without a name");
        CHECK(strstr(text, words));
        c.listen = loopback_6;
        CHECK_INT(read_notices(&c, NULL, text, sizeof(text)), 0);
        CHECK(strstr(text, "listen = [::1]:8620 is not followed"));
        CHECK(strstr(text, "socket_group = no-such-group are not followed: the socket from systemd has no file"));

        if (!g)
                SKIP("group %ju has no name", (uintmax_t) getegid());
        c.listen = any_port; /* any will do */
        c.socket_group = own;
        CHECK_INT(read_notices(&c, path, text, sizeof(text)), 0);
        CHECK_STRING(text, "");
}

/* The log is opened behind the sockets that are passed, as the daemon's is: it may have a descriptor of its own. */
int main(void) {
        if (!mkdtemp(dir))
                return 1;
        (void) snprintf(path, sizeof(path), "%s/x.sock", dir);
        config = (struct config){.socket_path = path, .socket_group = group, .listen = none};
        RUN(unix_socket_is_for_owner_and_group);
        RUN(a_socket_without_its_name_is_noticed);
        RUN(live_socket_stays_and_a_stale_one_is_replaced);
        RUN(other_files_are_not_replaced);
        RUN(port_0_is_resolved);
        RUN(ipv6_loopback_has_its_brackets);
        RUN(sockets_from_systemd_are_distinguished);
        RUN(settings_that_sockets_from_systemd_do_not_follow_are_named);
        return rmdir(dir) < 0 ? 1 : check_end();
}
