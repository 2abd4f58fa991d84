/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PAGE_SIZES_H
#define IPCLAB_AGENT_PAGE_SIZES_H

/*
 * In pages of which size the memory of a page list is mapped here: what the kernel did, whatever was asked of it. The
 * kernel accounts this by mapping, so that what is told is of the mappings that hold the memory; buffers
 * (loop/buffer.h) and rings have mappings of their own.
 *
 * Source: man 5 proc (smaps: Rss, AnonHugePages, ShmemPmdMapped, FilePmdMapped, Shared_Hugetlb, Private_Hugetlb).
 */

#include "agent/proof/pages.h"

#define PAGE_SIZES_MAX 4u /* that one kind of memory has */

struct page_size_count {
        uint64_t page_bytes, bytes; /* mapped in pages of so many bytes */
};

struct page_size_row {
        const char *what; /* static, as in the list */
        uint64_t mappings;
        struct page_size_count sizes[PAGE_SIZES_MAX]; /* ascending, each with more than 0 bytes */
        size_t n;
};

struct page_sizes {
        struct page_size_row rows[PAGE_KINDS_MAX];
        size_t n;
        int error; /* negative errno: they cannot be known */
};

/* Of the list's memory in this process, from `path`, which is /proc/self/smaps but for tests. */
void page_sizes_read(const struct page_list *list, const char *path, struct page_sizes *ret);
/* The size of the pages that hold most of the memory of a kind; 0: not known, or none of it is mapped. */
uint64_t page_sizes_most(const struct page_sizes *s, const char *what);
/* [{"what": "ring", "mappings": 1, "bytes": {"4096": 8192, "2097152": 4194304}}]; null, in the place of a value, where
 * they cannot be known. */
void page_sizes_put(const struct page_sizes *s, struct json_writer *w);

#endif
