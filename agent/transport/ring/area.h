/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The memory that contains the rings of one run, and everything about it that does not depend on its source: layout,
 * rendezvous, first touch, the proof, the report, the loops. A transport of shared memory is a carrier (which creates
 * and joins the memory) and ops that are these functions.
 *
 * Each ring's pages belong to its reader: the reader's thread touches them first, on its CPU and under its memory
 * policy, so that they are local to the end that waits for its loads; stores to another node are buffered, and no end
 * waits for them. The writer maps them only after that. The set-up's `buffer` policy, where it is given, applies to the
 * first touch. The proof lists them as "ring", at the end that owns them.
 */

#include "agent/transport/ring/ring.h"

struct effective;
struct page_list;
struct ring_area;

struct ring_carrier {
        /* First end: makes area_bytes of zeroed shared memory, untouched, without a name that would outlive a kill, and
         * fills fd or id, or memory at once. Second end: joins it by the fd or id that it received. Where memory stays
         * NULL, fd is mapped. 0; negative errno with a->failure. */
        int (*make)(struct agent *a, struct ring_area *area);
        int (*join)(struct agent *a, struct ring_area *area); /* NULL: fd is mapped */
        /* Adds rows. May be NULL. */
        void (*effective)(const struct ring_area *area, struct effective *e);
        /* Layout of rings that carry only the addresses of messages in other memory. NULL: the rings carry the
         * messages. */
        struct ring_layout (*layout_of)(const struct point *p, uint64_t page_bytes);
        /* In the reader's thread, after its ring's memory is touched and before the writer maps it. 0; negative errno
         * with w->failure. May be NULL. */
        int (*attach_reader)(struct worker *w, unsigned char *ring_memory);
        size_t channel_bytes; /* of a worker's channel, which begins with a struct ring_channel; 0: it is one */
};

struct ring_area {
        const struct ring_carrier *carrier;
        struct ring_layout layout;
        size_t size;         /* of a slot's contents */
        uint64_t page_bytes; /* size of the area's pages */
        bool huge;
        unsigned char *memory;
        int fd;             /* -1: this carrier has none */
        int64_t id;         /* of carriers without a descriptor */
        uint64_t copy_rate; /* sum of each thread's bytes per second with a CPU of its own; atomic */
};

int ring_area_open(struct agent *a, const struct ring_carrier *carrier);

/* The memory of the ring that an end writes into; NULL: a stream's receiver has none. */
unsigned char *ring_area_out(const struct worker *w);
/* Adds rows on the ends' waits. */
void ring_area_put_waits(const struct agent *a, struct effective *e);

/* Members of struct transport_ops. */
int ring_area_attach(struct worker *w);
void ring_area_close(struct agent *a);
void ring_area_effective(const struct agent *a, struct effective *e);
int ring_area_pages(const struct agent *a, struct page_list *list);
const struct transport_loops *ring_area_loops(const struct agent *a);

/* All of a transport's ops but its name and open. */
#define RING_AREA_OPS                                                                                                  \
        .engine = ENGINE_SYSCALL, .attach = ring_area_attach, .close = ring_area_close, .loops = ring_area_loops,      \
        .effective = ring_area_effective, .pages = ring_area_pages
