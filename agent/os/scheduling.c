/* SPDX-License-Identifier: MIT */

#include "agent/os/scheduling.h"

#include "schema/protocol/effective.h"
#include "schema/scheduling.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

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

bool scheduling_print(const struct scheduling *s, char ret[static SCHEDULING_TEXT_MAX]) {
        return scheduling_text(s->policy, s->priority, s->nice, ret);
}

static void put_scheduling(struct effective *e) {
        struct scheduling s = {0};
        char text[SCHEDULING_TEXT_MAX];
        int r = scheduling_read(getpid(), &s);
        if (r < 0)
                effective_add_unknown(e, SETTING_SCHEDULING, strerrordesc_np(-r));
        else if (!scheduling_print(&s, text))
                effective_add_unknown(e, SETTING_SCHEDULING, text);
        else
                effective_add_text(e, SETTING_SCHEDULING, text);
}

void scheduling_put(struct effective *e) {
        put_scheduling(e);
        int mode = prctl(PR_GET_SECCOMP);
        if (mode < 0)
                effective_add_unknown(e, SETTING_SECCOMP, strerrordesc_np(errno));
        else
                effective_add_text(e, SETTING_SECCOMP, seccomp_mode_name(mode));
}
