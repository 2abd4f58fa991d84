/* SPDX-License-Identifier: MIT */

/*
 * POSIX shared memory (man 7 shm_overview). /dev/shm has no namespace of its own, so the object is unlinked before any
 * other use, and is passed on as a descriptor. shm_open(3) has no huge pages: where they are requested the object is a
 * memfd (man 2 memfd_create), which differs only in never having had a name.
 */

#include "agent/transport/ring/area.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/random.h>

static int open_object(struct agent *a) {
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
        int fd = area->huge ? memfd_create("ipclab", MFD_CLOEXEC | MFD_HUGETLB) : open_object(a);
        if (fd < 0)
                return failure_set(&a->failure, errno, "memfd_create with MFD_HUGETLB: %s", strerrordesc_np(errno));
        area->fd = fd;
        if (ftruncate(fd, (off_t) area->layout.area_bytes) < 0)
                return failure_set(&a->failure, errno, "shared memory cannot be made %" PRIu64 " bytes long: %s",
                                   area->layout.area_bytes, strerrordesc_np(errno));
        return 0;
}

static void shm_posix_effective(const struct ring_area *area, struct effective *e) {
        effective_add_text(e, SETTING_OBJECT, area->huge ? "memfd_create" : "shm_open");
}

static const struct ring_carrier shm_posix = {.make = shm_posix_make, .effective = shm_posix_effective};

static int shm_posix_open(struct agent *a) {
        return ring_area_open(a, &shm_posix);
}

const struct transport_ops transport_shm_posix = {
        .transport = TRANSPORT_SHM_POSIX, .open = shm_posix_open, RING_AREA_OPS};
