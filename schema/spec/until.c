/* SPDX-License-Identifier: MIT */

/*
 * `until`: the figures that it may name, the fields that a spec may set, and the points that have those figures. The
 * parser, the writer and the JSON Schema use the rows below.
 */

#include "schema/spec/axes.h"
#include "schema/spec/internal.h"
#include "schema/util.h"

#include <string.h>

static const struct until_term {
        const char *name;
        enum figure figure;
        bool latency; /* of points with latencies; else the figure's row decides */
} terms[] = {
        {"throughput", FIGURE_THROUGHPUT, false},
        {"latency_p50", FIGURE_LATENCY_P50, true},
        {"latency_p90", FIGURE_LATENCY_P90, true},
        {"latency_p99", FIGURE_LATENCY_P99, true},
        {"latency_p99_9", FIGURE_LATENCY_P99_9, true},
        {"cpu_per_message", FIGURE_CPU_PER_MESSAGE, false},
        {"cost", FIGURE_COST, false},
};

static const char *name_at(unsigned i) {
        return i < ELEMENTS(terms) ? terms[i].name : NULL;
}

const struct vocabulary until_figure_words = {name_at, ELEMENTS(terms), NULL};

enum figure until_figure(unsigned word) {
        return terms[word].figure;
}

/* ---- compare ---- */

static const char *axis_name_at(unsigned i) {
        return i < AXIS_COUNT ? axes[i].value.name : NULL;
}

static const struct vocabulary axis_names = {axis_name_at, AXIS_COUNT, NULL};

static int compare_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                        struct refusal *r) {
        static const char *const names[] = {"axis", "baseline"};
        struct spec_compare *c = ret;
        char here[JSON_POINTER_MAX];
        unsigned axis;
        if (json_type(json) != JSON_OBJECT)
                return refuse_type(json, pointer, "an object", r);
        for (const struct json *m = json_first(json); m; m = json_next(m))
                if (strcmp(json_key(m), names[0]) != 0 && strcmp(json_key(m), names[1]) != 0)
                        return refuse_member(m, pointer, names, ELEMENTS(names), r);
        const struct json *baseline = json_get(json, names[1]);
        if (!json_get(json, names[0]))
                return refuse(r, 422, "missing-field", pointer, "%s needs %s", v->name, names[0]);
        json_pointer_key(here, pointer, names[0]);
        int x = read_word(json_get(json, names[0]), here, names[0], &axis_names, &axis, r);
        if (x < 0)
                return x;
        const struct value *of = &axes[axis].value;
        json_pointer_key(here, pointer, names[1]);
        x = baseline ? of->type->read(of, baseline, here, (char *) &c->baseline + of->offset, r) : 0;
        if (x < 0)
                return x;
        c->given = true;
        c->every_pair = !baseline;
        c->axis = (enum axis_name) axis;
        return 0;
}

static void compare_write(const struct value *v, struct json_writer *w, const void *value) {
        const struct spec_compare *c = value;
        const struct axis *a = &axes[c->axis];
        (void) v;
        json_object_begin(w);
        json_member_string(w, "axis", a->value.name);
        if (!c->every_pair) {
                json_put_key(w, "baseline");
                a->value.type->write(&a->value, w, axis_of(a, &c->baseline));
        }
        json_object_end(w);
}

static bool compare_equal(const struct value *v, const void *a, const void *b) {
        const struct spec_compare *x = a, *y = b;
        const struct axis *axis = &axes[x->axis];
        (void) v;
        return x->given == y->given && x->axis == y->axis && x->every_pair == y->every_pair &&
               axis->value.type->equal(&axis->value, axis_of(axis, &x->baseline), axis_of(axis, &y->baseline));
}

static void compare_describe(const struct value *v, struct json_writer *w) {
        (void) v;
        json_member_string(w, "type", "object");
        json_member_bool(w, "additionalProperties", false);
        json_member_raw(w, "required", "[\"axis\"]");
        json_member_object(w, "properties");
        json_member_object(w, "axis");
        json_member_string(w, "description", "An axis of which the experiment has several values");
        axes_put_enum(w);
        json_object_end(w);
        json_member_raw(w, "baseline",
                        "{\"description\":\"The value that each of the others is compared with; without it each two "
                        "values are\","
                        "\"type\":[\"string\",\"integer\",\"object\"]}");
        json_object_end(w);
}

static const struct value_type value_compare = {compare_read, compare_write, compare_equal, compare_describe};

/* ---- the fields ---- */

static const struct value rows[] = {
        {"relative_ci", "How far either end of the median's 95 % interval may be from it, as a part of it",
         VALUE(value_real, struct spec_until, relative_ci), .least = 100, .most = 1000000,
         .standard = &(const double){0.02}},
        {"figure", "The figure that is to be known so well, of each run's own",
         VALUE(value_word, struct spec_until, figure), .words = &until_figure_words, .standard = &(const unsigned){0}},
        {"max_repetitions", "No point has more runs; fewer than the minimum have no interval",
         VALUE(value_number, struct spec_until, max_repetitions), .least = 1,
         .least_posted = SPEC_UNTIL_REPETITIONS_LEAST, .most = SPEC_UNTIL_REPETITIONS_MAX,
         .standard = &(const uint32_t){60}},
        {"budget_seconds", "No block is added that would take the experiment's runs beyond this time together",
         VALUE(value_real, struct spec_until, budget_seconds), .least = 1000000, .most = UINT64_C(604800000000)},
        {"compare",
         "In place of the rows, pairs: each point that has the baseline's value of the axis with those that equal it "
         "but for that axis; without a baseline each two points that differ in that axis alone, " UTIL_TEXT(
                 SPEC_PAIRS_MAX) " pairs at most. A pair is known when its ratio is (relative_ci), or when it is "
                                 "decided whether it is faster, "
                                 "slower or equivalent",
         VALUE(value_compare, struct spec_until, compare)},
};

static const struct value limits[] = {
        {"latency_p99_below_us", "Microseconds that the 99th percentile of the latency stays below",
         VALUE(value_real, struct spec_search, latency_p99_below_us), .least = 100000,
         .most = UINT64_C(100000000000000)},
};
const struct value_table search_values = {VALUE_ROWS(limits)};

const char *spec_latency_missing(const struct spec *s, const struct point *p) {
        double rate = spec_point_rate(s, p);
        if (p->workload != WORKLOAD_STREAM || point_is_stamped(p, s->stamp, rate))
                return NULL;
        if (rate > 0 && p->direction != DIRECTION_BOTH)
                return NULL;
        if (!transport_terms[p->transport].stamps)
                return "a closed-loop stream has no latency of its own; pingpong measures it";
        if (p->message_size < SPEC_STAMPED_MIN)
                return "a message shorter than " UTIL_TEXT(
                        SPEC_STAMPED_MIN) " bytes does not carry the time of its sending";
        return "stamp is off: messages of a stream carry the time of their sending with \"stamp\": true";
}

const char *until_figure_missing(const struct spec *s, const struct point *p) {
        const struct until_term *term = &terms[s->until.figure];
        bool moves = workload_has_transport(p->workload);
        if (term->latency) {
                uint64_t n = window_end_messages(&s->end, p);
                const char *why = spec_latency_missing(s, p);
                return why || n == 0 || n >= figure_terms[term->figure].latencies_least
                               ? why
                               : figure_terms[term->figure].few;
        }
        if (figure_terms[term->figure].requested && spec_point_rate(s, p) > 0)
                return figure_terms[term->figure].requested;
        if (term->figure == FIGURE_COST)
                return moves ? "cost is of syscall and context-switch only" : NULL;
        return moves ? NULL : "this workload moves no data";
}

const struct value_table until_values = {VALUE_ROWS(rows)};
