/* SPDX-License-Identifier: MIT */

/*
 * Any head of a request (a line with the target, then a line per header) through what decides on it before a body is
 * read: the target's parts, the guards, the parameters, Accept. What is accepted must keep what the handlers rely on.
 */

#include "api/handle/route/guard.h"
#include "api/http/negotiate.h"
#include "fuzz.h"
#include "schema/util.h"

#include <string.h>
#include <strings.h>

static void check_text(const char *text) {
        for (; *text; text++)
                FUZZ_CHECK((unsigned char) *text >= 0x20 && *text != 0x7f);
}

static void check_refusal(int k, const struct refusal *r) {
        if (k == -EINVAL)
                FUZZ_CHECK(r->status >= 400 && r->status < 600 && r->code[0] && r->detail[0]);
        else
                FUZZ_CHECK(k >= 0);
}

static void read_headers(struct request *q, char *lines) {
        for (char *line = strtok_r(lines, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
                char *colon = strchr(line, ':');
                if (!colon)
                        continue;
                const char *value = colon + 1 + strspn(colon + 1, " \t");
                if (pairs_add(&q->headers, line, (size_t) (colon - line), value, strlen(value)) < 0)
                        return;
        }
}

static void check_guards(struct request *q) {
        static char token[] = "secret", host[] = "127.0.0.1:8620";
        static const char *const types[] = {"application/json", "application/x-ndjson", "text/csv", NULL};
        struct api api = {.token = token, .hosts = {host}, .n_hosts = 1, .body_max = REQUEST_FILE_MAX};
        struct refusal r = {0};
        check_refusal(guard_expectation(q, &r), &r);
        check_refusal(guard_origin(q, &r), &r);
        int k = guard_host(&api, q, &r);
        check_refusal(k, &r);
        if (k == 0 && !q->local) {
                const char *asked = q->authority ? q->authority : request_header(q, "Host");
                FUZZ_CHECK(asked && strcasecmp(asked, host) == 0);
        }
        k = guard_token(&api, q, &r);
        check_refusal(k, &r);
        if (k == 0 && !q->local)
                FUZZ_CHECK(strstr(request_header(q, "Authorization"), token));
        for (int rule = BODY_NONE; rule <= BODY_JSON; rule++)
                check_refusal(guard_body(&api, q, (enum body_rule) rule, &r), &r);
        check_refusal(negotiate(q, types, &r), &r);
}

static void check_parameters(const struct request *q) {
        struct refusal r = {0};
        uint32_t limit = 0;
        int64_t position = 0;
        int k = request_parameter_u32(q, "limit", 1, 1000, 50, &limit, &r);
        check_refusal(k, &r);
        FUZZ_CHECK(k < 0 || (limit >= 1 && limit <= 1000));
        k = request_parameter_cursor(q, 'e', &position, &r);
        check_refusal(k, &r);
        FUZZ_CHECK(k < 0 || position >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(request_deinit) struct request q = {.method = METHOD_POST, .local = size % 2};
        _cleanup_free_ char *text = strndup((const char *) data, size);
        struct refusal r = {0};
        FUZZ_CHECK(text);
        size_t line = strcspn(text, "\n");
        char *headers = text[line] ? text + line + 1 : text + line;
        text[line] = '\0';
        int k = request_parse_target(&q, text, &r);
        check_refusal(k, &r);
        read_headers(&q, headers);
        check_guards(&q);
        if (k < 0)
                return 0;
        for (size_t i = 0; i < q.n_segments; i++)
                check_text(q.segments[i]);
        for (size_t i = 0; i < q.query.n; i++) {
                check_text(q.query.items[i].name);
                check_text(q.query.items[i].value);
        }
        check_parameters(&q);
        return 0;
}
