/* SPDX-License-Identifier: MIT */
/*
 * Checks message queues against the limits of a run: their depth, their number and their total bytes. capacity.c checks
 * the length of a message, with the other transports. Called by admission.c.
 *
 * Source: man 7 mq_overview, man 2 getrlimit (RLIMIT_MSGQUEUE), msgctl.
 */

#include "daemon/admission/internal.h"

#include "schema/util.h"

#include <inttypes.h>

/* Bytes of the pieces that messages are sent in; 0 where they are sent whole, or where that is not known. */
static uint64_t chunk_bytes(struct admission *a) {
        const struct capacity_question q = {.transport = a->p->transport, .queues = a->queues};
        uint64_t bytes = 0;
        return chunk_bytes_on(a->h, &q, a->spec, a->p, &bytes) == 0 ? bytes : 0;
}

/* The settings that the run would have. 0; negative errno where they cannot be read. */
static int settings_of(struct admission *a, uint64_t chunk, uint64_t ret[QUEUE_SETTINGS]) {
        int r = queues_plan(a->h, a->queues, a->spec, a->p, chunk, ret);
        for (unsigned s = 0; r == 0 && s < QUEUE_SETTINGS; s++)
                if (ret[s] == 0 && queue_setting_terms[s].limit == transport_terms[a->p->transport].limit)
                        r = queues_default(a->h, a->queues, (enum queue_setting) s, &ret[s]);
        return r;
}

/* Refuses the settings that the point needs higher than a run can get. */
static int check_settings(struct admission *a, uint64_t chunk) {
        static const struct {
                enum queue_setting setting;
                const char *pointer, *why;
        } all[] = {
                {QUEUE_MSGMNB, "/transport_options/msgq_depth", "the queue would hold too many bytes"},
                {QUEUE_MSG_MAX, "/transport_options/msgq_depth", "the queue would hold too many messages"},
                {QUEUE_MSGMNI, "/threads", "too many queues"},
                {QUEUE_QUEUES_MAX, "/threads", "too many queues"},
        };
        uint64_t need[QUEUE_SETTINGS], most = 0;

        queues_need(a->spec, a->p, chunk, need);
        for (size_t i = 0; i < ELEMENTS(all); i++) {
                enum queue_setting s = all[i].setting;
                if (need[s] && queues_reach(a->h, a->queues, s, &most) == 0 && need[s] > most)
                        return admission_refuse(a, options_pointer(&a->spec->options, all[i].pointer),
                                                host_limits[queue_setting_terms[s].id].name, most, need[s], all[i].why);
        }
        return 0;
}

static uint64_t rlimit_needed(struct admission *a, uint64_t chunk) {
        uint64_t settings[QUEUE_SETTINGS];
        return settings_of(a, chunk, settings) < 0 ? 0 : queues_rlimit_bytes(settings, a->spec, a->p, chunk);
}

/* Whether a message that is whole would fit in pieces. */
static bool chunks_would_fit(struct admission *a) {
        const struct capacity_question q = {.transport = a->p->transport, .queues = a->queues};
        struct spec with = *a->spec;
        uint64_t chunk = 0;
        with.chunk = true;
        return !a->spec->chunk && chunk_bytes_on(a->h, &q, &with, a->p, &chunk) == 0 && chunk > 0 &&
               rlimit_needed(a, chunk) <= a->queues->rlimit_msgqueue;
}

static int check_rlimit(struct admission *a, uint64_t chunk) {
        char why[200];
        uint64_t need = a->queues ? rlimit_needed(a, chunk) : 0, most = a->queues ? a->queues->rlimit_msgqueue : 0;
        if (need <= most)
                return 0;
        (void) snprintf(why, sizeof(why), "the queues of all threads are too large, in bytes%s",
                        chunks_would_fit(a) ? " (chunk: true sends messages in pieces)" : "");
        bool requested = a->options.msgq_depth || a->options.buffer_bytes;
        return admission_refuse_limit(
                a, requested ? options_pointer(&a->spec->options, "/transport_options/msgq_depth") : "/message_size",
                HOST_MSGQUEUE, most, need, why);
}

int check_queues(struct admission *a) {
        if (!queues_are_used(a->p))
                return 0;
        uint64_t chunk = chunk_bytes(a), piece = chunk ? chunk : a->p->message_size, bytes = a->options.buffer_bytes;
        if (bytes && !a->options.msgq_depth && bytes < piece)
                return admission_refuse(a, "/transport_options/buffer_bytes", "buffer_bytes", bytes, piece,
                                        "a queue holds at least one message, in bytes");
        int x = check_settings(a, chunk);
        return x < 0 ? x : check_rlimit(a, chunk);
}

/* The least depth of a queue: queues_plan() makes queues without a given depth as shallow as they must be. */
static uint64_t least_depth(struct hostfs *h, const struct queue_host *host, const struct spec *spec) {
        uint64_t usual = 0, most = 0;
        if (spec->options.msgq_depth)
                return spec->options.msgq_depth;
        if (host->trouble[0] || host->settable || queues_default(h, host, QUEUE_MSG_DEFAULT, &usual) < 0 ||
            queues_default(h, host, QUEUE_MSG_MAX, &most) < 0)
                return 1;
        uint64_t depth = usual < most ? usual : most;
        return depth ? depth : 1;
}

uint64_t admission_queue_room(struct hostfs *h, const struct queue_host *host, const struct spec *spec,
                              const struct point *p) {
        if (!queues_are_used(p) || transport_terms[p->transport].limit != LIMIT_MSGQ_POSIX || !host ||
            host->rlimit_msgqueue == UINT64_MAX)
                return ADMISSION_UNLIMITED;
        uint64_t messages = (uint64_t) p->threads * point_directions(p) * least_depth(h, host, spec),
                 each = host->rlimit_msgqueue / messages;
        return each > QUEUES_POSIX_OVERHEAD ? each - QUEUES_POSIX_OVERHEAD : 0;
}

uint64_t admission_queue_bytes(struct admission *a) {
        uint64_t settings[QUEUE_SETTINGS], chunk = 0;
        if (!queues_are_used(a->p))
                return 0;
        chunk = chunk_bytes(a);
        return settings_of(a, chunk, settings) < 0 ? 0 : queues_bytes(settings, a->spec, a->p, chunk);
}
