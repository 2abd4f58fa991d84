/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The common parts of pipes and FIFOs: their size, the report, and, once they are open, the ways to send a message
 * through them.
 */

#include <stdint.h>

struct agent;
struct effective;
struct page_list;
struct worker;

/* Sets a pipe's size to the set-up's pipe_size, if it has one. 0; negative errno with a->failure. */
int pipes_set_size(struct agent *a, int fd);
/* Adds the sending end's send_method, and fields, or pool_buffers and pool_bytes; and the effective sizes: pipe_size,
 * and pipe_size_max where the pipes differ. */
void pipes_effective(const struct agent *a, struct effective *e);

/* The rest are parts of struct transport_ops. Loops: by the set-up's copy mode. */
const struct transport_loops *pipes_loops(const struct agent *a);
int pipes_attach(struct worker *w);
void pipes_detach(struct worker *w);
int pipes_pages(const struct agent *a, struct page_list *list);
