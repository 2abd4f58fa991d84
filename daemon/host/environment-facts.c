/* SPDX-License-Identifier: MIT */
/*
 * What the host is and how it is set: what should stay the same from one run to the next. Most of it is a row in a
 * table; a few facts need a look at several files.
 */

#include "daemon/host/environment-internal.h"

#include "schema/util.h"

#include <gnu/libc-version.h>
#include <string.h>
#include <systemd/sd-id128.h>

#define FACTS_MAX 96
#define TEXT_MAX 4096 /* a kernel's command line is at most 2 or 4 KiB */

/* Names ipclab's own view of the machine id, which itself must not be shown (machine-id(5)). */
#define MACHINE_APP SD_ID128_MAKE(5d, 2c, 0e, 71, 9a, 44, 4b, 0f, 8e, 6b, 1f, 33, c4, 7a, 90, e2)

void environment_reason(const struct hostfs *h, int error, char *ret) {
        (void) snprintf(ret, 160, "cannot read %.90s: %s", h->path,
                        error == -EBADMSG ? "not in the form that the kernel writes" : strerrordesc_np(-error));
}

static struct fact *add_fact(struct environment *e, const char *key) {
        struct fact *f = &e->facts[e->n_facts++];
        *f = (struct fact){.key = key};
        return f;
}

static int add_text(struct environment *e, const char *key, const char *text) {
        struct fact *f = add_fact(e, key);
        f->text = strdup(text);
        return f->text ? 0 : -ENOMEM;
}

static void add_reason(struct environment *e, const char *key, const char *reason) {
        (void) snprintf(add_fact(e, key)->reason, sizeof(e->facts[0].reason), "%s", reason);
}

static void add_unread(const struct hostfs *h, struct environment *e, const char *key, int error) {
        struct fact *f = add_fact(e, key);
        environment_reason(h, error, f->reason);
}

static int add_read(const struct hostfs *h, struct environment *e, const char *key, int r, const char *text) {
        if (r == 0)
                return add_text(e, key, text);
        add_unread(h, e, key, r);
        return 0;
}

enum kind { KIND_TEXT, KIND_NUMBER, KIND_CHOICE };

static const struct {
        const char *key, *path;
        enum kind kind;
} files[] = {
        {"hostname", "/proc/sys/kernel/hostname", KIND_TEXT},
        {"kernel_release", "/proc/sys/kernel/osrelease", KIND_TEXT},
        {"kernel_version", "/proc/sys/kernel/version", KIND_TEXT},
        {"kernel_cmdline", "/proc/cmdline", KIND_TEXT},
        {"boot_id", "/proc/sys/kernel/random/boot_id", KIND_TEXT},
        {"clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource", KIND_TEXT},
        {"smt", "/sys/devices/system/cpu/smt/control", KIND_TEXT},
        {"transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled", KIND_CHOICE},
        {"transparent_hugepage_defrag", "/sys/kernel/mm/transparent_hugepage/defrag", KIND_CHOICE},
        {"transparent_hugepage_shmem", "/sys/kernel/mm/transparent_hugepage/shmem_enabled", KIND_CHOICE},
        {"cpuidle_driver", "/sys/devices/system/cpu/cpuidle/current_driver", KIND_TEXT},
        {"sched_ext", "/sys/kernel/sched_ext/state", KIND_TEXT},
        {"sched_ext_ops", "/sys/kernel/sched_ext/root/ops", KIND_TEXT},
        {"sched_base_slice_ns", "/sys/kernel/debug/sched/base_slice_ns", KIND_NUMBER},
        {"isolated_cpus", "/sys/devices/system/cpu/isolated", KIND_TEXT},
        {"nohz_full_cpus", "/sys/devices/system/cpu/nohz_full", KIND_TEXT},
        {"irq_default_affinity", "/proc/irq/default_smp_affinity", KIND_TEXT},
        {"lsm", "/sys/kernel/security/lsm", KIND_TEXT},
        {"numa_balancing", "/proc/sys/kernel/numa_balancing", KIND_NUMBER},
        {"randomize_va_space", "/proc/sys/kernel/randomize_va_space", KIND_NUMBER},
        {"swappiness", "/proc/sys/vm/swappiness", KIND_NUMBER},
        {"overcommit_memory", "/proc/sys/vm/overcommit_memory", KIND_NUMBER},
        {"zone_reclaim_mode", "/proc/sys/vm/zone_reclaim_mode", KIND_NUMBER},
        {"nr_hugepages", "/proc/sys/vm/nr_hugepages", KIND_NUMBER},
        {"nmi_watchdog", "/proc/sys/kernel/nmi_watchdog", KIND_NUMBER},
        {"sched_autogroup_enabled", "/proc/sys/kernel/sched_autogroup_enabled", KIND_NUMBER},
        {"perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid", KIND_NUMBER},
        {"pipe_max_size", "/proc/sys/fs/pipe-max-size", KIND_NUMBER},
        {"pipe_user_pages_soft", "/proc/sys/fs/pipe-user-pages-soft", KIND_NUMBER},
        {"msgmax", "/proc/sys/kernel/msgmax", KIND_NUMBER},
        {"msgmnb", "/proc/sys/kernel/msgmnb", KIND_NUMBER},
        {"shmmax", "/proc/sys/kernel/shmmax", KIND_TEXT}, /* 2^64 - 2^24 by default: more than int64_t holds */
        {"mqueue_msg_max", "/proc/sys/fs/mqueue/msg_max", KIND_NUMBER},
        {"mqueue_msgsize_max", "/proc/sys/fs/mqueue/msgsize_max", KIND_NUMBER},
        {"wmem_max", "/proc/sys/net/core/wmem_max", KIND_NUMBER},
        {"wmem_default", "/proc/sys/net/core/wmem_default", KIND_NUMBER},
        {"rmem_max", "/proc/sys/net/core/rmem_max", KIND_NUMBER},
        {"rmem_default", "/proc/sys/net/core/rmem_default", KIND_NUMBER},
        {"optmem_max", "/proc/sys/net/core/optmem_max", KIND_NUMBER},
        {"tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem", KIND_TEXT},
        {"tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem", KIND_TEXT},
        {"tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control", KIND_TEXT},
        {"loopback_mtu", "/sys/class/net/lo/mtu", KIND_NUMBER},
        {"io_uring_disabled", "/proc/sys/kernel/io_uring_disabled", KIND_NUMBER},
};

/* "always [madvise] never": the one in brackets. */
static int take_choice(char *line) {
        char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
        if (!close)
                return -EBADMSG;
        *close = '\0';
        memmove(line, open + 1, (size_t) (close - open));
        return 0;
}

static int take_files(struct hostfs *h, struct environment *e) {
        char line[TEXT_MAX];
        for (size_t i = 0; i < ELEMENTS(files); i++) {
                int r;
                if (files[i].kind == KIND_NUMBER) {
                        int64_t v = 0;
                        r = hostfs_i64(h, &v, "%s", files[i].path);
                        struct fact *f = add_fact(e, files[i].key);
                        f->is_number = true;
                        f->number = v;
                        if (r < 0)
                                environment_reason(h, r, f->reason);
                        continue;
                }
                r = hostfs_line(h, line, sizeof(line), "%s", files[i].path);
                if (r == 0 && files[i].kind == KIND_CHOICE)
                        r = take_choice(line);
                for (char *tab = r == 0 ? strchr(line, '\t') : NULL; tab; tab = strchr(tab, '\t'))
                        *tab = ' ';
                r = add_read(h, e, files[i].key, r, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_machine(bool this_machine, struct environment *e) {
        char text[SD_ID128_STRING_MAX];
        sd_id128_t id;

        if (!this_machine) {
                add_reason(e, "machine", "a captured tree carries no machine id");
                return 0;
        }
        int r = sd_id128_get_machine_app_specific(MACHINE_APP, &id);
        if (r < 0) {
                char reason[160];
                (void) snprintf(reason, sizeof(reason), "cannot read the machine id: %s", strerrordesc_np(-r));
                add_reason(e, "machine", reason);
                return 0;
        }
        return add_text(e, "machine", sd_id128_to_string(id, text));
}

/* ARM has no model name: implementer and part say as much. */
static int take_cpu_model(const char *cpuinfo, struct environment *e) {
        char model[256], implementer[64], part[64];

        if (hostfs_field(cpuinfo, "model name", model, sizeof(model)) == 0 ||
            hostfs_field(cpuinfo, "cpu", model, sizeof(model)) == 0)
                return add_text(e, "cpu_model", model);
        if (hostfs_field(cpuinfo, "CPU implementer", implementer, sizeof(implementer)) == 0 &&
            hostfs_field(cpuinfo, "CPU part", part, sizeof(part)) == 0) {
                (void) snprintf(model, sizeof(model), "implementer %s part %s", implementer, part);
                return add_text(e, "cpu_model", model);
        }
        add_reason(e, "cpu_model", "/proc/cpuinfo names no model");
        return 0;
}

/* Vendor and product of the firmware's tables when they are there: a hypervisor introduces itself with them. */
static int take_virtualization(struct hostfs *h, const char *cpuinfo, struct environment *e) {
        char flags[8192], vendor[96] = "", product[96] = "", text[256];
        bool x86 = hostfs_field(cpuinfo, "flags", flags, sizeof(flags)) == 0;

        if (hostfs_line(h, text, sizeof(text), "/sys/hypervisor/type") == 0)
                return add_text(e, "virtualization", text);
        if (!x86) {
                add_reason(e, "virtualization", "this architecture's /proc/cpuinfo does not say");
                return 0;
        }
        if (!strstr(flags, "hypervisor"))
                return add_text(e, "virtualization", "none");
        (void) hostfs_line(h, vendor, sizeof(vendor), "/sys/class/dmi/id/sys_vendor");
        (void) hostfs_line(h, product, sizeof(product), "/sys/class/dmi/id/product_name");
        (void) snprintf(text, sizeof(text), "%s%s%s", vendor, vendor[0] && product[0] ? " " : "", product);
        return add_text(e, "virtualization", text[0] ? text : "hypervisor of unknown make");
}

static int take_cpuinfo(struct hostfs *h, struct environment *e) {
        static const char *const keys[] = {"cpu_model", "microcode", "virtualization"};
        _cleanup_free_ char *text = NULL;
        char line[64];

        int r = hostfs_text(h, &text, "/proc/cpuinfo");
        if (r < 0) {
                for (size_t i = 0; i < ELEMENTS(keys); i++)
                        add_unread(h, e, keys[i], r);
                return 0;
        }
        r = take_cpu_model(text, e);
        if (r < 0)
                return r;
        if (hostfs_field(text, "microcode", line, sizeof(line)) == 0)
                r = add_text(e, "microcode", line);
        else
                add_reason(e, "microcode", "/proc/cpuinfo names no microcode revision");
        return r < 0 ? r : take_virtualization(h, text, e);
}

/* A file of a CPU's own folder. */
static int read_cpu_file(struct hostfs *h, int cpu, const char *file, char *ret, size_t size) {
        return hostfs_line(h, ret, size, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
}

/* "POLL, C1, C6 (off)". */
static int read_idle_states(struct hostfs *h, int cpu, const char *folder, char *ret, size_t size) {
        size_t length = 0;
        char name[64];
        for (unsigned i = 0;; i++) {
                int64_t disabled = 0;
                int r = hostfs_line(h, name, sizeof(name), "/sys/devices/system/cpu/cpu%d/%s/state%u/name", cpu, folder,
                                    i);
                if (r < 0)
                        return i ? 0 : r;
                r = hostfs_i64(h, &disabled, "/sys/devices/system/cpu/cpu%d/%s/state%u/disable", cpu, folder, i);
                if (r < 0)
                        return r;
                int used =
                        snprintf(ret + length, size - length, "%s%s%s", i ? ", " : "", name, disabled ? " (off)" : "");
                if (used < 0 || (size_t) used >= size - length)
                        return -EFBIG;
                length += (size_t) used;
        }
}

struct per_cpu {
        const char *key, *file;
        int (*read)(struct hostfs *h, int cpu, const char *file, char *ret, size_t size);
};

/* One line for all CPUs: "performance", or "performance 0-3; powersave 4-7". */
static int take_per_cpu(struct hostfs *h, const struct topology *t, struct environment *e, const struct per_cpu *fact) {
        char text[1024] = "", line[256], first[256] = "", ids[128];
        int *group = calloc(t->n_cpus, sizeof(int));
        bool *done = calloc(t->n_cpus, sizeof(bool));
        size_t length = 0, groups = 0;
        int r = group && done ? -ENOENT : -ENOMEM, error = 0;

        for (size_t i = 0; r != -ENOMEM && i < t->n_cpus; i++) {
                size_t n = 0;
                if (!t->cpus[i].online || done[i])
                        continue;
                error = fact->read(h, t->cpus[i].id, fact->file, first, sizeof(first));
                if (error < 0)
                        break;
                for (size_t k = i; k < t->n_cpus; k++)
                        if (t->cpus[k].online && !done[k] &&
                            fact->read(h, t->cpus[k].id, fact->file, line, sizeof(line)) == 0 &&
                            strcmp(line, first) == 0) {
                                done[k] = true;
                                group[n++] = t->cpus[k].id;
                        }
                hostfs_format_list(group, n, ids, sizeof(ids));
                int used = snprintf(text + length, sizeof(text) - length, "%s%s %s", groups ? "; " : "", first, ids);
                length = used > 0 && length + (size_t) used < sizeof(text) ? length + (size_t) used : length;
                groups++;
        }
        free(group);
        free(done);
        if (r == -ENOMEM)
                return r;
        return add_read(h, e, fact->key, error, groups == 1 ? first : text);
}

/* Intel's switch says when turbo is off, the generic one when it is on. */
static int take_turbo(struct hostfs *h, struct environment *e) {
        int64_t v = 0;
        if (hostfs_i64(h, &v, "/sys/devices/system/cpu/intel_pstate/no_turbo") == 0)
                return add_text(e, "turbo", v ? "off" : "on");
        int r = hostfs_i64(h, &v, "/sys/devices/system/cpu/cpufreq/boost");
        return add_read(h, e, "turbo", r, v ? "on" : "off");
}

/* It can be changed on some kernels only, which then have it under another name. */
static int take_idle_governor(struct hostfs *h, struct environment *e) {
        char line[64];
        int r = hostfs_line(h, line, sizeof(line), "/sys/devices/system/cpu/cpuidle/current_governor");
        if (r < 0)
                r = hostfs_line(h, line, sizeof(line), "/sys/devices/system/cpu/cpuidle/current_governor_ro");
        return add_read(h, e, "cpuidle_governor", r, line);
}

/* The value of the last KEY=VALUE of the kernel's command line. False: there is none. */
static bool find_parameter(const char *cmdline, const char *key, char *ret, size_t size) {
        size_t n = strlen(key);
        bool found = false;
        for (const char *at = cmdline; *at; at += strcspn(at, " "), at += strspn(at, " "))
                if (strncmp(at, key, n) == 0 && at[n] == '=') {
                        (void) snprintf(ret, size, "%.*s", (int) strcspn(at + n + 1, " "), at + n + 1);
                        found = true;
                }
        return found;
}

/* "none voluntary (full)" where debugfs can be read, else what the kernel's version and command line leave no doubt of.
 * Source: kernel/sched/debug.c, init/version-timestamp.c. */
static int take_preemption(struct hostfs *h, struct environment *e) {
        char line[TEXT_MAX], model[32];
        if (hostfs_line(h, line, sizeof(line), "/sys/kernel/debug/sched/preempt") == 0) {
                char *open = strchr(line, '('), *close = open ? strchr(open, ')') : NULL;
                if (close) {
                        *close = '\0';
                        return add_text(e, "preemption", open + 1);
                }
        }
        int r = hostfs_line(h, line, sizeof(line), "/proc/sys/kernel/version");
        if (r < 0) {
                add_unread(h, e, "preemption", r);
                return 0;
        }
        if (strstr(line, "PREEMPT_RT"))
                return add_text(e, "preemption", "rt");
        if (strstr(line, "PREEMPT_DYNAMIC")) {
                r = hostfs_line(h, line, sizeof(line), "/proc/cmdline");
                if (r == 0 && find_parameter(line, "preempt", model, sizeof(model)))
                        return add_text(e, "preemption", model);
                add_reason(e, "preemption",
                           "chosen at boot, and shown by /sys/kernel/debug/sched/preempt alone, which "
                           "cannot be read");
                return 0;
        }
        if (strstr(line, "PREEMPT"))
                return add_text(e, "preemption", "full");
        add_reason(e, "preemption", "none or voluntary: the kernel's version has the same form with both");
        return 0;
}

static int take_rcu_nocbs(struct hostfs *h, struct environment *e) {
        char line[TEXT_MAX], cpus[256] = "";
        int r = hostfs_line(h, line, sizeof(line), "/proc/cmdline");
        if (r == 0)
                (void) find_parameter(line, "rcu_nocbs", cpus, sizeof(cpus));
        return add_read(h, e, "rcu_nocbs_cpus", r, cpus);
}

/* The path behind "0::" (v2), or behind the line that has the controller "cpu" (v1), of /proc/self/cgroup. */
static bool find_group(const char *text, bool v2, char *ret, size_t size) {
        for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
                if (!path || path > line + strcspn(line, "\n"))
                        continue;
                bool fits = v2 && path == names + 1;
                for (const char *at = names + 1; !v2 && at < path; at += strcspn(at, ",:") + 1)
                        fits |= strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == ':');
                if (fits) {
                        (void) snprintf(ret, size, "%.*s", (int) strcspn(path + 1, "\n"), path + 1);
                        return true;
                }
        }
        return false;
}

/* The limits of a cgroup and of those above it, as "QUOTA PERIOD" in microseconds, from below; "max": none has one. */
static int read_limits(struct hostfs *h, const char *mount, char *group, bool v2, char *ret, size_t size) {
        char line[64];
        size_t length = 0, known = 0;
        int r = -ENOENT;
        for (bool top = false; !top;) {
                int64_t quota = -1, period = 0;
                top = group[0] == '\0' || strcmp(group, "/") == 0;
                if (top)
                        group[0] = '\0';
                if (v2)
                        r = hostfs_line(h, line, sizeof(line), "%s%s/cpu.max", mount, group);
                else {
                        r = hostfs_i64(h, &quota, "%s%s/cpu.cfs_quota_us", mount, group);
                        if (r == 0)
                                r = hostfs_i64(h, &period, "%s%s/cpu.cfs_period_us", mount, group);
                        (void) snprintf(line, sizeof(line), quota < 0 ? "max" : "%lld %lld", (long long) quota,
                                        (long long) period);
                }
                known += r == 0;
                if (r == 0 && strncmp(line, "max", 3) != 0) {
                        int used = snprintf(ret + length, size - length, "%s%s", length ? ", " : "", line);
                        if (used < 0 || (size_t) used >= size - length)
                                return -EFBIG;
                        length += (size_t) used;
                }
                char *slash = strrchr(group, '/');
                if (slash)
                        *slash = '\0';
        }
        if (known && length == 0)
                (void) snprintf(ret, size, "max");
        return known ? 0 : r;
}

static int take_cpu_limit(struct hostfs *h, struct environment *e) {
        static const struct {
                const char *mount;
                bool v2;
        } places[] = {{"/sys/fs/cgroup", true},
                      {"/sys/fs/cgroup/unified", true},
                      {"/sys/fs/cgroup/cpu", false},
                      {"/sys/fs/cgroup/cpu,cpuacct", false}};
        _cleanup_free_ char *text = NULL;
        char group[256], limits[256] = "";
        int r = hostfs_text(h, &text, "/proc/self/cgroup");
        if (r < 0) {
                add_unread(h, e, "cgroup_cpu_limit", r);
                return 0;
        }
        for (size_t i = 0; i < ELEMENTS(places); i++)
                if (find_group(text, places[i].v2, group, sizeof(group)) &&
                    read_limits(h, places[i].mount, group, places[i].v2, limits, sizeof(limits)) == 0)
                        return add_text(e, "cgroup_cpu_limit", limits);
        add_reason(e, "cgroup_cpu_limit",
                   "no cgroup of the daemon, nor one above it, has a CPU controller that can be read");
        return 0;
}

static int take_glibc(bool this_machine, struct environment *e) {
        if (this_machine)
                return add_text(e, "glibc", gnu_get_libc_version());
        add_reason(e, "glibc", "a captured tree carries no C library");
        return 0;
}

static int take_mitigations(struct hostfs *h, struct environment *e) {
        char **names = NULL, line[256];
        size_t n = 0;

        int r = hostfs_names(h, &names, &n, "/sys/devices/system/cpu/vulnerabilities");
        if (r < 0) {
                environment_reason(h, r, e->mitigations_reason);
                return 0;
        }
        e->mitigations = calloc(n ? n : 1, sizeof(e->mitigations[0]));
        for (size_t i = 0; e->mitigations && i < n; i++) {
                if (hostfs_line(h, line, sizeof(line), "/sys/devices/system/cpu/vulnerabilities/%s", names[i]) < 0)
                        continue;
                struct mitigation m = {.name = strdup(names[i]), .text = strdup(line)};
                e->mitigations[e->n_mitigations++] = m;
                if (!m.name || !m.text)
                        r = -ENOMEM;
        }
        hostfs_names_free(names, n);
        return e->mitigations ? r : -ENOMEM;
}

int environment_take_facts(struct hostfs *h, bool this_machine, const struct topology *t, struct environment *e) {
        static const struct per_cpu per_cpu[] = {
                {"cpufreq_driver", "cpufreq/scaling_driver", read_cpu_file},
                {"cpufreq_governor", "cpufreq/scaling_governor", read_cpu_file},
                {"cpufreq_min_khz", "cpufreq/scaling_min_freq", read_cpu_file},
                {"cpufreq_max_khz", "cpufreq/scaling_max_freq", read_cpu_file},
                {"cpufreq_energy_preference", "cpufreq/energy_performance_preference", read_cpu_file},
                {"cpuidle_states", "cpuidle", read_idle_states},
        };
        _Static_assert(ELEMENTS(files) + ELEMENTS(per_cpu) + 16 <= FACTS_MAX, "facts do not fit");

        e->facts = calloc(FACTS_MAX, sizeof(e->facts[0]));
        if (!e->facts)
                return -ENOMEM;
        int r = take_files(h, e);
        if (r == 0)
                r = take_machine(this_machine, e);
        if (r == 0)
                r = take_cpuinfo(h, e);
        for (size_t i = 0; r == 0 && i < ELEMENTS(per_cpu); i++)
                r = take_per_cpu(h, t, e, &per_cpu[i]);
        if (r == 0)
                r = take_turbo(h, e);
        if (r == 0)
                r = take_idle_governor(h, e);
        if (r == 0)
                r = take_preemption(h, e);
        if (r == 0)
                r = take_rcu_nocbs(h, e);
        if (r == 0)
                r = take_cpu_limit(h, e);
        if (r == 0)
                r = take_glibc(this_machine, e);
        return r == 0 ? take_mitigations(h, e) : r;
}

/* The settings are the first facts of each snapshot, in one order. */
int environment_observe(const char *root, struct environment *before) {
        _cleanup_(hostfs_deinit) struct hostfs h = {.root_fd = -1};
        struct environment now = {.facts = calloc(FACTS_MAX, sizeof(struct fact))};
        int r = now.facts ? hostfs_init(&h, root) : -ENOMEM;
        if (r == 0)
                r = take_files(&h, &now);
        for (size_t i = 0; i < now.n_facts; i++) {
                if (r == 0)
                        before->facts[i].changed |= !fact_equal(&before->facts[i], &now.facts[i]);
                free(now.facts[i].text);
        }
        free(now.facts);
        return r;
}
