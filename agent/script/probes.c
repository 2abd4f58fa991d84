/* SPDX-License-Identifier: MIT */

#include "agent/script/probes.h"

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/script/workers.h"
#include "agent/workload/workload.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

/* Without a page, which has no memory, the descriptor stays -1. */
static void make_page(struct probes *p, int *ret_fd) {
        _cleanup_close_ int fd = memfd_create("ipclab-probe", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, PROBE_PAGE_BYTES) < 0)
                return;
        void *page = mmap(NULL, PROBE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return;
        p->page = page;
        *ret_fd = util_steal_fd(&fd);
}

/* The first end makes the page, reports whether it has one, and sends it. */
static int send_page(struct probes *p, struct agent *a) {
        _cleanup_close_ int fd = -1;
        uint64_t deadline_ns = agent_now_ns() + workers_prepare_ns(a);
        make_page(p, &fd);
        int r = peer_send(a, PEER_PROBE, 0, fd >= 0, deadline_ns);
        return r == 0 && fd >= 0 ? peer_send_fds(a, 0, &fd, 1, deadline_ns) : r;
}

static int receive_page(struct probes *p, struct agent *a) {
        _cleanup_close_ int fd = -1;
        uint64_t deadline_ns = agent_now_ns() + workers_prepare_ns(a), made;
        int r = peer_receive(a, PEER_PROBE, 0, &made, deadline_ns);
        if (r == 0 && made)
                r = peer_receive_fds(a, 0, &fd, 1, deadline_ns);
        if (r < 0 || !made)
                return r;
        void *page = mmap(NULL, PROBE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page != MAP_FAILED)
                p->page = page;
        return 0;
}

int probes_init(struct probes *p, struct agent *a) {
        *p = (struct probes){};
        if (!a->setup.probes || a->workload->one_agent)
                return 0;
        return a->end == END_FIRST ? send_page(p, a) : receive_page(p, a);
}

void probes_deinit(struct probes *p) {
        if (p->page)
                (void) munmap(p->page, PROBE_PAGE_BYTES);
        p->page = NULL;
}

/* Synchronizes both leaders when they are ready, so that neither end's probe overlaps the other's set-up or window. The
 * probes meet in the page where both ends have it. */
static int meet(struct probes *p, struct agent *a) {
        uint64_t theirs = 0;
        if (a->workload->one_agent)
                return 0;
        uint64_t deadline_ns = agent_now_ns() + workers_prepare_ns(a);
        int r = peer_send(a, PEER_PROBE, 0, p->page != NULL, deadline_ns);
        if (r == 0)
                r = peer_receive(a, PEER_PROBE, 0, &theirs, deadline_ns);
        p->order = (struct probe_order){.page = theirs ? p->page : NULL,
                                        .no_memory = !theirs || !p->page,
                                        .second = a->end == END_SECOND,
                                        .pass = p->taken};
        return r;
}

static int await_turn(struct agent *a) {
        return peer_receive(a, PEER_PROBE, 0, NULL, agent_now_ns() + workers_prepare_ns(a) + PROBE_LONGEST_NS);
}

/* Waits for the worker. Before the window the warm-up needs it, too. 1: it has none of the CPU's time. */
static int await_probe(const struct probes *p, struct agent *a, uint32_t thread) {
        uint64_t patience = p->taken == 0 ? AGENT_RENDEZVOUS_NS : PROBE_LONGEST_NS;
        int r = agent_wait(a, agent_now_ns() + patience, WAIT_WORKERS);
        if (r != 0)
                return r < 0 ? r : 0;
        if (p->taken > 0)
                return 1;
        return failure_set(&a->failure, ETIMEDOUT,
                           "thread %" PRIu32 " had no CPU for %.0f s: others kept the CPU that it is pinned to, or a "
                           "limit of CPU time stopped it",
                           thread, (double) patience / 1e9);
}

/* That of the next thread. */
static int take_one(struct probes *p, struct agent *a) {
        a->probe_order = &p->order;
        a->probe = &p->list[p->n];
        workers_probe(a, p->n);
        int r = await_probe(p, a, p->n);
        if (r == 0)
                p->n++;
        p->given_up = r > 0;
        return r < 0 ? r : 0;
}

static int take_first(struct probes *p, struct agent *a) {
        p->n = 0;
        return take_one(p, a);
}

/* Nothing more is taken beside a thread that does not rest. */
static int take_others(struct probes *p, struct agent *a) {
        const struct agent_placement *place = &a->setup.placement;
        uint32_t due = probe_others(a->n_workers, place->n_cpus, place->roam);
        uint32_t most = due < PROBE_OTHERS_MAX ? due : PROBE_OTHERS_MAX;
        uint64_t until_ns = agent_now_ns() + PROBE_OTHERS_NS;
        int r = 0;
        while (r == 0 && !p->given_up && p->n <= most && agent_now_ns() <= until_ns) {
                p->order = (struct probe_order){.thread = p->n};
                r = take_one(p, a);
        }
        return r;
}

/* The first end's, then the second's. */
static int in_turn(struct probes *p, struct agent *a, int (*take)(struct probes *p, struct agent *a)) {
        bool second = a->end == END_SECOND, alone = a->workload->one_agent;
        int r = second ? await_turn(a) : 0;
        if (r == 0)
                r = take(p, a);
        if (r == 0 && !alone)
                r = peer_send(a, PEER_PROBE, 0, 0, agent_now_ns() + workers_prepare_ns(a));
        if (r == 0 && !alone && !second)
                r = await_turn(a);
        return r;
}

static int take_all(struct probes *p, struct agent *a) {
        int r = meet(p, a);
        if (r == 0)
                r = p->order.no_memory ? in_turn(p, a, take_first) : take_first(p, a);
        if (r == 0 && a->n_workers > 1)
                r = in_turn(p, a, take_others);
        return r;
}

static int send_one(struct agent *a, const struct probe *probe) {
        const struct message m = {.type = MESSAGE_PROBE, .probe = *probe};
        return agent_send(a, &m);
}

/* What is known of a probe whose thread had no CPU: the worker may still write to p->list. */
static int send_without_figures(const struct probes *p, struct agent *a) {
        struct probe made = {.thread = p->n,
                             .cpu = p->n ? (uint32_t) a->setup.placement.cpus[p->n] : p->cpu,
                             .work_ns = PROBE_LONGEST_NS,
                             .cost_ns = PROBE_LONGEST_NS,
                             .offset.absence = PROBE_STARVED};
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++)
                made.series[kind].absence = p->n && kind >= PROBE_OWN_KINDS ? PROBE_OTHER_THREAD : PROBE_STARVED;
        return send_one(a, &made);
}

int probes_take(struct probes *p, struct agent *a) {
        if (!a->setup.probes)
                return 0;
        bool done = a->peer_done;
        a->peer_done = a->workload->one_agent; /* after the window the peer is needed once more */
        int r = take_all(p, a);
        a->peer_done = done;
        /* when all are taken, so that the daemon is not woken beside one */
        for (uint32_t thread = 0; r == 0 && thread < p->n; thread++)
                r = send_one(a, &p->list[thread]);
        if (r == 0 && p->given_up)
                r = send_without_figures(p, a);
        if (r == 0 && p->n > 0)
                p->cpu = p->list[0].cpu;
        p->taken++;
        return r;
}
