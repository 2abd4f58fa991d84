/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_PAIRS_H
#define IPCLAB_TESTS_PAIRS_H

/*
 * What the tests of real pairs of agents have in common: the program that they start, the CPUs that it may be given,
 * and a window that is long enough. How a run is judged is each test's own.
 */

#include "schema/util.h"
#include "tests/bench/driver.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the build under test; static. */
static inline const char *agent_path(void) {
        static char path[512];
        const char *root = getenv("IPCLAB_BUILD_ROOT");
        (void) snprintf(path, sizeof path, "%s/agent/ipclab-agent", root ? root : "build");
        return path;
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

/* Runs until something has reached the second end. A machine that stands still may let a short window pass before, and
 * so may busy ends, spinning ones above all: then the next one is longer. False as soon as run_well(), the test's own
 * run, returns false; *d is for driver_deinit() in any case. */
static inline bool something_arrives(struct driver *d, struct driver_spec *s,
                                     bool (*run_well)(struct driver *d, const struct driver_spec *s)) {
        for (;; s->duration_ns *= 4) {
                if (!run_well(d, s))
                        return false;
                if (d->ends[END_SECOND].report.messages > 0 || s->duration_ns > 5 * NSEC_PER_SEC)
                        return d->ends[END_SECOND].report.messages > 0;
                driver_deinit(d);
        }
}

#endif
