/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_PHRASE_H
#define IPCLAB_DAEMON_ANALYSIS_PHRASE_H

/* Figures and settings as sentences have them: three digits and the unit that suits them. */

#include "schema/spec/spec.h"

#define PHRASE_MAX 96u
#define PHRASE_SETTING_MAX (2 * PHRASE_MAX)

/* `unit` is that of the figure (schema/figures.c): "ns" becomes "2.71 µs", "bytes/s" "3.18 GB/s". "bytes" become
 * "4 KiB" where they are whole, "%" and "threads" stay. */
void phrase_value(double value, const char *unit, char ret[static PHRASE_MAX]);
/* "12 %" of 0.12, "0.4 %" of 0.004. */
void phrase_share(double share, char ret[static PHRASE_MAX]);
/* A share and both ends of its interval, with as many digits more as tell the ends apart: "69.8 %", "69.5 %", "70.1 %".
 */
void phrase_shares(const double shares[static 3], char ret[static 3][PHRASE_MAX]);
/* Three digits, and no exponent: "2.33", "35.5", "4120". */
const char *phrase_number(double value, char ret[static PHRASE_MAX]);
/* "a " or "an " before a number as these functions write it: "an 83 %", "a 70 %", "an 11 %". */
const char *phrase_article(const char *number);
/* "message size" */
void phrase_axis_name(enum axis_name axis, char ret[static PHRASE_MAX]);
/* The value of an axis in a point: "4 KiB", "unix-stream", "cross-node", {"sender": …}. */
void phrase_axis(enum axis_name axis, const struct point *p, char ret[static PHRASE_MAX]);
/* The value with the name of the axis: "queue depth 8", "working set 64 KiB". */
const char *phrase_setting(enum axis_name axis, const struct point *p, char ret[static PHRASE_SETTING_MAX]);

#endif
