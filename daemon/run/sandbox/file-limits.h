/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The agents of a run may write a limited number of files of limited length into its directory. The runner fails a run
 * with more files, and the kernel refuses longer ones (RLIMIT_FSIZE).
 */

#include <stdint.h>

struct point;
struct transport_options;

/* A FIFO for each thread and direction, or one file, and two to spare. */
unsigned run_files(const struct point *point);
/* The bytes of the longest file that an agent makes, including shared memory with a name or a descriptor, and its share
 * of what all of them may have to spare. The options are those of the spec. */
uint64_t run_file_bytes(const struct point *point, const struct transport_options *options);
/* 0: this kernel has none. */
uint64_t run_huge_page_bytes(void);
