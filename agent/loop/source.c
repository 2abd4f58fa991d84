/* SPDX-License-Identifier: MIT */

#include "agent/loop/source.h"

#include "agent/base/agent.h"
#include "agent/loop/buffer.h"
#include "agent/os/last-cache.h"
#include "schema/protocol/effective.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

static bool sends(const struct agent *a) {
        return workload_has_transport(a->setup.point.workload) && point_sends(&a->setup.point, a->end);
}

static void next_message(struct worker *w) {
        w->source += w->cold.stride;
        if (w->source == w->cold.end)
                w->source = w->cold.first;
}

int source_new(struct worker *w) {
        const struct point *p = &w->agent->setup.point;
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
        struct worker_source *s = &w->cold;
        w->fresh = w->agent->setup.fresh;
        if (p->source != SOURCE_COLD || !sends(w->agent))
                return 0;
        if (p->copy_mode == COPY_ZERO || point_is_queued(p))
                return failure_set(&w->failure, EOPNOTSUPP,
                                   "messages that the kernel reads later cannot come from a cold source");
        s->cache_bytes = last_cache_bytes();
        s->messages = point_source_messages(p, s->cache_bytes ? s->cache_bytes : SPEC_LAST_CACHE_DEFAULT);
        s->stride = (size_t) point_source_stride(p, page);
        if (point_sends_fields(p)) /* fields_new() makes them */
                return 0;
        s->length = (size_t) (page + s->messages * s->stride);
        int r = buffer_map(w, s->length, &s->memory);
        if (r < 0)
                return r;
        s->first = s->memory + page;
        s->end = s->memory + s->length;
        w->source = s->first;
        w->source_next = next_message;
        return 0;
}

void source_free(struct worker *w) {
        buffer_unmap(w->cold.memory, w->cold.length);
        w->cold.memory = w->source = NULL;
}

void source_effective(const struct agent *a, struct effective *e) {
        const struct worker_source *s = &a->workers[0].cold;
        if (!sends(a))
                return;
        effective_add_bool(e, SETTING_FRESH, a->setup.fresh || a->setup.verify == VERIFY_CHECKSUM);
        if (s->messages == 0)
                return;
        effective_add_number(e, SETTING_SOURCE_BYTES, s->messages * s->stride);
        effective_add_number(e, SETTING_SOURCE_MESSAGES, s->messages);
        if (s->cache_bytes) {
                effective_add_number(e, SETTING_LAST_CACHE_BYTES, s->cache_bytes);
                return;
        }
        effective_add_unknown(e, SETTING_LAST_CACHE_BYTES,
                              "the kernel does not show the caches of the CPU: 32 MiB are assumed");
}
