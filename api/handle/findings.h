/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_FINDINGS_H
#define IPCLAB_API_FINDINGS_H

/* Findings as JSON, for every document that has them. */

#include "api/handle/render/provenance.h"
#include "api/http/text.h"
#include "daemon/service/service.h"
#include "schema/json/json.h"

/* The source of a study's published figures. */
#define STUDY_SOURCE "the published lab study that this preset repeats, on its own machine"

/* The component FindingList of api/openapi; p NULL: without its provenance. */
void findings_put(struct json_writer *w, const struct findings_record *record, const struct provenance *p);
/* What the sentence about the error of all comparisons ends in; "" unless runs were added by hand. */
const char *findings_condition(const struct findings *f);
/* Cells of the table of a study's answers; neither has a character that Markdown or HTML reads as its own. */
void findings_put_figure(struct text *t, const struct study_answer *a); /* nothing where there is none */
void findings_put_published(struct text *t, const struct study_answer *a);

#endif
