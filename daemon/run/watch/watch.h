/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_WATCH_H
#define IPCLAB_DAEMON_WATCH_H

/*
 * Observes the machine while a run is in its window: once a second, from the daemon's own CPUs, on files that stay
 * open. What was read is judged by host/disturbance/disturbance.c. Made by the runner when its agents are ready.
 */

#include "daemon/host/disturbance/disturbance.h"
#include "daemon/host/environment/environment.h"
#include "daemon/placement/placement.h"

#include <sys/types.h>
#include <systemd/sd-event.h>

struct watch;

/* Some reading failed, or came so late that not enough of the window was watched (host/disturbance/disturbance.h), or
 * none was possible: a run without noisy:… was not necessarily quiet. */
#define WATCH_FLAG_NOT_OBSERVED "not_observed"

/* The run to observe; its agents are ready and wait for the start. */
struct watch_order {
        sd_event *event;
        const struct topology *topology;
        const struct run_placement *placement;
        const struct point *point;
        pid_t pids[END_COUNT];           /* 0: the run has no such agent */
        int cgroup_fd;                   /* the run's own (v2); -1: none */
        const char *root;                /* of settings, throttles and cpufreq: "" or a captured tree */
        struct environment *environment; /* before the run: environment_observe(); NULL: not */
};

/* 0; -ENOMEM; -errno when CPU times cannot be read, or of the event loop. */
int watch_new(struct watch **ret, const struct watch_order *order);
/* The window begins so, on CLOCK_MONOTONIC, and lasts so long; 0: it ends with the number of messages. 0; -errno. */
int watch_start(struct watch *w, uint64_t begin_ns, uint64_t duration_ns);
/* What an agent counted in a part of the window. w NULL: nobody watches. 0; -ENOMEM. */
int watch_note(struct watch *w, const struct disturbance_note *note);
/* What the agents have reported. */
struct watch_report {
        uint64_t begin_ns;  /* when the window really began, which a count's is not known to before; 0: nothing was
                               counted */
        int64_t begin_ms;   /* the same by the wall clock, as the run's result has it */
        uint64_t end_ns;    /* when one ended that had no planned end; 0: not known, at about watch_end() */
        int64_t stopped_ns; /* as in struct disturbance */
};

/* A window that had no planned end is over. */
void watch_end(struct watch *w, const struct watch_report *report);
/* After watch_end(). A JSON object, malloc()ed, and the flags that it gives, static, at most max. 0; -ENOMEM. */
int watch_result(const struct watch *w, char **ret_json, const char **flags, size_t max, size_t *ret_n);
/* The disturbances found so far; they live as long as the watch. */
const struct disturbance *watch_disturbance(const struct watch *w);
void watch_free(struct watch *w); /* NULL-safe */

#endif
