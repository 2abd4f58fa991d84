/* SPDX-License-Identifier: MIT */

/*
 * The scheduler. It owns the current run: its records, the parsed spec and point, placement, environment snapshots and
 * the samples that wait to be stored. The store selects the next run and the runner executes it. A write that the store
 * refuses is tried again with growing pauses, and no next run starts before the last one is stored.
 *
 *      IDLE -> (started) RUNNING -> (verdict) FINISHING -> (stored) IDLE
 */

#include "daemon/run/scheduler.h"

#include "daemon/admission/admission.h"
#include "daemon/host/environment/environment.h"
#include "daemon/log.h"
#include "daemon/result/probes.h"
#include "daemon/result/search.h"
#include "daemon/result/until.h"
#include "daemon/run/aside.h"
#include "daemon/run/blocks.h"
#include "daemon/run/housekeeping.h"
#include "daemon/run/notify.h"
#include "daemon/tune/tuning.h"
#include "schema/detail.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

/* Samples of one second come within a few milliseconds of each other: one transaction for all of them. */
#define FLUSH_AFTER_US 25000
#define BATCH_MAX 256u
#define MACHINE_BUSY_NS (NSEC_PER_SEC / 10) /* a submission is checked against the topology */
#define RETRY_FIRST_NS NSEC_PER_SEC
#define RETRY_LONGEST_NS (30 * NSEC_PER_SEC)
#define SETTLE_LONGEST_NS (60 * NSEC_PER_SEC)
/* Each takes up to 25 ms of CPU time, and the next run waits: 4000 samples, which is more than most runs leave. */
#define TIDY_STEPS 8u
#define WORDS_MAX 900u
#define LONG_SPEC_BYTES 65536u

enum scheduler_state { SCHEDULER_IDLE, SCHEDULER_RUNNING, SCHEDULER_FINISHING };

struct current {
        struct run_record run;
        struct experiment_record experiment;
        const struct spec *spec; /* the scheduler's, or searched */
        struct spec searched;    /* the same with the run's rate; it owns nothing */
        struct point point;
        struct run_placement placement;
        uint64_t chunk_bytes, queue_settings[QUEUE_SETTINGS];
        struct environment *before;
        struct run_order order;
        struct runner *runner;
        int machine_error; /* of reading the topology right before it */
        bool moved;        /* the daemon is out of the run's way */
        uint64_t cpu_ns;   /* the daemon's own when the run began */

        /* the outcome, to be stored */
        enum state state;
        char *error, *flags_json, *agents_json, *result_json, *environment_json, *probes_json;
};

/* A long spec that is parsed aside. */
struct parsing {
        int64_t id;
        char *text;
        struct spec *spec;
        char unreadable[WORDS_MAX];
};

/* Whether an experiment gets more runs, by the scheduler's spec: decided aside, and true of the experiment as long as
 * its record does not change. */
struct deciding {
        int64_t id, change;
        int result;
        struct until_decision until;
        uint32_t *groups; /* of the points that are compared, or of their rates */
        struct search_decision search;
};

struct scheduler {
        struct scheduler_options o;
        struct service *service;
        enum scheduler_state state;
        bool stopping;
        bool recovered;             /* runs that an earlier daemon left are in the queue again */
        struct spec *spec;          /* of the experiment whose run was the last to begin */
        int64_t spec_of;            /* its id, which is never reused */
        char unreadable[WORDS_MAX]; /* why spec is NULL: the words for a run that fails by it */
        struct aside *aside;        /* what of these two is under way */
        struct parsing parsing;
        struct deciding deciding;
        unsigned tidy_steps; /* before the next look at the queue */
        struct current c;
        struct probe_past past; /* of all runs */
        struct sample_record batch[BATCH_MAX];
        size_t n_batch;
        sd_event_source *look, *flush, *retry, *settle;
        uint64_t pause_ns, settle_pause_ns;
        int retry_error;                         /* the reason of the pause, which is logged when it changes */
        char pending_restore[TUNING_DETAIL_MAX]; /* why a setting of the host is not restored; "": all are */
};

static void look(struct scheduler *s);
static void store_outcome(struct scheduler *s);

static uint64_t own_cpu_ns(void) {
        struct rusage u;
        if (getrusage(RUSAGE_SELF, &u) < 0)
                return 0;
        return ((uint64_t) u.ru_utime.tv_sec + (uint64_t) u.ru_stime.tv_sec) * NSEC_PER_SEC +
               ((uint64_t) u.ru_utime.tv_usec + (uint64_t) u.ru_stime.tv_usec) * NSEC_PER_USEC;
}

static void doing(struct scheduler *s, enum service_operation operation) {
        if (s->service)
                service_doing(s->service, operation);
}

static void changed(struct scheduler *s) {
        if (s->service)
                service_changed(s->service, s->c.run.experiment_id);
}

static void publish_status(struct scheduler *s) {
        bool busy = s->state != SCHEDULER_IDLE;
        if (s->service)
                service_set_status(s->service, busy ? s->c.run.experiment_id : 0, busy ? s->c.run.id : 0,
                                   busy ? util_now_ms() : 0);
        if (busy)
                notify("STATUS=Run %" PRId64 " of experiment %" PRId64 " (%" PRIu32 " of %" PRIu32 ").", s->c.run.id,
                       s->c.run.experiment_id, s->c.run.position + 1, s->c.experiment.runs_total);
        else
                notify("STATUS=Idle.");
}

static void arm(sd_event_source *source, uint64_t at_ns) {
        int e = sd_event_source_set_time(source, at_ns / NSEC_PER_USEC);
        if (e >= 0)
                e = sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        if (e < 0)
                log_error("cannot set a timer: %s", strerrordesc_np(-e));
}

static const char *store_reason(int error) {
        return error == -EBADMSG ? "a page of the database is damaged (GET /health names it)" : strerrordesc_np(-error);
}

/* The disk may be full for a while: pauses of 1, 2, 4 … 30 s. */
static void retry_later(struct scheduler *s, const char *what, int error) {
        if (s->pause_ns == 0 || s->retry_error != error)
                log_error("%s: %s; it is tried again, after ever longer pauses", what, store_reason(error));
        s->retry_error = error;
        s->pause_ns = s->pause_ns ? 2 * s->pause_ns : RETRY_FIRST_NS;
        if (s->pause_ns > RETRY_LONGEST_NS)
                s->pause_ns = RETRY_LONGEST_NS;
        notify("STATUS=%s: %s.", what, store_reason(error));
        arm(s->retry, util_now_ns() + s->pause_ns);
}

/* Restores the settings of the host that earlier runs have changed. A restore that fails is tried again with growing
 * pauses, even when no run comes, and /health reports it until it succeeds. */
static int settle(struct scheduler *s) {
        int e = tuning_restore(s->o.store, s->o.root, s->pending_restore); /* has logged it */
        if (e < 0) {
                s->settle_pause_ns = s->settle_pause_ns ? 2 * s->settle_pause_ns : RETRY_FIRST_NS;
                if (s->settle_pause_ns > SETTLE_LONGEST_NS)
                        s->settle_pause_ns = SETTLE_LONGEST_NS;
                arm(s->settle, util_now_ns() + s->settle_pause_ns);
        } else {
                s->settle_pause_ns = 0;
                s->pending_restore[0] = '\0';
        }
        if (s->service)
                service_set_pending_restore(s->service, s->pending_restore);
        return e;
}

static int on_settle(sd_event_source *source, uint64_t usec, void *userdata) {
        struct scheduler *s = userdata;
        (void) source;
        (void) usec;
        if (s->state != SCHEDULER_RUNNING) /* no setting changes during a run; its end settles */
                (void) settle(s);
        return 0;
}

static void current_deinit(struct current *c) {
        runner_free(c->runner);
        run_record_deinit(&c->run);
        experiment_record_deinit(&c->experiment);
        run_placement_deinit(&c->placement);
        environment_free(c->before);
        free(c->error);
        free(c->flags_json);
        free(c->agents_json);
        free(c->result_json);
        free(c->environment_json);
        free(c->probes_json);
        *c = (struct current){0};
}

/* --- samples --- */

static void drop_batch(struct scheduler *s) {
        for (size_t i = 0; i < s->n_batch; i++)
                sample_record_deinit(&s->batch[i]);
        s->n_batch = 0;
}

/* 0 or negative errno; the batch is gone in either case. */
static int flush(struct scheduler *s) {
        if (s->n_batch == 0)
                return 0;
        doing(s, OPERATION_SAMPLES);
        int e = store_add_samples(s->o.store, s->batch, s->n_batch);
        drop_batch(s);
        if (e < 0)
                log_error("samples of run %" PRId64 " cannot be stored: %s", s->c.run.id, store_reason(e));
        else
                changed(s);
        return e;
}

static void flush_or_stop(struct scheduler *s) {
        int e = flush(s);
        if (e < 0 && s->state == SCHEDULER_RUNNING) {
                char words[WORDS_MAX];
                (void) snprintf(words, sizeof(words), "the run's samples cannot be stored: %s", store_reason(e));
                runner_stop(s->c.runner, STATE_FAILED, words);
        }
}

static int on_flush(sd_event_source *source, uint64_t usec, void *userdata) {
        (void) source;
        (void) usec;
        flush_or_stop(userdata);
        return 0;
}

static void on_sample(void *userdata, struct sample_record *sample) {
        struct scheduler *s = userdata;
        if (s->n_batch == 0)
                arm(s->flush, util_now_ns() + FLUSH_AFTER_US * NSEC_PER_USEC);
        s->batch[s->n_batch++] = *sample;
        if (s->n_batch == BATCH_MAX)
                flush_or_stop(s);
}

/* --- the end of a run --- */

static int environment_document(struct scheduler *s, const struct environment *after, uint64_t cpu_ns, char **ret) {
        _cleanup_free_ char *first = NULL, *second = NULL;
        int e = s->c.before ? environment_to_json(s->c.before, &first) : 0;
        if (e >= 0 && after)
                e = environment_to_json(after, &second);
        if (e < 0)
                return e;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        json_member_raw(&w, "before", first);
        json_member_raw(&w, "after", second);
        json_member_object(&w, "daemon");
        json_member_u64(&w, "cpu_ns", cpu_ns);
        json_member_bool(&w, "off_the_measured_cpus", s->c.moved);
        if (!s->c.moved)
                json_member_string(&w, "off_the_measured_cpus_reason",
                                   s->c.placement.n_daemon_cpus ? "the daemon's threads could not be moved"
                                                                : "nothing is pinned, or there is no other CPU");
        json_object_end(&w);
        json_put_key(&w, "build");
        build_put(&s->o.host->build, &w);
        json_object_end(&w);
        return json_writer_steal(&w, ret, NULL);
}

/* The run whose probes this one's are compared with. A stored one that cannot be read counts as none. */
static int find_reference(struct scheduler *s, const struct run_probes *p, struct probe_reference *ret) {
        char cpus[PROBE_CPUS_MAX], all[PROBE_ALL_CPUS_MAX];
        _cleanup_free_ char *text = NULL;
        int64_t id = 0;
        if (!probe_sitting_cpus(&p->at[PROBE_BEFORE], cpus))
                return 0;
        probe_sitting_compared(&p->at[PROBE_BEFORE], &p->at[PROBE_AFTER], all);
        int e = store_first_probes(s->o.store, s->c.run.experiment_id, s->c.run.id, cpus, all, &id, &text);
        if (e == 0)
                e = probe_sitting_parse(text, &ret->before);
        if (e == 0)
                ret->run_id = id;
        if (e == -EBADMSG)
                log_warning("the probes of run %" PRId64 " cannot be read: run %" PRId64 " is compared with none", id,
                            s->c.run.id);
        return e == -ENOENT || e == -EBADMSG ? 0 : e;
}

/* An extended experiment may have runs of a daemon and an agent that were built anew. */
static int put_build(const struct build *b, const char *first_environment, struct json_writer *flags) {
        _cleanup_(json_freep) struct json *root = NULL;
        int e = json_parse(first_environment, strlen(first_environment), &root, NULL);
        if (e == 0 && build_differs(b, json_get(root, "build")))
                json_put_string(flags, "environment-differs:build");
        return e == -ENOMEM ? e : 0;
}

/* What is another than before the experiment's first run. An environment that cannot be read counts as none. */
static int put_differences(struct scheduler *s, struct json_writer *flags) {
        _cleanup_free_ char *text = NULL;
        struct environment *first = NULL;
        int e = s->c.before ? store_environment(s->o.store, s->c.run.experiment_id, false, &text) : -ENOENT;
        if (e == 0)
                e = environment_parse_before(text, &first);
        if (e == -EBADMSG)
                log_warning("the environment of the first run of experiment %" PRId64 " cannot be read: run %" PRId64
                            " is compared with none",
                            s->c.run.experiment_id, s->c.run.id);
        if (e < 0)
                return e == -ENOENT || e == -EBADMSG ? 0 : e;
        environment_differs(first, s->c.before, flags);
        environment_free(first);
        return put_build(&s->o.host->build, text, flags);
}

static int flags_list(struct scheduler *s, const struct run_verdict *v, const struct environment *after, char **ret) {
        struct probe_flags probes = {0};
        struct probe_reference reference = {0};
        int e = v->probes ? find_reference(s, v->probes, &reference) : 0;
        if (e == 0 && v->probes)
                e = run_probes_judge(v->probes, &reference, &s->past, &s->c.probes_json, &probes);
        if (e < 0)
                return e;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_array_begin(&w);
        for (size_t i = 0; i < v->n_flags; i++)
                json_put_string(&w, v->flags[i]);
        if (probes.changed)
                json_put_string(&w, "machine_state_changed");
        if (probes.unknown)
                json_put_string(&w, "machine_state_unknown");
        if (s->c.before && after)
                environment_flags(s->c.before, after, &s->c.placement,
                                  &(struct flags_found){.flags = v->flags,
                                                        .n = v->n_flags,
                                                        .one_end = workload_agents(s->c.point.workload) == 1},
                                  &w);
        e = put_differences(s, &w);
        json_array_end(&w);
        if (e == 0)
                e = json_writer_steal(&w, ret, NULL);
        return e;
}

/* The texts of the outcome; a run that cannot even get these has failed. */
static void write_outcome(struct scheduler *s, const struct run_verdict *v) {
        struct environment *after = NULL;
        uint64_t cpu_ns = own_cpu_ns() - s->c.cpu_ns;
        int e = environment_take(s->o.root, s->o.host->topology, &after);
        if (e >= 0)
                e = flags_list(s, v, after, &s->c.flags_json);
        if (e >= 0)
                e = environment_document(s, after, cpu_ns, &s->c.environment_json);
        environment_free(after);
        if (e < 0 && s->c.state == STATE_DONE) {
                s->c.state = STATE_FAILED;
                free(s->c.error);
                if (asprintf(&s->c.error, "the environment after the run cannot be read: %s", strerrordesc_np(-e)) < 0)
                        s->c.error = NULL;
        }
}

static void move_back(struct scheduler *s) {
        if (!s->c.moved)
                return;
        int e = housekeeping_move(&s->o.host->affinity);
        if (e < 0)
                log_warning("the daemon cannot return to its CPUs: %s", strerrordesc_np(-e));
}

static void on_ended(void *userdata, struct run_verdict *v) {
        struct scheduler *s = userdata;
        int e = flush(s);
        doing(s, OPERATION_RUN_END);
        s->c.state = v->state;
        s->c.error = util_steal(&v->error);
        s->c.agents_json = util_steal(&v->agents_json);
        s->c.result_json = util_steal(&v->result_json);
        write_outcome(s, v);
        (void) settle(s);
        move_back(s);
        if (e < 0 && s->c.state == STATE_DONE) {
                s->c.state = STATE_FAILED;
                if (asprintf(&s->c.error, "the run's samples cannot be stored: %s", store_reason(e)) < 0)
                        s->c.error = NULL;
        }
        if (s->c.state == STATE_FAILED) {
                free(s->c.result_json);
                s->c.result_json = NULL;
        }
        run_verdict_deinit(v);
        runner_free(util_steal(&s->c.runner));
        s->state = SCHEDULER_FINISHING;
        store_outcome(s);
}

static void finish_failed(struct scheduler *s, const char *words) {
        (void) settle(s);
        s->c.state = STATE_FAILED;
        s->c.error = strdup(words);
        s->state = SCHEDULER_FINISHING;
        store_outcome(s);
}

static void log_outcome(const struct scheduler *s) {
        const struct current *c = &s->c;
        if (c->state == STATE_FAILED)
                log_warning("run %" PRId64 " of experiment %" PRId64 " failed: %s", c->run.id, c->run.experiment_id,
                            c->error ? c->error : "out of memory");
        else
                log_info("run %" PRId64 " of experiment %" PRId64 " is %s", c->run.id, c->run.experiment_id,
                         state_name(c->state));
}

/* Tidies between runs, since the service's housekeeping begins only when nothing has run for a while, and the queue may
 * never be empty. */
static void tidy_between_runs(struct scheduler *s) {
        int e = store_extend_more(s->o.store, 0);
        if (e < 0)
                log_warning("runs of an extension are not added: %s; tried again after the next run",
                            strerrordesc_np(-e));
        s->tidy_steps = TIDY_STEPS;
}

/* Each step is an event of its own. True: the look at the queue comes after the next one. */
static bool tidy_before_look(struct scheduler *s) {
        if (s->tidy_steps == 0)
                return false;
        doing(s, OPERATION_HOUSEKEEPING);
        int e = store_tidy_forgotten(s->o.store);
        s->tidy_steps = e > 0 ? s->tidy_steps - 1 : 0;
        if (e < 0)
                log_warning("samples of deleted experiments are not removed: %s; tried again after the next run",
                            strerrordesc_np(-e));
        scheduler_kick(s);
        return true;
}

static void store_outcome(struct scheduler *s) {
        const struct current *c = &s->c;
        struct run_outcome o = {.state = c->state,
                                .error = c->error,
                                .flags_json = c->flags_json,
                                .agents_json = c->agents_json,
                                .result_json = c->result_json,
                                .environment_json = c->environment_json,
                                .probes_json = c->probes_json};
        int e = c->state == STATE_INTERRUPTED ? store_interrupt_run(s->o.store, c->run.id)
                                              : store_finish_run(s->o.store, c->run.id, &o);
        if (e < 0 && e != -ENOENT && !s->stopping) {
                if (s->service)
                        service_measured(s->service); /* its removals may free the space that is missing */
                retry_later(s, "the run's outcome cannot be stored", e);
                return;
        }
        if (e == 0)
                log_outcome(s);
        else
                log_error("the outcome of run %" PRId64 " is not stored: %s", c->run.id,
                          e > 0 ? "the database is damaged" : strerrordesc_np(-e));
        changed(s);
        s->pause_ns = 0;
        s->state = SCHEDULER_IDLE;
        current_deinit(&s->c);
        publish_status(s);
        if (s->stopping) {
                s->o.stopped(s->o.userdata);
                return;
        }
        tidy_between_runs(s);
        scheduler_kick(s);
}

/* --- the beginning of a run --- */

static const struct runner_ops runner_ops = {.sample = on_sample, .ended = on_ended};

/* NULL with words[WORDS_MAX]: this version cannot read it. It was checked when it was posted. */
static struct spec *parse_text(const char *merged_json, char *words) {
        struct refusal r = {0};
        struct spec *spec = NULL;
        if (spec_parse_stored(merged_json, strlen(merged_json), &spec, &r) < 0)
                (void) snprintf(words, WORDS_MAX, "this version of ipclab cannot run the stored spec: %s %s", r.pointer,
                                r.detail);
        return spec;
}

/* An experiment's spec is parsed once for all of its runs. */
static void parse_spec(struct scheduler *s, const struct experiment_record *experiment) {
        spec_free(s->spec);
        s->spec = parse_text(experiment->merged_json, s->unreadable);
        s->spec_of = experiment->id;
}

static void parse_aside(void *userdata) {
        struct scheduler *s = userdata;
        s->parsing.spec = parse_text(s->parsing.text, s->parsing.unreadable);
}

static void on_parsed(void *userdata) {
        struct scheduler *s = userdata;
        struct parsing *p = &s->parsing;
        free(util_steal(&p->text));
        spec_free(s->spec);
        s->spec = util_steal(&p->spec);
        memcpy(s->unreadable, p->unreadable, sizeof(s->unreadable));
        s->spec_of = p->id;
        look(s);
}

/* Takes the text over. */
static int start_parsing(struct scheduler *s, int64_t id, char **text) {
        struct parsing *p = &s->parsing;
        p->id = id;
        p->text = util_steal(text);
        int r = aside_start(s->aside, parse_aside, on_parsed, s);
        if (r < 0)
                *text = util_steal(&p->text);
        return r;
}

/* The look at the queue that needs the spec comes again when it is parsed. A long text is taken over. */
static void parse_for_look(struct scheduler *s, struct experiment_record *experiment) {
        bool later = strlen(experiment->merged_json) >= LONG_SPEC_BYTES &&
                     start_parsing(s, experiment->id, &experiment->merged_json) == 0;
        if (!later) {
                parse_spec(s, experiment);
                scheduler_kick(s);
        }
}

/* NULL with words: this version cannot read it. */
static const struct spec *read_spec(struct scheduler *s, const struct experiment_record *experiment, char *words) {
        if (s->spec_of != experiment->id)
                parse_spec(s, experiment);
        if (!s->spec) {
                memcpy(words, s->unreadable, WORDS_MAX);
                s->spec_of = 0; /* memory may have been short: the next run tries again */
        }
        return s->spec;
}

/* The spec and the run's point. 0; -EINVAL with words. */
static int read_order(struct scheduler *s, char *words) {
        struct current *c = &s->c;
        int e;
        c->spec = read_spec(s, &c->experiment, words);
        if (!c->spec)
                return -EINVAL;
        if (c->run.rate > 0) {
                c->searched = *c->spec;
                c->searched.rate = (double) c->run.rate;
                c->spec = &c->searched;
        }
        e = point_from_json(c->run.point_json, strlen(c->run.point_json), &c->point);
        if (e < 0)
                (void) snprintf(words, WORDS_MAX, "this version of ipclab cannot run the stored point");
        return e;
}

/* The chunk size of the run's messages and the settings of its queues. 0; negative errno with words. */
static int plan_messages(struct scheduler *s, const struct admission_host *host, char *words) {
        struct current *c = &s->c;
        struct hostfs h;
        int e = admission_chunk_bytes(host, c->spec, &c->point, &c->chunk_bytes);
        if (e == 0)
                e = hostfs_init(&h, s->o.root);
        if (e == 0) {
                e = queues_plan(&h, host->queues, c->spec, &c->point, c->chunk_bytes, c->queue_settings);
                hostfs_deinit(&h);
        }
        if (e < 0)
                (void) snprintf(words, WORDS_MAX, "the longest message that %s takes here cannot be determined: %s",
                                transport_name(c->point.transport), strerrordesc_np(-e));
        return e;
}

/* Applies the host settings of the run. A setting that is not restored yet is named in the environment of runs that do
 * not set it. */
static int tune(struct scheduler *s, char *words) {
        struct current *c = &s->c;
        int e = settle(s);
        if (e < 0 && spec_depends_on_host(c->spec, &c->point)) {
                (void) snprintf(words, WORDS_MAX,
                                "the run depends on a setting of the host that an earlier one has "
                                "changed: %s",
                                s->pending_restore);
                return e;
        }
        return tuning_apply(s->o.store, s->o.root, s->o.host_tuning, &c->spec->tune, c->run.id, words);
}

/* CPUs come and go while a daemon lives. The kernel may have cut its affinity down to the CPUs that were online when it
 * last moved, and a topology read now would take those for all that it is allowed: so it returns to its initial
 * affinity first. */
static int read_machine(struct scheduler *s) {
        struct topology *t = s->o.host->topology;
        int e = topology_has_changed(s->o.root, t);
        if (e > 0) {
                e = housekeeping_move(&s->o.host->affinity);
                if (e == 0)
                        e = topology_reread(s->o.root, t);
                if (e == 0)
                        log_notice("CPUs, nodes or memory have come or gone, or what is allowed of them: the topology "
                                   "was read again");
        }
        return e;
}

/* The placement and the environment of the run. */
static int prepare(struct scheduler *s, char *words) {
        struct current *c = &s->c;
        const struct admission_host host = {
                .root = s->o.root, .topology = s->o.host->topology, .queues = &s->o.host->queues};
        struct refusal r = {0};
        char detail[DETAIL_MAX] = "";
        int e = read_order(s, words);
        if (e == 0 && (e = c->machine_error) < 0)
                (void) snprintf(words, WORDS_MAX, "the machine's CPUs and nodes cannot be read again: %s",
                                strerrordesc_np(-e));
        if (e < 0)
                return e;
        e = tune(s, words);
        if (e < 0)
                return e;
        e = environment_check(s->o.root, &c->spec->require, detail);
        if (e == 0)
                e = environment_check(s->o.root, &c->point.placement.require, detail);
        if (e < 0) {
                (void) snprintf(words, WORDS_MAX, "%s", detail[0] ? detail : strerrordesc_np(-e));
                return e;
        }
        e = placement_resolve(s->o.host->topology, &c->point, &c->placement, &r);
        if (e < 0) {
                (void) snprintf(words, WORDS_MAX, "%s", r.detail[0] ? r.detail : strerrordesc_np(-e));
                return e;
        }
        e = admission_check_memory(&host, c->spec, &c->point, &r);
        if (e < 0) {
                (void) snprintf(words, WORDS_MAX, "%s", r.detail[0] ? r.detail : strerrordesc_np(-e));
                return e;
        }
        e = plan_messages(s, &host, words);
        if (e < 0)
                return e;
        e = environment_take(s->o.root, s->o.host->topology, &c->before);
        if (e < 0)
                (void) snprintf(words, WORDS_MAX, "the environment before the run cannot be read: %s",
                                strerrordesc_np(-e));
        else if (environment_check_facts(c->before, &s->o.host->build, c->spec, detail) < 0) {
                (void) snprintf(words, WORDS_MAX, "%s", detail);
                e = -EPERM;
        }
        return e;
}

static void move_away(struct scheduler *s) {
        struct current *c = &s->c;
        struct affinity to;
        if (c->placement.n_daemon_cpus == 0 ||
            affinity_from_list(c->placement.daemon_cpus, c->placement.n_daemon_cpus, &to) < 0)
                return;
        int e = housekeeping_move(&to);
        if (e < 0) {
                log_warning("the daemon cannot leave the measured CPUs: %s", strerrordesc_np(-e));
                (void) housekeeping_move(&s->o.host->affinity);
        } else
                c->moved = true;
}

static void begin(struct scheduler *s) {
        char words[WORDS_MAX] = "";
        struct current *c = &s->c;
        s->state = SCHEDULER_RUNNING;
        c->cpu_ns = own_cpu_ns();
        changed(s);
        publish_status(s);
        if (prepare(s, words) < 0) {
                finish_failed(s, words);
                return;
        }
        move_away(s);
        c->order = (struct run_order){.experiment_id = c->run.experiment_id,
                                      .run_id = c->run.id,
                                      .spec = c->spec,
                                      .point = &c->point,
                                      .placement = &c->placement,
                                      .chunk_bytes = c->chunk_bytes,
                                      .timeout_ns = s->o.run_timeout_ns,
                                      .environment = c->before};
        memcpy(c->order.queue_settings, c->queue_settings, sizeof(c->order.queue_settings));
        int e = runner_new(&c->runner, s->o.host, &c->order, &runner_ops, s);
        if (e < 0) {
                move_back(s);
                (void) snprintf(words, sizeof(words), "the run cannot begin: %s", strerrordesc_np(-e));
                finish_failed(s, words);
        }
}

/* --- between runs: experiments that repeat their blocks until they know enough --- */

/* Decides by a connection to the store of its own. */
static void decide_aside(void *userdata) {
        struct scheduler *s = userdata;
        struct deciding *d = &s->deciding;
        struct experiment_record e = {0};
        struct store *reader = NULL;
        int r = store_open_beside(&reader, s->o.store);
        if (r == 0)
                r = store_experiment(reader, d->id, util_now_ms(), &e);
        if (r == 0)
                r = e.searches ? search_decide(reader, &e, s->spec, &d->search)
                               : until_decide(reader, &e, s->spec, &d->until);
        if (r == 0 && d->until.more > 0)
                r = blocks_groups(reader, d->id, s->spec, &d->groups);
        else if (r == 0 && d->search.n > 0)
                r = blocks_rate_groups(reader, d->id, s->spec, &d->search, &d->groups);
        /* The scheduler's own connection has the experiment: the file of that name is another by now, or away. */
        d->result = r == -ENOENT ? -ESTALE : r;
        experiment_record_deinit(&e);
        store_close(reader);
}

/* A decision that fails on stored data ends the experiment; one that the store refuses is tried again. */
static int conclude_unreadable(struct scheduler *s, const struct experiment_record *e, const char *words) {
        log_error("whether experiment %" PRId64 " needs more runs cannot be decided: %s", e->id, words);
        int r = store_conclude_experiment(s->o.store, e->id, NULL);
        if (r == 0 && s->service)
                service_changed(s->service, e->id);
        return r;
}

static int apply_decision(struct scheduler *s, const struct experiment_record *e) {
        const struct deciding *d = &s->deciding;
        int r = d->result;
        if (r == -EBADMSG)
                return conclude_unreadable(s, e, "what is stored of it makes no sense");
        if (r == 0 && e->searches)
                r = d->search.n > 0 ? blocks_add_rates(s->o.store, e, s->spec, &d->search, d->groups)
                                    : store_conclude_experiment(s->o.store, e->id, d->search.json);
        else if (r == 0)
                r = d->until.more > 0 ? blocks_add(s->o.store, e->id, s->spec, &d->until, d->groups)
                                      : store_conclude_experiment(s->o.store, e->id, d->until.json);
        if (r == 0 && s->service)
                service_changed(s->service, e->id);
        return r;
}

static void deciding_deinit(struct deciding *d) {
        free(d->until.json);
        free(d->groups);
        search_decision_deinit(&d->search);
        *d = (struct deciding){0};
}

/* Decides again about an experiment that a client has changed meanwhile. -ENOENT: there is none to decide about. */
static int end_deciding(struct scheduler *s) {
        struct experiment_record e;
        int r = store_undecided(s->o.store, &e);
        if (r == 0) {
                if (e.id == s->deciding.id && e.change == s->deciding.change)
                        r = apply_decision(s, &e);
                experiment_record_deinit(&e);
        }
        deciding_deinit(&s->deciding);
        return r;
}

static void on_decided(void *userdata) {
        struct scheduler *s = userdata;
        doing(s, OPERATION_DECIDE);
        int r = end_deciding(s);
        if (r < 0 && r != -ENOENT)
                retry_later(s, "whether an experiment needs more repetitions cannot be decided", r);
        else
                look(s);
}

/* 1: it is under way; 0: it has been made. */
static int decide(struct scheduler *s, const struct experiment_record *e) {
        char words[WORDS_MAX];
        doing(s, OPERATION_DECIDE);
        if (!read_spec(s, e, words))
                return conclude_unreadable(s, e, words);
        s->deciding = (struct deciding){.id = e->id, .change = e->change};
        if (aside_start(s->aside, decide_aside, on_decided, s) == 0)
                return 1;
        decide_aside(s);
        return end_deciding(s);
}

/* 0: no experiment is left to decide about; 1: that is under way, or its spec is parsed first. */
static int decide_all(struct scheduler *s) {
        struct experiment_record e;
        int r;
        while ((r = store_undecided(s->o.store, &e)) == 0) {
                if (s->spec_of == e.id)
                        r = decide(s, &e);
                else {
                        parse_for_look(s, &e);
                        r = 1;
                }
                experiment_record_deinit(&e);
                if (r != 0)
                        return r;
        }
        return r == -ENOENT ? 0 : r;
}

/* Where that cannot be written, as on a full disk, nothing runs; stored results stay readable. */
static int recover(struct scheduler *s) {
        struct recovery recovery = {0};
        int e = s->recovered ? 0 : store_recover(s->o.store, &recovery);
        if (e < 0)
                retry_later(s, "what an earlier daemon left behind cannot be queued again", e);
        s->recovered = e == 0;
        if (recovery.requeued || recovery.given_up)
                log_notice("an earlier daemon left runs behind: %" PRIu32 " are queued again, %" PRIu32
                           " have failed for good",
                           recovery.requeued, recovery.given_up);
        return e;
}

static void look(struct scheduler *s) {
        if (s->state != SCHEDULER_IDLE || s->stopping || aside_is_busy(s->aside) || recover(s) < 0 ||
            tidy_before_look(s))
                return;
        doing(s, OPERATION_RUN_START);
        int e = decide_all(s);
        if (e < 0) {
                retry_later(s, "whether an experiment needs more repetitions cannot be decided", e);
                return;
        }
        if (e > 0)
                return;
        e = store_next_run(s->o.store, &s->c.run, &s->c.experiment);
        /* The first portion of an extension may be points alone: none of its runs is in the queue yet. */
        if (e == -ENOENT && (e = store_extend_more(s->o.store, 0)) == 0)
                return;
        if (e > 0 || e == -EAGAIN) {
                scheduler_kick(s);
                return;
        }
        if (e < 0) {
                retry_later(s, "the queue cannot be read or extended", e);
                return;
        }
        if (s->spec_of != s->c.experiment.id) {
                parse_for_look(s, &s->c.experiment);
                current_deinit(&s->c);
                return;
        }
        s->c.machine_error = read_machine(s);
        if (s->c.machine_error == -EBUSY) {
                current_deinit(&s->c);
                arm(s->retry, util_now_ns() + MACHINE_BUSY_NS);
                return;
        }
        e = store_start_run(s->o.store, s->c.run.id);
        if (e != 0) {
                changed(s); /* it may have failed */
                current_deinit(&s->c);
                if (e > 0)
                        scheduler_kick(s);
                else
                        retry_later(s, "the next run cannot be marked as running", e);
                return;
        }
        s->pause_ns = 0;
        begin(s);
}

static int on_look(sd_event_source *source, void *userdata) {
        (void) source;
        look(userdata);
        return 0;
}

/* Makes a new source for each look: sd-event dispatches the source that has waited longest, and counts a defer source's
 * wait from when it was made, not from when it was last enabled. One source that is enabled again and again would
 * delay the others while one run fails after the other. */
static int look_soon(struct scheduler *s) {
        if (sd_event_source_get_enabled(s->look, NULL) > 0)
                return 0;
        s->look = sd_event_source_disable_unref(s->look);
        return sd_event_add_defer(s->o.event, &s->look, on_look, s);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        struct scheduler *s = userdata;
        (void) source;
        (void) usec;
        if (s->state == SCHEDULER_FINISHING)
                store_outcome(s);
        else
                look(s);
        return 0;
}

/* --- the object --- */

static int add_sources(struct scheduler *s) {
        sd_event *event = s->o.event;
        int e = aside_new(&s->aside, event);
        if (e >= 0)
                e = look_soon(s);
        if (e >= 0)
                e = sd_event_add_time(event, &s->flush, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_flush, s);
        if (e >= 0)
                e = sd_event_source_set_enabled(s->flush, SD_EVENT_OFF);
        if (e >= 0)
                e = sd_event_add_time(event, &s->retry, CLOCK_MONOTONIC, UINT64_MAX, 0, on_retry, s);
        if (e >= 0)
                e = sd_event_source_set_enabled(s->retry, SD_EVENT_OFF);
        if (e >= 0)
                e = sd_event_add_time(event, &s->settle, CLOCK_MONOTONIC, UINT64_MAX, 0, on_settle, s);
        if (e >= 0)
                e = sd_event_source_set_enabled(s->settle, SD_EVENT_OFF);
        return e < 0 ? e : 0;
}

int scheduler_new(struct scheduler **ret, const struct scheduler_options *o) {
        struct scheduler *s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->o = *o;
        int e = add_sources(s);
        if (e < 0) {
                scheduler_free(s);
                return e;
        }
        (void) recover(s);
        (void) settle(s);
        *ret = s;
        return 0;
}

void scheduler_set_service(struct scheduler *s, struct service *service) {
        s->service = service;
        if (service)
                service_set_pending_restore(service, s->pending_restore);
}

void scheduler_free(struct scheduler *s) {
        if (!s)
                return;
        sd_event_source_disable_unref(s->look);
        sd_event_source_disable_unref(s->flush);
        sd_event_source_disable_unref(s->retry);
        sd_event_source_disable_unref(s->settle);
        aside_free(s->aside);
        free(s->parsing.text);
        spec_free(s->parsing.spec);
        deciding_deinit(&s->deciding);
        current_deinit(&s->c);
        drop_batch(s);
        spec_free(s->spec);
        free(s);
}

void scheduler_kick(struct scheduler *s) {
        int e = look_soon(s);
        if (e < 0)
                log_error("the queue cannot be read: %s", store_reason(e));
}

int scheduler_look_at_machine(struct scheduler *s) {
        return s->state == SCHEDULER_RUNNING ? 0 : read_machine(s);
}

void scheduler_cancel_run(struct scheduler *s, int64_t run_id) {
        if (s->state == SCHEDULER_RUNNING && s->c.run.id == run_id)
                runner_stop(s->c.runner, STATE_CANCELLED, NULL);
}

void scheduler_stop(struct scheduler *s) {
        if (s->stopping)
                return;
        s->stopping = true;
        if (s->state == SCHEDULER_RUNNING)
                runner_stop(s->c.runner, STATE_INTERRUPTED, NULL);
        else if (s->state == SCHEDULER_FINISHING)
                store_outcome(s); /* the last attempt */
        else
                s->o.stopped(s->o.userdata);
}
