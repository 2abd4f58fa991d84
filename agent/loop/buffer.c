/* SPDX-License-Identifier: MIT */

#include "agent/loop/buffer.h"

#include "agent/base/agent.h"
#include "agent/os/policy.h"
#include "agent/os/procfs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t round_up(size_t n, size_t to) {
        return (n + to - 1) / to * to;
}

/* NULL with errno. */
static unsigned char *map_aligned(size_t length, size_t alignment) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE), reserved;
        if (__builtin_add_overflow(length, alignment + 2 * page, &reserved)) {
                errno = ENOMEM;
                return NULL;
        }
        unsigned char *all = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED)
                return NULL;
        unsigned char *end = all + reserved, *p = all + (round_up((uintptr_t) all + page, alignment) - (uintptr_t) all);
        if (mmap(p, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
                int error = errno;
                (void) munmap(all, reserved);
                errno = error;
                return NULL;
        }
        unsigned char *before = p - page, *behind = p + length + page;
        if (before > all)
                (void) munmap(all, (size_t) (before - all));
        if (end > behind)
                (void) munmap(behind, (size_t) (end - behind));
        return p;
}

/* The largest power of two that fits, up to a huge page: kernels from 6.8 on have pages of sizes in between, which
 * begin at a multiple of themselves, too. */
static size_t alignment_of(size_t length) {
        long huge = procfs_setting("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        size_t alignment = (size_t) sysconf(_SC_PAGESIZE);
        while (huge > 0 && 2 * alignment <= (size_t) huge && 2 * alignment <= length)
                alignment *= 2;
        return alignment;
}

void buffer_unmap(unsigned char *memory, size_t length) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        if (memory)
                (void) munmap(memory - page, round_up(length, page) + 2 * page);
}

int buffer_map(struct worker *w, size_t length, unsigned char **ret) {
        const struct agent_placement *given = &w->agent->setup.placement;
        size_t page = (size_t) sysconf(_SC_PAGESIZE),
               mapped = length > SIZE_MAX - page ? length : round_up(length, page);
        unsigned char *p = map_aligned(mapped, alignment_of(mapped));
        if (!p)
                return failure_set(&w->failure, errno, "no buffer of %zu bytes for thread %" PRIu32 ": %s", length,
                                   w->index, strerrordesc_np(errno));
        int r = policy_of_range(p, length, given->buffer, &given->buffer_nodes);
        if (r < 0) {
                buffer_unmap(p, length);
                return failure_set(&w->failure, -r, "the buffer of thread %" PRIu32 " cannot be placed: %s", w->index,
                                   strerrordesc_np(-r));
        }
        /* The first touch places the pages by the policy of the range or of this thread. It must be a write, as reads
         * of untouched memory all map the kernel's one page of zeros. */
        memset(p, 0x5a, length);
        *ret = p;
        return 0;
}
