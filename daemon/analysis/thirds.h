/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_THIRDS_H
#define IPCLAB_DAEMON_ANALYSIS_THIRDS_H

/*
 * Whether a per-second series (messages per second, in order) has settled, judged from its ends: all that so few values
 * allow. segments.h finds what lies between them, where there are counts ten times a second.
 */

#include <stddef.h>

enum series_verdict {
        SERIES_STEADY,
        SERIES_UNSTEADY,
        SERIES_TOO_SHORT, /* to be judged: fewer than SERIES_JUDGED_FROM */
        SERIES_UNCLEAR,   /* fewer than 6, which scatter so much that nobody can tell */
};
#define SERIES_JUDGED_FROM 3

/*
 * The first and the last third are steady when they differ by no more than `tolerance` or, from 6 values on, by no more
 * than the scatter within them. Of fewer values a third is a single one: that two of these agree means something only
 * where the series as a whole scatters by no more than the tolerance; and that they differ, where a straight line rises
 * or falls, or the first value lies apart from the others, by more than scatter alone does in 19 of 20 series.
 * Source: Draper & Smith, Applied Regression Analysis, ch. 1 (Student's t of a slope, and of a further observation).
 */
enum series_verdict series_judge(const double *values, size_t n, double tolerance);

#endif
