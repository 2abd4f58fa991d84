/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HOST_TREE_H
#define IPCLAB_TESTS_HOST_TREE_H

/*
 * Other machines, for tests of what reads /sys and /proc. tests/unit/data/host/NAME.host is what tools/capture-host
 * --manifest prints: "/path: line", or "/path:" and the content in lines that begin with "|". host_tree_unpack() makes
 * a folder of it, which host_tree_remove() takes away again; in between a test may change files.
 */

#include "schema/util.h"

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline int host_tree_make_parents(char *path, size_t from) {
        for (char *slash = strchr(path + from, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                int r = path[0] && mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
                *slash = '/';
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Creates or replaces a file of the tree; content NULL takes it away. 0; -errno. */
static inline int host_tree_write(const char *tree, const char *file, const char *content) {
        char path[1024];
        if (snprintf(path, sizeof(path), "%s%s", tree, file) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        if (!content)
                return unlink(path) < 0 ? -errno : 0;
        FILE *f = fopen(path, "we");
        if (!f && errno == ENOENT) {
                int r = host_tree_make_parents(path, strlen(tree) + 1);
                if (r < 0)
                        return r;
                f = fopen(path, "we");
        }
        if (!f)
                return -errno;
        bool written = fputs(content, f) >= 0;
        return fclose(f) == 0 && written ? 0 : -EIO;
}

/* One file: its line in *text, and the "|" lines below it; *text is moved behind them. */
static inline int host_tree_entry(const char *tree, char **text) {
        char *line = *text, *next = line + strcspn(line, "\n");
        if (*next)
                *next++ = '\0';
        *text = next;
        if (line[0] == '#' || line[0] == '\0')
                return 0;
        char *colon = strchr(line, ':');
        if (line[0] != '/' || !colon)
                return -EBADMSG;
        *colon = '\0';

        char *content = calloc(strlen(colon + 1) + strlen(next) + 2, 1);
        if (!content)
                return -ENOMEM;
        if (colon[1]) {
                strcpy(content, colon + 2);
                strcat(content, "\n");
        }
        for (size_t length = 0; !colon[1] && **text == '|';) {
                size_t n = strcspn(*text, "\n"), newline = (*text)[n] == '\n';
                memcpy(content + length, *text + 1, n - 1 + newline);
                length += n - 1 + newline;
                *text += n + newline;
        }
        int r = host_tree_write(tree, line, content);
        free(content);
        return r;
}

/* name: without ".host". tree: at least 64 bytes, becomes the folder. 0; -errno. */
static inline int host_tree_unpack(const char *name, char *tree) {
        const char *source = getenv("IPCLAB_SOURCE_ROOT"), *tmp = getenv("TMPDIR");
        char path[1024];
        (void) snprintf(path, sizeof(path), "%s/tests/unit/data/host/%s.host", source ? source : ".", name);
        FILE *f = fopen(path, "re");
        if (!f)
                return -errno;
        char *text = calloc(1, 1024 * 1024);
        size_t n = text ? fread(text, 1, 1024 * 1024 - 1, f) : 0;
        (void) fclose(f);
        if (!tmp)
                tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* hundreds of files, of a line each */
        (void) snprintf(tree, 64, "%.40s/ipclab-host.XXXXXX", tmp);
        int r = n == 0 ? -EIO : mkdtemp(tree) ? 0 : -errno;
        for (char *at = text; r == 0 && *at;)
                r = host_tree_entry(tree, &at);
        free(text);
        return r;
}

static inline int host_tree_remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) {
        (void) st;
        (void) kind;
        (void) where;
        return remove(path);
}

static inline void host_tree_remove(const char *tree) {
        (void) nftw(tree, host_tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
