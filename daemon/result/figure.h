/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RESULT_FIGURE_H
#define IPCLAB_DAEMON_RESULT_FIGURE_H

/* A figure of a stored run, found by its row in schema/figures.h. */

#include "schema/figures.h"

struct json;

/* The object of a run's result that has the figure, or would have it; NULL: there is no such object. */
const struct json *figure_object(enum figure f, const struct json *result);

/* From the text of a run's result. 0; -ENODATA: the run has none; -EBADMSG: the text is not JSON; -ENOMEM. */
int figure_of_run(const char *result_json, enum figure f, double *ret);

#endif
