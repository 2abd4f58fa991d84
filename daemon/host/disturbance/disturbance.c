/* SPDX-License-Identifier: MIT */

/*
 * Judges the seconds of a run's window. Foreign time of a CPU is what it ran less what the run's agents ran on it, both
 * of the same exact kind (cpu-time.h).
 */

#include "daemon/host/disturbance/disturbance.h"

#include "schema/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A twentieth of a CPU in any second is what a figure shows; kernel threads and timers of a quiet machine take less
 * than a hundredth. The share of the run's own rounding is below one hundredth, too: a tick of 4 ms at each reading. */
#define CPU_SHARE 0.05
/* Where the tick counts softirqs, the ticks are a sample of them: on a CPU that spends QUIET_SOFTIRQ_SHARE of its time
 * in softirqs, five of a hundred ticks meet one by chance in one second of 300. FLAGGED_BY_CHANCE is the probability
 * that any second of any measured CPU of such a run is flagged by chance. */
#define QUIET_SOFTIRQ_SHARE 0.01
#define FLAGGED_BY_CHANCE 0.02
/* Ticks miss time of a CPU whose tasks sleep and wake in step with them: up to 47 % of a quiet second was seen where a
 * timer wakes them. They miss about as much of each second of a run: 14 points were the most between two. */
#define STANDSTILL_SHARE 0.6
#define STANDSTILL_MORE_SHARE 0.3
/* Packets take 1 to 3 µs each, of which softirqs are 0.7 to 1 µs and interrupts the rest (a loop on a CPU lost 1.2 to
 * 2.6 µs of its own time for each): of 16000 a second that is up to CPU_SHARE. Their number is exact, whereas the tick
 * counts from a third to twice of what their softirqs take, and none of those that come in step with it. */
#define FOREIGN_PACKETS_PER_SECOND 16000.0
/* CPUs that are judged together: what kernel threads and timers may take of each CPU but the first. */
#define QUIET_SHARE 0.005
/* A thread alone on its CPU makes way for kernel threads 20 to 100 times a second, and for what the start of a run left
 * up to 190 times in its first. Each switch costs some microseconds and the caches: 250 are a thousandth of the CPU,
 * and of round trips of 40 µs one in a hundred has one, which p99 shows. */
#define INVOLUNTARY_PER_SECOND 250.0
/* Segments that may have been lost, of those that were sent again. TCP also sends again what is late, which loopback
 * makes of each segment that another CPU delivers. The other end reports what arrived twice, though not each: up to 8
 * of a hundred were not reported of runs that lost nothing, so one or two are no sign where timeouts are known: a loss
 * that nothing follows shows in one. Where they are not, each may be such a loss. */
#define LOST_SEGMENTS 3
#define LOST_SHARE 0.25
/* Frequency: one bin of a turbo is 100 MHz, 3 % of a usual clock; more is a change that a figure shows. */
#define FREQUENCY_SHARE 0.05
/* Foreign work anywhere on the machine, in CPUs: half a CPU that streams memory already takes bandwidth away from a
 * socket. Not the load average, which still remembers the run before. A second is judged by itself, as four CPUs that
 * are busy for one second of ten are 0.4 in the mean. That flags no quiet run: of 1330 pieces of half a second, on a
 * guest with two CPUs, three of four had less than 0.03 though other programs were at work beside some, and of a
 * hundred CPUs with steps of 10 ms the rounding is below a tenth of a CPU in all. Of a shorter piece it is not, so that
 * such a one counts in the mean alone. Nor are a few interrupts in a row of a short piece many a second. */
#define LOAD_CPUS 0.5
#define PIECE_NS (400 * NSEC_PER_MSEC)
/* The agents' own time that is missing in the CPUs', in CPUs: up to here it is rounding, and the load is none. More
 * would hide as much of a load, which is not known then. */
#define LOAD_DOUBT_CPUS (LOAD_CPUS / 2)
/* The most that two readings at not quite one instant may differ by; no more is carried into the next second, apart
 * from time that is credited late. */
#define CARRY_NS ((int64_t) (20 * NSEC_PER_MSEC))
/* Each second is listed up to here, and of those after it that have a flag as many again. */
#define LISTED_SECONDS 600u

static const char *const flags[DISTURBANCE_KINDS] = {
        [DISTURBANCE_FOREIGN_CPU] = "noisy:foreign-cpu",
        [DISTURBANCE_SOFTIRQ] = "noisy:softirq",
        [DISTURBANCE_SMT_SIBLING] = "noisy:smt-sibling",
        [DISTURBANCE_DAEMON] = "noisy:daemon",
        [DISTURBANCE_PREEMPTION] = "noisy:preemption",
        [DISTURBANCE_RUN_QUEUE_DELAY] = "noisy:run-queue-delay",
        [DISTURBANCE_QUOTA] = "noisy:quota",
        [DISTURBANCE_FREQUENCY] = "noisy:frequency",
        [DISTURBANCE_THROTTLED] = "noisy:throttled",
        [DISTURBANCE_RETRANSMITS] = "noisy:retransmits",
        [DISTURBANCE_STOPPED] = "noisy:stopped",
        [DISTURBANCE_LOAD] = "noisy:load",
        [DISTURBANCE_STEAL] = "noisy:steal",
        [DISTURBANCE_INTERRUPTS] = "noisy:interrupts",
        [DISTURBANCE_STANDSTILL] = "noisy:standstill",
};

const char *disturbance_flag(enum disturbance_kind kind) {
        return (size_t) kind < DISTURBANCE_KINDS ? flags[kind] : NULL;
}

int disturbance_init(struct disturbance *d, const struct disturbance_run *run) {
        *d = (struct disturbance){.run = *run, .least_standstill = -1, .stopped_ns = -1, .ksoftirqd_ns = -1};
        for (int what = 0; what < DISTURBANCE_NOTED; what++)
                d->noted[what] = -1;
        d->carry_ns = calloc(run->n_cpus + 2, sizeof(int64_t));
        d->slowest_khz = malloc((run->n_cpus + 1) * sizeof(int64_t));
        d->fastest_khz = malloc((run->n_cpus + 1) * sizeof(int64_t));
        if (!d->carry_ns || !d->slowest_khz || !d->fastest_khz) {
                disturbance_deinit(d);
                return -ENOMEM;
        }
        for (size_t i = 0; i < run->n_cpus; i++) {
                d->slowest_khz[i] = d->fastest_khz[i] = -1;
                d->n_measured += run->cpus[i].measured;
        }
        return 0;
}

void disturbance_deinit(struct disturbance *d) {
        free(d->seconds);
        free(d->carry_ns);
        free(d->slowest_khz);
        free(d->fastest_khz);
        free(d->notes);
        *d = (struct disturbance){0};
}

/* Counters of a CPU that went and came back begin at 0 again. */
static int64_t grown(int64_t before, int64_t after) {
        return after > before ? after - before : 0;
}

/* Where interrupts are taken off, the time of a CPU may fall between two readings, and rises by as much in the next.
 * More than all the time that passed is a counter that began at 0 again. */
static int64_t moved(int64_t before, int64_t after, uint64_t interval_ns) {
        return before - after > (int64_t) interval_ns ? 0 : after - before;
}

/* A run's own time that the source has not credited yet makes the difference negative: it is carried into the next
 * second, where the credit comes. limit: what two readings may differ by. Negative: so much is not credited yet. */
static int64_t foreign_or_missing(const struct disturbance *d, int64_t *carry, int64_t limit, int64_t ran,
                                  int64_t own) {
        int64_t ns = ran - own + *carry;
        *carry = ns < 0 ? ns : 0;
        if (d->run.source != CPU_TIME_SCHEDSTAT && *carry < -limit)
                *carry = -limit;
        return ns;
}

static int64_t foreign(const struct disturbance *d, int64_t *carry, int64_t ran, int64_t own) {
        int64_t ns = foreign_or_missing(d, carry, CARRY_NS, ran, own);
        return ns > 0 ? ns : 0;
}

/* The sum of the measured CPUs in all seconds: a reading that lacks one of them makes it unknown for good. */
static void add_ksoftirqd(struct disturbance *d, const int64_t *before, const int64_t *after) {
        if (d->n == 1)
                d->ksoftirqd_ns = 0;
        for (size_t i = 0; i < d->run.n_cpus && d->ksoftirqd_ns >= 0; i++)
                if (d->run.cpus[i].measured)
                        d->ksoftirqd_ns =
                                before[i] >= 0 && after[i] >= 0 ? d->ksoftirqd_ns + grown(before[i], after[i]) : -1;
}

/* What ksoftirqd used of a measured CPU on behalf of the run, of the time that its tasks ran: nothing where softirqs
 * are not the run's own, or where that time does not contain them. */
static int64_t own_ksoftirqd(const struct disturbance *d, int64_t before, int64_t after) {
        return d->run.network && !d->run.softirqs_apart && before >= 0 && after >= 0 ? grown(before, after) : 0;
}

static double most(double a, double b) {
        return a > b ? a : b;
}

/* Time that a CPU has not counted as anything: a clock interrupt counts one tick, however late it comes, so a CPU that
 * stood still while it was busy has less than has passed. What passed between the two readings of /proc/stat is taken
 * at its least, as the reader itself may have waited for a CPU. -1: it is not known, as of a CPU that was away. */
static int64_t standstill_ns(const struct disturbance_reading *b, const struct disturbance_reading *a, size_t cpu) {
        int64_t passed = (int64_t) (a->stat_ns[0] - b->stat_ns[1]);
        int64_t counted = grown(b->cpus[cpu].counted_ns, a->cpus[cpu].counted_ns);
        if (counted == 0)
                return -1;
        return passed > counted ? passed - counted : 0;
}

/* Sums over the CPUs that are listed in both readings. */
struct cpu_sums {
        int64_t ran_all;
        int64_t ran, softirq, steal, ksoftirqd; /* of those that are measured */
        size_t n_all, n;
};

static void judge_cpu(struct disturbance *d, const struct disturbance_reading *b, const struct disturbance_reading *a,
                      size_t i, struct disturbance_second *s, struct cpu_sums *sums) {
        const struct cpu_times *x = &b->cpus[i], *y = &a->cpus[i];
        const double interval = (double) s->interval_ns;
        int64_t ran = moved(x->run_ns, y->run_ns, s->interval_ns), still = standstill_ns(b, a, i),
                softirq = grown(x->softirq_ns, y->softirq_ns), steal = grown(x->steal_ns, y->steal_ns),
                ksoftirqd = own_ksoftirqd(d, b->ksoftirqd_ns[i], a->ksoftirqd_ns[i]);
        s->worst_softirq = most(s->worst_softirq, (double) softirq / interval);
        if (d->run.irq_apart)
                s->worst_irq = most(s->worst_irq, (double) grown(x->irq_ns, y->irq_ns) / interval);
        s->worst_steal = most(s->worst_steal, (double) steal / interval);
        s->standstill_known = s->standstill_known && still >= 0;
        if (still >= 0)
                s->worst_standstill = most(s->worst_standstill, (double) still / interval);
        sums->n++;
        sums->ran += ran;
        sums->softirq += softirq;
        sums->steal += steal;
        sums->ksoftirqd += ksoftirqd;
        if (d->run.roams)
                return;
        int64_t own = a->own_ns[i] - b->own_ns[i] + ksoftirqd;
        double share = (double) foreign(d, &d->carry_ns[i], ran, own) / interval;
        if (s->cpu >= 0 && share <= s->foreign)
                return;
        s->cpu = d->run.cpus[i].id;
        s->foreign = share;
        s->softirq = (double) softirq / interval;
        s->steal = (double) steal / interval;
}

/* How much later than the agents' own times those of the CPUs were read. */
static int64_t gap_ns(const struct disturbance_reading *r) {
        return (int64_t) (r->stat_ns[1] - r->at_ns);
}

#define NO_CPU_OF_ALL "a CPU of the machine was not listed in /proc/stat at both readings"
#define NOT_CREDITED "the kernel had not credited its CPUs with all of the run's own time"

/* What all CPUs ran less what the agents ran. Where the second reading took longer than the first, as the daemon itself
 * waited for a CPU, the CPUs' times have more of the agents' than their own: that much is no load. */
static void judge_load(struct disturbance *d, const struct disturbance_reading *b, const struct disturbance_reading *a,
                       const struct cpu_sums *sums, struct disturbance_second *s) {
        int64_t own = a->own_total_ns - b->own_total_ns + sums->ksoftirqd, longer = gap_ns(a) - gap_ns(b);
        const double interval = (double) s->interval_ns;
        s->load = -1;
        if (sums->n_all < d->run.n_cpus) {
                s->load_reason = NO_CPU_OF_ALL;
                d->load_unknown = true;
                return;
        }
        d->foreign_total_ns += sums->ran_all - own;
        int64_t ns = foreign_or_missing(d, &d->carry_ns[d->run.n_cpus + 1], (int64_t) d->run.n_cpus * CARRY_NS,
                                        sums->ran_all, own);
        if ((double) ns < -LOAD_DOUBT_CPUS * interval)
                s->load_reason = NOT_CREDITED;
        else
                s->load =
                        most(0, (double) ns - (longer > 0 ? (double) own / interval * (double) longer : 0)) / interval;
}

/* All measured CPUs together: one that is missing makes the sums unknown. */
static void judge_together(struct disturbance *d, const struct disturbance_reading *b,
                           const struct disturbance_reading *a, const struct cpu_sums *sums,
                           struct disturbance_second *s) {
        if (sums->n < d->n_measured || sums->n == 0)
                return;
        int64_t own = a->own_measured_ns - b->own_measured_ns + sums->ksoftirqd;
        const double interval = (double) s->interval_ns, all = interval * (double) sums->n;
        s->foreign = (double) foreign(d, &d->carry_ns[d->run.n_cpus], sums->ran, own) / interval;
        s->softirq = (double) sums->softirq / all;
        s->steal = (double) sums->steal / all;
}

static void judge_cpus(struct disturbance *d, const struct disturbance_reading *b, const struct disturbance_reading *a,
                       struct disturbance_second *s) {
        struct cpu_sums sums = {0};
        s->cpu = -1;
        s->foreign = s->softirq = s->steal = -1;
        s->worst_softirq = s->worst_irq = s->worst_steal = s->worst_standstill = s->sibling = -1;
        s->standstill_known = d->n_measured > 0;
        for (size_t i = 0; i < d->run.n_cpus; i++) {
                const struct disturbance_cpu *cpu = &d->run.cpus[i];
                if (!b->cpus[i].known || !a->cpus[i].known) {
                        s->standstill_known = s->standstill_known && !cpu->measured;
                        continue;
                }
                int64_t ran = moved(b->cpus[i].run_ns, a->cpus[i].run_ns, s->interval_ns);
                sums.n_all++;
                sums.ran_all += ran;
                if (cpu->sibling)
                        s->sibling = most(s->sibling, (double) ran / (double) s->interval_ns);
                if (cpu->measured)
                        judge_cpu(d, b, a, i, s, &sums);
        }
        judge_load(d, b, a, &sums, s);
        if (d->run.roams)
                judge_together(d, b, a, &sums, s);
}

static void judge_interrupts(const struct disturbance *d, const struct disturbance_reading *b,
                             const struct disturbance_reading *a, struct disturbance_second *s) {
        s->device_interrupts = -1;
        for (size_t i = 0; i < d->run.n_cpus; i++)
                if (d->run.cpus[i].measured && b->device_interrupts[i] >= 0 && a->device_interrupts[i] >= 0)
                        s->device_interrupts = most(s->device_interrupts,
                                                    (double) grown(b->device_interrupts[i], a->device_interrupts[i]) *
                                                            1e9 / (double) s->interval_ns);
}

/* Packets that the measured CPUs received less all that passed the loopback device, whichever CPU received them, are
 * others' at least. Their share of the softirqs is taken to be that of the packets. */
static void judge_packets(const struct disturbance *d, const struct disturbance_reading *b,
                          const struct disturbance_reading *a, struct disturbance_second *s) {
        uint64_t received = 0;
        int64_t softirq_ns = 0;
        s->packets = s->foreign_softirq = s->all_softirq = -1;
        if (b->packets.loopback[0] < 0 || a->packets.loopback[1] < 0)
                return;
        for (size_t i = 0; i < d->run.n_cpus; i++) {
                if (!d->run.cpus[i].measured)
                        continue;
                if (!b->cpus[i].known || !a->cpus[i].known)
                        return;
                received += (uint32_t) (a->packets.cpus[i] - b->packets.cpus[i]);
                softirq_ns += grown(b->cpus[i].softirq_ns, a->cpus[i].softirq_ns);
        }
        int64_t others = grown(a->packets.loopback[1] - b->packets.loopback[0], (int64_t) received);
        s->packets = (double) others * 1e9 / (double) s->interval_ns;
        s->all_softirq = (double) softirq_ns / (double) s->interval_ns;
        s->foreign_softirq = received ? s->all_softirq * (double) others / (double) received : 0;
}

static void judge_threads(const struct disturbance *d, const struct disturbance_reading *b,
                          const struct disturbance_reading *a, struct disturbance_second *s) {
        s->involuntary_per_second = s->delay = -1;
        for (size_t i = 0; i < d->run.n_threads; i++) {
                if (b->involuntary[i] >= 0 && a->involuntary[i] >= 0)
                        s->involuntary_per_second =
                                most(s->involuntary_per_second, (double) grown(b->involuntary[i], a->involuntary[i]) *
                                                                        1e9 / (double) s->interval_ns);
                if (b->delay_ns[i] >= 0 && a->delay_ns[i] >= 0)
                        s->delay = most(s->delay,
                                        (double) grown(b->delay_ns[i], a->delay_ns[i]) / (double) s->interval_ns);
        }
}

/* Where threads move among several CPUs, those that idle lower their clocks, whatever the run does. */
static bool has_frequency(const struct disturbance *d) {
        return !d->run.roams || d->n_measured < 2;
}

static void add_frequencies(struct disturbance *d, const struct disturbance_reading *at) {
        for (size_t i = 0; i < d->run.n_cpus; i++) {
                int64_t khz = at->frequency_khz[i];
                if (khz <= 0 || !d->run.cpus[i].measured || !has_frequency(d))
                        continue;
                if (d->slowest_khz[i] < 0 || khz < d->slowest_khz[i])
                        d->slowest_khz[i] = khz;
                if (khz > d->fastest_khz[i])
                        d->fastest_khz[i] = khz;
        }
}

static void judge_throttles(const struct disturbance *d, const struct disturbance_reading *b,
                            const struct disturbance_reading *a, struct disturbance_second *s) {
        s->throttles = -1;
        for (size_t i = 0; i < d->run.n_cpus; i++) {
                int64_t n = grown(b->throttles[i], a->throttles[i]);
                if (d->run.cpus[i].measured && b->throttles[i] >= 0 && a->throttles[i] >= 0 && n > s->throttles)
                        s->throttles = n;
        }
}

static void judge_clocks(const struct disturbance *d, const struct disturbance_reading *b,
                         const struct disturbance_reading *a, struct disturbance_second *s) {
        s->slowest_khz = -1;
        s->clock_change = -1;
        for (size_t i = 0; has_frequency(d) && i < d->run.n_cpus; i++) {
                int64_t from = b->frequency_khz[i], to = a->frequency_khz[i];
                if (!d->run.cpus[i].measured || to <= 0)
                        continue;
                if (s->slowest_khz < 0 || to < s->slowest_khz)
                        s->slowest_khz = to;
                if (from > 0)
                        s->clock_change =
                                most(s->clock_change, (double) llabs(to - from) / (double) (to > from ? to : from));
        }
}

int disturbance_add(struct disturbance *d, const struct disturbance_reading *before,
                    const struct disturbance_reading *after) {
        if (d->n == d->size) {
                size_t size = d->size ? 2 * d->size : 16;
                struct disturbance_second *seconds = realloc(d->seconds, size * sizeof(*seconds));
                if (!seconds)
                        return -ENOMEM;
                d->seconds = seconds;
                d->size = size;
        }
        if (after->at_ns <= before->at_ns)
                return 0;
        struct disturbance_second *s = &d->seconds[d->n++];
        *s = (struct disturbance_second){.begin_ns = before->at_ns, .interval_ns = after->at_ns - before->at_ns};
        add_ksoftirqd(d, before->ksoftirqd_ns, after->ksoftirqd_ns);
        judge_cpus(d, before, after, s);
        judge_threads(d, before, after, s);
        judge_interrupts(d, before, after, s);
        judge_packets(d, before, after, s);
        if (s->standstill_known && (d->least_standstill < 0 || s->worst_standstill < d->least_standstill))
                d->least_standstill = s->worst_standstill;
        if (d->run.daemon_measured)
                s->daemon = (double) grown(before->daemon_ns, after->daemon_ns) / (double) s->interval_ns;
        if (d->n == 1)
                add_frequencies(d, before);
        add_frequencies(d, after);
        judge_clocks(d, before, after, s);
        judge_throttles(d, before, after, s);
        s->throttled =
                before->throttled >= 0 && after->throttled >= 0 ? grown(before->throttled, after->throttled) : -1;
        d->throttled += s->throttled > 0 ? s->throttled : 0;
        d->throttled_unknown |= s->throttled < 0;
        d->interval_total_ns += (int64_t) s->interval_ns;
        return 0;
}

/* How long the agent stood still that did so the longest. */
static int64_t longest_stop(const struct disturbance_second *s) {
        int64_t first = s->noted[END_FIRST][DISTURBANCE_STOP_NS], second = s->noted[END_SECOND][DISTURBANCE_STOP_NS];
        return first > second ? first : second;
}

/* The count of both agents; -1: not known. */
static int64_t noted_in(const struct disturbance *d, const struct disturbance_second *s, enum disturbance_noted what) {
        return d->noted[what] < 0 ? -1 : s->noted[END_FIRST][what] + s->noted[END_SECOND][what];
}

/* -1: not known. */
static int64_t lost_segments(int64_t sent_again, int64_t spurious) {
        if (sent_again < 0 || spurious < 0)
                return -1;
        return sent_again > spurious ? sent_again - spurious : 0;
}

static int64_t lost_in_window(const struct disturbance *d) {
        return lost_segments(d->noted[DISTURBANCE_SENT_AGAIN], d->noted[DISTURBANCE_SPURIOUS]);
}

static int64_t lost_in(const struct disturbance *d, const struct disturbance_second *s) {
        return lost_segments(noted_in(d, s, DISTURBANCE_SENT_AGAIN), noted_in(d, s, DISTURBANCE_SPURIOUS));
}

/* The flag noisy:retransmits, as far as it follows from the number of segments that may have been lost. */
static bool are_lost(const struct disturbance *d) {
        int64_t lost = lost_in_window(d);
        return lost >= (d->noted[DISTURBANCE_TIMED_OUT] < 0 ? 1 : LOST_SEGMENTS) &&
               (double) lost > LOST_SHARE * (double) d->noted[DISTURBANCE_SENT_AGAIN];
}

/* Whether a time that is shown in steps is a share of so much, and, but for half of CPU_SHARE, is so without what
 * rounding may have added: in a second, four steps of five are left, in a tenth of one none of one. */
static bool is_share_of_steps(const struct disturbance_second *s, double share, double limit, double added_ns) {
        const double interval_ns = (double) s->interval_ns;
        return share >= limit && share * interval_ns - added_ns >= (limit - CPU_SHARE / 2) * interval_ns;
}

static bool is_share_of_cpu(const struct disturbance_second *s, double share) {
        return is_share_of_steps(s, share, CPU_SHARE, cpu_time_rounding_ns(1));
}

/* How many times that are shown in steps the time that a CPU ran is made of: cpu_time_read(). */
static size_t rounded_times(const struct disturbance *d) {
        const bool idle = d->run.source == CPU_TIME_IDLE;
        return (size_t) idle + (idle || d->run.irq_apart) + (d->run.softirqs_apart ? 2 : 0);
}

/* Whether foreign work on the machine is more than LOAD_CPUS, and more than rounding makes of half as much by chance,
 * in any second or in the mean of a run: each rounded time is wrong by the difference of two parts of a step, whose
 * variance is a sixth. */
static bool is_load(const struct disturbance *d, double cpus, double interval_ns) {
        const double n = (double) (rounded_times(d) * d->run.n_cpus), step_ns = (double) CPU_TIME_STEP_NS,
                     longer_ns = (cpus - LOAD_CPUS / 2) * interval_ns;
        return cpus > LOAD_CPUS && (longer_ns >= n * step_ns || erfc(longer_ns / (step_ns * sqrt(n / 3))) / 2 <=
                                                                        FLAGGED_BY_CHANCE / (double) (d->n + 1));
}

/* Whether others used at least `limit` of the time of n_cpus CPUs. */
static bool is_share(const struct disturbance *d, const struct disturbance_second *s, double share, double limit,
                     size_t n_cpus) {
        return share >= limit &&
               (d->run.source != CPU_TIME_IDLE || is_share_of_steps(s, share, limit, cpu_time_rounding_ns(n_cpus)));
}

/* The probability of n or more events where `expected` are expected: Poisson, and its normal approximation above 500.
 */
static double chance_of(uint64_t n, double expected) {
        if (expected > 500)
                return erfc(((double) n - 0.5 - expected) / sqrt(2 * expected)) / 2;
        double fewer = 0, one = exp(-expected);
        for (uint64_t i = 0; i < n; i++) {
                fewer += one;
                one *= expected / (double) (i + 1);
        }
        return 1 - fewer;
}

/* Whether the tick met softirqs on n_cpus CPUs more often than chance explains on quiet ones, in one of n_tests. The
 * ticks that rounding may have added are subtracted first. */
static bool is_more_than_chance(const struct disturbance *d, const struct disturbance_second *s, double share,
                                size_t n_cpus, size_t n_tests) {
        if (d->run.irq_apart || d->run.tick_ns <= 0)
                return true;
        const double tick_ns = (double) d->run.tick_ns, interval_ns = (double) s->interval_ns,
                     least_ns = share * interval_ns - cpu_time_rounding_ns(n_cpus) + 0.5;
        uint64_t ticks = 1 + (least_ns > 0 ? (uint64_t) (least_ns / tick_ns) : 0);
        return chance_of(ticks, QUIET_SOFTIRQ_SHARE * (double) n_cpus * interval_ns / tick_ns) <=
               FLAGGED_BY_CHANCE / (double) n_tests;
}

/* A run over tcp is judged by others' part of all softirqs of its CPUs, any other run by all softirqs of one CPU. */
static bool has_softirqs(const struct disturbance *d, const struct disturbance_second *s) {
        if (!d->run.network)
                return is_share_of_cpu(s, s->worst_softirq) &&
                       is_more_than_chance(d, s, s->worst_softirq, 1, d->n_measured * d->n);
        const double part = s->all_softirq > 0 ? s->foreign_softirq / s->all_softirq : 0;
        return is_share_of_steps(s, s->foreign_softirq, CPU_SHARE, part * cpu_time_rounding_ns(d->n_measured)) &&
               is_more_than_chance(d, s, s->all_softirq, d->n_measured, d->n);
}

static bool second_has(const struct disturbance *d, const struct disturbance_second *s, enum disturbance_kind kind) {
        switch (kind) {
        case DISTURBANCE_FOREIGN_CPU:
                return s->cpu >= 0 ? is_share(d, s, s->foreign, CPU_SHARE, 1)
                                   : is_share(d, s, s->foreign, CPU_SHARE + QUIET_SHARE * (double) (d->n_measured - 1),
                                              d->n_measured);
        case DISTURBANCE_SOFTIRQ:
                return has_softirqs(d, s) || (s->packets >= FOREIGN_PACKETS_PER_SECOND && s->interval_ns >= PIECE_NS);
        case DISTURBANCE_STEAL:
                return is_share_of_cpu(s, s->worst_steal);
        case DISTURBANCE_INTERRUPTS:
                return is_share_of_cpu(s, s->worst_irq) ||
                       (s->device_interrupts > DISTURBANCE_DEVICE_INTERRUPTS_PER_SECOND && s->interval_ns >= PIECE_NS);
        case DISTURBANCE_STANDSTILL:
                return s->worst_standstill >= STANDSTILL_SHARE ||
                       (d->least_standstill >= 0 && s->worst_standstill - d->least_standstill >= STANDSTILL_MORE_SHARE);
        case DISTURBANCE_LOAD:
                return s->interval_ns >= PIECE_NS && is_load(d, s->load, (double) s->interval_ns);
        case DISTURBANCE_SMT_SIBLING:
                return is_share(d, s, s->sibling, CPU_SHARE, 1);
        case DISTURBANCE_DAEMON:
                return s->daemon >= CPU_SHARE;
        case DISTURBANCE_PREEMPTION:
                return s->involuntary_per_second >= INVOLUNTARY_PER_SECOND;
        case DISTURBANCE_RUN_QUEUE_DELAY:
                return s->delay >= CPU_SHARE;
        case DISTURBANCE_QUOTA:
                return s->throttled > 0;
        case DISTURBANCE_STOPPED:
                return d->stopped_ns > 0 && longest_stop(s) > 0;
        case DISTURBANCE_RETRANSMITS: /* the other end may report in the next second what it got twice in this one */
                return noted_in(d, s, DISTURBANCE_TIMED_OUT) > 0 || (are_lost(d) && lost_in(d, s) > 0);
        case DISTURBANCE_THROTTLED:
                return s->throttles > 0;
        case DISTURBANCE_FREQUENCY:
                return s->clock_change > FREQUENCY_SHARE;
        default:
                return false;
        }
}

static bool second_has_any(const struct disturbance *d, const struct disturbance_second *s) {
        for (int kind = 0; kind < DISTURBANCE_KINDS; kind++)
                if (second_has(d, s, (enum disturbance_kind) kind))
                        return true;
        return false;
}

static bool frequency_changed(const struct disturbance *d) {
        for (size_t i = 0; i < d->run.n_cpus; i++)
                if (d->slowest_khz[i] > 0 &&
                    (double) (d->fastest_khz[i] - d->slowest_khz[i]) > FREQUENCY_SHARE * (double) d->fastest_khz[i])
                        return true;
        return false;
}

/* Why the mean load of the run is not known; NULL: it is. */
static const char *no_load(const struct disturbance *d) {
        if (d->n == 0)
                return DISTURBANCE_NO_SECOND;
        if (d->load_unknown)
                return NO_CPU_OF_ALL;
        return (double) d->foreign_total_ns < -LOAD_DOUBT_CPUS * (double) d->interval_total_ns ? NOT_CREDITED : NULL;
}

/* -1: not known. */
static double mean_load(const struct disturbance *d) {
        return no_load(d) ? -1 : most(0, (double) d->foreign_total_ns / (double) d->interval_total_ns);
}

/* The mean of a short window may be rounding alone. */
static bool is_mean_load(const struct disturbance *d) {
        return is_load(d, mean_load(d), (double) d->interval_total_ns);
}

/* NULL: of no second is it known. */
static const struct disturbance_second *worst_load(const struct disturbance *d) {
        const struct disturbance_second *worst = NULL;
        for (size_t i = 0; i < d->n; i++)
                if (d->seconds[i].load >= 0 && (!worst || d->seconds[i].load > worst->load))
                        worst = &d->seconds[i];
        return worst;
}

bool disturbance_has(const struct disturbance *d, enum disturbance_kind kind) {
        if (kind == DISTURBANCE_QUOTA)
                return d->throttled > 0;
        if (kind == DISTURBANCE_RETRANSMITS)
                return d->noted[DISTURBANCE_TIMED_OUT] > 0 || are_lost(d);
        if (kind == DISTURBANCE_STOPPED)
                return d->stopped_ns > 0;
        if (kind == DISTURBANCE_FREQUENCY)
                return frequency_changed(d);
        if (kind == DISTURBANCE_LOAD && is_mean_load(d))
                return true;
        for (size_t i = 0; i < d->n; i++)
                if (second_has(d, &d->seconds[i], kind))
                        return true;
        return false;
}

/* How the seconds lie in the window. */
struct coverage {
        uint64_t window_ns, observed_ns, rest_ns; /* rest: behind the last second */
        uint64_t longest_ns;
};

static struct coverage coverage_of(const struct disturbance *d) {
        const struct disturbance_window *w = &d->window;
        struct coverage c = {.window_ns = w->end_ns > w->begin_ns ? w->end_ns - w->begin_ns : 0};
        for (size_t i = 0; i < d->n; i++) {
                const struct disturbance_second *s = &d->seconds[i];
                uint64_t end_ns = s->begin_ns + s->interval_ns;
                uint64_t from_ns = s->begin_ns > w->begin_ns ? s->begin_ns : w->begin_ns,
                         to_ns = end_ns < w->end_ns ? end_ns : w->end_ns;
                if (from_ns >= to_ns)
                        continue;
                c.observed_ns += to_ns - from_ns;
                c.rest_ns = w->end_ns - to_ns;
                c.longest_ns = s->interval_ns > c.longest_ns ? s->interval_ns : c.longest_ns;
        }
        return c;
}

#define PART_IS_MISSING "observed_share: a part of the window lies before the first reading or after the last"
#define SECOND_IS_LONG                                                                                                 \
        "longest_interval_ns: a reading came late or failed, and the mean of so long a time hides a disturbance"

const char *disturbance_unobserved(const struct disturbance *d) {
        static const char *const reasons[2][2] = {{NULL, SECOND_IS_LONG},
                                                  {PART_IS_MISSING, PART_IS_MISSING "; " SECOND_IS_LONG}};
        const struct coverage c = coverage_of(d);
        uint64_t missing_ns = c.window_ns - c.observed_ns;
        if (d->window.counted && c.observed_ns > 0)
                missing_ns -= c.rest_ns < OBSERVED_REST_NS ? c.rest_ns : OBSERVED_REST_NS;
        return reasons[!observed_without(c.window_ns, missing_ns)][c.longest_ns > OBSERVED_LONG_NS];
}

static void member_or_null(struct json_writer *w, const char *key, double v) {
        if (v < 0)
                json_member_null(w, key);
        else
                json_member_double(w, key, v);
}

/* Null with the member KEY_reason. */
static void member_or_reason(struct json_writer *w, const char *key, double v, const char *reason) {
        char key_of_reason[64];
        member_or_null(w, key, v);
        if (v >= 0)
                return;
        (void) snprintf(key_of_reason, sizeof(key_of_reason), "%s_reason", key);
        json_member_string(w, key_of_reason, reason);
}

static void count_or_null(struct json_writer *w, const char *key, int64_t v) {
        if (v < 0)
                json_member_null(w, key);
        else
                json_member_i64(w, key, v);
}

#define NO_PACKETS                                                                                                     \
        "/proc/net/softnet_stat or /proc/net/dev could not be read, or had no line of each measured CPU, at both "     \
        "readings"

static bool is_any_frequency_known(const struct disturbance *d) {
        for (size_t i = 0; i < d->run.n_cpus; i++)
                if (d->slowest_khz[i] >= 0)
                        return true;
        return false;
}

/* Why this second alone has no clock: where none is known of the run, the reason stands once, beside its counts. */
static void put_frequency_reason(const struct disturbance *d, const struct disturbance_second *s,
                                 struct json_writer *w) {
        if (s->clock_change >= 0 || !is_any_frequency_known(d))
                return;
        json_member_string(w, "frequency_reason",
                           s->slowest_khz < 0 ? "no measured CPU's clock could be read, or each that could only idled"
                                              : "no measured CPU's clock was known at both readings");
}

/* The reasons stand once, beside the counts of the run and in migrations_reason. */
static void put_counts(const struct disturbance *d, const struct disturbance_second *s, struct json_writer *w) {
        count_or_null(w, "slowest_khz", s->slowest_khz);
        member_or_null(w, "clock_change", s->clock_change);
        put_frequency_reason(d, s, w);
        count_or_null(w, "throttled_periods", s->throttled);
        count_or_null(w, "thermal_throttles", s->throttles);
        count_or_null(w, "stopped_ns", d->stopped_ns < 0 ? -1 : longest_stop(s));
        count_or_null(w, "migrations", noted_in(d, s, DISTURBANCE_MIGRATIONS));
        count_or_null(w, "retransmitted_segments", noted_in(d, s, DISTURBANCE_SENT_AGAIN));
        count_or_null(w, "lost_segments", lost_in(d, s));
        count_or_null(w, "retransmission_timeouts", noted_in(d, s, DISTURBANCE_TIMED_OUT));
}

static void put_second(const struct disturbance *d, const struct disturbance_second *s, size_t second,
                       struct json_writer *w) {
        json_object_begin(w);
        json_member_u64(w, "second", second);
        json_member_u64(w, "begin_ns", s->begin_ns);
        json_member_u64(w, "interval_ns", s->interval_ns);
        count_or_null(w, "cpu", s->cpu);
        member_or_reason(w, "foreign_share", s->foreign, DISTURBANCE_NO_CPU);
        member_or_reason(w, "softirq_share", s->softirq, DISTURBANCE_NO_CPU);
        member_or_reason(w, "steal_share", s->steal, DISTURBANCE_NO_CPU);
        member_or_reason(w, "worst_softirq_share", s->worst_softirq, DISTURBANCE_NO_CPU);
        if (d->run.irq_apart)
                member_or_reason(w, "worst_irq_share", s->worst_irq, DISTURBANCE_NO_CPU);
        else
                json_member_null(w, "worst_irq_share"); /* the reason stands once, beside irq_source */
        if (d->run.no_interrupts)
                json_member_null(w, "device_interrupts_per_second"); /* likewise, in device_interrupts_reason */
        else
                member_or_reason(w, "device_interrupts_per_second", s->device_interrupts,
                                 "no measured CPU had a column in /proc/interrupts at both readings");
        member_or_reason(w, "foreign_packets_per_second", s->packets, NO_PACKETS);
        member_or_reason(w, "foreign_softirq_share", s->foreign_softirq, NO_PACKETS);
        member_or_reason(w, "worst_steal_share", s->worst_steal, DISTURBANCE_NO_CPU);
        member_or_reason(w, "worst_standstill_share", s->standstill_known ? s->worst_standstill : -1,
                         DISTURBANCE_NO_CPU ", or it counted no time at all");
        member_or_reason(w, "load_cpus", s->load, s->load_reason);
        member_or_reason(w, "sibling_share", s->sibling,
                         "no measured CPU has a sibling that is not itself measured and that /proc/stat listed at both "
                         "readings");
        json_member_double(w, "daemon_share", s->daemon);
        member_or_null(w, "involuntary_switches_per_second", s->involuntary_per_second);
        member_or_null(w, "run_queue_delay_share", s->delay);
        put_counts(d, s, w);
        json_member_array(w, "flags");
        for (int kind = 0; kind < DISTURBANCE_KINDS; kind++)
                if (second_has(d, s, (enum disturbance_kind) kind))
                        json_put_string(w, flags[kind]);
        json_array_end(w);
        json_object_end(w);
}

void disturbance_put_at(const struct disturbance *d, uint64_t at_ns, struct json_writer *w) {
        for (size_t i = 0; d && i < d->n; i++)
                if (d->seconds[i].begin_ns <= at_ns && at_ns - d->seconds[i].begin_ns < d->seconds[i].interval_ns) {
                        put_second(d, &d->seconds[i], i, w);
                        return;
                }
        json_put_null(w);
}

static void put_worst(const struct disturbance *d, struct json_writer *w) {
        size_t worst = d->n;
        json_put_key(w, "worst");
        for (size_t i = 0; i < d->n; i++)
                if (d->seconds[i].foreign >= 0 && (worst == d->n || d->seconds[i].foreign > d->seconds[worst].foreign))
                        worst = i;
        if (worst == d->n) {
                json_put_null(w);
                json_member_string(w, "worst_reason", d->n ? DISTURBANCE_NO_CPU : DISTURBANCE_NO_SECOND);
                return;
        }
        json_object_begin(w);
        count_or_null(w, "cpu", d->seconds[worst].cpu);
        json_member_u64(w, "second", worst);
        json_member_double(w, "foreign_share", d->seconds[worst].foreign);
        json_object_end(w);
}

static void put_load(const struct disturbance *d, struct json_writer *w) {
        const struct disturbance_second *worst = worst_load(d);
        member_or_reason(w, "load_cpus", mean_load(d), no_load(d));
        member_or_reason(w, "worst_load_cpus", worst ? worst->load : -1,
                         d->n ? d->seconds[0].load_reason : DISTURBANCE_NO_SECOND);
}

static void put_quota(const struct disturbance *d, struct json_writer *w) {
        const char *reason = !d->run.cgroups        ? "no cgroup of the run has a CPU controller"
                             : d->n == 0            ? DISTURBANCE_NO_SECOND
                             : d->throttled_unknown ? "cpu.stat of the run's cgroup, or of one above it, could not be "
                                                      "read at every reading"
                                                    : NULL;
        count_or_null(w, "quota_throttled_periods", reason ? -1 : d->throttled);
        if (reason)
                json_member_string(w, "quota_throttled_periods_reason", reason);
}

static void put_window(const struct disturbance *d, struct json_writer *w) {
        const struct coverage c = coverage_of(d);
        const char *unobserved = disturbance_unobserved(d);
        json_member_u64(w, "window_ns", c.window_ns);
        member_or_reason(w, "observed_share", c.window_ns ? (double) c.observed_ns / (double) c.window_ns : -1,
                         "the window has no length");
        count_or_null(w, "longest_interval_ns", c.longest_ns ? (int64_t) c.longest_ns : -1);
        if (!c.longest_ns)
                json_member_string(w, "longest_interval_ns_reason", DISTURBANCE_NO_SECOND);
        if (unobserved)
                json_member_string(w, "not_observed_reason", unobserved);
}

static void put_frequencies(const struct disturbance *d, struct json_writer *w) {
        int64_t slowest = -1, fastest = -1;
        for (size_t i = 0; i < d->run.n_cpus; i++) {
                if (d->slowest_khz[i] >= 0 && (slowest < 0 || d->slowest_khz[i] < slowest))
                        slowest = d->slowest_khz[i];
                if (d->fastest_khz[i] > fastest)
                        fastest = d->fastest_khz[i];
        }
        count_or_null(w, "slowest_khz", slowest);
        count_or_null(w, "fastest_khz", fastest);
        if (slowest >= 0)
                json_member_string(w, "frequency_source", d->run.frequency_source);
        else if (!has_frequency(d))
                json_member_string(w, "frequency_reason",
                                   "the agents may move among several CPUs, whose clocks differ");
        else
                json_member_string(
                        w, "frequency_reason",
                        d->run.frequency_source
                                ? "the window was over before the clocks of the measured CPUs were known"
                        : d->run.no_frequency
                                ? d->run.no_frequency
                                : "the measured CPUs have neither APERF and MPERF nor cpufreq/scaling_cur_freq");
}

/* Why a count of agents is not known: one could not read it at some moment, or none has come. */
static const char *not_noted(const struct disturbance *d, enum disturbance_noted what, const char *unread) {
        return d->unknown[what] ? unread : "no agent has sent a count of the window";
}

static void put_sent_again(const struct disturbance *d, struct json_writer *w) {
        const int64_t segments = d->noted[DISTURBANCE_SENT_AGAIN], timeouts = d->noted[DISTURBANCE_TIMED_OUT];
        count_or_null(w, "retransmitted_segments", segments);
        if (segments < 0)
                json_member_string(w, "retransmitted_segments_reason",
                                   !d->run.network ? "the run has no TCP connection"
                                                   : not_noted(d, DISTURBANCE_SENT_AGAIN,
                                                               "an agent could not read it at some moment: "
                                                               "effective.retransmits_reason, unless it could at the "
                                                               "end"));
        count_or_null(w, "lost_segments", lost_in_window(d));
        count_or_null(w, "retransmission_timeouts", timeouts);
        if (timeouts < 0 && segments >= 0)
                json_member_string(w, "retransmission_timeouts_reason",
                                   not_noted(d, DISTURBANCE_TIMED_OUT,
                                             "an agent could not read it at some moment, or its count began anew: "
                                             "effective.retransmission_timeouts_reason, unless it could at the end"));
}

static void put_throttles_reason(const struct disturbance *d, struct json_writer *w) {
        for (size_t i = 0; i < d->n; i++)
                if (d->seconds[i].throttles < 0) {
                        json_member_string(w, "thermal_throttles_reason",
                                           d->run.no_throttles
                                                   ? d->run.no_throttles
                                                   : "no measured CPU has counts in thermal_throttle in sysfs, which "
                                                     "virtual machines lack");
                        return;
                }
}

static void put_threads_reason(const struct disturbance *d, struct json_writer *w) {
        if (d->run.shares_cpus)
                json_member_string(
                        w, "threads_reason",
                        "the run's own threads share CPUs, or may: their switches and delays are not others'");
        else if (d->run.n_threads == 0)
                json_member_string(w, "threads_reason", "the agents' threads could not be observed one by one");
}

static void put_seconds(const struct disturbance *d, struct json_writer *w) {
        size_t flagged = 0, later = 0;
        for (size_t i = 0; i < d->n; i++)
                flagged += second_has_any(d, &d->seconds[i]);
        json_member_u64(w, "seconds_total", d->n);
        json_member_u64(w, "seconds_flagged", flagged);
        json_member_array(w, "seconds");
        for (size_t i = 0; i < d->n; i++)
                if (i < LISTED_SECONDS || (second_has_any(d, &d->seconds[i]) && later++ < LISTED_SECONDS))
                        put_second(d, &d->seconds[i], i, w);
        json_array_end(w);
}

void disturbance_put(const struct disturbance *d, struct json_writer *w) {
        json_member_string(w, "source", cpu_time_source_name(d->run.source));
        json_member_string(w, "irq_source", d->run.irq_apart ? "irq-time-accounting" : "tick");
        if (!d->run.irq_apart)
                json_member_string(w, "worst_irq_share_reason",
                                   "the kernel accounts interrupts by the tick, which sees next to none of them");
        if (d->run.no_interrupts)
                json_member_string(w, "device_interrupts_reason", d->run.no_interrupts);
        put_window(d, w);
        put_worst(d, w);
        put_load(d, w);
        put_quota(d, w);
        put_sent_again(d, w);
        count_or_null(w, "stopped_ns", d->stopped_ns);
        if (d->stopped_ns < 0)
                json_member_string(w, "stopped_ns_reason", "an agent could not read it: effective.stopped_ns_reason");
        if (d->noted[DISTURBANCE_MIGRATIONS] < 0)
                json_member_string(w, "migrations_reason",
                                   not_noted(d, DISTURBANCE_MIGRATIONS,
                                             "an agent could not read them: counters.migrations_reason"));
        count_or_null(w, "ksoftirqd_ns", d->ksoftirqd_ns);
        if (d->ksoftirqd_ns < 0)
                json_member_string(w, "ksoftirqd_ns_reason", d->n ? DISTURBANCE_NO_KSOFTIRQD : DISTURBANCE_NO_SECOND);
        put_frequencies(d, w);
        put_throttles_reason(d, w);
        put_threads_reason(d, w);
        put_seconds(d, w);
}
