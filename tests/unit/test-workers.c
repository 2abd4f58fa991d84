/* SPDX-License-Identifier: MIT */

/* Handler threads: all jobs are run, in their order, as many at once as there are threads, and none is left at the end.
 * Slow ones leave a thread to the others, and of several clients none waits for all of another's. */

#include "api/http/connection/workers.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

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
        struct job jobs[THREADS] = {0};
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

/* ---- slow jobs, and several clients ---- */

#define WAIT_SECONDS 60

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned running, finished;
static bool held; /* no slow job ends */

struct task {
        struct job job;    /* first: run_task() is given this */
        unsigned finished; /* as which it ended; 0: not yet */
};

static void run_task(struct job *job) {
        struct task *task = (struct task *) job; /* its first member */
        pthread_mutex_lock(&lock);
        running++;
        pthread_cond_broadcast(&changed);
        while (held && job->slow)
                pthread_cond_wait(&changed, &lock);
        running--;
        task->finished = ++finished;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

static bool wait_until(const unsigned *value, unsigned wanted) {
        struct timespec deadline;
        int k = 0;
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += WAIT_SECONDS;
        pthread_mutex_lock(&lock);
        while (*value != wanted && k == 0)
                k = pthread_cond_timedwait(&changed, &lock, &deadline);
        pthread_mutex_unlock(&lock);
        return k == 0;
}

static void hold(bool on) {
        pthread_mutex_lock(&lock);
        held = on;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

static void slow_jobs_leave_a_thread(void) {
        static const char client[] = "one";
        struct workers *w = NULL;
        struct task slow[10] = {0}, quick[5] = {0};
        finished = 0;
        hold(true);
        CHECK_INT(workers_new(&w, 3), 0);
        for (size_t i = 0; i < ELEMENTS(slow); i++) {
                slow[i].job = (struct job){.run = run_task, .client = client, .slow = true};
                workers_push(w, &slow[i].job);
        }
        CHECK(wait_until(&running, 2));
        for (size_t i = 0; i < ELEMENTS(quick); i++) {
                quick[i].job = (struct job){.run = run_task, .client = client};
                workers_push(w, &quick[i].job);
        }
        CHECK(wait_until(&finished, ELEMENTS(quick)));
        CHECK(wait_until(&running, 2));
        hold(false);
        workers_free(w);
        CHECK_UINT(finished, ELEMENTS(slow) + ELEMENTS(quick));
        CHECK_UINT(quick[4].finished, 5); /* in the order in which they came */
        CHECK_UINT(slow[0].finished > 5, 1);
}

static void no_client_waits_for_all_of_another(void) {
        static const char many[] = "many", few[] = "few";
        struct workers *w = NULL;
        struct task first[20] = {0}, second = {.job = {.run = run_task, .client = few, .slow = true}};
        finished = 0;
        hold(true);
        CHECK_INT(workers_new(&w, 3), 0);
        for (size_t i = 0; i < ELEMENTS(first); i++) {
                first[i].job = (struct job){.run = run_task, .client = many, .slow = true};
                workers_push(w, &first[i].job);
        }
        CHECK(wait_until(&running, 2));
        workers_push(w, &second.job);
        hold(false);
        workers_free(w);
        CHECK_UINT(finished, ELEMENTS(first) + 1);
        CHECK(second.finished <= 4); /* two were running; one of them may begin another before it is seen */
}

static void slow_jobs_of_a_client_leave_a_thread_to_another(void) {
        static const char many[] = "many", few[] = "few";
        struct workers *w = NULL;
        struct task first[10] = {0}, second = {.job = {.run = run_task, .client = few, .slow = true}};
        struct task quick = {.job = {.run = run_task, .client = many}};
        finished = 0;
        hold(true);
        CHECK_INT(workers_new(&w, THREADS), 0);
        for (size_t i = 0; i < ELEMENTS(first); i++) {
                first[i].job = (struct job){.run = run_task, .client = many, .slow = true};
                workers_push(w, &first[i].job);
        }
        CHECK(wait_until(&running, THREADS - 2));
        workers_push(w, &second.job); /* none of the first has ended */
        CHECK(wait_until(&running, THREADS - 1));
        workers_push(w, &quick.job);
        CHECK(wait_until(&finished, 1));
        CHECK_UINT(quick.finished, 1);
        hold(false);
        workers_free(w);
        CHECK_UINT(finished, ELEMENTS(first) + 2);
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
        RUN(slow_jobs_leave_a_thread);
        RUN(no_client_waits_for_all_of_another);
        RUN(slow_jobs_of_a_client_leave_a_thread_to_another);
        RUN(none_is_none);
        return check_end();
}
