/* SPDX-License-Identifier: MIT */

/* Accept against the available representations. */

#include "api/http/negotiate.h"
#include "schema/util.h"
#include "tests/unit/check.h"

enum { JSON, NDJSON, CSV };

static void chooses_as_the_client_likes_it(void) {
        static const char *const available[] = {"application/json", "application/x-ndjson", "text/csv", NULL};
        static const struct {
                const char *accept;
                int chosen;
        } cases[] = {
                {NULL, JSON},
                {"*/*", JSON},
                {"text/csv", CSV},
                {"Text/CSV", CSV},
                {"text/*", CSV},
                {"application/*", JSON},
                {"application/x-ndjson", NDJSON},
                {"text/csv;q=0.5, application/json;q=0.4", CSV},
                {"text/csv;q=0.5,application/json;q=0.501", JSON},
                {"application/json;q=0, */*", NDJSON},
                {"application/json;q=0,*/*;q=0.1,text/csv;q=0.2", CSV},
                {"text/csv ; q=1.000", CSV},
                {"text/csv;header=present", CSV},
                {"text/html, application/xhtml+xml, */*;q=0.8", JSON},
                {"text/html", -EINVAL},
                {"", -EINVAL},
                {"*/*;q=0", -EINVAL},
                {"text/csv;q=0", -EINVAL},
                {"application/jsonx", -EINVAL},
                {"application", -EINVAL},
                {"text/csv;q=nonsense, application/json", JSON},
                {"text/csv;q=2", -EINVAL},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_(request_deinit) struct request q = {0};
                struct refusal r = {0};
                const char *accept = cases[i].accept;
                if (accept)
                        CHECK_INT(pairs_add(&q.headers, "Accept", 6, accept, strlen(accept)), 0);
                int chosen = negotiate(&q, available, &r);
                if (chosen != cases[i].chosen)
                        CHECK_FAIL("\"%s\": chose %d, expected %d", accept ? accept : "(none)", chosen,
                                   cases[i].chosen);
                if (chosen < 0)
                        CHECK_INT(r.status, 406);
        }
}

static void reads_several_headers_as_one_list(void) {
        static const char *const available[] = {"application/json", "text/csv", NULL};
        _cleanup_(request_deinit) struct request q = {0};
        struct refusal r;
        CHECK_INT(pairs_add(&q.headers, "accept", 6, "application/json;q=0.1", 22), 0);
        CHECK_INT(pairs_add(&q.headers, "Accept", 6, "text/csv", 8), 0);
        CHECK_INT(negotiate(&q, available, &r), 1);
}

static void a_coding_is_taken_where_it_is_listed(void) {
        static const struct {
                const char *codings;
                int taken;
        } cases[] = {
                {NULL, 0},         {"", 0},      {"gzip", 1},        {"GZip", 1},  {"br, gzip;q=0.001", 1},
                {"gzip;q=0", 0},   {"*", 1},     {"*, gzip;q=0", 0}, {"*;q=0", 0}, {"*;q=0, gzip", 1},
                {"gzip;q=nan", 0}, {"xgzip", 0}, {"identity", 0},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct request q = {0};
                if (cases[i].codings)
                        CHECK(pairs_add(&q.headers, "Accept-Encoding", 15, cases[i].codings,
                                        strlen(cases[i].codings)) == 0);
                if (negotiate_coding(&q, "gzip") != cases[i].taken)
                        CHECK_FAIL("Accept-Encoding: %s gives %d", cases[i].codings, !cases[i].taken);
                request_deinit(&q);
        }
}

int main(void) {
        RUN(a_coding_is_taken_where_it_is_listed);
        RUN(chooses_as_the_client_likes_it);
        RUN(reads_several_headers_as_one_list);
        return check_end();
}
