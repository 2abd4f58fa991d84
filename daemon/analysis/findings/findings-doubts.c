/* SPDX-License-Identifier: MIT */

/* Doubts: comparisons that decided nothing, the reasons, and the runs that would decide them. */

#include "daemon/analysis/findings/findings-internal.h"

#include "daemon/analysis/phrase.h"
#include "daemon/analysis/statistics/serial.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static void add_rows(struct answer *a, struct doubt *d, const uint32_t *rows, size_t n, struct runs_to_decide needed) {
        uint32_t *more = reallocarray(d->rows, d->n + n, sizeof(*more));
        if (!more) {
                a->error = -ENOMEM;
                return;
        }
        d->rows = more;
        for (size_t i = 0; i < n; i++) {
                size_t k = 0;
                while (k < d->n && d->rows[k] != rows[i])
                        k++;
                if (k == d->n)
                        d->rows[d->n++] = rows[i];
        }
        if (needed.most > d->runs_most)
                d->runs_most = needed.most;
        if (needed.most > 0)
                return;
        if (needed.runs > 0 && (d->runs_first == 0 || needed.runs < d->runs_first))
                d->runs_first = needed.runs;
        if (needed.runs > d->runs_needed)
                d->runs_needed = needed.runs;
}

void doubt_rows(struct answer *a, enum axis_name axis, enum judged judged, const uint32_t *rows, size_t n,
                const struct comparison *c) {
        struct doubt *d = &a->doubts[axis][judged];
        add_rows(a, d, rows, n, (struct runs_to_decide){c->runs_needed, c->out_of_reach ? c->runs_most : 0});
        d->n_tests++;
        d->n_blind += !c->has_visible;
        if (c->has_visible && c->visible > d->visible)
                d->visible = c->visible;
}

void doubt_crossing(struct answer *a, enum axis_name axis, enum judged judged, const uint32_t *rows, size_t n,
                    const struct crossing_pair *pair, struct runs_to_decide needed) {
        struct crossing *x = &a->crossings[axis][judged];
        add_rows(a, &x->doubt, rows, n, needed);
        if (x->n_pairs < CROSSINGS_NAMED_MAX)
                x->pairs[x->n_pairs] = *pair;
        x->n_pairs++;
}

/* More runs than take part in a comparison decide nothing, so that such a number is no advice. */
static void write_runs_needed(struct draft *d, const struct doubt *doubt) {
        const uint32_t first = doubt->runs_first, all = doubt->runs_needed;
        if (doubt->runs_most == 0) {
                if (all == 0)
                        return;
                d->f.runs_needed = all;
                if (first == all)
                        draft_write(d, ". About %u runs of each would decide", all);
                else
                        draft_write(d, ". About %u runs of each would decide the first of them, and %u all", first,
                                    all);
        } else if (first > 0) {
                draft_write(d,
                            ". About %u runs of each would decide the first of them; to decide all takes more than the "
                            "%u that take part in a comparison",
                            first, doubt->runs_most);
        } else {
                draft_write(d,
                            ". It would take more than the %u runs of each that take part in a comparison: a quieter "
                            "machine or a longer window decides sooner",
                            doubt->runs_most);
        }
        if (all > 0)
                draft_figure(d, "runs_needed", doubt->runs_most ? "the first of them" : NULL, "runs",
                             doubt->runs_most ? first : all);
}

/* A difference that would have been seen is that of the comparisons in which one would have been at all. */
static void write_visible(struct draft *d, const struct doubt *doubt) {
        char share[PHRASE_MAX];
        const size_t n_seeing = doubt->n_tests - doubt->n_blind;
        if (n_seeing == 0) {
                draft_write(d, ", or have too few runs for the %zu comparison%s of this answer", d->a->n_tests,
                            d->a->n_tests == 1 ? "" : "s");
                return;
        }
        phrase_share(doubt->visible, share);
        if (doubt->visible < 1)
                draft_write(d, "; a difference of %s would have been seen", share);
        else
                draft_write(d, "; only a difference of more than a factor of %s would have been seen",
                            phrase_number(doubt->visible + 1, share));
        if (doubt->n_blind > 0)
                draft_write(d, " in %zu of their %zu comparisons, and in the other%s none by so few runs", n_seeing,
                            doubt->n_tests, doubt->n_blind == 1 ? "" : "s");
        draft_figure(d, "visible_difference", NULL, "ratio", doubt->visible);
}

static void draw_overlap(struct answer *a, enum axis_name axis, enum judged judged, const struct doubt *doubt) {
        char name[PHRASE_MAX];
        struct draft d;
        draft_begin(&d, a, FINDING_UNDECIDED, axis, doubt->rows, doubt->n);
        d.f.reason = "overlap";
        phrase_axis_name(axis, name);
        draft_write(&d, "Which %s has %s%s is not known for %zu rows", name, judged_terms[judged].article,
                    judged_terms[judged].better, doubt->n);
        draft_write_subject(&d, AXIS_BIT(axis), " of ");
        draft_write(&d, ": they are too close for their scatter");
        write_visible(&d, doubt);
        write_runs_needed(&d, doubt);
        draft_write(&d, ".");
        draft_end(&d);
}

/* "pipe and fifo (same-node) at about 1.2 KiB, pipe and tcp (cross-node) at about 3 KiB", and their figures. */
static void write_crossings(struct draft *d, const struct crossing *x) {
        for (size_t i = 0; i < x->n_pairs && i < CROSSINGS_NAMED_MAX; i++) {
                const struct crossing_pair *p = &x->pairs[i];
                char names[2][PHRASE_MAX], at[PHRASE_MAX], series[2 * PHRASE_MAX], both[4 * PHRASE_MAX + 16];
                for (size_t k = 0; k < 2; k++)
                        phrase_axis(d->f.axis, &d->a->in->rows[p->rows[k]].point, names[k]);
                phrase_value(p->bytes, "bytes", at);
                draft_series(d, p->rows[0], AXIS_BIT(d->f.axis) | AXIS_BIT(AXIS_MESSAGE_SIZE), series, sizeof(series));
                (void) snprintf(both, sizeof(both), "%s and %s%s%s%s", names[0], names[1], *series ? " (" : "", series,
                                *series ? ")" : "");
                draft_write(d, "%s%s at about %s", i ? ", " : "", both, at);
                draft_figure(d, "medians_cross", both, "bytes", p->bytes);
        }
        if (x->n_pairs > CROSSINGS_NAMED_MAX)
                draft_write(d, ", and %zu more pair%s", x->n_pairs - CROSSINGS_NAMED_MAX,
                            x->n_pairs == CROSSINGS_NAMED_MAX + 1 ? "" : "s");
}

static void draw_crossing(struct answer *a, enum axis_name axis, enum judged judged, const struct crossing *x) {
        const struct doubt *doubt = &x->doubt;
        char name[PHRASE_MAX];
        struct draft d;
        draft_begin(&d, a, FINDING_UNDECIDED, axis, doubt->rows, doubt->n);
        d.f.reason = "crossover";
        phrase_axis_name(axis, name);
        draft_write(&d, "Whether one %s overtakes another in %s as messages grow is not known for %zu pair%s", name,
                    judged_terms[judged].words, x->n_pairs, x->n_pairs == 1 ? "" : "s");
        draft_write_subject(&d, AXIS_BIT(axis) | AXIS_BIT(AXIS_MESSAGE_SIZE), " of ");
        draft_write(&d, ". Their medians change places, ");
        write_crossings(&d, x);
        draft_write(&d,
                    ", but on one side of that size, or on both, no difference is more than the scatter of the runs");
        write_runs_needed(&d, doubt);
        draft_write(&d, ".");
        draft_end(&d);
}

void doubt_ratios(struct answer *a, uint32_t row, enum judged judged) {
        add_rows(a, &a->without_ratios[judged], &row, 1, (struct runs_to_decide){0});
}

void doubt_cut(struct answer *a, uint32_t row) {
        add_rows(a, &a->cut, &row, 1, (struct runs_to_decide){0});
}

static bool has_counts(const struct findings_row *row) {
        for (size_t i = 0; i < row->n_runs; i++)
                if (isfinite(row->runs[i].values[FIGURE_CYCLES_PER_BYTE]))
                        return true;
        return false;
}

void doubt_counts(struct answer *a, const uint32_t *rows, size_t n) {
        uint32_t *more = reallocarray(a->uncounted, a->n_uncounted + n, sizeof(*more));
        if (!more) {
                a->error = -ENOMEM;
                return;
        }
        a->uncounted = more;
        for (size_t i = 0; i < n; i++) {
                size_t k = 0;
                while (k < a->n_uncounted && more[k] != rows[i])
                        k++;
                if (k == a->n_uncounted && workload_has_transport(a->in->rows[rows[i]].point.workload) &&
                    !has_counts(&a->in->rows[rows[i]]))
                        more[a->n_uncounted++] = rows[i];
        }
}

static void draw_uncounted(struct answer *a) {
        struct draft d;
        if (a->n_uncounted == 0 || !a->in->uncounted)
                return;
        draft_begin(&d, a, FINDING_UNDECIDED, AXIS_COUNT, a->uncounted, a->n_uncounted);
        d.f.reason = "no-counters";
        draft_write(&d, "What a choice costs in cycles and cache misses is not known for %zu rows: %s.", a->n_uncounted,
                    a->in->uncounted);
        draft_end(&d);
}

static int compare_numbers(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
        return (x > y) - (x < y);
}

static bool lacks_runs(const struct findings_row *row) {
        return row->n_runs < FINDINGS_RUNS_LEAST;
}

static bool is_unprobed(const struct findings_row *row) {
        return !lacks_runs(row) && row->unprobed;
}

static bool has_too_many(const struct findings_row *row) {
        return row->n_runs > COMPARISON_PAIRS_MAX;
}

static bool has_few_messages(const struct findings_row *row) {
        return row->few_messages &&
               (judged_applies(JUDGED_LATENCY_P99, row) || judged_applies(JUDGED_ONE_WAY_P99, row));
}

static bool has_open_loop(const struct findings_row *row) {
        return row->open_loop;
}

/* Comparisons within blocks do not depend on it, the intervals of single rows do. */
static bool has_unknown_correlation(const struct findings_row *row) {
        return !lacks_runs(row) && row->n_runs < SERIAL_RUNS_LEAST;
}

/* Whether neighbouring runs are alike in the figure that ranks the row first. */
static bool has_alike_neighbours(const struct findings_row *row) {
        double values[RANK_MAX];
        enum judged first = judged_first(row);
        return first < JUDGED_COUNT &&
               serial_inflation(values, findings_row_values(row, judged_terms[first].figure, values)) > 1;
}

static bool are_noisy(const struct findings_flags *flags) {
        return flags->noisy;
}

static bool are_unsteady(const struct findings_flags *flags) {
        return flags->unsteady;
}

static bool are_changed(const struct findings_flags *flags) {
        return flags->changed;
}

static bool are_unobserved(const struct findings_flags *flags) {
        return flags->unobserved;
}

/* Blocks pair what is measured in the same state, and a comparison is of them; what is compared in no block, and the
 * interval of a single row, is of all states together. */
static bool are_restless(const struct findings_flags *flags) {
        return flags->restless;
}

static const struct {
        const char *reason;
        bool (*applies)(const struct findings_row *row);        /* NULL: the flags of the runs decide, and */
        bool (*is_flagged)(const struct findings_flags *flags); /* those of a search of the row, too; else NULL */
        bool of_many;                                           /* nothing is compared where there is one row */
        const char *words;                                      /* after "has" or "have" */
        const char *decides; /* of those that leave conclusions with reduced confidence: what would decide */
} reasons[] = {
        {"too-few-runs", lacks_runs, NULL, true,
         "fewer than 4 runs that are done. No exact test of two of them reaches 5 %, so nothing is concluded "
         "from "
         "them",
         NULL},
        {"noise", NULL, are_noisy, false, "runs with noise flags", "the same runs on a quieter machine would decide"},
        {"not-steady", NULL, are_unsteady, false, "runs whose rate did not stay the same",
         "a longer warm-up would decide"},
        {"environment-changed", NULL, are_changed, false,
         "runs in which the host's environment or ipclab's build changed",
         "the same runs under one environment and build would decide"},
        {"not-observed", NULL, are_unobserved, false,
         "runs that could not be watched, in which noise goes without a flag",
         "the same runs where the daemon has a CPU to watch from would decide"},
        {"machine-state", NULL, are_restless, false,
         "runs beside which the machine itself was faster or slower, by its probes. Intervals of single rows are of "
         "all "
         "these states together; comparisons within blocks depend less on it",
         NULL},
        {"machine-unknown", is_unprobed, NULL, false,
         "runs whose probes are missing, or not all of the same CPUs. Whether the machine was in the same state beside "
         "all of them is not known, and intervals of single rows may be of several; with threads that stay on their "
         "CPUs it would be",
         NULL},
        {"open-loop", has_open_loop, NULL, false,
         "an open loop, in which no more messages are sent than its rate specifies, so nothing is concluded from the "
         "throughput",
         NULL},
        {"few-messages", has_few_messages, NULL, false,
         "runs of fewer than " UTIL_TEXT(
                 FIGURE_P99_LATENCIES_LEAST) " latencies. Too few of them lie beyond the 99th percentile to tell it "
                                             "from "
                                             "the longest, so nothing is concluded from it; longer runs would decide",
         NULL},
        {"too-many-runs", has_too_many, NULL, false,
         "more than 200 runs. The exact tests go no further: at most the first 200 of each were compared", NULL},
        {"neighbours-alike", has_alike_neighbours, NULL, false,
         "runs that are like those before them. Intervals of single rows are as much wider, or there is none, and runs "
         "at other times tell more than further runs now; comparisons within blocks do not depend on it",
         NULL},
        {"autocorrelation", has_unknown_correlation, NULL, false,
         "fewer than " UTIL_TEXT(SERIAL_RUNS_LEAST) " runs. Whether neighbouring runs are alike could not be "
                                                    "judged, so that intervals of single rows may cover the "
                                                    "moment only; comparisons within blocks do not depend "
                                                    "on it",
         NULL},
};

_Static_assert(COMPARISON_PAIRS_MAX == 200, "the words have the number");

#define EVERY_FIGURE (FIGURES_BIT(FIGURES_GROUPS) - 1)

static bool is_concluded(const struct answer *a) {
        for (size_t i = 0; i < a->out->n; i++)
                if (a->out->items[i].kind != FINDING_UNDECIDED)
                        return true;
        return false;
}

/* Whether a conclusion rests on one of these rows, which are in order, by one of these groups of figures. */
static bool is_rested_on(const struct answer *a, const uint32_t *rows, size_t n, unsigned figures) {
        for (size_t i = 0; i < a->out->n; i++) {
                const struct finding *f = &a->out->items[i];
                if (f->kind == FINDING_UNDECIDED || !(finding_figures(f) & figures))
                        continue;
                for (size_t k = 0; k < f->n_rows; k++)
                        if (bsearch(&f->rows[k], rows, n, sizeof(*rows), compare_numbers))
                                return true;
        }
        return false;
}

static int compare_search_rows(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = ((const struct findings_search *) b)->row;
        return (x > y) - (x < y);
}

/* The search of the row's rates; NULL: there is none, or nothing was concluded of them. Something is concluded from few
 * runs of such a row, too: the highest rate. */
static const struct findings_search *find_search(const struct answer *a, uint32_t row) {
        return a->in->n_searches == 0 ? NULL
                                      : bsearch(&row, a->in->searches, a->in->n_searches, sizeof(*a->in->searches),
                                                compare_search_rows);
}

static bool has_reason(const struct answer *a, size_t which, uint32_t row) {
        const struct findings_search *search = find_search(a, row);
        if (search && reasons[which].applies == lacks_runs)
                return false;
        if (reasons[which].applies)
                return reasons[which].applies(&a->in->rows[row]);
        return reasons[which].is_flagged(&a->in->rows[row].flags) ||
               (search && reasons[which].is_flagged(&search->rates));
}

/* "2 of 3 rows have " */
static void write_rows(struct draft *d, size_t n, size_t n_all) {
        if (n_all == 1)
                draft_write(d, "The only row has ");
        else
                draft_write(d, "%zu of %zu rows %s ", n, n_all, n == 1 ? "has" : "have");
}

/* Writes how many runs of each row are needed for a great difference to remain significant after the correction. */
static void write_runs_enough(struct draft *d) {
        const size_t n = answer_count_comparisons(d->a);
        if (n == 0) /* no row has another to be compared with */
                return;
        d->f.runs_needed = compare_runs_least(false, n);
        draft_write(d, "; %u runs of each would be enough for differences that are great", d->f.runs_needed);
        draft_figure(d, "runs_needed", NULL, "runs", d->f.runs_needed);
}

static void draw_reason(struct answer *a, size_t which) {
        struct draft d;
        size_t n = 0, n_all = a->in->n_rows;
        _cleanup_free_ uint32_t *rows = reallocarray(NULL, n_all + 1, sizeof(*rows));
        if (!rows) {
                a->error = -ENOMEM;
                return;
        }
        for (size_t i = 0; i < n_all; i++)
                if (has_reason(a, which, (uint32_t) i))
                        rows[n++] = (uint32_t) i;
        if (n == 0 || (reasons[which].of_many && n_all < 2))
                return;
        draft_begin(&d, a, FINDING_UNDECIDED, AXIS_COUNT, rows, n);
        d.f.reason = reasons[which].reason;
        write_rows(&d, n, n_all);
        draft_write(&d, "%s", reasons[which].words);
        bool rested_on = reasons[which].decides && is_rested_on(a, rows, n, EVERY_FIGURE);
        if (rested_on)
                draft_write(&d, ". Conclusions that rest on them have reduced confidence");
        if (reasons[which].decides && (rested_on || a->n_tests > 0)) /* or there is nothing to decide */
                draft_write(&d, "; %s", reasons[which].decides);
        if (reasons[which].applies == lacks_runs)
                write_runs_enough(&d);
        draft_write(&d, ".");
        draft_end(&d);
}

/* "2 of 12 runs have the flag zerocopy:enobufs" */
static void write_flagged(struct draft *d, size_t n, size_t of, const char *flag) {
        draft_write(d, ": %zu of %zu run%s %s the flag %s", n, of, of == 1 ? "" : "s", n == 1 ? "has" : "have", flag);
        draft_figure(d, "disputed_runs", flag, "runs", (double) n);
}

/* Draws the finding about rows whose runs have a flag that disputes their figures, those at the rates of a search, too.
 */
static void draw_disputed(struct answer *a, enum disputed which) {
        const struct disputed_flag *flag = &disputed_flags[which];
        struct draft d;
        size_t n = 0, n_flagged = 0, n_runs = 0;
        bool of_rates = false;
        _cleanup_free_ uint32_t *rows = reallocarray(NULL, a->in->n_rows + 1, sizeof(*rows));
        if (!rows) {
                a->error = -ENOMEM;
                return;
        }
        for (size_t i = 0; i < a->in->n_rows; i++) {
                const struct findings_search *search = find_search(a, (uint32_t) i);
                const uint32_t of_row = a->in->rows[i].flags.n_disputed[which];
                const uint32_t of_search = search ? search->rates.n_disputed[which] : 0;
                if (of_row + of_search == 0)
                        continue;
                rows[n++] = (uint32_t) i;
                n_flagged += of_row + of_search;
                n_runs += a->in->rows[i].n_runs + (search ? search->n_runs : 0);
                of_rates |= of_search > 0;
        }
        if (n == 0)
                return;
        draft_begin(&d, a, FINDING_UNDECIDED, AXIS_COUNT, rows, n);
        d.f.reason = "disputed";
        write_rows(&d, n, a->in->n_rows);
        draft_write(&d, "runs in which %s", flag->words);
        write_flagged(&d, n_flagged, n_runs, flag->flag);
        if (of_rates || is_rested_on(a, rows, n, flag->figures)) {
                draft_write(&d, ". Conclusions that rest on them have reduced confidence");
                if (flag->decides)
                        draft_write(&d, "; %s", flag->decides);
        }
        draft_write(&d, ".");
        draft_end(&d);
}

static void draw_without_ratios(struct answer *a, enum judged judged) {
        const struct doubt *doubt = &a->without_ratios[judged];
        struct draft d;
        draft_begin(&d, a, FINDING_UNDECIDED, AXIS_COUNT, doubt->rows, doubt->n);
        d.f.reason = "not-above-0";
        write_rows(&d, doubt->n, a->in->n_rows);
        draft_write(&d,
                    "runs whose figure for %s is 0 or less. There is no ratio of such, so nothing is concluded from it "
                    "for %s.",
                    judged_terms[judged].words, doubt->n == 1 ? "this row" : "these rows");
        draft_end(&d);
}

/* An exact test of runs that are no pairs takes a time that grows with the fourth power of those that are tied. */
static void draw_cut(struct answer *a) {
        struct draft d;
        draft_begin(&d, a, FINDING_UNDECIDED, AXIS_COUNT, a->cut.rows, a->cut.n);
        d.f.reason = "too-many-runs";
        write_rows(&d, a->cut.n, a->in->n_rows);
        draft_write(&d,
                    "more than %u runs that were compared with others than those of their blocks. Such a test goes no "
                    "further: the first %u of each were compared.",
                    comparison_runs_most(false), comparison_runs_most(false));
        draft_end(&d);
}

/* Whoever adds runs may have read the figures before, which no correction counts: it does not know how often, nor what
 * would have been enough. */
static void draw_added(struct answer *a) {
        struct draft d;
        uint32_t added = 0, planned = 0;
        _cleanup_free_ uint32_t *rows = reallocarray(NULL, a->in->n_rows + 1, sizeof(*rows));
        if (!rows) {
                a->error = -ENOMEM;
                return;
        }
        for (size_t i = 0; i < a->in->n_rows; i++) {
                rows[i] = (uint32_t) i;
                if (a->in->rows[i].n_added > added) {
                        added = a->in->rows[i].n_added;
                        planned = a->in->rows[i].n_planned - added;
                }
        }
        if (added == 0 || a->n_tests == 0)
                return;
        draft_begin(&d, a, FINDING_UNDECIDED, AXIS_COUNT, rows, a->in->n_rows);
        d.f.reason = FINDING_REPETITIONS_ADDED;
        draft_write(&d,
                    "%u repetition%s %s added to the %u that %s planned. If that depended on what the runs before "
                    "showed, a false difference is more likely than 5 %%: how often the figures were read meanwhile is "
                    "not known. A new experiment of %u repetitions would not depend on them.",
                    added, added == 1 ? "" : "s", added == 1 ? "was" : "were", planned, planned == 1 ? "was" : "were",
                    added + planned);
        draft_figure(&d, "repetitions_added", NULL, "repetitions", added);
        draft_end(&d);
}

struct missing {
        uint32_t *rows; /* that have fewer runs than are planned */
        size_t n;
        size_t n_planned, n_failed, n_done; /* runs of all rows */
        size_t n_without;                   /* rows whose runs failed, and none is done */
};

static void draw_missing(struct answer *a, const struct missing *m) {
        size_t n_open = m->n_planned - m->n_failed - m->n_done;
        struct draft d;
        draft_begin(&d, a, FINDING_UNDECIDED, AXIS_COUNT, m->rows, m->n);
        d.f.reason = "missing-runs";
        write_rows(&d, m->n, a->in->n_rows);
        draft_write(&d, "fewer runs than are planned: of %zu in all, ", m->n_planned);
        if (m->n_failed > 0)
                draft_write(&d, "%zu failed or %s cancelled%s", m->n_failed, m->n_failed == 1 ? "was" : "were",
                            n_open > 0 ? " and " : "");
        if (n_open > 0)
                draft_write(&d, "%zu %s not done", n_open, n_open == 1 ? "is" : "are");
        if (m->n_without > 0)
                draft_write(&d, "; no run of %zu row%s is done", m->n_without, m->n_without == 1 ? "" : "s");
        draft_write(&d, "%s.", is_concluded(a) ? ". Conclusions rest on the others alone" : "");
        draft_figure(&d, "missing_runs", NULL, "runs", (double) (m->n_failed + n_open));
        draft_end(&d);
}

/* No row has a run that is done: `rows` are those of which some failed. */
static void draw_none_done(struct answer *a, const struct missing *m) {
        size_t n_open = m->n_planned - m->n_failed;
        struct draft d;
        draft_begin(&d, a, FINDING_UNDECIDED, AXIS_COUNT, m->rows, m->n);
        d.f.reason = "missing-runs";
        draft_write(&d, "No run is done: %zu run%s of %zu row%s failed or %s cancelled", m->n_failed,
                    m->n_failed == 1 ? "" : "s", m->n, m->n == 1 ? "" : "s", m->n_failed == 1 ? "was" : "were");
        if (n_open > 0)
                draft_write(&d, ", and %zu %s not begun or not over", n_open, n_open == 1 ? "is" : "are");
        draft_write(&d, ".");
        draft_figure(&d, "missing_runs", NULL, "runs", (double) m->n_planned);
        draft_end(&d);
}

/* Where no run is done and none failed nothing is concluded, and nothing has to be qualified. */
static void doubt_missing(struct answer *a) {
        struct missing m = {0};
        _cleanup_free_ uint32_t *rows = reallocarray(NULL, a->in->n_rows + 1, sizeof(*rows));
        if (!rows) {
                a->error = -ENOMEM;
                return;
        }
        m.rows = rows;
        for (size_t i = 0; i < a->in->n_rows; i++) {
                m.n_planned += a->in->rows[i].n_planned;
                m.n_failed += a->in->rows[i].n_failed;
                m.n_done += a->in->rows[i].n_runs;
        }
        for (size_t i = 0; i < a->in->n_rows; i++) {
                const struct findings_row *row = &a->in->rows[i];
                m.n_without += row->n_runs == 0 && row->n_failed > 0;
                if (m.n_done > 0 ? row->n_runs < row->n_planned : row->n_failed > 0)
                        rows[m.n++] = (uint32_t) i;
        }
        if (m.n > 0 && m.n_done > 0)
                draw_missing(a, &m);
        else if (m.n > 0)
                draw_none_done(a, &m);
}

static void write_part(struct draft *d, size_t n, size_t of) {
        if (of == 1)
                draft_write(d, ". In it");
        else if (n == of)
                draft_write(d, ". In all of them");
        else
                draft_write(d, ". In %zu of them", n);
}

static void draw_kneeless(struct answer *a) {
        const struct kneeless *k = &a->kneeless;
        char worst[PHRASE_MAX];
        struct draft d;
        if (k->n == 0)
                return;
        draft_begin(&d, a, FINDING_UNDECIDED, AXIS_MESSAGE_SIZE, k->rows, k->n);
        d.f.reason = "fit";
        draft_write(&d,
                    "The knee, the size at which half of a message's time is for its bytes, is not known for %zu "
                    "series of sizes",
                    k->n_off + k->n_outside);
        if (k->n_off > 0) {
                phrase_share(k->residual, worst);
                write_part(&d, k->n_off, k->n_off + k->n_outside);
                draft_write(&d,
                            " no straight lines fit the time per message, which are off by up to %s: more sizes would "
                            "show why, or longer runs on a quieter machine",
                            worst);
                draft_figure(&d, "residual", NULL, "ratio", k->residual);
        }
        if (k->n_outside > 0) {
                write_part(&d, k->n_outside, k->n_off + k->n_outside);
                draft_write(&d, " it is not between the sizes that ran, or has no interval: smaller and larger sizes, "
                                "or more runs, would decide");
        }
        draft_write(&d, ".");
        draft_end(&d);
}

void draw_doubts(struct answer *a) {
        if (a->collecting)
                return;
        draw_kneeless(a);
        for (enum axis_name axis = 0; axis < AXIS_COUNT; axis++)
                for (enum judged j = 0; j < JUDGED_COUNT; j++) {
                        if (a->doubts[axis][j].n > 0)
                                draw_overlap(a, axis, j, &a->doubts[axis][j]);
                        if (a->crossings[axis][j].n_pairs > 0)
                                draw_crossing(a, axis, j, &a->crossings[axis][j]);
                }
        draw_uncounted(a);
        for (enum judged j = 0; j < JUDGED_COUNT; j++)
                if (a->without_ratios[j].n > 0)
                        draw_without_ratios(a, j);
        if (a->cut.n > 0)
                draw_cut(a);
        draw_added(a);
        doubt_missing(a);
        for (enum disputed i = 0; i < DISPUTED_COUNT; i++)
                draw_disputed(a, i);
        for (size_t i = 0; i < ELEMENTS(reasons); i++)
                draw_reason(a, i);
}
