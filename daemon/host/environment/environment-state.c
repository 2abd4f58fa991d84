/* SPDX-License-Identifier: MIT */
/*
 * The state of the host: counters since boot and readings of the moment. The difference of two snapshots is the
 * activity during a run (noise.c).
 *
 * Source: proc_stat(5), proc_interrupts(5), Documentation/admin-guide/numastat.rst, .../thermal/ for throttling.
 */

#include "daemon/host/environment/environment-internal.h"

#include "daemon/host/disturbance/interrupts.h"
#include "daemon/log.h"
#include "schema/util.h"

#include <ctype.h>
#include <string.h>

#define KIB 1024u

static int fault(const struct hostfs *h, int error) {
        log_error("Cannot read the environment: %s: %s.", h->path,
                  error == -EBADMSG ? "not in the form that the kernel writes" : strerrordesc_np(-error));
        return error;
}

/* The numbers behind "cpu3": user nice system idle iowait irq softirq steal (guest is within user). */
static int parse_cpu_line(const char *at, struct cpu_state *ret) {
        const long hz = sysconf(_SC_CLK_TCK); /* USER_HZ is 100 on all usual kernels; queried all the same */
        uint64_t v[8];
        for (size_t i = 0; i < ELEMENTS(v); i++) {
                char *end = NULL;
                v[i] = strtoull(at, &end, 10);
                if (end == at)
                        return -EBADMSG;
                v[i] *= NSEC_PER_SEC / (uint64_t) (hz > 0 ? hz : 100);
                at = end;
        }
        ret->user_ns = v[0] + v[1];
        ret->system_ns = v[2];
        ret->idle_ns = v[3];
        ret->iowait_ns = v[4];
        ret->irq_ns = v[5];
        ret->softirq_ns = v[6];
        ret->steal_ns = v[7];
        return 0;
}

static const char *next_line(const char *line) {
        line += strcspn(line, "\n");
        return line + (*line == '\n');
}

/* The CPUs that are online now, each of which has a line: during a run some may come and go. */
static int take_stat(struct hostfs *h, struct environment *e) {
        _cleanup_free_ char *text = NULL;
        int r = hostfs_text(h, &text, "/proc/stat");
        if (r < 0)
                return fault(h, r);
        for (const char *line = text; *line; line = next_line(line)) {
                if (strncmp(line, "cpu", 3) != 0 || !isdigit((unsigned char) line[3]))
                        continue;
                if (!util_resize(e->cpus, e->n_cpus + 1))
                        return -ENOMEM;
                char *end = NULL;
                struct cpu_state *cpu = &e->cpus[e->n_cpus++];
                *cpu = (struct cpu_state){.id = (int) strtol(line + 3, &end, 10)};
                r = parse_cpu_line(end, cpu);
                if (r < 0)
                        return fault(h, r);
        }
        return e->n_cpus > 0 ? 0 : fault(h, -EBADMSG);
}

static int take_interrupts(struct hostfs *h, struct environment *e) {
        _cleanup_free_ char *text = NULL;
        _cleanup_free_ struct interrupt_counts *counts = calloc(e->n_cpus + 1, sizeof(*counts));
        _cleanup_free_ int *ids = calloc(e->n_cpus + 1, sizeof(*ids));

        if (!counts || !ids)
                return -ENOMEM;
        for (size_t i = 0; i < e->n_cpus; i++)
                ids[i] = e->cpus[i].id;
        int r = hostfs_text(h, &text, "/proc/interrupts");
        if (r == 0)
                r = interrupts_parse(text, ids, e->n_cpus, counts);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                environment_reason(h, r, e->interrupts_reason);
        for (size_t i = 0; r == 0 && i < e->n_cpus; i++) {
                e->cpus[i].has_interrupts = counts[i].known;
                e->cpus[i].interrupts = counts[i].all;
                e->cpus[i].device_interrupts = counts[i].devices;
        }
        return 0;
}

static void take_throttles(struct hostfs *h, struct environment *e, struct cpu_state *cpu) {
        int64_t core = 0, package = 0;
        int r = hostfs_i64(h, &core, "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", cpu->id);
        if (r == 0)
                r = hostfs_i64(h, &package, "/sys/devices/system/cpu/cpu%d/thermal_throttle/package_throttle_count",
                               cpu->id);
        if (r < 0) {
                environment_reason(h, r, e->throttles_reason);
                return;
        }
        cpu->has_throttles = true;
        cpu->throttles = (uint64_t) core + (uint64_t) package;
}

static void take_frequency(struct hostfs *h, struct environment *e, struct cpu_state *cpu) {
        int64_t khz = 0;
        int r = hostfs_i64(h, &khz, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu->id);
        if (r < 0 || khz <= 0) {
                environment_reason(h, r < 0 ? r : -EBADMSG, e->frequency_reason);
                return;
        }
        cpu->has_frequency = true;
        cpu->frequency_khz = (uint64_t) khz;
}

static int take_cpus(struct hostfs *h, struct environment *e) {
        int r = take_stat(h, e);
        if (r == 0)
                r = take_interrupts(h, e);
        for (size_t i = 0; r == 0 && i < e->n_cpus; i++) {
                take_throttles(h, e, &e->cpus[i]);
                take_frequency(h, e, &e->cpus[i]);
        }
        return r;
}

/* The number behind a word in lines of "word number". */
static bool find_count(const char *text, const char *key, uint64_t *ret) {
        size_t n = strlen(key);
        for (const char *line = text; *line; line = next_line(line))
                if (strncmp(line, key, n) == 0 && line[n] == ' ') {
                        char *end = NULL;
                        *ret = strtoull(line + n, &end, 10);
                        return end != line + n;
                }
        return false;
}

static int take_nodes(struct hostfs *h, const struct topology *t, struct environment *e) {
        if (!t->numa)
                return 0;
        e->nodes = calloc(t->n_nodes, sizeof(e->nodes[0]));
        if (!e->nodes)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_nodes; i++) {
                struct node_state *n = &e->nodes[e->n_nodes++];
                _cleanup_free_ char *text = NULL;
                n->id = t->nodes[i].id;
                if (hostfs_text(h, &text, "/sys/devices/system/node/node%d/numastat", n->id) < 0)
                        continue;
                n->known = find_count(text, "numa_hit", &n->hit) && find_count(text, "numa_miss", &n->miss) &&
                           find_count(text, "numa_foreign", &n->foreign) &&
                           find_count(text, "interleave_hit", &n->interleave_hit) &&
                           find_count(text, "local_node", &n->local) && find_count(text, "other_node", &n->other);
        }
        return 0;
}

static void take_vmstat(struct hostfs *h, struct environment *e) {
        static const char *const keys[] = {"numa_pte_updates",       "numa_huge_pte_updates", "numa_hint_faults",
                                           "numa_hint_faults_local", "numa_pages_migrated",   "pgmigrate_success",
                                           "pgmigrate_fail"};
        _Static_assert(ELEMENTS(keys) <= ENVIRONMENT_VMSTAT_MAX, "counters do not fit");
        _cleanup_free_ char *text = NULL;

        int r = hostfs_text(h, &text, "/proc/vmstat");
        for (size_t i = 0; i < ELEMENTS(keys); i++) {
                struct counter_state *c = &e->vmstat[e->n_vmstat++];
                c->key = keys[i];
                c->known = r == 0 && find_count(text, keys[i], &c->value);
        }
}

static int take_times(struct hostfs *h, struct environment *e) {
        char line[128];
        int r = hostfs_line(h, line, sizeof(line), "/proc/uptime");
        if (r < 0)
                return fault(h, r);
        char *end = NULL;
        double uptime = strtod(line, &end);
        if (end == line || !(uptime >= 0 && uptime < 1e10))
                return fault(h, -EBADMSG);
        e->uptime_ns = (uint64_t) (uptime * 100 + 0.5) * (NSEC_PER_SEC / 100);

        r = hostfs_line(h, line, sizeof(line), "/proc/loadavg");
        if (r < 0)
                return fault(h, r);
        char *at = line;
        for (size_t i = 0; i < ELEMENTS(e->load); i++) {
                e->load[i] = strtod(at, &end);
                if (end == at)
                        return fault(h, -EBADMSG);
                at = end;
        }
        return 0;
}

static int take_memory(struct hostfs *h, struct environment *e) {
        static const char *const keys[] = {"MemTotal", "MemAvailable", "MemFree"};
        uint64_t *values[] = {&e->memory_total_bytes, &e->memory_available_bytes, &e->memory_free_bytes};
        _cleanup_free_ char *text = NULL;

        int r = hostfs_text(h, &text, "/proc/meminfo");
        if (r < 0)
                return fault(h, r);
        for (size_t i = 0; i < ELEMENTS(keys); i++) {
                char line[64], *end = NULL;
                if (hostfs_field(text, keys[i], line, sizeof(line)) < 0)
                        return fault(h, -EBADMSG);
                *values[i] = strtoull(line, &end, 10) * KIB;
                if (end == line || strcmp(end, " kB") != 0)
                        return fault(h, -EBADMSG);
        }
        return 0;
}

int environment_take_state(struct hostfs *h, const struct topology *t, struct environment *e) {
        int r = take_times(h, e);
        if (r == 0)
                r = take_memory(h, e);
        if (r == 0)
                r = take_cpus(h, e);
        if (r == 0)
                r = take_nodes(h, t, e);
        if (r == 0)
                take_vmstat(h, e);
        return r;
}
