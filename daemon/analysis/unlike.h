/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_UNLIKE_H
#define IPCLAB_DAEMON_ANALYSIS_UNLIKE_H

/*
 * In which settings rows that are held against each other are unlike, beside what they are compared by: the one list,
 * and the one writer, of findings, comparisons and advice.
 */

#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Settings of a row's runs, as they were in force. */
struct in_force {
        double chunk_bytes;  /* the message goes in pieces of this size; 0: whole */
        double buffer_bytes; /* of the mechanism; 0: not known */
        double gather_ns;    /* that its reader lets messages gather for; 0: not at all */
        double page_bytes;   /* of the pages that hold most of its rings; 0: not known; -1: its runs differ */
        bool stamped;        /* messages carry the time of their sending: both ends read the clock for each */
};

struct unlike_row {
        const struct point *point;
        const struct in_force *in_force;
        const char *name; /* "pipe", "the candidate"; rows of one name are one thing */
};

/* Writes `before` and what is unlike, "fields 4 is of tcp alone; buffers of 64 KiB (pipe), 1 MiB (tcp)", without a full
 * stop. `with_axes`: the names do not contain the axes that have a meaning for some of the rows alone. False: nothing
 * is unlike, and nothing was written. */
bool unlike_write(FILE *f, const struct unlike_row *rows, size_t n, bool with_axes, const char *before);

#endif
