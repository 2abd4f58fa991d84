/* SPDX-License-Identifier: MIT */

/* Slots of a file: how many, how far apart, and what they come to, at every size's edge. */

#include "schema/transport/file-layout.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#define MIB (UINT64_C(1) << 20)

static void slots_by_size(void) {
        static const struct {
                enum workload workload;
                uint64_t size, stride;
                uint32_t slots;
                uint64_t bytes;
        } cases[] = {
                {WORKLOAD_STREAM, 1, 4096, 64, 64 * 4096},
                {WORKLOAD_STREAM, 4096, 4096, 64, 64 * 4096},
                {WORKLOAD_STREAM, 4097, 8192, 64, 64 * 8192},
                {WORKLOAD_STREAM, 65536, 65536, 64, 4 * MIB},
                {WORKLOAD_STREAM, 65537, 69632, 60, UINT64_C(60) * 69632}, /* the first that are fewer */
                {WORKLOAD_STREAM, 2 * MIB, 2 * MIB, 2, 4 * MIB},
                {WORKLOAD_STREAM, 4 * MIB, 4 * MIB, 2, 8 * MIB}, /* two, whatever they take */
                {WORKLOAD_STREAM, 1024 * MIB, 1024 * MIB, 2, 2048 * MIB},
                {WORKLOAD_PINGPONG, 1, 4096, 1, 2 * 4096},
                {WORKLOAD_PINGPONG, 1024 * MIB, 1024 * MIB, 1, 2048 * MIB},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct point p = {.workload = cases[i].workload, .message_size = cases[i].size};
                struct file_layout l = file_layout_of(&p, 4096);
                if (l.stride != cases[i].stride || l.slots != cases[i].slots || l.bytes != cases[i].bytes)
                        CHECK_FAIL("case %zu: %u slots each %" PRIu64 " bytes, %" PRIu64 " in all", i, l.slots,
                                   l.stride, l.bytes);
        }
}

static void slots_are_whole_pages_of_any_size(void) {
        for (uint64_t page = 4096; page <= 65536; page *= 4)
                for (uint64_t size = 1; size <= 4 * MIB; size = size * 3 + 1) {
                        const struct point p = {.workload = WORKLOAD_STREAM, .message_size = size};
                        struct file_layout l = file_layout_of(&p, page);
                        CHECK(l.stride % page == 0 && l.stride >= size && l.stride - size < page);
                        CHECK(l.slots >= FILE_LAYOUT_SLOTS_MIN && l.slots <= FILE_LAYOUT_SLOTS_MAX);
                        CHECK_UINT(l.bytes, l.slots * l.stride);
                        CHECK(l.bytes <= FILE_LAYOUT_RING_BYTES || l.slots == FILE_LAYOUT_SLOTS_MIN);
                }
}

/* All that both ends write, but where nothing goes through the page cache. */
static void filling_takes_its_time(void) {
        struct point p = {.workload = WORKLOAD_STREAM, .message_size = 4096, .threads = 3};
        CHECK_UINT(file_layout_fill_ns(&p, FILE_SYNC_PAGE_CACHE, 4096), UINT64_C(3) * 64 * 4096 * 20);
        CHECK_UINT(file_layout_fill_ns(&p, FILE_SYNC_FSYNC, 4096), UINT64_C(3) * 64 * 4096 * 20);
        CHECK_UINT(file_layout_fill_ns(&p, FILE_SYNC_DIRECT, 4096), 0);
        p = (struct point){.workload = WORKLOAD_PINGPONG, .message_size = 1024 * MIB, .threads = SPEC_THREADS_MAX};
        CHECK_UINT(file_layout_fill_ns(&p, FILE_SYNC_FSYNC, 4096), SPEC_THREADS_MAX * 2048 * MIB * 20);
}

int main(void) {
        RUN(slots_by_size);
        RUN(slots_are_whole_pages_of_any_size);
        RUN(filling_takes_its_time);
        return check_end();
}
