/* SPDX-License-Identifier: MIT */

/* The reserve of a full disk. Only the store uses it. */

#include "daemon/store/reserve.h"
#include "daemon/log.h"
#include "daemon/store/dir.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

int reserve_keep(const char *dir) {
        struct statvfs fs;
        struct stat st;
        _cleanup_close_ int dir_fd = dir_open(dir);
        if (dir_fd < 0)
                return dir_fd;
        if (fstatat(dir_fd, RESERVE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size == RESERVE_BYTES)
                return 0;
        if (fstatvfs(dir_fd, &fs) < 0)
                return -errno;
        if ((uint64_t) fs.f_bavail * fs.f_frsize < 3 * (uint64_t) RESERVE_BYTES)
                return -ENOSPC;
        _cleanup_close_ int fd = dir_create(dir_fd, RESERVE_FILE, 0600);
        if (fd < 0)
                return fd;
        int r = -posix_fallocate(fd, 0, RESERVE_BYTES);
        if (r < 0)
                (void) unlinkat(dir_fd, RESERVE_FILE, 0); /* the first error is what is reported */
        return r;
}

bool reserve_release(const char *dir) {
        _cleanup_close_ int dir_fd = dir_open(dir);
        if (dir_fd < 0 || unlinkat(dir_fd, RESERVE_FILE, 0) < 0)
                return false;
        log_warning("the disk that holds %s is full: the %u bytes of " RESERVE_FILE " are given up", dir,
                    RESERVE_BYTES);
        return true;
}
