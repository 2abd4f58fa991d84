/* SPDX-License-Identifier: MIT */

/*
 * Figures of one run. The throughput is the receiving end's bytes over the receiving end's own window; everything else
 * stands beside it. Latency is merged by adding histograms, never percentiles. Called by the runner.
 */

#include "daemon/result/result.h"

#include "daemon/result/cost.h"
#include "daemon/result/derived.h"
#include "daemon/result/effective.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <math.h>
#include <string.h>

#define ENDS_DIFFER 0.03  /* throughput of the two ends */
#define RATE_REACHED 0.97 /* of the one that was asked for */

static bool streams(const struct result *r, enum data_direction direction) {
        const struct point *p = r->order->point;
        return point_has_direction(p->workload, p->transport) && p->direction == direction;
}

/* Whether this end's count and window make the figure: who receives, or the only one. */
static bool is_measured(const struct result *r, enum end end) {
        if (!r->roles[END_SECOND])
                return end == END_FIRST;
        if (streams(r, DIRECTION_BOTH))
                return true;
        return end == (streams(r, DIRECTION_UP) ? END_FIRST : END_SECOND);
}

/* Who sends, and has the copy mode; who serves, where both send; who initiates, or the only one. Its counters are told
 * where one end has to stand for both, as in a table of results. */
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

int result_add_sample(struct result *r, const struct message_sample *s) {
        if (s->latency) {
                if (!r->latency)
                        r->latency = calloc(1, sizeof(*r->latency));
                if (!r->latency)
                        return -ENOMEM;
                histogram_add(r->latency, s->latency);
                r->has_latency = true;
        }
        return 0;
}

int result_judge(struct result *r) {
        bool measured[END_COUNT];
        for (int end = 0; end < END_COUNT; end++)
                measured[end] = is_measured(r, (enum end) end);
        return steadiness_judge(&r->steadiness, measured);
}

static double per_second(uint64_t count, uint64_t window_ns) {
        return (double) count * 1e9 / (double) window_ns;
}

static int check_report(const struct result *r, enum end end, char *detail) {
        const struct message_report *m = r->reports[end];
        if (m->window_ns == 0) {
                (void) snprintf(detail, 300, "%s reports a window of 0 ns", r->roles[end]);
                return -EBADMSG;
        }
        if (m->messages == 0) {
                (void) snprintf(detail, 300, "no message passed %s in its window of %.3f s", r->roles[end],
                                (double) m->window_ns / 1e9);
                return -EBADMSG;
        }
        return 0;
}

int result_check(const struct result *r, char *ret_detail) {
        const struct message_report *a = r->reports[END_FIRST], *b = r->reports[END_SECOND];
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end] && check_report(r, (enum end) end, ret_detail) < 0)
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

static void put_latency(struct json_writer *w, const char *key, const struct latency_summary *s, const char *kind,
                        uint64_t divisor) {
        json_put_key(w, key);
        json_object_begin(w);
        json_member_u64(w, "min", s->min / divisor);
        json_member_u64(w, "p50", s->p50 / divisor);
        json_member_u64(w, "p90", s->p90 / divisor);
        json_member_u64(w, "p99", s->p99 / divisor);
        json_member_u64(w, "p99_9", s->p99_9 / divisor);
        json_member_u64(w, "max", s->max / divisor);
        json_member_u64(w, "mean", (uint64_t) llround(s->mean / (double) divisor));
        json_member_u64(w, "count", s->count);
        json_member_string(w, "kind", kind);
        json_object_end(w);
}

static const char *latency_kind(enum workload w) {
        switch (w) {
        case WORKLOAD_PINGPONG:
                return "rtt";
        case WORKLOAD_SYSCALL:
                return "call";
        case WORKLOAD_CONTEXT_SWITCH:
                return "switch"; /* the mean of a round's hops: switches with the pipe's part */
        default:
                return "one_way";
        }
}

/* Why there is none. A message of tcp carries the time of its sending where it is long enough (schema/spec/spec.h). */
static const char *no_latency(const struct point *p) {
        static const char too_short[] =
                "a message shorter than " UTIL_TEXT(SPEC_STAMPED_MIN) " bytes does not carry the time of its sending";
        if (!transport_terms[p->transport].stamps || p->workload != WORKLOAD_STREAM)
                return "a closed-loop stream has no latency of its own; pingpong measures it";
        return p->message_size < SPEC_STAMPED_MIN ? too_short : "no stamped message arrived in the window";
}

/* Half of a round trip; NULL for s: there is none. In an open loop it has the wait before its sending in it. */
static void put_one_way(const struct run_order *o, const struct latency_summary *s, struct json_writer *w) {
        bool round_trip = o->point->workload == WORKLOAD_PINGPONG, open = spec_point_rate(o->spec, o->point) > 0;
        if (round_trip && !open && s) {
                put_latency(w, "latency_one_way_ns", s, "one_way", 2);
                return;
        }
        json_member_null(w, "latency_one_way_ns");
        json_member_string(w, "latency_one_way_ns_reason",
                           !round_trip ? RESULT_BOTH_WAYS_REASON
                           : open      ? RESULT_ONE_WAY_REASON
                                       : "no round trip was timed");
}

static void put_latencies(const struct result *r, struct json_writer *w) {
        struct latency_summary s;
        bool timed = r->latency && histogram_summarize(r->latency, &s) >= 0;
        if (timed) {
                put_latency(w, "latency_ns", &s, latency_kind(r->order->point->workload), 1);
        } else {
                json_member_null(w, "latency_ns");
                json_member_string(w, "latency_reason", no_latency(r->order->point));
        }
        put_one_way(r->order, timed ? &s : NULL, w);
}

/* What its round trips are timed from, as agent/loop/loops.h has it: those of two kinds are not alike. NULL: it has
 * none. */
static const char *round_trip(const struct run_order *o) {
        if (o->point->workload != WORKLOAD_PINGPONG)
                return NULL;
        if (spec_point_rate(o->spec, o->point) > 0)
                return "due";
        return o->spec->verify == VERIFY_CHECKSUM ? "before-sending" : "handed-over";
}

/* What was done with the bytes, where any came. */
static void put_verify(const struct result *r, struct json_writer *w) {
        if (workload_has_transport(r->order->point->workload)) {
                json_member_string(w, "verify", verify_name(r->order->spec->verify));
                return;
        }
        json_member_null(w, "verify");
        json_member_string(w, "verify_reason", "no data was moved this way");
}

/* A call or a switch moves nothing: there is no throughput, which is not a throughput of 0. */
static void put_throughput(struct json_writer *w, uint64_t bytes, uint64_t window_ns) {
        if (bytes) {
                json_member_double(w, "throughput_bytes_per_second", per_second(bytes, window_ns));
                return;
        }
        json_member_null(w, "throughput_bytes_per_second");
        json_member_string(w, "throughput_bytes_per_second_reason", "no data was moved this way");
}

static void put_report(struct json_writer *w, const char *role, const struct message_report *m,
                       const struct result_derived *d) {
        json_put_key(w, role);
        json_object_begin(w);
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
        json_member_null(w, "both_ways_bytes_per_second");
        json_member_string(w, "both_ways_bytes_per_second_reason", RESULT_BOTH_WAYS_REASON);
}

/* What was received; at both ends, over the longer of their windows, which began together, where both receive. */
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
}

static void put_threads(const struct result *r, enum end end, struct json_writer *w) {
        json_put_key(w, r->roles[end]);
        json_array_begin(w);
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
        json_put_key(w, "counters");
        json_object_begin(w);
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end]) {
                        json_put_key(w, r->roles[end]);
                        counters_put(w, &r->reports[end]->counters);
                }
        json_object_end(w);
        json_put_key(w, "threads");
        json_object_begin(w);
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end])
                        put_threads(r, (enum end) end, w);
        json_object_end(w);
}

/* How many threads of each end moved anything: what was asked for is in the point, and one may have starved. *ret stays
 * NULL where nobody knows. */
static int threads_used(const struct result *r, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w;
        bool known = false;
        json_writer_init(&w);
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

/* Of each end, and of all ends together. */
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

/* A context switch is on one CPU, and its point does not say which. */
static const int32_t *switched_on(const struct run_order *o) {
        const struct agent_placement *given = o->placement ? &o->placement->ends[END_FIRST] : NULL;
        return o->point->workload == WORKLOAD_CONTEXT_SWITCH && given && given->n_cpus == 1 ? given->cpus : NULL;
}

static int put_effective(const struct result *r, const char *threads, struct json_writer *w) {
        const struct effective_known known = {.cpu = switched_on(r->order),
                                              .round_trip = round_trip(r->order),
                                              .rate = spec_point_rate(r->order->spec, r->order->point),
                                              .threads_json = threads};
        return result_effective_to_json(r->reports, sender(r), &known, w);
}

int result_to_json(const struct result *r, char **ret) {
        struct json_writer w;
        const struct spec *spec = r->order->spec;
        struct result_derived derived[END_COUNT], together;
        _cleanup_free_ char *threads = NULL;
        derive(r, derived, &together);
        int d = threads_used(r, &threads);
        if (d < 0)
                return d;
        json_writer_init(&w);
        json_object_begin(&w);
        json_member_time(&w, "begun_at", r->begun_ms);
        if (r->begin_ns)
                json_member_u64(&w, "begin_ns", r->begin_ns);
        else
                json_member_null(&w, "begin_ns");
        put_figures(r, &w);
        int e = result_cost_to_json(r->order->point, r->reports[END_FIRST], &w);
        put_latencies(r, &w);
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
        if (e == 0)
                e = put_effective(r, threads, &w);
        json_object_end(&w);
        if (e == 0)
                e = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        return e;
}

static void add_flag(struct run_verdict *v, const char *flag) {
        if (v->n_flags < RUN_FLAGS_MAX)
                v->flags[v->n_flags++] = flag;
}

/* A number that an end says was in force; 0 for anything else. */
static int64_t number_in_force(const struct message_report *m, const char *key) {
        const struct json *value = m->effective.value ? json_get(m->effective.value, key) : NULL;
        int64_t number;
        return value && json_as_i64(value, &number) == 0 ? number : 0;
}

/* What the sending end could copy at most (agent/transport/ring/area.c), in bytes per second; 0 where it did not say.
 */
static double copy_ceiling(const struct message_report *m) {
        return (double) number_in_force(m, "memcpy_bytes_per_second");
}

/* A user with more pages in pipes than fs.pipe-user-pages-soft gets small ones from there on: threads that are not
 * alike are in one figure. */
static bool has_unlike_pipes(const struct result *r) {
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end] && number_in_force(r->reports[end], "pipe_size_max") > 0)
                        return true;
        return false;
}

/* Whether sends of an end were refused. Each then slept (agent/transport/tcp/zerocopy.c): the limit was measured, and
 * not the mode. */
static bool has_refused_sends(const struct result *r) {
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end] && r->reports[end]->counters.usage.enobufs > 0)
                        return true;
        return false;
}

static bool has_scaled_counts(const struct result *r) {
        for (int end = 0; end < END_COUNT; end++)
                if (r->roles[end] && perf_totals_are_scaled(&r->reports[end]->counters.perf))
                        return true;
        return false;
}

/* Bytes that were not copied were not moved. A figure above what memcpy() reaches on the same CPUs is to be doubted. */
static bool is_above_copy_ceiling(const struct result *r) {
        const struct message_report *m = r->reports[END_SECOND];
        if (!r->roles[END_SECOND])
                return false;
        for (int end = 0; end < END_COUNT; end++) {
                double ceiling = r->roles[end] ? copy_ceiling(r->reports[end]) : 0;
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
                    (double) m->messages + 1 < RATE_REACHED * rate * (double) m->window_ns / 1e9)
                        return false;
        }
        return true;
}

void result_flags(const struct result *r, struct run_verdict *v) {
        const struct message_report *a = r->reports[END_FIRST], *b = r->reports[END_SECOND];
        if (r->roles[END_SECOND] && !streams(r, DIRECTION_BOTH)) { /* two streams need not be alike */
                double first = per_second(a->bytes, a->window_ns), second = per_second(b->bytes, b->window_ns);
                if (fabs(first - second) > ENDS_DIFFER * second)
                        add_flag(v, "ends_differ");
        }
        if (!has_reached_rate(r))
                add_flag(v, "rate_not_reached");
        if (is_above_copy_ceiling(r))
                add_flag(v, "above_memcpy_ceiling");
        if (has_unlike_pipes(r))
                add_flag(v, "pipes_differ");
        if (has_refused_sends(r))
                add_flag(v, "zerocopy:enobufs");
        if (has_scaled_counts(r))
                add_flag(v, "counters:multiplexed");
        if (r->latency && histogram_is_at_limit(r->latency))
                add_flag(v, "latency_above_limit");
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
