/* SPDX-License-Identifier: MIT */

/*
 * Experiments of other hosts: taken in a portion at a time, each a call of the main thread, so that none of them holds
 * up a run under way for long; and the files that they came as.
 */

#include "daemon/result/search.h"
#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "daemon/service/submission.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* The payload of all its calls: the main thread frees it when a caller has not waited for one. */
struct import {
        struct service *service;
        struct importing importing;
        struct experiment_record experiment;
        struct imported_run runs[SERVICE_IMPORT_RUNS]; /* of the portion */
        size_t n;
        struct bundle_file file;
        char *host;
        void *part; /* of the file, as are its length and number */
        size_t part_length;
        uint32_t n_parts;
        int64_t id; /* result */
        bool created;
};

static void import_free(void *payload) {
        struct import *i = payload;
        for (size_t k = 0; k < i->n; k++)
                imported_run_deinit(&i->runs[k]);
        store_import_deinit(&i->importing);
        experiment_record_deinit(&i->experiment);
        free(i->part);
        free(i->host);
        free(i);
}

/* What was stored of one that did not come to its end is removed by housekeeping. */
static int run_abandon(struct service *s, void *payload, struct refusal *r) {
        (void) payload;
        (void) r;
        service_arm_tidy(s);
        return 0;
}

void service_import_free(struct import *i) {
        static const struct call_type type = {OPERATION_IMPORT, run_abandon, free};
        struct refusal r;
        if (!i)
                return;
        struct service *s = i->service;
        bool begun = i->importing.store != NULL && !i->created;
        import_free(i);
        void *payload = begun ? malloc(1) : NULL;
        if (payload) /* without it, the next start or deletion removes them */
                (void) service_call(s, &type, &payload, &r);
        free(payload);
}

/* Main thread. */
static int run_begin(struct service *s, void *payload, struct refusal *r) {
        struct import *i = payload;
        int error = submission_check_bytes(s, r);
        if (error < 0)
                return error;
        error = store_begin_import(s->store, &i->experiment, &i->importing);
        return error < 0 ? service_fail(s, r, error, "storing the bundle", 0) : 0;
}

static int run_portion(struct service *s, void *payload, struct refusal *r) {
        struct import *i = payload;
        int error = submission_check_bytes(s, r); /* a small file may have much to be stored */
        if (error < 0)
                return error;
        error = store_import_runs(&i->importing, i->runs, i->n);
        return error < 0 ? service_fail(s, r, error, "storing the bundle", 0) : 0;
}

static int run_part(struct service *s, void *payload, struct refusal *r) {
        struct import *i = payload;
        int error = store_import_part(&i->importing, i->n_parts, i->part, i->part_length);
        return error < 0 ? service_fail(s, r, error, "storing the bundle", 0) : 0;
}

/* Two of the same bundle may come at once. */
static int run_end(struct service *s, void *payload, struct refusal *r) {
        struct import *i = payload;
        int error = store_find_bundle(s->store, i->file.sha256, &i->id);
        if (error != -ENOENT)
                return error < 0 ? service_fail(s, r, error, "storing the bundle", 0) : 0;
        error = store_end_import(&i->importing, &i->file, i->experiment.until_json);
        if (error < 0)
                return service_fail(s, r, error, "storing the bundle", 0);
        i->id = i->importing.id;
        i->created = true;
        service_changed(s, i->id);
        return 0;
}

static int call(struct import **i, const struct call_type *type, struct refusal *r) {
        return service_call((*i)->service, type, (void **) i, r);
}

int service_import_begin(struct service *s, struct experiment_record *e, struct import **ret, struct refusal *r) {
        static const struct call_type type = {OPERATION_IMPORT, run_begin, import_free};
        struct import *i = calloc(1, sizeof(*i));
        if (!i)
                return service_fail(s, r, -ENOMEM, "storing the bundle", 0);
        i->service = s;
        i->experiment = *e;
        *e = (struct experiment_record){0};
        int error = call(&i, &type, r);
        if (error < 0 && i)
                import_free(i);
        if (error == 0)
                *ret = i;
        return error;
}

int service_import_runs(struct import **i, struct imported_run *runs, size_t n, struct refusal *r) {
        static const struct call_type type = {OPERATION_IMPORT, run_portion, import_free};
        memcpy((*i)->runs, runs, n * sizeof(*runs));
        memset(runs, 0, n * sizeof(*runs));
        (*i)->n = n;
        int error = call(i, &type, r);
        for (size_t k = 0; *i && k < n; k++)
                imported_run_deinit(&(*i)->runs[k]);
        if (*i)
                (*i)->n = 0;
        return error;
}

/* What a search has found is no part of its bundle: it follows from the runs, which are read here as any reader does,
 * so that the main thread does not wait for it. */
static int conclude_search(struct import *i, struct refusal *r) {
        struct experiment_record *e = &i->experiment;
        struct spec *spec = NULL;
        struct reader *reader;
        int error = e->searches ? service_reader_get(i->service, &reader, r) : 0;
        if (error < 0 || !e->searches)
                return error;
        error = spec_parse_stored(e->merged_json, strlen(e->merged_json), &spec, &(struct refusal){0});
        if (error == 0)
                error = search_conclude(reader->store, i->importing.id, e->state, spec, &e->until_json);
        spec_free(spec);
        service_reader_put(i->service, reader);
        return error < 0 ? service_fail(i->service, r, error, "what the search has found", 0) : 0;
}

/* A copy of each part: the main thread may still store it when this one has given up waiting. */
static int store_file(struct import **i, const struct bundle_file *file, struct refusal *r) {
        static const struct call_type type = {OPERATION_IMPORT, run_part, import_free};
        int error = 0;
        (*i)->part = malloc(SERVICE_BUNDLE_PART);
        if (!(*i)->part)
                return service_fail((*i)->service, r, -ENOMEM, "storing the bundle", 0);
        for (size_t at = 0; error == 0 && at < file->length; at += SERVICE_BUNDLE_PART) {
                struct import *import = *i;
                size_t left = file->length - at;
                import->part_length = left < SERVICE_BUNDLE_PART ? left : SERVICE_BUNDLE_PART;
                memcpy(import->part, (const char *) file->data + at, import->part_length);
                error = call(i, &type, r);
                if (error == 0)
                        (*i)->n_parts++;
        }
        return error;
}

int service_import_end(struct import **i, const struct bundle_file *file, int64_t *ret_id, bool *ret_created,
                       struct refusal *r) {
        static const struct call_type type = {OPERATION_IMPORT, run_end, import_free};
        struct import *import = *i;
        import->file = *file;
        import->host = file->host ? strdup(file->host) : NULL;
        import->file.host = import->host;
        if (file->host && !import->host)
                return service_fail(import->service, r, -ENOMEM, "storing the bundle", 0);
        int error = conclude_search(import, r);
        if (error == 0)
                error = store_file(i, file, r);
        if (error == 0)
                error = call(i, &type, r);
        if (error == 0) {
                *ret_id = (*i)->id;
                *ret_created = (*i)->created;
        }
        return error;
}

int service_find_bundle(struct service *s, const char *sha256, int64_t *ret_id, struct refusal *r) {
        *ret_id = 0;
        int error = SERVICE_READ(s, r, "looking for the bundle", 0, store_find_bundle(store, sha256, ret_id));
        return error == -ENOENT ? 0 : error;
}

int service_bundle_part(struct service *s, int64_t id, uint32_t part, uint8_t **ret, size_t *ret_length, bool *ret_last,
                        struct refusal *r) {
        return SERVICE_READ(s, r, "experiment", id, store_bundle_part(store, id, part, ret, ret_length, ret_last));
}
