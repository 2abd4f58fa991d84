/* SPDX-License-Identifier: MIT */

#include "daemon/run/blocks.h"

#include "daemon/run/sequence.h"
#include "schema/util.h"

#include <errno.h>

/* A search's rates are points, too, behind the others. */
static int read_groups(struct store *s, int64_t experiment_id, const struct spec *spec, uint32_t **ret, size_t *ret_n) {
        _cleanup_free_ struct point *points = NULL;
        *ret = NULL;
        *ret_n = 0;
        if (!spec_compares_points(spec))
                return 0;
        int r = store_read_points(s, experiment_id, &points, ret_n);
        return r == 0 ? points_group(spec, points, *ret_n, ret) : r;
}

int blocks_groups(struct store *s, int64_t experiment_id, const struct spec *spec, uint32_t **ret) {
        size_t n;
        return read_groups(s, experiment_id, spec, ret, &n);
}

int blocks_rate_groups(struct store *s, int64_t experiment_id, const struct spec *spec, const struct search_decision *d,
                       uint32_t **ret) {
        _cleanup_free_ uint32_t *of_points = NULL;
        size_t n_points;
        *ret = NULL;
        int r = read_groups(s, experiment_id, spec, &of_points, &n_points);
        if (r < 0 || !of_points)
                return r;
        _cleanup_free_ uint32_t *groups = reallocarray(NULL, d->n + 1, sizeof(*groups));
        if (!groups)
                return -ENOMEM;
        for (size_t i = 0; i < d->n; i++) {
                if (d->rates[i].ordinal >= n_points)
                        return -EBADMSG;
                groups[i] = of_points[d->rates[i].ordinal];
        }
        *ret = util_steal(&groups);
        return 0;
}

int blocks_add(struct store *s, int64_t experiment_id, const struct spec *spec, const struct until_decision *d,
               const uint32_t *groups) {
        struct experiment_extent extent = {0};
        _cleanup_free_ uint32_t *points = NULL;
        int r = store_read_extent(s, experiment_id, &extent);
        if (r == 0)
                r = sequence_make(spec->order, extent.seed, groups, extent.n_points, extent.repetitions, d->more,
                                  &points);
        if (r == 0)
                r = store_extend_some(s, experiment_id,
                                      &(struct extension){.order = points,
                                                          .n_points = extent.n_points,
                                                          .first_repetition = extent.repetitions + 1,
                                                          .repetitions = d->more,
                                                          .in_blocks = spec->order == ORDER_BLOCKS,
                                                          .until_json = d->json},
                                      &(struct request_record){0});
        experiment_extent_deinit(&extent);
        return r < 0 ? r : 0; /* housekeeping adds the others */
}

int blocks_add_rates(struct store *s, const struct experiment_record *e, const struct spec *spec,
                     const struct search_decision *d, const uint32_t *groups) {
        _cleanup_free_ uint32_t *points = NULL;
        /* the number of runs serves as that of the blocks before, so that each step has orders of its own */
        int r = sequence_make(spec->order, e->seed, groups, d->n, e->runs_total, spec->repetitions, &points);
        if (r == 0)
                r = store_extend_some(s, e->id,
                                      &(struct extension){.order = points,
                                                          .n_points = d->n,
                                                          .first_repetition = 1,
                                                          .repetitions = spec->repetitions,
                                                          .in_blocks = spec->order == ORDER_BLOCKS,
                                                          .rates = d->rates,
                                                          .until_json = d->json},
                                      &(struct request_record){0});
        return r < 0 ? r : 0; /* housekeeping adds the others */
}
