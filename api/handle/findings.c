/* SPDX-License-Identifier: MIT */

/* The findings from an experiment's runs, as JSON or as Markdown. */

#include "api/handle/findings.h"

#include "api/handle/handlers.h"
#include "api/handle/render/render.h"
#include "api/http/negotiate.h"
#include "api/http/text.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <string.h>

/* ---- JSON ---- */

/* The common values of the finding's rows, as a point has them. */
static void member_subject(struct json_writer *w, const struct finding *f) {
        json_member_object(w, "subject");
        for (size_t i = 0; i < AXIS_COUNT; i++)
                if (f->common & UINT32_C(1) << i) {
                        json_put_key(w, axes[i].value.name);
                        axes[i].value.type->write(&axes[i].value, w, axis_of(&axes[i], &f->subject));
                }
        json_object_end(w);
}

static void put_figure(struct json_writer *w, const struct finding_figure *figure) {
        json_object_begin(w);
        json_member_string(w, "name", figure->name);
        json_member_string(w, "of", figure->of[0] ? figure->of : NULL);
        json_member_double(w, "value", figure->value);
        json_member_string(w, "unit", figure->unit);
        render_interval(w, "interval", figure->has_interval, figure->low, figure->high, figure->level);
        json_object_end(w);
}

static void member_rows(struct json_writer *w, const uint32_t *rows, size_t n) {
        json_member_array(w, "rows");
        for (size_t i = 0; i < n; i++)
                json_put_u64(w, rows[i]);
        json_array_end(w);
}

static void member_run_ids(struct json_writer *w, const struct finding *f) {
        json_put_key(w, "run_ids");
        if (!f->run_ids) {
                json_put_null(w);
                json_member_string(w, "run_ids_reason",
                                   "they are more than " UTIL_TEXT(FINDINGS_RUN_IDS_MAX) ": see the rows' results");
                return;
        }
        json_array_begin(w);
        for (size_t i = 0; i < f->n_run_ids; i++)
                json_put_i64(w, f->run_ids[i]);
        json_array_end(w);
}

static void put_finding(struct json_writer *w, const struct finding *f) {
        json_object_begin(w);
        json_member_string(w, "kind", finding_kind_names[f->kind]);
        json_member_string(w, "reason", f->reason);
        json_member_string(w, "axis", f->axis < AXIS_COUNT ? axes[f->axis].value.name : NULL);
        member_subject(w, f);
        json_member_string(w, "sentence", f->sentence);
        json_member_array(w, "figures");
        for (size_t i = 0; i < f->n_figures; i++)
                put_figure(w, &f->figures[i]);
        json_array_end(w);
        member_rows(w, f->rows, f->n_rows);
        json_member_u64(w, "runs", f->n_runs);
        member_run_ids(w, f);
        json_member_string(w, "confidence", finding_confidence_names[f->confidence]);
        if (f->runs_needed > 0)
                json_member_u64(w, "runs_needed", f->runs_needed);
        else
                json_member_null(w, "runs_needed");
        json_object_end(w);
}

static void put_answer(struct json_writer *w, const struct study_answer *a) {
        json_object_begin(w);
        json_member_string(w, "question", a->question);
        json_member_string(w, "kind", study_kind_names[a->kind]);
        json_member_array(w, "figures");
        if (a->has_figure)
                put_figure(w, &a->figure);
        json_array_end(w);
        json_member_string(w, "sentence", a->sentence);
        json_member_string(w, "reason", a->reason);
        json_member_string(w, "confidence", finding_confidence_names[a->confidence]);
        member_rows(w, a->rows, a->n_rows);
        json_member_object(w, "published");
        json_member_double_if(w, "value", a->has_published, a->published);
        json_member_string(w, "unit", a->has_published ? a->unit : NULL);
        json_member_string(w, "words", a->published_words);
        json_object_end(w);
        json_object_end(w);
}

static void member_study(struct json_writer *w, const struct study *s) {
        json_put_key(w, "study");
        if (!s) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        json_member_string(w, "name", s->name);
        json_member_string(w, "source", STUDY_SOURCE);
        json_member_array(w, "answers");
        for (size_t i = 0; i < s->n; i++)
                put_answer(w, &s->answers[i]);
        json_array_end(w);
        json_object_end(w);
}

void findings_put(struct json_writer *w, const struct findings_record *record, const struct provenance *p) {
        const struct findings *f = record->findings;
        json_object_begin(w);
        json_member_array(w, "items");
        for (size_t i = 0; i < f->n; i++)
                put_finding(w, &f->items[i]);
        json_array_end(w);
        json_member_null(w, "next");
        json_member_u64(w, "comparisons", f->n_tests);
        member_study(w, record->study);
        if (p) {
                json_put_key(w, "provenance");
                provenance_put(p, w);
        }
        json_object_end(w);
}

static int respond_json(struct response *p, const struct findings_record *record, const struct provenance *from) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_writer_init(&w);
        findings_put(&w, record, from);
        return response_json(p, 200, &w);
}

/* ---- Markdown ---- */

static const char *const headings[FINDING_KINDS] = {
        [FINDING_RANKING] = "Rankings",
        [FINDING_BEST_SIZE] = "The best message size",
        [FINDING_KNEE] = "Time per message",
        [FINDING_CLIFF] = "Cliffs",
        [FINDING_CROSSOVER] = "Crossovers",
        [FINDING_SCALING] = "Scaling with threads",
        [FINDING_COST] = "What a choice costs",
        [FINDING_HIGHEST_RATE] = "The highest rate",
        [FINDING_NOISE_FLOOR] = "What one thing measured twice differs by",
        [FINDING_UNDECIDED] = "What cannot be said",
};

/* Characters that Markdown would take for its own. */
static void put_escaped(struct text *t, const char *s) {
        for (; *s; s++) {
                if (strchr("\\`*_[]<>#|", *s))
                        text_puts(t, "\\");
                text_append(t, s, 1);
        }
}

static void put_kind(struct text *t, const struct findings *f, enum finding_kind kind) {
        bool begun = false;
        for (size_t i = 0; i < f->n; i++) {
                const struct finding *one = &f->items[i];
                if (one->kind != kind)
                        continue;
                if (!begun)
                        text_printf(t, "\n## %s\n\n", headings[kind]);
                begun = true;
                text_puts(t, "- ");
                put_escaped(t, one->sentence);
                if (one->confidence == CONFIDENCE_REDUCED)
                        text_puts(t, " †");
                text_puts(t, "\n");
        }
}

void findings_put_figure(struct text *t, const struct study_answer *a) {
        if (!a->has_figure)
                return;
        text_number(t, a->figure.value);
        text_printf(t, " %s", a->unit);
        if (a->figure.of[0])
                text_printf(t, " (%s)", a->figure.of);
        if (a->figure.has_interval) {
                text_puts(t, " [");
                text_number(t, a->figure.low);
                text_puts(t, ", ");
                text_number(t, a->figure.high);
                text_puts(t, "]");
        }
}

void findings_put_published(struct text *t, const struct study_answer *a) {
        if (a->has_published) {
                text_number(t, a->published);
                text_printf(t, " %s", a->unit);
        }
        if (a->published_words)
                text_printf(t, "%s%s", a->has_published ? ", " : "", a->published_words);
}

static void put_answer_row(struct text *t, const struct study_answer *a) {
        text_puts(t, "| ");
        put_escaped(t, a->question);
        text_puts(t, " | ");
        findings_put_figure(t, a);
        put_escaped(t, a->sentence ? a->sentence : a->reason ? a->reason : "");
        text_puts(t, a->confidence == CONFIDENCE_REDUCED ? " † | " : " | ");
        findings_put_published(t, a);
        text_puts(t, " |\n");
}

static void put_study(struct text *t, const struct study *s) {
        if (!s)
                return;
        text_printf(t,
                    "\n## The questions of the study %s\n\nPublished: %s.\n\n| question | here | published "
                    "|\n|---|---|---|\n",
                    s->name, STUDY_SOURCE);
        for (size_t i = 0; i < s->n; i++)
                put_answer_row(t, &s->answers[i]);
}

static bool is_any_reduced(const struct findings_record *record) {
        const struct findings *f = record->findings;
        const struct study *s = record->study;
        bool reduced = false;
        for (size_t i = 0; i < f->n; i++)
                reduced |= f->items[i].confidence == CONFIDENCE_REDUCED;
        for (size_t i = 0; s && i < s->n; i++)
                reduced |= s->answers[i].confidence == CONFIDENCE_REDUCED;
        return reduced;
}

const char *findings_condition(const struct findings *f) {
        for (size_t i = 0; i < f->n; i++)
                if (f->items[i].reason && strcmp(f->items[i].reason, FINDING_REPETITIONS_ADDED) == 0)
                        return ", unless runs were added because of what earlier ones showed";
        return "";
}

static void put_comparisons(struct text *t, const struct findings *f) {
        if (f->n_tests == 0)
                text_puts(t, "Nothing was compared.");
        else if (f->n_tests == 1)
                text_printf(t, "1 comparison; the probability of a false difference is at most 5 %%%s.",
                            findings_condition(f));
        else
                text_printf(t,
                            "%zu comparisons; over all of them together the probability of a single false difference "
                            "is at most 5 %%%s.",
                            f->n_tests, findings_condition(f));
}

static bool has_interval(const struct findings *f) {
        for (size_t i = 0; i < f->n; i++)
                for (size_t k = 0; k < f->items[i].n_figures; k++)
                        if (f->items[i].figures[k].has_interval && f->items[i].figures[k].level > 0)
                                return true;
        return false;
}

static void put_provenance(struct text *t, const struct provenance *p) {
        char date[JSON_TIME_MAX];
        const char *const values[] = {p->host, p->kernel, p->version,
                                      json_time_text(p->started_at, date) ? date : NULL};
        static const char *const names[] = {"host ", "kernel ", "ipclab ", "begun "};
        for (size_t i = 0; i < ELEMENTS(values); i++) {
                if (!values[i])
                        continue;
                text_puts(t, names[i]);
                put_escaped(t, values[i]);
                text_puts(t, ", ");
        }
        text_printf(t, "seed %" PRIu64 ".\n\n", p->seed);
}

static void put_constants(struct text *t, const char *constants) {
        if (!constants[0])
                return;
        text_puts(t, "All points share: ");
        put_escaped(t, constants);
        text_puts(t, ".\n\n");
}

static int respond_markdown(struct response *p, const struct findings_record *record, const struct provenance *from) {
        const struct findings *f = record->findings;
        _cleanup_(text_deinit) struct text t = {0};
        text_printf(&t, "# Findings of experiment %" PRId64 "\n\n", record->experiment_id);
        put_provenance(&t, from);
        put_constants(&t, f->constants);
        put_comparisons(&t, f);
        if (has_interval(f))
                text_puts(&t, " In brackets are intervals of at least 95 %, of a knee of at least 90 %; the JSON has "
                              "the level of each.");
        text_puts(&t, "\n");
        if (is_any_reduced(record))
                text_puts(&t, "\n†: confidence is reduced, as there are few runs, some were disturbed, could not be "
                              "watched, were not steady, ran while the environment changed, or have a flag that "
                              "disputes their figures, or rates of a search contradict each other.\n");
        put_study(&t, record->study);
        for (enum finding_kind kind = 0; kind < FINDING_KINDS; kind++)
                put_kind(&t, f, kind);
        if (t.error < 0)
                return t.error;
        response_body(p, 200, "text/markdown; charset=utf-8", util_steal(&t.data), t.length);
        return 0;
}

HANDLER(handle_findings) {
        static const char *const types[] = {"application/json", "text/markdown", NULL};
        struct findings_record *record;
        _cleanup_(provenance_deinit) struct provenance from = {0};
        int type = negotiate(q, types, r);
        if (type < 0)
                return type;
        int k = provenance_load(a, q->id, false, &from, r);
        if (k >= 0)
                k = service_findings(a->service, q->id, &record, r);
        if (k < 0)
                return k;
        response_vary(p, "Accept");
        k = type == 0 ? respond_json(p, record, &from) : respond_markdown(p, record, &from);
        service_findings_release(a->service, record);
        return k;
}
