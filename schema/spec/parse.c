/* SPDX-License-Identifier: MIT */

/*
 * The strict parser of a posted experiment. Each field has a row in a table. Called by the daemon (and by the fuzzer),
 * which relies on it: what passes here has the right words, types and ranges.
 */

#include "schema/spec/parser.h"

#include "schema/json/utf8.h"
#include "schema/presets.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct json *parser_get(const struct parser *p, const char *field) {
        static const char *const ends[] = {"duration_seconds", "messages", "bytes"};
        const struct json *v = json_get(p->body, field);
        if (v || !p->preset)
                return v;

        /* the three that end the window are one choice: whichever is posted overrides the preset's */
        bool is_end = false, posted = false;
        for (size_t i = 0; i < ELEMENTS(ends); i++) {
                is_end |= strcmp(ends[i], field) == 0;
                posted |= json_get(p->body, ends[i]) != NULL;
        }
        return is_end && posted ? NULL : json_get(p->preset, field);
}

bool parser_is_posted(const struct parser *p, const char *field) {
        return !p->stored && json_get(p->body, field) != NULL;
}

/* Seconds, possibly fractional, as nanoseconds. */
static int take_seconds(struct parser *p, const struct json *v, const char *pointer, bool zero, uint64_t *ret) {
        double seconds;
        char value[40], limit_value[40];
        double most = (double) SPEC_DURATION_MAX_NS / 1e9, least = zero ? 0 : 1e-9;

        if (json_as_double(v, &seconds) < 0)
                return refuse_type(v, pointer, "a number of seconds", p->r);
        if (seconds >= least && seconds <= most) {
                *ret = (uint64_t) llround(seconds * 1e9);
                return 0;
        }
        snprintf(value, sizeof(value), "%g", seconds);
        snprintf(limit_value, sizeof(limit_value), "%g", seconds < least ? least : most);
        return refuse_limit(p->r, pointer, pointer + 1, limit_value, value, "%s is %g … %g seconds, not %s",
                            pointer + 1, least, most, value);
}

/* A control character of C0 or C1, or DEL: a terminal obeys them. Names that were stored before may have those of C1.
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

static int take_verify(struct parser *p, const struct json *v) {
        unsigned word = 0;
        int r = read_word(v, "/verify", "verify", &verify_words, &word, p->r);
        if (r == 0)
                p->spec->verify = (enum verify) word;
        return r;
}

static int second_end(struct parser *p, const char *pointer) {
        const struct window_end *e = &p->spec->end;
        if (!e->duration_ns && !e->messages && !e->bytes)
                return 0;
        return refuse(p->r, 422, "wrong-combination", pointer,
                      "one of duration_seconds, messages and bytes ends the window; more than one is given");
}

static int take_duration(struct parser *p, const struct json *v) {
        int r = second_end(p, "/duration_seconds");
        return r < 0 ? r : take_seconds(p, v, "/duration_seconds", false, &p->spec->end.duration_ns);
}

static int take_messages(struct parser *p, const struct json *v) {
        int r = second_end(p, "/messages");
        return r < 0 ? r : read_integer(v, "/messages", "messages", 1, SPEC_COUNT_MAX, &p->spec->end.messages, p->r);
}

static int take_bytes(struct parser *p, const struct json *v) {
        if (spec_transports(p->spec) == 0 && !parser_is_posted(p, "bytes"))
                return 0;
        int r = second_end(p, "/bytes");
        return r < 0 ? r : read_integer(v, "/bytes", "bytes", 1, SPEC_COUNT_MAX, &p->spec->end.bytes, p->r);
}

static int take_warmup(struct parser *p, const struct json *v) {
        return take_seconds(p, v, "/warmup_seconds", true, &p->spec->warmup_ns);
}

static int take_repetitions(struct parser *p, const struct json *v) {
        uint64_t n = 0;
        int r = read_integer(v, "/repetitions", "repetitions", 1, SPEC_REPETITIONS_MAX, &n, p->r);
        if (r == 0)
                p->spec->repetitions = (uint32_t) n;
        return r;
}

static int take_order(struct parser *p, const struct json *v) {
        unsigned word = 0;
        int r = read_word(v, "/order", "order", &spec_order_words, &word, p->r);
        if (r == 0)
                p->spec->order = (enum spec_order) word;
        return r;
}

/* After the axes, of which this field makes one. */
static int take_points(struct parser *p, const struct json *v) {
        unsigned word = 0;
        int r = read_word(v, "/points", "points", &spec_instances_words, &word, p->r);
        if (r < 0 || word != INSTANCES_TWICE)
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
                return refuse(p->r, 422, "wrong-combination", "/until/compare/baseline",
                              "the baseline is none of the experiment's values of %s", a->value.name);
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

/* After repetitions, order and points: whichever of repetitions and until is posted overrides what the preset has of
 * both. */
static int take_until(struct parser *p, const struct json *v) {
        struct spec_until until = {0};
        int r = values_read(&until_values, v, "/until", &until, p->r);
        if (r < 0)
                return r;
        if (parser_is_posted(p, "repetitions"))
                return parser_is_posted(p, "until")
                               ? refuse(p->r, 422, "wrong-combination", "/until",
                                        "until decides how many repetitions there are, and repetitions is given too")
                               : 0;
        if (p->spec->order != ORDER_BLOCKS)
                return refuse(p->r, 422, "wrong-combination", "/order", "until adds whole blocks, and order is %s",
                              spec_order_name(p->spec->order));
        r = until.compare.given ? check_compare(p, &until.compare) : 0;
        if (r < 0)
                return r;
        values_fill(&until_values, &until);
        r = p->stored ? 0 : check_looks(p, &until);
        if (r < 0)
                return r;
        p->spec->until = until;
        p->spec->repetitions = 1;
        return 0;
}

/* Called after the axes, the window's end, repetitions, order, until and rate, some of which exclude a search. */
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
        if (s->until.relative_ci > 0)
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
        s->rate = 0; /* a preset's rate is dropped */
        if (!parser_get(p, "repetitions"))
                s->repetitions = SPEC_SEARCH_REPETITIONS;
        return 0;
}

static int take_chunk(struct parser *p, const struct json *v) {
        if (json_as_bool(v, &p->spec->chunk) < 0)
                return refuse_type(v, "/chunk", "true or false", p->r);
        unsigned whole = 0;
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

static int take_fresh(struct parser *p, const struct json *v) {
        if (json_as_bool(v, &p->spec->fresh) < 0)
                return refuse_type(v, "/fresh", "true or false", p->r);
        if (!p->spec->fresh || spec_transports(p->spec) != 0)
                return 0;
        p->spec->fresh = false;
        if (!parser_is_posted(p, "fresh"))
                return 0;
        return refuse(p->r, 422, "wrong-combination", "/fresh",
                      "fresh is of messages, and no workload of this experiment sends any");
}

static int take_stamp(struct parser *p, const struct json *v) {
        if (json_as_bool(v, &p->spec->stamp) < 0)
                return refuse_type(v, "/stamp", "true or false", p->r);
        return 0;
}

static int take_rate(struct parser *p, const struct json *v) {
        double rate;
        if (json_as_double(v, &rate) < 0)
                return refuse_type(v, "/rate", "a number of messages per second", p->r);
        if (rate < SPEC_RATE_MIN || rate > SPEC_RATE_MAX) {
                char value[40];
                snprintf(value, sizeof(value), "%g", rate);
                return refuse_limit(p->r, "/rate", "rate", rate < SPEC_RATE_MIN ? "1e-05" : "1e+09", value,
                                    "rate is 1e-05 … 1e9 messages per second, not %s", value);
        }
        if (spec_transports(p->spec) != 0)
                p->spec->rate = rate;
        else if (parser_is_posted(p, "rate"))
                return refuse(p->r, 422, "wrong-combination", "/rate",
                              "rate is of messages, and no workload of this experiment sends any");
        return 0;
}

static int take_skip_impossible(struct parser *p, const struct json *v) {
        if (json_as_bool(v, &p->spec->skip_impossible) < 0)
                return refuse_type(v, "/skip_impossible", "true or false", p->r);
        return 0;
}

static int take_seed(struct parser *p, const struct json *v) {
        int r = read_integer(v, "/seed", "seed", 0, SPEC_SEED_MAX, &p->spec->seed, p->r);
        p->spec->has_seed = r == 0;
        return r;
}

static int take_require(struct parser *p, const struct json *v) {
        return require_read(v, p->spec, p->r);
}

static int take_tune(struct parser *p, const struct json *v) {
        return values_read(&tune_values, v, "/tune", &p->spec->tune, p->r);
}

static int take_transport_options(struct parser *p, const struct json *v) {
        int r = values_read(&option_values, v, "/transport_options", &p->spec->options, p->r);
        return r < 0 ? r : options_check(p, v);
}

/* Beside the axes, which are read first. */
static const struct field {
        const char *name;
        int (*take)(struct parser *p, const struct json *v);
} fields[] = {
        {"name", take_name},
        {"skip_impossible", take_skip_impossible},
        {"verify", take_verify},
        {"duration_seconds", take_duration},
        {"messages", take_messages},
        {"bytes", take_bytes},
        {"warmup_seconds", take_warmup},
        {"repetitions", take_repetitions},
        {"order", take_order},
        {"points", take_points},
        {"until", take_until},
        {"rate", take_rate},
        {"search", take_search},
        {"chunk", take_chunk},
        {"fresh", take_fresh},
        {"stamp", take_stamp},
        {"seed", take_seed},
        {"require", take_require},
        {"tune", take_tune},
        {"transport_options", take_transport_options},
};

static int check_names(struct parser *p) {
        const char *names[AXIS_COUNT + ELEMENTS(fields) + 1];
        size_t n = 0;

        for (size_t i = 0; i < AXIS_COUNT; i++)
                if (!axes[i].field)
                        names[n++] = axes[i].value.name;
        for (size_t i = 0; i < ELEMENTS(fields); i++)
                names[n++] = fields[i].name;
        names[n++] = "preset";
        for (const struct json *m = json_first(p->body); m; m = json_next(m)) {
                size_t i = 0;
                while (i < n && strcmp(names[i], json_key(m)) != 0)
                        i++;
                if (i == n)
                        return refuse_member(m, "", names, n, p->r);
        }
        return 0;
}

/* *ret_document owns what p->preset points into. */
static int find_preset(struct parser *p, struct json **ret_document) {
        const struct json *v = json_get(p->body, "preset");
        const char *name;

        if (!v)
                return 0;
        if (json_as_string(v, &name) < 0)
                return refuse_type(v, "/preset", "the name of a preset", p->r);
        const struct preset *preset = preset_find(name);
        if (!preset)
                return refuse(p->r, 422, "unknown-value", "/preset", "there is no preset \"%.60s\"", name);
        p->spec->preset = strdup(preset->name);
        if (!p->spec->preset)
                return -ENOMEM;
        int r = json_parse(preset->json, preset->length, ret_document, NULL);
        if (r < 0)
                return r; /* only for want of memory: the build has checked the text */
        p->preset = json_get(*ret_document, "spec");
        return 0;
}

/* After the axes and the rate. A preset's stamp is dropped where it has no meaning. */
static int check_stamp(struct parser *p) {
        struct spec *s = p->spec;
        const struct axis_list *workloads = &s->axes[AXIS_WORKLOAD], *transports = &s->axes[AXIS_TRANSPORT],
                               *directions = &s->axes[AXIS_DIRECTION];
        struct point q = {.message_size = SPEC_STAMPED_MIN};

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

static int take_all(struct parser *p) {
        int r = check_names(p);
        if (r == 0)
                r = parser_axes(p);
        for (size_t i = 0; r == 0 && i < ELEMENTS(fields); i++) {
                const struct json *v = parser_get(p, fields[i].name);
                if (v)
                        r = fields[i].take(p, v);
        }
        if (r < 0)
                return r;

        struct window_end *e = &p->spec->end;
        if (!e->duration_ns && !e->messages && !e->bytes)
                e->duration_ns = 5 * NSEC_PER_SEC;
        r = parser_meanings(p);
        if (r == 0)
                r = check_stamp(p);
        return r < 0 || p->stored ? r : spec_to_json(p->spec, &p->spec->merged_json);
}

static int parse_body(const struct json *root, bool stored, struct spec **ret, struct refusal *r) {
        struct spec *spec = calloc(1, sizeof(*spec));
        struct json *document = NULL;
        struct parser p = {.spec = spec, .body = root, .stored = stored, .r = r};

        if (!spec)
                return -ENOMEM;
        spec->verify = VERIFY_TOUCH;
        spec->warmup_ns = NSEC_PER_SEC;
        spec->repetitions = 1;
        spec->order = ORDER_BLOCKS;
        int x = json_type(root) == JSON_OBJECT ? find_preset(&p, &document) : refuse_type(root, "", "an object", r);
        if (x == 0)
                x = take_all(&p);
        json_free(document);
        if (x < 0)
                spec_free(spec);
        else
                *ret = spec;
        return x;
}

static int parse(const char *text, size_t length, bool stored, struct spec **ret, struct refusal *r) {
        struct json *root = NULL;
        struct json_error e = {.pointer = ""};

        if (length > SPEC_BODY_MAX) {
                char value[32];
                snprintf(value, sizeof(value), "%zu", length);
                (void) refuse_limit(r, "", "bytes of a body", "1048576", value, "the body has %s bytes, at most %u",
                                    value, SPEC_BODY_MAX);
                r->status = 413;
                return -EINVAL;
        }
        int x = (stored ? json_parse : json_parse_request)(text, length, &root, &e);
        if (x == -EINVAL)
                return refuse(r, 400, "invalid-json", e.pointer, "%s", e.detail);
        if (x < 0)
                return x;
        x = parse_body(root, stored, ret, r);
        json_free(root);
        return x;
}

int spec_parse(const char *text, size_t length, struct spec **ret, struct refusal *r) {
        return parse(text, length, false, ret, r);
}

int spec_parse_stored(const char *text, size_t length, struct spec **ret, struct refusal *r) {
        return parse(text, length, true, ret, r);
}

void spec_free(struct spec *s) {
        if (!s)
                return;
        free(s->name);
        free(s->preset);
        for (size_t i = 0; i < AXIS_COUNT; i++)
                free(s->axes[i].values);
        for (size_t i = 0; i < s->n_facts; i++) {
                free(s->facts[i].name);
                free(s->facts[i].text);
        }
        free(s->facts);
        free(s->merged_json);
        free(s);
}
