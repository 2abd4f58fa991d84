/* SPDX-License-Identifier: MIT */

/*
 * Reads the kernel's word on threads and pages. A worker reads its own affinity, policy and CPU while it rests; the
 * leader looks at the CPUs through /proc while loops run, and asks move_pages(2), which moves nothing when it is given
 * no nodes, where the pages are.
 */

#include "agent/proof.h"

#include "agent/agent.h"
#include "agent/procfs.h"
#include "schema/json.h"
#include "schema/util.h"

#include <inttypes.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>

#define STACK_LOOKED_AT (16u * 1024u) /* more than any loop uses */
#define PAGES_AT_ONCE 1024u
#define WORD (8 * sizeof(unsigned long))
/* More threads than that are told of together where that loses nothing: packets have a limit. */
#define LISTED_MAX 64u

static uintptr_t page_size(void) {
        return (uintptr_t) sysconf(_SC_PAGESIZE);
}

/* Touches the part of the stack below this frame that the loop is going to use, and remembers where it is. */
static __attribute__((noinline)) void take_stack(struct thread_proof *p) {
        volatile unsigned char below[STACK_LOOKED_AT];
        for (size_t i = 0; i < sizeof below; i += 256)
                below[i] = 0;
        p->stack_low = ((uintptr_t) below + page_size() - 1) / page_size() * page_size();
        p->stack_high = ((uintptr_t) below + sizeof below) / page_size() * page_size();
}

static int policy_from_mode(int mode, enum memory_policy *ret) {
        switch (mode & ~MPOL_MODE_FLAGS) {
        case MPOL_DEFAULT:
                *ret = MEMORY_DEFAULT;
                return 0;
        case MPOL_PREFERRED:
                *ret = MEMORY_PREFERRED;
                return 0;
        case MPOL_BIND:
                *ret = MEMORY_BIND;
                return 0;
        case MPOL_INTERLEAVE:
                *ret = MEMORY_INTERLEAVE;
                return 0;
        case MPOL_LOCAL:
                *ret = MEMORY_LOCAL;
                return 0;
        default:
                return -EOPNOTSUPP;
        }
}

static void take_policy(struct thread_proof *p) {
        unsigned long nodes[SPEC_NODES_MAX / WORD] = {};
        int mode = 0, r = 0;

        memset(&p->policy_nodes, 0, sizeof p->policy_nodes);
        if (syscall(SYS_get_mempolicy, &mode, nodes, (unsigned long) SPEC_NODES_MAX, NULL, 0UL) < 0)
                r = -errno;
        if (r == 0)
                r = policy_from_mode(mode, &p->policy);
        p->policy_error = -r;
        for (unsigned n = 0; r == 0 && n < SPEC_NODES_MAX; n++)
                if (nodes[n / WORD] >> (n % WORD) & 1)
                        node_set_add(&p->policy_nodes, n);
}

/* The file exists only where the scheduler's debugging is compiled in. */
static void take_migrations(struct worker *w) {
        struct thread_proof *p = &w->proof;
        char text[8192];
        int r = procfs_read_task(w->tid, "sched", text, sizeof text);
        if (r == 0)
                r = procfs_line_number(text, "se.nr_migrations", &p->migrations);
        p->migrations_error = -r;
        if (!p->has_base) {
                p->migrations_base = p->migrations;
                p->has_base = true;
        }
}

int proof_take(struct worker *w) {
        struct thread_proof *p = &w->proof;
        int r = cpumask_get_affinity(0, &p->affinity);
        if (r == 0 && syscall(SYS_getcpu, &p->cpu, &p->node, NULL) < 0)
                r = -errno;
        if (r < 0)
                return failure_set(&w->failure, -r, "thread %" PRIu32 " cannot tell where it is: %s", w->index,
                                   strerrordesc_np(-r));
        cpumask_add(&p->seen, p->cpu);
        take_migrations(w);
        take_policy(p);
        take_stack(p);
        return 0;
}

void proof_look(struct agent *a) {
        char text[1024];
        uint64_t cpu;
        for (uint32_t i = 0; i < a->n_workers; i++)
                if (procfs_read_task(a->workers[i].tid, "stat", text, sizeof text) == 0 &&
                    procfs_stat_number(text, STAT_PROCESSOR, &cpu) == 0)
                        cpumask_add(&a->workers[i].proof.looked, (unsigned) cpu);
}

int page_list_add(struct page_list *list, const char *what, uint32_t thread, const void *start, size_t length) {
        if (list->n == list->size) {
                size_t size = list->size ? 2 * list->size : 64;
                struct page_range *ranges = reallocarray(list->ranges, size, sizeof *ranges);
                if (!ranges)
                        return -ENOMEM;
                list->ranges = ranges;
                list->size = size;
        }
        uintptr_t page = page_size(), low = (uintptr_t) start / page * page;
        uintptr_t high = ((uintptr_t) start + length + page - 1) / page * page;
        list->ranges[list->n++] = (struct page_range){.what = what, .thread = thread, .low = low, .high = high};
        return 0;
}

struct page_count {
        uint64_t total, absent;
        uint64_t nodes[SPEC_NODES_MAX];
};

/* Up to PAGES_AT_ONCE pages from low on. 0 or negative errno. */
static int count_some(uintptr_t low, size_t n, struct page_count *count) {
        void *pages[PAGES_AT_ONCE];
        int status[PAGES_AT_ONCE];
        for (size_t i = 0; i < n; i++)
                pages[i] = (void *) (low + i * page_size());
        if (syscall(SYS_move_pages, 0, n, pages, NULL, status, 0) < 0)
                return -errno;
        for (size_t i = 0; i < n; i++)
                if (status[i] >= 0 && (unsigned) status[i] < SPEC_NODES_MAX)
                        count->nodes[status[i]]++;
                else
                        count->absent++;
        return 0;
}

static int count_pages(const struct page_range *range, struct page_count *count) {
        size_t left = (range->high - range->low) / page_size();
        count->total += left;
        for (uintptr_t low = range->low; left > 0;) {
                size_t n = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
                int r = count_some(low, n, count);
                if (r < 0)
                        return r;
                low += n * page_size();
                left -= n;
        }
        return 0;
}

static void put_count(struct json_writer *w, const struct page_count *count, int error) {
        json_member_u64(w, "total", count->total);
        if (error < 0) {
                char reason[128];
                (void) snprintf(reason, sizeof reason, "move_pages: %s", strerrordesc_np(-error));
                json_member_null(w, "nodes");
                json_member_string(w, "reason", reason);
                return;
        }
        json_put_key(w, "nodes");
        json_object_begin(w);
        for (unsigned n = 0; n < SPEC_NODES_MAX; n++)
                if (count->nodes[n]) {
                        char key[16];
                        (void) snprintf(key, sizeof key, "%u", n);
                        json_member_u64(w, key, count->nodes[n]);
                }
        json_object_end(w);
        json_member_u64(w, "absent", count->absent);
}

static void put_range(struct json_writer *w, const struct page_range *range) {
        struct page_count count = {};
        int r = count_pages(range, &count);

        json_object_begin(w);
        json_member_string(w, "what", range->what);
        json_member_u64(w, "thread", range->thread);
        put_count(w, &count, r);
        json_object_end(w);
}

/* All threads' pages of one kind together; their number stands in the place of the thread. */
static void put_ranges_of(struct json_writer *w, const struct page_list *list, const char *what) {
        struct page_count count = {};
        uint64_t threads = 0;
        int r = 0;
        for (size_t i = 0; i < list->n; i++)
                if (strcmp(list->ranges[i].what, what) == 0) {
                        int one = count_pages(&list->ranges[i], &count);
                        r = one < 0 ? one : r;
                        threads++;
                }
        json_object_begin(w);
        json_member_string(w, "what", what);
        json_member_u64(w, "threads", threads);
        put_count(w, &count, r);
        json_object_end(w);
}

static bool is_first_of_kind(const struct page_list *list, size_t at) {
        for (size_t i = 0; i < at; i++)
                if (strcmp(list->ranges[i].what, list->ranges[at].what) == 0)
                        return false;
        return true;
}

static void put_pages(struct json_writer *w, const struct agent *a, const struct page_list *list) {
        json_array_begin(w);
        for (size_t i = 0; i < list->n; i++)
                if (a->n_workers <= LISTED_MAX)
                        put_range(w, &list->ranges[i]);
                else if (is_first_of_kind(list, i))
                        put_ranges_of(w, list, list->ranges[i].what);
        json_array_end(w);
}

static void put_policy(struct json_writer *w, const struct thread_proof *p) {
        if (p->policy_error) {
                char reason[128];
                (void) snprintf(reason, sizeof reason, "get_mempolicy: %s", strerrordesc_np(p->policy_error));
                json_member_null(w, "policy");
                json_member_string(w, "policy_reason", reason);
                return;
        }
        json_member_string(w, "policy", memory_policy_name(p->policy));
        json_put_key(w, "policy_nodes");
        json_array_begin(w);
        for (unsigned n = 0; n < SPEC_NODES_MAX; n++)
                if (node_set_has(&p->policy_nodes, n))
                        json_put_u64(w, n);
        json_array_end(w);
}

static void put_migrations(struct json_writer *w, const struct thread_proof *p) {
        if (p->migrations_error == 0) {
                json_member_u64(w, "migrations", p->migrations - p->migrations_base);
                return;
        }
        char reason[128];
        (void) snprintf(reason, sizeof reason, "/proc/PID/sched: %s", strerrordesc_np(p->migrations_error));
        json_member_null(w, "migrations");
        json_member_string(w, "migrations_reason", reason);
}

static void put_thread(struct json_writer *w, const struct worker *worker) {
        const struct thread_proof *p = &worker->proof;
        struct cpumask seen = p->seen;
        cpumask_merge(&seen, &p->looked);
        json_object_begin(w);
        json_member_u64(w, "thread", worker->index);
        json_member_i64(w, "tid", worker->tid);
        json_put_key(w, "affinity");
        cpumask_put(w, &p->affinity);
        json_member_u64(w, "cpu", p->cpu);
        json_member_u64(w, "node", p->node);
        json_put_key(w, "cpus_seen");
        cpumask_put(w, &seen);
        put_migrations(w, p);
        json_object_end(w);
}

/* Threads that were put nowhere prove nothing: of many such only some are listed. Pinned ones are all listed. */
static void put_threads(struct json_writer *w, const struct agent *a) {
        uint32_t n = a->n_workers;
        if (a->setup.placement.n_cpus == 0 && n > LISTED_MAX)
                n = LISTED_MAX;
        json_array_begin(w);
        for (uint32_t i = 0; i < n; i++)
                put_thread(w, &a->workers[i]);
        json_array_end(w);
}

static int list_pages(const struct agent *a, struct page_list *list) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct worker *w = &a->workers[i];
                r = page_list_add(list, "buffer", i, w->buffer, w->buffer_length);
                if (r == 0)
                        r = page_list_add(list, "stack", i, (const void *) w->proof.stack_low,
                                          w->proof.stack_high - w->proof.stack_low);
        }
        if (r == 0 && a->transport && a->transport->pages)
                r = a->transport->pages(a, list);
        return r;
}

/* Threads inherit the process's policy; one that differs would make the summary a lie. */
static int check_policies(const struct agent *a) {
        const struct thread_proof *first = &a->workers[0].proof;
        for (uint32_t i = 1; i < a->n_workers; i++) {
                const struct thread_proof *p = &a->workers[i].proof;
                if (p->policy_error != first->policy_error || p->policy != first->policy ||
                    memcmp(&p->policy_nodes, &first->policy_nodes, sizeof p->policy_nodes) != 0)
                        return -EPROTO;
        }
        return 0;
}

int proof_to_json(struct agent *a, char **ret) {
        struct page_list list = {};
        struct json_writer w;
        size_t length;

        int r = check_policies(a);
        if (r == 0)
                r = list_pages(a, &list);
        if (r < 0) {
                free(list.ranges);
                return r;
        }
        json_writer_init(&w);
        json_object_begin(&w);
        json_put_key(&w, "affinity");
        cpumask_put(&w, &a->affinity);
        put_policy(&w, &a->workers[0].proof);
        json_put_key(&w, "threads");
        put_threads(&w, a);
        json_member_u64(&w, "threads_total", a->n_workers);
        json_put_key(&w, "pages");
        put_pages(&w, a, &list);
        json_object_end(&w);
        r = json_writer_steal(&w, ret, &length);
        json_writer_deinit(&w);
        free(list.ranges);
        return r;
}
