/* SPDX-License-Identifier: MIT */

/* How often a run of a quiet machine is flagged, by simulation: of many CPUs for a minute, and of two for a tenth of a
 * second. Its CPUs spend a hundredth of their time in softirqs, less for others, and less is stolen from them; what the
 * kernel rounds is rounded. */

#include "daemon/host/disturbance/disturbance.h"
#include "schema/random.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

#define CPUS_MAX 64u
#define RUNS 100u
#define FLAGGED_AT_MOST 2u
#define FLAGGED_AT_LEAST 95u
#define OWN_SHARE 0.9
#define QUIET_FOREIGN 0.008
#define PACKETS 20u /* of the run, and as many of others, that each CPU receives in an interval */

struct shape {
        enum cpu_time_source source;
        int64_t tick_ns;
        size_t n_cpus, n_seconds;
        uint64_t interval_ns;
        double softirq; /* of each CPU's time */
        bool disturbed;
        bool roams;     /* its threads may move among the CPUs */
        bool irq_apart; /* the kernel accounts for interrupts, which are taken off */
        bool network;   /* a run over tcp whose CPUs receive as many packets of others, which are few */
        double foreign; /* up to which share of each CPU's time is others'; 0: a quiet machine's */
};

/* The exact times of one CPU. */
struct cpu_state {
        int64_t run_ns, own_ns, softirq_ns, irq_ns, steal_ns, idle_ns;
};

static struct random random_state;

static double drawn(void) {
        return random_unit(&random_state);
}

static int64_t shown(int64_t ns) {
        return ns / CPU_TIME_STEP_NS * CPU_TIME_STEP_NS;
}

/* Each tick meets a softirq with this probability. */
static int64_t met_by_ticks(const struct shape *s) {
        const double ticks = (double) s->interval_ns / (double) s->tick_ns;
        int64_t sum = 0;
        for (double at = 0;; sum += s->tick_ns) { /* from one that meets one to the next */
                at += 1 + floor(log(1 - drawn()) / log(1 - s->softirq));
                if (at > ticks)
                        return sum;
        }
}

static void pass(const struct shape *s, struct cpu_state *c) {
        const double ns = (double) s->interval_ns;
        const int64_t own = (int64_t) (OWN_SHARE * ns),
                      foreign = (int64_t) ((s->foreign > 0 ? s->foreign : QUIET_FOREIGN) * drawn() * ns),
                      steal = (int64_t) (0.01 * drawn() * ns), irq = s->irq_apart ? (int64_t) (0.01 * drawn() * ns) : 0,
                      softirq = s->irq_apart ? (int64_t) (s->softirq * drawn() * ns) : 0;
        c->own_ns += own;
        c->run_ns += own + foreign;
        c->steal_ns += steal;
        c->irq_ns += irq;
        c->idle_ns += (int64_t) s->interval_ns - own - foreign - steal - irq - softirq;
        c->softirq_ns += s->irq_apart ? softirq : met_by_ticks(s);
}

static void read_cpus(const struct shape *s, const struct cpu_state *states, struct disturbance_reading *ret) {
        for (size_t i = 0; i < s->n_cpus; i++) {
                const struct cpu_state *c = &states[i];
                int64_t idle = shown(c->idle_ns), steal = shown(c->steal_ns), irq = shown(c->irq_ns),
                        softirq = shown(c->softirq_ns), apart = s->irq_apart ? irq + softirq : 0;
                ret->own_ns[i] = c->own_ns;
                ret->own_total_ns = ret->own_measured_ns += c->own_ns;
                ret->cpus[i] = (struct cpu_times){
                        .known = true,
                        .run_ns = s->source == CPU_TIME_IDLE ? (int64_t) ret->at_ns - idle - steal - apart : c->run_ns,
                        .idle_ns = idle,
                        .steal_ns = steal,
                        .irq_ns = irq,
                        .softirq_ns = softirq,
                        .counted_ns = shown((int64_t) ret->at_ns)};
        }
}

static bool is_flagged(const struct disturbance *d) {
        for (int k = 0; k < DISTURBANCE_KINDS; k++)
                if (disturbance_has(d, (enum disturbance_kind) k))
                        return true;
        return false;
}

static bool simulate(const struct shape *s) {
        static struct disturbance_cpu cpus[CPUS_MAX];
        static struct cpu_times times[2][CPUS_MAX];
        static int64_t own[2][CPUS_MAX], unknown[CPUS_MAX];
        static uint32_t packets[2][CPUS_MAX];
        struct cpu_state states[CPUS_MAX];
        struct disturbance_reading readings[2];
        struct disturbance d;
        for (size_t i = 0; i < s->n_cpus; i++) {
                cpus[i] = (struct disturbance_cpu){.id = (int) i, .measured = true};
                unknown[i] = -1;
                /* since the machine began: where each CPU's times are between two steps */
                states[i] = (struct cpu_state){.softirq_ns = s->irq_apart ? (int64_t) (drawn() * 1e9)
                                                                          : s->tick_ns * (int64_t) (drawn() * 1000),
                                               .irq_ns = (int64_t) (drawn() * 1e9),
                                               .steal_ns = (int64_t) (drawn() * 1e9),
                                               .idle_ns = (int64_t) (drawn() * 1e9)};
        }
        const struct disturbance_run run = {.source = s->source,
                                            .tick_ns = s->tick_ns,
                                            .cpus = cpus,
                                            .n_cpus = s->n_cpus,
                                            .roams = s->roams,
                                            .irq_apart = s->irq_apart,
                                            .softirqs_apart = s->irq_apart,
                                            .network = s->network,
                                            .no_interrupts = "not simulated"};
        if (disturbance_init(&d, &run) < 0)
                abort();
        for (size_t n = 0; n <= s->n_seconds; n++) {
                struct disturbance_reading *to = &readings[n % 2];
                const uint64_t at_ns = 100 * NSEC_PER_SEC + n * s->interval_ns;
                for (size_t i = 0; n > 0 && i < s->n_cpus; i++)
                        pass(s, &states[i]);
                *to = (struct disturbance_reading){.at_ns = at_ns,
                                                   .stat_ns = {at_ns, at_ns},
                                                   .cpus = times[n % 2],
                                                   .own_ns = own[n % 2],
                                                   .frequency_khz = unknown,
                                                   .ksoftirqd_ns = unknown,
                                                   .device_interrupts = unknown,
                                                   .throttles = unknown,
                                                   .packets = {.cpus = packets[n % 2]},
                                                   .throttled = -1};
                for (size_t i = 0; i < s->n_cpus; i++)
                        packets[n % 2][i] = 2 * PACKETS * (uint32_t) n;
                for (size_t i = 0; i < 2; i++)
                        to->packets.loopback[i] = s->network ? (int64_t) (PACKETS * s->n_cpus * n) : -1;
                read_cpus(s, states, to);
                if (n > 0 && disturbance_add(&d, &readings[(n + 1) % 2], to) < 0)
                        abort();
        }
        bool flagged = is_flagged(&d);
        disturbance_deinit(&d);
        return flagged;
}

#define MS INT64_C(1000000)

static void a_quiet_run_is_flagged_in_two_of_a_hundred_cases(void) {
        static const struct shape shapes[] = {
                {CPU_TIME_CPUACCT, 10 * MS, 64, 60, NSEC_PER_SEC, .softirq = 0.01},
                {CPU_TIME_CPUACCT, 4 * MS, 64, 60, NSEC_PER_SEC, .softirq = 0.01},
                {CPU_TIME_IDLE, 1 * MS, 64, 60, NSEC_PER_SEC, .softirq = 0.01},
                {CPU_TIME_CPUACCT, 10 * MS, 2, 3, NSEC_PER_SEC, .softirq = 0.01},
                {CPU_TIME_IDLE, 4 * MS, 2, 3, NSEC_PER_SEC, .softirq = 0.01},
                {CPU_TIME_CPUACCT, 4 * MS, 2, 1, NSEC_PER_SEC / 10, .softirq = 0.01},
                {CPU_TIME_IDLE, 10 * MS, 2, 1, NSEC_PER_SEC / 10, .softirq = 0.01},
                {CPU_TIME_IDLE, 4 * MS, 2, 1, NSEC_PER_SEC / 5, .softirq = 0.01},
                {CPU_TIME_IDLE, 4 * MS, 64, 60, NSEC_PER_SEC, .softirq = 0.01, .roams = true},
                {CPU_TIME_IDLE, 4 * MS, 64, 1, NSEC_PER_SEC / 10, .softirq = 0.01, .roams = true},
                {CPU_TIME_IDLE, 4 * MS, 2, 1, NSEC_PER_SEC / 10, .softirq = 0.01, .roams = true},
                {CPU_TIME_CPUACCT, 10 * MS, 2, 1, NSEC_PER_SEC / 10, .softirq = 0.01, .network = true},
                {CPU_TIME_CPUACCT, 4 * MS, 2, 3, NSEC_PER_SEC, .softirq = 0.01, .network = true},
                {CPU_TIME_CPUACCT, 4 * MS, 64, 60, NSEC_PER_SEC, .softirq = 0.01, .network = true},
                {CPU_TIME_CPUACCT, 1 * MS, 64, 60, 3 * NSEC_PER_SEC / 2, .softirq = 0.01, .network = true},
                /* each of the four times that are taken off is rounded */
                {CPU_TIME_IDLE, 4 * MS, 64, 60, NSEC_PER_SEC, .softirq = 0.01, .irq_apart = true},
                {CPU_TIME_IDLE, 4 * MS, 64, 1, NSEC_PER_SEC / 2, .softirq = 0.01, .irq_apart = true},
                {CPU_TIME_IDLE, 4 * MS, 2, 1, NSEC_PER_SEC / 2, .softirq = 0.01, .irq_apart = true},
                {CPU_TIME_IDLE, 4 * MS, 64, 1, NSEC_PER_SEC / 10, .softirq = 0.01, .irq_apart = true},
                {CPU_TIME_IDLE, 4 * MS, 64, 60, NSEC_PER_SEC, .softirq = 0.01, .irq_apart = true, .roams = true},
                {CPU_TIME_IDLE, 4 * MS, 64, 1, NSEC_PER_SEC / 2, .softirq = 0.01},
                /* and one that is disturbed, in each second and in one of its two CPUs at least */
                {CPU_TIME_CPUACCT, 10 * MS, 2, 3, NSEC_PER_SEC, .softirq = 0.08, .disturbed = true},
                {CPU_TIME_CPUACCT, 4 * MS, 2, 3, NSEC_PER_SEC, .softirq = 0.07, .disturbed = true},
                {CPU_TIME_CPUACCT, 1 * MS, 2, 3, NSEC_PER_SEC, .softirq = 0.06, .disturbed = true},
                {CPU_TIME_CPUACCT, 4 * MS, 64, 60, NSEC_PER_SEC, .softirq = 0.06, .disturbed = true},
                {CPU_TIME_IDLE, 4 * MS, 2, 3, NSEC_PER_SEC, .softirq = 0.01, .disturbed = true, .roams = true,
                 .foreign = 0.2},
                {CPU_TIME_IDLE, 4 * MS, 64, 3, NSEC_PER_SEC, .softirq = 0.01, .disturbed = true, .roams = true,
                 .foreign = 0.02},
                {CPU_TIME_IDLE, 4 * MS, 2, 3, NSEC_PER_SEC, .softirq = 0.01, .disturbed = true, .irq_apart = true,
                 .foreign = 0.2},
                {CPU_TIME_CPUACCT, 10 * MS, 2, 3, NSEC_PER_SEC, .softirq = 0.1, .disturbed = true, .network = true},
                {CPU_TIME_CPUACCT, 1 * MS, 64, 3, NSEC_PER_SEC, .softirq = 0.03, .disturbed = true, .network = true},
        };
        for (size_t i = 0; i < ELEMENTS(shapes); i++) {
                unsigned flagged = 0;
                random_init(&random_state, 20261128 + i);
                for (unsigned n = 0; n < RUNS; n++)
                        flagged += simulate(&shapes[i]);
                if (shapes[i].disturbed ? flagged < FLAGGED_AT_LEAST : flagged > FLAGGED_AT_MOST)
                        CHECK_FAIL("case %zu: %u of %u", i, flagged, RUNS);
        }
}

int main(void) {
        RUN(a_quiet_run_is_flagged_in_two_of_a_hundred_cases);
        return check_end();
}
