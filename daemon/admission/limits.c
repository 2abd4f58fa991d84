/* SPDX-License-Identifier: MIT */
/*
 * Checks what a point needs against what the host has, with a row for each limit that is one number. Called by
 * admission.c. Limits that take more than a number (placement, memory by node, file systems, message queues) have files
 * of their own.
 *
 * Source: pipe(7), socket(7), tcp(7), ip(7), getrlimit(2), the kernel's round_pipe_size() and
 * mm_account_pinned_pages().
 */

#include "daemon/admission/admission.h"
#include "daemon/admission/internal.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

/* Leaders and main threads of both agents. */
#define EXTRA_THREADS 4u

int admission_refuse(const struct admission *a, const char *pointer, const char *limit, uint64_t limit_value,
                     uint64_t value, const char *why) {
        char limit_text[32], value_text[32];
        (void) snprintf(limit_text, sizeof(limit_text), "%" PRIu64, limit_value);
        (void) snprintf(value_text, sizeof(value_text), "%" PRIu64, value);
        return refuse_limit(a->r, pointer, limit, limit_text, value_text, "%s: %s needed, %s is %s", why, value_text,
                            limit, limit_text);
}

int admission_refuse_limit(const struct admission *a, const char *pointer, enum host_limit limit, uint64_t have,
                           uint64_t need, const char *why) {
        char have_text[32], need_text[32], sentence[LIMIT_SENTENCE_MAX];
        (void) snprintf(have_text, sizeof(have_text), "%" PRIu64, have);
        (void) snprintf(need_text, sizeof(need_text), "%" PRIu64, need);
        return refuse_limit(a->r, pointer, host_limits[limit].name, have_text, need_text, "%s",
                            limit_sentence(sentence, limit, have, need, why));
}

/* A setting that is not there does not limit. */
uint64_t admission_setting(struct admission *a, const char *path) {
        uint64_t v = 0;
        return hostfs_u64(a->h, &v, "%s", path) == 0 ? v : ADMISSION_UNLIMITED;
}

/* A power of two, at least a page. */
uint64_t admission_pipe_bytes(uint64_t bytes) {
        uint64_t size = (uint64_t) sysconf(_SC_PAGESIZE);
        while (size < bytes && size < UINT64_C(1) << 62)
                size *= 2;
        return size;
}

uint64_t admission_tasks(const struct point *p) {
        return workload_has_processes(p->workload) ? p->processes
                                                   : (uint64_t) p->threads * workload_agents(p->workload);
}

struct limit {
        enum host_limit id;
        uint64_t (*have)(struct admission *a, const char *source); /* ADMISSION_UNLIMITED: it does not limit */
        const char *source;                                        /* a path, or a name in /proc/self/limits */
        uint64_t (*need)(struct admission *a);                     /* 0: nothing */
        const char *pointer; /* of the spec's field; NULL: the field that gives the threads or processes */
        const char *why;
        uint64_t (*posted)(struct admission *a); /* what a refusal names, where `need` is rounded up; NULL: `need` */
};

/* Agents raise the soft limit themselves. */
static uint64_t hard_limit(struct admission *a, const char *name) {
        uint64_t v = 0;
        return hostfs_process_limit(a->h, name, true, &v) == 0 ? v : ADMISSION_UNLIMITED;
}

/* The least of the daemon's own group and those above it. */
static uint64_t cgroup_pids_max(struct admission *a, const char *file) {
        char group[CAPACITY_CGROUP_MAX];
        uint64_t least = ADMISSION_UNLIMITED;
        for (bool more = capacity_cgroup(a->h, group); more; more = capacity_cgroup_above(group)) {
                uint64_t v = 0;
                if (hostfs_u64(a->h, &v, "/sys/fs/cgroup%s/%s", group, file) == 0 && v < least)
                        least = v;
        }
        return least;
}

/* A value of 0 means no limit. */
static uint64_t setting_or_none(struct admission *a, const char *path) {
        uint64_t v = admission_setting(a, path);
        return v ? v : ADMISSION_UNLIMITED;
}

/* "32768 60999", from the first to the last. */
static uint64_t ports(struct admission *a, const char *path) {
        char line[64], *end = NULL;
        if (hostfs_line(a->h, line, sizeof(line), "%s", path) < 0)
                return ADMISSION_UNLIMITED;
        unsigned long first = strtoul(line, &end, 10), last = strtoul(end, NULL, 10);
        return last >= first ? last - first + 1 : 0;
}

static uint64_t memlock(struct admission *a, const char *source) {
        (void) source;
        return a->memlock_bytes ? a->memlock_bytes : ADMISSION_UNLIMITED; /* 0: not known */
}

static uint64_t pipe_size(struct admission *a) {
        return a->options.pipe_size;
}

static uint64_t need_pipe(struct admission *a) {
        return a->options.pipe_size ? admission_pipe_bytes(a->options.pipe_size) : 0;
}

static uint64_t need_pipe_pages(struct admission *a) {
        uint64_t pages = admission_pipe_bytes(a->options.pipe_size) / (uint64_t) sysconf(_SC_PAGESIZE);
        return a->options.pipe_size ? pages * a->p->threads * point_directions(a->p) : 0;
}

static uint64_t need_sndbuf(struct admission *a) {
        return a->options.sndbuf;
}

static uint64_t need_rcvbuf(struct admission *a) {
        return a->options.rcvbuf;
}

static uint64_t need_busy_poll(struct admission *a) {
        return a->options.busy_poll;
}

static uint64_t need_tasks(struct admission *a) {
        return admission_tasks(a->p) + EXTRA_THREADS;
}

static uint64_t need_descriptors(struct admission *a) {
        return point_descriptors(a->p);
}

static uint64_t need_own_descriptors(struct admission *a) {
        (void) a;
        return DESCRIPTORS_LEAST;
}

/* Each connection to the one port of the server needs a port of its own. */
static uint64_t need_ports(struct admission *a) {
        bool connects = workload_has_transport(a->p->workload) && transport_terms[a->p->transport].has_listener;
        return connects ? a->p->threads + UINT64_C(1) : 0;
}

/* Rings of all threads, where the kernel counts them. */
static uint64_t need_locked_rings(struct admission *a) {
        if (workload_agents(a->p->workload) < END_COUNT || a->p->engine != ENGINE_IO_URING ||
            memlock(a, NULL) == ADMISSION_UNLIMITED)
                return 0;
        return a->rings_are_locked ? point_ring_pages(a->p) * (uint64_t) sysconf(_SC_PAGESIZE) * a->p->threads : 0;
}

/* The pages of one send, wherever it begins in the first of them, are pinned at once. Those of other threads' messages
 * are waited for. What is registered is so only where there is room for it, too. */
static uint64_t need_pinned(struct admission *a) {
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
        if (workload_agents(a->p->workload) < END_COUNT || point_zero_copy(a->p) != ZERO_COPY_NOTIFY)
                return 0;
        return (a->p->message_size / page + 2) * page + need_locked_rings(a);
}

#define TOO_MANY_TASKS "too many threads for this host"

static const struct limit limits[] = {
        {HOST_PIPE_MAX_SIZE, admission_setting, "/proc/sys/fs/pipe-max-size", need_pipe, "/transport_options/pipe_size",
         "a pipe of this size is for the privileged only", pipe_size},
        {HOST_PIPE_USER_PAGES, setting_or_none, "/proc/sys/fs/pipe-user-pages-soft", need_pipe_pages,
         "/transport_options/pipe_size", "the pipes of all threads together hold more pages than one user may", NULL},
        {HOST_WMEM_MAX, admission_setting, "/proc/sys/net/core/wmem_max", need_sndbuf, "/transport_options/sndbuf",
         "the kernel would reduce SO_SNDBUF", NULL},
        {HOST_RMEM_MAX, admission_setting, "/proc/sys/net/core/rmem_max", need_rcvbuf, "/transport_options/rcvbuf",
         "the kernel would reduce SO_RCVBUF", NULL},
        {HOST_BUSY_READ, admission_setting, "/proc/sys/net/core/busy_read", need_busy_poll,
         "/transport_options/busy_poll", "a longer SO_BUSY_POLL than every socket has is for the privileged only",
         NULL},
        {HOST_NPROC, hard_limit, "Max processes", need_tasks, NULL, TOO_MANY_TASKS, NULL},
        {HOST_PID_MAX, admission_setting, "/proc/sys/kernel/pid_max", need_tasks, NULL, TOO_MANY_TASKS, NULL},
        {HOST_THREADS_MAX, admission_setting, "/proc/sys/kernel/threads-max", need_tasks, NULL, TOO_MANY_TASKS, NULL},
        {HOST_CGROUP_PIDS, cgroup_pids_max, "pids.max", need_tasks, NULL, TOO_MANY_TASKS, NULL},
        {HOST_NOFILE, hard_limit, "Max open files", need_descriptors, NULL, "too many descriptors for one agent", NULL},
        {HOST_NOFILE, hard_limit, "Max open files", need_own_descriptors, "", "too few descriptors for the daemon",
         NULL},
        {HOST_PORTS, ports, "/proc/sys/net/ipv4/ip_local_port_range", need_ports, "/threads",
         "too many connections for this host's ports", NULL},
        {HOST_MEMLOCK, memlock, NULL, need_locked_rings, "/threads",
         "the rings of all threads are locked memory, in bytes", NULL},
        {HOST_MEMLOCK, memlock, NULL, need_pinned, "/message_size",
         "a zero-copy send pins the pages of its whole message, beside the rings of all threads where they count, in "
         "bytes",
         NULL},
};

int check_limits(struct admission *a) {
        for (size_t i = 0; i < ELEMENTS(limits); i++) {
                const struct limit *l = &limits[i];
                const char *pointer = l->pointer ? options_pointer(&a->spec->options, l->pointer)
                                      : workload_has_processes(a->p->workload) ? "/processes"
                                                                               : "/threads";
                uint64_t need = l->need(a), have = need ? l->have(a, l->source) : ADMISSION_UNLIMITED;
                if (need > have)
                        return admission_refuse_limit(a, pointer, l->id, have, l->posted ? l->posted(a) : need, l->why);
        }
        return 0;
}
