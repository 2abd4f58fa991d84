/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_PAIRS_H
#define IPCLAB_TESTS_PAIRS_H

/*
 * What the tests of real pairs of agents have in common: the program that they start, the CPUs that it may be given,
 * a run that must go well, and a window that is long enough. How a run is judged beyond that is each test's own.
 */

#include "schema/util.h"
#include "tests/bench/driver.h"

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The agent of the build under test; static. */
static inline const char *agent_path(void) {
        static char path[512];
        const char *root = getenv("IPCLAB_BUILD_ROOT");
        (void) snprintf(path, sizeof path, "%s/agent/ipclab-agent", root ? root : "build");
        return path;
}

/* 0; -1: not all of it has been written. */
static inline int write_all(int fd, const unsigned char *data, size_t n) {
        while (n) {
                ssize_t w = write(fd, data, n);
                if (w <= 0)
                        return -1;
                data += w;
                n -= (size_t) w;
        }
        return 0;
}

/* The first CPUs that this process may use, at most two, and how many these are; 0: the affinity cannot be read. */
static inline int allowed_cpus(int cpus[2]) {
        cpu_set_t set;
        int n = 0;
        if (sched_getaffinity(0, sizeof set, &set) < 0)
                return 0;
        for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
                if (CPU_ISSET(i, &set))
                        cpus[n++] = i;
        return n;
}

/* Stops a process and lets it go on, so many times. */
static inline void stop_and_continue(pid_t pid, unsigned times) {
        for (unsigned i = 0; i < times; i++) {
                (void) poll(NULL, 0, 10);
                (void) kill(pid, SIGSTOP);
                (void) poll(NULL, 0, 10);
                (void) kill(pid, SIGCONT);
        }
}

/* Says on stderr which case it was and what is wrong with it. */
static inline void explain(const struct driver_spec *s, const char *fault) {
        const struct point *p = &s->point;
        fprintf(stderr,
                "%s %s %s %s, direction %s, wait %s, source %s, fresh %d, memfd %s, depth %" PRIu32 ", %" PRIu64
                " bytes in %" PRIu32 " fields and chunks of %" PRIu64 ", %" PRIu32 " threads, verify %s: %s\n",
                transport_name(p->transport), engine_name(p->engine), copy_mode_name(p->copy_mode),
                workload_name(p->workload), direction_name(p->direction), wait_mode_name(p->wait),
                source_name(p->source), s->fresh, memfd_source_name(s->options.memfd), p->queue_depth, p->message_size,
                p->fields, s->chunk_bytes, p->threads, verify_name(s->verify), fault);
}

/* A run that must go well, and in which the test's own fault_of() (NULL: it has none), which returns NULL or words,
 * finds nothing. *d is for driver_deinit() in any case. */
static inline bool run_pair(struct driver *d, const struct driver_spec *s,
                            const char *(*fault_of)(const struct driver *) ) {
        int r = driver_run(d, s);
        const char *fault = r < 0 ? d->trouble : fault_of ? fault_of(d) : NULL;
        if (fault)
                explain(s, fault);
        return !fault;
}

static inline bool run_well(struct driver *d, const struct driver_spec *s) {
        return run_pair(d, s, NULL);
}

/* Runs until something has reached the second end. A machine that stands still may let a short window pass before, and
 * so may busy ends, spinning ones above all: then the next one is longer. False as soon as run_pair() is; *d is for
 * driver_deinit() in any case. */
static inline bool something_arrives(struct driver *d, struct driver_spec *s,
                                     const char *(*fault_of)(const struct driver *) ) {
        for (;; s->duration_ns *= 4) {
                if (!run_pair(d, s, fault_of))
                        return false;
                if (d->ends[END_SECOND].report.messages > 0 || s->duration_ns > 5 * NSEC_PER_SEC)
                        return d->ends[END_SECOND].report.messages > 0;
                driver_deinit(d);
        }
}

#endif
