/* SPDX-License-Identifier: MIT */

/* See inherited.h. Called where the environment is taken. */

#include "daemon/host/environment/inherited.h"

#include "schema/scheduling.h"
#include "schema/util.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICE_OF_ALL 40 /* RLIMIT_NICE that permits nice -20: 20 - nice */

static int fault(const char *what, char ret[static INHERITED_REASON_MAX]) {
        int error = errno;
        (void) snprintf(ret, INHERITED_REASON_MAX, "%s: %s", what, strerrordesc_np(error));
        return -error;
}

/* Whether agents begin with the highest priority, which they then lower to nice 0. */
static bool may_raise_priority(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
        struct rlimit limit;
        if (syscall(SYS_capget, &header, data) == 0 &&
            (data[CAP_TO_INDEX(CAP_SYS_NICE)].effective & CAP_TO_MASK(CAP_SYS_NICE)))
                return true;
        return getrlimit(RLIMIT_NICE, &limit) == 0 && limit.rlim_cur >= NICE_OF_ALL;
}

int inherited_scheduling(char ret[static INHERITED_REASON_MAX]) {
        struct sched_param param = {0};
        const pid_t main_thread = getpid();
        int policy = sched_getscheduler(main_thread);
        if (policy < 0 || sched_getparam(main_thread, &param) < 0)
                return fault("sched_getscheduler", ret);
        errno = 0;
        int nice = getpriority(PRIO_PROCESS, (id_t) main_thread); /* -1 is a value, too */
        if (errno != 0)
                return fault("getpriority", ret);
        if ((policy & SCHED_RESET_ON_FORK) && param.sched_priority > 0) { /* of a real-time policy alone */
                policy = SCHED_OTHER;
                param.sched_priority = 0;
        }
        if (nice < 0 || may_raise_priority())
                nice = 0;
        return scheduling_text(policy & ~SCHED_RESET_ON_FORK, param.sched_priority, nice, ret) ? 0 : -ENOTSUP;
}

int inherited_seccomp(char ret[static INHERITED_REASON_MAX]) {
        int mode = prctl(PR_GET_SECCOMP);
        if (mode < 0)
                return fault("prctl", ret);
        const char *name = seccomp_mode_name(mode);
        if (name)
                (void) snprintf(ret, INHERITED_REASON_MAX, "%s", name);
        else
                (void) snprintf(ret, INHERITED_REASON_MAX, "mode %d is not known here", mode);
        return name ? 0 : -ENOTSUP;
}
