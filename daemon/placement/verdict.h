/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_PLACEMENT_VERDICT_H
#define IPCLAB_DAEMON_PLACEMENT_VERDICT_H

/* Private to verify.c (threads, policy) and pages.c (memory); see placement_verify(). */

#include "daemon/placement/placement.h"
#include "schema/json/json.h"

struct verdict {
        const struct agent_placement *given;
        const struct point *point;
        enum end end;
        const struct json *started; /* the CPUs that the process was started with */
        char *detail;
        struct placement_doubts *doubts;
};

/* Writes the reason and returns `error`. */
int verdict_fail(const struct verdict *v, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The proof's member that is missing or malformed. -EBADMSG. */
int verdict_bad(const struct verdict *v, const char *what);
/* 0; -EINVAL. */
int verdict_number(const struct json *object, const char *key, int64_t *ret);

/* Verifies "pages" in a proof of so many threads. 0; -EPERM; -EBADMSG. */
int placement_check_pages(const struct verdict *v, const struct json *root, int64_t threads);

#endif
