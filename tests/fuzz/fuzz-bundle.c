/* SPDX-License-Identifier: MIT */

/*
 * Any bytes as the JSON of a bundle, under the digest that they have; and as the file itself, which then is no gzip.
 * What is refused, also by a store without space, leaves nothing and names its reason. What is taken in is whole: the
 * runs that the experiment states, by position, each with what the store demands.
 */

#include "api/handle/bundle/bundle-reader.h"
#include "api/handle/handlers.h"
#include "daemon/result/effective.h"
#include "daemon/service/service.h"
#include "fuzz.h"
#include "schema/util.h"

#include <string.h>

/* What a service would do with it */

struct import {
        uint32_t total, runs;
};

static struct import under_way;
static unsigned begun, ended, freed;
static char first_digit; /* of the digest: what the service refuses */

static bool refuses(char digit, struct refusal *r) {
        if (first_digit != digit)
                return false;
        (void) refuse(r, 503, "no-space", "", "The bundle cannot be stored.");
        return true;
}

int service_find_bundle(struct service *s, const char *sha256, int64_t *ret_id, struct refusal *r) {
        (void) s, (void) r;
        FUZZ_CHECK(strlen(sha256) == 64);
        first_digit = sha256[0];
        *ret_id = 0;
        return 0;
}

int service_import_begin(struct service *s, struct experiment_record *e, struct import **ret, struct refusal *r) {
        (void) s;
        FUZZ_CHECK(e->spec_json && e->merged_json && e->skipped_json && e->version);
        FUZZ_CHECK(e->state == STATE_DONE || e->state == STATE_FAILED || e->state == STATE_CANCELLED);
        if (refuses('0', r))
                return -ENOSPC;
        under_way = (struct import){.total = e->runs_total};
        experiment_record_deinit(e);
        *e = (struct experiment_record){0};
        begun++;
        *ret = &under_way;
        return 0;
}

int service_import_runs(struct import **i, struct imported_run *runs, size_t n, struct refusal *r) {
        FUZZ_CHECK(*i == &under_way && n > 0 && n <= SERVICE_IMPORT_RUNS);
        size_t bytes = 0;
        for (size_t k = 0; k < n; k++) {
                const struct run_record *run = &runs[k].run;
                FUZZ_CHECK(bytes < SERVICE_IMPORT_BYTES);
                bytes += strlen(run->agents_json) + (run->result_json ? strlen(run->result_json) : 0);
                FUZZ_CHECK(run->position == (*i)->runs++ && run->point_json && run->flags_json && run->agents_json);
                FUZZ_CHECK(runs[k].role && runs[k].window_ns <= INT64_MAX && runs[k].messages <= INT64_MAX);
                FUZZ_CHECK(run->state != STATE_DONE || run->result_json);
                FUZZ_CHECK(!runs[k].latency || (runs[k].window_ns > 0 && histogram_total(runs[k].latency) > 0));
                imported_run_deinit(&runs[k]);
                runs[k] = (struct imported_run){.role = NULL};
        }
        return refuses('1', r) ? -ENOSPC : 0;
}

int service_import_end(struct import **i, const struct bundle_file *file, int64_t *ret_id, bool *ret_created,
                       struct refusal *r) {
        (void) r;
        FUZZ_CHECK(*i == &under_way && (*i)->runs == (*i)->total && strlen(file->sha256) == 64 && file->length > 0);
        ended++;
        *i = NULL;
        *ret_id = 1;
        *ret_created = true;
        return 0;
}

void service_import_free(struct import *i) {
        FUZZ_CHECK(!i || i == &under_way);
        freed += i != NULL;
}

const char *service_effective_name(size_t i) {
        return effective_name(i);
}

int respond_experiment(struct api *a, int64_t id, int status, struct response *p, struct refusal *r) {
        (void) a, (void) p, (void) r;
        FUZZ_CHECK(id == 1 && status == 201);
        return 0;
}

void response_header(struct response *p, const char *name, const char *format, ...) {
        (void) p, (void) name, (void) format;
}

/* The request */

static void post(const uint8_t *file, size_t length, const char *sha256) {
        _cleanup_(request_deinit) struct request q = {.method = METHOD_POST, .local = true};
        struct response p = {.status = 0};
        struct refusal r = {0};
        struct api a = {.service = NULL};
        FUZZ_CHECK(pairs_add(&q.query, "sha256", 6, sha256, strlen(sha256)) == 0);
        q.body = malloc(length); /* just as long, so that the sanitizer sees what is read beyond it */
        FUZZ_CHECK(q.body);
        memcpy(q.body, file, length);
        q.body_length = length;
        begun = ended = freed = 0;
        int k = handle_take_bundle(&a, &q, &p, &r);
        FUZZ_CHECK(ended == (k == 0) && begun == ended + freed && begun <= 1);
        if (k < 0)
                FUZZ_CHECK((r.status == 413 || r.status == 422 || r.status == 503) && r.code[0] && r.detail[0] &&
                           (!r.pointer[0] || r.pointer[0] == '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char sha256[2 * SHA256_DIGEST_SIZE + 1];
        struct refusal r = {0};
        z_stream z = {.next_in = data, .avail_in = (uInt) size};
        FUZZ_CHECK(deflateInit2(&z, Z_NO_COMPRESSION, Z_DEFLATED, BUNDLE_GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK);
        uLong room = deflateBound(&z, size);
        _cleanup_free_ uint8_t *file = malloc(room);
        FUZZ_CHECK(file);
        z.next_out = file;
        z.avail_out = (uInt) room;
        FUZZ_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
        size_t length = room - z.avail_out;
        (void) deflateEnd(&z);
        FUZZ_CHECK(bundle_read_digest(file, length, sha256, &r) == 0);
        post(file, length, sha256);
        if (size > 0)
                post(data, size, sha256);
        return 0;
}
