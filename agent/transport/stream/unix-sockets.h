/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_UNIX_SOCKETS_H
#define IPCLAB_AGENT_UNIX_SOCKETS_H

/* The ways to send a message through a Unix socket (unix-modes.c), for the transports in unix.c. */

#include "agent/transport/transport.h"

#include <stdbool.h>

/* Whether this run sends a message in several packets. */
bool unix_chunked(const struct agent *a);

/* Parts of struct transport_ops. Loops: by the set-up's transport, copy mode and chunks. */
const struct transport_loops *unix_loops(const struct agent *a);
int unix_attach(struct worker *w);
void unix_detach(struct worker *w);
int unix_pages(const struct agent *a, struct page_list *list);
/* Adds send_method and fields of an end that sends. */
void unix_modes_effective(const struct agent *a, struct effective *e);

#endif
