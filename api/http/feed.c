/* SPDX-License-Identifier: MIT */

/* Portions of a body between the source that makes them and the HTTP server that sends them. */

#include "api/http/feed.h"

#include "api/http/http.h"
#include "schema/util.h"

#include <string.h>

struct feed {
        const struct feed_source *source;
        void *userdata;
        struct budget *budget;
        size_t cost; /* of what `out` holds */
        struct text out;
        size_t sent;
        bool last;
        int error;
};

static void portion_release(struct feed *f) {
        text_deinit(&f->out);
        f->sent = 0;
        budget_give(f->budget, f->cost);
        f->cost = 0;
}

static void feed_free(void *userdata) {
        struct feed *f = userdata;
        portion_release(f);
        f->source->free(f->userdata);
        free(f);
}

static int portion_make(struct feed *f, struct refusal *r) {
        int k = f->source->fill(f->userdata, &f->out, r);
        if (k >= 0 && f->out.error < 0)
                k = f->out.error;
        if (k < 0)
                return k;
        f->last = k == FEED_LAST;
        f->cost = budget_cost(f->out.size);
        budget_take(f->budget, f->cost);
        return 0;
}

static ssize_t feed_read(void *userdata, char *buffer, size_t size) {
        struct feed *f = userdata;
        size_t n = f->out.length - f->sent;
        if (n > size)
                n = size;
        if (n == 0 && f->error < 0) /* the daemon stopping is an orderly end of events: the client comes back */
                return f->error == -ESHUTDOWN && f->source->waits ? HTTP_STREAM_END : HTTP_STREAM_BROKEN;
        if (n == 0)
                return f->last ? HTTP_STREAM_END : HTTP_STREAM_WAIT;
        memcpy(buffer, f->out.data + f->sent, n);
        f->sent += n;
        if (f->sent == f->out.length)
                portion_release(f);
        return (ssize_t) n;
}

/* In the midst of a body it is too late for a 503: the client waits until others have taken theirs. */
static bool feed_work(void *userdata) {
        struct feed *f = userdata;
        struct refusal r = {0};
        if (!budget_is_open(f->budget))
                return false;
        int k = portion_make(f, &r);
        f->error = k;
        return k < 0 || f->last || f->out.length > 0;
}

static const struct http_stream_ops list_ops = {.read = feed_read, .work = feed_work, .free = feed_free};
static const struct http_stream_ops event_ops = {
        .read = feed_read, .work = feed_work, .free = feed_free, .waits = true};

int feed_refuse(struct refusal *r) {
        refuse(r, 503, "unavailable", "",
               "Answers of %zu bytes together are on their way to clients that have not taken them yet, as many as may "
               "be: try again.",
               BUDGET_BYTES);
        return -EAGAIN;
}

static int feed_first(struct feed *f, struct response *p, const char *type, struct refusal *r) {
        if (!budget_is_open(f->budget))
                return feed_refuse(r);
        int k = portion_make(f, r);
        if (k < 0 || !f->last)
                return k;
        response_body(p, 200, type, f->out.data, f->out.length);
        p->budget = f->budget;
        p->cost = f->cost;
        f->out = (struct text){0};
        f->cost = 0;
        return 0;
}

int feed_respond(struct api *a, const struct request *q, struct response *p, const char *type,
                 const struct feed_source *source, void *userdata, struct refusal *r) {
        struct feed *f = calloc(1, sizeof(*f));
        if (!f) {
                source->free(userdata);
                return -ENOMEM;
        }
        *f = (struct feed){.source = source,
                           .userdata = userdata,
                           .budget = &a->budgets[q->local ? LISTENER_LOCAL : LISTENER_TCP]};
        int k = source->waits ? 0 : feed_first(f, p, type, r);
        if (k < 0 || f->last) {
                feed_free(f);
                return k;
        }
        p->status = 200;
        response_header(p, "Content-Type", "%s", type);
        return http_stream_new(&p->stream, source->waits ? &event_ops : &list_ops, f);
}
