/* SPDX-License-Identifier: MIT */

/*
 * The phases of a run with two ends; both leaders execute this file in step. The end that sends is never interrupted:
 * it finishes the message under way, while the other still reads. The receiving end gets the number of messages and is
 * interrupted in a read that waits for one more. Where both send, each end is sender and receiver.
 */

#include "agent/script/phases.h"

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/measure/sampler.h"
#include "agent/measure/stops.h"
#include "agent/os/procfs.h"
#include "agent/script/workers.h"
#include "agent/workload/workload.h"
#include "schema/standstill.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

#define STALL_DEFAULT_NS (5 * NSEC_PER_SEC) /* where the set-up has none; and a long message's time at */
#define SLOWEST_BYTES_PER_MS (64u * 1024u)
#define DRAIN_NS (1500 * NSEC_PER_MSEC) /* beside the message's time: a run has failed 2 s after its deadline */
#define TURN_NS (10 * NSEC_PER_MSEC)    /* for the turn of each other thread on a CPU */
#define DEVICE_NS (10 * NSEC_PER_SEC)   /* a message that waits for a device */
#define LOOK_NS NSEC_PER_SEC
#define KICK_NS NSEC_PER_MSEC
#define AGAIN_NS (50 * NSEC_PER_MSEC)
#define GO_NS (5 * NSEC_PER_MSEC) /* from sending PEER_GO to the start of the window */

/* The longest time of a message in a run without faults. */
static uint64_t message_ns(const struct agent *a) {
        uint64_t ms = a->setup.point.message_size * a->n_workers / SLOWEST_BYTES_PER_MS;
        return ms * NSEC_PER_MSEC + (a->setup.options.file_sync == FILE_SYNC_PAGE_CACHE ? 0 : DEVICE_NS);
}

/* How long a thread may complete no message before it counts as stalled. */
static uint64_t patience_ns(const struct agent *a) {
        uint64_t pause = a->setup.rate > 0 ? (uint64_t) (1e9 / a->setup.rate) : 0; /* on purpose, in an open loop */
        uint64_t stall = a->setup.stall_ns ? a->setup.stall_ns : STALL_DEFAULT_NS + message_ns(a);
        return stall + a->n_workers * TURN_NS + pause;
}

/* How long the last message under way may take; an open loop does not begin another one. */
static uint64_t last_message_ns(const struct agent *a) {
        uint64_t allowed = DRAIN_NS + message_ns(a), stall = a->setup.stall_ns;
        return (stall && stall < allowed ? stall : allowed) + a->n_workers * TURN_NS;
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

static uint64_t progress_of(const struct worker *w) {
        return worker_messages(w) + __atomic_load_n(&w->sent, __ATOMIC_RELAXED) +
               __atomic_load_n(&w->partial_sends, __ATOMIC_RELAXED) +
               __atomic_load_n(&w->partial_receives, __ATOMIC_RELAXED);
}

static uint64_t progress(const struct agent *a) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < a->n_workers; i++)
                sum += progress_of(&a->workers[i]);
        return sum;
}

static bool at_rest(const struct worker *w) {
        return __atomic_load_n(&w->resting, __ATOMIC_ACQUIRE);
}

/* The letter of man 5 proc: S waits for the other end or its due time, D for a device, t is stopped by a tracer. */
static char state_of(const struct worker *w) {
        char text[512];
        const char *name_end = procfs_read_task(w->tid, "stat", text, sizeof text) < 0 ? NULL : strrchr(text, ')');
        return name_end && name_end[1] == ' ' && name_end[2] ? name_end[2] : '?';
}

/* The progress of each thread, as one of many may stall. */
struct watch {
        struct agent *agent;
        struct stops stops;
        uint64_t last_ns; /* when the last message of a window by their number was; UINT64_MAX: not known, or none */
        uint64_t checked_ns;
        struct {
                uint64_t seen, idle_ns;
        } threads[];
};

static void watch_begin(struct watch *h, uint64_t from_ns) {
        h->checked_ns = from_ns;
        for (uint32_t i = 0; i < h->agent->n_workers; i++) {
                h->threads[i].seen = progress_of(&h->agent->workers[i]);
                h->threads[i].idle_ns = 0;
        }
}

/* A thread's share of a window that a count of messages ends. */
static uint64_t share_of(const struct agent *a, uint32_t thread) {
        return a->setup.messages + (thread < a->setup.messages_over);
}

/* Reports the workload's own cause of a stall, which is more precise than the name of the waiting thread. */
static int find_stuck(struct agent *a) {
        return a->workload->stuck ? a->workload->stuck(a) : 0;
}

static int stalled(struct agent *a, const struct worker *w, uint64_t idle_ns) {
        char target[40] = "";
        uint64_t at = worker_messages(w), wanted = share_of(a, w->index);
        if (wanted && a->phase == PHASE_WINDOW) {
                at = wanted - (w->limit - at);
                (void) snprintf(target, sizeof target, " of %" PRIu64, wanted);
        }
        int r = find_stuck(a);
        if (r < 0)
                return r;
        return failure_set(&a->failure, ETIMEDOUT,
                           "stalled: thread %" PRIu32 " has moved no message for %" PRIu64 " ms (it is at %" PRIu64
                           "%s, in state %c)",
                           w->index, idle_ns / NSEC_PER_MSEC, at, target, state_of(w));
}

/* Checks all threads' progress. The check was due at due_ns. */
static int watch_check(struct watch *h, uint64_t due_ns) {
        struct agent *a = h->agent;
        uint64_t patience = patience_ns(a), now_ns = agent_now_ns();
        uint64_t passed = standstill_counted_ns(h->checked_ns, due_ns, now_ns);
        h->checked_ns = now_ns;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                const struct worker *w = &a->workers[i];
                uint64_t seen = progress_of(w);
                bool moved = seen != h->threads[i].seen || at_rest(w);
                h->threads[i].seen = seen;
                h->threads[i].idle_ns = moved ? 0 : h->threads[i].idle_ns + passed;
                if (h->threads[i].idle_ns >= patience)
                        return stalled(a, w, h->threads[i].idle_ns);
        }
        return 0;
}

/* agent_wait() while all threads move. It checks at the samples' times, in order not to wake up more often. */
static int wait_moving(struct watch *h, uint64_t until_ns, unsigned interest) {
        for (;;) {
                uint64_t due_ns = until_ns < h->checked_ns + LOOK_NS ? until_ns : h->checked_ns + LOOK_NS;
                int r = agent_wait(h->agent, due_ns, interest);
                if (r == 0)
                        r = watch_check(h, due_ns);
                if (r || agent_now_ns() >= until_ns)
                        return r;
        }
}

/* The worker that a stall's message names: the one that is farthest behind. */
static const struct worker *slowest(const struct agent *a) {
        const struct worker *w = &a->workers[0];
        for (uint32_t i = 1; i < a->n_workers; i++)
                if (a->workers[i].limit - worker_messages(&a->workers[i]) > w->limit - worker_messages(w))
                        w = &a->workers[i];
        return w;
}

/* Whether more threads are runnable than CPUs exist: a thread without progress may then only wait for its turn, at
 * either end. */
static bool is_crowded(void) {
        char line[64];
        unsigned running = 0;
        if (procfs_first_line("/proc/loadavg", line, sizeof line) < 0 ||
            sscanf(line, "%*s %*s %*s %u/", &running) != 1) /* NOLINT(cert-err34-c): the kernel's own number */
                return false;
        return running > (unsigned long) sysconf(_SC_NPROCESSORS_ONLN) + 1; /* and this thread */
}

/* The time without a message, not counting standstills of the machine. */
struct waiting {
        uint64_t checked_ns, waited_ns;
};

static struct waiting waiting_begin(void) {
        return (struct waiting){.checked_ns = agent_now_ns()};
}

/* Adds the time since the last check. This one was due at due_ns at the latest. */
static void waiting_check(struct waiting *w, uint64_t due_ns) {
        uint64_t now_ns = agent_now_ns();
        w->waited_ns += standstill_counted_ns(w->checked_ns, due_ns, now_ns);
        w->checked_ns = now_ns;
}

static bool is_too_late(const struct agent *a, uint64_t waited_ns) {
        return waited_ns >= patience_ns(a) || (waited_ns >= last_message_ns(a) && !is_crowded());
}

/* The end at fault is unknown here: only this end's thread is known to be still in its message. */
static int unfinished(struct agent *a, const struct worker *w, uint64_t waited_ns) {
        int r = find_stuck(a);
        if (r < 0)
                return r;
        return failure_set(&a->failure, ETIMEDOUT,
                           "thread %" PRIu32 " did not finish its message within %" PRIu64 " ms (it is in state %c)",
                           w->index, waited_ns / NSEC_PER_MSEC, state_of(w));
}

/* Waits until every worker has finished its message. */
static int await_workers(struct agent *a) {
        struct waiting waiting = waiting_begin();
        do {
                uint64_t due_ns = agent_now_ns() + AGAIN_NS;
                int r = agent_wait(a, due_ns, WAIT_WORKERS);
                if (r)
                        return r < 0 ? r : 0;
                waiting_check(&waiting, due_ns);
        } while (!is_too_late(a, waiting.waited_ns));
        const struct worker *w = &a->workers[0];
        while (at_rest(w) && w < &a->workers[a->n_workers - 1])
                w++;
        return unfinished(a, w, waiting.waited_ns);
}

/* Waits for the workers, and sends the peer the number of messages. */
static int finish_sending(struct agent *a) {
        uint64_t patience = patience_ns(a);
        int r = peer_receive(a, PEER_CLOSED, 0, NULL, agent_now_ns() + patience);
        if (r < 0)
                return r;
        set_limits(a, 0);
        r = await_workers(a);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++)
                r = peer_send(a, PEER_SENT, i, a->workers[i].messages, agent_now_ns() + patience);
        if (r == 0)
                r = peer_receive(a, PEER_DRAINED, 0, NULL, agent_now_ns() + 2 * patience);
        return r;
}

static int drain(struct agent *a) {
        uint64_t last = progress(a);
        struct waiting idle = waiting_begin();
        for (;;) {
                uint64_t due_ns = agent_now_ns() + KICK_NS;
                int r = agent_wait(a, due_ns, WAIT_WORKERS);
                if (r)
                        return r;
                for (uint32_t i = 0; i < a->n_workers; i++)
                        if (worker_over(&a->workers[i]))
                                worker_kick(&a->workers[i]);
                uint64_t now = progress(a);
                waiting_check(&idle, due_ns);
                if (now != last)
                        idle = waiting_begin();
                last = now;
                if (is_too_late(a, idle.waited_ns)) {
                        const struct worker *w = slowest(a);
                        return failure_set(&a->failure, ETIMEDOUT,
                                           "thread %" PRIu32 " got %" PRIu64 " of the %" PRIu64
                                           " messages that peer %s sent, and no more for %" PRIu64
                                           " ms (it is in state %c)",
                                           w->index, worker_messages(w), w->limit, a->peer_role,
                                           idle.waited_ns / NSEC_PER_MSEC, state_of(w));
                }
        }
}

/* Receives the number of messages sent, and then exactly that many messages. */
static int receive_rest(struct agent *a) {
        uint64_t patience = patience_ns(a);
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                uint64_t sent;
                /* the peer waits one limit for PEER_CLOSED, and another for its workers */
                r = peer_receive(a, PEER_SENT, i, &sent, agent_now_ns() + 2 * patience + NSEC_PER_SEC);
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
        return peer_send(a, PEER_DRAINED, 0, 0, agent_now_ns() + patience);
}

/* The first worker that still sends; NULL: none. It kicks waiting workers, so that they check their limit. */
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

/* Each end sends until the other's window has closed too, then only receives. */
static int stop_duplex(struct agent *a) {
        uint64_t patience = patience_ns(a);
        int r = peer_send(a, PEER_CLOSED, 0, 0, agent_now_ns() + patience);
        if (r == 0)
                r = peer_receive(a, PEER_CLOSED, 0, NULL, agent_now_ns() + patience);
        if (r < 0)
                return r;
        set_send_limits(a, 0);
        struct waiting waiting = waiting_begin();
        for (const struct worker *w; (w = stop_sending(a));) {
                uint64_t due_ns = agent_now_ns() + KICK_NS;
                r = agent_wait(a, due_ns, 0);
                if (r < 0)
                        return r;
                waiting_check(&waiting, due_ns);
                if (is_too_late(a, waiting.waited_ns))
                        return unfinished(a, w, waiting.waited_ns);
        }
        return 0;
}

/* The first end sends its packets while the second receives, so that the channel has room. */
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
                        r = peer_send(a, PEER_SENT, i, a->workers[i].sent, agent_now_ns() + patience);
                if (r == 0)
                        r = peer_receive(a, PEER_DRAINED, 0, NULL, agent_now_ns() + 2 * patience);
        }
        return r;
}

static int finish(struct agent *a) {
        if (a->workload->one_agent) { /* there is no peer to compare counts with */
                set_limits(a, 0);
                return await_workers(a);
        }
        if (agent_is_duplex(a))
                return finish_duplex(a);
        if (agent_sends(a))
                return finish_sending(a);
        int r = peer_send(a, PEER_CLOSED, 0, 0, agent_now_ns() + patience_ns(a));
        return r < 0 ? r : receive_rest(a);
}

/* The next sample's due time: at whole intervals from the start of the window, also after missed ones; never without an
 * interval. */
static uint64_t sample_after(uint64_t begin_ns, uint64_t now_ns, uint64_t interval) {
        if (interval == 0)
                return UINT64_MAX;
        uint64_t passed = now_ns > begin_ns ? (now_ns - begin_ns) / interval : 0;
        return begin_ns + (passed + 1) * interval;
}

/* Ends parts of samples until the next sample is due. */
static int wait_sample(struct sampler *s, struct watch *h, uint64_t begin_ns, uint64_t until_ns, unsigned interest) {
        uint64_t interval = h->agent->setup.interval_ns / MESSAGE_PARTS_PER_SAMPLE;
        for (;;) {
                uint64_t now_ns = agent_now_ns(), part = sample_after(begin_ns, now_ns, interval);
                uint64_t due_ns = part < until_ns ? part : until_ns;
                stops_sleep(&h->stops, now_ns);
                int r = wait_moving(h, due_ns, interest);
                stops_wake(&h->stops, due_ns, agent_now_ns());
                if (r || part >= until_ns)
                        return r;
                r = sampler_part(s);
                if (r < 0)
                        return r;
        }
}

/* Takes samples until the end of the window. */
static int sample_timed(struct agent *a, struct sampler *s, struct watch *h, uint64_t begin_ns, struct window *ret) {
        uint64_t interval = a->setup.interval_ns, end_ns = begin_ns + a->setup.duration_ns;
        uint64_t next = sample_after(begin_ns, begin_ns, interval);
        while (next < end_ns) {
                int r = wait_sample(s, h, begin_ns, next, 0);
                if (r == 0)
                        r = sampler_take(s);
                if (r < 0)
                        return r;
                next = sample_after(begin_ns, agent_now_ns(), interval);
        }
        int r = wait_sample(s, h, begin_ns, end_ns, 0);
        if (r == 0)
                r = sampler_close(s, 0, ret);
        return r;
}

static int run_timed(struct agent *a, struct sampler *s, struct watch *h, uint64_t start_ns, struct window *ret) {
        uint64_t begin_ns = start_ns + a->setup.warmup_ns;

        a->phase = PHASE_WARMUP;
        set_limits(a, WORKER_UNLIMITED);
        workers_go(a, start_ns);
        watch_begin(h, start_ns);
        int r = wait_moving(h, begin_ns, 0);
        if (r == 0)
                r = sampler_open(s, begin_ns, 0);
        a->phase = PHASE_WINDOW;
        if (r == 0)
                r = sample_timed(a, s, h, begin_ns, ret);
        a->phase = PHASE_DRAINING;
        if (r == 0)
                r = finish(a);
        return r;
}

/* The warm-up of a counted window: all its messages are received before the start of the window is agreed upon. */
static int warm_up(struct agent *a, struct watch *h, uint64_t start_ns, uint64_t *ret_go_ns) {
        if (a->setup.warmup_ns == 0) {
                *ret_go_ns = start_ns;
                return 0;
        }
        a->phase = PHASE_WARMUP;
        set_limits(a, WORKER_UNLIMITED);
        workers_go(a, start_ns);
        watch_begin(h, start_ns);
        int r = wait_moving(h, start_ns + a->setup.warmup_ns, 0);
        if (r == 0)
                r = finish(a);
        if (r < 0)
                return r;
        uint64_t patience = patience_ns(a), go_ns = agent_now_ns() + GO_NS;
        if (!a->workload->one_agent)
                r = a->end == END_FIRST ? peer_send(a, PEER_GO, 0, go_ns, go_ns + patience)
                                        : peer_receive(a, PEER_GO, 0, &go_ns, go_ns + patience);
        *ret_go_ns = go_ns;
        return r;
}

static int sample_counted(struct agent *a, struct sampler *s, struct watch *h, uint64_t go_ns) {
        uint64_t interval = a->setup.interval_ns, next = sample_after(go_ns, go_ns, interval);
        for (;;) {
                int r = wait_sample(s, h, go_ns, next, WAIT_WORKERS);
                if (r)
                        return r < 0 ? r : 0;
                r = sampler_take(s);
                if (r < 0)
                        return r;
                next = sample_after(go_ns, agent_now_ns(), interval);
        }
}

/* Compares the numbers of messages, when each end has reached its count. */
static int agree(struct agent *a, uint64_t messages) {
        uint64_t theirs, patience = patience_ns(a);
        if (a->workload->one_agent)
                return 0;
        int r = peer_send(a, PEER_DONE, 0, messages, agent_now_ns() + patience);
        if (r == 0)
                r = peer_receive(a, PEER_DONE, 0, &theirs, agent_now_ns() + patience);
        if (r == 0 && theirs != messages)
                r = failure_set(&a->failure, EPROTO, "%" PRIu64 " messages here, %" PRIu64 " at peer %s", messages,
                                theirs, a->peer_role);
        return r;
}

static int run_counted(struct agent *a, struct sampler *s, struct watch *h, uint64_t start_ns, struct window *ret) {
        uint64_t go_ns = 0, last_ns = 0;

        int r = warm_up(a, h, start_ns, &go_ns);
        if (r < 0)
                return r;
        a->phase = PHASE_WINDOW;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                struct worker *w = &a->workers[i];
                __atomic_store_n(&w->send_limit, w->sent + share_of(a, i), __ATOMIC_RELEASE);
                worker_set_limit(w, w->messages + share_of(a, i));
        }
        r = sampler_open(s, go_ns, go_ns);
        if (r < 0)
                return r;
        workers_go(a, go_ns);
        watch_begin(h, go_ns);
        r = sample_counted(a, s, h, go_ns);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < a->n_workers; i++)
                if (a->workers[i].finished_ns > last_ns)
                        last_ns = a->workers[i].finished_ns;
        h->last_ns = last_ns;
        r = sampler_close(s, last_ns, ret);
        a->phase = PHASE_DRAINING;
        if (r == 0)
                r = agree(a, ret->messages);
        return r;
}

int phases_run(struct agent *a, uint64_t start_ns, struct window *ret) {
        struct sampler *s;
        _cleanup_free_ struct watch *h = calloc(1, sizeof *h + a->n_workers * sizeof h->threads[0]);
        if (!h)
                return failure_set(&a->failure, ENOMEM, "no memory to watch %" PRIu32 " threads", a->n_workers);
        h->agent = a;
        h->last_ns = UINT64_MAX;
        int r = sampler_new(a, &h->stops, &s);
        if (r < 0)
                return r;
        stops_begin(&h->stops, a->n_workers);
        r = a->setup.messages ? run_counted(a, s, h, start_ns, ret) : run_timed(a, s, h, start_ns, ret);
        a->peer_done = r == 0;
        ret->stopped_ns = h->stops.fd < 0 ? h->stops.fd : (int64_t) stops_until(&h->stops, h->last_ns);
        stops_end(&h->stops);
        sampler_free(s);
        return r;
}
