/* SPDX-License-Identifier: MIT */

/* Names for the file systems that a run's directory may be on. Source: linux/magic.h, man 2 statfs. */

#include "agent/os/filesystem.h"

#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

static const struct {
        uint32_t magic;
        const char *name;
} names[] = {
        {TMPFS_MAGIC, "tmpfs"},
        {RAMFS_MAGIC, "ramfs"},
        {HUGETLBFS_MAGIC, "hugetlbfs"},
        {EXT4_SUPER_MAGIC, "ext4"}, /* and ext2, ext3 */
        {XFS_SUPER_MAGIC, "xfs"},
        {BTRFS_SUPER_MAGIC, "btrfs"},
        {F2FS_SUPER_MAGIC, "f2fs"},
        {0x2fc12fc1, "zfs"},
        {OVERLAYFS_SUPER_MAGIC, "overlayfs"},
        {NFS_SUPER_MAGIC, "nfs"},
        {FUSE_SUPER_MAGIC, "fuse"},
        {V9FS_MAGIC, "9p"},
};

void filesystem_put(struct effective *e, int fd) {
        struct statfs fs;
        char reason[64];
        const char *name = NULL;
        if (fstatfs(fd, &fs) < 0)
                (void) snprintf(reason, sizeof reason, "fstatfs: %s", strerrordesc_np(errno));
        else {
                (void) snprintf(reason, sizeof reason, "magic number 0x%lx is not known here",
                                (unsigned long) fs.f_type);
                for (size_t i = 0; i < ELEMENTS(names); i++)
                        if ((uint32_t) fs.f_type == names[i].magic)
                                name = names[i].name;
        }
        if (!name) {
                effective_add_unknown(e, SETTING_FILE_SYSTEM, reason);
                return;
        }
        effective_add_text(e, SETTING_FILE_SYSTEM, name);
        effective_add_bool(e, SETTING_FILE_SYSTEM_IN_MEMORY, strcmp(name, "tmpfs") == 0 || strcmp(name, "ramfs") == 0);
}
