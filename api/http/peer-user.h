/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_PEER_USER_H
#define IPCLAB_API_PEER_USER_H

/*
 * The user at the other end of a connection. The kernel knows the owner of a unix socket, and of a TCP socket in the
 * daemon's own network namespace, where clients on loopback are.
 *
 * Source: unix(7) (SO_PEERCRED), sock_diag(7).
 */

#include <sys/types.h>

/* A netlink socket for queries about TCP sockets (sock_diag); negative errno, as without AF_NETLINK. */
int peer_user_open(void);

/* -ENOENT: the kernel has no such socket, as in another network namespace; -EBADF: TCP, and diag_fd is negative;
 * another negative errno. */
int peer_user(int diag_fd, int fd, uid_t *ret);

#endif
