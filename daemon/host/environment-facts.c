/* SPDX-License-Identifier: MIT */
/*
 * What the host is and how it is set: what should stay the same from one run to the next. Most of it is a row in a
 * table; a few facts need a look at several files.
 */

#include "daemon/host/environment-internal.h"

#include "schema/util.h"

#include <string.h>
#include <systemd/sd-id128.h>

#define FACTS_MAX 64
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
        {"clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource", KIND_TEXT},
        {"smt", "/sys/devices/system/cpu/smt/control", KIND_TEXT},
        {"transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled", KIND_CHOICE},
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

/* One line for all CPUs: "performance", or "performance 0-3; powersave 4-7". */
static int take_per_cpu(struct hostfs *h, const struct topology *t, struct environment *e, const char *key,
                        const char *file) {
        char text[1024] = "", line[64], first[64] = "", ids[128];
        int *group = calloc(t->n_cpus, sizeof(int));
        bool *done = calloc(t->n_cpus, sizeof(bool));
        size_t length = 0, groups = 0;
        int r = group && done ? -ENOENT : -ENOMEM, error = 0;

        for (size_t i = 0; r != -ENOMEM && i < t->n_cpus; i++) {
                size_t n = 0;
                if (!t->cpus[i].online || done[i])
                        continue;
                error = hostfs_line(h, first, sizeof(first), "/sys/devices/system/cpu/cpu%d/cpufreq/%s", t->cpus[i].id,
                                    file);
                if (error < 0)
                        break;
                for (size_t k = i; k < t->n_cpus; k++)
                        if (t->cpus[k].online && !done[k] &&
                            hostfs_line(h, line, sizeof(line), "/sys/devices/system/cpu/cpu%d/cpufreq/%s",
                                        t->cpus[k].id, file) == 0 &&
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
        return add_read(h, e, key, error, groups == 1 ? first : text);
}

/* Intel's switch says when turbo is off, the generic one when it is on. */
static int take_turbo(struct hostfs *h, struct environment *e) {
        int64_t v = 0;
        if (hostfs_i64(h, &v, "/sys/devices/system/cpu/intel_pstate/no_turbo") == 0)
                return add_text(e, "turbo", v ? "off" : "on");
        int r = hostfs_i64(h, &v, "/sys/devices/system/cpu/cpufreq/boost");
        return add_read(h, e, "turbo", r, v ? "on" : "off");
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
        static const char *const per_cpu[][2] = {
                {"cpufreq_driver", "scaling_driver"},
                {"cpufreq_governor", "scaling_governor"},
                {"cpufreq_min_khz", "scaling_min_freq"},
                {"cpufreq_max_khz", "scaling_max_freq"},
        };
        _Static_assert(ELEMENTS(files) + ELEMENTS(per_cpu) + 8 <= FACTS_MAX, "facts do not fit");

        e->facts = calloc(FACTS_MAX, sizeof(e->facts[0]));
        if (!e->facts)
                return -ENOMEM;
        int r = take_files(h, e);
        if (r == 0)
                r = take_machine(this_machine, e);
        if (r == 0)
                r = take_cpuinfo(h, e);
        for (size_t i = 0; r == 0 && i < ELEMENTS(per_cpu); i++)
                r = take_per_cpu(h, t, e, per_cpu[i][0], per_cpu[i][1]);
        if (r == 0)
                r = take_turbo(h, e);
        return r == 0 ? take_mitigations(h, e) : r;
}
