/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RESULT_FIGURE_H
#define IPCLAB_DAEMON_RESULT_FIGURE_H

/* A run's figures, as the table of figures places them in its stored result. */

#include "schema/figures.h"
#include "schema/json/json.h"

/* A member of an object; NULL where there is no such member, or no object. */
const struct json *result_member(const struct json *object, const char *key);
/* The same of a text; NULL where it is none. */
const char *result_word(const struct json *object, const char *key);
/* Of the result's "loop", which may be NULL. */
bool result_loop_is_open(const char *loop);

/* False: the run has no such figure, and *ret is left alone. */
bool result_figure(enum figure f, const struct json *result, double *ret);
/* From the text of a run's result. 0; -ENODATA: the run has none; -EBADMSG: the text is not JSON; -ENOMEM. */
int figure_of_run(const char *result_json, enum figure f, double *ret);

#endif
