/* SPDX-License-Identifier: MIT */

#include "daemon/store/database/dir.h"

#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int dir_open(const char *dir) {
        int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int dir_create(int dir_fd, const char *name, int flags, mode_t mode) {
        struct stat st;
        _cleanup_close_ int fd =
                openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, mode);
        if (fd < 0 || fstat(dir_fd, &st) < 0 || (geteuid() == 0 && fchown(fd, st.st_uid, st.st_gid) < 0))
                return -errno;
        return util_steal_fd(&fd);
}
