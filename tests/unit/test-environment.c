/* SPDX-License-Identifier: MIT */
/* Snapshots of recorded trees, and what two of them that differ in one thing are flagged with. */

#include "tests/unit/check.h"

#include "daemon/host/environment/build.h"
#include "daemon/host/environment/environment-internal.h"
#include "daemon/host/environment/environment.h"
#include "schema/detail.h"
#include "schema/facts.h"
#include "schema/json/json.h"
#include "schema/spec/spec.h"
#include "tests/unit/host-tree.h"

#define CPU "/sys/devices/system/cpu/"
#define HUGEPAGES "/sys/kernel/mm/transparent_hugepage/hugepages-"
#define STAT(cpu0, cpu1) "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 " cpu0 " 0 0\ncpu1 " cpu1 " 0 0\n"
/* user nice system idle iowait irq softirq steal: as in the recorded tree, and 10 s of idling later */
#define IDLE "1000 0 500 4500 0 0 0 0"
#define INTERRUPTS(irq0, loc0)                                                                                         \
        "           CPU0       CPU1\n 24: " irq0 " 2000 PCI-MSI\nLOC: " loc0 " 200000 Local timer interrupts\nERR: "   \
        "0\n"

static struct topology *topology;

static int take(const char *tree, struct environment **ret) {
        if (!topology) {
                int r = topology_read(tree, &topology);
                if (r < 0)
                        return r;
        }
        return environment_take(tree, topology, ret);
}

static int flags_between(const struct environment *before, const struct environment *after,
                         const struct run_placement *placement, char **ret) {
        struct json_writer w;
        json_writer_init(&w);
        json_array_begin(&w);
        environment_flags(before, after, placement, &(struct flags_found){0}, &w);
        json_array_end(&w);
        int r = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        return r;
}

/* Flags of a run from the recorded tree to the same ten seconds later with one file changed. */
static int flags_after(const char *file, const char *content, const struct run_placement *placement, char **ret) {
        char tree[64];
        struct environment *before = NULL, *after = NULL;
        int r = host_tree_unpack("busy-lab", tree);
        if (r == 0)
                r = take(tree, &before);
        if (r == 0)
                r = host_tree_write(tree, "/proc/uptime", "110.00 90.00\n");
        if (r == 0)
                r = host_tree_write(tree, "/proc/stat", STAT(IDLE, IDLE));
        if (r == 0 && file)
                r = host_tree_write(tree, file, content);
        if (r == 0)
                r = take(tree, &after);
        if (r == 0)
                r = flags_between(before, after, placement, ret);
        environment_free(before);
        environment_free(after);
        host_tree_remove(tree);
        return r;
}

static void one_change_gives_one_flag(void) {
        static const struct {
                const char *file, *content;
                const char *flags;
        } cases[] = {
                {NULL, NULL, "[]"},
                /* 10 s on CPU 0: 1 % is 100 ms, ten ticks */
                {"/proc/stat", STAT("1000 0 500 4490 0 0 0 10", IDLE), "[]"},
                {"/proc/stat", STAT("1000 0 500 4489 0 0 0 11", IDLE), "[\"noisy:steal\"]"},
                {"/proc/stat", STAT(IDLE, "1000 0 500 4000 0 0 0 500"), "[]"}, /* CPU 1 is not measured */
                /* 1010 before */
                {"/proc/interrupts", INTERRUPTS("11000", "100000"), "[]"},
                {"/proc/interrupts", INTERRUPTS("11011", "100000"), "[\"noisy:interrupts\"]"},
                {"/proc/interrupts", INTERRUPTS("1010", "900000"), "[]"},
                {CPU "cpu0/thermal_throttle/core_throttle_count", "3\n", "[\"noisy:throttled\"]"},
                {CPU "cpu0/thermal_throttle/package_throttle_count", "4\n", "[\"noisy:throttled\"]"},
                {CPU "cpu1/thermal_throttle/core_throttle_count", "3\n", "[]"},
                {CPU "cpu1/cpufreq/scaling_governor", "powersave\n", "[\"environment-changed:cpufreq_governor\"]"},
                {CPU "intel_pstate/no_turbo", "1\n", "[\"environment-changed:turbo\"]"},
                {CPU "vulnerabilities/meltdown", "Vulnerable\n", "[\"environment-changed:mitigations\"]"},
                {CPU "vulnerabilities/new_one", "Vulnerable\n", "[\"environment-changed:mitigations\"]"},
                {"/proc/sys/kernel/numa_balancing", "1\n", "[\"environment-changed:numa_balancing\"]"},
                {"/proc/sys/kernel/numa_balancing", NULL, "[\"environment-changed:numa_balancing\"]"},
                {"/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n",
                 "[\"environment-changed:transparent_hugepage\"]"},
                {"/sys/kernel/mm/transparent_hugepage/shmem_enabled", "[always] never\n",
                 "[\"environment-changed:transparent_hugepage_shmem\"]"},
                {HUGEPAGES "64kB/enabled", "[always] inherit madvise never\n",
                 "[\"environment-changed:transparent_hugepage_sizes\"]"},
                {HUGEPAGES "8kB/shmem_enabled", "always inherit within_size [advise] never\n",
                 "[\"environment-changed:shmem_hugepage_sizes\"]"},
                {"/proc/sys/net/ipv4/tcp_congestion_control", "bbr\n",
                 "[\"environment-changed:tcp_congestion_control\"]"},
                {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n",
                 "[\"environment-changed:clocksource\"]"},
                {"/proc/meminfo", "MemTotal: 9000000 kB\nMemFree: 1 kB\nMemAvailable: 1 kB\n", "[]"},
                {"/proc/loadavg", "99.00 0.75 0.25 2/100 4711\n", "[]"}, /* remembers the run before */
        };
        int32_t cpu0[] = {0};
        struct run_placement placement = {.ends[END_FIRST] = {.cpus = cpu0, .n_cpus = 1},
                                          .ends[END_SECOND] = {.cpus = cpu0, .n_cpus = 1}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char *flags = NULL;
                CHECK_INT(flags_after(cases[i].file, cases[i].content, &placement, &flags), 0);
                bool same = strcmp(flags, cases[i].flags) == 0;
                if (!same)
                        fprintf(stderr, "case %zu: %s\n", i, flags);
                free(flags);
                if (!same)
                        CHECK_FAIL("%s after \"%s\" should give %s", cases[i].file ? cases[i].file : "nothing",
                                   cases[i].content ? cases[i].content : "", cases[i].flags);
        }
}

static int differences(const char *tree, const struct environment *first, char **ret) {
        struct environment *now = NULL;
        struct json_writer w;
        int r = take(tree, &now);
        if (r < 0)
                return r;
        json_writer_init(&w);
        json_array_begin(&w);
        environment_differs(first, now, &w);
        json_array_end(&w);
        r = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        environment_free(now);
        return r;
}

/* The first one is read back from what was stored; a fact that its version did not have is left out. */
static void a_later_run_differs_from_the_first(void) {
        static const struct {
                const char *file, *other, *flags;
        } cases[] = {
                {"/proc/sys/vm/swappiness", "61\n", "[\"environment-differs:swappiness\"]"},
                {"/proc/sys/kernel/random/boot_id", "another\n", "[\"environment-differs:boot_id\"]"},
                {"/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n",
                 "[\"environment-differs:transparent_hugepage\"]"},
                {HUGEPAGES "64kB/enabled", "always inherit [madvise] never\n",
                 "[\"environment-differs:transparent_hugepage_sizes\"]"},
                {"/proc/sys/kernel/numa_balancing", NULL, "[\"environment-differs:numa_balancing\"]"},
                {CPU "vulnerabilities/meltdown", "Vulnerable\n", "[\"environment-differs:mitigations\"]"},
                {"/proc/loadavg", "99.00 0.75 0.25 2/100 4711\n", "[]"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64], *flags = NULL, *snapshot = NULL, *document = NULL;
                struct environment *before = NULL, *first = NULL;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(take(tree, &before), 0);
                CHECK_INT(environment_to_json(before, &snapshot), 0);
                CHECK(asprintf(&document, "{\"before\":%s,\"after\":null}", snapshot) > 0);
                CHECK_INT(environment_parse_before(document, &first), 0);
                CHECK_INT(differences(tree, first, &flags), 0);
                CHECK_STRING(flags, "[]");
                free(flags);
                CHECK_INT(host_tree_write(tree, cases[i].file, cases[i].other), 0);
                CHECK_INT(differences(tree, first, &flags), 0);
                CHECK_STRING(flags, cases[i].flags);
                host_tree_remove(tree);
                free(flags);
                free(snapshot);
                free(document);
                environment_free(before);
                environment_free(first);
        }
        struct environment *first = NULL;
        char tree[64], *flags = NULL;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(environment_parse_before("{\"before\":{\"hostname\":\"lab\"}}", &first), 0);
        CHECK_INT(differences(tree, first, &flags), 0);
        CHECK_STRING(flags, "[]");
        host_tree_remove(tree);
        free(flags);
        environment_free(first);
        for (size_t i = 0; i < 5; i++)
                CHECK_INT(environment_parse_before((const char *const[]){"", "[]", "{}", "{\"before\":null}",
                                                                         "{\"before\":{\"swappiness\":\"x\"}}"}[i],
                                                   &first),
                          -EBADMSG);
}

/* Another at some moment, and at both ends what it was: nothing but a look in between can know. */
static void a_setting_that_is_put_back_has_changed(void) {
        static const struct {
                const char *file, *usual, *other, *flags;
        } cases[] = {
                {"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n", "[always] madvise never\n",
                 "[\"environment-changed:transparent_hugepage\"]"},
                {HUGEPAGES "2048kB/enabled", "always [inherit] madvise never\n", "[always] inherit madvise never\n",
                 "[\"environment-changed:transparent_hugepage_sizes\"]"},
                {HUGEPAGES "64kB/shmem_enabled", "always inherit within_size advise [never]\n",
                 "[always] inherit within_size advise never\n", "[\"environment-changed:shmem_hugepage_sizes\"]"},
                {CPU "cpu1/cpufreq/scaling_governor", "performance\n", "powersave\n",
                 "[\"environment-changed:cpufreq_governor\"]"},
                {CPU "cpu0/cpufreq/scaling_max_freq", "3500000\n", "1200000\n",
                 "[\"environment-changed:cpufreq_max_khz\"]"},
                {CPU "intel_pstate/no_turbo", "0\n", "1\n", "[\"environment-changed:turbo\"]"},
        };
        const struct run_placement anywhere = {.n_daemon_cpus = 0};
        for (size_t i = 0; i < 2 * ELEMENTS(cases); i++) {
                const char *file = cases[i / 2].file;
                bool looked = i % 2 == 1;
                char tree[64], *flags = NULL;
                struct environment *before = NULL, *after = NULL;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(take(tree, &before), 0);
                CHECK_INT(environment_observe(tree, topology, before), 0);
                CHECK_INT(host_tree_write(tree, file, cases[i / 2].other), 0);
                if (looked)
                        CHECK_INT(environment_observe(tree, topology, before), 0);
                CHECK_INT(host_tree_write(tree, file, cases[i / 2].usual), 0);
                CHECK_INT(environment_observe(tree, topology, before), 0);
                CHECK_INT(take(tree, &after), 0);
                host_tree_remove(tree);
                CHECK_INT(flags_between(before, after, &anywhere, &flags), 0);
                CHECK_STRING(flags, looked ? cases[i / 2].flags : "[]");
                environment_free(before);
                environment_free(after);
                free(flags);
        }
}

/* One machine has as many interrupts as are read, the other has more. */
static void routes_of_interrupts_that_are_put_back_have_changed(void) {
        static const char route[] = "/proc/irq/24/effective_affinity_list";
        const struct run_placement anywhere = {.n_daemon_cpus = 0};
        for (unsigned many = 0; many < 2; many++) {
                char tree[64], path[64], *flags = NULL;
                struct environment *before = NULL, *after = NULL;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                for (unsigned irq = 24; irq < 24 + 64 + many; irq++) {
                        (void) snprintf(path, sizeof path, "/proc/irq/%u/effective_affinity_list", irq);
                        CHECK_INT(host_tree_write(tree, path, "0\n"), 0);
                }
                CHECK_INT(host_tree_write(tree, "/proc/irq/default_smp_affinity", "3\n"), 0);
                CHECK_INT(take(tree, &before), 0);
                CHECK_INT(environment_observe(tree, topology, before), 0);
                CHECK_INT(host_tree_write(tree, route, "1\n"), 0);
                CHECK_INT(environment_observe(tree, topology, before), 0);
                CHECK_INT(host_tree_write(tree, route, "0\n"), 0);
                CHECK_INT(take(tree, &after), 0);
                host_tree_remove(tree);
                CHECK_INT(flags_between(before, after, &anywhere, &flags), 0);
                CHECK_STRING(flags, many ? "[]" : "[\"environment-changed:device_irqs\"]");
                environment_free(before);
                environment_free(after);
                free(flags);
        }
}

/* The clock has no file: it was disciplined, or was not, at some moment of this machine's run. */
static void a_clock_that_was_disciplined_meanwhile_has_changed(void) {
        static const char *const words[] = {"synchronized", "unsynchronized"};
        struct environment *before = NULL;
        struct topology *own = NULL;
        CHECK_INT(topology_read("", &own), 0);
        CHECK_INT(environment_take("", own, &before), 0);
        struct fact *ntp = &before->facts[FACT_NTP];
        if (!ntp->text) {
                environment_free(before);
                topology_free(own);
                SKIP("adjtimex(2) is not permitted");
        }
        CHECK_INT(environment_observe("", own, before), 0);
        CHECK(!ntp->changed);
        const char *other = words[strcmp(ntp->text, words[0]) == 0];
        free(ntp->text);
        ntp->text = strdup(other);
        CHECK_INT(environment_observe("", own, before), 0);
        CHECK(ntp->text && ntp->changed);
        environment_free(before);
        topology_free(own);
}

static void unpinned_runs_are_measured_everywhere(void) {
        const struct run_placement anywhere = {.n_daemon_cpus = 0};
        char *flags = NULL;
        CHECK_INT(flags_after(CPU "cpu1/thermal_throttle/core_throttle_count", "3\n", &anywhere, &flags), 0);
        CHECK_STRING(flags, "[\"noisy:throttled\"]");
        free(flags);
}

static void shared_placements_are_flagged(void) {
        const struct run_placement crowded = {.shares_cpus = true, .shares_cores = true, .memory_elsewhere = true};
        char *flags = NULL;
        CHECK_INT(flags_after(NULL, NULL, &crowded, &flags), 0);
        CHECK_STRING(flags, "[\"placement:shared-cpus\",\"placement:shared-cores\",\"placement:memory-elsewhere\"]");
        free(flags);
}

/* During a run, of which the topology knows nothing. */
static void cpus_come_and_go(void) {
        static const char *const stats[] = {"cpu0 " IDLE "\n", STAT(IDLE, IDLE) "cpu2 " IDLE "\n"};
        for (size_t i = 0; i < ELEMENTS(stats); i++) {
                char *flags = NULL;
                CHECK_INT(flags_after("/proc/stat", stats[i], &(struct run_placement){0}, &flags), 0);
                CHECK_STRING(flags, "[\"environment-changed:cpus\"]");
                free(flags);
        }
}

static int environment_with(const char *machine, const char *const (*files)[2], size_t n, struct json **ret) {
        char tree[64], *text = NULL;
        struct environment *e = NULL;
        struct topology *t = NULL;
        int r = host_tree_unpack(machine, tree);
        for (size_t i = 0; i < n && r == 0; i++)
                r = host_tree_write(tree, files[i][0], files[i][1]);
        if (r == 0)
                r = topology_read(tree, &t);
        if (r == 0)
                r = environment_take(tree, t, &e);
        host_tree_remove(tree);
        if (r == 0)
                r = environment_to_json(e, &text);
        if (r == 0)
                r = json_parse(text, strlen(text), ret, NULL);
        free(text);
        environment_free(e);
        topology_free(t);
        return r;
}

static int environment_of(const char *machine, const char *file, const char *content, struct json **ret) {
        const char *const files[][2] = {{file, content}};
        return environment_with(machine, files, file ? 1 : 0, ret);
}

static const char *string_of(const struct json *object, const char *key) {
        const char *text = NULL;
        const struct json *v = json_get(object, key);
        return v && json_as_string(v, &text) == 0 ? text : NULL;
}

static int64_t number_of(const struct json *object, const char *key) {
        int64_t n = -1;
        const struct json *v = json_get(object, key);
        return v && json_as_i64(v, &n) == 0 ? n : -1;
}

static void a_recorded_host_is_shown_as_it_is(void) {
        struct json *root = NULL;
        double load = 0;
        CHECK_INT(environment_of("busy-lab", NULL, NULL, &root), 0);
        CHECK_STRING(string_of(root, "hostname"), "lab");
        CHECK_STRING(string_of(root, "cpufreq_governor"), "performance");
        CHECK_STRING(string_of(root, "cpufreq_max_khz"), "3500000");
        CHECK_STRING(string_of(root, "turbo"), "on");
        CHECK_STRING(string_of(root, "transparent_hugepage"), "madvise");
        CHECK_STRING(string_of(root, "virtualization"), "QEMU Standard PC");
        CHECK_STRING(string_of(root, "tcp_wmem"), "4096 16384 4194304");
        CHECK_STRING(string_of(root, "shmmax"), "18446744073692774399");
        CHECK_STRING(string_of(json_get(root, "mitigations"), "meltdown"), "Not affected");
        CHECK_INT(number_of(root, "msgmax"), 8192);
        CHECK_INT(json_as_double(json_first(json_get(root, "load")), &load), 0);
        CHECK(load > 1.49 && load < 1.51);

        const struct json *cpu0 = json_first(json_get(root, "cpus"));
        CHECK_UINT(json_length(json_get(root, "cpus")), 2);
        CHECK_INT(number_of(cpu0, "user_ms"), 10000);
        CHECK_INT(number_of(cpu0, "system_ms"), 5000);
        CHECK_INT(number_of(cpu0, "device_interrupts"), 1009);
        CHECK_INT(number_of(cpu0, "interrupts"), 1009 + 100000 + 30000);
        CHECK_INT(number_of(json_next(cpu0), "interrupts"), 2001 + 5 + 200000 + 40000);
        CHECK_INT(number_of(cpu0, "throttles"), 5);
        CHECK_INT(number_of(cpu0, "frequency_khz"), 3000000);

        CHECK_INT(json_type(json_get(root, "machine")), JSON_NULL);
        CHECK_STRING(string_of(json_get(root, "reasons"), "machine"), "a captured tree carries no machine id");
        json_free(root);
}

/* What has to be put together from its files, or chosen from a line. want NULL: null, with a reason. */
static void facts_are_read_from_their_files(void) {
        static const struct {
                const char *file, *content, *key, *want;
        } cases[] = {
                {"/proc/sys/kernel/random/boot_id", "7740d705-4c75\n", "boot_id", "7740d705-4c75"},
                {"/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [within_size] deny\n",
                 "transparent_hugepage_shmem", "within_size"},
                {"/sys/kernel/mm/transparent_hugepage/defrag", "always [defer] never\n", "transparent_hugepage_defrag",
                 "defer"},
                {"/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always\n", "transparent_hugepage_shmem", NULL},
                {CPU "cpuidle/current_governor", "menu\n", "cpuidle_governor", "menu"},
                {CPU "cpuidle/current_governor_ro", "haltpoll\n", "cpuidle_governor", "haltpoll"},
                {CPU "cpu0/cpuidle/none", "", "cpuidle_governor", NULL},
                {CPU "isolated", "\n", "isolated_cpus", ""},
                {CPU "isolated", "2-3\n", "isolated_cpus", "2-3"},
                {"/sys/kernel/debug/sched/preempt", "none voluntary (lazy)\n", "preemption", "lazy"},
                {"/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian\n", "preemption", "rt"},
                {"/proc/sys/kernel/version", "#1 SMP PREEMPT Debian\n", "preemption", "full"},
                {"/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian\n", "preemption", NULL},
                {"/proc/sys/kernel/version", "#1 SMP Debian\n", "preemption", NULL},
                {"/proc/cmdline", "rcu_nocbs=1 quiet rcu_nocbs=2-3 xrcu_nocbs=9\n", "rcu_nocbs_cpus", "2-3"},
                {"/proc/cmdline", "quiet\n", "rcu_nocbs_cpus", ""},
                {"/proc/cmdline", "audit=1 quiet audit=0\n", "audit", "off"},
                {"/proc/cmdline", "audit=off\n", "audit", "off"},
                {"/proc/cmdline", "audit=0 audit=1\n", "audit", NULL},
                {"/proc/cmdline", "quiet\n", "audit", NULL},
                {"/proc/cmdline", "quiet\n", "ntp", NULL}, /* a captured tree */
                {"/proc/self/cgroup", "0::/\n", "cgroup_cpu_limit", NULL},
                {"/sys/class/net/lo/mtu", "none\n", "loopback_mtu", NULL},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct json *root = NULL;
                CHECK_INT(environment_of("busy-lab", cases[i].file, cases[i].content, &root), 0);
                const char *got = string_of(root, cases[i].key);
                const char *reason = string_of(json_get(root, "reasons"), cases[i].key);
                bool good = cases[i].want ? got && strcmp(got, cases[i].want) == 0 : !got && reason;
                if (!good)
                        CHECK_FAIL("case %zu: %s is %s, not %s", i, cases[i].key, got ? got : "null",
                                   cases[i].want ? cases[i].want : "null with a reason");
                json_free(root);
        }
}

/* By sizes as numbers, not as names; those that have no such file, and folders of no size, are left out. */
static void huge_pages_are_decided_by_size(void) {
        static const char *const files[][2] = {
                {HUGEPAGES "64kB/enabled", "[always] inherit madvise never\n"},
                {HUGEPAGES "512kB/enabled", "always inherit [madvise] never\n"},
                {HUGEPAGES "8kB/shmem_enabled", "always inherit [within_size] advise never\n"},
                {HUGEPAGES "xkB/enabled", "[always] inherit madvise never\n"},
                {"/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", "1\n"},
        };
        static const char *const without[][2] = {{HUGEPAGES "64kB/enabled", NULL},
                                                 {HUGEPAGES "2048kB/enabled", NULL},
                                                 {HUGEPAGES "8kB/shmem_enabled", NULL},
                                                 {HUGEPAGES "64kB/shmem_enabled", NULL},
                                                 {HUGEPAGES "2048kB/shmem_enabled", NULL}};
        static const struct {
                const char *const (*files)[2];
                size_t n;
                const char *private, *shared; /* NULL: null, with a reason */
        } cases[] = {
                {NULL, 0, "2048kB inherit", "2048kB inherit"},
                {files, ELEMENTS(files), "64kB always, 512kB madvise, 2048kB inherit",
                 "8kB within_size, 2048kB inherit"},
                {&without[2], 3, "2048kB inherit", NULL}, /* a kernel before 6.11 */
                {without, ELEMENTS(without), NULL, NULL}, /* before 6.8 */
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                static const char *const names[] = {"transparent_hugepage_sizes", "shmem_hugepage_sizes"};
                const char *const wanted[] = {cases[i].private, cases[i].shared};
                struct json *root = NULL;
                CHECK_INT(environment_with("busy-lab", cases[i].files, cases[i].n, &root), 0);
                for (size_t k = 0; k < ELEMENTS(names); k++) {
                        const char *reason = string_of(json_get(root, "reasons"), names[k]);
                        if (wanted[k])
                                CHECK_STRING(string_of(root, names[k]), wanted[k]);
                        else
                                CHECK(!string_of(root, names[k]) && reason && strstr(reason, "hugepages-*kB/"));
                }
                json_free(root);
        }
        struct json *root = NULL;
        CHECK_INT(environment_of("busy-lab", HUGEPAGES "2048kB/enabled", "always inherit madvise [never]\n", &root), 0);
        CHECK_STRING(string_of(root, "transparent_hugepage_sizes"), "never");
        json_free(root);
        CHECK_INT(environment_of("busy-lab", HUGEPAGES "2048kB/enabled", "always\n", &root), 0);
        CHECK(strstr(string_of(json_get(root, "reasons"), "transparent_hugepage_sizes"), "hugepages-2048kB/enabled"));
        json_free(root);
}

static void idle_states_of_all_cpus(void) {
        static const char *const files[][2] = {
                {CPU "cpu0/cpuidle/state0/name", "POLL\n"}, {CPU "cpu0/cpuidle/state0/disable", "0\n"},
                {CPU "cpu0/cpuidle/state1/name", "C6\n"},   {CPU "cpu0/cpuidle/state1/disable", "1\n"},
                {CPU "cpu1/cpuidle/state0/name", "POLL\n"}, {CPU "cpu1/cpuidle/state0/disable", "0\n"},
                {CPU "cpu1/cpuidle/state1/name", "C6\n"},   {CPU "cpu1/cpuidle/state1/disable", "0\n"},
        };
        struct json *root = NULL;
        CHECK_INT(environment_with("busy-lab", files, ELEMENTS(files), &root), 0);
        CHECK_STRING(string_of(root, "cpuidle_states"), "POLL, C6 (off) 0; POLL, C6 1");
        json_free(root);
}

/* The daemon's own cgroup and those above it may each have one. */
static void cpu_limits_of_cgroups(void) {
        static const char *const unified[][2] = {
                {"/proc/self/cgroup", "0::/system.slice/ipclab.service\n"},
                {"/sys/fs/cgroup/system.slice/ipclab.service/cpu.max", "150000 100000\n"},
                {"/sys/fs/cgroup/system.slice/cpu.max", "max 100000\n"},
        };
        static const char *const legacy[][2] = {
                {"/proc/self/cgroup", "3:cpuset:/a\n2:cpu,cpuacct:/a/b\n0::/\n"},
                {"/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"},
                {"/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n"},
                {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n"},
                {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"},
        };
        struct json *root = NULL;
        CHECK_INT(environment_with("busy-lab", unified, ELEMENTS(unified), &root), 0);
        CHECK_STRING(string_of(root, "cgroup_cpu_limit"), "150000 100000");
        json_free(root);
        CHECK_INT(environment_with("busy-lab", unified, 1, &root), 0);
        CHECK_INT(json_type(json_get(root, "cgroup_cpu_limit")), JSON_NULL);
        json_free(root);
        CHECK_INT(environment_with("busy-lab", legacy, ELEMENTS(legacy), &root), 0);
        CHECK_STRING(string_of(root, "cgroup_cpu_limit"), "50000 100000");
        json_free(root);
        CHECK_INT(environment_with("busy-lab", legacy, 3, &root), 0);
        CHECK_STRING(string_of(root, "cgroup_cpu_limit"), "max");
        json_free(root);
}

/* By where they are sent, or may be sent on an older kernel; default_smp_affinity is of no interrupt. */
static void interrupts_that_are_routed_to_a_cpu(void) {
        static const char *const files[][2] = {
                {"/proc/irq/24/effective_affinity_list", "1\n"}, {"/proc/irq/24/smp_affinity_list", "0-1\n"},
                {"/proc/irq/25/smp_affinity_list", "0-1\n"},     {"/proc/irq/26/effective_affinity_list", "\n"},
                {"/proc/irq/default_smp_affinity", "3\n"},
        };
        struct json *root = NULL;
        CHECK_INT(environment_with("busy-lab", files, ELEMENTS(files), &root), 0);
        CHECK_STRING(string_of(root, "device_irqs"), "1 0; 2 1");
        json_free(root);
        CHECK_INT(environment_with("busy-lab", &files[2], 1, &root), 0);
        CHECK_STRING(string_of(root, "device_irqs"), "1 0-1");
        json_free(root);
        static const char *const spoilt[][2] = {{"/proc/irq/24/effective_affinity_list", "x\n"}};
        CHECK_INT(environment_with("busy-lab", spoilt, 1, &root), 0);
        CHECK_INT(json_type(json_get(root, "device_irqs")), JSON_NULL);
        CHECK(strstr(string_of(json_get(root, "reasons"), "device_irqs"), "/proc/irq/24/effective_affinity_list"));
        json_free(root);
}

/* Whatever is null has its reason under the same name; numastat stands for a node's six. */
static void every_null_has_its_reason(void) {
        static const char *const missing[] = {
                "/proc/cpuinfo",
                "/proc/interrupts",
                "/proc/vmstat",
                "/proc/sys/kernel/numa_balancing",
                "/proc/cmdline",
                CPU "cpu0/cpufreq/scaling_governor",
                CPU "cpu1/cpufreq/scaling_cur_freq",
                CPU "cpu0/thermal_throttle/core_throttle_count",
        };
        for (size_t i = 0; i < ELEMENTS(missing); i++) {
                struct json *root = NULL;
                size_t nulls = 0;
                CHECK_INT(environment_of("busy-lab", missing[i], NULL, &root), 0);
                const struct json *reasons = json_get(root, "reasons");
                const struct json *const lists[] = {root, json_get(root, "vmstat"), json_first(json_get(root, "cpus")),
                                                    json_next(json_first(json_get(root, "cpus")))};
                for (size_t k = 0; k < ELEMENTS(lists); k++)
                        for (const struct json *v = json_first(lists[k]); v; v = json_next(v)) {
                                if (json_type(v) != JSON_NULL)
                                        continue;
                                nulls++;
                                if (!string_of(reasons, json_key(v)))
                                        CHECK_FAIL("without %s: %s is null without a reason", missing[i], json_key(v));
                        }
                json_free(root);
                CHECK(nulls >= 2); /* the machine's id, and what depends on the file */
        }
}

static void mixed_governors_are_listed(void) {
        struct json *root = NULL;
        CHECK_INT(environment_of("busy-lab", CPU "cpu1/cpufreq/scaling_governor", "powersave\n", &root), 0);
        CHECK_STRING(string_of(root, "cpufreq_governor"), "performance 0; powersave 1");
        json_free(root);
}

static void what_every_kernel_has_must_be_there(void) {
        static const struct {
                const char *file, *content;
                int r;
        } cases[] = {
                {"/proc/stat", NULL, -ENOENT},
                {"/proc/stat", "cpu0 1 2 3\ncpu1 1 2 3 4 5 6 7 8\n", -EBADMSG},
                {"/proc/stat", "cpu 1 2 3 4 5 6 7 8 9 10\n", -EBADMSG}, /* of no CPU */
                {"/proc/uptime", "soon\n", -EBADMSG},
                {"/proc/loadavg", "1.0 x\n", -EBADMSG},
                {"/proc/meminfo", "MemTotal: 1 kB\nMemFree: 1 kB\n", -EBADMSG},
                {"/proc/meminfo", NULL, -ENOENT},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64];
                struct environment *e = NULL;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(take(tree, &e), 0);
                environment_free(util_steal(&e));
                CHECK_INT(host_tree_write(tree, cases[i].file, cases[i].content), 0);
                int r = take(tree, &e);
                host_tree_remove(tree);
                if (r != cases[i].r)
                        CHECK_FAIL("%s gave %d, expected %d", cases[i].file, r, cases[i].r);
        }
}

static void preconditions_name_the_setting(void) {
        static const struct {
                const char *value; /* NULL: no such file */
                enum toggle wanted;
                int r;
                const char *detail;
        } cases[] = {
                {"0\n", TOGGLE_UNSET, 0, ""},
                {"0\n", TOGGLE_OFF, 0, ""},
                {"1\n", TOGGLE_ON, 0, ""},
                {"3\n", TOGGLE_ON, 0, ""},
                {NULL, TOGGLE_OFF, 0, ""},
                {"0\n", TOGGLE_ON, -EPERM,
                 "numa_balancing is required to be on, but kernel.numa_balancing is 0; to set it: sysctl "
                 "kernel.numa_balancing=1"},
                {"2\n", TOGGLE_ON, -EPERM,
                 "numa_balancing is required to be on, but kernel.numa_balancing is 2; to set it: sysctl "
                 "kernel.numa_balancing=1"},
                {"1\n", TOGGLE_OFF, -EPERM,
                 "numa_balancing is required to be off, but kernel.numa_balancing is 1; to set it: sysctl "
                 "kernel.numa_balancing=0"},
                {NULL, TOGGLE_ON, -EPERM,
                 "numa_balancing is required to be on, but this kernel has no automatic NUMA balancing (built without "
                 "CONFIG_NUMA_BALANCING)"},
                {"on\n", TOGGLE_ON, -EPERM,
                 "numa_balancing is required to be on, but /proc/sys/kernel/numa_balancing cannot be read: Bad "
                 "message"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64], detail[DETAIL_MAX] = "";
                const struct spec_require require = {.numa_balancing = cases[i].wanted};
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(host_tree_write(tree, "/proc/sys/kernel/numa_balancing", cases[i].value), 0);
                int r = environment_check(tree, &require, detail);
                host_tree_remove(tree);
                CHECK_INT(r, cases[i].r);
                CHECK_STRING(detail, cases[i].detail);
        }
}

/* One change to the recorded machine, which has no SMT and "performance" on both CPUs. */
static void other_preconditions(void) {
        static const struct {
                const char *file, *value;
                struct spec_require require;
                const char *detail; /* NULL: met */
        } cases[] = {
                {NULL, NULL, {.smt = TOGGLE_OFF}, NULL},
                {NULL,
                 NULL,
                 {.smt = TOGGLE_ON},
                 "smt is required to be on, but simultaneous multithreading is not in use (smt/control: notsupported); "
                 "to set it: echo on > /sys/devices/system/cpu/smt/control"},
                {"/sys/devices/system/cpu/smt/active", "1\n", {.smt = TOGGLE_ON}, NULL},
                {"/sys/devices/system/cpu/smt/active",
                 "1\n",
                 {.smt = TOGGLE_OFF},
                 "smt is required to be off, but simultaneous multithreading is in use (smt/control: notsupported); to "
                 "set it: echo off > /sys/devices/system/cpu/smt/control"},
                {"/sys/devices/system/cpu/smt/active", NULL, {.smt = TOGGLE_OFF}, NULL},
                {"/sys/devices/system/cpu/smt/active",
                 "yes\n",
                 {.smt = TOGGLE_OFF},
                 "smt is required to be off, but /sys/devices/system/cpu/smt/active cannot be read: Bad message"},
                {NULL, NULL, {.governor = "performance"}, NULL},
                {"/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", NULL, {.governor = "performance"}, NULL},
                {"/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
                 "powersave\n",
                 {.governor = "performance"},
                 "governor performance is required, but CPU 1 has powersave; to set it: cpupower frequency-set -g "
                 "performance"},
                {"/sys/devices/system/cpu/online",
                 "7\n",
                 {.governor = "performance"},
                 "governor performance is required, but no CPU of this machine has one (no cpufreq driver)"},
                {"/sys/devices/system/cpu/online",
                 "all\n",
                 {.governor = "performance"},
                 "governor performance is required, but /sys/devices/system/cpu/online cannot be read: Bad message"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64], detail[DETAIL_MAX] = "";
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                if (cases[i].file)
                        CHECK_INT(host_tree_write(tree, cases[i].file, cases[i].value), 0);
                int r = environment_check(tree, &cases[i].require, detail);
                host_tree_remove(tree);
                CHECK_STRING(detail, cases[i].detail ? cases[i].detail : "");
                CHECK_INT(r, cases[i].detail ? -EPERM : 0);
        }
}

static int check_facts(const struct environment *e, const char *require, char *detail) {
        static const struct build build = {.daemon = {.text = "0123"}, .agent = {.reason = "it is gone"}};
        struct spec *spec = NULL;
        struct refusal refusal = {0};
        char text[8192];
        (void) snprintf(text, sizeof(text), "{\"require\": {%s}}", require);
        detail[0] = '\0';
        int r = spec_parse(text, strlen(text), &spec, &refusal);
        if (r < 0)
                (void) snprintf(detail, DETAIL_MAX, "%s", refusal.detail);
        else
                r = environment_check_facts(e, &build, spec, detail);
        spec_free(spec);
        return r;
}

/* Each row of the table is a member of the snapshot, in this order; what it has can be required, and anything else
 * fails. */
static void every_fact_can_be_required(void) {
        char tree[64], detail[DETAIL_MAX], require[6000], expected[64];
        struct environment *e = NULL;
        struct json *root = NULL;
        char *text = NULL;
        unsigned checked = 0;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(take(tree, &e), 0);
        CHECK_INT(environment_to_json(e, &text), 0);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        const struct json *m = json_first(root);
        for (size_t i = 0; i < FACT_COUNT; i++, m = json_next(m)) {
                const struct fact_row *row = &fact_rows[i];
                _cleanup_free_ char *value = json_print(m);
                CHECK_STRING(json_key(m), row->name);
                if (i == FACT_SMT || i == FACT_NUMA_BALANCING) /* whose names mean on and off in a spec */
                        continue;
                (void) snprintf(expected, sizeof(expected), "%s is required to be ", row->name);
                if (json_type(m) == JSON_NULL)
                        (void) snprintf(require, sizeof(require),
                                        row->form == FACT_NUMBER ? "\"%s\": 1" : "\"%s\": \"%s\"", row->name,
                                        row->form == FACT_CHOICE ? row->choices[0] : "x");
                else {
                        (void) snprintf(require, sizeof(require), "\"%s\": %s", row->name, value);
                        CHECK_INT(check_facts(e, require, detail), 0);
                        const char *other = row->form == FACT_NUMBER                                 ? "987654321"
                                            : row->form != FACT_CHOICE                               ? "\"x\""
                                            : strncmp(value + 1, row->choices[0], strlen(value) - 2) ? "0"
                                                                                                     : "1";
                        if (row->form == FACT_CHOICE)
                                (void) snprintf(require, sizeof(require), "\"%s\": \"%s\"", row->name,
                                                row->choices[other[0] - '0']);
                        else
                                (void) snprintf(require, sizeof(require), "\"%s\": %s", row->name, other);
                        checked++;
                }
                CHECK_INT(check_facts(e, require, detail), -EPERM);
                CHECK(strncmp(detail, expected, strlen(expected)) == 0);
        }
        CHECK_STRING(json_key(m), "mitigations");
        CHECK(checked > FACT_COUNT / 2);
        json_free(root);
        free(text);
        environment_free(e);
        host_tree_remove(tree);
}

static void the_build_and_mitigations_can_be_required(void) {
        static const struct {
                const char *require, *detail; /* "": met */
        } cases[] = {
                {"\"mitigations\": {\"meltdown\": \"Not affected\"}", ""},
                {"\"mitigations\": {\"meltdown\": \"Vulnerable\"}",
                 "mitigations.meltdown is required to be Vulnerable, but it is Not affected"},
                {"\"mitigations\": {\"meltup\": \"Vulnerable\"}",
                 "mitigations.meltup is required to be Vulnerable, but it is not known: this kernel has none such"},
                {"\"build\": {\"version\": \"" IPCLAB_VERSION "\"}", ""},
                {"\"build\": {\"version\": \"other\"}",
                 "build.version is required to be other, but it is " IPCLAB_VERSION},
                {"\"build\": {\"agent_sha256\": \"0123456789012345678901234567890123456789012345678901234567890123\"}",
                 "build.agent_sha256 is required to be "
                 "0123456789012345678901234567890123456789012345678901234567890123, "
                 "but it is not known: it is gone"},
                {"\"swappiness\": 61", "swappiness is required to be 61, but it is 60"},
        };
        char tree[64], detail[DETAIL_MAX];
        struct environment *e = NULL;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(host_tree_write(tree, "/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"), 0);
        CHECK_INT(host_tree_write(tree, "/proc/sys/vm/swappiness", "60\n"), 0);
        CHECK_INT(take(tree, &e), 0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CHECK_INT(check_facts(e, cases[i].require, detail), cases[i].detail[0] ? -EPERM : 0);
                CHECK_STRING(detail, cases[i].detail);
        }
        environment_free(e);
        host_tree_remove(tree);
}

static void this_machine_can_be_taken(void) {
        struct topology *t = NULL;
        struct environment *e = NULL;
        struct json *root = NULL;
        char *text = NULL;
        CHECK_INT(topology_read("", &t), 0);
        CHECK_INT(environment_take("", t, &e), 0);
        CHECK_INT(environment_to_json(e, &text), 0);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        CHECK(string_of(root, "kernel_release") && string_of(root, "hostname"));
        json_free(root);
        free(text);
        environment_free(e);
        topology_free(t);
}

int main(void) {
        RUN(one_change_gives_one_flag);
        RUN(a_later_run_differs_from_the_first);
        RUN(a_setting_that_is_put_back_has_changed);
        RUN(routes_of_interrupts_that_are_put_back_have_changed);
        RUN(a_clock_that_was_disciplined_meanwhile_has_changed);
        RUN(unpinned_runs_are_measured_everywhere);
        RUN(shared_placements_are_flagged);
        RUN(cpus_come_and_go);
        RUN(a_recorded_host_is_shown_as_it_is);
        RUN(facts_are_read_from_their_files);
        RUN(huge_pages_are_decided_by_size);
        RUN(idle_states_of_all_cpus);
        RUN(cpu_limits_of_cgroups);
        RUN(interrupts_that_are_routed_to_a_cpu);
        RUN(every_null_has_its_reason);
        RUN(mixed_governors_are_listed);
        RUN(what_every_kernel_has_must_be_there);
        RUN(preconditions_name_the_setting);
        RUN(other_preconditions);
        RUN(every_fact_can_be_required);
        RUN(the_build_and_mitigations_can_be_required);
        RUN(this_machine_can_be_taken);
        topology_free(topology);
        return check_end();
}
