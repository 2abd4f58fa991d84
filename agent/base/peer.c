/* SPDX-License-Identifier: MIT */

/* Packets between the two leaders. Both run the same build, so a packet is a plain struct. */

#include "agent/base/peer.h"

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "agent/os/rights.h"
#include "schema/standstill.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#define ONCE_MORE_NS (5 * NSEC_PER_SEC)

static const char *kind_name(uint32_t kind) {
        static const char *const names[] = {
                [PEER_TRANSPORT] = "the transport's rendezvous", [PEER_CLOSED] = "the end of the window",
                [PEER_SENT] = "the number of messages sent",     [PEER_DRAINED] = "the receipt of all messages",
                [PEER_GO] = "the start of the window",           [PEER_DONE] = "its completion",
                [PEER_PROBE] = "its part in the probes",
        };
        return kind < ELEMENTS(names) && names[kind] ? names[kind] : "an unknown message";
}

static int send_packet(struct agent *a, const struct peer_packet *packet, const int *fds, unsigned n_fds,
                       uint64_t deadline_ns) {
        struct iovec iov = {.iov_base = (void *) (uintptr_t) packet, .iov_len = sizeof *packet};
        union {
                struct cmsghdr header;
                char space[RIGHTS_SPACE(PEER_FDS_MAX)];
        } control = {};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (n_fds)
                rights_put(&m, &control, fds, n_fds);
        for (;;) {
                if (sendmsg(a->peer_fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
                        return 0;
                if (errno != EAGAIN && errno != EINTR && errno != ETOOMANYREFS)
                        return failure_set_peer(&a->failure, a->peer_role, errno, "is gone: %s cannot be sent: %s",
                                                kind_name(packet->kind), strerrordesc_np(errno));
                if (agent_now_ns() >= deadline_ns)
                        return failure_set_peer(&a->failure, a->peer_role, ETIMEDOUT,
                                                "does not read: %s cannot be sent in time", kind_name(packet->kind));
                int r = agent_wait(a, agent_now_ns() + NSEC_PER_MSEC, 0);
                if (r < 0)
                        return r;
        }
}

int peer_send(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t value, uint64_t deadline_ns) {
        struct peer_packet packet = {.kind = kind, .thread = thread, .value = value};
        return send_packet(a, &packet, NULL, 0, deadline_ns);
}

int peer_send_fds(struct agent *a, uint32_t thread, const int *fds, unsigned n_fds, uint64_t deadline_ns) {
        struct peer_packet packet = {.kind = PEER_TRANSPORT, .thread = thread};
        return send_packet(a, &packet, fds, n_fds, deadline_ns);
}

/* A standstill of the machine stops the peer, too: the deadline is extended. */
static bool extend_deadline(uint64_t began_ns, uint64_t *deadline_ns) {
        uint64_t now_ns = agent_now_ns(), due_ns = *deadline_ns > began_ns ? *deadline_ns : began_ns;
        if (!standstill_between(due_ns, now_ns))
                return false;
        *deadline_ns = now_ns + ONCE_MORE_NS;
        return true;
}

/* Receives one packet before the deadline. *ret_n_fds descriptors are the caller's, also on failure. */
static int receive_packet(struct agent *a, struct peer_packet *ret, const char *expected, int *fds, unsigned *ret_n_fds,
                          uint64_t deadline_ns) {
        union {
                struct cmsghdr header;
                char space[RIGHTS_SPACE(PEER_FDS_MAX)];
        } control;
        struct iovec iov = {.iov_base = ret, .iov_len = sizeof *ret};

        for (;;) {
                struct msghdr m = {
                        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
                /* MSG_TRUNC: the packet's own length, also where it is longer than the room for it */
                ssize_t n = recvmsg(a->peer_fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
                if (n > 0) {
                        unsigned came = rights_take(&m, fds, PEER_FDS_MAX);
                        *ret_n_fds = came < PEER_FDS_MAX ? came : PEER_FDS_MAX;
                        if (n != sizeof *ret || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
                                return failure_set_peer(&a->failure, a->peer_role, EBADMSG,
                                                        "sent a packet of %zd bytes%s where %zu were due", n,
                                                        m.msg_flags & MSG_CTRUNC ? " whose descriptors do not fit here"
                                                                                 : "",
                                                        sizeof *ret);
                        return 0;
                }
                if (n == 0)
                        return failure_set_peer(&a->failure, a->peer_role, ECONNRESET, "is gone before it sent %s",
                                                expected);
                if (errno == ECONNRESET) /* it left packets unread: reported once, ahead of what it sent */
                        continue;
                if (errno != EAGAIN && errno != EINTR)
                        return failure_set_peer(&a->failure, a->peer_role, errno, "cannot be received from: %s",
                                                strerrordesc_np(errno));
                uint64_t began_ns = agent_now_ns();
                int r = agent_wait(a, deadline_ns, WAIT_PEER);
                if (r < 0)
                        return r;
                if (r == 0 && !extend_deadline(began_ns, &deadline_ns))
                        return failure_set_peer(&a->failure, a->peer_role, ETIMEDOUT, "did not send %s in time",
                                                expected);
        }
}

static int receive_expected(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t *ret_value, int *ret_fds,
                            unsigned n_fds, uint64_t deadline_ns) {
        struct peer_packet packet;
        int fds[PEER_FDS_MAX];
        unsigned n = 0;

        int r = receive_packet(a, &packet, kind_name(kind), fds, &n, deadline_ns);
        if (r == 0 && (packet.kind != (uint32_t) kind || packet.thread != thread || n != n_fds))
                r = failure_set_peer(&a->failure, a->peer_role, EBADMSG,
                                     "sent an unexpected packet: %s of thread %" PRIu32
                                     " with %u descriptors where %s of thread %" PRIu32 " with %u was due",
                                     kind_name(packet.kind), packet.thread, n, kind_name(kind), thread, n_fds);
        if (r < 0) {
                for (unsigned i = 0; i < n; i++)
                        (void) util_close(fds[i]);
                return r;
        }
        for (unsigned i = 0; i < n; i++)
                ret_fds[i] = fds[i];
        if (ret_value)
                *ret_value = packet.value;
        return 0;
}

int peer_receive(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t *ret_value, uint64_t deadline_ns) {
        return receive_expected(a, kind, thread, ret_value, NULL, 0, deadline_ns);
}

int peer_receive_fds(struct agent *a, uint32_t thread, int *ret_fds, unsigned n_fds, uint64_t deadline_ns) {
        return receive_expected(a, PEER_TRANSPORT, thread, NULL, ret_fds, n_fds, deadline_ns);
}

bool peer_is_packet_socket(int fd) {
        int type;
        socklen_t length = sizeof type;
        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}
