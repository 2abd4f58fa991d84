/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_DAMAGE_H
#define IPCLAB_TESTS_DAMAGE_H

/* Files of a store that are damaged behind its back. */

#include "daemon/store/database/pages.h"
#include "daemon/store/integrity.h"
#include "tests/unit/store-fixture.h"

static inline int64_t file_size(const struct fixture *f, const char *name) {
        struct stat st;
        return stat(fixture_path(f, name), &st) < 0 ? -errno : st.st_size;
}

static inline int flip_bit(const struct fixture *f, const char *name, int64_t byte, unsigned bit) {
        uint8_t b;
        _cleanup_close_ int fd = open(fixture_path(f, name), O_RDWR | O_CLOEXEC);
        if (fd < 0 || pread(fd, &b, 1, byte) != 1)
                return -EIO;
        b ^= (uint8_t) (1u << bit);
        return pwrite(fd, &b, 1, byte) == 1 ? 0 : -EIO;
}

static inline uint32_t damaged(const struct fixture *f) {
        struct pages_damage d;
        pages_damage(fixture_path(f, "ipclab.db"), &d);
        return d.n;
}

#endif
