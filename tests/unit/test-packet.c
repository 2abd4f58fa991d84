/* SPDX-License-Identifier: MIT */

/* Packets that do not go or come at the first call, or are not what was sent: by a script of results, and over pairs of
 * sockets. */

#include "agent/base/agent.h"
#include "agent/transport/stream/packet.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <fcntl.h>

#define SIZE 100u

static struct agent agent = {.peer_role = "sender"};
static struct worker worker; /* static: see test-counters.c */
static unsigned char packet_sent[70000], buffer[70000];

static void worker_reset(size_t size, uint64_t limit, int fd) {
        memset(&worker, 0, sizeof worker);
        worker.agent = &agent;
        worker.index = 3;
        worker.messages = 7;
        worker.size = size;
        worker.limit = limit;
        worker.buffer = buffer;
        worker.send_fd = worker.receive_fd = fd;
}

/* ---- calls that return scripted results ---- */

static struct {
        const int *results; /* >= 0: bytes; < 0: -errno */
        size_t at;
        size_t from, length; /* as the last call was given */
} script;

static int ready_fd = -1; /* poll(2) finds it ready */

static ssize_t next(void) {
        int r = script.results[script.at++];
        errno = r < 0 ? -r : 0;
        return r < 0 ? -1 : r;
}

PACKET_SEND(packet, false, packet_write)
PACKET_RECEIVE(packet, false, packet_read)
PACKET_SEND(chunks, true, packet_write)
PACKET_RECEIVE(chunks, true, packet_read)

static ssize_t scripted_send(struct worker *w, const unsigned char *message, size_t from, size_t length) {
        (void) w;
        (void) message;
        script.from = from;
        script.length = length;
        return next();
}

static ssize_t scripted_read(struct worker *w, void *packet, size_t length) {
        (void) w;
        (void) packet;
        script.length = length;
        return next();
}

/* The first result is the first call's; `moved` bytes of the message went before. */
static int play(bool sends, const int *results, size_t moved, uint64_t limit) {
        worker_reset(SIZE, limit, ready_fd);
        memset(&script, 0, sizeof script);
        script.results = results;
        ssize_t first = next();
        return sends ? packet_finish_send(&worker, packet_sent, moved, SIZE, first, scripted_send)
                     : packet_finish_receive(&worker, buffer, SIZE, moved, first, scripted_read);
}

static void what_did_not_go_goes_again_whole(void) {
        static const int results[] = {-EINTR, -EAGAIN, -ENOBUFS, -EINTR, SIZE};
        for (unsigned sends = 0; sends < 2; sends++) {
                CHECK_INT(play(sends, results, 0, WORKER_UNLIMITED), 0);
                CHECK_UINT(script.at, 5);
                CHECK_UINT(script.length, SIZE);
                CHECK_UINT(worker.eintr, 2);
                CHECK_UINT(worker.eagain, 2);
                CHECK_UINT(worker.partial_sends + worker.partial_receives, 0);
        }
        CHECK_INT(play(true, results, 40, WORKER_UNLIMITED), 0);
        CHECK_UINT(script.from, 40);
}

/* No thread stops between a message's packets: the other end waits for the rest. */
static void the_limit_counts_before_the_first_packet(void) {
        static const int interrupted[] = {-EINTR, SIZE}, full[] = {-EAGAIN, SIZE};
        for (unsigned sends = 0; sends < 2; sends++) {
                CHECK_INT(play(sends, interrupted, 0, 7), WORKER_STOP);
                CHECK_INT(play(sends, full, 0, 7), WORKER_STOP);
                CHECK_UINT(script.at, 1);
                CHECK_INT(play(sends, interrupted, 0, 8), 0);
                CHECK_INT(play(sends, interrupted, 1, 7), 0);
                CHECK_INT(play(sends, full, 1, 7), 0);
                CHECK_UINT(script.at, 2);
        }
}

static void failures_name_the_thing(void) {
        static const struct {
                bool sends;
                int results[2];
                int r;
                const char *detail;
        } cases[] = {
                {true,
                 {-EMSGSIZE},
                 -EMSGSIZE,
                 "a packet of 100 bytes is more than the socket's send buffer takes "
                 "(transport_options sndbuf, net.core.wmem_max); chunk: true sends it in "
                 "parts"},
                {true, {-EPIPE}, -EPIPE, "peer sender closed the channel of thread 3 in message 7: Broken pipe"},
                {true,
                 {-EINTR, -ECONNREFUSED},
                 -ECONNREFUSED,
                 "peer sender closed the channel of thread 3 in message 7: Connection refused"},
                {true, {-EPERM}, -EPERM, "send failed in thread 3, message 7: Operation not permitted"},
                {true, {99}, -EBADMSG, "a packet of 99 bytes where one of 100 was due, in thread 3, message 7"},
                {false,
                 {-ECONNRESET},
                 -ECONNRESET,
                 "peer sender closed the channel of thread 3 in message 7: Connection reset by peer"},
                {false, {-EIO}, -EIO, "receive failed in thread 3, message 7: Input/output error"},
                {false, {-EINTR, 0}, -EPIPE, "peer sender closed the channel of thread 3 before message 7"},
                {false, {101}, -EBADMSG, "a packet of 101 bytes where one of 100 was due, in thread 3, message 7"},
                {false, {-EAGAIN, 1}, -EBADMSG, "a packet of 1 bytes where one of 100 was due, in thread 3, message 7"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CHECK_INT(play(cases[i].sends, cases[i].results, 0, WORKER_UNLIMITED), cases[i].r);
                CHECK_STRING(worker.failure.detail, cases[i].detail);
                CHECK_INT(worker.failure.error, -cases[i].r);
        }
}

static void half_a_packet_is_not_a_packet_sent(void) {
        worker_reset(SIZE, WORKER_UNLIMITED, ready_fd);
        CHECK_INT(packet_finish_send(&worker, packet_sent, 0, SIZE, SIZE - 1, scripted_send), -EBADMSG);
        CHECK_STRING(worker.failure.detail, "a packet of 99 bytes where one of 100 was due, in thread 3, message 7");
        worker_reset(SIZE, WORKER_UNLIMITED, ready_fd);
        CHECK_INT(packet_finish_send(&worker, packet_sent, 0, SIZE, SIZE, scripted_send), 0);
}

/* ---- pairs of sockets ---- */

struct pair {
        int fds[2];
};

static void pair_close(struct pair *p) {
        util_close(p->fds[0]);
        util_close(p->fds[1]);
}
#define PAIR __attribute__((cleanup(pair_close))) struct pair

static bool pair_open(struct pair *p, int type) {
        p->fds[0] = p->fds[1] = -1;
        return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p->fds) == 0;
}

static const int types[] = {SOCK_SEQPACKET, SOCK_DGRAM};

static void a_packet_goes_and_comes(void) {
        for (size_t i = 0; i < ELEMENTS(types); i++) {
                PAIR p;
                unsigned char *where = NULL;
                CHECK(pair_open(&p, types[i]));
                memset(buffer, 0, sizeof buffer);
                memset(packet_sent, 0xa5, SIZE);
                worker_reset(SIZE, WORKER_UNLIMITED, p.fds[0]);
                CHECK_INT(packet_send(&worker, packet_sent), 0);
                worker.receive_fd = p.fds[1];
                CHECK_INT(packet_receive(&worker, &where), 0);
                CHECK(where == buffer && memcmp(buffer, packet_sent, SIZE) == 0);
        }
}

/* MSG_TRUNC returns the true length; a receiver that trusted the call would take the beginning for the message. */
static void packets_of_another_length_are_found_out(void) {
        static const size_t lengths[] = {1, SIZE - 1, SIZE + 1, 5000};
        for (size_t i = 0; i < ELEMENTS(types); i++)
                for (size_t k = 0; k < ELEMENTS(lengths); k++) {
                        PAIR p;
                        unsigned char *where;
                        char words[64];
                        CHECK(pair_open(&p, types[i]));
                        CHECK_INT(send(p.fds[0], packet_sent, lengths[k], 0), lengths[k]);
                        worker_reset(SIZE, WORKER_UNLIMITED, p.fds[1]);
                        CHECK_INT(packet_receive(&worker, &where), -EBADMSG);
                        (void) snprintf(words, sizeof words, "a packet of %zu bytes where one of 100 was due",
                                        lengths[k]);
                        CHECK(strncmp(worker.failure.detail, words, strlen(words)) == 0);
                }
}

static void chunks_make_a_message(void) {
        static const struct {
                size_t size, chunk;
                unsigned packets;
        } cases[] = {{100, 30, 4}, {100, 50, 2}, {100, 100, 1}, {100, 1000, 1}, {3, 1, 3}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                PAIR p;
                unsigned char *where = NULL, byte[2000];
                unsigned n = 0;
                CHECK(pair_open(&p, SOCK_SEQPACKET));
                agent.setup.chunk_bytes = cases[i].chunk;
                for (size_t k = 0; k < cases[i].size; k++)
                        packet_sent[k] = (unsigned char) (k + i);
                memset(buffer, 0, sizeof buffer);
                worker_reset(cases[i].size, WORKER_UNLIMITED, p.fds[0]);
                CHECK_INT(chunks_send(&worker, packet_sent), 0);
                CHECK_INT(chunks_send(&worker, packet_sent), 0);
                worker.receive_fd = p.fds[1];
                CHECK_INT(chunks_receive(&worker, &where), 0);
                CHECK(where == buffer && memcmp(buffer, packet_sent, cases[i].size) == 0);
                while (recv(p.fds[1], byte, sizeof byte, MSG_DONTWAIT) > 0)
                        n++;
                CHECK_UINT(n, cases[i].packets);
        }
}

static void a_packet_that_no_buffer_takes(void) {
        int least = 1; /* the kernel makes the least of it that there is */
        for (size_t i = 0; i < ELEMENTS(types); i++) {
                PAIR p;
                CHECK(pair_open(&p, types[i]));
                CHECK_INT(setsockopt(p.fds[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
                worker_reset(sizeof packet_sent, WORKER_UNLIMITED, p.fds[0]);
                CHECK_INT(packet_send(&worker, packet_sent), -EMSGSIZE);
                CHECK(strstr(worker.failure.detail, "a packet of 70000 bytes is more than"));
        }
}

static void a_peer_that_is_gone(void) {
        PAIR p;
        unsigned char *where;
        CHECK(pair_open(&p, SOCK_SEQPACKET));
        p.fds[0] = util_close(p.fds[0]);
        worker_reset(SIZE, WORKER_UNLIMITED, p.fds[1]);
        CHECK_INT(packet_receive(&worker, &where), -EPIPE);
        CHECK_STRING(worker.failure.detail, "peer sender closed the channel of thread 3 before message 7");
        worker_reset(SIZE, WORKER_UNLIMITED, p.fds[1]);
        CHECK_INT(packet_send(&worker, packet_sent), -EPIPE);
}

/* A queue that is full, and a limit that has been reached: the message is not sent, and the queue is as it was. */
static void a_full_queue_and_no_message_due(void) {
        PAIR p;
        CHECK(pair_open(&p, SOCK_SEQPACKET | SOCK_NONBLOCK));
        while (send(p.fds[0], packet_sent, SIZE, MSG_DONTWAIT) > 0)
                ;
        worker_reset(SIZE, 7, p.fds[0]);
        CHECK_INT(packet_send(&worker, packet_sent), WORKER_STOP);
        CHECK_UINT(worker.eagain, 1);
        worker_reset(SIZE, 7, p.fds[0]);
        unsigned char *where;
        CHECK_INT(packet_receive(&worker, &where), WORKER_STOP); /* nothing has been sent this way */
        CHECK_UINT(worker.eagain, 1);
        CHECK_STRING(worker.failure.detail, "");
}

int main(void) {
        int fds[2];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return 1;
        ready_fd = fds[1];
        RUN(what_did_not_go_goes_again_whole);
        RUN(the_limit_counts_before_the_first_packet);
        RUN(failures_name_the_thing);
        RUN(half_a_packet_is_not_a_packet_sent);
        RUN(a_packet_goes_and_comes);
        RUN(packets_of_another_length_are_found_out);
        RUN(chunks_make_a_message);
        RUN(a_packet_that_no_buffer_takes);
        RUN(a_peer_that_is_gone);
        RUN(a_full_queue_and_no_message_due);
        return check_end();
}
