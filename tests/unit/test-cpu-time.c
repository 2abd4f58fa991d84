/* SPDX-License-Identifier: MIT */

/* Sources of CPU time, on trees of machines that have one or the other. */

#include "daemon/host/disturbance/cpu-time.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#include <fcntl.h>

#define MS INT64_C(1000000)
#define CPUACCT "/sys/fs/cgroup/cpuacct/"
/* user nice system idle iowait irq softirq steal, in steps of 10 ms; busy for 30 s, of which interrupts are 0 or 1 s */
#define STAT(irq)                                                                                                      \
        "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 1000 0 500 7000 10 " irq " 20 5 0 0\ncpu1 1000 0 500 8000 0 0 0 0 0 0\n"
#define SCHEDSTAT                                                                                                      \
        "version 17\ntimestamp 4295\ncpu0 0 0 0 0 0 0 15500000000 77 9\ndomain0 MC 3 0 0 0\ncpu1 0 0 0 0 0 0 "         \
        "16000000000 78 9\n"

struct machine {
        char tree[64];
        struct cpu_time time;
        struct cpu_times cpus[2];
};

struct file {
        const char *path, *content;
};

static int machine_read(struct machine *m, const struct file *files, size_t n) {
        static const int ids[] = {0, 1};
        *m = (struct machine){.time = {.source_fd = -1, .stat_fd = -1}};
        int r = host_tree_unpack("busy-lab", m->tree);
        if (r == 0)
                r = host_tree_write(m->tree, "/sys/devices/system/cpu/possible", "0-1\n");
        for (size_t i = 0; i < n && r == 0; i++)
                r = host_tree_write(m->tree, files[i].path, files[i].content);
        if (r == 0)
                r = cpu_time_open(m->tree, &m->time);
        return r == 0 ? cpu_time_read(&m->time, 100000 * MS, ids, 2, m->cpus) : r;
}

static void machine_end(struct machine *m) {
        cpu_time_close(&m->time);
        host_tree_remove(m->tree);
}

static void the_root_cgroup_has_the_time_of_all(void) {
        struct machine m;
        const struct file files[] = {{"/proc/stat", STAT("0")},
                                     {"/proc/schedstat", SCHEDSTAT},
                                     {CPUACCT "cpuacct.usage_percpu", "15123456789 16123456789 \n"},
                                     {CPUACCT "cgroup.sane_behavior", "0\n"}};
        CHECK_INT(machine_read(&m, files, ELEMENTS(files)), 0);
        CHECK_STRING(cpu_time_source_name(m.time.source), "cpuacct");
        CHECK_INT(m.cpus[0].run_ns, INT64_C(15123456789));
        CHECK_INT(m.cpus[1].run_ns, INT64_C(16123456789));
        CHECK_INT(m.cpus[0].softirq_ns, 200 * MS);
        CHECK_INT(m.cpus[0].steal_ns, 50 * MS);
        CHECK_INT(m.cpus[0].idle_ns, 70100 * MS);
        CHECK_INT(m.cpus[0].counted_ns, 85350 * MS);
        CHECK(m.time.stat_ns[0] > 0 && m.time.stat_ns[0] <= m.time.stat_ns[1]);
        machine_end(&m);
}

/* In a container the same name is the container's own: others' time is not in it. */
static void a_containers_cgroup_is_no_source(void) {
        struct machine m;
        const struct file files[] = {{"/proc/stat", STAT("0")},
                                     {"/proc/schedstat", SCHEDSTAT},
                                     {CPUACCT "cpuacct.usage_percpu", "15123456789 16123456789 \n"}};
        CHECK_INT(machine_read(&m, files, ELEMENTS(files)), 0);
        CHECK_STRING(cpu_time_source_name(m.time.source), "schedstat");
        CHECK_INT(m.cpus[0].run_ns, INT64_C(15500000000));
        CHECK(!cpu_time_softirqs_apart(&m.time));
        machine_end(&m);
}

static void an_ambiguous_cpuacct_is_no_source(void) {
        static const char *const texts[] = {"15123456789\n", "1 2 3\n", "", "one two\n"};
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                struct machine m;
                const struct file files[] = {{"/proc/stat", STAT("0")},
                                             {"/proc/schedstat", SCHEDSTAT},
                                             {CPUACCT "cpuacct.usage_percpu", texts[i]},
                                             {CPUACCT "cgroup.sane_behavior", "0\n"}};
                CHECK_INT(machine_read(&m, files, ELEMENTS(files)), 0);
                CHECK_STRING(cpu_time_source_name(m.time.source), "schedstat");
                machine_end(&m);
        }
}

static void idle_time_is_the_last_resort(void) {
        static const char *const schedstats[] = {NULL, "version 17\ntimestamp 4295\n", "cpu0 0 0 0\n"};
        for (size_t i = 0; i < ELEMENTS(schedstats); i++) {
                struct machine m;
                const struct file files[] = {{"/proc/stat", STAT("0")}, {"/proc/schedstat", schedstats[i]}};
                CHECK_INT(machine_read(&m, files, schedstats[i] ? 2 : 1), 0);
                CHECK_STRING(cpu_time_source_name(m.time.source), "idle");
                CHECK_INT(m.cpus[0].run_ns, (100000 - 70100 - 50) * MS);
                CHECK_INT(m.cpus[1].run_ns, 20000 * MS);
                machine_end(&m);
        }
}

/* With IRQ_TIME_ACCOUNTING a task's time has no interrupts in it, so they are taken off what has them. */
static void interrupts_that_are_accounted_apart(void) {
        struct machine m;
        const struct file files[] = {{"/proc/stat", STAT("100")}, {"/proc/schedstat", SCHEDSTAT}};
        CHECK_INT(machine_read(&m, files, ELEMENTS(files)), 0);
        CHECK_INT(m.cpus[0].run_ns, (15500 - 1000 - 200 - 50) * MS);
        CHECK(cpu_time_softirqs_apart(&m.time));
        machine_end(&m);
        CHECK_INT(machine_read(&m, files, 1), 0);
        CHECK_STRING(cpu_time_source_name(m.time.source), "idle");
        CHECK_INT(m.cpus[0].run_ns, (100000 - 70100 - 50 - 1000 - 200) * MS);
        CHECK(cpu_time_softirqs_apart(&m.time));
        machine_end(&m);
        const struct file exact[] = {{"/proc/stat", STAT("100")},
                                     {CPUACCT "cpuacct.usage_percpu", "15123456789 16123456789 \n"},
                                     {CPUACCT "cgroup.sane_behavior", "0\n"}};
        CHECK_INT(machine_read(&m, exact, ELEMENTS(exact)), 0);
        CHECK_INT(m.cpus[0].run_ns, INT64_C(15123456789)); /* charged without them, as a task is */
        CHECK(!cpu_time_softirqs_apart(&m.time));
        machine_end(&m);
}

static void a_cpu_that_is_offline_is_not_known(void) {
        struct machine m;
        const struct file files[] = {{"/proc/stat", "cpu0 1000 0 500 7000 10 0 20 5 0 0\n"}};
        CHECK_INT(machine_read(&m, files, 1), 0);
        CHECK(m.cpus[0].known);
        CHECK(!m.cpus[1].known);
        machine_end(&m);
}

static void without_proc_stat_nothing_can_be_read(void) {
        struct machine m;
        const struct file none[] = {{"/proc/stat", NULL}}, broken[] = {{"/proc/stat", "cpu0 1 2 3\n"}};
        CHECK_INT(machine_read(&m, none, 1), -ENOENT);
        machine_end(&m);
        CHECK_INT(machine_read(&m, broken, 1), -EBADMSG);
        machine_end(&m);
}

static void this_machine_has_a_source(void) {
        struct cpu_time c;
        struct cpu_times first, second;
        const int ids[] = {0};
        CHECK_INT(cpu_time_open("", &c), 0);
        CHECK_INT(cpu_time_read(&c, util_now_ns(), ids, 1, &first), 0);
        CHECK_INT(cpu_time_read(&c, util_now_ns(), ids, 1, &second), 0);
        CHECK(first.known && second.known);
        cpu_time_close(&c);
}

int main(void) {
        RUN(the_root_cgroup_has_the_time_of_all);
        RUN(a_containers_cgroup_is_no_source);
        RUN(an_ambiguous_cpuacct_is_no_source);
        RUN(idle_time_is_the_last_resort);
        RUN(interrupts_that_are_accounted_apart);
        RUN(a_cpu_that_is_offline_is_not_known);
        RUN(without_proc_stat_nothing_can_be_read);
        RUN(this_machine_has_a_source);
        return check_end();
}
