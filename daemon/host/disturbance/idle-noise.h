/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_IDLE_NOISE_H
#define IPCLAB_DAEMON_IDLE_NOISE_H

/*
 * What other programs and other guests take of this machine's CPUs while nothing is measured: the difference of two
 * looks at the CPUs' times. It answers whether a run would be disturbed; what disturbed one is judged second by second
 * (disturbance.h). Called by daemon/service/idle-noise.c.
 */

#include "daemon/host/disturbance/cpu-time.h"
#include "daemon/host/topology.h"
#include "schema/json/json.h"

/* The times of the CPUs that were online, at one moment. */
struct idle_look {
        uint64_t at_ns; /* CLOCK_MONOTONIC; 0: there is none */
        int *ids;       /* ascending */
        struct cpu_times *times;
        size_t n;
};

struct idle_noise {
        struct cpu_time source;
        int error;                 /* of the last look; 0: it succeeded */
        struct idle_look looks[2]; /* the earlier, and the later */
};

/* Opens the source; a failure is kept, and the reason of idle_noise_put(). root: as in cpu_time_open(). */
void idle_noise_init(struct idle_noise *o, const char *root);
void idle_noise_deinit(struct idle_noise *o);
/* Takes a look; the one before it becomes the earlier. After a failure, which is kept, there is none. */
void idle_noise_look(struct idle_noise *o, const struct topology *topology, uint64_t now_ns);
/* Removes both looks. */
void idle_noise_forget(struct idle_noise *o);
/* The members of component HostNoise of api/openapi but for every_seconds, in an object under construction. why_not: a
 * reason of the caller for which nothing is known; NULL: none. */
void idle_noise_put(const struct idle_noise *o, uint64_t now_ns, const char *why_not, struct json_writer *w);

#endif
