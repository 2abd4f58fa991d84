/* SPDX-License-Identifier: MIT */
#pragma once

/* The ring of a worker's messages, with a batch where its queue is deeper than one. */

#include "agent/transport/uring/uring.h"

/* Makes a ring for w->send_fd, w->receive_fd and w->buffer in w->engine; in the worker's thread, which alone may use
 * the ring. buffers: how many ends register theirs for uring_write() or uring_read(), which alone can use registered
 * memory. no_buffer: NULL where this end does; else the reason, a static text. 0; negative errno with w->failure. */
int uring_attach(struct worker *w, unsigned buffers, const char *no_buffer);
void uring_detach(struct worker *w);
/* Adds this worker's ring of uring_attach(), if it has one. */
void uring_facts_add_worker(struct uring_facts *facts, const struct worker *w);
