/* SPDX-License-Identifier: MIT */

/*
 * The service's machinery: calls that hop from the api's threads to the main thread, reading connections, subscribers,
 * and the database's housekeeping while nothing is measured. The calls themselves are in submit.c (changes), read.c,
 * results.c and documents.c.
 */

#include "daemon/service/service.h"
#include "daemon/log.h"
#include "daemon/service/internal.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/statvfs.h>

#define CALLS_NS (10 * NSEC_PER_MSEC) /* no further call begins that long after a wake */
#define TIDY_AFTER_NS (2 * NSEC_PER_SEC)
#define TIDY_STEP_NS (10 * NSEC_PER_MSEC)
#define TIDY_LONGEST_NS (64 * NSEC_PER_SEC) /* between two that fail */

/* Answers */

int service_unavailable(struct refusal *r, int error, const char *detail) {
        (void) refuse(r, 503, "unavailable", "", "%s", detail);
        return error;
}

static int fail_disk_full(struct service *s, struct refusal *r) {
        struct statvfs fs;
        if (statvfs(s->dir, &fs) < 0)
                (void) refuse(r, 507, "insufficient-storage", "", "the disk that holds %s is full", s->dir);
        else if ((uint64_t) fs.f_bavail * fs.f_frsize >= SERVICE_DISK_RESERVE)
                (void) refuse(r, 507, "insufficient-storage", "",
                              "the database in %s cannot grow: %" PRIu64
                              " bytes are free on its disk, and a quota or RLIMIT_FSIZE (LimitFSIZE= in the unit, or "
                              "ulimit -f) keeps them from it: DELETE experiments, or raise that limit",
                              s->dir, (uint64_t) fs.f_bavail * fs.f_frsize);
        else
                (void) refuse(r, 507, "insufficient-storage", "",
                              "the disk that holds %s is full: %" PRIu64 " bytes are free; %" PRIu64
                              " must stay free, besides room for the database to grow: DELETE experiments, or remove "
                              "other files",
                              s->dir, (uint64_t) fs.f_bavail * fs.f_frsize, STORE_ROOM_BYTES);
        return -ENOSPC;
}

static int fail_damaged(struct service *s, struct refusal *r, const char *what, int64_t id) {
        struct store_integrity i;
        char name[80] = "", page[40] = "its log";
        store_integrity(s->store, &i);
        if (id > 0)
                (void) snprintf(name, sizeof(name), " %" PRId64, id);
        if (i.damaged_page > 0)
                (void) snprintf(page, sizeof(page), "page %" PRIu32, i.damaged_page);
        if (i.damaged == 0)
                (void) refuse(r, 500, "damaged", "",
                              "%s%s: the database %s is damaged; the daemon's log has the details", what, name, i.path);
        else
                (void) refuse(r, 500, "damaged", "",
                              "%s%s: the database %s is damaged: %s does not match its checksum (%" PRIu32
                              " such pages in all); what does not depend on it is served",
                              what, name, i.path, page, i.damaged);
        return -EBADMSG;
}

static int fail_gone(struct service *s, struct refusal *r) {
        struct store_integrity i;
        store_integrity(s->store, &i);
        (void) refuse(r, 503, "unavailable", "",
                      "%s was removed or replaced while ipclabd runs: nothing is stored, nor read from what is there "
                      "now; restart it, and the log names the way out",
                      i.gone ? i.gone : "a file of the database");
        return -ESTALE;
}

static int fail_read_only(struct service *s, struct refusal *r) {
        (void) refuse(
                r, 503, "unavailable", "",
                "the file system that holds %s is read-only: what is stored is served, and nothing is stored until "
                "it can be written to again",
                s->dir);
        return -EROFS;
}

int service_fail(struct service *s, struct refusal *r, int error, const char *what, int64_t id) {
        switch (error) {
        case -ENOENT:
                (void) refuse(r, 404, "not-found", "", "there is no %s %" PRId64, what, id);
                break;
        case -ENOSPC:
                return fail_disk_full(s, r);
        case -EROFS:
                return fail_read_only(s, r);
        case -EBUSY:
                return service_unavailable(r, error, "the database is busy");
        case -EBADMSG:
                return fail_damaged(s, r, what, id);
        case -ESTALE:
                return fail_gone(s, r);
        case -ENOMEM:
                return service_unavailable(r, error, "the daemon has no memory left for this");
        default:
                (void) refuse(r, 500, "internal-error", "", "%s: %s; the daemon's log has the details", what,
                              strerrordesc_np(-error));
        }
        return error;
}

/* Calls */

static int call_new(struct call **ret, const struct call_type *type, void *payload) {
        struct call *c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        pthread_condattr_t attributes;
        int r = pthread_condattr_init(&attributes);
        if (r == 0) {
                r = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
                if (r == 0)
                        r = pthread_cond_init(&c->done, &attributes);
                (void) pthread_condattr_destroy(&attributes);
        }
        if (r != 0) {
                free(c);
                return -r;
        }
        c->type = type;
        c->payload = payload;
        *ret = c;
        return 0;
}

static void call_free(struct call *c) {
        (void) pthread_cond_destroy(&c->done);
        free(c);
}

/* The caller holds the lock. */
static void unlink_call(struct service *s, struct call *c) {
        struct call **p = &s->first_call;
        while (*p != c)
                p = &(*p)->next;
        *p = c->next;
        if (!c->next)
                s->last_call = p;
}

/* The caller holds the lock. -ETIMEDOUT: the call was taken back or abandoned; 0: it is done. */
static int wait_for_call(struct service *s, struct call *c) {
        while (c->state != CALL_DONE) {
                uint64_t deadline = c->deadline_ns; /* each portion moves it */
                struct timespec at = {.tv_sec = (time_t) (deadline / NSEC_PER_SEC),
                                      .tv_nsec = (long) (deadline % NSEC_PER_SEC)};
                if (pthread_cond_timedwait(&c->done, &s->lock, &at) != ETIMEDOUT || c->state == CALL_DONE ||
                    c->deadline_ns != deadline)
                        continue;
                if (c->state == CALL_QUEUED && !c->begun)
                        unlink_call(s, c);
                else
                        c->abandoned = true;
                return -ETIMEDOUT;
        }
        return 0;
}

static int enqueue(struct service *s, struct call *c) {
        if (s->stopping)
                return -ESHUTDOWN;
        uint64_t one = 1;
        if (write(s->calls_fd, &one, sizeof(one)) < 0 && errno != EAGAIN) /* EAGAIN: plenty of wakes are pending */
                return -errno;
        c->deadline_ns = util_now_ns() + s->deadline_ns;
        *s->last_call = c;
        s->last_call = &c->next;
        return 0;
}

int service_call(struct service *s, const struct call_type *type, void **payload, struct refusal *r) {
        int error;
        if (pthread_equal(pthread_self(), s->main_thread)) {
                do
                        error = type->run(s, *payload, r);
                while (error > 0);
                return error;
        }

        struct call *c = NULL;
        error = call_new(&c, type, *payload);
        if (error < 0 || !c)
                return service_fail(s, r, error, "the call", 0);

        pthread_mutex_lock(&s->lock);
        error = enqueue(s, c);
        if (error == 0)
                error = wait_for_call(s, c);
        bool abandoned = c->abandoned;
        pthread_mutex_unlock(&s->lock);

        if (error == -ETIMEDOUT && abandoned) {
                *payload = NULL;
                return service_unavailable(r, error,
                                           "the daemon did not answer in time; the change may still be carried out");
        }
        if (error == -ETIMEDOUT)
                (void) service_unavailable(r, error, "the daemon did not answer in time; nothing was changed");
        else if (error == -ESHUTDOWN)
                (void) service_unavailable(r, error, "the daemon is stopping");
        else if (error < 0)
                (void) service_fail(s, r, error, "the call", 0);
        else if (c->error < 0) {
                error = c->error;
                *r = c->refusal;
        }
        call_free(c);
        return error;
}

static struct call *take_call(struct service *s) {
        pthread_mutex_lock(&s->lock);
        struct call *c = s->first_call;
        if (c) {
                unlink_call(s, c);
                c->state = CALL_RUNNING;
        }
        pthread_mutex_unlock(&s->lock);
        return c;
}

static void finish_call(struct service *s, struct call *c) {
        pthread_mutex_lock(&s->lock);
        c->state = CALL_DONE;
        bool abandoned = c->abandoned;
        if (!abandoned)
                pthread_cond_signal(&c->done); /* under the lock: the waiter frees it as soon as it can */
        pthread_mutex_unlock(&s->lock);
        if (abandoned) {
                c->type->free(c->payload);
                call_free(c);
        }
}

/* Queues the call for its next portion, behind the others. An abandoned call ends here: housekeeping takes the portions
 * of a submission back and adds those that an extension lacks. */
static bool call_again(struct service *s, struct call *c) {
        pthread_mutex_lock(&s->lock);
        bool again = !c->abandoned && !s->stopping;
        if (again) {
                c->state = CALL_QUEUED;
                c->begun = true;
                c->deadline_ns = util_now_ns() + s->deadline_ns;
                c->next = NULL;
                *s->last_call = c;
                s->last_call = &c->next;
        }
        pthread_mutex_unlock(&s->lock);
        if (again)
                return true;
        service_arm_tidy(s);
        c->error = service_unavailable(&c->refusal, -ETIMEDOUT, "the daemon did not get to the end of it");
        return false;
}

static int on_calls(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        (void) source, (void) events;
        struct service *s = userdata;
        uint64_t n;
        if (read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN && errno != EINTR)
                return -errno;
        /* a few at a time: each commit waits for the disk, and messages of the running agents wait meanwhile */
        uint64_t begin = util_now_ns();
        do {
                struct call *c = take_call(s);
                if (!c)
                        return 0;
                service_doing(s, c->type->operation);
                c->error = c->type->run(s, c->payload, &c->refusal);
                if (c->error > 0 && call_again(s, c))
                        break;
                finish_call(s, c);
        } while (util_now_ns() - begin < CALLS_NS);
        uint64_t one = 1;
        return write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN ? -errno : 0;
}

/* The machine */

static int run_look(struct service *s, void *payload, struct refusal *r) {
        (void) payload;
        int error = s->hooks.look_at_machine(s->hooks.userdata);
        if (error == -EBUSY)
                return 1; /* again, when others were served */
        if (error < 0)
                (void) refuse(r, 500, "internal-error", "",
                              "the machine's CPUs and nodes cannot be read again: %s; the daemon's log has the details",
                              strerrordesc_np(-error));
        return error;
}

int service_look_at_machine(struct service *s, struct refusal *r) {
        static const struct call_type type = {OPERATION_LOOK, run_look, free};
        void *payload = NULL;
        if (!s->hooks.look_at_machine)
                return 0;
        int error = service_call(s, &type, &payload, r);
        if (error == -ETIMEDOUT) /* a late reading changes nothing for the caller */
                return service_unavailable(r, error, "the daemon did not answer in time; nothing was changed");
        return error;
}

/* Readers */

/* One that was opened before has the writer's files. Without their names what it reads is lost with the process, and it
 * is refused as a change is. */
static int open_or_look(const struct service *s, struct reader *reader) {
        if (!reader->store)
                return store_open_beside(&reader->store, s->store);
        return store_check_files(reader->store, NULL) == -ESTALE ? -ESTALE : 0;
}

static _Thread_local bool quick;

void service_set_quick(bool is_quick) {
        quick = is_quick;
}

/* The last connection is reserved for requests that are answered at once. The caller holds the lock. */
static struct reader *find_reader(struct service *s) {
        struct reader *found = NULL;
        unsigned n = 0;
        for (unsigned i = 0; i < SERVICE_READERS; i++)
                if (!s->readers[i].busy) {
                        found = &s->readers[i];
                        n++;
                }
        return n > 1 || quick ? found : NULL;
}

int service_reader_get(struct service *s, struct reader **ret, struct refusal *r) {
        struct reader *found = NULL;
        uint64_t deadline = util_now_ns() + s->deadline_ns;
        struct timespec at = {.tv_sec = (time_t) (deadline / NSEC_PER_SEC),
                              .tv_nsec = (long) (deadline % NSEC_PER_SEC)};
        int error = 0;
        pthread_mutex_lock(&s->lock);
        while (!found && !s->stopping && error != ETIMEDOUT) {
                found = find_reader(s);
                if (!found)
                        error = pthread_cond_timedwait(&s->reader_free, &s->lock, &at);
        }
        bool stopping = s->stopping;
        if (found)
                found->busy = true;
        pthread_mutex_unlock(&s->lock);
        if (!found)
                return stopping ? service_unavailable(r, -ESHUTDOWN, "the daemon is stopping")
                                : service_unavailable(r, -ETIMEDOUT, "too many readers at once");

        error = open_or_look(s, found);
        if (error < 0) {
                service_reader_put(s, found);
                return service_fail(s, r, error, "opening the database", 0);
        }
        *ret = found;
        return 0;
}

void service_reader_put(struct service *s, struct reader *reader) {
        pthread_mutex_lock(&s->lock);
        reader->busy = false;
        pthread_cond_broadcast(&s->reader_free); /* not each of those who wait may have it */
        pthread_mutex_unlock(&s->lock);
}

/* Turns */

int service_turn_begin(struct service *s, struct turn *t, const char *what, struct refusal *r) {
        uint64_t deadline = util_now_ns() + s->deadline_ns;
        struct timespec at = {.tv_sec = (time_t) (deadline / NSEC_PER_SEC),
                              .tv_nsec = (long) (deadline % NSEC_PER_SEC)};
        int error = 0;
        pthread_mutex_lock(&s->lock);
        while (t->taken && !s->stopping && error != ETIMEDOUT)
                error = pthread_cond_timedwait(&t->over, &s->lock, &at);
        bool stopping = s->stopping, mine = !stopping && !t->taken;
        if (mine)
                t->taken = true;
        pthread_mutex_unlock(&s->lock);
        if (mine)
                return 0;
        char detail[100];
        (void) snprintf(detail, sizeof(detail), "%s is under way: try again", what);
        return stopping ? service_unavailable(r, -ESHUTDOWN, "the daemon is stopping")
                        : service_unavailable(r, -ETIMEDOUT, detail);
}

void service_turn_end(struct service *s, struct turn *t) {
        pthread_mutex_lock(&s->lock);
        t->taken = false;
        pthread_cond_signal(&t->over);
        pthread_mutex_unlock(&s->lock);
}

int service_large_begin(struct service *s, struct refusal *r) {
        return service_turn_begin(s, &s->large, "another large request", r);
}

/* Small blocks that were freed stay with the process otherwise, and each of its arenas keeps tens of megabytes. The
 * main thread, which frees what its caller has abandoned, has no time for it, and a run may be under way: the next
 * large request gives that memory back too. */
void service_large_end(struct service *s) {
        if (!pthread_equal(pthread_self(), s->main_thread))
                (void) malloc_trim(0);
        service_turn_end(s, &s->large);
}

/* Subscribers */

int service_subscribe(struct service *s, int64_t experiment_id, void (*wake)(void *userdata), void *userdata,
                      struct subscription **ret) {
        struct subscription *sub = malloc(sizeof(*sub));
        if (!sub)
                return -ENOMEM;
        pthread_mutex_lock(&s->subscriptions_lock);
        *sub = (struct subscription){.service = s,
                                     .experiment_id = experiment_id,
                                     .wake = wake,
                                     .userdata = userdata,
                                     .next = s->subscriptions};
        s->subscriptions = sub;
        pthread_mutex_unlock(&s->subscriptions_lock);
        *ret = sub;
        return 0;
}

void service_unsubscribe(struct subscription *sub) {
        if (!sub)
                return;
        struct service *s = sub->service;
        pthread_mutex_lock(&s->subscriptions_lock);
        struct subscription **p = &s->subscriptions;
        while (*p != sub)
                p = &(*p)->next;
        *p = sub->next;
        pthread_mutex_unlock(&s->subscriptions_lock);
        free(sub);
}

void service_changed(struct service *s, int64_t experiment_id) {
        pthread_mutex_lock(&s->subscriptions_lock);
        for (struct subscription *sub = s->subscriptions; sub; sub = sub->next)
                if (sub->experiment_id == 0 || sub->experiment_id == experiment_id)
                        sub->wake(sub->userdata);
        pthread_mutex_unlock(&s->subscriptions_lock);
}

void service_set_status(struct service *s, int64_t experiment_id, int64_t run_id, int64_t started_at_ms) {
        pthread_mutex_lock(&s->lock);
        s->status = (struct service_status){experiment_id, run_id, started_at_ms};
        pthread_mutex_unlock(&s->lock);
        bool measured = s->measuring;
        s->measuring = run_id != 0;
        if (s->measuring || measured)
                service_look_when_idle(s);
        if (s->measuring)
                return;
        service_arm_tidy(s);
        service_check_baselines(s);
}

const char *service_operation_name(enum service_operation operation) {
#define ROW(id, name) [OPERATION_##id] = name,
        static const char *const names[OPERATION_COUNT] = {OPERATIONS(ROW)};
#undef ROW
        return names[operation];
}

void service_doing(struct service *s, enum service_operation operation) {
        s->doing = operation;
}

void service_dispatched(struct service *s, uint64_t ns, uint64_t cpu_ns) {
        if (ns > s->holds[s->doing].longest_ns)
                s->holds[s->doing].longest_ns = ns;
        if (cpu_ns > s->holds[s->doing].longest_cpu_ns)
                s->holds[s->doing].longest_cpu_ns = cpu_ns;
        if (ns > SERVICE_LOOP_SLOW_NS)
                s->loop_slow++;
        s->doing = OPERATION_OTHER;
}

void service_measured(struct service *s) {
        s->measuring = false;
        service_arm_tidy(s);
        service_look_when_idle(s);
}

void service_set_pending_restore(struct service *s, const char *words) {
        pthread_mutex_lock(&s->lock);
        (void) snprintf(s->pending_restore, sizeof(s->pending_restore), "%s", words);
        pthread_mutex_unlock(&s->lock);
}

/* Housekeeping */

static int arm_tidy_in(struct service *s, uint64_t ns) {
        int r = sd_event_source_set_time_relative(s->tidy_source, ns / NSEC_PER_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(s->tidy_source, SD_EVENT_ONESHOT);
}

void service_arm_tidy(struct service *s) {
        int r = arm_tidy_in(s, TIDY_AFTER_NS);
        if (r < 0)
                log_warning("the database's housekeeping is not scheduled: %s", strerrordesc_np(-r));
}

/* What has failed may succeed later: pauses of 2, 4, 8 … 64 s. What is damaged stays so. */
static int tidy_later(struct service *s, int error) {
        s->tidy_pause_ns = s->tidy_pause_ns ? 2 * s->tidy_pause_ns : TIDY_AFTER_NS;
        if (s->tidy_pause_ns > TIDY_LONGEST_NS)
                s->tidy_pause_ns = TIDY_LONGEST_NS;
        if (error != s->tidy_error)
                log_warning("the database's housekeeping failed: %s; tried again %s", strerrordesc_np(-error),
                            error == -EBADMSG ? "after the next change" : "later");
        s->tidy_error = error;
        return error == -EBADMSG ? 0 : arm_tidy_in(s, s->tidy_pause_ns);
}

/* The commit that has made the log long has its caller waiting: the log is moved by an event of its own. */
static void on_grown(void *userdata) {
        struct service *s = userdata;
        int r = sd_event_source_set_enabled(s->log_source, SD_EVENT_ONESHOT);
        if (r < 0)
                log_warning("the move of the database's log is not scheduled: %s", strerrordesc_np(-r));
}

static void close_idle_readers(struct service *s) {
        pthread_mutex_lock(&s->lock);
        for (unsigned i = 0; i < SERVICE_READERS; i++)
                if (!s->readers[i].busy) {
                        store_close(s->readers[i].store);
                        s->readers[i].store = NULL;
                }
        pthread_mutex_unlock(&s->lock);
}

/* Of a store that was opened on a file system that was read-only then. */
static int write_again(struct service *s) {
        int r = store_reopen(s->store);
        if (r == -EBUSY) {
                close_idle_readers(s);
                r = store_reopen(s->store);
        }
        if (r == 0)
                r = store_on_long_log(s->store, on_grown, s);
        if (r == 0 && s->hooks.submitted)
                s->hooks.submitted(s->hooks.userdata);
        return r;
}

static int on_tidy(sd_event_source *source, uint64_t usec, void *userdata) {
        (void) source, (void) usec;
        struct service *s = userdata;
        if (s->measuring) /* the run's end arms it again */
                return 0;
        service_doing(s, OPERATION_HOUSEKEEPING);
        int written = store_is_read_only(s->store) ? write_again(s) : 0;
        if (written < 0) /* the first two are logged, or pass */
                return written == -EROFS || written == -EBUSY ? arm_tidy_in(s, TIDY_AFTER_NS) : tidy_later(s, written);
        int r = store_extend_more(s->store, 0), tidied = 1;
        if (r > 0 && s->hooks.submitted)
                s->hooks.submitted(s->hooks.userdata);
        if (r == 0 || r == -EBADMSG || r == -ENOSPC) { /* the last may end by it */
                tidied = store_tidy(s->store);
                if (r == 0 || tidied > 0)
                        r = tidied;
        }
        if (tidied == 0)
                service_check_baselines(s); /* those that were moved have waited for it */
        if (r < 0)
                return tidy_later(s, r);
        s->tidy_error = 0;
        s->tidy_pause_ns = 0;
        return r > 0 ? arm_tidy_in(s, TIDY_STEP_NS) : 0;
}

static int on_long_log(sd_event_source *source, void *userdata) {
        (void) source;
        struct service *s = userdata;
        service_doing(s, OPERATION_HOUSEKEEPING);
        int r = store_move_log(s->store);
        if (r < 0 && r != s->log_error)
                log_warning("the database's log is not moved into it: %s; tried again after the next change",
                            strerrordesc_np(-r));
        s->log_error = r;
        return 0;
}

/* Life */

static int watch_log(struct service *s, sd_event *event) {
        int r = sd_event_add_defer(event, &s->log_source, on_long_log, s);
        if (r == 0)
                r = sd_event_source_set_enabled(s->log_source, SD_EVENT_OFF);
        return r < 0 ? r : store_on_long_log(s->store, on_grown, s);
}

static int make_sources(struct service *s, sd_event *event) {
        s->calls_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (s->calls_fd < 0)
                return -errno;
        int r = sd_event_add_io(event, &s->calls_source, s->calls_fd, EPOLLIN, on_calls, s);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(event, &s->tidy_source, CLOCK_MONOTONIC, TIDY_AFTER_NS / NSEC_PER_USEC,
                                       TIDY_STEP_NS / NSEC_PER_USEC, /* the default is 250 ms */
                                       on_tidy, s);
        if (r >= 0)
                r = sd_event_source_set_priority(s->tidy_source, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = watch_log(s, event);
        return r < 0 ? r : service_watch_idle(s, event);
}

static int init_locks(struct service *s) {
        pthread_condattr_t attributes;
        int r = pthread_condattr_init(&attributes);
        if (r != 0)
                return -r;
        r = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        if (r == 0)
                r = pthread_cond_init(&s->reader_free, &attributes);
        if (r == 0) /* on Linux it allocates nothing, so the first has nothing to free */
                r = pthread_cond_init(&s->comparison.over, &attributes);
        if (r == 0)
                r = pthread_cond_init(&s->large.over, &attributes);
        if (r == 0)
                r = pthread_cond_init(&s->findings.over, &attributes);
        (void) pthread_condattr_destroy(&attributes);
        if (r != 0)
                return -r;
        /* with default attributes neither can fail on Linux */
        (void) pthread_mutex_init(&s->lock, NULL);
        (void) pthread_mutex_init(&s->subscriptions_lock, NULL);
        cache_init(&s->cache);
        (void) pthread_cond_init(&s->checker_wanted, NULL);
        return 0;
}

int service_new(struct service **ret, sd_event *event, struct store *store, const struct service_hooks *hooks) {
        struct service *s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->calls_fd = -1;
        s->idle_noise.source = (struct cpu_time){.source_fd = -1, .stat_fd = -1};
        int r = init_locks(s);
        if (r < 0) {
                free(s);
                return r;
        }
        s->store = store;
        s->hooks = *hooks;
        s->last_call = &s->first_call;
        s->main_thread = pthread_self();
        s->started_ns = util_now_ns();
        s->deadline_ns = SERVICE_DEADLINE_NS;
        s->root = strdup(hooks->root ? hooks->root : "");
        s->dir = strdup(store_dir(store));
        s->runtime_dir = hooks->runtime_dir ? strdup(hooks->runtime_dir) : NULL;
        r = s->root && s->dir && !s->runtime_dir == !hooks->runtime_dir ? make_sources(s, event) : -ENOMEM;
        if (r < 0) {
                service_free(s);
                return r;
        }
        /* A store that cannot be read does not prevent the start: the checker reports it. */
        struct baseline_record *baselines = NULL;
        size_t n_baselines = 0;
        s->has_baselines = store_baselines(s->store, 0, &baselines, &n_baselines) < 0 || n_baselines > 0;
        store_baselines_free(baselines, n_baselines);
        service_check_baselines(s);
        *ret = s;
        return 0;
}

struct admission_host service_admission_host(const struct service *s) {
        return (struct admission_host){.root = s->root,
                                       .runtime_dir = s->runtime_dir,
                                       .topology = s->hooks.topology,
                                       .queues = s->hooks.queues,
                                       .agents = s->hooks.agents,
                                       .memlock_bytes = s->hooks.memlock_bytes,
                                       .rings_are_locked = s->hooks.rings_are_locked};
}

void service_stop(struct service *s) {
        pthread_mutex_lock(&s->lock);
        s->stopping = true;
        pthread_cond_broadcast(&s->reader_free);
        pthread_cond_broadcast(&s->comparison.over);
        pthread_cond_broadcast(&s->large.over);
        pthread_cond_broadcast(&s->findings.over);
        pthread_cond_signal(&s->checker_wanted);
        pthread_mutex_unlock(&s->lock);
        for (struct call *c; (c = take_call(s));) {
                c->error = service_unavailable(&c->refusal, -ESHUTDOWN, "the daemon is stopping");
                finish_call(s, c);
        }
}

void service_free(struct service *s) {
        if (!s)
                return;
        service_stop(s);
        service_join_checker(s);
        sd_event_source_disable_unref(s->calls_source);
        sd_event_source_disable_unref(s->tidy_source);
        sd_event_source_disable_unref(s->look_source);
        idle_noise_deinit(&s->idle_noise);
        if (s->log_source)
                (void) store_on_long_log(s->store, NULL, NULL); /* which is freed next: nothing is lost by an error */
        sd_event_source_disable_unref(s->log_source);
        util_close(s->calls_fd);
        for (unsigned i = 0; i < SERVICE_READERS; i++)
                store_close(s->readers[i].store);
        (void) pthread_cond_destroy(&s->reader_free);
        (void) pthread_cond_destroy(&s->comparison.over);
        (void) pthread_cond_destroy(&s->large.over);
        (void) pthread_cond_destroy(&s->findings.over);
        (void) pthread_cond_destroy(&s->checker_wanted);
        (void) pthread_mutex_destroy(&s->lock);
        (void) pthread_mutex_destroy(&s->subscriptions_lock);
        cache_deinit(&s->cache);
        free(s->root);
        free(s->runtime_dir);
        free(s->dir);
        free(s);
}
