/* SPDX-License-Identifier: MIT */

/* The limits follow from the transport's layout of its files. */

#include "daemon/run/sandbox/file-limits.h"

#include "daemon/host/hostfs.h"
#include "schema/transport/file-layout.h"
#include "schema/transport/ring-layout.h"
#include "schema/util.h"

#include <unistd.h>

#define SPARE_BYTES (UINT64_C(16) << 20) /* of all files of a run together */
#define SPARE_FILES 2u

uint64_t run_huge_page_bytes(void) {
        struct hostfs h = HOSTFS_MACHINE;
        uint64_t kib = 0;
        return hostfs_meminfo(&h, "Hugepagesize", &kib) == 0 ? kib * 1024 : 0;
}

unsigned run_files(const struct point *p) {
        bool pipes = point_has_carrier(p, CARRIER_PIPE);
        return SPARE_FILES + (pipes ? 2 * p->threads : 1);
}

uint64_t run_file_bytes(const struct point *p, const struct transport_options *options) {
        const struct transport_options o = options_for_point(options, p);
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE), bytes = 0;
        if (point_has_carrier(p, CARRIER_FILE))
                bytes = file_layout_of(p, page).bytes;
        else if (point_has_carrier(p, CARRIER_MEMFD))
                bytes = file_layout_of(p, page).stride;
        else if (point_has_carrier(p, CARRIER_RING))
                bytes = ring_layout_of(p, &o, o.huge_pages == TOGGLE_ON ? run_huge_page_bytes() : page).area_bytes;
        return bytes + SPARE_BYTES / run_files(p);
}
