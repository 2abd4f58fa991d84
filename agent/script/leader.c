/* SPDX-License-Identifier: MIT */

#include "agent/script/leader.h"

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/loop/pace.h"
#include "agent/loop/source.h"
#include "agent/measure/counters.h"
#include "agent/measure/kernel-threads.h"
#include "agent/measure/sampler.h"
#include "agent/os/scheduling.h"
#include "agent/proof/proof.h"
#include "agent/script/phases.h"
#include "agent/script/probes.h"
#include "agent/script/workers.h"
#include "agent/transport/stream/descriptor.h"
#include "agent/transport/transport.h"
#include "agent/workload/workload.h"
#include "schema/detail.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define START_NS (60 * NSEC_PER_SEC) /* from ready to start: the other agent may be slower */
#define CLOSE_NS (60 * NSEC_PER_SEC) /* from the report until the daemon closes the control socket */

/* Removes everything that has a name, and every process of its own. A second call does nothing. */
static void tidy(struct agent *a) {
        if (a->transport && a->transport->close)
                a->transport->close(a);
        if (a->workload && a->workload->close)
                a->workload->close(a);
}

static int receive(struct agent *a, struct message *ret, uint64_t deadline_ns) {
        char detail[DETAIL_MAX] = "";
        int r = message_receive(a->control_fd, ret, deadline_ns, detail);
        if (r == -ECONNRESET)
                return agent_orphaned(a);
        if (r < 0)
                return failure_set(&a->failure, -r, "a malformed message of the daemon: %s",
                                   detail[0] ? detail : strerrordesc_np(-r));
        return 0;
}

static int list_pages(const struct agent *a, struct page_list *list) {
        int r = a->transport && a->transport->pages ? a->transport->pages(a, list) : 0;
        return r == 0 && a->workload->pages ? a->workload->pages(a, list) : r;
}

static int check_setup(struct agent *a) {
        const struct message_setup *s = &a->setup;
        const struct point *p = &s->point;

        if (s->end != a->end)
                return failure_set(&a->failure, EBADMSG, "started as %s, but set up as the %s end", a->role,
                                   s->end == END_FIRST ? "first" : "second");
        if ((s->duration_ns == 0) == (s->messages == 0))
                return failure_set(&a->failure, EINVAL, "exactly one of duration and messages must end the window");
        a->workload = workload_find(p->workload);
        if (!a->workload)
                return failure_set(&a->failure, EOPNOTSUPP, "this agent has no workload %s",
                                   workload_name(p->workload));
        if ((p->message_size == 0) != a->workload->one_agent || p->threads == 0 || p->threads > SPEC_THREADS_MAX)
                return failure_set(&a->failure, EINVAL,
                                   "message size %" PRIu64 " with %" PRIu32 " threads cannot be run", p->message_size,
                                   p->threads);
        if (a->workload->one_agent != !peer_is_packet_socket(a->peer_fd))
                return failure_set(&a->failure, EBADMSG, "descriptor %d does not fit workload %s: a peer is %s",
                                   a->peer_fd, workload_name(p->workload),
                                   a->workload->one_agent ? "not expected" : "missing");
        a->peer_done = a->workload->one_agent;
        a->proof->members = a->workload->members;
        a->proof->missing = a->workload->missing;
        if (!a->workload->one_agent) {
                a->transport = transport_find(p->transport, p->engine);
                if (!a->transport)
                        return failure_set(&a->failure, EOPNOTSUPP, "this agent has no transport %s with engine %s",
                                           transport_name(p->transport), engine_name(p->engine));
        }
        a->role = role_name(p->workload, p->transport, a->end);
        a->peer_role = role_name(p->workload, p->transport, a->end == END_FIRST ? END_SECOND : END_FIRST);
        return 0;
}

/* Moves the leader off the measured CPUs, where the daemon has other CPUs for it. */
static int move_leader(struct agent *a) {
        const struct agent_placement *p = &a->setup.placement;
        struct cpumask m;

        if (p->n_leader_cpus) {
                int r = cpumask_from_list(p->leader_cpus, p->n_leader_cpus, &m);
                if (r < 0)
                        return failure_set(&a->failure, -r, "the leader's CPUs are not CPU numbers");
        } else {
                memset(&m, 0xff, sizeof m);
        }
        int r = cpumask_set_affinity(0, &m);
        if (r < 0)
                return failure_set(&a->failure, -r, "the leader cannot move to its CPUs: %s", strerrordesc_np(-r));
        return 0;
}

static int receive_setup(struct agent *a) {
        struct message m;
        int r = receive(a, &m, util_now_ns() + AGENT_RENDEZVOUS_NS);
        if (r < 0)
                return r;
        if (m.type != MESSAGE_SETUP) {
                message_deinit(&m);
                return failure_set(&a->failure, EBADMSG, "the daemon sent another message where a set-up was due");
        }
        a->setup = m.setup; /* with all memory that it points to */
        return check_setup(a);
}

/* window: NULL: it has not been yet. */
static int collect_effective(struct agent *a, const struct window *window, struct effective **ret) {
        _cleanup_free_ struct effective *e = effective_new();
        if (!e)
                return failure_set(&a->failure, ENOMEM, "no memory for the settings in force");
        if (a->transport && a->transport->effective)
                a->transport->effective(a, e);
        if (a->workload && a->workload->effective)
                a->workload->effective(a, e);
        if (a->workload)
                pace_effective(a, e);
        if (a->transport)
                source_effective(a, e);
        scheduling_put(e);
        effective_add_number(e, SETTING_CLOCK_COST_NS, a->clock.cost_ns);
        if (window && window->stopped_ns >= 0)
                effective_add_number(e, SETTING_STOPPED_NS, (uint64_t) window->stopped_ns);
        else if (window)
                effective_add_unknown(e, SETTING_STOPPED_NS, strerrordesc_np((int) -window->stopped_ns));
        if (e->error < 0)
                return failure_set(&a->failure, -e->error, "the settings in force cannot be reported: %s",
                                   strerrordesc_np(-e->error));
        *ret = util_steal(&e);
        return 0;
}

/* Waits until the workers have prepared themselves, each in its own thread and under its own placement. */
static int prepare_workers(struct agent *a) {
        int r = descriptor_reserve(a);
        if (r == 0 && a->transport)
                r = a->transport->open(a);
        if (r < 0)
                return r;
        (void) sem_post(&a->workers_ready);
        r = agent_wait(a, util_now_ns() + workers_prepare_ns(a), WAIT_WORKERS);
        if (r == 0)
                return failure_set(&a->failure, ETIMEDOUT, "the worker threads did not get ready in time");
        if (r < 0)
                return r;
        /* The leader gets a descriptor table of its own: while two threads share one, every read(2) and write(2) takes
         * and drops a reference on the file with two locked instructions. */
        if (unshare(CLONE_FILES) < 0)
                return failure_set(&a->failure, errno, "the leader cannot have descriptors of its own: %s",
                                   strerrordesc_np(errno));
        struct perf_source source = counters_source(a);
        return counters_new(a, &source, &a->counters);
}

static int send_ready(struct agent *a) {
        struct message m = {.type = MESSAGE_READY};
        int r = proof_collect(a, &m.ready.proof);
        if (r < 0)
                return failure_set(&a->failure, -r, "the placement cannot be reported: %s", strerrordesc_np(-r));
        r = collect_effective(a, NULL, &m.ready.effective);
        if (r == 0)
                r = agent_send(a, &m);
        message_deinit(&m);
        return r;
}

static int receive_start(struct agent *a, uint64_t *ret_start_ns) {
        uint64_t deadline_ns = util_now_ns() + START_NS;
        struct message m;
        do {
                int r = agent_wait(a, deadline_ns, WAIT_CONTROL);
                if (r == 0)
                        return failure_set(&a->failure, ETIMEDOUT, "the daemon gave no start in time");
                if (r > 0)
                        r = receive(a, &m, util_now_ns() + AGENT_SEND_NS);
                if (r < 0)
                        return r;
        } while (m.type == MESSAGE_COUNTING && a->uncounted); /* counters that arrived after their deadline */
        bool start = m.type == MESSAGE_START;
        if (start)
                *ret_start_ns = m.start.start_ns;
        message_deinit(&m);
        return start ? 0 : failure_set(&a->failure, EBADMSG, "the daemon sent another message where a start was due");
}

static int send_report(struct agent *a, const struct window *window) {
        struct message m = {.type = MESSAGE_REPORT};
        m.report.window_ns = window->window_ns;
        m.report.messages = window->messages;
        m.report.bytes = window->messages * a->setup.point.message_size;
        int r = proof_collect(a, &m.report.proof);
        if (r < 0)
                return failure_set(&a->failure, -r, "the placement cannot be reported: %s", strerrordesc_np(-r));
        r = collect_effective(a, window, &m.report.effective);
        m.report.counters = window->counters;
        m.report.clock = a->clock;
        if (r == 0)
                r = agent_send(a, &m);
        message_deinit(&m);
        return r;
}

/* Waits until the daemon closes the control socket after the report. A failure here can no longer be reported to it. */
static int await_close(struct agent *a) {
        struct pollfd p = {.fd = a->control_fd, .events = POLLIN};
        char byte;
        int r;
        do
                r = poll(&p, 1, (int) (CLOSE_NS / NSEC_PER_MSEC));
        while (r < 0 && errno == EINTR);
        if (r > 0 && recv(a->control_fd, &byte, 1, MSG_DONTWAIT) <= 0)
                return 0;
        return failure_set(&a->failure, r == 0 ? ETIMEDOUT : EBADMSG,
                           "the daemon did not close the control socket after the report");
}

static int run(struct agent *a, struct probes *probes) {
        uint64_t start_ns = 0;
        struct window window;
        struct message hello = {.type = MESSAGE_HELLO, .hello = {.pid = getpid()}};

        int r = agent_send(a, &hello);
        if (r == 0)
                r = receive_setup(a);
        /* while the leader still has the process's placement, so that it applies to the memory of the workers'
         * counters */
        if (r == 0)
                r = workers_new(a);
        if (r == 0)
                r = move_leader(a);
        if (r == 0)
                r = prepare_workers(a);
        if (r == 0)
                r = probes_init(probes, a);
        if (r == 0)
                r = probes_take(probes, a);
        if (r == 0)
                r = send_ready(a);
        if (r == 0)
                r = receive_start(a, &start_ns);
        if (r == 0)
                r = phases_run(a, start_ns, &window);
        if (r == 0)
                r = probes_take(probes, a);
        a->phase = PHASE_SETUP;
        if (r == 0)
                r = send_report(a, &window);
        if (r == 0)
                r = await_close(a);
        return r;
}

/* Ends the process after a failure or without a daemon. Names in the file system are removed; the rest ends with the
 * process. */
static __attribute__((noreturn)) void give_up(struct agent *a) {
        if (a->daemon_gone) {
                tidy(a);
                _exit(AGENT_EXIT_ORPHANED);
        }
        struct message m = {.type = MESSAGE_ERROR, .error = {.fault = a->failure.fault, .error = a->failure.error}};
        (void) snprintf(m.error.detail, sizeof m.error.detail, "%s", a->failure.detail);
        /* best effort: the exit code means the same */
        (void) message_send(a->control_fd, &m, util_now_ns() + AGENT_SEND_NS);
        tidy(a);
        /* not exit(): workers may be blocked in a call that only the end of the process interrupts */
        _exit(AGENT_EXIT_FAILED);
}

void *leader_main(void *userdata) {
        struct agent *a = userdata;
        struct proof proof = {.list_pages = list_pages};
        struct probes probes = {}; /* here, for give_up() does not return: a worker may still take one */
        sigset_t kicks;

        a->proof = &proof;
        (void) sigemptyset(&kicks);
        (void) sigaddset(&kicks, SIGUSR1);
        (void) pthread_sigmask(SIG_BLOCK, &kicks, NULL);
        (void) prctl(PR_SET_TIMERSLACK, 1UL); /* samples are taken at their second; without it up to 50 us later */

        if (run(a, &probes) < 0)
                give_up(a);
        tidy(a);
        if (probes.given_up) /* a thread without a CPU would not end, either */
                _exit(EXIT_SUCCESS);
        probes_deinit(&probes);
        counters_free(a->counters);
        a->kernel_threads = kernel_threads_free(a->kernel_threads);
        a->proof = NULL;
        page_list_deinit(&proof.pages);
        workers_quit(a);
        return NULL;
}
