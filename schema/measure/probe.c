/* SPDX-License-Identifier: MIT */

#include "schema/measure/probe.h"

/* Sizes for rounds of some tenths of a millisecond. */
const struct probe_term probe_terms[PROBE_KIND_COUNT] = {
        [PROBE_GETPID] = {"getpid_ns", 2000, 0.08},
        [PROBE_MEMCPY] = {"memcpy_64k_ns", 40, 0.12},
        [PROBE_HAND_OVER] = {"hand_over_ns", 1000, 0.30},
        [PROBE_WAKE_UP] = {"wake_up_ns", 10, 0.50},
};

const char *probe_absence_reason(enum probe_absence absence) {
        static const char *const reasons[PROBE_ABSENCE_COUNT] = {
                [PROBE_ONE_END] = "the run has one end",
                [PROBE_AT_OTHER_END] = "the first end measures it for both",
                [PROBE_SAME_CPU] = "both ends are on one CPU",
                [PROBE_LATE] = "the other end did not answer in time",
                [PROBE_STARVED] = "others had the CPU for so long that the probe was given up",
                [PROBE_NO_MEMORY] = "an agent could not get the memory that it takes (memfd_create, mmap)",
                [PROBE_OTHER_THREAD] = "the threads 0 measure it for all",
        };
        return (unsigned) absence < PROBE_ABSENCE_COUNT ? reasons[absence] : NULL;
}

uint32_t probe_others(uint32_t threads, size_t n_cpus, bool roam) {
        if (roam || n_cpus == 0)
                return 0;
        return (n_cpus < threads ? (uint32_t) n_cpus : threads) - 1;
}
