/* SPDX-License-Identifier: MIT */

/* Selects the settings that stand beside the figures, and the end whose report counts for each. Called by result.c and
 * daemon/service/results.c. */

#include "daemon/result/effective.h"

#include "schema/json/json.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* Known to the daemon, not reported by an end. */
#define CPU "cpu"
#define ROUND_TRIP "round_trip"
#define RATE "rate"
#define THREADS "threads"

enum reporter { SENDER, RECEIVER, DAEMON };

/* Rows of the table below. */
#define REPORTED_WITH(by, upper, other)                                                                                \
        { .setting = SETTING_##upper, .reporter = by, .reported_with = SETTING_##other }
#define REPORTED(by, upper) REPORTED_WITH(by, upper, upper)
#define KNOWN(member)                                                                                                  \
        { .setting = SETTING_COUNT, .reporter = DAEMON, .reported_with = SETTING_COUNT, .name = member }

/* Both ends report most settings; a buffer counts as reported by the end that fills or empties it. */
static const struct {
        enum setting setting;
        enum reporter reporter;     /* whose value counts first */
        enum setting reported_with; /* marks an end that reports this setting, which itself may be absent */
        const char *name;           /* of a setting that the daemon knows; NULL: an agent's, by setting_terms */
} settings[] = {
        REPORTED(SENDER, CHUNK_BYTES),
        REPORTED(SENDER, CHUNKS_PER_MESSAGE),
        REPORTED(SENDER, SEND_METHOD),
        REPORTED(SENDER, FIELDS),
        REPORTED(RECEIVER, RECEIVE_METHOD),
        REPORTED(RECEIVER, STAMP),
        REPORTED(SENDER, FRESH),
        REPORTED(SENDER, SOURCE_BYTES),
        REPORTED(SENDER, BUFFER_BYTES),
        REPORTED(SENDER, PIPE_SIZE),
        REPORTED_WITH(SENDER, PIPE_SIZE_MAX, PIPE_SIZE),
        REPORTED(SENDER, SNDBUF_BYTES),
        REPORTED_WITH(SENDER, SNDBUF_BYTES_MAX, SNDBUF_BYTES),
        REPORTED(RECEIVER, RCVBUF_BYTES),
        REPORTED_WITH(RECEIVER, RCVBUF_BYTES_MAX, RCVBUF_BYTES),
        REPORTED(RECEIVER, BUSY_POLL_US),
        REPORTED(SENDER, NODELAY),
        REPORTED(SENDER, CONGESTION),
        REPORTED(SENDER, SEGMENT_BYTES),
        REPORTED(SENDER, QUEUE_BYTES),
        REPORTED(SENDER, QUEUE_MESSAGES),
        REPORTED(SENDER, QUEUE_MESSAGE_BYTES),
        REPORTED(SENDER, RING_BYTES),
        REPORTED(SENDER, RING_MESSAGES),
        REPORTED(SENDER, RING_SLOT_BYTES),
        REPORTED(RECEIVER, GATHER_NS),
        REPORTED(SENDER, PAGE_BYTES),
        REPORTED(SENDER, HUGE_PAGES),
        REPORTED(SENDER, FILE_SYNC),
        REPORTED(SENDER, FILE_SYSTEM),
        REPORTED(SENDER, FILE_BYTES),
        REPORTED(SENDER, SLOTS),
        REPORTED(SENDER, DIRECT_ALIGNMENT_BYTES),
        REPORTED(SENDER, CLOCKSOURCE),
        KNOWN(CPU),
        KNOWN(ROUND_TRIP),
        KNOWN(RATE),
        KNOWN(THREADS),
};
_Static_assert(ELEMENTS(settings) == EFFECTIVE_COUNT, "one list of values per setting");

const char *effective_name(size_t i) {
        if (i >= ELEMENTS(settings))
                return NULL;
        return settings[i].name ? settings[i].name : setting_terms[settings[i].setting].name;
}

static enum end other(enum end end) {
        return end == END_FIRST ? END_SECOND : END_FIRST;
}

/* Writes the setting, and the reason beside a null. */
static void put_setting(struct json_writer *w, size_t i, const struct effective *const ends[END_COUNT],
                        enum end sender) {
        enum end reporter = settings[i].reporter == SENDER ? sender : other(sender);
        const struct effective *end = ends[reporter];
        if (!effective_find(end, settings[i].reported_with))
                end = ends[other(reporter)];
        const struct effective_row *value = effective_find(end, settings[i].setting);
        if (!value)
                return;
        effective_put_row(value, w);
        const struct effective_row *reason = effective_find_reason(end, settings[i].setting);
        if (reason)
                effective_put_row(reason, w);
}

void result_effective_to_json(const struct message_report *const reports[END_COUNT], enum end sender,
                              const struct effective_known *known, struct json_writer *w) {
        const struct effective *ends[END_COUNT] = {NULL};
        for (int end = 0; end < END_COUNT; end++)
                ends[end] = reports[end] ? reports[end]->effective : NULL;
        json_member_object(w, "effective");
        for (size_t i = 0; i < ELEMENTS(settings); i++)
                if (settings[i].reporter != DAEMON)
                        put_setting(w, i, ends, sender);
        if (known->cpu)
                json_member_i64(w, CPU, *known->cpu);
        if (known->round_trip)
                json_member_string(w, ROUND_TRIP, known->round_trip);
        if (known->rate > 0)
                json_member_double(w, RATE, known->rate);
        if (known->threads_json)
                json_member_raw(w, THREADS, known->threads_json);
        json_object_end(w);
}

/* The text as json_print() has it, so that equal values are equal text. */
static int print_part(const struct json_part *part, char **ret) {
        _cleanup_(json_freep) struct json *value = NULL;
        int r = json_parse(part->text, part->length, &value, NULL);
        char *text = r == 0 ? json_print(value) : NULL;
        if (!text)
                return r == 0 || r == -ENOMEM ? -ENOMEM : -EBADMSG;
        *ret = text;
        return 0;
}

static int add(struct effective_values *v, size_t i, const struct json_part *value) {
        _cleanup_free_ char *text = NULL;
        int r = print_part(value, &text);
        if (r < 0)
                return r;
        for (size_t k = 0; k < v->of[i].n; k++)
                if (strcmp(v->of[i].texts[k], text) == 0)
                        return 0;
        if (!util_resize(v->of[i].texts, v->of[i].n + 1))
                return -ENOMEM;
        v->of[i].texts[v->of[i].n++] = util_steal(&text);
        return 0;
}

int effective_values_add(struct effective_values *v, const struct json_part *result) {
        const struct json_part *effective = json_part_get(result, "effective");
        int r = 0;
        for (size_t i = 0; r == 0 && i < ELEMENTS(settings); i++) {
                const struct json_part *value = json_part_get(effective, effective_name(i));
                if (value)
                        r = add(v, i, value);
        }
        return r;
}

int effective_values_print(const struct effective_values *v, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        for (size_t i = 0; i < ELEMENTS(settings); i++) {
                if (v->of[i].n == 0)
                        continue;
                json_put_key(&w, effective_name(i));
                if (v->of[i].n > 1)
                        json_array_begin(&w);
                for (size_t k = 0; k < v->of[i].n; k++)
                        json_put_raw(&w, v->of[i].texts[k]);
                if (v->of[i].n > 1)
                        json_array_end(&w);
        }
        json_object_end(&w);
        return json_writer_steal(&w, ret, NULL);
}

void effective_values_deinit(struct effective_values *v) {
        for (size_t i = 0; i < ELEMENTS(settings); i++) {
                for (size_t k = 0; k < v->of[i].n; k++)
                        free(v->of[i].texts[k]);
                free(v->of[i].texts);
        }
        *v = (struct effective_values){0};
}
