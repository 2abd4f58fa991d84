/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How messages are divided into slots of whole pages that both ends take in turn: a file's
 * (agent/transport/file/slots.c), a process's (agent/transport/process/process-vm.c), those that are sealed memory each
 * (agent/transport/memfd/memfd.c). The agents make them so, and the daemon checks beforehand that there is room.
 */

#include "schema/spec/spec.h"

#define FILE_LAYOUT_RING_BYTES (UINT64_C(4) << 20)
#define FILE_LAYOUT_SLOTS_MIN 2u
#define FILE_LAYOUT_SLOTS_MAX 64u

struct file_layout {
        uint64_t stride; /* from one slot to the next, whole pages */
        uint32_t slots;  /* per direction */
        uint64_t bytes;  /* of a thread's file: all slots of both directions */
};

/* Slots enough for both ends to be busy at once; a message that goes there and back needs one each way. */
static inline struct file_layout file_layout_of(const struct point *p, uint64_t page) {
        unsigned directions = point_directions(p);
        struct file_layout l = {.stride = (p->message_size + page - 1) / page * page};
        uint64_t n = FILE_LAYOUT_RING_BYTES / l.stride;
        l.slots = directions == 2             ? 1
                  : n < FILE_LAYOUT_SLOTS_MIN ? FILE_LAYOUT_SLOTS_MIN
                  : n > FILE_LAYOUT_SLOTS_MAX ? FILE_LAYOUT_SLOTS_MAX
                                              : (uint32_t) n;
        l.bytes = l.slots * l.stride * directions;
        return l;
}

#define FILE_LAYOUT_FILL_NS UINT64_C(20) /* a byte, to a device that is slow: 50 MB/s */

/* How long the files of all threads may take to be written once, before the start. The other end waits meanwhile
 * without a notification, so both wait this long wherever pages are to be in the cache. */
static inline uint64_t file_layout_fill_ns(const struct point *p, enum file_sync sync, uint64_t page) {
        return sync == FILE_SYNC_DIRECT ? 0 : p->threads * file_layout_of(p, page).bytes * FILE_LAYOUT_FILL_NS;
}
