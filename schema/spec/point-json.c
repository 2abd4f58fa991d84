/* SPDX-License-Identifier: MIT */

/*
 * A point as JSON and back: the form in the API, in the store and in the agents' set-up. Also the small arithmetic on
 * points that daemon and parser share.
 */

#include "schema/spec/axes.h"
#include "schema/spec/internal.h"

#include "schema/util.h"

#include <string.h>

void point_put(struct json_writer *w, const struct point *p, bool with_placement) {
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct value *v = &axes[i].value;
                if (!axis_applies(&axes[i], p) || (i == AXIS_PLACEMENT && !with_placement))
                        continue;
                json_put_key(w, v->name);
                if (i == AXIS_PLACEMENT) /* in the words of the point's roles, whatever those of the spec were */
                        placement_put(w, &p->placement, role_pair_of(p->workload, p->transport));
                else
                        v->type->write(v, w, axis_of(&axes[i], p));
        }
}

char *point_to_json(const struct point *p) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        char *text = NULL;
        size_t length;

        json_object_begin(&w);
        point_put(&w, p, true);
        json_object_end(&w);
        (void) json_writer_steal(&w, &text, &length); /* NULL on failure, as promised */
        return text;
}

int point_take(const struct json *object, bool with_placement, struct point *ret) {
        struct point p;
        struct refusal r;
        size_t taken = 0;

        if (!object || json_type(object) != JSON_OBJECT)
                return -EINVAL;
        memset(&p, 0, sizeof(p));
        p.placement = placement_default;
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct value *v = &axes[i].value;
                if (i == AXIS_PLACEMENT && !with_placement)
                        continue;
                if (!axis_is_settable(&axes[i], &p)) {
                        axis_clear(&axes[i], &p);
                        continue;
                }
                const struct json *member = json_get(object, v->name);
                if (!member && axes[i].later) {
                        memcpy((char *) &p + v->offset, v->standard, v->size);
                        continue;
                }
                if (!member || v->type->read(v, member, "", (char *) &p + v->offset, &r) < 0)
                        return -EINVAL;
                taken++;
        }
        if (taken != json_length(object) || placement_is_pairs(&p.placement) ||
            !placement_fits(&p.placement, p.workload, p.transport))
                return -EINVAL;
        *ret = p;
        return 0;
}

int point_from_json(const char *text, size_t length, struct point *ret) {
        _cleanup_(json_freep) struct json *root = NULL;
        int r = json_parse(text, length, &root, NULL);
        return r < 0 ? r : point_take(root, true, ret);
}

uint64_t window_end_messages(const struct window_end *e, const struct point *p) {
        if (e->bytes == 0 || p->message_size == 0)
                return e->messages;
        return e->bytes / p->message_size + (e->bytes % p->message_size != 0);
}
