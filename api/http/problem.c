/* SPDX-License-Identifier: MIT */

/* The one place where a refusal becomes what a client reads. */

#include "api/http/problem.h"

#include "schema/util.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Titles of slugs for which the status's own phrase is too vague. */
static const struct {
        const char *code;
        const char *title;
} titles[] = {
        {"already-finished", "It has ended already"},
        {"bad-header", "A header field is not as it has to be"},
        {"bad-parameter", "Bad query parameter"},
        {"bad-value", "A value is not as it has to be"},
        {"body-too-large", "Body too large"},
        {"damaged", "What is stored is damaged"},
        {"duplicate-value", "A value stands twice"},
        {"empty-list", "A list is empty"},
        {"foreign-host", "This host name is not served here"},
        {"foreign-origin", "Requests from other origins are refused"},
        {"headers-too-large", "The header fields are too large"},
        {"idempotency-key-reused", "The idempotency key was used with another body"},
        {"imported", "It is another host's"},
        {"impossible-combination", "The mechanism cannot do this"},
        {"invalid-idempotency-key", "The idempotency key is not one"},
        {"invalid-json", "The body is not valid JSON"},
        {"invalid-name", "The name is not one"},
        {"limit-exceeded", "A limit is exceeded"},
        {"malformed-request", "The request is malformed"},
        {"malformed-target", "The request target is malformed"},
        {"missing-field", "A field is missing"},
        {"missing-parameter", "A query parameter is missing"},
        {"no-points", "Nothing is left to measure"},
        {"no-results", "It has no results"},
        {"no-such-value", "The axis has no such value"},
        {"not-a-bundle", "This is no bundle"},
        {"not-available", "Not available here"},
        {"not-canonical", "The JSON is not in its canonical form"},
        {"not-exported", "It is not exported yet"},
        {"not-extensible", "It cannot be extended"},
        {"not-finished", "It has not finished"},
        {"not-found", "There is no such resource"},
        {"not-gzip", "This is no gzip file"},
        {"nothing-in-common", "The experiments have no point in common"},
        {"nothing-open", "No runs would settle more"},
        {"nothing-to-retry", "No run is left to be tried again"},
        {"other-store", "This is another store"},
        {"pinned", "A baseline pins it"},
        {"queue-full", "Too much is waiting"},
        {"running", "It is running"},
        {"same-experiment", "Both sides are one experiment"},
        {"same-value", "Both sides are one value"},
        {"target-too-long", "The request line is too long"},
        {"token-required", "A bearer token is required"},
        {"token-wrong", "The bearer token is wrong"},
        {"too-many-requests", "Too many requests of this kind are under way"},
        {"too-many-rows", "The answer has too many rows"},
        {"too-many-subscribers", "Too many event streams are open"},
        {"unexpected-body", "No body is expected"},
        {"unknown-axis", "Unknown axis"},
        {"unknown-field", "Unknown field"},
        {"unknown-parameter", "Unknown query parameter"},
        {"unknown-value", "Unknown value"},
        {"unlike-environments", "The environments are unlike"},
        {"wrong-combination", "These fields do not go together"},
        {"wrong-digest", "The digest is another"},
        {"wrong-type", "Wrong type"},
        {"wrong-value", "Value out of range"},
};

static const char *title_of(const struct refusal *r) {
        for (size_t i = 0; i < ELEMENTS(titles); i++)
                if (strcmp(titles[i].code, r->code) == 0)
                        return titles[i].title;
        return status_phrase(r->status);
}

/* A number that is not whole, or has an exponent. strtod() takes more than JSON does: 0x1, inf, .5, 007. */
static bool is_real(const char *text, double *ret) {
        const char *digits = text + (*text == '-');
        char *end;
        if (!strpbrk(text, ".e") || strspn(text, "-+.0123456789e") != strlen(text) || !isdigit(digits[0]) ||
            (digits[0] == '0' && isdigit(digits[1])))
                return false;
        *ret = strtod(text, &end);
        return *end == '\0' && isfinite(*ret);
}

/* Limits and values travel as text inside; a number that stays exact is one again for the client. */
static void member_number_or_text(struct json_writer *w, const char *key, const char *text) {
        bool negative = *text == '-';
        int64_t whole;
        double real;
        if (decimal_parse(text + negative, &whole) == 0 && whole <= JSON_INTEGER_MAX)
                json_member_i64(w, key, negative ? -whole : whole);
        else if (is_real(text, &real))
                json_member_double(w, key, real);
        else
                json_member_string(w, key, text);
}

static int problem_write(struct response *p, const struct refusal *r, const char *instance) {
        char type[sizeof(PROBLEM_TYPE_PREFIX) + sizeof(r->code)];
        snprintf(type, sizeof(type), PROBLEM_TYPE_PREFIX "%s", r->code);
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        json_member_string(&w, "type", type);
        json_member_string(&w, "title", title_of(r));
        json_member_i64(&w, "status", r->status);
        json_member_string(&w, "detail", r->detail);
        if (instance && *instance)
                json_member_string(&w, "instance", instance);
        if (r->pointer[0])
                json_member_string(&w, "pointer", r->pointer);
        if (r->limit[0]) {
                json_member_object(&w, "limit");
                json_member_string(&w, "name", r->limit);
                if (r->is_set)
                        json_member_string(&w, "value", r->limit_value);
                else
                        member_number_or_text(&w, "value", r->limit_value);
                json_object_end(&w);
        }
        if (r->value[0])
                member_number_or_text(&w, "value", r->value);
        json_object_end(&w);
        char *text;
        size_t length;
        int k = json_writer_steal(&w, &text, &length);
        if (k < 0)
                return k;
        response_body(p, r->status, "application/problem+json", text, length);
        return 0;
}

void problem_respond(struct response *p, const struct refusal *r, const char *instance) {
        response_reset(p);
        if (problem_write(p, r, instance) < 0) {
                response_reset(p);
                p->status = r->status;
        }
        if (r->status == 503 || r->status == 429)
                response_header(p, "Retry-After", "5");
}

void problem_from_errno(struct refusal *r, int error) {
        if (error == -ETIMEDOUT || error == -EAGAIN || error == -ESHUTDOWN)
                refuse(r, 503, "unavailable", "", "The daemon did not answer in time; try again.");
        else
                refuse(r, 500, "internal-error", "", "The daemon could not do this: %s.", strerrordesc_np(-error));
}
