/* SPDX-License-Identifier: MIT */

/* Adds up the parts of a worker's usage: its own counters, its thread's and those of the kernel's threads for it. */

#include "agent/measure/usage.h"

#include "agent/base/agent.h"
#include "agent/measure/kernel-threads.h"
#include "agent/os/thread-usage.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static uint64_t load(const uint64_t *counter) {
        return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void add_worker(struct usage *u, const struct worker *w) {
        u->partial_sends += load(&w->partial_sends);
        u->partial_receives += load(&w->partial_receives);
        u->eagain += load(&w->eagain);
        u->eintr += load(&w->eintr);
        u->zerocopy_sends += load(&w->zerocopy_sends);
        u->zerocopy_completions += load(&w->zerocopy_completions);
        u->zerocopy_copied += load(&w->zerocopy_copied);
        u->enobufs += load(&w->enobufs);
}

/* The share of a thread's CPU time that it spent in its loops: until a counted window begins it spins, and behind the
 * last message it proves its pages. A loop that ends meanwhile may have been counted for a microsecond longer. */
static uint64_t in_loops(struct worker *w, uint64_t cpu_ns) {
        bool loops = __atomic_load_n(&w->stage, __ATOMIC_ACQUIRE) == WORKER_LOOPS;
        uint64_t now_ns = loops ? cpu_ns - w->cpu_base_ns : load(&w->cpu_ns);
        if ((int64_t) (now_ns - w->cpu_seen_ns) > 0)
                w->cpu_seen_ns = now_ns;
        return w->cpu_seen_ns;
}

int usage_take(struct agent *a, uint32_t thread, struct usage *ret) {
        struct worker *w = &a->workers[thread];
        struct usage u = kernel_threads_usage(a, thread);
        uint64_t kernel_ns = u.cpu_ns;
        u.zerocopy = w->is_notified;
        u.parts_unseen = w->parts_unseen;
        add_worker(&u, w);
        int r = thread_usage_add(&u, w->tid);
        if (r < 0)
                return failure_set(&a->failure, -r, "the counters of thread %" PRIu32 " cannot be read: %s", thread,
                                   strerrordesc_np(-r));
        u.cpu_ns = kernel_ns + in_loops(w, u.cpu_ns - kernel_ns);
        *ret = u;
        return 0;
}
