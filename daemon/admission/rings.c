/* SPDX-License-Identifier: MIT */
/*
 * Checks rings in shared memory: whether one holds a message at all, and whether the memory or file system that they
 * lie in has room for all of them. Called by admission.c; the arithmetic is that of the agents
 * (schema/transport/ring-layout.h).
 *
 * Source: shmget(2), memfd_create(2), can_do_hugetlb_shm() of fs/hugetlbfs/inode.c,
 * Documentation/admin-guide/mm/hugetlbpage.rst.
 */

#include "daemon/admission/internal.h"

#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

static const char *ring_pointer(const struct admission *a) {
        return options_pointer(&a->spec->options, "/transport_options/ring_bytes");
}

static bool wants_huge(const struct admission *a) {
        return a->options.huge_pages == TOGGLE_ON;
}

/* 0 where there is none. */
static uint64_t meminfo(struct admission *a, const char *name) {
        uint64_t v = 0;
        return hostfs_meminfo(a->h, name, &v) == 0 ? v : 0;
}

uint64_t admission_ring_bytes(struct admission *a, struct ring_layout *ret) {
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
        if (!point_has_carrier(a->p, CARRIER_RING))
                return 0;
        if (wants_huge(a))
                page = meminfo(a, "Hugepagesize") * 1024;
        if (page == 0)
                page = UINT64_C(2) << 20; /* check_huge_pages() refuses */
        *ret = ring_layout_of(a->p, &a->options, page);
        return ret->area_bytes;
}

static int check_huge_pages(struct admission *a, const struct ring_layout *l) {
        uint64_t page = meminfo(a, "Hugepagesize") * 1024, free_pages = meminfo(a, "HugePages_Free");
        uint64_t more = admission_setting(a, "/proc/sys/vm/nr_overcommit_hugepages"),
                 surplus = meminfo(a, "HugePages_Surp");

        if (page == 0)
                return refuse(a->r, 422, "not-available", "/transport_options/huge_pages",
                              "huge_pages is not available: this kernel has none (built without CONFIG_HUGETLBFS)");
        if (more != ADMISSION_UNLIMITED && more > surplus)
                free_pages += more - surplus;
        if (l->area_bytes / page > free_pages)
                return admission_refuse(a, "/transport_options/huge_pages", "huge pages free", free_pages,
                                        l->area_bytes / page,
                                        "the rings do not fit into the free huge pages (to have more: sysctl "
                                        "vm.nr_hugepages=PAGES)");
        return 0;
}

/* Huge pages of System V segments are for one group, and for CAP_IPC_LOCK, which agents have not. */
static int check_huge_group(struct admission *a) {
        uint64_t group = admission_setting(a, "/proc/sys/vm/hugetlb_shm_group");
        char have[32], agents[32];
        if (transport_terms[a->p->transport].limit != LIMIT_SHM_SYSV || !a->agents || group == ADMISSION_UNLIMITED ||
            agent_identity_is_in(a->agents, (gid_t) group))
                return 0;
        (void) snprintf(have, sizeof(have), "%" PRIu64, group);
        (void) snprintf(agents, sizeof(agents), "%u", a->agents->gid);
        return refuse_limit(a->r, "/transport_options/huge_pages", host_limits[HOST_HUGETLB_GROUP].name, have, agents,
                            "huge pages of System V shared memory are for group %s, which is not the agents' (to admit "
                            "theirs: %s)",
                            have, host_limits[HOST_HUGETLB_GROUP].raise);
}

/* Bytes of the ring that holds just one message at a time; 0: no options make one that small, or it is too large as
 * well. */
static uint64_t least_ring_that_fits(struct admission *a, const struct ring_layout *l, uint64_t have) {
        struct transport_options o = a->options;
        if (o.ring_bytes)
                return 0;
        for (o.ring_bytes = RING_BYTES_MIN; o.ring_bytes < l->slot_bytes;)
                o.ring_bytes *= 2;
        bool fits = o.ring_bytes <= RING_BYTES_MAX &&
                    ring_layout_of(a->p, &o, (uint64_t) sysconf(_SC_PAGESIZE)).area_bytes <= have;
        return fits ? o.ring_bytes : 0;
}

/* Checks the space that rings lie in: free space of a file system, kernel.shmmax, memory. */
static int check_carrier(struct admission *a, const struct ring_layout *l) {
        const struct capacity_question q = {
                .transport = a->p->transport, .runtime_dir = a->runtime_dir, .queues = a->queues};
        struct capacity c;
        char why[300], smaller[100] = "";

        int x = capacity_read(a->h, &q, &c);
        if (x < 0 || !c.known || l->area_bytes <= c.largest_transfer)
                return x;
        uint64_t ring_bytes = least_ring_that_fits(a, l, c.largest_transfer);
        if (ring_bytes)
                (void) snprintf(smaller, sizeof(smaller),
                                "; or transport_options.ring_bytes of %" PRIu64 ", which holds one message",
                                ring_bytes);
        (void) snprintf(why, sizeof(why), "the rings of all threads, in bytes, do not fit (to have more: %.120s%s)",
                        c.raise, smaller);
        return admission_refuse(a, a->options.ring_bytes ? ring_pointer(a) : "/message_size", c.limit,
                                c.largest_transfer, l->area_bytes, why);
}

int check_rings(struct admission *a) {
        struct ring_layout l;

        if (admission_ring_bytes(a, &l) == 0)
                return 0;
        if (l.slots == 0)
                return admission_refuse(a, ring_pointer(a), strrchr(ring_pointer(a), '/') + 1, a->options.ring_bytes,
                                        l.slot_bytes, "a ring holds at least one message with its state, in bytes");
        int x = wants_huge(a) ? check_huge_pages(a, &l) : 0;
        if (x == 0 && wants_huge(a))
                x = check_huge_group(a);
        /* huge pages lie in no file system, and are no part of the memory that is available; shmmax counts them */
        return x < 0 || (wants_huge(a) && transport_terms[a->p->transport].limit != LIMIT_SHM_SYSV)
                       ? x
                       : check_carrier(a, &l);
}
