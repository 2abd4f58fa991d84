/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PIPES_H
#define IPCLAB_AGENT_PIPES_H

/* What pipes and FIFOs have in common once they are open: their size, the need for descriptors, the report. */

#include <stdint.h>

struct agent;
struct json_writer;

/* Room for n more descriptors in this process: raises the soft limit. 0; negative errno with a->failure. */
int pipes_reserve_descriptors(struct agent *a, uint32_t n);
/* How many directions a channel has: 1 for a stream, 2 for a pingpong. */
unsigned pipes_directions(const struct agent *a);
/* Gives a pipe the set-up's pipe_size, if it has one. 0; negative errno with a->failure. */
int pipes_set_size(struct agent *a, int fd);
/* Effective sizes: pipe_size, and pipe_size_max where the pipes differ. */
void pipes_effective(const struct agent *a, struct json_writer *w);

#endif
