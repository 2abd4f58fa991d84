/* SPDX-License-Identifier: MIT */

/* Seconds of a window, from readings that are made here: which CPU was the worst, when, and what it is called. */

#include "daemon/host/disturbance/disturbance.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/disturbance-json.h"

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
                involuntary[SECONDS + 1][2], delay[SECONDS + 1][2], interrupts[SECONDS + 1][CPUS],
                throttles[SECONDS + 1][CPUS];
        uint32_t packets[SECONDS + 1][CPUS];
        struct disturbance_reading readings[SECONDS + 1];
        struct disturbance d;
};

static void window_init(struct window *w) {
        *w = (struct window){.cpus = {{.id = 0}, {.id = 1, .measured = true}, {.id = 2}, {.id = 3, .measured = true}}};
        w->run = (struct disturbance_run){.source = CPU_TIME_CPUACCT,
                                          .cpus = w->cpus,
                                          .n_cpus = CPUS,
                                          .n_threads = 2,
                                          .irq_apart = true,
                                          .cgroups = true};
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
                        .device_interrupts = w->interrupts[s],
                        .throttles = w->throttles[s],
                        .packets = {.cpus = w->packets[s]},
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
        run_more(&w, 0, 1, 499 * MS);
        CHECK_FLAGS(&w, "");
        window_init(&w);
        w.cpus[2].sibling = true;
        run_more(&w, 2, 1, 50 * MS);
        CHECK_FLAGS(&w, "smt-sibling");
}

/* Where no measured CPU has one, its share is not 0. */
static void a_sibling_that_is_not_there(void) {
        for (int there = 0; there < 2; there++) {
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                w.cpus[2].sibling = there;
                CHECK_INT(judge(&w), 0);
                json_of(&w.d, &text);
                CHECK(text && strstr(text, there ? "\"sibling_share\":0,"
                                                 : "\"sibling_share\":null,\"sibling_share_reason\":\"no measured"));
                disturbance_deinit(&w.d);
        }
}

/* Two CPUs that are not measured, busy for 450 ms of one second: 0.18 CPUs in the mean of five. */
static void one_second_of_load_is_enough(void) {
        for (int64_t ms = 250; ms <= 450; ms += 200) {
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                run_more(&w, 0, 3, ms * MS);
                run_more(&w, 2, 3, ms * MS);
                CHECK_INT(judge(&w), 0);
                CHECK_STRING(flags_of(&w), ms > 250 ? "load" : "");
                json_of(&w.d, &text);
                CHECK(text && strstr(text, ms > 250 ? "\"load_cpus\":0.18,\"worst_load_cpus\":0.9,"
                                                    : "\"load_cpus\":0.1,\"worst_load_cpus\":0.5,"));
                CHECK((strstr(text, "\"flags\":[\"noisy:load\"]") != NULL) == (ms > 250));
                disturbance_deinit(&w.d);
        }
}

/* What is left of a window is rounded to 10 ms for each CPU: of a short piece that is much. Alone it is the mean. */
static void a_short_piece_counts_in_the_mean_of_the_load(void) {
        for (int alone = 0; alone < 2; alone++) {
                struct window w;
                window_init(&w);
                run_more(&w, 0, 4, 60 * MS);
                for (size_t i = 0; i < CPUS; i++) {
                        w.times[5][i].run_ns -= w.cpus[i].measured ? 810 * MS : 0;
                        w.own[5][i] -= w.cpus[i].measured ? 810 * MS : 0;
                }
                w.readings[5].at_ns -= 900 * NSEC_PER_MSEC;
                w.readings[5].own_total_ns -= 1620 * MS;
                CHECK_INT(disturbance_init(&w.d, &w.run), 0);
                for (size_t s = alone ? 4 : 0; s < SECONDS; s++)
                        CHECK_INT(disturbance_add(&w.d, &w.readings[s], &w.readings[s + 1]), 0);
                CHECK_STRING(flags_of(&w), alone ? "load" : "");
                CHECK_INT((int) (1000 * w.d.seconds[w.d.n - 1].load + 0.5), 600);
                disturbance_deinit(&w.d);
        }
}

/* The daemon waited for 400 ms between the agents' times and those of the CPUs, in which the agents ran on. */
static void agents_that_run_on_while_the_reader_waits_are_no_load(void) {
        for (int known = 0; known < 2; known++) {
                struct window w;
                window_init(&w);
                for (size_t s = 0; s <= SECONDS; s++)
                        w.readings[s].stat_ns[0] = w.readings[s].stat_ns[1] = w.readings[s].at_ns;
                w.times[2][1].run_ns += 360 * MS;
                w.times[2][3].run_ns += 360 * MS;
                w.readings[2].stat_ns[1] += known ? 400 * NSEC_PER_MSEC : 0;
                CHECK_FLAGS(&w, known ? "foreign-cpu" : "foreign-cpu load");
        }
}

/* Own time that is not among that of the CPUs, in each second or in one: what else they ran is not known. */
static void a_load_without_the_runs_own_time_is_unknown(void) {
        for (int each = 0; each < 2; each++) {
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                w.run.source = CPU_TIME_SCHEDSTAT;
                for (size_t s = 1; s <= SECONDS; s++)
                        w.times[s][1].run_ns -= each ? 300 * MS * (int64_t) s : s == 2 ? 800 * MS : 0;
                CHECK_INT(judge(&w), 0);
                CHECK_STRING(flags_of(&w), "");
                for (size_t s = 0; s < w.d.n; s++)
                        CHECK((w.d.seconds[s].load < 0) == (each || s == 1));
                json_of(&w.d, &text);
                CHECK(text && strstr(text, each ? "\"load_cpus\":null,\"load_cpus_reason\":\"the kernel had not"
                                                : "\"load_cpus\":0,\"worst_load_cpus\":0,"));
                disturbance_deinit(&w.d);
        }
        struct window w;
        _cleanup_free_ char *text = NULL;
        window_init(&w);
        w.times[2][0].known = false; /* in two of the seconds; it is not measured */
        run_more(&w, 2, 4, 600 * MS);
        CHECK_INT(judge(&w), 0);
        CHECK_STRING(flags_of(&w), "load");
        json_of(&w.d, &text);
        CHECK(text && strstr(text, "\"load_cpus\":null,\"load_cpus_reason\":\"a CPU of the machine was not listed"));
        CHECK(strstr(text, "\"worst_load_cpus\":0.6,"));
        disturbance_deinit(&w.d);
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
                                                     .device_interrupts = unknown,
                                                     .throttles = unknown,
                                                     .packets = {.loopback = {-1, -1}},
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

/* More than 1000 a second on a measured CPU, in a second of five; of too short a piece they are not many. */
static void device_interrupts_of_a_second(void) {
        static const struct {
                size_t cpu;
                int64_t count, piece; /* of a second: 1 / piece */
                bool unknown, flagged;
                const char *want;
        } cases[] = {
                {1, 1000, 1, false, false, "\"device_interrupts_per_second\":1000,"},
                {3, 1001, 1, false, true, "\"device_interrupts_per_second\":1001,"},
                {2, 9000, 1, false, false, "\"device_interrupts_per_second\":0,"},
                {3, 900, 2, false, true, "\"device_interrupts_per_second\":1800,"},
                {3, 400, 4, false, false, "\"device_interrupts_per_second\":1600,"},
                {3, 2000, 1, true, false,
                 "\"device_interrupts_per_second\":null,\"device_interrupts_per_second_reason\":\"no measured CPU"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                for (size_t s = 3; s <= SECONDS; s++) {
                        w.interrupts[s][cases[i].cpu] = cases[i].count;
                        w.readings[s].at_ns -= NSEC_PER_SEC - NSEC_PER_SEC / (uint64_t) cases[i].piece;
                        w.readings[s].own_total_ns = 0;
                }
                for (size_t s = 0; s <= SECONDS && cases[i].unknown; s++)
                        w.interrupts[s][1] = w.interrupts[s][3] = -1;
                CHECK_INT(judge(&w), 0);
                CHECK((strstr(flags_of(&w), "interrupts") != NULL) == cases[i].flagged);
                json_of(&w.d, &text);
                CHECK(text && strstr(text, cases[i].want));
                disturbance_deinit(&w.d);
        }
}

/* 16000 a second and more, which take up to a twentieth of a CPU, are a flag of any run, however little of them the
 * tick has seen. */
static void many_packets_of_others(void) {
        for (unsigned kind = 0; kind < 8; kind++) {
                const bool many = kind & 1, network = kind & 2, piece = kind & 4;
                const uint32_t count = (many ? 16000u : 15999u) / (piece ? 4u : 1u);
                struct window w;
                window_init(&w);
                w.run.network = network;
                for (size_t s = 3; s <= SECONDS; s++) {
                        w.packets[s][1] = count;
                        if (piece) {
                                w.readings[s].at_ns -= NSEC_PER_SEC * 3 / 4;
                                w.readings[s].own_total_ns = 0;
                        }
                }
                CHECK_INT(judge(&w), 0);
                CHECK((strstr(flags_of(&w), "softirq") != NULL) == (many && !piece));
                disturbance_deinit(&w.d);
        }
}

static void interrupts_that_are_not_read_have_a_reason(void) {
        struct window w;
        _cleanup_free_ char *text = NULL;
        window_init(&w);
        w.run.no_interrupts = "it is long";
        CHECK_INT(judge(&w), 0);
        json_of(&w.d, &text);
        CHECK(text && strstr(text, "\"device_interrupts_reason\":\"it is long\",\"window_ns\""));
        CHECK(strstr(text, "\"device_interrupts_per_second\":null,\"foreign_packets_per_second\":0,"));
        disturbance_deinit(&w.d);
}

/* 300 ms of softirqs on each measured CPU in each second of a run over tcp, which passes 80 packets over loopback: a
 * third of what the CPUs receive in one second comes from elsewhere, and is 200 ms. */
static void softirqs_of_others_beside_a_run_over_the_network(void) {
        for (unsigned kind = 0; kind < 5; kind++) {
                const bool others = kind == 0, elsewhere = kind == 1, unread = kind == 2, wraps = kind == 3,
                           few = kind == 4;
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                w.run.network = true;
                for (size_t s = 0; s <= SECONDS; s++) {
                        w.times[s][1].softirq_ns = w.times[s][3].softirq_ns = 300 * MS * (int64_t) s;
                        w.packets[s][1] = w.packets[s][3] = (wraps ? UINT32_MAX - 100u : 7u) + 40u * (uint32_t) s;
                        w.packets[s][1] += (others || wraps) && s > 2 ? 40 : few && s > 2 ? 7 : 0;
                        w.packets[s][2] = elsewhere ? 4000u * (uint32_t) s : 0;
                        for (unsigned i = 0; i < 2; i++)
                                w.readings[s].packets.loopback[i] = unread && s == 2 ? -1 : 80 * (int64_t) s;
                }
                CHECK_INT(judge(&w), 0);
                CHECK_STRING(flags_of(&w), others || wraps ? "softirq" : "");
                json_of(&w.d, &text);
                CHECK(text &&
                      strstr(text, others || wraps ? "\"foreign_packets_per_second\":40,\"foreign_softirq_share\":0.2,"
                                   : few    ? "\"foreign_packets_per_second\":7,\"foreign_softirq_share\":0.04827"
                                   : unread ? "\"foreign_softirq_share\":null,\"foreign_softirq_share_reason\":\"/proc"
                                            : "\"foreign_packets_per_second\":0,\"foreign_softirq_share\":0,"));
                disturbance_deinit(&w.d);
        }
}

/* By the tick, which is an interrupt itself: a share of 0 would be no figure. */
static void interrupts_by_the_tick_are_unknown(void) {
        for (int apart = 0; apart < 2; apart++) {
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                w.run.irq_apart = apart;
                for (size_t s = 3; s <= SECONDS; s++)
                        w.times[s][1].irq_ns += 100 * MS;
                CHECK_INT(judge(&w), 0);
                CHECK_STRING(flags_of(&w), apart ? "interrupts" : "");
                json_of(&w.d, &text);
                CHECK(text && strstr(text, apart ? "\"irq_source\":\"irq-time-accounting\",\"window_ns\""
                                                 : "\"irq_source\":\"tick\",\"worst_irq_share_reason\":\"the kernel"));
                CHECK(strstr(text, apart ? "\"worst_irq_share\":0," : "\"worst_irq_share\":null,"));
                disturbance_deinit(&w.d);
        }
}

/* The CPU with the softirqs is not the one with the most foreign time, whose share of them is next to none. */
static void a_second_has_the_worst_softirqs(void) {
        struct window w;
        _cleanup_free_ char *text = NULL;
        window_init(&w);
        run_more(&w, 3, 2, 20 * MS);
        for (size_t s = 3; s <= SECONDS; s++)
                w.times[s][1].softirq_ns += 60 * MS;
        CHECK_INT(judge(&w), 0);
        CHECK_STRING(flags_of(&w), "softirq");
        json_of(&w.d, &text);
        CHECK(text && strstr(text, "\"cpu\":3,\"foreign_share\":0.02,\"softirq_share\":0,\"steal_share\":0,"
                                   "\"worst_softirq_share\":0.06,"));
        disturbance_deinit(&w.d);
}

/* The kernel has counted 500 ms of a second in which everything stood still for 500 ms, as busy or as steal. A reader
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
                CHECK(text &&
                      (strstr(text, "\"slowest_khz\":3000000,\"clock_change\":null,\"frequency_reason\":\"no measured "
                                    "CPU's clock was known at both readings\"") != NULL) == (known == 2));
                CHECK(text && (strstr(text, "\"clock_change\":null,\"throttled_periods\"") != NULL) == (known < 2));
                disturbance_deinit(&w.d);
        }
}

/* Each reading has the clock of another CPU than the one before it, and no CPU has two in a row. */
static void a_clock_at_one_of_two_readings_is_no_change(void) {
        struct window w;
        _cleanup_free_ char *text = NULL;
        window_init(&w);
        w.cpus[0].measured = true;
        w.run.frequency_source = "aperf-mperf";
        for (size_t s = 0; s <= SECONDS; s++)
                w.khz[s][s % 2] = 3000000;
        CHECK_INT(judge(&w), 0);
        json_of(&w.d, &text);
        CHECK(text &&
              strstr(text, "\"slowest_khz\":3000000,\"clock_change\":null,\"frequency_reason\":\"no measured CPU's "
                           "clock was known at both readings\""));
        disturbance_deinit(&w.d);
}

/* A bad second is distinguished from a good one: the clock of CPU 1 falls in second 1 and rises in second 3, and a
 * quota stops the run in second 2 for three periods. */
static void seconds_of_clock_and_quota(void) {
        static const struct {
                const char *counts, *flags;
        } wants[SECONDS] = {
                {"\"slowest_khz\":3000000,\"clock_change\":0,\"throttled_periods\":0,", "[]"},
                {"\"slowest_khz\":2400000,\"clock_change\":0.2,\"throttled_periods\":0,", "[\"noisy:frequency\"]"},
                {"\"slowest_khz\":2400000,\"clock_change\":0,\"throttled_periods\":3,", "[\"noisy:quota\"]"},
                {"\"slowest_khz\":3000000,\"clock_change\":0.2,\"throttled_periods\":0,", "[\"noisy:frequency\"]"},
                {"\"slowest_khz\":null,\"clock_change\":null,\"frequency_reason\":\"no measured CPU's clock could be "
                 "read, or "
                 "each that could only idled\",\"throttled_periods\":null,",
                 "[]"},
        };
        struct window w;
        window_init(&w);
        for (size_t s = 0; s < SECONDS; s++) {
                w.khz[s][0] = 800000; /* not measured */
                w.khz[s][1] = s == 2 || s == 3 ? 2400000 : 3000000;
                w.readings[s].throttled = s < 3 ? 12 : 15;
        }
        CHECK_INT(judge(&w), 0);
        for (size_t s = 0; s < SECONDS; s++) {
                struct json_writer j;
                _cleanup_free_ char *text = NULL;
                json_writer_init(&j);
                disturbance_put_at(&w.d, w.readings[s].at_ns, &j);
                CHECK_INT(json_writer_steal(&j, &text, NULL), 0);
                CHECK(text && strstr(text, wants[s].counts));
                const char *flags = text ? strstr(text, "\"flags\":") : NULL;
                CHECK(flags && strncmp(flags + 8, wants[s].flags, strlen(wants[s].flags)) == 0);
        }
        disturbance_deinit(&w.d);
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
}

/* For its temperature, in second 2; a CPU that is not measured is as hot in each. */
static void a_measured_cpu_is_throttled(void) {
        struct window w;
        window_init(&w);
        for (size_t s = 0; s <= SECONDS; s++) {
                w.throttles[s][0] = (int64_t) s;
                w.throttles[s][3] = s < 3 ? 40 : 42;
        }
        CHECK_INT(judge(&w), 0);
        CHECK_STRING(flags_of(&w), "throttled");
        for (size_t s = 0; s < SECONDS; s++)
                CHECK_INT(w.d.seconds[s].throttles, s == 2 ? 2 : 0);
        disturbance_deinit(&w.d);
        for (size_t s = 0; s <= SECONDS; s++)
                w.throttles[s][1] = w.throttles[s][3] = -1;
        CHECK_INT(judge(&w), 0);
        _cleanup_free_ char *text = NULL;
        json_of(&w.d, &text);
        CHECK_STRING(flags_of(&w), "");
        CHECK(strstr(text, "\"thermal_throttles\":null,\"stopped_ns\""));
        CHECK(strstr(text, "\"thermal_throttles_reason\":\"no measured CPU"));
        free(text);
        text = NULL;
        w.d.run.no_throttles = "no descriptor";
        json_of(&w.d, &text);
        CHECK(strstr(text, "\"thermal_throttles_reason\":\"no descriptor\""));
        disturbance_deinit(&w.d);
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

/* Neither CPU of the run is listed in one reading, or in all; or one of them is not, of a run that moves between both.
 */
static void cpus_that_are_not_listed_have_no_shares(void) {
        static const struct {
                bool all, roams;
                const char *worst;
        } cases[] = {
                {false, false, "\"worst\":{\"cpu\":3,\"second\":4,\"foreign_share\":0.04}"},
                {true, false, "\"worst\":null,\"worst_reason\":\"a measured CPU was not listed"},
                {false, true, "\"worst\":{\"cpu\":null,\"second\":4,\"foreign_share\":0.04}"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                w.run.roams = cases[i].roams;
                run_more(&w, 3, 4, 40 * MS);
                for (size_t s = 0; s <= SECONDS; s++) {
                        w.times[s][1].known = s != 2 && !cases[i].all;
                        w.times[s][3].known = w.times[s][1].known || cases[i].roams;
                }
                CHECK_INT(judge(&w), 0);
                CHECK_STRING(flags_of(&w), "");
                for (size_t s = 0; s < w.d.n; s++) {
                        CHECK((w.d.seconds[s].foreign < 0) == (cases[i].all || s == 1 || s == 2));
                        CHECK((w.d.seconds[s].steal < 0) == (cases[i].all || s == 1 || s == 2));
                }
                json_of(&w.d, &text);
                CHECK(text && strstr(text, cases[i].worst));
                CHECK(strstr(text, "\"cpu\":null,\"foreign_share\":null,\"foreign_share_reason\":\"a measured CPU"));
                CHECK(strstr(text, "\"worst_standstill_share\":null,\"worst_standstill_share_reason\":"));
                disturbance_deinit(&w.d);
        }
}

/* A reading without the count: a rise beside it is not the window's, one elsewhere is. */
static void a_part_of_the_quotas_count_is_unknown(void) {
        for (int more = 0; more < 2; more++) {
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                for (size_t s = 0; s <= SECONDS; s++)
                        w.readings[s].throttled = s == 2 ? -1 : s < 4 ? 12 : 12 + more;
                CHECK_INT(judge(&w), 0);
                CHECK_STRING(flags_of(&w), more ? "quota" : "");
                json_of(&w.d, &text);
                CHECK(text && strstr(text, "\"quota_throttled_periods\":null,\"quota_throttled_periods_reason\":"
                                           "\"cpu.stat of the run's cgroup"));
                disturbance_deinit(&w.d);
        }
}

/* Lengths in ms: how late the first reading was, how long the seconds were, and what came behind the last. */
static void what_was_not_observed(void) {
        static const struct {
                unsigned late, seconds[4], rest;
                bool counted;
                const char *reason;
        } cases[] = {
                {6, {994, 1000, 995}, 5, false, NULL},
                {0, {1000, 1495}, 5, false, NULL}, /* as planned: less than half a second is left over */
                {99, {901, 1000}, 0, false, NULL},
                {101, {899, 1000}, 0, false, "observed_share: "},
                {20, {160}, 0, false, NULL},
                {101, {99}, 0, false, "observed_share: "},
                {90, {0}, 0, false, NULL}, /* nothing of it, and it was short */
                {120, {0}, 0, false, "observed_share: "},
                {0, {1000, 1000, 1000, 849}, 151, false, NULL},
                {0, {1000, 1000, 1000, 795}, 205, false, "observed_share: "},
                {0, {1000, 1000}, 499, true, NULL}, /* as no one knew when the end would come */
                {0, {1000, 1000}, 499, false, "observed_share: "},
                {130, {870, 1000}, 499, true, "observed_share: "},
                {0, {1000, 1000}, 700, true, "observed_share: "},
                {450, {0}, 0, true, "observed_share: "},
                {0, {1000, 1599, 1000}, 0, false, NULL},
                {0, {1000, 1601, 1000}, 0, false, "longest_interval_ns: "},
                {200, {1700}, 0, false, "; longest_interval_ns: "},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct window w;
                _cleanup_free_ char *text = NULL;
                window_init(&w);
                CHECK_INT(disturbance_init(&w.d, &w.run), 0);
                uint64_t begin_ns = w.readings[0].at_ns, observed = 0, longest = 0;
                w.readings[0].at_ns += cases[i].late * NSEC_PER_MSEC;
                for (size_t s = 0; s < ELEMENTS(cases[i].seconds); s++) {
                        const uint64_t ns = cases[i].seconds[s] * NSEC_PER_MSEC;
                        w.readings[s + 1].at_ns = w.readings[s].at_ns + ns;
                        CHECK_INT(disturbance_add(&w.d, &w.readings[s], &w.readings[s + 1]), 0);
                        observed += ns;
                        longest = ns > longest ? ns : longest;
                }
                w.d.window = (struct disturbance_window){begin_ns, w.readings[4].at_ns + cases[i].rest * NSEC_PER_MSEC,
                                                         cases[i].counted};
                const char *reason = disturbance_unobserved(&w.d);
                if (!reason != !cases[i].reason || (reason && !strstr(reason, cases[i].reason)))
                        CHECK_FAIL("case %zu: %s", i, reason ? reason : "it was observed");
                json_of(&w.d, &text);
                struct json *root = NULL;
                double share = -1;
                int64_t number = 0;
                CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
                CHECK_INT(json_as_double(json_get(root, "observed_share"), &share), 0);
                CHECK_INT((int64_t) (share * 1e6 + 0.5),
                          (int64_t) (1e6 * (double) observed / (double) (w.d.window.end_ns - begin_ns) + 0.5));
                CHECK(longest == 0 || json_as_i64(json_get(root, "longest_interval_ns"), &number) == 0);
                CHECK_INT(number, longest);
                CHECK(!json_get(root, "not_observed_reason") == !reason);
                json_free(root);
                disturbance_deinit(&w.d);
        }
}

/* Nobody knows in advance when a window by count begins: what was observed before that is no part of it. */
static void what_lies_outside_of_the_window_is_not_of_it(void) {
        struct window w;
        window_init(&w);
        CHECK_INT(disturbance_init(&w.d, &w.run), 0);
        w.readings[0].at_ns -= 900 * NSEC_PER_MSEC; /* a long second before it */
        CHECK_INT(disturbance_add(&w.d, &w.readings[0], &w.readings[1]), 0);
        CHECK_INT(disturbance_add(&w.d, &w.readings[1], &w.readings[2]), 0);
        w.d.window = (struct disturbance_window){w.readings[1].at_ns, w.readings[2].at_ns - NSEC_PER_MSEC, true};
        CHECK(!disturbance_unobserved(&w.d));
        w.d.window.begin_ns -= 300 * NSEC_PER_MSEC;
        CHECK(disturbance_unobserved(&w.d));
        disturbance_deinit(&w.d);
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
        RUN(a_sibling_that_is_not_there);
        RUN(one_second_of_load_is_enough);
        RUN(a_short_piece_counts_in_the_mean_of_the_load);
        RUN(agents_that_run_on_while_the_reader_waits_are_no_load);
        RUN(a_load_without_the_runs_own_time_is_unknown);
        RUN(own_time_may_be_credited_late);
        RUN(agents_that_roam_are_judged_together);
        RUN(others_on_one_of_many_cpus_are_seen);
        RUN(time_that_falls_and_comes_back_is_not_foreign);
        RUN(softirqs_are_foreign_without_a_network);
        RUN(steal_and_interrupts_of_a_second);
        RUN(device_interrupts_of_a_second);
        RUN(many_packets_of_others);
        RUN(interrupts_that_are_not_read_have_a_reason);
        RUN(softirqs_of_others_beside_a_run_over_the_network);
        RUN(interrupts_by_the_tick_are_unknown);
        RUN(a_second_has_the_worst_softirqs);
        RUN(time_that_nothing_counts_is_a_standstill);
        RUN(switches_and_delays_of_a_thread);
        RUN(the_daemon_on_a_measured_cpu);
        RUN(frequency_within_the_window);
        RUN(where_frequencies_are_from);
        RUN(a_clock_at_one_of_two_readings_is_no_change);
        RUN(seconds_of_clock_and_quota);
        RUN(frequency_of_threads_that_move);
        RUN(counts_of_the_window);
        RUN(a_measured_cpu_is_throttled);
        RUN(cpus_that_come_and_go);
        RUN(cpus_that_are_not_listed_have_no_shares);
        RUN(a_part_of_the_quotas_count_is_unknown);
        RUN(what_was_not_observed);
        RUN(what_lies_outside_of_the_window_is_not_of_it);
        RUN(the_result_has_each_second);
        RUN(late_seconds_with_a_flag_are_listed);
        RUN(a_window_without_a_second_has_a_reason);
        return check_end();
}
