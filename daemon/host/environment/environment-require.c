/* SPDX-License-Identifier: MIT */
/*
 * A spec's preconditions, checked before each run: one that does not hold fails the run, with the command that sets it
 * in the error. Nothing is set here. Called by the scheduler.
 *
 * Source: Documentation/admin-guide/sysctl/kernel.rst, Documentation/ABI/testing/sysfs-devices-system-cpu.
 */

#include "daemon/host/environment/build.h"
#include "daemon/host/environment/environment-internal.h"
#include "schema/detail.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

#define NUMA_BALANCING_NORMAL 1 /* bit; 2 is memory tiering alone */

static int check_numa_balancing(struct hostfs *h, bool wanted, char *ret_detail) {
        int64_t v = 0;
        int r = hostfs_i64(h, &v, "/proc/sys/kernel/numa_balancing");
        if (r == -ENOENT && !wanted)
                return 0;
        if (r == -ENOENT)
                (void) snprintf(ret_detail, DETAIL_MAX,
                                "numa_balancing is required to be on, but this kernel has no automatic NUMA balancing "
                                "(built without CONFIG_NUMA_BALANCING)");
        else if (r < 0)
                (void) snprintf(ret_detail, DETAIL_MAX,
                                "numa_balancing is required to be %s, but %.128s cannot be read: %s",
                                wanted ? "on" : "off", h->path, strerrordesc_np(-r));
        else if (wanted && !(v & NUMA_BALANCING_NORMAL))
                (void) snprintf(ret_detail, DETAIL_MAX,
                                "numa_balancing is required to be on, but kernel.numa_balancing is %" PRId64
                                "; to set it: sysctl kernel.numa_balancing=1",
                                v);
        else if (!wanted && v != 0)
                (void) snprintf(ret_detail, DETAIL_MAX,
                                "numa_balancing is required to be off, but kernel.numa_balancing is %" PRId64
                                "; to set it: sysctl kernel.numa_balancing=0",
                                v);
        else
                return 0;
        return -EPERM;
}

/* A machine without SMT meets "off" and cannot meet "on". */
static int check_smt(struct hostfs *h, bool wanted, char *ret_detail) {
        char control[32] = "not there";
        int64_t active = 0;
        int r = hostfs_i64(h, &active, "/sys/devices/system/cpu/smt/active");
        if (r < 0 && r != -ENOENT) {
                (void) snprintf(ret_detail, DETAIL_MAX,
                                "smt is required to be %s, but %.128s cannot be "
                                "read: %s",
                                wanted ? "on" : "off", h->path, strerrordesc_np(-r));
                return -EPERM;
        }
        if ((active != 0) == wanted)
                return 0;
        (void) hostfs_line(h, control, sizeof(control), "/sys/devices/system/cpu/smt/control"); /* for the words only */
        (void) snprintf(ret_detail, DETAIL_MAX,
                        "smt is required to be %s, but simultaneous multithreading is %s (smt/control: %s); to set it: "
                        "echo %s > /sys/devices/system/cpu/smt/control",
                        wanted ? "on" : "off", active ? "in use" : "not in use", control, wanted ? "on" : "off");
        return -EPERM;
}

/* Every CPU that has a governor must have this one, and at least one must have any. */
static int check_governor(struct hostfs *h, const char *wanted, char *ret_detail) {
        _cleanup_free_ int *cpus = NULL;
        size_t n = 0, found = 0;
        char governor[64];

        int r = hostfs_list(h, &cpus, &n, "/sys/devices/system/cpu/online");
        for (size_t i = 0; r == 0 && i < n; i++) {
                r = hostfs_line(h, governor, sizeof(governor), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
                                cpus[i]);
                if (r == 0 && strcmp(governor, wanted) != 0) {
                        (void) snprintf(ret_detail, DETAIL_MAX,
                                        "governor %s is required, but CPU %d has %s; to set it: cpupower frequency-set "
                                        "-g %s",
                                        wanted, cpus[i], governor, wanted);
                        return -EPERM;
                }
                found += r == 0;
                if (r == -ENOENT)
                        r = 0;
        }
        if (r == -ENOMEM)
                return r;
        if (r == 0 && found > 0)
                return 0;
        if (r == 0)
                (void) snprintf(ret_detail, DETAIL_MAX,
                                "governor %s is required, but no CPU of this machine has one (no cpufreq driver)",
                                wanted);
        else
                (void) snprintf(ret_detail, DETAIL_MAX, "governor %s is required, but %.128s cannot be read: %s",
                                wanted, h->path, strerrordesc_np(-r));
        return -EPERM;
}

int environment_check(const char *root, const struct spec_require *require, char *ret_detail) {
        _cleanup_(hostfs_deinit) struct hostfs h = {};

        int r = hostfs_init(&h, root);
        if (r == 0 && require->numa_balancing != TOGGLE_UNSET)
                r = check_numa_balancing(&h, require->numa_balancing == TOGGLE_ON, ret_detail);
        if (r == 0 && require->smt != TOGGLE_UNSET)
                r = check_smt(&h, require->smt == TOGGLE_ON, ret_detail);
        if (r == 0 && require->governor[0])
                r = check_governor(&h, require->governor, ret_detail);
        return r;
}

#define SHOWN 120 /* characters of a value in a sentence: a kernel's command line has thousands */

static int fail_fact(const struct spec_fact *f, const char *value, const char *reason, char *ret_detail) {
        const char *group = f->group == GROUP_BUILD ? "build." : f->group == GROUP_MITIGATIONS ? "mitigations." : "";
        char wanted[32];
        (void) snprintf(wanted, sizeof(wanted), "%" PRId64, f->number);
        (void) snprintf(ret_detail, DETAIL_MAX, "%s%s is required to be %.*s, but it is %s%.*s", group, f->name, SHOWN,
                        f->text ? f->text : wanted, value ? "" : "not known: ", SHOWN, value ? value : reason);
        return -EPERM;
}

static int check_fact(const struct environment *e, const struct spec_fact *wanted, char *ret_detail) {
        char number[32];
        for (size_t i = 0; i < e->n_facts; i++) {
                const struct fact *f = &e->facts[i];
                if (strcmp(f->key, wanted->name) != 0)
                        continue;
                (void) snprintf(number, sizeof(number), "%" PRId64, f->number);
                const char *value = f->reason[0] ? NULL : f->is_number ? number : f->text;
                if (value && (f->is_number ? f->number == wanted->number : strcmp(value, wanted->text) == 0))
                        return 0;
                return fail_fact(wanted, value, f->reason, ret_detail);
        }
        return fail_fact(wanted, NULL, "this version does not read it", ret_detail);
}

static int check_build(const struct build *b, const struct spec_fact *wanted, char *ret_detail) {
        for (unsigned i = 0; i < BUILD_COUNT; i++) {
                if (strcmp(build_rows[i].name, wanted->name) != 0)
                        continue;
                const char *reason, *value = build_value(b, (enum build_fact) i, &reason);
                return value && strcmp(value, wanted->text) == 0 ? 0 : fail_fact(wanted, value, reason, ret_detail);
        }
        return fail_fact(wanted, NULL, "this version has no such field", ret_detail);
}

static int check_mitigation(const struct environment *e, const struct spec_fact *wanted, char *ret_detail) {
        for (size_t i = 0; i < e->n_mitigations; i++)
                if (strcmp(e->mitigations[i].name, wanted->name) == 0)
                        return strcmp(e->mitigations[i].text, wanted->text) == 0
                                       ? 0
                                       : fail_fact(wanted, e->mitigations[i].text, NULL, ret_detail);
        return fail_fact(wanted, NULL, e->mitigations_reason[0] ? e->mitigations_reason : "this kernel has none such",
                         ret_detail);
}

int environment_check_facts(const struct environment *e, const struct build *b, const struct spec *spec,
                            char *ret_detail) {
        int r = 0;
        for (size_t i = 0; r == 0 && i < spec->n_facts; i++) {
                const struct spec_fact *wanted = &spec->facts[i];
                r = wanted->group == GROUP_BUILD         ? check_build(b, wanted, ret_detail)
                    : wanted->group == GROUP_MITIGATIONS ? check_mitigation(e, wanted, ret_detail)
                                                         : check_fact(e, wanted, ret_detail);
        }
        return r;
}
