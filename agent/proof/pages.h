/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PAGES_H
#define IPCLAB_AGENT_PAGES_H

/*
 * The pages that the proof speaks of, and on which nodes they were found. All are looked at when the agent is ready and
 * again for its report; in between, each second, some of them in turn, so that pages that were moved away and back are
 * found, too, as far as so few looks can. For each page the node of its first sight is kept: found on another one
 * later, it counts as moved, whatever came and went beside it.
 *
 * Source: man 2 move_pages, which moves nothing when it is given no nodes.
 */

#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct json_writer;

#define PAGE_KINDS_MAX 5u /* that `what` names */

struct page_range {
        const char *what; /* static: "buffer", "stack", "ring", "semaphores", "page_cache" */
        uint32_t thread;
        pid_t pid; /* of a process beside this one; 0: this one */
        int fd;    /* of a file, whose pages in the cache these are; -1: memory */
        off_t offset;
        uintptr_t low, high;  /* of a file: only while it is looked at */
        int16_t *homes;       /* one for each page: where it was first seen */
        struct node_set seen; /* nodes that pages of it were ever found on */
        uint64_t moved;       /* pages */
};

struct page_list {
        struct page_range *ranges;
        size_t n, size;
        struct page_range *mapped; /* page_list_add_mapped() */
        size_t n_mapped;
        uint64_t glances;
        pid_t lost; /* a process beside this one that the last full look found without any memory; 0: none */
        const char *no_page_cache; /* static: why a file has no "page_cache" here; NULL: it has, or there is no file */
};

/* Adds [start, start + length), rounded out to pages; nothing for length 0. 0; -ENOMEM. */
int page_list_add(struct page_list *list, const char *what, uint32_t thread, const void *start, size_t length);

/* The same of another process, which this one must be allowed to look into (man 2 move_pages). */
int page_list_add_of(struct page_list *list, const char *what, uint32_t thread, pid_t pid, uintptr_t start,
                     size_t length);

/* Memory that is another end's to place, and mapped here all the same: only the sizes of its pages are looked at. */
int page_list_add_mapped(struct page_list *list, const char *what, const void *start, size_t length);

/* What the page cache has of a file, as "page_cache". It is mapped for the time of a full look only, so that writing to
 * it costs what it costs otherwise; and only what is there is touched, so that no look brings in a page. The file stays
 * open as long as the list. */
int page_list_add_file(struct page_list *list, uint32_t thread, int fd, off_t offset, size_t length);

void page_list_deinit(struct page_list *list);

/* Some of the pages, next time others; cheap however many there are. What cannot be told is left to the full look. */
void page_list_glance(struct page_list *list);

/* The largest number of pages that the kernel may place as one: of a huge page, where it makes those by itself or
 * (huge) was asked for them. */
uint64_t pages_placed_together(bool huge);

/* Looks at all pages once and tells of them: an array with an object for each kind and thread; or, where that is more
 * than `most` bytes of text, one for all of a kind, with the number of threads as "threads" in the place of "thread".
 * "ranges" is how many pieces of memory these are, where a thread has several. most 0: together, however few. */
void page_list_put(struct page_list *list, size_t most, struct json_writer *w);

#endif
