/* SPDX-License-Identifier: MIT */

/* See steadiness.h. Called by result.c. */

#include "daemon/result/steadiness.h"

#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define TENTH_NS (NSEC_PER_SEC / 10)
#define LATE_NS (2 * TENTH_NS)  /* parts are a tenth of a second long */
#define NEAR_NS (TENTH_NS / 20) /* of a tenth that may be missing */
#define SERIES_MAX (1 + END_COUNT)
_Static_assert(SEGMENTS_VALUES_MIN == 30, "3 seconds are judged");

static int reserve(struct steadiness_end *e, size_t n) {
        if (n > e->size) {
                size_t size = n < 64 ? 64 : 2 * n;
                if (!util_resize(e->messages, size) || !util_resize(e->p50_ns, size))
                        return -ENOMEM;
                e->size = size;
        }
        for (; e->n < n; e->n++)
                e->messages[e->n] = e->p50_ns[e->n] = 0;
        return 0;
}

static int add_late(struct steadiness_end *e, uint64_t begin, const struct message_part *part) {
        if (!util_resize(e->late, e->n_late + 1))
                return -ENOMEM;
        e->late[e->n_late++] = (struct late_part){begin, part->interval_ns, part->messages};
        return 0;
}

/* A part that was late, as its agent was stopped, is spread over all the tenths that it lasted; see follow_peer(). */
static int add_part(struct steadiness_end *e, const struct message_part *part) {
        uint64_t begin = e->end_ns - e->begin_ns, end = begin + part->interval_ns;
        int r = reserve(e, (end + TENTH_NS - 1) / TENTH_NS);
        if (r == 0 && part->interval_ns >= LATE_NS)
                r = add_late(e, begin, part);
        if (r < 0)
                return r;
        for (uint64_t i = begin / TENTH_NS; i * TENTH_NS < end; i++) {
                uint64_t from = i * TENTH_NS, to = from + TENTH_NS, middle = from + TENTH_NS / 2;
                uint64_t overlap = (to < end ? to : end) - (from > begin ? from : begin);
                e->messages[i] += (double) part->messages * (double) overlap / (double) part->interval_ns;
                if (begin <= middle && middle < end)
                        e->p50_ns[i] = (double) part->p50_ns;
        }
        e->end_ns += part->interval_ns;
        return 0;
}

int steadiness_add(struct steadiness *s, enum end end, const struct message_parts *parts) {
        struct steadiness_end *e = &s->ends[end];
        if (!e->begin_ns)
                e->begin_ns = e->end_ns = parts->begin_ns;
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < parts->n; i++)
                r = add_part(e, &parts->list[i]);
        return r;
}

/* The last tenth counts where hardly anything of it is missing: windows are cut some microseconds late. */
static size_t whole_tenths(const struct steadiness_end *e) {
        size_t n = (size_t) ((e->end_ns - e->begin_ns + NEAR_NS) / TENTH_NS);
        return n < e->n ? n : e->n;
}

/* Messages of an end between two times (CLOCK_MONOTONIC), by its tenths. */
static double messages_between(const struct steadiness_end *e, uint64_t from_ns, uint64_t to_ns) {
        double sum = 0;
        for (size_t i = from_ns > e->begin_ns ? (from_ns - e->begin_ns) / TENTH_NS : 0; i < e->n; i++) {
                uint64_t begin = e->begin_ns + i * TENTH_NS, end = begin + TENTH_NS;
                if (begin >= to_ns)
                        break;
                uint64_t low = from_ns > begin ? from_ns : begin, high = to_ns < end ? to_ns : end;
                if (low < high)
                        sum += e->messages[i] * (double) (high - low) / (double) TENTH_NS;
        }
        return sum;
}

/* Spread evenly, the messages of a part that lasted for the whole of a stop would hide it: they came before it and
 * after it. When they came is known where the peer was not stopped, as what one end sends the other receives: its
 * counts give the shape, and the part the number. values: the end's tenths, n of them. */
static void follow_peer(const struct steadiness_end *e, const struct steadiness_end *peer, double *values, size_t n) {
        for (size_t k = 0; k < e->n_late; k++) {
                const struct late_part *part = &e->late[k];
                uint64_t end = part->begin_ns + part->interval_ns;
                double all = messages_between(peer, e->begin_ns + part->begin_ns, e->begin_ns + end);
                for (size_t i = part->begin_ns / TENTH_NS; all > 0 && i < n && i * TENTH_NS < end; i++) {
                        uint64_t from = i * TENTH_NS > part->begin_ns ? i * TENTH_NS : part->begin_ns;
                        uint64_t to = (i + 1) * TENTH_NS < end ? (i + 1) * TENTH_NS : end;
                        double share = messages_between(peer, e->begin_ns + from, e->begin_ns + to) / all;
                        double even = (double) (to - from) / (double) part->interval_ns;
                        values[i] = fmax(0, values[i] + (share - even) * (double) part->messages);
                }
        }
}

/* Where in an end's tenths a later time lies: in which, and how much of it has passed; a part that hardly counts has
 * none, so that ends which began some milliseconds apart have no tenth less in common. */
struct place {
        size_t tenth;
        double passed;
};

static struct place place_of(const struct steadiness_end *e, uint64_t time_ns) {
        uint64_t after_ns = time_ns - e->begin_ns, passed_ns = after_ns % TENTH_NS;
        return (struct place){.tenth = (size_t) (after_ns / TENTH_NS),
                              .passed = passed_ns > NEAR_NS ? (double) passed_ns / (double) TENTH_NS : 0};
}

/* The tenths of a second that all measured ends have, from the later begin of their windows on: an end that was stopped
 * begins late, and what is of one moment must be added up as that. */
static size_t common_tenths(const struct steadiness *s, const bool measured[END_COUNT],
                            struct steadiness_series *series) {
        size_t n = SIZE_MAX, ends = 0;
        for (int i = 0; i < END_COUNT; i++)
                if (measured[i]) {
                        series->end = ends++ ? -1 : i;
                        if (s->ends[i].begin_ns > series->begin_ns)
                                series->begin_ns = s->ends[i].begin_ns;
                }
        for (int i = 0; i < END_COUNT; i++)
                if (measured[i]) {
                        const struct place begin = place_of(&s->ends[i], series->begin_ns);
                        size_t before = begin.tenth + (begin.passed > 0);
                        size_t whole = whole_tenths(&s->ends[i]), rest = whole > before ? whole - before : 0;
                        n = rest < n ? rest : n;
                }
        return ends ? n : 0;
}

/* Adds an end's messages per second in n tenths from begin_ns on, each from the two of its own grid that it lies in. */
static int add_end(const struct steadiness *s, enum end end, uint64_t begin_ns, double *values, size_t n) {
        const struct steadiness_end *e = &s->ends[end];
        const struct place begin = place_of(e, begin_ns);
        size_t own = whole_tenths(e), from = begin.tenth;
        double late = begin.passed;
        _cleanup_free_ double *messages = calloc(own ? own : 1, sizeof(*messages));
        if (!messages)
                return -ENOMEM;
        memcpy(messages, e->messages, own * sizeof(*messages));
        follow_peer(e, &s->ends[END_COUNT - 1 - end], messages, own);
        for (size_t i = 0; i < n; i++) {
                double one = messages[from + i] * (1 - late) + (late > 0 ? messages[from + i + 1] * late : 0);
                values[i] += one * (double) NSEC_PER_SEC / (double) TENTH_NS;
        }
        return 0;
}

static int judge_messages(struct steadiness *s, const bool measured[END_COUNT]) {
        struct steadiness_series *series = &s->series[s->n++];
        size_t n = common_tenths(s, measured, series);
        _cleanup_free_ double *values = calloc(n ? n : 1, sizeof(*values));
        int r = values ? 0 : -ENOMEM;
        for (int end = 0; r == 0 && n > 0 && end < END_COUNT; end++)
                if (measured[end])
                        r = add_end(s, (enum end) end, series->begin_ns, values, n);
        return r < 0 ? r : segments_judge(values, n, SEGMENTS_OF_COUNTS, STEADINESS_TOLERANCE, &series->segments);
}

/* A tenth of a second in which nothing was timed has the median of the one before: the count of messages shows
 * that none came. */
static int judge_latency(struct steadiness *s, enum end end, bool untaken) {
        const struct steadiness_end *e = &s->ends[end];
        size_t n = whole_tenths(e), known = 0;
        double last = 0;
        for (size_t i = n; i-- > 0;)
                if (e->p50_ns[i] > 0) {
                        last = e->p50_ns[i]; /* the first one after the loop */
                        known++;
                }
        if (known == 0 && !untaken)
                return 0;
        struct steadiness_series *series = &s->series[s->n++];
        *series = (struct steadiness_series){.is_latency = true, .end = (int) end, .begin_ns = e->begin_ns};
        series->untaken = known == 0;
        series->sparse = !series->untaken && 2 * known < n;
        if (series->untaken || series->sparse)
                return 0;
        _cleanup_free_ double *values = calloc(n, sizeof(*values));
        if (!values)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                values[i] = last = e->p50_ns[i] > 0 ? e->p50_ns[i] : last;
        return segments_judge(values, n, SEGMENTS_OF_TIMES, STEADINESS_TOLERANCE, &series->segments);
}

int steadiness_judge(struct steadiness *s, const bool measured[END_COUNT], const bool timed[END_COUNT],
                     uint32_t threads) {
        free(s->series);
        s->n = 0;
        s->series = calloc(SERIES_MAX, sizeof(*s->series));
        if (!s->series)
                return -ENOMEM;
        int r = judge_messages(s, measured);
        for (int end = 0; r == 0 && end < END_COUNT; end++)
                r = judge_latency(s, (enum end) end, timed[end] && threads > MESSAGE_PARTS_TIMED_THREADS);
        return r;
}

static bool is_judged(const struct steadiness_series *series) {
        return !series->sparse && !series->untaken && series->segments.class != SEGMENTS_UNKNOWN;
}

bool steadiness_is_lost(const struct steadiness *s) {
        for (size_t i = 0; i < s->n; i++)
                if (is_judged(&s->series[i]) && s->series[i].segments.class != SEGMENTS_FLAT)
                        return true;
        return false;
}

bool steadiness_is_known(const struct steadiness *s) {
        for (size_t i = 0; i < s->n; i++)
                if (!is_judged(&s->series[i]))
                        return false;
        return s->n > 0;
}

/* NULL: it was judged. */
static const char *reason_of(const struct steadiness_series *series) {
        if (series->untaken)
                return "not judged: of more than " UTIL_TEXT(
                        MESSAGE_PARTS_TIMED_THREADS) " threads no median latency is taken ten times a second";
        if (series->sparse)
                return "not judged: most tenths of a second have no latency";
        if (series->segments.reason == SEGMENTS_TOO_SHORT && series->end < 0)
                return "not judged: the windows of both ends have fewer than 3 seconds in common";
        if (series->segments.reason == SEGMENTS_TOO_SHORT)
                return "not judged: the window has fewer than 3 seconds";
        if (series->segments.reason == SEGMENTS_CORRELATED)
                return "not judged: neighbouring tenths of a second depend on each other so much that a change cannot "
                       "be distinguished from noise";
        return NULL;
}

static void put_segments(const struct steadiness_series *series, struct json_writer *w) {
        json_member_array(w, "segments");
        for (size_t i = 0; i < series->segments.n; i++) {
                const struct segment *segment = &series->segments.list[i];
                json_object_begin(w);
                json_member_double(w, "begin_seconds", (double) segment->begin / 10);
                json_member_double(w, "end_seconds", (double) segment->end / 10);
                json_member_double(w, "mean", segment->mean);
                json_object_end(w);
        }
        json_array_end(w);
}

/* Where neighbouring segments differ by more than the tolerance. */
static void put_changes(const struct steadiness_series *series, const struct disturbance *beside,
                        struct json_writer *w) {
        json_member_array(w, "changes");
        for (size_t i = 1; i < series->segments.n; i++) {
                const struct segment *from = &series->segments.list[i - 1], *to = from + 1;
                if (fabs(to->mean - from->mean) <= STEADINESS_TOLERANCE * fmax(to->mean, from->mean))
                        continue;
                uint64_t at_ns = series->begin_ns + to->begin * TENTH_NS;
                json_object_begin(w);
                json_member_double(w, "at_seconds", (double) to->begin / 10);
                json_member_u64(w, "second", to->begin / 10);
                json_member_u64(w, "at_ns", at_ns);
                json_member_double(w, "from", from->mean);
                json_member_double(w, "to", to->mean);
                json_put_key(w, "beside");
                disturbance_put_at(beside, at_ns, w);
                json_object_end(w);
        }
        json_array_end(w);
}

static void put_series(const struct steadiness_series *series, const char *const roles[END_COUNT],
                       const struct disturbance *beside, struct json_writer *w) {
        static const char *const classes[] = {[SEGMENTS_FLAT] = "flat",
                                              [SEGMENTS_WARM_UP] = "warm-up",
                                              [SEGMENTS_SLOW_DOWN] = "slow-down",
                                              [SEGMENTS_UNSTEADY] = "no-steady-state"};
        const struct segments *s = &series->segments;
        json_object_begin(w);
        json_member_string(w, "figure", series->is_latency ? "latency_p50_ns" : "messages_per_second");
        json_member_string(w, "measured_by", series->end < 0 ? "both" : roles[series->end]);
        if (is_judged(series))
                json_member_string(w, "class", classes[s->class]);
        else
                json_member_unknown(w, "class", reason_of(series));
        json_member_double_if(w, "steady_from_seconds", is_judged(series) && s->class != SEGMENTS_UNSTEADY,
                              (double) s->steady_from / 10);
        if (s->noise.variance > 0)
                json_member_double(w, "correlation", s->noise.correlation);
        else {
                const char *reason = reason_of(series);
                json_member_unknown(w, "correlation",
                                    reason ? reason : "too few tenths of a second have messages, or all are alike");
        }
        put_segments(series, w);
        put_changes(series, beside, w);
        json_object_end(w);
}

void steadiness_put(const struct steadiness *s, const char *const roles[END_COUNT], const struct disturbance *beside,
                    struct json_writer *w) {
        const char *reason = s->n ? NULL : "not judged: no counts of the window have come";
        for (size_t i = 0; i < s->n && !reason; i++)
                reason = reason_of(&s->series[i]);
        if (steadiness_is_lost(s) || steadiness_is_known(s))
                json_member_bool(w, "steady", !steadiness_is_lost(s));
        else
                json_member_unknown(w, "steady", reason);
        json_member_array(w, "steadiness");
        for (size_t i = 0; i < s->n; i++)
                put_series(&s->series[i], roles, beside, w);
        json_array_end(w);
}

void steadiness_deinit(struct steadiness *s) {
        for (int i = 0; i < END_COUNT; i++) {
                free(s->ends[i].messages);
                free(s->ends[i].p50_ns);
                free(s->ends[i].late);
        }
        free(s->series);
        *s = (struct steadiness){.n = 0};
}
