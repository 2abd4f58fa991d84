/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The agent's interface to a transport: the creation of its channels, and its loops. Each transport is one file
 * (stream/pipe.c is the model, skeleton.c the commented start for the next one), which defines transport_NAME for the
 * row NAME of schema/transport/table.h.
 *
 * There is one channel per worker: thread i of the first end exchanges messages with thread i of the second. Life:
 *
 *      open       leader    both ends in step over the peer channel (peer.h): create, pass, open, remove names
 *      attach     worker    on its own CPU and under its own memory policy: map and touch what the worker owns
 *      loops      worker    instantiated from loops.h with the transport's inline functions
 *      detach     main      frees each worker's part that attach made, when the threads have ended
 *      close      leader    removes names in the file system or the IPC namespace; also after a failure at any point
 */

#include "agent/base/worker.h"
#include "agent/proof/pages.h"
#include "schema/terms.h"

struct agent;
struct effective;

/* One loop per role. NULL: this transport does not support that workload. */
struct transport_loops {
        worker_loop sender, receiver;
        worker_loop initiator, responder;
        worker_loop duplex; /* either end of two streams at once: sends and receives */
};

struct transport_ops {
        enum transport transport; /* the row; with engine io_uring several rows may share one */
        enum engine engine;
        const struct transport_ops *uring; /* the same with engine io_uring; NULL: the row has no engine */

        /* Makes every worker's channel (send_fd, receive_fd, channel). 0; negative errno with a->failure. */
        int (*open)(struct agent *a);
        /* In the worker's thread. 0; negative errno with w->failure. May be NULL. */
        int (*attach)(struct worker *w);
        /* Undoes attach as far as it went; not called when the process ends in a failure. May be NULL. */
        void (*detach)(struct worker *w);
        /* Undoes open as far as it went. NULL-safe against a->transport_data. May be NULL. */
        void (*close)(struct agent *a);
        /* Returns the loops for this agent's set-up (copy mode, wait mode). */
        const struct transport_loops *(*loops)(const struct agent *a);
        /* Adds rows of settings in force: sizes and modes, with units in their names. May be NULL. */
        void (*effective)(const struct agent *a, struct effective *e);
        /* Adds pages that carry messages beside the workers' buffers ("ring"), for the placement's proof. May be
         * NULL. */
        int (*pages)(const struct agent *a, struct page_list *list);
};

/* Returns NULL when the transport does not exist or has no such engine. */
const struct transport_ops *transport_find(enum transport t, enum engine e);

/* Adds rows for a set-up that sends messages in chunks: chunk_bytes and chunks_per_message. */
void transport_put_chunks(const struct agent *a, struct effective *e);

#define TRANSPORT_DECLARATION(id, stem, ...) extern const struct transport_ops transport_##stem;
TRANSPORTS(TRANSPORT_DECLARATION)
#undef TRANSPORT_DECLARATION
extern const struct transport_ops transport_skeleton; /* has no row */
/* The io_uring variants, for `uring` of the others: one for each kind of channel. */
extern const struct transport_ops transport_uring_pipe, transport_uring_stream, transport_uring_packet,
        transport_uring_file, transport_uring_tcp;
