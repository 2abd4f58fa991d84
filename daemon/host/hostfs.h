/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Small files of /sys and /proc, read below a settable root: "" is this machine, anything else is the folder of a tree
 * captured on another one (tools/capture-host). Below a captured root no symbolic link is followed and no ".." is
 * walked, so a tree from a stranger cannot point the daemon elsewhere; on this machine only the last component must
 * not be a link, as the kernel's own trees are full of them. Sizes are bounded. Nothing here logs: `path` names what
 * was read last, for the caller's message.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTFS_FILE_MAX (8u * 1024u * 1024u) /* /proc/interrupts of a machine with 1024 CPUs is about 5 MiB */
#define HOSTFS_NAMES_MAX 4096u
#define HOSTFS_LIST_MAX 65536 /* highest CPU or node id + 1 that a list may hold */

struct hostfs_reading;

struct hostfs {
        int root_fd; /* -1: this machine */
        char path[512];
        bool keeps;
        struct hostfs_reading *readings; /* while it keeps: every file that was read, with its text or error */
};

/* This machine's root, for a reading or two: without hostfs_keep() it holds nothing. */
#define HOSTFS_MACHINE ((struct hostfs){.root_fd = -1})

/* root: "" or a folder. 0; -errno. */
int hostfs_init(struct hostfs *h, const char *root);
void hostfs_deinit(struct hostfs *h);
/* From here on each file is read once, until hostfs_deinit(): many questions are then answered from one state of the
 * host, and each file is opened once for all of them. */
void hostfs_keep(struct hostfs *h);

/* Each reads the file that the format names ("/sys/…"). 0; -ENOENT and other errno; -EFBIG above a limit; -EBADMSG when
 * the content is not of the requested kind; -EINVAL for a path that is not absolute, too long or holds "..". */

/* The whole file, NUL-terminated, malloc()ed; -EBADMSG when it holds a NUL byte. */
int hostfs_text(struct hostfs *h, char **ret, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The first line, blanks at both ends removed; -EFBIG when it does not fit. */
int hostfs_line(struct hostfs *h, char *ret, size_t size, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
/* One decimal number and nothing else; "max" is not one. */
int hostfs_i64(struct hostfs *h, int64_t *ret, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same of a number that is not negative: shmmax is beyond int64_t. */
int hostfs_u64(struct hostfs *h, uint64_t *ret, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "always [madvise] never", a line that was read before: leaves the word in brackets. -EBADMSG: there is none. */
int hostfs_choice(char *line);
/* The names in a folder (which is the rest of the format), sorted, without those that begin with a dot; free each and
 * the array (hostfs_names_free()). At most HOSTFS_NAMES_MAX, else -EFBIG. */
int hostfs_names(struct hostfs *h, char ***ret, size_t *ret_n, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
void hostfs_names_free(char **names, size_t n);
/* A list of ids, see hostfs_parse_list(). */
int hostfs_list(struct hostfs *h, int **ret, size_t *ret_n, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* "0-3,8" into ascending ids, malloc()ed; NULL and 0 for an empty list. -EBADMSG unless it is as the kernel prints it
 * (bitmap_print_to_pagebuf(): ascending, no id twice); -ENOMEM. */
int hostfs_parse_list(const char *text, int **ret, size_t *ret_n);
/* The other way, into a buffer; what does not fit ends in "…" (size must be at least 8). Ids ascending. */
void hostfs_format_list(const int *ids, size_t n, char *ret, size_t size);

/* An open file once more from its beginning, whole and NUL-terminated, into a buffer that grows: *buffer NULL and
 * *size 0 at first. 0; -errno; -EFBIG above HOSTFS_FILE_MAX; -ENOMEM. */
int hostfs_read_again(int fd, char **buffer, size_t *size);

/* Text after "KEY:" (blanks removed) on the line of `text` that starts with KEY, as in /proc/PID/status; -ENOENT;
 * -EFBIG. */
int hostfs_field(const char *text, const char *key, char *ret, size_t size);
/* A number of /proc/meminfo by its name, in kB or a count. 0; -ENOENT; -EBADMSG; -errno. */
int hostfs_meminfo(struct hostfs *h, const char *name, uint64_t *ret);
/* A limit of this process by its name in /proc/self/limits, "Max open files": the hard or the soft one. 0; -ENOENT:
 * there is none; -errno. */
int hostfs_process_limit(struct hostfs *h, const char *name, bool hard, uint64_t *ret);
