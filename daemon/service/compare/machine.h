/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whether the machine was in the same state in two experiments, by the calibration probes before their runs
 * (daemon/result/probes.h): each run has one value of each operation on each CPU of its threads, the median of its
 * rounds, and the values of both experiments are compared as the figures of a comparison are, by exact rank-sum tests
 * that are corrected over all of them (Holm). The state differs where a test finds a difference and the ratio is
 * further from 1 than the operation's tolerance. That it does not is known where each figure has runs enough to find a
 * difference, and each run and each of its CPUs was compared: what was probed on other CPUs, or not at all, may have
 * been of another state.
 */

#include "daemon/analysis/compare.h"
#include "daemon/result/probes.h"

struct refusal;
struct service;

#define MACHINE_CPU_SETS_MAX 8 /* sets of CPUs that are compared: the first of the baseline */

enum machine_state { MACHINE_UNKNOWN, MACHINE_NO_DIFFERENCE, MACHINE_DIFFERS };

struct machine_figure {
        const char *what; /* as in a run's probes; static */
        char cpus[48];    /* of the runs' threads 0: "[0,1]"; runs on the same ones are compared */
        uint32_t cpu;     /* whose thread timed it */
        double medians[SIDE_COUNT];
        size_t n[SIDE_COUNT]; /* runs that take part, COMPARISON_RUNS_MAX at most */
        struct comparison c;
        bool differs;
};

struct machine {
        enum machine_state state;
        const char *reason; /* of an unknown one; static */
        struct machine_figure *items;
        size_t n;
        size_t uncompared[SIDE_COUNT]; /* runs without probes of CPUs that are compared and that runs of both sides have
                                        */
};

const char *machine_state_name(enum machine_state state); /* "unknown", "no-difference", "differs" */

/* The caller must free ret->items. 0; negative errno with *r. */
int machine_compare(struct service *s, const int64_t experiments[SIDE_COUNT], struct machine *ret, struct refusal *r);
