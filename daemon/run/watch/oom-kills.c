/* SPDX-License-Identifier: MIT */

/* Source: oom_kill of /proc/vmstat, which __oom_kill_process() of mm/oom_kill.c counts before it sends the signal. */

#include "daemon/run/watch/oom-kills.h"

#include "daemon/host/hostfs.h"
#include "schema/util.h"

#include <string.h>

bool oom_kills(uint64_t *ret) {
        static const char key[] = "\noom_kill ";
        struct hostfs h = HOSTFS_MACHINE;
        _cleanup_free_ char *text = NULL;
        const char *found = hostfs_text(&h, &text, "/proc/vmstat") == 0 ? strstr(text, key) : NULL;
        if (found)
                *ret = strtoull(found + strlen(key), NULL, 10);
        return found;
}
