/* SPDX-License-Identifier: MIT */

/*
 * A set of hardware events per worker. The leader requests them from the daemon, thread by thread, after it has
 * unshared the workers' descriptor table (leader.c), so that theirs is unchanged. It opens those that the daemon is not
 * permitted to open itself, where it is permitted.
 */

#include "agent/measure/counters.h"

#include "agent/base/agent.h"
#include "schema/measure/perf-pass.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define ANSWER_NS (2 * NSEC_PER_SEC) /* well within the daemon's deadline for set-up */
#define SPARE 4u                     /* descriptors that counters leave to the leader, which opens files below /proc */

struct counters {
        struct agent *agent;
        uint32_t n;
        struct perf_source source;
        struct perf_set sets[];
};

/* Agents are not dumpable: a daemon without CAP_PERFMON may not count even those of its own user. An agent may still
 * count its own threads, as far as kernel.perf_event_paranoid allows it. */
static void open_refused(pid_t tid, struct perf_handles *handles) {
        struct perf_handles own;
        perf_source_kernel.open(NULL, tid, &own);
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        if (handles->of[event][mode] == -EACCES) {
                                handles->of[event][mode] = own.of[event][mode];
                                own.of[event][mode] = -EACCES;
                        }
        perf_handles_close(&own, &perf_source_kernel, -EACCES);
}

static bool is_refused(const struct perf_handles *handles) {
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        if (handles->of[event][mode] == -EACCES)
                                return true;
        return false;
}

static void request_from_daemon(void *userdata, pid_t tid, struct perf_handles *ret) {
        struct agent *a = userdata;
        if (!a->uncounted)
                a->uncounted = perf_pass_request(a->control_fd, tid, util_now_ns() + ANSWER_NS, ret);
        if (a->uncounted)
                perf_handles_fill(ret, a->uncounted);
        else if (is_refused(ret))
                open_refused(tid, ret);
}

struct perf_source counters_source(struct agent *a) {
        if (a->setup.point.workload == WORKLOAD_CONTEXT_SWITCH)
                return perf_source_none;
        return (struct perf_source){.open = request_from_daemon,
                                    .read = perf_source_kernel.read,
                                    .close = perf_source_kernel.close,
                                    .userdata = a};
}

int counters_new(struct agent *a, const struct perf_source *source, struct counters **ret) {
        struct counters *c = calloc(1, sizeof *c + a->n_workers * sizeof c->sets[0]);
        int spare[SPARE];

        if (!c)
                return failure_set(&a->failure, ENOMEM, "no memory for the counters of %" PRIu32 " threads",
                                   a->n_workers);
        c->agent = a;
        c->n = a->n_workers;
        c->source = *source;
        for (uint32_t i = 0; i < SPARE; i++)
                spare[i] = fcntl(a->event_fd, F_DUPFD_CLOEXEC, 0);
        for (uint32_t i = 0; i < c->n; i++)
                perf_set_init(&c->sets[i], &c->source, a->workers[i].tid);
        for (uint32_t i = 0; i < SPARE; i++)
                (void) util_close(spare[i]);
        *ret = c;
        if (a->uncounted == -EBADMSG)
                return failure_set(&a->failure, EBADMSG, "the daemon sent another message where counters were due");
        return 0;
}

void counters_free(struct counters *c) {
        if (!c)
                return;
        for (uint32_t i = 0; i < c->n; i++)
                perf_set_deinit(&c->sets[i]);
        free(c);
}

int counters_read(struct counters *c, uint32_t thread, struct counters_reading *ret) {
        perf_set_read(&c->sets[thread], &ret->perf);
        return usage_take(c->agent, thread, &ret->usage);
}

void counters_add(struct counters_totals *into, const struct counters_reading *later,
                  const struct counters_reading *earlier) {
        struct perf_totals perf;
        usage_add(&into->usage, &later->usage, &earlier->usage);
        perf_subtract(&later->perf, &earlier->perf, &perf);
        /* CPU time includes the ring's threads; the hardware counters do not, and would appear to */
        if (later->usage.ring_ns != earlier->usage.ring_ns)
                perf_totals_discard(&perf, -ECHILD);
        perf_totals_add(&into->perf, &perf);
}
