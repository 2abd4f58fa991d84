/* SPDX-License-Identifier: MIT */

#include "api/http/feed.h"

#include "api/http/connection/peers.h"
#include "api/http/gzip.h"
#include "api/http/http.h"
#include "schema/util.h"

#include <string.h>

struct feed {
        const struct feed_source *source;
        void *userdata;
        struct peer *peer; /* its own reference: the stream may outlive its connection */
        struct peer_turn turn;
        size_t cost; /* of what `out` holds */
        size_t most; /* that a portion has taken before it was compressed */
        struct text out;
        struct gzip gzip;
        bool compressed;
        size_t sent;
        bool last;
        int error;
};

static void portion_release(struct feed *f) {
        text_deinit(&f->out);
        f->sent = 0;
        peer_give(f->peer, PEER_BODY_BYTES, f->cost);
        f->cost = 0;
}

static void feed_free(void *userdata) {
        struct feed *f = userdata;
        peer_turn_end(&f->turn);
        portion_release(f);
        gzip_deinit(&f->gzip);
        f->source->free(f->userdata);
        peer_unref(f->peer);
        free(f);
}

/* Puts its compressed form in place of the portion. */
static int portion_compress(struct feed *f) {
        _cleanup_(text_deinit) struct text plain = f->out;
        f->out = (struct text){0};
        return gzip_put(&f->gzip, &f->out, plain.data, plain.length, f->last);
}

static int portion_make(struct feed *f, struct refusal *r) {
        if (!f->source->waits) /* else it would be copied whenever it grows */
                text_reserve(&f->out, f->most);
        int k = f->source->fill(f->userdata, &f->out, r);
        if (k >= 0 && f->out.error < 0)
                k = f->out.error;
        if (f->out.length + f->out.length / 8 > f->most) /* the next one may be a little longer */
                f->most = f->out.length + f->out.length / 8;
        if (k < 0 && f->compressed) /* it is not compressed yet, and no part of what was sent */
                text_deinit(&f->out);
        if (k < 0)
                return k;
        f->last = k == FEED_LAST;
        k = f->compressed ? portion_compress(f) : 0;
        if (k < 0)
                return k;
        if (f->out.length == 0) /* what is empty is not sent, and not given back then */
                text_deinit(&f->out);
        f->cost = peer_cost(f->out.size);
        peer_add(f->peer, PEER_BODY_BYTES, f->cost);
        response_made(f->out.length);
        return 0;
}

static ssize_t feed_read(void *userdata, char *buffer, size_t size) {
        struct feed *f = userdata;
        size_t n = f->out.length - f->sent;
        if (n > size)
                n = size;
        if (n == 0 && f->error < 0) /* a stopping daemon ends the stream in order: the client reconnects */
                return f->error == -ESHUTDOWN && f->source->waits ? HTTP_STREAM_END : HTTP_STREAM_BROKEN;
        if (n == 0)
                return f->last ? HTTP_STREAM_END : HTTP_STREAM_WAIT;
        memcpy(buffer, f->out.data + f->sent, n);
        f->sent += n;
        if (f->sent == f->out.length)
                portion_release(f);
        return (ssize_t) n;
}

static void feed_wake(void *userdata) {
        http_stream_wake(userdata);
}

/* Within a body it is too late for a 503: the client waits until others have read theirs. */
static bool feed_work(void *userdata) {
        struct feed *f = userdata;
        struct refusal r = {0};
        if (!peer_turn_begin(&f->turn))
                return false;
        int k = portion_make(f, &r);
        peer_turn_end(&f->turn);
        f->error = k;
        return k < 0 || f->last || f->out.length > 0 || !f->source->waits;
}

static const struct http_stream_ops list_ops = {.read = feed_read, .work = feed_work, .free = feed_free};
static const struct http_stream_ops event_ops = {
        .read = feed_read, .work = feed_work, .free = feed_free, .waits = true};

/* A body of more than one portion; one that is whole is compressed as any other (gzip_response()). */
static int begin_compression(struct feed *f, const struct request *q, struct response *p, const char *type) {
        int k = gzip_accepted(q, p, type);
        if (k <= 0)
                return k;
        k = gzip_init(&f->gzip, GZIP_BODY);
        f->compressed = k == 0;
        return k < 0 ? k : portion_compress(f);
}

static int feed_first(struct feed *f, struct response *p, const char *type, struct refusal *r) {
        int k = peer_take(f->peer, PEER_BODY_BYTES, 0, r);
        if (k >= 0)
                k = portion_make(f, r);
        if (k < 0 || !f->last)
                return k;
        response_body(p, 200, type, f->out.data, f->out.length);
        p->peer = f->peer;
        p->cost = f->cost;
        f->out = (struct text){0};
        f->cost = 0;
        return 0;
}

int feed_respond(const struct request *q, struct response *p, const char *type, const struct feed_source *source,
                 void *userdata, struct refusal *r) {
        struct feed *f = calloc(1, sizeof(*f));
        if (!f) {
                source->free(userdata);
                return -ENOMEM;
        }
        *f = (struct feed){.source = source, .userdata = userdata, .peer = peer_ref(q->peer)};
        int k = source->waits ? 0 : feed_first(f, p, type, r);
        if (k < 0 || f->last) {
                feed_free(f);
                return k;
        }
        k = source->waits ? 0 : begin_compression(f, q, p, type);
        if (k < 0) {
                feed_free(f);
                return k;
        }
        p->status = 200;
        response_header(p, "Content-Type", "%s", type);
        k = http_stream_new(&p->stream, source->waits ? &event_ops : &list_ops, f);
        if (k == 0)
                f->turn = (struct peer_turn){.peer = f->peer, .wake = feed_wake, .userdata = p->stream};
        return k;
}
