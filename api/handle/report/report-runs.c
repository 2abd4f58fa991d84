/* SPDX-License-Identifier: MIT */

/* The runs of a report: where their threads and pages were, on which host, and each one's figures. */

#include "api/handle/render/render.h"
#include "api/handle/report/report.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include <string.h>

#define JSON_MAX 120000u /* bytes of the runs' figures */
#define PLACES_MAX 96u
#define PRINTED_PLACES 8u
#define RUNS_AT_A_TIME 16u
#define FACT_MAX 400u /* bytes of one fact of the environment */
#define FACTS_MAX 24000u

/* ---- sets of CPUs and nodes ---- */

#define IDS_END (64u * ELEMENTS(((struct report_ids *) NULL)->words))

static void ids_add(struct report_ids *ids, const struct json *list) {
        int64_t id;
        if (!list || json_type(list) != JSON_ARRAY)
                return;
        for (const struct json *i = json_first(list); i; i = json_next(i))
                if (json_as_i64(i, &id) == 0 && id >= 0 && (uint64_t) id < IDS_END)
                        ids->words[id / 64] |= UINT64_C(1) << (id % 64);
}

static bool ids_has(const struct report_ids *ids, size_t id) {
        return id < IDS_END && (ids->words[id / 64] >> (id % 64) & 1);
}

/* "0–2, 5" */
static void ids_put(struct text *t, const struct report_ids *ids) {
        const char *comma = "";
        for (size_t i = 0; i < IDS_END; i++) {
                if (!ids_has(ids, i))
                        continue;
                size_t first = i;
                while (ids_has(ids, i + 1))
                        i++;
                text_printf(t, i > first ? "%s%zu–%zu" : "%s%zu", comma, first, i);
                comma = ", ";
        }
}

/* ---- reading ---- */

static int64_t number_of(const struct json *object, const char *key, int64_t otherwise) {
        const struct json *member = report_member(object, key);
        int64_t value;
        return member && json_as_i64(member, &value) == 0 ? value : otherwise;
}

static int find_place(struct report_runs *runs, const char *placement, const char *role, struct report_place **ret) {
        *ret = NULL;
        for (size_t i = 0; i < runs->n; i++)
                if (strcmp(runs->places[i].placement, placement) == 0 && strcmp(runs->places[i].role, role) == 0) {
                        *ret = &runs->places[i];
                        return 0;
                }
        runs->cut |= runs->n == PLACES_MAX;
        if (runs->n == PLACES_MAX)
                return 0;
        if (!util_grow(runs->places, runs->n, runs->size))
                return -ENOMEM;
        struct report_place place = {.placement = strdup(placement), .role = strdup(role)};
        if (!place.placement || !place.role) {
                free(place.placement);
                free(place.role);
                return -ENOMEM;
        }
        runs->places[runs->n] = place;
        *ret = &runs->places[runs->n++];
        return 0;
}

static void take_proof(struct report_place *place, const struct json *proof) {
        const struct json *threads = report_member(proof, "threads"), *pages = report_member(proof, "pages");
        place->runs++;
        ids_add(&place->allowed, report_member(proof, "affinity"));
        for (const struct json *i = threads ? json_first(threads) : NULL; i; i = json_next(i)) {
                int64_t moves = number_of(i, "migrations", -1);
                ids_add(&place->seen, report_member(i, "cpus_seen"));
                place->migrations = moves < 0 || place->migrations < 0 ? -1 : place->migrations + moves;
        }
        for (const struct json *i = pages ? json_first(pages) : NULL; i; i = json_next(i)) {
                ids_add(&place->nodes, report_member(i, "nodes_seen"));
                place->pages += (uint64_t) number_of(i, "total", 0);
                place->pages_moved += (uint64_t) number_of(i, "moved", 0);
        }
}

static int take_agents(struct report_runs *runs, const char *placement, const struct json *agents) {
        int k = 0;
        for (const struct json *i = json_first(agents); i && k >= 0; i = json_next(i)) {
                const struct json *role = report_member(i, "role"), *proof = report_member(i, "proof");
                struct report_place *place = NULL;
                const char *word;
                if (!proof || json_type(proof) != JSON_OBJECT || !role || json_as_string(role, &word) < 0)
                        continue;
                k = find_place(runs, placement, word, &place);
                if (k >= 0 && place)
                        take_proof(place, proof);
        }
        return k;
}

static int take_figures(struct report_runs *runs, const struct run_record *run) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        _cleanup_(json_view_deinit) struct json_view result = {0};
        _cleanup_free_ char *json = NULL;
        if (runs->json_cut)
                return 0;
        int k = json_view_read(&result, run->result_json);
        if (k >= 0)
                k = render_run_charted(&w, run->point_json, result.parts);
        if (k >= 0)
                k = json_writer_steal(&w, &json, NULL);
        if (k < 0)
                return k;
        text_puts(&runs->json, runs->json.length > 0 ? "," : "");
        text_script_json(&runs->json, json);
        if (runs->json.length > JSON_MAX) { /* some without the others would mislead */
                runs->json_cut = true;
                text_clear(&runs->json);
        }
        return runs->json.error;
}

static int take_environment(struct report_runs *runs, const char *environment_json) {
        const char *before;
        size_t length;
        if (runs->environment || !environment_json || !json_find_member(environment_json, "before", &before, &length))
                return 0;
        int k = json_parse(before, length, &runs->environment, NULL);
        return k == -EINVAL ? -EBADMSG : k;
}

static int visit_run(void *userdata, const struct run_record *run) {
        struct report_runs *runs = userdata;
        _cleanup_(json_freep) struct json *point = NULL, *agents = NULL;
        _cleanup_(text_deinit) struct text placement = {0};
        runs->read++;
        runs->done += run->state == STATE_DONE;
        runs->failed += run->state == STATE_FAILED;
        int k = take_environment(runs, run->environment_json);
        if (k >= 0 && run->state == STATE_DONE)
                k = json_parse_stored(run->point_json, &point);
        if (k >= 0 && run->state == STATE_DONE)
                k = json_parse_stored(run->agents_json, &agents);
        if (k < 0)
                return k;
        text_puts(&placement, "");
        report_put_value(&placement, report_member(point, "placement"));
        if (placement.error < 0)
                return placement.error;
        if (agents && json_type(agents) == JSON_ARRAY)
                k = take_agents(runs, placement.data, agents);
        if (k >= 0 && run->state == STATE_DONE && run->result_json)
                k = take_figures(runs, run);
        return k;
}

int report_runs_load(struct service *s, int64_t experiment_id, struct report_runs *ret, struct refusal *r) {
        uint32_t before;
        int k;
        *ret = (struct report_runs){0};
        do {
                before = ret->read;
                k = service_runs(s, experiment_id, before, RUNS_AT_A_TIME, visit_run, ret, r);
        } while (k == 0 && ret->read > before && ret->read < REPORT_RUNS_MAX);
        return k;
}

void report_runs_deinit(struct report_runs *runs) {
        for (size_t i = 0; i < runs->n; i++) {
                free(runs->places[i].placement);
                free(runs->places[i].role);
        }
        free(runs->places);
        json_free(runs->environment);
        text_deinit(&runs->json);
        *runs = (struct report_runs){0};
}

/* ---- the proof ---- */

static void put_place(struct text *t, const struct report_place *p, bool printed) {
        /* the placement was escaped when it was put into words */
        text_printf(t, "<tr%s><td class=\"wrap\">%s</td><td>", printed ? "" : " class=\"screen\"", p->placement);
        text_html(t, p->role);
        text_printf(t, "</td><td class=\"number\">%u</td><td>", p->runs);
        ids_put(t, &p->allowed);
        text_puts(t, "</td><td>");
        ids_put(t, &p->seen);
        text_puts(t, "</td><td class=\"number\">");
        if (p->migrations < 0)
                text_puts(t, "not known");
        else
                text_printf(t, "%" PRId64, p->migrations);
        text_puts(t, "</td><td>");
        ids_put(t, &p->nodes);
        text_printf(t, "</td><td class=\"number\">%" PRIu64 "</td><td class=\"number\">%" PRIu64 "</td></tr>\n",
                    p->pages, p->pages_moved);
}

void report_put_proof(struct text *t, const struct report_runs *runs) {
        static const struct {
                const char *title;
                bool number;
        } heads[] = {{"placement", false},      {"end", false},       {"runs", true},
                     {"CPUs allowed", false},   {"CPUs seen", false}, {"moves between CPUs", true},
                     {"pages on nodes", false}, {"pages", true},      {"pages moved", true}};
        text_printf(
                t,
                "<p>Of %u runs %u are done and %u failed. A run is done only if its threads were on the CPUs and its "
                "pages on the nodes that the placement permits; else it has failed.</p>",
                runs->read, runs->done, runs->failed);
        if (runs->n == 0)
                return;
        text_puts(t, "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table of "
                     "proofs\"><table><thead><tr>");
        for (size_t i = 0; i < ELEMENTS(heads); i++)
                text_printf(t, "<th scope=\"col\"%s>%s</th>", heads[i].number ? " class=\"number\"" : "",
                            heads[i].title);
        text_puts(t, "</tr></thead><tbody>\n");
        for (size_t i = 0; i < runs->n; i++)
                put_place(t, &runs->places[i], i < PRINTED_PLACES);
        text_puts(t, "</tbody></table></div>");
        if (runs->cut || runs->read >= REPORT_RUNS_MAX)
                text_printf(
                        t,
                        "<p class=\"hint\">The first %zu ends of placements, of the first %u runs; GET /runs/{id} has "
                        "each run's proof whole.</p>",
                        runs->n, runs->read);
        if (runs->n > PRINTED_PLACES)
                text_printf(t, "<p class=\"hint paper\">%zu more ends are in the file that this was printed from.</p>",
                            runs->n - PRINTED_PLACES);
}

/* ---- the environment ---- */

/* The facts that are printed; all others are only on the screen. */
static const char *const printed_facts[] = {
        "hostname",
        "cpu_model",
        "kernel_release",
        "virtualization",
        "microcode",
        "clocksource",
        "smt",
        "transparent_hugepage",
        "numa_balancing",
        "cpufreq_governor",
        "turbo",
        "glibc",
        "cgroup_cpu_limit",
        "memory_total_bytes",
        "pipe_max_size",
        "isolated_cpus",
        "wmem_default",
        "msgmax",
        "tcp_congestion_control",
        "randomize_va_space",
};

static bool is_printed(const char *key) {
        for (size_t i = 0; i < ELEMENTS(printed_facts); i++)
                if (strcmp(printed_facts[i], key) == 0)
                        return true;
        return false;
}

static void put_fact(struct text *t, const struct json *fact) {
        size_t before = t->length;
        const char *class = is_printed(json_key(fact)) ? "" : " class=\"screen\"";
        text_printf(t, "<div%s><dt>", class);
        text_html(t, json_key(fact));
        text_puts(t, "</dt><dd>");
        report_put_value(t, fact);
        if (t->length - before > FACT_MAX) {
                t->length = before;
                text_printf(t, "<div%s><dt>", class);
                text_html(t, json_key(fact));
                text_puts(t, "</dt><dd>(long: see GET /runs/{id})");
        }
        text_puts(t, "</dd></div>\n");
}

void report_put_environment(struct text *t, const struct report_runs *runs) {
        size_t begin = t->length;
        const struct json *facts = runs->environment;
        if (!facts || json_type(facts) != JSON_OBJECT) {
                text_puts(t, "<p class=\"soft\">No run has recorded it.</p>");
                return;
        }
        text_puts(t, "<dl class=\"environment\">\n");
        for (const struct json *i = json_first(facts); i && t->length - begin < FACTS_MAX; i = json_next(i)) {
                enum json_type type = json_type(i);
                if (type != JSON_NULL && type != JSON_OBJECT && type != JSON_ARRAY)
                        put_fact(t, i);
        }
        text_puts(t, "</dl>");
}
