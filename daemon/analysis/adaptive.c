/* SPDX-License-Identifier: MIT */

/* See adaptive.h. Called by the scheduler after each block of an experiment with `until`. */

#include "daemon/analysis/adaptive.h"
#include "daemon/analysis/compare.h"
#include "schema/random.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>

/* Each about 1.45 times the one before. */
static const uint32_t looks[] = {6, 9, 13, 19, 28, 41, 60, 88, 129, ADAPTIVE_BLOCKS_MAX};

uint32_t adaptive_next_look(uint32_t blocks) {
        for (size_t i = 0; i < ELEMENTS(looks); i++)
                if (looks[i] > blocks)
                        return looks[i];
        return ADAPTIVE_BLOCKS_MAX;
}

/* The longer side counts: an interval is ± 2 % only if both of its ends are that near. */
double adaptive_row_width(const struct adaptive_row *row) {
        return fmax(row->high - row->estimate, row->estimate - row->low) / fabs(row->estimate);
}

bool adaptive_row_reached(const struct adaptive_row *row, double relative_half_width) {
        return row->decided || (row->has_interval && !row->unsettled && adaptive_row_width(row) <= relative_half_width);
}

uint32_t adaptive_row_needs(const struct adaptive_row *row, double relative_half_width, uint32_t blocks) {
        if (!row->has_interval)
                return UINT32_MAX;
        double steps = adaptive_row_width(row) / relative_half_width, needs = ceil(blocks * fmax(1, steps * steps));
        uint32_t blocks_narrow = needs < UINT32_MAX ? (uint32_t) needs : UINT32_MAX;
        if (row->unsettled && row->runs_decide > blocks_narrow)
                return row->runs_decide;
        return row->runs_decide > 0 && row->runs_decide < blocks_narrow ? row->runs_decide : blocks_narrow;
}

uint32_t adaptive_looks(uint32_t blocks_max) {
        uint32_t n = 1;
        for (size_t i = 0; i < ELEMENTS(looks); i++)
                n += looks[i] < blocks_max;
        return n;
}

uint32_t adaptive_blocks_least(size_t n, uint32_t n_looks) {
        return compare_runs_least(true, n * n_looks);
}

struct adaptive_watch adaptive_watch_of(const struct spec_until *until, uint32_t looks_made) {
        struct adaptive_watch watch = {.figure = until_figure(until->figure)};
        if (until->compare.given) {
                uint32_t planned = adaptive_looks(until->max_repetitions);
                watch.looks = planned > looks_made ? planned : looks_made;
        }
        return watch;
}

int adaptive_compare(const struct compare_row *pairs, size_t n, struct adaptive_row *ret,
                     struct comparison *ret_comparisons) {
        const struct compare_rule rule = {.margin = COMPARE_MARGIN, .correction = MULTIPLE_HOLM};
        int r = compare_rows(pairs, n, &rule, ret_comparisons);
        for (size_t i = 0; r == 0 && i < n; i++) {
                const struct comparison *c = &ret_comparisons[i];
                ret[i] = (struct adaptive_row){.estimate = c->ratio,
                                               .has_interval = c->has_interval,
                                               .low = c->low,
                                               .high = c->high,
                                               .decided = c->verdict != COMPARE_UNDECIDED,
                                               .unsettled = c->verdict == COMPARE_UNDECIDED && c->has_interval &&
                                                            (c->low > 1 || c->high < 1),
                                               .runs_decide = c->runs_needed};
        }
        return r;
}

/* The blocks that blocks_max and the budget permit, by the time of the blocks so far. */
static void plan(uint32_t blocks, double seconds, const struct adaptive_limits *limits, struct adaptive_decision *d) {
        uint32_t next = adaptive_next_look(blocks);
        d->reason = ADAPTIVE_CONTINUE;
        if (next >= limits->blocks_max) {
                next = limits->blocks_max;
                if (blocks >= next) {
                        d->reason = ADAPTIVE_MAX;
                        next = blocks;
                }
        }
        double left = limits->budget_seconds - seconds, block_seconds = blocks > 0 ? seconds / blocks : 0;
        if (d->reason == ADAPTIVE_CONTINUE && block_seconds * (next - blocks) > left) {
                next = blocks + (left > 0 ? (uint32_t) (left / block_seconds) : 0);
                if (next == blocks)
                        d->reason = ADAPTIVE_BUDGET;
        }
        d->next_blocks = next;
}

int adaptive_decide(const struct adaptive_row *rows, size_t n_rows, uint32_t blocks, double seconds,
                    const struct adaptive_limits *limits, struct adaptive_decision *ret) {
        if (!(limits->relative_half_width > 0) || limits->blocks_max < 1 || limits->blocks_max > ADAPTIVE_BLOCKS_MAX ||
            blocks > ADAPTIVE_BLOCKS_MAX || !(limits->budget_seconds >= 0) || !(seconds >= 0))
                return -EINVAL;
        struct adaptive_decision d = {0};
        size_t n_decided = 0;
        for (size_t i = 0; i < n_rows; i++) {
                d.n_reached += adaptive_row_reached(&rows[i], limits->relative_half_width);
                n_decided += rows[i].decided;
        }
        plan(blocks, seconds, limits, &d);
        bool is_look = blocks > 0 && adaptive_next_look(blocks - 1) == blocks;
        bool is_due = is_look || d.reason != ADAPTIVE_CONTINUE; /* the last state is always examined */
        bool is_early = blocks < limits->blocks_least && n_decided < n_rows;
        if (is_due && !is_early && n_rows > 0 && d.n_reached == n_rows) {
                d.reason = ADAPTIVE_REACHED;
                d.next_blocks = blocks;
        }
        *ret = d;
        return 0;
}

struct place {
        uint32_t group, point;
};

static int by_group(const void *a, const void *b) {
        const struct place *x = a, *y = b;
        if (x->group != y->group)
                return x->group < y->group ? -1 : 1;
        return (x->point > y->point) - (x->point < y->point);
}

/* Places where a group begins, and one past the last. */
static size_t find_groups(const struct place *places, size_t n, uint32_t *begins) {
        size_t n_groups = 0;
        for (size_t i = 0; i < n; i++)
                if (i == 0 || places[i].group != places[i - 1].group)
                        begins[n_groups++] = (uint32_t) i;
        begins[n_groups] = (uint32_t) n;
        return n_groups;
}

int adaptive_block_order(uint64_t seed, uint32_t block, const uint32_t *groups, size_t n_points, uint32_t *ret_order) {
        _cleanup_free_ struct place *places = reallocarray(NULL, n_points + 1, sizeof(*places));
        _cleanup_free_ uint32_t *begins = reallocarray(NULL, n_points + 1, sizeof(*begins));
        _cleanup_free_ uint32_t *turns = reallocarray(NULL, n_points + 1, sizeof(*turns));
        if (!places || !begins || !turns)
                return -ENOMEM;
        for (size_t i = 0; i < n_points; i++)
                places[i] = (struct place){.group = groups ? groups[i] : 0, .point = (uint32_t) i};
        qsort(places, n_points, sizeof(*places), by_group);
        size_t n_groups = find_groups(places, n_points, begins), k = 0;

        struct random random;
        random_init(&random, seed);
        random_init(&random, random_next(&random) ^ block); /* a stream for each block */
        for (size_t g = 0; g < n_groups; g++)
                turns[g] = (uint32_t) g;
        random_shuffle(&random, turns, n_groups);
        for (size_t g = 0; g < n_groups; g++) {
                size_t begin = k;
                for (uint32_t i = begins[turns[g]]; i < begins[turns[g] + 1]; i++)
                        ret_order[k++] = places[i].point;
                random_shuffle(&random, ret_order + begin, k - begin);
        }
        return 0;
}
