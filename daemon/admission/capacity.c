/* SPDX-License-Identifier: MIT */
/*
 * Has one reader per limit, which gives its value and how to raise it. The transport's row (schema/transport/table.h)
 * names its limit.
 *
 * Source: pipe(7), unix(7), tcp(7), shm_overview(7), mq_overview(7), msgget(2), shmget(2), tmpfs(5); net/core/sock.c
 * for datagrams.
 */

#include "daemon/admission/capacity.h"

#include "schema/limits.h"
#include "schema/spec/spec.h"
#include "schema/transport/file-layout.h"
#include "schema/transport/ring-layout.h"
#include "schema/util.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#define KIB UINT64_C(1024)

/* A Unix datagram is one socket buffer: at most one allocation of the kernel's largest kind (4 MiB) and 17 page
 * fragments, less the buffer's own tail of 320 bytes. Above it send() fails with ENOBUFS whatever the socket's size
 * (found by trying, kernel 6.18). */
#define DATAGRAM_LINEAR_MAX (4096 * KIB)
#define DATAGRAM_FRAGMENTS 17u
#define DATAGRAM_TAIL 320u
#define DATAGRAM_RESERVE 32u /* unix_dgram_sendmsg(): sndbuf less this */
#define SOCKET_BUFFER_MIN 4608u

#define SHM_KERNEL_DEFAULT "cannot be raised: a run's own IPC namespace has the kernel's default"

/* From here on a message has just two slots, whose bytes grow with it. */
#define TWO_SLOTS_FROM (4096 * KIB)
#define STEP 64u /* the unit of slots, and of pages: messages between two multiples take the same */

struct reading {
        struct hostfs *h;
        const struct capacity_question *q;
};

static int unknown(struct capacity *ret, const struct hostfs *h, int error) {
        (void) snprintf(ret->reason, sizeof(ret->reason), "cannot read %.90s: %s", h->path,
                        error == -EBADMSG ? "not in the form that the kernel writes" : strerrordesc_np(-error));
        return 0;
}

static void decide(struct capacity *c, uint64_t transfer, const char *limit, uint64_t value, const char *raise) {
        c->known = true;
        c->largest_transfer = transfer;
        (void) snprintf(c->limit, sizeof(c->limit), "%s", limit);
        c->value = value;
        c->raise = raise;
}

static void decide_limit(struct capacity *c, uint64_t transfer, enum host_limit limit, uint64_t value) {
        decide(c, transfer, host_limits[limit].name, value, host_limits[limit].raise);
}

static int read_pipe(const struct reading *g, struct capacity *c) {
        uint64_t v = 0;
        int r = hostfs_u64(g->h, &v, "/proc/sys/fs/pipe-max-size");
        if (r < 0)
                return unknown(c, g->h, r);
        decide_limit(c, v, HOST_PIPE_MAX_SIZE, v);
        return 0;
}

/* setsockopt(SO_SNDBUF) doubles the given value, up to this limit. */
static int read_stream_socket(const struct reading *g, struct capacity *c) {
        uint64_t v = 0;
        int r = hostfs_u64(g->h, &v, "/proc/sys/net/core/wmem_max");
        if (r < 0)
                return unknown(c, g->h, r);
        decide(c, 2 * v, host_limits[HOST_WMEM_MAX].name, v,
               "sysctl net.core.wmem_max=BYTES (SO_SNDBUF becomes twice BYTES)");
        return 0;
}

/* A datagram must fit the send buffer of the spec, else the largest that the agent may set. */
static int read_datagram_socket(const struct reading *g, struct capacity *c) {
        uint64_t most = 0, page = (uint64_t) sysconf(_SC_PAGESIZE);
        uint64_t kernel = DATAGRAM_LINEAR_MAX + DATAGRAM_FRAGMENTS * page - DATAGRAM_TAIL;
        uint64_t requested = g->q->options ? g->q->options->sndbuf : 0;
        int r = hostfs_u64(g->h, &most, "/proc/sys/net/core/wmem_max");
        if (r < 0)
                return unknown(c, g->h, r);
        /* The kernel doubles the value of SO_SNDBUF and raises it to SOCK_MIN_SNDBUF at least. */
        uint64_t sndbuf = requested ? requested : most;
        uint64_t buffer = sndbuf > UINT64_MAX / 2 ? UINT64_MAX : 2 * sndbuf;
        uint64_t message = (buffer < SOCKET_BUFFER_MIN ? SOCKET_BUFFER_MIN : buffer) - DATAGRAM_RESERVE;
        if (message > kernel)
                decide(c, kernel, "kernel's largest socket buffer", kernel, "cannot be raised: fixed in the kernel");
        else if (requested)
                decide(c, message,
                       g->q->options->buffer_bytes == requested ? "transport_options.buffer_bytes"
                                                                : "transport_options.sndbuf",
                       requested, "a larger one (half of the message and 16)");
        else
                decide(c, message, host_limits[HOST_WMEM_MAX].name, most,
                       "sysctl net.core.wmem_max=BYTES (half of the message and 16)");
        return 0;
}

/* "4096 16384 4194304": least, default, most that a socket's send buffer grows to by itself. */
static int read_tcp(const struct reading *g, struct capacity *c) {
        char line[128], *at = line;
        uint64_t v = 0;
        int r = hostfs_line(g->h, line, sizeof(line), "/proc/sys/net/ipv4/tcp_wmem");
        for (unsigned i = 0; r == 0 && i < 3; i++) {
                char *end = NULL;
                v = strtoull(at, &end, 10);
                r = end == at ? -EBADMSG : 0;
                at = end;
        }
        if (r < 0)
                return unknown(c, g->h, r);
        decide_limit(c, v, HOST_TCP_WMEM, v);
        return 0;
}

/* A run in an IPC namespace of its own has the namespace's limits: the kernel's defaults, not the host's settings. */
static int read_shm_sysv(const struct reading *g, struct capacity *c) {
        const struct queue_host *q = g->q->queues;
        bool own = q && !q->trouble[0] && q->shmmax && q->shmall;
        uint64_t most = own ? q->shmmax : 0, pages = own ? q->shmall : 0, page = (uint64_t) sysconf(_SC_PAGESIZE);
        int r = own ? 0 : hostfs_u64(g->h, &most, "/proc/sys/kernel/shmmax");
        if (r == 0 && !own)
                r = hostfs_u64(g->h, &pages, "/proc/sys/kernel/shmall");
        if (r < 0)
                return unknown(c, g->h, r);
        uint64_t all = pages > UINT64_MAX / page ? UINT64_MAX : pages * page;
        if (all < most)
                decide(c, all, host_limits[HOST_SHMALL].name, pages,
                       own ? SHM_KERNEL_DEFAULT : host_limits[HOST_SHMALL].raise);
        else
                decide(c, most, host_limits[HOST_SHMMAX].name, most,
                       own ? SHM_KERNEL_DEFAULT : host_limits[HOST_SHMMAX].raise);
        return 0;
}

/* A setting of runs' own namespaces: its default, and the most that it can be raised to for a run. */
static int read_queue_setting(const struct reading *g, enum queue_setting s, uint64_t *ret, uint64_t *ret_reach) {
        int r = queues_default(g->h, g->q->queues, s, ret);
        return r < 0 ? r : queues_reach(g->h, g->q->queues, s, ret_reach);
}

static void decide_queue(const struct reading *g, struct capacity *c, enum queue_setting s, uint64_t value) {
        const struct host_limit_term *term = &host_limits[queue_setting_terms[s].id];
        const struct queue_host *q = g->q->queues;
        const char *raise = term->raise;
        if (q && !q->trouble[0])
                raise = q->settable
                                ? "not needed: a run has it raised in its own IPC namespace as far as its messages need"
                                : "run ipclabd as root: then a run has it raised in its own IPC namespace";
        decide(c, value, term->name, value, raise);
}

/* The setting can be raised for a run, as far as `limit`, which is at limit_value, permits. */
static void extend(struct capacity *c, uint64_t reach, const char *limit, uint64_t limit_value, const char *raise) {
        if (reach <= c->largest_transfer || (c->reach && c->reach <= reach))
                return;
        c->reach = reach;
        c->reach_limit = limit;
        c->reach_value = limit_value;
        c->reach_raise = raise;
}

#define RAISED_ALREADY "cannot be raised: no run is given more"

static int read_msgq_sysv(const struct reading *g, struct capacity *c) {
        uint64_t message = 0, queue = 0, message_reach = 0, queue_reach = 0;
        int r = read_queue_setting(g, QUEUE_MSGMAX, &message, &message_reach);
        if (r == 0)
                r = read_queue_setting(g, QUEUE_MSGMNB, &queue, &queue_reach);
        if (r < 0)
                return unknown(c, g->h, r);
        if (queue < message)
                decide_queue(g, c, QUEUE_MSGMNB, queue);
        else
                decide_queue(g, c, QUEUE_MSGMAX, message);
        if (message_reach <= queue_reach)
                extend(c, message_reach, host_limits[HOST_MSGMAX].name, message_reach, RAISED_ALREADY);
        else
                extend(c, queue_reach, host_limits[HOST_MSGMNB].name, queue_reach, RAISED_ALREADY);
        return 0;
}

/* A queue of one message is counted against the resource limit with what the kernel adds. */
static int read_msgq_posix(const struct reading *g, struct capacity *c) {
        uint64_t v = 0, reach = 0, bytes = g->q->queues ? g->q->queues->rlimit_msgqueue : UINT64_MAX;
        int r = read_queue_setting(g, QUEUE_MSGSIZE_MAX, &v, &reach);
        if (r < 0)
                return unknown(c, g->h, r);
        uint64_t fits = bytes > QUEUES_POSIX_OVERHEAD ? bytes - QUEUES_POSIX_OVERHEAD : 0;
        if (fits < v) {
                decide_limit(c, fits, HOST_MSGQUEUE, bytes);
                return 0;
        }
        decide_queue(g, c, QUEUE_MSGSIZE_MAX, v);
        if (fits < reach)
                extend(c, fits, host_limits[HOST_MSGQUEUE].name, bytes, host_limits[HOST_MSGQUEUE].raise);
        else
                extend(c, reach, host_limits[HOST_MQ_MSGSIZE_MAX].name, reach, RAISED_ALREADY);
        return 0;
}

/* A file system's free space. Captured trees hold files and no file systems. */
static int read_space(const struct reading *g, const char *folder, const char *limit, const char *raise,
                      struct capacity *c) {
        struct statvfs fs;
        if (g->q->space) {
                decide(c, g->q->space->free_bytes, limit, g->q->space->free_bytes, raise);
                return 0;
        }
        if (!folder) {
                (void) snprintf(c->reason, sizeof(c->reason), "the runtime directory is not known");
                return 0;
        }
        if (g->h->root_fd >= 0) {
                (void) snprintf(c->reason, sizeof(c->reason), "a captured tree does not have the free space of %s",
                                folder);
                return 0;
        }
        if (statvfs(folder, &fs) < 0) {
                (void) snprintf(c->reason, sizeof(c->reason), "statvfs(%s): %s", folder, strerrordesc_np(errno));
                return 0;
        }
        uint64_t free_bytes = (uint64_t) fs.f_bavail * fs.f_frsize;
        decide(c, free_bytes, limit, free_bytes, raise);
        return 0;
}

static int read_shm_posix(const struct reading *g, struct capacity *c) {
        return read_space(g, "/dev/shm", "free space of /dev/shm", "mount -o remount,size=BYTES /dev/shm", c);
}

static int read_file(const struct reading *g, struct capacity *c) {
        return read_space(g, g->q->runtime_dir, "free space of the runtime directory",
                          "remove files, or --runtime-dir on another file system", c);
}

/* Bytes that the slots of a message take, by the arithmetic of the agents. */
static uint64_t slots_of(enum transport t, uint64_t message) {
        const struct transport_options none = {0};
        const struct point p = {.workload = WORKLOAD_STREAM, .transport = t, .threads = 1, .message_size = message};
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
        return transport_terms[t].carrier == CARRIER_RING ? ring_layout_of(&p, &none, page).area_bytes
                                                          : file_layout_of(&p, page).bytes;
}

/* The parts of a message that have to fit: its slots, the buffers of the ends, each with a thread's own, or both. */
struct share {
        bool slots;
        unsigned buffers;
};

static bool fits(enum transport t, uint64_t message, uint64_t bytes, const struct share *share) {
        uint64_t slots = share->slots ? slots_of(t, message) : 0;
        return slots + share->buffers * (message + CAPACITY_THREAD_BYTES) <= bytes;
}

static uint64_t largest_that_fits(enum transport t, uint64_t bytes, const struct share *share) {
        uint64_t least = TWO_SLOTS_FROM, most = SPEC_MESSAGE_SIZE_MAX;
        if (fits(t, most, bytes, share))
                return most;
        /* short messages have the more slots: one may fit where a shorter one does not */
        while (least > 0 && !fits(t, least, bytes, share))
                least -= STEP;
        if (least < TWO_SLOTS_FROM)
                most = least + STEP;
        if (least == 0)
                return 0;
        while (most - least > 1) { /* `least` fits, `most` does not */
                uint64_t middle = least + (most - least) / 2;
                if (fits(t, middle, bytes, share))
                        least = middle;
                else
                        most = middle;
        }
        return least;
}

uint64_t capacity_largest_in_slots(enum transport t, uint64_t bytes) {
        return largest_that_fits(t, bytes, &(const struct share){.slots = true});
}

static int read_anonymous(const struct reading *g, struct capacity *c) {
        struct capacity_memory memory;
        uint64_t address_space = 0;
        int r = capacity_memory(g->h, &memory);
        if (r < 0)
                return unknown(c, g->h, r);
        decide(c, memory.bytes, memory.limit, memory.bytes, memory.raise);
        if (hostfs_process_limit(g->h, "Max address space", false, &address_space) == 0 && address_space < memory.bytes)
                decide_limit(c, address_space, HOST_ADDRESS_SPACE, address_space);
        return 0;
}

bool capacity_file_is_in_memory(const struct hostfs *h, const struct capacity_question *q) {
        struct statfs fs;
        if (q->space)
                return q->space->in_memory;
        return q->runtime_dir && h->root_fd < 0 && statfs(q->runtime_dir, &fs) == 0 &&
               (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* Buffers of both ends lie in memory, and so do slots: admission.c counts those of a mapped file wherever it is, as its
 * pages are in use. Those of a plain file do so in a tmpfs. Memory that is not known limits nothing, there as here. */
static int end_by_memory(const struct reading *g, struct capacity *c) {
        const enum transport t = g->q->transport;
        struct share share = {.slots = transport_terms[t].carrier != CARRIER_FILE ||
                                       capacity_file_is_in_memory(g->h, g->q),
                              .buffers = END_COUNT};
        struct capacity_memory memory;
        int r = capacity_memory(g->h, &memory);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        uint64_t most = largest_that_fits(t, capacity_usable(&memory), &share);
        if (most >= c->largest_message)
                return 0;
        c->largest_message = most;
        c->by_memory = true;
        c->memory = memory;
        return 0;
}

static int (*const readers[LIMIT_COUNT])(const struct reading *g, struct capacity *c) = {
        [LIMIT_PIPE] = read_pipe,
        [LIMIT_STREAM_SOCKET] = read_stream_socket,
        [LIMIT_DATAGRAM_SOCKET] = read_datagram_socket,
        [LIMIT_TCP] = read_tcp,
        [LIMIT_SHM_POSIX] = read_shm_posix,
        [LIMIT_SHM_SYSV] = read_shm_sysv,
        [LIMIT_RUNTIME_DIR] = read_file,
        [LIMIT_MEMORY] = read_anonymous,
        [LIMIT_MSGQ_SYSV] = read_msgq_sysv,
        [LIMIT_MSGQ_POSIX] = read_msgq_posix,
};

int capacity_read(struct hostfs *h, const struct capacity_question *q, struct capacity *ret) {
        const struct reading g = {h, q};
        struct capacity c = {.known = false};
        const struct transport_term *term = &transport_terms[q->transport];
        int r = readers[term->limit](&g, &c);
        if (r < 0)
                return r;
        uint64_t most = c.reach ? c.reach : c.largest_transfer;
        if (c.known && term->delivery == DELIVERY_SLOTS)
                c.largest_message = capacity_largest_in_slots(q->transport, most);
        else if (c.known && term->delivery == DELIVERY_PIECES)
                c.largest_message = SPEC_MESSAGE_SIZE_MAX;
        else if (c.known && term->delivery == DELIVERY_WHOLE)
                c.largest_message = most < SPEC_MESSAGE_SIZE_MAX ? most : SPEC_MESSAGE_SIZE_MAX;
        if (c.known && term->delivery == DELIVERY_SLOTS)
                r = end_by_memory(&g, &c);
        if (r == 0)
                *ret = c;
        return r;
}

/* A peer that was declared may be reached up to 1 (PR_SET_PTRACER); beyond, it takes a capability that agents have not.
 * A kernel without Yama has no such file. Source: Documentation/admin-guide/LSM/Yama.rst. */
static const char *refused_by_yama(struct hostfs *h, char *ret_reason) {
        const struct host_limit_term *term = &host_limits[HOST_PTRACE_SCOPE];
        int64_t scope = 0;
        if (hostfs_i64(h, &scope, "/proc/sys/kernel/yama/ptrace_scope") < 0 || scope <= CAPACITY_PTRACE_SCOPE_MAX)
                return NULL;
        (void) snprintf(ret_reason, CAPACITY_REASON_MAX,
                        "%s is %" PRId64 ", and %d at most lets agents at their peer's memory (to change it: %s)",
                        term->name, scope, CAPACITY_PTRACE_SCOPE_MAX, term->raise);
        return ret_reason;
}

const char *capacity_unavailable(struct hostfs *h, const struct capacity_question *q, char *ret_reason) {
        switch (transport_terms[q->transport].carrier) {
        case CARRIER_QUEUE:
                return q->queues && q->queues->trouble[0] ? q->queues->trouble : NULL;
        case CARRIER_PEER:
                return refused_by_yama(h, ret_reason);
        default:
                return NULL;
        }
}

static const char *raise_prefix(const char *raise) {
        return strncmp(raise, "cannot", 6) == 0 ? "it " : "to raise it: ";
}

int capacity_check_message(struct hostfs *h, const struct capacity_question *q, uint64_t message_size,
                           struct refusal *r) {
        const struct transport_term *term = &transport_terms[q->transport];
        const char *pieces = term->delivery == DELIVERY_WHOLE ? "; chunk: true sends it in pieces" : "";
        struct capacity c;
        char value[32], limit_value[32];

        int x = capacity_read(h, q, &c);
        if (x < 0 || !c.known || message_size <= c.largest_message)
                return x;
        (void) snprintf(value, sizeof(value), "%" PRIu64, message_size);
        (void) snprintf(limit_value, sizeof(limit_value), "%" PRIu64, c.reach ? c.reach_value : c.value);
        if (c.reach)
                return refuse_limit(r, "/message_size", c.reach_limit, limit_value, value,
                                    "a message of %s bytes does not fit the %s: %" PRIu64 " at most in a run's own IPC "
                                    "namespace, as %s is %s there at most; %s%s%s",
                                    value, term->title, c.largest_message, c.reach_limit, limit_value,
                                    raise_prefix(c.reach_raise), c.reach_raise, pieces);
        return refuse_limit(r, "/message_size", c.limit, limit_value, value,
                            "a message of %s bytes does not fit the %s: %" PRIu64 " at most, as %s is %s; %s%s%s",
                            value, term->title, c.largest_message, c.limit, limit_value, raise_prefix(c.raise), c.raise,
                            pieces);
}
