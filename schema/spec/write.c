/* SPDX-License-Identifier: MIT */

/*
 * A spec as JSON, preset merged and defaults spelled out: what is stored beside the posted text, so that an experiment
 * means the same after presets and defaults have changed. Called by spec_parse().
 */

#include "schema/spec/axes.h"
#include "schema/spec/internal.h"

#include "schema/util.h"

static void put_axes(struct json_writer *w, const struct spec *s) {
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct value *v = &axes[i].value;
                if (axes[i].field)
                        continue;
                json_member_array(w, v->name);
                for (size_t k = 0; k < s->axes[i].n; k++)
                        v->type->write(v, w, (const char *) s->axes[i].values + k * v->size);
                json_array_end(w);
        }
}

/* An object that is left out where nothing in it is given. */
static void put_values(struct json_writer *w, const char *key, const struct value_table *t, const void *holder) {
        if (!values_any(t, holder))
                return;
        json_put_key(w, key);
        values_write(t, w, holder);
}

/* Reads back as the same nanoseconds: a day of them has 47 bits, a double 53. */
static void put_seconds(struct json_writer *w, const char *key, uint64_t ns) {
        json_member_double(w, key, (double) ns / 1e9);
}

/* Defaults spelled out; what has none is left out where it is not given. */
static void put_until(struct json_writer *w, const struct spec_until *until) {
        json_member_object(w, "until");
        for (size_t i = 0; i < until_values.n; i++) {
                const struct value *v = value_at(&until_values, i);
                if (!v->standard && !value_is_given(v, until))
                        continue;
                json_put_key(w, v->name);
                v->type->write(v, w, (const char *) until + v->offset);
        }
        json_object_end(w);
}

const char *spec_unlike_setting(const struct spec *a, const struct spec *b) {
        if (a->verify != b->verify)
                return "verify";
        if (a->fresh != b->fresh)
                return "fresh";
        if (a->stamp != b->stamp)
                return "stamp";
        if (a->rate != b->rate)
                return "rate";
        if (!values_equal(&tune_values, &a->tune, &b->tune))
                return "tune";
        return values_equal(&option_values, &a->options, &b->options) ? NULL : "transport_options";
}

int spec_to_json(const struct spec *s, char **ret) {
        struct json_writer w;
        size_t length;

        json_writer_init(&w);
        json_object_begin(&w);
        if (s->name)
                json_member_string(&w, "name", s->name);
        put_axes(&w, s);
        if (s->axes[AXIS_INSTANCE].n > 1)
                json_member_string(&w, axis_field(&axes[AXIS_INSTANCE]), spec_instances_name(INSTANCES_TWICE));
        json_member_string(&w, "verify", verify_name(s->verify));
        if (s->end.duration_ns)
                put_seconds(&w, "duration_seconds", s->end.duration_ns);
        if (s->end.messages)
                json_member_u64(&w, "messages", s->end.messages);
        if (s->end.bytes)
                json_member_u64(&w, "bytes", s->end.bytes);
        put_seconds(&w, "warmup_seconds", s->warmup_ns);
        json_member_string(&w, "order", spec_order_name(s->order));
        if (s->until.relative_ci > 0)
                put_until(&w, &s->until);
        if (s->search.latency_p99_below_us > 0) {
                json_member_object(&w, "search");
                put_values(&w, "rate", &search_values, &s->search);
                json_object_end(&w);
        }
        if (!(s->until.relative_ci > 0))
                json_member_u64(&w, "repetitions", s->repetitions);
        if (s->rate > 0)
                json_member_double(&w, "rate", s->rate);
        if (s->chunk)
                json_member_bool(&w, "chunk", true);
        if (s->fresh)
                json_member_bool(&w, "fresh", true);
        if (s->stamp)
                json_member_bool(&w, "stamp", true);
        require_write(&w, s);
        put_values(&w, "tune", &tune_values, &s->tune);
        put_values(&w, "transport_options", &option_values, &s->options);
        json_member_bool(&w, "skip_impossible", s->skip_impossible);
        if (s->has_seed)
                json_member_u64(&w, "seed", s->seed);
        json_object_end(&w);
        int r = json_writer_steal(&w, ret, &length);
        json_writer_deinit(&w);
        return r;
}
