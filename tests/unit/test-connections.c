/* SPDX-License-Identifier: MIT */

/* Full shares of connections: which connection gives way, and the refusal that a client gets without room, or too late.
 */

#include "api/http/connection/connections.h"

#include "check.h"
#include "schema/util.h"

#include <sys/socket.h>
#include <unistd.h>

#define FULL "HTTP/1.1 503 Service Unavailable\r\n\r\nall"
#define FULL_USER "HTTP/1.1 503 Service Unavailable\r\n\r\nuser"
#define FULL_ADDRESS "HTTP/1.1 503 Service Unavailable\r\n\r\naddress"

static unsigned answered[600]; /* by status */

static void tick(void *userdata) {
        (void) userdata;
}

static void on_answered(void *userdata, unsigned status) {
        (void) userdata;
        answered[status]++;
}

static uint64_t still; /* the number of the client that takes nothing */

static bool stands_still(void *userdata, uint64_t number) {
        (void) userdata;
        return number == still;
}

static struct connections *connections_for(uint64_t body_ns) {
        struct connections *c = NULL;
        struct connection_limits limits = {.head_ns = UINT64_MAX,
                                           .body_ns = body_ns,
                                           .idle_ns = UINT64_MAX,
                                           .busy_ns = UINT64_MAX,
                                           .timeout_response = "late",
                                           .timeout_length = 4,
                                           .full_response = {FULL, FULL_USER, FULL_ADDRESS},
                                           .full_length = {strlen(FULL), strlen(FULL_USER), strlen(FULL_ADDRESS)},
                                           .tick = tick,
                                           .answered = on_answered,
                                           .stands_still = stands_still};
        return connections_new(&c, &limits) == 0 ? c : NULL;
}

/* What the client reads until the end; NULL: the connection is open, and silent. */
static const char *received(int fd) {
        static char text[200];
        ssize_t n, length = 0;
        while ((n = recv(fd, text + length, sizeof(text) - 1 - (size_t) length, MSG_DONTWAIT)) > 0)
                length += n;
        text[length] = '\0';
        return n == 0 ? text : NULL;
}

static void full_house(const struct peer_limits *limits, const char *expected) {
        struct connections *c = connections_for(UINT64_MAX);
        struct peers *peers = NULL;
        int first[2], second[2];
        unsigned before = answered[503];
        CHECK(c);
        CHECK_INT(peers_new(&peers, limits), 0);
        struct peer *peer = peers_get(peers, "1000", "127.0.0.1");
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, first), 0);
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, second), 0);
        struct connection *busy = connections_add(c, first[0], peer, 1);
        CHECK(busy && connection_enter(c, busy, CONNECTION_BUSY));
        struct connection *refused = connections_add(c, second[0], peer, 2);
        CHECK(refused && !connection_enter(c, refused, CONNECTION_HEAD));
        CHECK_STRING(received(second[1]), expected);
        CHECK_UINT(answered[503], before + 1);
        CHECK(!received(first[1]) && connection_enter(c, busy, CONNECTION_IDLE));
        connections_remove(c, refused);
        close(second[0]);
        close(second[1]);

        /* who waits for a request gives way, and needs no word: it asked for nothing */
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, second), 0);
        struct connection *taken = connections_add(c, second[0], peer, 3);
        CHECK(taken && connection_enter(c, taken, CONNECTION_HEAD));
        CHECK(!received(second[1]));
        CHECK_STRING(received(first[1]), "");
        connections_remove(c, busy);
        connections_remove(c, taken);
        for (int i = 0; i < 2; i++) {
                close(first[i]);
                close(second[i]);
        }
        connections_free(c);
        CHECK_UINT(peers_used(peers, PEER_CONNECTIONS), 0);
        peer_unref(peer);
        peers_free(peers);
}

/* Adds three connections where there is room for two, and checks that the second one gives its place. */
static void second_gives_way(const char *first_sends, enum connection_state state) {
        static const struct peer_limits limits = {.most = {[PEER_CONNECTIONS] = {9, 9, 2}}};
        struct connections *c = connections_for(UINT64_MAX);
        struct peers *peers = NULL;
        struct connection *connections[3];
        int fds[3][2];
        CHECK(c);
        CHECK_INT(peers_new(&peers, &limits), 0);
        struct peer *peer = peers_get(peers, "1000", "127.0.0.1");
        for (unsigned i = 0; i < 3; i++) {
                CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]), 0);
                if (i == 0)
                        CHECK_INT(send(fds[i][1], first_sends, strlen(first_sends), 0), strlen(first_sends));
                connections[i] = connections_add(c, fds[i][0], peer, i + 1);
                CHECK(connections[i] && connection_enter(c, connections[i], state));
        }
        CHECK(!received(fds[0][1]) && !received(fds[2][1]));
        CHECK_STRING(received(fds[1][1]), "");
        for (unsigned i = 0; i < 3; i++) {
                connections_remove(c, connections[i]);
                close(fds[i][0]);
                close(fds[i][1]);
        }
        connections_free(c);
        peer_unref(peer);
        peers_free(peers);
}

/* It gives way to another whose request is answered, too, though it came later. */
static void test_a_client_that_takes_nothing_gives_way(void) {
        still = 2;
        second_gives_way("", CONNECTION_BUSY);
        still = 0;
}

/* Two came together, one of them with a request that the library has not read yet. */
static void test_a_client_that_sends_nothing_gives_way(void) {
        second_gives_way("GET", CONNECTION_FRESH);
}

static void test_no_room_at_all(void) {
        full_house(&(struct peer_limits){.most = {[PEER_CONNECTIONS] = {1, 9, 9}}}, FULL);
}

static void test_no_room_for_this_peer(void) {
        full_house(&(struct peer_limits){.most = {[PEER_CONNECTIONS] = {9, 1, 9}}}, FULL_USER);
        full_house(&(struct peer_limits){.most = {[PEER_CONNECTIONS] = {9, 9, 1}}}, FULL_ADDRESS);
}

/* The library knows nothing of this answer: it is counted where it is sent. */
static void test_who_comes_late_is_told_so(void) {
        struct connections *c = connections_for(1);
        int fds[2];
        char text[5] = "";
        unsigned before = answered[408];
        CHECK(c);
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        struct connection *late = connections_add(c, fds[0], NULL, 1);
        CHECK(late && connection_enter(c, late, CONNECTION_BODY));
        CHECK_INT(recv(fds[1], text, 4, MSG_WAITALL), 4);
        CHECK_STRING(text, "late");
        connections_remove(c, late);
        connections_free(c);
        CHECK_UINT(answered[408], before + 1);
        close(fds[0]);
        close(fds[1]);
}

int main(void) {
        RUN(test_a_client_that_takes_nothing_gives_way);
        RUN(test_a_client_that_sends_nothing_gives_way);
        RUN(test_no_room_at_all);
        RUN(test_no_room_for_this_peer);
        RUN(test_who_comes_late_is_told_so);
        return check_end();
}
