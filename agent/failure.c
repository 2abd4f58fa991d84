/* SPDX-License-Identifier: MIT */

/* The words of a failure. Each thread owns the one that it writes: workers theirs, the leader the agent's. */

#include "agent/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int failure_set(struct failure *f, int error, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        if (f->detail[0] == '\0') {
                (void) vsnprintf(f->detail, sizeof f->detail, format, ap);
                f->error = error;
        }
        va_end(ap);
        return error ? -error : -EIO;
}
