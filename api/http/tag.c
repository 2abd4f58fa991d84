/* SPDX-License-Identifier: MIT */

#include "api/http/tag.h"

#include "schema/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tag_is_known(const struct request *q, const char *tag) {
        const char *tags = request_header(q, "If-None-Match");
        size_t length = strlen(tag);
        if (!tags)
                return false;
        if (strcmp(tags, "*") == 0)
                return true;
        while (*tags) {
                tags += strspn(tags, ", \t");
                if (strncmp(tags, "W/", 2) == 0)
                        tags += 2;
                size_t n = strcspn(tags, ", \t");
                if (n == length && strncmp(tags, tag, n) == 0)
                        return true;
                tags += n;
        }
        return false;
}

/* Weakly, since the compressed form has the same tag. */
static bool put_tag(const struct request *q, struct response *p, uint64_t hash) {
        char tag[24];
        (void) snprintf(tag, sizeof(tag), "\"%016" PRIx64 "\"", hash);
        response_header(p, "ETag", "W/%s", tag);
        if (!response_get_header(p, "Cache-Control"))
                response_header(p, "Cache-Control", "no-cache");
        if (!tag_is_known(q, tag))
                return false;
        p->status = 304;
        response_vary(p, "Accept-Encoding"); /* as the response with a body has it */
        return true;
}

bool tag_version(const struct request *q, struct response *p, const char *type, uint64_t version) {
        uint64_t hash = hash_more(HASH_BEGIN, &version, sizeof(version));
        hash = hash_more(hash, q->target, strlen(q->target) + 1);
        return put_tag(q, p, hash_more(hash, type, strlen(type)));
}

void tag_response(const struct request *q, struct response *p) {
        if ((q->method != METHOD_GET && q->method != METHOD_HEAD) || p->status != 200 || p->stream || !p->body ||
            response_get_header(p, "ETag"))
                return;
        if (!put_tag(q, p, hash_more(HASH_BEGIN, p->body, p->length)))
                return;
        if (!p->borrowed)
                free(p->body);
        p->body = NULL;
        p->length = 0;
        p->borrowed = false;
}
