/* SPDX-License-Identifier: MIT */

#include "schema/refusal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Copies what fits and never cuts a UTF-8 character in two: the text goes into JSON. */
static void copy(char *to, size_t size, const char *from) {
        size_t n = strnlen(from, size);
        if (n == size) {
                n = size - 1;
                while (n > 0 && ((unsigned char) from[n] & 0xc0) == 0x80)
                        n--;
        }
        memcpy(to, from, n);
        to[n] = '\0';
}

__attribute__((format(printf, 5, 0))) static void fill(struct refusal *r, int status, const char *code,
                                                       const char *pointer, const char *format, va_list arguments) {
        char detail[2 * sizeof(r->detail)];

        memset(r, 0, sizeof(*r));
        r->status = status;
        copy(r->code, sizeof(r->code), code);
        copy(r->pointer, sizeof(r->pointer), pointer);
        if (vsnprintf(detail, sizeof(detail), format, arguments) < 0)
                detail[0] = '\0';
        copy(r->detail, sizeof(r->detail), detail);
}

int refuse(struct refusal *r, int status, const char *code, const char *pointer, const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        fill(r, status, code, pointer, format, arguments);
        va_end(arguments);
        return -EINVAL;
}

static void take_limit(struct refusal *r, const char *limit, const char *limit_value, const char *value) {
        copy(r->limit, sizeof(r->limit), limit);
        copy(r->limit_value, sizeof(r->limit_value), limit_value);
        copy(r->value, sizeof(r->value), value);
}

int refuse_limit(struct refusal *r, const char *pointer, const char *limit, const char *limit_value, const char *value,
                 const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        fill(r, 422, "limit-exceeded", pointer, format, arguments);
        va_end(arguments);
        take_limit(r, limit, limit_value, value);
        return -EINVAL;
}

int refuse_set(struct refusal *r, const char *pointer, const char *limit, const char *set, const char *value,
               const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        fill(r, 422, "limit-exceeded", pointer, format, arguments);
        va_end(arguments);
        take_limit(r, limit, set, value);
        r->is_set = true;
        return -EINVAL;
}
