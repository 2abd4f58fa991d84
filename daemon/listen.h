/* SPDX-License-Identifier: MIT */
#pragma once

/* The daemon's listening sockets, from systemd or made here. */

#include "daemon/config.h"

#include <sys/types.h>

struct listeners {
        int unix_fd;         /* -1: none */
        int tcp_fd;          /* -1: none */
        char *socket_path;   /* NULL when there is no unix socket */
        dev_t socket_device; /* of the file, which somebody may remove or replace */
        ino_t socket_inode;  /* 0: not known */
        char *url;           /* "http://127.0.0.1:8620/", NULL without TCP; the real port */
        char *tcp_problem;   /* why there was no TCP at first, though it is wanted, and why there is none now; else NULL
                              */
        bool made_unix;      /* to be removed at the end, unlike systemd's */
};

/* Sockets from systemd override `socket`, `socket_group` and `listen`, with a notice in the log where they differ;
 * listen = none closes TCP in any case. Any local user may take the port first, which does not keep the daemon from
 * starting. 0, or a negative errno with a sentence in ret_detail[DETAIL_MAX]: -EADDRINUSE when another process accepts
 * connections on the unix socket. */
int listeners_open(const struct config *c, struct listeners *ret, char *ret_detail);
/* Opens TCP where the port was taken, or could not be served. 0; -EADDRINUSE: it still is; other negative errno with a
 * sentence in ret_detail[DETAIL_MAX]. */
int listeners_open_tcp(const struct config *c, struct listeners *l, char *ret_detail);
/* The path of the unix socket, if it no longer leads to it; else NULL. In any thread. */
const char *listeners_lost_socket(const struct listeners *l);
/* Closes what is still open (a descriptor that has another owner by then must be -1) and removes the socket file. */
void listeners_close(struct listeners *l);
