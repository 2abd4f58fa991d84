/* SPDX-License-Identifier: MIT */

/*
 * The table of the fields beside the axes, and what they have to do with each other. The parser, the writer, the
 * JSON Schema and the comparison of an experiment with a preset loop over it.
 */

#include "schema/spec/fields.h"

#include "schema/json/utf8.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A control character of C0 or C1, or DEL: a terminal executes them. Names that were stored before may have those of
 * C1.
 */
static bool is_control(const struct parser *p, const char *s) {
        unsigned char c = (unsigned char) s[0], next = (unsigned char) s[1];
        return c < 0x20 || c == 0x7f || (!p->stored && c == 0xc2 && next < 0xa0);
}

static int take_name(struct parser *p, const struct json *v) {
        const char *s;
        size_t characters = 0;

        if (json_as_string(v, &s) < 0)
                return refuse_type(v, "/name", "a string", p->r);
        for (size_t i = 0, n = strlen(s); i < n; i += utf8_length(s + i, n - i), characters++)
                if (is_control(p, s + i))
                        return refuse(p->r, 422, "wrong-value", "/name", "a name has no control characters");
        if (characters == 0 || characters > SPEC_NAME_MAX) {
                char value[32];
                snprintf(value, sizeof(value), "%zu", characters);
                return refuse_limit(p->r, "/name", "characters in a name", characters ? "200" : "1", value,
                                    "a name has 1 … %u characters, not %s", SPEC_NAME_MAX, value);
        }
        p->spec->name = strdup(s);
        return p->spec->name ? 0 : -ENOMEM;
}

static int second_end(struct parser *p, const char *pointer) {
        return refuse(p->r, 422, "wrong-combination", pointer,
                      "one of duration_seconds, messages and bytes ends the window; more than one is given");
}

static int check_messages(struct parser *p, const struct json *v) {
        (void) v;
        return p->spec->end.duration_ns ? second_end(p, "/messages") : 0;
}

static int check_bytes(struct parser *p, const struct json *v) {
        struct window_end *e = &p->spec->end;
        (void) v;
        if (spec_transports(p->spec) == 0 && !parser_is_posted(p, "bytes"))
                e->bytes = 0;
        return e->bytes && (e->duration_ns || e->messages) ? second_end(p, "/bytes") : 0;
}

static const struct value points_value = {
        .name = "points",
        .description = "twice: each point stands twice in the experiment, as instance 1 and 2, which run one"
                       " after the other in each block, either of them first. The two differ by what the "
                       "machine makes of one thing measured twice: the noise floor, which the findings "
                       "report and which /compare?axis=instance&baseline=1&candidate=2 shows",
        .type = &value_word,
        .size = sizeof(enum spec_instances),
        .words = &spec_instances_words,
        .standard = &(const enum spec_instances){INSTANCES_ONCE},
};

/* Sets the axis of instances, from which the spec is written again. */
static int take_points(struct parser *p, const struct json *v) {
        enum spec_instances points;
        int r = points_value.type->read(&points_value, v, "/points", &points, p->r);
        if (r < 0 || points != INSTANCES_TWICE)
                return r;
        uint32_t *instances = calloc(SPEC_INSTANCES, sizeof(*instances));
        if (!instances)
                return -ENOMEM;
        for (uint32_t i = 0; i < SPEC_INSTANCES; i++)
                instances[i] = i + 1;
        free(p->spec->axes[AXIS_INSTANCE].values);
        p->spec->axes[AXIS_INSTANCE] = (struct axis_list){.values = instances, .n = SPEC_INSTANCES};
        return 0;
}

static void describe_points(struct json_writer *w) {
        value_describe(&points_value, 0, w);
}

static int check_rate(struct parser *p, const struct json *v) {
        (void) v;
        if (spec_transports(p->spec) != 0)
                return 0;
        p->spec->rate = 0;
        if (!parser_is_posted(p, "rate"))
                return 0;
        return refuse(p->r, 422, "wrong-combination", "/rate",
                      "rate is of messages, and no workload of this experiment sends any");
}

static int take_search(struct parser *p, const struct json *v) {
        static const char *const names[] = {"rate"};
        struct spec *s = p->spec;
        if (json_type(v) != JSON_OBJECT)
                return refuse_type(v, "/search", "an object", p->r);
        for (const struct json *m = json_first(v); m; m = json_next(m))
                if (strcmp(json_key(m), names[0]) != 0)
                        return refuse_member(m, "/search", names, ELEMENTS(names), p->r);
        if (!json_get(v, "rate"))
                return refuse(p->r, 422, "missing-field", "/search", "search needs a rate");
        int r = values_read(&search_values, json_get(v, "rate"), "/search/rate", &s->search, p->r);
        if (r < 0)
                return r;
        if (!(s->search.latency_p99_below_us > 0))
                return refuse(p->r, 422, "missing-field", "/search/rate",
                              "the limit is not given: latency_p99_below_us");
        if (parser_is_posted(p, "rate"))
                return refuse(p->r, 422, "wrong-combination", "/rate", "search looks for the rate, and rate gives it");
        if (parser_get(p, "until"))
                return refuse(p->r, 422, "wrong-combination", "/search", "until and search do not go together");
        if (s->order != ORDER_BLOCKS)
                return refuse(p->r, 422, "wrong-combination", "/order", "search adds whole blocks, and order is %s",
                              spec_order_name(s->order));
        if (s->end.messages || s->end.bytes)
                return refuse(p->r, 422, "wrong-combination",
                              parser_is_posted(p, "messages") ? "/messages"
                              : parser_is_posted(p, "bytes")  ? "/bytes"
                                                              : "/search",
                              "search measures each rate for duration_seconds");
        s->rate = 0; /* the check of the rate has passed, and a preset's is dropped */
        if (!parser_get(p, "repetitions"))
                s->repetitions = SPEC_SEARCH_REPETITIONS;
        return 0;
}

static void write_search(struct json_writer *w, const struct spec *s) {
        if (!(s->search.latency_p99_below_us > 0))
                return;
        json_member_object(w, "search");
        json_put_key(w, "rate");
        values_write(&search_values, w, &s->search);
        json_object_end(w);
}

static int check_chunk(struct parser *p, const struct json *v) {
        unsigned whole = 0;
        (void) v;
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                whole |= transport_terms[t].delivery == DELIVERY_WHOLE ? 1u << t : 0;
        if (!p->spec->chunk || spec_transports(p->spec) & whole)
                return 0;
        p->spec->chunk = false;
        if (!parser_is_posted(p, "chunk"))
                return 0;
        char names[WORDS_LIST_MAX];
        words_list(names, &transport_words, whole);
        return refuse(p->r, 422, "wrong-combination", "/chunk",
                      "chunk is for %s, and no transport of this experiment is one", names);
}

static int check_fresh(struct parser *p, const struct json *v) {
        (void) v;
        if (!p->spec->fresh || spec_transports(p->spec) != 0)
                return 0;
        p->spec->fresh = false;
        if (!parser_is_posted(p, "fresh"))
                return 0;
        return refuse(p->r, 422, "wrong-combination", "/fresh",
                      "fresh is of messages, and no workload of this experiment sends any");
}

static int check_stamp(struct parser *p, const struct json *v) {
        struct spec *s = p->spec;
        const struct axis_list *workloads = &s->axes[AXIS_WORKLOAD], *transports = &s->axes[AXIS_TRANSPORT],
                               *directions = &s->axes[AXIS_DIRECTION];
        struct point q = {.message_size = SPEC_STAMPED_MIN};

        (void) v;
        if (!s->stamp)
                return 0;
        for (size_t i = 0; i < workloads->n * transports->n * directions->n; i++) {
                axis_set(&axes[AXIS_WORKLOAD], s, i / directions->n / transports->n, &q);
                axis_set(&axes[AXIS_TRANSPORT], s, i / directions->n % transports->n, &q);
                axis_set(&axes[AXIS_DIRECTION], s, i % directions->n, &q);
                if (point_is_stamped(&q, true, s->rate))
                        return 0;
        }
        s->stamp = false;
        if (!parser_is_posted(p, "stamp"))
                return 0;
        if (s->rate > 0)
                return refuse(p->r, 422, "wrong-combination", "/stamp",
                              "with a rate, latency counts from the schedule, and no message of this experiment "
                              "carries a time: leave stamp out");
        char names[WORDS_LIST_MAX];
        unsigned stamping = 0;
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                stamping |= transport_terms[t].stamps ? 1u << t : 0;
        words_list(names, &transport_words, stamping);
        return refuse(p->r, 422, "wrong-combination", "/stamp",
                      "stamp is for streams over %s, and no point of this experiment is one", names);
}

static int check_seed(struct parser *p, const struct json *v) {
        (void) v;
        p->spec->has_seed = true;
        return 0;
}

static int take_require(struct parser *p, const struct json *v) {
        return require_read(v, p->spec, p->r);
}

/* "pipe", "fifo": as many whole values as there is room for, and "…" in the place of the others. -ENOMEM. */
static int print_values(const struct axis *a, const struct point *points, size_t n, char *ret, size_t size) {
        size_t used = 0;
        *ret = '\0';
        for (size_t i = 0; i < n; i++) {
                _cleanup_(json_writer_deinit) struct json_writer w = {};
                _cleanup_free_ char *text = NULL;
                a->value.type->write(&a->value, &w, axis_of(a, &points[i]));
                int r = json_writer_steal(&w, &text, NULL);
                if (r < 0)
                        return r;
                const char *separator = i > 0 ? ", " : "";
                const size_t kept = i + 1 < n ? strlen(", …") : 0;
                const bool fits = used + strlen(separator) + strlen(text) + kept < size;
                used += (size_t) snprintf(ret + used, size - used, "%s%s", separator, fits ? text : "…");
                if (!fits)
                        break;
        }
        return 0;
}

/* The values from the list's first one on. */
static int refuse_baseline(struct parser *p, const struct axis *a, const struct axis_list *list,
                           const struct point *baseline) {
        char given[128], values[192];
        _cleanup_free_ struct point *points = calloc(list->n, sizeof(*points));
        if (!points)
                return -ENOMEM;
        for (size_t i = 0; i < list->n; i++)
                axis_set(a, p->spec, i, &points[i]);
        int r = print_values(a, baseline, 1, given, sizeof(given));
        if (r == 0)
                r = print_values(a, points, list->n, values, sizeof(values));
        return r < 0 ? r
                     : refuse(p->r, 422, "wrong-combination", "/until/compare/baseline",
                              "the baseline %s is none of the experiment's values of %s: %s", given, a->value.name,
                              values);
}

/* The experiment has the baseline's value, and another one. */
static int check_compare(struct parser *p, const struct spec_compare *c) {
        const struct axis *a = &axes[c->axis];
        const struct axis_list *list = &p->spec->axes[c->axis];
        bool found = false;
        for (size_t i = 0; i < list->n; i++) {
                struct point q = {.workload = WORKLOAD_STREAM};
                axis_set(a, p->spec, i, &q);
                found |= a->value.type->equal(&a->value, axis_of(a, &q), axis_of(a, &c->baseline));
        }
        if (list->n < 2)
                return refuse(p->r, 422, "wrong-combination", "/until/compare/axis",
                              "the experiment has one %s, and nothing to compare it with", a->value.name);
        if (!found && !c->every_pair)
                return refuse_baseline(p, a, list, &c->baseline);
        return 0;
}

/* Earlier versions accepted fewer, with which nothing is ever known. */
static int check_looks(struct parser *p, const struct spec_until *until) {
        char value[16];
        if (until->max_repetitions >= SPEC_UNTIL_REPETITIONS_LEAST)
                return 0;
        (void) snprintf(value, sizeof(value), "%" PRIu32, until->max_repetitions);
        return refuse_limit(p->r, "/until/max_repetitions", "max_repetitions", UTIL_TEXT(SPEC_UNTIL_REPETITIONS_LEAST),
                            value,
                            "max_repetitions is %s, and with fewer than " UTIL_TEXT(
                                    SPEC_UNTIL_REPETITIONS_LEAST) " no figure has an interval: nothing would ever be "
                                                                  "known well enough",
                            value);
}

static int check_until(struct parser *p, const struct json *v) {
        struct spec *s = p->spec;
        (void) v;
        if (parser_is_posted(p, "repetitions"))
                return refuse(p->r, 422, "wrong-combination", "/until",
                              "until decides how many repetitions there are, and repetitions is given too");
        if (s->order != ORDER_BLOCKS)
                return refuse(p->r, 422, "wrong-combination", "/order", "until adds whole blocks, and order is %s",
                              spec_order_name(s->order));
        int r = s->until.compare.given ? check_compare(p, &s->until.compare) : 0;
        if (r < 0)
                return r;
        values_fill(&until_values, &s->until);
        s->repetitions = 1;
        return p->stored ? 0 : check_looks(p, &s->until);
}

/* Defaults spelled out; what has none is left out where it is not given. */
static void write_until(struct json_writer *w, const struct spec *s) {
        if (!(s->until.relative_ci > 0))
                return;
        json_member_object(w, "until");
        for (size_t i = 0; i < until_values.n; i++) {
                const struct value *v = value_at(&until_values, i);
                if (!v->standard && !value_is_given(v, &s->until))
                        continue;
                json_put_key(w, v->name);
                v->type->write(v, w, (const char *) &s->until + v->offset);
        }
        json_object_end(w);
}

static bool always(const struct spec *s) {
        (void) s;
        return true;
}

static bool has_repetitions(const struct spec *s) {
        return !(s->until.relative_ci > 0);
}

static bool has_seed(const struct spec *s) {
        return s->has_seed;
}

/* Without the incidental members (SPEC_INCIDENTAL), a spec's text is compared with what earlier versions stored: the
 * order of the others is theirs. */
#define FIELD(type, member) VALUE(type, struct spec, member)

const struct field fields[FIELD_COUNT] = {
        {.value = {.name = "preset"}},
        {.value = {.name = "name"}, .check = take_name},
        {.value = {"verify",
                   "What the receiver does with the bytes: nothing, one byte per cache line, or sequence"
                   " and content",
                   FIELD(value_word, verify), .words = &verify_words, .standard = &(const enum verify){VERIFY_TOUCH}},
         .written = always,
         .measured = true},
        {.value = {"duration_seconds",
                   "Length of the measured window; 5 when none of duration_seconds, messages and bytes "
                   "is given",
                   FIELD(value_seconds, end.duration_ns), .unit = "seconds", .least = 1, .most = SPEC_DURATION_MAX_NS}},
        {.value = {"messages",
                   "The window ends after so many messages over all threads, one for each at least; "
                   "where they cannot be divided evenly, some threads move one more than the others",
                   FIELD(value_number, end.messages), .least = 1, .most = SPEC_COUNT_MAX},
         .check = check_messages},
        {.value = {"bytes",
                   "The window ends after so many bytes, rounded up to whole messages, of which there is"
                   " one for each thread at least",
                   FIELD(value_number, end.bytes), .least = 1, .most = SPEC_COUNT_MAX},
         .check = check_bytes},
        {.value = {"warmup_seconds", "Before the window, not measured", FIELD(value_seconds, warmup_ns),
                   .unit = "seconds", .most = SPEC_DURATION_MAX_NS, .standard = &(const uint64_t){NSEC_PER_SEC}},
         .written = always},
        {.value = {"repetitions", "Runs of each point, with fresh agents", FIELD(value_number, repetitions), .least = 1,
                   .most = SPEC_REPETITIONS_MAX, .standard = &(const uint32_t){1}},
         .written = has_repetitions},
        {.value = {"order",
                   "blocks: each repetition is a block, every point once in an order of its own, and "
                   "what is compared is paired by block. shuffled: the order of earlier versions, for a "
                   "seed that they recorded; its runs have no block and are compared unpaired",
                   FIELD(value_word, order), .words = &spec_order_words,
                   .standard = &(const enum spec_order){ORDER_BLOCKS}},
         .written = always},
        {.value = {.name = "points"}, .check = take_points, .describe = describe_points},
        {.value = {"rate",
                   "Messages per second over all threads, evenly spaced: each of N threads sends an Nth "
                   "of them, in turn. Open loop: latency counts from the intended send time; closed loop"
                   " without it",
                   FIELD(value_real, rate), .unit = "messages per second", .least = SPEC_RATE_MIN_MILLIONTHS,
                   .most = (uint64_t) SPEC_RATE_MAX * 1000000},
         .check = check_rate,
         .measured = true},
        {.value = {.name = "search"}, .check = take_search, .write = write_search},
        {.value = {"chunk",
                   "Messages above a datagram's or a queue's limit go in pieces of the largest size that"
                   " it allows; they are refused otherwise",
                   FIELD(value_flag, chunk), .standard = &(const bool){false}},
         .check = check_chunk},
        {.value = {"fresh",
                   "Whether a sender writes each message anew before it sends it, as verify checksum "
                   "does in any case",
                   FIELD(value_flag, fresh), .standard = &(const bool){false}},
         .check = check_fresh,
         .measured = true},
        {.value = {"stamp",
                   "Whether each message of a stream over tcp carries the time of its sending, from "
                   "which its latency is taken (of messages below 4096 bytes one in an interval does; "
                   "below 16 bytes none). It takes a reading of the clock at each end: "
                   "result.stamp_cost.window_share has its share of the window. Without it a closed-loop"
                   " stream has no latency. With rate the latency counts from the schedule, and messages"
                   " carry their due time only where streams go both ways (direction both), whatever "
                   "stamp is",
                   FIELD(value_flag, stamp), .standard = &(const bool){false}},
         .check = check_stamp,
         .measured = true},
        {.value = {"skip_impossible",
                   "Leave out combinations that cannot be had, and list them with the reason, where the "
                   "experiment would be refused otherwise",
                   FIELD(value_flag, skip_impossible), .standard = &(const bool){false}},
         .written = always},
        {.value = {"seed", "The seed of the order of the runs; drawn and recorded when not given",
                   FIELD(value_number, seed), .most = SPEC_SEED_MAX},
         .check = check_seed,
         .written = has_seed},
        {.value = {.name = "require"},
         .check = take_require,
         .write = require_write,
         .describe = require_describe,
         .behind_axes = true},
        {.value = {"tune",
                   "Settings of the host to change for the runs and to put back after them, where its "
                   "configuration allows",
                   FIELD(value_object, tune), .members = &tune_values},
         .measured = true,
         .behind_axes = true},
        {.value = {"until",
                   "In place of repetitions: blocks are repeated until every point's figure, or with "
                   "compare every pair's ratio, is known so well. It is evaluated after 6, 9, 13, 19, "
                   "28, 41, 60, 88, 129 and 200 blocks; the experiment's \"until\" has what was reached",
                   FIELD(value_object, until), .members = &until_values},
         .check = check_until,
         .write = write_until,
         .behind_axes = true},
        {.value = {"transport_options",
                   "Settings of the mechanism; each is for some transports, at least one of which must "
                   "be among the experiment's",
                   FIELD(value_object, options), .members = &option_values},
         .check = options_check,
         .measured = true,
         .behind_axes = true},
};
