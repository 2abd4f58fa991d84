/* SPDX-License-Identifier: MIT */

/* See undo.h. A record is "SAVED WANTED\n": it is replaced as a whole, and written before the setting is. */

#include "daemon/tune/undo.h"

#include "daemon/tune/setting.h"
#include "schema/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

struct undo_record {
        char saved[SETTING_VALUE_MAX], wanted[SETTING_WORD_MAX];
};

int undo_open(const char *path) {
        struct stat st;
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid() || (st.st_mode & 022))
                return -EPERM;
        return util_steal_fd(&fd);
}

/* An open file description of its own, whose lock ends with it. */
static int lock(int dir_fd) {
        _cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX) < 0)
                return -errno;
        return util_steal_fd(&fd);
}

static int record_read(int dir_fd, const char *name, struct undo_record *ret) {
        char line[2 * SETTING_VALUE_MAX];
        _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        ssize_t n = read(fd, line, sizeof(line) - 1);
        if (n < 0)
                return -errno;
        line[n] = '\0';
        line[strcspn(line, "\n")] = '\0';
        char *wanted = strchr(line, ' ');
        if (!wanted || (size_t) (wanted - line) >= sizeof(ret->saved) || strlen(wanted + 1) >= sizeof(ret->wanted))
                return -EBADMSG;
        *wanted++ = '\0';
        if (!setting_allows_saved(name, line) || !setting_allows(name, wanted))
                return -EBADMSG;
        memcpy(ret->saved, line, strlen(line) + 1);
        memcpy(ret->wanted, wanted, strlen(wanted) + 1);
        return 0;
}

static int record_write(int dir_fd, const char *name, const struct undo_record *u) {
        char line[2 * SETTING_VALUE_MAX], temporary[64];
        (void) snprintf(temporary, sizeof(temporary), ".%s", name);
        int length = snprintf(line, sizeof(line), "%s %s\n", u->saved, u->wanted);
        _cleanup_close_ int fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        ssize_t n = write(fd, line, (size_t) length);
        if (n != length)
                return n < 0 ? -errno : -EIO;
        return renameat(dir_fd, temporary, dir_fd, name) < 0 ? -errno : 0;
}

int undo_change(const char *root, int dir_fd, const char *name, const char *value) {
        struct undo_record u = {0};
        char now[SETTING_VALUE_MAX], saved[SETTING_VALUE_MAX];
        if (!setting_allows(name, value))
                return -EINVAL;
        _cleanup_close_ int lock_fd = lock(dir_fd);
        if (lock_fd < 0)
                return lock_fd;
        int r = setting_read(root, name, now);
        if (r < 0 || strcmp(now, value) == 0)
                return r;
        r = setting_save(root, name, saved);
        if (r < 0)
                return r;
        if (!setting_allows_saved(name, saved))
                return -EBADMSG; /* record_read() would refuse it */
        r = record_read(dir_fd, name, &u);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == -ENOENT || strcmp(u.wanted, now) != 0)
                memcpy(u.saved, saved, sizeof(saved));
        (void) snprintf(u.wanted, sizeof(u.wanted), "%s", value);
        r = record_write(dir_fd, name, &u);
        return r < 0 ? r : setting_write(root, name, value);
}

int undo_restore(const char *root, int dir_fd, const char *name) {
        struct undo_record u = {0};
        char offline[SETTING_LIST_MAX];
        if (!setting_title(name))
                return -EINVAL;
        _cleanup_close_ int lock_fd = lock(dir_fd);
        if (lock_fd < 0)
                return lock_fd;
        int r = record_read(dir_fd, name, &u);
        if (r < 0)
                return r;
        r = setting_revert(root, name, u.saved, u.wanted);
        if (r < 0)
                return r == -ENOENT ? -ENXIO : r; /* -ENOENT is for a record that is missing, not the setting */
        r = setting_out_of_reach(root, name, u.saved, SETTING_CPUS_OFFLINE, offline);
        if (r != -ENOENT) /* the record is needed again when they are back */
                return r;
        return unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
}
