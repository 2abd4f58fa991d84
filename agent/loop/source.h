/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where a sender's bytes come from (`source`). A hot message always lies in the same memory, which the CPU's caches
 * keep; it costs less to read than what a real program has just received or computed elsewhere. A cold source is so
 * many messages' memory, used in turn, that their bytes are twice those of the last cache: when the first one's turn
 * comes again, the caches hold others. The CPU may prefetch, as it may for a program that walks through its data.
 *
 * Messages in one piece lie in an area of the worker's own, with a page before them and at least a line between two of
 * them, unless they are whole sectors of a file, which follow each other: a mechanism may write its header before a
 * message. Messages that are assembled have a struct fields with as many sets of fields.
 */

#include "agent/base/worker.h"

struct agent;
struct effective;

/* For a worker that sends from a cold source, in its thread, before the transport's attach; nothing for others. 0;
 * negative errno with w->failure. */
int source_new(struct worker *w);
void source_free(struct worker *w);

/* Adds the rows of an end that sends messages. */
void source_effective(const struct agent *a, struct effective *e);
