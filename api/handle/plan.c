/* SPDX-License-Identifier: MIT */

/* The answer to a dry run: megabytes where an experiment has thousands of points, so that it is written while the
 * client takes it. What it is made from counts among the peer's held bytes until then. */

#include "api/handle/plan.h"

#include "api/handle/render/lists.h"
#include "api/http/connection/peers.h"
#include "api/http/feed.h"
#include "schema/util.h"

#include <string.h>

struct body {
        struct service *service;
        struct plan *plan;
        struct peer *peer; /* whose held bytes the plan counts among */
        size_t cost;
        bool begun;
        size_t point;     /* the next one */
        unsigned part;    /* of the tail */
        const char *rest; /* of the part that is being written; NULL: it is not begun */
        struct text *out;
};

static void body_free(void *userdata) {
        struct body *b = userdata;
        plan_free(b->plan);
        peer_give(b->peer, PEER_HELD_BYTES, b->cost);
        peer_unref(b->peer);
        free(b);
}

/* The head, and the key of the points behind it. */
static void fill_head(struct body *b) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        const struct plan *plan = b->plan;
        json_object_begin(&w);
        json_member_u64(&w, "runs", plan->runs);
        json_member_double(&w, "estimated_seconds", plan->seconds);
        json_member_u64(&w, "runs_at_most", plan->runs_at_most);
        json_member_double(&w, "estimated_seconds_at_most", plan->seconds_at_most);
        json_object_end(&w);
        text_json(b->out, &w);
        if (b->out->error == 0)
                b->out->length--; /* its brace: the rest follows */
        text_puts(b->out, ",\"points\":[");
        b->begun = true;
}

static int visit_point(void *userdata, const char *json, size_t length) {
        struct body *b = userdata;
        if (b->point > 0)
                text_puts(b->out, ",");
        text_append(b->out, json, length);
        b->point++;
        return b->out->error < 0 ? b->out->error : b->out->length >= FEED_PORTION;
}

/* Two texts that can be as long as a posted spec, with what is around them. True: the end was written. */
static bool fill_tail(struct body *b) {
        const char *const parts[] = {"],\"skipped\":", b->plan->skipped_json,
                                     ",\"effective_spec\":", b->plan->effective_json, "}"};
        while (b->part < ELEMENTS(parts)) {
                if (b->out->error < 0 || b->out->length >= FEED_PORTION)
                        return false;
                if (!b->rest)
                        b->rest = parts[b->part];
                size_t n = strnlen(b->rest, FEED_PORTION - b->out->length);
                text_append(b->out, b->rest, n);
                b->rest += n;
                if (*b->rest)
                        continue;
                b->rest = NULL;
                b->part++;
        }
        return true;
}

static int fill(void *userdata, struct text *out, struct refusal *r) {
        struct body *b = userdata;
        b->out = out;
        if (!b->begun)
                fill_head(b);
        int k = b->point < b->plan->n_points ? service_plan_points(b->service, b->plan, b->point, visit_point, b, r)
                                             : 0;
        if (k != 0)
                return k < 0 ? k : FEED_MORE;
        bool ended = fill_tail(b);
        return out->error < 0 ? out->error : ended ? FEED_LAST : FEED_MORE;
}

static const struct feed_source source = {.fill = fill, .free = body_free};

int respond_plan(struct api *a, const struct request *q, const char *key, struct response *p, struct refusal *r) {
        int k = lists_admit(q, r);
        if (k < 0)
                return k;
        struct body *b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        k = service_plan(a->service, q->body ? q->body : "", q->body_length, key, &b->plan, r);
        if (k < 0) {
                free(b);
                return k;
        }
        b->service = a->service;
        b->peer = peer_ref(q->peer);
        b->cost = peer_cost(b->plan->bytes);
        peer_add(b->peer, PEER_HELD_BYTES, b->cost);
        return feed_respond(q, p, "application/json", &source, b, r);
}
