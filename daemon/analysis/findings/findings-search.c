/* SPDX-License-Identifier: MIT */

/* The highest rate at which the 99th percentile of the latency keeps its limit, which a search has found. */

#include "daemon/analysis/findings/findings-internal.h"

#include "daemon/analysis/phrase.h"

/* Writes the rate of each stream, where two go both ways. */
static void write_rate(struct draft *d, const char *before, double rate) {
        char words[PHRASE_MAX];
        phrase_value(rate, "messages/s", words);
        draft_write(d, "%s%s%s", before, words, point_streams(&d->f.subject) > 1 ? " each way" : "");
}

/* "2 of the rates below it exceeded the limit or were not reached" */
static void write_contradictions(struct draft *d, const struct findings_search *s) {
        if (s->n_below > 0)
                draft_write(d, ", although %u of the rates below it exceeded the limit or %s not reached", s->n_below,
                            s->n_below == 1 ? "was" : "were");
        if (s->n_beyond > 0)
                draft_write(d, "%s%u of the rates beyond it kept the limit", s->n_below > 0 ? ", and " : ", although ",
                            s->n_beyond);
}

static void write_found(struct draft *d, const struct findings_search *s, const char *limit) {
        char share[PHRASE_MAX];
        draft_write(d, "the 99th percentile of the latency stays below %s up to a rate between ", limit);
        write_rate(d, "", s->kept);
        write_rate(d, " and ", s->not_kept);
        if (s->closed_loop > 0) {
                phrase_share(s->kept / s->closed_loop, share);
                draft_write(d, ", at %s of what a closed loop carries", share);
        }
}

static void write_all_kept(struct draft *d, const struct findings_search *s, const char *limit) {
        draft_write(d, "the 99th percentile of the latency stays below %s ", limit);
        write_rate(d,
                   s->n_below > 0 ? "up to the highest rate that was tried, " : "at every rate that was tried, up to ",
                   s->kept);
}

/* A rate that was not reached may have a latency below the limit. */
static void write_none_kept(struct draft *d, const struct findings_search *s, const char *limit) {
        if (s->n_beyond > 0) {
                write_rate(d, "already at the lowest rate that was tried, ", s->not_kept);
                draft_write(d,
                            ", the 99th percentile of the latency exceeds the limit of %s, or that rate was not "
                            "reached",
                            limit);
        } else {
                write_rate(d, "no rate that was tried, down to ", s->not_kept);
                draft_write(d, ", was reached with a 99th percentile of the latency below %s", limit);
        }
}

static void write_width(struct draft *d, const struct findings_search *s) {
        char share[PHRASE_MAX];
        if (!s->wide || !(s->kept > 0))
                return;
        phrase_share(s->not_kept / s->kept - 1, share);
        draft_write(d,
                    "; the two rates are %s apart, and no more may be tried: runs that do not contradict each other "
                    "bring them closer",
                    share);
}

/* Whether this row's closed loop or its rates are in doubt; nothing is tested, so that the confidence is of the runs
 * alone. */
static bool is_doubtful(const struct findings_search *s) {
        const struct findings_flags *r = &s->rates;
        return r->noisy || r->unsteady || r->changed || r->unobserved || r->restless ||
               disputed_any(r->n_disputed, FIGURES_BIT(FIGURES_GROUPS) - 1) || s->wide || s->n_below > 0 ||
               s->n_beyond > 0 || s->runs_least < FINDINGS_SEARCH_RUNS_LEAST;
}

static void draw_search(struct answer *a, const struct findings_search *s) {
        char limit[PHRASE_MAX];
        struct draft d;
        phrase_value(a->in->search_limit_us * 1e3, "ns", limit);
        draft_begin(&d, a, FINDING_HIGHEST_RATE, AXIS_COUNT, &s->row, 1);
        d.f.n_runs += s->n_runs;
        if (is_doubtful(s))
                d.f.confidence = CONFIDENCE_REDUCED;
        draft_write_subject(&d, 0, "");
        draft_write(&d, ": ");
        if (s->kept > 0 && s->not_kept > 0)
                write_found(&d, s, limit);
        else if (s->kept > 0)
                write_all_kept(&d, s, limit);
        else
                write_none_kept(&d, s, limit);
        write_contradictions(&d, s);
        write_width(&d, s);
        draft_write(&d, " (%u rate%s, %s%u run%s%s).", s->n_rates, s->n_rates == 1 ? "" : "s",
                    s->n_rates == 1 ? "" : "at least ", s->runs_least, s->runs_least == 1 ? "" : "s",
                    s->n_rates == 1 ? "" : " each");
        if (s->kept > 0)
                draft_figure(&d, "highest_rate", NULL, "messages/s", s->kept);
        if (s->kept > 0 && s->not_kept > 0)
                draft_interval(&d, s->kept, s->not_kept, 0);
        if (s->not_kept > 0)
                draft_figure(&d, "lowest_rate_not_kept", NULL, "messages/s", s->not_kept);
        draft_end(&d);
}

void draw_searches(struct answer *a) {
        for (size_t i = 0; i < a->in->n_searches && !a->collecting && a->error == 0; i++)
                draw_search(a, &a->in->searches[i]);
}
