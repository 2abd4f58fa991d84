/* SPDX-License-Identifier: MIT */

/* The reserve of a full disk. Only the store uses it. */

#include "daemon/store/database/reserve.h"
#include "daemon/log.h"
#include "daemon/store/database/dir.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static uint64_t wanted_bytes(const struct statvfs *fs, uint64_t has) {
        uint64_t third = ((uint64_t) fs->f_bavail * fs->f_frsize + has) / 3;
        return third < RESERVE_BYTES ? third / RESERVE_STEP_BYTES * RESERVE_STEP_BYTES : RESERVE_BYTES;
}

int reserve_keep(const char *dir) {
        struct statvfs fs;
        struct stat st;
        _cleanup_close_ int dir_fd = dir_open(dir);
        if (dir_fd < 0)
                return dir_fd;
        if (fstatat(dir_fd, RESERVE_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
                st.st_size = 0;
        if (fstatvfs(dir_fd, &fs) < 0)
                return -errno;
        uint64_t wanted = wanted_bytes(&fs, (uint64_t) st.st_size);
        if ((uint64_t) st.st_size >= wanted)
                return st.st_size > 0 ? 0 : -ENOSPC;
        _cleanup_close_ int fd = dir_create(dir_fd, RESERVE_FILE, 0, 0600);
        if (fd < 0)
                return fd;
        int r = -posix_fallocate(fd, 0, (off_t) wanted);
        /* Some of it may be allocated by then. The first error is what is reported. */
        if (r < 0 && (st.st_size > 0 ? ftruncate(fd, st.st_size) : unlinkat(dir_fd, RESERVE_FILE, 0)) < 0)
                log_warning("%s in %s is left longer than it was: %s", RESERVE_FILE, dir, strerrordesc_np(errno));
        return r;
}

bool reserve_release(const char *dir) {
        struct stat st;
        _cleanup_close_ int dir_fd = dir_open(dir);
        _cleanup_close_ int fd =
                dir_fd < 0 ? -1 : openat(dir_fd, RESERVE_FILE, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0)
                return false;
        uint64_t left = (uint64_t) st.st_size > RESERVE_STEP_BYTES ? (uint64_t) st.st_size - RESERVE_STEP_BYTES : 0;
        if ((left > 0 ? ftruncate(fd, (off_t) left) : unlinkat(dir_fd, RESERVE_FILE, 0)) < 0)
                return false;
        log_warning("the disk that holds %s is full: %" PRIu64 " bytes of " RESERVE_FILE " are given up, %" PRIu64
                    " are left",
                    dir, (uint64_t) st.st_size - left, left);
        return true;
}
