/* SPDX-License-Identifier: MIT */

/* Queries the kernel for one socket by its two addresses, one lookup in its hash table; called by relay.c. */

#include "api/http/connection/peer-user.h"

#include "schema/util.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define REPLY_MAX 4096u

int peer_user_open(void) {
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
        return fd < 0 ? -errno : fd;
}

/* One end of the connection, as the other end's socket has it. */
static int read_end(const struct sockaddr_storage *address, __be16 *ret_port, __be32 ret_words[static 4]) {
        if (address->ss_family == AF_INET) {
                const struct sockaddr_in *in = (const struct sockaddr_in *) address;
                *ret_port = in->sin_port;
                memcpy(ret_words, &in->sin_addr, sizeof(in->sin_addr));
        } else if (address->ss_family == AF_INET6) {
                const struct sockaddr_in6 *in = (const struct sockaddr_in6 *) address;
                *ret_port = in->sin6_port;
                memcpy(ret_words, &in->sin6_addr, sizeof(in->sin6_addr));
        } else {
                return -EAFNOSUPPORT;
        }
        return 0;
}

static int send_question(int diag_fd, const struct sockaddr_storage *peer, const struct sockaddr_storage *own) {
        struct {
                struct nlmsghdr header;
                struct inet_diag_req_v2 body;
        } question = {.header = {.nlmsg_len = sizeof(question),
                                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                 .nlmsg_flags = NLM_F_REQUEST},
                      .body = {.sdiag_family = (__u8) peer->ss_family,
                               .sdiag_protocol = IPPROTO_TCP,
                               .idiag_states = ~0u,
                               .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
        struct inet_diag_sockid *id = &question.body.id;
        int k = read_end(peer, &id->idiag_sport, id->idiag_src);
        if (k >= 0)
                k = read_end(own, &id->idiag_dport, id->idiag_dst);
        if (k >= 0 && send(diag_fd, &question, sizeof(question), MSG_DONTWAIT) != (ssize_t) sizeof(question))
                k = -errno;
        return k;
}

/* The answer is there when send() has returned. */
static int read_answer(int diag_fd, struct inet_diag_msg *ret) {
        union {
                struct nlmsghdr header;
                char bytes[REPLY_MAX];
        } reply;
        ssize_t n = recv(diag_fd, &reply, sizeof(reply), MSG_DONTWAIT);
        if (n < 0)
                return -errno;
        if (!NLMSG_OK(&reply.header, (size_t) n))
                return -EBADMSG;
        if (reply.header.nlmsg_type == NLMSG_ERROR && reply.header.nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
                const struct nlmsgerr *error = NLMSG_DATA(&reply.header);
                return error->error < 0 ? error->error : -EBADMSG;
        }
        if (reply.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            reply.header.nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
                return -EBADMSG;
        memcpy(ret, NLMSG_DATA(&reply.header), sizeof(*ret));
        return 0;
}

/* The socket at the other end. -EAFNOSUPPORT: it is none of TCP. */
static int find_peer(int diag_fd, int fd, struct inet_diag_msg *ret) {
        struct sockaddr_storage peer = {0}, own = {0};
        socklen_t length = sizeof(peer), own_length = sizeof(own);
        if (getpeername(fd, (struct sockaddr *) &peer, &length) < 0 ||
            getsockname(fd, (struct sockaddr *) &own, &own_length) < 0)
                return -errno;
        int k = send_question(diag_fd, &peer, &own);
        return k < 0 ? k : read_answer(diag_fd, ret);
}

/* No process has a socket without an inode open. */
static bool has_no_owner(const struct inet_diag_msg *found) {
        return found->idiag_inode == 0;
}

int peer_user(int diag_fd, int fd, uid_t *ret) {
        struct inet_diag_msg found;
        int k = find_peer(diag_fd, fd, &found);
        if (k == -EAFNOSUPPORT) {
                struct ucred ucred = {0};
                socklen_t length = sizeof(ucred);
                if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &length) < 0)
                        return -errno;
                *ret = ucred.uid;
                return 0;
        }
        if (k < 0)
                return k;
        if (has_no_owner(&found)) /* the kernel may state 0, which is root */
                return -ENOENT;
        *ret = found.idiag_uid;
        return 0;
}

int peer_untaken(int diag_fd, int fd, uint64_t *ret) {
        struct inet_diag_msg found;
        int sent;
        if (ioctl(fd, SIOCOUTQ, &sent) < 0)
                return -errno;
        *ret = (uint64_t) sent + (find_peer(diag_fd, fd, &found) < 0 ? 0 : found.idiag_rqueue);
        return 0;
}

bool peer_has_closed(int diag_fd, int fd) {
        struct pollfd end = {.fd = fd, .events = POLLRDHUP};
        struct inet_diag_msg found;
        if (poll(&end, 1, 0) != 1)
                return false;
        return (end.revents & (POLLHUP | POLLERR)) || (find_peer(diag_fd, fd, &found) == 0 && has_no_owner(&found));
}
