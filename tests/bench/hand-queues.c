/* SPDX-License-Identifier: MIT */

/* The limits of message queues; see hand-queues.h. */

#include "tests/bench/hand-queues.h"

#include "schema/util.h"
#include "tests/bench/own-namespaces.h"

#include <inttypes.h>
#include <sys/resource.h>

#define LONGEST "4194304"
#define QUEUE "8388608" /* two of them */
#define USUAL_QUEUE_BYTES 131072u
#define DEPTH_MAX 65536u   /* of option msgq_depth */
#define POSIX_OVERHEAD 96u /* that the kernel counts for a message beside its bytes */

struct setting {
        const char *name, *path, *wanted;
};

static const struct setting msgmax = {"kernel.msgmax", "/proc/sys/kernel/msgmax", LONGEST};
static const struct setting msgmnb = {"kernel.msgmnb", "/proc/sys/kernel/msgmnb", QUEUE};
static const struct setting msgsize_max = {"fs.mqueue.msgsize_max", "/proc/sys/fs/mqueue/msgsize_max", LONGEST};

static uint64_t read_setting(const struct setting *s) {
        unsigned long long v = 0;
        _cleanup_fclose_ FILE *f = fopen(s->path, "re");
        return f && fscanf(f, "%llu", &v) == 1 ? v : 0;
}

/* Only the first setting that cannot be raised is named: the reason is the same for all. */
static void raise_setting(struct hand_queues *q, const struct setting *s, bool *named) {
        int r = own_namespaces_write(s->path, s->wanted);
        if (r == 0 || *named)
                return;
        size_t n = strlen(q->whose);
        (void) snprintf(q->whose + n, sizeof q->whose - n, ", where %s cannot be raised: %s", s->name,
                        strerrordesc_np(-r));
        *named = true;
}

static void raise_settings(struct hand_queues *q) {
        bool named = false;
        raise_setting(q, &msgmnb, &named);
        raise_setting(q, &msgmax, &named);
        raise_setting(q, &msgsize_max, &named);
}

/* The longest message when there are two queues. */
static uint64_t posix_room(void) {
        struct rlimit limit;
        if (getrlimit(RLIMIT_MSGQUEUE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
                return UINT64_MAX;
        uint64_t each = limit.rlim_cur / (UINT64_C(2) * HAND_POSIX_DEPTH);
        return each > POSIX_OVERHEAD ? each - POSIX_OVERHEAD : 0;
}

void hand_queues_isolate(struct hand_queues *ret) {
        struct hand_queues q = {.posix_room = posix_room()};
        const char *trouble = own_namespaces(CLONE_NEWIPC);
        if (trouble) {
                (void) snprintf(q.whose, sizeof q.whose, "the present IPC namespace (%s: %s)", trouble,
                                strerrordesc_np(errno));
        } else {
                (void) snprintf(q.whose, sizeof q.whose, "an IPC namespace of its own");
                raise_settings(&q);
        }
        q.msgmax = read_setting(&msgmax);
        q.msgmnb = read_setting(&msgmnb);
        q.msgsize_max = read_setting(&msgsize_max);
        *ret = q;
}

static const char *refuse(const struct hand_queues *q, const struct setting *s, uint64_t value) {
        static char text[300];
        if (value)
                (void) snprintf(text, sizeof text, "%s is %" PRIu64 " in %s", s->name, value, q->whose);
        else
                (void) snprintf(text, sizeof text, "%s cannot be read", s->path);
        return text;
}

static const char *refuse_room(const struct hand_queues *q) {
        static char text[100];
        (void) snprintf(text, sizeof text,
                        "RLIMIT_MSGQUEUE has room for two queues of %u messages of %" PRIu64 " bytes", HAND_POSIX_DEPTH,
                        q->posix_room);
        return text;
}

const char *hand_queues_refuse(const struct hand_queues *q, enum transport t, uint64_t size) {
        if (t == TRANSPORT_MSGQ_SYSV)
                return size > q->msgmax   ? refuse(q, &msgmax, q->msgmax)
                       : size > q->msgmnb ? refuse(q, &msgmnb, q->msgmnb)
                                          : NULL;
        if (t == TRANSPORT_MSGQ_POSIX)
                return size > q->msgsize_max  ? refuse(q, &msgsize_max, q->msgsize_max)
                       : size > q->posix_room ? refuse_room(q)
                                              : NULL;
        return NULL;
}

uint64_t hand_queues_depth(const struct hand_queues *q, enum transport t, uint64_t size) {
        if (t == TRANSPORT_MSGQ_POSIX)
                return HAND_POSIX_DEPTH;
        if (t != TRANSPORT_MSGQ_SYSV || size == 0)
                return 0;
        uint64_t usual = USUAL_QUEUE_BYTES / size, most = q->msgmnb / size;
        if (usual < 2)
                usual = 2;
        if (usual > DEPTH_MAX)
                usual = DEPTH_MAX;
        return usual < most ? usual : most;
}
