/* SPDX-License-Identifier: MIT */
#pragma once

/* More runs for an experiment that decides itself how many it needs (`until`, `search`), and which points of a stored
 * experiment lie next to each other in a block. Called by the scheduler, and for extensions by the service. */

#include "daemon/result/search.h"
#include "daemon/result/until.h"
#include "daemon/store/store.h"
#include "schema/spec/spec.h"

/* Groups for sequence_make(), as points_group() has them: of the points that are stored. NULL where the spec compares
 * none. malloc()ed. Many points take long. -EBADMSG: a point cannot be read; errors of the store; -ENOMEM. */
int blocks_groups(struct store *s, int64_t experiment_id, const struct spec *spec, uint32_t **ret);

/* The same of the rates that were decided, by the points that they are of. Their number may differ between instances,
 * as each has a search of its own. */
int blocks_rate_groups(struct store *s, int64_t experiment_id, const struct spec *spec, const struct search_decision *d,
                       uint32_t **ret);

/* Stores the blocks that were decided, behind the others: a portion of their runs, and store_extend_more() adds the
 * others. Groups as above. */
int blocks_add(struct store *s, int64_t experiment_id, const struct spec *spec, const struct until_decision *d,
               const uint32_t *groups);

/* Stores the runs of the rates that were decided. Groups of these, as above. */
int blocks_add_rates(struct store *s, const struct experiment_record *e, const struct spec *spec,
                     const struct search_decision *d, const uint32_t *groups);
