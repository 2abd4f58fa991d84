/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_EVIDENCE_H
#define IPCLAB_DAEMON_SERVICE_EVIDENCE_H

/* The rows of an experiment with the figures of its runs that are done, for the analysis. */

#include "daemon/analysis/findings.h"
#include "daemon/service/internal.h"

struct evidence {
        struct findings_row *rows;  /* in the points' order */
        struct findings_run **runs; /* of each row, what it points to */
        size_t n_rows;
};

/* 404 in *r when there is no such experiment. */
int evidence_load(struct service *s, int64_t experiment_id, struct evidence *ret, struct refusal *r);
void evidence_deinit(struct evidence *e);

#endif
