/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Why a request was not accepted, in words that the client's user can act on. The code that finds the fault
 * (parser, admission, store) fills it in; it is turned into application/problem+json by api/ alone.
 */

#include <stdbool.h>

struct refusal {
        int status;        /* HTTP status: 400 not JSON, 404, 409, 422 JSON but not acceptable, 503 … */
        char code[48];     /* stable slug: "unknown-field", "limit-exceeded", "not-available", "invalid-json" … */
        char pointer[256]; /* RFC 6901 pointer of the field at fault, "" when there is none */
        char detail[512];  /* a sentence: the thing, the limit, the value */
        char limit[96];    /* name of the limit, "" when there is none: "fs.mqueue.msgsize_max" */
        char limit_value[64];
        bool is_set;    /* limit_value is a list or a word, even where it is of digits alone: "0-3", "0", "none" */
        char value[96]; /* the requested value */
};

/* Fills *r (formatting detail) and returns -EINVAL, so that `return refuse(…)` reads well. limit, limit_value and
 * value start empty; refuse_limit() sets them, and refuse_set() does where the limit is a set of what is possible. */
int refuse(struct refusal *r, int status, const char *code, const char *pointer, const char *format, ...)
        __attribute__((format(printf, 5, 6)));
int refuse_limit(struct refusal *r, const char *pointer, const char *limit, const char *limit_value, const char *value,
                 const char *format, ...) __attribute__((format(printf, 6, 7)));
int refuse_set(struct refusal *r, const char *pointer, const char *limit, const char *set, const char *value,
               const char *format, ...) __attribute__((format(printf, 6, 7)));
