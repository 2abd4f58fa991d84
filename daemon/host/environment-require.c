/* SPDX-License-Identifier: MIT */
/*
 * A spec's preconditions, looked at before each run: what does not hold fails the run, in words that say how to set it.
 * Nothing is set here. Called by the scheduler.
 *
 * Source: Documentation/admin-guide/sysctl/kernel.rst, Documentation/ABI/testing/sysfs-devices-system-cpu.
 */

#include "daemon/host/environment.h"
#include "daemon/host/hostfs.h"
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
                (void) snprintf(ret_detail, ENVIRONMENT_DETAIL_MAX,
                                "numa_balancing is required to be on, but this kernel has no automatic NUMA balancing "
                                "(built without CONFIG_NUMA_BALANCING)");
        else if (r < 0)
                (void) snprintf(ret_detail, ENVIRONMENT_DETAIL_MAX,
                                "numa_balancing is required to be %s, but %.128s cannot be read: %s",
                                wanted ? "on" : "off", h->path, strerrordesc_np(-r));
        else if (wanted && !(v & NUMA_BALANCING_NORMAL))
                (void) snprintf(ret_detail, ENVIRONMENT_DETAIL_MAX,
                                "numa_balancing is required to be on, but kernel.numa_balancing is %" PRId64
                                "; to set it: sysctl kernel.numa_balancing=1",
                                v);
        else if (!wanted && v != 0)
                (void) snprintf(ret_detail, ENVIRONMENT_DETAIL_MAX,
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
                (void) snprintf(ret_detail, ENVIRONMENT_DETAIL_MAX,
                                "smt is required to be %s, but %.128s cannot be "
                                "read: %s",
                                wanted ? "on" : "off", h->path, strerrordesc_np(-r));
                return -EPERM;
        }
        if ((active != 0) == wanted)
                return 0;
        (void) hostfs_line(h, control, sizeof(control), "/sys/devices/system/cpu/smt/control"); /* for the words only */
        (void) snprintf(ret_detail, ENVIRONMENT_DETAIL_MAX,
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
                        (void) snprintf(ret_detail, ENVIRONMENT_DETAIL_MAX,
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
                (void) snprintf(ret_detail, ENVIRONMENT_DETAIL_MAX,
                                "governor %s is required, but no CPU of this machine has one (no cpufreq driver)",
                                wanted);
        else
                (void) snprintf(ret_detail, ENVIRONMENT_DETAIL_MAX,
                                "governor %s is required, but %.128s cannot be read: %s", wanted, h->path,
                                strerrordesc_np(-r));
        return -EPERM;
}

int environment_check(const char *root, const struct spec_require *require, char *ret_detail) {
        _cleanup_(hostfs_deinit) struct hostfs h;

        int r = hostfs_init(&h, root);
        if (r == 0 && require->numa_balancing != TOGGLE_UNSET)
                r = check_numa_balancing(&h, require->numa_balancing == TOGGLE_ON, ret_detail);
        if (r == 0 && require->smt != TOGGLE_UNSET)
                r = check_smt(&h, require->smt == TOGGLE_ON, ret_detail);
        if (r == 0 && require->governor[0])
                r = check_governor(&h, require->governor, ret_detail);
        return r;
}
