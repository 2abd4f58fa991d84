/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_FULL_DISK_H
#define IPCLAB_TESTS_FULL_DISK_H

/* A disk on which nothing is free for the store's own check of it, for a test that is linked with
 * --wrap=statvfs64. */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/statvfs.h>

/* NOLINTBEGIN(bugprone-reserved-identifier) */
int __real_statvfs64(const char *path, struct statvfs *fs);
int __wrap_statvfs64(const char *path, struct statvfs *fs);
/* NOLINTEND(bugprone-reserved-identifier) */

static atomic_bool disk_is_full;

int __wrap_statvfs64(const char *path, struct statvfs *fs) {
        int r = __real_statvfs64(path, fs);
        if (disk_is_full)
                fs->f_bavail = 0;
        return r;
}

#endif
