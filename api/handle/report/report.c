/* SPDX-License-Identifier: MIT */

/*
 * A report: one HTML file about an experiment that needs neither a network nor the daemon. The build makes the document
 * with its style and its script (web/report.html); here its marks, <!--ipclab:NAME-->, are replaced by what is known of
 * the experiment, as tables, and as the JSON that the script draws from.
 */

#include "api/handle/report/report.h"

#include "api/handle/assets.h"
#include "api/handle/findings.h"
#include "api/handle/handlers.h"
#include "api/handle/render/render.h"
#include "api/http/negotiate.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include <string.h>

#define TEMPLATE "report.html"
#define MARK "<!--ipclab:"
#define MARK_END "-->"
#define FINDINGS_MAX 40000u /* bytes of the sentences, and again of their JSON */
#define PRINTED_LINES 8u    /* of sentences, so that the first chart has its place on the same sheet */
#define PRINTED_WIDTH 150u  /* letters of a line */
#define SPEC_MAX 40000u     /* bytes of a spec that is shown, in each of its two places */
#define PRINTED_SPEC 1500u
#define CACHES_MAX 32u

/* The script and the style stand in the document itself, whose own policy (a meta element, made by the build) permits
 * these alone by their hashes: both policies apply, and nothing is loaded. The sandbox keeps the document from the
 * token that the dashboard has in the same browser. */
static const char policy[] =
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
        "sandbox allow-scripts allow-downloads allow-modals";

struct report {
        struct experiment_record experiment;
        struct findings_record *findings;
        struct report_rows rows;
        struct report_runs runs;
        struct provenance provenance;
        char *topology; /* JSON; NULL: of another host */
};

/* ---- parts ---- */

static void put_title(struct text *t, const struct report *r) {
        if (r->experiment.name)
                text_html(t, r->experiment.name);
        else
                text_printf(t, "Experiment %" PRId64, r->experiment.id);
}

static void put_state(struct text *t, const struct report *r) {
        char time[JSON_TIME_MAX];
        const struct experiment_record *e = &r->experiment;
        text_printf(t, "Experiment %" PRId64 " · %s", e->id, state_name(e->state));
        if (json_time_text(e->started_at, time))
                text_printf(t, " · begun %s", time);
        if (json_time_text(e->finished_at, time))
                text_printf(t, " · ended %s", time);
        text_puts(t, " · ipclab ");
        text_html(t, e->version);
        if (e->error) {
                text_puts(t, " · ");
                text_html(t, e->error);
        }
}

static void put_host(struct text *t, const struct report *r) {
        static const char *const facts[] = {"cpu_model", "kernel_release"};
        const char *separator = "";
        if (r->provenance.host) {
                text_html(t, r->provenance.host);
                separator = " · ";
        }
        for (size_t i = 0; i < ELEMENTS(facts); i++) {
                const struct json *fact = report_member(r->runs.environment, facts[i]);
                if (!fact || json_type(fact) != JSON_STRING)
                        continue;
                text_puts(t, separator);
                report_put_value(t, fact);
                separator = " · ";
        }
}

static void put_confidence(struct text *t, enum finding_confidence confidence) {
        if (confidence == CONFIDENCE_REDUCED)
                text_puts(t, " <span class=\"flag\">few, disturbed or unsteady runs</span>");
}

static void put_answers(struct text *t, const struct study *s) {
        text_puts(t, "<h3>The questions of the study ");
        text_html(t, s->name);
        text_puts(t, "</h3><div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Questions of the "
                     "study\"><table><thead><tr><th scope=\"col\">question</th><th scope=\"col\">here</th><th "
                     "scope=\"col\">published</th></tr></thead><tbody>\n");
        for (size_t i = 0; i < s->n; i++) {
                const struct study_answer *a = &s->answers[i];
                text_puts(t, "<tr><td class=\"wrap\">");
                text_html(t, a->question);
                text_puts(t, "</td><td class=\"wrap\">");
                findings_put_figure(t, a);
                text_html(t, a->sentence ? a->sentence : a->has_figure ? NULL : a->reason);
                put_confidence(t, a->confidence);
                text_puts(t, "</td><td class=\"wrap\">");
                findings_put_published(t, a);
                text_puts(t, "</td></tr>\n");
        }
        text_puts(t, "</tbody></table></div>");
}

/* How many sentences there are, how many of these are printed, and the lines that those take. */
struct sentences {
        size_t n, printed, lines;
};

static bool is_printed(struct sentences *s, const char *sentence) {
        size_t lines = (strlen(sentence) + PRINTED_WIDTH - 1) / PRINTED_WIDTH;
        if (s->printed < s->n || (s->n > 0 && s->lines + lines > PRINTED_LINES))
                return false;
        s->lines += lines;
        s->printed++;
        return true;
}

/* Conclusions first, then the undecided ones. */
static void put_sentences(struct text *t, const struct findings *f, bool undecided, size_t begin, struct sentences *s) {
        for (size_t i = 0; i < f->n && t->length - begin < FINDINGS_MAX; i++) {
                const struct finding *one = &f->items[i];
                if ((one->kind == FINDING_UNDECIDED) != undecided)
                        continue;
                text_puts(t, is_printed(s, one->sentence) ? "<li>" : "<li class=\"screen\">");
                text_html(t, one->sentence);
                put_confidence(t, one->confidence);
                text_puts(t, "</li>\n");
                s->n++;
        }
}

static void put_findings(struct text *t, const struct report *r) {
        const struct findings *f = r->findings->findings;
        size_t begin = t->length;
        if (f->n == 0)
                text_puts(t, "<p class=\"soft\">Nothing can be concluded from these runs.</p>");
        text_puts(t, f->n > 0 ? "<ul class=\"sentences\">\n" : "");
        struct sentences s = {0};
        put_sentences(t, f, false, begin, &s);
        put_sentences(t, f, true, begin, &s);
        text_puts(t, f->n > 0 ? "</ul>\n" : "");
        text_puts(t, "<p class=\"hint\">");
        if (f->n_tests > 0)
                text_printf(t,
                            "%zu comparison%s; the probability that one of them is a false difference is at most 5 "
                            "%%%s.",
                            f->n_tests, f->n_tests == 1 ? "" : "s", findings_condition(f));
        if (s.n < f->n)
                text_printf(t, " %zu of %zu sentences are here; GET /experiments/{id}/findings has all of them.", s.n,
                            f->n);
        if (s.n > s.printed)
                text_printf(
                        t,
                        "<span class=\"paper\"> %zu more sentences are in the file that this was printed from.</span>",
                        s.n - s.printed);
        text_puts(t, "</p>\n");
        if (r->findings->study)
                put_answers(t, r->findings->study);
}

static void put_results(struct text *t, const struct report *r) {
        report_put_rows(t, &r->rows);
}

static void put_term(struct text *t, const char *term) {
        text_printf(t, "<div><dt>%s</dt><dd>", term);
}

/* How it was measured: members of the spec in effect, where it has them. */
static void put_method(struct text *t, const struct report *r) {
        static const struct {
                const char *member, *term, *unit;
        } terms[] = {{"duration_seconds", "a run's window", " s"},
                     {"messages", "messages of a run", ""},
                     {"bytes", "bytes of a run", ""},
                     {"warmup_seconds", "warm-up before it", " s"},
                     {"repetitions", "repetitions", ""},
                     {"until", "repeated until", ""},
                     {"order", "order", ""},
                     {"rate", "messages per second", ""},
                     {"verify", "verified by the receiver", ""}};
        const struct experiment_record *e = &r->experiment;
        text_puts(t, "<dl class=\"environment\">\n");
        put_term(t, "runs");
        text_printf(t, "%u, of which %u are done</dd></div>\n", e->runs_total, e->runs_done);
        put_term(t, "seed of the order");
        text_printf(t, "%" PRIu64 "</dd></div>\n", e->seed);
        for (size_t i = 0; e->merged_json && i < ELEMENTS(terms); i++) {
                const char *value;
                size_t length;
                struct json *root = NULL;
                if (!json_find_member(e->merged_json, terms[i].member, &value, &length) || length > SPEC_MAX / 10)
                        continue;
                int k = json_parse(value, length, &root, NULL);
                if (k < 0 && t->error == 0)
                        t->error = k;
                put_term(t, terms[i].term);
                report_put_value(t, root);
                json_free(root);
                text_printf(t, "%s</dd></div>\n", terms[i].unit);
        }
        text_puts(t, "</dl>");
}

static void put_environment(struct text *t, const struct report *r) {
        report_put_environment(t, &r->runs);
}

static void put_proof(struct text *t, const struct report *r) {
        report_put_proof(t, &r->runs);
}

static void put_spec(struct text *t, const struct report *r) {
        const char *spec = r->experiment.spec_json;
        size_t begin = t->length;
        text_printf(t, "<pre id=\"spec\" tabindex=\"0\"%s>", strlen(spec) > PRINTED_SPEC ? " class=\"screen\"" : "");
        text_html(t, spec);
        text_puts(t, "</pre>");
        if (t->length - begin > SPEC_MAX) {
                t->length = begin;
                text_printf(t,
                            "<p>The spec has %zu bytes, too many for this file: GET /experiments/%" PRId64
                            " has it.</p>",
                            strlen(spec), r->experiment.id);
        } else if (strlen(spec) > PRINTED_SPEC) {
                text_puts(t, "<p class=\"hint paper\">The spec is in the file that this was printed from.</p>");
        }
}

/* ---- the data ---- */

/* What was written, as it may stand inside a script element. */
static void put_written(struct text *t, struct json_writer *w) {
        _cleanup_free_ char *json = NULL;
        int k = json_writer_steal(w, &json, NULL);
        if (k < 0 && t->error == 0)
                t->error = k;
        if (json)
                text_script_json(t, json);
}

static void put_experiment_json(struct text *t, const struct experiment_record *e) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        json_member_i64(&w, "id", e->id);
        json_member_string(&w, "name", e->name);
        json_member_string(&w, "state", state_name(e->state));
        json_member_time(&w, "created_at", e->created_at);
        json_member_time(&w, "started_at", e->started_at);
        json_member_time(&w, "finished_at", e->finished_at);
        json_member_u64(&w, "seed", e->seed);
        json_member_string(&w, "version", e->version);
        json_member_raw(&w, "spec", e->spec_json && strlen(e->spec_json) <= SPEC_MAX / 6 ? e->spec_json : NULL);
        json_member_raw(&w, "effective_spec",
                        e->merged_json && strlen(e->merged_json) <= SPEC_MAX / 6 ? e->merged_json : NULL);
        json_object_end(&w);
        put_written(t, &w);
}

static void put_findings_json(struct text *t, const struct findings_record *record) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        size_t before = t->length;
        findings_put(&w, record, NULL); /* the provenance stands with the results */
        put_written(t, &w);
        if (t->length - before > FINDINGS_MAX) {
                t->length = before;
                text_puts(t, "null");
        }
}

static void put_provenance_json(struct text *t, const struct provenance *p) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        provenance_put(p, &w);
        put_written(t, &w);
}

/* The host's kinds of caches, without the CPUs that have them. */
static void put_caches_json(struct text *t, const char *topology) {
        const char *list;
        size_t length, n = 0;
        int64_t seen[CACHES_MAX][2];
        _cleanup_(json_freep) struct json *root = NULL;
        text_puts(t, "[");
        if (topology && json_find_member(topology, "caches", &list, &length))
                (void) json_parse(list, length, &root, NULL); /* without it, there are no hairlines */
        for (const struct json *i = root ? json_first(root) : NULL; i && n < CACHES_MAX; i = json_next(i)) {
                const struct json *level = report_member(i, "level"), *size = report_member(i, "size_bytes");
                const struct json *type = report_member(i, "type");
                const char *word;
                bool again = false;
                if (!level || !size || !type || json_as_string(type, &word) < 0 || strcmp(word, "Instruction") == 0 ||
                    json_as_i64(level, &seen[n][0]) < 0 || json_as_i64(size, &seen[n][1]) < 0)
                        continue;
                for (size_t k = 0; k < n; k++)
                        again |= seen[k][0] == seen[n][0] && seen[k][1] == seen[n][1];
                if (again)
                        continue;
                text_printf(t, "%s{\"level\":%" PRId64 ",\"size_bytes\":%" PRId64 "}", n > 0 ? "," : "", seen[n][0],
                            seen[n][1]);
                n++;
        }
        text_puts(t, "]");
}

static void put_data(struct text *t, const struct report *r) {
        text_puts(t, "{\"experiment\":");
        put_experiment_json(t, &r->experiment);
        text_puts(t, ",\n\"findings\":");
        put_findings_json(t, r->findings);
        text_puts(t, ",\n\"results\":{\"items\":[");
        text_append(t, r->rows.json.data ? r->rows.json.data : "", r->rows.json.length);
        text_puts(t, "],\"provenance\":");
        put_provenance_json(t, &r->provenance);
        text_puts(t, "},\n\"runs\":{\"items\":[");
        text_append(t, r->runs.json.data ? r->runs.json.data : "", r->runs.json.length);
        text_puts(t, "]},\n\"caches\":");
        put_caches_json(t, r->topology);
        text_puts(t, "}");
}

/* ---- the document ---- */

static const struct {
        const char *name;
        void (*put)(struct text *t, const struct report *r);
} parts[] = {
        {"title", put_title},     {"state", put_state},   {"host", put_host},   {"findings", put_findings},
        {"results", put_results}, {"method", put_method}, {"proof", put_proof}, {"environment", put_environment},
        {"spec", put_spec},       {"data", put_data},
};

static int put_part(struct text *t, const struct report *r, const char *name, size_t length) {
        for (size_t i = 0; i < ELEMENTS(parts); i++)
                if (strlen(parts[i].name) == length && strncmp(parts[i].name, name, length) == 0) {
                        parts[i].put(t, r);
                        return t->error;
                }
        return -EBADMSG;
}

static int put_document(struct text *t, const char *template, const struct report *r) {
        const char *mark;
        while ((mark = strstr(template, MARK))) {
                const char *name = mark + strlen(MARK), *end = strstr(name, MARK_END);
                if (!end)
                        return -EBADMSG;
                text_append(t, template, (size_t) (mark - template));
                int k = put_part(t, r, name, (size_t) (end - name));
                if (k < 0)
                        return k;
                template = end + strlen(MARK_END);
        }
        text_puts(t, template);
        return t->error;
}

static int load(struct api *a, int64_t id, struct report *ret, struct refusal *r) {
        int k = service_experiment(a->service, id, &ret->experiment, r);
        if (k >= 0)
                k = service_findings(a->service, id, &ret->findings, r);
        if (k >= 0)
                k = report_rows_load(a->service, id, &ret->rows, r);
        if (k >= 0)
                k = report_runs_load(a->service, id, &ret->runs, r);
        if (k >= 0)
                k = provenance_load(a, id, false, &ret->provenance, r);
        if (k >= 0 && !ret->experiment.imported_json) /* of another host the caches are not known */
                k = service_topology_json(a->service, &ret->topology, r);
        return k;
}

static int respond(const struct report *report, const char *template, struct response *p) {
        _cleanup_(text_deinit) struct text t = {0};
        int k = put_document(&t, template, report);
        if (k >= 0 && t.length > REPORT_BYTES_MAX)
                k = -EMSGSIZE; /* the shares are made so that it cannot be */
        if (k < 0)
                return k;
        response_header(p, "Content-Security-Policy", "%s", policy);
        response_header(p, "Content-Disposition", "inline; filename=\"ipclab-%" PRId64 ".html\"",
                        report->experiment.id);
        response_body(p, 200, "text/html; charset=utf-8", util_steal(&t.data), t.length);
        return 0;
}

HANDLER(handle_report) {
        static const char *const types[] = {"text/html", NULL};
        struct report report = {0};
        const char *template = assets_text(a->assets, TEMPLATE);
        int k = negotiate(q, types, r);
        if (k < 0)
                return k;
        if (!template)
                return refuse(r, 503, "not-installed", "",
                              "The report's document, %s, is not among the dashboard's files (--web-dir).", TEMPLATE);
        k = load(a, q->id, &report, r);
        if (k >= 0)
                k = respond(&report, template, p);
        service_findings_release(a->service, report.findings);
        experiment_record_deinit(&report.experiment);
        provenance_deinit(&report.provenance);
        report_rows_deinit(&report.rows);
        report_runs_deinit(&report.runs);
        free(report.topology);
        return k;
}
