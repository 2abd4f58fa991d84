/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How much shared memory a point's rings take and how it is divided: the agents make it so, and admission checks that
 * the host has it. There is one ring per thread and direction. A ring is a row of slots, each one whole message: a
 * ring holds at least one, and messages never go in pieces.
 *
 *      area    a control page, then the rings, each of whole pages, so that each page has one owner
 *      ring    RING_HEAD_BYTES with the reader's word, then the slots
 *      slot    the state word and, when the message is short, the message beside it in the same cache line; else the
 *              message from the next line on. Slots are whole cache lines.
 */

#include "schema/spec/spec.h"

#define RING_LINE_BYTES 64u
#define RING_HEAD_BYTES 128u /* two lines: prefetchers take them in pairs */
#define RING_INLINE_AT 8u    /* where a short message lies in its slot */
#define RING_INLINE_MAX (RING_LINE_BYTES - RING_INLINE_AT)
#define RING_STREAM_BYTES (UINT64_C(4) << 20) /* size of a stream's ring without ring_bytes */
#define RING_ALL_BYTES (UINT64_C(32) << 20)   /* all rings together, unless two messages each take more */
#define RING_BYTES_MIN UINT64_C(4096)         /* of transport_options.ring_bytes */
#define RING_BYTES_MAX (UINT64_C(1) << 30)
#define RING_SLOTS_MAX (UINT32_C(1) << 28)

struct ring_layout {
        unsigned directions; /* rings per thread: 2 for a pingpong */
        uint64_t message_at; /* of a message in its slot */
        uint64_t slot_bytes;
        uint32_t slots;         /* of one ring; 0: options->ring_bytes is less than one slot */
        uint64_t control_bytes; /* before the first ring */
        uint64_t ring_bytes;    /* of one ring, head and slots, in whole pages */
        uint64_t area_bytes;    /* everything */
};

/* The layout of rings that carry a message's address each, for messages that lie in the slots of file_layout_of(): as
 * many slots as those are. */
struct ring_layout ring_layout_of_addresses(const struct point *p, uint64_t page_bytes);

/* page_bytes: of the pages that the area is made of (a huge page's size where the spec wants those). */
struct ring_layout ring_layout_of(const struct point *p, const struct transport_options *o, uint64_t page_bytes);
