/* SPDX-License-Identifier: MIT */
#pragma once

/* Lists the differences between two environments, and between two specs: the headline of a comparison. */

#include "daemon/analysis/compare.h"

/* One member that differs, as JSON; NULL: that side has no such member. */
struct difference {
        char *key;
        char *values[SIDE_COUNT];
        bool unlike; /* figures cannot be compared across it without `force` */
};

struct difference_list {
        struct difference *items;
        size_t n;
};

/* Each appends to *list, which stays the caller's in any case. 0; -EBADMSG: one is no JSON object; -ENOMEM. */

/* Compares environments of runs as they are stored ({"before": …}), or NULL. The state of a moment (load, counters) is
 * left out. A fact that one side does not know, or that does not change what is measured (the boot), is listed and is
 * not unlike. */
int difference_environments(const char *baseline, const char *candidate, struct difference_list *list);
/* Compares the environments of two runs of one experiment in one fact, in which the second has a flag: it was another
 * before the run or after it, or, with no value, at some moment within it. */
int difference_flagged(const char *key, const char *first, const char *run, struct difference_list *list);
/* Whether a fact, or a part of it, is in the list. */
bool difference_listed(const struct difference_list *list, const char *key);
/* Compares stored specs: settings of the whole experiment. Axes are matched by point; the members of SPEC_INCIDENTAL do
 * not change what is measured. No difference is unlike: it may be the subject of the comparison. */
int difference_specs(const char *baseline, const char *candidate, struct difference_list *list);
/* One text of each side. */
int difference_texts(const char *key, const char *baseline, const char *candidate, bool unlike,
                     struct difference_list *list);
void difference_list_deinit(struct difference_list *list);
