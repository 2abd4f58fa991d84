/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_STUDIES_H
#define IPCLAB_DAEMON_ANALYSIS_STUDIES_H

/*
 * The five published lab studies that presets repeat: the question of each, its published answer, and the answer of an
 * experiment of that preset. A question is a row of the table in studies.c. The published figures are those of the
 * studies' own machines: they stand beside the answer, and nothing is concluded from the difference.
 */

#include "daemon/analysis/findings/findings.h"

enum study_kind {
        STUDY_FIGURE,  /* the figure of one row */
        STUDY_PEAK,    /* the greatest of several rows' */
        STUDY_RATIO,   /* of the greatest of some rows over that of others */
        STUDY_FINDING, /* the sentences of the findings */
        STUDY_KINDS,
};

extern const char *const study_kind_names[STUDY_KINDS];

struct study_answer {
        const char *question;
        enum study_kind kind;
        const char *unit;
        bool has_published;
        double published;
        const char *published_words; /* words beside the figure, or in its place; NULL */
        bool has_figure;
        struct finding_figure figure; /* in `unit`; `of`: where the peak is, and the number of runs, where a row that
                                         it rests on has fewer than FINDINGS_RUNS_LEAST */
        char *sentence;               /* of findings; NULL */
        uint32_t *rows;
        size_t n_rows;
        char *reason;                       /* why there is neither figure nor sentence; NULL */
        enum finding_confidence confidence; /* CONFIDENCE_NONE: there is neither; reduced also of few runs */
};

struct study {
        const char *name; /* of the preset */
        struct study_answer *answers;
        size_t n;
};

/* Answers for an experiment that was posted with this preset, or its -quick form. *ret is NULL where no study belongs
 * to it (`preset` may be NULL). `spec` is the experiment's, NULL: the preset as it is; a question that it does not ask
 * any more, as a field was overridden, has that for its reason. -ENOMEM; others as compare_rows(). */
int study_answer(const char *preset, const struct spec *spec, const struct findings_input *in,
                 const struct findings *findings, struct study **ret);
void study_free(struct study *s);          /* NULL-safe */
size_t study_bytes(const struct study *s); /* NULL: 0 */

#endif
