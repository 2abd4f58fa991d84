/* SPDX-License-Identifier: MIT */

/*
 * The worker threads: pinning, buffers, the wait for the start, and how the leader starts, stops and ends them. The
 * transport's loop runs between start and stop.
 */

#include "agent/script/workers.h"

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "agent/loop/buffer.h"
#include "agent/loop/source.h"
#include "agent/measure/clock.h"
#include "agent/measure/probe.h"
#include "agent/os/last-cache.h"
#include "agent/proof/proof.h"
#include "agent/transport/transport.h"
#include "agent/workload/workload.h"
#include "schema/util.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define SPIN_NS (100 * NSEC_PER_USEC) /* before the start: a sleeper may wake too late by up to this time */
#define STACK_SIZE (512u * 1024u)

static void on_kick(int signal) {
        (void) signal; /* its only effect is EINTR */
}

int workers_init_signals(void) {
        struct sigaction kick = {.sa_handler = on_kick}, ignore = {.sa_handler = SIG_IGN};
        if (sigaction(SIGUSR1, &kick, NULL) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0)
                return -errno;
        return 0;
}

int workers_new(struct agent *a) {
        uint32_t n = a->setup.point.threads;
        struct worker *workers = aligned_alloc(WORKER_LINE, n * sizeof *workers);
        if (!workers)
                return failure_set(&a->failure, ENOMEM, "no memory for %" PRIu32 " threads", n);
        memset(workers, 0, n * sizeof *workers);
        for (uint32_t i = 0; i < n; i++) {
                struct worker *w = &workers[i];
                w->agent = a;
                w->index = i;
                w->size = a->setup.point.message_size;
                w->pace_ns = a->setup.rate > 0 ? 1e9 / a->setup.rate : 0;
                w->pace_offset_ns = w->pace_ns * i / n;
                w->send_fd = w->receive_fd = -1;
                if (sem_init(&w->go, 0, 0) < 0) { /* cannot fail with these arguments */
                        free(workers);
                        return failure_set(&a->failure, errno, "sem_init: %s", strerrordesc_np(errno));
                }
        }
        a->workers = workers;
        a->n_workers = n;
        a->busy = n;
        return 0;
}

void workers_free(struct agent *a) {
        for (uint32_t i = 0; i < a->n_workers; i++) {
                struct worker *w = &a->workers[i];
                if (a->transport && a->transport->detach)
                        a->transport->detach(w);
                if (a->workload && a->workload->detach)
                        a->workload->detach(w);
                buffer_unmap(w->buffer, w->buffer_length);
                source_free(w);
                if (w->send_fd != w->receive_fd)
                        (void) util_close(w->send_fd);
                (void) util_close(w->receive_fd);
                free(w->latency);
                (void) sem_destroy(&w->go);
        }
        free(a->workers);
        a->workers = NULL;
        a->n_workers = 0;
}

/*
 * Worker 0 has the affinity that the daemon set for the process, and keeps it unless that is a set of several CPUs with
 * one thread each. A wrong affinity is thus reported and not corrected.
 */
static int pin(struct worker *w) {
        const struct agent_placement *p = &w->agent->setup.placement;
        struct cpumask given, mine;

        if (p->n_cpus == 0)
                return 0;
        int r = cpumask_from_list(p->cpus, p->n_cpus, &given);
        if (r == 0)
                r = cpumask_from_list(&p->cpus[w->index % p->n_cpus], 1, &mine);
        if (r < 0)
                return failure_set(&w->failure, -r, "the placement's CPUs are not CPU numbers");
        if (p->roam) {
                if (w->index == 0)
                        return 0;
                mine = given;
        } else if (w->index == 0) {
                struct cpumask inherited;
                r = cpumask_get_affinity(0, &inherited);
                if (r == 0 && !cpumask_equal(&inherited, &given))
                        return 0;
        }
        if (r == 0)
                r = cpumask_set_affinity(0, &mine);
        if (r < 0)
                return failure_set(&w->failure, -r, "thread %" PRIu32 " cannot be pinned to CPU %" PRId32 ": %s",
                                   w->index, p->cpus[w->index % p->n_cpus], strerrordesc_np(-r));
        return 0;
}

static int make_buffer(struct worker *w) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE), length = (w->size + page - 1) / page * page;
        if (length == 0)
                return 0; /* the affinity stays unchanged */
        int r = buffer_map(w, length, &w->buffer);
        if (r == 0)
                w->buffer_length = length;
        return r;
}

static int prepare(struct worker *w) {
        struct agent *a = w->agent;
        (void) prctl(PR_SET_TIMERSLACK, 1UL);
        int r = pin(w);
        if (r == 0 && w->index == 0)
                a->clock = clock_measure();
        if (r == 0)
                r = make_buffer(w);
        if (r == 0)
                r = source_new(w);
        if (r == 0 && a->transport && a->transport->attach)
                r = a->transport->attach(w);
        if (r == 0)
                r = a->workload->prepare(w);
        if (r == 0)
                r = proof_take(w);
        return r;
}

static void rest(struct worker *w) {
        uint64_t one = 1;
        __atomic_store_n(&w->resting, 1, __ATOMIC_RELEASE);
        __atomic_sub_fetch(&w->agent->busy, 1, __ATOMIC_ACQ_REL);
        /* it can only fail for an invalid descriptor, and the leader also checks `busy` at its deadlines */
        if (write(w->agent->event_fd, &one, sizeof one) < 0)
                return;
}

static void wait_until(uint64_t ns) {
        uint64_t sleep_ns = ns > SPIN_NS ? ns - SPIN_NS : 0;
        struct timespec ts = {.tv_sec = (time_t) (sleep_ns / NSEC_PER_SEC),
                              .tv_nsec = (long) (sleep_ns % NSEC_PER_SEC)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
        while (util_now_ns() < ns)
                ;
}

static void run(struct worker *w) {
        wait_until(w->start_ns);
        w->cpu_base_ns = util_thread_cpu_ns() - w->cpu_ns;
        __atomic_store_n(&w->stage, WORKER_LOOPS, __ATOMIC_RELEASE);
        int r = w->loop(w);
        __atomic_store_n(&w->cpu_ns, util_thread_cpu_ns() - w->cpu_base_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&w->stage, WORKER_ENDED, __ATOMIC_SEQ_CST); /* before the clock is read: workers_ended() */
        w->finished_ns = util_now_ns();
        if (r >= 0 && w->settle)
                w->settle(w);
        if (r >= 0)
                r = proof_take(w);
        if (r < 0 && w->failure.detail[0] == '\0')
                failure_set(&w->failure, -r, "thread %" PRIu32 " failed: %s", w->index, strerrordesc_np(-r));
}

static void *worker_main(void *userdata) {
        struct worker *w = userdata;
        w->tid = (pid_t) syscall(SYS_gettid);
        int r = prepare(w);
        if (r < 0 && w->failure.detail[0] == '\0')
                failure_set(&w->failure, -r, "thread %" PRIu32 " failed: %s", w->index, strerrordesc_np(-r));
        rest(w);
        for (;;) {
                while (sem_wait(&w->go) < 0)
                        ; /* EINTR: a late kick */
                if (w->command == WORKER_QUIT)
                        return NULL;
                if (w->command == WORKER_PROBE)
                        probe_take(w->agent->probe_order, w->agent->probe);
                else
                        run(w);
                rest(w);
        }
}

static int start_thread(struct worker *w) {
        pthread_attr_t attr;
        int r = pthread_attr_init(&attr);
        if (r == 0) {
                r = pthread_attr_setstacksize(&attr, STACK_SIZE);
                if (r == 0)
                        r = pthread_create(&w->thread, &attr, worker_main, w);
                (void) pthread_attr_destroy(&attr);
        }
        if (r == 0)
                return 0;
        char which[40];
        (void) snprintf(which, sizeof which, "thread %" PRIu32 " of %" PRIu32, w->index, w->agent->n_workers);
        return failure_thread(&w->failure, r, which);
}

void workers_main(struct agent *a) {
        uint32_t started = 1;
        a->workers[0].thread = pthread_self();
        for (; started < a->n_workers; started++)
                if (start_thread(&a->workers[started]) < 0)
                        break;
        for (uint32_t i = started; i < a->n_workers; i++)
                rest(&a->workers[i]); /* the first of them has the failure; the leader ends the process */
        (void) worker_main(&a->workers[0]);
        for (uint32_t i = 1; i < started; i++)
                (void) pthread_join(a->workers[i].thread, NULL);
}

static void command(struct worker *w, enum worker_command c) {
        w->command = c;
        (void) sem_post(&w->go);
}

void workers_go(struct agent *a, uint64_t start_ns) {
        __atomic_store_n(&a->busy, a->n_workers, __ATOMIC_RELEASE);
        for (uint32_t i = 0; i < a->n_workers; i++) {
                a->workers[i].resting = 0;
                a->workers[i].stage = WORKER_DUE;
                a->workers[i].sent_last = 0;
                a->workers[i].start_ns = start_ns;
                command(&a->workers[i], WORKER_RUN);
        }
}

uint64_t workers_prepare_ns(const struct agent *a) {
        uint64_t fill_ns = point_fill_ns(&a->setup.point, last_cache_bytes(), (uint64_t) sysconf(_SC_PAGESIZE));
        return AGENT_RENDEZVOUS_NS + a->n_workers * (AGENT_THREAD_NS + fill_ns);
}

void workers_probe(struct agent *a, uint32_t thread) {
        __atomic_store_n(&a->busy, 1, __ATOMIC_RELEASE);
        a->workers[thread].resting = 0;
        command(&a->workers[thread], WORKER_PROBE);
}

void workers_quit(struct agent *a) {
        for (uint32_t i = 0; i < a->n_workers; i++)
                command(&a->workers[i], WORKER_QUIT);
}
