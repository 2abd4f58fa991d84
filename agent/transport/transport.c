/* SPDX-License-Identifier: MIT */

#include "agent/transport/transport.h"

#include "agent/base/agent.h"
#include "schema/protocol/effective.h"

#define TRANSPORT_OPS(id, stem, ...) [TRANSPORT_##id] = &transport_##stem,
static const struct transport_ops *const transports[TRANSPORT_COUNT] = {TRANSPORTS(TRANSPORT_OPS)};

const struct transport_ops *transport_find(enum transport t, enum engine e) {
        const struct transport_ops *ops = (unsigned) t < TRANSPORT_COUNT ? transports[t] : NULL;
        return ops && e == ENGINE_IO_URING ? ops->uring : ops;
}

void transport_put_chunks(const struct agent *a, struct effective *e) {
        uint64_t size = a->setup.point.message_size, chunk = a->setup.chunk_bytes;
        effective_add_number(e, SETTING_CHUNK_BYTES, chunk);
        effective_add_number(e, SETTING_CHUNKS_PER_MESSAGE, (size + chunk - 1) / chunk);
}
