/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RESULT_UNTIL_H
#define IPCLAB_DAEMON_RESULT_UNTIL_H

/*
 * Experiments that repeat their blocks until the figure of every row is known well enough (`until` of a spec): how many
 * blocks they begin with, and after these whether more are needed. A decision follows from stored data alone, so
 * that one that a crash prevented is taken again. The decision is JSON (component Until of api/openapi).
 */

#include "daemon/store/store.h"

/* The blocks and the state of a new submission, whose block is planned to take `block_seconds`. 0 or -ENOMEM. */
int until_begin(const struct spec *spec, double block_seconds, uint32_t *ret_blocks, char **ret_json);

struct until_decision {
        uint32_t more; /* blocks to add; 0: it is over */
        char *json;    /* malloc()ed */
};

/* Decides after all of the experiment's runs have ended. 0; -EBADMSG: the stored data are inconsistent; other negative
 * errnos of the store. */
int until_decide(struct store *store, const struct experiment_record *e, const struct spec *spec,
                 struct until_decision *ret);

/* How many looks at the data a stored decision lists; NULL: none. -EBADMSG: it is none; -ENOMEM. */
int until_looks_made(const char *until_json, uint32_t *ret);

/* How many repetitions the decisions so far have required; what an experiment has beyond these was added by hand.
 * -ENODATA: a version that did not count them began it, or until_json is NULL. -EBADMSG: it is none; -ENOMEM. */
int until_asked(const char *until_json, uint32_t *ret);

#endif
