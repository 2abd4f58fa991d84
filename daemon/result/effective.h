/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The sizes and modes that were in force: a chunk's bytes, a pipe's, how a file was synced. The
 * reports of a run's agents go into its result, and those of a point's runs into its row, so that no figure is read
 * without them.
 */

#include "schema/protocol/protocol.h"

struct json_part;
struct json_writer;

/* Settings that the table of results knows, in the order in which it shows them. */
#define EFFECTIVE_COUNT 38

/* The name of setting i; NULL from EFFECTIVE_COUNT on. */
const char *effective_name(size_t i);

/* Settings that the daemon itself knows; each may be absent. */
struct effective_known {
        const int32_t *cpu;       /* of a context switch, which has one whatever the placement */
        const char *round_trip;   /* the moment that round trips are timed from */
        double rate;              /* messages per second that were due; 0: a closed loop, which has none */
        const char *threads_json; /* how many moved anything, by role */
};

/* Writes member "effective" of an object under construction from the reports of a run's agents (NULL where there is no
 * such end; `sender` sends) and from the values that the daemon knows. */
void result_effective_to_json(const struct message_report *const reports[END_COUNT], enum end sender,
                              const struct effective_known *known, struct json_writer *w);

/* The distinct values of each setting over a point's runs, as JSON, in the order in which they appeared. */
struct effective_values {
        struct {
                char **texts;
                size_t n;
        } of[EFFECTIVE_COUNT];
};

/* Adds those of a run's result; a result of a version without "effective" adds nothing. 0, -EBADMSG or -ENOMEM.
 */
int effective_values_add(struct effective_values *v, const struct json_part *result);
/* An object: a setting's value where the runs agree, else the list of them; malloc()ed. 0 or -ENOMEM. */
int effective_values_print(const struct effective_values *v, char **ret);
void effective_values_deinit(struct effective_values *v);
