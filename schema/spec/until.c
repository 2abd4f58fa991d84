/* SPDX-License-Identifier: MIT */

/*
 * `until`: the figures that it may name, what a spec may ask of them, and which points have them. Called by the parser,
 * the writer and the JSON Schema by the rows below.
 */

#include "schema/spec/internal.h"
#include "schema/util.h"

static const struct until_term {
        const char *name;
        enum figure figure;
        bool latency; /* else of what the row of figures says */
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

const struct vocabulary until_figure_words = {name_at, ELEMENTS(terms)};

enum figure until_figure(unsigned word) {
        return terms[word].figure;
}

static const struct value rows[] = {
        {"relative_ci", "How far either end of the median's 95 % interval may be from it, as a part of it",
         VALUE(value_real, struct spec_until, relative_ci), .least = 100, .most = 1000000,
         .standard = &(const double){0.02}},
        {"figure", "The figure that is to be known so well, of each run's own",
         VALUE(value_word, struct spec_until, figure), .words = &until_figure_words, .standard = &(const unsigned){0}},
        {"max_repetitions", "No point has more runs", VALUE(value_number, struct spec_until, max_repetitions),
         .least = 1, .most = SPEC_UNTIL_REPETITIONS_MAX, .standard = &(const uint32_t){60}},
        {"budget_seconds", "No block is added that would take the experiment's runs beyond this time together",
         VALUE(value_real, struct spec_until, budget_seconds), .least = 1000000, .most = UINT64_C(604800000000)},
};

static const char *missing_latency(const struct spec *s, const struct point *p) {
        if (p->workload != WORKLOAD_STREAM || spec_point_rate(s, p) > 0)
                return NULL;
        if (!transport_terms[p->transport].stamps)
                return "a closed-loop stream has no latency of its own; pingpong measures it";
        if (p->message_size < SPEC_STAMPED_MIN)
                return "a message shorter than " UTIL_TEXT(
                        SPEC_STAMPED_MIN) " bytes does not carry the time of its sending";
        return NULL;
}

const char *until_figure_missing(const struct spec *s, const struct point *p) {
        const struct until_term *term = &terms[s->until.figure];
        bool moves = workload_has_transport(p->workload);
        if (term->latency)
                return missing_latency(s, p);
        if (term->figure == FIGURE_COST)
                return moves ? "cost is of syscall and context-switch only" : NULL;
        return moves ? NULL : "this workload moves no data";
}

const struct value_table until_values = {rows, ELEMENTS(rows), sizeof(rows[0])};
