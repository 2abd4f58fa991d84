/* SPDX-License-Identifier: MIT */
#pragma once

/* Why the agent fails: the party at fault, one errno and one sentence for a person. The first failure is the cause and
 * is not overwritten. */

#include "schema/limits.h"
#include "schema/protocol/protocol.h"

struct failure {
        enum fault fault;
        int error;        /* errno; 0 when there is none */
        char detail[400]; /* "" = no failure */
};

/* Fills *f unless it is filled already. Returns -error, or -EIO when error is 0, so that a caller can `return
 * failure_set(…)`. */
int failure_set(struct failure *f, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* failure_set() with the sentence of limit_sentence(). */
int failure_limit(struct failure *f, int error, enum host_limit limit, uint64_t have, uint64_t need, const char *why);
/* failure_set() for a fault of the other agent. The sentence begins with "peer ROLE " and continues with format. */
int failure_set_peer(struct failure *f, const char *peer_role, int error, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
/* failure_set() for a thread that cannot be started: "thread 1 of 4" or the like. */
int failure_thread(struct failure *f, int error, const char *thread);
/* Copies a worker's failure to the leader's unchanged, under failure_set()'s rule. */
int failure_adopt(struct failure *f, const struct failure *from);
