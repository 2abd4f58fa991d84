/* SPDX-License-Identifier: MIT */
#pragma once

/* The point of each run of an experiment, in the order in which the runs are executed; for its submission and for later
 * extensions. */

#include "schema/terms.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The runs of `n` repetitions after the first `done` of them: n * n_points indices of points, malloc()ed. Each
 * repetition has every point once; in blocks, points of one group (points_group(); NULL: all are of one) follow each
 * other, so that what is compared was measured at nearly the same time. The same order, seed and numbers give the same
 * sequence, so that an experiment that is extended runs as if it had been submitted so. 0; -EINVAL where there is
 * nothing to run; -ENOMEM.
 */
int sequence_make(enum spec_order order, uint64_t seed, const uint32_t *groups, size_t n_points, uint32_t done,
                  uint32_t n, uint32_t **ret);
