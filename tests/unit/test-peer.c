/* SPDX-License-Identifier: MIT */

/* The channel between two leaders: what goes over it, and a peer that is silent, gone, out of turn, or sends what is no
 * packet. Whatever happens, no descriptor stays behind. */

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct fixture {
        struct agent *agent;
        int other, daemon; /* the far ends of the peer's channel and of the control socket */
};

static struct agent agent; /* static: as all that an agent has in it */

static bool fixture_open(struct fixture *f) {
        int peer[2] = {-1, -1}, control[2] = {-1, -1};
        memset(&agent, 0, sizeof agent);
        *f = (struct fixture){.agent = &agent, .other = -1, .daemon = -1};
        bool made = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, peer) == 0 &&
                    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0;
        agent.peer_role = "responder";
        agent.peer_fd = peer[0];
        agent.control_fd = control[0];
        agent.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        f->other = peer[1];
        f->daemon = control[1];
        return made && agent.event_fd >= 0;
}

static void fixture_close(struct fixture *f) {
        util_close(agent.peer_fd);
        util_close(agent.control_fd);
        util_close(agent.event_fd);
        util_close(f->other);
        util_close(f->daemon);
}
#define FIXTURE __attribute__((cleanup(fixture_close))) struct fixture

/* A time that is past: nothing is waited for, so that no test depends on a clock. */
#define NOW 1u
static uint64_t later(void) {
        return util_now_ns() + 60 * NSEC_PER_SEC;
}

static unsigned open_descriptors(void) {
        unsigned n = 0;
        DIR *d = opendir("/proc/self/fd");
        if (!d)
                return 0;
        while (readdir(d)) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
                n++;
        closedir(d);
        return n;
}

/* What another agent might send: bytes and descriptors as they are. */
static bool inject(int fd, const void *data, size_t length, const int *fds, unsigned n_fds) {
        struct iovec iov = {.iov_base = (void *) (uintptr_t) data, .iov_len = length};
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int) * 16)];
        } control;
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        memset(&control, 0, sizeof control);
        if (n_fds) {
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
                memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n_fds);
        }
        return sendmsg(fd, &m, 0) == (ssize_t) length;
}

static bool inject_packet(struct fixture *f, uint32_t kind, uint32_t thread, unsigned n_fds) {
        const struct peer_packet p = {.kind = kind, .thread = thread, .value = 42};
        const int fds[16] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
        return inject(f->other, &p, sizeof p, fds, n_fds);
}

static void what_is_sent_is_received(void) {
        FIXTURE f;
        uint64_t value = 0;
        CHECK(fixture_open(&f));
        CHECK_INT(peer_send(&agent, PEER_SENT, 1023, UINT64_MAX, NOW), 0);
        CHECK_INT(peer_send(&agent, PEER_GO, 0, 0, NOW), 0);
        int near = agent.peer_fd;
        agent.peer_fd = f.other;
        int first = peer_receive(&agent, PEER_SENT, 1023, &value, NOW);
        int second = peer_receive(&agent, PEER_GO, 0, NULL, NOW);
        agent.peer_fd = near;
        CHECK_INT(first, 0);
        CHECK_INT(second, 0);
        CHECK_UINT(value, UINT64_MAX);
        CHECK_STRING(agent.failure.detail, "");
}

static void descriptors_come_as_they_went(void) {
        for (unsigned n = 0; n <= PEER_FDS_MAX; n++) {
                FIXTURE f;
                int fds[PEER_FDS_MAX], got[PEER_FDS_MAX] = {-1, -1, -1, -1};
                struct stat sent, received;
                CHECK(fixture_open(&f));
                for (unsigned i = 0; i < n; i++)
                        fds[i] = eventfd(0, EFD_CLOEXEC);
                int near = agent.peer_fd, r = peer_send_fds(&agent, 5, fds, n, NOW);
                agent.peer_fd = f.other;
                if (r == 0)
                        r = peer_receive_fds(&agent, 5, got, n, NOW);
                agent.peer_fd = near;
                CHECK_INT(r, 0);
                for (unsigned i = 0; i < n; i++) {
                        CHECK(got[i] != fds[i] && fstat(fds[i], &sent) == 0 && fstat(got[i], &received) == 0);
                        CHECK_UINT(received.st_ino, sent.st_ino);
                        CHECK(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
                        util_close(fds[i]);
                        util_close(got[i]);
                }
        }
}

/* Whatever came with a packet that was not due is closed again. */
static void out_of_turn(void) {
        static const struct {
                uint32_t kind, thread;
                unsigned n_fds;
                const char *words;
        } cases[] = {
                {PEER_GO, 0, 0,
                 "the start of the window of thread 0 with 0 descriptors where the transport's rendezvous of thread 0 "
                 "with 2 was due"},
                {PEER_TRANSPORT, 1, 2, "the transport's rendezvous of thread 1 with 2 descriptors"},
                {PEER_TRANSPORT, 0, 1, "of thread 0 with 1 descriptors"},
                {PEER_TRANSPORT, 0, 3, "of thread 0 with 3 descriptors"},
                {0, 0, 2, "an unknown message of thread 0"},
                {PEER_PROBE + 1, 0, 2, "an unknown message of thread 0"},
                {UINT32_MAX, 0, 4, "an unknown message of thread 0"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                FIXTURE f;
                int got[2] = {-7, -7};
                CHECK(fixture_open(&f));
                unsigned before = open_descriptors();
                CHECK(inject_packet(&f, cases[i].kind, cases[i].thread, cases[i].n_fds));
                CHECK_INT(peer_receive_fds(&agent, 0, got, 2, NOW), -EBADMSG);
                CHECK_UINT(open_descriptors(), before);
                CHECK(got[0] == -7 && got[1] == -7);
                CHECK(strncmp(agent.failure.detail, "peer responder sent an unexpected packet: ", 42) == 0);
                if (!strstr(agent.failure.detail, cases[i].words))
                        CHECK_FAIL("case %zu: %s", i, agent.failure.detail);
        }
}

static void what_is_no_packet(void) {
        static const struct {
                size_t length;
                unsigned n_fds;
                const char *words;
        } cases[] = {
                {1, 0, "peer responder sent a packet of 1 bytes where 16 were due"},
                {15, 4, "peer responder sent a packet of 15 bytes where 16 were due"},
                {17, 0, "peer responder sent a packet of 17 bytes where 16 were due"},
                {100, 2, "peer responder sent a packet of 100 bytes where 16 were due"},
                {16, 5, "peer responder sent a packet of 16 bytes whose descriptors do not fit here where 16 were due"},
                {16, 16, "whose descriptors do not fit here"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                FIXTURE f;
                const char bytes[100] = {PEER_CLOSED};
                const int fds[16] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
                CHECK(fixture_open(&f));
                unsigned before = open_descriptors();
                CHECK(inject(f.other, bytes, cases[i].length, fds, cases[i].n_fds));
                CHECK_INT(peer_receive(&agent, PEER_CLOSED, 0, NULL, NOW), -EBADMSG);
                CHECK_UINT(open_descriptors(), before);
                if (!strstr(agent.failure.detail, cases[i].words))
                        CHECK_FAIL("case %zu: %s", i, agent.failure.detail);
        }
}

static void a_silent_peer(void) {
        FIXTURE f;
        uint64_t value = 42;
        CHECK(fixture_open(&f));
        CHECK_INT(peer_receive(&agent, PEER_DRAINED, 0, &value, NOW), -ETIMEDOUT);
        CHECK_STRING(agent.failure.detail, "peer responder did not send the receipt of all messages in time");
        CHECK_UINT(value, 42);
}

static void a_peer_that_does_not_listen(void) {
        FIXTURE f;
        int r;
        CHECK(fixture_open(&f));
        do
                r = peer_send(&agent, PEER_SENT, 0, 1, NOW);
        while (r == 0);
        CHECK_INT(r, -ETIMEDOUT);
        CHECK_STRING(agent.failure.detail,
                     "peer responder does not read: the number of messages sent cannot be sent in time");
}

/* A message that was sent before the end is still received. */
static void a_peer_that_is_gone(void) {
        FIXTURE f;
        uint64_t value = 0;
        CHECK(fixture_open(&f));
        CHECK(inject_packet(&f, PEER_CLOSED, 0, 0));
        f.other = util_close(f.other);
        CHECK_INT(peer_receive(&agent, PEER_CLOSED, 0, &value, later()), 0);
        CHECK_UINT(value, 42);
        CHECK_INT(peer_receive(&agent, PEER_DRAINED, 0, &value, later()), -ECONNRESET);
        CHECK_STRING(agent.failure.detail, "peer responder is gone before it sent the receipt of all messages");
        memset(&agent.failure, 0, sizeof agent.failure);
        CHECK_INT(peer_send(&agent, PEER_DONE, 0, 0, later()), -EPIPE);
        CHECK_STRING(agent.failure.detail, "peer responder is gone: its completion cannot be sent: Broken pipe");
}

/* The kernel reports our unread messages ahead of the peer's last one. */
static void a_peer_that_goes_without_listening(void) {
        for (unsigned waits = 0; waits < 2; waits++) {
                FIXTURE f;
                uint64_t value = 0;
                CHECK(fixture_open(&f));
                CHECK_INT(peer_send(&agent, PEER_SENT, 0, 1, NOW), 0);
                CHECK(inject_packet(&f, PEER_DONE, 0, 0));
                f.other = util_close(f.other);
                if (waits)
                        CHECK_INT(agent_wait(&agent, later(), WAIT_PEER), WAIT_PEER);
                CHECK_INT(peer_receive(&agent, PEER_DONE, 0, &value, later()), 0);
                CHECK_UINT(value, 42);
                CHECK_STRING(agent.failure.detail, "");
                CHECK_INT(peer_receive(&agent, PEER_DONE, 0, &value, later()), -ECONNRESET);
                CHECK_STRING(agent.failure.detail, "peer responder is gone before it sent its completion");
        }
}

static void agents_exchange_packets(void) {
        FIXTURE f;
        CHECK(fixture_open(&f));
        _cleanup_close_ int stream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(peer_is_packet_socket(agent.peer_fd));
        CHECK(stream >= 0 && !peer_is_packet_socket(stream));
        CHECK(!peer_is_packet_socket(agent.event_fd));
        CHECK(!peer_is_packet_socket(-1));
}

/* What waits on the control socket is seen to become less as the daemon reads. */
static void what_the_daemon_has_not_read(void) {
        FIXTURE f;
        char byte;
        CHECK(fixture_open(&f));
        CHECK_INT(agent_unread(f.agent), 0);
        CHECK(send(agent.control_fd, "a", 1, 0) == 1 && send(agent.control_fd, "b", 1, 0) == 1);
        int64_t two = agent_unread(f.agent);
        CHECK(recv(f.daemon, &byte, 1, 0) == 1);
        int64_t one = agent_unread(f.agent);
        CHECK(0 < one && one < two);
        CHECK(recv(f.daemon, &byte, 1, 0) == 1);
        CHECK_INT(agent_unread(f.agent), 0);
        util_close(agent.control_fd);
        agent.control_fd = -1;
        CHECK_INT(agent_unread(f.agent), -EBADF);
}

int main(void) {
        RUN(what_is_sent_is_received);
        RUN(descriptors_come_as_they_went);
        RUN(out_of_turn);
        RUN(what_is_no_packet);
        RUN(a_silent_peer);
        RUN(a_peer_that_does_not_listen);
        RUN(a_peer_that_is_gone);
        RUN(a_peer_that_goes_without_listening);
        RUN(agents_exchange_packets);
        RUN(what_the_daemon_has_not_read);
        return check_end();
}
