/* SPDX-License-Identifier: MIT */

/*
 * POSIX message queues: one per thread and direction. The first end makes them under random names, which it removes
 * before it sends the descriptors: on Linux a queue's descriptor is a file descriptor, and is passed like one.
 *
 * Source: man 7 mq_overview, man 3 mq_open. The calls go through syscall(2), for the reason in descriptor.h.
 */

#include "agent/base/wait.h"
#include "agent/os/procfs.h"
#include "agent/transport/queue/queues.h"
#include "agent/transport/rendezvous.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"

#include <fcntl.h>
#include <inttypes.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define DEPTH_DEFAULT 10 /* the kernel's, where fs.mqueue.msg_default cannot be read */

/* --- hot --- */

LOOP_INLINE ssize_t posix_send(struct worker *w, unsigned char *packet, size_t length) {
        long r = syscall(SYS_mq_timedsend, w->send_fd, packet, length, 0, NULL);
        return r < 0 ? r : (ssize_t) length;
}

/* The room must be that of the queue's longest message, also for a shorter one. */
LOOP_INLINE ssize_t posix_receive(struct worker *w, unsigned char *packet, size_t length) {
        const struct queue *q = w->channel;
        (void) length;
        return syscall(SYS_mq_timedreceive, w->receive_fd, packet, q->packet, NULL, NULL);
}

QUEUE_LOOPS(posix, posix_send, posix_receive, posix_send, posix_receive)

/* --- set-up --- */

/* Reads a setting of this process's IPC namespace. -1: it cannot be read. */
static long setting(const char *name) {
        char path[64];
        (void) snprintf(path, sizeof path, "/proc/sys/fs/mqueue/%s", name);
        return procfs_setting(path);
}

/* The depth that mq_open(3) gives a queue without attributes. */
static long depth_of(const struct agent *a) {
        long usual = setting("msg_default"), most = setting("msg_max");
        if (a->setup.options.msgq_depth)
                return (long) a->setup.options.msgq_depth;
        if (usual <= 0)
                usual = DEPTH_DEFAULT;
        return most > 0 && most < usual ? most : usual;
}

/* The soft limit in words, written to text where it is a number. */
static const char *limit_text(enum __rlimit_resource resource, char text[static 24]) {
        struct rlimit limit;
        if (getrlimit(resource, &limit) < 0)
                return "unknown";
        if (limit.rlim_cur == RLIM_INFINITY)
                return "unlimited";
        (void) snprintf(text, 24, "%ju", (uintmax_t) limit.rlim_cur);
        return text;
}

/* EINVAL, EMFILE and ENOSPC each stand for several limits: the message names all of them with their values. */
static int explain(struct agent *a, int error, const struct mq_attr *attr) {
        switch (error) {
        case EINVAL:
                return failure_set(&a->failure, error,
                                   "a queue of %ld messages of %ld bytes: fs.mqueue.msg_max is %ld, "
                                   "fs.mqueue.msgsize_max is %ld",
                                   attr->mq_maxmsg, attr->mq_msgsize, setting("msg_max"), setting("msgsize_max"));
        case EMFILE:
                return failure_set(&a->failure, error,
                                   "the queues of %" PRIu32 " threads, %ld messages of %ld bytes each, exceed "
                                   "RLIMIT_MSGQUEUE, which is %s and counts all queues of the user, or RLIMIT_NOFILE, "
                                   "which is %s",
                                   a->n_workers, attr->mq_maxmsg, attr->mq_msgsize,
                                   limit_text(RLIMIT_MSGQUEUE, (char[24]){}), limit_text(RLIMIT_NOFILE, (char[24]){}));
        case ENOSPC:
                return failure_set(&a->failure, error,
                                   "the queues of %" PRIu32 " threads exceed %s, which is %ld (to raise it: %s)",
                                   a->n_workers, host_limits[HOST_MQ_QUEUES_MAX].name, setting("queues_max"),
                                   host_limits[HOST_MQ_QUEUES_MAX].raise);
        default:
                return failure_set(&a->failure, error, "mq_open: %s", strerrordesc_np(error));
        }
}

/* Makes a queue: ret[0] to read from, ret[1] to write to. */
static int make_queue(struct agent *a, int ret[2]) {
        struct mq_attr attr = {.mq_maxmsg = depth_of(a), .mq_msgsize = (long) queues_packet(a)};
        char name[48];
        uint64_t random[2];
        int r = 0;
        if (getrandom(random, sizeof random, 0) != (ssize_t) sizeof random)
                return failure_set(&a->failure, errno, "getrandom: %s", strerrordesc_np(errno));
        (void) snprintf(name, sizeof name, "/ipclab-%016" PRIx64 "%016" PRIx64, random[0], random[1]);
        ret[0] = mq_open(name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
        if (ret[0] < 0)
                return explain(a, errno, &attr);
        ret[1] = mq_open(name, O_WRONLY | O_CLOEXEC);
        if (ret[1] < 0)
                r = explain(a, errno, &attr);
        if (mq_unlink(name) < 0 && r == 0)
                r = failure_set(&a->failure, errno, "mq_unlink: %s", strerrordesc_np(errno));
        return r;
}

static int posix_open(struct agent *a) {
        return rendezvous_one_way(a, util_now_ns() + AGENT_RENDEZVOUS_NS, make_queue);
}

static void posix_effective(const struct agent *a, struct effective *e) {
        const struct worker *first = &a->workers[0];
        struct mq_attr attr;
        queues_effective(a, e);
        if (mq_getattr(first->send_fd >= 0 ? first->send_fd : first->receive_fd, &attr) == 0) {
                effective_add_number(e, SETTING_QUEUE_MESSAGES, (uint64_t) attr.mq_maxmsg);
                effective_add_number(e, SETTING_QUEUE_MESSAGE_BYTES, (uint64_t) attr.mq_msgsize);
                effective_add_number(e, SETTING_BUFFER_BYTES, (uint64_t) attr.mq_maxmsg * attr.mq_msgsize);
        } else {
                effective_add_unknown(e, SETTING_QUEUE_MESSAGES, strerrordesc_np(errno));
        }
}

const struct transport_ops transport_msgq_posix = {
        .transport = TRANSPORT_MSGQ_POSIX,
        .engine = ENGINE_SYSCALL,
        .open = posix_open,
        .attach = queues_attach,
        .detach = queues_detach,
        .loops = posix_loops,
        .effective = posix_effective,
        .pages = queues_pages,
};
