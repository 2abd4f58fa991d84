/* SPDX-License-Identifier: MIT */

/*
 * Judges the seconds of a run's window. Foreign time of a CPU is what it ran less what the run's agents ran on it, both
 * of the same exact kind (cpu-time.h).
 */

#include "daemon/host/disturbance.h"

#include "schema/util.h"

#include <string.h>

/* A twentieth of a CPU in any second is what a figure shows; kernel threads and timers of a quiet machine take less
 * than a hundredth. The share of the run's own rounding is below one hundredth, too: a tick of 4 ms at each reading. */
#define CPU_SHARE 0.05
/* Ticks miss time of a CPU whose tasks sleep and wake in step with them: up to 47 % of a quiet second was seen where a
 * timer wakes them. They miss about as much of each second of a run: 14 points were the most between two. */
#define STANDSTILL_SHARE 0.6
#define STANDSTILL_MORE_SHARE 0.3
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
 * socket. Not the load average, which still remembers the run before. */
#define LOAD_CPUS 0.5
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
        *d = (struct disturbance){.run = *run,
                                  .throttled = -1,
                                  .retransmits = -1,
                                  .spurious = -1,
                                  .timeouts = -1,
                                  .least_standstill = -1,
                                  .stopped_ns = -1,
                                  .ksoftirqd_ns = -1};
        d->carry_ns = calloc(run->n_cpus + 1, sizeof(int64_t));
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
 * second, where the credit comes. */
static int64_t foreign(struct disturbance *d, int64_t *carry, int64_t ran, int64_t own) {
        int64_t ns = ran - own + *carry;
        *carry = ns < 0 ? ns : 0;
        if (d->run.source != CPU_TIME_SCHEDSTAT && *carry < -CARRY_NS)
                *carry = -CARRY_NS;
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

static void judge_cpus(struct disturbance *d, const struct disturbance_reading *b, const struct disturbance_reading *a,
                       struct disturbance_second *s) {
        double interval = (double) s->interval_ns;
        int64_t ran_all = 0, ran_measured = 0, softirq = 0, steal = 0, n = 0, softirqd_all = 0;
        s->cpu = -1;
        s->standstill_known = true;
        for (size_t i = 0; i < d->run.n_cpus; i++) {
                const struct disturbance_cpu *cpu = &d->run.cpus[i];
                const struct cpu_times *x = &b->cpus[i], *y = &a->cpus[i];
                if (!x->known || !y->known) {
                        s->standstill_known = s->standstill_known && !cpu->measured;
                        continue;
                }
                int64_t ran = moved(x->run_ns, y->run_ns, s->interval_ns);
                ran_all += ran;
                if (cpu->sibling)
                        s->sibling = most(s->sibling, (double) ran / interval);
                if (!cpu->measured)
                        continue;
                double irq = (double) grown(x->softirq_ns, y->softirq_ns) / interval;
                s->worst_softirq = most(s->worst_softirq, irq);
                s->worst_irq = most(s->worst_irq, (double) grown(x->irq_ns, y->irq_ns) / interval);
                s->worst_steal = most(s->worst_steal, (double) grown(x->steal_ns, y->steal_ns) / interval);
                int64_t still = standstill_ns(b, a, i);
                s->standstill_known = s->standstill_known && still >= 0;
                s->worst_standstill = most(s->worst_standstill, (double) still / interval);
                n++;
                ran_measured += ran;
                softirq += grown(x->softirq_ns, y->softirq_ns);
                steal += grown(x->steal_ns, y->steal_ns);
                int64_t softirqd = own_ksoftirqd(d, b->ksoftirqd_ns[i], a->ksoftirqd_ns[i]);
                softirqd_all += softirqd;
                if (d->run.roams)
                        continue;
                int64_t own = a->own_ns[i] - b->own_ns[i] + softirqd;
                double share = (double) foreign(d, &d->carry_ns[i], ran, own) / interval;
                if (s->cpu >= 0 && share <= s->foreign)
                        continue;
                s->cpu = cpu->id;
                s->foreign = share;
                s->softirq = irq;
                s->steal = (double) grown(x->steal_ns, y->steal_ns) / interval;
        }
        int64_t own = a->own_total_ns - b->own_total_ns + softirqd_all;
        d->foreign_total_ns += ran_all - own;
        if (!d->run.roams || n == 0)
                return;
        int64_t own_measured = a->own_measured_ns - b->own_measured_ns + softirqd_all;
        s->foreign = (double) foreign(d, &d->carry_ns[d->run.n_cpus], ran_measured, own_measured) / interval;
        interval *= (double) n;
        s->softirq = (double) softirq / interval;
        s->steal = (double) steal / interval;
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

/* Of several CPUs among which the threads move, those that idle lower their clocks, whatever the run does. */
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
        if (s->standstill_known && (d->least_standstill < 0 || s->worst_standstill < d->least_standstill))
                d->least_standstill = s->worst_standstill;
        if (d->run.daemon_measured)
                s->daemon = (double) grown(before->daemon_ns, after->daemon_ns) / (double) s->interval_ns;
        if (d->n == 1)
                add_frequencies(d, before);
        add_frequencies(d, after);
        if (before->throttled >= 0 && after->throttled >= 0)
                d->throttled = (d->throttled < 0 ? 0 : d->throttled) + grown(before->throttled, after->throttled);
        d->interval_total_ns += (int64_t) s->interval_ns;
        return 0;
}

static bool second_has(const struct disturbance *d, const struct disturbance_second *s, enum disturbance_kind kind) {
        switch (kind) {
        case DISTURBANCE_FOREIGN_CPU:
                return s->foreign >= CPU_SHARE + (s->cpu < 0 ? QUIET_SHARE * (double) (d->n_measured - 1) : 0);
        case DISTURBANCE_SOFTIRQ:
                return !d->run.network && s->worst_softirq >= CPU_SHARE;
        case DISTURBANCE_STEAL:
                return s->worst_steal >= CPU_SHARE;
        case DISTURBANCE_INTERRUPTS:
                return s->worst_irq >= CPU_SHARE;
        case DISTURBANCE_STANDSTILL:
                return s->worst_standstill >= STANDSTILL_SHARE ||
                       (d->least_standstill >= 0 && s->worst_standstill - d->least_standstill >= STANDSTILL_MORE_SHARE);
        case DISTURBANCE_SMT_SIBLING:
                return s->sibling >= CPU_SHARE;
        case DISTURBANCE_DAEMON:
                return s->daemon >= CPU_SHARE;
        case DISTURBANCE_PREEMPTION:
                return s->involuntary_per_second >= INVOLUNTARY_PER_SECOND;
        case DISTURBANCE_RUN_QUEUE_DELAY:
                return s->delay >= CPU_SHARE;
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

static double load(const struct disturbance *d) {
        return d->foreign_total_ns > 0 && d->interval_total_ns > 0
                       ? (double) d->foreign_total_ns / (double) d->interval_total_ns
                       : 0;
}

/* -1: not known. */
static int64_t lost_segments(const struct disturbance *d) {
        if (d->retransmits < 0 || d->spurious < 0)
                return -1;
        return d->retransmits > d->spurious ? d->retransmits - d->spurious : 0;
}

/* The flag noisy:retransmits, as far as it follows from the number of segments that may have been lost. */
static bool are_lost(const struct disturbance *d) {
        int64_t lost = lost_segments(d);
        return lost >= (d->timeouts < 0 ? 1 : LOST_SEGMENTS) && (double) lost > LOST_SHARE * (double) d->retransmits;
}

bool disturbance_has(const struct disturbance *d, enum disturbance_kind kind) {
        if (kind == DISTURBANCE_QUOTA)
                return d->throttled > 0;
        if (kind == DISTURBANCE_RETRANSMITS)
                return d->timeouts > 0 || are_lost(d);
        if (kind == DISTURBANCE_STOPPED)
                return d->stopped_ns > 0;
        if (kind == DISTURBANCE_FREQUENCY)
                return frequency_changed(d);
        if (kind == DISTURBANCE_LOAD)
                return load(d) > LOAD_CPUS;
        for (size_t i = 0; i < d->n; i++)
                if (second_has(d, &d->seconds[i], kind))
                        return true;
        return false;
}

static void member_or_null(struct json_writer *w, const char *key, double v) {
        if (v < 0)
                json_member_null(w, key);
        else
                json_member_double(w, key, v);
}

static void count_or_null(struct json_writer *w, const char *key, int64_t v) {
        if (v < 0)
                json_member_null(w, key);
        else
                json_member_i64(w, key, v);
}

static void put_second(const struct disturbance *d, const struct disturbance_second *s, size_t second,
                       struct json_writer *w) {
        json_object_begin(w);
        json_member_u64(w, "second", second);
        json_member_u64(w, "begin_ns", s->begin_ns);
        json_member_u64(w, "interval_ns", s->interval_ns);
        count_or_null(w, "cpu", s->cpu);
        json_member_double(w, "foreign_share", s->foreign);
        json_member_double(w, "softirq_share", s->softirq);
        json_member_double(w, "steal_share", s->steal);
        json_member_double(w, "worst_irq_share", s->worst_irq);
        json_member_double(w, "worst_steal_share", s->worst_steal);
        json_member_double(w, "worst_standstill_share", s->worst_standstill);
        json_member_double(w, "sibling_share", s->sibling);
        json_member_double(w, "daemon_share", s->daemon);
        member_or_null(w, "involuntary_switches_per_second", s->involuntary_per_second);
        member_or_null(w, "run_queue_delay_share", s->delay);
        json_put_key(w, "flags");
        json_array_begin(w);
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
        size_t worst = 0;
        json_put_key(w, "worst");
        if (d->n == 0) {
                json_put_null(w);
                json_member_string(w, "worst_reason", DISTURBANCE_NO_SECOND);
                return;
        }
        for (size_t i = 1; i < d->n; i++)
                if (d->seconds[i].foreign > d->seconds[worst].foreign)
                        worst = i;
        json_object_begin(w);
        count_or_null(w, "cpu", d->seconds[worst].cpu);
        json_member_u64(w, "second", worst);
        json_member_double(w, "foreign_share", d->seconds[worst].foreign);
        json_object_end(w);
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
                                : "the measured CPUs have neither APERF and MPERF nor cpufreq/scaling_cur_freq");
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
        json_put_key(w, "seconds");
        json_array_begin(w);
        for (size_t i = 0; i < d->n; i++)
                if (i < LISTED_SECONDS || (second_has_any(d, &d->seconds[i]) && later++ < LISTED_SECONDS))
                        put_second(d, &d->seconds[i], i, w);
        json_array_end(w);
}

void disturbance_put(const struct disturbance *d, struct json_writer *w) {
        json_member_string(w, "source", cpu_time_source_name(d->run.source));
        put_worst(d, w);
        json_member_double(w, "load_cpus", load(d));
        count_or_null(w, "quota_throttled_periods", d->throttled);
        if (d->throttled < 0)
                json_member_string(w, "quota_throttled_periods_reason", "no cgroup of the run has a CPU controller");
        count_or_null(w, "retransmitted_segments", d->retransmits);
        if (d->retransmits < 0)
                json_member_string(w, "retransmitted_segments_reason",
                                   d->run.network ? "an agent could not read it: effective.retransmits_reason"
                                                  : "the run has no TCP connection");
        count_or_null(w, "lost_segments", lost_segments(d));
        count_or_null(w, "retransmission_timeouts", d->timeouts);
        if (d->timeouts < 0 && d->retransmits >= 0)
                json_member_string(w, "retransmission_timeouts_reason",
                                   "an agent could not read it: effective.retransmission_timeouts_reason");
        count_or_null(w, "stopped_ns", d->stopped_ns);
        if (d->stopped_ns < 0)
                json_member_string(w, "stopped_ns_reason", "an agent could not read it: effective.stopped_ns_reason");
        count_or_null(w, "ksoftirqd_ns", d->ksoftirqd_ns);
        if (d->ksoftirqd_ns < 0)
                json_member_string(w, "ksoftirqd_ns_reason", d->n ? DISTURBANCE_NO_KSOFTIRQD : DISTURBANCE_NO_SECOND);
        put_frequencies(d, w);
        put_threads_reason(d, w);
        put_seconds(d, w);
}
