/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_DESCRIPTION_H
#define IPCLAB_TESTS_DESCRIPTION_H

/* A short text that describes a result, to compare with the expected one. What does not fit is cut. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct description {
        char at[4096];
        size_t length;
};

__attribute__((format(printf, 2, 3))) static inline void description_add(struct description *d, const char *format,
                                                                         ...) {
        va_list ap;
        va_start(ap, format);
        int n = vsnprintf(d->at + d->length, sizeof d->at - d->length, format, ap);
        va_end(ap);
        if (n > 0 && d->length + (size_t) n < sizeof d->at)
                d->length += (size_t) n;
}

/* "0,2,5" */
static inline void description_add_ids(struct description *d, const int32_t *ids, size_t n) {
        for (size_t i = 0; i < n; i++)
                description_add(d, "%s%d", i ? "," : "", ids[i]);
}

#endif
