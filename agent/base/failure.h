/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_FAILURE_H
#define IPCLAB_AGENT_FAILURE_H

/* Why the agent gives up: whose fault it is, one errno and one sentence for a person. The first failure is the cause
 * and stays. */

#include "schema/limits.h"
#include "schema/protocol/protocol.h"

struct failure {
        enum fault fault;
        int error;        /* errno; 0 when there is none */
        char detail[400]; /* "" = no failure */
};

/* Fills *f unless it is filled already. Returns -error, or -EIO when error is 0, so that `return failure_set(…)` reads
 * well. */
int failure_set(struct failure *f, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same with the sentence of limit_sentence(). */
int failure_limit(struct failure *f, int error, enum host_limit limit, uint64_t have, uint64_t need, const char *why);
/* The same of what the other agent did or did not do. The sentence begins with "peer ROLE ", and format goes on. */
int failure_blame(struct failure *f, const char *peer_role, int error, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
/* What befell a worker is the leader's failure too, as it is. */
int failure_adopt(struct failure *f, const struct failure *from);

#endif
