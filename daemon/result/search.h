/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * `search` of a spec: the highest rate of messages at which the 99th percentile of the latency stays below a limit.
 * Each point begins in a closed loop, whose rate is about the most that it can carry. Rates over all of that range
 * follow, the curve of latency over load, and then the geometric middle of the highest rate that meets the limit and
 * the lowest above it that does not, until these are near enough and each has a neighbour as near, or until
 * SPEC_SEARCH_RATES_MAX rates were tried. Each rate is a row of its own, with the repetitions of the spec. As with
 * `until`, a decision follows from stored data alone.
 */

#include "daemon/store/store.h"

#define SEARCH_PRECISION 0.02 /* how far apart the two may be */

/* The state of a new submission, which has the runs in a closed loop. 0 or -ENOMEM. */
int search_begin(const struct spec *spec, char **ret_json);

struct search_decision {
        struct searched_rate *rates; /* to be run next */
        size_t n;                    /* 0: it is over */
        char *json;                  /* component Search of api/openapi */
};
void search_decision_deinit(struct search_decision *d);

/* Decides after all of the experiment's runs have ended. Errors as of until_decide(). */
int search_decide(struct store *store, const struct experiment_record *e, const struct spec *spec,
                  struct search_decision *ret);

/* What a search of another host has found, from the runs of the experiment that is being taken in with this id; `state`
 * is that in which it ended. Component Search, as text. Errors as above. */
int search_conclude(struct store *store, int64_t importing, enum state state, const struct spec *spec, char **ret_json);
