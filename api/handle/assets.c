/* SPDX-License-Identifier: MIT */

#include "api/handle/assets.h"

#include "api/handle/handlers.h"
#include "api/http/negotiate.h"
#include "api/http/tag.h"
#include "api/http/text.h"
#include "schema/hash.h"
#include "schema/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define ASSETS_MAX 128u
#define ASSET_BYTES_MAX (8u * 1024u * 1024u)
#define DEPTH_MAX 3u
#define GZIP_SUFFIX ".gz"

/* These lie beside the directory of assets. */
static const char *const documents[] = {"index.html", "index.html.gz", "report.html"};

struct asset {
        char *name; /* "index.html", "assets/app.js", "assets/app.js.gz" */
        const char *type;
        bool gzip; /* the compressed form of the asset whose name lacks the suffix */
        char *data;
        size_t length;
        char etag[32];
};

struct assets {
        struct asset items[ASSETS_MAX];
        size_t n;
};

static const struct {
        const char *suffix;
        const char *type;
} types[] = {
        {".html", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".mjs", "text/javascript; charset=utf-8"},
        {".json", "application/json"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".ico", "image/x-icon"},
        {".woff2", "font/woff2"},
        {".txt", "text/plain; charset=utf-8"},
        {".webmanifest", "application/manifest+json"},
        {".map", "application/json"},
};

static bool is_gzip(const char *name) {
        size_t length = strlen(name), suffix = strlen(GZIP_SUFFIX);
        return length > suffix && strcmp(name + length - suffix, GZIP_SUFFIX) == 0;
}

/* The type of a compressed file is that of its content. */
static const char *type_of(const char *name) {
        size_t length = strlen(name) - (is_gzip(name) ? strlen(GZIP_SUFFIX) : 0);
        for (size_t i = 0; i < ELEMENTS(types); i++) {
                size_t suffix = strlen(types[i].suffix);
                if (length >= suffix && strncmp(name + length - suffix, types[i].suffix, suffix) == 0)
                        return types[i].type;
        }
        return NULL;
}

/* Whether the build put a hash of the content into the name, as in "app-7I5EJA4A.js": then the file of that name is the
 * same for ever. */
static bool is_versioned(const char *name) {
        enum { HASH_LENGTH = 8 };
        const char *dash = strrchr(name, '-');
        return dash && strspn(dash + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == HASH_LENGTH &&
               dash[1 + HASH_LENGTH] == '.';
}

static int read_all(int fd, char **ret, size_t *ret_length) {
        struct stat st;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        if (st.st_size > ASSET_BYTES_MAX)
                return -EFBIG;
        size_t size = (size_t) st.st_size, n = 0;
        _cleanup_free_ char *data = malloc(size + 1);
        if (!data)
                return -ENOMEM;
        while (n < size) {
                ssize_t k = read(fd, data + n, size - n);
                if (k < 0)
                        return -errno;
                if (k == 0)
                        break; /* it was cut while we read */
                n += (size_t) k;
        }
        data[n] = '\0';
        *ret = util_steal(&data);
        *ret_length = n;
        return 0;
}

/* Skips what is no asset; fails when there is no room for one. */
static int load_file(struct assets *a, int dir, const char *file, const char *name) {
        const char *type = type_of(file);
        if (!type)
                return 0;
        _cleanup_close_ int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return 0;
        if (a->n == ASSETS_MAX)
                return -E2BIG;
        struct asset *asset = &a->items[a->n];
        int k = read_all(fd, &asset->data, &asset->length);
        if (k < 0)
                return k == -ENOMEM || k == -EFBIG ? k : 0;
        asset->name = strdup(name);
        if (!asset->name) {
                free(util_steal(&asset->data));
                return -ENOMEM;
        }
        asset->type = type;
        asset->gzip = is_gzip(file);
        snprintf(asset->etag, sizeof(asset->etag), "\"%016llx\"",
                 (unsigned long long) hash_more(HASH_BEGIN, asset->data, asset->length));
        a->n++;
        return 0;
}

static int load_dir(struct assets *a, int parent, const char *entry, const char *prefix, unsigned depth);

static int load_entry(struct assets *a, int dir, const struct dirent *entry, const char *prefix, unsigned depth) {
        _cleanup_free_ char *name = NULL;
        struct stat st;
        if (entry->d_name[0] == '.' || fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        if (asprintf(&name, "%s/%s", prefix, entry->d_name) < 0)
                return -ENOMEM;
        if (S_ISDIR(st.st_mode))
                return depth < DEPTH_MAX ? load_dir(a, dir, entry->d_name, name, depth + 1) : 0;
        return S_ISREG(st.st_mode) ? load_file(a, dir, entry->d_name, name) : 0;
}

static int load_dir(struct assets *a, int parent, const char *entry, const char *prefix, unsigned depth) {
        int fd = openat(parent, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return 0;
        DIR *dir = fdopendir(fd);
        if (!dir) {
                int k = -errno;
                util_close(fd);
                return k;
        }
        int k = 0;
        const struct dirent *i;
        while (k >= 0 && (i = readdir(dir))) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
                k = load_entry(a, fd, i, prefix, depth);
        closedir(dir);
        return k;
}

int assets_load(struct assets **ret, const char *dir) {
        struct assets *a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        _cleanup_close_ int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        int k = 0;
        for (size_t i = 0; fd >= 0 && k >= 0 && i < ELEMENTS(documents); i++)
                k = load_file(a, fd, documents[i], documents[i]);
        if (fd >= 0 && k >= 0)
                k = load_dir(a, fd, "assets", "assets", 0);
        if (k < 0) {
                assets_free(a);
                return k;
        }
        *ret = a;
        return 0;
}

void assets_free(struct assets *a) {
        if (!a)
                return;
        for (size_t i = 0; i < a->n; i++) {
                free(a->items[i].name);
                free(a->items[i].data);
        }
        free(a);
}

static const struct asset *find(const struct assets *a, const char *name) {
        for (size_t i = 0; i < a->n; i++)
                if (strcmp(a->items[i].name, name) == 0)
                        return &a->items[i];
        return NULL;
}

const char *assets_text(const struct assets *a, const char *name) {
        const struct asset *asset = a ? find(a, name) : NULL;
        return asset ? asset->data : NULL;
}

/* Responds with the asset of that name in the form that the client takes, if there is one. */
static int respond_asset(const struct assets *a, const struct request *q, const char *name, struct response *p,
                         bool *ret_found) {
        const struct asset *asset = find(a, name);
        if (!asset || asset->gzip) {
                *ret_found = false;
                return 0;
        }
        _cleanup_free_ char *compressed = NULL;
        if (asprintf(&compressed, "%s" GZIP_SUFFIX, name) < 0) {
                compressed = NULL;
                return -ENOMEM;
        }
        const struct asset *gzip = find(a, compressed);
        int k = gzip ? negotiate_coding(q, "gzip") : 0;
        if (k < 0)
                return k;
        if (k > 0)
                asset = gzip;
        p->borrowed = true;
        if (tag_is_known(q, asset->etag))
                p->status = 304;
        else
                response_body(p, 200, asset->type, asset->data, asset->length);
        if (asset->gzip && p->status == 200)
                response_header(p, "Content-Encoding", "gzip");
        if (gzip)
                response_vary(p, "Accept-Encoding");
        response_header(p, "ETag", "%s", asset->etag);
        response_header(p, "Cache-Control", "%s",
                        is_versioned(name) ? "public, max-age=31536000, immutable" : "no-cache");
        *ret_found = true;
        return 0;
}

HANDLER(handle_dashboard) {
        static const char missing[] =
                "<!DOCTYPE html>\n<html lang=\"en\"><title>ipclab</title><h1>ipclab</h1>\n"
                "<p>The daemon runs, and its API is here (<a href=\"/openapi.json\">openapi.json</a>), but the "
                "dashboard's files are not: build them with <code>./tools/setup</code>, or name their "
                "directory with <code>--web-dir</code>, and start the daemon again.</p></html>\n";
        bool found;
        const char *present = request_parameter(q, "present");
        if (present && *present) /* the page itself reads it */
                return refuse_parameter(r, "present", present, "no value");
        int k = respond_asset(a->assets, q, "index.html", p, &found);
        if (k < 0 || found)
                return k;
        char *text = strdup(missing);
        if (!text)
                return -ENOMEM;
        response_body(p, 200, "text/html; charset=utf-8", text, strlen(text));
        return 0;
}

HANDLER(handle_asset) {
        _cleanup_(text_deinit) struct text name = {0};
        for (size_t i = 0; i < q->n_segments; i++) {
                /* a %2F is part of a name here, and no file has one */
                if (strchr(q->segments[i], '/'))
                        return refuse(r, 404, "not-found", "", "There is no resource at %.200s.", q->path);
                text_printf(&name, "%s%s", i > 0 ? "/" : "", q->segments[i]);
        }
        if (name.error < 0 || !name.data)
                return name.error;
        bool found;
        int k = respond_asset(a->assets, q, name.data, p, &found);
        if (k < 0 || found)
                return k;
        return refuse(r, 404, "not-found", "", "There is no resource at %.200s.", q->path);
}
