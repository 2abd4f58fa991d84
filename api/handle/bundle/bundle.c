/* SPDX-License-Identifier: MIT */

/*
 * A bundle: one experiment as canonical JSON, compressed, with the digest of the JSON in its file name. The name stands
 * before the body, so the document is made twice, a portion at a time: once for its digest alone, and once to be sent;
 * where the second is not the same document as the first, the body breaks off.
 */

#include "api/handle/bundle/bundle-fields.h"
#include "api/handle/handlers.h"
#include "api/handle/histograms.h"
#include "api/handle/render/render.h"
#include "api/http/feed.h"
#include "api/http/gzip.h"
#include "api/http/tag.h"
#include "schema/hash.h"
#include "schema/json/canonical.h"
#include "schema/util.h"

#include <nettle/sha2.h>
#include <string.h>

#define FORMAT 1u
#define ROWS_AT_A_TIME 8u
#define NAME_MAX_BYTES 40u           /* of an experiment's name, in that of a file */
#define PORTION ((size_t) 256 << 10) /* of the JSON, which is compressed before it is sent */

/* The document's parts, in the order of their names. */
enum part { PART_HEAD, PART_ROWS, PART_RUNS, PART_TOPOLOGY, PART_END };

/* What it is of. */
struct subject {
        struct service *service;
        int64_t id;
        char *host;     /* a label; NULL: none */
        char *topology; /* JSON, as it was when the request came */
};

/* One pass over the document. */
struct pass {
        const struct subject *of;
        enum part part;
        uint32_t next; /* row, or position of a run */
        bool begun;    /* the list that is being written has an item */
        struct histogram *latency;
        struct text *out;
        struct refusal *refusal;
        struct sha256_ctx digest;
};

struct bundle {
        struct subject subject;
        struct pass pass;
        struct text plain; /* a portion that is not compressed yet */
        struct gzip gzip;
        uint8_t expected[SHA256_DIGEST_SIZE];
};

/* ---- the document ---- */

/* Takes what a writer has made, without what stays out of a bundle. */
static int put_fields(struct text *out, struct json_writer *made, const struct bundle_field *fields) {
        _cleanup_free_ char *text = NULL;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        _cleanup_(json_freep) struct json *root = NULL;
        size_t length = 0;
        int k = json_writer_steal(made, &text, &length);
        if (k >= 0)
                k = json_parse_written(text, length, &root);
        if (k < 0)
                return k;
        bundle_put(&w, root, fields);
        text_json(out, &w);
        return out->error;
}

static int put_head(struct pass *p) {
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        _cleanup_(json_writer_deinit) struct json_writer w = {}, host = {};
        int k = service_experiment(p->of->service, p->of->id, &e, p->refusal);
        if (k < 0)
                return k;
        render_experiment(&w, &e);
        text_printf(p->out, "{\"bundle\":%u,\"experiment\":", FORMAT);
        k = put_fields(p->out, &w, bundle_experiment);
        json_put_string(&host, p->of->host);
        text_puts(p->out, ",\"host\":");
        text_json(p->out, &host);
        text_puts(p->out, ",\"results\":[");
        return k;
}

static void begin_item(struct pass *p) {
        text_puts(p->out, p->begun ? "," : "");
        p->begun = true;
}

static int visit_row(void *userdata, const struct result_record *row) {
        struct pass *p = userdata;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        int k = histograms_of_row(p->of->service, row, p->latency, p->refusal);
        if (k < 0)
                return k;
        begin_item(p);
        render_result(&w, row, p->latency, true);
        k = put_fields(p->out, &w, bundle_row);
        p->next++;
        return k < 0 ? k : p->out->length >= FEED_PORTION;
}

static void put_histogram(struct json_writer *w, const struct histogram *h) {
        _cleanup_free_ char *text = NULL;
        json_put_key(w, "latency_histogram");
        if (histogram_total(h) == 0) {
                json_put_null(w);
                return;
        }
        int k = histogram_export(h, &text);
        if (k < 0 && w->error == 0)
                w->error = k;
        json_object_begin(w);
        json_member_string(w, "histogram", text);
        json_member_u64_text(w, "sum_ns", h->sum_ns);
        json_object_end(w);
}

/* A run whose histogram is still to be read. */
struct begun_run {
        struct json_writer *w;
        int64_t id; /* 0: there is no run */
        uint32_t position;
        bool has_result;
};

static int begin_run(void *userdata, const struct run_record *run) {
        struct begun_run *b = userdata;
        b->id = run->id;
        b->position = run->position;
        b->has_result = run->result_json != NULL;
        json_object_begin(b->w);
        render_run_members(b->w, run);
        return 0;
}

/* The run at `next` or behind it, if there is one. */
static int put_run(struct pass *p) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        struct begun_run run = {.w = &w};
        int k = service_runs(p->of->service, p->of->id, p->next, 1, begin_run, &run, p->refusal);
        if (k < 0 || run.id == 0)
                return k;
        *p->latency = (struct histogram){0};
        k = run.has_result ? histograms_add_run(p->of->service, run.id, p->latency, p->refusal) : 0;
        if (k < 0)
                return k;
        begin_item(p);
        put_histogram(&w, p->latency);
        json_object_end(&w);
        p->next = run.position + 1;
        return put_fields(p->out, &w, bundle_run);
}

static int put_topology(struct pass *p) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_put_raw(&w, p->of->topology);
        int k = put_fields(p->out, &w, bundle_topology);
        text_puts(p->out, "}");
        return k;
}

static void next_part(struct pass *p, const char *between) {
        text_puts(p->out, between);
        p->part++;
        p->next = 0;
        p->begun = false;
}

/* Items from `next` on, until there are enough for a portion; without one, the list has ended. */
static int put_items(struct pass *p) {
        uint32_t from = p->next;
        bool begun = p->begun;
        int k = p->part == PART_ROWS
                        ? service_results(p->of->service, p->of->id, from, ROWS_AT_A_TIME, visit_row, p, p->refusal)
                        : put_run(p);
        if (k >= 0 && p->next == from && p->begun == begun)
                next_part(p, p->part == PART_ROWS ? "],\"runs\":[" : "],\"topology\":");
        return k < 0 ? k : 0;
}

/* Appends a portion of the document. FEED_MORE, FEED_LAST, or a negative errno. */
static int put_portion(struct pass *p, struct text *out, struct refusal *r) {
        size_t before = out->length;
        int k = 0;
        p->out = out;
        p->refusal = r;
        while (k >= 0 && out->error == 0 && p->part < PART_END && out->length - before < PORTION)
                switch (p->part) {
                case PART_HEAD:
                        k = put_head(p);
                        next_part(p, "");
                        break;
                case PART_TOPOLOGY:
                        k = put_topology(p);
                        next_part(p, "");
                        break;
                default:
                        k = put_items(p);
                }
        if (k >= 0)
                k = out->error;
        if (k < 0)
                return k;
        sha256_update(&p->digest, out->length - before, (const uint8_t *) out->data + before);
        return p->part < PART_END ? FEED_MORE : FEED_LAST;
}

static int pass_begin(struct pass *p, const struct subject *of) {
        *p = (struct pass){.of = of, .latency = malloc(sizeof(*p->latency))};
        sha256_init(&p->digest);
        return p->latency ? 0 : -ENOMEM;
}

static void pass_deinit(struct pass *p) {
        free(p->latency);
}

static int take_digest(const struct subject *of, const struct request *q, uint8_t ret[static SHA256_DIGEST_SIZE],
                       struct refusal *r) {
        _cleanup_(pass_deinit) struct pass p = {0};
        _cleanup_(text_deinit) struct text out = {0};
        int k = pass_begin(&p, of);
        while (k >= 0 && p.part < PART_END) {
                text_clear(&out);
                k = put_portion(&p, &out, r);
                if (k >= 0 && request_has_gone(q))
                        k = refuse(r, 503, "unavailable", "", "Nobody waits for the bundle any more.");
        }
        if (k < 0)
                return k;
        sha256_digest(&p.digest, SHA256_DIGEST_SIZE, ret);
        return 0;
}

/* ---- the body ---- */

static void bundle_free(void *userdata) {
        struct bundle *b = userdata;
        gzip_deinit(&b->gzip);
        text_deinit(&b->plain);
        pass_deinit(&b->pass);
        free(b->subject.host);
        free(b->subject.topology);
        free(b);
}

/* The experiment was deleted, went on or is damaged where it is not the same document any more. What was compressed so
 * far is sent: a client that gets nothing for long is taken for one that does not read. */
static int fill(void *userdata, struct text *out, struct refusal *r) {
        struct bundle *b = userdata;
        uint8_t digest[SHA256_DIGEST_SIZE];
        text_clear(&b->plain);
        int k = put_portion(&b->pass, &b->plain, r);
        if (k == FEED_LAST) {
                sha256_digest(&b->pass.digest, sizeof(digest), digest);
                if (memcmp(digest, b->expected, sizeof(digest)) != 0)
                        return -ESTALE;
        }
        int error = k < 0 ? k : gzip_put(&b->gzip, out, b->plain.data, b->plain.length, k == FEED_LAST);
        return error < 0 ? error : k;
}

static const struct feed_source source = {.fill = fill, .free = bundle_free};

/* Prints what of the experiment's name may stand in any file's, or else its id. */
static void print_file_name(const struct experiment_record *e, char ret[static NAME_MAX_BYTES + 1]) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        size_t n = 0;
        for (const char *at = e->name ? e->name : ""; *at && n < NAME_MAX_BYTES; at++)
                if (strchr(allowed, *at))
                        ret[n++] = *at;
                else if (n > 0 && ret[n - 1] != '-')
                        ret[n++] = '-';
        while (n > 0 && ret[n - 1] == '-')
                n--;
        ret[n] = '\0';
        if (n == 0)
                (void) snprintf(ret, NAME_MAX_BYTES + 1, "%" PRId64, e->id);
}

static int begin(struct api *a, const struct request *q, const char *host, struct bundle **ret, struct refusal *r) {
        struct bundle *b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        int k = gzip_init(&b->gzip, GZIP_FILE);
        b->subject = (struct subject){.service = a->service, .id = q->id, .host = host ? strdup(host) : NULL};
        if (host && !b->subject.host)
                k = -ENOMEM;
        if (k >= 0)
                k = service_topology_json(a->service, &b->subject.topology, r);
        if (k >= 0)
                k = pass_begin(&b->pass, &b->subject);
        if (k >= 0)
                k = take_digest(&b->subject, q, b->expected, r);
        if (k < 0) {
                bundle_free(b);
                return k;
        }
        *ret = b;
        return 0;
}

/* The file's name and tag, by its digest; true: the client has it. */
static bool put_name(const struct request *q, struct response *p, const struct experiment_record *e,
                     const char *digest) {
        char name[NAME_MAX_BYTES + 1];
        print_file_name(e, name);
        response_header(p, "Content-Disposition", "attachment; filename=\"ipclab-%s-%s.json.gz\"", name, digest);
        return tag_version(q, p, "application/gzip", hash_more(HASH_BEGIN, digest, strlen(digest)));
}

/* ---- of another host ---- */

/* The file that it came as, part by part. */
struct imported {
        struct service *service;
        int64_t id;
        uint32_t part; /* the next */
};

/* Where a part is gone, as after a deletion, the first is answered with 404, and with a later one the body breaks. */
static int fill_imported(void *userdata, struct text *out, struct refusal *r) {
        struct imported *i = userdata;
        uint8_t *data = NULL;
        size_t length = 0;
        bool last = false;
        int k = service_bundle_part(i->service, i->id, i->part, &data, &length, &last, r);
        if (k < 0)
                return k;
        text_append(out, (const char *) data, length);
        free(data);
        i->part++;
        return last ? FEED_LAST : FEED_MORE;
}

static const struct feed_source imported_source = {.fill = fill_imported, .free = free};

/* Responds with the file that another host's experiment came as: what was verified stays what it was. */
static int respond_imported(struct api *a, const struct request *q, struct response *p, const char *host,
                            const struct experiment_record *e, struct refusal *r) {
        _cleanup_(json_freep) struct json *imported = NULL;
        const char *digest = "";
        if (host)
                return refuse(r, 409, "imported", "", "experiment %" PRId64 " came with the label that it has", e->id);
        int k = json_parse(e->imported_json, strlen(e->imported_json), &imported, NULL);
        if (k == 0)
                k = json_as_string(json_get(imported, "sha256"), &digest);
        bool known = k == 0 && put_name(q, p, e, digest);
        struct imported *file = k == 0 && !known ? malloc(sizeof(*file)) : NULL;
        if (k == 0 && !known && !file)
                k = -ENOMEM;
        if (file) {
                *file = (struct imported){.service = a->service, .id = q->id};
                k = feed_respond(q, p, "application/gzip", &imported_source, file, r);
        }
        return k == -EINVAL && r->status == 0 ? -EBADMSG : k;
}

HANDLER(handle_bundle) {
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        char digest[2 * SHA256_DIGEST_SIZE + 1];
        const char *host = request_parameter(q, "host");
        struct bundle *b = NULL;
        if (host && !bundle_is_label(host))
                return refuse_parameter(r, "host", host, BUNDLE_LABEL_WORDS, BUNDLE_LABEL_MAX);
        int k = service_experiment(a->service, q->id, &e, r);
        if (k >= 0 && e.imported_json)
                return respond_imported(a, q, p, host, &e, r);
        if (k >= 0 && (e.state == STATE_QUEUED || e.state == STATE_RUNNING))
                k = refuse(r, 409, "not-finished", "",
                           "experiment %" PRId64 " is %s: a bundle is of one that has finished", e.id,
                           state_name(e.state));
        if (k >= 0)
                k = begin(a, q, host, &b, r);
        if (k < 0)
                return k;
        for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++)
                (void) snprintf(digest + 2 * i, 3, "%02x", b->expected[i]);
        if (put_name(q, p, &e, digest)) {
                bundle_free(b);
                return 0;
        }
        return feed_respond(q, p, "application/gzip", &source, b, r);
}
