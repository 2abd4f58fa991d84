/* SPDX-License-Identifier: MIT */

/* Mapping, placing and touching of message memory; see buffer.h. */

#include "agent/loop/buffer.h"

#include "agent/base/agent.h"
#include "agent/os/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

int buffer_map(struct worker *w, size_t length, unsigned char **ret) {
        const struct agent_placement *given = &w->agent->setup.placement;
        void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                return failure_set(&w->failure, errno, "no buffer of %zu bytes for thread %" PRIu32 ": %s", length,
                                   w->index, strerrordesc_np(errno));
        int r = policy_of_range(p, length, given->buffer, &given->buffer_nodes);
        if (r < 0) {
                (void) munmap(p, length);
                return failure_set(&w->failure, -r, "the buffer of thread %" PRIu32 " cannot be placed: %s", w->index,
                                   strerrordesc_np(-r));
        }
        /* The first touch puts the pages where the range's or this thread's policy says; and not with zeros, of which
         * the kernel has one page for everybody. */
        memset(p, 0x5a, length);
        *ret = p;
        return 0;
}
