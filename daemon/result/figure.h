/* SPDX-License-Identifier: MIT */
#pragma once

/* A run's figures, as the table of figures places them in its stored result. */

#include "schema/figures.h"
#include "schema/json/json.h"

/* Whether the result's "loop", which may be NULL, is open. */
bool result_loop_is_open(const char *loop);

/* Reads a figure from the text of a run's result, of an open loop also one that follows from its rate. 0; -ENODATA: the
 * run has none; -EDOM: it is a percentile of too few latencies to conclude anything from; -EBADMSG: the text is not
 * JSON; -ENOMEM. */
int figure_of_run(const char *result_json, enum figure f, double *ret);
