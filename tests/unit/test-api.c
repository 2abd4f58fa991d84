/* SPDX-License-Identifier: MIT */

/*
 * The HTTP interface on real sockets in front of a service that this file makes up: what a real daemon does too seldom
 * or too late to be waited for. Handlers that wait, streams of every length, subscribers without end, and stopping in
 * the midst of all of it. tests/api/ has the rest, against the daemon itself.
 */

#include "api/api.h"
#include "daemon/service/service.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/recorded.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TOKEN "0123456789abcdef"
#define SAMPLES 3000
#define SECOND_PORTION 400 /* a sample that is in no first portion, and little enough for a socket */
#define DEADLINE_MS 60000

/* ---- the made-up service: experiment 1 is done, 2 runs and changes on request, 3 cannot be read to its end ---- */

struct service {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool held;     /* submissions wait, and later portions of experiment 2's samples */
        bool finished; /* experiment 2 */
        int64_t last_change;
        atomic_uint submitting, exporting, subscriptions;
        atomic_uint endless_reads; /* of run 77, whose samples have no end */
        atomic_uint runs;          /* of experiment 1 */
        atomic_uint runs_read;
        struct subscription {
                struct service *service;
                void (*wake)(void *userdata);
                void *userdata;
        } * subscribers[256];
};

static struct service fake = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .last_change = 10};

static int missing(struct refusal *r) {
        refuse(r, 404, "not-found", "", "there is none");
        return -ENOENT;
}

static void wait_while_held(struct service *s, atomic_uint *waiting) {
        atomic_fetch_add(waiting, 1);
        pthread_mutex_lock(&s->lock);
        while (s->held)
                pthread_cond_wait(&s->changed, &s->lock);
        pthread_mutex_unlock(&s->lock);
        atomic_fetch_sub(waiting, 1);
}

int service_submit(struct service *s, const char *body, size_t length, const char *key, int64_t *ret_id,
                   bool *ret_created, struct refusal *r) {
        (void) body;
        (void) length;
        (void) r;
        wait_while_held(s, &s->submitting);
        *ret_id = 1;
        *ret_created = key == NULL;
        return 0;
}

int service_extend(struct service *s, int64_t id, const char *body, size_t length, const char *idempotency_key,
                   bool *ret_replayed, struct refusal *r) {
        (void) s, (void) id, (void) body, (void) length, (void) idempotency_key, (void) ret_replayed;
        return missing(r);
}

int service_retry(struct service *s, int64_t id, const char *idempotency_key, bool *ret_replayed, struct refusal *r) {
        (void) s, (void) id, (void) idempotency_key, (void) ret_replayed;
        return missing(r);
}

int service_plan(struct service *s, const char *body, size_t length, const char *idempotency_key, struct plan **ret,
                 struct refusal *r) {
        (void) s, (void) body, (void) length, (void) idempotency_key, (void) ret;
        return missing(r);
}

int service_plan_points(struct service *s, struct plan *plan, size_t from,
                        int (*visit)(void *userdata, const char *json, size_t length), void *userdata,
                        struct refusal *r) {
        (void) s, (void) plan, (void) from, (void) visit, (void) userdata;
        return missing(r);
}

void plan_free(struct plan *plan) {
        free(plan);
}

int service_cancel(struct service *s, int64_t id, struct refusal *r) {
        (void) s;
        return id <= 3 ? 0 : missing(r);
}

int service_delete(struct service *s, int64_t id, struct refusal *r) {
        (void) s;
        return id <= 3 ? 0 : missing(r);
}

int service_acknowledge_export(struct service *s, const char *store, int64_t change, struct refusal *r) {
        (void) s, (void) store;
        return change <= 9 ? 0 : missing(r);
}

int service_exported(struct service *s, int64_t *ret, struct refusal *r) {
        (void) s, (void) r;
        *ret = 9;
        return 0;
}

int service_experiment(struct service *s, int64_t id, struct experiment_record *ret, struct refusal *r) {
        if (id > 3)
                return missing(r);
        pthread_mutex_lock(&s->lock);
        bool done = id != 2 || s->finished;
        pthread_mutex_unlock(&s->lock);
        *ret = (struct experiment_record){.id = id,
                                          .change = 9,
                                          .state = done ? STATE_DONE : STATE_RUNNING,
                                          .spec_json = strdup("{\n}"),
                                          .merged_json = strdup("{}"),
                                          .eta_seconds = -1};
        return 0;
}

int service_run(struct service *s, int64_t id, struct run_record *ret, struct refusal *r) {
        (void) s;
        if (id > 3 && id != 77)
                return missing(r);
        *ret = (struct run_record){
                .id = id, .experiment_id = id < 3 ? id : 3, .point_json = strdup("{\"workload\":\"pingpong\"}")};
        return 0;
}

int service_experiments(struct service *s, const struct experiment_query *q,
                        int (*visit)(void *userdata, const struct experiment_record *e), void *userdata,
                        struct refusal *r) {
        int k = 0;
        for (int64_t id = q->before_id > 0 && q->before_id <= 3 ? q->before_id - 1 : 3, n = 0;
             id > 0 && n < q->limit && k == 0; id--, n++) {
                struct experiment_record e;
                k = service_experiment(s, id, &e, r);
                if (k == 0)
                        k = visit(userdata, &e);
                experiment_record_deinit(&e);
        }
        return k;
}

int service_experiments_end(struct service *s, const struct experiment_query *q, int64_t *ret_last, bool *ret_more,
                            struct refusal *r) {
        (void) s, (void) r;
        int64_t first = q->before_id > 0 && q->before_id <= 3 ? q->before_id - 1 : 3;
        *ret_last = q->limit >= first ? (first > 0) : first - q->limit + 1;
        *ret_more = q->limit < first;
        return 0;
}

int service_runs(struct service *s, int64_t experiment_id, uint32_t from, uint32_t limit,
                 int (*visit)(void *userdata, const struct run_record *run), void *userdata, struct refusal *r) {
        static char point[] = "{\"workload\":\"pingpong\"}";
        (void) limit, (void) r;
        if (experiment_id != 1 || from >= atomic_load(&s->runs))
                return 0;
        atomic_fetch_add(&s->runs_read, 1);
        int k = visit(userdata,
                      &(struct run_record){.id = 1, .experiment_id = 1, .position = from, .point_json = point});
        return k < 0 ? k : 0;
}

int service_first_environment(struct service *s, int64_t experiment_id, uint32_t positions, char **ret,
                              struct refusal *r) {
        (void) s, (void) experiment_id, (void) positions, (void) r;
        *ret = NULL;
        return 0;
}

int service_samples(struct service *s, int64_t experiment_id, int64_t run_id, int64_t after, uint32_t limit,
                    int (*visit)(void *userdata, const struct sample_record *sample), void *userdata,
                    struct refusal *r) {
        static char role[] = "responder";
        int k = 0;
        if (run_id == 77) {
                atomic_fetch_add(&s->endless_reads, 1);
                for (; limit > 0 && k == 0; limit--)
                        k = visit(userdata, &(struct sample_record){.change = ++after, .run_id = run_id});
                return k;
        }
        for (int64_t change = after + 1; change <= SAMPLES && limit > 0 && k == 0; change++, limit--) {
                struct histogram *h = NULL;
                if (experiment_id == 3 && change > SAMPLES / 2) {
                        refuse(r, 500, "internal-error", "", "the disk is broken");
                        return -EIO;
                }
                if (experiment_id == 2 && change > SECOND_PORTION)
                        wait_while_held(s, &s->exporting);
                if (change % 2 == 0 && (h = calloc(1, sizeof(*h))))
                        histogram_record(h, (uint64_t) change);
                k = visit(userdata, &(struct sample_record){.change = change,
                                                            .experiment_id = experiment_id,
                                                            .run_id = 1 + change % 2,
                                                            .agent = role,
                                                            .interval_ns = UINT64_C(1000000000),
                                                            .messages = UINT64_MAX,
                                                            .latency = h});
                free(h);
        }
        return k;
}

const char *service_effective_name(size_t i) {
        return i == 0 ? "pipe_size" : NULL;
}

const char *service_operation_name(enum service_operation operation) {
        return operation == OPERATION_OTHER ? "other" : "known";
}

int service_results(struct service *s, int64_t id, uint32_t from, uint32_t limit,
                    int (*visit)(void *userdata, const struct result_record *row), void *userdata, struct refusal *r) {
        static char point[] = "{\"workload\":\"stream\",\"placement\":{\"sender\":{\"cpu\":1}}}";
        static char error[] = "said \"no\",\nand left";
        static int64_t endless[] = {77}, runs[] = {1, 2, 3};
        (void) s, (void) r;
        if (from > 0 || limit == 0)
                return 0;
        struct result_record row = {.point_json = point, .runs_planned = 1, .runs_failed = 1, .error = error};
        if (id > 1)
                row.run_ids = id == 2 ? endless : runs;
        if (id > 1)
                row.runs = id == 2 ? ELEMENTS(endless) : ELEMENTS(runs);
        return visit(userdata, &row);
}

int service_import_begin(struct service *s, struct experiment_record *e, struct import **ret, struct refusal *r) {
        (void) s;
        (void) e;
        (void) ret;
        return refuse(r, 503, "unavailable", "", "no import here");
}

int service_import_runs(struct import **i, struct imported_run *runs, size_t n, struct refusal *r) {
        (void) i;
        (void) runs;
        (void) n;
        return refuse(r, 503, "unavailable", "", "no import here");
}

int service_import_end(struct import **i, const struct bundle_file *file, int64_t *ret_id, bool *ret_created,
                       struct refusal *r) {
        (void) i, (void) file, (void) ret_id, (void) ret_created;
        return refuse(r, 503, "unavailable", "", "no import here");
}

void service_import_free(struct import *i) {
        (void) i;
}

int service_find_bundle(struct service *s, const char *sha256, int64_t *ret_id, struct refusal *r) {
        (void) s;
        (void) sha256;
        (void) r;
        *ret_id = 0;
        return 0;
}

int service_bundle_part(struct service *s, int64_t id, uint32_t part, uint8_t **ret, size_t *ret_length, bool *ret_last,
                        struct refusal *r) {
        (void) s, (void) id, (void) part, (void) ret, (void) ret_length, (void) ret_last;
        return refuse(r, 404, "not-found", "", "no bundle here");
}

int service_findings(struct service *s, int64_t id, struct findings_record **ret, struct refusal *r) {
        static char sentence[] = "a_b <i>*is*</i> [1]";
        static struct finding one = {.kind = FINDING_UNDECIDED, .axis = AXIS_COUNT, .sentence = sentence};
        static char constants[] = "threads 4, placement same_node";
        static struct findings findings = {.items = &one, .n = 1, .n_tests = 7, .constants = constants};
        static struct findings_record record = {.findings = &findings};
        (void) s, (void) r;
        record.experiment_id = id;
        *ret = &record;
        return 0;
}

void service_findings_release(struct service *s, struct findings_record *record) {
        (void) s, (void) record;
}

int service_advice(struct service *s, const struct advice_question *q, const char *host, struct advice_record **ret,
                   struct refusal *r) {
        static struct advice_record record;
        (void) s, (void) host, (void) r;
        record.question = *q;
        *ret = &record;
        return 0;
}

int service_settle(struct service *s, const struct advice_question *q, const char *key, int64_t *ret_id,
                   bool *ret_created, struct refusal *r) {
        (void) s, (void) q, (void) key, (void) ret_id, (void) ret_created;
        return refuse(r, 409, "nothing-open", "", "There is nothing to settle.");
}

void service_advice_release(struct service *s, struct advice_record *a) {
        (void) s, (void) a;
}

/* Experiment 2 has a change for each number up to last_change. */
int service_compare(struct service *s, const struct comparison_query *q, struct comparison_answer **ret,
                    struct refusal *r) {
        (void) s, (void) q, (void) ret;
        return missing(r);
}

int service_baseline(struct service *s, const char *name, struct baseline_record *ret, struct refusal *r) {
        (void) s, (void) name, (void) ret;
        return missing(r);
}

int service_baselines(struct service *s, struct baseline_record **ret, size_t *ret_n, struct refusal *r) {
        (void) s, (void) ret, (void) ret_n;
        return missing(r);
}

int service_pin_baseline(struct service *s, const char *name, int64_t experiment_id, struct refusal *r) {
        (void) s, (void) name, (void) experiment_id;
        return missing(r);
}

int service_remove_baseline(struct service *s, const char *name, struct refusal *r) {
        (void) s, (void) name;
        return missing(r);
}

int service_history(struct service *s, const char *name, uint32_t limit, struct history **ret, struct refusal *r) {
        (void) s, (void) name, (void) limit, (void) ret;
        return missing(r);
}

size_t history_bytes(const struct history *h) {
        return sizeof(*h);
}

void history_free(struct history *h) {
        (void) h;
}

int service_changes(struct service *s, int64_t experiment_id, int64_t after, uint32_t limit,
                    int (*visit)(void *userdata, const struct change_record *change), void *userdata,
                    struct refusal *r) {
        (void) r;
        int64_t last;
        int k = 0;
        service_last_change(s, &last, r);
        for (int64_t change = after + 1; change <= last && limit > 0 && k == 0; change++, limit--) {
                struct experiment_record e;
                k = service_experiment(s, experiment_id > 0 ? experiment_id : 2, &e, r);
                if (k < 0)
                        return k;
                e.change = change;
                k = visit(userdata, &(struct change_record){.change = change, .experiment = &e});
                experiment_record_deinit(&e);
        }
        return k;
}

int service_last_change(struct service *s, int64_t *ret, struct refusal *r) {
        (void) r;
        pthread_mutex_lock(&s->lock);
        *ret = s->last_change;
        pthread_mutex_unlock(&s->lock);
        return 0;
}

int service_large_begin(struct service *s, struct refusal *r) {
        (void) s, (void) r;
        return 0;
}

void service_large_end(struct service *s) {
        (void) s;
}

void service_set_quick(bool is_quick) {
        (void) is_quick;
}

int service_subscribe(struct service *s, int64_t experiment_id, void (*wake)(void *userdata), void *userdata,
                      struct subscription **ret) {
        (void) experiment_id;
        struct subscription *sub = malloc(sizeof(*sub));
        if (!sub)
                return -ENOMEM;
        *sub = (struct subscription){s, wake, userdata};
        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < ELEMENTS(s->subscribers); i++)
                if (!s->subscribers[i]) {
                        s->subscribers[i] = sub;
                        break;
                }
        pthread_mutex_unlock(&s->lock);
        atomic_fetch_add(&s->subscriptions, 1);
        *ret = sub;
        return 0;
}

void service_unsubscribe(struct subscription *sub) {
        if (!sub)
                return;
        struct service *s = sub->service;
        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < ELEMENTS(s->subscribers); i++)
                if (s->subscribers[i] == sub)
                        s->subscribers[i] = NULL;
        pthread_mutex_unlock(&s->lock);
        atomic_fetch_sub(&s->subscriptions, 1);
        free(sub);
}

static int document(char **ret) {
        *ret = strdup("{\"items\":[1,{\"a\":2}]}");
        return *ret ? 0 : -ENOMEM;
}

int service_presets_json(struct service *s, char **ret, struct refusal *r) {
        (void) s, (void) r;
        return document(ret);
}

int service_transports_json(struct service *s, char **ret, struct refusal *r) {
        (void) s, (void) r;
        return document(ret);
}

int service_topology_json(struct service *s, char **ret, struct refusal *r) {
        (void) s, (void) r;
        return document(ret);
}

int service_noise_json(struct service *s, char **ret, struct refusal *r) {
        (void) s, (void) r;
        return document(ret);
}

int service_environment_json(struct service *s, char **ret, struct refusal *r) {
        (void) s, (void) ret, (void) r;
        return -ETIMEDOUT; /* without a detail */
}

int service_health(struct service *s, struct service_health *ret, struct refusal *r) {
        (void) s, (void) r;
        *ret = (struct service_health){
                .version = "0", .problem = "the disk is full", .exported_change = -1, .cpu_ns = 1500000000};
        return 0;
}

static void hold(bool held) {
        pthread_mutex_lock(&fake.lock);
        fake.held = held;
        pthread_cond_broadcast(&fake.changed);
        pthread_mutex_unlock(&fake.lock);
}

/* Wakes as the daemon does: under its lock, from a thread that is not the server's. */
static void change(int64_t by, bool finished) {
        pthread_mutex_lock(&fake.lock);
        fake.last_change += by;
        fake.finished = finished;
        for (size_t i = 0; i < ELEMENTS(fake.subscribers); i++)
                if (fake.subscribers[i])
                        fake.subscribers[i]->wake(fake.subscribers[i]->userdata);
        pthread_mutex_unlock(&fake.lock);
}

/* ---- server and client ---- */

static struct api *api;
static struct sockaddr_un local = {.sun_family = AF_UNIX};
static struct sockaddr_in tcp = {.sin_family = AF_INET};

static int start_with(uint64_t memory_bytes) {
        int unix_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
            tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t length = sizeof(tcp);
        tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        tcp.sin_port = 0;
        snprintf(local.sun_path + 1, sizeof(local.sun_path) - 1, "ipclab-test-api-%d",
                 getpid()); /* abstract: leaves no file */
        if (bind(unix_fd, (struct sockaddr *) &local, sizeof(local)) < 0 || listen(unix_fd, 200) < 0 ||
            bind(tcp_fd, (struct sockaddr *) &tcp, sizeof(tcp)) < 0 || listen(tcp_fd, 200) < 0 ||
            getsockname(tcp_fd, (struct sockaddr *) &tcp, &length) < 0)
                return -errno;
        return api_start(&(struct api_options){.service = &fake,
                                               .unix_fd = unix_fd,
                                               .tcp_fd = tcp_fd,
                                               .token = TOKEN,
                                               .memory_bytes = memory_bytes,
                                               .extra_hosts = "lab.example:80, other.example"},
                         &api);
}

static int start(void) {
        return start_with(0);
}

static int dial(bool over_tcp) {
        int fd = socket(over_tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int k = over_tcp ? connect(fd, (struct sockaddr *) &tcp, sizeof(tcp))
                         : connect(fd, (struct sockaddr *) &local, sizeof(local));
        struct timeval deadline = {.tv_sec = DEADLINE_MS / 1000};
        if (k < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)) < 0)
                return util_close(fd);
        return fd;
}

static bool send_text(int fd, const char *text) {
        return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t) strlen(text);
}

/* Reads until the text contains `until` (NULL: to the end). NULL when it never did. */
static char *receive_bytes(int fd, const char *until, size_t *ret_n) {
        size_t n = 0, size = 1 << 22;
        char *text = malloc(size);
        while (text && n + 1 < size) {
                ssize_t k = recv(fd, text + n, size - n - 1, 0);
                if (k < 0 || (k == 0 && until)) {
                        free(text);
                        return NULL;
                }
                n += (size_t) k;
                text[n] = '\0';
                if (k == 0 || (until && strstr(text, until)))
                        break;
        }
        *ret_n = n;
        return text;
}

static char *receive(int fd, const char *until) {
        size_t n;
        return receive_bytes(fd, until, &n);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#define POST                                                                                                           \
        "POST /experiments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"     \
        "Connection: close\r\n\r\n{}"

static char *request(const char *request) {
        _cleanup_close_ int fd = dial(false);
        return fd >= 0 && send_text(fd, request) ? receive(fd, NULL) : NULL;
}

static bool starts_with(const char *text, const char *start_) {
        return text && strncmp(text, start_, strlen(start_)) == 0;
}

static bool ends_with(const char *text, const char *end) {
        size_t n = strlen(text), k = strlen(end);
        return n >= k && strcmp(text + n - k, end) == 0;
}

static bool wait_for(atomic_uint *counter, unsigned wanted) {
        for (unsigned i = 0; i < DEADLINE_MS / 5; i++) {
                if (atomic_load(counter) == wanted)
                        return true;
                nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        }
        return false;
}

static size_t count(const char *text, const char *what) {
        size_t n = 0;
        for (; (text = strstr(text, what)); text++)
                n++;
        return n;
}

/* ---- cases ---- */

static void answers_while_submissions_wait(void) {
        int waiting[2] = {-1, -1};
        hold(true);
        for (size_t i = 0; i < ELEMENTS(waiting); i++) {
                waiting[i] = dial(false);
                CHECK(waiting[i] >= 0 && send_text(waiting[i], POST));
        }
        CHECK(wait_for(&fake.submitting, ELEMENTS(waiting)));
        _cleanup_free_ char *other = request(GET("/experiments/1"));
        CHECK(starts_with(other, "HTTP/1.1 200 "));
        hold(false);
        for (size_t i = 0; i < ELEMENTS(waiting); i++) {
                _cleanup_free_ char *answer = receive(waiting[i], NULL);
                CHECK(starts_with(answer, "HTTP/1.1 201 "));
                util_close(waiting[i]);
        }
}

static void streams_every_sample_once(void) {
        _cleanup_free_ char *all =
                request("GET /experiments/1/samples HTTP/1.0\r\nAccept: application/x-ndjson\r\n\r\n");
        CHECK(starts_with(all, "HTTP/1.0 200 ") || starts_with(all, "HTTP/1.1 200 "));
        CHECK_UINT(count(all, "\"run_id\""), SAMPLES);
        CHECK_UINT(count(all, "\"kind\":\"rtt\""), SAMPLES / 2);
        CHECK_UINT(count(all, "18446744073709551615"), SAMPLES);
}

static void long_exports_leave_a_thread_to_events(void) {
        int exports[4] = {-1, -1, -1, -1};
        hold(true);
        for (size_t i = 0; i < ELEMENTS(exports); i++) {
                exports[i] = dial(false);
                CHECK(exports[i] >= 0 && send_text(exports[i], "GET /experiments/2/samples HTTP/1.0\r\n"
                                                               "Accept: application/x-ndjson\r\n\r\n"));
        }
        CHECK(wait_for(&fake.exporting, 2));
        _cleanup_close_ int fd = dial(false);
        CHECK(fd >= 0 && send_text(fd, "GET /experiments/2/events HTTP/1.0\r\nLast-Event-ID: 8\r\n\r\n"));
        _cleanup_free_ char *events = receive(fd, "id: 10\n");
        CHECK(events != NULL);
        hold(false);
        for (size_t i = 0; i < ELEMENTS(exports); i++) {
                _cleanup_free_ char *all = receive(exports[i], NULL);
                CHECK(all != NULL);
                CHECK_UINT(count(all, "\"run_id\""), SAMPLES);
                util_close(exports[i]);
        }
}

static void pages_meet_without_gap(void) {
        _cleanup_free_ char *first = request("GET /experiments/1/samples?limit=2999 HTTP/1.0\r\n\r\n");
        CHECK(first != NULL);
        CHECK_UINT(count(first, "\"run_id\""), 2999);
        CHECK(strstr(first, "\"next\":\"s-2999\"}") != NULL);
        CHECK(strstr(first, "Link: </experiments/1/samples?limit=2999&cursor=s-2999>; rel=\"next\"") != NULL);
        _cleanup_free_ char *second = request("GET /experiments/1/samples?limit=2999&cursor=s-2999 HTTP/1.0\r\n\r\n");
        CHECK(second != NULL);
        CHECK_UINT(count(second, "\"run_id\""), 1);
        CHECK(strstr(second, "},\"next\":null}") != NULL);
        CHECK(strstr(second, "Link:") == NULL);
}

static void shows_that_a_broken_export_is_not_whole(void) {
        _cleanup_free_ char *part =
                request("GET /experiments/3/samples HTTP/1.1\r\nHost: x\r\nAccept: text/csv\r\n\r\n");
        CHECK(starts_with(part, "HTTP/1.1 200 "));
        CHECK(!ends_with(part, "\r\n0\r\n\r\n")); /* the chunk that ends a body */
        CHECK_UINT(count(part, ",responder,"), SAMPLES / 2);
}

/* What was written before the failure and is not compressed yet is no part of a gzip stream. */
static void a_broken_export_is_compressed_as_far_as_it_goes(void) {
        static const char plain[] = ",responder,";
        size_t n = 0;
        _cleanup_close_ int fd = dial(false);
        CHECK(fd >= 0 && send_text(fd, "GET /experiments/3/samples HTTP/1.1\r\nHost: x\r\nAccept: text/csv\r\n"
                                       "Accept-Encoding: gzip\r\n\r\n"));
        _cleanup_free_ char *part = receive_bytes(fd, NULL, &n);
        CHECK(starts_with(part, "HTTP/1.1 200 "));
        CHECK(strstr(part, "\r\nContent-Encoding: gzip\r\n") != NULL);
        CHECK(memmem(part, n, plain, strlen(plain)) == NULL);
        CHECK(memmem(part, n, "\r\n0\r\n", 5) == NULL);
}

static void quotes_csv(void) {
        _cleanup_free_ char *table = request("GET /experiments/1/results HTTP/1.0\r\nAccept: text/csv\r\n\r\n");
        CHECK(table != NULL);
        CHECK(strstr(table, "\r\n\r\nworkload,transport,message_size,threads,placement,runs,") != NULL);
        CHECK(strstr(table, "\r\nstream,,,,\"{\"\"sender\"\":{\"\"cpu\"\":1}}\",0,1,,,,,") != NULL);
        CHECK(strstr(table, ",\"said \"\"no\"\",\nand left\",1,,,,,0\r\n") != NULL);
}

static void quotes_markdown(void) {
        _cleanup_free_ char *text = request("GET /experiments/1/findings HTTP/1.0\r\nAccept: text/markdown\r\n\r\n");
        CHECK(text != NULL);
        CHECK(strstr(text, "\r\n\r\n# Findings of experiment 1\n") != NULL);
        CHECK(strstr(text, "\n\nAll points share: threads 4, placement same\\_node.\n\n7 comparisons;") != NULL);
        CHECK(strstr(text, "\n## What cannot be said\n\n- a\\_b \\<i\\>\\*is\\*\\</i\\> \\[1\\]\n") != NULL);
}

static void sends_changes_as_they_come_and_ends_with_the_experiment(void) {
        _cleanup_close_ int fd = dial(false);
        CHECK(fd >= 0 && send_text(fd, "GET /experiments/2/events HTTP/1.0\r\nLast-Event-ID: 8\r\n\r\n"));
        _cleanup_free_ char *known = receive(fd, "id: 10\n");
        CHECK(known != NULL);
        CHECK_UINT(count(known, "\nid: "), 2);
        CHECK_UINT(count(known, "event: experiment\n"), 2);
        for (int i = 11; i < 20; i++) {
                char id[20];
                snprintf(id, sizeof(id), "id: %d\n", i);
                change(1, false);
                _cleanup_free_ char *more = receive(fd, id);
                CHECK(more != NULL);
        }
        change(100, true);
        _cleanup_free_ char *rest = receive(fd, NULL);
        CHECK(rest != NULL);
        CHECK_UINT(count(rest, "\nid: ") + starts_with(rest, "id: "), 100);
        const char *end = strstr(rest, "event: end\ndata: {\"experiment_id\":2,\"state\":\"done\"}\n\n");
        CHECK(end != NULL && strchr(end, '}')[3] == '\0');
        CHECK(wait_for(&fake.subscriptions, 0));
        change(0, false);
}

static void breaks_no_event_at_a_line_of_its_data(void) {
        _cleanup_free_ char *events = request("GET /experiments/1/events HTTP/1.0\r\n\r\n");
        CHECK(events != NULL);
        CHECK(strstr(events, "\"spec\":{\ndata: },") != NULL);
}

static void notices_subscribers_that_left(void) {
        int fds[8];
        for (size_t i = 0; i < ELEMENTS(fds); i++) {
                fds[i] = dial(i % 2 == 0);
                char request[128];
                snprintf(request, sizeof(request), "GET /events HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
                         ntohs(tcp.sin_port));
                CHECK(fds[i] >= 0 && send_text(fds[i], request));
                _cleanup_free_ char *head = receive(fds[i], "retry:");
                CHECK(head != NULL);
        }
        CHECK(wait_for(&fake.subscriptions, ELEMENTS(fds)));
        for (size_t i = 0; i < ELEMENTS(fds); i++)
                util_close(fds[i]);
        CHECK(wait_for(&fake.subscriptions, 0)); /* nothing changed meanwhile, so nothing was written */
}

static void caps_subscribers(void) {
        int fds[64];
        size_t n = 0, refused = 0;
        for (; n < ELEMENTS(fds) && refused == 0; n++) {
                fds[n] = dial(false);
                CHECK(fds[n] >= 0 && send_text(fds[n], "GET /events HTTP/1.1\r\nHost: x\r\n\r\n"));
                _cleanup_free_ char *head = receive(fds[n], "\r\n\r\n");
                CHECK(head != NULL);
                if (!starts_with(head, "HTTP/1.1 200 ")) {
                        CHECK(starts_with(head, "HTTP/1.1 503 ") && strstr(head, "\r\nRetry-After: "));
                        refused++;
                }
        }
        CHECK_UINT(refused, 1);
        _cleanup_free_ char *head = request("HEAD /events HTTP/1.0\r\n\r\n"); /* takes no place */
        CHECK(starts_with(head, "HTTP/1.1 200 ") || starts_with(head, "HTTP/1.0 200 "));
        for (size_t i = 0; i < n; i++)
                util_close(fds[i]);
        CHECK(wait_for(&fake.subscriptions, 0));
}

/* Waits until the counter has grown by so much; -1: it has not, or nothing could be sent. */
static int ask(bool over_tcp, const char *path, atomic_uint *counter, unsigned growth) {
        char text[128];
        unsigned before = atomic_load(counter);
        int fd = dial(over_tcp);
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", path, ntohs(tcp.sin_port));
        if (fd < 0 || !send_text(fd, text))
                return util_close(fd);
        for (unsigned i = 0; i < DEADLINE_MS / 5 && atomic_load(counter) - before < growth; i++)
                nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        return atomic_load(counter) - before < growth ? util_close(fd) : fd;
}

static int ask_for_a_bundle(bool over_tcp, unsigned runs) {
        atomic_store(&fake.runs, runs);
        return ask(over_tcp, "/experiments/1/bundle", &fake.runs_read, 1);
}

static bool has_no_connection_but(const char *unix_socket, const char *over_tcp) {
        for (unsigned i = 0; i < DEADLINE_MS / 5; i++) {
                _cleanup_free_ char *metrics = request(GET("/metrics"));
                if (metrics && strstr(metrics, unix_socket) && strstr(metrics, over_tcp))
                        return true;
                nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        }
        return false;
}

/* The name of a bundle needs a pass over all of it, before there is anything to send. */
static void makes_no_bundle_for_a_client_that_left(void) {
        for (int over_tcp = 0; over_tcp < 2; over_tcp++) {
                int fd = ask_for_a_bundle(over_tcp, UINT_MAX);
                CHECK(fd >= 0);
                util_close(fd);
                CHECK(has_no_connection_but("ipclab_http_connections{listener=\"unix\"} 1\n",
                                            "ipclab_http_connections{listener=\"tcp\"} 0\n"));
        }
        atomic_store(&fake.runs, 0);
}

/* As `nc -N` does. */
static void makes_a_bundle_for_a_client_that_sends_no_more(void) {
        for (int over_tcp = 0; over_tcp < 2; over_tcp++) {
                size_t n = 0;
                _cleanup_close_ int fd = ask_for_a_bundle(over_tcp, 10000);
                CHECK(fd >= 0);
                CHECK_INT(shutdown(fd, SHUT_WR), 0);
                _cleanup_free_ char *answer = receive_bytes(fd, NULL, &n);
                CHECK(starts_with(answer, "HTTP/1.1 200 "));
                CHECK(n > 7 && memcmp(answer + n - 7, "\r\n0\r\n\r\n", 7) == 0);
        }
        atomic_store(&fake.runs, 0);
}

static void a_row_has_the_latencies_of_all_its_runs(void) {
        struct histogram all = {0};
        _cleanup_free_ char *text = NULL;
        _cleanup_free_ char *table = request("GET /experiments/3/results?histogram=1 HTTP/1.0\r\n\r\n");
        for (uint64_t i = 0; i < 3 * SAMPLES; i++)
                if (i % SAMPLES % 2 == 1)
                        histogram_record(&all, i % SAMPLES + 1);
        CHECK_INT(histogram_export(&all, &text), 0);
        CHECK(table && strstr(table, text));
}

/* It is put together in steps, before there is anything to send. */
static void puts_no_histogram_together_for_a_client_that_left(void) {
        static const char *const paths[] = {"/experiments/2/results?histogram=1", "/runs/77/histogram"};
        for (unsigned i = 0; i < 2 * ELEMENTS(paths); i++) {
                int fd = ask(i % 2 == 1, paths[i / 2], &fake.endless_reads, 9);
                CHECK(fd >= 0);
                util_close(fd);
                CHECK(has_no_connection_but("ipclab_http_connections{listener=\"unix\"} 1\n",
                                            "ipclab_http_connections{listener=\"tcp\"} 0\n"));
        }
}

static void serves_its_configured_hosts_over_tcp(void) {
        static const struct {
                const char *host, *status;
        } cases[] = {{"lab.example:80", "200"}, {"LAB.example:80", "200"}, {"other.example", "200"},
                     {"lab.example", "421"},    {"other", "421"},          {"evil.example", "421"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char request[128];
                snprintf(request, sizeof(request), "GET /presets HTTP/1.0\r\nHost: %s\r\n\r\n", cases[i].host);
                _cleanup_close_ int fd = dial(true);
                CHECK(fd >= 0 && send_text(fd, request));
                _cleanup_free_ char *answer = receive(fd, NULL);
                if (!answer || strncmp(answer + strlen("HTTP/1.1 "), cases[i].status, 3) != 0)
                        CHECK_FAIL("%s: %.20s, expected %s", cases[i].host, answer ? answer : "nothing",
                                   cases[i].status);
        }
}

static void gives_errors_without_a_detail_a_problem(void) {
        _cleanup_free_ char *answer = request(GET("/environment"));
        CHECK(starts_with(answer, "HTTP/1.1 503 "));
        CHECK(strstr(answer, "\r\nContent-Type: application/problem+json\r\n") != NULL);
        CHECK(strstr(answer, "\"type\":\"urn:ipclab:problem:unavailable\"") != NULL);
        _cleanup_free_ char *health = request(GET("/health"));
        CHECK(starts_with(health, "HTTP/1.1 503 "));
        CHECK(strstr(health, "\"problem\":\"the disk is full\"") != NULL);
        _cleanup_free_ char *metrics = request(GET("/metrics"));
        CHECK(starts_with(metrics, "HTTP/1.1 200 "));
        CHECK(strstr(metrics, "\nipclab_cpu_seconds_total 1.500000000\n") != NULL);
}

static void closes_what_is_open_when_it_stops(void) {
        int streams[10], idle[10], waiting = dial(false);
        hold(true);
        CHECK(waiting >= 0 && send_text(waiting, POST));
        for (size_t i = 0; i < ELEMENTS(streams); i++) {
                streams[i] = dial(false);
                idle[i] = dial(i % 2 == 0);
                CHECK(idle[i] >= 0 && send_text(idle[i], "GET /health HTTP/1.1\r\nHo"));
                CHECK(streams[i] >= 0 && send_text(streams[i], "GET /events HTTP/1.0\r\n\r\n"));
                _cleanup_free_ char *head = receive(streams[i], "retry:");
                CHECK(head != NULL);
        }
        CHECK(wait_for(&fake.submitting, 1));
        hold(false);
        CHECK_UINT(api_stop(api, util_now_ns() + DEADLINE_MS * NSEC_PER_MSEC), 0);
        api = NULL;
        CHECK_UINT(atomic_load(&fake.subscriptions), 0);
        _cleanup_free_ char *answer = receive(waiting, NULL);
        CHECK(starts_with(answer, "HTTP/1.1 201 ")); /* what was accepted is answered */
        for (size_t i = 0; i < ELEMENTS(streams); i++) {
                _cleanup_free_ char *rest = receive(streams[i], NULL);
                _cleanup_free_ char *unfinished = receive(idle[i], NULL);
                CHECK(rest != NULL);
                CHECK(!starts_with(unfinished, "HTTP/1.1 408 ")); /* the stop has closed it, not its own deadline */
                util_close(streams[i]);
                util_close(idle[i]);
        }
        util_close(waiting);
}

static void stops_while_a_bundle_is_made(void) {
        CHECK_INT(start(), 0);
        _cleanup_close_ int fd = ask_for_a_bundle(false, UINT_MAX);
        CHECK(fd >= 0);
        CHECK_UINT(api_stop(api, util_now_ns()), 1);
        api = NULL;
        atomic_store(&fake.runs, 0);
}

/* A connection over which a body of this type and length is announced; *ret_answer: what comes of it, "HTTP/1.1 100 "
 * if it may be sent. */
static int announce(bool over_tcp, const char *target, const char *type, size_t length, char **ret_answer) {
        char text[400];
        int fd = dial(over_tcp);
        snprintf(text, sizeof(text),
                 "POST %s HTTP/1.1\r\nHost: localhost:%u\r\nAuthorization: Bearer " TOKEN "\r\nContent-Type: %s\r\n"
                 "Expect: 100-continue\r\nContent-Length: %zu\r\n\r\n",
                 target, ntohs(tcp.sin_port), type, length);
        *ret_answer = fd >= 0 && send_text(fd, text) ? receive(fd, "\r\n\r\n") : NULL;
        return fd;
}

static int announce_bundle(bool over_tcp, size_t length, char **ret_answer) {
        return announce(over_tcp, "/bundles?sha256=0000000000000000000000000000000000000000000000000000000000000000",
                        "application/gzip", length, ret_answer);
}

static bool may_send_bundle(bool over_tcp, size_t length) {
        _cleanup_free_ char *answer = NULL;
        _cleanup_close_ int fd = announce_bundle(over_tcp, length, &answer);
        return fd >= 0 && starts_with(answer, "HTTP/1.1 100 ");
}

static void largest_bodies_fit_into_memory(void) {
        static const struct {
                uint64_t memory;
                size_t most;
        } cases[] = {{0, 64 << 20}, {UINT64_C(9223372036854771712), 64 << 20}, {48 << 20, 12 << 20}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CHECK_INT(start_with(cases[i].memory), 0);
                bool most = may_send_bundle(i % 2, cases[i].most), more = may_send_bundle(i % 2, cases[i].most + 1);
                CHECK_UINT(api_stop(api, util_now_ns() + DEADLINE_MS * NSEC_PER_MSEC), 0);
                api = NULL;
                CHECK(most && !more);
        }
}

/* Bodies of both listeners share it, and beside a largest one there is room for others. */
static void bodies_share_the_memory(void) {
        _cleanup_free_ char *first = NULL, *second = NULL, *small = NULL;
        CHECK_INT(start_with(48 << 20), 0);
        int held = announce_bundle(false, 12 << 20, &first);
        _cleanup_close_ int refused = announce_bundle(true, 12 << 20, &second);
        _cleanup_close_ int other = announce(true, "/experiments", "application/json", 1 << 20, &small);
        util_close(held);
        bool again = false;
        for (unsigned i = 0; i < DEADLINE_MS / 5 && !again; i++) {
                again = may_send_bundle(true, 12 << 20);
                nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        }
        other = util_close(other);
        (void) api_stop(api, util_now_ns() + DEADLINE_MS * NSEC_PER_MSEC);
        api = NULL;
        CHECK(refused >= 0 && starts_with(first, "HTTP/1.1 100 "));
        CHECK(starts_with(second, "HTTP/1.1 503 ") && strstr(second, "\r\nRetry-After: "));
        CHECK(starts_with(small, "HTTP/1.1 100 "));
        CHECK(again);
}

static void stops_without_any_request(void) {
        CHECK_INT(start(), 0);
        CHECK_UINT(api_stop(api, util_now_ns() + DEADLINE_MS * NSEC_PER_MSEC), 0);
        api = NULL;
        CHECK_UINT(api_stop(NULL, 0), 0);
}

int main(void) {
        int k = start();
        if (k < 0) {
                fprintf(stderr, "cannot start: %s\n", strerrordesc_np(-k));
                return 1;
        }
        RUN(answers_while_submissions_wait);
        RUN(streams_every_sample_once);
        RUN(long_exports_leave_a_thread_to_events);
        RUN(pages_meet_without_gap);
        RUN(shows_that_a_broken_export_is_not_whole);
        RUN(a_broken_export_is_compressed_as_far_as_it_goes);
        RUN(quotes_csv);
        RUN(quotes_markdown);
        RUN(sends_changes_as_they_come_and_ends_with_the_experiment);
        RUN(breaks_no_event_at_a_line_of_its_data);
        RUN(notices_subscribers_that_left);
        RUN(caps_subscribers);
        RUN(makes_a_bundle_for_a_client_that_sends_no_more);
        RUN(makes_no_bundle_for_a_client_that_left);
        RUN(a_row_has_the_latencies_of_all_its_runs);
        RUN(puts_no_histogram_together_for_a_client_that_left);
        RUN(serves_its_configured_hosts_over_tcp);
        RUN(gives_errors_without_a_detail_a_problem);
        RUN(closes_what_is_open_when_it_stops);
        RUN(stops_while_a_bundle_is_made);
        RUN(largest_bodies_fit_into_memory);
        RUN(bodies_share_the_memory);
        RUN(stops_without_any_request);
        return check_end();
}
