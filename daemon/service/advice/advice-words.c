/* SPDX-License-Identifier: MIT */

/* An advice in words: what leads, what the others are, what is not known and why, and what would settle it. */

#include "daemon/analysis/phrase.h"
#include "daemon/service/advice/advice-internal.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LEFT_NAMED_MAX 4u /* that the sentence names of those that the runs leave open */

static void write_mechanism(FILE *f, const struct point *p) {
        char words[PHRASE_SETTING_MAX];
        phrase_axis(AXIS_TRANSPORT, p, words);
        (void) fputs(words, f);
        for (enum axis_name x = AXIS_TRANSPORT + 1; x < AXIS_COUNT; x++) {
                const struct value *v = &axes[x].value;
                if (x == AXIS_MESSAGE_SIZE || x == AXIS_THREADS || x == AXIS_PLACEMENT || !axis_applies(&axes[x], p) ||
                    v->type->equal(v, axis_of(&axes[x], p), v->standard))
                        continue;
                (void) fprintf(f, " with %s", phrase_setting(x, p, words));
        }
}

/* "1 is worse, 2 are undecided", of those that do not lead; nothing where there are none. */
static void write_counts(FILE *f, const struct advice *a, const char *before) {
        static const struct {
                enum advice_standing standing;
                enum advice_reason reason; /* REASON_NONE: any without a row of its own */
                const char *words;
        } rows[] = {{STANDING_WORSE, REASON_NONE, "worse"},
                    {STANDING_EQUAL, REASON_NONE, "equal within 3 %"},
                    {STANDING_OPEN, REASON_NONE, "undecided"},
                    {STANDING_OPEN, REASON_LIMIT_UNDECIDED, "too near a limit to tell whether it is kept"},
                    {STANDING_EXCLUDED, REASON_LIMIT, "beyond the limits"},
                    {STANDING_EXCLUDED, REASON_LIMIT_NOT_KNOWN, "without a figure that has a limit"}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                size_t n = 0;
                for (size_t k = 0; k < a->n; k++) {
                        enum advice_reason reason = a->items[k].reason;
                        bool any = rows[i].reason == REASON_NONE && reason != REASON_LIMIT_UNDECIDED;
                        n += !a->items[k].leads && a->items[k].standing == rows[i].standing &&
                             (any || reason == rows[i].reason);
                }
                if (n > 0)
                        (void) fprintf(f, "%s%zu %s %s", before, n, n == 1 ? "is" : "are", rows[i].words);
                before = n > 0 ? ", " : before;
        }
        (void) fputs(".", f);
}

static bool has_limits(const struct advice_question *q) {
        for (size_t i = 0; i < WANT_COUNT; i++)
                if (!isnan(q->limits[i]))
                        return true;
        return false;
}

/* How many of those that were measured have the leader's value to the last digit, as the steps of a clock allow. */
static size_t count_same(const struct advice *a, const struct advice_item *leader) {
        size_t n = 0;
        for (size_t i = 0; i < a->n; i++) {
                const struct advice_item *item = &a->items[i];
                n += item != leader && !item->interpolated && item->standing != STANDING_EXCLUDED &&
                     item->value == leader->value;
        }
        return n;
}

static void write_leader(FILE *f, const struct advice_record *a, const struct advice_item *leader) {
        const struct advice_term *term = &advice_terms[a->question.want];
        const char *unit = figure_terms[term->figure].unit;
        char value[PHRASE_MAX], low[PHRASE_MAX], high[PHRASE_MAX];
        const size_t n_better = a->advice.n_better, n_same = count_same(&a->advice, leader);
        phrase_value(leader->value, unit, value);
        phrase_value(leader->low, unit, low);
        phrase_value(leader->high, unit, high);
        write_mechanism(f, &leader->point);
        if (a->advice.n == 1)
                (void) fprintf(f, " alone was measured: its %s is %s", term->words, value);
        else if (leader->standing != STANDING_BEST || n_better > 0 || n_same > 0)
                (void) fprintf(f, " leads: its %s is %s", term->words, value);
        else
                (void) fprintf(f, " has the %s %s %s, %s", term->less_is_better ? "lowest" : "greatest", term->words,
                               has_limits(&a->question) ? "of those that keep the limits" : "that was measured", value);
        if (leader->has_interval)
                (void) fprintf(f, " [%s, %s]", low, high);
        if (leader->reason == REASON_TOO_FEW_RUNS)
                (void) fprintf(f,
                               ". This is not confirmed: fewer than %u runs of it have this figure, too few to compare",
                               FINDINGS_RUNS_LEAST);
        else if (leader->standing != STANDING_BEST)
                (void) fprintf(f, ". This is not confirmed: experiments disagree on which is the best");
        write_counts(f, &a->advice, ". Of the others ");
        const size_t n_fitted = a->advice.n_better_fitted;
        const char *better = term->less_is_better ? "lower" : "greater";
        if (n_same > 0)
                (void) fprintf(f, " %zu of them %s the same %s.", n_same, n_same == 1 ? "has" : "have", term->words);
        if (n_better > 0)
                (void) fprintf(f, " %zu of them %s a %s one by %s own runs, which no experiment with both confirms.",
                               n_better, n_better == 1 ? "has" : "have", better, n_better == 1 ? "its" : "their");
        if (n_fitted > 0)
                (void) fprintf(f, " %zu of them %s a %s one as interpolated from other sizes, which is no measurement.",
                               n_fitted, n_fitted == 1 ? "has" : "have", better);
}

/* What the runs of the leader were flagged for. */
static void write_flags(FILE *f, const struct advice_item *leader) {
        const struct {
                bool flagged;
                const char *words;
        } rows[] = {{leader->noisy, "noisy"},
                    {leader->unsteady, "not steady"},
                    {leader->unobserved, "not watched"},
                    {leader->changed, "in an environment that changed, or of another build"}};
        size_t n = 0;
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                if (!rows[i].flagged)
                        continue;
                if (n == 0) {
                        (void) fputs(" Some runs of ", f);
                        write_mechanism(f, &leader->point);
                }
                (void) fprintf(f, "%s%s", n++ ? ", or " : " were ", rows[i].words);
        }
        (void) fputs(n > 0 ? "." : "", f);
}

/* The groups of figures that the question is about. */
static unsigned asked_figures(const struct advice_question *q) {
        unsigned figures = FIGURES_BIT(figure_terms[advice_terms[q->want].figure].group);
        for (enum advice_want i = 0; i < WANT_COUNT; i++)
                if (isfinite(q->limits[i]))
                        figures |= FIGURES_BIT(figure_terms[advice_terms[i].figure].group);
        return figures;
}

/* " 2 of the 6 runs of tcp have the flag zerocopy:enobufs: the kernel refused …" */
static void write_disputed(FILE *f, const struct advice_question *q, const struct advice_item *leader) {
        const unsigned figures = asked_figures(q);
        for (enum disputed i = 0; i < DISPUTED_COUNT; i++) {
                const uint32_t n = leader->n_disputed[i];
                if (n == 0 || !(disputed_flags[i].figures & figures))
                        continue;
                (void) fprintf(f, " %u of the %u runs of ", n, leader->n_runs);
                write_mechanism(f, &leader->point);
                (void) fprintf(f, " %s the flag %s: %s.", n == 1 ? "has" : "have", disputed_flags[i].flag,
                               disputed_flags[i].words);
        }
}

/* Nothing leads: no size was measured, or none is known to keep the limits. */
static void write_none(FILE *f, const struct advice *a) {
        size_t n_measured = 0;
        for (size_t i = 0; i < a->n; i++)
                n_measured += !a->items[i].interpolated;
        if (n_measured > 0 || a->n_excluded == a->n)
                (void) fputs("nothing that was measured is known to keep the limits", f);
        else
                (void) fputs("this size was not measured; what there is was interpolated from other sizes", f);
        write_counts(f, a, ": ");
}

/* Whether the item has a version that none before it has. */
static bool is_new_version(const struct advice_item *items, size_t i) {
        for (size_t k = 0; items[i].version && k < i; k++)
                if (items[k].version && strcmp(items[k].version, items[i].version) == 0)
                        return false;
        return items[i].version != NULL;
}

static void write_versions(FILE *f, const struct advice *a) {
        const char *joint = " The figures come from different versions of ipclab: ";
        size_t n_ranked = a->n - a->n_excluded, n = 0;
        for (size_t i = 0; i < n_ranked; i++)
                n += is_new_version(a->items, i);
        for (size_t i = 0; n > 1 && i < n_ranked; i++)
                if (is_new_version(a->items, i)) {
                        (void) fprintf(f, "%s%s", joint, a->items[i].version);
                        joint = ", ";
                }
        if (n > 1)
                (void) fputs(".", f);
}

/* What the spec is for, and what stays open after its runs. */
static void write_proposal(FILE *f, const struct advice_record *a, uint32_t repetitions) {
        const struct advice_item *items[SETTLE_MECHANISMS_MAX];
        size_t n = advice_list_contenders(&a->advice, items), n_left = 0;
        uint32_t wanted = advice_repetitions_wanted(items, n);
        if (a->host || a->too_long)
                return;
        if (a->settle_json && a->settles_all)
                (void) fprintf(f, " %u runs of each transport that can answer are proposed.", repetitions);
        else if (n > 0 && wanted > repetitions)
                (void) fprintf(f, " To decide more takes about %u runs of each: the %u that are proposed may not do.",
                               wanted, repetitions);
        else if (n > 0)
                (void) fprintf(f, " To decide more, %u runs of each are proposed.", repetitions);
        for (size_t i = 0; i < a->advice.n; i++) {
                const struct advice_item *item = &a->advice.items[i];
                bool listed = !advice_may_settle(item);
                for (size_t k = 0; k < n && !listed; k++)
                        listed = items[k] == item;
                if (listed || n_left++ >= LEFT_NAMED_MAX)
                        continue;
                (void) fputs(n_left > 1 ? ", " : n > 0 ? " They leave open " : " No runs would decide ", f);
                write_mechanism(f, &item->point);
                if (strcmp(item->settings, "{}") != 0)
                        (void) fprintf(f, " with %s", item->settings);
        }
        if (n_left > LEFT_NAMED_MAX)
                (void) fprintf(f, " and %zu more", n_left - LEFT_NAMED_MAX);
        if (n_left > 0)
                (void) fprintf(f, ": all mechanisms of an experiment have the same settings%s.",
                               n == SETTLE_MECHANISMS_MAX ? ", and eight are proposed at most" : "");
}

/* Names the items that no number of runs would decide. */
static void write_out_of_reach(FILE *f, const struct advice *a) {
        size_t n = 0;
        for (size_t i = 0; i < a->n; i++) {
                if (!a->items[i].out_of_reach)
                        continue;
                if (n++ < LEFT_NAMED_MAX) {
                        (void) fputs(n > 1 ? ", " : " No number of runs that an answer can use would decide ", f);
                        write_mechanism(f, &a->items[i].point);
                }
        }
        if (n > LEFT_NAMED_MAX)
                (void) fprintf(f, " and %zu more", n - LEFT_NAMED_MAX);
        if (n > 0)
                (void) fputs(": a quieter machine or a longer window decides sooner.", f);
}

/* Why nothing is ranked. */
static void write_nothing(FILE *f, const struct advice_record *a) {
        const struct advice_term *term = &advice_terms[a->question.want];
        const char *few = a->advice.few ? figure_terms[term->figure].few : NULL;
        if (a->experiments == 0)
                (void) fprintf(f, "nothing %sis known of it under the environment %s.",
                               a->other_environment + a->unlike > 0 ? "that can be ranked " : "",
                               a->host ? "of its newest experiment" : "that is in force now");
        else if (a->advice.measured)
                (void) fprintf(f, "it was measured, but has no %s to rank by%s%s.", term->words, few ? ": " : "",
                               few ? few : "");
        else
                (void) fprintf(f,
                               "this size was not measured, and those that were do not tell it: to interpolate takes "
                               "%d sizes of a mechanism in one experiment, smaller ones and larger ones, whose times "
                               "straight lines fit.",
                               ADVICE_SIZES_LEAST);
}

static void write_placements(FILE *f, unsigned placements) {
        const char *joint = " Runs with another placement are stored: ";
        for (unsigned i = 0; i < PLACEMENT_ALL_NODE_PAIRS; i++)
                if (placements & 1u << i) {
                        (void) fprintf(f, "%s%s", joint, placement_kind_name(i));
                        joint = ", ";
                }
        if (placements)
                (void) fprintf(f, ".");
}

static void write_without_ratios(FILE *f, const struct advice_record *a) {
        const size_t n = a->advice.n_without_ratios;
        if (n > 0)
                (void) fprintf(f,
                               " Of %zu row%s of this size nothing is concluded: the %s of a run is 0 or less, and "
                               "there is no ratio of such.",
                               n, n == 1 ? "" : "s", advice_terms[a->question.want].words);
}

static void write_threads(FILE *f, const struct advice_record *a) {
        for (size_t i = 0; i < a->n_threads; i++)
                (void) fprintf(f, "%s%u",
                               i ? ", " : " Runs with another number of threads are stored: ", a->threads[i]);
        if (a->n_threads > 0)
                (void) fputs(".", f);
}

/* "governor, thp and mitigations" */
static void write_facts(FILE *f, const struct advice_record *a) {
        size_t n = a->mitigations, k = 0;
        for (size_t i = 0; i < FACT_COUNT; i++)
                n += a->facts[i];
        for (size_t i = 0; i <= FACT_COUNT; i++)
                if (i < FACT_COUNT ? a->facts[i] : a->mitigations) {
                        (void) fprintf(f, "%s%s",
                                       k == 0       ? " in "
                                       : k + 1 == n ? " and "
                                                    : ", ",
                                       i < FACT_COUNT ? fact_rows[i].name : "mitigations");
                        k++;
                }
}

/* What there is beside what was used, and in what it differs. */
static void write_left_out(FILE *f, const struct advice_record *a) {
        const uint32_t others = a->other_environment, changed = a->changed_environment;
        if (others > 0) {
                (void) fprintf(f, " %u other %s left out: ", others,
                               others == 1 ? "experiment was" : "experiments were");
                if (others > changed)
                        (void) fputs("the environment was another", f);
                write_facts(f, a);
                if (changed > 0)
                        (void) fprintf(f, "%s%s environment changed between %s runs, or is not known.",
                                       others > changed ? "; of " : "", others > changed ? "some the" : "the",
                                       changed == 1 ? "its" : "their");
                else
                        (void) fputs(".", f);
        }
        if (a->unlike > 0)
                (void) fprintf(f, " %u %s of this question %s left out:", a->unlike,
                               a->unlike == 1 ? "experiment" : "experiments", a->unlike == 1 ? "was" : "were");
        if (a->open_loops > 0)
                (void) fprintf(f, " %u with an open loop, whose figures are of the specified rate%s", a->open_loops,
                               a->tuned > 0 ? "," : "");
        if (a->tuned > 0)
                (void) fprintf(f, " %u with settings of the host that were made for the runs", a->tuned);
        if (a->unlike > 0)
                (void) fprintf(f, "%s.",
                               a->open_loops + a->tuned > a->unlike
                                       ? a->unlike == 1 ? " (it is both)" : " (some are both)"
                                       : "");
}

/* Writes the settings that differ among those that are ranked and were measured. Their names contain their axes.
 * -ENOMEM. */
static int write_unlike(FILE *f, const struct advice *a) {
        const size_t n_ranked = a->n - a->n_excluded;
        struct unlike_row *rows = reallocarray(NULL, n_ranked + 1, sizeof(*rows));
        char **names = calloc(n_ranked + 1, sizeof(*names));
        size_t n = 0;
        int r = rows && names ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < n_ranked; i++) {
                size_t length = 0;
                if (a->items[i].interpolated)
                        continue;
                FILE *name = open_memstream(&names[n], &length);
                if (name)
                        write_mechanism(name, &a->items[i].point);
                if (!name || fclose(name) != 0) {
                        r = -ENOMEM;
                        continue;
                }
                rows[n] = (struct unlike_row){
                        .point = &a->items[i].point, .in_force = &a->items[i].in_force, .name = names[n]};
                n++;
        }
        if (r == 0 && unlike_write(f, rows, n, false, " Their settings are unlike: "))
                (void) fputs(".", f);
        for (size_t i = 0; names && i < n_ranked; i++)
                free(names[i]);
        free(names);
        free(rows);
        return r;
}

/* Writes why no other transport is in the answer about a stream's latency. */
static void write_stamps(FILE *f, const struct advice_question *q) {
        const char *joint = " over ";
        if (!advice_is_stamped(q))
                return;
        (void) fprintf(f, " In a closed loop messages of %d B and more carry the time of their sending",
                       SPEC_STAMPED_MIN);
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                if (transport_terms[t].stamps) {
                        (void) fprintf(f, "%s%s", joint, transport_words.name(t));
                        joint = ", ";
                }
        (void) fprintf(f, " alone; elsewhere an open loop or a pingpong measures a latency.");
}

static void write_failing(FILE *f, const struct advice_record *a) {
        for (size_t i = 0; i < a->n_failing; i++) {
                const struct failing_transport *t = &a->failing[i];
                (void) fprintf(f,
                               " No runs of %s are proposed: all its %u runs of experiment %" PRId64
                               " failed on the machine as it is now, the last one with \"%s\".",
                               transport_words.name(t->transport), t->runs, t->experiment_id, t->error);
        }
}

static void write_too_long(FILE *f, const struct advice_record *a) {
        if (a->too_long)
                (void) fprintf(f,
                               " No runs are proposed: a 99th percentile takes %d latencies of each thread, for which "
                               "one run would last more than %.0f s at 1 GB/s.",
                               FIGURE_P99_LATENCIES_LEAST, SETTLE_WINDOW_MAX_SECONDS);
}

int advice_write_sentence(struct advice_record *a, uint32_t repetitions) {
        const struct advice_question *q = &a->question;
        char size[PHRASE_MAX];
        size_t length = 0;
        FILE *f = open_memstream(&a->sentence, &length);
        if (!f)
                return -ENOMEM;
        phrase_axis(AXIS_MESSAGE_SIZE, &(struct point){.message_size = q->message_size}, size);
        if (a->host)
                (void) fprintf(f, "Host %s, ", a->host);
        (void) fprintf(f, "%s, %s, %u %s, %s%s: ", workload_words.name(q->workload), size, q->threads,
                       q->threads == 1 ? "thread" : "threads", placement_kind_name(q->placement),
                       q->both_ways ? ", both ways together" : "");
        if (a->advice.n == 0)
                write_nothing(f, a);
        else if (a->advice.items[0].leads)
                write_leader(f, a, &a->advice.items[0]);
        else
                write_none(f, &a->advice);
        if (a->advice.n > 0 && a->advice.items[0].leads) {
                write_flags(f, &a->advice.items[0]);
                write_disputed(f, &a->question, &a->advice.items[0]);
        }
        const int r = write_unlike(f, &a->advice);
        write_versions(f, &a->advice);
        write_proposal(f, a, repetitions);
        write_out_of_reach(f, &a->advice);
        if (a->advice.cut)
                (void) fprintf(f, " Of runs that are no pairs of a block the first %u of each were compared.",
                               comparison_runs_most(false));
        if (a->advice.n == 0) {
                write_threads(f, a);
                write_placements(f, a->placements);
        }
        write_left_out(f, a);
        write_without_ratios(f, a);
        write_stamps(f, q);
        write_failing(f, a);
        write_too_long(f, a);
        bool failed = ferror(f) || r < 0;
        return fclose(f) != 0 || failed ? -ENOMEM : 0;
}
