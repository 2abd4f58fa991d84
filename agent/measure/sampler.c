/* SPDX-License-Identifier: MIT */

/*
 * Snapshots and their differences. All message counts are read first, in a few nanoseconds per thread, behind one
 * reading of the clock; then all histograms, in a few microseconds per thread, in the same order each time, so that
 * each histogram covers the same time as its count: where a worker has gone on in between, all is read again, a few
 * times; the kernel's and the hardware's counters and slower operations follow.
 */

#include "agent/measure/sampler.h"

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "agent/measure/kernel-threads.h"
#include "agent/measure/parts.h"
#include "agent/proof/proof.h"
#include "schema/measure/histogram.h"
#include "schema/measure/recorder.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

/* Copies of histograms during which no worker ended a message are had at once where a message takes longer than they
 * do. Where it is shorter there are none, and what is left is the messages of some microseconds, unless the leader lost
 * its CPU meanwhile. */
#define TRIES 4u
#define TRIES_LATE 16u
#define LATE_NS (40 * NSEC_PER_USEC) /* for each thread */

struct sampler {
        struct agent *agent;
        uint64_t opened_ns, taken_ns; /* window begin, last snapshot */
        uint64_t total;               /* messages between the two, all threads */
        uint64_t due_ns;              /* when the window was to begin, at both ends */
        struct parts *parts;
        uint64_t *began, *messages, *now; /* per thread: at the window's begin, at the last snapshot, at this one */
        struct counters_reading *opened, *before, *after; /* per thread: at the window's begin, and as messages, now */
        struct histogram *latency, *later;                /* per thread: as messages, now; NULL when nothing is timed */
        struct histogram difference;
};

static void copy_histograms(const struct sampler *s, struct histogram *ret) {
        for (uint32_t i = 0; ret && i < s->agent->n_workers; i++)
                recorder_copy(s->agent->workers[i].latency, &ret[i]);
}

int sampler_new(struct agent *a, const struct stops *stops, struct sampler **ret) {
        struct sampler *s = calloc(1, sizeof *s);
        if (s) {
                s->agent = a;
                s->began = calloc(a->n_workers, sizeof *s->began);
                s->messages = calloc(a->n_workers, sizeof *s->messages);
                s->now = calloc(a->n_workers, sizeof *s->now);
                s->opened = calloc(a->n_workers, sizeof *s->opened);
                s->before = calloc(a->n_workers, sizeof *s->before);
                s->after = calloc(a->n_workers, sizeof *s->after);
                if (a->workers[0].latency) {
                        s->latency = calloc(a->n_workers, sizeof *s->latency);
                        s->later = calloc(a->n_workers, sizeof *s->later);
                }
        }
        if (!s || !s->began || !s->messages || !s->now || !s->opened || !s->before || !s->after ||
            (a->workers[0].latency && (!s->latency || !s->later))) {
                sampler_free(s);
                return failure_set(&a->failure, ENOMEM, "no memory for the samples of %" PRIu32 " threads",
                                   a->n_workers);
        }
        int r = parts_new(a, stops, &s->parts);
        if (r < 0) {
                sampler_free(s);
                return r;
        }
        if (s->latency) { /* pages that are touched for the first time would make the first copies late */
                copy_histograms(s, s->latency);
                copy_histograms(s, s->later);
        }
        *ret = s;
        return 0;
}

void sampler_free(struct sampler *s) {
        if (!s)
                return;
        parts_free(s->parts);
        free(s->opened);
        free(s->before);
        free(s->after);
        free(s->began);
        free(s->messages);
        free(s->now);
        free(s->latency);
        free(s->later);
        free(s);
}

static uint64_t snapshot(struct sampler *s, uint64_t at_ns) {
        uint64_t now_ns = at_ns ? at_ns : util_now_ns();
        for (uint32_t i = 0; i < s->agent->n_workers; i++)
                s->now[i] = worker_messages(&s->agent->workers[i]);
        return now_ns;
}

static bool have_gone_on(const struct sampler *s) {
        for (uint32_t i = 0; i < s->agent->n_workers; i++)
                if (worker_messages(&s->agent->workers[i]) != s->now[i])
                        return true;
        return false;
}

/* The same with the histograms, where something is timed. */
static uint64_t snapshot_all(struct sampler *s, uint64_t at_ns, struct histogram *ret) {
        const uint64_t late_ns = s->agent->n_workers * LATE_NS;
        for (unsigned tries = 1;; tries++) {
                uint64_t now_ns = snapshot(s, at_ns);
                copy_histograms(s, ret);
                if (!ret || at_ns || !have_gone_on(s) || tries == TRIES_LATE ||
                    (tries >= TRIES && util_now_ns() - now_ns <= late_ns))
                        return now_ns;
        }
}

static int read_counters(struct sampler *s, struct counters_reading *ret) {
        int r = kernel_threads_scan(s->agent);
        for (uint32_t i = 0; r == 0 && i < s->agent->n_workers; i++)
                r = counters_read(s->agent->counters, i, &ret[i]);
        return r;
}

static uint64_t sum(const uint64_t *counts, uint32_t n) {
        uint64_t all = 0;
        for (uint32_t i = 0; i < n; i++)
                all += counts[i];
        return all;
}

int sampler_open(struct sampler *s, uint64_t due_ns, uint64_t at_ns) {
        struct agent *a = s->agent;
        s->opened_ns = s->taken_ns = snapshot_all(s, at_ns, s->latency);
        for (uint32_t i = 0; i < a->n_workers; i++)
                s->began[i] = s->messages[i] = s->now[i];
        s->due_ns = due_ns;
        s->total = 0;
        int r = read_counters(s, s->opened); /* before the connections, which wait for the workers, as in take() */
        if (r < 0)
                return r;
        memcpy(s->before, s->opened, a->n_workers * sizeof *s->before);
        parts_open(s->parts, s->taken_ns, sum(s->now, a->n_workers), s->latency);
        return 0;
}

int sampler_part(struct sampler *s) {
        uint64_t now_ns = snapshot(s, 0);
        if (workers_ended(s->agent))
                return 0;
        proof_observe_rights(s->agent);
        return parts_end(s->parts, now_ns, sum(s->now, s->agent->n_workers), NULL);
}

static int send_sample(struct sampler *s, uint32_t thread, uint64_t interval_ns) {
        /* A sample begins in the same second at both ends, regardless of those before it. */
        uint64_t since_ns = s->taken_ns > s->due_ns ? s->taken_ns - s->due_ns : 0;
        struct message m = {
                .type = MESSAGE_SAMPLE,
                .sample = {.thread = thread,
                           .second = (uint32_t) (since_ns / s->agent->setup.interval_ns),
                           .begin_ns = s->taken_ns,
                           .interval_ns = interval_ns,
                           .messages = s->now[thread] - s->messages[thread]},
        };
        m.sample.bytes = m.sample.messages * s->agent->setup.point.message_size;
        if (s->latency) {
                histogram_subtract(&s->difference, &s->later[thread], &s->latency[thread]);
                m.sample.latency = &s->difference; /* only lent: no message_deinit() */
        }
        counters_add(&m.sample.counters, &s->after[thread], &s->before[thread]);
        return agent_send(s->agent, &m);
}

/* Takes the samples of what snapshot_all() read at now_ns. */
static int take(struct sampler *s, uint64_t now_ns) {
        struct agent *a = s->agent;
        if (now_ns <= s->taken_ns) /* two readings of the clock in one nanosecond */
                now_ns = s->taken_ns + 1;
        int r = read_counters(s, s->after);
        if (r == 0 && a->setup.interval_ns)
                r = parts_end(s->parts, now_ns, sum(s->now, a->n_workers), s->later);
        if (r == 0)
                r = parts_send(s->parts);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                s->total += s->now[i] - s->messages[i];
                if (a->setup.interval_ns)
                        r = send_sample(s, i, now_ns - s->taken_ns);
                s->messages[i] = s->now[i];
                s->before[i] = s->after[i];
        }
        if (r < 0)
                return r;
        struct histogram *former = s->latency;
        s->latency = s->later;
        s->later = former;
        s->taken_ns = now_ns;
        proof_observe_rights(a);
        proof_observe(a);
        return 0;
}

int sampler_take(struct sampler *s) {
        uint64_t now_ns = snapshot_all(s, 0, s->later);
        return workers_ended(s->agent) ? 0 : take(s, now_ns);
}

int sampler_close(struct sampler *s, uint64_t at_ns, struct window *ret) {
        int r = take(s, snapshot_all(s, at_ns, s->later));
        if (r < 0)
                return r;
        ret->window_ns = s->taken_ns - s->opened_ns;
        ret->messages = s->total;
        ret->counters = (struct counters_totals){};
        for (uint32_t i = 0; r == 0 && i < s->agent->n_workers; i++) {
                struct counters_totals counted = {};
                counters_add(&counted, &s->after[i], &s->opened[i]);
                counters_add(&ret->counters, &s->after[i], &s->opened[i]);
                /* the thread's totals of the window, also where the set-up has no samples */
                struct message m = {.type = MESSAGE_THREAD,
                                    .thread = {.thread = i, .messages = s->now[i] - s->began[i], .counters = counted}};
                m.thread.bytes = m.thread.messages * s->agent->setup.point.message_size;
                r = agent_send(s->agent, &m);
        }
        return r;
}
