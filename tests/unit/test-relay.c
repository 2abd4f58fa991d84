/* SPDX-License-Identifier: MIT */

/* What the relay tells the HTTP library of its clients: their end. The library is this test.
 */

#include "api/http/connection/relay.h"

#include "check.h"
#include "schema/util.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define REFUSED "HTTP/1.1 400 Bad Request\r\n\r\n"

struct door {
        struct relay *relay;
        struct sockaddr_un address;
        socklen_t length;
        int fd;
        int given[2]; /* a pipe: the library's ends, as they come */
};

static int on_accepted(void *userdata, int fd, const char *user, const char *address, uint64_t number) {
        struct door *d = userdata;
        (void) user, (void) address, (void) number;
        return write(d->given[1], &fd, sizeof(fd)) == sizeof(fd) ? 0 : -EIO;
}

static char *on_refused(void *userdata, const struct refusal *r, size_t *ret_length) {
        (void) userdata, (void) r;
        *ret_length = strlen(REFUSED);
        return strdup(REFUSED);
}

static bool door_open(struct door *d) {
        *d = (struct door){.address.sun_family = AF_UNIX, .length = sizeof(sa_family_t)}; /* the kernel finds a name */
        d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (d->fd < 0 || bind(d->fd, (struct sockaddr *) &d->address, d->length) < 0 || listen(d->fd, 8) < 0)
                return false;
        d->length = sizeof(d->address);
        struct relay_options options = {
                .fd = d->fd, .clients = 8, .accepted = on_accepted, .refused = on_refused, .userdata = d};
        return getsockname(d->fd, (struct sockaddr *) &d->address, &d->length) == 0 &&
               pipe2(d->given, O_CLOEXEC) == 0 && relay_new(&d->relay, &options) == 0;
}

static void door_close(struct door *d) {
        relay_free(d->relay, util_now_ns());
        close(d->fd);
        close(d->given[0]);
        close(d->given[1]);
}

/* A client, and the library's end of its connection; negative: it failed. */
static int door_enter(struct door *d, const char *text, int *ret_inner) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct pollfd came = {.fd = d->given[0], .events = POLLIN};
        if (fd < 0 || connect(fd, (struct sockaddr *) &d->address, d->length) < 0 ||
            send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t) strlen(text) || poll(&came, 1, PATIENCE_MS) != 1 ||
            read(d->given[0], ret_inner, sizeof(*ret_inner)) != sizeof(*ret_inner))
                return util_close(fd);
        return fd;
}

static bool wait_for(int fd, short events) {
        struct pollfd p = {.fd = fd, .events = events};
        return poll(&p, 1, PATIENCE_MS) == 1 && (p.revents & events);
}

/* What libmicrohttpd does: it waits for an edge, and reads no more when it got less than it has room for. */
static ssize_t read_at_edge(int epoll, int fd) {
        char block[RELAY_BUFFER];
        struct epoll_event event;
        return epoll_wait(epoll, &event, 1, PATIENCE_MS) == 1 ? recv(fd, block, sizeof(block), MSG_DONTWAIT) : -1;
}

/* A reader that epoll wakes once gets one edge for the bytes and the end, if both arrive before it reads. */
static void check_end_is_seen(struct door *d, const char *text, bool leaves, const char *answer) {
        char got[100] = "";
        int inner = -1, client = door_enter(d, text, &inner), epoll = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {.events = EPOLLIN | EPOLLET};
        CHECK(client >= 0 && epoll >= 0);
        if (leaves)
                CHECK_INT(shutdown(client, SHUT_WR), 0);
        CHECK(wait_for(inner, POLLRDHUP));
        CHECK_INT(epoll_ctl(epoll, EPOLL_CTL_ADD, inner, &event), 0);
        CHECK(read_at_edge(epoll, inner) > 0);
        CHECK_INT(read_at_edge(epoll, inner), 0);
        close(inner);
        CHECK(recv(client, got, sizeof(got) - 1, MSG_WAITALL) >= 0);
        CHECK_STRING(got, answer);
        close(client);
        close(epoll);
}

static void an_end_that_came_with_bytes_is_seen(void) {
        struct door d;
        CHECK(door_open(&d));
        check_end_is_seen(&d, "GET / HTTP/1.1\r\nBad header: 1\r\n\r\n", false, REFUSED);
        check_end_is_seen(&d, "GET / HTTP/1.1\r\n", true, "");
        door_close(&d);
}

int main(void) {
        RUN(an_end_that_came_with_bytes_is_seen);
        return check_end();
}
