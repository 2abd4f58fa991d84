/* SPDX-License-Identifier: MIT */
/* The clock of a CPU from counts of APERF, MPERF and TSC: recorded, as this machine may lack the first two, and of its
 * own TSC alone, in the place of all three. */

#include "tests/unit/check.h"

#include "daemon/host/disturbance/cpu-frequency.h"
#include "tests/unit/host-tree.h"

#define GHZ 1000000000ull
#define PMU "/sys/bus/event_source/devices/msr"

/* A core of 2.4 GHz nominal, in seconds: 3.2 GHz all the while, idle for three quarters, 1.2 GHz, wholly idle. */
static void recorded_counts(void) {
        static const struct {
                uint64_t aperf, mperf; /* in this second */
                int64_t khz;
        } seconds[] = {
                {32 * GHZ / 10, 24 * GHZ / 10, 3200000}, {8 * GHZ / 10, 6 * GHZ / 10, 3200000},
                {12 * GHZ / 10, 24 * GHZ / 10, 1200000}, {0, 0, -1},
                {24 * GHZ / 10, 24 * GHZ / 10, 2400000},
        };
        struct cpu_frequency f = CPU_FREQUENCY_NONE;
        uint64_t counts[FREQUENCY_EVENTS] = {77, UINT64_MAX - 5, 1000}; /* one of them overflows */
        CHECK_INT(cpu_frequency_add(&f, counts, 50 * NSEC_PER_SEC), -1);
        for (size_t i = 0; i < ELEMENTS(seconds); i++) {
                counts[EVENT_APERF] += seconds[i].aperf;
                counts[EVENT_MPERF] += seconds[i].mperf;
                counts[EVENT_TSC] += 24 * GHZ / 10;
                CHECK_INT(cpu_frequency_add(&f, counts, (51 + i) * NSEC_PER_SEC), seconds[i].khz);
        }
}

static void the_kernels_description(void) {
        static const struct {
                const char *type, *aperf;
                int r;
        } cases[] = {
                {"9\n", "event=0x01\n", 0},         {"9\n", NULL, -ENOENT}, /* most virtual machines */
                {NULL, "event=0x01\n", -ENOENT},    {"9\n", "umask=0x01\n", -EBADMSG},
                {"-9\n", "event=0x01\n", -EBADMSG}, {"nine\n", "event=0x01\n", -EBADMSG},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[] = "/tmp/ipclab-frequency-XXXXXX";
                struct cpu_frequency_pmu pmu;
                CHECK(mkdtemp(tree));
                CHECK_INT(host_tree_write(tree, PMU "/events/tsc", "event=0x00\n"), 0);
                CHECK_INT(host_tree_write(tree, PMU "/events/mperf", "event=0x02\n"), 0);
                if (cases[i].aperf)
                        CHECK_INT(host_tree_write(tree, PMU "/events/aperf", cases[i].aperf), 0);
                if (cases[i].type)
                        CHECK_INT(host_tree_write(tree, PMU "/type", cases[i].type), 0);
                CHECK_INT(cpu_frequency_pmu(tree, &pmu), cases[i].r);
                if (cases[i].r == 0) {
                        CHECK_UINT(pmu.type, 9);
                        CHECK_UINT(pmu.configs[EVENT_APERF], 1);
                        CHECK_UINT(pmu.configs[EVENT_MPERF], 2);
                        CHECK_UINT(pmu.configs[EVENT_TSC], 0);
                }
                host_tree_remove(tree);
        }
}

/* The kernel's group of three events, each of them the TSC: the clock is the TSC's. */
static void a_group_of_this_machine(void) {
        struct cpu_frequency_pmu pmu = {0};
        struct cpu_frequency f;
        FILE *type = fopen(PMU "/type", "re");
        bool has = type && fscanf(type, "%" SCNu32, &pmu.type) == 1;
        if (type)
                (void) fclose(type);
        if (!has)
                SKIP("this machine has no PMU msr");
        CHECK_INT(cpu_frequency_open(&f, "", 0, &pmu, UINT64_MAX), 0);
        if (f.events[0] < 0) {
                cpu_frequency_close(&f);
                SKIP("an event of a CPU cannot be opened here: %s", strerror(errno));
        }
        CHECK_STRING(cpu_frequency_source(&f), "aperf-mperf");
        const uint64_t last = (uint64_t) f.events[EVENT_TSC];
        cpu_frequency_close(&f);
        CHECK_INT(cpu_frequency_open(&f, "", 0, &pmu, last), -EMFILE); /* one of the three is not to be had */
        CHECK(!cpu_frequency_source(&f));
        CHECK_INT(f.events[EVENT_APERF], -1);
        CHECK_INT(cpu_frequency_open(&f, "", 0, &pmu, last + 1), 0);
        CHECK_INT(cpu_frequency_read(&f), -1);
        int64_t khz = cpu_frequency_read(&f);
        CHECK(khz > 0);

        cpu_frequency_close(&f);
        CHECK_INT(cpu_frequency_read(&f), -1);
}

static void what_is_not_there(void) {
        static const struct cpu_frequency_pmu none = {.type = UINT32_MAX};
        struct cpu_frequency f;
        CHECK_INT(cpu_frequency_open(&f, "", 999999, &none, UINT64_MAX), 0);
        CHECK(!cpu_frequency_source(&f));
        CHECK_INT(cpu_frequency_read(&f), -1);
        cpu_frequency_close(&f);
        cpu_frequency_close(&f);
}

int main(void) {
        RUN(recorded_counts);
        RUN(the_kernels_description);
        RUN(a_group_of_this_machine);
        RUN(what_is_not_there);
        return check_end();
}
