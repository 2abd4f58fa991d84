/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The pages of the proof, and the nodes where they were observed. The leader checks all of them when the agent is ready
 * and again for its report; in between it checks a sample every second, which may also find pages that were moved away
 * and back. The list stores the initial node of each page: a page that is observed on another node later counts as
 * moved.
 *
 * Source: man 2 move_pages, which moves nothing when it is given no nodes.
 */

#include "schema/protocol/proof-report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct page_range {
        enum page_kind kind;
        uint32_t thread;
        pid_t pid; /* of another process; 0: this one */
        int fd;    /* the file, for pages of the page cache; -1: memory */
        off_t offset;
        uintptr_t low, high;    /* of a file: only during a full check */
        int16_t *initial_nodes; /* of each page: the node where it was first observed */
        struct node_set seen;   /* nodes where any of its pages was observed */
        uint64_t moved;         /* pages */
};

struct page_list {
        struct page_range *ranges;
        size_t n, size;
        struct page_range *mapped; /* page_list_add_mapped() */
        size_t n_mapped;
        uint64_t samples;
        pid_t lost; /* another process that had no memory at the last full check; 0: none */
        const char
                *no_page_cache; /* static: why a file has no PAGES_CACHE here; NULL: it has one, or no file is used */
};

/* Adds [start, start + length), rounded out to pages; nothing for length 0. 0; -ENOMEM. */
int page_list_add(struct page_list *list, enum page_kind kind, uint32_t thread, const void *start, size_t length);

/* Adds memory of another process, which this one must be permitted to inspect (man 2 move_pages). */
int page_list_add_of(struct page_list *list, enum page_kind kind, uint32_t thread, pid_t pid, uintptr_t start,
                     size_t length);

/* Adds memory that the other end places and this one maps: only its page sizes are reported. */
int page_list_add_mapped(struct page_list *list, enum page_kind kind, const void *start, size_t length);

/* Adds a file's pages in the page cache, as PAGES_CACHE. The file is mapped during a full check only, so that the cost
 * of writing to it is unchanged; and only cached pages are touched, so that the check adds none to the cache. The
 * caller keeps the file open as long as the list exists. */
int page_list_add_file(struct page_list *list, uint32_t thread, int fd, off_t offset, size_t length);

void page_list_deinit(struct page_list *list);

/* Checks a sample of the pages, another one each time; its cost does not depend on their number. Pages whose node is
 * unknown are left to the full check. */
void page_list_sample(struct page_list *list);

/* The largest number of pages that the kernel may place as one: those of a huge page, where it uses these by itself or
 * (huge) on request. */
uint64_t pages_placed_together(bool huge);

/* Checks all pages once and adds a row for each kind and thread; or, where the text of these rows exceeds `most` bytes,
 * a row for each kind, of all its threads together. most 0: always one row for each kind. */
void page_list_report(struct page_list *list, size_t most, struct proof_report *p);
