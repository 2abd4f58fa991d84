/* SPDX-License-Identifier: MIT */

/*
 * Reads the placement of threads and pages from the kernel. A worker reads its own affinity, policy and CPU while it
 * rests; the leader reads the CPUs through /proc while loops run. pages.c checks the pages.
 *
 * The report has a row for each thread, or, where these exceed a packet, one for all threads with the same affinity.
 * The daemon's checks lose nothing by that: such threads have the same requested placement, and their row includes the
 * observations of each.
 */

#include "agent/proof/proof.h"

#include "agent/base/agent.h"
#include "agent/os/procfs.h"
#include "schema/json/json.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <dirent.h>
#include <inttypes.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define STACK_PROVEN (16u * 1024u) /* more than any loop uses */
#define WORD (8 * sizeof(unsigned long))
/* Threads whose affinity and scheduling are read at a time, which takes a microsecond or two each; of more than ten
 * times as many a tenth, so that each has its turn about once a second. */
#define LOOKS_LEAST 64u
/* More threads than this are merged where that loses nothing, */
#define LISTED_MAX 64u
/* and fewer where the stored text of the proof would exceed this limit. In a packet a row of threads or pages is
 * shorter than its text, but each node of pages has 18 bytes there, and may have 8 of text: many rows of pages on
 * several nodes each may be too long for it. Then the sending fails, with EMSGSIZE. */
#define PROOF_MAX (PROTOCOL_PACKET_MAX - 16u * 1024u)
#define PAGES_MAX (PROOF_MAX / 2)

static uintptr_t page_size(void) {
        return (uintptr_t) sysconf(_SC_PAGESIZE);
}

/* The processes that the workload forked to measure with; NULL and 0 where none exist. */
static struct proof_member *members_of(const struct agent *a, uint32_t *ret_n) {
        *ret_n = 0;
        return a->proof->members ? a->proof->members(a, ret_n) : NULL;
}

/* The range is within `below`, so no used part of the stack is discarded. */
__attribute__((noinline)) void proof_take_stack(struct stack_range *ret) {
        volatile unsigned char below[STACK_PROVEN];
        ret->low = ((uintptr_t) below + page_size() - 1) / page_size() * page_size();
        ret->high = ((uintptr_t) below + sizeof below) / page_size() * page_size();
        /* On failure the pages stay in place, and the proof reports their nodes. */
        (void) madvise((void *) ret->low, ret->high - ret->low, MADV_DONTNEED); /* NOLINT(performance-no-int-to-ptr) */
        for (size_t i = 0; i < sizeof below; i += 256)
                below[i] = 0;
}

static void take_policy(struct thread_proof *p) {
        unsigned long nodes[SPEC_NODES_MAX / WORD] = {};
        int mode = 0, r = 0;

        memset(&p->policy_nodes, 0, sizeof p->policy_nodes);
        if (syscall(SYS_get_mempolicy, &mode, nodes, (unsigned long) SPEC_NODES_MAX, NULL, 0UL) < 0)
                r = -errno;
        mode &= ~MPOL_MODE_FLAGS; /* policies are numbered as the kernel's modes */
        if (r == 0 && (mode < 0 || mode >= (int) MEMORY_COUNT))
                r = -EOPNOTSUPP;
        if (r == 0)
                p->policy = (enum memory_policy) mode;
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
                return failure_set(&w->failure, -r, "the placement of thread %" PRIu32 " cannot be read: %s", w->index,
                                   strerrordesc_np(-r));
        cpumask_add(&p->seen, p->cpu);
        if (!p->has_base)
                proof_take_stack(&p->stack); /* the run's loop uses the same frames */
        take_migrations(p, 0, w->tid);
        take_policy(p);
        return 0;
}

struct leader_proof {
        struct cpumask affinity;
        unsigned cpu;
};

/* Returns a CPU's node, to which its directory has a link; 0 in a kernel without NUMA, which has no such link. */
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

/* A member runs nothing but its loop, so the leader reads its placement from outside. */
static int take_member(struct agent *a, struct proof_member *m, uint32_t thread) {
        struct thread_proof *p = &m->proof;
        int r = cpumask_get_affinity(m->pid, &p->affinity);
        if (r == 0)
                r = read_cpu(m->pid, m->pid, &p->cpu);
        if (r < 0)
                return failure_set(&a->failure, -r, "the placement of process %" PRIu32 " (pid %d) cannot be read: %s",
                                   thread + 1, m->pid, strerrordesc_np(-r));
        p->node = node_of_cpu(p->cpu);
        cpumask_add(&p->seen, p->cpu);
        take_migrations(p, m->pid, m->pid);
        return 0;
}

static int take_members(struct agent *a) {
        uint32_t n;
        struct proof_member *members = members_of(a, &n);
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < n; i++)
                r = take_member(a, &members[i], a->n_workers + i);
        return r;
}

/* A process of the same user may change it, and no figure would show it. */
static void observe_scheduling(struct thread_proof *p, pid_t tid) {
        struct scheduling now = {0};
        if (!p->has_scheduling || scheduling_read(tid, &now) < 0 || scheduling_equal(&now, &p->scheduling))
                return;
        p->rescheduled = now;
        p->is_rescheduled = true;
}

/* What cannot be read of a thread that ends meanwhile is none of the observation's. */
static void observe_rights(struct thread_proof *p, pid_t tid) {
        struct cpumask affinity;
        observe_scheduling(p, tid);
        if (!p->has_initial || cpumask_get_affinity(tid, &affinity) < 0 || cpumask_equal(&affinity, &p->initial))
                return;
        p->changed = affinity;
        p->has_changed = true;
}

static void observe_cpu(struct thread_proof *p, pid_t pid, pid_t tid) {
        unsigned cpu;
        if (read_cpu(pid, tid, &cpu) == 0)
                cpumask_add(&p->observed, cpu);
}

void proof_observe_rights(struct agent *a) {
        uint32_t n, *next = &a->proof->looked;
        struct proof_member *members = members_of(a, &n);
        const uint32_t total = a->n_workers + n, tenth = (total + 9) / 10;
        for (uint32_t i = 0; i < total && i < (tenth > LOOKS_LEAST ? tenth : LOOKS_LEAST); i++) {
                uint32_t at = (*next)++ % total;
                if (at < a->n_workers)
                        observe_rights(&a->workers[at].proof, a->workers[at].tid);
                else
                        observe_rights(&members[at - a->n_workers].proof, members[at - a->n_workers].pid);
        }
}

void proof_observe(struct agent *a) {
        uint32_t n;
        struct proof_member *members = members_of(a, &n);
        for (uint32_t i = 0; i < a->n_workers; i++)
                observe_cpu(&a->workers[i].proof, 0, a->workers[i].tid);
        for (uint32_t i = 0; i < n; i++)
                observe_cpu(&members[i].proof, members[i].pid, members[i].pid);
        page_list_sample(&a->proof->pages);
}

static void keep_initial(struct thread_proof *p, pid_t tid) {
        if (!p->has_initial) {
                p->initial = p->affinity;
                p->has_scheduling = scheduling_read(tid, &p->scheduling) == 0;
        }
        p->has_initial = true;
}

/* Called with all workers at rest. */
static void keep_initials(struct agent *a) {
        uint32_t n;
        struct proof_member *members = members_of(a, &n);
        for (uint32_t i = 0; i < a->n_workers; i++)
                keep_initial(&a->workers[i].proof, a->workers[i].tid);
        for (uint32_t i = 0; i < n; i++)
                keep_initial(&members[i].proof, members[i].pid);
}

static int check_scheduling(struct agent *a, uint32_t thread, struct thread_proof *p, pid_t tid) {
        char now[SCHEDULING_TEXT_MAX], before[SCHEDULING_TEXT_MAX];
        observe_scheduling(p, tid);
        if (!p->is_rescheduled)
                return 0;
        (void) scheduling_print(&p->rescheduled, now); /* has words for an unknown policy, too */
        (void) scheduling_print(&p->scheduling, before);
        return failure_set(&a->failure, EPERM,
                           "the scheduling of thread %" PRIu32 " was changed by another process while it was measured: "
                           "%s instead of %s",
                           thread, now, before);
}

static int check_schedulings(struct agent *a) {
        uint32_t n;
        int r = 0;
        struct proof_member *members = members_of(a, &n);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++)
                r = check_scheduling(a, i, &a->workers[i].proof, a->workers[i].tid);
        for (uint32_t i = 0; r == 0 && i < n; i++)
                r = check_scheduling(a, a->n_workers + i, &members[i].proof, members[i].pid);
        return r;
}

static int list_pages(struct agent *a) {
        struct page_list *list = &a->proof->pages;
        uint32_t n_members;
        const struct proof_member *members = members_of(a, &n_members);
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct worker *w = &a->workers[i];
                const struct stack_range *s = &w->proof.stack;
                r = page_list_add(list, PAGES_BUFFER, i, w->buffer, w->buffer_length);
                if (r == 0 && w->cold.memory)
                        r = page_list_add(list, PAGES_BUFFER, i, w->cold.memory, w->cold.length);
                if (r == 0)
                        r = page_list_add_of(list, PAGES_STACK, i, 0, s->low, s->high - s->low);
        }
        for (uint32_t i = 0; r == 0 && i < n_members; i++) {
                const struct stack_range *s = &members[i].proof.stack;
                r = page_list_add_of(list, PAGES_STACK, a->n_workers + i, members[i].pid, s->low, s->high - s->low);
        }
        return r == 0 && a->proof->list_pages ? a->proof->list_pages(a, list) : r;
}

/* Threads inherit the process's policy; the summary would be wrong for a thread with another one. */
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

/* Thread i of all: the agent's own threads, then the forked processes. */
static const struct thread_proof *nth(const struct agent *a, uint32_t i, pid_t *ret_tid) {
        uint32_t n_members;
        const struct proof_member *members = members_of(a, &n_members);
        if (i < a->n_workers) {
                *ret_tid = a->workers[i].tid;
                return &a->workers[i].proof;
        }
        *ret_tid = members[i - a->n_workers].pid;
        return &members[i - a->n_workers].proof;
}

/* That of the end; or another one that it had meanwhile, which is wrong whatever the end's is. */
static const struct cpumask *affinity_of(const struct thread_proof *p) {
        return p->has_changed ? &p->changed : &p->affinity;
}

static struct cpumask cpus_seen(const struct thread_proof *p) {
        struct cpumask seen = p->seen;
        cpumask_merge(&seen, &p->observed);
        return seen;
}

static struct proof_list list_of_cpus(struct proof_report *p, const struct cpumask *m) {
        struct proof_list list = proof_report_numbers(p);
        for (unsigned cpu = 0; cpu < CPUMASK_CPUS; cpu++)
                if (cpumask_has(m, cpu))
                        proof_report_add_number(p, &list, cpu);
        return list;
}

static struct proof_list list_of_nodes(struct proof_report *p, const struct node_set *s) {
        struct proof_list list = proof_report_numbers(p);
        for (unsigned node = 0; node < SPEC_NODES_MAX; node++)
                if (node_set_has(s, node))
                        proof_report_add_number(p, &list, node);
        return list;
}

static void report_thread(struct proof_report *p, const struct agent *a, uint32_t i) {
        pid_t tid;
        const struct thread_proof *t = nth(a, i, &tid);
        const struct cpumask seen = cpus_seen(t);
        struct proof_thread *row = proof_report_add_thread(p);
        if (!row)
                return;
        row->tid = tid;
        row->cpu = t->cpu;
        row->node = t->node;
        row->migrations = t->migrations - t->migrations_base;
        row->migrations_error = (uint32_t) t->migrations_error;
        row->affinity = list_of_cpus(p, affinity_of(t));
        row->cpus_seen = list_of_cpus(p, &seen);
}

static bool is_alike(const struct agent *a, uint32_t i, uint32_t k) {
        pid_t tid;
        return cpumask_equal(affinity_of(nth(a, i, &tid)), affinity_of(nth(a, k, &tid)));
}

/* Adds the row of all threads from `first` on with its affinity. */
static void report_group(struct proof_report *p, const struct agent *a, uint32_t first, uint32_t total) {
        struct proof_group *row = proof_report_add_group(p);
        struct cpumask cpus = {}, seen = {};
        struct node_set nodes = {};
        pid_t tid;
        if (!row)
                return;
        row->threads = proof_report_numbers(p);
        for (uint32_t i = first; i < total; i++)
                if (is_alike(a, first, i)) {
                        const struct thread_proof *t = nth(a, i, &tid);
                        const struct cpumask all = cpus_seen(t);
                        proof_report_add_number(p, &row->threads, i);
                        cpumask_add(&cpus, t->cpu);
                        cpumask_merge(&seen, &all);
                        node_set_add(&nodes, t->node);
                        row->migrations += t->migrations - t->migrations_base;
                        if (t->migrations_error)
                                row->migrations_error = (uint64_t) t->migrations_error;
                }
        row->affinity = list_of_cpus(p, affinity_of(nth(a, first, &tid)));
        row->cpus = list_of_cpus(p, &cpus);
        row->nodes = list_of_nodes(p, &nodes);
        row->cpus_seen = list_of_cpus(p, &seen);
}

/* Adds rows of the first `listed` threads, and of all others in groups, and sets the total. */
static void list_threads(struct proof_report *p, const struct agent *a, uint32_t listed, uint32_t total) {
        for (uint32_t i = 0; i < listed; i++)
                report_thread(p, a, i);
        for (uint32_t i = listed; i < total; i++) {
                uint32_t before = listed;
                while (before < i && !is_alike(a, before, i))
                        before++;
                if (before == i)
                        report_group(p, a, i, total);
        }
        p->threads_total = total;
}

/* The rows of pages come first: they are the same, however many threads are listed. */
static void report_process(struct proof_report *p, struct agent *a, const struct leader_proof *l) {
        const struct thread_proof *first = &a->workers[0].proof;
        const struct proof *proof = a->proof;
        p->affinity = list_of_cpus(p, &a->affinity);
        p->leader_tid = gettid();
        p->leader_cpu = l->cpu;
        p->leader_affinity = list_of_cpus(p, &l->affinity);
        p->policy = first->policy;
        p->policy_error = (uint32_t) first->policy_error;
        p->policy_nodes = list_of_nodes(p, &first->policy_nodes);
        p->placed_together = pages_placed_together(a->setup.options.huge_pages == TOGGLE_ON);
        page_list_report(&a->proof->pages, a->n_workers > LISTED_MAX ? 0 : PAGES_MAX, p);
        p->sizes_error = (uint32_t) -proof->sizes.error;
        for (size_t i = 0; proof->sizes.error == 0 && i < proof->sizes.n; i++) {
                struct proof_page_sizes *row = proof_report_add_sizes(p);
                if (row)
                        *row = proof->sizes.rows[i];
        }
        if (proof->pages.no_page_cache)
                (void) snprintf(p->no_page_cache, sizeof p->no_page_cache, "%s", proof->pages.no_page_cache);
}

/* The length of the text that the daemon stores of it. 0; -ENOMEM. */
static int text_length(const struct proof_report *p, size_t *ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        proof_report_put(p, &w);
        *ret = w.length;
        return w.error;
}

/* Rows of threads that are not pinned prove nothing, so only some of many are listed. Pinned threads are all listed, as
 * far as they fit. */
static int report_threads(struct proof_report *p, struct agent *a) {
        uint32_t n_members;
        (void) members_of(a, &n_members);
        uint32_t total = a->n_workers + n_members;
        const uint32_t listed[] = {a->setup.placement.n_cpus == 0 && total > LISTED_MAX ? LISTED_MAX : total, 0};
        size_t n_numbers = p->of.n_numbers, length = 0;
        for (size_t i = 0; i < ELEMENTS(listed); i++) {
                p->of.n_threads = p->of.n_groups = 0;
                p->of.n_numbers = n_numbers;
                list_threads(p, a, listed[i], total);
                int r = p->error < 0 ? p->error : text_length(p, &length);
                if (r < 0 || length <= PROOF_MAX)
                        return r;
        }
        return failure_set(&a->failure, EMSGSIZE,
                           "the proof of where %" PRIu32 " threads are takes %zu bytes of text, at most %u are stored",
                           total, length, PROOF_MAX);
}

int proof_collect(struct agent *a, struct proof_report **ret) {
        _cleanup_(proof_report_freep) struct proof_report *p = calloc(1, sizeof *p);
        struct leader_proof l;

        int r = p ? check_policies(a) : -ENOMEM;
        if (r == 0)
                r = cpumask_get_affinity(0, &l.affinity);
        if (r == 0 && syscall(SYS_getcpu, &l.cpu, NULL, NULL) < 0)
                r = -errno;
        if (r == 0)
                r = take_members(a);
        if (r == 0) {
                keep_initials(a);
                r = check_schedulings(a);
        }
        if (r == 0 && a->proof->pages.n == 0)
                r = list_pages(a);
        if (r < 0)
                return r;
        page_sizes_read(&a->proof->pages, "/proc/self/smaps", &a->proof->sizes);
        report_process(p, a, &l);
        r = p->error;
        /* a process that has ended has no pages: the reason of its end is the better error */
        if (r == 0 && a->proof->pages.lost && a->proof->missing)
                r = a->proof->missing(a);
        if (r == 0)
                r = report_threads(p, a);
        if (r == 0)
                *ret = util_steal(&p);
        return r;
}
