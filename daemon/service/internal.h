/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Shared by the files of the service: the queue of calls that hop to the main thread, the pool of reading
 * connections, and how an errno becomes an answer.
 */

#include "daemon/admission/admission.h"
#include "daemon/host/disturbance/idle-noise.h"
#include "daemon/service/cache.h"
#include "daemon/service/host.h"

#include <pthread.h>

#define SERVICE_DEADLINE_NS (UINT64_C(5) * 1000000000)
#define SERVICE_READERS 4u
#define SERVICE_LOOP_SLOW_NS (UINT64_C(50) * 1000000) /* a source that takes longer is counted */
#define SERVICE_MANY_POINTS 1024u /* from which on an experiment is planned, or (runs) findings are drawn, in turn */
#define SERVICE_DISK_RESERVE (UINT64_C(64) << 20) /* less free than this is reported as a problem */

/* A change that another thread sends to the main thread. `run` works on the payload there; an error fills *r. It
 * returns 1 after a portion, and is called again when the main loop has dispatched its other sources. */
struct call_type {
        enum service_operation operation;
        int (*run)(struct service *s, void *payload, struct refusal *r);
        void (*free)(void *payload);
};

struct call {
        struct call *next;
        const struct call_type *type;
        void *payload;
        enum { CALL_QUEUED, CALL_RUNNING, CALL_DONE } state;
        bool begun; /* a portion of it is done */
        uint64_t deadline_ns;
        bool abandoned; /* no thread waits any more: the main thread frees it */
        int error;
        struct refusal refusal;
        pthread_cond_t done;
};

struct reader {
        struct store *store; /* NULL: not opened yet */
        bool busy;
};

/* What one caller at a time may do, as it takes megabytes and seconds. */
struct turn {
        bool taken;
        pthread_cond_t over;
};

struct subscription {
        struct service *service;
        int64_t experiment_id;
        void (*wake)(void *userdata);
        void *userdata;
        struct subscription *next;
};

#define SERVICE_RESTORE_MAX 400u

struct service_status {
        int64_t experiment_id, run_id, started_at_ms;
};

struct service {
        /* fixed once made */
        struct store *store; /* main thread only */
        struct service_hooks hooks;
        char *root, *dir, *runtime_dir; /* the last may be NULL */
        pthread_t main_thread;
        uint64_t started_ns;
        uint64_t deadline_ns; /* tests shorten it */

        /* main thread only */
        sd_event_source *calls_source, *tidy_source, *log_source, *look_source;
        enum service_operation doing;
        struct {
                _Atomic uint64_t longest_ns, longest_cpu_ns; /* written by the main thread */
        } holds[OPERATION_COUNT];
        _Atomic uint64_t loop_slow;
        bool measuring; /* housekeeping waits */
        int log_error;  /* of the last time that the log was to be moved, which is logged when it changes */
        int tidy_error; /* likewise, of housekeeping */
        uint64_t tidy_pause_ns;
        bool has_baselines; /* there may be some: later experiments are compared with them */
        bool has_checker;
        pthread_t checker;

        pthread_mutex_t lock; /* guards all of this */
        bool stopping;
        int calls_fd; /* eventfd */
        struct call *first_call, **last_call;
        struct reader readers[SERVICE_READERS];
        pthread_cond_t reader_free;
        struct turn comparison, findings, large; /* service_large_begin() */
        pthread_cond_t checker_wanted;
        bool checks_due;
        struct service_status status;
        struct idle_noise idle_noise;              /* changed by the main thread */
        char pending_restore[SERVICE_RESTORE_MAX]; /* why a setting of the host is not restored; "": all are */

        struct cache cache;

        pthread_mutex_t subscriptions_lock;
        struct subscription *subscriptions;
};

/* Waits until no other caller has the turn. 0; negative errno with *r, which names the other one: `what`. */
int service_turn_begin(struct service *s, struct turn *t, const char *what, struct refusal *r);
void service_turn_end(struct service *s, struct turn *t);

/* Carries a call out on the main thread and waits. *payload stays the caller's, but is NULL after a 503 that left the
 * main thread at work on it. */
int service_call(struct service *s, const struct call_type *type, void **payload, struct refusal *r);

/* Has the topology read again if the machine has changed and no run is under way. To be called before topology_hold():
 * the main thread waits for those that hold it. */
int service_look_at_machine(struct service *s, struct refusal *r);

/* Lends a reading connection until service_reader_put(); the caller must not wait for others while it holds one. */
int service_reader_get(struct service *s, struct reader **ret, struct refusal *r);
void service_reader_put(struct service *s, struct reader *reader);

/* Evaluates a call of the store with a reading connection, which it has as `store`. 0; or its error, with *r filled by
 * service_fail() unless `what` is NULL, as the call fills it then. -ENOENT without an id, of what is looked for by
 * something else, leaves *r as it was. */
#define SERVICE_READ(s, r, what, id, call)                                                                             \
        __extension__({                                                                                                \
                struct reader *_reader;                                                                                \
                const char *const _what = (what);                                                                      \
                int _error = service_reader_get(s, &_reader, r);                                                       \
                if (_error == 0) {                                                                                     \
                        struct store *store = _reader->store;                                                          \
                        _error = (call);                                                                               \
                        service_reader_put(s, _reader);                                                                \
                        if (_what && _error < 0 && (_error != -ENOENT || (id) != 0))                                   \
                                _error = service_fail(s, r, _error, _what, id);                                        \
                }                                                                                                      \
                _error;                                                                                                \
        })

/* Fills *r for what the store reported, and returns the error. `what` is a thing that was not found or could not be
 * done: "experiment 12". */
int service_fail(struct service *s, struct refusal *r, int error, const char *what, int64_t id);
int service_unavailable(struct refusal *r, int error, const char *detail);

/* 409 for an experiment that baselines pin, which are named: it stays as it is. -EEXIST; 0: none does. */
int service_refuse_pinned(struct service *s, struct store *store, int64_t experiment_id, struct refusal *r);

/* Main thread: 409 for an experiment that is not deleted as it was not exported. Returns -EPERM. */
int service_refuse_unexported(struct service *s, int64_t experiment_id, struct refusal *r);

/* Main thread: an experiment may have finished, or a baseline is new. service_join_checker(): after service_stop(). */
void service_check_baselines(struct service *s);
void service_join_checker(struct service *s);

void service_arm_tidy(struct service *s); /* main thread */

/* Main thread: begins to look at the CPUs' times while nothing is measured; and a run has begun, or ended. */
int service_watch_idle(struct service *s, sd_event *event);
void service_look_when_idle(struct service *s);

struct admission_host service_admission_host(const struct service *s);
