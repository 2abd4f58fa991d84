/* SPDX-License-Identifier: MIT */

/* Reads /proc/vmstat, the sum over the nodes. Owns nothing. Called by the runner around a run. */

#include "daemon/host/numastat.h"

#include "daemon/host/hostfs.h"
#include "schema/util.h"

#include <string.h>

static const char *const names[NUMASTAT_COUNTERS] = {
        "numa_hit",          "numa_miss",        "numa_foreign",     "numa_interleave",        "numa_local",
        "numa_other",        "numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated",
        "pgmigrate_success",
};

static bool find(const char *text, const char *name, uint64_t *ret) {
        size_t length = strlen(name);
        for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                if (strncmp(line, name, length) != 0 || line[length] != ' ')
                        continue;
                char *end = NULL;
                errno = 0;
                unsigned long long v = strtoull(line + length + 1, &end, 10);
                if (errno || end == line + length + 1)
                        return false;
                *ret = v;
                return true;
        }
        return false;
}

void numastat_take(const char *root, struct numastat *ret) {
        struct hostfs h;
        _cleanup_free_ char *text = NULL;
        *ret = (struct numastat){0};
        if (hostfs_init(&h, root) < 0)
                return;
        ret->known = hostfs_text(&h, &text, "/proc/vmstat") == 0;
        hostfs_deinit(&h);
        for (size_t i = 0; ret->known && i < NUMASTAT_COUNTERS; i++)
                ret->has[i] = find(text, names[i], &ret->values[i]);
}

void numastat_subtract(struct numastat *ret, const struct numastat *later, const struct numastat *earlier) {
        *ret = (struct numastat){.known = later->known && earlier->known};
        for (size_t i = 0; i < NUMASTAT_COUNTERS; i++) {
                ret->set_back[i] = later->has[i] && earlier->has[i] && later->values[i] < earlier->values[i];
                ret->has[i] = later->has[i] && earlier->has[i] && !ret->set_back[i];
                ret->values[i] = ret->has[i] ? later->values[i] - earlier->values[i] : 0;
        }
}

void numastat_put(const struct numastat *n, struct json_writer *w) {
        json_member_object(w, "numa");
        json_member_string(w, "of", "host");
        for (size_t i = 0; i < NUMASTAT_COUNTERS; i++) {
                char key[48];
                if (n->has[i]) {
                        json_member_u64(w, names[i], n->values[i]);
                        continue;
                }
                (void) snprintf(key, sizeof(key), "%s_reason", names[i]);
                json_member_null(w, names[i]);
                json_member_string(w, key,
                                   !n->known        ? "/proc/vmstat cannot be read"
                                   : n->set_back[i] ? "it was set back during the run"
                                                    : "this kernel does not count it");
        }
        json_object_end(w);
}
