/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The agent's interface to a workload: the loop that a worker runs and what it needs beside its buffer. Each workload
 * is one file and one line in the table of workload.c. A workload with one agent (a system call, a context switch)
 * brings a loop of its own and needs no transport.
 */

#include "agent/base/worker.h"
#include "agent/proof/pages.h"
#include "schema/terms.h"

struct agent;
struct effective;

struct workload_ops {
        enum workload workload;
        bool one_agent; /* no peer, no transport */
        /* Chooses w->loop. 0; -EOPNOTSUPP with w->failure. In the worker's thread, after the transport's attach. */
        int (*prepare)(struct worker *w);
        /* Leader: ends the processes that prepare started, also after a failure at any point. May be NULL. */
        void (*close)(struct agent *a);
        /* Main thread, after the workers have ended: frees w->channel. May be NULL. */
        void (*detach)(struct worker *w);
        /* List the processes that the workload forked, for the placement's proof, and pages beside the workers' that it
         * uses, as a transport's. Each may be NULL. */
        struct proof_member *(*members)(const struct agent *a, uint32_t *ret_n);
        int (*pages)(const struct agent *a, struct page_list *list);
        /* Leader: called when a member has no memory. Waits until it has ended and reports the reason: negative errno
         * with a->failure; 0 where all live. NULL without members. */
        int (*missing)(struct agent *a);
        /* Leader: called when no message completes any more. Reports a stopped member: negative errno with a->failure;
         * 0 where none is. NULL without members. */
        int (*stuck)(struct agent *a);
        /* Adds rows, as a transport's. May be NULL. */
        void (*effective)(const struct agent *a, struct effective *e);
};

/* NULL when this build has none. */
const struct workload_ops *workload_find(enum workload w);

extern const struct workload_ops workload_stream, workload_pingpong, workload_syscall, workload_context_switch;
