/* SPDX-License-Identifier: MIT */

#include "daemon/host/disturbance/cpu-frequency.h"

#include "daemon/host/hostfs.h"
#include "schema/measure/perf.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MSR_PMU "/sys/bus/event_source/devices/msr"
#define KHZ_PER_GHZ 1e6

/* "event=0x01" */
static int config_of(const char *line, uint64_t *ret) {
        static const char prefix[] = "event=";
        char *end = NULL;
        if (strncmp(line, prefix, strlen(prefix)) != 0)
                return -EBADMSG;
        errno = 0;
        *ret = strtoull(line + strlen(prefix), &end, 16);
        return errno == 0 && end > line + strlen(prefix) && *end == '\0' ? 0 : -EBADMSG;
}

int cpu_frequency_pmu(const char *root, struct cpu_frequency_pmu *ret) {
        static const char *const names[FREQUENCY_EVENTS] = {
                [EVENT_APERF] = "aperf",
                [EVENT_MPERF] = "mperf",
                [EVENT_TSC] = "tsc",
        };
        _cleanup_(hostfs_deinit) struct hostfs h = {.root_fd = -1};
        int64_t type = 0;
        char line[64];
        int r = hostfs_init(&h, root);
        if (r == 0)
                r = hostfs_i64(&h, &type, MSR_PMU "/type");
        if (r == 0 && (type < 0 || type > UINT32_MAX))
                r = -EBADMSG;
        for (int i = 0; r == 0 && i < FREQUENCY_EVENTS; i++) {
                r = hostfs_line(&h, line, sizeof(line), MSR_PMU "/events/%s", names[i]);
                if (r == 0)
                        r = config_of(line, &ret->configs[i]);
        }
        ret->type = (uint32_t) type;
        return r;
}

static bool is_spare(int fd, uint64_t files_max) {
        return fd < 0 ? fd != -EMFILE && fd != -ENFILE : (uint64_t) fd < files_max;
}

int cpu_frequency_open(struct cpu_frequency *f, const char *root, int cpu, const struct cpu_frequency_pmu *pmu,
                       uint64_t files_max) {
        char path[PATH_MAX];
        bool spare = true;
        *f = CPU_FREQUENCY_NONE;
        for (int i = 0; pmu && i < FREQUENCY_EVENTS; i++) {
                f->events[i] = perf_open_cpu(cpu, pmu->type, pmu->configs[i], f->events[0]);
                spare = is_spare(f->events[i], files_max);
                if (f->events[i] < 0 || !spare) {
                        cpu_frequency_close(f);
                        break;
                }
        }
        if (!spare || f->events[0] >= 0)
                return spare ? 0 : -EMFILE;
        (void) snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", root, cpu);
        f->file = open(path, O_RDONLY | O_CLOEXEC);
        spare = is_spare(f->file < 0 ? -errno : f->file, files_max);
        if (!spare)
                cpu_frequency_close(f);
        return spare ? 0 : -EMFILE;
}

void cpu_frequency_close(struct cpu_frequency *f) {
        for (int i = 0; i < FREQUENCY_EVENTS; i++)
                f->events[i] = f->events[i] < 0 ? -1 : util_close(f->events[i]);
        f->file = util_close(f->file);
}

int64_t cpu_frequency_add(struct cpu_frequency *f, const uint64_t counts[FREQUENCY_EVENTS], uint64_t at_ns) {
        bool first = f->first_ns == 0;
        uint64_t aperf = counts[EVENT_APERF] - f->last[EVENT_APERF], mperf = counts[EVENT_MPERF] - f->last[EVENT_MPERF];
        memcpy(f->last, counts, sizeof(f->last));
        if (first) {
                f->first_ns = at_ns;
                f->first_tsc = counts[EVENT_TSC];
        }
        if (first || mperf == 0 || at_ns <= f->first_ns)
                return -1;
        double tsc_khz = (double) (counts[EVENT_TSC] - f->first_tsc) / (double) (at_ns - f->first_ns) * KHZ_PER_GHZ;
        return (int64_t) (tsc_khz * ((double) aperf / (double) mperf));
}

int64_t cpu_frequency_read(struct cpu_frequency *f) {
        char text[32];
        if (f->events[0] >= 0) {
                uint64_t words[1 + FREQUENCY_EVENTS]; /* their number, as perf_open_cpu() describes, and the counts */
                ssize_t n = read(f->events[0], words, sizeof(words));
                return n == (ssize_t) sizeof(words) ? cpu_frequency_add(f, words + 1, util_now_ns()) : -1;
        }
        ssize_t n = f->file < 0 ? -1 : pread(f->file, text, sizeof(text) - 1, 0);
        if (n <= 0)
                return -1;
        text[n] = '\0';
        int64_t khz = strtoll(text, NULL, 10);
        return khz > 0 ? khz : -1;
}

const char *cpu_frequency_source(const struct cpu_frequency *f) {
        return f->events[0] >= 0 ? "aperf-mperf" : f->file >= 0 ? "cpufreq" : NULL;
}
