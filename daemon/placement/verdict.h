/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_PLACEMENT_VERDICT_H
#define IPCLAB_DAEMON_PLACEMENT_VERDICT_H

/* What placement-verify.c (threads, policy) and placement-pages.c (memory) share; see placement_verify(). */

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

/* Says why, in the words of a printf format, and returns `error`. */
int verdict_say(const struct verdict *v, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The proof's member that is missing or not what it should be. -EBADMSG. */
int verdict_bad(const struct verdict *v, const char *what);
/* 0; -EINVAL. */
int verdict_number(const struct json *object, const char *key, int64_t *ret);

/* All about "pages" in a proof of so many threads. 0; -EPERM; -EBADMSG. */
int placement_check_pages(const struct verdict *v, const struct json *root, int64_t threads);

#endif
