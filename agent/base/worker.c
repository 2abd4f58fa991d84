/* SPDX-License-Identifier: MIT */

/* What other rooms may want of a worker or of all of them; see worker.h. Their threads are agent/script/workers.c's. */

#include "agent/base/worker.h"

#include "agent/base/agent.h"
#include "schema/measure/histogram.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int worker_make_histogram(struct worker *w) {
        if (w->agent->setup.interval_ns == 0)
                return 0;
        w->latency = malloc(sizeof *w->latency);
        if (!w->latency)
                return failure_set(&w->failure, ENOMEM, "no memory for a histogram");
        memset(w->latency, 0, sizeof *w->latency); /* touched here: its pages are this thread's */
        return 0;
}

bool workers_resting(const struct agent *a) {
        return __atomic_load_n(&a->busy, __ATOMIC_ACQUIRE) == 0;
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
                /* The thread exists until it is told to quit. By its own word for its id: libc's note of the main
                 * thread's is another process's where the agent was cloned. */
                (void) syscall(SYS_tgkill, getpid(), w->tid, SIGUSR1);
}
