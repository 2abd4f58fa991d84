/* SPDX-License-Identifier: MIT */
/*
 * Facts and settings of the host (schema/facts.h), which should stay the same from one run to the next. Most of them
 * are a row in a table; a few need several files.
 */

#include "daemon/host/environment/environment-internal.h"
#include "daemon/host/environment/inherited.h"

#include "schema/facts.h"
#include "schema/util.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <string.h>
#include <sys/timex.h>
#include <systemd/sd-id128.h>

#define TEXT_MAX 4096 /* a kernel's command line is at most 2 or 4 KiB */

/* Names ipclab's own view of the machine id, which itself must not be shown (machine-id(5)). */
#define MACHINE_APP SD_ID128_MAKE(5d, 2c, 0e, 71, 9a, 44, 4b, 0f, 8e, 6b, 1f, 33, c4, 7a, 90, e2)

void environment_reason(const struct hostfs *h, int error, char *ret) {
        (void) snprintf(ret, 160, "cannot read %.90s: %s", h->path,
                        error == -EBADMSG ? "not in the form that the kernel writes" : strerrordesc_np(-error));
}

static struct fact *add_fact(struct environment *e, enum fact_name name) {
        struct fact *f = &e->facts[name];
        *f = (struct fact){.key = fact_rows[name].name, .is_number = fact_rows[name].form == FACT_NUMBER};
        return f;
}

static int add_text(struct environment *e, enum fact_name name, const char *text) {
        struct fact *f = add_fact(e, name);
        f->text = strdup(text);
        return f->text ? 0 : -ENOMEM;
}

static int add_reason(struct environment *e, enum fact_name name, const char *reason) {
        (void) snprintf(add_fact(e, name)->reason, sizeof(e->facts[0].reason), "%s", reason);
        return 0;
}

static int add_unread(const struct hostfs *h, struct environment *e, enum fact_name name, int error) {
        struct fact *f = add_fact(e, name);
        environment_reason(h, error, f->reason);
        return 0;
}

static int add_read(const struct hostfs *h, struct environment *e, enum fact_name name, int r, const char *text) {
        return r == 0 ? add_text(e, name, text) : add_unread(h, e, name, r);
}

static int take_files(struct hostfs *h, struct environment *e) {
        char line[TEXT_MAX];
        for (enum fact_name name = 0; name < FACT_COUNT; name++) {
                const char *path = fact_rows[name].path;
                int r;
                if (!path)
                        continue;
                if (fact_rows[name].form == FACT_NUMBER) {
                        struct fact *f = add_fact(e, name);
                        r = hostfs_i64(h, &f->number, "%s", path);
                        if (r < 0)
                                environment_reason(h, r, f->reason);
                        continue;
                }
                r = hostfs_line(h, line, sizeof(line), "%s", path);
                if (r == 0 && fact_rows[name].form == FACT_CHOICE)
                        r = hostfs_choice(line);
                for (char *tab = r == 0 ? strchr(line, '\t') : NULL; tab; tab = strchr(tab, '\t'))
                        *tab = ' ';
                r = add_read(h, e, name, r, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_machine(bool this_machine, struct environment *e) {
        char text[SD_ID128_STRING_MAX];
        sd_id128_t id;

        if (!this_machine)
                return add_reason(e, FACT_MACHINE, "a captured tree carries no machine id");
        int r = sd_id128_get_machine_app_specific(MACHINE_APP, &id);
        if (r < 0) {
                char reason[160];
                (void) snprintf(reason, sizeof(reason), "cannot read the machine id: %s", strerrordesc_np(-r));
                return add_reason(e, FACT_MACHINE, reason);
        }
        return add_text(e, FACT_MACHINE, sd_id128_to_string(id, text));
}

/* ARM has no model name: implementer and part identify the model. */
static int take_cpu_model(const char *cpuinfo, struct environment *e) {
        char model[256], implementer[64], part[64];

        if (hostfs_field(cpuinfo, "model name", model, sizeof(model)) == 0 ||
            hostfs_field(cpuinfo, "cpu", model, sizeof(model)) == 0)
                return add_text(e, FACT_CPU_MODEL, model);
        if (hostfs_field(cpuinfo, "CPU implementer", implementer, sizeof(implementer)) == 0 &&
            hostfs_field(cpuinfo, "CPU part", part, sizeof(part)) == 0) {
                (void) snprintf(model, sizeof(model), "implementer %s part %s", implementer, part);
                return add_text(e, FACT_CPU_MODEL, model);
        }
        return add_reason(e, FACT_CPU_MODEL, "/proc/cpuinfo names no model");
}

/* Vendor and product of the firmware's tables when they are there: a hypervisor introduces itself with them. */
static int take_virtualization(struct hostfs *h, const char *cpuinfo, struct environment *e) {
        char flags[8192], vendor[96] = "", product[96] = "", text[256];
        bool x86 = hostfs_field(cpuinfo, "flags", flags, sizeof(flags)) == 0;

        if (hostfs_line(h, text, sizeof(text), "/sys/hypervisor/type") == 0)
                return add_text(e, FACT_VIRTUALIZATION, text);
        if (!x86)
                return add_reason(e, FACT_VIRTUALIZATION, "this architecture's /proc/cpuinfo does not report it");
        if (!strstr(flags, "hypervisor"))
                return add_text(e, FACT_VIRTUALIZATION, "none");
        (void) hostfs_line(h, vendor, sizeof(vendor), "/sys/class/dmi/id/sys_vendor");
        (void) hostfs_line(h, product, sizeof(product), "/sys/class/dmi/id/product_name");
        (void) snprintf(text, sizeof(text), "%s%s%s", vendor, vendor[0] && product[0] ? " " : "", product);
        return add_text(e, FACT_VIRTUALIZATION, text[0] ? text : "hypervisor of unknown make");
}

static int take_cpuinfo(struct hostfs *h, struct environment *e) {
        static const enum fact_name names[] = {FACT_CPU_MODEL, FACT_MICROCODE, FACT_VIRTUALIZATION};
        _cleanup_free_ char *text = NULL;
        char line[64];

        int r = hostfs_text(h, &text, "/proc/cpuinfo");
        if (r < 0) {
                for (size_t i = 0; i < ELEMENTS(names); i++)
                        add_unread(h, e, names[i], r);
                return 0;
        }
        r = take_cpu_model(text, e);
        if (r < 0)
                return r;
        if (hostfs_field(text, "microcode", line, sizeof(line)) == 0)
                r = add_text(e, FACT_MICROCODE, line);
        else
                add_reason(e, FACT_MICROCODE, "/proc/cpuinfo names no microcode revision");
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
        enum fact_name name;
        const char *file;
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
        return add_read(h, e, fact->name, error, groups == 1 ? first : text);
}

/* Interrupts whose routes are read every second, at some 10 us each. */
#define IRQS_OBSERVED_MAX 64u

/* Counts on each CPU of the topology. An interrupt that is gone since its name was listed is none. -E2BIG: there are
 * more than `most`. */
static int count_irqs(struct hostfs *h, const struct topology *t, size_t most, unsigned *counts) {
        char **names = NULL;
        size_t n = 0;
        int r = hostfs_names(h, &names, &n, "/proc/irq");
        size_t n_irqs = 0;
        for (size_t i = 0; r == 0 && i < n; i++)
                n_irqs += names[i][strspn(names[i], "0123456789")] == '\0';
        if (r == 0 && n_irqs > most)
                r = -E2BIG;
        for (size_t i = 0; r == 0 && i < n; i++) {
                _cleanup_free_ int *cpus = NULL;
                size_t n_cpus = 0;
                if (names[i][strspn(names[i], "0123456789")] != '\0')
                        continue;
                /* the CPUs that it is really sent to; older kernels have only those that it may be sent to */
                r = hostfs_list(h, &cpus, &n_cpus, "/proc/irq/%s/effective_affinity_list", names[i]);
                if (r == -ENOENT)
                        r = hostfs_list(h, &cpus, &n_cpus, "/proc/irq/%s/smp_affinity_list", names[i]);
                for (size_t k = 0; r == 0 && k < n_cpus; k++)
                        for (size_t cpu = 0; cpu < t->n_cpus; cpu++)
                                counts[cpu] += t->cpus[cpu].id == cpus[k];
                r = r == -ENOENT ? 0 : r;
        }
        if (names)
                hostfs_names_free(names, n);
        return r;
}

/* "9 0; 10 1-3": CPUs with as many stand together. */
static int print_counts(const struct topology *t, const unsigned *counts, char **ret) {
        _cleanup_free_ int *group = calloc(t->n_cpus + 1, sizeof(int));
        _cleanup_free_ char *text = NULL;
        char ids[128];
        size_t length = 0;
        FILE *out = group ? open_memstream(&text, &length) : NULL;
        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_cpus; i++) {
                size_t n = 0, k = 0;
                while (k < i && (!t->cpus[k].online || counts[k] != counts[i]))
                        k++;
                if (!t->cpus[i].online || k < i)
                        continue;
                for (; k < t->n_cpus; k++)
                        if (t->cpus[k].online && counts[k] == counts[i])
                                group[n++] = t->cpus[k].id;
                hostfs_format_list(group, n, ids, sizeof(ids));
                (void) fprintf(out, "%s%u %s", ftell(out) > 0 ? "; " : "", counts[i], ids);
        }
        if (fclose(out) != 0)
                return -ENOMEM;
        *ret = util_steal(&text);
        return 0;
}

/* There is no fact where there are more than `most` interrupts. */
static int take_device_irqs(struct hostfs *h, const struct topology *t, size_t most, struct environment *e) {
        _cleanup_free_ unsigned *counts = calloc(t->n_cpus + 1, sizeof(unsigned));
        if (!counts)
                return -ENOMEM;
        int r = count_irqs(h, t, most, counts);
        if (r == -E2BIG)
                return 0;
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return add_unread(h, e, FACT_DEVICE_IRQS, r);
        return print_counts(t, counts, &add_fact(e, FACT_DEVICE_IRQS)->text);
}

#define HUGEPAGES "/sys/kernel/mm/transparent_hugepage"

/* 64 of "hugepages-64kB"; 0: the folder is of no size. */
static uint64_t folder_kb(const char *name) {
        static const char prefix[] = "hugepages-";
        if (strncmp(name, prefix, strlen(prefix)) != 0)
                return 0;
        char *end = NULL;
        uint64_t kb = strtoull(name + strlen(prefix), &end, 10);
        return strcmp(end, "kB") == 0 ? kb : 0;
}

static int compare_sizes(const void *a, const void *b) {
        uint64_t x = folder_kb(*(char *const *) a), y = folder_kb(*(char *const *) b);
        return (x > y) - (x < y);
}

/* "64kB always, 2048kB inherit", without those that are "never". A size may lack the file: one of two pages, say, is of
 * shared memory only. -ENODATA: all lack it. */
static int read_hugepage_sizes(struct hostfs *h, char *const *names, size_t n, const char *file, char *ret,
                               size_t size) {
        char line[128];
        size_t length = 0, known = 0;
        for (size_t i = 0; i < n; i++) {
                uint64_t kb = folder_kb(names[i]);
                if (kb == 0)
                        continue;
                int r = hostfs_line(h, line, sizeof(line), HUGEPAGES "/%s/%s", names[i], file);
                if (r == -ENOENT)
                        continue;
                if (r == 0)
                        r = hostfs_choice(line);
                if (r < 0)
                        return r;
                known++;
                if (strcmp(line, "never") == 0)
                        continue;
                int used = snprintf(ret + length, size - length, "%s%" PRIu64 "kB %s", length ? ", " : "", kb, line);
                if (used < 0 || (size_t) used >= size - length)
                        return -EFBIG;
                length += (size_t) used;
        }
        if (known && length == 0)
                (void) snprintf(ret, size, "never");
        return known ? 0 : -ENODATA;
}

/* Since 6.8 the kernel decides by the size of a page, since 6.11 for shared memory, too; each size may leave it to the
 * setting of all (inherit). */
static int take_hugepage_sizes(struct hostfs *h, struct environment *e) {
        static const struct {
                enum fact_name name;
                const char *file;
        } facts[] = {{FACT_THP_SIZES, "enabled"}, {FACT_THP_SHMEM_SIZES, "shmem_enabled"}};
        char **names = NULL, text[1024], reason[160];
        size_t n = 0;
        int listed = hostfs_names(h, &names, &n, HUGEPAGES), r = listed == -ENOMEM ? listed : 0;
        if (listed == 0)
                qsort(names, n, sizeof(names[0]), compare_sizes);
        for (size_t i = 0; r == 0 && i < ELEMENTS(facts); i++) {
                int found = listed == 0 ? read_hugepage_sizes(h, names, n, facts[i].file, text, sizeof(text)) : listed;
                if (found == -ENODATA) {
                        (void) snprintf(reason, sizeof(reason),
                                        "this kernel has one setting for all sizes: there is no " HUGEPAGES
                                        "/hugepages-*kB/%s",
                                        facts[i].file);
                        add_reason(e, facts[i].name, reason);
                } else
                        r = found == -ENOMEM ? found : add_read(h, e, facts[i].name, found, text);
        }
        if (listed == 0)
                hostfs_names_free(names, n);
        return r;
}

/* Intel's switch is 1 when turbo is off, the generic one when it is on. */
static int take_turbo(struct hostfs *h, struct environment *e) {
        int64_t v = 0;
        if (hostfs_i64(h, &v, "/sys/devices/system/cpu/intel_pstate/no_turbo") == 0)
                return add_text(e, FACT_TURBO, v ? "off" : "on");
        int r = hostfs_i64(h, &v, "/sys/devices/system/cpu/cpufreq/boost");
        return add_read(h, e, FACT_TURBO, r, v ? "on" : "off");
}

/* It can be changed on some kernels only, which then have it under another name. */
static int take_idle_governor(struct hostfs *h, struct environment *e) {
        char line[64];
        int r = hostfs_line(h, line, sizeof(line), "/sys/devices/system/cpu/cpuidle/current_governor");
        if (r < 0)
                r = hostfs_line(h, line, sizeof(line), "/sys/devices/system/cpu/cpuidle/current_governor_ro");
        return add_read(h, e, FACT_CPUIDLE_GOVERNOR, r, line);
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

/* "none voluntary (full)" where debugfs can be read, else derived from the kernel's version and command line.
 * Source: kernel/sched/debug.c, init/version-timestamp.c. */
static int take_preemption(struct hostfs *h, struct environment *e) {
        char line[TEXT_MAX], model[32];
        if (hostfs_line(h, line, sizeof(line), "/sys/kernel/debug/sched/preempt") == 0) {
                char *open = strchr(line, '('), *close = open ? strchr(open, ')') : NULL;
                if (close) {
                        *close = '\0';
                        return add_text(e, FACT_PREEMPTION, open + 1);
                }
        }
        int r = hostfs_line(h, line, sizeof(line), "/proc/sys/kernel/version");
        if (r < 0)
                return add_unread(h, e, FACT_PREEMPTION, r);
        if (strstr(line, "PREEMPT_RT"))
                return add_text(e, FACT_PREEMPTION, "rt");
        if (strstr(line, "PREEMPT_DYNAMIC")) {
                r = hostfs_line(h, line, sizeof(line), "/proc/cmdline");
                if (r == 0 && find_parameter(line, "preempt", model, sizeof(model)))
                        return add_text(e, FACT_PREEMPTION, model);
                return add_reason(e, FACT_PREEMPTION,
                                  "chosen at boot, and shown by /sys/kernel/debug/sched/preempt alone, which "
                                  "cannot be read");
        }
        if (strstr(line, "PREEMPT"))
                return add_text(e, FACT_PREEMPTION, "full");
        return add_reason(e, FACT_PREEMPTION, "none or voluntary: the kernel's version has the same form with both");
}

static int take_rcu_nocbs(struct hostfs *h, struct environment *e) {
        char line[TEXT_MAX], cpus[256] = "";
        int r = hostfs_line(h, line, sizeof(line), "/proc/cmdline");
        if (r == 0)
                (void) find_parameter(line, "rcu_nocbs", cpus, sizeof(cpus));
        return add_read(h, e, FACT_RCU_NOCBS_CPUS, r, cpus);
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
        if (r < 0)
                return add_unread(h, e, FACT_CGROUP_CPU_LIMIT, r);
        for (size_t i = 0; i < ELEMENTS(places); i++)
                if (find_group(text, places[i].v2, group, sizeof(group)) &&
                    read_limits(h, places[i].mount, group, places[i].v2, limits, sizeof(limits)) == 0)
                        return add_text(e, FACT_CGROUP_CPU_LIMIT, limits);
        return add_reason(e, FACT_CGROUP_CPU_LIMIT,
                          "no cgroup of the daemon, nor one above it, has a CPU controller that can be read");
}

/* audit=0 turns auditing off for good; every other value leaves it to processes with CAP_AUDIT_CONTROL, which alone can
 * read the state.
 * Source: audit_enable() in kernel/audit.c, Documentation/admin-guide/kernel-parameters.txt. */
static int take_audit(struct hostfs *h, struct environment *e) {
        char line[TEXT_MAX], value[32] = "";
        int r = hostfs_line(h, line, sizeof(line), "/proc/cmdline");
        if (r < 0)
                return add_unread(h, e, FACT_AUDIT, r);
        if (find_parameter(line, "audit", value, sizeof(value)) &&
            (strcmp(value, "0") == 0 || strcmp(value, "off") == 0))
                return add_text(e, FACT_AUDIT, "off");
        return add_reason(e, FACT_AUDIT, "the kernel shows only processes with CAP_AUDIT_CONTROL whether it audits");
}

static int take_ntp(bool this_machine, struct environment *e) {
        struct timex now = {.modes = 0};
        if (!this_machine)
                return add_reason(e, FACT_NTP, "a captured tree has no clock");
        if (adjtimex(&now) < 0) {
                (void) snprintf(add_fact(e, FACT_NTP)->reason, sizeof(e->facts[0].reason), "adjtimex: %s",
                                strerrordesc_np(errno));
                return 0;
        }
        return add_text(e, FACT_NTP, now.status & STA_UNSYNC ? "unsynchronized" : "synchronized");
}

static int take_inherited(bool this_machine, struct environment *e) {
        static const struct {
                enum fact_name name;
                int (*read)(char ret[static INHERITED_REASON_MAX]);
        } inherited[] = {{FACT_AGENT_SCHEDULING, inherited_scheduling}, {FACT_AGENT_SECCOMP, inherited_seccomp}};
        int r = 0;
        for (size_t i = 0; r == 0 && i < ELEMENTS(inherited); i++) {
                char text[INHERITED_REASON_MAX];
                if (!this_machine)
                        add_reason(e, inherited[i].name, "a captured tree has no agents");
                else if (inherited[i].read(text) < 0)
                        add_reason(e, inherited[i].name, text);
                else
                        r = add_text(e, inherited[i].name, text);
        }
        return r;
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

/* What an administrator, a daemon of theirs or the kernel may change while a run goes on. */
static int take_settings(struct hostfs *h, bool this_machine, const struct topology *t, struct environment *e) {
        static const struct per_cpu per_cpu[] = {
                {FACT_CPUFREQ_DRIVER, "cpufreq/scaling_driver", read_cpu_file},
                {FACT_CPUFREQ_GOVERNOR, "cpufreq/scaling_governor", read_cpu_file},
                {FACT_CPUFREQ_MIN_KHZ, "cpufreq/scaling_min_freq", read_cpu_file},
                {FACT_CPUFREQ_MAX_KHZ, "cpufreq/scaling_max_freq", read_cpu_file},
                {FACT_CPUFREQ_ENERGY_PREFERENCE, "cpufreq/energy_performance_preference", read_cpu_file},
                {FACT_CPUIDLE_STATES, "cpuidle", read_idle_states},
        };
        e->facts = calloc(FACT_COUNT, sizeof(e->facts[0]));
        if (!e->facts)
                return -ENOMEM;
        e->n_facts = FACT_COUNT;
        int r = take_files(h, e);
        for (size_t i = 0; r == 0 && i < ELEMENTS(per_cpu); i++)
                r = take_per_cpu(h, t, e, &per_cpu[i]);
        if (r == 0)
                r = take_hugepage_sizes(h, e);
        if (r == 0)
                r = take_turbo(h, e);
        if (r == 0)
                r = take_idle_governor(h, e);
        if (r == 0)
                r = take_preemption(h, e);
        if (r == 0)
                r = take_ntp(this_machine, e);
        return r == 0 ? take_cpu_limit(h, e) : r;
}

int environment_take_facts(struct hostfs *h, bool this_machine, const struct topology *t, struct environment *e) {
        int r = take_settings(h, this_machine, t, e);
        if (r == 0)
                r = take_machine(this_machine, e);
        if (r == 0)
                r = take_cpuinfo(h, e);
        if (r == 0)
                r = take_device_irqs(h, t, HOSTFS_NAMES_MAX, e);
        if (r == 0)
                r = take_rcu_nocbs(h, e);
        if (r == 0 && this_machine)
                r = add_text(e, FACT_GLIBC, gnu_get_libc_version());
        else if (r == 0)
                add_reason(e, FACT_GLIBC, "a captured tree carries no C library");
        if (r == 0)
                r = take_audit(h, e);
        if (r == 0)
                r = take_inherited(this_machine, e);
        return r == 0 ? take_mitigations(h, e) : r;
}

int environment_observe(const char *root, const struct topology *t, struct environment *before) {
        _cleanup_(hostfs_deinit) struct hostfs h = {.root_fd = -1};
        struct environment now = {0};
        int r = hostfs_init(&h, root);
        if (r == 0)
                r = take_settings(&h, h.root_fd < 0, t, &now);
        if (r == 0)
                r = take_device_irqs(&h, t, IRQS_OBSERVED_MAX, &now);
        for (size_t i = 0; i < now.n_facts; i++) {
                if (r == 0 && now.facts[i].key)
                        before->facts[i].changed |= !fact_equal(&before->facts[i], &now.facts[i]);
                free(now.facts[i].text);
        }
        free(now.facts);
        return r;
}
