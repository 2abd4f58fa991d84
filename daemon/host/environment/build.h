/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Identifies the build that measures: the commit that it was made from, and the SHA-256 of the daemon's and the agent's
 * program as they run. A version does not suffice: a loop that was compiled anew is another one. Read once, at the
 * start.
 */

#include "schema/facts.h"

#include <nettle/sha2.h>

struct json_writer;

struct build_digest {
        char text[2 * SHA256_DIGEST_SIZE + 1]; /* "": not known */
        char reason[120];                      /* why */
};

struct build {
        struct build_digest daemon, agent;
};

/* agent_fd: the agent's program (daemon/run/spawn/program.h), read for its digest alone. A program that cannot
 * be read has its reason. */
void build_take(struct build *b, int agent_fd);

/* The value of a row of build_rows; NULL: not known, with the reason in *ret_reason. */
const char *build_value(const struct build *b, enum build_fact fact, const char **ret_reason);

/* Whether a stored "build" object (NULL: none) is of another one, as far as both are known. */
struct json;
bool build_differs(const struct build *b, const struct json *stored);

/* The "build" object of a run's environment, as the next value of one under construction. */
void build_put(const struct build *b, struct json_writer *w);
