/* SPDX-License-Identifier: MIT */

/* Source: oom_kill of /proc/vmstat, which __oom_kill_process() of mm/oom_kill.c counts before it sends the signal. */

#include "daemon/run/oom-kills.h"

#include "schema/util.h"

#include <string.h>

bool oom_kills(uint64_t *ret) {
        static const char key[] = "oom_kill ";
        _cleanup_fclose_ FILE *f = fopen("/proc/vmstat", "re");
        char line[128];
        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, key, strlen(key)) == 0) {
                        *ret = strtoull(line + strlen(key), NULL, 10);
                        return true;
                }
        return false;
}
