/* SPDX-License-Identifier: MIT */

/* Reads the seconds of a run's result, and finds those of a sample. Used by the exports of samples and the event
 * streams.
 */

#include "api/handle/render/sample-noise.h"

#include "api/handle/render/cells.h"
#include "schema/json/view.h"
#include "schema/observed.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define COMMON_PART 10u /* of the shorter one of a sample and a second: less is how far their beginnings are apart */

static const char *const names[SAMPLE_NOISE_VALUES] = {
        [SAMPLE_NOISE_FOREIGN] = "foreign_share",   [SAMPLE_NOISE_SOFTIRQ] = "worst_softirq_share",
        [SAMPLE_NOISE_STEAL] = "worst_steal_share", [SAMPLE_NOISE_STOPPED] = "stopped_ns",
        [SAMPLE_NOISE_MIGRATIONS] = "migrations",   [SAMPLE_NOISE_SENT_AGAIN] = "retransmitted_segments",
        [SAMPLE_NOISE_LOST] = "lost_segments",      [SAMPLE_NOISE_TIMED_OUT] = "retransmission_timeouts",
};

static const char no_result_yet[] = "the run has not ended: the noise of its seconds is stored with its result";
static const char no_result[] = "the run was not completed: it has no result, with which the noise is stored";
static const char no_noise[] =
        "the machine beside the run was not observed: see noise_reason of its result, or an earlier version made it";
static const char no_times[] =
        "the seconds of the run's noise have no begin_ns: they are of a bundle, which leaves the "
        "clock of its host out";
static const char no_begin[] = "an earlier version stored the sample, without begin_ns";
static const char no_second[] =
        "no second of the run's noise has it: there was no reading, or the end of a window by a "
        "number of messages came less than half a second after the last one";
static const char not_listed[] = "the run's result lists no second of this time: of a window of more than 600 seconds "
                                 "it has those after them that have a flag, up to 600";
static const char is_partial[] = "observed_share: a part of the sample lies in no second that the run's noise lists";
static const char is_long[] = "a second of the run's noise that the sample lies in is longer than 1.6 s, and the mean "
                              "of so long a time hides a disturbance";

void sample_noise_deinit(struct sample_noise *n) {
        for (size_t i = 0; i < n->n_flags; i++)
                free(n->flags[i]);
        free(n->seconds);
        *n = (struct sample_noise){0};
}

/* --- the run's seconds --- */

static double number_or(const struct json *object, const char *key, double otherwise) {
        const struct json *value = json_get(object, key);
        double v;
        return value && json_as_double(value, &v) == 0 ? v : otherwise;
}

/* The bit of a flag, which is added to the run's list where it is new. */
static int flag_bit(struct sample_noise *n, const char *flag, uint64_t *ret) {
        size_t i = 0;
        while (i < n->n_flags && strcmp(n->flags[i], flag) != 0)
                i++;
        if (i == SAMPLE_NOISE_FLAGS_MAX)
                return -EBADMSG;
        if (i == n->n_flags) {
                n->flags[i] = strdup(flag);
                if (!n->flags[i])
                        return -ENOMEM;
                n->n_flags++;
        }
        *ret = UINT64_C(1) << i;
        return 0;
}

static int read_flags(struct sample_noise *n, const struct json *list, uint64_t *ret) {
        if (!list || json_type(list) != JSON_ARRAY)
                return -EBADMSG;
        for (const struct json *i = json_first(list); i; i = json_next(i)) {
                const char *flag;
                uint64_t bit;
                int k = json_as_string(i, &flag) < 0 ? -EBADMSG : flag_bit(n, flag, &bit);
                if (k < 0)
                        return k;
                *ret |= bit;
        }
        return 0;
}

/* -ENODATA: its beginning is not known. */
static int read_second(struct sample_noise *n, const struct json *object, struct sample_noise_second *ret) {
        double second = json_type(object) == JSON_OBJECT ? number_or(object, "second", -1) : -1;
        double interval_ns = second < 0 ? -1 : number_or(object, "interval_ns", -1);
        if (interval_ns <= 0)
                return -EBADMSG;
        if (!json_get(object, "begin_ns"))
                return -ENODATA;
        double begin_ns = number_or(object, "begin_ns", -1);
        if (begin_ns < 0)
                return -EBADMSG;
        *ret = (struct sample_noise_second){
                .second = (uint64_t) second,
                .begin_ns = (uint64_t) begin_ns,
                .interval_ns = (uint64_t) interval_ns,
                .cpu = (int64_t) number_or(object, "cpu", -1),
        };
        for (int i = 0; i < SAMPLE_NOISE_VALUES; i++)
                ret->values[i] = number_or(object, names[i], -1);
        return read_flags(n, json_get(object, "flags"), &ret->flags);
}

static int read_seconds(struct sample_noise *n, const struct json *list) {
        if (json_type(list) != JSON_ARRAY)
                return -EBADMSG;
        n->seconds = calloc(json_length(list) + 1, sizeof(*n->seconds));
        if (!n->seconds)
                return -ENOMEM;
        for (const struct json *i = json_first(list); i; i = json_next(i)) {
                struct sample_noise_second *s = &n->seconds[n->n];
                int k = read_second(n, i, s);
                if (k < 0)
                        return k;
                if (n->n > 0 && s->begin_ns < s[-1].begin_ns)
                        return -EBADMSG;
                n->n++;
        }
        return 0;
}

/* "noise" of a result: its seconds and how many there are, or why they are not known. */
static int read_noise(struct sample_noise *n, const char *result_json) {
        const char *noise, *part;
        size_t length;
        double total;
        struct json *list = NULL;
        if (!json_find_member(result_json, "noise", &noise, &length) || *noise != '{') {
                n->reason = no_noise;
                return 0;
        }
        if (!json_find_member(noise, "seconds_total", &part, &length)) {
                n->reason = no_noise;
                return 0;
        }
        if (!json_part_double(&(struct json_part){.text = part, .length = length}, &total) || total < 0)
                return -EBADMSG;
        n->total = (uint64_t) total;
        if (!json_find_member(noise, "seconds", &part, &length))
                return -EBADMSG;
        int k = json_parse_written(part, length, &list);
        if (k == 0)
                k = read_seconds(n, list);
        json_free(list);
        if (k == -ENODATA) {
                n->n = 0;
                n->reason = no_times;
        }
        return k == -ENODATA ? 0 : k;
}

int sample_noise_read(struct sample_noise *ret, const struct run_record *run) {
        struct sample_noise n = {0};
        int k = 0;
        if (run->result_json)
                k = read_noise(&n, run->result_json);
        else
                n.reason = run->state == STATE_QUEUED || run->state == STATE_RUNNING ? no_result_yet : no_result;
        if (k < 0) {
                sample_noise_deinit(&n);
                return k;
        }
        *ret = n;
        return 0;
}

/* --- a sample's --- */

static uint64_t end_of(const struct sample_noise_second *s) {
        return s->begin_ns + s->interval_ns;
}

/* The first second that ends after this moment; n->n: there is none. */
static size_t first_after(const struct sample_noise *n, uint64_t at_ns) {
        size_t low = 0, high = n->n;
        while (low < high) {
                size_t middle = (low + high) / 2;
                if (end_of(&n->seconds[middle]) <= at_ns)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void add_second(struct sample_noise_found *f, const struct sample_noise_second *s) {
        if (s->values[SAMPLE_NOISE_FOREIGN] > f->of.values[SAMPLE_NOISE_FOREIGN])
                f->of.cpu = s->cpu;
        for (int i = 0; i < SAMPLE_NOISE_VALUES; i++)
                if (s->values[i] > f->of.values[i])
                        f->of.values[i] = s->values[i];
        f->of.flags |= s->flags;
        f->of.interval_ns = s->interval_ns > f->of.interval_ns ? s->interval_ns : f->of.interval_ns;
}

/* Whether a second that the result does not list may lie before this one. */
static bool is_unlisted_before(const struct sample_noise *n, size_t i) {
        uint64_t expected = i > 0 ? n->seconds[i - 1].second + 1 : 0;
        return expected < (i < n->n ? n->seconds[i].second : n->total);
}

struct sample_noise_found sample_noise_find(const struct sample_noise *n, const struct sample_record *s) {
        struct sample_noise_found f = {.of = {.cpu = -1}};
        const uint64_t begin_ns = s->begin_ns, end_ns = begin_ns + s->interval_ns;
        uint64_t observed_ns = 0;
        for (int v = 0; v < SAMPLE_NOISE_VALUES; v++)
                f.of.values[v] = -1;
        size_t first = first_after(n, begin_ns), i = first;
        for (; i < n->n && n->seconds[i].begin_ns < end_ns; i++) {
                const struct sample_noise_second *at = &n->seconds[i];
                uint64_t from_ns = at->begin_ns > begin_ns ? at->begin_ns : begin_ns,
                         to_ns = end_of(at) < end_ns ? end_of(at) : end_ns;
                uint64_t shorter_ns = at->interval_ns < s->interval_ns ? at->interval_ns : s->interval_ns;
                observed_ns += to_ns - from_ns;
                if ((to_ns - from_ns) >= shorter_ns / COMMON_PART)
                        add_second(&f, at);
        }
        if (observed_ns > s->interval_ns) /* by nanoseconds that a double has lost */
                observed_ns = s->interval_ns;
        f.observed = s->interval_ns ? (double) observed_ns / (double) s->interval_ns : 0;
        if (n->reason || s->begin_ns == 0)
                f.reason = n->reason ? n->reason : no_begin;
        else if (f.of.interval_ns == 0)
                f.reason = is_unlisted_before(n, first) || is_unlisted_before(n, i) ? not_listed : no_second;
        else if (!observed_without(s->interval_ns, s->interval_ns - observed_ns))
                f.unobserved = is_partial;
        else if (f.of.interval_ns > OBSERVED_LONG_NS)
                f.unobserved = is_long;
        return f;
}

void sample_noise_put(const struct sample_noise *n, const struct sample_record *s, struct json_writer *w) {
        const struct sample_noise_found f = sample_noise_find(n, s);
        json_put_key(w, "noise");
        if (f.reason) {
                json_put_null(w);
                json_member_string(w, "noise_reason", f.reason);
                return;
        }
        json_object_begin(w);
        json_member_double(w, "observed_share", f.observed);
        if (f.unobserved)
                json_member_string(w, "not_observed_reason", f.unobserved);
        json_member_i64_if(w, "cpu", f.of.cpu >= 0, f.of.cpu);
        for (int i = 0; i < SAMPLE_NOISE_VALUES; i++)
                json_member_double_if(w, names[i], f.of.values[i] >= 0, f.of.values[i]);
        json_member_array(w, "flags");
        for (size_t i = 0; i < n->n_flags; i++)
                if (f.of.flags >> i & 1)
                        json_put_string(w, n->flags[i]);
        json_array_end(w);
        json_object_end(w);
}

void sample_noise_header(struct text *t) {
        text_puts(t, ",noise_observed_share,noise_cpu");
        for (int i = 0; i < SAMPLE_NOISE_VALUES; i++)
                text_printf(t, ",noise_%s", names[i]);
        text_puts(t, ",noise_flags,noise_reason");
}

static void value_cell(struct text *t, double v) {
        if (v < 0)
                text_puts(t, ",");
        else
                cells_double(t, v);
}

void sample_noise_cells(const struct sample_noise *n, const struct sample_record *s, struct text *t) {
        const struct sample_noise_found f = sample_noise_find(n, s);
        const char *space = "";
        if (f.reason) {
                for (int i = 0; i < SAMPLE_NOISE_VALUES + 4; i++)
                        text_puts(t, ",");
                text_csv(t, f.reason);
                return;
        }
        cells_double(t, f.observed);
        text_puts(t, ",");
        if (f.of.cpu >= 0)
                text_printf(t, "%lld", (long long) f.of.cpu);
        for (int i = 0; i < SAMPLE_NOISE_VALUES; i++)
                value_cell(t, f.of.values[i]);
        text_puts(t, ",");
        for (size_t i = 0; i < n->n_flags; i++)
                if (f.of.flags >> i & 1) {
                        text_printf(t, "%s%s", space, n->flags[i]);
                        space = " ";
                }
        text_puts(t, ",");
        text_csv(t, f.unobserved);
}
