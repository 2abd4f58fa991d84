/* SPDX-License-Identifier: MIT */

/*
 * A spec as JSON, preset merged and defaults spelled out: what is stored beside the posted text, so that an experiment
 * means the same after presets and defaults have changed. Called by spec_parse().
 */

#include "schema/spec/internal.h"

#include "schema/util.h"

static void put_axes(struct json_writer *w, const struct spec *s) {
#define PUT_LIST(key, n, put_one)                                                                                      \
        do {                                                                                                           \
                json_put_key(w, key);                                                                                  \
                json_array_begin(w);                                                                                   \
                for (size_t i = 0; i < (n); i++)                                                                       \
                        put_one;                                                                                       \
                json_array_end(w);                                                                                     \
        } while (0)

        PUT_LIST("workload", s->n_workloads, json_put_string(w, workload_name(s->workloads[i])));
        PUT_LIST("transport", s->n_transports, json_put_string(w, transport_name(s->transports[i])));
        PUT_LIST("message_size", s->n_message_sizes, json_put_u64(w, s->message_sizes[i]));
        PUT_LIST("threads", s->n_threads, json_put_u64(w, s->threads[i]));
        PUT_LIST("copy_mode", s->n_copy_modes, json_put_string(w, copy_mode_name(s->copy_modes[i])));
        PUT_LIST("engine", s->n_engines, json_put_string(w, engine_name(s->engines[i])));
        PUT_LIST("wait", s->n_waits, json_put_string(w, wait_mode_name(s->waits[i])));
        PUT_LIST("fields", s->n_fields, json_put_u64(w, s->fields[i]));
        PUT_LIST("direction", s->n_directions, json_put_string(w, direction_name(s->directions[i])));
        PUT_LIST("call", s->n_calls, json_put_string(w, system_call_name(s->calls[i])));
        PUT_LIST("processes", s->n_processes, json_put_u64(w, s->processes[i]));
        PUT_LIST("working_set", s->n_working_sets, json_put_u64(w, s->working_sets[i]));
        PUT_LIST("placement", s->n_placements, placement_put(w, &s->placements[i], s->placements[i].roles));
#undef PUT_LIST
}

/* Reads back as the same nanoseconds: a day of them has 47 bits, a double 53. */
static void put_seconds(struct json_writer *w, const char *key, uint64_t ns) {
        json_member_double(w, key, (double) ns / 1e9);
}

int spec_to_json(const struct spec *s, char **ret) {
        struct json_writer w;
        size_t length;

        json_writer_init(&w);
        json_object_begin(&w);
        if (s->name)
                json_member_string(&w, "name", s->name);
        put_axes(&w, s);
        json_member_string(&w, "verify", verify_name(s->verify));
        if (s->end.duration_ns)
                put_seconds(&w, "duration_seconds", s->end.duration_ns);
        if (s->end.messages)
                json_member_u64(&w, "messages", s->end.messages);
        if (s->end.bytes)
                json_member_u64(&w, "bytes", s->end.bytes);
        put_seconds(&w, "warmup_seconds", s->warmup_ns);
        json_member_u64(&w, "repetitions", s->repetitions);
        if (s->rate > 0)
                json_member_double(&w, "rate", s->rate);
        if (s->chunk)
                json_member_bool(&w, "chunk", true);
        if (require_any(&s->require))
                require_put(&w, &s->require);
        tune_put(&w, &s->tune);
        if (options_any(&s->options)) {
                json_put_key(&w, "transport_options");
                options_put(&w, &s->options);
        }
        json_member_bool(&w, "skip_impossible", s->skip_impossible);
        if (s->has_seed)
                json_member_u64(&w, "seed", s->seed);
        json_object_end(&w);
        int r = json_writer_steal(&w, ret, &length);
        json_writer_deinit(&w);
        return r;
}
