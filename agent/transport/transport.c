/* SPDX-License-Identifier: MIT */

/* From the rows of schema/transport/table.h to the agent's code for them. */

#include "agent/transport/transport.h"

#include "agent/base/agent.h"
#include "schema/json/json.h"

#define TRANSPORT_OPS(id, stem, ...) [TRANSPORT_##id] = &transport_##stem,
static const struct transport_ops *const transports[TRANSPORT_COUNT] = {TRANSPORTS(TRANSPORT_OPS)};

const struct transport_ops *transport_find(enum transport t, enum engine e) {
        const struct transport_ops *ops = (unsigned) t < TRANSPORT_COUNT ? transports[t] : NULL;
        return ops && e == ENGINE_IO_URING ? ops->uring : ops;
}

void transport_put_chunks(const struct agent *a, struct json_writer *w) {
        uint64_t size = a->setup.point.message_size, chunk = a->setup.chunk_bytes;
        json_member_u64(w, "chunk_bytes", chunk);
        json_member_u64(w, "chunks_per_message", (size + chunk - 1) / chunk);
}
