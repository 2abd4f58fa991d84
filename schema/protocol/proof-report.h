/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where the threads and pages of an agent were, as its kernel reported it: arrays of fixed rows, which travel as they
 * are. The agent collects it once its threads are ready, and again at the end; the daemon verifies it
 * (placement_verify()), and stores it as the text of proof_report_put().
 *
 * Lists of numbers (CPUs, nodes, threads) lie one behind the other in `numbers`, and counts of pages in `counts`, in
 * the order of the members below and of the rows: a list begins where the one before it ended.
 */

#include "schema/spec/spec.h"
#include "schema/util.h"

#include <stddef.h>
#include <stdint.h>

struct json_writer;

/* Elements at … at + n - 1 of an array of the report, in ascending order. */
struct proof_list {
        uint32_t at, n;
};

/* A thread; that of row i has the number i. Behind the agent's own are the processes that a workload forked. */
struct proof_thread {
        int32_t tid;
        uint32_t cpu, node;          /* at the last observation */
        uint32_t migrations_error;   /* errno: the kernel does not count them; 0: it does */
        uint64_t migrations;         /* since the thread was ready */
        struct proof_list affinity;  /* CPUs that it may run on */
        struct proof_list cpus_seen; /* CPUs that it was observed on, in any observation */
};

/* All other threads that may run on the same CPUs. */
struct proof_group {
        uint64_t migrations; /* the sum */
        uint64_t migrations_error;
        struct proof_list threads, affinity;
        struct proof_list cpus, nodes; /* at the last observation of each */
        struct proof_list cpus_seen;
};

enum page_kind { PAGES_STACK, PAGES_BUFFER, PAGES_RING, PAGES_SEMAPHORES, PAGES_CACHE, PAGE_KIND_COUNT };

struct proof_count {
        uint64_t id; /* a node; of absent pages an errno with a name, or 0: unknown */
        uint64_t pages;
};

/* The pages of a kind, of one thread or of several together. */
struct proof_pages {
        uint32_t kind;
        uint32_t together; /* 1: `thread` is the number of threads that have some; 0: the number of the thread */
        uint32_t thread;
        uint32_t error;  /* errno: their nodes cannot be read, and total is all that is known; 0: they can */
        uint64_t ranges; /* pieces of memory, where a thread has several; else 0 */
        uint64_t total;
        uint64_t moved;               /* to another node than at first */
        struct proof_list nodes;      /* of counts: pages by node, present now */
        struct proof_list absent;     /* of counts: all others, by errno */
        struct proof_list nodes_seen; /* of numbers: nodes that any of them was found on, now or earlier */
};

#define PAGE_SIZES_MAX 4u /* at most, of one kind of memory */

/* The sizes of the pages that map a kind of memory in this process, at both ends, whichever placed it. */
struct proof_page_sizes {
        uint64_t kind;
        uint64_t mappings; /* that hold some */
        uint64_t n;
        struct {
                uint64_t page_bytes, bytes; /* `bytes` are mapped in pages of page_bytes */
        } sizes[PAGE_SIZES_MAX];            /* ascending, each with more than 0 bytes */
};

#define PROOF_REASON_MAX 88u

struct proof_report {
        struct proof_list affinity; /* CPUs that the process was started with */
        struct proof_list leader_affinity;
        int32_t leader_tid;
        uint32_t leader_cpu;
        uint32_t policy;                /* enum memory_policy */
        uint32_t policy_error;          /* errno: the kernel does not report it; 0: it does */
        struct proof_list policy_nodes; /* none for default and local */
        uint32_t threads_total;
        uint32_t sizes_error;                 /* errno: page sizes are unknown; 0: they are known */
        uint64_t placed_together;             /* base pages in a huge page, where the kernel may use those; else 1 */
        char no_page_cache[PROOF_REASON_MAX]; /* why a file has no pages in the cache here; "": it has, or there is none
                                               */

        struct proof_arrays {
                struct proof_pages *pages;
                struct proof_thread *threads;
                struct proof_group *groups;
                struct proof_page_sizes *sizes;
                struct proof_count *counts;
                uint16_t *numbers;
                size_t n_pages, n_threads, n_groups, n_sizes, n_counts, n_numbers;
        } of;
        int error; /* -ENOMEM: an array could not grow, and the functions that add to it do nothing since; 0: none */
};

void proof_report_free(struct proof_report *p); /* NULL is fine */
UTIL_FREEP(proof_report, proof_report_free)

/* Each adds a row of zeros to its array; NULL with p->error. It may move the array. */
struct proof_pages *proof_report_add_pages(struct proof_report *p);
struct proof_thread *proof_report_add_thread(struct proof_report *p);
struct proof_group *proof_report_add_group(struct proof_report *p);
struct proof_page_sizes *proof_report_add_sizes(struct proof_report *p);
/* Add an element behind the last one, and to the list whose last element that is. */
void proof_report_add_number(struct proof_report *p, struct proof_list *list, unsigned number);
void proof_report_add_count(struct proof_report *p, struct proof_list *list, uint64_t id, uint64_t pages);
/* A list without elements, whose first is added next. */
struct proof_list proof_report_numbers(const struct proof_report *p);
struct proof_list proof_report_counts(const struct proof_report *p);

/* Whether lists lie where they must, have numbers in range and elements where there must be some, and every enum,
 * errno (one with a name) and text is one. 0; -EBADMSG with the member at fault in ret_detail[DETAIL_MAX]. */
int proof_report_check(const struct proof_report *p, char *ret_detail);

const char *page_kind_name(enum page_kind kind); /* "stack", "buffer", "ring", "semaphores", "page_cache" */

/* Writes an object:
 *      {"affinity": [0], "leader": {"tid": 4712, "affinity": [1], "cpu": 1}, "policy": "bind", "policy_nodes": [0],
 *       "threads": [{"thread": 0, "tid": 4711, "affinity": [0], "cpu": 0, "node": 0, "cpus_seen": [0],
 *                    "migrations": 0}],
 *       "threads_together": [{"threads": [64, 65], "affinity": [0, 1], "cpus": [0, 1], "nodes": [0],
 *                             "cpus_seen": [0, 1], "migrations": 3}],
 *       "threads_total": 66, "pages_placed_together": 1,
 *       "pages": [{"what": "buffer", "thread": 0, "total": 16, "nodes": {"0": 15}, "absent": 1,
 *                  "absent_errors": {"ENOENT": 1}, "nodes_seen": [0], "moved": 0}],
 *       "page_sizes": [{"what": "ring", "mappings": 1, "bytes": {"4096": 8192, "2097152": 4194304}}]}
 * threads_together only where there are groups; "threads" in the place of "thread" for pages of several threads;
 * "ranges" where a thread has several. What is unknown is null, with a reason in NAME_reason ("reason" for the nodes of
 * pages). */
void proof_report_put(const struct proof_report *p, struct json_writer *w);
/* The array "pages" of it. */
void proof_report_put_pages(const struct proof_report *p, struct json_writer *w);
