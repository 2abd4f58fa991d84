/* SPDX-License-Identifier: MIT */

/* The handler threads of one listener; owned and fed by http.c. A connection has at most one job, which bounds the
 * queue. */

#include "api/http/connection/workers.h"

#include "schema/util.h"

#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICE_STEPS 5
#define NICE_LOWEST 19

struct worker {
        struct workers *workers;
        pthread_t thread;
        const struct job *job; /* only compared with NULL: it may be freed */
        const void *client;    /* of the job */
        bool slow;
};

struct workers {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct job *first, **last;
        bool stopping;
        unsigned n;
        struct worker threads[];
};

/* On Linux each thread has its own priority, and lowering it needs no privilege. Agents have the main thread's nice
 * value, or 0 (agent/main.c). */
void workers_lower_priority(void) {
        int agents = getpriority(PRIO_PROCESS, (id_t) getpid()); /* cannot fail for the caller's own process */
        int nice = (agents > 0 ? agents : 0) + NICE_STEPS;
        (void) setpriority(PRIO_PROCESS, (id_t) gettid(), nice < NICE_LOWEST ? nice : NICE_LOWEST);
}

/* client NULL: of all. */
static unsigned count_slow(const struct workers *w, const void *client) {
        unsigned n = 0;
        for (unsigned i = 0; i < w->n; i++)
                n += w->threads[i].job && w->threads[i].slow && (!client || w->threads[i].client == client);
        return n;
}

/* A slow job may take minutes, so that those of one client leave a thread to another's where there are enough. */
static bool slow_may(const struct workers *w, const struct job *job) {
        unsigned most = w->n > 1 ? w->n - 1 : 1;
        return count_slow(w, NULL) < most && (!job->client || most <= 2 || count_slow(w, job->client) < most - 1);
}

static unsigned count_of_client(const struct workers *w, const void *client) {
        unsigned n = 0;
        for (unsigned i = 0; i < w->n; i++)
                n += w->threads[i].job && w->threads[i].client == client;
        return n;
}

/* Takes the next job out of the queue, whose length is bounded; NULL: there is none that may run now. */
static struct job *take_job(struct workers *w) {
        struct job **next = NULL;
        unsigned least = UINT_MAX;
        for (struct job **i = &w->first; *i; i = &(*i)->next) {
                if ((*i)->slow && !slow_may(w, *i))
                        continue;
                unsigned of_client = count_of_client(w, (*i)->client);
                if (of_client < least) {
                        next = i;
                        least = of_client;
                }
        }
        struct job *job = next ? *next : NULL;
        if (job) {
                *next = job->next;
                if (!*next)
                        w->last = next;
        }
        return job;
}

static void *work(void *userdata) {
        struct worker *self = userdata;
        struct workers *w = self->workers;
        workers_lower_priority();
        pthread_mutex_lock(&w->lock);
        for (;;) {
                struct job *job = take_job(w);
                if (job) {
                        self->job = job;
                        self->client = job->client;
                        self->slow = job->slow;
                        pthread_mutex_unlock(&w->lock);
                        job->run(job);
                        pthread_mutex_lock(&w->lock);
                        self->job = NULL;
                } else if (w->stopping && !w->first) {
                        pthread_cond_broadcast(&w->changed); /* others may have waited for slow jobs' turn */
                        break;
                } else {
                        pthread_cond_wait(&w->changed, &w->lock);
                }
        }
        pthread_mutex_unlock(&w->lock);
        return NULL;
}

int workers_new(struct workers **ret, unsigned n) {
        struct workers *w = calloc(1, sizeof(*w) + n * sizeof(w->threads[0]));
        if (!w)
                return -ENOMEM;
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->changed, NULL);
        w->last = &w->first;
        int k = 0;
        pthread_mutex_lock(&w->lock);
        while (w->n < n && k == 0) {
                struct worker *worker = &w->threads[w->n];
                worker->workers = w;
                k = pthread_create(&worker->thread, NULL, work, worker);
                w->n += k == 0;
        }
        pthread_mutex_unlock(&w->lock);
        if (k != 0) {
                workers_free(w);
                return -k;
        }
        *ret = w;
        return 0;
}

void workers_free(struct workers *w) {
        if (!w)
                return;
        pthread_mutex_lock(&w->lock);
        w->stopping = true;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
        for (unsigned i = 0; i < w->n; i++)
                pthread_join(w->threads[i].thread, NULL);
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
        free(w);
}

void workers_push(struct workers *w, struct job *job) {
        job->next = NULL;
        pthread_mutex_lock(&w->lock);
        *w->last = job;
        w->last = &job->next;
        pthread_cond_signal(&w->changed);
        pthread_mutex_unlock(&w->lock);
}
