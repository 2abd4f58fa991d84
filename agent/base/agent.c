/* SPDX-License-Identifier: MIT */

/* Functions on workers for all folders of the agent; see agent.h. agent/script/workers.c owns their threads. */

#include "agent/base/agent.h"

#include "schema/measure/recorder.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int worker_make_recorder(struct worker *w) {
        if (w->agent->setup.interval_ns == 0)
                return 0;
        w->latency = malloc(sizeof *w->latency);
        if (!w->latency)
                return failure_set(&w->failure, ENOMEM, "no memory for the latencies");
        memset(w->latency, 0,
               sizeof *w->latency); /* first touched here, so that its pages are placed for this thread */
        return 0;
}

bool workers_resting(const struct agent *a) {
        return __atomic_load_n(&a->busy, __ATOMIC_ACQUIRE) == 0;
}

bool workers_ended(const struct agent *a) {
        for (uint32_t i = 0; i < a->n_workers; i++)
                if (__atomic_load_n(&a->workers[i].stage, __ATOMIC_SEQ_CST) != WORKER_ENDED)
                        return false;
        return true;
}

const struct failure *workers_failure(const struct agent *a) {
        for (uint32_t i = 0; i < a->n_workers; i++) {
                const struct worker *w = &a->workers[i];
                if (__atomic_load_n(&w->resting, __ATOMIC_ACQUIRE) && w->failure.detail[0])
                        return &w->failure;
        }
        return NULL;
}

void worker_kick(struct worker *w) {
        if (!__atomic_load_n(&w->resting, __ATOMIC_ACQUIRE))
                /* The thread exists until it gets WORKER_QUIT. The id is the one that it stored itself: in a forked
                 * peer libc's cached id of the main thread is another process's. */
                (void) syscall(SYS_tgkill, getpid(), w->tid, SIGUSR1);
}
