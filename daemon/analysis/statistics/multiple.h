/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_MULTIPLE_H
#define IPCLAB_DAEMON_ANALYSIS_MULTIPLE_H

/*
 * P values of many tests that one answer reports together. Holm's keep the probability of a single false alarm in the
 * whole answer below the level; Benjamini and Hochberg's keep the share of false ones among the alarms below it, for a
 * map of hundreds of cells. Sources: Holm, Scand. J. Statist. 6 (1979); Benjamini and Hochberg,
 * J. R. Statist. Soc. B 57 (1995). Same as R's p.adjust() with "holm" and "BH".
 */

#include <stddef.h>
#include <stdint.h>

enum multiple_method { MULTIPLE_HOLM, MULTIPLE_BENJAMINI_HOCHBERG, MULTIPLE_COUNT };
extern const char *const multiple_names[MULTIPLE_COUNT]; /* "holm", "benjamini-hochberg" */

/* ret[i] is the adjusted p[i]; p and ret may be the same array. looks[i]: how often test i is made before one that
 * decides ends it: each time counts as a test of its own, which all leave the family when it is found. NULL: all once.
 * -EINVAL: a p that is not within 0 … 1; -ENOMEM. */
int multiple_adjust(enum multiple_method method, const double *p, const uint32_t *looks, size_t n, double *ret);

#endif
