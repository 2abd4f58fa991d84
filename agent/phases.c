/* SPDX-License-Identifier: MIT */

/*
 * The order of a run with two ends; both leaders go through this file in step. The end that sends is never interrupted:
 * it finishes the message under way, while the other still reads. That one is told how many messages there are, and
 * got out of its read when it waits for one more. Where both send, each is one and the other.
 */

#include "agent/phases.h"

#include "agent/agent.h"
#include "agent/leader.h"
#include "agent/peer.h"
#include "schema/util.h"

#include <inttypes.h>

#define STALL_DEFAULT_NS (2 * NSEC_PER_SEC) /* where the set-up has none; and the time of a long message at */
#define SLOWEST_BYTES_PER_MS (64u * 1024u)
#define KICK_NS NSEC_PER_MSEC
#define GO_NS (5 * NSEC_PER_MSEC) /* from saying when the window begins to its beginning */

/* How long one message may take before nothing is believed to move any more. */
static uint64_t patience_ns(const struct agent *a) {
        uint64_t ms = a->setup.point.message_size * a->n_workers / SLOWEST_BYTES_PER_MS;
        uint64_t pause = a->setup.rate > 0 ? (uint64_t) (1e9 / a->setup.rate) : 0; /* on purpose, in an open loop */
        return (a->setup.stall_ns ? a->setup.stall_ns : STALL_DEFAULT_NS + ms * NSEC_PER_MSEC) + pause;
}

bool phases_sends(const struct agent *a) {
        bool up = a->setup.point.workload == WORKLOAD_STREAM && a->setup.point.direction == DIRECTION_UP;
        return a->end == (up ? END_SECOND : END_FIRST);
}

bool phases_duplex(const struct agent *a) {
        return a->setup.point.workload == WORKLOAD_STREAM && a->setup.point.direction == DIRECTION_BOTH;
}

static void set_send_limits(struct agent *a, uint64_t limit) {
        for (uint32_t i = 0; i < a->n_workers; i++)
                __atomic_store_n(&a->workers[i].send_limit, limit, __ATOMIC_RELEASE);
}

static void set_limits(struct agent *a, uint64_t limit) {
        set_send_limits(a, limit);
        for (uint32_t i = 0; i < a->n_workers; i++)
                worker_set_limit(&a->workers[i], limit);
}

static int sleep_until(struct agent *a, uint64_t until_ns) {
        return leader_wait(a, until_ns, 0);
}

static uint64_t progress(const struct agent *a) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                const struct worker *w = &a->workers[i];
                sum += worker_messages(w) + __atomic_load_n(&w->sent, __ATOMIC_RELAXED) +
                       __atomic_load_n(&w->partial_sends, __ATOMIC_RELAXED) +
                       __atomic_load_n(&w->partial_receives, __ATOMIC_RELAXED);
        }
        return sum;
}

/* The worker that a message about a stall should name: the one that is farthest behind. */
static const struct worker *slowest(const struct agent *a) {
        const struct worker *w = &a->workers[0];
        for (uint32_t i = 1; i < a->n_workers; i++)
                if (a->workers[i].limit - worker_messages(&a->workers[i]) > w->limit - worker_messages(w))
                        w = &a->workers[i];
        return w;
}

/* Every worker finishes its message, and the peer learns how many there were. */
static int finish_sending(struct agent *a) {
        uint64_t patience = patience_ns(a), deadline = util_now_ns() + patience;
        int r = peer_receive(a, PEER_CLOSED, 0, NULL, deadline);
        if (r < 0)
                return r;
        set_limits(a, 0);
        deadline = util_now_ns() + patience;
        r = leader_wait(a, deadline, LEADER_WORKERS);
        if (r == 0)
                return failure_set(&a->failure, ETIMEDOUT,
                                   "peer %s does not take what is sent: a message was under way for %" PRIu64 " ms",
                                   a->peer_role, patience / NSEC_PER_MSEC);
        for (uint32_t i = 0; r >= 0 && i < a->n_workers; i++)
                r = peer_send(a, PEER_SENT, i, a->workers[i].messages, deadline + patience);
        if (r >= 0)
                r = peer_receive(a, PEER_DRAINED, 0, NULL, util_now_ns() + 2 * patience);
        return r;
}

static int drain(struct agent *a) {
        uint64_t patience = patience_ns(a), last = progress(a), deadline = util_now_ns() + patience;
        for (;;) {
                int r = leader_wait(a, util_now_ns() + KICK_NS, LEADER_WORKERS);
                if (r)
                        return r;
                for (uint32_t i = 0; i < a->n_workers; i++)
                        if (worker_over(&a->workers[i]))
                                worker_kick(&a->workers[i]);
                uint64_t now = progress(a);
                if (now != last)
                        deadline = util_now_ns() + patience;
                last = now;
                if (util_now_ns() >= deadline) {
                        const struct worker *w = slowest(a);
                        return failure_set(&a->failure, ETIMEDOUT,
                                           "thread %" PRIu32 " got %" PRIu64 " of the %" PRIu64
                                           " messages that peer %s sent, and no more for %" PRIu64 " ms",
                                           w->index, worker_messages(w), w->limit, a->peer_role,
                                           patience / NSEC_PER_MSEC);
                }
        }
}

/* Hears how much there is, and receives exactly that. */
static int receive_rest(struct agent *a) {
        uint64_t patience = patience_ns(a);
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                uint64_t sent;
                /* the peer has a patience for our word, and one for its workers */
                r = peer_receive(a, PEER_SENT, i, &sent, util_now_ns() + 2 * patience + NSEC_PER_SEC);
                if (r == 0)
                        worker_set_limit(&a->workers[i], sent);
        }
        if (r == 0)
                r = drain(a);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                const struct worker *w = &a->workers[i];
                if (w->messages != w->limit)
                        return failure_set(&a->failure, EPROTO,
                                           "thread %" PRIu32 " received %" PRIu64
                                           " messages, but peer %s sent %" PRIu64,
                                           i, w->messages, a->peer_role, w->limit);
        }
        return peer_send(a, PEER_DRAINED, 0, 0, util_now_ns() + patience);
}

static int finish_receiving(struct agent *a) {
        int r = peer_send(a, PEER_CLOSED, 0, 0, util_now_ns() + patience_ns(a));
        return r < 0 ? r : receive_rest(a);
}

/* The first worker that still sends; NULL: none. Those that wait are made to look at their limit. */
static const struct worker *stop_sending(struct agent *a) {
        const struct worker *busy = NULL;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                struct worker *w = &a->workers[i];
                if (__atomic_load_n(&w->sent_last, __ATOMIC_ACQUIRE))
                        continue;
                busy = busy ? busy : w;
                worker_kick(w);
        }
        return busy;
}

/* Each end goes on until the other's window has closed too, then only receives. */
static int stop_duplex(struct agent *a) {
        uint64_t patience = patience_ns(a);
        int r = peer_send(a, PEER_CLOSED, 0, 0, util_now_ns() + patience);
        if (r == 0)
                r = peer_receive(a, PEER_CLOSED, 0, NULL, util_now_ns() + patience);
        if (r < 0)
                return r;
        set_send_limits(a, 0);
        uint64_t deadline = util_now_ns() + patience;
        for (const struct worker *w; (w = stop_sending(a));) {
                r = leader_wait(a, util_now_ns() + KICK_NS, 0);
                if (r < 0)
                        return r;
                if (util_now_ns() >= deadline)
                        return failure_set(&a->failure, ETIMEDOUT,
                                           "peer %s does not take what thread %" PRIu32
                                           " sends: a message was under way for %" PRIu64 " ms",
                                           a->peer_role, w->index, patience / NSEC_PER_MSEC);
        }
        return 0;
}

/* The first speaks while the second listens, so that their packets find room. */
static int finish_duplex(struct agent *a) {
        uint64_t patience = patience_ns(a);
        bool first = a->end == END_FIRST;
        int r = stop_duplex(a);
        for (unsigned turn = 0; r == 0 && turn < 2; turn++) {
                if (first != (turn == 0)) {
                        r = receive_rest(a);
                        continue;
                }
                for (uint32_t i = 0; r == 0 && i < a->n_workers; i++)
                        r = peer_send(a, PEER_SENT, i, a->workers[i].sent, util_now_ns() + patience);
                if (r == 0)
                        r = peer_receive(a, PEER_DRAINED, 0, NULL, util_now_ns() + 2 * patience);
        }
        return r;
}

/* A workload of one agent: nobody to agree with. */
static int finish_alone(struct agent *a) {
        uint64_t patience = patience_ns(a);
        set_limits(a, 0);
        int r = leader_wait(a, util_now_ns() + patience, LEADER_WORKERS);
        if (r == 0)
                return failure_set(&a->failure, ETIMEDOUT, "the loop did not end within %" PRIu64 " ms",
                                   patience / NSEC_PER_MSEC);
        return r < 0 ? r : 0;
}

static int finish(struct agent *a) {
        if (a->workload->one_agent)
                return finish_alone(a);
        if (phases_duplex(a))
                return finish_duplex(a);
        return phases_sends(a) ? finish_sending(a) : finish_receiving(a);
}

/* When the next sample is due: at whole intervals from the window's begin, whatever was missed; never without an
 * interval. */
static uint64_t sample_after(uint64_t begin_ns, uint64_t now_ns, uint64_t interval) {
        if (interval == 0)
                return UINT64_MAX;
        uint64_t passed = now_ns > begin_ns ? (now_ns - begin_ns) / interval : 0;
        return begin_ns + (passed + 1) * interval;
}

/* Samples until the window's end. */
static int sample_timed(struct agent *a, struct sampler *s, uint64_t begin_ns) {
        uint64_t interval = a->setup.interval_ns, end_ns = begin_ns + a->setup.duration_ns;
        uint64_t next = sample_after(begin_ns, begin_ns, interval);
        while (next < end_ns) {
                int r = sleep_until(a, next);
                if (r == 0)
                        r = sampler_take(s);
                if (r < 0)
                        return r;
                next = sample_after(begin_ns, util_now_ns(), interval);
        }
        int r = sleep_until(a, end_ns);
        if (r == 0)
                r = sampler_close(s, 0);
        return r;
}

static int run_timed(struct agent *a, struct sampler *s, uint64_t start_ns) {
        uint64_t begin_ns = start_ns + a->setup.warmup_ns;

        a->phase = "warmup";
        set_limits(a, WORKER_UNLIMITED);
        workers_go(a, start_ns);
        int r = sleep_until(a, begin_ns);
        if (r == 0)
                r = sampler_open(s, 0);
        a->phase = "window";
        if (r == 0)
                r = sample_timed(a, s, begin_ns);
        a->phase = "draining";
        if (r == 0)
                r = finish(a);
        return r;
}

/* Warm-up of a counted window: its messages are all received before the window's instant is agreed upon. */
static int warm_up(struct agent *a, uint64_t start_ns, uint64_t *ret_go_ns) {
        if (a->setup.warmup_ns == 0) {
                *ret_go_ns = start_ns;
                return 0;
        }
        a->phase = "warmup";
        set_limits(a, WORKER_UNLIMITED);
        workers_go(a, start_ns);
        int r = sleep_until(a, start_ns + a->setup.warmup_ns);
        if (r == 0)
                r = finish(a);
        if (r < 0)
                return r;
        uint64_t patience = patience_ns(a), go_ns = util_now_ns() + GO_NS;
        if (!a->workload->one_agent)
                r = a->end == END_FIRST ? peer_send(a, PEER_GO, 0, go_ns, go_ns + patience)
                                        : peer_receive(a, PEER_GO, 0, &go_ns, go_ns + patience);
        *ret_go_ns = go_ns;
        return r;
}

static int stalled(struct agent *a, uint64_t patience) {
        const struct worker *w = slowest(a);
        return failure_set(&a->failure, ETIMEDOUT,
                           "stalled: no message has moved for %" PRIu64 " ms (thread %" PRIu32 " is at %" PRIu64
                           " of %" PRIu64 ")",
                           patience / NSEC_PER_MSEC, w->index, a->setup.messages - (w->limit - worker_messages(w)),
                           a->setup.messages);
}

static int sample_counted(struct agent *a, struct sampler *s, uint64_t go_ns) {
        uint64_t interval = a->setup.interval_ns, patience = patience_ns(a);
        uint64_t next = sample_after(go_ns, go_ns, interval), last = progress(a), moved_ns = go_ns;
        for (;;) {
                uint64_t look_ns = util_now_ns() + LEADER_ALIVE_NS;
                int r = leader_wait(a, next < look_ns ? next : look_ns, LEADER_WORKERS);
                if (r)
                        return r < 0 ? r : 0;
                uint64_t now_ns = util_now_ns(), now = progress(a);
                if (now != last)
                        moved_ns = now_ns;
                last = now;
                if (now_ns > moved_ns && now_ns - moved_ns >= patience)
                        return stalled(a, patience);
                if (now_ns < next)
                        continue;
                r = sampler_take(s);
                if (r < 0)
                        return r;
                next = sample_after(go_ns, now_ns, interval);
        }
}

/* Each end has counted to the same number; it only remains to hear that of the other. */
static int agree(struct agent *a) {
        uint64_t theirs, patience = patience_ns(a);
        if (a->workload->one_agent)
                return 0;
        int r = peer_send(a, PEER_DONE, 0, a->window.messages, util_now_ns() + patience);
        if (r == 0)
                r = peer_receive(a, PEER_DONE, 0, &theirs, util_now_ns() + patience);
        if (r == 0 && theirs != a->window.messages)
                r = failure_set(&a->failure, EPROTO, "%" PRIu64 " messages here, %" PRIu64 " at peer %s",
                                a->window.messages, theirs, a->peer_role);
        return r;
}

static void limit_to_count(struct worker *w, uint64_t messages) {
        __atomic_store_n(&w->send_limit, w->sent + messages, __ATOMIC_RELEASE);
        worker_set_limit(w, w->messages + messages);
}

static int run_counted(struct agent *a, struct sampler *s, uint64_t start_ns) {
        uint64_t go_ns = 0, last_ns = 0;

        int r = warm_up(a, start_ns, &go_ns);
        if (r < 0)
                return r;
        a->phase = "window";
        for (uint32_t i = 0; i < a->n_workers; i++)
                limit_to_count(&a->workers[i], a->setup.messages);
        r = sampler_open(s, go_ns);
        if (r < 0)
                return r;
        workers_go(a, go_ns);
        r = sample_counted(a, s, go_ns);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < a->n_workers; i++)
                if (a->workers[i].finished_ns > last_ns)
                        last_ns = a->workers[i].finished_ns;
        r = sampler_close(s, last_ns);
        a->phase = "draining";
        if (r == 0)
                r = agree(a);
        return r;
}

int phases_run(struct agent *a, uint64_t start_ns) {
        struct sampler *s;
        int r = sampler_new(a, &s);
        if (r < 0)
                return r;
        r = a->setup.messages ? run_counted(a, s, start_ns) : run_timed(a, s, start_ns);
        a->peer_done = r == 0;
        sampler_free(s);
        return r;
}
