/* SPDX-License-Identifier: MIT */

/*
 * System V shared memory (man 2 shmget), private, so that it has no key by which another process could open it; its id
 * is passed on by value. It is marked for removal as soon as the first end has attached it: on Linux the second end can
 * still attach it, and the kernel frees it when both have ended.
 */

#include "agent/transport/ring/area.h"
#include "agent/transport/transport.h"

#include <inttypes.h>
#include <sys/shm.h>

static int attach(struct agent *a, struct ring_area *area) {
        void *p = shmat((int) area->id, NULL, 0);
        if (p == (void *) -1)
                return failure_set(&a->failure, errno, "System V segment %" PRId64 " cannot be attached: %s", area->id,
                                   strerrordesc_np(errno));
        area->memory = p;
        return 0;
}

static int explain(struct agent *a, const struct ring_area *area, int error) {
        const char *why = strerrordesc_np(error);
        if (error == EINVAL)
                why = "more than kernel.shmmax";
        else if (error == ENOSPC)
                why = "more than kernel.shmall or kernel.shmmni allow in all";
        else if (error == ENOMEM && area->huge)
                why = "not enough free huge pages (HugePages_Free of /proc/meminfo)";
        else if (error == EPERM && area->huge)
                why = "huge pages are for the group vm.hugetlb_shm_group";
        return failure_set(&a->failure, error, "a System V segment of %" PRIu64 " bytes cannot be made: %s",
                           area->layout.area_bytes, why);
}

static int shm_sysv_make(struct agent *a, struct ring_area *area) {
        int id = shmget(IPC_PRIVATE, area->layout.area_bytes, IPC_CREAT | 0600 | (area->huge ? SHM_HUGETLB : 0));
        if (id < 0)
                return explain(a, area, errno);
        area->id = id;
        int r = attach(a, area);
        if (shmctl(id, IPC_RMID, NULL) < 0 && r == 0)
                r = failure_set(&a->failure, errno, "System V segment %d cannot be removed: %s", id,
                                strerrordesc_np(errno));
        return r;
}

static const struct ring_carrier shm_sysv = {.make = shm_sysv_make, .join = attach};

static int shm_sysv_open(struct agent *a) {
        return ring_area_open(a, &shm_sysv);
}

const struct transport_ops transport_shm_sysv = {.transport = TRANSPORT_SHM_SYSV, .open = shm_sysv_open, RING_AREA_OPS};
