/* SPDX-License-Identifier: MIT */

/*
 * A point as JSON and back: what the API shows, the store keeps and the agents are told. Also the small arithmetic
 * on points that daemon and parser share.
 */

#include "schema/spec/internal.h"

#include "schema/util.h"

#include <string.h>

void point_put(struct json_writer *w, const struct point *p, bool with_placement) {
        json_member_string(w, "workload", workload_name(p->workload));
        if (workload_has_transport(p->workload)) {
                json_member_string(w, "transport", transport_name(p->transport));
                json_member_u64(w, "message_size", p->message_size);
                json_member_u64(w, "threads", p->threads);
        }
        if (point_has_copy_mode(p->workload, p->transport))
                json_member_string(w, "copy_mode", copy_mode_name(p->copy_mode));
        if (point_has_engine(p->workload, p->transport))
                json_member_string(w, "engine", engine_name(p->engine));
        if (point_has_wait(p->workload, p->transport))
                json_member_string(w, "wait", wait_mode_name(p->wait));
        if (point_has_fields(p->workload, p->transport, p->copy_mode))
                json_member_u64(w, "fields", p->fields);
        if (point_has_direction(p->workload, p->transport))
                json_member_string(w, "direction", direction_name(p->direction));
        if (workload_has_call(p->workload))
                json_member_string(w, "call", system_call_name(p->call));
        if (workload_has_processes(p->workload)) {
                json_member_u64(w, "processes", p->processes);
                json_member_u64(w, "working_set", p->working_set);
        }
        if (with_placement) {
                json_put_key(w, "placement");
                placement_put(w, &p->placement, role_pair_of(p->workload, p->transport));
        }
}

char *point_to_json(const struct point *p) {
        struct json_writer w;
        char *text = NULL;
        size_t length;

        json_writer_init(&w);
        json_object_begin(&w);
        point_put(&w, p, true);
        json_object_end(&w);
        (void) json_writer_steal(&w, &text, &length); /* NULL on failure, as promised */
        json_writer_deinit(&w);
        return text;
}

/* A member's word, counted; NULL when it is missing or no string. */
static const char *take_word(const struct json *object, const char *key, size_t *taken) {
        const char *word;
        if (json_as_string(json_get(object, key), &word) < 0)
                return NULL;
        ++*taken;
        return word;
}

static int take_count(const struct json *object, const char *key, uint64_t least, uint64_t most, uint64_t *ret,
                      size_t *taken) {
        int64_t v;
        if (json_as_i64(json_get(object, key), &v) < 0 || v < 0 || (uint64_t) v < least || (uint64_t) v > most)
                return -EINVAL;
        ++*taken;
        *ret = (uint64_t) v;
        return 0;
}

static int take_transport(const struct json *object, struct point *p, size_t *taken) {
        const char *word = take_word(object, "transport", taken);
        uint64_t threads, fields = 0;

        if (!word || transport_from_name(word, &p->transport) < 0 ||
            take_count(object, "message_size", 1, SPEC_MESSAGE_SIZE_MAX, &p->message_size, taken) < 0 ||
            take_count(object, "threads", 1, SPEC_THREADS_MAX, &threads, taken) < 0)
                return -EINVAL;
        p->threads = (uint32_t) threads;
        if (point_has_copy_mode(p->workload, p->transport) &&
            (!(word = take_word(object, "copy_mode", taken)) || copy_mode_from_name(word, &p->copy_mode) < 0))
                return -EINVAL;
        if (point_has_engine(p->workload, p->transport) &&
            (!(word = take_word(object, "engine", taken)) || engine_from_name(word, &p->engine) < 0))
                return -EINVAL;
        if (point_has_wait(p->workload, p->transport) &&
            (!(word = take_word(object, "wait", taken)) || wait_mode_from_name(word, &p->wait) < 0))
                return -EINVAL;
        if (point_has_fields(p->workload, p->transport, p->copy_mode) &&
            take_count(object, "fields", 1, SPEC_FIELDS_MAX, &fields, taken) < 0)
                return -EINVAL;
        if (point_has_direction(p->workload, p->transport) &&
            (!(word = take_word(object, "direction", taken)) || direction_from_name(word, &p->direction) < 0))
                return -EINVAL;
        p->fields = (uint32_t) fields;
        return 0;
}

/* The workloads of one agent. */
static int take_alone(const struct json *object, struct point *p, size_t *taken) {
        const char *word;
        uint64_t processes = 0;

        p->threads = 1;
        if (workload_has_call(p->workload) &&
            (!(word = take_word(object, "call", taken)) || system_call_from_name(word, &p->call) < 0))
                return -EINVAL;
        if (workload_has_processes(p->workload) &&
            (take_count(object, "processes", SPEC_PROCESSES_MIN, SPEC_PROCESSES_MAX, &processes, taken) < 0 ||
             take_count(object, "working_set", 0, SPEC_WORKING_SET_MAX, &p->working_set, taken) < 0))
                return -EINVAL;
        p->processes = (uint32_t) processes;
        return 0;
}

int point_take(const struct json *object, bool with_placement, struct point *ret) {
        struct point p;
        struct refusal r;
        size_t taken = 0;
        const char *word;

        if (!object || json_type(object) != JSON_OBJECT)
                return -EINVAL;
        memset(&p, 0, sizeof(p));
        placement_init(&p.placement);
        word = take_word(object, "workload", &taken);
        if (!word || workload_from_name(word, &p.workload) < 0)
                return -EINVAL;
        if ((workload_has_transport(p.workload) ? take_transport : take_alone)(object, &p, &taken) < 0)
                return -EINVAL;
        if (with_placement) {
                const struct json *v = json_get(object, "placement");
                if (!v || placement_parse(v, "/placement", &p.placement, &r) < 0 || placement_is_pairs(&p.placement) ||
                    !placement_fits(&p.placement, p.workload, p.transport))
                        return -EINVAL;
                taken++;
        }
        if (taken != json_length(object))
                return -EINVAL;
        *ret = p;
        return 0;
}

int point_from_json(const char *text, size_t length, struct point *ret) {
        struct json *root = NULL;
        int r = json_parse(text, length, &root, NULL);
        if (r == 0)
                r = point_take(root, true, ret);
        json_free(root);
        return r;
}

uint64_t window_end_messages(const struct window_end *e, const struct point *p) {
        if (e->bytes == 0 || p->message_size == 0)
                return e->messages;
        return e->bytes / p->message_size + (e->bytes % p->message_size != 0);
}
