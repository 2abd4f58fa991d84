/* SPDX-License-Identifier: MIT */

/*
 * Reads the kernel's word on threads and pages. A worker reads its own affinity, policy and CPU while it rests; the
 * leader looks at the CPUs through /proc while loops run; pages are pages.c's, what is said of threads
 * proof-threads.c's.
 */

#include "agent/proof/proof.h"

#include "agent/base/agent.h"
#include "agent/os/procfs.h"
#include "agent/proof/threads.h"
#include "schema/json/json.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <dirent.h>
#include <inttypes.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define STACK_LOOKED_AT (16u * 1024u) /* more than any loop uses */
#define WORD (8 * sizeof(unsigned long))
/* More threads than that are told of together where that loses nothing; */
#define LISTED_MAX 64u
/* …and fewer where a packet would not take what is told of each: so much, beside the rest of its message. */
#define PROOF_MAX (PROTOCOL_PACKET_MAX - 16u * 1024u)
#define PAGES_MAX (PROOF_MAX / 2)

static uintptr_t page_size(void) {
        return (uintptr_t) sysconf(_SC_PAGESIZE);
}

/* The range is within `below`, so nothing that is in use is dropped. */
__attribute__((noinline)) void proof_take_stack(struct stack_range *ret) {
        volatile unsigned char below[STACK_LOOKED_AT];
        ret->low = ((uintptr_t) below + page_size() - 1) / page_size() * page_size();
        ret->high = ((uintptr_t) below + sizeof below) / page_size() * page_size();
        /* Where it fails they stay as they are, and the proof tells where that is. */
        (void) madvise((void *) ret->low, ret->high - ret->low, MADV_DONTNEED); /* NOLINT(performance-no-int-to-ptr) */
        for (size_t i = 0; i < sizeof below; i += 256)
                below[i] = 0;
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
static void take_migrations(struct thread_proof *p, pid_t pid, pid_t tid) {
        char text[8192];
        int r = procfs_read_task_of(pid, tid, "sched", text, sizeof text);
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
        if (!p->has_base)
                proof_take_stack(&p->stack); /* the loop of the run has the same frames */
        take_migrations(p, 0, w->tid);
        take_policy(p);
        return 0;
}

struct leader_proof {
        struct cpumask affinity;
        unsigned cpu;
};

/* Which node a CPU is on: the directory of each CPU has a link to its node's. A kernel without NUMA has none. */
static unsigned node_of_cpu(unsigned cpu) {
        char path[64];
        unsigned node = 0;
        (void) snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u", cpu);
        DIR *d = opendir(path);
        for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
                if (strncmp(e->d_name, "node", 4) == 0 && e->d_name[4] >= '0' && e->d_name[4] <= '9') {
                        node = (unsigned) strtoul(e->d_name + 4, NULL, 10);
                        break;
                }
        if (d)
                (void) closedir(d);
        return node;
}

static int read_cpu(pid_t pid, pid_t tid, unsigned *ret) {
        char text[1024];
        uint64_t cpu = 0;
        int r = procfs_read_task_of(pid, tid, "stat", text, sizeof text);
        if (r == 0)
                r = procfs_stat_number(text, STAT_PROCESSOR, &cpu);
        *ret = (unsigned) cpu;
        return r;
}

/* A member runs nothing but its part of the ring: where it is the leader reads from outside. */
static int take_member(struct agent *a, struct proof_member *m, uint32_t thread) {
        struct thread_proof *p = &m->proof;
        int r = cpumask_get_affinity(m->pid, &p->affinity);
        if (r == 0)
                r = read_cpu(m->pid, m->pid, &p->cpu);
        if (r < 0)
                return failure_set(&a->failure, -r, "where process %" PRIu32 " (pid %d) is cannot be told: %s",
                                   thread + 1, m->pid, strerrordesc_np(-r));
        p->node = node_of_cpu(p->cpu);
        cpumask_add(&p->seen, p->cpu);
        take_migrations(p, m->pid, m->pid);
        return 0;
}

static int take_members(struct agent *a) {
        uint32_t n;
        struct proof_member *members = proof_members(a, &n);
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < n; i++)
                r = take_member(a, &members[i], a->n_workers + i);
        return r;
}

void proof_look(struct agent *a) {
        uint32_t n;
        struct proof_member *members = proof_members(a, &n);
        unsigned cpu;
        for (uint32_t i = 0; i < a->n_workers; i++)
                if (read_cpu(0, a->workers[i].tid, &cpu) == 0)
                        cpumask_add(&a->workers[i].proof.looked, cpu);
        for (uint32_t i = 0; i < n; i++)
                if (read_cpu(members[i].pid, members[i].pid, &cpu) == 0)
                        cpumask_add(&members[i].proof.looked, cpu);
        page_list_glance(&a->proof->pages);
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

static int list_pages(struct agent *a) {
        struct page_list *list = &a->proof->pages;
        uint32_t n_members;
        const struct proof_member *members = proof_members(a, &n_members);
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct worker *w = &a->workers[i];
                const struct stack_range *s = &w->proof.stack;
                r = page_list_add(list, "buffer", i, w->buffer, w->buffer_length);
                if (r == 0)
                        r = page_list_add_of(list, "stack", i, 0, s->low, s->high - s->low);
        }
        for (uint32_t i = 0; r == 0 && i < n_members; i++) {
                const struct stack_range *s = &members[i].proof.stack;
                r = page_list_add_of(list, "stack", a->n_workers + i, members[i].pid, s->low, s->high - s->low);
        }
        return r == 0 && a->proof->list_pages ? a->proof->list_pages(a, list) : r;
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

/* The thread that this runs in. */
static void put_leader(struct json_writer *w, const struct leader_proof *l) {
        json_object_begin(w);
        json_member_i64(w, "tid", gettid());
        json_put_key(w, "affinity");
        cpumask_put(w, &l->affinity);
        json_member_u64(w, "cpu", l->cpu);
        json_object_end(w);
}

static void put_proof(struct json_writer *w, struct agent *a, const struct leader_proof *l, const char *pages,
                      uint32_t listed) {
        json_object_begin(w);
        json_put_key(w, "affinity");
        cpumask_put(w, &a->affinity);
        json_put_key(w, "leader");
        put_leader(w, l);
        put_policy(w, &a->workers[0].proof);
        proof_put_threads(w, a, listed);
        json_member_u64(w, "pages_placed_together", pages_placed_together(a->setup.options.huge_pages == TOGGLE_ON));
        json_member_raw(w, "pages", pages);
        json_put_key(w, "page_sizes");
        page_sizes_put(&a->proof->sizes, w);
        if (a->proof->sizes.error < 0)
                json_member_string(w, "page_sizes_reason", strerrordesc_np(-a->proof->sizes.error));
        if (a->proof->pages.no_page_cache) {
                json_member_null(w, "page_cache");
                json_member_string(w, "page_cache_reason", a->proof->pages.no_page_cache);
        }
        json_object_end(w);
}

static int pages_to_json(struct agent *a, char **ret) {
        struct json_writer w;
        json_writer_init(&w);
        page_list_put(&a->proof->pages, a->n_workers > LISTED_MAX ? 0 : PAGES_MAX, &w);
        int r = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        return r;
}

/* Threads that were put nowhere prove nothing one by one: of many such only some are listed so. Pinned ones are all, as
 * long as there is room. */
static int print_proof(struct agent *a, const struct leader_proof *l, const char *pages, char **ret) {
        uint32_t total = proof_threads_total(a);
        const uint32_t listed[] = {a->setup.placement.n_cpus == 0 && total > LISTED_MAX ? LISTED_MAX : total, 0};
        size_t length = 0;
        for (size_t i = 0; i < ELEMENTS(listed); i++) {
                _cleanup_free_ char *text = NULL;
                struct json_writer w;
                json_writer_init(&w);
                put_proof(&w, a, l, pages, listed[i]);
                int r = json_writer_steal(&w, &text, &length);
                json_writer_deinit(&w);
                if (r < 0)
                        return r;
                if (length <= PROOF_MAX) {
                        *ret = util_steal(&text);
                        return 0;
                }
        }
        return failure_set(&a->failure, EMSGSIZE,
                           "the proof of where %" PRIu32 " threads are takes %zu bytes, and a message to the daemon "
                           "has room for %u (its limit is %u)",
                           total, length, PROOF_MAX, PROTOCOL_PACKET_MAX);
}

int proof_to_json(struct agent *a, char **ret) {
        _cleanup_free_ char *pages = NULL;
        struct leader_proof l;

        int r = check_policies(a);
        if (r == 0)
                r = cpumask_get_affinity(0, &l.affinity);
        if (r == 0 && syscall(SYS_getcpu, &l.cpu, NULL, NULL) < 0)
                r = -errno;
        if (r == 0)
                r = take_members(a);
        if (r == 0 && a->proof->pages.n == 0)
                r = list_pages(a);
        if (r == 0)
                page_sizes_read(&a->proof->pages, "/proc/self/smaps", &a->proof->sizes);
        if (r == 0)
                r = pages_to_json(a, &pages);
        /* a process that has ended has no pages: how it ended says more than that */
        if (r == 0 && a->proof->pages.lost && a->proof->missing)
                r = a->proof->missing(a);
        return r < 0 ? r : print_proof(a, &l, pages, ret);
}
