/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_DRAWN_H
#define IPCLAB_TESTS_DRAWN_H

/* The findings of made rows (made.h), of which a test looks for some. */

#include "tests/unit/check.h"
#include "tests/unit/made.h"

#define NOISE 0.02

/* Whatever the point. */
static inline double one(const struct point *p) {
        (void) p;
        return 1000;
}

/* Throughput is the same whatever the point. */
static inline double alike(const struct point *p) {
        return (double) p->message_size;
}

static inline double three(const struct point *p) {
        return p->transport == TRANSPORT_TCP ? 2000 : p->transport == TRANSPORT_UNIX_STREAM ? 1200 : 1000;
}

/* Half the cycles, and three times the misses. */
static inline void count(struct made *m) {
        for (size_t i = 0; i < m->n_rows * m->blocks; i++) {
                bool zero = m->rows[i / m->blocks].point.copy_mode == COPY_ZERO;
                m->runs[i].values[FIGURE_CYCLES_PER_BYTE] = (zero ? 0.5 : 1) * exp(NOISE * sample_normal(&m->random));
                m->runs[i].values[FIGURE_LLC_MISSES] = (zero ? 300 : 100) * exp(NOISE * sample_normal(&m->random));
        }
}

/* The messages of a stream carry the time of their sending: they have as long a latency as ten of them take. */
static inline void stamp(struct made *m) {
        for (size_t i = 0; i < m->n_rows; i++) {
                m->rows[i].one_way = m->rows[i].point.workload == WORKLOAD_STREAM;
                for (size_t k = 0; m->rows[i].one_way && k < m->blocks; k++) {
                        struct findings_run *run = &m->runs[i * m->blocks + k];
                        run->values[FIGURE_LATENCY_P50] = 1e10 / run->values[FIGURE_MESSAGES];
                        run->values[FIGURE_LATENCY_P99] =
                                2e10 / run->values[FIGURE_MESSAGES] * exp(NOISE * sample_normal(&m->random));
                }
        }
}

/* What no sentence may have, whatever it is about. */
static inline void check_sentence(const char *sentence) {
        static const char *const never[] = {"of :", "of all of", "% a ", " a 8", " a 11 ", " a 18 ",
                                            "  ",   " ,",        "..",   " ()",  "; ;"};
        for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
                if (strstr(sentence, never[i]))
                        CHECK_FAIL("\"%s\" in: %s", never[i], sentence);
}

/* With what searches of some rows have found, of a limit of 50 µs. */
static inline struct findings *draw_searched(const struct made *m, const struct findings_search *searches, size_t n) {
        static const struct findings_limit caches[] = {{"the L2 cache", 1 << 20}};
        struct findings *f = NULL;
        int r = findings_draw(&(struct findings_input){.rows = m->rows,
                                                       .n_rows = m->n_rows,
                                                       .caches = caches,
                                                       .n_caches = 1,
                                                       .searches = searches,
                                                       .n_searches = n,
                                                       .search_limit_us = 50,
                                                       .uncounted = "this machine has no such counter"},
                              &f);
        if (r < 0) {
                fprintf(stderr, "findings_draw: %s\n", strerror(-r));
                abort();
        }
        for (size_t i = 0; i < f->n; i++)
                check_sentence(f->items[i].sentence);
        return f;
}

static inline struct findings *draw(const struct made *m) {
        return draw_searched(m, NULL, 0);
}

static inline void findings_freep(struct findings **f) {
        findings_free(*f);
}
#define FINDINGS __attribute__((cleanup(findings_freep))) struct findings

/* The n-th of the kind, from 0; NULL. */
static inline const struct finding *nth(const struct findings *f, enum finding_kind kind, size_t n) {
        for (size_t i = 0; i < f->n; i++)
                if (f->items[i].kind == kind && n-- == 0)
                        return &f->items[i];
        return NULL;
}

static inline const struct finding_figure *figure(const struct finding *f, const char *name) {
        for (size_t i = 0; f && i < f->n_figures; i++)
                if (strcmp(f->figures[i].name, name) == 0)
                        return &f->figures[i];
        return NULL;
}

/* The doubt with the reason; NULL. */
static inline const struct finding *of_reason(const struct findings *f, const char *reason) {
        for (size_t i = 0; i < f->n; i++)
                if (f->items[i].reason && strcmp(f->items[i].reason, reason) == 0)
                        return &f->items[i];
        return NULL;
}

static inline bool has_doubt(const struct findings *f, const char *reason) {
        return of_reason(f, reason) != NULL;
}

/* Whether a finding claims that something differs; that all are equal within the margin is no such claim. */
static inline bool claims(const struct finding *f) {
        if (f->kind == FINDING_UNDECIDED)
                return false;
        if (f->kind == FINDING_RANKING)
                return strstr(f->sentence, ", then ") != NULL;
        if (f->kind == FINDING_COST)
                return strstr(f->sentence, "brings") || strstr(f->sentence, "costs");
        if (f->kind == FINDING_BEST_SIZE)
                return strstr(f->sentence, "it is less with") != NULL;
        if (f->kind == FINDING_NOISE_FLOOR)
                return strstr(f->sentence, "more than the scatter") != NULL;
        return true;
}

static inline unsigned claimed(const struct made *m) {
        unsigned n = 0;
        FINDINGS *f = draw(m);
        for (size_t i = 0; i < f->n; i++)
                n += claims(&f->items[i]);
        return n;
}

static inline bool says(const struct finding *f, const char *words) {
        bool said = f && strstr(f->sentence, words);
        if (!said)
                fprintf(stderr, "\"%s\" is not in: %s\n", words, f ? f->sentence : "(no finding)");
        return said;
}

#endif
