/* SPDX-License-Identifier: MIT */
#pragma once

/* Descriptors that a packet carries (SCM_RIGHTS, man 7 unix). Inline: memory that is handed over has one in each
 * message. */

#include "schema/util.h"

#include <string.h>
#include <sys/socket.h>

#define RIGHTS_SPACE(n) CMSG_SPACE((n) * sizeof(int))

/* Lays n descriptors, at least one, into the control space of a message to be sent: RIGHTS_SPACE(n) bytes. */
static inline void rights_put(struct msghdr *m, void *control, const int *fds, unsigned n) {
        m->msg_control = control;
        m->msg_controllen = RIGHTS_SPACE(n);
        struct cmsghdr *c = CMSG_FIRSTHDR(m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
}

/* Takes the descriptors of a received message: the first `most` into fds, any others are closed. Returns how many there
 * were. */
static inline unsigned rights_take(struct msghdr *m, int *fds, unsigned most) {
        unsigned n = 0;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int), n++) {
                        int fd;
                        memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
                        if (n < most)
                                fds[n] = fd;
                        else
                                (void) util_close(fd);
                }
        }
        return n;
}
