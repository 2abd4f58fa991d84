/* SPDX-License-Identifier: MIT */

#include "agent/measure/kernel-threads.h"

#include "agent/base/agent.h"
#include "agent/os/procfs.h"
#include "agent/os/thread-usage.h"
#include "schema/util.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "iou-wrk-"
#define FIRST_NAMESPACE "pid:[4026531836]" /* its number is part of the kernel's interface (PROC_PID_INIT_INO) */
#define NOBODY KERNEL_THREAD_OF_NOBODY

struct kernel_thread {
        pid_t tid;
        uint32_t worker;
        bool seen; /* by the current scan */
        struct usage usage;
};

struct kernel_threads {
        uint32_t n_workers;
        uint64_t cpu_ns;          /* of all, for all workers */
        bool any_of_nobody;       /* ever seen */
        struct usage *gone, *sum; /* per worker: of those that ended; of all */
        struct kernel_thread *threads;
        size_t n, room;
        size_t next;          /* the expected place of the next note: /proc lists them in the same order each time */
        uint32_t next_worker; /* the same of the workers */
};

struct kernel_threads *kernel_threads_new(uint32_t n_workers) {
        struct kernel_threads *k = calloc(1, sizeof *k);
        if (!k)
                return NULL;
        k->n_workers = n_workers;
        k->gone = calloc(n_workers, sizeof *k->gone);
        k->sum = calloc(n_workers, sizeof *k->sum);
        return k->gone && k->sum ? k : kernel_threads_free(k);
}

struct kernel_threads *kernel_threads_free(struct kernel_threads *k) {
        if (k) {
                free(k->gone);
                free(k->sum);
                free(k->threads);
        }
        free(k);
        return NULL;
}

static void add(struct usage *into, const struct usage *since_its_begin) {
        static const struct usage nothing;
        usage_add(into, since_its_begin, &nothing);
}

void kernel_threads_begin(struct kernel_threads *k) {
        for (size_t i = 0; i < k->n; i++)
                k->threads[i].seen = false;
        k->next = 0;
}

static struct kernel_thread *find(struct kernel_threads *k, pid_t tid) {
        for (size_t n = 0; n < k->n; n++) {
                size_t i = (k->next + n) % k->n;
                if (k->threads[i].tid == tid) {
                        k->next = i + 1;
                        return &k->threads[i];
                }
        }
        return NULL;
}

static struct kernel_thread *append(struct kernel_threads *k) {
        return util_grow(k->threads, k->n, k->room) ? &k->threads[k->n++] : NULL;
}

/* The kernel may reuse a TID: the new thread has used less time, or serves another worker. */
static bool is_another(const struct kernel_thread *t, uint32_t worker, const struct usage *now) {
        return t->worker != worker || t->usage.cpu_ns > now->cpu_ns ||
               t->usage.voluntary_switches > now->voluntary_switches ||
               t->usage.involuntary_switches > now->involuntary_switches;
}

int kernel_threads_add(struct kernel_threads *k, pid_t tid, uint32_t worker, const struct usage *now) {
        struct kernel_thread *t = find(k, tid);
        if (worker == NOBODY) {
                k->any_of_nobody = true;
                worker = 0;
        }
        if (t && is_another(t, worker, now))
                add(&k->gone[t->worker], &t->usage);
        else if (!t)
                t = append(k);
        if (!t)
                return -ENOMEM;
        *t = (struct kernel_thread){.tid = tid, .worker = worker, .seen = true, .usage = *now};
        return 0;
}

void kernel_threads_end(struct kernel_threads *k) {
        size_t left = 0;
        for (size_t i = 0; i < k->n; i++)
                if (k->threads[i].seen)
                        k->threads[left++] = k->threads[i];
                else
                        add(&k->gone[k->threads[i].worker], &k->threads[i].usage);
        k->n = left;
        memcpy(k->sum, k->gone, k->n_workers * sizeof *k->sum);
        for (size_t i = 0; i < k->n; i++)
                add(&k->sum[k->threads[i].worker], &k->threads[i].usage);
        k->cpu_ns = 0;
        for (uint32_t i = 0; i < k->n_workers; i++)
                k->cpu_ns += k->sum[i].cpu_ns;
}

struct usage kernel_threads_usage(const struct agent *a, uint32_t worker) {
        const struct kernel_threads *k = a->kernel_threads;
        if (!k)
                return (struct usage){.cpu_ns = 0};
        struct usage u = k->sum[worker];
        u.ring_ns = k->any_of_nobody ? k->cpu_ns : u.cpu_ns;
        return u;
}

static uint32_t worker_of(const struct agent *a, struct kernel_threads *k, pid_t tid) {
        for (uint32_t n = 0; n < a->n_workers; n++) {
                uint32_t i = (k->next_worker + n) % a->n_workers;
                if (a->workers[i].tid == tid) {
                        k->next_worker = i + 1;
                        return i;
                }
        }
        return NOBODY;
}

/* KERNEL_THREAD_OF_NOBODY where it is unknown. */
static uint32_t master_of(const struct agent *a, struct kernel_threads *k, const char *number) {
        char namespace[64] = "";
        if (a->n_workers == 1)
                return 0;
        if (readlink("/proc/self/ns/pid", namespace, sizeof namespace - 1) < 0 ||
            strcmp(namespace, FIRST_NAMESPACE) != 0)
                return NOBODY;
        return worker_of(a, k, (pid_t) strtol(number, NULL, 10));
}

static int take(struct agent *a, struct kernel_threads *k, pid_t tid, const char *stat, const char *number) {
        struct usage now = {.cpu_ns = 0};
        uint64_t cpu;
        uint32_t master = master_of(a, k, number);
        int r = procfs_stat_number(stat, STAT_PROCESSOR, &cpu);
        if (r == 0)
                r = thread_usage_add(&now, tid);
        if (r < 0)
                return r == -EINVAL ? -ESRCH : r; /* clock_gettime() returns it for a thread that has ended */
        if (master != NOBODY)
                cpumask_add(&a->workers[master].proof.observed, (unsigned) cpu);
        return kernel_threads_add(k, tid, master, &now);
}

static int look_at(struct agent *a, struct kernel_threads *k, pid_t tid) {
        char stat[1024];
        if (worker_of(a, k, tid) != NOBODY)
                return 0;
        int r = procfs_read_task(tid, "stat", stat, sizeof stat);
        const char *name = r == 0 ? strchr(stat, '(') : NULL;
        if (name && strncmp(name + 1, NAME, strlen(NAME)) == 0)
                r = take(a, k, tid, stat, name + 1 + strlen(NAME));
        return r == -ENOENT || r == -ESRCH ? 0 : r; /* it has just ended */
}

static int look(struct agent *a, struct kernel_threads *k) {
        DIR *d = opendir("/proc/self/task");
        int r = 0;
        if (!d)
                return -errno;
        kernel_threads_begin(k);
        for (struct dirent *e; r == 0 && (errno = 0, e = readdir(d));)
                if (e->d_name[0] != '.')
                        r = look_at(a, k, (pid_t) strtol(e->d_name, NULL, 10));
        if (r == 0)
                r = -errno;
        (void) closedir(d);
        if (r == 0)
                kernel_threads_end(k);
        return r;
}

int kernel_threads_scan(struct agent *a) {
        if (a->setup.point.engine != ENGINE_IO_URING)
                return 0;
        if (!a->kernel_threads)
                a->kernel_threads = kernel_threads_new(a->n_workers);
        int r = a->kernel_threads ? look(a, a->kernel_threads) : -ENOMEM;
        if (r < 0)
                return failure_set(&a->failure, -r, "the kernel's threads for the rings cannot be read: %s",
                                   strerrordesc_np(-r));
        return 0;
}
