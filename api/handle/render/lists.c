/* SPDX-License-Identifier: MIT */

#include "api/handle/render/lists.h"

#include "api/http/connection/peers.h"
#include "api/http/feed.h"
#include "schema/util.h"

#include <errno.h>

struct body {
        const struct lists_source *source;
        void *answer;
        struct peer *peer; /* whose held bytes the answer counts among */
        size_t cost;
        bool begun;
        size_t list, next; /* the list that is being written, and its next item */
};

static void body_free(void *userdata) {
        struct body *b = userdata;
        b->source->free(b->answer);
        peer_give(b->peer, PEER_HELD_BYTES, b->cost);
        peer_unref(b->peer);
        free(b);
}

/* The head, and the key of the first list behind it. */
static void fill_head(const struct body *b, struct text *out) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        b->source->put_head(&w, b->answer);
        json_object_end(&w);
        char *text = NULL;
        size_t length = 0;
        int k = json_writer_steal(&w, &text, &length);
        if (k < 0 && out->error == 0)
                out->error = k;
        if (k == 0)
                text_append(out, text, length - 1); /* without its brace: the lists follow */
        free(text);
        text_printf(out, ",\"%s\":[", b->source->keys[0]);
}

static int fill(void *userdata, struct text *out, struct refusal *r) {
        struct body *b = userdata;
        const struct lists_source *source = b->source;
        (void) r;
        if (!b->begun)
                fill_head(b, out);
        b->begun = true;
        while (out->error == 0 && out->length < FEED_PORTION) {
                if (b->next < source->length(b->answer, b->list)) {
                        _cleanup_(json_writer_deinit) struct json_writer w = {};
                        text_puts(out, b->next > 0 ? "," : "");
                        text_json_begin(out, &w);
                        source->put_item(&w, b->answer, b->list, b->next++);
                        text_json(out, &w);
                } else if (source->keys[b->list + 1]) {
                        text_printf(out, "],\"%s\":[", source->keys[++b->list]);
                        b->next = 0;
                } else {
                        text_puts(out, "]}");
                        return out->error < 0 ? out->error : FEED_LAST;
                }
        }
        return out->error < 0 ? out->error : FEED_MORE;
}

static const struct feed_source lists_feed = {.fill = fill, .free = body_free};

int lists_admit(const struct request *q, struct refusal *r) {
        return peer_take(q->peer, PEER_HELD_BYTES, 0, r);
}

int lists_respond(const struct request *q, struct response *p, const struct lists_source *source, void *answer,
                  size_t bytes, struct refusal *r) {
        struct body *b = malloc(sizeof(*b));
        if (!b) {
                source->free(answer);
                return -ENOMEM;
        }
        *b = (struct body){.source = source, .answer = answer, .peer = peer_ref(q->peer), .cost = peer_cost(bytes)};
        peer_add(b->peer, PEER_HELD_BYTES, b->cost);
        return feed_respond(q, p, "application/json", &lists_feed, b, r);
}
