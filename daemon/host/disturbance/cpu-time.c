/* SPDX-License-Identifier: MIT */

/* Opens and parses the sources of CPU time. Owns their descriptors and a buffer that grows to the longest of them. */

#include "daemon/host/disturbance/cpu-time.h"

#include "daemon/host/hostfs.h"
#include "schema/util.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* Timer interrupts alone are a few tenths of a per cent of what a CPU does. A kernel that counts by tick sees an
 * interrupt only where the tick met one in progress, which is next to never: the tick is an interrupt itself. */
#define IRQ_APART_SHARE 0.0005

static const char *const names[CPU_TIME_SOURCES] = {
        [CPU_TIME_CPUACCT] = "cpuacct", [CPU_TIME_SCHEDSTAT] = "schedstat", [CPU_TIME_IDLE] = "idle"};

const char *cpu_time_source_name(enum cpu_time_source source) {
        return (size_t) source < CPU_TIME_SOURCES ? names[source] : NULL;
}

double cpu_time_rounding_ns(size_t n_cpus) {
        const double n = (double) n_cpus;
        return (double) CPU_TIME_STEP_NS * (n < 4 ? n : 2 * sqrt(n));
}

static int open_below(const char *root, const char *path) {
        char full[PATH_MAX];
        if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int) sizeof(full))
                return -ENAMETOOLONG;
        int fd = open(full, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static struct cpu_times *find(const int *ids, size_t n, struct cpu_times *times, int id) {
        for (size_t low = 0, high = n; low < high;) {
                size_t middle = (low + high) / 2;
                if (ids[middle] == id)
                        return &times[middle];
                if (ids[middle] < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

/* Up to max numbers of a line. How many there were. */
static size_t numbers(const char *at, int64_t *ret, size_t max) {
        size_t n = 0;
        for (; n < max; n++) {
                char *end = NULL;
                at += strspn(at, " ");
                if (!isdigit((unsigned char) *at))
                        break;
                ret[n] = (int64_t) strtoull(at, &end, 10);
                at = end;
        }
        return n;
}

/* Each "cpuN numbers…" line of /proc/stat or /proc/schedstat: its id, and where its numbers begin. NULL: no more. */
static const char *next_cpu(const char *at, int *ret_id, const char **ret_numbers) {
        for (; *at; at += strcspn(at, "\n"), at += *at == '\n') {
                if (strncmp(at, "cpu", 3) != 0 || !isdigit((unsigned char) at[3]))
                        continue;
                char *end = NULL;
                *ret_id = (int) strtol(at + 3, &end, 10);
                *ret_numbers = end;
                at += strcspn(at, "\n");
                return at + (*at == '\n');
        }
        return NULL;
}

/* user nice system idle iowait irq softirq steal. *ret_irq_share: interrupts of all that was done, since boot. */
static int parse_stat(const char *text, const int *ids, size_t n, struct cpu_times *ret, double *ret_irq_share) {
        long hz = sysconf(_SC_CLK_TCK);
        int64_t tick = (int64_t) NSEC_PER_SEC / (hz > 0 ? hz : 100), v[8], irq = 0, busy = 0;
        const char *at = text, *values;
        int id;
        while ((at = next_cpu(at, &id, &values))) {
                if (numbers(values, v, ELEMENTS(v)) != ELEMENTS(v))
                        return -EBADMSG;
                irq += v[5];
                busy += v[0] + v[1] + v[2] + v[5] + v[6];
                struct cpu_times *t = find(ids, n, ret, id);
                if (t)
                        *t = (struct cpu_times){.idle_ns = (v[3] + v[4]) * tick,
                                                .irq_ns = v[5] * tick,
                                                .softirq_ns = v[6] * tick,
                                                .steal_ns = v[7] * tick,
                                                .counted_ns =
                                                        (v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7]) * tick,
                                                .known = true};
        }
        *ret_irq_share = busy ? (double) irq / (double) busy : 0;
        return 0;
}

static int parse_cpuacct(const struct cpu_time *c, const int *ids, size_t n, struct cpu_times *ret) {
        const char *at = c->buffer;
        for (size_t i = 0; i < c->n_possible; i++) {
                char *end = NULL;
                int64_t v = (int64_t) strtoull(at, &end, 10);
                if (end == at)
                        return -EBADMSG;
                at = end;
                struct cpu_times *t = find(ids, n, ret, c->possible[i]);
                if (t)
                        t->run_ns = v;
        }
        return at[strspn(at, " \n")] ? -EBADMSG : 0; /* more CPUs than are possible */
}

/* The seventh of nine, in all versions from 15 (Linux 2.6.29) on. */
static int parse_schedstat(const char *text, const int *ids, size_t n, struct cpu_times *ret) {
        const char *at = text, *values;
        int64_t v[9];
        int id;
        bool any = false;
        while ((at = next_cpu(at, &id, &values))) {
                struct cpu_times *t = find(ids, n, ret, id);
                if (numbers(values, v, ELEMENTS(v)) != ELEMENTS(v))
                        return -EBADMSG;
                any = true;
                if (t)
                        t->run_ns = v[6];
        }
        return any ? 0 : -EBADMSG;
}

bool cpu_time_softirqs_apart(const struct cpu_time *c) {
        return c->irq_apart && c->source != CPU_TIME_CPUACCT;
}

static int read_source(struct cpu_time *c, uint64_t now_ns, const int *ids, size_t n, struct cpu_times *ret) {
        int r = c->source == CPU_TIME_IDLE ? 0 : hostfs_read_again(c->source_fd, &c->buffer, &c->size);
        if (r == 0 && c->source == CPU_TIME_CPUACCT)
                return parse_cpuacct(c, ids, n, ret);
        if (r == 0 && c->source == CPU_TIME_SCHEDSTAT)
                r = parse_schedstat(c->buffer, ids, n, ret);
        for (size_t i = 0; r == 0 && i < n; i++) {
                if (c->source == CPU_TIME_IDLE)
                        ret[i].run_ns = (int64_t) now_ns - ret[i].idle_ns;
                if (c->source == CPU_TIME_IDLE || c->irq_apart)
                        ret[i].run_ns -= ret[i].steal_ns;
                if (cpu_time_softirqs_apart(c))
                        ret[i].run_ns -= ret[i].irq_ns + ret[i].softirq_ns;
        }
        return r;
}

int cpu_time_read(struct cpu_time *c, uint64_t now_ns, const int *ids, size_t n, struct cpu_times *ret) {
        double irq_share;
        memset(ret, 0, n * sizeof(*ret));
        c->stat_ns[0] = util_now_ns();
        int r = hostfs_read_again(c->stat_fd, &c->buffer, &c->size);
        c->stat_ns[1] = util_now_ns();
        if (r == 0)
                r = parse_stat(c->buffer, ids, n, ret, &irq_share);
        return r == 0 ? read_source(c, now_ns, ids, n, ret) : r;
}

static int try_source(struct cpu_time *c, enum cpu_time_source source, int fd) {
        c->source = source;
        c->source_fd = fd;
        int r = fd < 0 ? fd : read_source(c, 0, NULL, 0, NULL);
        if (r < 0)
                c->source_fd = util_close(c->source_fd);
        return r;
}

/* The root cgroup alone has the time of all tasks, and of all cgroups it alone has this other file: a container is
 * shown a cgroup of its own in this place. */
static int try_cpuacct(struct cpu_time *c, const char *root, const char *folder) {
        char path[128];
        (void) snprintf(path, sizeof(path), "%s/cgroup.sane_behavior", folder);
        _cleanup_close_ int only_in_root = open_below(root, path);
        if (only_in_root < 0)
                return only_in_root;
        (void) snprintf(path, sizeof(path), "%s/cpuacct.usage_percpu", folder);
        return try_source(c, CPU_TIME_CPUACCT, open_below(root, path));
}

static void choose_source(struct cpu_time *c, const char *root, struct hostfs *h) {
        static const char *const folders[] = {"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct",
                                              "/sys/fs/cgroup/cpuacct,cpu"};
        int r = hostfs_list(h, &c->possible, &c->n_possible, "/sys/devices/system/cpu/possible");
        for (size_t i = 0; r == 0 && i < ELEMENTS(folders); i++)
                if (try_cpuacct(c, root, folders[i]) == 0)
                        return;
        if (try_source(c, CPU_TIME_SCHEDSTAT, open_below(root, "/proc/schedstat")) == 0)
                return;
        c->source = CPU_TIME_IDLE; /* in /proc/stat, which is open already */
}

int cpu_time_open(const char *root, struct cpu_time *ret) {
        struct cpu_time c = {.source_fd = -1, .stat_fd = -1};
        _cleanup_(hostfs_deinit) struct hostfs h = {.root_fd = -1};
        double irq_share = 0;
        int r = hostfs_init(&h, root);
        if (r == 0)
                r = c.stat_fd = open_below(root, "/proc/stat");
        if (r >= 0)
                r = hostfs_read_again(c.stat_fd, &c.buffer, &c.size);
        if (r == 0)
                r = parse_stat(c.buffer, NULL, 0, NULL, &irq_share);
        if (r < 0) {
                cpu_time_close(&c);
                return r;
        }
        c.irq_apart = irq_share > IRQ_APART_SHARE;
        choose_source(&c, root, &h);
        *ret = c;
        return 0;
}

void cpu_time_close(struct cpu_time *c) {
        c->source_fd = util_close(c->source_fd);
        c->stat_fd = util_close(c->stat_fd);
        free(c->possible);
        free(c->buffer);
        c->possible = NULL;
        c->buffer = NULL;
}
