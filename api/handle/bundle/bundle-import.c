/* SPDX-License-Identifier: MIT */

/*
 * POST /bundles: takes the experiment of another host in. The digest is compared first. Then each value must be, byte
 * for byte, what this daemon would have put into a bundle in its place (bundle-fields.h), so that there is nothing
 * unknown, nothing of another form and no second text of the same; and what the store and its readers rely on is
 * checked member by member. Nothing is visible before all of it has been read.
 */

#include "api/handle/bundle/bundle-fields.h"
#include "api/handle/bundle/bundle-reader.h"
#include "api/handle/handlers.h"
#include "api/handle/render/render.h"
#include "schema/json/canonical.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define EXCERPT_BEFORE 40
#define EXCERPT 80

/* A row of the bundle: its point, canonical and as the store writes it, and the rate of a search. */
struct row {
        char *canonical, *point_json;
        uint64_t rate; /* 0: none */
        uint32_t ordinal;
        bool has_runs;
};

struct taking {
        struct service *service;
        struct bundle_reader reader;
        size_t value_bytes;                  /* of the value that was read last */
        struct experiment_record experiment; /* of the store, from the first portion on */
        bool searches;                       /* as the experiment's spec has it */
        char *host;                          /* NULL: none */
        struct row *rows;
        size_t n_rows, size_rows;
        struct imported_run runs[SERVICE_IMPORT_RUNS]; /* of the next portion */
        size_t n_runs;
        size_t runs_bytes;            /* of their JSON */
        uint32_t total;               /* runs, as the experiment states it */
        uint32_t position;            /* of the next run */
        uint32_t states[STATE_COUNT]; /* how many runs */
        struct import *import;
        struct refusal *refusal;
};

static void taking_free(struct taking *t) {
        bundle_reader_deinit(&t->reader);
        experiment_record_deinit(&t->experiment);
        for (size_t i = 0; i < t->n_rows; i++) {
                free(t->rows[i].canonical);
                free(t->rows[i].point_json);
        }
        for (size_t i = 0; i < t->n_runs; i++)
                imported_run_deinit(&t->runs[i]);
        free(t->rows);
        free(t->host);
        service_import_free(t->import);
        free(t);
}

/* ---- values ---- */

enum kind { KIND_NULL = 1, KIND_TEXT = 2, KIND_INTEGER = 4, KIND_LIST = 8, KIND_WORDS = 16, KIND_OBJECT = 32 };

/* How a member is taken into its record: as text, as canonical JSON, as milliseconds or as a count. */
enum taken { TAKEN_NOT, TAKEN_TEXT, TAKEN_JSON, TAKEN_TIME, TAKEN_U32 };

struct member {
        const char *name;
        unsigned kinds;
        enum taken taken;
        size_t offset; /* in the record */
};

static bool is_of(const struct json *value, unsigned kinds) {
        int64_t integer;
        const char *text;
        switch (json_type(value)) {
        case JSON_NULL:
                return kinds & KIND_NULL;
        case JSON_STRING:
                return kinds & KIND_TEXT;
        case JSON_INTEGER:
                return kinds & KIND_INTEGER && json_as_i64(value, &integer) == 0 && integer >= 0;
        case JSON_OBJECT:
                return kinds & KIND_OBJECT;
        case JSON_ARRAY:
                for (const struct json *i = kinds & KIND_WORDS ? json_first(value) : NULL; i; i = json_next(i))
                        if (json_as_string(i, &text) < 0)
                                return false;
                return kinds & (KIND_LIST | KIND_WORDS);
        default:
                return false;
        }
}

/* Checks that the object has all of these members, each of one of its kinds. */
static int check_members(const struct json *object, const struct member *members, size_t n, const char *where,
                         struct refusal *r) {
        char pointer[JSON_POINTER_MAX];
        if (json_type(object) != JSON_OBJECT)
                return refuse(r, 422, "not-a-bundle", where, "This must be an object.");
        for (size_t i = 0; i < n; i++) {
                const struct json *value = json_get(object, members[i].name);
                json_pointer_key(pointer, where, members[i].name);
                if (!value)
                        return refuse(r, 422, "missing-field", pointer, "The bundle has no %s here.", members[i].name);
                if (!is_of(value, members[i].kinds))
                        return refuse(r, 422, "wrong-type", pointer, "The value is of another type than a bundle's.");
        }
        return 0;
}

/* Refuses a text from the byte on in which it is not what it must be. */
static int refuse_text(const char *text, const char *expected, const char *where, struct refusal *r) {
        size_t at = 0;
        while (text[at] && text[at] == expected[at])
                at++;
        size_t from = at > EXCERPT_BEFORE ? at - EXCERPT_BEFORE : 0;
        return refuse(r, 422, "not-canonical", where,
                      "From byte %zu of this value on, the bundle has what no bundle has, or in another form: …%.*s…",
                      at, EXCERPT, text + from);
}

/* The next value, which must be what a bundle has by this table; NULL: any value. */
static int read_value(struct taking *t, const char *where, const struct bundle_field *fields, struct json **ret) {
        _cleanup_free_ char *text = NULL;
        _cleanup_free_ char *expected = NULL;
        _cleanup_(json_freep) struct json *root = NULL;
        struct json_error e;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        int k = bundle_read_value(&t->reader, where, &text, t->refusal);
        if (k < 0)
                return k;
        k = json_parse(text, strlen(text), &root, &e);
        if (k == -EINVAL) {
                char pointer[JSON_POINTER_MAX];
                (void) snprintf(pointer, sizeof(pointer), "%.100s%.150s", where, e.pointer);
                return refuse(t->refusal, 422, "invalid-json", pointer, "%s", e.detail);
        }
        if (k < 0)
                return k;
        if (fields && json_type(root) == JSON_OBJECT)
                bundle_put(&w, root, fields);
        else
                json_put_canonical(&w, root);
        k = json_writer_steal(&w, &expected, NULL);
        if (k == -EBADMSG)
                return refuse(t->refusal, 422, "not-canonical", where, "A name or a number is none that a bundle has.");
        if (k < 0)
                return k;
        if (strcmp(text, expected) != 0)
                return refuse_text(text, expected, where, t->refusal);
        t->value_bytes = strlen(text);
        *ret = util_steal(&root);
        return 0;
}

static int expect(struct taking *t, const char *word) {
        int k = bundle_read_word(&t->reader, word, t->refusal);
        return k != 0 ? k
                      : refuse(t->refusal, 422, "not-a-bundle", "", "The JSON has not %s where a bundle has it.", word);
}

/* A member's text in its canonical form; NULL stays for null. */
static int take_json(const struct json *object, const char *name, char **ret) {
        const struct json *value = json_get(object, name);
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        if (json_type(value) == JSON_NULL)
                return 0;
        json_put_canonical(&w, value);
        return json_writer_steal(&w, ret, NULL);
}

static int take_text(const struct json *object, const char *name, char **ret) {
        const char *text;
        if (json_as_string(json_get(object, name), &text) < 0)
                return 0; /* null */
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

static int64_t integer_of(const struct json *object, const char *name) {
        int64_t value = 0;
        const struct json *member = object && json_type(object) == JSON_OBJECT ? json_get(object, name) : NULL;
        if (member)
                (void) json_as_i64(member, &value); /* 0 where there is none */
        return value;
}

static int take_u32(struct taking *t, const struct json *object, const char *name, const char *where, uint32_t *ret) {
        char pointer[JSON_POINTER_MAX];
        int64_t value = integer_of(object, name);
        if (value <= UINT32_MAX) {
                *ret = (uint32_t) value;
                return 0;
        }
        json_pointer_key(pointer, where, name);
        return refuse(t->refusal, 422, "limit-exceeded", pointer, "%" PRId64 " is too large.", value);
}

/* A time must be written as this daemon writes it. */
static int take_time(struct taking *t, const struct json *object, const char *name, const char *where, int64_t *ret) {
        char pointer[JSON_POINTER_MAX], again[JSON_TIME_MAX];
        const char *text;
        struct tm tm = {0};
        if (json_as_string(json_get(object, name), &text) < 0)
                return 0;
        const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        int64_t ms = (int64_t) timegm(&tm) * 1000;
        if (rest && *rest == '.')
                ms += strtol(rest + 1, NULL, 10);
        if (rest && json_time_text(ms, again) && strcmp(again, text) == 0) {
                *ret = ms;
                return 0;
        }
        json_pointer_key(pointer, where, name);
        return refuse(t->refusal, 422, "wrong-value", pointer, "\"%.60s\" is no time as 2026-01-31T12:00:00.000Z.",
                      text);
}

/* Checks the members, and takes them into the record as their rows have it; a null leaves what it has. */
static int take_members(struct taking *t, const struct json *object, const struct member *members, size_t n,
                        const char *where, void *record) {
        int k = check_members(object, members, n, where, t->refusal);
        for (size_t i = 0; k == 0 && i < n; i++) {
                void *to = (char *) record + members[i].offset;
                switch (members[i].taken) {
                case TAKEN_NOT:
                        break;
                case TAKEN_TEXT:
                        k = take_text(object, members[i].name, to);
                        break;
                case TAKEN_JSON:
                        k = take_json(object, members[i].name, to);
                        break;
                case TAKEN_TIME:
                        k = take_time(t, object, members[i].name, where, to);
                        break;
                case TAKEN_U32:
                        k = take_u32(t, object, members[i].name, where, to);
                        break;
                }
        }
        return k;
}

static int take_state(struct taking *t, const struct json *object, const char *where, enum state *ret) {
        char pointer[JSON_POINTER_MAX];
        const char *name = "";
        (void) json_as_string(json_get(object, "state"), &name); /* it was checked */
        if (state_from_name(name, ret) == 0 && (*ret == STATE_DONE || *ret == STATE_FAILED || *ret == STATE_CANCELLED))
                return 0;
        json_pointer_key(pointer, where, "state");
        return refuse(t->refusal, 422, "wrong-value", pointer,
                      "What is %.20s does not end here: a bundle has what is done, failed or cancelled.", name);
}

/* ---- the experiment ---- */

static int check_spec(struct taking *t, const struct experiment_record *e) {
        struct spec *spec = NULL;
        struct refusal why = {0};
        int k = spec_parse_stored(e->merged_json, strlen(e->merged_json), &spec, &why);
        if (k == -EINVAL)
                return refuse(t->refusal, 422, "wrong-value", "/experiment/effective_spec", "%.100s: %.300s",
                              why.pointer, why.detail);
        if (k < 0)
                return k;
        bool same = (!spec->name && !e->name) || (spec->name && e->name && strcmp(spec->name, e->name) == 0);
        t->searches = t->experiment.searches = spec->search.latency_p99_below_us > 0;
        spec_free(spec);
        return same ? 0
                    : refuse(t->refusal, 422, "wrong-value", "/experiment/name", "The name is not that of the spec.");
}

#define OF_EXPERIMENT(member) offsetof(struct experiment_record, member)
#define OF_RUN(member) offsetof(struct run_record, member)

static int take_progress(struct taking *t, const struct json *experiment, struct experiment_record *e) {
        static const char where[] = "/experiment/progress";
        static const struct member members[] = {
                {"runs_total", KIND_INTEGER, TAKEN_U32, OF_EXPERIMENT(runs_total)},
                {"runs_done", KIND_INTEGER, TAKEN_U32, OF_EXPERIMENT(runs_done)},
                {"runs_failed", KIND_INTEGER, TAKEN_U32, OF_EXPERIMENT(runs_failed)},
                {"runs_cancelled", KIND_INTEGER, TAKEN_U32, OF_EXPERIMENT(runs_cancelled)},
        };
        int k = take_members(t, json_get(experiment, "progress"), members, ELEMENTS(members), where, e);
        if (k == 0 && e->runs_total > SPEC_RUNS_MAX)
                return refuse(t->refusal, 422, "limit-exceeded", where,
                              "%" PRIu32 " runs are more than the %u allowed.", e->runs_total, SPEC_RUNS_MAX);
        return k;
}

static int read_experiment(struct taking *t) {
        static const char where[] = "/experiment";
        static const struct member members[] = {
                {"name", KIND_TEXT | KIND_NULL, TAKEN_TEXT, OF_EXPERIMENT(name)},
                {"state", KIND_TEXT, TAKEN_NOT, 0},
                {"spec", KIND_OBJECT, TAKEN_JSON, OF_EXPERIMENT(spec_json)},
                {"effective_spec", KIND_OBJECT, TAKEN_JSON, OF_EXPERIMENT(merged_json)},
                {"error", KIND_TEXT | KIND_NULL, TAKEN_TEXT, OF_EXPERIMENT(error)},
                {"progress", KIND_OBJECT, TAKEN_NOT, 0},
                {"created_at", KIND_TEXT, TAKEN_TIME, OF_EXPERIMENT(created_at)},
                {"started_at", KIND_TEXT | KIND_NULL, TAKEN_TIME, OF_EXPERIMENT(started_at)},
                {"finished_at", KIND_TEXT | KIND_NULL, TAKEN_TIME, OF_EXPERIMENT(finished_at)},
                {"seed", KIND_INTEGER, TAKEN_NOT, 0},
                {"skipped", KIND_LIST, TAKEN_JSON, OF_EXPERIMENT(skipped_json)},
                {"version", KIND_TEXT, TAKEN_TEXT, OF_EXPERIMENT(version)},
        };
        _cleanup_(json_freep) struct json *root = NULL;
        struct experiment_record *e = &t->experiment;
        int k = read_value(t, where, bundle_experiment, &root);
        if (k == 0)
                k = take_members(t, root, members, ELEMENTS(members), where, e);
        if (k == 0)
                k = take_state(t, root, where, &e->state);
        if (k == 0)
                k = take_progress(t, root, e);
        e->seed = (uint64_t) integer_of(root, "seed");
        return k < 0 ? k : check_spec(t, e);
}

static int read_host(struct taking *t) {
        _cleanup_(json_freep) struct json *root = NULL;
        const char *host;
        int k = read_value(t, "/host", NULL, &root);
        if (k < 0 || json_type(root) == JSON_NULL)
                return k;
        if (json_as_string(root, &host) < 0 || !bundle_is_label(host))
                return refuse(t->refusal, 422, "wrong-value", "/host", "A host's label has " BUNDLE_LABEL_WORDS ".",
                              BUNDLE_LABEL_MAX);
        t->host = strdup(host);
        return t->host ? 0 : -ENOMEM;
}

/* ---- rows ---- */

/* A point's own row first, then its rates. */
static int by_point(const void *a, const void *b) {
        const struct row *x = a, *y = b;
        int order = strcmp(x->canonical, y->canonical);
        return order != 0 ? order : (x->rate > y->rate) - (x->rate < y->rate);
}

static struct row *find_row(struct taking *t, char *canonical, uint64_t rate) {
        const struct row key = {.canonical = canonical, .rate = rate};
        return t->n_rows > 0 ? bsearch(&key, t->rows, t->n_rows, sizeof(*t->rows), by_point) : NULL;
}

/* The rate that a search has tried, 0 where the member is null. */
static int take_rate(struct taking *t, const struct json *object, const char *where, uint64_t *ret) {
        char pointer[JSON_POINTER_MAX];
        int64_t value = integer_of(object, "rate");
        if (json_type(json_get(object, "rate")) == JSON_NULL ||
            (t->searches && value >= 1 && (double) value <= SPEC_RATE_MAX)) {
                *ret = (uint64_t) value;
                return 0;
        }
        json_pointer_key(pointer, where, "rate");
        return refuse(t->refusal, 422, "wrong-value", pointer,
                      t->searches ? "A search tries rates from 1 to %.0f messages per second."
                                  : "There is a rate, and the experiment is no search; it may be %.0f in one.",
                      SPEC_RATE_MAX);
}

/* The store has points in one order of their members, so that equal ones are equal texts. */
static int print_point(struct taking *t, const char *canonical, const char *where, char **ret) {
        struct point p;
        _cleanup_free_ char *text = NULL;
        _cleanup_free_ char *again = NULL;
        _cleanup_(json_freep) struct json *root = NULL;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        int k = point_from_json(canonical, strlen(canonical), &p);
        if (k == -EINVAL)
                return refuse(t->refusal, 422, "wrong-value", where, "This is no point: %.200s", canonical);
        text = k == 0 ? point_to_json(&p) : NULL;
        if (!text)
                return k < 0 ? k : -ENOMEM;
        k = json_parse(text, strlen(text), &root, NULL);
        if (k < 0)
                return k;
        json_put_canonical(&w, root);
        k = json_writer_steal(&w, &again, NULL);
        if (k < 0)
                return k;
        if (strcmp(again, canonical) != 0)
                return refuse_text(canonical, again, where, t->refusal);
        *ret = util_steal(&text);
        return 0;
}

static int read_row(struct taking *t, const char *where) {
        static const struct member members[] = {{"point", KIND_OBJECT, TAKEN_NOT, 0},
                                                {"rate", KIND_INTEGER | KIND_NULL, TAKEN_NOT, 0}};
        _cleanup_(json_freep) struct json *root = NULL;
        int k = read_value(t, where, bundle_row, &root);
        if (k == 0)
                k = check_members(root, members, ELEMENTS(members), where, t->refusal);
        if (k < 0)
                return k;
        if (t->n_rows == SPEC_POINTS_MAX)
                return refuse(t->refusal, 422, "limit-exceeded", where, "There are more than %u rows.",
                              SPEC_POINTS_MAX);
        if (!util_grow(t->rows, t->n_rows, t->size_rows))
                return -ENOMEM;
        struct row *row = &t->rows[t->n_rows];
        *row = (struct row){.ordinal = (uint32_t) t->n_rows};
        t->n_rows++;
        k = take_rate(t, root, where, &row->rate);
        if (k == 0)
                k = take_json(root, "point", &row->canonical);
        return k < 0 ? k : print_point(t, row->canonical, where, &row->point_json);
}

/* Each point has one row without a rate, before those of its rates, which are as many as a search tries at most. */
static int sort_rows(struct taking *t) {
        const struct row *own = NULL;
        if (t->searches && t->n_rows == 0)
                return refuse(t->refusal, 422, "wrong-value", "/results", "A search without a row has found nothing.");
        if (t->n_rows > 1)
                qsort(t->rows, t->n_rows, sizeof(*t->rows), by_point);
        for (size_t i = 0; i < t->n_rows; i++) {
                const struct row *row = &t->rows[i];
                bool same = own && strcmp(own->canonical, row->canonical) == 0;
                const char *fault = NULL;
                if (same && row->rate == row[-1].rate)
                        fault = "Two rows have one point and rate";
                else if (row->rate > 0 && (!same || own->ordinal > row->ordinal))
                        fault = "A rate stands before its point's own row, or there is none";
                else if (row->rate > 0 && (size_t) (row - own) > SPEC_SEARCH_RATES_MAX)
                        fault = "There are more rates of one point than a search tries";
                if (fault)
                        return refuse(t->refusal, 422, "wrong-value", "/results", "%s: %.200s", fault, row->canonical);
                own = row->rate == 0 ? row : own;
        }
        return 0;
}

/* ---- runs ---- */

static int take_histogram(struct taking *t, const struct json *run, const char *where, struct imported_run *ret) {
        static const struct member members[] = {{"histogram", KIND_TEXT, TAKEN_NOT, 0},
                                                {"sum_ns", KIND_TEXT, TAKEN_NOT, 0}};
        const struct json *object = json_get(run, "latency_histogram");
        char pointer[JSON_POINTER_MAX];
        const char *text = "";
        uint64_t sum_ns = 0;
        if (json_type(object) == JSON_NULL)
                return 0;
        json_pointer_key(pointer, where, "latency_histogram");
        if (integer_of(json_get(run, "result"), "window_ns") == 0)
                return refuse(t->refusal, 422, "wrong-value", pointer, "Latencies stand beside no window.");
        int k = check_members(object, members, ELEMENTS(members), pointer, t->refusal);
        if (k < 0)
                return k;
        (void) json_as_string(json_get(object, "histogram"), &text); /* it was checked */
        ret->latency = malloc(sizeof(*ret->latency));
        if (!ret->latency)
                return -ENOMEM;
        k = histogram_import(text, ret->latency);
        if (k == -EBADMSG || (k == 0 && histogram_total(ret->latency) == 0))
                return refuse(t->refusal, 422, "wrong-value", pointer,
                              "This is no HdrHistogram V2 of two digits from 1 ns to 100 s, compressed, in base64.");
        if (k < 0)
                return k;
        if (json_as_u64_text(json_get(object, "sum_ns"), &sum_ns) < 0 || sum_ns > INT64_MAX ||
            !histogram_may_sum(ret->latency, sum_ns))
                return refuse(t->refusal, 422, "wrong-value", pointer,
                              "sum_ns is not the sum of values with these counts.");
        ret->latency->sum_ns = sum_ns;
        return 0;
}

/* The agent whose counts stand for the window. */
static int take_window(const struct json *run, struct imported_run *ret) {
        const struct json *result = json_get(run, "result");
        const char *role = "";
        enum end end;
        bool has = json_type(result) == JSON_OBJECT;
        if (has && json_get(result, "measured_by"))
                (void) json_as_string(json_get(result, "measured_by"), &role);
        ret->role = strdup(role_from_name(role, &end) == 0 ? role : role_pair_name(ROLES_TCP, END_SECOND));
        ret->window_ns = (uint64_t) integer_of(result, "window_ns");
        ret->messages = (uint64_t) integer_of(result, "messages");
        ret->bytes = (uint64_t) integer_of(result, "bytes");
        return ret->role ? 0 : -ENOMEM;
}

static int take_point(struct taking *t, const struct json *run, const char *where, struct imported_run *ret) {
        _cleanup_free_ char *canonical = NULL;
        int k = take_rate(t, run, where, &ret->run.rate);
        if (k == 0)
                k = take_json(run, "point", &canonical);
        if (k < 0)
                return k;
        struct row *row = find_row(t, canonical, ret->run.rate);
        if (!row)
                return refuse(t->refusal, 422, "wrong-value", where, "No row has the run's point and rate: %.200s",
                              canonical);
        row->has_runs = true;
        ret->ordinal = row->ordinal;
        ret->run.point_json = strdup(row->point_json);
        return ret->run.point_json ? 0 : -ENOMEM;
}

static int take_run(struct taking *t, const struct json *root, const char *where, struct imported_run *ret) {
        static const struct member members[] = {
                {"point", KIND_OBJECT, TAKEN_NOT, 0},
                {"repetition", KIND_INTEGER, TAKEN_U32, OF_RUN(repetition)},
                {"block", KIND_INTEGER | KIND_NULL, TAKEN_U32, OF_RUN(block)},
                {"rate", KIND_INTEGER | KIND_NULL, TAKEN_NOT, 0}, /* a search's */
                {"position", KIND_INTEGER, TAKEN_U32, OF_RUN(position)},
                {"state", KIND_TEXT, TAKEN_NOT, 0},
                {"attempt", KIND_INTEGER, TAKEN_U32, OF_RUN(attempt)},
                {"error", KIND_TEXT | KIND_NULL, TAKEN_TEXT, OF_RUN(error)},
                {"flags", KIND_WORDS, TAKEN_JSON, OF_RUN(flags_json)},
                {"agents", KIND_LIST, TAKEN_JSON, OF_RUN(agents_json)},
                {"result", KIND_OBJECT | KIND_NULL, TAKEN_JSON, OF_RUN(result_json)},
                {"environment", KIND_OBJECT | KIND_NULL, TAKEN_JSON, OF_RUN(environment_json)},
                {"probes", KIND_OBJECT | KIND_NULL, TAKEN_JSON, OF_RUN(probes_json)},
                {"started_at", KIND_TEXT | KIND_NULL, TAKEN_TIME, OF_RUN(started_at)},
                {"finished_at", KIND_TEXT | KIND_NULL, TAKEN_TIME, OF_RUN(finished_at)},
                {"latency_histogram", KIND_OBJECT | KIND_NULL, TAKEN_NOT, 0},
        };
        struct run_record *run = &ret->run;
        int k = take_members(t, root, members, ELEMENTS(members), where, run);
        if (k == 0)
                k = take_state(t, root, where, &run->state);
        if (k == 0 && (run->position != t->position || run->position >= t->total))
                return refuse(t->refusal, 422, "wrong-value", where,
                              "The run has position %" PRIu32 " and not %" PRIu32 ".", run->position, t->position);
        if (k == 0 && run->state == STATE_DONE && json_type(json_get(root, "result")) != JSON_OBJECT)
                return refuse(t->refusal, 422, "missing-field", where, "The run is done and has no result.");
        if (k == 0)
                k = take_point(t, root, where, ret);
        if (k == 0)
                k = take_histogram(t, root, where, ret);
        return k < 0 ? k : take_window(root, ret);
}

static int store_portion(struct taking *t) {
        int k = 0;
        if (!t->import)
                k = service_import_begin(t->service, &t->experiment, &t->import, t->refusal);
        if (k < 0 || t->n_runs == 0)
                return k;
        k = service_import_runs(&t->import, t->runs, t->n_runs, t->refusal);
        t->n_runs = 0; /* they are the import's, whatever became of it */
        t->runs_bytes = 0;
        return k;
}

static int read_run(struct taking *t, const char *where) {
        _cleanup_(json_freep) struct json *root = NULL;
        int k = read_value(t, where, bundle_run, &root);
        if (k < 0)
                return k;
        struct imported_run *run = &t->runs[t->n_runs];
        *run = (struct imported_run){.role = NULL};
        t->n_runs++;
        k = take_run(t, root, where, run);
        if (k < 0)
                return k;
        t->states[run->run.state]++;
        t->position++;
        t->runs_bytes += t->value_bytes;
        return t->n_runs == SERVICE_IMPORT_RUNS || t->runs_bytes >= SERVICE_IMPORT_BYTES ? store_portion(t) : 0;
}

/* ---- the whole ---- */

static int read_list(struct taking *t, const char *where, int (*read)(struct taking *t, const char *where)) {
        char pointer[JSON_POINTER_MAX];
        int k = bundle_read_word(&t->reader, "]", t->refusal);
        for (size_t i = 0; k == 0; i++) {
                json_pointer_index(pointer, where, i);
                k = read(t, pointer);
                if (k == 0)
                        k = bundle_read_word(&t->reader, "]", t->refusal);
                if (k == 0 && (k = expect(t, ",")) > 0)
                        k = 0;
        }
        return k < 0 ? k : 0;
}

static int read_topology(struct taking *t) {
        _cleanup_(json_freep) struct json *root = NULL;
        int k = read_value(t, "/topology", bundle_topology, &root);
        if (k == 0 && json_type(root) != JSON_OBJECT)
                return refuse(t->refusal, 422, "wrong-type", "/topology", "The topology must be an object.");
        return k;
}

/* The counts that the experiment states are those of its runs. */
static int check_counts(struct taking *t, const uint32_t stated[STATE_COUNT]) {
        for (size_t i = 0; i < t->n_rows; i++)
                if (!t->rows[i].has_runs)
                        return refuse(t->refusal, 422, "wrong-value", "/results", "A row has no run: %.200s",
                                      t->rows[i].canonical);
        bool same = t->position == t->total;
        for (size_t i = 0; i < STATE_COUNT; i++)
                same &= t->states[i] == stated[i];
        return same ? 0
                    : refuse(t->refusal, 422, "wrong-value", "/experiment/progress",
                             "The progress is not that of the %" PRIu32 " runs.", t->position);
}

static int read_all(struct taking *t) {
        static const char head[] = "{\"bundle\":1,\"experiment\":";
        int k = expect(t, head);
        if (k > 0)
                k = read_experiment(t);
        const struct experiment_record *e = &t->experiment;
        t->total = e->runs_total;
        const uint32_t stated[STATE_COUNT] = {
                [STATE_DONE] = e->runs_done, [STATE_FAILED] = e->runs_failed, [STATE_CANCELLED] = e->runs_cancelled};
        if (k == 0 && (k = expect(t, ",\"host\":")) > 0)
                k = read_host(t);
        if (k == 0 && (k = expect(t, ",\"results\":[")) > 0)
                k = read_list(t, "/results", read_row);
        if (k == 0)
                k = sort_rows(t);
        if (k == 0 && (k = expect(t, ",\"runs\":[")) > 0)
                k = read_list(t, "/runs", read_run);
        if (k == 0 && (k = expect(t, ",\"topology\":")) > 0)
                k = read_topology(t);
        if (k == 0 && (k = expect(t, "}")) > 0)
                k = bundle_read_end(&t->reader, t->refusal);
        if (k == 0)
                k = check_counts(t, stated);
        return k < 0 ? k : store_portion(t);
}

static int take_one(struct api *a, const struct request *q, const char *sha256, int64_t *ret_id, bool *ret_created,
                    struct refusal *r) {
        struct taking *t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->service = a->service;
        t->refusal = r;
        int k = bundle_reader_init(&t->reader, q->body, q->body_length);
        if (k == 0)
                k = read_all(t);
        if (k == 0) {
                struct bundle_file file = {.host = t->host, .data = q->body, .length = q->body_length};
                (void) snprintf(file.sha256, sizeof(file.sha256), "%s", sha256);
                k = service_import_end(&t->import, &file, ret_id, ret_created, r);
        }
        taking_free(t);
        return k;
}

static int take(struct api *a, const struct request *q, const char *sha256, int64_t *ret_id, bool *ret_created,
                struct refusal *r) {
        if (atomic_exchange(&a->importing, true)) {
                (void) refuse(r, 503, "unavailable", "", "Another bundle is being taken in: try again.");
                return -EAGAIN;
        }
        int k = take_one(a, q, sha256, ret_id, ret_created, r);
        atomic_store(&a->importing, false);
        return k;
}

static int check_digest(const struct request *q, const char *sha256, struct refusal *r) {
        char found[2 * SHA256_DIGEST_SIZE + 1];
        int k = bundle_read_digest(q->body, q->body_length, found, r);
        if (k < 0 || strcmp(found, sha256) == 0)
                return k;
        return refuse(r, 422, "wrong-digest", "", "The SHA-256 of the file's JSON is %s, and not %s.", found, sha256);
}

HANDLER(handle_take_bundle) {
        const char *sha256 = request_parameter(q, "sha256");
        int64_t id = 0;
        bool created = false;
        if (!sha256 || strlen(sha256) != 2 * SHA256_DIGEST_SIZE || sha256[strspn(sha256, "0123456789abcdef")] != '\0')
                return refuse_parameter(r, "sha256", sha256 ? sha256 : "",
                                        "the 64 hexadecimal digits of the file's name");
        int k = check_digest(q, sha256, r);
        if (k == 0)
                k = service_find_bundle(a->service, sha256, &id, r);
        if (k == 0 && id == 0)
                k = take(a, q, sha256, &id, &created, r);
        if (k < 0)
                return k;
        response_header(p, "Location", "/experiments/%" PRId64, id);
        return respond_experiment(a, id, created ? 201 : 200, p, r);
}
