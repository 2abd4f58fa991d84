/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_DETAIL_H
#define IPCLAB_SCHEMA_DETAIL_H

/* Why a function failed, in a sentence beside its errno: the thing, the limit, the value. */

#define DETAIL_MAX 512u

/* Writes the sentence into detail[DETAIL_MAX] and returns `error`, so that `return detail_fail(…)` reads well. */
int detail_fail(char *detail, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
