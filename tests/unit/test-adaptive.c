/* SPDX-License-Identifier: MIT */

/* When an experiment has enough runs, in which order they come, and whether its verdict is true. */

#include "daemon/analysis/adaptive.h"
#include "daemon/analysis/compare.h"
#include "daemon/analysis/statistics/order.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"
#include "tests/unit/lanes.h"
#include "tests/unit/samples.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct adaptive_limits limits = {
        .relative_half_width = 0.02, .blocks_max = 60, .budget_seconds = INFINITY};

static struct adaptive_row row(double estimate, double half_width) {
        return (struct adaptive_row){.estimate = estimate,
                                     .has_interval = true,
                                     .low = estimate * (1 - half_width),
                                     .high = estimate * (1 + half_width)};
}

static void test_looks(void) {
        static const uint32_t looks[] = {6, 9, 13, 19, 28, 41, 60, 88, 129, 200, 200};
        uint32_t blocks = 0;
        for (size_t i = 0; i < N(looks); i++)
                CHECK_UINT(blocks = adaptive_next_look(blocks), looks[i]);
}

static void test_decisions(void) {
        static const struct {
                uint32_t blocks, least, max;
                double width, seconds, budget;
                enum adaptive_reason reason;
                uint32_t next;
        } table[] = {
                {0, 0, 60, 1, 0, INFINITY, ADAPTIVE_CONTINUE, 6},
                {6, 0, 60, 0.01, 60, INFINITY, ADAPTIVE_REACHED, 6},
                {6, 0, 60, 0.03, 60, INFINITY, ADAPTIVE_CONTINUE, 9},
                {7, 0, 60, 0.01, 60, INFINITY, ADAPTIVE_CONTINUE, 9},   /* narrow, but no look is due */
                {9, 11, 60, 0.01, 60, INFINITY, ADAPTIVE_CONTINUE, 13}, /* narrow, but too few to compare */
                {13, 11, 60, 0.01, 60, INFINITY, ADAPTIVE_REACHED, 13},
                {41, 0, 50, 0.03, 60, INFINITY, ADAPTIVE_CONTINUE, 50},
                {50, 0, 50, 0.03, 60, INFINITY, ADAPTIVE_MAX, 50},
                {50, 0, 50, 0.01, 60, INFINITY, ADAPTIVE_REACHED, 50}, /* the last state counts */
                {6, 0, 60, 0.03, 60, 85, ADAPTIVE_CONTINUE, 8},        /* as many whole blocks as there is time for */
                {8, 0, 60, 0.03, 80, 85, ADAPTIVE_BUDGET, 8},
                {8, 0, 60, 0.01, 80, 85, ADAPTIVE_REACHED, 8},
                {8, 0, 60, 0.03, 90, 85, ADAPTIVE_BUDGET, 8}, /* overdrawn */
                {3, 0, 3, 0.03, 90, INFINITY, ADAPTIVE_MAX, 3},
        };
        for (size_t i = 0; i < N(table); i++) {
                struct adaptive_limits l = {.relative_half_width = 0.02,
                                            .blocks_least = table[i].least,
                                            .blocks_max = table[i].max,
                                            .budget_seconds = table[i].budget};
                struct adaptive_row rows[] = {row(100, 0.001), row(0.5, table[i].width)};
                struct adaptive_decision d;
                CHECK_INT(adaptive_decide(rows, 2, table[i].blocks, table[i].seconds, &l, &d), 0);
                if (d.reason != table[i].reason || d.next_blocks != table[i].next)
                        CHECK_FAIL("case %zu: reason %u, next %u", i, d.reason, d.next_blocks);
                CHECK_UINT(d.n_reached, 1 + (table[i].width <= 0.02));
        }
}

static void test_what_it_takes(void) {
        struct adaptive_row none = {.estimate = 100}, wide = row(100, 0.04), narrow = row(100, 0.01);
        CHECK(!adaptive_row_reached(&none, 0.02));
        CHECK(adaptive_row_needs(&none, 0.02, 5) == UINT32_MAX);
        CHECK_UINT(adaptive_row_needs(&wide, 0.02, 10), 40);
        CHECK_UINT(adaptive_row_needs(&narrow, 0.02, 10), 10);
}

static void test_refused(void) {
        struct adaptive_row one = row(1, 1);
        struct adaptive_decision d;
        struct adaptive_limits l = limits;
        l.blocks_max = ADAPTIVE_BLOCKS_MAX + 1;
        CHECK_INT(adaptive_decide(&one, 1, 6, 1, &l, &d), -EINVAL);
        l = limits;
        l.relative_half_width = 0;
        CHECK_INT(adaptive_decide(&one, 1, 6, 1, &l, &d), -EINVAL);
        l = limits;
        l.budget_seconds = NAN;
        CHECK_INT(adaptive_decide(&one, 1, 6, 1, &l, &d), -EINVAL);
        CHECK_INT(adaptive_decide(&one, 1, 6, -1, &limits, &d), -EINVAL);
}

/* Every point once, groups together, each place and order of a group as likely. */
static void test_block_order(void) {
        static const uint32_t groups[] = {7, 3, 7, 3, 9, 7};
        unsigned first[N(groups)] = {0}, alike = 0;
        uint32_t last[N(groups)] = {0};
        for (uint32_t block = 0; block < 6000; block++) {
                uint32_t order[N(groups)], again[N(groups)];
                unsigned seen = 0, changes = 0;
                CHECK_INT(adaptive_block_order(42, block, groups, N(groups), order), 0);
                CHECK_INT(adaptive_block_order(42, block, groups, N(groups), again), 0);
                CHECK(memcmp(order, again, sizeof(order)) == 0);
                for (size_t i = 0; i < N(groups); i++) {
                        seen |= 1u << order[i];
                        changes += i > 0 && groups[order[i]] != groups[order[i - 1]];
                }
                CHECK_UINT(seen, (1u << N(groups)) - 1);
                CHECK_UINT(changes, 2);
                first[order[0]]++;
                alike += memcmp(order, last, sizeof(order)) == 0;
                memcpy(last, order, sizeof(order));
        }
        /* 2000 for each group: 667, 1000, 667, 1000, 2000, 667 */
        static const unsigned expected[] = {667, 1000, 667, 1000, 2000, 667};
        for (size_t i = 0; i < N(groups); i++)
                CHECK(first[i] > expected[i] * 8 / 10 && first[i] < expected[i] * 12 / 10);
        CHECK(alike < 250); /* of 72 orders, the same twice running by chance: 83 */
        CHECK_INT(adaptive_block_order(1, 0, NULL, 0, NULL), 0);
}

/* Runs until the median's interval is ± 2 %: how often that interval then has the true median in it. */
static bool covers_when_stopped(struct random *random, double noise, uint32_t *ret_blocks) {
        double values[ADAPTIVE_BLOCKS_MAX];
        struct adaptive_decision d = {.reason = ADAPTIVE_CONTINUE};
        struct statistic s = {0};
        for (uint32_t n = 0; d.reason == ADAPTIVE_CONTINUE; n = d.next_blocks) {
                if (order_summarize(values, n, &s) < 0)
                        return false;
                struct adaptive_row one = {
                        .estimate = s.median, .has_interval = s.has_ci95, .low = s.ci95_low, .high = s.ci95_high};
                if (adaptive_decide(&one, 1, n, n, &limits, &d) < 0)
                        return false;
                for (uint32_t i = n; i < d.next_blocks; i++)
                        values[i] = 100 * sample_skewed(random, noise);
        }
        *ret_blocks = d.next_blocks;
        return s.ci95_low <= 100 && 100 <= s.ci95_high;
}

static void test_coverage_when_stopped(void) {
        static const double noises[] = {0.02, 0.04, 0.06};
        struct random random;
        random_init(&random, 1);
        for (size_t k = 0; k < N(noises); k++) {
                const unsigned trials = 2000;
                unsigned covered = 0;
                double blocks = 0;
                for (unsigned t = 0; t < trials; t++) {
                        uint32_t n;
                        covered += covers_when_stopped(&random, noises[k], &n);
                        blocks += (double) n / trials;
                }
                char what[80];
                (void) snprintf(what, sizeof(what),
                                "runs vary by %.0f %%, stopped at ± 2 %% (after %.0f): median covered", 100 * noises[k],
                                blocks);
                CHECK(sample_share(what, covered, trials) >= 0.945);
        }
}

/*
 * An experiment of `n_rows` compared pairs, of which the first is slower by 5 %: blocks until every pair's ratio is
 * known to ± 2 %, on a host that walks about by 2 % a run. Whether it is then called slower, and nothing else is.
 */
#define PAIRS_MAX 48u

struct outcome {
        bool found, alarm;
        uint32_t blocks;
};

static void run_blocks(struct random *random, size_t n_rows, double noise, uint32_t from, uint32_t to, double *walk,
                       double a[][ADAPTIVE_BLOCKS_MAX], double b[][ADAPTIVE_BLOCKS_MAX]) {
        for (uint32_t k = from; k < to; k++) {
                for (size_t i = 0; i < n_rows; i++) {
                        bool first = random_below(random, 2);
                        double speeds[2];
                        for (size_t j = 0; j < 2; j++) {
                                *walk += 0.02 * sample_normal(random);
                                speeds[j] = 1000 * exp(*walk + noise * sample_normal(random));
                        }
                        a[i][k] = speeds[first];
                        b[i][k] = speeds[!first] * (i == 0 ? 0.95 : 1);
                }
        }
}

static struct outcome try_slow_down(struct random *random, size_t n_rows, double noise) {
        static double a[PAIRS_MAX][ADAPTIVE_BLOCKS_MAX], b[PAIRS_MAX][ADAPTIVE_BLOCKS_MAX];
        static const struct compare_rule rule = {.margin = COMPARE_MARGIN, .correction = MULTIPLE_HOLM};
        struct comparison c[PAIRS_MAX];
        struct compare_row rows[PAIRS_MAX];
        struct adaptive_row widths[PAIRS_MAX] = {0};
        struct adaptive_limits l = limits;
        struct adaptive_decision d = {0};
        struct outcome outcome = {0};
        double walk = 0;
        l.blocks_least = compare_runs_least(true, n_rows);
        for (uint32_t n = 0; d.reason == ADAPTIVE_CONTINUE; n = d.next_blocks) {
                for (size_t i = 0; i < n_rows; i++)
                        rows[i] = (struct compare_row){
                                .baseline = a[i], .candidate = b[i], .n_baseline = n, .n_candidate = n, .paired = true};
                if (n > 0 && compare_rows(rows, n_rows, &rule, c) < 0)
                        return outcome;
                for (size_t i = 0; n > 0 && i < n_rows; i++)
                        widths[i] = (struct adaptive_row){.estimate = c[i].ratio,
                                                          .has_interval = c[i].has_interval,
                                                          .low = c[i].low,
                                                          .high = c[i].high};
                if (adaptive_decide(widths, n_rows, n, n, &l, &d) < 0)
                        return outcome;
                run_blocks(random, n_rows, noise, n, d.next_blocks, &walk, a, b);
        }
        outcome = (struct outcome){.found = c[0].verdict == COMPARE_SLOWER, .blocks = d.next_blocks};
        for (size_t i = 1; i < n_rows; i++)
                outcome.alarm |= c[i].verdict == COMPARE_SLOWER || c[i].verdict == COMPARE_FASTER;
        return outcome;
}

static void test_slow_down_is_found(void) {
        static const struct {
                size_t n_rows;
                double noise;
                unsigned trials;
        } table[] = {{1, 0.01, 500}, {1, 0.02, 500}, {1, 0.04, 300}, {48, 0.02, 60}};
        IN_LANES_OF_TRIALS(test_slow_down_is_found);
        for (size_t k = 0; k < N(table); k++) {
                if (!lanes_my_turn())
                        continue;
                struct random random;
                unsigned found = 0, alarms = 0;
                double blocks = 0;
                random_init(&random, 2 + k);
                for (unsigned t = 0; t < table[k].trials; t++) {
                        struct outcome o = try_slow_down(&random, table[k].n_rows, table[k].noise);
                        found += o.found;
                        alarms += o.alarm;
                        blocks += (double) o.blocks / table[k].trials;
                }
                char what[80];
                (void) snprintf(what, sizeof(what), "5 %% slower found, %zu rows, runs vary by %.0f %%, %.0f blocks",
                                table[k].n_rows, 100 * table[k].noise, blocks);
                CHECK(sample_share(what, found, table[k].trials) >= 0.95);
                if (table[k].n_rows == 1)
                        continue;
                double share = sample_share("  another row called different", alarms, table[k].trials);
                CHECK(share <= 0.05 + 3 * sqrt(0.05 * 0.95 / table[k].trials));
        }
}

/* ---- pairs ---- */

static struct adaptive_row row_of_pair(double half_width, bool decided, uint32_t runs_decide) {
        struct adaptive_row r = row(1, half_width);
        r.decided = decided;
        r.runs_decide = runs_decide;
        return r;
}

#define PAIRS 3u

struct ending {
        uint32_t blocks;
        unsigned verdicts[COMPARE_EQUIVALENT + 1]; /* of the pairs */
        unsigned covered;                          /* intervals of a ratio that cover the true one */
        bool reached;
};

/* Runs a baseline and PAIRS candidates, `slower` times as slow, in blocks that drift together, until each pair's ratio
 * is within ± 2 % or its verdict is known. */
static bool compare_until(struct random *random, double noise, double slower, struct ending *ret) {
        static double values[PAIRS + 1][ADAPTIVE_BLOCKS_MAX];
        struct adaptive_decision d = {.reason = ADAPTIVE_CONTINUE};
        struct adaptive_limits l = limits;
        struct comparison c[PAIRS] = {0};
        double host = 0;
        l.blocks_least = adaptive_blocks_least(PAIRS, adaptive_looks(l.blocks_max));
        for (uint32_t n = 0; d.reason == ADAPTIVE_CONTINUE; n = d.next_blocks) {
                struct compare_row rows[PAIRS];
                struct adaptive_row known[PAIRS] = {0};
                for (size_t i = 0; i < PAIRS; i++)
                        rows[i] = (struct compare_row){.baseline = values[0],
                                                       .candidate = values[i + 1],
                                                       .n_baseline = n,
                                                       .n_candidate = n,
                                                       .paired = true,
                                                       .looks = adaptive_looks(limits.blocks_max)};
                if (n > 0 && adaptive_compare(rows, PAIRS, known, c) < 0)
                        return false;
                if (adaptive_decide(known, PAIRS, n, n, &l, &d) < 0)
                        return false;
                for (uint32_t b = n; b < d.next_blocks; b++) {
                        host += 0.02 * sample_normal(random);
                        for (size_t i = 0; i <= PAIRS; i++)
                                values[i][b] = exp(host) * sample_skewed(random, noise) / (i > 0 ? slower : 1);
                }
        }
        *ret = (struct ending){.blocks = d.next_blocks, .reached = d.reason == ADAPTIVE_REACHED};
        for (size_t i = 0; i < PAIRS; i++) {
                ret->verdicts[c[i].verdict]++;
                ret->covered += c[i].low <= 1 / slower && 1 / slower <= c[i].high;
        }
        return true;
}

struct shares {
        double different, slower, equivalent, covered, reached, blocks;
};

static struct shares simulate_pairs(double noise, double slower, unsigned trials) {
        struct random random;
        unsigned different = 0, all_slower = 0, equivalent = 0, covered = 0, reached = 0;
        double blocks = 0;
        random_init(&random, 14);
        for (unsigned t = 0; t < trials; t++) {
                struct ending o = {0};
                if (!compare_until(&random, noise, slower, &o))
                        return (struct shares){.different = 1}; /* fails the checks */
                different += o.verdicts[COMPARE_FASTER] + o.verdicts[COMPARE_SLOWER] > 0;
                all_slower += o.verdicts[COMPARE_SLOWER];
                equivalent += o.verdicts[COMPARE_EQUIVALENT] > 0;
                covered += o.covered;
                reached += o.reached;
                blocks += o.blocks;
        }
        printf("     %u pairs, %.0f %% slower, runs differ by %.0f %%: stopped after %.1f blocks in the mean\n", PAIRS,
               100 * (slower - 1), 100 * noise, blocks / trials);
        return (struct shares){
                .different = sample_share("  answers with a pair called different", different, trials),
                .slower = sample_share("  pairs called slower", all_slower, PAIRS * trials),
                .equivalent = sample_share("  answers with a pair called equivalent", equivalent, trials),
                .covered = sample_share("  intervals of the ratio that cover it", covered, PAIRS * trials),
                .reached = sample_share("  stopped as all pairs were known", reached, trials),
                .blocks = blocks / trials};
}

/* What is decided at many looks is as rarely false as what is decided at one. */
static void test_pairs(void) {
        IN_LANES_OF_TRIALS(test_pairs);
        for (double noise = 0.02; noise < 0.05; noise += 0.02) {
                if (!lanes_my_turn())
                        continue;
                struct shares equal = simulate_pairs(noise, 1, 1000);
                CHECK(equal.different <= 0.05);
                CHECK(equal.covered >= 0.945);
                struct shares slower = simulate_pairs(noise, 1.05, 1000);
                CHECK(slower.slower >= 0.95);
                CHECK(slower.covered >= 0.945);
                CHECK(slower.blocks < limits.blocks_max);
        }
        /* narrow at the first look, where nothing can be decided */
        for (double noise = 0.003; noise < 0.012; noise *= 1.8) {
                if (!lanes_my_turn())
                        continue;
                struct shares slower = simulate_pairs(noise, 1.05, 300);
                CHECK(slower.slower >= 0.95);
        }
        if (!lanes_my_turn())
                return;
        struct shares margin = simulate_pairs(0.02, 1 / (1 - COMPARE_MARGIN), 1000);
        CHECK(margin.equivalent <= 0.05);
}

#define FIGURES 2u /* of a stream: its throughput, and the CPU time of a message */

/* One pair of equal points, until its first figure is decided; then all figures are read in one answer. */
static int read_once_more(struct random *random, double noise, uint32_t looks, bool *ret_different) {
        static double values[FIGURES][2][ADAPTIVE_BLOCKS_MAX];
        struct adaptive_decision d = {.reason = ADAPTIVE_CONTINUE};
        struct adaptive_limits l = limits;
        struct compare_row rows[FIGURES];
        struct comparison c[FIGURES];
        int r = 0;
        l.blocks_least = adaptive_blocks_least(1, adaptive_looks(l.blocks_max));
        for (uint32_t n = 0; r == 0 && d.reason == ADAPTIVE_CONTINUE; n = d.next_blocks) {
                struct adaptive_row known = {0};
                for (size_t f = 0; f < FIGURES; f++)
                        rows[f] = (struct compare_row){.baseline = values[f][0],
                                                       .candidate = values[f][1],
                                                       .n_baseline = n,
                                                       .n_candidate = n,
                                                       .paired = true,
                                                       .looks = f == 0 ? adaptive_looks(l.blocks_max) : 1};
                r = n > 0 ? adaptive_compare(rows, 1, &known, c) : 0;
                if (r == 0)
                        r = adaptive_decide(&known, 1, n, n, &l, &d);
                for (uint32_t b = n; r == 0 && b < d.next_blocks; b++)
                        for (size_t side = 0; side < 2; side++) {
                                double state = sample_normal(random);
                                for (size_t f = 0; f < FIGURES; f++)
                                        values[f][side][b] = exp(noise * (state + 0.3 * sample_normal(random)));
                        }
        }
        rows[0].looks = looks;
        const struct compare_rule rule = {.margin = COMPARE_MARGIN, .correction = MULTIPLE_HOLM};
        if (r == 0)
                r = compare_rows(rows, FIGURES, &rule, c);
        for (size_t f = 0; r == 0 && f < FIGURES; f++)
                *ret_different |= c[f].verdict == COMPARE_FASTER || c[f].verdict == COMPARE_SLOWER;
        return r;
}

/* Where the comparison decides the number of blocks, every later reading of them is a selected one, too. */
static void test_read_once_more(void) {
        IN_LANES_OF_TRIALS(test_read_once_more);
        const unsigned trials = 600;
        double shares[2] = {0};
        for (size_t counted = 0; counted < 2; counted++) {
                struct random random;
                unsigned different = 0;
                random_init(&random, 5);
                if (!lanes_my_turn())
                        continue;
                for (unsigned t = 0; t < trials; t++) {
                        bool one = false;
                        CHECK_INT(read_once_more(&random, 0.06, counted ? adaptive_looks(limits.blocks_max) : 1, &one),
                                  0);
                        different += one;
                }
                shares[counted] = sample_share(counted ? "  equal points that are different, with the looks"
                                                       : "  equal points that are different, without them",
                                               different, trials);
                CHECK(!counted || shares[counted] <= 0.05);
        }
}

static void test_pairs_of_few_blocks(void) {
        static const double ones[] = {1, 1.1, 1.2}, twos[] = {2, 2.2, 2.4};
        const struct compare_row row = {
                .baseline = ones, .candidate = twos, .n_baseline = 3, .n_candidate = 3, .paired = true, .looks = 7};
        struct adaptive_row known;
        struct comparison c;
        CHECK_UINT(adaptive_looks(60), 7);
        CHECK_UINT(adaptive_looks(6), 1);
        CHECK_UINT(adaptive_looks(7), 2);
        CHECK_INT(adaptive_compare(&row, 1, &known, &c), 0);
        CHECK(!known.has_interval && !known.decided && !adaptive_row_reached(&known, 1));
        CHECK_UINT(adaptive_row_needs(&known, 0.02, 3), UINT32_MAX);
        struct adaptive_row wide = row_of_pair(0.1, false, 30), decided = row_of_pair(0.1, true, 0);
        CHECK(!adaptive_row_reached(&wide, 0.02) && adaptive_row_reached(&decided, 0.02));
        CHECK_UINT(adaptive_row_needs(&wide, 0.02, 10), 30); /* its interval needed 250 */
        wide.runs_decide = 300;
        CHECK(adaptive_row_needs(&wide, 0.02, 10) < 300);
}

/* One disturbed pair of thirteen, against the twelve others: the interval is narrow and has not 1 in it, and at one of
 * seven looks the signs decide nothing. At the next one they do. */
static void test_a_narrow_pair_lacks_its_verdict(void) {
        double ones[19], others[19];
        for (size_t i = 0; i < N(ones); i++) {
                ones[i] = 1;
                others[i] = i == 4 ? 0.9 : 1.045 + 0.001 * (double) i;
        }
        struct compare_row pair = {
                .baseline = ones, .candidate = others, .n_baseline = 13, .n_candidate = 13, .paired = true, .looks = 7};
        struct adaptive_row known;
        struct comparison c;
        CHECK_INT(adaptive_compare(&pair, 1, &known, &c), 0);
        CHECK_INT(c.verdict, COMPARE_UNDECIDED);
        CHECK(known.low > 1.03 && adaptive_row_width(&known) < 0.02);
        CHECK(known.unsettled && !adaptive_row_reached(&known, 0.02));
        CHECK(adaptive_row_needs(&known, 0.02, 13) >= 13);
        pair.n_baseline = pair.n_candidate = 19;
        CHECK_INT(adaptive_compare(&pair, 1, &known, &c), 0);
        CHECK(known.decided && !known.unsettled && adaptive_row_reached(&known, 0.02));
}

int main(void) {
        RUN(test_looks);
        RUN(test_decisions);
        RUN(test_what_it_takes);
        RUN(test_refused);
        RUN(test_block_order);
        RUN(test_coverage_when_stopped);
        RUN(test_slow_down_is_found);
        RUN(test_pairs);
        RUN(test_read_once_more);
        RUN(test_pairs_of_few_blocks);
        RUN(test_a_narrow_pair_lacks_its_verdict);
        return check_end();
}
