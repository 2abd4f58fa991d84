/* SPDX-License-Identifier: MIT */

/* Seconds of a window, from readings that are made here: which CPU was the worst, when, and what it is called. */

#include "daemon/host/disturbance.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <string.h>

#define MS INT64_C(1000000)
#define CPUS 4u
#define SECONDS 5u

/* A run on CPUs 1 and 3 of four, for some seconds in which its agents use 900 ms of each second of both. */
struct window {
        struct disturbance_cpu cpus[CPUS];
        struct disturbance_run run;
        struct cpu_times times[SECONDS + 1][CPUS];
        int64_t own[SECONDS + 1][CPUS], khz[SECONDS + 1][CPUS], ksoftirqd[SECONDS + 1][CPUS],
                involuntary[SECONDS + 1][2], delay[SECONDS + 1][2];
        struct disturbance_reading readings[SECONDS + 1];
        struct disturbance d;
};

static void window_init(struct window *w) {
        *w = (struct window){.cpus = {{.id = 0}, {.id = 1, .measured = true}, {.id = 2}, {.id = 3, .measured = true}}};
        w->run = (struct disturbance_run){.source = CPU_TIME_CPUACCT, .cpus = w->cpus, .n_cpus = CPUS, .n_threads = 2};
        for (size_t s = 0; s <= SECONDS; s++) {
                for (size_t i = 0; i < CPUS; i++) {
                        int64_t used = w->cpus[i].measured ? 900 * MS * (int64_t) s : 0;
                        w->times[s][i] = (struct cpu_times){.known = true, .run_ns = 77 * MS + used};
                        w->own[s][i] = used;
                        w->khz[s][i] = w->ksoftirqd[s][i] = -1;
                }
                w->readings[s] = (struct disturbance_reading){
                        .at_ns = (100 + s) * NSEC_PER_SEC,
                        .cpus = w->times[s],
                        .own_ns = w->own[s],
                        .frequency_khz = w->khz[s],
                        .ksoftirqd_ns = w->ksoftirqd[s],
                        .involuntary = w->involuntary[s],
                        .delay_ns = w->delay[s],
                        .own_total_ns = 1800 * MS * (int64_t) s,
                        .own_measured_ns = 1800 * MS * (int64_t) s,
                        .throttled = -1,
                };
        }
}

/* From a second on; negative: until then less. */
static void run_more(struct window *w, size_t cpu, size_t second, int64_t ns) {
        for (size_t s = second + 1; s <= SECONDS; s++)
                w->times[s][cpu].run_ns += ns;
}

static int judge(struct window *w) {
        int r = disturbance_init(&w->d, &w->run);
        for (size_t s = 0; s < SECONDS && r == 0; s++)
                r = disturbance_add(&w->d, &w->readings[s], &w->readings[s + 1]);
        return r;
}

/* "foreign-cpu load" */
static const char *flags_of(const struct window *w) {
        static char text[256];
        text[0] = '\0';
        for (int k = 0; k < DISTURBANCE_KINDS; k++)
                if (disturbance_has(&w->d, (enum disturbance_kind) k)) {
                        strcat(text, text[0] ? " " : "");
                        strcat(text, disturbance_flag((enum disturbance_kind) k) + strlen("noisy:"));
                }
        return text;
}

#define CHECK_FLAGS(w, want)                                                                                           \
        do {                                                                                                           \
                CHECK_INT(judge(w), 0);                                                                                \
                CHECK_STRING(flags_of(w), want);                                                                       \
                disturbance_deinit(&(w)->d);                                                                           \
        } while (0)

static void a_quiet_window_has_no_flags(void) {
        struct window w;
        window_init(&w);
        CHECK_FLAGS(&w, "");
}

/* 5 % of one CPU in one second of five, which is 1 % of all of them, or a thousandth of four CPUs. */
static void one_second_of_one_cpu_is_enough(void) {
        struct window w;
        window_init(&w);
        run_more(&w, 3, 2, 49 * MS);
        CHECK_FLAGS(&w, "");
        window_init(&w);
        run_more(&w, 3, 2, 50 * MS);
        CHECK_INT(judge(&w), 0);
        CHECK_STRING(flags_of(&w), "foreign-cpu");
        CHECK_UINT(w.d.n, 5);
        for (size_t s = 0; s < w.d.n; s++)
                CHECK_INT((int) (w.d.seconds[s].foreign * 1000 + 0.5), s == 2 ? 50 : 0);
        CHECK_INT(w.d.seconds[2].cpu, 3);
        disturbance_deinit(&w.d);
}

/* 160 ms in each second of CPU 3, which nobody else has used: of a run over the network its own, else of others. */
static void ksoftirqd_belongs_to_a_run_over_the_network(void) {
        for (unsigned kind = 0; kind < 4; kind++) {
                struct window w;
                const bool network = kind & 1, roams = kind & 2;
                window_init(&w);
                w.run.network = network;
                w.run.roams = roams;
                for (size_t s = 0; s <= SECONDS; s++) {
                        w.ksoftirqd[s][1] = 5 * MS;
                        w.ksoftirqd[s][3] = 7 * MS + 160 * MS * (int64_t) s;
                        w.times[s][3].run_ns += 160 * MS * (int64_t) s;
                }
                CHECK_INT(judge(&w), 0);
                CHECK_STRING(flags_of(&w), network ? "" : "foreign-cpu");
                CHECK_INT(w.d.ksoftirqd_ns, 160 * MS * (int64_t) SECONDS);
                for (size_t s = 0; s < w.d.n; s++)
                        CHECK_INT((int) (w.d.seconds[s].foreign * 1000 + 0.5), network ? 0 : 160);
                disturbance_deinit(&w.d);
        }
}

/* A kernel with IRQ_TIME_ACCOUNTING counts ksoftirqd's ticks among the softirqs, which the source has taken off: its
 * time is no agent's, and hides no time of others, in the figure of a CPU and of all CPUs together. */
static void ksoftirqd_is_not_taken_off_twice(void) {
        for (unsigned kind = 0; kind < 4; kind++) {
                struct window w;
                const bool network = kind & 1, roams = kind & 2;
                window_init(&w);
                w.run.source = CPU_TIME_SCHEDSTAT;
                w.run.softirqs_apart = true;
                w.run.network = network;
                w.run.roams = roams;
                for (size_t s = 0; s <= SECONDS; s++) {
                        w.ksoftirqd[s][1] = w.times[s][1].softirq_ns = 0;
                        w.ksoftirqd[s][3] = w.times[s][3].softirq_ns = 160 * MS * (int64_t) s;
                }
                run_more(&w, 3, 2, 120 * MS);
                CHECK_INT(judge(&w), 0);
                CHECK_STRING(flags_of(&w), network ? "foreign-cpu" : "foreign-cpu softirq");
                CHECK_INT(w.d.ksoftirqd_ns, 160 * MS * (int64_t) SECONDS);
                CHECK_INT(w.d.foreign_total_ns, 120 * MS);
                for (size_t s = 0; s < w.d.n; s++)
                        CHECK_INT((int) (w.d.seconds[s].foreign * 1000 + 0.5), s != 2 ? 0 : 120);
                disturbance_deinit(&w.d);
        }
}

/* One reading that lacks the thread of one measured CPU, at the beginning, between or at the end: no sum is the sum. */
static void a_part_of_ksoftirqd_is_unknown(void) {
        for (size_t missing = 0; missing <= SECONDS; missing++) {
                struct window w;
                window_init(&w);
                for (size_t s = 0; s <= SECONDS; s++)
                        w.ksoftirqd[s][1] = w.ksoftirqd[s][3] = 10 * MS * (int64_t) s;
                w.ksoftirqd[missing][1] = -1;
                CHECK_INT(judge(&w), 0);
                CHECK_INT(w.d.ksoftirqd_ns, -1);
                disturbance_deinit(&w.d);
        }
        struct window none;
        window_init(&none);
        CHECK_INT(judge(&none), 0);
        CHECK_INT(none.d.ksoftirqd_ns, -1);
        disturbance_deinit(&none.d);
}

static void other_cpus_are_not_measured(void) {
        struct window w;
        window_init(&w);
        run_more(&w, 0, 1, 900 * MS);
        CHECK_FLAGS(&w, "");
        window_init(&w);
        run_more(&w, 0, 1, 2501 * MS); /* of 5 s: more than half a CPU, anywhere */
        CHECK_FLAGS(&w, "load");
        window_init(&w);
        w.cpus[2].sibling = true;
        run_more(&w, 2, 1, 50 * MS);
        CHECK_FLAGS(&w, "smt-sibling");
}

/* What is credited a second late was not there in the second before; what is missing for good hides no more than two
 * ticks of others. */
static void own_time_may_be_credited_late(void) {
        struct window w;
        window_init(&w);
        w.run.source = CPU_TIME_SCHEDSTAT;
        w.times[2][1].run_ns -= 400 * MS; /* in the next second 400 ms more */
        CHECK_FLAGS(&w, "");
        window_init(&w);
        w.times[2][1].run_ns -= 400 * MS;
        CHECK_FLAGS(&w, "foreign-cpu");
        window_init(&w);
        w.times[2][1].run_ns -= 15 * MS;
        CHECK_FLAGS(&w, "");
}

static void agents_that_roam_are_judged_together(void) {
        struct window w;
        window_init(&w);
        w.run.roams = true;
        memset(w.own, 0, sizeof(w.own)); /* on which CPU is not known */
        run_more(&w, 1, 1, 54 * MS);
        CHECK_FLAGS(&w, "");
        window_init(&w);
        w.run.roams = true;
        memset(w.own, 0, sizeof(w.own));
        run_more(&w, 1, 1, 56 * MS);
        CHECK_INT(judge(&w), 0);
        CHECK_STRING(flags_of(&w), "foreign-cpu");
        CHECK_INT(w.d.seconds[1].cpu, -1);
        disturbance_deinit(&w.d);
}

/* 49 % of one CPU of 16 is 3 % of the mean one. */
static void others_on_one_of_many_cpus_are_seen(void) {
        struct disturbance_cpu cpus[16];
        struct cpu_times times[3][16] = {0};
        int64_t own[16] = {0}, unknown[16];
        struct disturbance_reading at[3];
        struct disturbance d;
        const struct disturbance_run run = {.source = CPU_TIME_CPUACCT, .cpus = cpus, .n_cpus = 16, .roams = true};
        for (size_t i = 0; i < 16; i++) {
                cpus[i] = (struct disturbance_cpu){.id = (int) i, .measured = true};
                unknown[i] = -1;
                for (size_t s = 0; s < 3;
                     s++) /* in the first second the run itself and a quiet kernel, then one more */
                        times[s][i] = (struct cpu_times){
                                .known = true, .run_ns = (int64_t) s * 500 * MS + (s == 2 && i == 9 ? 490 * MS : 0)};
        }
        for (size_t s = 0; s < 3; s++)
                at[s] = (struct disturbance_reading){.at_ns = (100 + s) * NSEC_PER_SEC,
                                                     .cpus = times[s],
                                                     .own_ns = own,
                                                     .frequency_khz = unknown,
                                                     .ksoftirqd_ns = unknown,
                                                     .own_total_ns = (int64_t) s * 7900 * MS,
                                                     .own_measured_ns = (int64_t) s * 7900 * MS,
                                                     .throttled = -1};
        CHECK_INT(disturbance_init(&d, &run), 0);
        CHECK_INT(disturbance_add(&d, &at[0], &at[1]), 0);
        CHECK(!disturbance_has(&d, DISTURBANCE_FOREIGN_CPU));
        CHECK_INT(disturbance_add(&d, &at[1], &at[2]), 0);
        CHECK(disturbance_has(&d, DISTURBANCE_FOREIGN_CPU));
        CHECK_INT((int) (d.seconds[1].foreign * 1000 + 0.5), 590);
        disturbance_deinit(&d);
}

/* Interrupts were taken off before the time of the task that they stopped was credited: the time of the CPU falls. */
static void time_that_falls_and_comes_back_is_not_foreign(void) {
        struct window w;
        window_init(&w);
        w.run.source = CPU_TIME_SCHEDSTAT;
        w.times[2][1].run_ns -= 1300 * MS; /* 400 ms less than in the reading before */
        CHECK_FLAGS(&w, "");
}

static void softirqs_are_foreign_without_a_network(void) {
        for (int network = 0; network < 2; network++) {
                struct window w;
                window_init(&w);
                w.run.network = network;
                for (size_t s = 2; s <= SECONDS; s++)
                        w.times[s][1].softirq_ns += 60 * MS;
                CHECK_FLAGS(&w, network ? "" : "softirq");
        }
}

/* 10 % in one second of five, on the CPU that is not the worst by foreign time. */
static void steal_and_interrupts_of_a_second(void) {
        for (int kind = 0; kind < 2; kind++) {
                struct window w;
                window_init(&w);
                run_more(&w, 3, 2, 20 * MS);
                for (size_t s = 3; s <= SECONDS; s++)
                        *(kind ? &w.times[s][1].irq_ns : &w.times[s][1].steal_ns) += 100 * MS;
                CHECK_FLAGS(&w, kind ? "interrupts" : "steal");
                window_init(&w);
                for (size_t s = 3; s <= SECONDS; s++) {
                        w.times[s][1].irq_ns += 40 * MS;
                        w.times[s][1].steal_ns += 40 * MS;
                        w.times[s][0].irq_ns += 100 * MS; /* not measured */
                        w.times[s][0].steal_ns += 100 * MS;
                }
                CHECK_FLAGS(&w, "");
        }
}

/* Of a second in which everything stood still for 500 ms the kernel has counted 500 ms, as busy or as steal. A reader
 * that itself waited for a CPU, before one reading or after the other, concludes nothing from it. */
static void time_that_nothing_counts_is_a_standstill(void) {
        static const struct {
                int64_t counted, missed, steal,
                        waited; /* missed: in each second, as of tasks that sleep with the tick */
                size_t cpu;
                const char *flags;
        } cases[] = {
                {.counted = 1000 * MS, .cpu = 1, .flags = ""},
                {.counted = 720 * MS, .cpu = 1, .flags = ""},
                {.counted = 500 * MS, .cpu = 1, .flags = "standstill"},
                {.counted = 1000 * MS, .missed = 500 * MS, .cpu = 1, .flags = ""},
                {.counted = 860 * MS, .missed = 450 * MS, .cpu = 1, .flags = ""},
                {.counted = 650 * MS, .missed = 300 * MS, .cpu = 1, .flags = "standstill"},
                {.counted = 1000 * MS, .missed = 650 * MS, .cpu = 1, .flags = "standstill"},
                {.counted = 1000 * MS, .steal = 200 * MS, .cpu = 1, .flags = "steal"},
                {.counted = 500 * MS, .cpu = 0, .flags = ""}, /* not measured */
                {.counted = 500 * MS, .waited = 500 * MS, .cpu = 1, .flags = ""},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct window w;
                window_init(&w);
                for (size_t s = 0; s <= SECONDS; s++) {
                        w.readings[s].stat_ns[0] = w.readings[s].stat_ns[1] = w.readings[s].at_ns;
                        for (size_t cpu = 0; cpu < CPUS; cpu++)
                                w.times[s][cpu].counted_ns = 50000 * MS + (1000 * MS - cases[i].missed) * (int64_t) s;
                        if (s > 2) {
                                w.times[s][cases[i].cpu].counted_ns += cases[i].counted - 1000 * MS;
                                w.times[s][cases[i].cpu].steal_ns = cases[i].steal;
                        }
                }
                w.readings[2].stat_ns[1] += (uint64_t) cases[i].waited;
                CHECK_INT(judge(&w), 0);
                CHECK_STRING(flags_of(&w), cases[i].flags);
                for (size_t s = 0; s < w.d.n; s++) {
                        int64_t share = cases[i].missed;
                        if (s == 2 && cases[i].cpu == 1 && !cases[i].waited)
                                share += 1000 * MS - cases[i].counted;
                        CHECK_INT((int) (1000 * w.d.seconds[s].worst_standstill + 0.5), (int) (share / MS));
                }
                disturbance_deinit(&w.d);
        }
        struct window w; /* a CPU that went and came back counts from 0, which is no standstill */
        window_init(&w);
        for (size_t s = 0; s <= SECONDS; s++) {
                w.readings[s].stat_ns[0] = w.readings[s].stat_ns[1] = w.readings[s].at_ns;
                w.times[s][1].counted_ns = (s < 3 ? 50000 : 0) * MS + 1000 * MS * (int64_t) s;
        }
        CHECK_FLAGS(&w, "");
        for (int away = 0; away < 2; away++) { /* nor is such a second the best one, by which others are judged */
                window_init(&w);
                for (size_t s = 0; s <= SECONDS; s++) {
                        w.readings[s].stat_ns[0] = w.readings[s].stat_ns[1] = w.readings[s].at_ns;
                        for (size_t cpu = 0; cpu < CPUS; cpu++)
                                w.times[s][cpu].counted_ns =
                                        (!away && s >= 3 ? 0 : 50000) * MS + 600 * MS * (int64_t) s;
                        if (away)
                                w.times[s][1].known = s != 3;
                }
                CHECK_FLAGS(&w, "");
        }
}

static void switches_and_delays_of_a_thread(void) {
        struct window w;
        for (int alone = 0; alone < 2; alone++) {
                window_init(&w);
                for (size_t s = 0; s <= SECONDS; s++)
                        w.involuntary[s][1] = !alone ? -1 : s < 4 ? 0 : 250;
                CHECK_FLAGS(&w, alone ? "preemption" : "");
                window_init(&w);
                for (size_t s = 0; s <= SECONDS; s++)
                        w.delay[s][0] = !alone ? -1 : s < 4 ? 0 : 50 * MS;
                CHECK_FLAGS(&w, alone ? "run-queue-delay" : "");
        }
        window_init(&w);
        for (size_t s = 0; s <= SECONDS; s++)
                w.involuntary[s][1] = 249 * (int64_t) s; /* in each second */
        CHECK_FLAGS(&w, "");
        window_init(&w);
        for (size_t s = 0; s <= SECONDS; s++) /* not to be had from some moment on */
                w.involuntary[s][1] = s < 3 ? 0 : -1;
        CHECK_FLAGS(&w, "");
}

static void the_daemon_on_a_measured_cpu(void) {
        for (int measured = 0; measured < 2; measured++) {
                struct window w;
                window_init(&w);
                w.run.daemon_measured = measured;
                for (size_t s = 3; s <= SECONDS; s++)
                        w.readings[s].daemon_ns = 50 * MS;
                CHECK_FLAGS(&w, measured ? "daemon" : "");
        }
}

static void json_of(const struct disturbance *d, char **ret) {
        struct json_writer j;
        json_writer_init(&j);
        json_object_begin(&j);
        disturbance_put(d, &j);
        json_object_end(&j);
        CHECK_INT(json_writer_steal(&j, ret, NULL), 0);
        json_writer_deinit(&j);
}

/* Up and down again within the window: both ends are alike. */
static void frequency_within_the_window(void) {
        for (int64_t khz = 2850000; khz >= 2849000; khz -= 1000) {
                struct window w;
                window_init(&w);
                for (size_t s = 0; s <= SECONDS; s++)
                        w.khz[s][1] = s == 2 ? khz : 3000000;
                CHECK_FLAGS(&w, khz == 2850000 ? "" : "frequency");
        }
        struct window w;
        window_init(&w);
        for (size_t s = 0; s <= SECONDS; s++)
                w.khz[s][0] = s == 2 ? 800000 : 3000000; /* not measured */
        CHECK_FLAGS(&w, "");
}

/* Nothing to read them from; counters that say nothing before the window is over; counters. */
static void where_frequencies_are_from(void) {
        static const char *const wants[] = {
                "\"fastest_khz\":null,\"frequency_reason\":\"the measured CPUs have neither APERF and MPERF nor",
                "\"fastest_khz\":null,\"frequency_reason\":\"the window was over before the clocks",
                "\"slowest_khz\":2999000,\"fastest_khz\":3000000,\"frequency_source\":\"aperf-mperf\"",
        };
        for (size_t known = 0; known < ELEMENTS(wants); known++) {
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                w.run.frequency_source = known > 0 ? "aperf-mperf" : NULL;
                for (size_t s = 1; s <= SECONDS && known == 2; s++)
                        w.khz[s][1] = s == 2 ? 2999000 : 3000000;
                CHECK_INT(judge(&w), 0);
                json_of(&w.d, &text);
                CHECK(text && strstr(text, wants[known]));
                disturbance_deinit(&w.d);
        }
}

/* One of the CPUs among which the threads may move idles. */
static void frequency_of_threads_that_move(void) {
        struct window w;
        window_init(&w);
        w.run.roams = true;
        for (size_t s = 0; s <= SECONDS; s++)
                w.khz[s][1] = s == 2 ? 800000 : 3000000;
        CHECK_FLAGS(&w, "");
}

static void counts_of_the_window(void) {
        struct window w;
        window_init(&w);
        for (size_t s = 0; s <= SECONDS; s++)
                w.readings[s].throttled = 12; /* before the window */
        CHECK_FLAGS(&w, "");
        window_init(&w);
        for (size_t s = 0; s <= SECONDS; s++)
                w.readings[s].throttled = s < 3 ? 12 : 13;
        CHECK_FLAGS(&w, "quota");
        static const struct {
                int retransmits, spurious, timeouts;
                const char *flags;
        } sent_again[] = {
                {-1, -1, -1, ""},
                {-1, 0, -1, ""},
                {1, -1, -1, ""}, /* not known */
                {0, 0, 0, ""},
                {444, 410, -1, ""},
                {444, 410, 0, ""},
                {20, 15, 0, ""},
                {4, 9, 0, ""},
                {1, 0, 0, ""},
                {3, 1, 0, ""},
                {3, 0, 0, "retransmits"},
                {1, 0, -1, "retransmits"},
                {3, 2, -1, "retransmits"},
                {1, 0, 1, "retransmits"},
                {20, 14, 0, "retransmits"},
                {122, 116, 2, "retransmits"},
        };
        for (size_t i = 0; i < ELEMENTS(sent_again); i++) {
                window_init(&w);
                CHECK_INT(judge(&w), 0);
                w.d.retransmits = sent_again[i].retransmits;
                w.d.spurious = sent_again[i].spurious;
                w.d.timeouts = sent_again[i].timeouts;
                CHECK_STRING(flags_of(&w), sent_again[i].flags);
                disturbance_deinit(&w.d);
        }
}

/* A CPU that went offline, or came back with counters from 0. */
static void cpus_that_come_and_go(void) {
        struct window w;
        window_init(&w);
        w.times[2][3].known = false;
        CHECK_FLAGS(&w, "");
        window_init(&w);
        for (size_t s = 3; s <= SECONDS; s++)
                w.times[s][3].run_ns = 900 * MS * (int64_t) (s - 3);
        CHECK_FLAGS(&w, "");
}

static void the_result_has_each_second(void) {
        struct window w;
        _cleanup_free_ char *text = NULL;
        struct json *root = NULL;
        int64_t number = 0;
        window_init(&w);
        run_more(&w, 1, 3, 300 * MS);
        CHECK_INT(judge(&w), 0);
        json_of(&w.d, &text);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        const struct json *worst = json_get(root, "worst");
        CHECK_INT(json_as_i64(json_get(worst, "cpu"), &number), 0);
        CHECK_INT(number, 1);
        CHECK_INT(json_as_i64(json_get(worst, "second"), &number), 0);
        CHECK_INT(number, 3);
        CHECK_UINT(json_length(json_get(root, "seconds")), 5);
        CHECK(strstr(text, "\"foreign_share\":0.3,"));
        CHECK(strstr(text, "\"quota_throttled_periods\":null,\"quota_throttled_periods_reason\":"));
        json_free(root);
        disturbance_deinit(&w.d);
}

/* 1300 seconds, the last 690 with a preempted thread: 600 of these are listed, and all are counted. */
static void late_seconds_with_a_flag_are_listed(void) {
        struct window w;
        _cleanup_free_ char *text = NULL;
        struct json *root = NULL;
        int64_t number = 0;
        window_init(&w);
        CHECK_INT(disturbance_init(&w.d, &w.run), 0);
        for (uint64_t s = 0; s < 1300; s++) {
                w.readings[0].at_ns = (100 + s) * NSEC_PER_SEC;
                w.readings[1].at_ns = (101 + s) * NSEC_PER_SEC;
                w.involuntary[1][0] = s < 610 ? 0 : 250;
                CHECK_INT(disturbance_add(&w.d, &w.readings[0], &w.readings[1]), 0);
        }
        json_of(&w.d, &text);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        CHECK_UINT(json_length(json_get(root, "seconds")), 1200);
        CHECK_INT(json_as_i64(json_get(root, "seconds_flagged"), &number), 0);
        CHECK_INT(number, 690);
        json_free(root);
        disturbance_deinit(&w.d);
}

static void a_window_without_a_second_has_a_reason(void) {
        struct window w;
        _cleanup_free_ char *text = NULL;
        window_init(&w);
        CHECK_INT(disturbance_init(&w.d, &w.run), 0);
        CHECK_INT(disturbance_add(&w.d, &w.readings[1], &w.readings[1]), 0);
        json_of(&w.d, &text);
        CHECK(strstr(text, "\"worst\":null,\"worst_reason\":"));
        CHECK_STRING(flags_of(&w), "");
        disturbance_deinit(&w.d);
}

int main(void) {
        RUN(a_quiet_window_has_no_flags);
        RUN(one_second_of_one_cpu_is_enough);
        RUN(ksoftirqd_belongs_to_a_run_over_the_network);
        RUN(ksoftirqd_is_not_taken_off_twice);
        RUN(a_part_of_ksoftirqd_is_unknown);
        RUN(other_cpus_are_not_measured);
        RUN(own_time_may_be_credited_late);
        RUN(agents_that_roam_are_judged_together);
        RUN(others_on_one_of_many_cpus_are_seen);
        RUN(time_that_falls_and_comes_back_is_not_foreign);
        RUN(softirqs_are_foreign_without_a_network);
        RUN(steal_and_interrupts_of_a_second);
        RUN(time_that_nothing_counts_is_a_standstill);
        RUN(switches_and_delays_of_a_thread);
        RUN(the_daemon_on_a_measured_cpu);
        RUN(frequency_within_the_window);
        RUN(where_frequencies_are_from);
        RUN(frequency_of_threads_that_move);
        RUN(counts_of_the_window);
        RUN(cpus_that_come_and_go);
        RUN(the_result_has_each_second);
        RUN(late_seconds_with_a_flag_are_listed);
        RUN(a_window_without_a_second_has_a_reason);
        return check_end();
}
