/* SPDX-License-Identifier: MIT */

#include "agent/os/last-cache.h"

#include "agent/os/procfs.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define INDICES 16u /* more than any CPU has caches */

uint64_t last_cache_parse(const char *text) {
        char *end;
        errno = 0;
        unsigned long long n = strtoull(text, &end, 10);
        unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
        if (errno || end == text || end[shift > 0] != '\0' || n > UINT64_MAX >> shift)
                return 0;
        return (uint64_t) n << shift;
}

uint64_t last_cache_bytes(void) {
        unsigned cpu = 0;
        uint64_t bytes = 0;
        long highest = 0;
        (void) getcpu(&cpu, NULL);
        for (unsigned i = 0; i < INDICES; i++) {
                char path[80], size[24];
                (void) snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/level", cpu, i);
                long level = procfs_setting(path);
                (void) snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/size", cpu, i);
                if (level < highest || procfs_first_line(path, size, sizeof size) < 0)
                        continue;
                uint64_t found = last_cache_parse(size);
                if (level > highest || found > bytes)
                        bytes = found;
                highest = level;
        }
        return bytes;
}
