/* SPDX-License-Identifier: MIT */
#pragma once

/* Readers of /proc on this process's threads, which do not disturb the threads that they read. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Fields of task/TID/stat, numbered as in man 5 proc. */
enum stat_field { STAT_MINFLT = 10, STAT_MAJFLT = 12, STAT_UTIME = 14, STAT_STIME = 15, STAT_PROCESSOR = 39 };

/* Reads /proc/self/task/TID/NAME, at most size - 1 bytes, NUL-terminated. 0 or negative errno. */
int procfs_read_task(pid_t tid, const char *name, char *buffer, size_t size);
/* Reads the same file of another process; pid 0: this one. */
int procfs_read_task_of(pid_t pid, pid_t tid, const char *name, char *buffer, size_t size);

/* Parses a number from the text of a stat file. 0; -EBADMSG when it is missing. */
int procfs_stat_number(const char *text, enum stat_field field, uint64_t *ret);

/* Parses the number after "NAME:" (status) or "NAME :" (sched) at the beginning of a line. 0; -ENODATA. */
int procfs_line_number(const char *text, const char *name, uint64_t *ret);

/* The default size of a huge page in mmap(2), from /proc/meminfo; 0 when this kernel has none. */
uint64_t procfs_huge_page_bytes(void);
/* Reads a kernel setting that is one number, by its full path; -1 when it cannot be read. */
long procfs_setting(const char *path);
/* Reads the first line of a file, as a kernel setting that is a word, cut at size - 1 bytes. 0 or negative errno. */
int procfs_first_line(const char *path, char *buffer, size_t size);
