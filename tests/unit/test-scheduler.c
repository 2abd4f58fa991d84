/* SPDX-License-Identifier: MIT */

/* The queue's motor with a real store and agents that misbehave on request: what is written down, in which order, and
 * what happens when nothing can be written. */

#include "daemon/result/until.h"
#include "daemon/run/scheduler.h"

#include "check.h"
#include "daemon/log.h"
#include "daemon/run/aside.h"
#include "daemon/run/sandbox/rundir.h"
#include "daemon/service/host.h"
#include "daemon/service/service.h"
#include "daemon/store/internal.h"
#include "host-tree.h"
#include "schema/util.h"
#include "tests/unit/listed-runs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DEADLINE_NS (60 * NSEC_PER_SEC)

static char base[] = "/tmp/ipclab-test-scheduler-XXXXXX";
static char fakes[300];
static struct runner_host host = {.program_fd = -1};
static struct topology *topology;
static struct store *store;
static struct scheduler *scheduler;
static bool stopped;
static unsigned iterations;
static const char *root = "";

static void on_stopped(void *userdata) {
        (void) userdata;
        stopped = true;
}

static int open_queue(void) {
        struct scheduler_options o = {.event = host.event,
                                      .store = store,
                                      .host = &host,
                                      .root = root,
                                      .run_timeout_ns = 60 * NSEC_PER_SEC,
                                      .stopped = on_stopped};
        stopped = false;
        return scheduler_new(&scheduler, &o);
}

static void end(void) {
        scheduler_free(scheduler);
        store_close(store);
        host.program_fd = util_close(host.program_fd);
        scheduler = NULL;
        store = NULL;
}

/* A daemon's life begins: store, scheduler, and an agent with this wish (test-runner.c). */
static int begin(const char *wish) {
        char to[400], from[400];
        end(); /* what a case that failed left open */
        (void) snprintf(from, sizeof(from), "%s/tests/unit/fake-agent", getenv("IPCLAB_BUILD_ROOT"));
        (void) snprintf(to, sizeof(to), "%s/%s", fakes, wish);
        if (link(from, to) < 0 && errno != EEXIST)
                return -errno;
        host.program_fd = open(to, O_PATH | O_CLOEXEC);
        if (host.program_fd < 0)
                return -errno;
        int r = store_open(&store, base);
        return r < 0 ? r : open_queue();
}

static int submit(const char *text, int64_t *ret) {
        struct spec *spec = NULL;
        struct refusal r = {0};
        struct point_list points = {0};
        static uint32_t order[SPEC_RUNS_MAX];
        int e = spec_parse(text, strlen(text), &spec, &r);
        if (e == 0)
                e = spec_points(spec, &points, &r);
        if (e == 0) {
                uint32_t repetitions = spec->repetitions;
                _cleanup_free_ char *until = NULL;
                if (spec->until.relative_ci > 0)
                        e = until_begin(spec, 1, &repetitions, &until);
                spec_shuffle(1, points.n_points, repetitions, order);
                struct new_experiment n = {.spec_json = text,
                                           .spec = spec,
                                           .points = &points,
                                           .skipped_json = "[]",
                                           .seed = 1,
                                           .repetitions = repetitions,
                                           .until_json = until,
                                           .order = order,
                                           .estimate_ns = NSEC_PER_SEC};
                if (e == 0)
                        e = store_add_experiment(store, &n, ret);
        }
        point_list_deinit(&points);
        spec_free(spec);
        if (e == 0)
                scheduler_kick(scheduler);
        return e;
}

static enum state state_of(int64_t id, char *ret_error, size_t size) {
        struct experiment_record e = {0};
        if (store_experiment(store, id, util_now_ms(), &e) < 0)
                return STATE_COUNT;
        enum state s = e.state;
        if (ret_error)
                (void) snprintf(ret_error, size, "%s", e.error ? e.error : "");
        experiment_record_deinit(&e);
        return s;
}

/* Runs the loop until the experiment is in this state; false when it never is. */
static bool wait_state(int64_t id, enum state want) {
        uint64_t until = util_now_ns() + DEADLINE_NS;
        iterations = 0;
        while (util_now_ns() < until) {
                if (state_of(id, NULL, 0) == want)
                        return true;
                if (sd_event_run(host.event, 20000) > 0)
                        iterations++;
        }
        return false;
}

static void loop_for(double seconds) {
        uint64_t until = util_now_ns() + (uint64_t) (seconds * 1e9);
        iterations = 0;
        while (util_now_ns() < until)
                if (sd_event_run(host.event, 20000) > 0)
                        iterations++;
}

#define SPEC "{\"workload\":\"pingpong\",\"message_size\":64,\"duration_seconds\":0.2,\"warmup_seconds\":0.05"

static void queue_is_worked_off(void) {
        int64_t first, second;
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit(SPEC ",\"repetitions\":2}", &first), 0);
        CHECK_INT(submit(SPEC "}", &second), 0);
        CHECK(wait_state(first, STATE_DONE));
        CHECK(wait_state(second, STATE_DONE));
        struct run_record *runs = NULL;
        struct sample_record *samples;
        size_t n_runs = 0, n_samples;
        CHECK_INT(listed_runs(store, first, 0, 10, &runs, &n_runs), 0);
        CHECK_UINT(n_runs, 2);
        for (size_t i = 0; i < n_runs; i++) {
                CHECK_INT(runs[i].state, STATE_DONE);
                CHECK(runs[i].error == NULL);
                CHECK(strstr(runs[i].result_json, "\"messages\":1000") != NULL);
                CHECK(strstr(runs[i].agents_json, "\"role\":\"initiator\"") != NULL);
                CHECK(strstr(runs[i].environment_json, "\"daemon\":{\"cpu_ns\":") != NULL);
        }
        for (size_t i = 0; i < n_runs; i++) { /* a run at a time: a page ends with so many bytes of histograms */
                CHECK_INT(store_samples(store, first, runs[i].id, 0, 100, &samples, &n_samples), 0);
                CHECK_UINT(n_samples, 2);
                CHECK(samples[0].latency || samples[1].latency);
                store_samples_free(samples, n_samples);
        }
        listed_runs_free(runs, n_runs);
        loop_for(0.5);
        CHECK(iterations < 10); /* nothing to do: nothing done */
        end();
}

static unsigned begun_aside; /* pieces of work */

/* NOLINTBEGIN(bugprone-reserved-identifier) */
int __real_aside_start(struct aside *a, void (*work)(void *userdata), void (*done)(void *userdata), void *userdata);
int __wrap_aside_start(struct aside *a, void (*work)(void *userdata), void (*done)(void *userdata), void *userdata);
/* NOLINTEND(bugprone-reserved-identifier) */
int __wrap_aside_start(struct aside *a, void (*work)(void *userdata), void (*done)(void *userdata), void *userdata) {
        int r = __real_aside_start(a, work, done, userdata);
        begun_aside += r == 0;
        return r;
}

/* Until an experiment has made its runs, and it is to be decided whether they are enough. */
static void begin_undecided(int64_t *ret_id, struct experiment_record *ret) {
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit(SPEC ",\"until\":{\"max_repetitions\":6}}", ret_id), 0);
        uint64_t until = util_now_ns() + DEADLINE_NS;
        while (store_undecided(store, ret) == -ENOENT && util_now_ns() < until)
                (void) sd_event_run(host.event, 20000);
        CHECK_INT(ret->id, *ret_id);
}

/* Whether its runs are enough is decided aside; meanwhile a client adds another block. */
static void a_decision_about_what_was_changed_is_taken_again(void) {
        static const uint32_t order[] = {0};
        struct experiment_record e = {0};
        int64_t id;
        begin_undecided(&id, &e);
        uint64_t until = util_now_ns() + DEADLINE_NS;
        unsigned before = begun_aside;
        while (begun_aside == before && util_now_ns() < until)
                (void) sd_event_run(host.event, 20000);
        CHECK(begun_aside > before); /* the decision is under way */
        struct extension x = {.order = order,
                              .n_points = 1,
                              .first_repetition = 7,
                              .repetitions = 1,
                              .in_blocks = true,
                              .until_json = e.until_json};
        CHECK_INT(store_extend_some(store, id, &x, &(struct request_record){0}), 0);
        experiment_record_deinit(&e);
        CHECK(wait_state(id, STATE_DONE));
        CHECK_INT(store_experiment(store, id, util_now_ms(), &e), 0);
        CHECK_UINT(e.runs_done, 7);
        CHECK(strstr(e.until_json, "\"state\":\"reached\"") != NULL);
        CHECK(strstr(e.until_json, "\"looks\":[{\"repetitions\":7,") != NULL); /* none that saw six alone */
        experiment_record_deinit(&e);
        end();
}

static void failed_run_does_not_hold_the_next(void) {
        int64_t id, next;
        char error[256];
        CHECK_INT(begin("initiator.killed"), 0);
        CHECK_INT(submit(SPEC ",\"repetitions\":2}", &id), 0);
        CHECK_INT(submit(SPEC "}", &next), 0);
        CHECK(wait_state(id, STATE_FAILED));
        CHECK_INT(state_of(id, error, sizeof(error)), STATE_FAILED);
        CHECK(strstr(error, "was killed by signal 9 (SIGKILL)") != NULL);
        CHECK(wait_state(next, STATE_FAILED));
        end();
}

static void precondition_that_does_not_hold_fails_the_run(void) {
        int64_t id;
        char error[256];
        if (topology->numa_balancing >= 1)
                SKIP("this kernel has NUMA balancing on");
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit(SPEC ",\"require\":{\"numa_balancing\":true}}", &id), 0);
        CHECK(wait_state(id, STATE_FAILED));
        (void) state_of(id, error, sizeof(error));
        CHECK(strstr(error, "numa_balancing") != NULL);
        end();
}

static void impossible_placement_fails_the_run(void) {
        int64_t id;
        char error[256];
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit(SPEC ",\"placement\":{\"initiator\":{\"cpu\":8000},\"responder\":{\"cpu\":0}}}", &id), 0);
        CHECK(wait_state(id, STATE_FAILED));
        (void) state_of(id, error, sizeof(error));
        CHECK(strstr(error, "8000") != NULL);
        end();
}

/* There was enough memory when it was submitted, in the captured tree; now the daemon would be killed for it. */
static void memory_is_read_before_a_run(void) {
        int64_t id;
        char error[512];
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit("{\"workload\": \"stream\", \"message_size\": 1073741824, \"threads\": 1024}", &id), 0);
        CHECK(wait_state(id, STATE_FAILED));
        (void) state_of(id, error, sizeof(error));
        CHECK(strstr(error, "do not fit into memory") != NULL);
        end();
}

/* What else comes in by the loop: a request to cancel, which takes a few turns to be read. */
struct canceller {
        int64_t id;
        unsigned turns;
};

static int on_cancel(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct canceller *c = userdata;
        int64_t running = 0;
        (void) fd;
        (void) events;
        if (++c->turns < 5)
                return 0;
        int r = store_cancel_experiment(store, c->id, &running); /* a portion */
        if (r <= 0)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return r < 0 ? r : 0;
}

static void runs_that_fail_at_once_leave_others_their_turn(void) {
        struct canceller canceller = {0};
        sd_event_source *source = NULL;
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit(SPEC ",\"repetitions\":1000,\"placement\":"
                              "{\"initiator\":{\"cpu\":8000},\"responder\":{\"cpu\":0}}}",
                         &canceller.id),
                  0);
        CHECK(wait_state(canceller.id, STATE_RUNNING));
        int fd = eventfd(1, EFD_CLOEXEC);
        CHECK(sd_event_add_io(host.event, &source, fd, EPOLLIN, on_cancel, &canceller) >= 0);
        bool cancelled = wait_state(canceller.id, STATE_CANCELLED);
        (void) sd_event_source_disable_unref(source);
        (void) util_close(fd);
        CHECK(cancelled);
        struct run_record *runs = NULL;
        size_t n = 0, failed = 0;
        CHECK_INT(listed_runs(store, canceller.id, 0, 1000, &runs, &n), 0);
        for (size_t i = 0; i < n; i++)
                failed += runs[i].state == STATE_FAILED;
        CHECK(failed > 0 && failed < 100);
        listed_runs_free(runs, n);
        end();
}

/* There is no run of it in the queue until another portion is added, and no service that would do it. */
static void an_extension_of_points_alone_goes_on(void) {
        static uint32_t order[STORE_STEP_ROWS];
        static struct searched_rate rates[STORE_STEP_ROWS];
        int64_t id;
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit(SPEC ",\"placement\":{\"initiator\":{\"cpu\":8000},\"responder\":{\"cpu\":0}}}", &id), 0);
        CHECK(wait_state(id, STATE_FAILED));
        for (uint32_t i = 0; i < STORE_STEP_ROWS; i++) {
                order[i] = i;
                rates[i] = (struct searched_rate){.rate = 1000 + i};
        }
        const struct extension x = {
                .order = order, .n_points = STORE_STEP_ROWS, .first_repetition = 1, .repetitions = 1, .rates = rates};
        CHECK_INT(store_extend_some(store, id, &x, &(struct request_record){0}), 1);
        scheduler_kick(scheduler);
        CHECK(wait_state(id, STATE_FAILED)); /* all of them, at once */
        end();
}

static void cancelling_stops_the_running_run(void) {
        int64_t id, running = 0;
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit("{\"duration_seconds\":50,\"repetitions\":3}", &id), 0);
        CHECK(wait_state(id, STATE_RUNNING));
        loop_for(0.2);
        CHECK_INT(store_cancel_experiment(store, id, &running), 0);
        CHECK(running > 0);
        scheduler_cancel_run(scheduler, running + 1); /* another's: nothing */
        scheduler_cancel_run(scheduler, running);
        CHECK(wait_state(id, STATE_CANCELLED));
        end();
}

static void stopping_interrupts_and_the_next_start_takes_up(void) {
        int64_t id;
        struct run_record run = {0};
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit("{\"duration_seconds\":1,\"warmup_seconds\":0.05}", &id), 0);
        CHECK(wait_state(id, STATE_RUNNING));
        loop_for(0.2);
        scheduler_stop(scheduler);
        uint64_t began = util_now_ns();
        while (!stopped && util_now_ns() - began < DEADLINE_NS)
                (void) sd_event_run(host.event, 20000);
        CHECK(stopped);
        end();
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK(wait_state(id, STATE_DONE));
        struct run_record *runs = NULL;
        size_t n = 0;
        CHECK_INT(listed_runs(store, id, 0, 1, &runs, &n), 0);
        CHECK_UINT(n, 1);
        CHECK_UINT(runs[0].attempt, 1); /* an attempt that was stopped does not count */
        listed_runs_free(runs, n);
        run_record_deinit(&run);
        scheduler_stop(scheduler);
        CHECK(stopped); /* idle: at once */
        end();
}

static int limit_files(rlim_t bytes) {
        struct rlimit limit;
        if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
                return -errno;
        limit.rlim_cur = bytes;
        return setrlimit(RLIMIT_FSIZE, &limit) < 0 ? -errno : 0;
}

/* A daemon that cannot write down what an earlier one left behind starts nevertheless: there is much to be read. */
static void what_cannot_be_queued_again_refuses_no_start(void) {
        int64_t id;
        struct run_record run = {0};
        struct experiment_record e = {0};
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit(SPEC "}", &id), 0);
        scheduler_free(scheduler); /* before it has begun */
        scheduler = NULL;
        CHECK_INT(store_next_run(store, &run, &e), 0);
        CHECK_INT(store_start_run(store, run.id), 0);
        run_record_deinit(&run);
        experiment_record_deinit(&e);
        CHECK_INT(db_run_script(store->db, "CREATE TEMP TRIGGER no_room BEFORE UPDATE OF state ON runs "
                                           "BEGIN SELECT RAISE(ABORT, 'there is no room'); END"),
                  0);
        CHECK_INT(open_queue(), 0);
        loop_for(0.2);
        CHECK_INT(state_of(id, NULL, 0), STATE_RUNNING);
        CHECK_INT(db_run_script(store->db, "DROP TRIGGER no_room"), 0);
        CHECK(wait_state(id, STATE_DONE));
        end();
}

/* What an earlier daemon's attempt has left is removed before the next one, and the loop goes round meanwhile. */
static void samples_of_an_earlier_attempt_do_not_hold_the_loop(void) {
        enum { ALL = 3 * STORE_STEP_ROWS };
        static char agent[] = "receiver";
        static struct sample_record samples[ALL];
        int64_t id, last, left, now, portions = 0;
        struct run_record run = {0};
        struct experiment_record e = {0};
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit(SPEC "}", &id), 0);
        scheduler_free(scheduler); /* before it has begun */
        scheduler = NULL;
        CHECK_INT(store_next_run(store, &run, &e), 0);
        CHECK_INT(store_start_run(store, run.id), 0);
        for (uint32_t i = 0; i < ALL; i++)
                samples[i] = (struct sample_record){
                        .experiment_id = id, .run_id = run.id, .agent = agent, .second = i, .interval_ns = 1};
        run_record_deinit(&run);
        experiment_record_deinit(&e);
        CHECK_INT(store_add_samples(store, samples, ALL), 0);
        CHECK_INT(store_last_change(store, &last), 0);
        CHECK_INT(open_queue(), 0);
        uint64_t until = util_now_ns() + DEADLINE_NS;
        for (left = ALL; left > 0 && util_now_ns() < until; left = now) {
                CHECK(sd_event_run(host.event, 20000) >= 0);
                CHECK_INT(db_get(store->db, &now, "SELECT count(*) FROM samples WHERE change <= ?", DB_INT(last)), 0);
                CHECK(left - now <= (int64_t) STORE_STEP_ROWS);
                portions += now < left;
        }
        CHECK_INT(portions, 3);
        CHECK(wait_state(id, STATE_DONE));
        end();
}

/* A CPU that was not there, or not allowed, when the daemon last looked. */
static void machine_is_read_before_a_run(void) {
        int64_t id;
        struct topology_cpu *cpu = topology->cpus;
        const struct topology *same = topology;
        CHECK_INT(begin("nobody.nothing"), 0);
        while (!cpu->online || !cpu->allowed)
                cpu++;
        int number = cpu->id;
        cpu->allowed = false;
        CHECK_INT(submit(SPEC "}", &id), 0);
        CHECK(wait_state(id, STATE_DONE));
        CHECK(topology == same && topology_find_cpu(topology, number)->allowed);
        end();
}

/* A submission is checked against it: the main loop serves others meanwhile. */
static void a_run_begins_when_the_topology_can_be_read_again(void) {
        int64_t id;
        struct topology_cpu *cpu = topology->cpus;
        CHECK_INT(begin("nobody.nothing"), 0);
        while (!cpu->online || !cpu->allowed)
                cpu++;
        int number = cpu->id;
        cpu->allowed = false;
        topology_hold();
        CHECK_INT(submit(SPEC "}", &id), 0);
        loop_for(0.3);
        enum state meanwhile = state_of(id, NULL, 0);
        topology_release();
        CHECK_INT(meanwhile, STATE_QUEUED);
        CHECK(wait_state(id, STATE_DONE));
        CHECK(topology_find_cpu(topology, number)->allowed);
        end();
}

/* A machine whose CPU 1 comes and goes, as scheduler and service have it. */
static struct {
        char tree[64];
        struct service *service;
} lab;

static int give_cpu_1(bool there) {
        const char *list = there ? "0-1\n" : "0\n";
        int r = host_tree_write(lab.tree, "/sys/devices/system/cpu/online", list);
        return r < 0 ? r : host_tree_write(lab.tree, "/sys/devices/system/node/node0/cpulist", list);
}

static int on_look(void *userdata) {
        (void) userdata;
        return scheduler_look_at_machine(scheduler);
}

static int lab_begin(void) {
        int r = host_tree_unpack("busy-lab", lab.tree);
        root = lab.tree;
        if (r == 0)
                r = give_cpu_1(false);
        if (r == 0)
                r = topology_read(root, &host.topology);
        if (r == 0)
                r = begin("nobody.nothing");
        const struct service_hooks hooks = {
                .look_at_machine = on_look, .topology = host.topology, .root = root, .runtime_dir = base};
        if (r == 0)
                r = service_new(&lab.service, host.event, store, &hooks);
        if (r == 0)
                scheduler_set_service(scheduler, lab.service);
        return r;
}

static void lab_end(void) {
        scheduler_set_service(scheduler, NULL);
        service_free(lab.service);
        end();
        topology_free(host.topology);
        host.topology = topology;
        host_tree_remove(lab.tree);
        root = "";
}

/* Whether CPU 1 is admitted, and *r with the reason if not. An experiment that is admitted is cancelled: nothing is
 * left to the next case. */
static bool takes_cpu_1(struct refusal *r) {
        static const char spec[] = SPEC ",\"placement\":{\"initiator\":{\"cpu\":1},\"responder\":{\"cpu\":0}}}";
        int64_t id;
        bool created;
        *r = (struct refusal){0};
        return service_submit(lab.service, spec, strlen(spec), NULL, &id, &created, r) == 0 &&
               service_cancel(lab.service, id, r) == 0;
}

/* Whether GET /topology is answered with this in it. */
static bool shows(const char *text, struct refusal *r) {
        _cleanup_free_ char *json = NULL;
        *r = (struct refusal){0};
        return service_topology_json(lab.service, &json, r) == 0 && strstr(json, text);
}

static void requests_get_the_present_machine(void) {
        struct refusal r;
        CHECK_INT(lab_begin(), 0);
        CHECK(shows("\"id\":1,\"online\":false", &r));
        CHECK(!takes_cpu_1(&r));
        CHECK_INT(r.status, 422);
        CHECK(strstr(r.detail, "offline") != NULL);
        CHECK_INT(give_cpu_1(true), 0);
        CHECK(takes_cpu_1(&r)); /* without a read of the topology in between */
        CHECK_INT(give_cpu_1(false), 0);
        CHECK(shows("\"id\":1,\"online\":false", &r));
        CHECK_INT(give_cpu_1(true), 0);
        CHECK(shows("\"id\":1,\"online\":true", &r));

        CHECK_INT(host_tree_write(lab.tree, "/proc/self/status", NULL), 0);
        CHECK(!takes_cpu_1(&r));
        CHECK_INT(r.status, 500);
        CHECK(strstr(r.detail, "cannot be read again: No such file") != NULL);
        CHECK(!shows("", &r));
        CHECK_INT(r.status, 500);
        lab_end();
}

static void the_machine_of_a_run_stays_as_it_was_when_it_began(void) {
        struct refusal r;
        int64_t id, running = 0;
        CHECK_INT(lab_begin(), 0);
        CHECK_INT(submit("{\"duration_seconds\":50}", &id), 0);
        CHECK(wait_state(id, STATE_RUNNING));
        CHECK_INT(give_cpu_1(true), 0);
        CHECK(shows("\"id\":1,\"online\":false", &r));
        CHECK(!takes_cpu_1(&r));
        CHECK_INT(store_cancel_experiment(store, id, &running), 0);
        scheduler_cancel_run(scheduler, running);
        CHECK(wait_state(id, STATE_CANCELLED));
        CHECK(takes_cpu_1(&r));
        CHECK(shows("\"id\":1,\"online\":true", &r));
        lab_end();
}

/* Until there are agents, or none any more; false when that never comes. */
static bool wait_agents(bool there) {
        uint64_t until = util_now_ns() + DEADLINE_NS;
        while (util_now_ns() < until) {
                siginfo_t info;
                if ((waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0) == there)
                        return true;
                (void) sd_event_run(host.event, 20000);
        }
        return false;
}

/* A disk that takes nothing more while a run is under way: the run fails with a reason, the bookkeeping waits without
 * spinning, and all goes on when there is room again. */
static void full_disk_is_sat_out(void) {
        int64_t id, next;
        char error[256];
        CHECK_INT(begin("nobody.nothing"), 0);
        CHECK_INT(submit("{\"duration_seconds\":2,\"warmup_seconds\":0.05}", &id), 0);
        CHECK_INT(submit(SPEC "}", &next), 0);
        CHECK(wait_agents(true));
        CHECK_INT(limit_files(1), 0);
        CHECK(wait_agents(false));
        loop_for(1.5);
        CHECK_INT(state_of(id, NULL, 0), STATE_RUNNING);
        CHECK_INT(state_of(next, NULL, 0), STATE_QUEUED);
        CHECK(iterations < 30);
        CHECK_INT(limit_files(RLIM_INFINITY), 0);
        CHECK(wait_state(id, STATE_FAILED));
        (void) state_of(id, error, sizeof(error));
        CHECK(strstr(error, "samples cannot be stored") != NULL);
        CHECK(wait_state(next, STATE_DONE));
        end();
}

/* For the run that is under way: what many threads leave in a long one. */
static int leave_samples(int64_t id, size_t n) {
        static char agent[] = "receiver";
        struct sample_record batch[500];
        struct run_record *runs = NULL;
        size_t n_runs = 0;
        int r = listed_runs(store, id, 0, 1, &runs, &n_runs);
        if (r < 0 || n_runs == 0)
                return r < 0 ? r : -ENOENT;
        for (uint32_t i = 0; i < ELEMENTS(batch); i++)
                batch[i] = (struct sample_record){
                        .experiment_id = id, .run_id = runs[0].id, .agent = agent, .second = i, .interval_ns = 1};
        listed_runs_free(runs, n_runs);
        for (size_t done = 0; r == 0 && done < n; done += ELEMENTS(batch))
                r = store_add_samples(store, batch, ELEMENTS(batch));
        return r;
}

static uint64_t all_samples(void) {
        struct store_totals totals = {0};
        return store_totals(store, &totals) == 0 ? totals.samples : UINT64_MAX;
}

static size_t samples_of(int64_t id) {
        struct sample_record *samples;
        size_t n;
        if (store_samples(store, id, 0, 0, 1000, &samples, &n) < 0)
                return SIZE_MAX;
        store_samples_free(samples, n);
        return n;
}

/* One run begins as soon as the last one is written down; no more than 4000 samples are removed in between. */
static void busy_queue_leaves_time_to_forget(void) {
        int64_t first, second, third;
        CHECK_INT(begin("nobody.nothing"), 0);
        uint64_t others = all_samples();
        CHECK_INT(submit(SPEC "}", &first), 0);
        CHECK_INT(submit(SPEC "}", &second), 0);
        CHECK_INT(submit(SPEC "}", &third), 0);
        CHECK(wait_state(first, STATE_RUNNING));
        CHECK_INT(leave_samples(first, 6000), 0);
        CHECK(wait_state(first, STATE_DONE));
        CHECK_INT(store_delete_experiment(store, first), 0);
        uint64_t before = all_samples();
        CHECK(before >= others + 6000);
        CHECK(wait_state(second, STATE_DONE));
        CHECK_UINT(all_samples(), before + samples_of(second) - 4000);
        CHECK(wait_state(third, STATE_DONE));
        CHECK_UINT(all_samples(), others + samples_of(second) + samples_of(third));
        end();
}

static int64_t forgotten(void) {
        int64_t n;
        return db_get_one(store->db, &n, "SELECT count(*) FROM forgotten") < 0 ? -1 : n;
}

/* A database that is away for a moment: the decision is taken again after a pause, and not all the time. */
static void a_decision_that_cannot_be_read_for_waits(void) {
        char name[400], away[400];
        struct experiment_record e = {0};
        int64_t id;
        (void) snprintf(name, sizeof(name), "%s/ipclab.db", base);
        (void) snprintf(away, sizeof(away), "%s/away.db", base);
        begin_undecided(&id, &e);
        experiment_record_deinit(&e);
        CHECK_INT(rename(name, away), 0);
        loop_for(0.5);
        CHECK(iterations < 10);
        CHECK_INT(rename(away, name), 0);
        CHECK(wait_state(id, STATE_DONE));
        end();
}

static void count_wake(void *userdata) {
        ++*(unsigned *) userdata;
}

/* An earlier version of the daemon may find such a spec: the experiment gets no further runs and ends, and its
 * subscribers are woken. */
static void an_experiment_whose_spec_cannot_be_read_ends(void) {
        struct experiment_record e = {0};
        struct service *service = NULL;
        struct subscription *watching = NULL;
        unsigned wakes = 0;
        int64_t id;
        begin_undecided(&id, &e);
        experiment_record_deinit(&e);
        scheduler_free(scheduler);
        scheduler = NULL;
        CHECK_INT(db_run_script(store->db, "UPDATE specs SET merged = replace(merged, 'pingpong', 'pong')"), 0);
        CHECK_INT(begin("nobody.nothing"), 0);
        const struct service_hooks hooks = {.topology = topology, .root = root, .runtime_dir = base};
        CHECK_INT(service_new(&service, host.event, store, &hooks), 0);
        scheduler_set_service(scheduler, service);
        CHECK_INT(service_subscribe(service, id, count_wake, &wakes, &watching), 0);
        CHECK(wait_state(id, STATE_DONE));
        CHECK(wakes > 0);
        service_unsubscribe(watching);
        scheduler_set_service(scheduler, NULL);
        service_free(service);
        end();
}

/* What is to be forgotten may be the room that is missing for what is to be written. */
static void forgetting_goes_on_while_an_outcome_waits(void) {
        int64_t first, second;
        struct service *service = NULL;
        struct refusal r;
        CHECK_INT(begin("nobody.nothing"), 0);
        const struct service_hooks hooks = {.topology = topology, .root = root, .runtime_dir = base};
        CHECK_INT(service_new(&service, host.event, store, &hooks), 0);
        scheduler_set_service(scheduler, service);
        CHECK_INT(submit(SPEC "}", &first), 0);
        CHECK(wait_state(first, STATE_DONE));
        CHECK_INT(submit(SPEC "}", &second), 0);
        CHECK(wait_agents(true));
        CHECK_INT(db_run_script(store->db, "CREATE TEMP TRIGGER no_room BEFORE UPDATE OF state ON runs "
                                           "BEGIN SELECT RAISE(ABORT, 'there is no room'); END"),
                  0);
        CHECK_INT(service_delete(service, first, &r), 0);
        CHECK_INT(forgotten(), 1);
        CHECK(wait_agents(false));
        uint64_t until = util_now_ns() + DEADLINE_NS;
        while (forgotten() > 0 && util_now_ns() < until)
                (void) sd_event_run(host.event, 20000);
        CHECK_INT(forgotten(), 0);
        CHECK_INT(state_of(second, NULL, 0), STATE_RUNNING);
        CHECK_INT(db_run_script(store->db, "DROP TRIGGER no_room"), 0);
        CHECK(wait_state(second, STATE_DONE));
        scheduler_set_service(scheduler, NULL);
        service_free(service);
        end();
}

/* A host whose setting cannot be put back, as an earlier daemon left it: its file is away. */
static int owe(char *tree) {
        char name[] = "numa_balancing", original[] = "0", wanted[] = "1";
        int r = host_tree_unpack("busy-lab", tree);
        root = tree;
        if (r == 0)
                r = begin("nobody.nothing");
        if (r == 0)
                r = host_tree_write(tree, "/proc/sys/kernel/random/boot_id", "5f2e86b0\n");
        if (r == 0)
                r = store_add_tuning(store, &(struct tuning_record){
                                                    .name = name, .run_id = 1, .original = original, .wanted = wanted});
        if (r == 0)
                r = host_tree_write(tree, "/proc/sys/kernel/numa_balancing", NULL);
        end();
        return r < 0 ? r : begin("nobody.nothing");
}

static void forgive(char *tree) {
        end();
        host_tree_remove(tree);
        root = "";
}

static bool is_well(struct service *service) {
        struct service_health h = {0};
        struct refusal r = {0};
        return service_health(service, &h, &r) == 0 && !strstr(h.problem, "kernel.numa_balancing cannot be restored");
}

/* Nobody need submit anything. */
static void a_pending_restore_is_done_when_it_can_be(void) {
        char tree[64];
        struct service *service = NULL;
        struct tuning_record record;
        CHECK_INT(owe(tree), 0);
        const struct service_hooks hooks = {.topology = topology, .root = root, .runtime_dir = base};
        CHECK_INT(service_new(&service, host.event, store, &hooks), 0);
        scheduler_set_service(scheduler, service);
        CHECK(!is_well(service));
        CHECK_INT(host_tree_write(tree, "/proc/sys/kernel/numa_balancing", "1\n"), 0);
        uint64_t until = util_now_ns() + DEADLINE_NS;
        while (!is_well(service) && util_now_ns() < until)
                (void) sd_event_run(host.event, 20000);
        CHECK(is_well(service));
        CHECK_INT(store_next_tuning(store, "", &record), -ENOENT);
        scheduler_set_service(scheduler, NULL);
        service_free(service);
        forgive(tree);
}

static void only_runs_that_depend_on_a_pending_restore_fail(void) {
        int64_t other, depends;
        char tree[64], error[256] = "";
        CHECK_INT(owe(tree), 0);
        CHECK_INT(submit(SPEC ",\"require\":{\"numa_balancing\":true}}", &depends), 0);
        CHECK_INT(submit(SPEC "}", &other), 0);
        CHECK(wait_state(depends, STATE_FAILED));
        (void) state_of(depends, error, sizeof(error));
        CHECK(strstr(error, "kernel.numa_balancing cannot be restored to 0") != NULL);
        CHECK(wait_state(other, STATE_DONE));
        forgive(tree);
}

static int set_up(void) {
        log_open(LOG_ERR - 1); /* the failures are wanted */
        (void) snprintf(fakes, sizeof(fakes), "%s/tests/unit/scheduler.%d", getenv("IPCLAB_BUILD_ROOT"), getpid());
        if (!mkdtemp(base) || mkdir(fakes, 0755) < 0 || sd_event_default(&host.event) < 0 ||
            topology_read("", &topology) < 0 || affinity_get(0, &host.affinity) < 0 ||
            agent_identity_find("nobody", &host.identity) < 0 || rundir_root_new(&host.rundirs, base) < 0)
                return -1;
        host.topology = topology;
        struct sigaction ignore = {.sa_handler = SIG_IGN};
        return sigaction(SIGXFSZ, &ignore, NULL);
}

static void tear_down(void) {
        static const char *const files[] = {"ipclab.db",   "ipclab.db-wal",   "ipclab.db-shm",
                                            "ipclab.lock", "ipclab.identity", "ipclab.reserve"};
        static const char *const wishes[] = {"nobody.nothing", "initiator.killed"};
        char path[500];
        rundir_root_free(host.rundirs);
        topology_free(topology);
        sd_event_unref(host.event);
        for (size_t i = 0; i < ELEMENTS(files); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", base, files[i]);
                (void) unlink(path);
        }
        for (size_t i = 0; i < ELEMENTS(wishes); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", fakes, wishes[i]);
                (void) unlink(path);
        }
        (void) rmdir(fakes);
        (void) snprintf(path, sizeof(path), "%s/runs", base);
        (void) rmdir(path);
}

int main(void) {
        if (!getenv("IPCLAB_BUILD_ROOT") || set_up() < 0) {
                fprintf(stderr, "cannot set up\n");
                return 1;
        }
        RUN(queue_is_worked_off);
        RUN(a_decision_about_what_was_changed_is_taken_again);
        RUN(failed_run_does_not_hold_the_next);
        RUN(precondition_that_does_not_hold_fails_the_run);
        RUN(impossible_placement_fails_the_run);
        RUN(memory_is_read_before_a_run);
        RUN(runs_that_fail_at_once_leave_others_their_turn);
        RUN(an_extension_of_points_alone_goes_on);
        RUN(cancelling_stops_the_running_run);
        RUN(stopping_interrupts_and_the_next_start_takes_up);
        RUN(what_cannot_be_queued_again_refuses_no_start);
        RUN(samples_of_an_earlier_attempt_do_not_hold_the_loop);
        RUN(machine_is_read_before_a_run);
        RUN(a_run_begins_when_the_topology_can_be_read_again);
        RUN(requests_get_the_present_machine);
        RUN(the_machine_of_a_run_stays_as_it_was_when_it_began);
        RUN(full_disk_is_sat_out);
        RUN(busy_queue_leaves_time_to_forget);
        RUN(a_decision_that_cannot_be_read_for_waits);
        RUN(an_experiment_whose_spec_cannot_be_read_ends);
        RUN(forgetting_goes_on_while_an_outcome_waits);
        RUN(a_pending_restore_is_done_when_it_can_be);
        RUN(only_runs_that_depend_on_a_pending_restore_fail);
        tear_down();
        if (rmdir(base) < 0) {
                fprintf(stderr, "%s is not empty\n", base);
                return 1;
        }
        return check_end();
}
