/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_AGENTS_H
#define IPCLAB_TESTS_AGENTS_H

/* A round of real agents, for the benches. */

#include "tests/bench/compare.h"
#include "tests/bench/driver.h"

/* What agents do beside moving messages. */
enum agents_burden {
        AGENTS_BARE,    /* nothing: no sample is taken and no message timed */
        AGENTS_TIMED,   /* pingpongs are timed into histograms; a sample only where the window ends */
        AGENTS_SAMPLED, /* as in a run, only more often: three samples a second, and one a round at least */
};

struct agents_figures {
        double rate;     /* messages per second of the end that the figure belongs to */
        double p50_ns;   /* of what a pingpong's initiator has timed; 0: nothing */
        double clock_ns; /* cost of a clock reading, as the agent reports it; 0: nothing is timed */
};

/* 0; -errno with a line on stderr. */
int agents_run(const struct bench *b, const struct bench_row *row, const struct window *w, enum agents_burden burden,
               struct agents_figures *ret);
/* Half a round, bare: how fast messages go, about. */
int agents_probe(const struct bench *b, const struct bench_row *row, double *ret_rate);

#endif
