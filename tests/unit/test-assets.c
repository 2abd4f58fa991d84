/* SPDX-License-Identifier: MIT */

/* The dashboard's files: which are loaded, as what they are served, and that a request never becomes a path. */

#include "api/handle/assets.h"
#include "api/handle/handlers.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#include <sys/stat.h>

struct site {
        char dir[64];
        struct api api;
};

static bool site_open(struct site *s) {
        *s = (struct site){.dir = "/tmp/ipclab-assets.XXXXXX"};
        return mkdtemp(s->dir) != NULL;
}

static void site_close(struct site *s) {
        assets_free(s->api.assets);
        host_tree_remove(s->dir);
}
#define SITE __attribute__((cleanup(site_close))) struct site

static int load(struct site *s) {
        assets_free(util_steal(&s->api.assets));
        return assets_load(&s->api.assets, s->dir);
}

/* One answer, and the refusal that would have been in its place. */
struct answer {
        struct request q;
        struct response p;
        struct refusal r;
        int result;
};

static void answer_close(struct answer *a) {
        request_deinit(&a->q);
        response_deinit(&a->p);
}
#define ANSWER __attribute__((cleanup(answer_close))) struct answer

static void fetch(struct site *s, const char *target, const char *tags, const char *codings, struct answer *a) {
        *a = (struct answer){.q = {.method = METHOD_GET}};
        a->result = request_parse_target(&a->q, target, &a->r);
        if (a->result == 0 && tags)
                a->result = pairs_add(&a->q.headers, "If-None-Match", 13, tags, strlen(tags));
        if (a->result == 0 && codings)
                a->result = pairs_add(&a->q.headers, "Accept-Encoding", 15, codings, strlen(codings));
        if (a->result == 0)
                a->result = (strcmp(target, "/") == 0 ? handle_dashboard : handle_asset)(&s->api, &a->q, &a->p, &a->r);
}

static int status_of(struct site *s, const char *target) {
        ANSWER a;
        fetch(s, target, NULL, NULL, &a);
        return a.result == 0 ? a.p.status : a.r.status;
}

static void files_are_served_as_what_they_are(void) {
        static const struct {
                const char *file, *type;
        } cases[] = {{"/index.html", "text/html; charset=utf-8"},
                     {"/assets/app.js", "text/javascript; charset=utf-8"},
                     {"/assets/uplot.mjs", "text/javascript; charset=utf-8"},
                     {"/assets/two.dots.css", "text/css; charset=utf-8"},
                     {"/assets/a/b/c/icon.svg", "image/svg+xml"},
                     {"/assets/font.woff2", "font/woff2"},
                     {"/assets/empty.json", "application/json"}};
        SITE s;
        CHECK(site_open(&s));
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK(host_tree_write(s.dir, cases[i].file, strstr(cases[i].file, "empty") ? "" : cases[i].file) == 0);
        CHECK_INT(load(&s), 0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                ANSWER a;
                fetch(&s, i == 0 ? "/" : cases[i].file, NULL, NULL, &a);
                CHECK_INT(a.result, 0);
                CHECK_INT(a.p.status, 200);
                CHECK_STRING(response_get_header(&a.p, "Content-Type"), cases[i].type);
                CHECK_STRING(response_get_header(&a.p, "Cache-Control"), "no-cache");
                CHECK(a.p.borrowed);
                CHECK_UINT(a.p.length, strstr(cases[i].file, "empty") ? 0 : strlen(cases[i].file));
                CHECK(memcmp(a.p.body, cases[i].file, a.p.length) == 0);
        }
}

static void what_is_no_asset_is_left_out(void) {
        char target[128], path[128];
        SITE s;
        CHECK(site_open(&s));
        CHECK(host_tree_write(s.dir, "/assets/good.js", "x") == 0);
        CHECK(host_tree_write(s.dir, "/beside.js", "x") == 0);
        CHECK(host_tree_write(s.dir, "/assets/.hidden.js", "x") == 0);
        CHECK(host_tree_write(s.dir, "/assets/.git/config.txt", "x") == 0);
        CHECK(host_tree_write(s.dir, "/assets/binary.exe", "x") == 0);
        CHECK(host_tree_write(s.dir, "/assets/js", "x") == 0);
        CHECK(host_tree_write(s.dir, "/assets/1/2/3/4/deep.js", "x") == 0);
        (void) snprintf(target, sizeof target, "%s/beside.js", s.dir);
        (void) snprintf(path, sizeof path, "%s/assets/link.js", s.dir);
        CHECK(symlink(target, path) == 0);
        (void) snprintf(path, sizeof path, "%s/assets/linked", s.dir);
        CHECK(symlink("/etc", path) == 0);
        (void) snprintf(path, sizeof path, "%s/assets/fifo.js", s.dir);
        CHECK(mkfifo(path, 0600) == 0);
        (void) snprintf(path, sizeof path, "%s/assets/folder.js", s.dir);
        CHECK(mkdir(path, 0700) == 0);
        CHECK_INT(load(&s), 0);
        CHECK_INT(status_of(&s, "/assets/good.js"), 200);
        static const char *const none[] = {
                "/assets/beside.js",
                "/beside.js",
                "/assets/.hidden.js",
                "/assets/.git/config.txt",
                "/assets/binary.exe",
                "/assets/js",
                "/assets/1/2/3/4/deep.js",
                "/assets/link.js",
                "/assets/linked/hosts",
                "/assets/fifo.js",
                "/assets/folder.js",
                "/assets/good.js/",
                "/assets/good.JS",
                "/assets/index.html",
                "/assets",
                "/index.html",
        };
        for (size_t i = 0; i < ELEMENTS(none); i++)
                if (status_of(&s, none[i]) != 404 && status_of(&s, none[i]) != 400)
                        CHECK_FAIL("%s is answered with %d", none[i], status_of(&s, none[i]));
}

/* The files are as they were at the start, whatever the path. */
static void a_request_never_becomes_a_path(void) {
        SITE s;
        CHECK(site_open(&s));
        CHECK(host_tree_write(s.dir, "/assets/a/app.js", "x") == 0);
        CHECK_INT(load(&s), 0);
        CHECK(host_tree_write(s.dir, "/assets/later.js", "x") == 0);
        CHECK_INT(status_of(&s, "/assets/a/app.js"), 200);
        CHECK_INT(status_of(&s, "/assets/later.js"), 404);
        CHECK_INT(status_of(&s, "/assets/a%2Fapp.js"), 404); /* a name with a slash in it */
        CHECK_INT(status_of(&s, "/assets%2Fa/app.js"), 404);
        CHECK(host_tree_write(s.dir, "/assets/a/app.js", NULL) == 0);
        CHECK_INT(status_of(&s, "/assets/a/app.js"), 200);
}

static void a_version_that_the_client_has_is_not_sent(void) {
        SITE s;
        char etag[40], tags[200];
        CHECK(site_open(&s));
        CHECK(host_tree_write(s.dir, "/index.html", "<p>") == 0);
        CHECK_INT(load(&s), 0);
        {
                ANSWER a;
                fetch(&s, "/", NULL, NULL, &a);
                (void) snprintf(etag, sizeof etag, "%s", response_get_header(&a.p, "ETag"));
                CHECK(strlen(etag) == 18 && etag[0] == '"' && etag[17] == '"');
        }
        static const struct {
                const char *format; /* %s: the tag */
                int status;
        } cases[] = {{"%s", 304},    {"W/%s", 304}, {"\"other\", %s", 304}, {"\"other\",W/%s,\"more\"", 304},
                     {"*", 304},     {"", 200},     {"\"other\"", 200},     {"x%s", 200},
                     {"%.10s", 200}, {"%sx", 200},  {", ,\t", 200}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                ANSWER a;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                (void) snprintf(tags, sizeof tags, cases[i].format, etag);
#pragma GCC diagnostic pop
                fetch(&s, "/", tags, NULL, &a);
                if (a.p.status != cases[i].status)
                        CHECK_FAIL("If-None-Match: %s is answered with %d", tags, a.p.status);
                CHECK(!a.p.body == (a.p.status == 304));
                CHECK_STRING(response_get_header(&a.p, "ETag"), etag);
        }
        CHECK(host_tree_write(s.dir, "/index.html", "<b>") == 0); /* another version has another tag */
        CHECK_INT(load(&s), 0);
        ANSWER a;
        fetch(&s, "/", etag, NULL, &a);
        CHECK_INT(a.p.status, 200);
}

/* A file with a hash of its content in its name may be cached for ever; the rest is validated each time. */
static void only_names_with_a_hash_may_be_cached_for_ever(void) {
        static const struct {
                const char *file;
                bool immutable;
        } cases[] = {{"/assets/app-7I5EJA4A.js", true},    {"/assets/two-parts-ABCDEFGH.css", true},
                     {"/assets/sub/a-22222222.js", true},  {"/assets/app.js", false},
                     {"/assets/app-7I5EJA4.js", false},    {"/assets/app-7I5EJA4AB.js", false},
                     {"/assets/app-abcdefgh.js", false},   {"/assets/app-10189001.js", false},
                     {"/assets/app-7I5EJA4A-b.js", false}, {"/index.html", false}};
        SITE s;
        CHECK(site_open(&s));
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK(host_tree_write(s.dir, cases[i].file, "x") == 0);
        CHECK_INT(load(&s), 0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                ANSWER a;
                fetch(&s, strcmp(cases[i].file, "/index.html") == 0 ? "/" : cases[i].file, NULL, NULL, &a);
                CHECK_INT(a.p.status, 200);
                CHECK_STRING(response_get_header(&a.p, "Cache-Control"),
                             cases[i].immutable ? "public, max-age=31536000, immutable" : "no-cache");
        }
}

static void a_compressed_form_goes_to_clients_that_accept_it(void) {
        static const struct {
                const char *codings;
                bool gzip;
        } cases[] = {{NULL, false},          {"", false},      {"gzip", true},        {"br, gzip;q=0.5", true},
                     {"gzip;q=0, *", false}, {"*", true},      {"*;q=0", false},      {"identity", false},
                     {"GZIP", true},         {"xgzip", false}, {"deflate, br", false}};
        static const char *const targets[] = {"/", "/assets/app-7I5EJA4A.js"};
        SITE s;
        CHECK(site_open(&s));
        CHECK(host_tree_write(s.dir, "/index.html", "the long text") == 0);
        CHECK(host_tree_write(s.dir, "/index.html.gz", "short") == 0);
        CHECK(host_tree_write(s.dir, "/assets/app-7I5EJA4A.js", "the long text") == 0);
        CHECK(host_tree_write(s.dir, "/assets/app-7I5EJA4A.js.gz", "short") == 0);
        CHECK(host_tree_write(s.dir, "/assets/plain.js", "the long text") == 0);
        CHECK(host_tree_write(s.dir, "/assets/alone.js.gz", "short") == 0);
        CHECK(host_tree_write(s.dir, "/assets/none.gz", "short") == 0);
        CHECK_INT(load(&s), 0);
        for (size_t i = 0; i < ELEMENTS(cases) * ELEMENTS(targets); i++) {
                bool gzip = cases[i / 2].gzip;
                ANSWER a;
                ANSWER same;
                ANSWER other;
                fetch(&s, targets[i % 2], NULL, cases[i / 2].codings, &a);
                CHECK_INT(a.p.status, 200);
                CHECK_UINT(a.p.length, gzip ? 5 : 13);
                const char *coding = response_get_header(&a.p, "Content-Encoding");
                if (gzip != (coding && strcmp(coding, "gzip") == 0))
                        CHECK_FAIL("%s with Accept-Encoding: %s has the coding %s", targets[i % 2],
                                   cases[i / 2].codings, coding ? coding : "none");
                CHECK_STRING(response_get_header(&a.p, "Vary"), "Accept-Encoding");
                CHECK(strstr(response_get_header(&a.p, "Content-Type"), i % 2 ? "javascript" : "html"));
                fetch(&s, targets[i % 2], response_get_header(&a.p, "ETag"), cases[i / 2].codings, &same);
                CHECK_INT(same.p.status, 304); /* each form has a tag of its own */
                fetch(&s, targets[i % 2], response_get_header(&a.p, "ETag"), gzip ? NULL : "gzip", &other);
                CHECK_INT(other.p.status, 200);
        }
        ANSWER a;
        fetch(&s, "/assets/plain.js", NULL, "gzip", &a);
        CHECK_UINT(a.p.length, 13);
        CHECK(!response_get_header(&a.p, "Vary") && !response_get_header(&a.p, "Content-Encoding"));
        static const char *const none[] = {"/assets/app-7I5EJA4A.js.gz", "/assets/alone.js", "/assets/alone.js.gz",
                                           "/assets/none.gz", "/assets/none"};
        for (size_t i = 0; i < ELEMENTS(none); i++)
                CHECK_INT(status_of(&s, none[i]), 404);
}

static void without_files_the_answer_names_the_build_option(void) {
        SITE s;
        CHECK(site_open(&s));
        for (unsigned i = 0; i < 3; i++) {
                ANSWER a;
                assets_free(util_steal(&s.api.assets));
                CHECK_INT(assets_load(&s.api.assets, i == 0 ? NULL : i == 1 ? "/nowhere/at/all" : s.dir), 0);
                fetch(&s, "/", NULL, NULL, &a);
                CHECK_INT(a.p.status, 200);
                CHECK(strstr(a.p.body, "./tools/setup") && !a.p.borrowed);
                CHECK_INT(status_of(&s, "/assets/app.js"), 404);
        }
        assets_free(NULL);
}

/* Half a dashboard is none: what there is no room for is not left out in silence. */
static void too_many_or_too_large_is_an_error(void) {
        char name[64], path[128];
        SITE s;
        CHECK(site_open(&s));
        for (unsigned i = 0; i < 128; i++) {
                (void) snprintf(name, sizeof name, "/assets/%u.js", i);
                CHECK(host_tree_write(s.dir, name, "x") == 0);
        }
        CHECK_INT(load(&s), 0);
        CHECK_INT(status_of(&s, "/assets/127.js"), 200);
        CHECK(host_tree_write(s.dir, "/assets/one-more.css", "x") == 0);
        CHECK_INT(load(&s), -E2BIG);
        CHECK(host_tree_write(s.dir, "/assets/one-more.css", NULL) == 0);
        (void) snprintf(path, sizeof path, "%s/assets/0.js", s.dir);
        CHECK(truncate(path, 8l << 20) == 0);
        CHECK_INT(load(&s), 0);
        CHECK(truncate(path, (8l << 20) + 1) == 0);
        CHECK_INT(load(&s), -EFBIG);
}

int main(void) {
        RUN(files_are_served_as_what_they_are);
        RUN(what_is_no_asset_is_left_out);
        RUN(a_request_never_becomes_a_path);
        RUN(a_version_that_the_client_has_is_not_sent);
        RUN(only_names_with_a_hash_may_be_cached_for_ever);
        RUN(a_compressed_form_goes_to_clients_that_accept_it);
        RUN(without_files_the_answer_names_the_build_option);
        RUN(too_many_or_too_large_is_an_error);
        return check_end();
}
