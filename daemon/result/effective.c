/* SPDX-License-Identifier: MIT */

/* Which of what the agents say belongs beside the figures, and whose word is taken. Called by result.c and
 * service-results.c. */

#include "daemon/result/effective.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* Known to the daemon, not said by an end. */
#define CPU "cpu"
#define ROUND_TRIP "round_trip"
#define RATE "rate"
#define THREADS "threads"

enum teller { SENDER, RECEIVER, DAEMON };

/* Both ends say most of it; a buffer is told by the end that fills or empties it. */
static const struct {
        const char *name;
        enum teller teller;    /* asked first */
        const char *told_with; /* whoever tells this tells both, one of which may be absent; NULL: it stands alone */
} settings[] = {
        {"chunk_bytes", SENDER, NULL},
        {"chunks_per_message", SENDER, NULL},
        {"send_method", SENDER, NULL},
        {"fields", SENDER, NULL},
        {"receive_method", RECEIVER, NULL},
        {"pipe_size", SENDER, NULL},
        {"pipe_size_max", SENDER, "pipe_size"},
        {"sndbuf_bytes", SENDER, NULL},
        {"sndbuf_bytes_max", SENDER, "sndbuf_bytes"},
        {"rcvbuf_bytes", RECEIVER, NULL},
        {"rcvbuf_bytes_max", RECEIVER, "rcvbuf_bytes"},
        {"busy_poll_us", RECEIVER, NULL},
        {"nodelay", SENDER, NULL},
        {"congestion", SENDER, NULL},
        {"segment_bytes", SENDER, NULL},
        {"queue_bytes", SENDER, NULL},
        {"queue_messages", SENDER, NULL},
        {"queue_message_bytes", SENDER, NULL},
        {"ring_bytes", SENDER, NULL},
        {"ring_messages", SENDER, NULL},
        {"ring_slot_bytes", SENDER, NULL},
        {"gather_ns", RECEIVER, NULL},
        {"page_bytes", SENDER, NULL},
        {"huge_pages", SENDER, NULL},
        {"file_sync", SENDER, NULL},
        {"file_system", SENDER, NULL},
        {"file_bytes", SENDER, NULL},
        {"slots", SENDER, NULL},
        {"direct_alignment_bytes", SENDER, NULL},
        {"clocksource", SENDER, NULL},
        {CPU, DAEMON, NULL},
        {ROUND_TRIP, DAEMON, NULL},
        {RATE, DAEMON, NULL},
        {THREADS, DAEMON, NULL},
};
_Static_assert(ELEMENTS(settings) == EFFECTIVE_COUNT, "one list of values per setting");

const char *effective_name(size_t i) {
        return i < ELEMENTS(settings) ? settings[i].name : NULL;
}

static int put_value(struct json_writer *w, const char *name, const struct json *value) {
        _cleanup_free_ char *text = json_print(value);
        if (!text)
                return -ENOMEM;
        json_member_raw(w, name, text);
        return 0;
}

static enum end other(enum end end) {
        return end == END_FIRST ? END_SECOND : END_FIRST;
}

/* With the reason beside a null. */
static int put_setting(struct json_writer *w, size_t i, const struct json *const ends[END_COUNT], enum end sender) {
        const char *asked = settings[i].told_with ? settings[i].told_with : settings[i].name;
        enum end teller = settings[i].teller == SENDER ? sender : other(sender);
        const struct json *end = ends[teller];
        if (!end || !json_get(end, asked))
                end = ends[other(teller)];
        const struct json *value = end ? json_get(end, settings[i].name) : NULL;
        if (!value)
                return 0;
        char key[64];
        (void) snprintf(key, sizeof(key), "%s_reason", settings[i].name);
        const struct json *reason = json_get(end, key);
        int r = put_value(w, settings[i].name, value);
        return r == 0 && reason ? put_value(w, key, reason) : r;
}

int result_effective_to_json(const struct message_report *const reports[END_COUNT], enum end sender,
                             const struct effective_known *known, struct json_writer *w) {
        const struct json *ends[END_COUNT] = {NULL};
        int r = 0;
        for (int end = 0; end < END_COUNT; end++)
                ends[end] = reports[end] ? reports[end]->effective.value : NULL;
        json_put_key(w, "effective");
        json_object_begin(w);
        for (size_t i = 0; r == 0 && i < ELEMENTS(settings); i++)
                if (settings[i].teller != DAEMON)
                        r = put_setting(w, i, ends, sender);
        if (known->cpu)
                json_member_i64(w, CPU, *known->cpu);
        if (known->round_trip)
                json_member_string(w, ROUND_TRIP, known->round_trip);
        if (known->rate > 0)
                json_member_double(w, RATE, known->rate);
        if (known->threads_json)
                json_member_raw(w, THREADS, known->threads_json);
        json_object_end(w);
        return r;
}

static int add(struct effective_values *v, size_t i, const struct json *value) {
        _cleanup_free_ char *text = json_print(value);
        if (!text)
                return -ENOMEM;
        for (size_t k = 0; k < v->of[i].n; k++)
                if (strcmp(v->of[i].texts[k], text) == 0)
                        return 0;
        char **texts = reallocarray(v->of[i].texts, v->of[i].n + 1, sizeof(*texts));
        if (!texts)
                return -ENOMEM;
        v->of[i].texts = texts;
        v->of[i].texts[v->of[i].n++] = util_steal(&text);
        return 0;
}

int effective_values_add(struct effective_values *v, const struct json *result) {
        const struct json *effective = json_type(result) == JSON_OBJECT ? json_get(result, "effective") : NULL;
        int r = 0;
        if (!effective || json_type(effective) != JSON_OBJECT)
                return 0;
        for (size_t i = 0; r == 0 && i < ELEMENTS(settings); i++) {
                const struct json *value = json_get(effective, settings[i].name);
                if (value)
                        r = add(v, i, value);
        }
        return r;
}

int effective_values_print(const struct effective_values *v, char **ret) {
        struct json_writer w;
        json_writer_init(&w);
        json_object_begin(&w);
        for (size_t i = 0; i < ELEMENTS(settings); i++) {
                if (v->of[i].n == 0)
                        continue;
                json_put_key(&w, settings[i].name);
                if (v->of[i].n > 1)
                        json_array_begin(&w);
                for (size_t k = 0; k < v->of[i].n; k++)
                        json_put_raw(&w, v->of[i].texts[k]);
                if (v->of[i].n > 1)
                        json_array_end(&w);
        }
        json_object_end(&w);
        int r = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        return r;
}

void effective_values_deinit(struct effective_values *v) {
        for (size_t i = 0; i < ELEMENTS(settings); i++) {
                for (size_t k = 0; k < v->of[i].n; k++)
                        free(v->of[i].texts[k]);
                free(v->of[i].texts);
        }
        *v = (struct effective_values){0};
}
