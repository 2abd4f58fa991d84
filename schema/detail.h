/* SPDX-License-Identifier: MIT */
#pragma once

/* Why a function failed, in a sentence beside its errno: the thing, the limit, the value. */

#define DETAIL_MAX 512u

/* Writes the sentence into detail[DETAIL_MAX] and returns `error`, so that `return detail_fail(…)` reads well. */
int detail_fail(char *detail, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
