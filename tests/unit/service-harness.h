/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_SERVICE_HARNESS_H
#define IPCLAB_TESTS_SERVICE_HARNESS_H

/*
 * A service at work, for its tests: the main loop in a thread of its own with the store in it, on a disk that can
 * fail. What the host can do is a double's answer: message size 13 and cross-node are impossible, everything else
 * goes.
 */

#include "daemon/admission/admission.h"
#include "daemon/host/environment/environment.h"
#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "tests/unit/fault-vfs.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>

/* For an answer, and longer than any test: that something was not waited for is seen by its end. */
#define HARNESS_DEADLINE_NS (UINT64_C(3600) * 1000000000)

/* The host's doubles */

static atomic_uint points_with_session; /* that found what another of their submission had tried */

int admission_check(const struct admission_host *host, const struct spec *spec, const struct point *p,
                    struct refusal *r) {
        (void) spec;
        if (!host->session)
                return refuse(r, 500, "no-session", "", "the result for one point must be there for the next");
        if (host->session->uring.done) /* by a point before this one */
                points_with_session++;
        host->session->uring.done = true;
        if (p->placement.kind == PLACEMENT_CROSS_NODE)
                return refuse_limit(r, "/placement", "nodes", "1", "2", "there is one node here");
        if (p->message_size != 13)
                return 0;
        return refuse_limit(r, "/message_size", "unlucky", "12", "13", "13 bytes are impossible here");
}

int admission_session_init(struct admission_session *ret, const char *root) {
        (void) root;
        *ret = (struct admission_session){.uring.done = false};
        return 0;
}

void admission_session_deinit(struct admission_session *s) {
        (void) s;
}

int capacity_to_json(const struct admission_host *host, char **ret) {
        (void) host;
        *ret = strdup("{\"items\":[]}");
        return *ret ? 0 : -ENOMEM;
}

struct environment {
        int unused;
};

int environment_take(const char *root, const struct topology *t, struct environment **ret) {
        (void) root, (void) t;
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

void environment_free(struct environment *e) {
        free(e);
}

int environment_to_json(const struct environment *e, char **ret) {
        (void) e;
        *ret = strdup("{\"kernel\":\"double\"}");
        return *ret ? 0 : -ENOMEM;
}

/* The harness: the main loop in its thread, with the store and the service in it */

struct job {
        int (*run)(void *harness, void *argument);
        void *argument;
        int result;
        sem_t done;
};

struct harness {
        struct fixture f;
        pthread_t thread;
        sd_event *event;
        struct service *service;
        int jobs[2]; /* pipe of struct job pointers; NULL ends the loop */
        sem_t ready;
        int error;
        struct topology topology;
        struct topology_cpu cpu;
        int sibling;
        atomic_uint submitted;
        atomic_long cancelled_run;
        sem_t *hold_submitted; /* the hook waits for it: the main thread is at work */
        sem_t *in_hook;
};

static inline void on_submitted(void *userdata) {
        struct harness *h = userdata;
        h->submitted++;
        if (h->hold_submitted) {
                sem_post(h->in_hook);
                sem_wait(h->hold_submitted);
        }
}

static inline void on_cancel_running(void *userdata, int64_t run_id) {
        ((struct harness *) userdata)->cancelled_run = (long) run_id;
}

static inline int on_job(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        (void) events;
        struct harness *h = userdata;
        struct job *job;
        if (read(fd, &job, sizeof(void *)) != sizeof(void *) || !job)
                return sd_event_exit(sd_event_source_get_event(source), 0);
        job->result = job->run(h, job->argument);
        sem_post(&job->done);
        return 0;
}

static inline int harness_build(struct harness *h) {
        struct service_hooks hooks = {
                .submitted = on_submitted,
                .cancel_running = on_cancel_running,
                .userdata = h,
                .run_timeout_ns = 90000 * NSEC_PER_SEC,
                .topology = &h->topology,
                .root = "",
        };
        int r = sd_event_new(&h->event);
        if (r >= 0)
                r = store_open(&h->f.store, h->f.dir);
        if (r >= 0)
                r = service_new(&h->service, h->event, h->f.store, &hooks);
        if (r >= 0)
                r = sd_event_add_io(h->event, NULL, h->jobs[0], EPOLLIN, on_job, h);
        return r;
}

static inline void *harness_main(void *p) {
        struct harness *h = p;
        h->error = harness_build(h);
        sem_post(&h->ready);
        if (h->error >= 0)
                (void) sd_event_loop(h->event);
        service_free(h->service);
        store_close(util_steal(&h->f.store));
        sd_event_unref(h->event);
        return NULL;
}

static inline void harness_start(struct harness *h) {
        *h = (struct harness){0};
        h->cpu = (struct topology_cpu){.online = true, .allowed = true, .siblings = &h->sibling, .n_siblings = 1};
        h->topology = (struct topology){.cpus = &h->cpu, .n_cpus = 1, .numa_balancing = -1};
        fixture_dir(&h->f);
        fault_reset(FAULT_NONE, 0);
        sem_init(&h->ready, 0, 0);
        if (pipe2(h->jobs, O_CLOEXEC) < 0 || pthread_create(&h->thread, NULL, harness_main, h) != 0) {
                perror("harness");
                exit(1);
        }
        sem_wait(&h->ready);
        if (h->error < 0) {
                fprintf(stderr, "no service: %s\n", strerror(-h->error));
                exit(1);
        }
        h->service->deadline_ns = HARNESS_DEADLINE_NS;
}

static inline void harness_end(struct harness *h) {
        struct job *none = NULL;
        if (write(h->jobs[1], &none, sizeof(void *)) != sizeof(void *))
                abort();
        pthread_join(h->thread, NULL);
        close(h->jobs[0]);
        close(h->jobs[1]);
        sem_destroy(&h->ready);
        fixture_end(&h->f);
}

#define HARNESS __attribute__((cleanup(harness_end))) struct harness

static inline void job_send(struct harness *h, struct job *job) {
        sem_init(&job->done, 0, 0);
        if (write(h->jobs[1], &job, sizeof(void *)) != sizeof(void *))
                abort();
}

static inline int job_wait(struct job *job) {
        sem_wait(&job->done);
        sem_destroy(&job->done);
        return job->result;
}

static inline int on_main(struct harness *h, int (*run)(void *harness, void *argument), void *argument) {
        struct job job = {.run = run, .argument = argument};
        job_send(h, &job);
        return job_wait(&job);
}

/* What the scheduler would do */

static inline int job_hold(void *harness, void *argument) {
        (void) harness;
        sem_t **sems = argument;
        sem_post(sems[0]);
        sem_wait(sems[1]);
        return 0;
}

static inline int job_nothing(void *harness, void *argument) {
        (void) harness, (void) argument;
        return 0;
}

static inline int job_start(void *harness, void *ret_run) {
        struct harness *h = harness;
        int64_t run = fixture_start(h->f.store);
        if (run < 0)
                return (int) run;
        *(int64_t *) ret_run = run;
        struct run_record record;
        int r = store_run(h->f.store, run, &record);
        if (r < 0)
                return r;
        service_set_status(h->service, record.experiment_id, run, util_now_ms());
        service_changed(h->service, record.experiment_id);
        run_record_deinit(&record);
        return 0;
}

struct ending {
        int64_t run;
        struct run_outcome outcome;
};

static inline int job_finish(void *harness, void *argument) {
        struct harness *h = harness;
        struct ending *e = argument;
        struct run_record record;
        int r = store_finish_run(h->f.store, e->run, &e->outcome);
        if (r == 0)
                r = store_run(h->f.store, e->run, &record);
        if (r < 0)
                return r;
        service_set_status(h->service, 0, 0, 0);
        service_changed(h->service, record.experiment_id);
        run_record_deinit(&record);
        return 0;
}

static inline int run_next(struct harness *h, enum state state, const char *result, const char *flags,
                           const char *error) {
        struct ending e = {.outcome = {.state = state, .result_json = result, .flags_json = flags, .error = error}};
        int r = on_main(h, job_start, &e.run);
        return r < 0 ? r : on_main(h, job_finish, &e);
}

#define SUBMIT(h, body, key, id, created, r)                                                                           \
        service_submit((h)->service, (body), strlen(body), (key), (id), (created), (r))

static inline int job_sample(void *harness, void *run) {
        struct harness *h = harness;
        static char agent[] = "receiver";
        struct sample_record batch[200];
        for (uint32_t i = 0; i < 200; i++)
                batch[i] = (struct sample_record){
                        .experiment_id = 1, .run_id = *(int64_t *) run, .agent = agent, .second = i, .interval_ns = 1};
        int r = store_add_samples(h->f.store, batch, 200);
        service_changed(h->service, 1);
        return r;
}

static inline void on_wake(void *userdata) {
        (*(atomic_uint *) userdata)++;
}

#endif
