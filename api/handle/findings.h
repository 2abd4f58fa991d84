/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_FINDINGS_H
#define IPCLAB_API_FINDINGS_H

/* Findings as JSON, for every document that has them. */

#include "daemon/service/service.h"
#include "schema/json/json.h"

/* The source of a study's published figures. */
#define STUDY_SOURCE "the published lab study that this preset repeats, on its own machine"

/* The component FindingList of api/openapi. */
void findings_put(struct json_writer *w, const struct findings_record *record);

#endif
