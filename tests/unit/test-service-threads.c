/* SPDX-License-Identifier: MIT */

/*
 * The service between threads: the same key at once, deadlines, the end, and a crowd. Made to be run under
 * ThreadSanitizer as well.
 */

#include "daemon/log.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"
#include "tests/unit/service-house.h"

#include <errno.h>

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
        CHECK(c.took_ns >= 100 * NSEC_PER_MSEC);
        CHECK_INT(asked, 0);
        CHECK(!health.ok && strstr(health.problem, "did not answer") != NULL);
        h.service->deadline_ns = HOUSE_PATIENCE_NS;
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
        do /* a main thread that had no turn did not take the call, and nothing was changed */
                call_submit(&c);
        while (c.error == -ETIMEDOUT && strstr(c.r.detail, "nothing was changed"));
        CHECK_INT(c.error, -ETIMEDOUT);
        sem_wait(&in_hook);
        sem_post(&release);
        CHECK_INT(c.error, -ETIMEDOUT);
        CHECK_INT(c.r.status, 503);
        CHECK(strstr(c.r.detail, "may still be carried out") != NULL);
        h.service->deadline_ns = HOUSE_PATIENCE_NS;
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
        CHECK_UINT(h.submitted, 0);
        sem_destroy(&held);
        sem_destroy(&release);
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

/* The machine changes under those that ask for it. */

#define LOOKS 20

static struct {
        char tree[64];
        struct topology *topology;
        unsigned looks;
} machine;

/* Main thread, for each who asks: CPU 1 comes, and goes, and comes. */
static int look_at_machine(void *userdata) {
        (void) userdata;
        const char *list = machine.looks++ % 2 ? "0-1\n" : "0\n";
        int r = host_tree_write(machine.tree, "/sys/devices/system/cpu/online", list);
        if (r == 0)
                r = host_tree_write(machine.tree, "/sys/devices/system/node/node0/cpulist", list);
        if (r == 0)
                r = topology_has_changed(machine.tree, machine.topology);
        return r > 0 ? topology_reread(machine.tree, machine.topology) : r;
}

static void *ask(void *p) {
        struct worker *w = p;
        struct service *s = w->house->service;
        for (unsigned i = 0; i < LOOKS && !w->fault; i++) {
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
                if (SUBMIT(w->house, "{\"placement\": [\"default\", \"all-cpu-pairs\"]}", NULL, &id, &created, &r) < 0)
                        w->fault = "submit";
        }
        return NULL;
}

static void test_machine_changes_under_those_who_ask(void) {
        HOUSE h;
        house_start(&h);
        CHECK_INT(host_tree_unpack("busy-lab", machine.tree), 0);
        CHECK_INT(topology_read(machine.tree, &machine.topology), 0);
        free(h.service->root);
        h.service->root = strdup(machine.tree);
        h.service->hooks.topology = machine.topology;
        h.service->hooks.look_at_machine = look_at_machine;
        struct worker workers[4];
        for (unsigned i = 0; i < ELEMENTS(workers); i++) {
                workers[i] = (struct worker){.house = &h, .number = i};
                CHECK_INT(pthread_create(&workers[i].thread, NULL, ask, &workers[i]), 0);
        }
        for (unsigned i = 0; i < ELEMENTS(workers); i++)
                pthread_join(workers[i].thread, NULL);
        host_tree_remove(machine.tree);
        for (unsigned i = 0; i < ELEMENTS(workers); i++)
                if (workers[i].fault)
                        CHECK_FAIL("thread %u: %s", i, workers[i].fault);
        CHECK_UINT(machine.looks, 3 * LOOKS * ELEMENTS(workers));
        h.service->hooks.topology = &h.topology;
        topology_free(machine.topology);
}

int main(void) {
        log_open(LOG_EMERG);
        fault_install();
        RUN(test_same_key_at_once);
        RUN(test_main_thread_does_not_come);
        RUN(test_main_thread_takes_too_long);
        RUN(test_stop_answers_who_waits);
        RUN(test_stop_before_the_loop);
        RUN(test_many_threads);
        RUN(test_machine_changes_under_those_who_ask);
        return check_end();
}
