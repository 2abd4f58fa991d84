/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How fast a CPU's clock was. Where the kernel's PMU "msr" has the counters APERF and MPERF, it is the mean of the time
 * in which the CPU was not idle since the reading before: APERF counts at the clock that the core had, MPERF at that of
 * the TSC, and both stand still while the core idles. Elsewhere it is the value of cpufreq at the moment of the
 * reading.
 *
 * A reading of the counters interrupts the CPU once, for about a microsecond.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, "Hardware Feedback"; AMD64
 * Architecture Programmer's Manual, volume 2, "Effective Frequency"; arch/x86/events/msr.c of the kernel.
 */

#include <stdint.h>

enum cpu_frequency_event { EVENT_APERF, EVENT_MPERF, EVENT_TSC, FREQUENCY_EVENTS };

/* The PMU's number, and those of its events. */
struct cpu_frequency_pmu {
        uint32_t type;
        uint64_t configs[FREQUENCY_EVENTS];
};

/* As the kernel describes it in ROOT/sys/bus/event_source/devices/msr. 0; -ENOENT: it lacks one of the events; -errno.
 */
int cpu_frequency_pmu(const char *root, struct cpu_frequency_pmu *ret);

struct cpu_frequency {
        int events[FREQUENCY_EVENTS]; /* one group; -1: not counted */
        int file;                     /* scaling_cur_freq; -1: none, or the counters are read */
        uint64_t first_tsc, first_ns; /* of the first reading; the TSC's own clock is known from there on */
        uint64_t last[FREQUENCY_EVENTS];
};

/* root: "", or the folder of a captured tree. pmu: NULL where there is none. A descriptor from files_max on is one that
 * others may need. 0, also of what cannot be opened and is not read; -EMFILE: there is no descriptor to spare. */
int cpu_frequency_open(struct cpu_frequency *f, const char *root, int cpu, const struct cpu_frequency_pmu *pmu,
                       uint64_t files_max);
void cpu_frequency_close(struct cpu_frequency *f);
/* The value for a CPU that is not read. */
#define CPU_FREQUENCY_NONE ((struct cpu_frequency){.events = {-1, -1, -1}, .file = -1})

/* In kHz; -1: not known, as at the first reading of the counters, and of a CPU that has only idled since the last. */
int64_t cpu_frequency_read(struct cpu_frequency *f);
/* The same of counts that were read at that time of CLOCK_MONOTONIC. */
int64_t cpu_frequency_add(struct cpu_frequency *f, const uint64_t counts[FREQUENCY_EVENTS], uint64_t at_ns);

/* "aperf-mperf" or "cpufreq"; NULL: neither. */
const char *cpu_frequency_source(const struct cpu_frequency *f);
