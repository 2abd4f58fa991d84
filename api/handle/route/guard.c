/* SPDX-License-Identifier: MIT */

/* The checks on a request's head; called by dispatch.c before anything of the body is read. */

#include "api/handle/route/guard.h"

#include "schema/util.h"

#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static int malformed(struct refusal *r, const char *what) {
        return refuse(r, 400, "malformed-request", "", "%s", what);
}

int guard_expectation(const struct request *q, struct refusal *r) {
        const char *expect = request_header(q, "Expect");
        if (expect && strcasecmp(expect, "100-continue") != 0)
                return refuse(r, 417, "expectation-failed", "",
                              "The only expectation that can be met is \"100-continue\".");
        return 0;
}

int guard_host(const struct api *a, const struct request *q, struct refusal *r) {
        if (request_header_count(q, "Host") > 1)
                return malformed(r, "There is more than one Host header.");
        const char *host = request_header(q, "Host");
        if (!host && (!q->http_1_0 || !q->local))
                return malformed(r, "The Host header is missing.");
        if (q->authority)
                host = q->authority;
        if (!host)
                return 0;
        if (host[strspn(host, DIGITS LETTERS "-._~%!$&'()*+,;=:[]")] != '\0')
                return malformed(r, "The Host header is not a host name with a port.");
        if (q->local)
                return 0;
        for (size_t i = 0; i < a->n_hosts; i++)
                if (strcasecmp(host, a->hosts[i]) == 0)
                        return 0;
        return refuse(r, 421, "foreign-host", "", "The host \"%.100s\" is not served here; this is %s.", host,
                      a->hosts[0]);
}

/* A page of another site, or of another port of this host, which counts as the same site, may lead to the dashboard,
 * and have nothing loaded from here: a browser does not show it the answer, but the work would be done. Source: the
 * Fetch standard's metadata (w3.org/TR/fetch-metadata). */
static int guard_site(const struct request *q, struct refusal *r) {
        const char *site = request_header(q, "Sec-Fetch-Site"), *mode = request_header(q, "Sec-Fetch-Mode");
        bool link = mode && strcasecmp(mode, "navigate") == 0 && strcmp(q->path, "/") == 0;
        bool foreign = site && (strcasecmp(site, "cross-site") == 0 || strcasecmp(site, "same-site") == 0);
        if (!foreign || link)
                return 0;
        return refuse(r, 403, "foreign-origin", "",
                      "Requests by pages of other origins are refused (Sec-Fetch-Site: %.20s).", site);
}

/* Same origin as the Host, which was found to be ours before. */
int guard_origin(const struct request *q, struct refusal *r) {
        static const char scheme[] = "http://";
        const char *origin = request_header(q, "Origin");
        if (q->local)
                return 0;
        if (!origin)
                return guard_site(q, r);
        const char *host = q->authority ? q->authority : request_header(q, "Host");
        if (request_header_count(q, "Origin") == 1 && host && strncasecmp(origin, scheme, sizeof(scheme) - 1) == 0 &&
            strcasecmp(origin + sizeof(scheme) - 1, host) == 0)
                return 0;
        return refuse(r, 403, "foreign-origin", "", "Requests from the origin \"%.100s\" are refused.", origin);
}

/* Time depends on the presented text's length alone. */
static bool same_secret(const char *presented, const char *secret) {
        size_t n = strlen(presented), m = strlen(secret);
        volatile unsigned char difference = n != m;
        for (size_t i = 0; i < n; i++)
                difference |= (unsigned char) (presented[i] ^ (m > 0 ? secret[i % m] : 0));
        return difference == 0 && m > 0;
}

int guard_token(const struct api *a, const struct request *q, struct refusal *r) {
        static const char scheme[] = "Bearer ";
        if (q->local)
                return 0;
        const char *credentials = request_header(q, "Authorization");
        if (!credentials || strncasecmp(credentials, scheme, sizeof(scheme) - 1) != 0 ||
            request_header_count(q, "Authorization") > 1)
                return refuse(r, 401, "token-required", "",
                              "Changes over TCP need \"Authorization: Bearer TOKEN\" with the token of the daemon's "
                              "token file.");
        credentials += sizeof(scheme) - 1;
        credentials += strspn(credentials, " ");
        if (!same_secret(credentials, a->token))
                return refuse(r, 401, "token-wrong", "", "The bearer token is not the one of the daemon's token file.");
        return 0;
}

static const char *skip_space(const char *s) {
        return s + strspn(s, " \t");
}

/* application/json, alone or with charset=utf-8 (quoted or not). */
static bool is_json_type(const char *type) {
        static const char json[] = "application/json", charset[] = "charset=";
        if (strncasecmp(type, json, sizeof(json) - 1) != 0)
                return false;
        type = skip_space(type + sizeof(json) - 1);
        if (*type == '\0')
                return true;
        if (*type != ';')
                return false;
        type = skip_space(type + 1);
        if (strncasecmp(type, charset, sizeof(charset) - 1) != 0)
                return false;
        type += sizeof(charset) - 1;
        bool quoted = *type == '"';
        type += quoted;
        if (strncasecmp(type, "utf-8", 5) != 0)
                return false;
        type += 5;
        if (quoted && *type++ != '"')
                return false;
        return *skip_space(type) == '\0';
}

static int guard_media(const struct request *q, enum body_rule rule, struct refusal *r) {
        const char *type = request_header(q, "Content-Type");
        const char *wanted = rule == BODY_GZIP ? "application/gzip" : "application/json";
        if (!type)
                return refuse(r, 415, "unsupported-media-type", "", "The body must be %s; there is no Content-Type.",
                              wanted);
        /* `curl -d` sends the type of a browser's form by default; a browser cannot reach the unix socket, where the
         * shortest curl command shall work */
        bool fits = (q->local && strcasecmp(type, "application/x-www-form-urlencoded") == 0) ||
                    (rule == BODY_GZIP ? strcasecmp(type, wanted) == 0 : is_json_type(type));
        if (request_header_count(q, "Content-Type") > 1 || !fits)
                return refuse(r, 415, "unsupported-media-type", "", "The body must be %s%s, not \"%.100s\".", wanted,
                              rule == BODY_GZIP ? "" : " in UTF-8", type);
        const char *coding = request_header(q, "Content-Encoding");
        if (coding && strcasecmp(coding, "identity") != 0)
                return refuse(r, 415, "unsupported-media-type", "", "The body must not be encoded; it is \"%.80s\".",
                              coding);
        return 0;
}

size_t guard_body_max(const struct api *a, enum body_rule rule) {
        size_t most = rule == BODY_GZIP ? REQUEST_FILE_MAX : REQUEST_BODY_MAX;
        return most < a->body_max ? most : a->body_max;
}

/* Leading zeros aside, longer numbers than the limit are larger ones. */
static bool above_body_limit(const char *length, size_t most) {
        char limit[24];
        int n = snprintf(limit, sizeof(limit), "%zu", most);
        length += strspn(length, "0");
        return strlen(length) > (size_t) n || (strlen(length) == (size_t) n && strcmp(length, limit) > 0);
}

int guard_body(const struct api *a, const struct request *q, enum body_rule rule, struct refusal *r) {
        const char *length = request_header(q, "Content-Length");
        bool chunked = request_header(q, "Transfer-Encoding") != NULL;
        bool has_body = chunked || (length && length[strspn(length, "0")] != '\0');
        size_t most = guard_body_max(a, rule);
        if (length && above_body_limit(length, most)) {
                bool by_memory = most == a->body_max && most < REQUEST_FILE_MAX;
                refuse(r, 413, "body-too-large", "", "The body may have %zu bytes%s, not %.40s.", most,
                       by_memory ? ", a quarter of the daemon's limit of memory" : "", length);
                snprintf(r->limit, sizeof(r->limit), "body bytes");
                snprintf(r->limit_value, sizeof(r->limit_value), "%zu", most);
                snprintf(r->value, sizeof(r->value), "%.40s", length);
                return -EINVAL;
        }
        if (rule == BODY_NONE && has_body)
                return refuse(r, 400, "unexpected-body", "", "A %s request here has no body.",
                              q->method == METHOD_OTHER ? "this" : method_name(q->method));
        if (rule >= BODY_JSON && !length && !chunked)
                return refuse(r, 411, "length-required", "", "The request needs a body with a Content-Length.");
        if (has_body)
                return guard_media(q, rule, r);
        if (rule == BODY_GZIP)
                return refuse(r, 422, "not-a-bundle", "", "The body is empty; it must be a bundle.");
        if (rule == BODY_JSON)
                return refuse(r, 400, "invalid-json", "", "The body is empty; it must be a JSON object.");
        return 0;
}
