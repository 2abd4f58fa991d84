/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_TRANSPORTS_H
#define IPCLAB_TESTS_TRANSPORTS_H

/* Lists of transports from their table, so that a new row is in each to which it belongs. */

#include "schema/terms.h"
#include "schema/util.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Fills ret with the transports that are wanted, and returns their number. */
static inline size_t transports_where(bool (*is_wanted)(const struct transport_term *t),
                                      enum transport ret[TRANSPORT_COUNT]) {
        size_t n = 0;
        for (enum transport t = 0; t < TRANSPORT_COUNT; t++)
                if (is_wanted(&transport_terms[t]))
                        ret[n++] = t;
        return n;
}

/* Whether a field of a spec, a copy mode or an option has a meaning for a transport. */
static inline bool transport_has(const struct transport_term *t, const char *name) {
        const struct {
                const char *name;
                bool has;
        } rows[] = {
                {"wait", t->has_wait},
                {"engine", t->has_engine},
                {"direction", t->has_direction},
                {"queue_depth", t->has_queue},
                {"chunk", t->delivery == DELIVERY_WHOLE},
                {"one-copy", t->copy_modes & 1u << COPY_ONE},
                {"zero-copy", t->copy_modes & 1u << COPY_ZERO},
                {"copy_mode", t->copy_modes != 0},
                {"pipe_size", t->options & OPTION(PIPE_SIZE)},
                {"memfd", t->options & OPTION(MEMFD)},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++)
                if (strcmp(rows[i].name, name) == 0)
                        return rows[i].has;
        return false;
}

/* The transports for which it has one, as a sentence lists them: "pipe, fifo and tcp". Valid until the next call. */
static inline const char *transports_with(const char *name) {
        static char text[TRANSPORT_COUNT * 32];
        size_t n = 0, left = 0, length = 0;
        for (enum transport t = 0; t < TRANSPORT_COUNT; t++)
                left += transport_has(&transport_terms[t], name);
        for (enum transport t = 0; t < TRANSPORT_COUNT; t++)
                if (transport_has(&transport_terms[t], name)) {
                        const char *joint = n++ == 0 ? "" : left == 1 ? " and " : ", ";
                        left--;
                        length += (size_t) snprintf(text + length, sizeof(text) - length, "%s%s", joint,
                                                    transport_terms[t].name);
                }
        return n ? text : "none";
}

#endif
