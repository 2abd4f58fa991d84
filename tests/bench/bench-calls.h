/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_BENCH_CALLS_H
#define IPCLAB_TESTS_BENCH_CALLS_H

/* Rows of what one process does alone or a ring of processes on one CPU: system calls and context switches. */

#include "tests/bench/compare.h"

#define BENCH_CALLS "calls" /* the part's name */

/* Those rows that the options want. */
void bench_calls_add(struct bench *b);

#endif
