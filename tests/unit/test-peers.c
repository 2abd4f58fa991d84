/* SPDX-License-Identifier: MIT */

/* Shares of a listener: by address, by user and by all, counted and given back; and whose socket the other end is. */

#include "api/http/connection/peers.h"

#include "api/http/connection/peer-user.h"
#include "check.h"
#include "schema/util.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct peer_limits limits = {.most = {
                                                  [PEER_CONNECTIONS] = {9, 9, 9},
                                                  [PEER_DEAR] = {4, 3, 2},
                                                  [PEER_STREAMS] = {1, 1, 1},
                                                  [PEER_BODY_BYTES] = {100, 80, 60},
                                                  [PEER_HELD_BYTES] = {1, 1, 1},
                                                  [PEER_SENT_BYTES] = {1, 1, 1},
                                          }};

static bool takes(struct peer *peer, enum peer_share share, size_t n) {
        struct refusal r = {0};
        return peer_take(peer, share, n, &r) == 0;
}

static void check_refused(struct peer *peer, enum peer_share share, const char *limit, const char *value) {
        struct refusal r = {0};
        CHECK_INT(peer_take(peer, share, 1, &r), -EAGAIN);
        CHECK_INT(r.status, 503);
        CHECK_STRING(r.limit, limit);
        CHECK_STRING(r.limit_value, value);
        CHECK(strstr(r.detail, value) && strstr(r.detail, "try again"));
}

static void test_each_level_has_its_share(void) {
        struct peers *p = NULL;
        CHECK_INT(peers_new(&p, &limits), 0);
        struct peer *first = peers_get(p, "1000", "127.0.0.1"), *second = peers_get(p, "1000", "127.0.0.2");
        struct peer *other = peers_get(p, "33", "127.0.0.1"), *nobody = peers_get(p, "", "127.0.0.1");
        CHECK(first && second && other && nobody && first != other && first != nobody);
        CHECK(peer_owner(first) && peer_owner(first) == peer_owner(second) && peer_owner(first) != peer_owner(other));
        CHECK(peer_owner(nobody) == nobody);
        CHECK(!peer_owner(NULL));
        CHECK(takes(first, PEER_DEAR, 1) && takes(first, PEER_DEAR, 1));
        check_refused(first, PEER_DEAR, "expensive requests of one address", "2");
        CHECK(takes(second, PEER_DEAR, 1));
        check_refused(second, PEER_DEAR, "expensive requests of one user", "3");
        CHECK(takes(other, PEER_DEAR, 1)); /* from the same address */
        check_refused(nobody, PEER_DEAR, "expensive requests of all clients", "4");
        CHECK_UINT(peers_used(p, PEER_DEAR), 4);
        peer_give(first, PEER_DEAR, 1);
        CHECK(takes(nobody, PEER_DEAR, 1));
        peer_give(first, PEER_DEAR, 1);
        CHECK(takes(second, PEER_DEAR, 1));
        peer_give(second, PEER_DEAR, 2);
        peer_give(other, PEER_DEAR, 1);
        peer_give(nobody, PEER_DEAR, 1);
        CHECK_UINT(peers_used(p, PEER_DEAR), 0);
        peer_unref(first);
        peer_unref(second);
        peer_unref(other);
        peer_unref(nobody);
        peers_free(p);
}

static void test_a_body_may_be_larger_than_its_share(void) {
        struct peers *p = NULL;
        CHECK_INT(peers_new(&p, &limits), 0);
        struct peer *peer = peers_get(p, "1000", "");
        CHECK(takes(peer, PEER_BODY_BYTES, 79) && takes(peer, PEER_BODY_BYTES, 1000));
        check_refused(peer, PEER_BODY_BYTES, "answer bytes of one user", "80");
        peer_give(peer, PEER_BODY_BYTES, 1000);
        CHECK(takes(peer, PEER_BODY_BYTES, 0) && !peer_full(peer, PEER_BODY_BYTES));
        peer_give(peer, PEER_BODY_BYTES, 79);
        peer_unref(peer);
        peers_free(p);
}

static void count_wake(void *userdata) {
        (*(unsigned *) userdata)++;
}

/* Requests that wait within a body get what becomes free, in order of arrival; no new body gets it before them. */
static void test_bodies_under_way_have_their_turns(void) {
        struct peers *p = NULL;
        unsigned woken[3] = {0};
        CHECK_INT(peers_new(&p, &limits), 0);
        struct peer *peer = peers_get(p, "1000", ""), *other = peers_get(p, "33", "");
        struct peer_turn first = {.peer = peer, .wake = count_wake, .userdata = &woken[0]};
        struct peer_turn second = {.peer = peer, .wake = count_wake, .userdata = &woken[1]};
        struct peer_turn others = {.peer = other, .wake = count_wake, .userdata = &woken[2]};
        CHECK(peer_turn_begin(&first));
        peer_add(peer, PEER_BODY_BYTES, 80);
        peer_turn_end(&first);
        CHECK(!peer_turn_begin(&first) && !peer_turn_begin(&second) && !peer_turn_begin(&first));
        CHECK(peer_turn_begin(&others)); /* whose share is open */
        peer_turn_end(&others);
        CHECK_UINT(woken[0] + woken[1] + woken[2], 0);
        peer_give(peer, PEER_BODY_BYTES, 80);
        CHECK_UINT(woken[0], 1);
        CHECK_UINT(woken[1], 0);
        check_refused(peer, PEER_BODY_BYTES, "answer bytes of one user", "80");
        CHECK(!peer_turn_begin(&second) && peer_turn_begin(&first));
        peer_add(peer, PEER_BODY_BYTES, 80);
        peer_turn_end(&first);
        CHECK(!peer_turn_begin(&first)); /* behind the second one now */
        CHECK_UINT(woken[1], 0);
        peer_give(peer, PEER_BODY_BYTES, 80);
        CHECK_UINT(woken[1], 1);
        CHECK(!peer_turn_begin(&first));
        peer_turn_end(&second); /* its client has gone */
        CHECK_UINT(woken[0], 2);
        CHECK(peer_turn_begin(&first));
        peer_turn_end(&first);
        CHECK(takes(peer, PEER_BODY_BYTES, 0));
        peer_unref(peer);
        peer_unref(other);
        peers_free(p);
}

/* A peer is the same for as long as anybody has it. */
static void test_a_peer_is_found_again(void) {
        struct peers *p = NULL;
        CHECK_INT(peers_new(&p, &limits), 0);
        struct peer *first = peers_get(p, "1000", "127.0.0.1"), *again = peers_get(p, "1000", "127.0.0.1");
        CHECK(first == again);
        struct peer *user = peers_get(p, "1000", "");
        CHECK(user != first && peer_is_below(first, user) && !peer_is_below(user, first));
        peer_unref(first);
        CHECK(takes(again, PEER_STREAMS, 1));
        check_refused(user, PEER_STREAMS, "event streams of one user", "1");
        peer_give(again, PEER_STREAMS, 1);
        peer_unref(again);
        peer_unref(user);
        peers_free(p);
}

/* 0, or a negative errno. */
static int connect_tcp(int *ret_client, int *ret_accepted) {
        _cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        _cleanup_close_ int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof(address);
        if (bind(listener, (struct sockaddr *) &address, sizeof(address)) < 0 || listen(listener, 1) < 0 ||
            getsockname(listener, (struct sockaddr *) &address, &length) < 0 ||
            connect(client, (struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (accepted < 0)
                return -errno;
        *ret_client = util_steal_fd(&client);
        *ret_accepted = accepted;
        return 0;
}

static void test_whose_the_other_end_is(void) {
        _cleanup_close_ int diag = peer_user_open(), client = -1, accepted = -1;
        uid_t uid = (uid_t) -1;
        CHECK_INT(connect_tcp(&client, &accepted), 0);
        int k = peer_user(diag, accepted, &uid);
        if (diag < 0 || k == -ENOENT || k == -EPERM)
                SKIP("the kernel does not say whose a TCP socket is: %s", strerrordesc_np(-(diag < 0 ? diag : k)));
        CHECK_INT(k, 0);
        CHECK_UINT(uid, getuid());
        CHECK_INT(peer_user(-EPERM, accepted, &uid), -EBADF);
        client = util_close(client);
        CHECK_INT(peer_user(diag, accepted, &uid), -ENOENT); /* nobody's any more, and not root's */

        int pair[2];
        uid = (uid_t) -1;
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        CHECK_INT(peer_user(-EPERM, pair[0], &uid), 0);
        CHECK_UINT(uid, getuid());
        util_close(pair[0]);
        util_close(pair[1]);
}

/* Little by little, where the sender's buffer has room again only when the other end has taken much. */
static void test_what_the_other_end_has_not_taken(void) {
        static char bytes[64 * 1024];
        _cleanup_close_ int diag = peer_user_open(), client = -1, accepted = -1;
        uid_t uid;
        uint64_t before, after;
        CHECK_INT(connect_tcp(&client, &accepted), 0);
        int k = peer_user(diag, accepted, &uid);
        if (k < 0)
                SKIP("the kernel does not show the other end of a TCP connection: %s", strerrordesc_np(-k));
        while (send(accepted, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
        CHECK_INT(errno, EAGAIN);
        do { /* what is on its way is counted at both ends until it is acknowledged */
                CHECK_INT(peer_untaken(diag, accepted, &before), 0);
                usleep(200000);
                CHECK_INT(peer_untaken(diag, accepted, &after), 0);
        } while (after != before);
        for (unsigned i = 1; i <= 3; i++) {
                CHECK_INT(recv(client, bytes, 1000, 0), 1000);
                CHECK_INT(peer_untaken(diag, accepted, &after), 0);
                CHECK_UINT(after, before - i * 1000);
        }
}

static void test_what_a_unix_socket_has_not_taken(void) {
        static char bytes[4096];
        int pair[2];
        uint64_t before, after;
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        while (send(pair[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
        CHECK_INT(errno, EAGAIN);
        CHECK_INT(peer_untaken(-EPERM, pair[0], &before), 0);
        CHECK_INT(peer_untaken(-EPERM, pair[0], &after), 0);
        CHECK_UINT(after, before);
        CHECK_INT(recv(pair[1], bytes, sizeof(bytes), 0), sizeof(bytes));
        CHECK_INT(peer_untaken(-EPERM, pair[0], &after), 0);
        CHECK(after < before);
        CHECK_INT(poll(&(struct pollfd){.fd = pair[0], .events = POLLOUT}, 1, 0),
                  0); /* which shows nothing of it yet */
        util_close(pair[0]);
        util_close(pair[1]);
}

int main(void) {
        RUN(test_each_level_has_its_share);
        RUN(test_a_body_may_be_larger_than_its_share);
        RUN(test_bodies_under_way_have_their_turns);
        RUN(test_a_peer_is_found_again);
        RUN(test_whose_the_other_end_is);
        RUN(test_what_the_other_end_has_not_taken);
        RUN(test_what_a_unix_socket_has_not_taken);
        return check_end();
}
