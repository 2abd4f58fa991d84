/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Interrupts of each CPU since boot, from the text of /proc/interrupts. Read by the environment, before and after a
 * run, and by run/watch/watch.c every second.
 *
 * Source: man 5 proc_interrupts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interrupt_counts {
        bool known;       /* the CPU has a column */
        uint64_t all;     /* without ERR and MIS, which are one number for the machine */
        uint64_t devices; /* of numbered lines: not timers, not the IPIs that a run's own wake-ups cause */
};

/* ret[i] is of CPU ids[i]. 0; -EBADMSG: there are no columns; -ENOMEM. */
int interrupts_parse(const char *text, const int *ids, size_t n, struct interrupt_counts *ret);
