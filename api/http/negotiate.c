/* SPDX-License-Identifier: MIT */

#include "api/http/negotiate.h"

#include "api/http/text.h"
#include "schema/util.h"

#include <string.h>
#include <strings.h>

/* "0", "0.5", "1.000" in thousandths; -1 when it is no qvalue. */
static int parse_quality(const char *s, size_t length) {
        if (length == 0 || length > 5 || (s[0] != '0' && s[0] != '1') || (length > 1 && s[1] != '.'))
                return -1;
        int q = (s[0] - '0') * 1000, unit = 100;
        for (size_t i = 2; i < length; i++, unit /= 10) {
                if (s[i] < '0' || s[i] > '9')
                        return -1;
                q += (s[i] - '0') * unit;
        }
        return q <= 1000 ? q : -1;
}

/* How precisely a media range names a type: 3 itself, 2 its major type, 1 any; 0 not at all. A content coding is a type
 * without a slash, which "*" names as any. */
static int precision(const char *range, size_t length, const char *type) {
        if (length == 3 && memcmp(range, "*/*", 3) == 0)
                return 1;
        if (strlen(type) == length && strncasecmp(range, type, length) == 0)
                return 3;
        const char *slash = strchr(type, '/');
        size_t major = slash ? (size_t) (slash - type) + 1 : 0;
        if (length == major + 1 && range[major] == '*' && strncasecmp(range, type, major) == 0)
                return 2;
        return 0;
}

static size_t trimmed(const char **s, size_t length) {
        while (length > 0 && (**s == ' ' || **s == '\t')) {
                (*s)++;
                length--;
        }
        while (length > 0 && ((*s)[length - 1] == ' ' || (*s)[length - 1] == '\t'))
                length--;
        return length;
}

/* One element of Accept: its range's length, and its q; other parameters narrow nothing here. */
static size_t parse_element(const char **element, size_t length, int *ret_quality) {
        size_t range = 0;
        while (range < length && (*element)[range] != ';')
                range++;
        *ret_quality = 1000;
        for (size_t i = range; i < length;) {
                const char *parameter = *element + ++i;
                size_t n = 0;
                while (i < length && (*element)[i] != ';') {
                        i++;
                        n++;
                }
                n = trimmed(&parameter, n);
                if (n >= 2 && (parameter[0] == 'q' || parameter[0] == 'Q') && parameter[1] == '=')
                        *ret_quality = parse_quality(parameter + 2, n - 2);
        }
        return trimmed(element, range);
}

/* The weight of the most precise element that matches the type, in thousandths; 0 when none does. */
static int quality_of(const char *accept, const char *type) {
        int best = 0, quality = 0;
        while (*accept) {
                size_t length = strcspn(accept, ",");
                const char *element = accept;
                int q;
                size_t range = parse_element(&element, length, &q);
                int p = precision(element, range, type);
                if (q >= 0 && p > best) {
                        best = p;
                        quality = q;
                }
                accept += length;
                accept += *accept == ',';
        }
        return quality;
}

/* Several headers of one name mean the same as one list. */
static int joined(const struct request *q, const char *name, struct text *ret) {
        for (size_t i = 0; i < q->headers.n; i++)
                if (strcasecmp(q->headers.items[i].name, name) == 0) {
                        text_puts(ret, q->headers.items[i].value);
                        text_puts(ret, ",");
                }
        return ret->error;
}

int negotiate(const struct request *q, const char *const types[], struct refusal *r) {
        if (!request_header(q, "Accept"))
                return 0;
        _cleanup_(text_deinit) struct text accept = {0}, offered = {0};
        int k = joined(q, "Accept", &accept);
        if (k < 0)
                return k;
        int chosen = -1, best = 0;
        for (int i = 0; types[i]; i++) {
                int quality = quality_of(accept.data, types[i]);
                if (quality > best) {
                        best = quality;
                        chosen = i;
                }
                text_printf(&offered, "%s%s", i > 0 ? ", " : "", types[i]);
        }
        if (chosen < 0)
                return refuse(r, 406, "not-acceptable", "", "This is available as %s.",
                              offered.data ? offered.data : "");
        return chosen;
}

int negotiate_coding(const struct request *q, const char *coding) {
        if (!request_header(q, "Accept-Encoding"))
                return false;
        _cleanup_(text_deinit) struct text accept = {0};
        int k = joined(q, "Accept-Encoding", &accept);
        return k < 0 ? k : quality_of(accept.data, coding) > 0;
}
