/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_FAILURE_H
#define IPCLAB_AGENT_FAILURE_H

/* Why the agent gives up: one errno and one sentence for a person. The first failure is the cause and stays. */

struct failure {
        int error;        /* errno; 0 when there is none */
        char detail[400]; /* "" = no failure */
};

/* Fills *f unless it is filled already. Returns -error, or -EIO when error is 0, so that `return failure_set(…)` reads
 * well. */
int failure_set(struct failure *f, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
