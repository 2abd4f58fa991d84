/* SPDX-License-Identifier: MIT */

/*
 * Server-sent events. A stream is a position in the store's sequence of changes: changes above it are sent, and the id
 * of each event is its change, so that a client that reconnects with Last-Event-ID misses no event and receives none
 * twice; of an experiment that was deleted meanwhile it receives 404. Events are not queued for a slow client; its
 * stream continues from its position.
 */

#include "api/handle/handlers.h"
#include "api/handle/render/kinds.h"
#include "api/handle/render/render.h"
#include "api/http/connection/peers.h"
#include "api/http/feed.h"
#include "api/http/text.h"
#include "schema/util.h"

#include <string.h>

#define PORTION 64u
#define RETRY_MS 2000u

struct events {
        struct service *service;
        struct subscription *subscription;
        struct peer *peer;     /* one of whose streams it is */
        int64_t experiment_id; /* 0: all */
        int64_t after;
        struct kinds kinds;

        struct text *out;
        uint64_t sent_at;
        bool begun;
        bool final;   /* the experiment is over: what is there now is all there will be */
        bool deleted; /* its deletion is in out, or was sent */
        bool ended;   /* "end" is in out */

        uint32_t visited;
        int64_t unknown_run;
};

/* A posted spec may span lines; each needs its own "data:". */
static void put_data(struct text *t, const char *json) {
        while (*json) {
                size_t n = strcspn(json, "\r\n");
                text_puts(t, "data: ");
                text_append(t, json, n);
                text_puts(t, "\n");
                json += n;
                json += strspn(json, "\r\n");
        }
}

static void put_event(struct events *e, const char *name, int64_t change, struct json_writer *w) {
        _cleanup_free_ char *json = NULL;
        size_t length;
        int k = json_writer_steal(w, &json, &length);
        if (k < 0) {
                e->out->error = k;
                return;
        }
        text_printf(e->out, "id: %lld\nevent: %s\n", (long long) change, name);
        put_data(e->out, json);
        text_puts(e->out, "\n");
        e->after = change;
}

static void render_pin(struct json_writer *w, const struct pin_record *pin) {
        json_object_begin(w);
        json_member_string(w, "name", pin->name);
        json_member_i64_if(w, "experiment_id", pin->experiment_id > 0, pin->experiment_id);
        json_object_end(w);
}

static int visit_change(void *userdata, const struct change_record *c) {
        const struct sample_record *sample = c->sample;
        struct events *e = userdata;
        if (sample && !kinds_get(&e->kinds, sample->run_id)) {
                e->unknown_run = sample->run_id;
                return 1;
        }
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        const char *name = "sample";
        if (c->experiment) {
                name = "experiment";
                render_experiment(&w, c->experiment);
        } else if (c->run) {
                name = "run";
                render_run_briefly(&w, c->run);
        } else if (c->deletion) {
                name = "deletion";
                json_object_begin(&w);
                json_member_i64(&w, "experiment_id", c->deletion->experiment_id);
                json_object_end(&w);
                e->deleted = e->experiment_id != 0;
        } else if (c->pin) {
                name = "baseline";
                render_pin(&w, c->pin);
        } else
                render_sample(&w, sample, e->kinds.kind, &e->kinds.noise, false);
        put_event(e, name, c->change, &w);
        e->visited++;
        return e->out->error < 0 ? e->out->error : e->out->length >= FEED_PORTION;
}

static void put_end(struct events *e, const char *state) {
        text_printf(e->out, "event: end\ndata: {\"experiment_id\":%lld,\"state\":\"%s\"}\n\n",
                    (long long) e->experiment_id, state);
        e->ended = true;
}

/* Called when there is no new change. Reads the experiment's state first and then the changes once more: a change in
 * between would be lost otherwise. 1: read again. */
static int check_end(struct events *e) {
        _cleanup_(experiment_record_deinit) struct experiment_record record = {0};
        struct refusal r;
        int k = service_experiment(e->service, e->experiment_id, &record, &r);
        if (k < 0 && r.status == 404) /* its deletion is the next change */
                return 1;
        if (k < 0)
                return k;
        if (record.state == STATE_QUEUED || record.state == STATE_RUNNING)
                return 0;
        if (e->final)
                put_end(e, state_name(record.state));
        else
                e->final = true;
        return !e->ended;
}

static int read_portion(struct events *e, struct refusal *r) {
        e->unknown_run = 0;
        int k = service_changes(e->service, e->experiment_id, e->after, PORTION, visit_change, e, r);
        if (k < 0 && r->status == 404 && e->experiment_id != 0) {
                put_end(e, "deleted");
                return 0;
        }
        if (k >= 0 && e->deleted)
                put_end(e, "deleted");
        return k;
}

static int read_changes(struct events *e) {
        struct refusal r;
        e->visited = 0;
        int k = read_portion(e, &r);
        if (k < 0)
                return k;
        if (e->unknown_run != 0)
                k = kinds_read(&e->kinds, e->service, e->unknown_run, &r);
        if (k < 0 && r.status == 404) { /* the run is gone with its experiment */
                k = read_portion(e, &r);
                if (k >= 0 && !e->ended)
                        k = -ENOENT;
        }
        return k < 0 ? k : e->out->error;
}

/* Prepares what can be sent now; the stream sleeps when that is nothing. */
static int refill(struct events *e) {
        if (!e->begun)
                text_printf(e->out, "retry: %u\n\n", RETRY_MS);
        e->begun = true;
        for (;;) {
                int k = read_changes(e);
                if (k < 0)
                        return k;
                if (e->unknown_run != 0 && e->visited == 0)
                        continue;
                if (e->visited > 0 || e->ended || e->experiment_id == 0)
                        return 0;
                k = check_end(e);
                if (k <= 0)
                        return k < 0 ? k : e->out->error;
        }
}

static int fill(void *userdata, struct text *out, struct refusal *r) {
        struct events *e = userdata;
        uint64_t now = util_now_ns();
        (void) r;
        e->out = out;
        int k = refill(e);
        if (k < 0)
                return k;
        if (out->length == 0 && now - e->sent_at >= HTTP_STREAM_QUIET_NS)
                text_puts(out, ": still here\n\n");
        if (out->length > 0)
                e->sent_at = now;
        return e->ended ? FEED_LAST : FEED_MORE;
}

static void events_free(void *userdata) {
        struct events *e = userdata;
        service_unsubscribe(e->subscription);
        peer_give(e->peer, PEER_STREAMS, 1);
        peer_unref(e->peer);
        kinds_deinit(&e->kinds);
        free(e);
}

static const struct feed_source source = {.fill = fill, .free = events_free, .waits = true};

/* For HEAD: the headers of a stream, and no subscriber. */
static int fill_nothing(void *userdata, struct text *out, struct refusal *r) {
        (void) userdata, (void) out, (void) r;
        return FEED_LAST;
}

static void free_nothing(void *userdata) {
        (void) userdata;
}

static const struct feed_source nothing = {.fill = fill_nothing, .free = free_nothing, .waits = true};

static void wake(void *userdata) {
        http_stream_wake(userdata);
}

/* Changes up to Last-Event-ID are known to the client; without one it starts at `fallback`. */
static int position(struct api *a, const struct request *q, bool from_now, int64_t *ret, struct refusal *r) {
        const char *header = request_header(q, "Last-Event-ID");
        int64_t last, after = 0;
        int k = service_last_change(a->service, &last, r);
        if (k < 0)
                return k;
        if (header && place_parse(header, &after) < 0)
                return refuse(r, 400, "bad-header", "",
                              "Last-Event-ID must be the id of an event of this stream, not \"%.80s\".", header);
        if (!header || after > last) /* an id from another database */
                after = from_now ? last : 0;
        *ret = after;
        return 0;
}

static int subscribe(struct api *a, const struct request *q, struct events *e, struct response *p, struct refusal *r) {
        int k = peer_take(q->peer, PEER_STREAMS, 1, r);
        if (k < 0) {
                events_free(e);
                return k;
        }
        e->peer = peer_ref(q->peer);
        k = feed_respond(q, p, "text/event-stream", &source, e, r);
        /* a failure leaves the stream in the response, which frees it */
        return k < 0 ? k : service_subscribe(a->service, e->experiment_id, wake, p->stream, &e->subscription);
}

static int respond_events(struct api *a, const struct request *q, int64_t experiment_id, struct response *p,
                          struct refusal *r) {
        int64_t after = 0;
        int k = position(a, q, experiment_id == 0, &after, r);
        if (k < 0)
                return k;
        if (q->method == METHOD_HEAD)
                return feed_respond(q, p, "text/event-stream", &nothing, NULL, r);
        struct events *e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        *e = (struct events){
                .service = a->service, .experiment_id = experiment_id, .after = after, .sent_at = util_now_ns()};
        return subscribe(a, q, e, p, r);
}

HANDLER(handle_events) {
        return respond_events(a, q, 0, p, r);
}

HANDLER(handle_experiment_events) {
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        int k = service_experiment(a->service, q->id, &e, r);
        return k < 0 ? k : respond_events(a, q, q->id, p, r);
}
