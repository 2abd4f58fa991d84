/* SPDX-License-Identifier: MIT */

/* The arithmetic of rings in shared memory, in one place for the agents that make them and the daemon that admits them.
 */

#include "schema/transport/ring-layout.h"

#include "schema/transport/file-layout.h"

#define CONTROL_WORD_BYTES 4u
#define SLOTS_MIN 2u /* the one is written while the other is read */

static uint64_t round_up(uint64_t bytes, uint64_t unit) {
        return (bytes + unit - 1) / unit * unit;
}

/* A stream has enough slots to even out the ends' different speeds, and more than a CPU's own cache holds: by the time
 * the writer's lines are read they have been evicted to the cache that both ends share, which is read faster than
 * another CPU's own (rings of 4 MiB moved messages of 4 KiB six to ten times as fast as of 256 KiB, on CPUs with
 * 1 MiB each and 32 MiB between them).
 *
 * A round trip has one message under way at a time, and in few lines, which are reused while both CPUs still
 * cache them, it arrives sooner: with 2 or 4 slots a byte goes there and back about as fast as two lines that are
 * handed over without any ring, with 8 and more at seven tenths of that. */
static uint64_t slots_by_default(const struct point *p, uint64_t slot_bytes) {
        uint64_t bytes = RING_STREAM_BYTES;
        if (p->workload != WORKLOAD_STREAM)
                return SLOTS_MIN;
        if (bytes > RING_ALL_BYTES / p->threads)
                bytes = RING_ALL_BYTES / p->threads;
        uint64_t slots = bytes / slot_bytes;
        return slots < SLOTS_MIN ? SLOTS_MIN : slots;
}

struct ring_layout ring_layout_of(const struct point *p, const struct transport_options *o, uint64_t page_bytes) {
        struct ring_layout l = {.directions = point_directions(p)};
        bool beside = p->message_size <= RING_INLINE_MAX;
        l.message_at = beside ? RING_INLINE_AT : RING_LINE_BYTES;
        l.slot_bytes = beside ? RING_LINE_BYTES : RING_LINE_BYTES + round_up(p->message_size, RING_LINE_BYTES);
        uint64_t slots = o->ring_bytes ? o->ring_bytes / l.slot_bytes : slots_by_default(p, l.slot_bytes);
        l.slots = (uint32_t) (slots < RING_SLOTS_MAX ? slots : RING_SLOTS_MAX);
        l.control_bytes = round_up((uint64_t) p->threads * l.directions * CONTROL_WORD_BYTES, page_bytes);
        l.ring_bytes = round_up(RING_HEAD_BYTES + l.slots * l.slot_bytes, page_bytes);
        l.area_bytes = l.control_bytes + l.ring_bytes * l.directions * p->threads;
        return l;
}

struct ring_layout ring_layout_of_addresses(const struct point *p, uint64_t page_bytes) {
        const struct transport_options o = {.ring_bytes = file_layout_of(p, page_bytes).slots * RING_LINE_BYTES};
        struct point addresses = *p;
        addresses.message_size = sizeof(uint64_t);
        return ring_layout_of(&addresses, &o, page_bytes);
}
