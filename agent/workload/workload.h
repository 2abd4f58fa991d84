/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_WORKLOAD_H
#define IPCLAB_AGENT_WORKLOAD_H

/*
 * What a workload is to the agent: which loop a worker runs and what it needs beside its buffer. One file per workload
 * and one line in the table of workload.c. A workload with one agent (a system call, a context switch) brings a loop of
 * its own and needs no transport.
 */

#include "agent/base/worker.h"
#include "agent/proof/pages.h"
#include "schema/terms.h"

struct agent;
struct json_writer;

struct workload_ops {
        enum workload workload;
        bool one_agent; /* no peer, no transport */
        /* Chooses w->loop. 0; -EOPNOTSUPP with w->failure. In the worker's thread, after the transport's attach. */
        int (*prepare)(struct worker *w);
        /* Leader: ends what prepare began beside the worker, also after a failure at any point. May be NULL. */
        void (*close)(struct agent *a);
        /* Main thread, after the workers have ended: frees w->channel. May be NULL. */
        void (*detach)(struct worker *w);
        /* Processes that the workload forked, for the placement's proof, and pages beside the workers' that it works
         * on, as a transport's. Each may be NULL. */
        struct proof_member *(*members)(const struct agent *a, uint32_t *ret_n);
        int (*pages)(const struct agent *a, struct page_list *list);
        /* Leader: a member was found without memory. Waits until it has ended and says how: negative errno with
         * a->failure; 0 where all live. NULL without members. */
        int (*missing)(struct agent *a);
        /* Leader: nothing moves any more. Says which member is stopped: negative errno with a->failure; 0 where none
         * is. NULL without members. */
        int (*stuck)(struct agent *a);
        /* Members of the `effective` object, as a transport's. May be NULL. */
        void (*effective)(const struct agent *a, struct json_writer *w);
};

/* NULL when this build has none. */
const struct workload_ops *workload_find(enum workload w);

extern const struct workload_ops workload_stream, workload_pingpong, workload_syscall, workload_context_switch;

#endif
