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

int scheduling_read(pid_t tid, struct scheduling *ret) {
        struct sched_param param = {0};
        int policy = sched_getscheduler(tid);
        if (policy < 0 || sched_getparam(tid, &param) < 0)
                return -errno;
        errno = 0;
        int nice = getpriority(PRIO_PROCESS, (id_t) tid); /* -1 is a value, too */
        if (errno != 0)
                return -errno;
        *ret = (struct scheduling){.policy = policy, .priority = param.sched_priority, .nice = nice};
        return 0;
}

bool scheduling_equal(const struct scheduling *a, const struct scheduling *b) {
        return a->policy == b->policy && a->priority == b->priority && a->nice == b->nice;
}

void scheduling_print(const struct scheduling *s, char ret[static SCHEDULING_TEXT_MAX]) {
        const char *name = policy_name(s->policy);
        if (!name)
                (void) snprintf(ret, SCHEDULING_TEXT_MAX, "policy %d", s->policy);
        else if (s->priority > 0)
                (void) snprintf(ret, SCHEDULING_TEXT_MAX, "%s, priority %d", name, s->priority);
        else
                (void) snprintf(ret, SCHEDULING_TEXT_MAX, "%s, nice %d", name, s->nice);
}

static void put_scheduling(struct effective *e) {
        struct scheduling s = {0};
        char text[SCHEDULING_TEXT_MAX];
        int r = scheduling_read(getpid(), &s);
        if (r < 0) {
                effective_add_unknown(e, SETTING_SCHEDULING, strerrordesc_np(-r));
                return;
        }
        scheduling_print(&s, text);
        if (policy_name(s.policy))
                effective_add_text(e, SETTING_SCHEDULING, text);
        else
                effective_add_unknown(e, SETTING_SCHEDULING, text);
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
