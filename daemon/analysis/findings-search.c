/* SPDX-License-Identifier: MIT */

/* The highest rate at which the 99th percentile of the latency keeps its limit, which a search has found. */

#include "daemon/analysis/findings-internal.h"

#include "daemon/analysis/phrase.h"

static void write_rate(struct draft *d, const char *before, double rate) {
        char words[PHRASE_MAX];
        phrase_value(rate, "messages/s", words);
        draft_write(d, "%s%s", before, words);
}

static void write_found(struct draft *d, const struct findings_search *s, const char *limit) {
        char share[PHRASE_MAX];
        draft_write(d, "the 99th percentile of the latency reaches %s between ", limit);
        write_rate(d, "", s->kept);
        write_rate(d, " and ", s->not_kept);
        if (s->closed_loop > 0) {
                phrase_share(s->kept / s->closed_loop, share);
                draft_write(d, ", at %s of what a closed loop carries", share);
        }
}

static void draw_search(struct answer *a, const struct findings_search *s) {
        char limit[PHRASE_MAX];
        struct draft d;
        phrase_value(a->in->search_limit_us * 1e3, "ns", limit);
        draft_begin(&d, a, FINDING_HIGHEST_RATE, AXIS_COUNT, &s->row, 1);
        d.f.n_runs += s->n_runs;
        if (s->noisy)
                d.f.confidence = CONFIDENCE_REDUCED;
        draft_write_subject(&d, 0, "");
        draft_write(&d, ": ");
        if (s->kept > 0 && s->not_kept > 0) {
                write_found(&d, s, limit);
        } else if (s->kept > 0) {
                draft_write(&d, "the 99th percentile of the latency stays below %s at every rate that was tried",
                            limit);
                write_rate(&d, ", up to ", s->kept);
        } else {
                draft_write(&d, "the 99th percentile of the latency stays below %s at no rate that was tried", limit);
                write_rate(&d, ", down to ", s->not_kept);
        }
        draft_write(&d, " (%u rate%s).", s->n_rates, s->n_rates == 1 ? "" : "s");
        if (s->kept > 0)
                draft_figure(&d, "highest_rate", NULL, "messages/s", s->kept);
        if (s->not_kept > 0)
                draft_figure(&d, "lowest_rate_not_kept", NULL, "messages/s", s->not_kept);
        draft_end(&d);
}

void draw_searches(struct answer *a) {
        for (size_t i = 0; i < a->in->n_searches && !a->collecting && a->error == 0; i++)
                draw_search(a, &a->in->searches[i]);
}
