/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The page sizes in which the memory of a page list is mapped here: the kernel's choice, regardless of the request. The
 * kernel accounts this by mapping, so the figures are those of the mappings that contain the memory; buffers
 * (loop/buffer.h) and rings have mappings of their own.
 *
 * Source: man 5 proc (smaps: Rss, AnonHugePages, ShmemPmdMapped, FilePmdMapped, Shared_Hugetlb, Private_Hugetlb).
 */

#include "agent/proof/pages.h"

struct page_sizes {
        struct proof_page_sizes rows[PAGE_KIND_COUNT];
        size_t n;
        int error; /* negative errno: they could not be read */
};

/* Reads the sizes of the list's memory: in this process from `path`, which is /proc/self/smaps except in tests; in
 * others, which this one must be permitted to inspect, from theirs. Of files in the page cache, which nothing maps,
 * none is known. */
void page_sizes_read(const struct page_list *list, const char *path, struct page_sizes *ret);
/* The page size of the largest part of a kind's memory; 0: unknown, or none of it is mapped. */
uint64_t page_sizes_most(const struct page_sizes *s, enum page_kind kind);
