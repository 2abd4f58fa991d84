/* SPDX-License-Identifier: MIT */

/*
 * A shared mapping of a file in the run's directory. The file is unlinked as soon as it is open and is passed on as a
 * descriptor. The report names the file system: on tmpfs the file is memory only; on a disk's file system the kernel
 * writes changed pages back from time to time, which the figures include.
 */

#include "agent/os/filesystem.h"
#include "agent/transport/ring/area.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"

#include <fcntl.h>
#include <inttypes.h>

#define FILE_NAME "mapping"

static int mmap_file_make(struct agent *a, struct ring_area *area) {
        if (area->huge)
                return failure_set(&a->failure, EOPNOTSUPP,
                                   "huge_pages: a file has huge pages on hugetlbfs only, and no run's directory is on "
                                   "one");
        area->fd = openat(a->run_dir_fd, FILE_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (area->fd < 0)
                return failure_set(&a->failure, errno, FILE_NAME " cannot be made in the run's directory: %s",
                                   strerrordesc_np(errno));
        if (unlinkat(a->run_dir_fd, FILE_NAME, 0) < 0)
                return failure_set(&a->failure, errno, FILE_NAME " cannot be unlinked: %s", strerrordesc_np(errno));
        if (ftruncate(area->fd, (off_t) area->layout.area_bytes) < 0)
                return failure_set(&a->failure, errno, FILE_NAME " cannot be made %" PRIu64 " bytes long: %s",
                                   area->layout.area_bytes, strerrordesc_np(errno));
        return 0;
}

static void mmap_file_effective(const struct ring_area *area, struct effective *e) {
        filesystem_put(e, area->fd);
}

static const struct ring_carrier mmap_file = {.make = mmap_file_make, .effective = mmap_file_effective};

static int mmap_file_open(struct agent *a) {
        return ring_area_open(a, &mmap_file);
}

const struct transport_ops transport_mmap_file = {
        .transport = TRANSPORT_MMAP_FILE, .open = mmap_file_open, RING_AREA_OPS};
