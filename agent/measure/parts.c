/* SPDX-License-Identifier: MIT */

#include "agent/measure/parts.h"

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "agent/measure/stops.h"
#include "schema/measure/recorder.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct latencies {
        struct histogram before, now; /* of all threads, at the last part's end and at this one's */
        struct histogram one, difference;
};

struct parts {
        struct agent *agent;
        const struct stops *stops;
        uint64_t end_ns, messages, stopped_ns; /* of the last part */
        struct latencies *latencies;           /* NULL: nothing is timed, or by too many threads */
        struct message_sent_again sent_again;  /* at the last packet's end */
        struct message packet;
};

int parts_new(struct agent *a, const struct stops *stops, struct parts **ret) {
        struct parts *p = calloc(1, sizeof *p);
        bool timed = a->workers[0].latency && a->n_workers <= MESSAGE_PARTS_TIMED_THREADS;
        if (p && timed)
                p->latencies = calloc(1, sizeof *p->latencies);
        if (!p || (timed && !p->latencies)) {
                parts_free(p);
                return failure_set(&a->failure, ENOMEM, "no memory for the parts of %" PRIu32 " threads' samples",
                                   a->n_workers);
        }
        p->agent = a;
        p->stops = stops;
        *ret = p;
        return 0;
}

void parts_free(struct parts *p) {
        if (!p)
                return;
        free(p->latencies);
        free(p);
}

static void add_up(struct parts *p, const struct histogram *copies, struct histogram *ret) {
        memset(ret, 0, sizeof *ret);
        for (uint32_t i = 0; i < p->agent->n_workers; i++) {
                if (!copies)
                        recorder_copy(p->agent->workers[i].latency, &p->latencies->one);
                histogram_add(ret, copies ? &copies[i] : &p->latencies->one);
        }
}

static struct message_sent_again read_sent_again(const struct parts *p) {
        struct message_sent_again s = {.known = SENT_AGAIN_UNKNOWN};
        if (p->agent->sent_again)
                (void) p->agent->sent_again(p->agent, &s);
        return s;
}

/* What was sent again since the last packet: not known where a reading failed, or a count of 32 bits began anew. That
 * of timeouts has 16 and may do so alone. */
static struct message_sent_again take_sent_again(struct parts *p) {
        const struct message_sent_again before = p->sent_again, now = read_sent_again(p);
        p->sent_again = now;
        if (before.known == SENT_AGAIN_UNKNOWN || now.known == SENT_AGAIN_UNKNOWN || now.segments < before.segments ||
            now.spurious < before.spurious)
                return (struct message_sent_again){.known = SENT_AGAIN_UNKNOWN};
        const bool timed = before.known == SENT_AGAIN_TIMEOUTS && now.known == SENT_AGAIN_TIMEOUTS &&
                           now.timeouts >= before.timeouts;
        return (struct message_sent_again){.known = timed ? SENT_AGAIN_TIMEOUTS : SENT_AGAIN_SEGMENTS,
                                           .segments = now.segments - before.segments,
                                           .spurious = now.spurious - before.spurious,
                                           .timeouts = timed ? now.timeouts - before.timeouts : 0};
}

void parts_open(struct parts *p, uint64_t at_ns, uint64_t messages, const struct histogram *copies) {
        p->end_ns = at_ns;
        p->messages = messages;
        p->stopped_ns = stops_until(p->stops, at_ns);
        p->sent_again = read_sent_again(p);
        p->packet = (struct message){.type = MESSAGE_PARTS};
        if (p->latencies)
                add_up(p, copies, &p->latencies->before);
}

static uint64_t median(struct parts *p, const struct histogram *copies) {
        struct latencies *l = p->latencies;
        if (!l)
                return 0;
        add_up(p, copies, &l->now);
        histogram_subtract(&l->difference, &l->now, &l->before);
        l->before = l->now;
        return histogram_quantile(&l->difference, 0.5);
}

int parts_end(struct parts *p, uint64_t at_ns, uint64_t messages, const struct histogram *copies) {
        struct message_parts *m = &p->packet.parts;
        if (at_ns <= p->end_ns)
                at_ns = p->end_ns + 1; /* messages counted since then need a part of more than 0 ns */
        if (m->n == 0)
                m->begin_ns = p->end_ns;
        uint64_t until_ns = stops_until(p->stops, at_ns);
        uint64_t stopped_ns = until_ns - p->stopped_ns, interval_ns = at_ns - p->end_ns;
        m->list[m->n++] = (struct message_part){
                .interval_ns = interval_ns,
                .messages = messages - p->messages,
                .p50_ns = median(p, copies),
                .stopped_ns = stopped_ns < interval_ns ? stopped_ns : interval_ns,
        };
        p->end_ns = at_ns;
        p->messages = messages;
        p->stopped_ns = until_ns;
        return m->n == MESSAGE_PARTS_MAX ? parts_send(p) : 0;
}

int parts_send(struct parts *p) {
        if (p->packet.parts.n == 0)
                return 0;
        p->packet.parts.sent_again = take_sent_again(p);
        int r = agent_send(p->agent, &p->packet);
        p->packet.parts.n = 0;
        return r;
}
