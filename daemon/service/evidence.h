/* SPDX-License-Identifier: MIT */
#pragma once

/* The rows of an experiment with the figures of its runs that are done, for the analysis. */

#include "daemon/analysis/findings/findings.h"
#include "daemon/service/internal.h"
#include "schema/facts.h"

struct evidence {
        struct findings_row *rows;  /* in the points' order */
        struct findings_run **runs; /* of each row, what it points to */
        size_t n_rows;
        char *uncounted;     /* why a run that moved data has no cycles; NULL: each has them */
        int64_t measured_at; /* end of its last run that is done, ms since the epoch; 0: none is */
        char *environment;   /* of its runs, as environment_print() has it; NULL: unknown, or it changed meanwhile */
        char *settings;      /* members of the spec that are no axes and affect the figures */
        bool open_loop;
        bool tuned; /* something of the host was set for its runs */
};

/* Gets the evidence of an experiment as of that change, from the cache or loaded; the caller must release it with
 * cache_release(&s->cache, item). 404 in *r when there is no such experiment. */
int evidence_get(struct service *s, int64_t experiment_id, int64_t change, const struct evidence **ret,
                 struct cache_item **ret_item, struct refusal *r);

/* What an experiment watches; one with a spec of another version, which this one cannot read, watches nothing. Where
 * its looks cannot be read, as a bundle may have them, those that it planned count. -ENOMEM. */
int evidence_watch(const struct experiment_record *e, struct adaptive_watch *ret);

/* How many repetitions were added by hand, of an experiment with n_points points: to those that the spec requires, or
 * that `until` has required. Where that is not known (until_asked()), as a bundle does not have it, those above the
 * most that it permits count. 0 of a search, and of a spec that cannot be read. -ENOMEM. */
int evidence_added(const struct experiment_record *e, size_t n_points, uint32_t *ret);

/* Adds what the flags of a run dispute; flags_json is an array of texts without escapes. */
void evidence_read_flags(const char *flags_json, struct findings_flags *ret);

/* The facts of an environment (environment_to_json()) that has() chooses, its mitigations and, unless NULL, a build, in
 * one text. malloc()ed. -EBADMSG: no object; -ENOMEM. */
struct json;
int environment_print_facts(const struct json *environment, bool (*has)(enum fact_name), const struct json *build,
                            char **ret);
/* Prints the facts under which figures are comparable, of any build. */
int environment_print(const struct json *environment, char **ret);
