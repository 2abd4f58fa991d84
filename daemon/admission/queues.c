/* SPDX-License-Identifier: MIT */

/*
 * Computes how large queues a point needs and its run can get. It sets nothing: ipcns.c does. Called by capacity and
 * admission when a spec is posted and by the runner before each run.
 *
 * Source: man 2 msgget, msgop; man 7 mq_overview; man 2 getrlimit (RLIMIT_MSGQUEUE); the kernel's ipc/ipc_sysctl.c,
 * ipc/mq_sysctl.c and include/linux/ipc_namespace.h (HARD_MSGMAX, HARD_MSGSIZEMAX), tried on 6.18.
 */

#include "daemon/admission/queues.h"

#include "schema/util.h"

#include <string.h>

#define MIB UINT64_C(1048576)
/* As in the kernel's defaults a System V queue holds two of the longest messages: with one its ends take turns. */
#define SYSV_MESSAGES 2u

/* msgmax could be INT_MAX: messages lie in the kernel's memory, and no queue shall hold longer ones than the other. */
const struct queue_setting_term queue_setting_terms[QUEUE_SETTINGS] = {
        [QUEUE_MSGMAX] = {HOST_MSGMAX, "kernel/msgmax", LIMIT_MSGQ_SYSV, 16 * MIB},
        [QUEUE_MSGMNB] = {HOST_MSGMNB, "kernel/msgmnb", LIMIT_MSGQ_SYSV, INT32_MAX},
        [QUEUE_MSGMNI] = {HOST_MSGMNI, "kernel/msgmni", LIMIT_MSGQ_SYSV, 32768},
        [QUEUE_MSG_DEFAULT] = {HOST_MQ_MSG_DEFAULT, "fs/mqueue/msg_default", LIMIT_MSGQ_POSIX, 65536},
        [QUEUE_MSG_MAX] = {HOST_MQ_MSG_MAX, "fs/mqueue/msg_max", LIMIT_MSGQ_POSIX, 65536},
        [QUEUE_MSGSIZE_MAX] = {HOST_MQ_MSGSIZE_MAX, "fs/mqueue/msgsize_max", LIMIT_MSGQ_POSIX, 16 * MIB},
        [QUEUE_QUEUES_MAX] = {HOST_MQ_QUEUES_MAX, "fs/mqueue/queues_max", LIMIT_MSGQ_POSIX, INT32_MAX},
};

bool queues_are_used(const struct point *p) {
        return point_has_carrier(p, CARRIER_QUEUE);
}

static bool settable(const struct queue_host *host) {
        return host && !host->trouble[0] && host->settable;
}

int queues_default(struct hostfs *h, const struct queue_host *host, enum queue_setting s, uint64_t *ret) {
        if (host && !host->trouble[0] && !host->settable) {
                *ret = host->fresh[s];
                return 0;
        }
        return hostfs_u64(h, ret, "/proc/sys/%s", queue_setting_terms[s].path);
}

int queues_reach(struct hostfs *h, const struct queue_host *host, enum queue_setting s, uint64_t *ret) {
        uint64_t v = 0;
        int r = queues_default(h, host, s, &v);
        if (r < 0)
                return r;
        *ret = settable(host) && queue_setting_terms[s].most > v ? queue_setting_terms[s].most : v;
        return 0;
}

static uint64_t packet_of(const struct point *p, uint64_t chunk_bytes) {
        return chunk_bytes && chunk_bytes < p->message_size ? chunk_bytes : p->message_size;
}

static uint64_t count_of(const struct point *p) {
        return (uint64_t) p->threads * point_directions(p);
}

void queues_need(const struct spec *spec, const struct point *p, uint64_t chunk_bytes, uint64_t ret[QUEUE_SETTINGS]) {
        memset(ret, 0, sizeof(*ret) * QUEUE_SETTINGS);
        if (!queues_are_used(p))
                return;
        uint64_t packet = packet_of(p, chunk_bytes), depth = options_queue_depth(&spec->options, packet);
        if (transport_terms[p->transport].limit == LIMIT_MSGQ_SYSV) {
                ret[QUEUE_MSGMAX] = packet;
                ret[QUEUE_MSGMNB] = depth ? depth * packet : packet;
                ret[QUEUE_MSGMNI] = count_of(p);
        } else {
                ret[QUEUE_MSG_MAX] = depth;
                ret[QUEUE_MSGSIZE_MAX] = packet;
                ret[QUEUE_QUEUES_MAX] = count_of(p);
        }
}

int queues_plan(struct hostfs *h, const struct queue_host *host, const struct spec *spec, const struct point *p,
                uint64_t chunk_bytes, uint64_t ret[QUEUE_SETTINGS]) {
        uint64_t need[QUEUE_SETTINGS], plan[QUEUE_SETTINGS] = {0};

        queues_need(spec, p, chunk_bytes, need);
        if (need[QUEUE_MSGMNB] && !options_queue_depth(&spec->options, packet_of(p, chunk_bytes)))
                need[QUEUE_MSGMNB] *= SYSV_MESSAGES;
        for (unsigned s = 0; settable(host) && queues_are_used(p) && s < QUEUE_SETTINGS; s++) {
                if (queue_setting_terms[s].limit != transport_terms[p->transport].limit)
                        continue;
                int r = queues_default(h, host, (enum queue_setting) s, &plan[s]);
                if (r < 0)
                        return r;
                if (need[s] > plan[s])
                        plan[s] = need[s];
        }
        if (plan[QUEUE_MSG_DEFAULT]) {
                uint64_t most =
                        host->rlimit_msgqueue / (count_of(p) * (packet_of(p, chunk_bytes) + QUEUES_POSIX_OVERHEAD));
                if (most == 0) /* admission refuses it */
                        most = 1;
                if (plan[QUEUE_MSG_DEFAULT] > most)
                        plan[QUEUE_MSG_DEFAULT] = most;
        }
        memcpy(ret, plan, sizeof(plan));
        return 0;
}

/* Messages that one POSIX queue holds. */
static uint64_t posix_depth(const uint64_t settings[QUEUE_SETTINGS], const struct spec *spec, uint64_t packet) {
        uint64_t usual = settings[QUEUE_MSG_DEFAULT], most = settings[QUEUE_MSG_MAX],
                 requested = options_queue_depth(&spec->options, packet);
        if (requested)
                return requested;
        return usual < most ? usual : most;
}

uint64_t queues_bytes(const uint64_t settings[QUEUE_SETTINGS], const struct spec *spec, const struct point *p,
                      uint64_t chunk_bytes) {
        if (!queues_are_used(p))
                return 0;
        uint64_t packet = packet_of(p, chunk_bytes), depth = options_queue_depth(&spec->options, packet);
        if (transport_terms[p->transport].limit == LIMIT_MSGQ_SYSV)
                return count_of(p) * (depth ? depth * packet : settings[QUEUE_MSGMNB]);
        return count_of(p) * posix_depth(settings, spec, packet) * packet;
}

uint64_t queues_rlimit_bytes(const uint64_t settings[QUEUE_SETTINGS], const struct spec *spec, const struct point *p,
                             uint64_t chunk_bytes) {
        if (!queues_are_used(p) || transport_terms[p->transport].limit != LIMIT_MSGQ_POSIX)
                return 0;
        return queues_bytes(settings, spec, p, chunk_bytes) +
               count_of(p) * posix_depth(settings, spec, packet_of(p, chunk_bytes)) * QUEUES_POSIX_OVERHEAD;
}
