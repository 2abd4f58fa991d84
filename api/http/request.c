/* SPDX-License-Identifier: MIT */

/*
 * Parses request targets. libmicrohttpd would decode them before they are split into segments, so http.c disables its
 * decoding, and all code that reads a path or a query calls the functions here.
 */

#include "api/http/request.h"

#include "schema/util.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

static const char *const method_names[] = {
        [METHOD_GET] = "GET",       [METHOD_HEAD] = "HEAD",       [METHOD_POST] = "POST", [METHOD_PUT] = "PUT",
        [METHOD_DELETE] = "DELETE", [METHOD_OPTIONS] = "OPTIONS", [METHOD_OTHER] = "",
};

const char *method_name(enum method m) {
        return method_names[m];
}

enum method method_from_name(const char *name) {
        for (size_t i = 0; i < METHOD_OTHER; i++)
                if (strcmp(name, method_names[i]) == 0)
                        return (enum method) i;
        return METHOD_OTHER;
}

int pairs_add(struct pairs *p, const char *name, size_t name_length, const char *value, size_t value_length) {
        if (p->n >= REQUEST_PAIRS_MAX)
                return -E2BIG;
        if (!util_resize(p->items, p->n + 1))
                return -ENOMEM;
        _cleanup_free_ char *n = strndup(name, name_length);
        _cleanup_free_ char *v = strndup(value, value_length);
        if (!n || !v)
                return -ENOMEM;
        p->items[p->n++] = (struct pair){util_steal(&n), util_steal(&v)};
        return 0;
}

void pairs_deinit(struct pairs *p) {
        for (size_t i = 0; i < p->n; i++) {
                free(p->items[i].name);
                free(p->items[i].value);
        }
        free(p->items);
        *p = (struct pairs){0};
}

void request_deinit(struct request *q) {
        free(q->target);
        free(q->path);
        free(q->authority);
        for (size_t i = 0; i < q->n_segments; i++)
                free(q->segments[i]);
        pairs_deinit(&q->query);
        pairs_deinit(&q->headers);
        free(q->body);
        *q = (struct request){0};
}

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

/* Decodes %XX (and, in a query, + for a space). Control characters, NUL included, are refused. */
static int decode(const char *text, size_t length, bool plus, char **ret, struct refusal *r) {
        _cleanup_free_ char *out = malloc(length + 1);
        if (!out)
                return -ENOMEM;
        size_t n = 0;
        for (size_t i = 0; i < length; i++) {
                unsigned char c = (unsigned char) text[i];
                if (c == '%') {
                        int high = i + 2 < length ? hex_digit(text[i + 1]) : -1;
                        int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
                        if (low < 0)
                                return refuse(
                                        r, 400, "malformed-target", "",
                                        "The request target has a '%%' that two hexadecimal digits do not follow.");
                        c = (unsigned char) (high * 16 + low);
                        i += 2;
                } else if (plus && c == '+') {
                        c = ' ';
                }
                if (c < 0x20 || c == 0x7f)
                        return refuse(r, 400, "malformed-target", "",
                                      "The request target decodes to the control character 0x%02x.", c);
                out[n++] = (char) c;
        }
        out[n] = '\0';
        *ret = util_steal(&out);
        return 0;
}

static int parse_path(struct request *q, const char *path, struct refusal *r) {
        while (*path == '/') {
                path++;
                size_t length = strcspn(path, "/");
                if (q->n_segments == REQUEST_SEGMENTS_MAX)
                        return refuse(r, 404, "not-found", "", "There is no resource at %.200s.", q->path);
                int k = decode(path, length, false, &q->segments[q->n_segments], r);
                if (k < 0)
                        return k;
                q->n_segments++;
                path += length;
        }
        /* "/" alone is the root: no segment */
        if (q->n_segments == 1 && q->segments[0][0] == '\0') {
                free(q->segments[0]);
                q->n_segments = 0;
        }
        return 0;
}

static int parse_pair(struct request *q, const char *text, size_t length, struct refusal *r) {
        const char *equals = memchr(text, '=', length);
        size_t name_length = equals ? (size_t) (equals - text) : length;
        size_t value_at = equals ? name_length + 1 : length;
        _cleanup_free_ char *name = NULL, *value = NULL;
        int k = decode(text, name_length, true, &name, r);
        if (k >= 0)
                k = decode(text + value_at, length - value_at, true, &value, r);
        if (k < 0 || !name || !value)
                return k;
        k = pairs_add(&q->query, name, strlen(name), value, strlen(value));
        if (k == -E2BIG)
                return refuse(r, 400, "malformed-target", "", "The query has more than %u parameters.",
                              REQUEST_PAIRS_MAX);
        return k;
}

static int parse_query(struct request *q, const char *query, struct refusal *r) {
        while (*query) {
                size_t length = strcspn(query, "&");
                int k = length > 0 ? parse_pair(q, query, length, r) : 0;
                if (k < 0)
                        return k;
                query += length;
                query += *query == '&';
        }
        return 0;
}

/* "http://host:port/path": what a client sends through a proxy; the authority then stands for the Host header. */
static int split_authority(struct request *q, const char **target) {
        static const char scheme[] = "http://";
        if (strncasecmp(*target, scheme, sizeof(scheme) - 1) != 0)
                return 0;
        const char *authority = *target + sizeof(scheme) - 1;
        size_t length = strcspn(authority, "/?");
        q->authority = strndup(authority, length);
        if (!q->authority)
                return -ENOMEM;
        *target = authority + length;
        if (**target == '\0')
                *target = "/";
        return 0;
}

int request_parse_target(struct request *q, const char *target, struct refusal *r) {
        q->target = strdup(target);
        if (!q->target || split_authority(q, &target) < 0)
                return -ENOMEM;
        size_t length = strcspn(target, "?");
        q->path = strndup(target, length);
        if (!q->path)
                return -ENOMEM;
        for (const unsigned char *c = (const unsigned char *) target; *c; c++)
                if (*c <= 0x20 || *c >= 0x7f || *c == '#') {
                        q->path[0] = '\0'; /* it goes into the answer */
                        return refuse(r, 400, "malformed-target", "",
                                      "The request target contains the byte 0x%02x, which must be percent-encoded.",
                                      *c);
                }
        if (strcmp(target, "*") == 0 && q->method == METHOD_OPTIONS)
                return 0;
        if (target[0] != '/')
                return refuse(r, 400, "malformed-target", "", "The request target must begin with '/'.");
        int k = parse_path(q, q->path, r);
        if (k < 0 || target[length] == '\0')
                return k;
        return parse_query(q, target + length + 1, r);
}

bool request_has_gone(const struct request *q) {
        return q->gone && q->gone(q->gone_userdata);
}

const char *request_header(const struct request *q, const char *name) {
        for (size_t i = 0; i < q->headers.n; i++)
                if (strcasecmp(q->headers.items[i].name, name) == 0)
                        return q->headers.items[i].value;
        return NULL;
}

size_t request_header_count(const struct request *q, const char *name) {
        size_t n = 0;
        for (size_t i = 0; i < q->headers.n; i++)
                n += strcasecmp(q->headers.items[i].name, name) == 0;
        return n;
}

const char *request_parameter(const struct request *q, const char *name) {
        for (size_t i = 0; i < q->query.n; i++)
                if (strcmp(q->query.items[i].name, name) == 0)
                        return q->query.items[i].value;
        return NULL;
}

int decimal_parse(const char *text, int64_t *ret) {
        int64_t v = 0;
        if (*text == '\0' || (text[0] == '0' && text[1] != '\0'))
                return -EINVAL;
        for (; *text; text++) {
                if (*text < '0' || *text > '9')
                        return -EINVAL;
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *text - '0', &v))
                        return -EINVAL;
        }
        *ret = v;
        return 0;
}

int place_parse(const char *text, int64_t *ret) {
        return strlen(text) <= 18 ? decimal_parse(text, ret) : -EINVAL;
}

/* Steps over digits; false: there is none. */
static bool skip_digits(const char **at) {
        size_t n = strspn(*at, "0123456789");
        *at += n;
        return n > 0;
}

int number_parse(const char *text, double *ret) {
        const char *at = text + (*text == '-');
        if (*at == '0')
                at++;
        else if (!skip_digits(&at))
                return -EINVAL;
        if (*at == '.' && (at++, !skip_digits(&at)))
                return -EINVAL;
        if (*at == 'e' || *at == 'E') {
                at += at[1] == '+' || at[1] == '-' ? 2 : 1;
                if (!skip_digits(&at))
                        return -EINVAL;
        }
        if (*at != '\0')
                return -EINVAL;
        double value = strtod(text, NULL);
        if (!isfinite(value))
                return -EINVAL;
        *ret = value;
        return 0;
}

int refuse_parameter(struct refusal *r, const char *name, const char *value, const char *wanted, ...) {
        char words[200];
        va_list args;
        va_start(args, wanted);
        vsnprintf(words, sizeof(words), wanted, args);
        va_end(args);
        refuse(r, 400, "bad-parameter", "", "The query parameter \"%s\" must be %s, not \"%.80s\".", name, words,
               value);
        snprintf(r->value, sizeof(r->value), "%.80s", value);
        return -EINVAL;
}

int request_parameter_u32(const struct request *q, const char *name, uint32_t min, uint32_t max, uint32_t fallback,
                          uint32_t *ret, struct refusal *r) {
        const char *text = request_parameter(q, name);
        int64_t v = fallback;
        if (text && (decimal_parse(text, &v) < 0 || v < min || v > max))
                return refuse_parameter(r, name, text, "a whole number from %u to %u", min, max);
        *ret = (uint32_t) v;
        return 0;
}

int request_parameter_cursor(const struct request *q, char kind, int64_t *ret, struct refusal *r) {
        const char *text = request_parameter(q, "cursor");
        int64_t v = 0;
        if (text && (text[0] != kind || text[1] != '-' || place_parse(text + 2, &v) < 0))
                return refuse_parameter(r, "cursor", text, "the \"next\" of an earlier answer of this list");
        *ret = v;
        return 0;
}

void cursor_print(char ret[static CURSOR_MAX], char kind, int64_t position) {
        snprintf(ret, CURSOR_MAX, "%c-%lld", kind, (long long) position);
}
