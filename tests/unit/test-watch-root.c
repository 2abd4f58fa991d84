/* SPDX-License-Identifier: MIT */

/* The watch with the tree of another machine: the values of cpufreq are the tree's, and the counters are this one's. */

#include "daemon/host/disturbance/cpu-frequency.h"
#include "daemon/run/watch/watch.h"
#include "schema/measure/perf.h"
#include "schema/spec/spec.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#include <linux/perf_event.h>
#include <sched.h>

#define PMU "/sys/bus/event_source/devices/msr"

struct other_machine {
        char tree[64];
        const char *type; /* of its PMU msr, with which perf_event_open() opens something else here, or nothing */
};

static int make_machine(struct other_machine *m, int cpu) {
        char path[128];
        (void) snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
        (void) snprintf(m->tree, sizeof(m->tree), "/tmp/ipclab-watch-XXXXXX");
        int r = mkdtemp(m->tree) ? host_tree_write(m->tree, path, "2400000\n") : -errno;
        if (r == 0)
                r = host_tree_write(m->tree, PMU "/type", m->type);
        if (r == 0)
                r = host_tree_write(m->tree, PMU "/events/tsc", "event=0x00\n");
        if (r == 0)
                r = host_tree_write(m->tree, PMU "/events/aperf", "event=0x01\n");
        return r == 0 ? host_tree_write(m->tree, PMU "/events/mperf", "event=0x02\n") : r;
}

/* What this machine's own counters give, and the tree's cpufreq where there are none. */
static const char *want_source(const char *tree, int cpu) {
        struct cpu_frequency_pmu pmu;
        struct cpu_frequency f;
        bool counted = cpu_frequency_pmu("", &pmu) == 0;
        if (cpu_frequency_open(&f, tree, cpu, counted ? &pmu : NULL, UINT64_MAX) < 0)
                return NULL;
        const char *source = cpu_frequency_source(&f);
        cpu_frequency_close(&f);
        return source;
}

static void counters_are_this_machines(void) {
        struct other_machine machines[] = {{.type = "1\n" /* PERF_TYPE_SOFTWARE */}, {.type = "4294967295\n"}};
        struct topology *topology = NULL;
        sd_event *event = NULL;
        int32_t cpu = sched_getcpu();
        const struct run_placement placement = {.ends = {[END_FIRST] = {.cpus = &cpu, .n_cpus = 1}}};
        const struct point point = {.transport = TRANSPORT_PIPE};
        CHECK(cpu >= 0);
        int fd = perf_open_cpu(cpu, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1);
        if (fd < 0)
                SKIP("an event of a CPU cannot be opened here: %s", strerror(-fd));
        close(fd);
        CHECK_INT(topology_read("", &topology), 0);
        CHECK(sd_event_new(&event) >= 0);
        for (size_t i = 0; i < ELEMENTS(machines); i++) {
                struct watch *w = NULL;
                CHECK_INT(make_machine(&machines[i], cpu), 0);
                const struct watch_order order = {.event = event,
                                                  .topology = topology,
                                                  .placement = &placement,
                                                  .point = &point,
                                                  .pids = {getpid(), 0},
                                                  .cgroup_fd = -1,
                                                  .root = machines[i].tree};
                CHECK_INT(watch_new(&w, &order), 0);
                CHECK_STRING(watch_disturbance(w)->run.frequency_source, want_source(machines[i].tree, cpu));
                watch_free(w);
                host_tree_remove(machines[i].tree);
        }
        sd_event_unref(event);
        topology_free(topology);
}

int main(void) {
        RUN(counters_are_this_machines);
        return check_end();
}
