/* SPDX-License-Identifier: MIT */

/* The transports of this build: a line each. */

#include "agent/transport/transport.h"

#include "agent/base/agent.h"
#include "schema/json/json.h"
#include "schema/util.h"

static const struct transport_ops *const transports[] = {
        &transport_tcp,
        &transport_pipe,
        &transport_fifo,
        &transport_file,
        &transport_mmap_anonymous,
        &transport_mmap_file,
        &transport_shm_posix,
        &transport_shm_sysv,
        &transport_unix_stream,
        &transport_unix_dgram,
        &transport_unix_seqpacket,
        &transport_msgq_sysv,
        &transport_msgq_posix,
        &transport_uring_tcp,
        &transport_uring_pipe,
        &transport_uring_fifo,
        &transport_uring_unix_stream,
        &transport_uring_unix_dgram,
        &transport_uring_unix_seqpacket,
        &transport_uring_file,
};

const struct transport_ops *transport_find(enum transport t, enum engine e) {
        for (size_t i = 0; i < ELEMENTS(transports); i++)
                if (transports[i]->transport == t && transports[i]->engine == e)
                        return transports[i];
        return NULL;
}

void transport_put_chunks(const struct agent *a, struct json_writer *w) {
        uint64_t size = a->setup.point.message_size, chunk = a->setup.chunk_bytes;
        json_member_u64(w, "chunk_bytes", chunk);
        json_member_u64(w, "chunks_per_message", (size + chunk - 1) / chunk);
}
