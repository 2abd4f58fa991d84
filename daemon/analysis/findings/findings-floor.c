/* SPDX-License-Identifier: MIT */

/* The noise floor: what equal points that were measured twice differ by. */

#include "daemon/analysis/findings/findings-internal.h"

#include "daemon/analysis/phrase.h"

#include <math.h>

/* "differ by 0.42 % [-0.9 %, 1.7 %] in throughput" */
static void write_difference(struct draft *d, const struct comparison *c, enum judged judged) {
        char words[3][PHRASE_MAX];
        phrase_shares((const double[]){c->ratio - 1, c->low - 1, c->high - 1}, words);
        draft_write(d, ": equal points measured twice differ by %s", words[0]);
        if (c->has_interval)
                draft_write(d, " [%s, %s]", words[1], words[2]);
        draft_write(d, " in %s", judged_terms[judged].words);
}

static void write_floor(struct draft *d, const struct comparison *c, enum judged judged) {
        char share[PHRASE_MAX];
        double floor = fmax(fabs(c->low - 1), fabs(c->high - 1));
        if (!c->has_interval) {
                d->f.runs_needed = c->runs_needed;
                draft_write(d, ". For an interval there are too few runs: %u of each are enough.", c->runs_needed);
        } else if (c->differs) {
                draft_write(d, ": more than the scatter of their runs explains. Intervals of this experiment do not "
                               "cover all that the machine does.");
        } else {
                phrase_share(floor, share);
                draft_write(d, ": a difference of less than %s between other points of this experiment may be noise.",
                            share);
                draft_figure(d, "noise_floor", judged_terms[judged].words, "ratio", floor);
        }
}

static void draw_floor(struct answer *a, const uint32_t *rows, enum judged judged) {
        struct comparison c;
        struct draft d;
        if (!answer_compare(a, rows[0], rows[1], judged, &c))
                return;
        draft_begin(&d, a, FINDING_NOISE_FLOOR, AXIS_INSTANCE, rows, SPEC_INSTANCES);
        d.f.rests_on = judged_figures(judged);
        draft_write_subject(&d, AXIS_BIT(AXIS_INSTANCE), "");
        write_difference(&d, &c, judged);
        write_floor(&d, &c, judged);
        draft_ratio(&d, "ratio", judged_terms[judged].words, &c);
        draft_end(&d);
}

static void floor_group(struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n) {
        (void) axis;
        if (n != SPEC_INSTANCES)
                return;
        for (enum judged j = 0; j < JUDGED_COUNT; j++)
                if (judged_applies(j, &a->in->rows[rows[0]]))
                        draw_floor(a, rows, j);
}

void draw_floors(struct answer *a) {
        if (a->n_values[AXIS_INSTANCE] > 1)
                answer_groups(a, 0, AXIS_INSTANCE, floor_group);
}
