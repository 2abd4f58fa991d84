/* SPDX-License-Identifier: MIT */

/* How shared memory is divided into rings: the edges of each rule, and that nothing overlaps or exceeds its limit. */

#include "schema/transport/ring-layout.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#define PAGE UINT64_C(4096)

static struct point point_of(enum workload w, uint64_t size, uint32_t threads) {
        return (struct point){.workload = w, .message_size = size, .threads = threads};
}

static void short_messages_lie_beside_their_word(void) {
        static const struct {
                uint64_t size, at, slot;
        } cases[] = {{1, 8, 64},
                     {56, 8, 64},
                     {57, 64, 128},
                     {64, 64, 128},
                     {65, 64, 192},
                     {4096, 64, 4160},
                     {1 << 30, 64, (1 << 30) + 64}};
        const struct transport_options none = {0};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct point p = point_of(WORKLOAD_STREAM, cases[i].size, 1);
                struct ring_layout l = ring_layout_of(&p, &none, PAGE);
                if (l.message_at != cases[i].at || l.slot_bytes != cases[i].slot)
                        CHECK_FAIL("%" PRIu64 " bytes lie at %" PRIu64 " of %" PRIu64, cases[i].size, l.message_at,
                                   l.slot_bytes);
        }
}

static void slots_by_default(void) {
        static const struct {
                enum workload workload;
                uint64_t size;
                uint32_t threads, slots;
        } cases[] = {
                {WORKLOAD_STREAM, 1, 1, 65536}, /* 4 MiB */
                {WORKLOAD_STREAM, 56, 1, 65536},   {WORKLOAD_STREAM, 57, 1, 32768},
                {WORKLOAD_STREAM, 4096, 1, 1008},  {WORKLOAD_STREAM, 4u << 20, 1, 2}, /* never fewer than two */
                {WORKLOAD_STREAM, 1u << 30, 1, 2}, {WORKLOAD_PINGPONG, 1, 1, 2},      /* one message is under way */
                {WORKLOAD_PINGPONG, 4096, 1, 2},   {WORKLOAD_STREAM, 1, 8, 65536},    /* 32 MiB for all: just */
                {WORKLOAD_STREAM, 1, 9, 58254},                                       /* … and no more */
                {WORKLOAD_STREAM, 1, 1024, 512},
        };
        const struct transport_options none = {0};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct point p = point_of(cases[i].workload, cases[i].size, cases[i].threads);
                struct ring_layout l = ring_layout_of(&p, &none, PAGE);
                if (l.slots != cases[i].slots)
                        CHECK_FAIL("case %zu has %u slots, expected %u", i, l.slots, cases[i].slots);
        }
}

static void slots_as_requested(void) {
        struct point p = point_of(WORKLOAD_STREAM, 4096, 3);
        const struct {
                uint64_t bytes;
                uint32_t slots;
        } cases[] = {{4159, 0}, {4160, 1}, {8319, 1}, {8320, 2}, {UINT64_C(1) << 62, RING_SLOTS_MAX}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct transport_options options = {.ring_bytes = cases[i].bytes};
                CHECK_UINT(ring_layout_of(&p, &options, PAGE).slots, cases[i].slots);
        }
}

/* A page has one owner: everything is whole pages, and the parts come to the whole. */
static void parts_are_whole_pages(void) {
        const uint64_t pages[] = {PAGE, 65536, UINT64_C(2) << 20};
        for (size_t k = 0; k < ELEMENTS(pages); k++)
                for (uint32_t threads = 1; threads <= 1024; threads = threads * 5 + 1)
                        for (uint64_t size = 1; size <= UINT64_C(1) << 24; size = size * 7 + 1)
                                for (unsigned both = 0; both < 2; both++) {
                                        struct point p =
                                                point_of(both ? WORKLOAD_PINGPONG : WORKLOAD_STREAM, size, threads);
                                        const struct transport_options none = {0};
                                        struct ring_layout l = ring_layout_of(&p, &none, pages[k]);
                                        CHECK_UINT(l.directions, both ? 2 : 1);
                                        CHECK(l.slot_bytes % RING_LINE_BYTES == 0);
                                        CHECK(l.message_at + size <= l.slot_bytes);
                                        CHECK(l.control_bytes % pages[k] == 0 && l.ring_bytes % pages[k] == 0);
                                        CHECK(l.control_bytes >= UINT64_C(4) * threads * l.directions);
                                        CHECK(l.ring_bytes >= RING_HEAD_BYTES + l.slots * l.slot_bytes);
                                        CHECK_UINT(l.area_bytes,
                                                   l.control_bytes + l.ring_bytes * l.directions * threads);
                                }
}

/* The length of a ring is an option of those rows whose memory is divided so, and of no other. */
static void applies_to_shared_memory_alone(void) {
        unsigned n = 0;
        for (enum transport t = 0; t < TRANSPORT_COUNT; t++) {
                const struct transport_term *term = &transport_terms[t];
                bool is_ring = term->carrier == CARRIER_RING;
                if (is_ring != ((term->options & OPTION(RING_BYTES)) != 0) ||
                    (is_ring && (term->delivery != DELIVERY_SLOTS || !term->has_wait)))
                        CHECK_FAIL("%s: its carrier does not go with its options", term->name);
                n += is_ring;
        }
        CHECK(n >= 4);
}

int main(void) {
        RUN(short_messages_lie_beside_their_word);
        RUN(slots_by_default);
        RUN(slots_as_requested);
        RUN(parts_are_whole_pages);
        RUN(applies_to_shared_memory_alone);
        return check_end();
}
