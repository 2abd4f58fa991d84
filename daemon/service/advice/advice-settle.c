/* SPDX-License-Identifier: MIT */

/* The spec whose runs would settle what an advice leaves open. */

#include "daemon/admission/admission.h"
#include "daemon/service/advice/advice-internal.h"
#include "daemon/service/internal.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SETTLE_REPETITIONS 12u /* pairs enough for six mechanisms */
#define SETTLE_REPETITIONS_MAX 60u
#define SETTLE_DURATION 1.0
#define SETTLE_WARMUP 0.25
/* From this size on, a window for a 99th percentile ends after the messages that it takes, however long that is. */
#define SETTLE_COUNTED_SIZE (UINT64_C(128) << 10)
#define SETTLE_BYTES_PER_SECOND 1e9

/* Whether runs without the leader would decide more of it. */
static bool is_settled_alone(const struct advice_item *item) {
        return item->reason == REASON_INTERPOLATED || item->reason == REASON_TOO_FEW_RUNS ||
               item->reason == REASON_LIMIT_UNDECIDED;
}

/* The leader and the open items of these settings, the first SETTLE_MECHANISMS_MAX; 0 where runs would decide nothing.
 */
static size_t list_group(const struct advice *a, const char *settings,
                         const struct advice_item *ret[static SETTLE_MECHANISMS_MAX]) {
        size_t n = 0;
        bool decide = false;
        for (size_t i = 0; i < a->n && n < SETTLE_MECHANISMS_MAX; i++) {
                const struct advice_item *item = &a->items[i];
                if ((!item->leads && !advice_may_settle(item)) || strcmp(item->settings, settings) != 0)
                        continue;
                ret[n++] = item;
                decide |= advice_may_settle(item) && (ret[0]->leads || is_settled_alone(item));
        }
        return decide ? n : 0;
}

/* The mechanisms that the spec is about. An experiment has one of all settings, so they are those with the leader's, or
 * else, where these leave nothing open or nobody leads, with those of the first open item of which runs would decide
 * more.
 */
size_t advice_list_contenders(const struct advice *a, const struct advice_item *ret[static SETTLE_MECHANISMS_MAX]) {
        size_t n = 0;
        for (size_t i = 0; i < a->n && n == 0; i++)
                if (a->items[i].leads || advice_may_settle(&a->items[i]))
                        n = list_group(a, a->items[i].settings, ret);
        return n;
}

/* That decide all of it, as far as it is known how many do. `until` takes no such number, but it decides by what it
 * compares alone, with another correction than that of the whole answer. */
uint32_t advice_repetitions_wanted(const struct advice_item *const *items, size_t n) {
        uint32_t wanted = SETTLE_REPETITIONS;
        for (size_t i = 0; i < n; i++)
                if (items[i]->runs_needed > wanted)
                        wanted = items[i]->runs_needed;
        return wanted;
}

/* The values of an axis that the mechanisms have, each once; none where it has a meaning for none of them. */
static void member_axis(struct json_writer *w, const struct axis *a, const struct advice_item *const *items, size_t n) {
        bool begun = false;
        for (size_t i = 0; i < n; i++) {
                bool seen = !axis_applies(a, &items[i]->point);
                for (size_t k = 0; k < i && !seen; k++)
                        seen = axis_applies(a, &items[k]->point) &&
                               a->value.type->equal(&a->value, axis_of(a, &items[k]->point),
                                                    axis_of(a, &items[i]->point));
                if (seen)
                        continue;
                if (!begun) {
                        json_member_array(w, a->value.name);
                        begun = true;
                }
                a->value.type->write(&a->value, w, axis_of(a, &items[i]->point));
        }
        if (begun)
                json_array_end(w);
}

/* Whether it is about the latency of a stream, whose messages have to carry the time of their sending. */
bool advice_is_stamped(const struct advice_question *q) {
        bool latency = q->want == WANT_LATENCY_P50 || q->want == WANT_LATENCY_P99 ||
                       !isnan(q->limits[WANT_LATENCY_P50]) || !isnan(q->limits[WANT_LATENCY_P99]);
        return latency && q->workload == WORKLOAD_STREAM;
}

/* Whether runs of the transport have the figures that are requested. */
static bool can_answer(const struct advice_question *q, enum transport t) {
        if (q->both_ways && !(q->workload == WORKLOAD_STREAM && point_has_direction(q->workload, t)))
                return false;
        return !advice_is_stamped(q) || (transport_terms[t].stamps && q->message_size >= SPEC_STAMPED_MIN);
}

/* Whether runs of it are worth while: it can answer, and does not only fail. */
static bool is_proposed(const struct advice_record *a, enum transport t) {
        for (size_t i = 0; i < a->n_failing; i++)
                if (a->failing[i].transport == t)
                        return false;
        return can_answer(&a->question, t);
}

/* Where nothing is known, or one mechanism alone: every transport, with default options. */
static void members_of_all(struct json_writer *w, const struct advice_record *a) {
        const struct advice_question *q = &a->question;
        json_member_string(w, "workload", workload_words.name(q->workload));
        json_member_array(w, "transport");
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                if (is_proposed(a, t))
                        json_put_string(w, transport_words.name(t));
        json_array_end(w);
        if (advice_is_stamped(q))
                json_member_bool(w, "stamp", true);
        if (q->both_ways)
                json_member_string(w, "direction", direction_words.name(DIRECTION_BOTH));
        json_member_u64(w, "message_size", q->message_size);
        json_member_u64(w, "threads", q->threads);
        json_member_string(w, "placement", placement_kind_name(q->placement));
}

static int members_of_settings(struct json_writer *w, const char *settings) {
        struct json *root;
        int r = json_parse(settings, strlen(settings), &root, NULL);
        if (r < 0)
                return r;
        for (const struct json *i = json_first(root); r == 0 && i; i = json_next(i)) {
                _cleanup_free_ char *text = json_print(i);
                r = text ? 0 : -ENOMEM;
                json_member_raw(w, json_key(i), text);
        }
        json_free(root);
        return r;
}

/* The experiment's name holds the whole question: service_settle() recognizes the question by it. */
void advice_name_question(const struct advice_question *q, char ret[static SPEC_NAME_MAX + 1]) {
        int used = snprintf(ret, SPEC_NAME_MAX + 1, "Advice: %s, %s, %" PRIu64 " B, threads %u, %s",
                            advice_terms[q->want].name, workload_words.name(q->workload), q->message_size, q->threads,
                            placement_kind_name(q->placement));
        if (q->both_ways)
                used += snprintf(ret + used, SPEC_NAME_MAX + 1 - (size_t) used, ", both ways");
        for (size_t i = 0; i < WANT_COUNT && used < (int) SPEC_NAME_MAX; i++)
                if (!isnan(q->limits[i]))
                        used += snprintf(ret + used, SPEC_NAME_MAX + 1 - (size_t) used, ", %s %.6g %s",
                                         advice_terms[i].limit_words, q->limits[i] / advice_terms[i].limit_unit,
                                         advice_terms[i].limit_unit_name);
}

/* One mechanism is no ranking, and that each keeps the limits may be unknown. */
static bool is_incomplete(const struct advice *a) {
        size_t n_unknown = 0;
        for (size_t i = 0; i < a->n; i++)
                n_unknown += a->items[i].reason == REASON_LIMIT_NOT_KNOWN;
        return a->n <= 1 || n_unknown > 0;
}

static int has_stamp(const char *settings, bool *ret) {
        struct json *root;
        bool stamp = false;
        int r = json_parse(settings, strlen(settings), &root, NULL);
        if (r < 0)
                return r;
        if (json_get(root, "stamp"))
                r = json_as_bool(json_get(root, "stamp"), &stamp);
        json_free(root);
        *ret = stamp;
        return r;
}

/* The transports that can answer and have no item, a bit each. One that has an item which does not keep a limit for
 * certain, as its runs were too short for a percentile or had other options, has no better one after runs of all. */
static int find_unmeasured(const struct advice_record *a, unsigned *ret) {
        unsigned bits = 0;
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                bits |= is_proposed(a, t) ? 1u << t : 0;
        for (size_t i = 0; i < a->advice.n; i++) {
                bool answers = true;
                int r = advice_is_stamped(&a->question) ? has_stamp(a->advice.items[i].settings, &answers) : 0;
                if (r < 0)
                        return r;
                if (answers)
                        bits &= ~(1u << a->advice.items[i].point.transport);
        }
        *ret = bits;
        return 0;
}

static int find_admitted(struct service *s, const struct spec *spec, const struct point_list *points, unsigned *ret) {
        struct admission_host host = service_admission_host(s);
        struct admission_session session;
        struct refusal why;
        unsigned bits = 0;
        int r = admission_session_init(&session, host.root);
        if (r < 0)
                return r;
        host.session = &session;
        topology_hold();
        for (size_t i = 0; (r == 0 || r == -EINVAL) && i < points->n_points; i++) {
                r = admission_check(&host, spec, &points->points[i], &why);
                bits |= r == 0 ? 1u << points->points[i].transport : 0;
        }
        topology_release();
        admission_session_deinit(&session);
        *ret = bits;
        return r == -EINVAL ? 0 : r;
}

/* The transports of the spec that this host can run, a bit each: a message may be too long for the others. */
static int find_possible(struct service *s, const char *json, unsigned *ret) {
        struct point_list points = {.points = NULL};
        struct spec *spec = NULL;
        struct refusal why;
        int r = spec_parse(json, strlen(json), &spec, &why);
        if (r == 0)
                r = spec_points(spec, &points, &why);
        if (r == 0)
                r = find_admitted(s, spec, &points, ret);
        point_list_deinit(&points);
        spec_free(spec);
        if (r == -EINVAL) /* it has no point that is possible */
                *ret = 0;
        return r == -EINVAL ? 0 : r;
}

static bool is_of_p99(const struct advice_question *q) {
        return q->want == WANT_LATENCY_P99 || !isnan(q->limits[WANT_LATENCY_P99]);
}

/* Whether a window ends after this many messages; 0: after a time. */
static uint64_t counted_messages(const struct advice_question *q) {
        bool counted = is_of_p99(q) && q->message_size >= SETTLE_COUNTED_SIZE;
        return counted ? (uint64_t) FIGURE_P99_LATENCIES_LEAST * q->threads : 0;
}

static bool is_too_long(const struct advice_question *q) {
        double transfers = q->workload == WORKLOAD_PINGPONG ? 2 : 1;
        double bytes = transfers * (double) counted_messages(q) * (double) q->message_size;
        return bytes > SETTLE_WINDOW_MAX_SECONDS * SETTLE_BYTES_PER_SECOND;
}

/* n == 0: of every transport. */
static int write_spec(struct advice_record *a, const struct advice_item *const *items, size_t n, uint32_t repetitions) {
        char name[SPEC_NAME_MAX + 1];
        struct json_writer w;
        int r = 0;
        advice_name_question(&a->question, name);
        json_writer_init(&w);
        json_object_begin(&w);
        json_member_string(&w, "name", name);
        if (n == 0)
                members_of_all(&w, a);
        for (size_t i = 0; n > 0 && i < AXIS_COUNT; i++)
                member_axis(&w, &axes[i], items, n);
        if (n > 0)
                r = members_of_settings(&w, items[0]->settings);
        uint64_t messages = counted_messages(&a->question);
        if (messages > 0)
                json_member_u64(&w, "messages", messages);
        else
                json_member_double(&w, "duration_seconds", SETTLE_DURATION);
        json_member_double(&w, "warmup_seconds", SETTLE_WARMUP);
        json_member_u64(&w, "repetitions", repetitions);
        json_member_bool(&w, "skip_impossible", true);
        json_object_end(&w);
        if (r == 0)
                r = json_writer_steal(&w, &a->settle_json, NULL);
        json_writer_deinit(&w);
        a->settles_all = n == 0;
        return r;
}

/* Runs of all are of use only while there is a transport that they give its first item. */
static int propose_all(struct service *s, struct advice_record *a) {
        unsigned unmeasured = 0, possible = 0;
        int r = find_unmeasured(a, &unmeasured);
        if (r < 0 || unmeasured == 0 || !is_incomplete(&a->advice))
                return r;
        r = write_spec(a, NULL, 0, SETTLE_REPETITIONS);
        if (r < 0 || a->advice.n == 0) /* where nothing is known, a refusal of the spec is an answer, too */
                return r;
        r = find_possible(s, a->settle_json, &possible);
        if (r == 0 && !(unmeasured & possible))
                free(util_steal(&a->settle_json));
        return r;
}

/* One mechanism alone is compared with nothing: runs of all come first. */
static int choose_spec(struct service *s, struct advice_record *a, uint32_t *ret_repetitions) {
        const struct advice_item *items[SETTLE_MECHANISMS_MAX];
        size_t n = advice_list_contenders(&a->advice, items);
        int r = n == 0 || a->advice.n == 1 ? propose_all(s, a) : 0;
        *ret_repetitions = SETTLE_REPETITIONS;
        if (r < 0 || n == 0 || a->settle_json)
                return r;
        uint32_t wanted = advice_repetitions_wanted(items, n);
        *ret_repetitions = wanted < SETTLE_REPETITIONS_MAX ? wanted : SETTLE_REPETITIONS_MAX;
        return write_spec(a, items, n, *ret_repetitions);
}

int advice_write_settling(struct service *s, struct advice_record *a, uint32_t *ret_repetitions) {
        int r = choose_spec(s, a, ret_repetitions);
        if (r == 0 && a->settle_json && is_too_long(&a->question)) {
                a->too_long = true;
                free(util_steal(&a->settle_json));
        }
        return r;
}
