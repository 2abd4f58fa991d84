/* SPDX-License-Identifier: MIT */

/* See until.h. Called by the service for a submission, and by the scheduler. */

#include "daemon/result/until.h"

#include "daemon/analysis/statistics/serial.h"
#include "daemon/result/figure.h"
#include "daemon/result/until-internal.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define POINTS_PER_PAGE 32u
#define ASKED "repetitions_asked"

struct table {
        struct row *rows;
        size_t n, size;
};

static void table_deinit(struct table *t) {
        for (size_t i = 0; i < t->n; i++) {
                free(t->rows[i].point_json);
                free(t->rows[i].values);
                free(t->rows[i].blocks);
        }
        free(t->rows);
}

static int summarize_point(struct point_record *p, enum figure figure, struct row *ret) {
        _cleanup_free_ double *values = reallocarray(NULL, p->n_runs + 1, sizeof(*values));
        _cleanup_free_ uint32_t *blocks = reallocarray(NULL, p->n_runs + 1, sizeof(*blocks));
        if (!values || !blocks)
                return -ENOMEM;
        size_t n = 0;
        bool done = false, few = false;
        for (size_t i = 0; i < p->n_runs; i++) {
                const struct point_run *run = &p->runs[i];
                done |= run->state == STATE_DONE;
                int r = run->state == STATE_DONE && run->result_json
                                ? figure_of_run(run->result_json, figure, &values[n])
                                : -ENODATA;
                if (r < 0 && r != -ENODATA && r != -EDOM)
                        return r;
                few |= r == -EDOM;
                blocks[n] = run->block;
                n += r == 0;
        }
        if (few) /* the others alone would be a choice: slow runs have few messages */
                n = 0;
        struct statistic s;
        struct serial serial;
        int r = serial_summarize(values, n, &s, &serial);
        if (r < 0)
                return r == -EINVAL ? -EBADMSG : r;
        *ret = (struct row){.point_json = util_steal(&p->point_json),
                            .runs = (uint32_t) n,
                            .few_latencies = few,
                            .dead = !done,
                            .values = util_steal(&values),
                            .blocks = util_steal(&blocks),
                            .serial = serial,
                            .known = {.estimate = s.median,
                                      .has_interval = n > 0 && s.has_ci95 && s.median != 0,
                                      .low = s.ci95_low,
                                      .high = s.ci95_high}};
        return 0;
}

static int add_page(struct table *t, struct point_record *page, size_t n, enum figure figure) {
        struct row *rows = reallocarray(t->rows, t->n + n, sizeof(*rows));
        if (!rows)
                return -ENOMEM;
        t->rows = rows;
        for (size_t i = 0; i < n; i++) {
                int r = summarize_point(&page[i], figure, &t->rows[t->n]);
                if (r < 0)
                        return r;
                t->n++;
        }
        return 0;
}

static int read_table(struct store *store, int64_t experiment_id, enum figure figure, struct table *t) {
        for (;;) {
                struct point_record *page;
                size_t n;
                int r = store_points(store, experiment_id, (uint32_t) t->n, POINTS_PER_PAGE, &page, &n);
                if (r < 0)
                        return r;
                if (n > 0)
                        r = add_page(t, page, n, figure);
                store_points_free(page, n);
                if (r < 0 || n == 0)
                        return r;
        }
}

/* Rows without an interval come first, then the widest: so those that are not reached are before those that are. */
static int by_width(const void *a, const void *b) {
        const struct row *x = a, *y = b;
        if (x->known.has_interval != y->known.has_interval)
                return x->known.has_interval ? 1 : -1;
        double wide = adaptive_row_width(&x->known), other = adaptive_row_width(&y->known);
        return x->known.has_interval && wide != other ? (wide < other ? 1 : -1) : 0;
}

bool until_put_width(struct json_writer *w, const struct adaptive_row *known, double relative_ci, uint32_t blocks,
                     uint32_t most) {
        uint32_t needed = adaptive_row_needs(known, relative_ci, blocks);
        json_member_double_if(w, "relative_ci", known->has_interval, adaptive_row_width(known));
        json_member_u64_if(w, "repetitions_needed", needed <= most, needed);
        return needed > most;
}

static const char *why_no_interval(const struct row *row, enum figure figure) {
        if (row->runs >= INTERVAL_RUNS_MIN)
                return "the median is 0, and no interval is a part of it";
        if (row->dead)
                return "no run of it is done";
        return row->few_latencies
                       ? figure_terms[figure].few
                       : "fewer than " UTIL_TEXT(INTERVAL_RUNS_MIN) " runs have the figure, and there is no interval";
}

/* What a drift makes of the row; nothing where there is none, and the interval is that of independent runs. */
static void write_drift(const struct row *row, enum figure figure, char *words, size_t size) {
        const struct serial *s = &row->serial;
        bool alike = s->material && row->known.has_interval == s->interval.has_interval; /* else the median is 0 */
        words[0] = '\0';
        if (!alike && !row->known.has_interval)
                (void) snprintf(words, size, "%s", why_no_interval(row, figure));
        else if (alike)
                (void) snprintf(words, size,
                                "neighbouring runs are alike (correlation %.2f, without its bias): %" PRIu32
                                " of them tell as much as %.1f independent ones%s",
                                s->corrected, row->runs, s->effective_runs,
                                row->known.has_interval ? ", and the interval is as wide as of those"
                                                        : ", too few for an interval; runs at other times tell more");
}

/* `beyond`: it has an interval, and needs more blocks than an experiment can have. */
static void put_reason(struct json_writer *w, const struct row *row, enum figure figure, bool beyond, uint32_t needed) {
        char words[512], number[32] = "";
        write_drift(row, figure, words, sizeof(words));
        if (beyond) {
                size_t n = strlen(words);
                if (needed < UINT32_MAX)
                        (void) snprintf(number, sizeof(number), "about %" PRIu32 " repetitions, ", needed);
                (void) snprintf(words + n, sizeof(words) - n,
                                "%sit would take %smore than the %u that an experiment with until can have; a quieter "
                                "machine or a longer window needs fewer",
                                n > 0 ? "; " : "", number, SPEC_UNTIL_REPETITIONS_MAX);
        }
        if (words[0])
                json_member_string(w, "reason", words);
}

static void put_row(struct json_writer *w, const struct row *row, const struct spec_until *until, uint32_t blocks) {
        json_object_begin(w);
        json_member_raw(w, "point", row->point_json);
        json_member_u64(w, "runs", row->runs);
        bool beyond = until_put_width(w, &row->known, until->relative_ci, blocks, SPEC_UNTIL_REPETITIONS_MAX);
        put_reason(w, row, until_figure(until->figure), beyond && row->known.has_interval,
                   adaptive_row_needs(&row->known, until->relative_ci, blocks));
        json_object_end(w);
}

static void put_rows(struct json_writer *w, struct table *t, const struct spec_until *until, uint32_t blocks) {
        size_t n = 0;
        qsort(t->rows, t->n, sizeof(*t->rows), by_width);
        while (n < t->n && !adaptive_row_reached(&t->rows[n].known, until->relative_ci))
                n++;
        json_member_u64(w, "rows", t->n);
        json_member_u64(w, "rows_reached", t->n - n);
        json_member_array(w, "rows_not_reached");
        for (size_t i = 0; i < n && i < LISTED_MAX; i++)
                put_row(w, &t->rows[i], until, blocks);
        json_array_end(w);
}

/* What a look is at. */
struct look {
        uint32_t blocks;
        uint64_t runs; /* of the rows, or of the pairs, that have the figure; a decision of an early version has none */
};

/* Whether it is at the same data: a run that is done stays as it is, and one that is retried adds itself when it is. */
static int is_look(const struct json *stored, const struct look *look, bool *ret) {
        int64_t blocks, runs = -1;
        const struct json *repetitions = json_get(stored, "repetitions"), *member = json_get(stored, "runs");
        if (!repetitions || json_as_i64(repetitions, &blocks) < 0 || (member && json_as_i64(member, &runs) < 0))
                return -EBADMSG;
        *ret = look && blocks == look->blocks && runs >= 0 && (uint64_t) runs == look->runs;
        return 0;
}

/* The looks that a stored decision lists, but for one at the data of `but`: where all runs that were retried fail again
 * nothing new is seen. NULL: all of them. w NULL: they are counted only. */
static int take_looks(const char *until_json, const struct look *but, struct json_writer *w, uint32_t *ret) {
        struct json *root;
        uint32_t n = 0;
        int r = json_parse(until_json, strlen(until_json), &root, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        const struct json *looks = json_type(root) == JSON_OBJECT ? json_get(root, "looks") : NULL;
        for (const struct json *look = looks ? json_first(looks) : NULL; r == 0 && look; look = json_next(look)) {
                bool same = false;
                _cleanup_free_ char *text = json_print(look);
                r = text ? is_look(look, but, &same) : -ENOMEM;
                if (r < 0 || same)
                        continue;
                n++;
                if (w)
                        json_put_raw(w, text);
        }
        json_free(root);
        if (r == 0)
                *ret = n;
        return r;
}

int until_looks_made(const char *until_json, uint32_t *ret) {
        *ret = 0;
        return until_json ? take_looks(until_json, NULL, NULL, ret) : 0;
}

int until_asked(const char *until_json, uint32_t *ret) {
        struct json *root = NULL;
        int64_t asked;
        int r = until_json ? json_parse(until_json, strlen(until_json), &root, NULL) : -ENODATA;
        if (r < 0)
                return r == -ENOMEM || r == -ENODATA ? r : -EBADMSG;
        const struct json *member = json_type(root) == JSON_OBJECT ? json_get(root, ASKED) : NULL;
        if (!member)
                r = -ENODATA;
        else if (json_as_i64(member, &asked) < 0 || asked < 1 || asked > ADAPTIVE_BLOCKS_MAX)
                r = -EBADMSG;
        else
                *ret = (uint32_t) asked;
        json_free(root);
        return r;
}

/* Those before, and the blocks that this decision adds. */
static int put_asked(struct json_writer *w, const char *before, uint32_t more) {
        uint32_t asked;
        int r = until_asked(before, &asked);
        if (r == 0)
                json_member_u64(w, ASKED, asked + more);
        return r == -ENODATA ? 0 : r;
}

/* Writes the earlier decisions, from the stored text, and this one. */
static int put_looks(struct json_writer *w, const char *before, const struct look *look, const char *reached,
                     size_t n_reached) {
        uint32_t n;
        json_member_array(w, "looks");
        int r = take_looks(before, look, w, &n);
        json_object_begin(w);
        json_member_u64(w, "repetitions", look->blocks);
        json_member_u64(w, "runs", look->runs);
        json_member_u64(w, reached, n_reached);
        json_object_end(w);
        json_array_end(w);
        return r;
}

static void put_goal(struct json_writer *w, const char *state, const struct spec_until *until) {
        json_member_string(w, "state", state);
        json_member_string(w, "figure", until_figure_words.name(until->figure));
        json_member_double(w, "relative_ci", until->relative_ci);
        json_member_u64(w, "max_repetitions", until->max_repetitions);
        json_member_double_if(w, "budget_seconds", until->budget_seconds > 0, until->budget_seconds);
}

/* n rows, or compared pairs. */
static struct adaptive_limits limits_of(const struct spec_until *until, size_t n, uint32_t looks_made) {
        const struct adaptive_watch watch = adaptive_watch_of(until, looks_made);
        return (struct adaptive_limits){.relative_half_width = until->relative_ci,
                                        .blocks_least =
                                                until->compare.given ? adaptive_blocks_least(n, watch.looks) : 0,
                                        .blocks_max = until->max_repetitions,
                                        .budget_seconds = until->budget_seconds > 0 ? until->budget_seconds : INFINITY};
}

int until_begin(const struct spec *spec, double block_seconds, uint32_t *ret_blocks, char **ret_json) {
        const struct spec_until *until = &spec->until;
        uint32_t blocks = adaptive_next_look(0);
        if (blocks > until->max_repetitions)
                blocks = until->max_repetitions;
        if (until->budget_seconds > 0 && block_seconds * blocks > until->budget_seconds)
                blocks = (uint32_t) (until->budget_seconds / block_seconds);
        if (blocks < 1)
                blocks = 1; /* an experiment has one block at least, so that it has a figure */
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_writer_init(&w);
        json_object_begin(&w);
        put_goal(&w, "running", until);
        json_member_u64(&w, ASKED, blocks);
        json_member_raw(&w, "looks", "[]");
        json_member_null(&w, "rows");
        json_member_null(&w, "rows_reached");
        json_member_raw(&w, "rows_not_reached", "[]");
        if (until->compare.given)
                until_put_pairs(&w, spec, NULL, NULL, 0);
        json_object_end(&w);
        int r = json_writer_steal(&w, ret_json, NULL);
        if (r == 0)
                *ret_blocks = blocks;
        return r;
}

/* Without a row of which there is nothing, no further block would help the others to be compared with it; nor does one
 * give a ratio to a pair of which a run has none. */
static bool is_dead(const struct table *t, const struct pairs *p, bool compares, size_t i) {
        if (!compares)
                return t->rows[i].dead;
        const struct pair *pair = &p->items[i];
        return t->rows[pair->baseline].dead || t->rows[pair->candidate].dead || pair->no_ratio;
}

/* What decides: the pairs where the spec compares, else the rows; those that are dead do not. */
static int take_known(const struct table *t, const struct spec *spec, const struct pairs *p, struct adaptive_row **ret,
                      size_t *ret_n, bool *ret_dead) {
        bool compares = spec->until.compare.given;
        size_t n = compares ? p->n : t->n, n_known = 0;
        struct adaptive_row *known = reallocarray(NULL, n + 1, sizeof(*known));
        if (!known)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (!is_dead(t, p, compares, i))
                        known[n_known++] = compares ? p->items[i].known : t->rows[i].known;
        *ret = known;
        *ret_n = n_known;
        *ret_dead = n_known < n;
        return 0;
}

static int decide(const struct table *t, const struct pairs *p, const struct experiment_record *e,
                  const struct spec *spec, uint32_t looks_made, struct adaptive_decision *ret, const char **ret_state) {
        static const char *const states[] = {
                [ADAPTIVE_CONTINUE] = "running",
                [ADAPTIVE_REACHED] = "reached",
                [ADAPTIVE_MAX] = "max_repetitions",
                [ADAPTIVE_BUDGET] = "budget",
        };
        if (t->n == 0)
                return -EBADMSG; /* an experiment has a point */
        _cleanup_free_ struct adaptive_row *known = NULL;
        size_t n = 0;
        bool dead = false;
        int r = take_known(t, spec, p, &known, &n, &dead);
        if (r < 0)
                return r;
        uint32_t blocks = e->runs_total / (uint32_t) t->n;
        if (n == 0) {
                *ret = (struct adaptive_decision){.next_blocks = blocks};
                *ret_state = "failed";
                return 0;
        }
        const struct adaptive_limits limits = limits_of(&spec->until, n, looks_made);
        r = adaptive_decide(known, n, blocks, (double) e->measured_ms / 1e3, &limits, ret);
        if (r < 0)
                return r == -EINVAL ? -EBADMSG : r;
        *ret_state = dead && ret->reason == ADAPTIVE_REACHED ? "failed" : states[ret->reason];
        return 0;
}

static int put_decision(struct json_writer *w, const struct experiment_record *e, const struct spec *spec,
                        struct table *t, struct pairs *p, const struct look *look, const char *state,
                        const struct adaptive_decision *d) {
        const uint32_t blocks = look->blocks;
        bool compares = spec->until.compare.given;
        json_object_begin(w);
        put_goal(w, state, &spec->until);
        int r = put_asked(w, e->until_json, d->next_blocks - blocks);
        if (r == 0)
                r = put_looks(w, e->until_json, look, compares ? "pairs_reached" : "rows_reached", d->n_reached);
        if (compares) {
                json_member_u64(w, "rows", t->n);
                json_member_null(w, "rows_reached");
                json_member_raw(w, "rows_not_reached", "[]");
                until_put_pairs(w, spec, t->rows, p, blocks);
        } else {
                put_rows(w, t, &spec->until, blocks);
        }
        json_object_end(w);
        return r;
}

/* What this look is at. */
static struct look look_at(const struct table *t, const struct pairs *p, const struct experiment_record *e,
                           const struct spec *spec) {
        struct look look = {.blocks = e->runs_total / (uint32_t) t->n};
        for (size_t i = 0; !spec->until.compare.given && i < t->n; i++)
                look.runs += t->rows[i].runs;
        for (size_t i = 0; i < p->n; i++)
                look.runs += 2 * p->items[i].n;
        return look;
}

int until_decide(struct store *store, const struct experiment_record *e, const struct spec *spec,
                 struct until_decision *ret) {
        _cleanup_(table_deinit) struct table t = {0};
        _cleanup_(until_pairs_deinit) struct pairs p = {0};
        struct adaptive_decision d;
        const char *state = NULL;
        uint32_t looks = 0;
        int r = read_table(store, e->id, until_figure(spec->until.figure), &t);
        if (r == 0 && (t.n == 0 || !e->until_json))
                r = -EBADMSG;
        if (r == 0 && spec->until.compare.given)
                r = until_find_pairs(t.rows, t.n, spec, &p);
        if (r < 0 || t.n == 0)
                return r;
        const struct look look = look_at(&t, &p, e, spec);
        r = take_looks(e->until_json, &look, NULL, &looks);
        looks++; /* this one */
        if (r == 0 && spec->until.compare.given)
                r = until_compare_pairs(spec, looks, &p);
        if (r == 0)
                r = decide(&t, &p, e, spec, looks, &d, &state);
        if (r < 0)
                return r;
        struct until_decision decision = {.more = d.next_blocks - look.blocks};
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_writer_init(&w);
        r = put_decision(&w, e, spec, &t, &p, &look, state, &d);
        if (r == 0)
                r = json_writer_steal(&w, &decision.json, NULL);
        if (r == 0)
                *ret = decision;
        return r;
}
