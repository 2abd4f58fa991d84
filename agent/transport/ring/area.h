/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_RING_AREA_H
#define IPCLAB_AGENT_RING_AREA_H

/*
 * The memory that the rings of one run lie in, and everything about it that does not depend on where it comes from:
 * layout, rendezvous, who touches what, the proof, the report, the loops. A transport of shared memory is a carrier
 * (how the memory is made and joined) and ops that are these functions.
 *
 * Each ring's pages belong to its reader: the reader's thread touches them first, on its CPU and under its memory
 * policy, so that they are near to who waits for the loads; stores to another node are buffered and waited for by
 * nobody. The writer maps them only after that. The set-up's `buffer` policy, where it is given, is in force while
 * they are touched. The proof lists them as "ring", at the end that owns them.
 */

#include "agent/transport/ring/ring.h"

struct json_writer;
struct page_list;
struct ring_area;

struct ring_carrier {
        /* First end: area_bytes of zeroed shared memory, not touched, without a name that would outlive a kill: fills
         * fd or id, or memory at once. Second end: the same from the fd or id that it was sent. Who leaves memory NULL
         * has fd mapped. 0; negative errno with a->failure. */
        int (*make)(struct agent *a, struct ring_area *area);
        int (*join)(struct agent *a, struct ring_area *area); /* NULL: there is nothing but to map fd */
        /* Members of `effective`. May be NULL. */
        void (*effective)(const struct ring_area *area, struct json_writer *w);
        /* Of rings that carry addresses alone, of messages that lie elsewhere: how they are divided. NULL: they carry
         * the messages. */
        struct ring_layout (*layout_of)(const struct point *p, uint64_t page_bytes);
        /* In the reader's thread, when its ring's memory is there and before the writer has it. 0; negative errno with
         * w->failure. May be NULL. */
        int (*attach_reader)(struct worker *w, unsigned char *ring_memory);
        size_t channel_bytes; /* of a worker's channel, which begins with a struct ring_channel; 0: it is one */
};

struct ring_area {
        const struct ring_carrier *carrier;
        struct ring_layout layout;
        size_t size;         /* of what a slot carries */
        uint64_t page_bytes; /* of the pages that the area is made of */
        bool huge;
        unsigned char *memory;
        int fd;             /* -1: this carrier has none */
        int64_t id;         /* of carriers without a descriptor */
        uint64_t copy_rate; /* bytes per second that each thread could send with a CPU of its own, added up; atomic */
};

int ring_area_open(struct agent *a, const struct ring_carrier *carrier);

/* The memory of the ring that an end writes into; NULL: a stream's receiver has none. */
unsigned char *ring_area_out(const struct worker *w);
/* Members of `effective` on how the ends wait. */
void ring_area_put_waits(const struct agent *a, struct json_writer *w);

/* For struct transport_ops. */
int ring_area_attach(struct worker *w);
void ring_area_close(struct agent *a);
void ring_area_effective(const struct agent *a, struct json_writer *w);
int ring_area_pages(const struct agent *a, struct page_list *list);
const struct transport_loops *ring_area_loops(const struct agent *a);

/* Everything of a transport's ops but its name and how it opens. */
#define RING_AREA_OPS                                                                                                  \
        .engine = ENGINE_SYSCALL, .attach = ring_area_attach, .close = ring_area_close, .loops = ring_area_loops,      \
        .effective = ring_area_effective, .pages = ring_area_pages

#endif
