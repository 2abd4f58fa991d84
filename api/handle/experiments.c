/* SPDX-License-Identifier: MIT */

/* Experiments: submit, list, show, cancel, forget. */

#include "api/handle/handlers.h"
#include "api/handle/plan.h"
#include "api/handle/render/render.h"
#include "api/http/feed.h"
#include "schema/util.h"

#include <string.h>

#define LIST_DEFAULT 50u
#define LIST_MAX 1000u
#define WORDS_MAX 100u /* bytes */

int respond_experiment(struct api *a, int64_t id, int status, struct response *p, struct refusal *r) {
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        int k = service_experiment(a->service, id, &e, r);
        if (k < 0)
                return k;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        render_experiment(&w, &e);
        return response_json(p, status, &w);
}

int request_json(const struct request *q, struct json **ret, struct refusal *r) {
        struct json_error e;
        int k = json_parse_request(q->body ? q->body : "", q->body_length, ret, &e);
        return k == -EINVAL ? refuse(r, 400, "invalid-json", e.pointer, "%s", e.detail) : k;
}

int request_idempotency_key(const struct request *q, const char **ret, struct refusal *r) {
        if (request_header_count(q, "Idempotency-Key") > 1)
                return refuse(r, 400, "invalid-idempotency-key", "", "There is more than one Idempotency-Key.");
        *ret = request_header(q, "Idempotency-Key");
        return 0;
}

/* A replay answers as the first request did, so that a client that repeats itself needs no second way. */
int respond_submitted(struct api *a, int64_t id, bool created, struct response *p, struct refusal *r) {
        response_header(p, "Location", "/experiments/%lld", (long long) id);
        if (!created)
                response_header(p, "Idempotency-Replayed", "true");
        return respond_experiment(a, id, 201, p, r);
}

HANDLER(handle_submit) {
        const char *dry_run = request_parameter(q, "dry_run");
        if (dry_run && strcmp(dry_run, "true") != 0 && strcmp(dry_run, "false") != 0)
                return refuse_parameter(r, "dry_run", dry_run, "true or false");
        const char *key = NULL;
        int64_t id;
        bool created;
        int k = request_idempotency_key(q, &key, r);
        if (k == 0 && dry_run && strcmp(dry_run, "true") == 0)
                return respond_plan(a, q, key, p, r);
        if (k == 0)
                k = service_submit(a->service, q->body ? q->body : "", q->body_length, key, &id, &created, r);
        return k < 0 ? k : respond_submitted(a, id, created, p, r);
}

HANDLER(handle_experiment) {
        return respond_experiment(a, q->id, 200, p, r);
}

/* A body has nothing to give here; what is given must not be dropped silently. */
static int check_empty_object(const struct request *q, const char *what, struct refusal *r) {
        if (q->body_length == 0)
                return 0;
        _cleanup_(json_freep) struct json *body = NULL;
        int k = request_json(q, &body, r);
        if (k < 0)
                return k;
        bool empty = json_type(body) == JSON_OBJECT && json_length(body) == 0;
        return empty ? 0 : refuse(r, 422, "unknown-field", "", "A %s takes no fields: send no body, or {}.", what);
}

HANDLER(handle_cancel) {
        int k = check_empty_object(q, "cancellation", r);
        if (k >= 0)
                k = service_cancel(a->service, q->id, r);
        return k < 0 ? k : respond_experiment(a, q->id, 200, p, r);
}

static int respond_again(struct api *a, const struct request *q, bool replayed, struct response *p, struct refusal *r) {
        if (replayed)
                response_header(p, "Idempotency-Replayed", "true");
        return respond_experiment(a, q->id, 200, p, r);
}

HANDLER(handle_extend) {
        const char *key = NULL;
        bool replayed = false;
        int k = request_idempotency_key(q, &key, r);
        if (k >= 0)
                k = service_extend(a->service, q->id, q->body ? q->body : "", q->body_length, key, &replayed, r);
        return k < 0 ? k : respond_again(a, q, replayed, p, r);
}

HANDLER(handle_retry) {
        const char *key = NULL;
        bool replayed = false;
        int k = request_idempotency_key(q, &key, r);
        if (k >= 0)
                k = check_empty_object(q, "retry", r);
        if (k >= 0)
                k = service_retry(a->service, q->id, key, &replayed, r);
        return k < 0 ? k : respond_again(a, q, replayed, p, r);
}

HANDLER(handle_delete) {
        int k = service_delete(a->service, q->id, r);
        if (k < 0)
                return k;
        p->status = 204;
        return 0;
}

/* Every byte of the words as the query of an address has it. */
static void print_encoded(char ret[static 3 * WORDS_MAX + 1], const char *words) {
        for (size_t i = 0; words[i]; i++)
                snprintf(ret + 3 * i, 4, "%%%02X", (unsigned char) words[i]);
}

static int read_query(const struct request *q, struct experiment_query *ret, struct refusal *r) {
        const char *state = request_parameter(q, "state");
        if (state && (state_from_name(state, &ret->filter.state) < 0 || ret->filter.state == STATE_INTERRUPTED))
                return refuse_parameter(r, "state", state, "queued, running, done, failed or cancelled");
        ret->filter.by_state = state != NULL;
        const char *words = request_parameter(q, "q");
        if (words && (!words[strspn(words, " ")] || strlen(words) > WORDS_MAX))
                return refuse_parameter(r, "q", words, "1 to 100 bytes, not spaces alone");
        ret->filter.words = words;
        int k = request_parameter_u32(q, "limit", 1, LIST_MAX, LIST_DEFAULT, &ret->limit, r);
        return k < 0 ? k : request_parameter_cursor(q, 'e', &ret->before_id, r);
}

/* ---- the list ---- */

struct list {
        struct service *service;
        struct experiment_query query; /* before_id: after the last one that was put */
        int64_t last;                  /* of the page */
        char next[CURSOR_MAX];         /* "": this is the last page */
        char words[WORDS_MAX + 1];     /* of the query, which the request does not outlive */
        bool begun, ended;
        struct text *out;
};

static int visit_experiment(void *userdata, const struct experiment_record *e) {
        struct list *list = userdata;
        if (e->id < list->last) { /* the last one was forgotten meanwhile */
                list->ended = true;
                return 1;
        }
        text_item(list->out, &list->begun);
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        text_json_begin(list->out, &w);
        render_experiment(&w, e);
        text_json(list->out, &w);
        list->query.before_id = e->id;
        list->ended = e->id == list->last; /* what is below it is not read, as it may be damaged */
        if (list->ended && list->out->error >= 0)
                return 1;
        return list->out->error < 0 ? list->out->error : list->out->length >= FEED_PORTION;
}

static int fill_list(void *userdata, struct text *out, struct refusal *r) {
        struct list *list = userdata;
        list->out = out;
        int k = list->last > 0 ? service_experiments(list->service, &list->query, visit_experiment, list, r) : 0;
        if (k < 0)
                return k;
        if (k > 0 && !list->ended && list->query.before_id > list->last)
                return FEED_MORE;
        text_list_end(out, list->begun, list->next);
        return FEED_LAST;
}

static const struct feed_source list_source = {.fill = fill_list, .free = free};

/* The end of the page is determined first, as the headers name it. */
HANDLER(handle_experiments) {
        struct experiment_query query = {0};
        bool more;
        int k = read_query(q, &query, r);
        if (k < 0)
                return k;
        struct list *list = calloc(1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        *list = (struct list){.service = a->service, .query = query};
        if (query.filter.words) {
                snprintf(list->words, sizeof(list->words), "%s", query.filter.words);
                list->query.filter.words = list->words;
        }
        k = service_experiments_end(a->service, &query, &list->last, &more, r);
        if (k < 0) {
                free(list);
                return k;
        }
        if (more) {
                cursor_print(list->next, 'e', list->last);
                char words[3 * WORDS_MAX + 1] = "";
                if (query.filter.words)
                        print_encoded(words, query.filter.words);
                response_header(p, "Link", "</experiments?limit=%u&cursor=%s%s%s%s%s>; rel=\"next\"", query.limit,
                                list->next, query.filter.by_state ? "&state=" : "",
                                query.filter.by_state ? state_name(query.filter.state) : "", words[0] ? "&q=" : "",
                                words);
        }
        return feed_respond(q, p, "application/json", &list_source, list, r);
}
