/* SPDX-License-Identifier: MIT */
#pragma once

/* A posted experiment on its way to the store: submit.c commits it, plan.c only describes it. */

#include "daemon/service/internal.h"
#include "schema/util.h"

struct submission {
        char *body; /* as posted: an error names its place in it */
        size_t length;
        char *compact; /* the same without white space between its tokens: what is stored, and compared */
        char *key, *skipped_json, *measures;
        struct spec *spec;
        struct point_list points;
        double *message_ns;   /* of each point, by earlier runs, NAN where there are none; NULL: windows end by time */
        uint32_t repetitions; /* of the order; with `until` those before the first look */
        char *until_json;     /* NULL: there are no more */
        uint32_t *order;
        uint64_t seed;
        struct store_adding adding;
        uint64_t run_timeout_ns; /* of a whole run */
        struct service *large;   /* NULL: it has no turn of its own as a large request */
        int64_t id;              /* results */
        bool created;
};

/* Whether the key is one. 0; -EINVAL with *r. */
int idempotency_check(const char *key, struct refusal *r);
/* *ret_id: the experiment that this text was posted to with the key, 0 where the key is new. -EINVAL with *r where it
 * was used with another text; NULL is the same as none. */
int idempotency_find(struct service *s, struct store *store, const char *key, const char *text, int64_t *ret_id,
                     struct refusal *r);

/* key: NULL, or the Idempotency-Key. 0; -ENOMEM with *r. */
int submission_new(struct service *s, const char *body, size_t length, const char *key, struct submission **ret,
                   struct refusal *r);
/* Parses, spans and admits the points, and draws their order. 0; negative errno with *r. */
int submission_prepare(struct service *s, struct submission *sub, struct refusal *r);
void submission_free(void *p); /* NULL-safe; of a struct submission, as calls free their payload */
UTIL_FREEP(submission, submission_free)

/* Checks whether `experiments` and `runs` may wait besides (limits of ipclabd.conf). 0; -errno with *r, 429 or 507. */
int submission_check_room(struct service *s, struct store *store, unsigned experiments, uint64_t runs,
                          struct refusal *r);
/* Checks max_database_bytes alone of these; main thread. */
int submission_check_bytes(struct service *s, struct refusal *r);

/* Planned length of a run of point i in nanoseconds, and of a block in seconds. No run is longer than its timeout. */
uint64_t submission_estimate(const struct submission *sub, size_t i);
double submission_block_seconds(const struct submission *sub);
