/* SPDX-License-Identifier: MIT */
/*
 * Reading the kernel's small files, on this machine or in a captured tree. Called by topology, environment and
 * capacity, which know what the files mean; this file reads them safely.
 */

#include "daemon/host/hostfs.h"

#include "schema/util.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

int hostfs_init(struct hostfs *h, const char *root) {
        *h = (struct hostfs){.root_fd = -1};
        if (!root || !root[0])
                return 0;
        (void) snprintf(h->path, sizeof(h->path), "%s", root);
        h->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return h->root_fd < 0 ? -errno : 0;
}

struct hostfs_reading {
        struct hostfs_reading *next;
        char *path, *text; /* text NULL: reading failed with `error` */
        int error;
};

static void reading_free(struct hostfs_reading *k) {
        if (!k)
                return;
        free(k->path);
        free(k->text);
        free(k);
}

void hostfs_deinit(struct hostfs *h) {
        if (!h)
                return;
        h->root_fd = util_close(h->root_fd);
        for (struct hostfs_reading *next; h->readings; h->readings = next) {
                next = h->readings->next;
                reading_free(h->readings);
        }
}

void hostfs_keep(struct hostfs *h) {
        h->keeps = true;
}

/* Opens component by component, so that no link anywhere on the way is followed. */
static int open_below(int root_fd, const char *path, int flags) {
        char part[256];
        _cleanup_close_ int dir = -1;

        for (;;) {
                path += strspn(path, "/");
                size_t n = strcspn(path, "/");
                if (n == 0 || n >= sizeof(part) || strncmp(path, "..", n) == 0)
                        return -EINVAL;
                memcpy(part, path, n);
                part[n] = '\0';
                path += n;

                bool last = path[0] == '\0';
                int fd = openat(dir >= 0 ? dir : root_fd, part,
                                (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0)
                        return -errno;
                if (last)
                        return fd;
                util_close(dir);
                dir = fd;
        }
}

__attribute__((format(printf, 2, 0))) static int set_path(struct hostfs *h, const char *format, va_list ap) {
        int n = vsnprintf(h->path, sizeof(h->path), format, ap);
        return n < 0 || (size_t) n >= sizeof(h->path) || h->path[0] != '/' ? -EINVAL : 0;
}

static int open_path(struct hostfs *h, int flags) {
        if (h->root_fd >= 0)
                return open_below(h->root_fd, h->path, flags);
        int fd = open(h->path, flags | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int open_file(struct hostfs *h) {
        _cleanup_close_ int fd = open_path(h, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return fd;

        struct stat st;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -EBADMSG;
        return util_steal_fd(&fd);
}

/* Reads to the end, as the files of /proc and /sys report no size. */
static int read_all(int fd, char **ret, size_t *ret_length) {
        _cleanup_free_ char *text = NULL;
        size_t length = 0, size = 0;

        for (;;) {
                if (size - length < 2) {
                        size = size ? size * 2 : 4096;
                        char *bigger = realloc(text, size);
                        if (!bigger)
                                return -ENOMEM;
                        text = bigger;
                }
                ssize_t n = read(fd, text + length, size - length - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
                if (length > HOSTFS_FILE_MAX)
                        return -EFBIG;
        }
        text[length] = '\0';
        *ret = util_steal(&text);
        *ret_length = length;
        return 0;
}

static int read_text(struct hostfs *h, char **ret) {
        _cleanup_close_ int fd = open_file(h);
        if (fd < 0)
                return fd;

        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        int r = read_all(fd, &text, &length);
        if (r < 0)
                return r;
        if (strlen(text) != length)
                return -EBADMSG;
        *ret = util_steal(&text);
        return 0;
}

static int copy_reading(const struct hostfs_reading *k, char **ret) {
        if (!k->text)
                return k->error;
        *ret = strdup(k->text);
        return *ret ? 0 : -ENOMEM;
}

static int read_once(struct hostfs *h, char **ret) {
        for (const struct hostfs_reading *k = h->readings; k; k = k->next)
                if (strcmp(k->path, h->path) == 0)
                        return copy_reading(k, ret);
        struct hostfs_reading *k = calloc(1, sizeof(*k));
        if (!k || !(k->path = strdup(h->path))) {
                reading_free(k);
                return -ENOMEM;
        }
        k->error = read_text(h, &k->text);
        if (k->error == -ENOMEM) { /* a transient error, not a property of the file */
                reading_free(k);
                return -ENOMEM;
        }
        k->next = h->readings;
        h->readings = k;
        return copy_reading(k, ret);
}

__attribute__((format(printf, 3, 0))) static int text_v(struct hostfs *h, char **ret, const char *format, va_list ap) {
        int r = set_path(h, format, ap);
        if (r < 0)
                return r;
        return h->keeps ? read_once(h, ret) : read_text(h, ret);
}

int hostfs_text(struct hostfs *h, char **ret, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        int r = text_v(h, ret, format, ap);
        va_end(ap);
        return r;
}

/* The first line of text, in place, without the blanks around it. */
static char *first_line(char *text) {
        text[strcspn(text, "\n")] = '\0';
        text += strspn(text, " \t\r");
        size_t n = strlen(text);
        while (n > 0 && isspace((unsigned char) text[n - 1]))
                text[--n] = '\0';
        return text;
}

__attribute__((format(printf, 4, 0))) static int line_v(struct hostfs *h, char *ret, size_t size, const char *format,
                                                        va_list ap) {
        _cleanup_free_ char *text = NULL;
        int r = text_v(h, &text, format, ap);
        if (r < 0)
                return r;
        const char *line = first_line(text);
        if (strlen(line) >= size)
                return -EFBIG;
        memcpy(ret, line, strlen(line) + 1);
        return 0;
}

int hostfs_line(struct hostfs *h, char *ret, size_t size, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        int r = line_v(h, ret, size, format, ap);
        va_end(ap);
        return r;
}

int hostfs_i64(struct hostfs *h, int64_t *ret, const char *format, ...) {
        char line[32];
        va_list ap;
        va_start(ap, format);
        int r = line_v(h, line, sizeof(line), format, ap);
        va_end(ap);
        if (r == -EFBIG)
                return -EBADMSG;
        if (r < 0)
                return r;

        char *end = NULL;
        errno = 0;
        long long v = strtoll(line, &end, 10);
        if (errno || end == line || *end)
                return -EBADMSG;
        *ret = v;
        return 0;
}

int hostfs_u64(struct hostfs *h, uint64_t *ret, const char *format, ...) {
        char line[32], *end = NULL;
        va_list ap;
        va_start(ap, format);
        int r = line_v(h, line, sizeof(line), format, ap);
        va_end(ap);
        if (r < 0)
                return r == -EFBIG ? -EBADMSG : r;
        errno = 0;
        unsigned long long v = strtoull(line, &end, 10);
        if (errno || end == line || *end || line[0] == '-')
                return -EBADMSG;
        *ret = v;
        return 0;
}

int hostfs_list(struct hostfs *h, int **ret, size_t *ret_n, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;
        va_start(ap, format);
        int r = text_v(h, &text, format, ap);
        va_end(ap);
        return r < 0 ? r : hostfs_parse_list(first_line(text), ret, ret_n);
}

void hostfs_names_free(char **names, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(names[i]);
        free(names);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static int collect_names(DIR *dir, char ***ret, size_t *ret_n) {
        char **names = calloc(HOSTFS_NAMES_MAX, sizeof(names[0]));
        size_t n = 0;
        int r = names ? 0 : -ENOMEM;

        while (r == 0) {
                errno = 0;
                const struct dirent *entry = readdir(dir); /* NOLINT(concurrency-mt-unsafe): a stream of our own */
                if (!entry) {
                        r = -errno;
                        break;
                }
                if (entry->d_name[0] == '.')
                        continue;
                if (n == HOSTFS_NAMES_MAX)
                        r = -EFBIG;
                else if (!(names[n] = strdup(entry->d_name)))
                        r = -ENOMEM;
                else
                        n++;
        }
        if (r < 0) {
                hostfs_names_free(names, n);
                return r;
        }
        qsort(names, n, sizeof(names[0]), compare_names);
        *ret = names;
        *ret_n = n;
        return 0;
}

int hostfs_choice(char *line) {
        char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
        if (!close)
                return -EBADMSG;
        *close = '\0';
        memmove(line, open + 1, (size_t) (close - open));
        return 0;
}

int hostfs_names(struct hostfs *h, char ***ret, size_t *ret_n, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        int r = set_path(h, format, ap);
        va_end(ap);
        int fd = r < 0 ? r : open_path(h, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        DIR *dir = fdopendir(fd);
        if (!dir) {
                r = -errno;
                util_close(fd);
                return r;
        }
        r = collect_names(dir, ret, ret_n);
        (void) closedir(dir);
        return r;
}

/* A number without sign or blanks, below HOSTFS_LIST_MAX. */
static int parse_id(const char **text, int *ret) {
        int v = 0;
        if (!isdigit((unsigned char) **text))
                return -EBADMSG;
        for (; isdigit((unsigned char) **text); (*text)++) {
                v = v * 10 + (**text - '0');
                if (v >= HOSTFS_LIST_MAX)
                        return -EBADMSG;
        }
        *ret = v;
        return 0;
}

/* One "3" or "3-5" and the comma behind it, if another item must follow. */
static int parse_range(const char **text, int *ret_first, int *ret_last) {
        int r = parse_id(text, ret_first);
        if (r < 0)
                return r;
        *ret_last = *ret_first;
        if (**text == '-') {
                (*text)++;
                r = parse_id(text, ret_last);
                if (r < 0)
                        return r;
        }
        if (*ret_last < *ret_first)
                return -EBADMSG;
        if (**text == '\0')
                return 0;
        if (**text != ',' || (*text)[1] == '\0')
                return -EBADMSG;
        (*text)++;
        return 0;
}

int hostfs_parse_list(const char *text, int **ret, size_t *ret_n) {
        _cleanup_free_ int *ids = NULL;
        size_t n = 0;

        for (int previous = -1; *text;) {
                int first = 0, last = 0;
                int r = parse_range(&text, &first, &last);
                if (r < 0)
                        return r;
                if (first <= previous)
                        return -EBADMSG;
                if (!util_resize(ids, n + (size_t) (last - first) + 1))
                        return -ENOMEM;
                for (int id = first; id <= last; id++)
                        ids[n++] = id;
                previous = last;
        }
        *ret = util_steal(&ids);
        *ret_n = n;
        return 0;
}

void hostfs_format_list(const int *ids, size_t n, char *ret, size_t size) {
        static const char more[] = "…";
        size_t length = 0;

        ret[0] = '\0';
        for (size_t i = 0; i < n;) {
                size_t last = i;
                while (last + 1 < n && ids[last + 1] == ids[last] + 1)
                        last++;
                char item[32];
                int used = last == i ? snprintf(item, sizeof(item), "%s%d", i ? "," : "", ids[i])
                                     : snprintf(item, sizeof(item), "%s%d-%d", i ? "," : "", ids[i], ids[last]);
                if (length + (size_t) used + sizeof(more) > size) {
                        memcpy(ret + length, more, sizeof(more));
                        return;
                }
                memcpy(ret + length, item, (size_t) used + 1);
                length += (size_t) used;
                i = last + 1;
        }
}

int hostfs_field(const char *text, const char *key, char *ret, size_t size) {
        size_t key_length = strlen(key);

        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                if (strncmp(line, key, key_length) != 0)
                        continue;
                const char *value = line + key_length;
                value += strspn(value, " \t");
                if (*value != ':')
                        continue;
                value++;
                value += strspn(value, " \t");
                size_t n = strcspn(value, "\n");
                while (n > 0 && isspace((unsigned char) value[n - 1]))
                        n--;
                if (n >= size)
                        return -EFBIG;
                memcpy(ret, value, n);
                ret[n] = '\0';
                return 0;
        }
        return -ENOENT;
}

int hostfs_meminfo(struct hostfs *h, const char *name, uint64_t *ret) {
        _cleanup_free_ char *text = NULL;
        char line[64], *end = line;
        int r = hostfs_text(h, &text, "/proc/meminfo");
        if (r == 0)
                r = hostfs_field(text, name, line, sizeof(line));
        uint64_t v = r == 0 ? strtoull(line, &end, 10) : 0;
        if (r < 0 || end == line)
                return r < 0 ? r : -EBADMSG;
        *ret = v;
        return 0;
}

/* "Max open files   1024   1048576   files": the name, the soft limit, the hard one; either may be "unlimited". */
int hostfs_process_limit(struct hostfs *h, const char *name, bool hard, uint64_t *ret) {
        _cleanup_free_ char *text = NULL;
        int r = hostfs_text(h, &text, "/proc/self/limits");
        const char *at = r < 0 ? NULL : strstr(text, name);
        if (!at)
                return r < 0 ? r : -ENOENT;
        at += strlen(name);
        at += strspn(at, " ");
        if (hard) {
                at += strcspn(at, " \n");
                at += strspn(at, " ");
        }
        char *end = NULL;
        uint64_t v = strtoull(at, &end, 10);
        if (end == at)
                return -ENOENT;
        *ret = v;
        return 0;
}

#define BUFFER_FIRST 16384u

int hostfs_read_again(int fd, char **buffer, size_t *size) {
        for (size_t length = 0;;) {
                if (length + 1 >= *size) {
                        size_t more = *size ? 2 * *size : BUFFER_FIRST;
                        char *larger = more > HOSTFS_FILE_MAX ? NULL : realloc(*buffer, more);
                        if (!larger)
                                return more > HOSTFS_FILE_MAX ? -EFBIG : -ENOMEM;
                        *buffer = larger;
                        *size = more;
                }
                ssize_t n = pread(fd, *buffer + length, *size - 1 - length, (off_t) length);
                if (n < 0)
                        return -errno;
                if (n == 0) {
                        (*buffer)[length] = '\0';
                        return 0;
                }
                length += (size_t) n;
        }
}
