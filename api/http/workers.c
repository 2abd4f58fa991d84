/* SPDX-License-Identifier: MIT */

/* The handler threads of one listener; owned and fed by http.c. A connection has at most one job, which bounds the
 * queue. */

#include "api/http/workers.h"

#include "schema/util.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICE 5

struct workers {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct job *first, **last;
        bool stopping;
        unsigned n;
        pthread_t threads[];
};

/* On Linux a priority is a thread's. To lower it nobody needs a privilege. */
void workers_lower_priority(void) {
        (void) setpriority(PRIO_PROCESS, (id_t) gettid(), NICE);
}

static void *work(void *userdata) {
        struct workers *w = userdata;
        workers_lower_priority();
        for (;;) {
                pthread_mutex_lock(&w->lock);
                while (!w->first && !w->stopping)
                        pthread_cond_wait(&w->changed, &w->lock);
                struct job *job = w->first;
                if (job) {
                        w->first = job->next;
                        if (!w->first)
                                w->last = &w->first;
                }
                pthread_mutex_unlock(&w->lock);
                if (!job)
                        return NULL;
                job->run(job);
        }
}

int workers_new(struct workers **ret, unsigned n) {
        struct workers *w = calloc(1, sizeof(*w) + n * sizeof(w->threads[0]));
        if (!w)
                return -ENOMEM;
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->changed, NULL);
        w->last = &w->first;
        for (; w->n < n; w->n++) {
                int k = pthread_create(&w->threads[w->n], NULL, work, w);
                if (k != 0) {
                        workers_free(w);
                        return -k;
                }
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
                pthread_join(w->threads[i], NULL);
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
