/* SPDX-License-Identifier: MIT */

/* Responses: headers, who frees the body, and the bytes of one that goes over the wire by itself. */

#include "api/http/response.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#define RESPONSE __attribute__((cleanup(response_deinit))) struct response

static void a_body_has_its_type_and_status(void) {
        RESPONSE p = {0};
        response_body(&p, 201, "text/plain", strdup("hello"), 5);
        CHECK_INT(p.status, 201);
        CHECK_UINT(p.length, 5);
        CHECK_STRING(p.body, "hello");
        CHECK_STRING(response_get_header(&p, "content-TYPE"), "text/plain");
        CHECK(response_get_header(&p, "Content-Typ") == NULL);
        CHECK_INT(p.error, 0);
}

static void json_is_taken_over_or_its_error_returned(void) {
        RESPONSE p = {0};
        struct json_writer w;
        json_writer_init(&w);
        json_object_begin(&w);
        json_member_i64(&w, "a", 1);
        json_object_end(&w);
        CHECK_INT(response_json(&p, 200, &w), 0);
        json_writer_deinit(&w);
        CHECK_STRING(p.body, "{\"a\":1}");
        CHECK_UINT(p.length, 7);
        CHECK_STRING(response_get_header(&p, "Content-Type"), "application/json");
        response_reset(&p);
        json_writer_init(&w);
        w.error = -ENOMEM;
        CHECK_INT(response_json(&p, 200, &w), -ENOMEM);
        json_writer_deinit(&w);
        CHECK(p.status == 0 && !p.body && p.headers.n == 0);
}

/* A header that is cut would be another one: the response is answered with 500 instead. */
static void a_header_that_does_not_fit_is_an_error(void) {
        char value[1100];
        RESPONSE p = {0};
        memset(value, 'v', sizeof value);
        value[1023] = '\0';
        response_header(&p, "X-Long", "%s", value);
        CHECK_INT(p.error, 0);
        CHECK_STRING(response_get_header(&p, "X-Long"), value);
        value[1023] = 'v';
        value[1024] = '\0';
        response_header(&p, "X-Longer", "%s", value);
        CHECK_INT(p.error, -E2BIG);
        CHECK(response_get_header(&p, "X-Longer") == NULL);
}

static void the_first_error_stays(void) {
        char value[1100] = "";
        RESPONSE p = {0};
        memset(value, 'v', sizeof value - 1);
        p.error = -ENOMEM;
        response_header(&p, "X", "%s", value);
        CHECK_INT(p.error, -ENOMEM);
}

/* The sanitizer reports a borrowed body that is freed, and an own one that is not. */
static void a_reset_drops_everything(void) {
        static char borrowed[] = "static";
        RESPONSE p = {0};
        response_body(&p, 200, "text/plain", borrowed, 6);
        p.borrowed = true;
        p.error = -E2BIG;
        response_reset(&p);
        CHECK(p.status == 0 && !p.body && p.length == 0 && !p.borrowed && p.error == 0 && p.headers.n == 0);
        response_body(&p, 200, "text/plain", strdup("own"), 3);
        response_header(&p, "X", "y");
        response_reset(&p);
        CHECK(!p.body && p.headers.n == 0);
        CHECK_STRING(borrowed, "static");
}

static void printed_it_is_a_whole_answer(void) {
        RESPONSE p = {0}, none = {.status = 204};
        size_t length = 0;
        char *bytes = malloc(3);
        CHECK(bytes);
        memcpy(bytes, "a\0b", 3);
        response_body(&p, 503, "text/plain", bytes, 3);
        response_header(&p, "Retry-After", "%d", 5);
        _cleanup_free_ char *text = response_print(&p, &length);
        static const char want[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 3\r\n"
                                   "Content-Type: text/plain\r\nRetry-After: 5\r\n\r\na\0b";
        CHECK_UINT(length, sizeof want - 1);
        CHECK(text && memcmp(text, want, length) == 0);
        _cleanup_free_ char *empty = response_print(&none, &length);
        CHECK_STRING(empty, "HTTP/1.1 204 No Content\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}

static void phrases(void) {
        CHECK_STRING(status_phrase(200), "OK");
        CHECK_STRING(status_phrase(421), "Misdirected Request");
        CHECK_STRING(status_phrase(507), "Insufficient Storage");
        CHECK_STRING(status_phrase(299), "Error");
}

int main(void) {
        RUN(a_body_has_its_type_and_status);
        RUN(json_is_taken_over_or_its_error_returned);
        RUN(a_header_that_does_not_fit_is_an_error);
        RUN(the_first_error_stays);
        RUN(a_reset_drops_everything);
        RUN(printed_it_is_a_whole_answer);
        RUN(phrases);
        return check_end();
}
