/* SPDX-License-Identifier: MIT */

/* Makes rows of figures from stored points and the results of their runs. */

#include "daemon/service/evidence.h"

#include "daemon/log.h"
#include "daemon/result/figure.h"
#include "daemon/result/until.h"
#include "daemon/service/service.h"
#include "schema/facts.h"
#include "schema/json/json.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define POINTS_PER_PAGE 32u

/* Settings in force that limit a transfer, by their names in a result's "effective". */
static const struct {
        const char *name, *what;
} limits[] = {
        {"pipe_size", "the pipe's capacity"},    {"sndbuf_bytes", "the send buffer"},
        {"rcvbuf_bytes", "the receive buffer"},  {"ring_bytes", "the ring's capacity"},
        {"queue_bytes", "the queue's capacity"}, {"queue_message_bytes", "the queue's largest message"},
};
_Static_assert(ELEMENTS(limits) <= FINDINGS_LIMITS_MAX, "each has a place in a row");

#define ITEM(name) name,
static const char *const settings[] = {SPEC_SETTINGS(ITEM)};
#undef ITEM

/* NULL is written as null. */
static int put_member(struct json_writer *w, const char *name, const struct json *value) {
        _cleanup_free_ char *text = value ? json_print(value) : NULL;
        json_member_raw(w, name, text);
        return value && !text ? -ENOMEM : 0;
}

int environment_print_facts(const struct json *environment, bool (*has)(enum fact_name), const struct json *build,
                            char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        int r = 0;
        if (!environment || json_type(environment) != JSON_OBJECT)
                return -EBADMSG;
        json_object_begin(&w);
        for (enum fact_name i = 0; r == 0 && i < FACT_COUNT; i++)
                if (has(i))
                        r = put_member(&w, fact_rows[i].name, json_get(environment, fact_rows[i].name));
        if (r == 0)
                r = put_member(&w, "mitigations", json_get(environment, "mitigations"));
        if (r == 0 && build)
                r = put_member(&w, "build", build);
        json_object_end(&w);
        if (r == 0)
                r = json_writer_steal(&w, ret, NULL);
        return r;
}

static bool is_comparable(enum fact_name f) {
        return fact_rows[f].comparable;
}

int environment_print(const struct json *environment, char **ret) {
        return environment_print_facts(environment, is_comparable, NULL, ret);
}

static void evidence_deinit(struct evidence *e) {
        for (size_t i = 0; i < e->n_rows; i++)
                free(e->runs[i]);
        free(e->runs);
        free(e->rows);
        free(e->environment);
        free(e->settings);
        free(e->uncounted);
        *e = (struct evidence){0};
}

static void take_settings(const struct json_part *result, struct findings_row *row) {
        const struct json_part *effective = json_part_get(result, "effective");
        double page_bytes;
        bool steady;
        if (json_part_is(json_part_get(result, "loop"), "open"))
                row->open_loop = true;
        if (json_part_bool(json_part_get(result, "steady"), &steady) && !steady)
                row->flags.unsteady = true;
        /* absent: the message goes whole */
        (void) json_part_double(json_part_get(effective, "chunk_bytes"), &row->in_force.chunk_bytes);
        (void) json_part_double(json_part_get(effective, "buffer_bytes"), &row->in_force.buffer_bytes);
        (void) json_part_double(json_part_get(effective, "gather_ns"), &row->in_force.gather_ns);
        (void) json_part_bool(json_part_get(effective, "stamp"), &row->in_force.stamped);
        if (json_part_double(json_part_get(effective, "page_bytes"), &page_bytes))
                row->in_force.page_bytes =
                        row->in_force.page_bytes == 0 || row->in_force.page_bytes == page_bytes ? page_bytes : -1;
        if (row->n_limits > 0) /* a run before this one had them */
                return;
        for (size_t i = 0; i < ELEMENTS(limits); i++) {
                struct findings_limit limit = {.what = limits[i].what};
                if (json_part_double(json_part_get(effective, limits[i].name), &limit.bytes))
                        row->limits[row->n_limits++] = limit;
        }
}

/* Whether a flag of disturbances ("noisy:") or of the environment is set: flags_json is an array of texts without
 * escapes. */
static bool has_flag(const char *flags_json, const char *begin) {
        const char *found = flags_json ? strstr(flags_json, begin) : NULL;
        return found && found[-1] == '"';
}

/* Whether figures of this run and of the experiment's first one are comparable. Another boot, say, changes nothing. */
static bool differs_from_first(const char *flags_json) {
        char flag[96];
        if (!has_flag(flags_json, "environment-differs:"))
                return false;
        for (enum fact_name i = 0; i < FACT_COUNT; i++) {
                (void) snprintf(flag, sizeof(flag), "\"environment-differs:%s\"", fact_rows[i].name);
                if (fact_rows[i].comparable && strstr(flags_json, flag))
                        return true;
        }
        return strstr(flags_json, "\"environment-differs:mitigations\"") != NULL;
}

void evidence_read_flags(const char *flags_json, struct findings_flags *ret) {
        ret->noisy |= has_flag(flags_json, "noisy:");
        ret->unsteady |= has_flag(flags_json, "no_steady_state");
        ret->unobserved |= has_flag(flags_json, "not_observed");
        ret->restless |= has_flag(flags_json, "machine_state_changed");
        ret->changed |= has_flag(flags_json, "environment-changed:") ||
                        has_flag(flags_json, "environment-differs:build") || differs_from_first(flags_json);
        disputed_count(flags_json, ret->n_disputed);
}

/* The reason of the first such run is taken for all: it is the machine's. */
static int take_uncounted(const struct json_part *per_unit, const struct findings_row *row, char **ret) {
        const struct json_part *reason = json_part_get(per_unit, "cycles_per_byte_reason");
        if (*ret || !reason || !workload_has_transport(row->point.workload))
                return 0;
        int r = json_part_string(reason, ret);
        return r == -EINVAL ? 0 : r;
}

static int take_run(const struct point_run *stored, struct json_view *view, struct findings_row *row,
                    struct findings_run *ret, uint64_t *few, char **ret_uncounted) {
        const struct json_part *objects[FIGURES_GROUPS];
        int r = json_view_read(view, stored->result_json);
        if (r < 0) {
                if (r != -ENOMEM)
                        log_error("a stored result is not JSON");
                return r;
        }
        *ret = (struct findings_run){.id = stored->id, .block = stored->block};
        figure_objects(view->parts, objects);
        for (enum figure f = 0; f < FIGURE_COUNT; f++) {
                enum figure_state state = figure_read(objects, f, &ret->values[f]);
                if (state != FIGURE_KNOWN)
                        ret->values[f] = NAN;
                *few |= state == FIGURE_FEW ? UINT64_C(1) << f : 0;
        }
        row->one_way |= row->point.workload == WORKLOAD_STREAM && isfinite(ret->values[FIGURE_LATENCY_P50]);
        take_settings(view->parts, row);
        evidence_read_flags(stored->flags_json, &row->flags);
        return take_uncounted(objects[FIGURES_PER_UNIT], row, ret_uncounted);
}

/* No run has a percentile for which one has too few latencies: the others alone would be a choice, as slow runs have
 * few messages. */
static void take_none(uint64_t few, struct findings_row *row, struct findings_run *runs) {
        row->few_messages = few & UINT64_C(1) << FIGURE_LATENCY_P99;
        for (enum figure f = 0; few && f < FIGURE_COUNT; f++)
                for (size_t i = 0; few & UINT64_C(1) << f && i < row->n_runs; i++)
                        runs[i].values[f] = NAN;
}

/* A point of another version, which this one cannot read, keeps its place among the rows, without runs. */
static int take_point(const struct point_record *stored, struct findings_row *row, struct findings_run **ret,
                      char **ret_uncounted) {
        _cleanup_(json_view_deinit) struct json_view view = {0};
        struct findings_run *runs = reallocarray(NULL, stored->n_runs + 1, sizeof(*runs));
        int r = runs ? point_from_json(stored->point_json, strlen(stored->point_json), &row->point) : -ENOMEM;
        bool known = r == 0;
        uint64_t few = 0;
        row->n_planned = (uint32_t) stored->n_runs;
        r = r == -EINVAL ? 0 : r;
        for (size_t i = 0; known && r == 0 && i < stored->n_runs; i++) {
                enum state state = stored->runs[i].state;
                row->n_failed += state == STATE_FAILED || state == STATE_CANCELLED;
                if (state == STATE_DONE && stored->runs[i].result_json) {
                        r = take_run(&stored->runs[i], &view, row, &runs[row->n_runs], &few, ret_uncounted);
                        row->n_runs += r == 0;
                }
        }
        if (r < 0) {
                free(runs);
                return r;
        }
        take_none(few, row, runs);
        row->runs = *ret = runs;
        return 0;
}

static int take_page(const struct point_record *page, size_t n, struct evidence *e) {
        struct findings_row *rows = reallocarray(e->rows, e->n_rows + n, sizeof(*rows));
        if (rows)
                e->rows = rows;
        struct findings_run **runs = reallocarray(e->runs, e->n_rows + n, sizeof(void *));
        if (runs)
                e->runs = runs;
        if (!rows || !runs)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                rows[e->n_rows] = (struct findings_row){0};
                int r = take_point(&page[i], &rows[e->n_rows], &runs[e->n_rows], &e->uncounted);
                if (r < 0)
                        return r;
                e->n_rows++;
        }
        return 0;
}

static int load_rows(struct service *s, int64_t experiment_id, struct evidence *e, struct refusal *r) {
        for (;;) {
                struct point_record *page = NULL;
                size_t n = 0;
                int error = SERVICE_READ(
                        s, r, "experiment", experiment_id,
                        store_points(store, experiment_id, (uint32_t) e->n_rows, POINTS_PER_PAGE, &page, &n));
                if (error < 0)
                        return error;
                /* The rates of a search stand after all other points. They differ in nothing that is an axis, so that
                 * comparisons and advice rest on the closed loop alone. */
                size_t taken = 0;
                while (taken < n && page[taken].rate == 0)
                        taken++;
                error = taken > 0 ? take_page(page, taken, e) : 0;
                store_points_free(page, n);
                if (error < 0)
                        return service_fail(s, r, error, "reading the runs' results", 0);
                if (n == 0 || taken < n)
                        return 0;
        }
}

/* Runs whose machine was not compared with that of the others count as of an unknown state, not as of the same one. */
static int load_unprobed(struct service *s, int64_t experiment_id, struct evidence *e, struct refusal *r) {
        _cleanup_free_ uint32_t *ordinals = NULL;
        size_t n = 0;
        int error = SERVICE_READ(s, r, "reading the runs' probes", 0,
                                 store_unprobed_points(store, experiment_id, &ordinals, &n));
        if (error < 0)
                return error;
        for (size_t i = 0; i < n; i++)
                if (ordinals[i] < e->n_rows)
                        e->rows[ordinals[i]].unprobed = true;
        return 0;
}

/* A run's environment before it, as one text; NULL where it has none. */
static int print_before(const char *environment_json, char **ret) {
        _cleanup_(json_freep) struct json *root = NULL;
        if (!environment_json)
                return 0;
        int r = json_parse(environment_json, strlen(environment_json), &root, NULL);
        if (r == -ENOMEM)
                return r;
        const struct json *before = r == 0 && json_type(root) == JSON_OBJECT ? json_get(root, "before") : NULL;
        return before && json_type(before) == JSON_OBJECT ? environment_print(before, ret) : 0;
}

static int load_environment(struct service *s, int64_t experiment_id, struct evidence *e, struct refusal *r) {
        _cleanup_free_ char *first = NULL, *last = NULL, *begin = NULL, *end = NULL;
        struct changed_run *runs = NULL;
        size_t n = 0;
        bool same = true;
        struct reader *reader;
        int error = service_reader_get(s, &reader, r);
        if (error < 0)
                return error;
        error = store_environments(reader->store, experiment_id, &first, &last, &e->measured_at);
        if (error == 0)
                error = store_changed_runs(reader->store, experiment_id, &runs, &n);
        service_reader_put(s, reader);
        for (size_t i = 0; i < n; i++)
                same &= !differs_from_first(runs[i].flags_json);
        store_changed_runs_free(runs, n);
        if (error == 0)
                error = print_before(first, &begin);
        if (error == 0)
                error = print_before(last, &end);
        if (error < 0)
                return service_fail(s, r, error, "reading the runs' environments", 0);
        if (same && begin && end && strcmp(begin, end) == 0)
                e->environment = util_steal(&begin);
        return 0;
}

int evidence_watch(const struct experiment_record *e, struct adaptive_watch *ret) {
        struct spec *spec = NULL;
        struct refusal ignored;
        uint32_t looks = 0;
        int r = e->merged_json ? spec_parse_stored(e->merged_json, strlen(e->merged_json), &spec, &ignored) : -EINVAL;
        bool known = r == 0;
        if (known && spec->until.compare.given)
                r = until_looks_made(e->until_json, &looks);
        *ret = known ? adaptive_watch_of(&spec->until, looks) : (struct adaptive_watch){0};
        spec_free(spec);
        return r == -ENOMEM ? r : 0;
}

int evidence_added(const struct experiment_record *e, size_t n_points, uint32_t *ret) {
        struct spec *spec = NULL;
        struct refusal ignored;
        int r = e->merged_json ? spec_parse_stored(e->merged_json, strlen(e->merged_json), &spec, &ignored) : -EINVAL;
        bool known = r == 0;
        *ret = 0;
        if (known && n_points > 0 && !e->searches) {
                uint32_t planned = spec->repetitions;
                if (spec->until.relative_ci > 0 && (r = until_asked(e->until_json, &planned)) < 0)
                        planned = spec->until.max_repetitions;
                uint32_t all = e->runs_total / (uint32_t) n_points;
                *ret = all > planned ? all - planned : 0;
        }
        spec_free(spec);
        return r == -ENOMEM ? r : 0;
}

static int take_spec(const char *merged_json, struct evidence *e) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        _cleanup_(json_freep) struct json *spec = NULL;
        int r = json_parse_stored(merged_json, &spec);
        if (r < 0 || !spec)
                return r < 0 ? r : -EBADMSG;
        json_object_begin(&w);
        for (size_t i = 0; r == 0 && i < ELEMENTS(settings); i++) {
                const struct json *member = json_get(spec, settings[i]);
                _cleanup_free_ char *text = member ? json_print(member) : NULL;
                r = member && !text ? -ENOMEM : 0;
                if (text)
                        json_member_raw(&w, settings[i], text);
        }
        json_object_end(&w);
        if (r == 0)
                r = json_writer_steal(&w, &e->settings, NULL);
        e->open_loop = json_get(spec, "rate") != NULL;
        e->tuned = json_get(spec, "tune") != NULL;
        return r;
}

static int load(struct service *s, int64_t experiment_id, struct evidence *e, struct refusal *r) {
        _cleanup_(experiment_record_deinit) struct experiment_record record = {0};
        struct adaptive_watch watch = {0};
        uint32_t added = 0;
        int error = service_experiment(s, experiment_id, &record, r);
        if (error == 0)
                error = load_rows(s, experiment_id, e, r);
        if (error == 0)
                error = load_unprobed(s, experiment_id, e, r);
        if (error == 0)
                error = load_environment(s, experiment_id, e, r);
        if (error < 0)
                return error;
        error = take_spec(record.merged_json, e);
        if (error == 0)
                error = evidence_watch(&record, &watch);
        if (error == 0)
                error = evidence_added(&record, e->n_rows, &added);
        for (size_t i = 0; i < e->n_rows; i++) {
                e->rows[i].watch = watch;
                e->rows[i].n_added = added < e->rows[i].n_planned ? added : 0;
        }
        return error < 0 ? service_fail(s, r, error, "reading the spec", 0) : 0;
}

static void evidence_free(void *payload) {
        evidence_deinit(payload);
        free(payload);
}

static size_t evidence_bytes(const struct evidence *e) {
        size_t bytes = sizeof(*e) + e->n_rows * (sizeof(*e->rows) + sizeof(void *));
        for (size_t i = 0; i < e->n_rows; i++)
                bytes += (e->rows[i].n_planned + 1) * sizeof(struct findings_run);
        return bytes + (e->environment ? strlen(e->environment) : 0) + strlen(e->settings) +
               (e->uncounted ? strlen(e->uncounted) : 0);
}

int evidence_get(struct service *s, int64_t experiment_id, int64_t change, const struct evidence **ret,
                 struct cache_item **ret_item, struct refusal *r) {
        struct cache_item *item = cache_get(&s->cache, CACHE_EVIDENCE, experiment_id, change);
        if (!item) {
                struct evidence *e = calloc(1, sizeof(*e));
                int error = e ? load(s, experiment_id, e, r) : service_fail(s, r, -ENOMEM, "the runs' results", 0);
                if (error == 0)
                        error = cache_add(&s->cache,
                                          &(struct cache_item){.kind = CACHE_EVIDENCE,
                                                               .id = experiment_id,
                                                               .change = change,
                                                               .bytes = evidence_bytes(e),
                                                               .payload = e,
                                                               .free_payload = evidence_free},
                                          &item);
                if (error < 0) {
                        if (e)
                                evidence_free(e);
                        return error == -ENOMEM ? service_fail(s, r, error, "the runs' results", 0) : error;
                }
        }
        *ret = item->payload;
        *ret_item = item;
        return 0;
}
