/* SPDX-License-Identifier: MIT */

/*
 * The service between threads that ask and a main loop that works, which here is a thread too. What the host can do is
 * a double's answer: message size 13 is impossible, everything else goes. Made to be run under ThreadSanitizer as well.
 */

#include "daemon/admission.h"
#include "daemon/environment.h"
#include "daemon/log.h"
#include "daemon/service-internal.h"
#include "schema/json.h"
#include "tests/unit/check.h"
#include "tests/unit/fault-vfs.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

/* The host's doubles */

int admission_check(const char *root, const struct topology *t, const struct spec *spec, const struct point *p,
                    struct refusal *r) {
        (void) root, (void) t, (void) spec;
        if (p->message_size != 13)
                return 0;
        return refuse_limit(r, "/message_size", "unlucky", "12", "13", "13 bytes are impossible here");
}

int capacity_to_json(const char *root, char **ret) {
        (void) root;
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

/* A house: the main loop in its thread, with the store and the service in it */

struct job {
        int (*run)(void *house, void *argument);
        void *argument;
        int result;
        sem_t done;
};

struct house {
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

static void on_submitted(void *userdata) {
        struct house *h = userdata;
        h->submitted++;
        if (h->hold_submitted) {
                sem_post(h->in_hook);
                sem_wait(h->hold_submitted);
        }
}

static void on_cancel_running(void *userdata, int64_t run_id) {
        ((struct house *) userdata)->cancelled_run = (long) run_id;
}

static int on_job(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        (void) events;
        struct house *h = userdata;
        struct job *job;
        if (read(fd, &job, sizeof(void *)) != sizeof(void *) || !job)
                return sd_event_exit(sd_event_source_get_event(source), 0);
        job->result = job->run(h, job->argument);
        sem_post(&job->done);
        return 0;
}

static int house_build(struct house *h) {
        struct service_hooks hooks = {
                .submitted = on_submitted,
                .cancel_running = on_cancel_running,
                .userdata = h,
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

static void *house_main(void *p) {
        struct house *h = p;
        h->error = house_build(h);
        sem_post(&h->ready);
        if (h->error >= 0)
                (void) sd_event_loop(h->event);
        service_free(h->service);
        store_close(util_steal(&h->f.store));
        sd_event_unref(h->event);
        return NULL;
}

static void house_start(struct house *h) {
        *h = (struct house){0};
        h->cpu = (struct topology_cpu){.online = true, .allowed = true, .siblings = &h->sibling, .n_siblings = 1};
        h->topology = (struct topology){.cpus = &h->cpu, .n_cpus = 1, .numa_balancing = -1};
        fixture_dir(&h->f);
        fault_reset(FAULT_NONE, 0);
        sem_init(&h->ready, 0, 0);
        if (pipe2(h->jobs, O_CLOEXEC) < 0 || pthread_create(&h->thread, NULL, house_main, h) != 0) {
                perror("house");
                exit(1);
        }
        sem_wait(&h->ready);
        if (h->error < 0) {
                fprintf(stderr, "no service: %s\n", strerror(-h->error));
                exit(1);
        }
}

static void house_end(struct house *h) {
        struct job *none = NULL;
        if (write(h->jobs[1], &none, sizeof(void *)) != sizeof(void *))
                abort();
        pthread_join(h->thread, NULL);
        close(h->jobs[0]);
        close(h->jobs[1]);
        sem_destroy(&h->ready);
        fixture_end(&h->f);
}

#define HOUSE __attribute__((cleanup(house_end))) struct house

static void job_send(struct house *h, struct job *job) {
        sem_init(&job->done, 0, 0);
        if (write(h->jobs[1], &job, sizeof(void *)) != sizeof(void *))
                abort();
}

static int job_wait(struct job *job) {
        sem_wait(&job->done);
        sem_destroy(&job->done);
        return job->result;
}

static int on_main(struct house *h, int (*run)(void *house, void *argument), void *argument) {
        struct job job = {.run = run, .argument = argument};
        job_send(h, &job);
        return job_wait(&job);
}

/* What the scheduler would do */

static int job_hold(void *house, void *argument) {
        (void) house;
        sem_t **sems = argument;
        sem_post(sems[0]);
        sem_wait(sems[1]);
        return 0;
}

static int job_nothing(void *house, void *argument) {
        (void) house, (void) argument;
        return 0;
}

static int job_start(void *house, void *ret_run) {
        struct house *h = house;
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

static int job_finish(void *house, void *argument) {
        struct house *h = house;
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

static int run_next(struct house *h, enum state state, const char *result, const char *flags, const char *error) {
        struct ending e = {.outcome = {.state = state, .result_json = result, .flags_json = flags, .error = error}};
        int r = on_main(h, job_start, &e.run);
        return r < 0 ? r : on_main(h, job_finish, &e);
}

#define SUBMIT(h, body, key, id, created, r)                                                                           \
        service_submit((h)->service, (body), strlen(body), (key), (id), (created), (r))

/* Submit */

static void test_submit(void) {
        HOUSE h;
        house_start(&h);
        int64_t id;
        bool created;
        struct refusal r = {0};
        const char *body = "{\"name\": \"x\", \"message_size\": [1, 2], \"repetitions\": 3, \"duration_seconds\": 2}";
        CHECK_INT(SUBMIT(&h, body, NULL, &id, &created, &r), 0);
        CHECK(created && id == 1);
        CHECK_UINT(h.submitted, 1);
        struct experiment_record e;
        CHECK_INT(service_experiment(h.service, id, &e, &r), 0);
        bool good = strcmp(e.spec_json, body) == 0 && strcmp(e.name, "x") == 0 && e.runs_total == 6 &&
                    e.seed < UINT64_C(1) << 53 && e.queue_position == 1 && e.eta_seconds == 21; /* 6 × (1 + 2 + 0.5) */
        experiment_record_deinit(&e);
        CHECK(good);
        CHECK_INT(service_experiment(h.service, 99, &e, &r), -ENOENT);
        CHECK_INT(r.status, 404);
}

static void test_seed_gives_the_order(void) {
        HOUSE h;
        house_start(&h);
        int64_t id, sizes[2][8];
        bool created;
        struct refusal r;
        for (int k = 0; k < 2; k++) {
                CHECK_INT(SUBMIT(&h, "{\"message_size\": [1,2,3,4,5,6,7,8], \"seed\": 4711}", NULL, &id, &created, &r),
                          0);
                struct run_record *runs;
                size_t n;
                struct store *reader;
                CHECK_INT(store_open_reader(&reader, h.f.dir), 0);
                int error = store_runs(reader, id, 0, 100, &runs, &n);
                store_close(reader);
                CHECK_INT(error, 0);
                CHECK_UINT(n, 8);
                for (size_t i = 0; i < 8; i++)
                        sscanf(strstr(runs[i].point_json, "message_size\":") + 14, "%" SCNd64, &sizes[k][i]);
                store_runs_free(runs, n);
        }
        CHECK(memcmp(sizes[0], sizes[1], sizeof(sizes[0])) == 0);
        bool sorted = true;
        for (size_t i = 0; i < 7; i++)
                sorted = sorted && sizes[0][i] < sizes[0][i + 1];
        CHECK(!sorted);
}

static void test_refused_submissions(void) {
        static const struct {
                const char *body, *key;
                int status;
                const char *code, *pointer;
        } table[] = {
                {"", NULL, 400, "invalid-json", ""},
                {"{\"transport\": \"pipe\"", NULL, 400, "invalid-json", "/transport"},
                {"{\"transprot\": \"pipe\"}", NULL, 422, "unknown-field", "/transprot"},
                {"{\"message_size\": 13}", NULL, 422, "limit-exceeded", "/message_size"},
                {"{\"message_size\": [13, 14]}", NULL, 422, "limit-exceeded", "/message_size"},
                {"{\"message_size\": 13, \"skip_impossible\": true}", NULL, 422, "nothing-possible", ""},
                {"{}", "", 400, "invalid-idempotency-key", ""},
                {"{}", "with space", 400, "invalid-idempotency-key", ""},
                {"{}", "\x7f", 400, "invalid-idempotency-key", ""},
                {"{}", "sch\xc3\xb6n", 400, "invalid-idempotency-key", ""},
        };
        HOUSE h;
        house_start(&h);
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                int64_t id = 7;
                bool created = true;
                struct refusal r = {0};
                int error = SUBMIT(&h, table[i].body, table[i].key, &id, &created, &r);
                if (error == 0 || id != 7 || r.status != table[i].status || strcmp(r.code, table[i].code) != 0 ||
                    strcmp(r.pointer, table[i].pointer) != 0 || !r.detail[0])
                        CHECK_FAIL("submission %zu: error %d, %d %s at \"%s\": %s", i, error, r.status, r.code,
                                   r.pointer, r.detail);
        }
        char key[202];
        memset(key, 'k', 201);
        key[201] = '\0';
        int64_t id;
        bool created;
        struct refusal r;
        CHECK(SUBMIT(&h, "{}", key, &id, &created, &r) < 0);
        CHECK_INT(r.status, 400);
        key[200] = '\0';
        CHECK_INT(SUBMIT(&h, "{}", key, &id, &created, &r), 0);
        CHECK(service_submit(h.service, "{}\0{}", 5, NULL, &id, &created, &r) < 0); /* not cut at the NUL */
        CHECK_INT(r.status, 400);
        CHECK_UINT(h.submitted, 1);
}

static void test_skip_impossible(void) {
        HOUSE h;
        house_start(&h);
        int64_t id;
        bool created;
        struct refusal r;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [12, 13, 14], \"skip_impossible\": true}", NULL, &id, &created, &r),
                  0);
        struct experiment_record e;
        CHECK_INT(service_experiment(h.service, id, &e, &r), 0);
        struct json *skipped = NULL;
        int error = json_parse(e.skipped_json, strlen(e.skipped_json), &skipped, NULL);
        uint32_t total = e.runs_total;
        experiment_record_deinit(&e);
        CHECK_INT(error, 0);
        CHECK_UINT(total, 2);
        const struct json *first = json_first(skipped);
        const char *reason = NULL;
        bool good = json_length(skipped) == 1 && json_get(json_get(first, "point"), "message_size") &&
                    json_as_string(json_get(first, "reason"), &reason) == 0 &&
                    strcmp(reason, "13 bytes are impossible here") == 0;
        json_free(skipped);
        CHECK(good);
}

static void test_idempotency(void) {
        HOUSE h;
        house_start(&h);
        int64_t id, again, other;
        bool created;
        struct refusal r = {0};
        CHECK_INT(SUBMIT(&h, "{\"message_size\": 1}", "key", &id, &created, &r), 0);
        CHECK(created);
        CHECK_INT(SUBMIT(&h, "{\"message_size\": 1}", "key", &again, &created, &r), 0);
        CHECK(!created && again == id);
        CHECK_INT(SUBMIT(&h, "{\"message_size\": 2}", "key", &other, &created, &r), -EINVAL);
        CHECK_INT(r.status, 422);
        CHECK_STRING(r.code, "idempotency-key-reused");
        CHECK(service_submit(h.service, "{\"message_size\": 1}\0", 20, "key", &other, &created, &r) < 0);
        CHECK_INT(SUBMIT(&h, "{\"message_size\": 1}", "key2", &other, &created, &r), 0);
        CHECK(created && other != id);
        CHECK_UINT(h.submitted, 2);
}

struct racer {
        struct house *house;
        pthread_t thread;
        int64_t id;
        bool created;
        int error;
        struct refusal r;
};

static void *race(void *p) {
        struct racer *racer = p;
        racer->error = SUBMIT(racer->house, "{\"message_size\": 1}", "one-key", &racer->id, &racer->created, &racer->r);
        return NULL;
}

static void test_same_key_at_once(void) {
        HOUSE h;
        house_start(&h);
        struct racer racers[8];
        for (size_t i = 0; i < ELEMENTS(racers); i++) {
                racers[i] = (struct racer){.house = &h};
                CHECK_INT(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
        }
        unsigned created = 0, errors = 0;
        for (size_t i = 0; i < ELEMENTS(racers); i++) {
                pthread_join(racers[i].thread, NULL);
                created += racers[i].created;
                errors += racers[i].error != 0 || racers[i].id != 1;
                if (racers[i].error < 0)
                        fprintf(stderr, "thread %zu: %s\n", i, racers[i].r.detail);
        }
        CHECK_UINT(errors, 0);
        CHECK_UINT(created, 1);
        CHECK_UINT(h.submitted, 1);
}

/* Full disk */

static int job_full(void *house, void *kind) {
        (void) house;
        fault.kind = *(enum fault_kind *) kind;
        fault.happened = false;
        fault.countdown = 1;
        return 0;
}

static void test_full_disk(void) {
        HOUSE h;
        house_start(&h);
        int64_t id;
        bool created;
        struct refusal r = {0};
        enum fault_kind full = FAULT_FULL;
        CHECK_INT(on_main(&h, job_full, &full), 0);
        CHECK_INT(SUBMIT(&h, "{}", "key", &id, &created, &r), -ENOSPC);
        CHECK_INT(r.status, 507);
        CHECK(strstr(r.detail, "bytes are free") && strstr(r.detail, h.f.dir));
        CHECK_UINT(h.submitted, 0);
        CHECK_INT(SUBMIT(&h, "{}", "key", &id, &created, &r), 0); /* there is room again */
        CHECK(created);
        CHECK_INT(id, 1);
}

/* Cancel and delete */

static void test_cancel_and_delete(void) {
        HOUSE h;
        house_start(&h);
        int64_t id, run;
        bool created;
        struct refusal r = {0};
        CHECK_INT(service_cancel(h.service, 1, &r), -ENOENT);
        CHECK_INT(r.status, 404);
        CHECK_STRING(r.detail, "there is no experiment 1");
        CHECK_INT(service_delete(h.service, 1, &r), -ENOENT);
        CHECK_INT(r.status, 404);

        CHECK_INT(SUBMIT(&h, "{\"message_size\": [1, 2]}", NULL, &id, &created, &r), 0);
        CHECK_INT(on_main(&h, job_start, &run), 0);
        CHECK_INT(service_delete(h.service, id, &r), -EBUSY);
        CHECK_INT(r.status, 409);
        CHECK_INT(service_cancel(h.service, id, &r), 0);
        CHECK_INT(h.cancelled_run, run);
        struct ending ending = {.run = run, .outcome = {.state = STATE_CANCELLED}};
        CHECK_INT(on_main(&h, job_finish, &ending), 0);
        CHECK_INT(service_cancel(h.service, id, &r), -EALREADY);
        CHECK_INT(r.status, 409);
        CHECK_INT(service_delete(h.service, id, &r), 0);
        struct experiment_record e;
        CHECK_INT(service_experiment(h.service, id, &e, &r), -ENOENT);
}

/* Deadlines and the end */

struct caller {
        struct house *house;
        pthread_t thread;
        const char *key;
        struct refusal r;
        int error;
        int64_t id;
        uint64_t took_ns;
};

static void *call_submit(void *p) {
        struct caller *c = p;
        bool created;
        uint64_t start = util_now_ns();
        c->error = SUBMIT(c->house, "{}", c->key, &c->id, &created, &c->r);
        c->took_ns = util_now_ns() - start;
        return NULL;
}

static void test_main_thread_does_not_come(void) {
        HOUSE h;
        house_start(&h);
        sem_t held, release, *sems[] = {&held, &release};
        sem_init(&held, 0, 0);
        sem_init(&release, 0, 0);
        struct job hold = {.run = job_hold, .argument = sems};
        job_send(&h, &hold);
        sem_wait(&held);
        h.service->deadline_ns = 100 * NSEC_PER_MSEC;
        struct caller c = {.house = &h};
        call_submit(&c);
        struct service_health health;
        struct refusal r;
        int asked = service_health(h.service, &health, &r);
        sem_post(&release);
        (void) job_wait(&hold);
        CHECK_INT(c.error, -ETIMEDOUT);
        CHECK_INT(c.r.status, 503);
        CHECK(strstr(c.r.detail, "nothing was changed") != NULL);
        CHECK(c.took_ns >= 100 * NSEC_PER_MSEC && c.took_ns < 5 * NSEC_PER_SEC);
        CHECK_INT(asked, 0);
        CHECK(!health.ok && strstr(health.problem, "did not answer") != NULL);
        h.service->deadline_ns = SERVICE_DEADLINE_NS;
        CHECK_INT(SUBMIT(&h, "{}", NULL, &c.id, &(bool){false}, &c.r), 0);
        CHECK_INT(c.id, 1); /* and it was not */
        CHECK_UINT(h.submitted, 1);
        sem_destroy(&held);
        sem_destroy(&release);
}

static void test_main_thread_takes_too_long(void) {
        HOUSE h;
        house_start(&h);
        sem_t in_hook, release;
        sem_init(&in_hook, 0, 0);
        sem_init(&release, 0, 0);
        h.in_hook = &in_hook;
        h.hold_submitted = &release;
        h.service->deadline_ns = 100 * NSEC_PER_MSEC;
        struct caller c = {.house = &h, .key = "key"};
        call_submit(&c);
        sem_wait(&in_hook);
        sem_post(&release);
        CHECK_INT(c.error, -ETIMEDOUT);
        CHECK_INT(c.r.status, 503);
        CHECK(strstr(c.r.detail, "may still be carried out") != NULL);
        h.service->deadline_ns = SERVICE_DEADLINE_NS;
        CHECK_INT(on_main(&h, job_nothing, NULL), 0); /* the main thread is out of the hook */
        bool created = true;
        CHECK_INT(SUBMIT(&h, "{}", "key", &c.id, &created, &c.r), 0); /* what the key is for */
        CHECK(!created);
        CHECK_INT(c.id, 1);
        sem_destroy(&in_hook);
        sem_destroy(&release);
}

static int job_stop(void *house, void *argument) {
        (void) argument;
        service_stop(((struct house *) house)->service);
        return 0;
}

static void test_stop_answers_who_waits(void) {
        HOUSE h;
        house_start(&h);
        sem_t held, release, *sems[] = {&held, &release};
        sem_init(&held, 0, 0);
        sem_init(&release, 0, 0);
        struct job hold = {.run = job_hold, .argument = sems}, stop = {.run = job_stop};
        job_send(&h, &hold);
        sem_wait(&held);
        struct caller callers[4];
        for (size_t i = 0; i < ELEMENTS(callers); i++) {
                callers[i] = (struct caller){.house = &h};
                CHECK_INT(pthread_create(&callers[i].thread, NULL, call_submit, &callers[i]), 0);
        }
        job_send(&h, &stop);
        for (bool waiting = false; !waiting; usleep(1000)) { /* until all four stand in the queue */
                size_t n = 0;
                pthread_mutex_lock(&h.service->lock);
                for (struct call *c = h.service->first_call; c; c = c->next)
                        n++;
                pthread_mutex_unlock(&h.service->lock);
                waiting = n == ELEMENTS(callers);
        }
        sem_post(&release);
        for (size_t i = 0; i < ELEMENTS(callers); i++)
                pthread_join(callers[i].thread, NULL);
        (void) job_wait(&hold);
        (void) job_wait(&stop);
        unsigned stopped = 0, done = 0;
        for (size_t i = 0; i < ELEMENTS(callers); i++) {
                stopped += callers[i].error == -ESHUTDOWN && callers[i].r.status == 503;
                done += callers[i].error == 0; /* the loop may have taken the calls before the stop */
        }
        CHECK_UINT(stopped + done, ELEMENTS(callers));
        struct caller late = {.house = &h};
        call_submit(&late);
        CHECK_INT(late.error, -ESHUTDOWN);
        struct experiment_record e;
        CHECK_INT(service_experiment(h.service, 1, &e, &late.r), -ESHUTDOWN);
        CHECK_INT(late.r.status, 503);
        sem_destroy(&held);
        sem_destroy(&release);
}

/* Without a race: the calls wait, nobody takes them, the stop comes. */
static void test_stop_before_the_loop(void) {
        HOUSE h;
        house_start(&h);
        sem_t held, release, *sems[] = {&held, &release};
        sem_init(&held, 0, 0);
        sem_init(&release, 0, 0);
        struct job hold = {.run = job_hold, .argument = sems};
        job_send(&h, &hold);
        sem_wait(&held);
        struct caller c = {.house = &h};
        CHECK_INT(pthread_create(&c.thread, NULL, call_submit, &c), 0);
        for (bool waiting = false; !waiting; usleep(1000)) {
                pthread_mutex_lock(&h.service->lock);
                waiting = h.service->first_call != NULL;
                pthread_mutex_unlock(&h.service->lock);
        }
        service_stop(h.service);
        pthread_join(c.thread, NULL);
        sem_post(&release);
        (void) job_wait(&hold);
        CHECK_INT(c.error, -ESHUTDOWN);
        CHECK_INT(c.r.status, 503);
        CHECK(c.took_ns < 4 * NSEC_PER_SEC); /* at once, not at the deadline */
        CHECK_UINT(h.submitted, 0);
        sem_destroy(&held);
        sem_destroy(&release);
}

/* Reading */

static int count_experiment(void *userdata, const struct experiment_record *e) {
        int64_t *last = userdata;
        if (last[0] != 0 && e->id >= last[0])
                return -EILSEQ;
        last[0] = e->id;
        return ++last[1] == last[2] ? 42 : 0;
}

static void test_lists_are_paged(void) {
        HOUSE h;
        house_start(&h);
        struct refusal r;
        bool created;
        int64_t id;
        for (int i = 0; i < 40; i++)
                CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        int64_t seen[3] = {0};
        struct experiment_query q = {.limit = 35};
        CHECK_INT(service_experiments(h.service, &q, count_experiment, seen, &r), 0);
        CHECK_INT(seen[1], 35);
        CHECK_INT(seen[0], 6);
        memset(seen, 0, sizeof(seen));
        q = (struct experiment_query){.by_state = true, .state = STATE_QUEUED, .before_id = 21, .limit = 1000};
        CHECK_INT(service_experiments(h.service, &q, count_experiment, seen, &r), 0);
        CHECK_INT(seen[1], 20);
        memset(seen, 0, sizeof(seen));
        seen[2] = 17; /* the visitor stops, in the second page */
        CHECK_INT(service_experiments(h.service, &q, count_experiment, seen, &r), 42);
        CHECK_INT(seen[1], 17);
        q.state = STATE_DONE;
        memset(seen, 0, sizeof(seen));
        CHECK_INT(service_experiments(h.service, &q, count_experiment, seen, &r), 0);
        CHECK_INT(seen[1], 0);
}

static int count_run(void *userdata, const struct run_record *run) {
        uint32_t *next = userdata;
        return run->position == (*next)++ ? 0 : -EILSEQ;
}

static int count_sample(void *userdata, const struct sample_record *sample) {
        int64_t *last = userdata;
        if (sample->change <= last[0])
                return -EILSEQ;
        last[0] = sample->change;
        last[1]++;
        return 0;
}

static int count_change(void *userdata, const struct experiment_record *e, const struct run_record *run,
                        const struct sample_record *sample) {
        int64_t *last = userdata, change = e ? e->change : run ? run->change : sample->change;
        if ((!!e + !!run + !!sample) != 1 || change <= last[0])
                return -EILSEQ;
        last[0] = change;
        last[1]++;
        return 0;
}

static int job_sample(void *house, void *run) {
        struct house *h = house;
        static char agent[] = "receiver";
        struct sample_record batch[200];
        for (uint32_t i = 0; i < 200; i++)
                batch[i] = (struct sample_record){
                        .experiment_id = 1, .run_id = *(int64_t *) run, .agent = agent, .second = i, .interval_ns = 1};
        int r = store_add_samples(h->f.store, batch, 200);
        service_changed(h->service, 1);
        return r;
}

static void test_runs_samples_changes(void) {
        HOUSE h;
        house_start(&h);
        struct refusal r = {0};
        bool created;
        int64_t id, run;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [1,2,3,4,5], \"repetitions\": 30}", NULL, &id, &created, &r), 0);
        uint32_t position = 0;
        CHECK_INT(service_runs(h.service, id, 0, UINT32_MAX, count_run, &position, &r), 0);
        CHECK_UINT(position, 150);
        position = 100;
        CHECK_INT(service_runs(h.service, id, 100, 20, count_run, &position, &r), 0);
        CHECK_UINT(position, 120);
        CHECK_INT(service_runs(h.service, 9, 0, 20, count_run, &position, &r), -ENOENT);
        CHECK_INT(r.status, 404);

        CHECK_INT(on_main(&h, job_start, &run), 0);
        CHECK_INT(on_main(&h, job_sample, &run), 0);
        int64_t seen[2] = {0};
        CHECK_INT(service_samples(h.service, id, 0, 0, UINT32_MAX, count_sample, seen, &r), 0);
        CHECK_INT(seen[1], 200);
        seen[0] = seen[1] = 0;
        CHECK_INT(service_samples(h.service, 0, run, 0, 77, count_sample, seen, &r), 0);
        CHECK_INT(seen[1], 77);
        CHECK_INT(service_samples(h.service, 0, run, seen[0], 1000, count_sample, seen, &r), 0);
        CHECK_INT(seen[1], 200);
        CHECK_INT(service_samples(h.service, 0, 999, 0, 77, count_sample, seen, &r), -ENOENT);
        CHECK_STRING(r.detail, "there is no run 999");

        seen[0] = seen[1] = 0;
        CHECK_INT(service_changes(h.service, id, 0, UINT32_MAX, count_change, seen, &r), 0);
        CHECK_INT(seen[1], 1 + 150 + 200);
        int64_t last;
        CHECK_INT(service_last_change(h.service, &last, &r), 0);
        CHECK_INT(seen[0], last);
        CHECK_INT(service_changes(h.service, 77, 0, 10, count_change, seen, &r), -ENOENT);

        struct run_record record;
        CHECK_INT(service_run(h.service, run, &record, &r), 0);
        enum state state = record.state;
        run_record_deinit(&record);
        CHECK_INT(state, STATE_RUNNING);
        CHECK_INT(service_run(h.service, 999, &record, &r), -ENOENT);
}

/* Results */

static int keep_row(void *userdata, const struct result_record *row) {
        struct result_record **rows = userdata;
        **rows = *row;
        (*rows)->point_json = strdup(row->point_json);
        (*rows)->flags_json = strdup(row->flags_json);
        (*rows)->error = row->error ? strdup(row->error) : NULL;
        (*rows)++;
        return 0;
}

static void test_results(void) {
        static const struct {
                enum state state;
                const char *result, *flags, *error;
        } runs[] = {
                {STATE_DONE,
                 "{\"throughput_bytes_per_second\": 300, \"messages_per_second\": 3, \"latency_ns\": {\"min\": 1, "
                 "\"p50\": 20, \"p90\": 30, \"p99\": 40, \"p99_9\": 50, \"max\": 60, \"mean\": 21.5, \"kind\": "
                 "\"rtt\"}}",
                 "[\"noisy:steal\", \"no_steady_state\"]", NULL},
                {STATE_DONE, "{\"throughput_bytes_per_second\": 100, \"messages_per_second\": 1, \"latency_ns\": null}",
                 "[\"noisy:steal\"]", NULL},
                {STATE_FAILED, NULL, "[\"placement_violated\"]", "thread 0 ran on CPU 3, asked 1"},
                {STATE_DONE,
                 "{\"throughput_bytes_per_second\": null, \"messages_per_second\": 2.5, \"latency_ns\": "
                 "{\"p50\": 40, \"kind\": \"rtt\"}}",
                 "[]", NULL},
        };
        HOUSE h;
        house_start(&h);
        struct refusal r = {0};
        bool created;
        int64_t id;
        CHECK_INT(SUBMIT(&h, "{\"repetitions\": 5}", NULL, &id, &created, &r), 0);
        for (size_t i = 0; i < ELEMENTS(runs); i++)
                CHECK_INT(run_next(&h, runs[i].state, runs[i].result, runs[i].flags, runs[i].error), 0);
        struct result_record row = {0}, *p = &row;
        CHECK_INT(service_results(h.service, id, keep_row, &p, &r), 0);
        CHECK(p == &row + 1);
        bool good = row.runs == 3 && row.runs_planned == 5 && row.runs_failed == 1 &&
                    row.throughput_bytes_per_second.n == 2 && row.throughput_bytes_per_second.median == 200 &&
                    row.throughput_bytes_per_second.min == 100 && row.messages_per_second.n == 3 &&
                    row.messages_per_second.median == 2.5 && !row.messages_per_second.has_ci95 &&
                    row.latency_p50.n == 2 && row.latency_p50.median == 30 && row.latency_p99.n == 1 &&
                    row.latency_mean.median == 21.5 && row.latency_kind && strcmp(row.latency_kind, "rtt") == 0 &&
                    strcmp(row.error, "thread 0 ran on CPU 3, asked 1") == 0 &&
                    strcmp(row.flags_json, "[\"noisy:steal\",\"no_steady_state\",\"placement_violated\"]") == 0;
        result_record_deinit(&row);
        CHECK(good);
        CHECK_INT(service_results(h.service, 99, keep_row, &p, &r), -ENOENT);
        CHECK_INT(r.status, 404);
}

static int count_row(void *userdata, const struct result_record *row) {
        unsigned *n = userdata;
        (*n)++;
        return row->runs == 0 && row->throughput_bytes_per_second.n == 0 && !row->latency_kind &&
                               strcmp(row->flags_json, "[]") == 0
                       ? 0
                       : -EILSEQ;
}

static void test_results_before_the_first_run(void) {
        HOUSE h;
        house_start(&h);
        struct refusal r;
        bool created;
        int64_t id;
        unsigned rows = 0;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [1,2,3,4,5,6,7,8,9,10], \"threads\": [1,2,3,4]}", NULL, &id, &created,
                         &r),
                  0);
        CHECK_INT(service_results(h.service, id, count_row, &rows, &r), 0);
        CHECK_UINT(rows, 40);
}

/* Subscribers */

static void on_wake(void *userdata) {
        (*(atomic_uint *) userdata)++;
}

static void test_subscribers(void) {
        HOUSE h;
        house_start(&h);
        struct refusal r;
        bool created;
        int64_t id;
        atomic_uint all = 0, first = 0, second = 0;
        struct subscription *a, *b, *c;
        CHECK_INT(service_subscribe(h.service, 0, on_wake, &all, &a), 0);
        CHECK_INT(service_subscribe(h.service, 1, on_wake, &first, &b), 0);
        CHECK_INT(service_subscribe(h.service, 2, on_wake, &second, &c), 0);
        CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        CHECK_INT(run_next(&h, STATE_DONE, "{}", "[]", NULL), 0);
        CHECK_UINT(first, 3);
        CHECK_UINT(second, 0);
        CHECK_UINT(all, 3);
        service_unsubscribe(b);
        CHECK_INT(service_delete(h.service, id, &r), 0);
        CHECK_UINT(first, 3);
        CHECK_UINT(all, 4);
        CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        CHECK_UINT(second, 1);
        service_unsubscribe(a);
        service_unsubscribe(c);
        service_unsubscribe(NULL);
}

/* Documents and health */

static void test_documents(void) {
        HOUSE h;
        house_start(&h);
        struct refusal r;
        int (*const documents[])(struct service *, char **, struct refusal *) = {
                service_presets_json, service_transports_json, service_topology_json, service_environment_json};
        for (size_t i = 0; i < ELEMENTS(documents); i++) {
                char *text = NULL;
                struct json *tree = NULL;
                CHECK_INT(documents[i](h.service, &text, &r), 0);
                int error = json_parse(text, strlen(text), &tree, NULL);
                bool quick = i > 0 || strstr(text, "\"name\":\"quick\"") != NULL;
                json_free(tree);
                free(text);
                CHECK_INT(error, 0);
                CHECK(quick);
        }
}

static void test_health(void) {
        HOUSE h;
        house_start(&h);
        struct refusal r;
        bool created;
        int64_t id, run;
        struct service_health health;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [1, 2]}", NULL, &id, &created, &r), 0);
        CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        CHECK_INT(run_next(&h, STATE_DONE, "{}", "[]", NULL), 0);
        CHECK_INT(on_main(&h, job_start, &run), 0);
        CHECK_INT(on_main(&h, job_sample, &run), 0);
        CHECK_INT(service_health(h.service, &health, &r), 0);
        CHECK_STRING(health.ok ? "" : health.problem, "");
        CHECK_STRING(health.version, IPCLAB_VERSION);
        CHECK_INT(health.running_experiment, 1);
        CHECK_INT(health.running_run, run);
        CHECK_UINT(health.experiments_queued, 1);
        CHECK_UINT(health.runs_done, 1);
        CHECK_UINT(health.samples, 200);
        CHECK(health.cpu_ns > 0 && health.rss_bytes > 100000 && health.database_bytes > 4096);
        CHECK(health.uptime_seconds >= 0 && health.uptime_seconds < 60);
}

/* Many threads: for ThreadSanitizer, and for the pool of readers, which is smaller than the crowd */

struct worker {
        struct house *house;
        pthread_t thread;
        unsigned number;
        const char *fault;
};

static int look_at(void *userdata, const struct experiment_record *e) {
        (void) userdata;
        return e->spec_json ? 0 : -EILSEQ;
}

static void *work(void *p) {
        struct worker *w = p;
        struct service *s = w->house->service;
        for (unsigned i = 0; i < 15 && !w->fault; i++) {
                struct refusal r;
                int64_t id;
                bool created;
                atomic_uint wakes = 0;
                struct subscription *sub;
                struct experiment_record e;
                struct service_health health;
                struct experiment_query q = {.limit = 20};
                if (service_subscribe(s, 0, on_wake, &wakes, &sub) < 0)
                        w->fault = "subscribe";
                if (SUBMIT(w->house, "{\"message_size\": [1, 2]}", NULL, &id, &created, &r) < 0)
                        w->fault = "submit";
                else if (service_experiment(s, id, &e, &r) < 0)
                        w->fault = "what was acknowledged is not there";
                else
                        experiment_record_deinit(&e);
                if (service_experiments(s, &q, look_at, NULL, &r) < 0)
                        w->fault = "list";
                if (service_health(s, &health, &r) < 0 || !health.ok)
                        w->fault = "health";
                int error = (i + w->number) % 3 == 0 ? service_cancel(s, id, &r) : 0;
                if (error < 0 && error != -EALREADY)
                        w->fault = "cancel";
                error = (i + w->number) % 4 == 0 ? service_delete(s, id, &r) : 0;
                if (error < 0 && error != -EBUSY)
                        w->fault = "delete";
                service_unsubscribe(sub);
                if (wakes == 0)
                        w->fault = "no wake";
        }
        return NULL;
}

static void test_many_threads(void) {
        HOUSE h;
        house_start(&h);
        struct worker workers[8];
        for (unsigned i = 0; i < ELEMENTS(workers); i++) {
                workers[i] = (struct worker){.house = &h, .number = i};
                CHECK_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < 50; i++) { /* meanwhile the queue is worked off */
                int error = run_next(&h, STATE_DONE, "{}", "[]", NULL);
                if (error < 0 && error != -ENOENT)
                        CHECK_FAIL("run %d: %s", i, strerror(-error));
        }
        for (unsigned i = 0; i < ELEMENTS(workers); i++)
                pthread_join(workers[i].thread, NULL);
        for (unsigned i = 0; i < ELEMENTS(workers); i++)
                if (workers[i].fault)
                        CHECK_FAIL("thread %u: %s", i, workers[i].fault);
}

int main(void) {
        log_open(LOG_EMERG);
        fault_install();
        RUN(test_submit);
        RUN(test_seed_gives_the_order);
        RUN(test_refused_submissions);
        RUN(test_skip_impossible);
        RUN(test_idempotency);
        RUN(test_same_key_at_once);
        RUN(test_full_disk);
        RUN(test_cancel_and_delete);
        RUN(test_main_thread_does_not_come);
        RUN(test_main_thread_takes_too_long);
        RUN(test_stop_answers_who_waits);
        RUN(test_stop_before_the_loop);
        RUN(test_lists_are_paged);
        RUN(test_runs_samples_changes);
        RUN(test_results);
        RUN(test_results_before_the_first_run);
        RUN(test_subscribers);
        RUN(test_documents);
        RUN(test_health);
        RUN(test_many_threads);
        return check_end();
}
