/* SPDX-License-Identifier: MIT */

/* The times of the probes, and the page that both ends share; see probes.h. */

#include "agent/script/probes.h"

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/script/workers.h"
#include "agent/workload/workload.h"

#include <string.h>
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

/* The first end makes the page, says whether it has one, and sends it. */
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

/* Without the page the leaders take the turns: the first end's probe, then the second's. */
static int send_turn(struct agent *a) {
        return peer_send(a, PEER_PROBE, 0, 0, agent_now_ns() + workers_prepare_ns(a));
}

static int await_turn(struct agent *a) {
        return peer_receive(a, PEER_PROBE, 0, NULL, agent_now_ns() + workers_prepare_ns(a) + PROBE_LONGEST_NS);
}

/* What is known of a probe whose thread had no CPU: the worker may still write to p->message. */
static int send_without_figures(struct probes *p, struct agent *a) {
        struct message m = {.type = MESSAGE_PROBE,
                            .probe = {.cpu = p->cpu,
                                      .work_ns = PROBE_LONGEST_NS,
                                      .cost_ns = PROBE_LONGEST_NS,
                                      .offset.absence = PROBE_STARVED}};
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++)
                m.probe.series[kind].absence = PROBE_STARVED;
        p->given_up = true;
        return agent_send(a, &m);
}

/* Waits for the worker. Before the window the warm-up needs it, too. 1: it has none of the CPU's time. */
static int await_probe(const struct probes *p, struct agent *a) {
        uint64_t patience = p->taken == 0 ? AGENT_RENDEZVOUS_NS : PROBE_LONGEST_NS;
        int r = agent_wait(a, agent_now_ns() + patience, WAIT_WORKERS);
        if (r != 0)
                return r < 0 ? r : 0;
        if (p->taken > 0)
                return 1;
        return failure_set(&a->failure, ETIMEDOUT,
                           "thread 0 had no CPU for %.0f s: others kept the CPU that it is pinned to, or a limit of "
                           "CPU time stopped it",
                           (double) patience / 1e9);
}

/* The worker's, in turn with the other end's. As await_probe(). */
static int take(struct probes *p, struct agent *a) {
        bool second = a->end == END_SECOND;
        int r = meet(p, a);
        if (r == 0 && p->order.no_memory && second)
                r = await_turn(a);
        if (r < 0)
                return r;
        p->message = (struct message){.type = MESSAGE_PROBE};
        a->probe_order = &p->order;
        a->probe = &p->message.probe;
        workers_probe(a);
        int taken = await_probe(p, a);
        if (taken >= 0 && p->order.no_memory) {
                r = send_turn(a);
                if (r == 0 && !second)
                        r = await_turn(a);
        }
        return r < 0 ? r : taken;
}

int probes_take(struct probes *p, struct agent *a) {
        if (!a->setup.probes)
                return 0;
        bool done = a->peer_done;
        a->peer_done = a->workload->one_agent; /* after the window the peer is needed once more */
        int r = take(p, a);
        a->peer_done = done;
        if (r != 0)
                return r < 0 ? r : send_without_figures(p, a);
        p->taken++;
        p->cpu = p->message.probe.cpu;
        return agent_send(a, &p->message);
}
