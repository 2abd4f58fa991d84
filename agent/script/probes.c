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

/* The other end may have larger buffers to prepare, or more threads to end. */
static uint64_t patience_ns(const struct agent *a) {
        return AGENT_RENDEZVOUS_NS + a->n_workers * (AGENT_THREAD_NS + a->setup.point.message_size / 16);
}

/* The first end makes the page and sends it to the second. */
static int make_page(struct agent *a, int *ret_fd) {
        _cleanup_close_ int fd = memfd_create("ipclab-probe", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, PROBE_PAGE_BYTES) < 0)
                return failure_set(&a->failure, errno, "no page of memory for the probes to meet in: %s",
                                   strerrordesc_np(errno));
        int r = peer_send_fds(a, 0, &fd, 1, agent_now_ns() + patience_ns(a));
        if (r == 0)
                *ret_fd = util_steal_fd(&fd);
        return r;
}

int probes_init(struct probes *p, struct agent *a) {
        _cleanup_close_ int fd = -1;
        *p = (struct probes){};
        if (!a->setup.probes || a->workload->one_agent)
                return 0;
        int r = a->end == END_FIRST ? make_page(a, &fd)
                                    : peer_receive_fds(a, 0, &fd, 1, agent_now_ns() + patience_ns(a));
        if (r < 0)
                return r;
        void *page = mmap(NULL, PROBE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return failure_set(&a->failure, errno, "the page of the probes cannot be mapped: %s",
                                   strerrordesc_np(errno));
        p->page = page;
        return 0;
}

void probes_deinit(struct probes *p) {
        if (p->page)
                (void) munmap(p->page, PROBE_PAGE_BYTES);
        p->page = NULL;
}

/* Synchronizes both leaders when they are ready, so that neither end's probe overlaps the other's set-up or window. */
static int meet(struct agent *a) {
        if (a->workload->one_agent)
                return 0;
        uint64_t deadline_ns = agent_now_ns() + patience_ns(a);
        int r = peer_send(a, PEER_PROBE, 0, 0, deadline_ns);
        return r == 0 ? peer_receive(a, PEER_PROBE, 0, NULL, deadline_ns) : r;
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

int probes_take(struct probes *p, struct agent *a) {
        if (!a->setup.probes)
                return 0;
        bool done = a->peer_done;
        a->peer_done = a->workload->one_agent; /* after the window the peer is needed once more */
        int r = meet(a);
        if (r < 0)
                return r;
        p->order = (struct probe_order){.page = p->page, .second = a->end == END_SECOND, .pass = p->taken};
        p->message = (struct message){.type = MESSAGE_PROBE};
        a->probe_order = &p->order;
        a->probe = &p->message.probe;
        workers_probe(a);
        r = await_probe(p, a);
        a->peer_done = done;
        if (r != 0)
                return r < 0 ? r : send_without_figures(p, a);
        p->taken++;
        p->cpu = p->message.probe.cpu;
        return agent_send(a, &p->message);
}
