/* SPDX-License-Identifier: MIT */

/*
 * The service between threads: the same key at once, deadlines, the end, and many threads. Made to be run under
 * ThreadSanitizer as well.
 */

#include "daemon/log.h"
#include "daemon/service/submission.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"
#include "tests/unit/service-harness.h"

#include <errno.h>
#include <malloc.h>

struct racer {
        struct harness *harness;
        pthread_t thread;
        int64_t id;
        bool created;
        int error;
        struct refusal r;
};

static void *race(void *p) {
        struct racer *racer = p;
        racer->error =
                SUBMIT(racer->harness, "{\"message_size\": 1}", "one-key", &racer->id, &racer->created, &racer->r);
        return NULL;
}

static void test_same_key_at_once(void) {
        HARNESS h;
        harness_start(&h);
        struct racer racers[8];
        for (size_t i = 0; i < ELEMENTS(racers); i++) {
                racers[i] = (struct racer){.harness = &h};
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

/* Deadlines and the end */

struct submitter {
        struct harness *harness;
        pthread_t thread;
        const char *key;
        struct refusal r;
        int error;
        int64_t id;
        uint64_t took_ns;
};

static void *call_submit(void *p) {
        struct submitter *c = p;
        bool created;
        uint64_t start = util_now_ns();
        c->error = SUBMIT(c->harness, "{}", c->key, &c->id, &created, &c->r);
        c->took_ns = util_now_ns() - start;
        return NULL;
}

/* A main thread that takes no calls. */
struct hold {
        struct job job;
        sem_t held, release, *sems[2];
};

static void hold_main(struct harness *h, struct hold *hold) {
        *hold = (struct hold){.job = {.run = job_hold, .argument = hold->sems}, .sems = {&hold->held, &hold->release}};
        sem_init(&hold->held, 0, 0);
        sem_init(&hold->release, 0, 0);
        job_send(h, &hold->job);
        sem_wait(&hold->held);
}

static void release_main(struct hold *hold) {
        sem_post(&hold->release);
        (void) job_wait(&hold->job);
        sem_destroy(&hold->held);
        sem_destroy(&hold->release);
}

/* How many calls stand in the queue. */
static size_t queued_calls(struct service *s) {
        size_t n = 0;
        pthread_mutex_lock(&s->lock);
        for (struct call *c = s->first_call; c; c = c->next)
                n++;
        pthread_mutex_unlock(&s->lock);
        return n;
}

static void test_main_thread_does_not_come(void) {
        HARNESS h;
        harness_start(&h);
        struct hold hold;
        hold_main(&h, &hold);
        h.service->deadline_ns = 100 * NSEC_PER_MSEC;
        struct submitter c = {.harness = &h};
        call_submit(&c);
        struct service_health health;
        struct refusal r;
        int health_error = service_health(h.service, &health, &r);
        release_main(&hold);
        CHECK_INT(c.error, -ETIMEDOUT);
        CHECK_INT(c.r.status, 503);
        CHECK(strstr(c.r.detail, "nothing was changed") != NULL);
        CHECK(c.took_ns >= 100 * NSEC_PER_MSEC);
        CHECK_INT(health_error, 0);
        CHECK(!health.ok && strstr(health.problem, "did not answer") != NULL);
        h.service->deadline_ns = HARNESS_DEADLINE_NS;
        CHECK_INT(SUBMIT(&h, "{}", NULL, &c.id, &(bool){false}, &c.r), 0);
        CHECK_INT(c.id, 1); /* and it was not */
        CHECK_UINT(h.submitted, 1);
}

static void test_main_thread_takes_too_long(void) {
        HARNESS h;
        harness_start(&h);
        sem_t in_hook, release;
        sem_init(&in_hook, 0, 0);
        sem_init(&release, 0, 0);
        h.in_hook = &in_hook;
        h.hold_submitted = &release;
        h.service->deadline_ns = 100 * NSEC_PER_MSEC;
        struct submitter c = {.harness = &h, .key = "key"};
        do /* a main thread that had no turn did not take the call, and nothing was changed */
                call_submit(&c);
        while (c.error == -ETIMEDOUT && strstr(c.r.detail, "nothing was changed"));
        CHECK_INT(c.error, -ETIMEDOUT);
        sem_wait(&in_hook);
        sem_post(&release);
        CHECK_INT(c.error, -ETIMEDOUT);
        CHECK_INT(c.r.status, 503);
        CHECK(strstr(c.r.detail, "may still be carried out") != NULL);
        h.service->deadline_ns = HARNESS_DEADLINE_NS;
        CHECK_INT(on_main(&h, job_nothing, NULL), 0); /* the main thread is out of the hook */
        bool created = true;
        CHECK_INT(SUBMIT(&h, "{}", "key", &c.id, &created, &c.r), 0); /* what the key is for */
        CHECK(!created);
        CHECK_INT(c.id, 1);
        sem_destroy(&in_hook);
        sem_destroy(&release);
}

static atomic_uint portions;

/* The first is in time and gives the others as long as they like; the second takes longer than the first had. */
static int run_portion(struct service *s, void *payload, struct refusal *r) {
        (void) payload, (void) r;
        unsigned n = ++portions;
        if (n == 1)
                s->deadline_ns = HARNESS_DEADLINE_NS;
        else
                nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        return n < 3;
}

/* On a slow disk many portions take long, each of them none too long. */
static void test_each_portion_has_its_time(void) {
        static const struct call_type type = {OPERATION_OTHER, run_portion, free};
        HARNESS h;
        harness_start(&h);
        void *payload = NULL;
        struct refusal r = {0};
        int error;
        do { /* a main thread that had no turn did not take the call */
                portions = 0;
                h.service->deadline_ns = NSEC_PER_SEC / 2;
                error = service_call(h.service, &type, &payload, &r);
        } while (error == -ETIMEDOUT && strstr(r.detail, "nothing was changed"));
        CHECK_INT(error, 0);
        CHECK_UINT(portions, 3);
}

static atomic_uint trims;

/* In place of the C library's, which takes long where there are many arenas. */
int malloc_trim(size_t pad) {
        (void) pad;
        trims++;
        return 0;
}

static int job_free_submission(void *harness, void *sub) {
        (void) harness;
        submission_free(sub);
        return 0;
}

/* The findings of many runs, which take long. */
static void test_findings_leave_submissions_their_turn(void) {
        HARNESS h;
        struct refusal r = {0};
        struct findings_record *record = NULL;
        int64_t id;
        bool created;
        harness_start(&h);
        CHECK_INT(SUBMIT(&h, "{\"message_size\":[1,2],\"repetitions\":600}", NULL, &id, &created, &r), 0);
        CHECK_INT(service_large_begin(h.service, &r), 0);
        h.service->deadline_ns = NSEC_PER_SEC;
        CHECK_INT(service_findings(h.service, id, &record, &r), 0);
        service_findings_release(h.service, record);
        h.service->deadline_ns = HARNESS_DEADLINE_NS;
        service_large_end(h.service);
}

/* A submission whose caller has given up waiting is freed by the main thread, where a run may be under way. */
static void test_main_thread_ends_a_large_turn_without_a_trim(void) {
        HARNESS h;
        struct refusal r;
        harness_start(&h);
        struct submission *sub = calloc(1, sizeof(*sub));
        CHECK(sub);
        CHECK_INT(service_large_begin(h.service, &r), 0);
        sub->large = h.service;
        trims = 0;
        CHECK_INT(on_main(&h, job_free_submission, sub), 0);
        CHECK_UINT(trims, 0);
        h.service->deadline_ns = 100 * NSEC_PER_MSEC;
        CHECK_INT(service_large_begin(h.service, &r), 0); /* the turn is over */
        service_large_end(h.service);
        CHECK_UINT(trims, 1);
}

static int job_stop(void *harness, void *argument) {
        (void) argument;
        service_stop(((struct harness *) harness)->service);
        return 0;
}

static void test_stop_answers_waiting_calls(void) {
        HARNESS h;
        harness_start(&h);
        struct hold hold;
        struct job stop = {.run = job_stop};
        hold_main(&h, &hold);
        struct submitter submitters[4];
        for (size_t i = 0; i < ELEMENTS(submitters); i++) {
                submitters[i] = (struct submitter){.harness = &h};
                CHECK_INT(pthread_create(&submitters[i].thread, NULL, call_submit, &submitters[i]), 0);
        }
        job_send(&h, &stop);
        while (queued_calls(h.service) < ELEMENTS(submitters))
                usleep(1000);
        release_main(&hold);
        for (size_t i = 0; i < ELEMENTS(submitters); i++)
                pthread_join(submitters[i].thread, NULL);
        (void) job_wait(&stop);
        unsigned stopped = 0, done = 0;
        for (size_t i = 0; i < ELEMENTS(submitters); i++) {
                stopped += submitters[i].error == -ESHUTDOWN && submitters[i].r.status == 503;
                done += submitters[i].error == 0; /* the loop may have taken the calls before the stop */
        }
        CHECK_UINT(stopped + done, ELEMENTS(submitters));
        struct submitter late = {.harness = &h};
        call_submit(&late);
        CHECK_INT(late.error, -ESHUTDOWN);
        struct experiment_record e;
        CHECK_INT(service_experiment(h.service, 1, &e, &late.r), -ESHUTDOWN);
        CHECK_INT(late.r.status, 503);
}

/* Without a race: the calls wait, none is taken, the stop comes. */
static void test_stop_before_the_loop(void) {
        HARNESS h;
        harness_start(&h);
        struct hold hold;
        hold_main(&h, &hold);
        struct submitter c = {.harness = &h};
        CHECK_INT(pthread_create(&c.thread, NULL, call_submit, &c), 0);
        while (queued_calls(h.service) == 0)
                usleep(1000);
        service_stop(h.service);
        pthread_join(c.thread, NULL);
        release_main(&hold);
        CHECK_INT(c.error, -ESHUTDOWN);
        CHECK_INT(c.r.status, 503);
        CHECK_UINT(h.submitted, 0);
}

/* Those who read for long leave a connection to who is answered at once: their health, say. */
static void test_a_reader_is_kept_for_who_is_quick(void) {
        HARNESS h;
        struct reader *held[SERVICE_READERS], *none;
        struct refusal r = {0};
        struct service_health health;
        harness_start(&h);
        h.service->deadline_ns = NSEC_PER_MSEC;
        for (unsigned i = 0; i + 1 < SERVICE_READERS; i++)
                CHECK_INT(service_reader_get(h.service, &held[i], &r), 0);
        CHECK_INT(service_reader_get(h.service, &none, &r), -ETIMEDOUT);
        CHECK_INT(r.status, 503);
        service_set_quick(true);
        CHECK_INT(service_reader_get(h.service, &held[SERVICE_READERS - 1], &r), 0);
        CHECK_INT(service_reader_get(h.service, &none, &r), -ETIMEDOUT);
        service_reader_put(h.service, held[0]);
        service_set_quick(false);
        CHECK_INT(service_reader_get(h.service, &none, &r), -ETIMEDOUT); /* the one that is free is the last one */
        for (unsigned i = 1; i < SERVICE_READERS; i++)
                service_reader_put(h.service, held[i]);
        h.service->deadline_ns = HARNESS_DEADLINE_NS;
        CHECK_INT(service_health(h.service, &health, &r), 0);
}

/* Many threads: for ThreadSanitizer, and for the pool of readers, which is smaller than their number */

struct worker {
        struct harness *harness;
        pthread_t thread;
        unsigned number;
        const char *fault;
};

static int start_workers(struct worker *workers, unsigned n, struct harness *h, void *(*run)(void *worker)) {
        for (unsigned i = 0; i < n; i++) {
                workers[i] = (struct worker){.harness = h, .number = i};
                int error = pthread_create(&workers[i].thread, NULL, run, &workers[i]);
                if (error)
                        return error;
        }
        return 0;
}

/* A fault of one of them, or NULL. */
static const char *join_workers(const struct worker *workers, unsigned n) {
        const char *failed = NULL;
        for (unsigned i = 0; i < n; i++)
                pthread_join(workers[i].thread, NULL);
        for (unsigned i = 0; i < n; i++)
                failed = workers[i].fault ? workers[i].fault : failed;
        return failed;
}

static int check_spec(void *userdata, const struct experiment_record *e) {
        (void) userdata;
        return e->spec_json ? 0 : -EILSEQ;
}

static void *work(void *p) {
        struct worker *w = p;
        struct service *s = w->harness->service;
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
                if (SUBMIT(w->harness, "{\"message_size\": [1, 2]}", NULL, &id, &created, &r) < 0)
                        w->fault = "submit";
                else if (service_experiment(s, id, &e, &r) < 0)
                        w->fault = "what was acknowledged is not there";
                else
                        experiment_record_deinit(&e);
                if (service_experiments(s, &q, check_spec, NULL, &r) < 0)
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
        HARNESS h;
        harness_start(&h);
        struct worker workers[8];
        CHECK_INT(start_workers(workers, ELEMENTS(workers), &h, work), 0);
        for (int i = 0; i < 50; i++) { /* meanwhile the queue is worked off */
                int error = run_next(&h, STATE_DONE, "{}", "[]", NULL);
                if (error < 0 && error != -ENOENT)
                        CHECK_FAIL("run %d: %s", i, strerror(-error));
        }
        const char *failed = join_workers(workers, ELEMENTS(workers));
        CHECK_STRING(failed ? failed : "", "");
}

/* The machine changes while threads read it. */

#define READS 20

static struct {
        char tree[64];
        struct topology *topology;
        unsigned reads;
} machine;

/* Main thread, for each request: CPU 1 comes, and goes, and comes. */
static int change_machine(void *userdata) {
        (void) userdata;
        const char *list = machine.reads++ % 2 ? "0-1\n" : "0\n";
        int r = host_tree_write(machine.tree, "/sys/devices/system/cpu/online", list);
        if (r == 0)
                r = host_tree_write(machine.tree, "/sys/devices/system/node/node0/cpulist", list);
        if (r == 0)
                r = topology_has_changed(machine.tree, machine.topology);
        if (r > 0)
                r = topology_reread(machine.tree, machine.topology);
        machine.reads -= r == -EBUSY; /* called again, for the same request */
        return r;
}

static void *read_machine(void *p) {
        struct worker *w = p;
        struct service *s = w->harness->service;
        for (unsigned i = 0; i < READS && !w->fault; i++) {
                struct refusal r;
                int64_t id;
                bool created;
                char *text = NULL;
                if (service_topology_json(s, &text, &r) < 0)
                        w->fault = "topology";
                else if (!strstr(text, "\"id\":1,\"online\":"))
                        w->fault = "a machine that there never was";
                free(text);
                text = NULL;
                if (service_environment_json(s, &text, &r) < 0)
                        w->fault = "environment";
                free(text);
                if (SUBMIT(w->harness, "{\"placement\": [\"default\", \"all-cpu-pairs\"]}", NULL, &id, &created, &r) <
                    0)
                        w->fault = "submit";
        }
        return NULL;
}

static void test_machine_changes_while_it_is_read(void) {
        HARNESS h;
        harness_start(&h);
        CHECK_INT(host_tree_unpack("busy-lab", machine.tree), 0);
        CHECK_INT(topology_read(machine.tree, &machine.topology), 0);
        free(h.service->root);
        h.service->root = strdup(machine.tree);
        h.service->hooks.topology = machine.topology;
        h.service->hooks.look_at_machine = change_machine;
        struct worker workers[4];
        CHECK_INT(start_workers(workers, ELEMENTS(workers), &h, read_machine), 0);
        const char *failed = join_workers(workers, ELEMENTS(workers));
        host_tree_remove(machine.tree);
        CHECK_STRING(failed ? failed : "", "");
        CHECK_UINT(machine.reads, 3 * READS * ELEMENTS(workers));
        h.service->hooks.topology = &h.topology;
        topology_free(machine.topology);
}

int main(void) {
        log_open(LOG_EMERG);
        fault_install();
        RUN(test_same_key_at_once);
        RUN(test_main_thread_does_not_come);
        RUN(test_main_thread_takes_too_long);
        RUN(test_each_portion_has_its_time);
        RUN(test_findings_leave_submissions_their_turn);
        RUN(test_main_thread_ends_a_large_turn_without_a_trim);
        RUN(test_stop_answers_waiting_calls);
        RUN(test_stop_before_the_loop);
        RUN(test_a_reader_is_kept_for_who_is_quick);
        RUN(test_many_threads);
        RUN(test_machine_changes_while_it_is_read);
        return check_end();
}
