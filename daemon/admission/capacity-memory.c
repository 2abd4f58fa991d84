/* SPDX-License-Identifier: MIT */
/*
 * Reads how much memory is available: of the host, and of each cgroup that the agents are in. Called by capacity.c and
 * admission.c.
 *
 * Source: Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.current, memory.stat), proc_meminfo(5),
 * cgroups(7).
 */

#include "daemon/admission/capacity.h"

#include "schema/util.h"

#include <string.h>

#define KIB UINT64_C(1024)
#define CGROUP_FS "/sys/fs/cgroup"

bool capacity_cgroup(struct hostfs *h, char ret_path[CAPACITY_CGROUP_MAX]) {
        _cleanup_free_ char *text = NULL;
        if (hostfs_text(h, &text, "/proc/self/cgroup") < 0 || !text)
                return false;
        const char *own = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
        if (!own)
                return false;
        own = strchr(own, '/');
        size_t length = strcspn(own, "\n");
        /* "/../": outside of this namespace's root */
        if (length >= CAPACITY_CGROUP_MAX || memmem(own, length, "/..", 3))
                return false;
        if (length == 1)
                length = 0;
        memcpy(ret_path, own, length);
        ret_path[length] = '\0';
        return true;
}

bool capacity_cgroup_above(char path[CAPACITY_CGROUP_MAX]) {
        char *last = strrchr(path, '/');
        if (!last)
                return false;
        *last = '\0';
        return true;
}

/* "inactive_file 4096" on a line of its own; 0 where there is none. */
static uint64_t stat_of(const char *text, const char *key) {
        size_t length = strlen(key);
        for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                if (strncmp(line, key, length) == 0 && line[length] == ' ')
                        return strtoull(line + length, NULL, 10);
        return 0;
}

/* memory.current includes the page cache, which the kernel reclaims before it kills a process. MemAvailable counts it
 * as available, with the reclaimable slabs (si_mem_available() of mm/show_mem.c), and so does this function. Neither
 * includes the content of a tmpfs, which is not reclaimable. */
static uint64_t reclaimable(struct hostfs *h, const char *group) {
        _cleanup_free_ char *text = NULL;
        if (hostfs_text(h, &text, CGROUP_FS "%s/memory.stat", group) < 0)
                return 0;
        return stat_of(text, "inactive_file") + stat_of(text, "active_file") + stat_of(text, "slab_reclaimable");
}

/* The rest of a group's own limit; UINT64_MAX: it has none, or the rest is no less than `least`. */
static uint64_t left_by(struct hostfs *h, const char *group, uint64_t least) {
        uint64_t limit = 0, used = 0;
        if (hostfs_u64(h, &limit, CGROUP_FS "%s/memory.max", group) < 0 || /* "max" is no number */
            hostfs_u64(h, &used, CGROUP_FS "%s/memory.current", group) < 0)
                return UINT64_MAX;
        if (limit > used && limit - used >= least)
                return UINT64_MAX;
        uint64_t back = reclaimable(h, group);
        used -= back < used ? back : used;
        return limit > used ? limit - used : 0;
}

/* There is room for 61 bytes of the path; a longer one is cut to its end, the part that identifies the group best. */
static void name_limit(const char *group, char ret[CAPACITY_LIMIT_MAX]) {
        size_t length = strlen(group);
        if (length <= 61) {
                (void) snprintf(ret, CAPACITY_LIMIT_MAX, "memory.max of %.61s less what is in use",
                                length ? group : "/");
                return;
        }
        group += length - 58;
        while (((unsigned char) *group & 0xc0) == 0x80) /* not within a character */
                group++;
        (void) snprintf(ret, CAPACITY_LIMIT_MAX, "memory.max of …%.58s less what is in use", group);
}

/* The host's memory; fills *m only on success. */
static int host_memory(struct hostfs *h, struct capacity_memory *m) {
        uint64_t available = 0;
        int r = hostfs_meminfo(h, "MemAvailable", &available);
        if (r < 0)
                return r;
        m->bytes = available * KIB;
        (void) snprintf(m->limit, sizeof(m->limit), "memory available");
        m->raise = "free memory, or add some";
        return 0;
}

int capacity_memory(struct hostfs *h, struct capacity_memory *ret) {
        struct capacity_memory m = {.bytes = UINT64_MAX};
        char group[CAPACITY_CGROUP_MAX];

        int r = host_memory(h, &m);
        if (r == -ENOMEM)
                return r;
        for (bool more = capacity_cgroup(h, group); more; more = capacity_cgroup_above(group)) {
                uint64_t left = left_by(h, group, m.bytes);
                if (left >= m.bytes)
                        continue;
                m.bytes = left;
                name_limit(group, m.limit);
                m.raise = "MemoryMax= in the unit, or the limit of the container";
        }
        r = m.raise ? 0 : host_memory(h, &m); /* again: h->path is to name it */
        if (r == 0)
                *ret = m;
        return r;
}
