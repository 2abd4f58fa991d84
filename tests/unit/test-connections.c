/* SPDX-License-Identifier: MIT */

/* A full house: who gives way, and what is said to whom there is no room for. */

#include "api/connections.h"

#include "check.h"
#include "schema/util.h"

#include <sys/socket.h>
#include <unistd.h>

#define FULL "HTTP/1.1 503 Service Unavailable\r\n\r\n"

static void tick(void *userdata) {
        (void) userdata;
}

static struct connections *connections_for(unsigned total, unsigned per_peer) {
        struct connections *c = NULL;
        struct connection_limits limits = {.total = total,
                                           .per_peer = per_peer,
                                           .head_ns = UINT64_MAX,
                                           .body_ns = UINT64_MAX,
                                           .idle_ns = UINT64_MAX,
                                           .busy_ns = UINT64_MAX,
                                           .timeout_response = "late",
                                           .timeout_length = 4,
                                           .full_response = FULL,
                                           .full_length = strlen(FULL),
                                           .tick = tick};
        return connections_new(&c, &limits) == 0 ? c : NULL;
}

/* What the client reads until the end; NULL: the connection is open, and silent. */
static const char *told(int fd) {
        static char text[200];
        ssize_t n, length = 0;
        while ((n = recv(fd, text + length, sizeof(text) - 1 - (size_t) length, MSG_DONTWAIT)) > 0)
                length += n;
        text[length] = '\0';
        return n == 0 ? text : NULL;
}

static void full_house(unsigned total, unsigned per_peer) {
        struct connections *c = connections_for(total, per_peer);
        int first[2], second[2];
        CHECK(c);
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, first), 0);
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, second), 0);
        struct connection *busy = connections_add(c, first[0]);
        CHECK(busy && connection_enter(c, busy, CONNECTION_BUSY));
        struct connection *refused = connections_add(c, second[0]);
        CHECK(refused && !connection_enter(c, refused, CONNECTION_HEAD));
        CHECK_STRING(told(second[1]), FULL);
        CHECK(!told(first[1]) && connection_enter(c, busy, CONNECTION_IDLE));
        connections_remove(c, refused);
        close(second[0]);
        close(second[1]);

        /* who waits for a request gives way, and needs no word: it asked for nothing */
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, second), 0);
        struct connection *taken = connections_add(c, second[0]);
        CHECK(taken && connection_enter(c, taken, CONNECTION_HEAD));
        CHECK(!told(second[1]));
        CHECK_STRING(told(first[1]), "");
        connections_remove(c, busy);
        connections_remove(c, taken);
        for (int i = 0; i < 2; i++) {
                close(first[i]);
                close(second[i]);
        }
        connections_free(c);
}

static void test_no_room_at_all(void) {
        full_house(1, 9);
}

static void test_no_room_for_this_peer(void) {
        full_house(9, 1);
}

int main(void) {
        RUN(test_no_room_at_all);
        RUN(test_no_room_for_this_peer);
        return check_end();
}
