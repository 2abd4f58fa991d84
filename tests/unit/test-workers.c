/* SPDX-License-Identifier: MIT */

/* Handler threads: all jobs are run, in their order, as many at once as there are threads, and none is left at the end.
 */

#include "api/http/workers.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 4u
#define JOBS 500u

struct count {
        struct job job; /* first: run() is given this */
        unsigned number;
};

static atomic_uint done;
static unsigned order[JOBS];

static void run_count(struct job *job) {
        struct count *c = (struct count *) job;
        unsigned at = atomic_fetch_add(&done, 1);
        if (at < JOBS)
                order[at] = c->number;
        free(c);
}

static bool push_counts(struct workers *w) {
        atomic_store(&done, 0);
        for (unsigned i = 0; i < JOBS; i++) {
                struct count *c = calloc(1, sizeof *c);
                if (!c)
                        return false;
                c->job.run = run_count;
                c->number = i;
                workers_push(w, &c->job);
        }
        return true;
}

static void what_is_queued_is_run_before_the_end(void) {
        struct workers *w;
        CHECK_INT(workers_new(&w, THREADS), 0);
        CHECK(push_counts(w));
        workers_free(w);
        CHECK_UINT(atomic_load(&done), JOBS);
}

static void one_thread_keeps_the_order(void) {
        struct workers *w;
        CHECK_INT(workers_new(&w, 1), 0);
        CHECK(push_counts(w));
        workers_free(w);
        CHECK_UINT(atomic_load(&done), JOBS);
        for (unsigned i = 0; i < JOBS; i++)
                CHECK_UINT(order[i], i);
}

/* Each job waits until all are there: with one thread fewer none would ever get on. */
static pthread_barrier_t meeting;
static void run_meeting(struct job *job) {
        (void) job;
        pthread_barrier_wait(&meeting);
        atomic_fetch_add(&done, 1);
}

static void jobs_that_wait_hold_up_no_other(void) {
        struct job jobs[THREADS];
        struct workers *w;
        atomic_store(&done, 0);
        CHECK_INT(pthread_barrier_init(&meeting, NULL, THREADS), 0);
        CHECK_INT(workers_new(&w, THREADS), 0);
        for (unsigned i = 0; i < THREADS; i++) {
                jobs[i].run = run_meeting;
                workers_push(w, &jobs[i]);
        }
        workers_free(w);
        CHECK_UINT(atomic_load(&done), THREADS);
        pthread_barrier_destroy(&meeting);
}

/* A job may push the next one, also while the threads are told to end. */
static struct workers *chain;
static void run_chain(struct job *job) {
        if (atomic_fetch_add(&done, 1) < 9)
                workers_push(chain, job);
}

static void a_job_may_push_another(void) {
        struct job job = {.run = run_chain};
        atomic_store(&done, 0);
        CHECK_INT(workers_new(&chain, 1), 0);
        workers_push(chain, &job);
        workers_free(chain);
        CHECK_UINT(atomic_load(&done), 10);
}

static void none_is_none(void) {
        struct workers *w;
        workers_free(NULL);
        CHECK_INT(workers_new(&w, THREADS), 0);
        workers_free(w);
}

int main(void) {
        RUN(what_is_queued_is_run_before_the_end);
        RUN(one_thread_keeps_the_order);
        RUN(jobs_that_wait_hold_up_no_other);
        RUN(a_job_may_push_another);
        RUN(none_is_none);
        return check_end();
}
