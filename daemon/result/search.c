/* SPDX-License-Identifier: MIT */

/* See search.h. Called by the service for a submission, and by the scheduler. */

#include "daemon/result/search.h"

#include "daemon/analysis/statistics/order.h"
#include "daemon/result/figure.h"
#include "daemon/result/result.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define POINTS_PER_PAGE 32u
/* Factor beyond the closed loop's rate, where even that rate meets the limit. */
#define BEYOND 1.25

/* A window that is due fewer messages may have too few for a 99th percentile, and its rate is not tried. */
#define MESSAGES_MIN (FIGURE_P99_LATENCIES_LEAST / RESULT_RATE_REACHED)

/* Parts of the closed loop's rate. The last is more, so that the curve has a rate that cannot be reached. */
static const double curve[] = {0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.1};

/* One row: a rate, or the closed loop. */
struct rung {
        uint64_t rate; /* messages per second; 0: the closed loop */
        uint32_t runs; /* that are done */
        uint32_t runs_kept;
        struct statistic messages, p99; /* messages: of one stream */
};

/* All rows of one point. */
struct ladder {
        char *point_json;
        uint32_t ordinal; /* of its closed loop */
        unsigned streams; /* at once, whose messages a run counts together: a rate is of each */
        struct rung rungs[SPEC_SEARCH_RATES_MAX + 1];
        size_t n;
};

struct search {
        struct ladder *ladders;
        size_t n;
};

static void search_deinit(struct search *s) {
        for (size_t i = 0; i < s->n; i++)
                free(s->ladders[i].point_json);
        free(s->ladders);
}

void search_decision_deinit(struct search_decision *d) {
        free(d->rates);
        free(d->json);
        *d = (struct search_decision){0};
}

/* One more of the n values, unless the run has no such figure, as a stream in a closed loop has no latency. */
static int read_figure(const struct point_run *run, enum figure f, double *values, size_t *n) {
        int r = run->result_json ? figure_of_run(run->result_json, f, &values[*n]) : -ENODATA;
        *n += r == 0;
        return r == -ENODATA || r == -EDOM ? 0 : r;
}

/* The result's own rule decides, of each stream alone; flags_json is an array of texts without escapes. */
static bool has_reached_rate(const struct point_run *run) {
        return !run->flags_json || !strstr(run->flags_json, "\"" RESULT_RATE_NOT_REACHED "\"");
}

static int add_rung(struct ladder *l, const struct point_record *p, double limit_ns) {
        struct rung rung = {.rate = p->rate};
        _cleanup_free_ double *messages = reallocarray(NULL, p->n_runs + 1, 2 * sizeof(*messages));
        if (!messages)
                return -ENOMEM;
        double *p99 = messages + p->n_runs + 1;
        size_t n_messages = 0, n_p99 = 0;
        if (l->n == ELEMENTS(l->rungs))
                return -EBADMSG;
        for (size_t i = 0; i < p->n_runs; i++) {
                if (p->runs[i].state != STATE_DONE)
                        continue;
                size_t m = n_messages, k = n_p99;
                int r = read_figure(&p->runs[i], FIGURE_MESSAGES, messages, &n_messages);
                if (r == 0)
                        r = read_figure(&p->runs[i], FIGURE_LATENCY_P99, p99, &n_p99);
                if (r < 0)
                        return r;
                if (n_messages > m)
                        messages[m] /= l->streams;
                rung.runs++;
                rung.runs_kept += n_messages > m && n_p99 > k && p99[k] < limit_ns && has_reached_rate(&p->runs[i]);
        }
        int r = order_summarize(messages, n_messages, &rung.messages);
        if (r == 0)
                r = order_summarize(p99, n_p99, &rung.p99);
        if (r == 0)
                l->rungs[l->n++] = rung;
        return r == -EINVAL ? -EBADMSG : r;
}

static struct ladder *find_ladder(struct search *s, const char *point_json) {
        for (size_t i = 0; i < s->n; i++)
                if (strcmp(s->ladders[i].point_json, point_json) == 0)
                        return &s->ladders[i];
        return NULL;
}

static int add_point(struct search *s, struct point_record *p, uint32_t ordinal, double limit_ns) {
        struct ladder *l = p->rate > 0 ? find_ladder(s, p->point_json) : NULL;
        if (!l && p->rate > 0)
                return -EBADMSG; /* a rate of a point that is none */
        if (!l) {
                struct point point;
                int r = point_from_json(p->point_json, strlen(p->point_json), &point);
                if (r < 0)
                        return r == -ENOMEM ? r : -EBADMSG;
                if (!util_resize(s->ladders, s->n + 1))
                        return -ENOMEM;
                l = &s->ladders[s->n++];
                *l = (struct ladder){
                        .point_json = util_steal(&p->point_json), .ordinal = ordinal, .streams = point_streams(&point)};
        }
        return add_rung(l, p, limit_ns);
}

/* store_points() or store_import_points() */
typedef int (*read_points)(struct store *store, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                           struct point_record **ret, size_t *ret_n);

static int read_search(struct store *store, int64_t experiment_id, read_points read, double limit_ns,
                       struct search *s) {
        for (uint32_t ordinal = 0;;) {
                struct point_record *page;
                size_t n;
                int r = read(store, experiment_id, ordinal, POINTS_PER_PAGE, &page, &n);
                if (r < 0)
                        return r;
                for (size_t i = 0; r == 0 && i < n; i++)
                        r = add_point(s, &page[i], ordinal++, limit_ns);
                store_points_free(page, n);
                if (r < 0 || n == 0)
                        return r;
        }
}

static int by_rate(const void *a, const void *b) {
        const struct rung *x = a, *y = b;
        return (x->rate > y->rate) - (x->rate < y->rate);
}

static bool meets_limit(const struct rung *rung) {
        return 2 * rung->runs_kept > rung->runs;
}

/*
 * Two neighbouring rates of the ladder, whose rungs are sorted by rate, the closed loop first. Up to the lower one the
 * limit is met, and beyond it is exceeded. A disturbance may exceed the limit at any rate, so the step is placed where
 * the fewest runs contradict it: those that exceed the limit below, and those that meet it above. Of several such
 * places it is the highest, as disturbances make nothing faster.
 */
struct bracket {
        const struct rung *met, *exceeded; /* neighbours; NULL: there is none */
};

static struct bracket bracket_of(const struct ladder *l) {
        int64_t errors = 0, least = 0; /* beside those of a step below all rates */
        size_t at = 0;
        for (size_t i = 1; i < l->n; i++) {
                const struct rung *rung = &l->rungs[i];
                errors += (int64_t) rung->runs - 2 * (int64_t) rung->runs_kept;
                if (meets_limit(rung) && errors <= least) {
                        least = errors;
                        at = i;
                }
        }
        return (struct bracket){.met = at > 0 ? &l->rungs[at] : NULL,
                                .exceeded = at + 1 < l->n ? &l->rungs[at + 1] : NULL};
}

enum outcome { RUNNING, FOUND, WIDE, NONE_KEPT, ALL_KEPT, TOO_SLOW, FAILED };
static const char *const outcomes[] = {
        [RUNNING] = "running",   [FOUND] = "found",       [WIDE] = "wide",     [NONE_KEPT] = "none_kept",
        [ALL_KEPT] = "all_kept", [TOO_SLOW] = "too_slow", [FAILED] = "failed",
};

/* Rates over the whole range up to the closed loop's; none below `least`. */
static size_t lay_curve(const struct ladder *l, double least, uint64_t *rates) {
        size_t n = 0;
        for (size_t i = 0; i < ELEMENTS(curve); i++) {
                uint64_t rate = (uint64_t) llround(l->rungs[0].messages.median * curve[i]);
                if ((double) rate >= least && (n == 0 || rate > rates[n - 1]))
                        rates[n++] = rate;
        }
        return n;
}

/* The middle between both, or a rate beyond the only one, down to `least`. 0: they are near enough, or there is no such
 * rate. */
static size_t bisect(const struct bracket *b, double least, uint64_t *ret) {
        double met = b->met ? (double) b->met->rate : 0, exceeded = b->exceeded ? (double) b->exceeded->rate : INFINITY;
        if (exceeded <= met * (1 + SEARCH_PRECISION))
                return 0;
        double next = !b->exceeded ? met * BEYOND : b->met ? sqrt(met * exceeded) : fmax(exceeded / 4, ceil(least));
        uint64_t rate = (uint64_t) llround(next);
        if ((double) rate <= met || (double) rate >= exceeded)
                return 0;
        *ret = rate;
        return 1;
}

/* Each side of the step rests on a second rate as near as the first, so that no single disturbance makes one. */
static size_t confirm(const struct ladder *l, const struct bracket *b, uint64_t *rates) {
        const struct rung *below = b->met - 1, *above = b->exceeded + 1, *end = l->rungs + l->n;
        uint64_t low = (uint64_t) llround((double) b->met->rate / (1 + SEARCH_PRECISION)),
                 high = (uint64_t) llround((double) b->exceeded->rate * (1 + SEARCH_PRECISION));
        size_t n = 0;
        if (below->rate < low && low < b->met->rate)
                rates[n++] = low;
        if (high > b->exceeded->rate && (above == end || above->rate > high))
                rates[n++] = high;
        return n;
}

/* The rates to be tried next, none below `least`; at most as many as the curve has. */
static enum outcome next_rates(const struct ladder *l, double least, uint64_t *rates, size_t *ret_n) {
        const struct bracket b = bracket_of(l);
        *ret_n = 0;
        for (size_t i = 0; i < l->n; i++)
                if (l->rungs[i].runs == 0)
                        return FAILED;
        if (l->rungs[0].messages.n == 0 || !(l->rungs[0].messages.median > 0))
                return FAILED;
        if (l->n == 1) {
                *ret_n = lay_curve(l, least, rates);
                return *ret_n > 0 ? RUNNING : TOO_SLOW;
        }
        uint64_t wanted[2];
        size_t n_wanted = bisect(&b, least, wanted);
        bool wide = n_wanted > 0; /* for good, if there is no room for that rate */
        if (!wide && b.met && b.exceeded)
                n_wanted = confirm(l, &b, wanted);
        for (size_t i = 0; i < n_wanted; i++)
                if ((double) wanted[i] >= least && (double) wanted[i] <= SPEC_RATE_MAX &&
                    l->n + *ret_n < ELEMENTS(l->rungs))
                        rates[(*ret_n)++] = wanted[i];
        if (*ret_n > 0)
                return RUNNING;
        return !b.met ? NONE_KEPT : !b.exceeded ? ALL_KEPT : wide ? WIDE : FOUND;
}

static const char no_run[] = "no run of this rate is done";

/* Fewer runs than are done may have the figure; none, and the reason is that of any run. */
static void put_p99(struct json_writer *w, const struct rung *rung) {
        const struct statistic *s = &rung->p99;
        if (s->n == 0) {
                json_member_unknown(w, "latency_p99_us",
                                    rung->runs == 0 ? no_run : figure_terms[FIGURE_LATENCY_P99].few);
                return;
        }
        json_member_object(w, "latency_p99_us");
        json_member_u64(w, "runs", s->n);
        json_member_double(w, "median", s->median / 1e3);
        json_member_double(w, "min", s->min / 1e3);
        json_member_double(w, "max", s->max / 1e3);
        json_object_end(w);
}

static void put_rung(struct json_writer *w, const struct rung *rung) {
        json_object_begin(w);
        json_member_u64(w, "rate", rung->rate);
        json_member_u64(w, "runs", rung->runs);
        json_member_u64(w, "runs_kept", rung->runs_kept);
        if (rung->messages.n > 0)
                json_member_double(w, "messages_per_second", rung->messages.median);
        else
                json_member_unknown(w, "messages_per_second", no_run);
        put_p99(w, rung);
        json_member_bool(w, "kept", meets_limit(rung));
        json_object_end(w);
}

static void put_ladder(struct json_writer *w, const struct ladder *l, enum outcome outcome) {
        const struct bracket b = bracket_of(l);
        json_object_begin(w);
        json_member_raw(w, "point", l->point_json);
        json_member_string(w, "state", outcomes[outcome]);
        json_member_double_if(w, "closed_loop_messages_per_second", l->rungs[0].messages.n > 0,
                              l->rungs[0].messages.median);
        json_member_u64_if(w, "highest_rate", b.met, b.met ? b.met->rate : 0);
        json_member_u64_if(w, "lowest_rate_not_kept", b.exceeded, b.exceeded ? b.exceeded->rate : 0);
        json_member_array(w, "curve");
        for (size_t i = 1; i < l->n; i++)
                put_rung(w, &l->rungs[i]);
        json_array_end(w);
        json_object_end(w);
}

static void put_begin(struct json_writer *w, const char *state, const struct spec *spec) {
        json_object_begin(w);
        json_member_string(w, "state", state);
        json_member_double(w, "latency_p99_below_us", spec->search.latency_p99_below_us);
        json_member_array(w, "points");
}

static int put_end(struct json_writer *w, char **ret) {
        json_array_end(w);
        json_object_end(w);
        return json_writer_steal(w, ret, NULL);
}

int search_begin(const struct spec *spec, char **ret_json) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        put_begin(&w, "running", spec);
        return put_end(&w, ret_json);
}

/* ended: the state in which it ended; STATE_RUNNING: it may get more rates. */
static int decide(struct search *s, const struct spec *spec, enum state ended, struct search_decision *d) {
        _cleanup_free_ enum outcome *found = calloc(s->n, sizeof(*found));
        d->rates = calloc(s->n * ELEMENTS(curve), sizeof(*d->rates));
        if (!found || !d->rates)
                return -ENOMEM;
        double least = MESSAGES_MIN * 1e9 / (double) spec->end.duration_ns;
        bool failed = false;
        for (size_t i = 0; i < s->n; i++) {
                struct ladder *l = &s->ladders[i];
                uint64_t rates[ELEMENTS(curve)];
                size_t n;
                qsort(l->rungs, l->n, sizeof(*l->rungs), by_rate);
                found[i] = next_rates(l, least, rates, &n);
                failed |= found[i] == FAILED;
                for (size_t k = 0; k < n; k++)
                        d->rates[d->n++] = (struct searched_rate){.ordinal = l->ordinal, .rate = rates[k]};
        }
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        put_begin(&w,
                  ended == STATE_CANCELLED             ? "cancelled"
                  : ended == STATE_RUNNING && d->n > 0 ? "running"
                  : failed                             ? "failed"
                                                       : "done",
                  spec);
        for (size_t i = 0; i < s->n; i++)
                put_ladder(&w, &s->ladders[i], found[i]);
        return put_end(&w, &d->json);
}

static int read_and_decide(struct store *store, int64_t id, read_points read, enum state ended, const struct spec *spec,
                           struct search_decision *ret) {
        _cleanup_(search_deinit) struct search s = {0};
        struct search_decision d = {0};
        int r = read_search(store, id, read, spec->search.latency_p99_below_us * 1e3, &s);
        if (r == 0)
                r = s.n > 0 ? decide(&s, spec, ended, &d) : -EBADMSG;
        if (r < 0) {
                search_decision_deinit(&d);
                return r;
        }
        *ret = d;
        return 0;
}

int search_decide(struct store *store, const struct experiment_record *e, const struct spec *spec,
                  struct search_decision *ret) {
        return read_and_decide(store, e->id, store_points, STATE_RUNNING, spec, ret);
}

int search_conclude(struct store *store, int64_t importing, enum state state, const struct spec *spec,
                    char **ret_json) {
        struct search_decision d = {0};
        int r = read_and_decide(store, importing, store_import_points, state, spec, &d);
        if (r == 0)
                *ret_json = util_steal(&d.json);
        search_decision_deinit(&d);
        return r;
}
