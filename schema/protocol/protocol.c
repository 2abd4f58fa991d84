/* SPDX-License-Identifier: MIT */

/* Messages over the socket, each with a deadline. Called by the runner and by the agent's leader. */

#include "schema/protocol/protocol.h"

#include "schema/util.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* Waits until the socket can be read or written, or the deadline has passed. */
static int wait_for(int fd, short events, uint64_t deadline_ns) {
        for (;;) {
                uint64_t now = util_now_ns();
                if (now >= deadline_ns)
                        return -ETIMEDOUT;
                uint64_t left = deadline_ns - now;
                struct timespec timeout = {.tv_sec = (time_t) (left / NSEC_PER_SEC),
                                           .tv_nsec = (long) (left % NSEC_PER_SEC)};
                struct pollfd p = {.fd = fd, .events = events};
                int n = ppoll(&p, 1, &timeout, NULL);
                if (n > 0)
                        return 0; /* errors too: the call that follows returns them */
                if (n < 0 && errno != EINTR)
                        return -errno;
        }
}

/* Room for the descriptors of one packet, and no more. */
union rights_space {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * PERF_HANDLES_MAX)];
};

static ssize_t send_packet(int fd, const uint8_t *data, size_t length, const struct message_rights *rights) {
        union rights_space control = {.space = {0}};
        struct iovec iov = {.iov_base = (void *) (uintptr_t) data, .iov_len = length};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (rights && rights->n > 0) {
                size_t bytes = rights->n * sizeof(int);
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(bytes);
                control.header = (struct cmsghdr){
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(bytes)};
                memcpy(CMSG_DATA(&control.header), rights->fds, bytes);
        }
        return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int message_send(int fd, const struct message *m, uint64_t deadline_ns) {
        return message_send_with(fd, m, NULL, deadline_ns);
}

int message_send_with(int fd, const struct message *m, const struct message_rights *rights, uint64_t deadline_ns) {
        _cleanup_free_ uint8_t *data = NULL;
        size_t length;

        int r = message_encode(m, &data, &length);
        if (r < 0)
                return r;
        for (;;) {
                ssize_t n = send_packet(fd, data, length, rights);
                if (n >= 0)
                        return 0; /* a packet goes as a whole */
                if (errno == EPIPE || errno == ECONNRESET)
                        return -ECONNRESET;
                if (errno == EINTR)
                        continue;
                if (errno != EAGAIN)
                        return -errno;
                if (deadline_ns == 0)
                        return -EAGAIN;
                r = wait_for(fd, POLLOUT, deadline_ns);
                if (r < 0)
                        return r;
        }
}

/* Ancillary data of a packet: descriptors, or the sender's credentials. The caller wants one of the two, or neither. */
struct beside {
        struct message_rights *rights;
        struct ucred *sender; /* unchanged where the kernel sent none: the socket lacks SO_PASSCRED */
};

union sender_space {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
};

/* The kernel drops descriptors that it has no room for. */
static ssize_t receive_packet(int fd, uint8_t *data, const struct beside *beside) {
        union {
                union rights_space rights;
                union sender_space sender;
        } control;
        struct message_rights *rights = beside->rights;
        struct iovec iov = {.iov_base = data, .iov_len = PROTOCOL_PACKET_MAX};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (rights) {
                rights->n = 0;
                m.msg_control = &control;
                m.msg_controllen = CMSG_LEN(sizeof(rights->fds));
        } else if (beside->sender) {
                m.msg_control = &control;
                m.msg_controllen = CMSG_LEN(sizeof(struct ucred));
        }
        ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
        /* The other side closed without reading all of ours: reported once, ahead of what it has sent itself. */
        if (n < 0 && errno == ECONNRESET)
                n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
        const struct cmsghdr *c = n >= 0 && m.msg_control ? CMSG_FIRSTHDR(&m) : NULL;
        if (!c || c->cmsg_level != SOL_SOCKET)
                return n;
        if (beside->sender && c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof(struct ucred)))
                memcpy(beside->sender, CMSG_DATA(c), sizeof(struct ucred));
        if (rights && c->cmsg_type == SCM_RIGHTS) {
                rights->n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(rights->fds, CMSG_DATA(c), rights->n * sizeof(int));
        }
        return n;
}

/* -EAGAIN: there is none. */
static int take_packet(int fd, uint8_t *data, struct message *ret, const struct beside *beside, char *ret_detail) {
        ssize_t n = receive_packet(fd, data, beside);
        if (n > (ssize_t) PROTOCOL_PACKET_MAX) {
                if (ret_detail)
                        snprintf(ret_detail, 200, "a packet of %zd bytes, at most %u are allowed", n,
                                 PROTOCOL_PACKET_MAX);
                return -EBADMSG;
        }
        if (n > 0)
                return message_decode(data, (size_t) n, ret, ret_detail);
        if (n == 0 || errno == ECONNRESET)
                return -ECONNRESET;
        return -errno;
}

void message_rights_close(struct message_rights *rights) {
        while (rights->n > 0)
                (void) util_close(rights->fds[--rights->n]);
}

static int receive(int fd, struct message *ret, const struct beside *beside, uint64_t deadline_ns, char *ret_detail) {
        _cleanup_free_ uint8_t *data = malloc(PROTOCOL_PACKET_MAX);
        if (!data)
                return -ENOMEM;
        for (;;) {
                int r = take_packet(fd, data, ret, beside, ret_detail);
                if (r < 0 && beside->rights)
                        message_rights_close(beside->rights);
                if (r == -EINTR)
                        continue;
                if (r != -EAGAIN || deadline_ns == 0)
                        return r;
                r = wait_for(fd, POLLIN, deadline_ns);
                if (r < 0)
                        return r;
        }
}

int message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail) {
        return receive(fd, ret, &(struct beside){NULL, NULL}, deadline_ns, ret_detail);
}

int message_receive_with(int fd, struct message *ret, struct message_rights *rights, uint64_t deadline_ns,
                         char *ret_detail) {
        return receive(fd, ret, &(struct beside){.rights = rights}, deadline_ns, ret_detail);
}

int message_receive_from(int fd, struct message *ret, struct ucred *ret_sender, char *ret_detail) {
        *ret_sender = (struct ucred){.pid = 0, .uid = (uid_t) -1, .gid = (gid_t) -1};
        return receive(fd, ret, &(struct beside){.sender = ret_sender}, 0, ret_detail);
}
