/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PIPES_H
#define IPCLAB_AGENT_PIPES_H

/*
 * What pipes and FIFOs have in common: their size, the need for descriptors, the report (pipes.c); and, once they are
 * open, the ways a message is sent through them (pipe-modes.c).
 */

#include <stdint.h>

struct agent;
struct json_writer;
struct page_list;
struct worker;

/* Gives a pipe the set-up's pipe_size, if it has one. 0; negative errno with a->failure. */
int pipes_set_size(struct agent *a, int fd);
/* Effective sizes: pipe_size, and pipe_size_max where the pipes differ. */
void pipes_effective(const struct agent *a, struct json_writer *w);

/* The rest are parts of struct transport_ops. Loops: by the set-up's copy mode. */
const struct transport_loops *pipes_loops(const struct agent *a);
int pipes_attach(struct worker *w);
void pipes_detach(struct worker *w);
int pipes_pages(const struct agent *a, struct page_list *list);
/* How the sending end sends: send_method; fields, or pool_buffers and pool_bytes. Part of pipes_effective(). */
void pipes_modes_effective(const struct agent *a, struct json_writer *w);

#endif
