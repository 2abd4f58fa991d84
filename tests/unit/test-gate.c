/* SPDX-License-Identifier: MIT */

/* Which bytes may reach the HTTP library, in whatever pieces they come. */

#include "api/http/connection/gate.h"

#include "check.h"
#include "schema/util.h"

#include <string.h>

#define TEXT(s) (s), sizeof(s) - 1
#define GET "GET /health HTTP/1.1\r\n"
#define POST "POST /experiments HTTP/1.1\r\n"
#define FORTY "                                        "

static const struct {
        const char *text;
        size_t length;
        int status; /* 0: all of it passes */
        const char *code;
} cases[] = {
        {TEXT(GET "Host: x\r\n\r\n"), 0, ""},
        {TEXT("\r\n\r\n" GET "\r\n" GET "X:\t y \r\n\r\n"), 0, ""},
        {TEXT("get * HTTP/1.0\r\n\r\n"), 0, ""},
        {TEXT(POST "Content-Length: 3\r\n\r\n\0\r\n" GET "\r\n"), 0, ""},
        {TEXT(POST "content-length:0 \r\n\r\n" GET "\r\n"), 0, ""},
        {TEXT(POST "Transfer-Encoding: Chunked\r\n\r\n2;a=b\r\n\0\n\r\n0\r\nX: y\r\n\r\n" GET "\r\n"), 0, ""},
        {TEXT(POST "Content-Length: 3 \t \r\n\r\n\0\r\n" GET "\r\n"), 0, ""},
        {TEXT(POST "Transfer-Encoding: chunked" FORTY "\r\n\r\n0\r\n\r\n" GET "\r\n"), 0, ""},
        {TEXT(" GET / HTTP/1.1\r\n"), 400, "malformed-request"},
        {TEXT("GET\r\n\r\n"), 400, "malformed-request"},
        {TEXT("GET /\r\n\r\n"), 400, "malformed-request"},
        {TEXT("GET / FTP/1.1\r\n\r\n"), 400, "malformed-request"},
        {TEXT("\x16\x03\x01"), 400, "malformed-target"},
        {TEXT("G(T / HTTP/1.1\r\n"), 400, "malformed-request"},
        {TEXT("GET /a b HTTP/1.1\r\n"), 400, "malformed-target"},
        {TEXT("GET  HTTP/1.1\r\n"), 400, "malformed-target"},
        {TEXT("GET  / HTTP/1.1\r\n"), 400, "malformed-target"},
        {TEXT("GET /a\0b HTTP/1.1\r\n"), 400, "malformed-target"},
        {TEXT("GET / HTTP/1.1\n"), 400, "malformed-target"},
        {TEXT("GET / HTTP/1.1\rX"), 400, "malformed-request"},
        {TEXT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505, "http-version-not-supported"},
        {TEXT("GET / HTTP/1.2\r\n"), 505, "http-version-not-supported"},
        {TEXT(GET ": x\r\n"), 400, "malformed-request"},
        {TEXT(GET " X: x\r\n"), 400, "malformed-request"},
        {TEXT(GET "X: x\r\n y\r\n"), 400, "malformed-request"},
        {TEXT(GET "X : x\r\n"), 400, "malformed-request"},
        {TEXT(GET "X\r\n"), 400, "malformed-request"},
        {TEXT(GET "Host: x\0y\r\n"), 400, "malformed-request"},
        {TEXT(GET "Authorization: Bearer a\0b\r\n"), 400, "malformed-request"},
        {TEXT(GET "Host: x\n\r\n"), 400, "malformed-request"},
        {TEXT(POST "Content-Length: \r\n"), 400, "malformed-request"},
        {TEXT(POST "Content-Length: -1\r\n"), 400, "malformed-request"},
        {TEXT(POST "Content-Length: 1 1\r\n"), 400, "malformed-request"},
        {TEXT(POST "Content-Length: 1" FORTY "1\r\n"), 400, "malformed-request"},
        {TEXT(POST "Content-Length: 99999999999999999999999999999999999\r\n"), 400, "malformed-request"},
        {TEXT(POST "Content-Length: 1\r\nContent-Length: 1\r\n"), 400, "malformed-request"},
        {TEXT(POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "malformed-request"},
        {TEXT("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n"), 400, "malformed-request"},
        {TEXT(POST "Transfer-Encoding: gzip, chunked\r\n"), 501, "not-implemented"},
        {TEXT(POST "Transfer-Encoding: chunked" FORTY "x\r\n"), 501, "not-implemented"},
        {TEXT(POST "Transfer-Encoding: chunked" FORTY ", gzip\r\n"), 501, "not-implemented"},
        {TEXT(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 501, "not-implemented"},
        {TEXT(POST "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400, "malformed-request"},
        {TEXT(POST "Transfer-Encoding: chunked\r\n\r\n\r\n"), 400, "malformed-request"},
        {TEXT(POST "Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n"), 400, "malformed-request"},
        {TEXT(POST "Transfer-Encoding: chunked\r\n\r\n1\r\nab"), 400, "malformed-request"},
        {TEXT(POST "Transfer-Encoding: chunked\r\n\r\n0\r\nX: \0\r\n"), 400, "malformed-request"},
};

static struct {
        char text[3 * GATE_HEAD_MAX];
        size_t length;
} passed; /* of what feed() was given last */

/* Returns how many of them are read. */
static size_t feed(const char *text, size_t length, size_t piece, struct refusal *r) {
        struct gate g = {0};
        size_t all = 0;
        passed.length = 0;
        *r = (struct refusal){0};
        while (all < length) {
                size_t n = length - all < piece ? length - all : piece, k;
                memcpy(passed.text + passed.length, text + all, n);
                passed.length += gate_pass(&g, passed.text + passed.length, n, &k, r);
                all += k;
                if (k < n)
                        break;
        }
        return all;
}

static void test_each_case_in_any_pieces(void) {
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct refusal r;
                size_t whole = feed(cases[i].text, cases[i].length, SIZE_MAX, &r);
                if (r.status != cases[i].status || strcmp(r.code, cases[i].code) != 0)
                        CHECK_FAIL("case %zu: %d %s (%s)", i, r.status, r.code, r.detail);
                if ((cases[i].status == 0) != (whole == cases[i].length))
                        CHECK_FAIL("case %zu: %zu of %zu bytes pass", i, whole, cases[i].length);
                for (size_t piece = 1; piece < 5; piece++) {
                        struct refusal again;
                        CHECK_UINT(feed(cases[i].text, cases[i].length, piece, &again), whole);
                        CHECK_INT(again.status, r.status);
                }
        }
}

/* The library would take it for a part of the value: of a number that is none, or of a coding that it does not know. */
static void test_white_space_behind_a_length_does_not_pass(void) {
        static const struct {
                const char *text, *passes;
        } blanks[] = {
                {POST "Content-Length:  3 \t \r\nX: y  \r\n\r\na b" GET "\r\n",
                 POST "Content-Length:  3\r\nX: y  \r\n\r\na b" GET "\r\n"},
                {POST "Transfer-Encoding:\tchunked" FORTY "\r\n\r\n2\r\n \t\r\n0\r\n\r\n",
                 POST "Transfer-Encoding:\tchunked\r\n\r\n2\r\n \t\r\n0\r\n\r\n"},
        };
        for (size_t i = 0; i < ELEMENTS(blanks); i++)
                for (size_t piece = 1; piece < 200; piece++) {
                        struct refusal r;
                        CHECK_UINT(feed(blanks[i].text, strlen(blanks[i].text), piece, &r), strlen(blanks[i].text));
                        passed.text[passed.length] = '\0';
                        CHECK_STRING(passed.text, blanks[i].passes);
                }
}

/* Nothing of a line that is refused ends it: the library never sees it whole. */
static void test_a_refused_line_is_never_whole(void) {
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct refusal r;
                (void) feed(cases[i].text, cases[i].length, SIZE_MAX, &r);
                if (r.status >= 400 && !strstr(cases[i].text, "Transfer-Encoding"))
                        CHECK(!memmem(passed.text, passed.length, "\r\n\r\n", 4));
        }
}

static void limit(const char *begin, size_t most, int status) {
        static char text[GATE_HEAD_MAX * 2];
        struct refusal r;
        size_t n = strlen(begin);
        memset(text, 'a', sizeof(text));
        memcpy(text, begin, n);
        CHECK_UINT(feed(text, sizeof(text), 1000, &r), most);
        CHECK_INT(r.status, status);
}

static void test_limits(void) {
        limit("GET /", GATE_LINE_MAX, 414);
        limit(GET "X: ", strlen(GET) + GATE_HEAD_MAX, 431);
        limit(GET, strlen(GET) + GATE_HEAD_MAX, 431);
}

static void parts(const char *begin, char mark, const char *end, int status) {
        struct refusal r;
        char text[4 * GATE_PARTS_MAX + 200];
        for (unsigned n = GATE_PARTS_MAX; n <= GATE_PARTS_MAX + 1; n++) {
                size_t length = (size_t) snprintf(text, sizeof(text), "%s", begin);
                for (unsigned i = 0; i < n; i++) {
                        if (i > 0)
                                text[length++] = mark;
                        memcpy(text + length, "a=b", 3);
                        length += 3;
                }
                length += (size_t) snprintf(text + length, sizeof(text) - length, "%s", end);
                size_t read = feed(text, length, 1000, &r);
                CHECK(n == GATE_PARTS_MAX ? read == length : read < length);
                CHECK_INT(r.status, n == GATE_PARTS_MAX ? 0 : status);
        }
}

static void test_few_parameters_and_cookies_pass(void) {
        parts("GET /health?", '&', " HTTP/1.1\r\n\r\n", 400);
        parts(GET "cookie: ", ';', "\r\n\r\n", 431);
        parts(GET "Cookie: ", ',', "\r\n\r\n", 431);
        parts("GET /?a&b HTTP/1.1\r\nCookie: ", ';', "\r\n\r\n", 431); /* each has its own count */
}

/* The library drops empty lines before a request, as many as its memory holds. */
static void test_few_empty_lines_pass(void) {
        char text[2 * GATE_EMPTY_MAX + 2 + sizeof(GET "\r\n")];
        for (unsigned n = GATE_EMPTY_MAX; n <= GATE_EMPTY_MAX + 1; n++) {
                struct refusal r = {0};
                for (unsigned i = 0; i < n; i++)
                        memcpy(text + 2 * i, "\r\n", 2);
                memcpy(text + 2 * n, TEXT(GET "\r\n"));
                size_t length = 2 * n + sizeof(GET "\r\n") - 1, read = feed(text, length, 1000, &r);
                CHECK_UINT(read, n == GATE_EMPTY_MAX ? length : 2 * GATE_EMPTY_MAX);
                CHECK_INT(r.status, n == GATE_EMPTY_MAX ? 0 : 400);
        }
}

/* One counts when its last byte has passed. */
static void test_whole_requests_are_counted(void) {
        static const struct {
                const char *text;
                size_t length;
        } requests[] = {
                {TEXT("\r\n" GET "Host: x\r\n\r\n")},
                {TEXT(POST "Content-Length: 3\r\n\r\n\0\r\n")},
                {TEXT(POST "Content-Length: 0\r\n\r\n")},
                {TEXT(POST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: y\r\n\r\n")},
        };
        struct gate g = {0};
        struct refusal r;
        for (size_t i = 0; i < ELEMENTS(requests); i++) {
                size_t most = requests[i].length - 1, read;
                char text[200];
                memcpy(text, requests[i].text, most + 1);
                CHECK_UINT(gate_pass(&g, text, most, &read, &r), most);
                CHECK_UINT(g.requests, i);
                CHECK_UINT(gate_pass(&g, text + most, 1, &read, &r), 1);
                CHECK_UINT(g.requests, i + 1);
        }
}

int main(void) {
        RUN(test_each_case_in_any_pieces);
        RUN(test_white_space_behind_a_length_does_not_pass);
        RUN(test_a_refused_line_is_never_whole);
        RUN(test_limits);
        RUN(test_few_parameters_and_cookies_pass);
        RUN(test_few_empty_lines_pass);
        RUN(test_whole_requests_are_counted);
        return check_end();
}
