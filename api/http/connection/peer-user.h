/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The user at the other end of a connection, what it has not read yet, and whether it has gone. The kernel knows the
 * owner of a unix socket, and of a TCP socket in the daemon's own network namespace, where clients on loopback are.
 *
 * Source: unix(7) (SO_PEERCRED), sock_diag(7), tcp(7) (SIOCOUTQ).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A netlink socket for queries about TCP sockets (sock_diag); negative errno, as without AF_NETLINK. */
int peer_user_open(void);

/* -ENOENT: the kernel has no such socket, as in another network namespace, or no process has it open any more; -EBADF:
 * TCP, and diag_fd is negative; another negative errno. */
int peer_user(int diag_fd, int fd, uid_t *ret);

/* How many of the bytes sent on that connection wait for the other end, its receive buffer included where peer_user()
 * finds its socket. While nothing is sent, it changes only when they are taken: of a unix socket one piece of those
 * that it was given by send() at a time, of a TCP socket that is not found as they are acknowledged. Negative errno. */
int peer_untaken(int diag_fd, int fd, uint64_t *ret);

/* Whether the other end is closed as a whole, and not only for what it sends. Of a TCP socket that peer_user() does not
 * find it is known when the other end refuses what is sent to it. */
bool peer_has_closed(int diag_fd, int fd);
