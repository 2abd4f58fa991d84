/* SPDX-License-Identifier: MIT */

#include "schema/scheduling.h"

#include "schema/util.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>

static const char *policy_name(int policy) {
        switch (policy & ~SCHED_RESET_ON_FORK) {
        case SCHED_OTHER:
                return "other";
        case SCHED_BATCH:
                return "batch";
        case SCHED_IDLE:
                return "idle";
        case SCHED_FIFO:
                return "fifo";
        case SCHED_RR:
                return "rr";
        case 6: /* SCHED_DEADLINE, which glibc 2.36 does not name */
                return "deadline";
        default:
                return NULL;
        }
}

bool scheduling_text(int policy, int priority, int nice, char ret[static SCHEDULING_TEXT_MAX]) {
        const char *name = policy_name(policy);
        if (!name)
                (void) snprintf(ret, SCHEDULING_TEXT_MAX, "policy %d is not known here", policy);
        else if (priority > 0)
                (void) snprintf(ret, SCHEDULING_TEXT_MAX, "%s, priority %d", name, priority);
        else
                (void) snprintf(ret, SCHEDULING_TEXT_MAX, "%s, nice %d", name, nice);
        return name;
}

const char *seccomp_mode_name(int mode) {
        static const char *const modes[] = {[SECCOMP_MODE_DISABLED] = "disabled",
                                            [SECCOMP_MODE_STRICT] = "strict",
                                            [SECCOMP_MODE_FILTER] = "filter"};
        return mode >= 0 && (size_t) mode < ELEMENTS(modes) ? modes[mode] : NULL;
}
