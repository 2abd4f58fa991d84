/* SPDX-License-Identifier: MIT */

/*
 * Figures of one run. The throughput is the receiving end's bytes over the receiving end's own window; everything else
 * stands beside it. Latency is merged by adding histograms, never percentiles. Called by the runner.
 */

#include "daemon/result/result.h"

#include "daemon/analysis/phrase.h"
#include "daemon/result/cost.h"
#include "daemon/result/derived.h"
#include "daemon/result/effective.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define ENDS_DIFFER 0.03 /* throughput of the two ends */
#define NEAR_QUANTA 33   /* latencies of no more are near the clock's quantum: a step is more than COMPARE_MARGIN */
#define LATE_NS 40000    /* in which the copies of a thread's histogram and of its count are taken, once at each edge */
#define LATE_SHARE 0.001 /* of a window's messages that may have no latency of it beyond that */

static bool streams(const struct result *r, enum data_direction direction) {
        const struct point *p = r->order->point;
        return point_has_direction(p->workload, p->transport) && p->direction == direction;
}

/* Whether this end's count and window make the figure: a receiver's do, or those of the only end. In a pingpong both
 * ends receive, and the latencies are the first one's: a message of its count is one of them. */
static bool is_measured(const struct result *r, enum end end) {
        if (!r->roles[END_SECOND] || r->order->point->workload == WORKLOAD_PINGPONG)
                return end == END_FIRST;
        if (streams(r, DIRECTION_BOTH))
                return true;
        return end == (streams(r, DIRECTION_UP) ? END_FIRST : END_SECOND);
}

/* The end that sends, and has the copy mode; where both send, the server; else the initiator, or the only one. Its
 * counters are shown where one end has to stand for both, as in a table of results. */
static enum end sender(const struct result *r) {
        return streams(r, DIRECTION_UP) ? END_SECOND : END_FIRST;
}

/* The end that began first: another may have been stopped meanwhile. */
int result_add_parts(struct result *r, enum end end, const struct message_parts *parts) {
        if (!r->begin_ns || parts->begin_ns < r->begin_ns) {
                r->begin_ns = parts->begin_ns;
                r->begun_ms = util_now_ms() - ((int64_t) util_now_ns() - (int64_t) parts->begin_ns) / 1000000;
        }
        return steadiness_add(&r->steadiness, end, parts);
}

int result_add_sample(struct result *r, enum end end, const struct message_sample *s) {
        if (s->latency) {
                if (!r->latency)
                        r->latency = calloc(1, sizeof(*r->latency));
                if (!r->latency)
                        return -ENOMEM;
                histogram_add(r->latency, s->latency);
                r->has_latency = r->timed[end] = true;
        }
        return 0;
}

int result_judge(struct result *r) {
        bool measured[END_COUNT];
        for (int end = 0; end < END_COUNT; end++)
                measured[end] = is_measured(r, (enum end) end);
        return steadiness_judge(&r->steadiness, measured, r->timed, r->order->point->threads);
}

static double per_second(uint64_t count, uint64_t window_ns) {
        return (double) count * 1e9 / (double) window_ns;
}

static int check_report(const struct result *r, enum end end, char *detail) {
        static const char *const counted[WORKLOAD_COUNT] = {[WORKLOAD_STREAM] = "message",
                                                            [WORKLOAD_PINGPONG] = "round trip",
                                                            [WORKLOAD_SYSCALL] = "call",
                                                            [WORKLOAD_CONTEXT_SWITCH] = "round of switches"};
        const struct message_report *m = r->reports[end];
        if (m->window_ns == 0) {
                (void) snprintf(detail, 300, "%s reports a window of 0 ns", r->roles[end]);
                return -EBADMSG;
        }
        if (m->messages == 0) {
                char window[PHRASE_MAX];
                phrase_value((double) m->window_ns, "ns", window);
                (void) snprintf(detail, 300, "%s completed no %s in its window of %s", r->roles[end],
                                counted[r->order->point->workload], window);
                return -EBADMSG;
        }
        return 0;
}

/* What the ends that time messages have timed. */
struct timed_messages {
        uint64_t messages, latencies;
        uint64_t expected, room; /* as many latencies as there should be, and how far from it they may be */
};

/* False: none is timed, or a latency is of several calls or switches. */
static bool count_timed(const struct result *r, struct timed_messages *ret) {
        struct timed_messages t = {.latencies = r->latency ? histogram_total(r->latency) : 0};
        uint64_t every = 1, window_ns = UINT64_MAX, threads = r->order->point->threads;
        if (!workload_has_transport(r->order->point->workload) || !(r->timed[END_FIRST] || r->timed[END_SECOND]))
                return false;
        for (int end = 0; end < END_COUNT; end++) {
                const struct message_report *m = r->reports[end];
                uint64_t one = r->timed[end] ? effective_number(m->effective, SETTING_LATENCY_EVERY_MESSAGES) : 0;
                if (!r->timed[end])
                        continue;
                every = one > every ? one : every;
                t.messages += m->messages;
                window_ns = m->window_ns < window_ns ? m->window_ns : window_ns;
        }
        t.expected = t.messages / every;
        t.room = every > 1 ? 2 * threads : 0;
        if (r->order->spec->end.duration_ns) { /* cut by the clock: a message may be under way at each edge */
                double late = fmin(1, 2.0 * LATE_NS * (double) threads / (double) window_ns) + LATE_SHARE;
                t.room = 4 * threads + (uint64_t) (late * (double) t.expected);
        }
        *ret = t;
        return true;
}

static bool are_timed(const struct timed_messages *t) {
        uint64_t apart = t->latencies > t->expected ? t->latencies - t->expected : t->expected - t->latencies;
        return apart <= t->room;
}

/* A window that a number of messages ends has counted and timed each of them. */
static int check_latencies(const struct result *r, char *detail) {
        struct timed_messages t;
        if (r->order->spec->end.duration_ns || !count_timed(r, &t) || are_timed(&t))
                return 0;
        (void) snprintf(detail, 300,
                        "counts_disagree: %" PRIu64 " messages were counted in the window, %" PRIu64 " timed",
                        t.messages, t.latencies);
        return -EBADMSG;
}

int result_check(const struct result *r, char *ret_detail) {
        const struct message_report *a = r->reports[END_FIRST], *b = r->reports[END_SECOND];
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end] && check_report(r, (enum end) end, ret_detail) < 0)
                        return -EBADMSG;
        if (check_latencies(r, ret_detail) < 0)
                return -EBADMSG;
        if (!r->roles[END_SECOND] || r->order->spec->end.duration_ns)
                return 0; /* windows by the clock cut a stream at two instants */
        if (a->messages == b->messages && a->bytes == b->bytes)
                return 0;
        (void) snprintf(ret_detail, 300, "counts_disagree: %s counted %llu messages (%llu bytes), %s %llu (%llu bytes)",
                        r->roles[END_FIRST], (unsigned long long) a->messages, (unsigned long long) a->bytes,
                        r->roles[END_SECOND], (unsigned long long) b->messages, (unsigned long long) b->bytes);
        return -EBADMSG;
}

static bool is_stamped(const struct run_order *o) {
        return point_is_stamped(o->point, o->spec->stamp, spec_point_rate(o->spec, o->point));
}

/* Half of a round trip; NULL for s: there is none. In an open loop it has the wait before its sending in it. */
static void put_one_way(const struct run_order *o, const struct latency_summary *s, struct json_writer *w) {
        bool round_trip = o->point->workload == WORKLOAD_PINGPONG, open = spec_point_rate(o->spec, o->point) > 0;
        if (round_trip && !open && s) {
                json_member_object(w, "latency_one_way_ns");
                latency_summary_put(w, s, "one_way", 2);
                json_object_end(w);
                return;
        }
        json_member_unknown(w, "latency_one_way_ns",
                            !round_trip ? figure_terms[FIGURE_BOTH_WAYS].absent
                            : open      ? RESULT_ONE_WAY_REASON
                                        : "no round trip was timed");
}

static void put_latencies(const struct result *r, struct json_writer *w) {
        struct latency_summary s;
        bool timed = r->latency && histogram_summarize(r->latency, &s) >= 0;
        if (timed) {
                json_member_object(w, "latency_ns");
                latency_summary_put(w, &s, latency_kinds[r->order->point->workload], 1);
                json_object_end(w);
        } else {
                json_member_null(w, "latency_ns");
                const char *reason = spec_latency_missing(r->order->spec, r->order->point);
                if (!reason)
                        reason = is_stamped(r->order) ? "no stamped message arrived in the window"
                                                      : "no message was timed in the window";
                json_member_string(w, "latency_reason", reason);
        }
        put_one_way(r->order, timed ? &s : NULL, w);
}

static void put_clock_offset(const struct result *r, struct json_writer *w) {
        const struct clock_offset *offset = &r->clock_offset;
        const char *reason = offset->reason;
        if (r->order->point->workload != WORKLOAD_STREAM || spec_latency_missing(r->order->spec, r->order->point))
                reason = "no time begins at one end and ends at the other";
        if (reason) {
                json_member_unknown(w, "offset_ns", reason);
                return;
        }
        json_member_object(w, "offset_ns");
        json_member_i64(w, "low", offset->low_ns);
        json_member_i64(w, "high", offset->high_ns);
        json_member_u64(w, "probes", offset->probes);
        json_object_end(w);
}

static void put_clock(const struct result *r, struct json_writer *w) {
        json_member_object(w, "clock");
        for (int end = 0; end < END_COUNT; end++) {
                if (!r->roles[end])
                        continue;
                json_member_object(w, r->roles[end]);
                json_member_u64(w, "cost_ns", r->reports[end]->clock.cost_ns);
                json_member_u64(w, "quantum_ns", r->reports[end]->clock.quantum_ns);
                json_object_end(w);
        }
        put_clock_offset(r, w);
        json_object_end(w);
}

/* Each end reads the clock once for each message that is stamped: one that it sends, or one that it receives. */
static void put_stamp_cost(const struct result *r, struct json_writer *w) {
        const struct run_order *o = r->order;
        uint64_t messages = r->latency ? histogram_total(r->latency) : 0, cost_ns = 0, window_ns = UINT64_MAX;
        for (int end = 0; end < END_COUNT; end++) {
                const struct message_report *m = r->reports[end];
                if (!r->roles[end])
                        continue;
                cost_ns = m->clock.cost_ns > cost_ns ? m->clock.cost_ns : cost_ns;
                window_ns = m->window_ns < window_ns ? m->window_ns : window_ns;
        }
        if (!is_stamped(o) || cost_ns == 0) {
                json_member_unknown(w, "stamp_cost",
                                    is_stamped(o) ? "the agents did not measure the clock"
                                                  : "no message carries a time");
                return;
        }
        json_member_object(w, "stamp_cost");
        json_member_u64(w, "messages", messages);
        json_member_u64(w, "clock_cost_ns", cost_ns);
        json_member_double(w, "window_share",
                           (double) messages * (double) cost_ns / ((double) window_ns * o->point->threads));
        json_object_end(w);
}

/* The moment that its round trips are timed from, as agent/loop/loops.h has it: those of two kinds are not comparable.
 * NULL: it has none. */
static const char *round_trip(const struct run_order *o) {
        if (o->point->workload != WORKLOAD_PINGPONG)
                return NULL;
        if (spec_point_rate(o->spec, o->point) > 0)
                return "due";
        return o->spec->verify == VERIFY_CHECKSUM || o->spec->fresh ? "before-sending" : "handed-over";
}

/* The receiver's treatment of the bytes, where any came. */
static void put_verify(const struct result *r, struct json_writer *w) {
        if (workload_has_transport(r->order->point->workload)) {
                json_member_string(w, "verify", verify_name(r->order->spec->verify));
                return;
        }
        json_member_unknown(w, "verify", "no data was moved this way");
}

/* A call or a switch moves nothing: there is no throughput, which is not a throughput of 0. */
static void put_throughput(struct json_writer *w, uint64_t bytes, uint64_t window_ns) {
        if (bytes) {
                json_member_double(w, "throughput_bytes_per_second", per_second(bytes, window_ns));
                return;
        }
        json_member_unknown(w, "throughput_bytes_per_second", "no data was moved this way");
}

static void put_report(struct json_writer *w, const char *role, const struct message_report *m,
                       const struct result_derived *d) {
        json_member_object(w, role);
        put_throughput(w, m->bytes, m->window_ns);
        json_member_double(w, "messages_per_second", per_second(m->messages, m->window_ns));
        json_member_u64(w, "messages", m->messages);
        json_member_u64(w, "bytes", m->bytes);
        json_member_u64(w, "window_ns", m->window_ns);
        result_derived_to_json(d, w);
        json_object_end(w);
}

/* A round trip carries its message twice: 2 x size / round trip, over all the threads' round trips of the window. */
static void put_both_ways(const struct result *r, struct json_writer *w, uint64_t bytes, uint64_t window_ns) {
        if (r->order->point->workload == WORKLOAD_PINGPONG) {
                json_member_double(w, "both_ways_bytes_per_second", 2 * per_second(bytes, window_ns));
                return;
        }
        json_member_unknown(w, "both_ways_bytes_per_second", figure_terms[FIGURE_BOTH_WAYS].absent);
}

/* What ksoftirqd used in the seconds that were observed, as if it had gone on so for the whole window. */
static void put_ksoftirqd(const struct result *r, uint64_t messages, uint64_t window_ns, struct json_writer *w) {
        const struct disturbance *d = r->beside;
        const char *why = !d                          ? "the machine was not observed beside the run"
                          : !d->run.network           ? "the run's messages raise no softirqs: those of tcp do"
                          : d->interval_total_ns <= 0 ? DISTURBANCE_NO_SECOND
                          : d->ksoftirqd_ns < 0       ? DISTURBANCE_NO_KSOFTIRQD
                          : messages == 0             ? "no message came"
                                                      : NULL;
        if (why)
                json_member_unknown(w, "ksoftirqd_ns_per_message", why);
        else
                json_member_double(w, "ksoftirqd_ns_per_message",
                                   (double) d->ksoftirqd_ns / (double) d->interval_total_ns * (double) window_ns /
                                           (double) messages);
}

/* The received bytes; where both ends receive, of both, over the longer of their windows, which began together. */
static void put_figures(const struct result *r, struct json_writer *w) {
        uint64_t messages = 0, bytes = 0, window_ns = 0;
        const char *by = NULL;
        for (int end = 0; end < END_COUNT; end++) {
                const struct message_report *m = r->reports[end];
                if (!is_measured(r, (enum end) end))
                        continue;
                messages += m->messages;
                bytes += m->bytes;
                window_ns = m->window_ns > window_ns ? m->window_ns : window_ns;
                by = by ? "both" : r->roles[end];
        }
        put_throughput(w, bytes, window_ns);
        put_both_ways(r, w, bytes, window_ns);
        json_member_double(w, "messages_per_second", per_second(messages, window_ns));
        json_member_u64(w, "messages", messages);
        json_member_u64(w, "bytes", bytes);
        json_member_u64(w, "window_ns", window_ns);
        json_member_string(w, "measured_by", by);
        put_ksoftirqd(r, messages, window_ns, w);
}

static void put_threads(const struct result *r, enum end end, struct json_writer *w) {
        json_member_array(w, r->roles[end]);
        for (uint32_t i = 0; r->threads[end] && i < r->order->point->threads; i++) {
                const struct message_thread *t = &r->threads[end][i];
                json_object_begin(w);
                json_member_u64(w, "thread", t->thread);
                json_member_u64(w, "messages", t->messages);
                json_member_u64(w, "bytes", t->bytes);
                json_put_key(w, "counters");
                counters_put(w, &t->counters);
                json_object_end(w);
        }
        json_array_end(w);
}

static void put_counters(const struct result *r, struct json_writer *w) {
        json_member_object(w, "counters");
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end]) {
                        json_put_key(w, r->roles[end]);
                        counters_put(w, &r->reports[end]->counters);
                }
        json_object_end(w);
        json_member_object(w, "threads");
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end])
                        put_threads(r, (enum end) end, w);
        json_object_end(w);
}

/* The number of threads of each end that moved any message: fewer than the point's where one got no CPU. *ret stays
 * NULL where that is not known. */
static int threads_used(const struct result *r, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        bool known = false;
        json_object_begin(&w);
        for (int end = 0; end < END_COUNT; end++) {
                uint64_t n = 0;
                if (!r->roles[end] || !r->threads[end])
                        continue;
                for (uint32_t i = 0; i < r->order->point->threads; i++)
                        n += r->threads[end][i].messages > 0;
                json_member_u64(&w, r->roles[end], n);
                known = true;
        }
        json_object_end(&w);
        return known ? json_writer_steal(&w, ret, NULL) : 0;
}

/* Derives the figures of each end, and of all ends together. */
static void derive(const struct result *r, struct result_derived ret[END_COUNT], struct result_derived *ret_all) {
        for (int end = 0; end < END_COUNT; end++) {
                if (!r->roles[end])
                        continue;
                result_derive(r->order->point, r->reports[end], r->reports[end == END_FIRST ? END_SECOND : END_FIRST],
                              &ret[end]);
                if (end == END_FIRST)
                        *ret_all = ret[end];
                else
                        result_derived_add(ret_all, &ret[end]);
        }
}

/* A context switch is on one CPU, which its point does not name. */
static const int32_t *switched_on(const struct run_order *o) {
        const struct agent_placement *given = o->placement ? &o->placement->ends[END_FIRST] : NULL;
        return o->point->workload == WORKLOAD_CONTEXT_SWITCH && given && given->n_cpus == 1 ? given->cpus : NULL;
}

int result_to_json(const struct result *r, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        const struct spec *spec = r->order->spec;
        struct result_derived derived[END_COUNT], together;
        _cleanup_free_ char *threads = NULL;
        derive(r, derived, &together);
        int d = threads_used(r, &threads);
        if (d < 0)
                return d;
        json_object_begin(&w);
        json_member_time(&w, "begun_at", r->begun_ms);
        json_member_u64_if(&w, "begin_ns", r->begin_ns, r->begin_ns);
        put_figures(r, &w);
        int e = result_cost_to_json(r->order->point, r->reports[END_FIRST], &w);
        put_latencies(r, &w);
        put_stamp_cost(r, &w);
        put_clock(r, &w);
        json_member_string(&w, "loop", spec_point_rate(spec, r->order->point) > 0 ? "open" : "closed");
        put_verify(r, &w);
        steadiness_put(&r->steadiness, r->roles, r->beside, &w);
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end])
                        put_report(&w, r->roles[end], r->reports[end], &derived[end]);
        result_derived_to_json(&together, &w);
        json_member_string(&w, "counted_by", r->roles[sender(r)]);
        put_counters(r, &w);
        numastat_put(&r->numa, &w);
        json_member_raw(&w, "noise", r->noise_json);
        if (r->noise_error < 0)
                json_member_string(&w, "noise_reason", strerrordesc_np(-r->noise_error));
        const struct effective_known known = {.cpu = switched_on(r->order),
                                              .round_trip = round_trip(r->order),
                                              .rate = spec_point_rate(r->order->spec, r->order->point),
                                              .threads_json = threads};
        result_effective_to_json(r->reports, sender(r), &known, &w);
        json_object_end(&w);
        if (e == 0)
                e = json_writer_steal(&w, ret, NULL);
        return e;
}

static void add_flag(struct run_verdict *v, const char *flag) {
        if (v->n_flags < RUN_FLAGS_MAX)
                v->flags[v->n_flags++] = flag;
}

/* Bytes that were not copied were not moved. A figure above what memcpy() reaches on the same CPUs is to be doubted. */
static bool is_above_copy_ceiling(const struct result *r) {
        const struct message_report *m = r->reports[END_SECOND];
        if (!r->roles[END_SECOND])
                return false;
        for (int end = 0; end < END_COUNT; end++) {
                const struct effective *e = r->roles[end] ? r->reports[end]->effective : NULL;
                double ceiling = (double) effective_number(e, SETTING_MEMCPY_BYTES_PER_SECOND); /* of the sending end */
                if (ceiling > 0 && per_second(m->bytes, m->window_ns) > ceiling)
                        return true;
        }
        return false;
}

/* A rate is of all threads of an end together; of two streams at once, of each. A window may begin just after a message
 * and end just before one: a message of it belongs to neither side. */
static bool has_reached_rate(const struct result *r) {
        double rate = spec_point_rate(r->order->spec, r->order->point);
        for (int end = 0; end < END_COUNT; end++) {
                const struct message_report *m = r->reports[end];
                if (is_measured(r, (enum end) end) &&
                    (double) m->messages + 1 < RESULT_RATE_REACHED * rate * (double) m->window_ns / 1e9)
                        return false;
        }
        return true;
}

/* Whether half of the times of single messages (not of means) are so short that two of them that are a step of the
 * clock apart are not equal, and two that differ by more than figures that are called equal may be alike. */
static bool is_near_quantum(const struct result *r) {
        struct latency_summary s;
        uint64_t quantum_ns = 0;
        if (!workload_has_transport(r->order->point->workload) || !r->latency ||
            histogram_summarize(r->latency, &s) < 0)
                return false;
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end] && r->reports[end]->clock.quantum_ns > quantum_ns)
                        quantum_ns = r->reports[end]->clock.quantum_ns;
        return s.p50 <= NEAR_QUANTA * quantum_ns;
}

void result_flags(const struct result *r, struct run_verdict *v) {
        const struct message_report *a = r->reports[END_FIRST], *b = r->reports[END_SECOND];
        struct timed_messages timed;
        bool unlike_pipes = false, refused_sends = false, scaled_counts = false;
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end]) {
                        const struct message_report *m = r->reports[end];
                        /* A user with more pages in pipes than fs.pipe-user-pages-soft gets small ones from there on:
                         * threads that are not alike are in one figure. */
                        unlike_pipes |= effective_number(m->effective, SETTING_PIPE_SIZE_MAX) > 0;
                        /* Each then slept (agent/transport/tcp/zerocopy.c): the limit was measured, not the mode. */
                        refused_sends |= m->counters.usage.enobufs > 0;
                        scaled_counts |= perf_totals_are_scaled(&m->counters.perf);
                }
        if (r->roles[END_SECOND] && !streams(r, DIRECTION_BOTH)) { /* two streams need not be alike */
                double first = per_second(a->bytes, a->window_ns), second = per_second(b->bytes, b->window_ns);
                if (fabs(first - second) > ENDS_DIFFER * second)
                        add_flag(v, "ends_differ");
        }
        if (!has_reached_rate(r))
                add_flag(v, RESULT_RATE_NOT_REACHED);
        if (is_above_copy_ceiling(r))
                add_flag(v, "above_memcpy_ceiling");
        if (unlike_pipes)
                add_flag(v, "pipes_differ");
        if (refused_sends)
                add_flag(v, "zerocopy:enobufs");
        if (scaled_counts)
                add_flag(v, "counters:multiplexed");
        if (r->latency && histogram_is_at_limit(r->latency))
                add_flag(v, "latency_above_limit");
        if (count_timed(r, &timed) && !are_timed(&timed))
                add_flag(v, "latency_counts_differ");
        if (is_near_quantum(r))
                add_flag(v, "latency_near_clock_quantum");
        if (steadiness_is_lost(&r->steadiness))
                add_flag(v, "no_steady_state");
}

void result_deinit(struct result *r) {
        free(r->latency);
        free(r->noise_json);
        steadiness_deinit(&r->steadiness);
        r->noise_json = NULL;
        r->latency = NULL;
}
