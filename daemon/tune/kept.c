/* SPDX-License-Identifier: MIT */

/* See kept.h. A file is "ORIGINAL WANTED\n", replaced as a whole, and written before the setting is. */

#include "daemon/tune/kept.h"

#include "daemon/tune/setting.h"
#include "schema/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

struct kept {
        char original[SETTING_VALUE_MAX], wanted[SETTING_VALUE_MAX];
};

int kept_open(const char *path) {
        struct stat st;
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid() || (st.st_mode & 022))
                return -EPERM;
        return util_steal_fd(&fd);
}

/* A lock of its own, which goes with the descriptor. */
static int lock(int dir_fd) {
        _cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX) < 0)
                return -errno;
        return util_steal_fd(&fd);
}

static int kept_read(int dir_fd, const char *name, struct kept *ret) {
        char line[2 * SETTING_VALUE_MAX];
        struct kept k = {0};
        _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        ssize_t n = read(fd, line, sizeof(line) - 1);
        if (n < 0)
                return -errno;
        line[n] = '\0';
        if (sscanf(line, "%31s %31s", k.original, k.wanted) != 2 || !setting_allows(name, k.original))
                return -EBADMSG;
        *ret = k;
        return 0;
}

static int kept_write(int dir_fd, const char *name, const struct kept *k) {
        char line[2 * SETTING_VALUE_MAX], temporary[64];
        (void) snprintf(temporary, sizeof(temporary), ".%s", name);
        int length = snprintf(line, sizeof(line), "%s %s\n", k->original, k->wanted);
        _cleanup_close_ int fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        ssize_t n = write(fd, line, (size_t) length);
        if (n != length)
                return n < 0 ? -errno : -EIO;
        return renameat(dir_fd, temporary, dir_fd, name) < 0 ? -errno : 0;
}

int kept_change(const char *root, int dir_fd, const char *name, const char *value) {
        struct kept k = {0};
        char now[SETTING_VALUE_MAX];
        if (!setting_allows(name, value))
                return -EINVAL;
        _cleanup_close_ int held = lock(dir_fd);
        if (held < 0)
                return held;
        int r = setting_read(root, name, now);
        if (r < 0 || strcmp(now, value) == 0)
                return r;
        r = kept_read(dir_fd, name, &k);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == -ENOENT || strcmp(k.wanted, now) != 0)
                memcpy(k.original, now, sizeof(now));
        (void) snprintf(k.wanted, sizeof(k.wanted), "%s", value);
        r = kept_write(dir_fd, name, &k);
        return r < 0 ? r : setting_write(root, name, value);
}

int kept_restore(const char *root, int dir_fd, const char *name) {
        struct kept k = {0};
        char now[SETTING_VALUE_MAX];
        if (!setting_title(name))
                return -EINVAL;
        _cleanup_close_ int held = lock(dir_fd);
        if (held < 0)
                return held;
        int r = kept_read(dir_fd, name, &k);
        if (r < 0)
                return r;
        r = setting_read(root, name, now);
        if (r == 0 && strcmp(now, k.wanted) == 0)
                r = setting_write(root, name, k.original);
        if (r < 0)
                return r == -ENOENT ? -ENXIO : r; /* the setting is not there; what is kept of it is */
        return unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
}
