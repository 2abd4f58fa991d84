/* SPDX-License-Identifier: MIT */

/*
 * POSIX shared memory (man 7 shm_overview), which is a file in /dev/shm and is passed on as a descriptor. /dev/shm has
 * no namespace of its own, and what an agent that is killed has made there stays: so the file never has a name
 * (O_TMPFILE), or, where that file system cannot do so, loses it before any other use (shm_open(3)). Neither has huge
 * pages: where they are requested the object is a memfd (man 2 memfd_create).
 */

#include "agent/transport/ring/area.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/random.h>

#define DIRECTORY "/dev/shm" /* of glibc's shm_open(3) */

static int open_named(struct agent *a) {
        char name[40];
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != (ssize_t) sizeof number)
                return failure_set(&a->failure, errno, "getrandom: %s", strerrordesc_np(errno));
        (void) snprintf(name, sizeof name, "/ipclab-%016" PRIx64, number);
        int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return failure_set(&a->failure, errno, "shm_open: %s", strerrordesc_np(errno));
        if (shm_unlink(name) < 0) {
                int error = errno;
                (void) util_close(fd);
                return failure_set(&a->failure, error, "shm_unlink: %s", strerrordesc_np(error));
        }
        return fd;
}

static int shm_posix_make(struct agent *a, struct ring_area *area) {
        int fd = area->huge ? memfd_create("ipclab", MFD_CLOEXEC | MFD_HUGETLB)
                            : open(DIRECTORY, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0 && area->huge)
                return failure_set(&a->failure, errno, "memfd_create with MFD_HUGETLB: %s", strerrordesc_np(errno));
        if (fd < 0)
                fd = open_named(a);
        if (fd < 0)
                return fd;
        area->fd = fd;
        if (ftruncate(fd, (off_t) area->layout.area_bytes) < 0)
                return failure_set(&a->failure, errno, "shared memory cannot be made %" PRIu64 " bytes long: %s",
                                   area->layout.area_bytes, strerrordesc_np(errno));
        return 0;
}

static void shm_posix_effective(const struct ring_area *area, struct effective *e) {
        int flags = fcntl(area->fd, F_GETFL); /* those of open(2), in either end */
        bool named = flags < 0 || (flags & O_TMPFILE) != O_TMPFILE;
        effective_add_text(e, SETTING_OBJECT, area->huge ? "memfd_create" : named ? "shm_open" : "O_TMPFILE");
}

static const struct ring_carrier shm_posix = {.make = shm_posix_make, .effective = shm_posix_effective};

static int shm_posix_open(struct agent *a) {
        return ring_area_open(a, &shm_posix);
}

const struct transport_ops transport_shm_posix = {
        .transport = TRANSPORT_SHM_POSIX, .open = shm_posix_open, RING_AREA_OPS};
