/* SPDX-License-Identifier: MIT */

/*
 * A shared anonymous mapping, which a program shares with its forked peer: it was made before the fork (fork-peer.c),
 * untouched, so that each page is placed on the node of the ring's owner.
 */

#include "agent/transport/ring/area.h"
#include "agent/transport/transport.h"

#include <inttypes.h>

static int take_inherited(struct agent *a, struct ring_area *area) {
        const struct forked_memory *m = &a->inherited;
        if (!m->memory)
                return failure_set(&a->failure, EINVAL, "this agent was started alone, and has inherited no memory");
        if (m->length != area->layout.area_bytes || m->huge != area->huge)
                return failure_set(&a->failure, EINVAL,
                                   "inherited are %zu bytes%s, the rings of this set-up take %" PRIu64 "%s", m->length,
                                   m->huge ? " in huge pages" : "", area->layout.area_bytes,
                                   area->huge ? " in huge pages" : "");
        area->memory = m->memory;
        return 0;
}

/* The id that is sent has no meaning beyond the completion of the control page. */
static int mmap_anonymous_make(struct agent *a, struct ring_area *area) {
        area->id = 0;
        return take_inherited(a, area);
}

static const struct ring_carrier mmap_anonymous = {.make = mmap_anonymous_make, .join = take_inherited};

static int mmap_anonymous_open(struct agent *a) {
        return ring_area_open(a, &mmap_anonymous);
}

const struct transport_ops transport_mmap_anonymous = {
        .transport = TRANSPORT_MMAP_ANONYMOUS, .open = mmap_anonymous_open, RING_AREA_OPS};
