/* SPDX-License-Identifier: MIT */

#include "agent/os/scheduling.h"

#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* "other, nice 0", "fifo, priority 10" */
static void put_scheduling(struct effective *e) {
        struct sched_param param = {0};
        char text[64];
        int policy = sched_getscheduler(getpid());
        if (policy < 0 || sched_getparam(getpid(), &param) < 0) {
                effective_add_unknown(e, SETTING_SCHEDULING, strerrordesc_np(errno));
                return;
        }
        const char *name = policy_name(policy);
        errno = 0;
        int nice = getpriority(PRIO_PROCESS, (id_t) getpid()); /* -1 is a value, too */
        if (!name)
                (void) snprintf(text, sizeof(text), "policy %d is not known here", policy);
        else if (errno != 0)
                (void) snprintf(text, sizeof(text), "getpriority: %.40s", strerrordesc_np(errno));
        else if (param.sched_priority > 0)
                (void) snprintf(text, sizeof(text), "%s, priority %d", name, param.sched_priority);
        else
                (void) snprintf(text, sizeof(text), "%s, nice %d", name, nice);
        if (!name || errno != 0)
                effective_add_unknown(e, SETTING_SCHEDULING, text);
        else
                effective_add_text(e, SETTING_SCHEDULING, text);
}

void scheduling_put(struct effective *e) {
        static const char *const modes[] = {[SECCOMP_MODE_DISABLED] = "disabled",
                                            [SECCOMP_MODE_STRICT] = "strict",
                                            [SECCOMP_MODE_FILTER] = "filter"};
        put_scheduling(e);
        int mode = prctl(PR_GET_SECCOMP);
        if (mode < 0)
                effective_add_unknown(e, SETTING_SECCOMP, strerrordesc_np(errno));
        else
                effective_add_text(e, SETTING_SECCOMP, (size_t) mode < ELEMENTS(modes) ? modes[mode] : NULL);
}
