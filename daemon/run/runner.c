/* SPDX-License-Identifier: MIT */

/*
 * The life of one run: launch, rendezvous, barrier, window, reports, verification, removal. Owns the agents' links and
 * the launch, from runner_new() until ops->ended. The first thing that goes wrong decides the verdict; after it
 * everything is killed, and the run ends when all of it is gone.
 *
 *      STARTING -> MEASURING -> LEAVING ---\
 *          \-----------\-----------\--> KILLING -> ENDED
 */

#include "daemon/run/runner.h"

#include "daemon/admission/queues.h"
#include "daemon/log.h"
#include "daemon/result/result.h"
#include "daemon/run/launch.h"
#include "daemon/run/sandbox/cgroup.h"
#include "daemon/run/watch/watch.h"
#include "schema/detail.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <inttypes.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define INTERVAL_NS NSEC_PER_SEC
#define START_IN_NS (20 * NSEC_PER_MSEC)
#define STALL_NS (5 * NSEC_PER_SEC) /* and the message's time */
#define DEVICE_NS (10 * NSEC_PER_SEC)
#define DRAIN_NS (30 * NSEC_PER_SEC) /* for messages that still move; an agent reports a stall itself, sooner */
#define SLOWEST_BYTES_PER_NS 0.05    /* a transport that moves less than 50 MB/s of large messages has stalled */
#define DEFER_ERROR_NS (200 * NSEC_PER_MSEC)
#define DEFER_BLAME_NS NSEC_PER_SEC /* for an error that blames the peer, which may yet report its own */
#define KILL_WITHIN_NS (2 * NSEC_PER_SEC)
#define REMOVE_WITHIN_NS (10 * NSEC_PER_SEC)
#define REMOVE_LOOK_NS (5 * NSEC_PER_MSEC)
#define MEET_WITHIN_NS (5 * NSEC_PER_SEC)
#define ERROR_MAX 700u

enum runner_state { RUNNER_STARTING, RUNNER_MEASURING, RUNNER_LEAVING, RUNNER_KILLING, RUNNER_ENDED };

struct runner {
        const struct runner_host *host;
        const struct run_order *order;
        const struct runner_ops *ops;
        void *userdata;

        enum runner_state state;
        struct message_setup setups[END_COUNT];
        struct agent_link *links[END_COUNT];
        unsigned n_agents;
        struct launch launch;
        struct result result;
        struct numastat numa_before;
        struct watch *watch; /* NULL: the machine cannot be observed; logged */

        bool has_verdict;
        enum state verdict;
        char error[ERROR_MAX];
        char deferred_error[ERROR_MAX]; /* reported by an agent; held while a better explanation may come */
        bool blames;                    /* deferred_error blames the agent's peer */
        char *result_json;
        struct run_verdict flags;       /* flags only */
        struct placement_doubts doubts; /* by the proofs */

        sd_event_source *timer, *settle;
        uint64_t started_ns;
        uint64_t removed_until_ns; /* the run's end waits so long for processes and files to be gone; 0: not yet */
};

static enum end end_of(const struct runner *r, const struct agent_link *l) {
        return l == r->links[END_FIRST] ? END_FIRST : END_SECOND;
}

static uint64_t bytes_time(const struct point *p) {
        return (uint64_t) ((double) p->message_size * p->threads / SLOWEST_BYTES_PER_NS);
}

/* --- the end --- */

static void set_verdict(struct runner *r, enum state state, const char *words) {
        if (r->has_verdict)
                return;
        r->has_verdict = true;
        r->verdict = state;
        (void) snprintf(r->error, sizeof(r->error), "%s", words ? words : "");
}

static bool all_ended(const struct runner *r) {
        for (unsigned i = 0; i < r->n_agents; i++)
                if (r->links[i] && !r->links[i]->has_ended)
                        return false;
        return true;
}

static void set_timer(struct runner *r, uint64_t at_ns) {
        int e = sd_event_source_set_time(r->timer, at_ns / NSEC_PER_USEC);
        if (e >= 0)
                e = sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
        if (e < 0)
                log_error("run %" PRId64 " has no timer: %s", r->order->run_id, strerrordesc_np(-e));
}

/* The verdict is handed over from an event source of its own, not from deep inside a link's. */
static void settle_if_over(struct runner *r) {
        if (r->state == RUNNER_ENDED || !all_ended(r))
                return;
        r->state = RUNNER_ENDED;
        (void) sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
        (void) sd_event_source_set_enabled(r->settle, SD_EVENT_ONESHOT);
}

static void kill_all(struct runner *r) {
        if (r->state >= RUNNER_KILLING)
                return;
        r->state = RUNNER_KILLING;
        for (unsigned i = 0; i < r->n_agents; i++)
                if (r->links[i])
                        agent_link_stop(r->links[i]);
        for (unsigned i = 0; i < r->n_agents; i++)
                if (r->links[i])
                        agent_link_kill(r->links[i]);
        launch_kill(&r->launch);
        set_timer(r, util_now_ns() + KILL_WITHIN_NS);
        settle_if_over(r);
}

static void fail(struct runner *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct runner *r, const char *format, ...) {
        char words[ERROR_MAX];
        va_list ap;
        va_start(ap, format);
        (void) vsnprintf(words, sizeof(words), format, ap);
        va_end(ap);
        set_verdict(r, STATE_FAILED, words);
        kill_all(r);
}

/* --- words about the agents --- */

/* "own", or null where there is a reason. */
static void put_own(struct json_writer *w, const char *key, const char *reason) {
        if (reason[0])
                json_member_unknown(w, key, reason);
        else
                json_member_string(w, key, "own");
}

static void put_isolation(const struct runner *r, struct json_writer *w) {
        json_member_object(w, "isolation");
        const struct agent_identity *id = &r->host->identity;
        json_member_i64(w, "uid", id->uid);
        json_member_bool(w, "own_user", id->change);
        if (!id->change)
                json_member_string(w, "own_user_reason", "the daemon is not root: agents run as its user");
        put_own(w, "cgroup", r->launch.cgroup_reason);
        put_own(w, "ipc_namespace", r->launch.ipcns_reason);
        json_member_string(w, "capabilities", "none");
        json_member_bool(w, "no_new_privileges", true);
        /* inherited from a service manager or a container: the filter then runs in each system call */
        json_member_bool(w, "seccomp_filter", prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER);
        json_object_end(w);
}

static void put_proof(struct json_writer *w, const char *key, const struct proof_report *proof) {
        json_put_key(w, key);
        if (proof)
                proof_report_put(proof, w);
        else
                json_put_null(w);
}

static void put_proofs(const struct agent_link *l, struct json_writer *w) {
        bool ready = l->ready.type == MESSAGE_READY, report = l->report.type == MESSAGE_REPORT;
        const struct effective *effective = report  ? l->report.report.effective
                                            : ready ? l->ready.ready.effective
                                                    : NULL;
        put_proof(w, "proof", report ? l->report.report.proof : NULL);
        if (!report)
                json_member_string(w, "proof_reason", "the agent did not live to its report");
        put_proof(w, "proof_at_start", ready ? l->ready.ready.proof : NULL);
        json_put_key(w, "effective");
        if (effective)
                effective_put(effective, w);
        else
                json_put_null(w);
}

static void put_exit(const struct agent_link *l, struct json_writer *w) {
        if (l->has_status) {
                json_member_u64(w, "cpu_ns", l->cpu_ns);
                json_member_object(w, "exit");
                json_member_i64(w, l->exit_code == CLD_EXITED ? "status" : "signal", l->exit_status);
                json_object_end(w);
                return;
        }
        const char *reason = l->held ? "a tracer held the process when it had been killed"
                                     : "the kernel gave no exit status of the process";
        json_member_unknown(w, "cpu_ns", reason);
        json_member_unknown(w, "exit", reason);
}

static void put_agent(const struct runner *r, const struct agent_link *l, struct json_writer *w) {
        _cleanup_free_ char *placement = NULL;
        int e = placement_to_json(r->host->topology, &r->order->placement->ends[end_of(r, l)], &placement);
        if (e < 0 && w->error == 0)
                w->error = e;
        json_object_begin(w);
        json_member_string(w, "role", l->role);
        json_member_i64(w, "pid", l->pid);
        json_member_raw(w, "placement", placement);
        put_proofs(l, w);
        put_isolation(r, w);
        put_exit(l, w);
        json_object_end(w);
}

static int agents_to_json(const struct runner *r, char **ret) {
        struct json_writer w;
        json_writer_init(&w);
        json_array_begin(&w);
        for (unsigned i = 0; i < r->n_agents; i++)
                if (r->links[i])
                        put_agent(r, r->links[i], &w);
        json_array_end(&w);
        int e = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        return e;
}

/* Takes the probes that all ends have sent. */
static int collect_probes(const struct runner *r, struct run_probes **ret) {
        struct run_probes p = {.threads = r->order->point->threads};
        for (size_t time = 0; time < PROBE_TIMES; time++) {
                const struct probe *probes[END_COUNT] = {NULL};
                for (unsigned i = 0; i < r->n_agents; i++) {
                        if (!r->links[i] || r->links[i]->n_probes <= time)
                                goto end;
                        probes[i] = &r->links[i]->probes[time];
                        p.roles[i] = r->result.roles[i];
                        p.placements[i] = &r->order->placement->ends[i];
                }
                probe_sitting_init(&p.at[time], probes, r->n_agents);
                for (unsigned i = 0; i < r->n_agents; i++)
                        probe_sitting_add_others(&p.at[time], (enum end) i, r->links[i]->others[time],
                                                 r->links[i]->n_others[time]);
        }
end:
        if (!p.at[PROBE_BEFORE].known)
                return 0;
        struct run_probes *made = malloc(sizeof(*made));
        if (!made)
                return -ENOMEM;
        *made = p;
        *ret = made;
        return 0;
}

static void log_strays(const struct runner *r) {
        const struct strays *s = &r->launch.strays;
        char which[64] = "";
        if (s->n > 0)
                (void) snprintf(which, sizeof(which), ", %u%s, one of them pid %d (%s)", s->n,
                                s->n < STRAYS_KILLS_MAX ? "" : " or more", s->pid, s->name);
        log_error("run %" PRId64 ": processes that its agents left outside a cgroup are still there %.0f s after the "
                  "agents' end%s",
                  r->order->run_id, (double) REMOVE_WITHIN_NS / 1e9, which);
}

/* The next run is not measured beside what is left of this one, but does not wait for its end for ever. */
static bool is_removed(struct runner *r) {
        uint64_t now = util_now_ns();
        if (r->removed_until_ns == 0) {
                r->removed_until_ns = now + REMOVE_WITHIN_NS;
                if (r->launch.cgroup)
                        (void) cgroup_run_kill(r->launch.cgroup); /* cgroup_run_end() reports that it cannot */
        }
        bool late = now >= r->removed_until_ns, alone = launch_end_strays(&r->launch);
        if (!late && (!alone || (r->launch.cgroup && !cgroup_run_is_empty(r->launch.cgroup))))
                return false;
        if (!alone)
                log_strays(r);
        launch_deinit(&r->launch, 0);
        bool no_child = spawn_reap_strays();
        return late || ((no_child || r->launch.unmet == 0) && rundir_settle(r->host->rundirs, 0));
}

static int on_settle(sd_event_source *source, void *userdata) {
        struct runner *r = userdata;
        struct run_verdict v = r->flags;
        (void) source;
        if (!is_removed(r)) {
                set_timer(r, util_now_ns() + REMOVE_LOOK_NS);
                return 0;
        }
        v.state = r->verdict;
        if (agents_to_json(r, &v.agents_json) < 0 || collect_probes(r, &v.probes) < 0) {
                v.state = STATE_FAILED;
                (void) snprintf(r->error, sizeof(r->error), "out of memory");
        }
        v.result_json = v.state == STATE_DONE ? util_steal(&r->result_json) : NULL;
        v.error = r->error[0] ? strdup(r->error) : NULL;
        r->ops->ended(r->userdata, &v);
        return 0;
}

/* --- the agents' words --- */

static bool violated(struct runner *r, const struct agent_link *l, const struct proof_report *proof) {
        char detail[DETAIL_MAX] = "";
        int e = placement_verify(&r->order->placement->ends[end_of(r, l)], r->order->point, end_of(r, l), proof,
                                 &r->doubts, detail);
        if (e == 0)
                return false;
        if (e == -EPERM)
                fail(r, "placement_violated: %s: %s", l->role, detail);
        else
                fail(r, "%s (pid %d) sent a placement proof that cannot be read: %s", l->role, l->pid,
                     detail[0] ? detail : strerrordesc_np(-e));
        return true;
}

static void plan_deadline(struct runner *r, uint64_t start_ns) {
        const struct message_setup *s = &r->setups[END_FIRST];
        uint64_t deadline = r->started_ns + r->order->timeout_ns;
        if (s->duration_ns) {
                uint64_t over = start_ns + s->warmup_ns + s->duration_ns + DRAIN_NS + 2 * bytes_time(&s->point);
                deadline = over < deadline ? over : deadline;
        }
        set_timer(r, deadline);
}

/* Starts the observation of the machine. A run that cannot be observed goes on, with a flag, and a reason in the place
 * of "noise" in its result. */
static void observe(struct runner *r) {
        const struct watch_order order = {
                .event = r->host->event,
                .topology = r->host->topology,
                .placement = r->order->placement,
                .point = r->order->point,
                .pids = {r->links[END_FIRST]->pid, r->n_agents > 1 ? r->links[END_SECOND]->pid : 0},
                .cgroup_fd = r->launch.cgroup ? cgroup_run_fd(r->launch.cgroup) : -1,
                .root = r->host->root ? r->host->root : "",
                .environment = r->order->environment,
        };
        int e = watch_new(&r->watch, &order);
        if (e >= 0)
                return;
        r->result.noise_error = e;
        log_warning("run %" PRId64 ": the machine cannot be observed: %s", r->order->run_id, strerrordesc_np(-e));
        if (r->flags.n_flags < RUN_FLAGS_MAX)
                r->flags.flags[r->flags.n_flags++] = WATCH_FLAG_NOT_OBSERVED;
}

/* How long the agent stood still that did so the longest; -1: it is not known of each. */
static int64_t longest_stop(const struct runner *r) {
        int64_t longest = 0;
        for (unsigned i = 0; i < r->n_agents; i++) {
                const struct effective_row *row =
                        effective_find(r->links[i]->report.report.effective, SETTING_STOPPED_NS);
                if (!row || row->kind != EFFECTIVE_NUMBER || row->number > INT64_MAX)
                        return -1;
                if ((int64_t) row->number > longest)
                        longest = (int64_t) row->number;
        }
        return longest;
}

/* When the end that measured longest was over; 0: nothing was counted. */
static uint64_t window_end(const struct runner *r) {
        uint64_t longest = 0;
        for (unsigned i = 0; i < r->n_agents; i++)
                if (r->result.reports[i]->window_ns > longest)
                        longest = r->result.reports[i]->window_ns;
        return r->result.begin_ns ? r->result.begin_ns + longest : 0;
}

static int conclude_watch(struct runner *r) {
        size_t n = 0;
        if (!r->watch)
                return 0;
        watch_end(r->watch, &(struct watch_report){.begin_ns = r->result.begin_ns,
                                                   .begin_ms = r->result.begun_ms,
                                                   .end_ns = window_end(r),
                                                   .stopped_ns = longest_stop(r)});
        r->result.beside = watch_disturbance(r->watch);
        int e = watch_result(r->watch, &r->result.noise_json, r->flags.flags + r->flags.n_flags,
                             RUN_FLAGS_MAX - r->flags.n_flags, &n);
        r->flags.n_flags += n;
        return e;
}

static void on_ready(void *userdata, struct agent_link *l) {
        struct runner *r = userdata;
        if (violated(r, l, l->ready.ready.proof))
                return;
        launch_ready(&r->launch, end_of(r, l));
        for (unsigned i = 0; i < r->n_agents; i++)
                if (!r->links[i] || r->links[i]->state != AGENT_READY)
                        return;
        observe(r);
        uint64_t start = util_now_ns() + START_IN_NS;
        for (unsigned i = 0; i < r->n_agents; i++) {
                int e = agent_link_start(r->links[i], start);
                if (e < 0) {
                        fail(r, "%s (pid %d) cannot be started: %s", r->links[i]->role, r->links[i]->pid,
                             strerrordesc_np(-e));
                        return;
                }
        }
        const struct message_setup *s = &r->setups[END_FIRST];
        int e = r->watch ? watch_start(r->watch, start + s->warmup_ns, s->duration_ns) : 0;
        if (e < 0) {
                fail(r, "the timer of the window's seconds cannot be set: %s", strerrordesc_np(-e));
                return;
        }
        numastat_take(r->host->root ? r->host->root : "", &r->numa_before);
        r->state = RUNNER_MEASURING;
        plan_deadline(r, start);
        log_debug("run %" PRId64 ": agents are ready %.1f ms after the run began", r->order->run_id,
                  (double) (start - START_IN_NS - r->started_ns) / 1e6);
}

/* Stops, each of which ends with its part, and what was sent again. */
static int note_parts(struct runner *r, enum end end, const struct message_parts *parts) {
        const struct message_sent_again *again = &parts->sent_again;
        struct disturbance_note note = {.end = end, .what = DISTURBANCE_STOP_NS, .end_ns = parts->begin_ns};
        int e = 0;
        for (uint32_t i = 0; e == 0 && i < parts->n; i++) {
                note.n = (int64_t) parts->list[i].stopped_ns;
                note.end_ns += parts->list[i].interval_ns;
                note.begin_ns = note.end_ns - parts->list[i].stopped_ns;
                e = watch_note(r->watch, &note);
        }
        const struct {
                enum disturbance_noted what;
                enum sent_again_known from;
                uint64_t n;
        } counts[] = {{DISTURBANCE_SENT_AGAIN, SENT_AGAIN_SEGMENTS, again->segments},
                      {DISTURBANCE_SPURIOUS, SENT_AGAIN_SEGMENTS, again->spurious},
                      {DISTURBANCE_TIMED_OUT, SENT_AGAIN_TIMEOUTS, again->timeouts}};
        note.begin_ns = parts->begin_ns;
        for (size_t i = 0; e == 0 && i < ELEMENTS(counts); i++) {
                note.what = counts[i].what;
                note.n = again->known < counts[i].from ? -1 : (int64_t) counts[i].n;
                e = watch_note(r->watch, &note);
        }
        return e;
}

static int note_migrations(struct runner *r, enum end end, const struct message_sample *s) {
        const struct usage *u = &s->counters.usage;
        const struct disturbance_note note = {.begin_ns = s->begin_ns,
                                              .end_ns = s->begin_ns + s->interval_ns,
                                              .end = end,
                                              .what = DISTURBANCE_MIGRATIONS,
                                              .n = u->migrations_error ? -1 : (int64_t) u->migrations};
        return watch_note(r->watch, &note);
}

static void on_parts(void *userdata, struct agent_link *l, const struct message_parts *parts) {
        struct runner *r = userdata;
        if (result_add_parts(&r->result, end_of(r, l), parts) < 0 || note_parts(r, end_of(r, l), parts) < 0)
                fail(r, "out of memory");
}

static void on_sample(void *userdata, struct agent_link *l, struct message_sample *s) {
        struct runner *r = userdata;
        struct sample_record record = {
                .experiment_id = r->order->experiment_id,
                .run_id = r->order->run_id,
                .agent = strdup(l->role),
                .thread = s->thread,
                .second = s->second,
                .begin_ns = s->begin_ns,
                .interval_ns = s->interval_ns,
                .messages = s->messages,
                .bytes = s->bytes,
                .latency_sum_ns = s->latency ? s->latency->sum_ns : 0,
                .latency_v2 = util_steal(&s->latency_v2),
                .latency_length = s->latency_length,
        };
        if (!record.agent || counters_to_json(&s->counters, &record.counters_json) < 0 ||
            result_add_sample(&r->result, end_of(r, l), s) < 0 || note_migrations(r, end_of(r, l), s) < 0) {
                sample_record_deinit(&record);
                fail(r, "out of memory");
                return;
        }
        r->ops->sample(r->userdata, &record);
}

/* The samples are the window, cut into seconds. */
static bool samples_incomplete(struct runner *r, const struct agent_link *l) {
        const struct message_report *m = &l->report.report;
        if (l->sampled_ns != m->window_ns) {
                fail(r,
                     "counts_disagree: samples of %s (pid %d) add up to %" PRIu64
                     " ns, its report has a window of %" PRIu64 " ns",
                     l->role, l->pid, l->sampled_ns, m->window_ns);
                return true;
        }
        if (l->sampled_messages == m->messages && l->sampled_bytes == m->bytes && l->parts_messages == m->messages)
                return false;
        fail(r,
             "counts_disagree: samples of %s (pid %d) add up to %" PRIu64 " messages (%" PRIu64
             " bytes), their parts to %" PRIu64 ", its report has %" PRIu64 " (%" PRIu64 " bytes)",
             l->role, l->pid, l->sampled_messages, l->sampled_bytes, l->parts_messages, m->messages, m->bytes);
        return true;
}

/* Compares the totals of the threads with the report, too. */
static bool threads_incomplete(struct runner *r, const struct agent_link *l) {
        const struct message_report *m = &l->report.report;
        uint64_t messages = 0, bytes = 0;
        for (uint32_t i = 0; i < l->n_threads && messages <= m->messages && bytes <= m->bytes; i++) {
                messages += l->threads[i].messages;
                bytes += l->threads[i].bytes;
        }
        if (messages == m->messages && bytes == m->bytes)
                return false;
        fail(r,
             "counts_disagree: threads of %s (pid %d) add up to %" PRIu64 " messages (%" PRIu64
             " bytes), its report has %" PRIu64 " (%" PRIu64 " bytes)",
             l->role, l->pid, messages, bytes, m->messages, m->bytes);
        return true;
}

static struct clock_offset clock_offset(const struct runner *r) {
        const struct probe *probes[PROBE_TIMES][END_COUNT] = {{NULL}};
        for (unsigned end = 0; end < r->n_agents; end++)
                for (uint32_t time = 0; time < r->links[end]->n_probes; time++)
                        probes[time][end] = &r->links[end]->probes[time];
        return clock_offset_of(probes);
}

static void on_reported(void *userdata, struct agent_link *l) {
        struct runner *r = userdata;
        char detail[DETAIL_MAX];
        if (violated(r, l, l->report.report.proof) || samples_incomplete(r, l) || threads_incomplete(r, l))
                return;
        r->result.reports[end_of(r, l)] = &l->report.report;
        r->result.threads[end_of(r, l)] = l->threads;
        for (unsigned i = 0; i < r->n_agents; i++)
                if (r->links[i]->state != AGENT_REPORTED)
                        return;
        if (result_check(&r->result, detail) < 0) {
                fail(r, "%s", detail);
                return;
        }
        struct numastat after;
        numastat_take(r->host->root ? r->host->root : "", &after);
        numastat_subtract(&r->result.numa, &after, &r->numa_before);
        r->result.clock_offset = clock_offset(r);
        int e = conclude_watch(r);
        if (e == 0)
                e = result_judge(&r->result);
        if (e == 0)
                e = result_to_json(&r->result, &r->result_json);
        if (e < 0) {
                fail(r, "%s", e == -ENOMEM ? "out of memory" : "a report lacks figures that the result is made of");
                return;
        }
        result_flags(&r->result, &r->flags);
        if (r->doubts.migrations_unknown && r->flags.n_flags < RUN_FLAGS_MAX)
                r->flags.flags[r->flags.n_flags++] = "migrations_unknown";
        if (r->doubts.pages_moved && r->flags.n_flags < RUN_FLAGS_MAX)
                r->flags.flags[r->flags.n_flags++] = "pages_moved";
        r->state = RUNNER_LEAVING;
        (void) sd_event_source_set_enabled(r->timer, SD_EVENT_OFF); /* the links have their deadline */
        for (unsigned i = 0; i < r->n_agents; i++)
                agent_link_dismiss(r->links[i]);
}

/* An agent that has ended before its program began has left the reason behind. */
static bool gave_up_starting(struct runner *r, const struct agent_link *l) {
        struct spawn_error error = {{0}, 0};
        if (!launch_gave_up(&r->launch, end_of(r, l), &error))
                return false;
        fail(r, "%s cannot be started: %s: %s", l->role, error.step, strerrordesc_np(error.error));
        return true;
}

/* An error that an agent reports ("the other end is gone") may be the consequence of a failure that the daemon is about
 * to detect itself, so it is deferred. */
static void on_failed(void *userdata, struct agent_link *l, enum agent_failure failure, const char *words) {
        struct runner *r = userdata;
        bool blames = failure == AGENT_BLAMED_PEER, silent = failure == AGENT_WENT_SILENT;
        char error[ERROR_MAX];
        if (failure == AGENT_DIED && gave_up_starting(r, l))
                return;
        (void) snprintf(error, sizeof(error), "%s", words);
        for (unsigned i = 0; (blames || silent) && i < r->n_agents; i++)
                if (r->links[i])
                        agent_link_append_stopped(r->links[i], r->links[i] != l, error, sizeof(error));
        if (!blames && failure != AGENT_REPORTED_ERROR) {
                fail(r, "%s", error);
                return;
        }
        if (r->has_verdict || (r->deferred_error[0] && (blames || !r->blames)))
                return;
        r->blames = blames;
        (void) snprintf(r->deferred_error, sizeof(r->deferred_error), "%s", error);
        set_timer(r, util_now_ns() + (blames ? DEFER_BLAME_NS : DEFER_ERROR_NS));
}

static void on_ended(void *userdata, struct agent_link *l) {
        struct runner *r = userdata;
        (void) l;
        if (!all_ended(r))
                return;
        if (r->deferred_error[0])
                fail(r, "%s", r->deferred_error);
        if (r->state == RUNNER_LEAVING)
                set_verdict(r, STATE_DONE, NULL);
        settle_if_over(r);
}

static const struct agent_link_ops link_ops = {.ready = on_ready,
                                               .parts = on_parts,
                                               .sample = on_sample,
                                               .reported = on_reported,
                                               .failed = on_failed,
                                               .ended = on_ended};

static void append_held(struct runner *r, const struct agent_link *l, pid_t tracer) {
        char who[48] = "that is not seen from here";
        size_t n = strlen(r->error);
        if (tracer > 0)
                (void) snprintf(who, sizeof(who), "(pid %d)", tracer);
        (void) snprintf(r->error + n, sizeof(r->error) - n, "%s%s (pid %d) was killed, and a tracer %s holds it",
                        n ? "; " : "", l->role, l->pid, who);
        log_warning("run %" PRId64 ": %s (pid %d) was killed, and a tracer %s holds it: the run ends without its exit "
                    "status",
                    r->order->run_id, l->role, l->pid, who);
}

/* An agent that a tracer holds does nothing any more. No next run starts beside any other that is still there: it is
 * waited for, and logged again. */
static void look_at_killed(struct runner *r) {
        set_timer(r, util_now_ns() + KILL_WITHIN_NS);
        for (unsigned i = 0; i < r->n_agents; i++) {
                struct agent_link *l = r->links[i];
                pid_t tracer = 0;
                if (!l || l->has_ended)
                        continue;
                if (agent_link_leave_to_tracer(l, &tracer))
                        append_held(r, l, tracer);
                else if (!l->has_ended)
                        log_error("%s (pid %d) of run %" PRId64 " was killed and is still there", l->role, l->pid,
                                  r->order->run_id);
        }
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        struct runner *r = userdata;
        (void) source;
        (void) usec;
        if (r->state == RUNNER_ENDED) /* is_removed() looks again */
                (void) sd_event_source_set_enabled(r->settle, SD_EVENT_ONESHOT);
        else if (r->state == RUNNER_KILLING)
                look_at_killed(r);
        else if (r->deferred_error[0])
                fail(r, "%s", r->deferred_error);
        else if (launch_is_meeting(&r->launch))
                fail(r, "%s (pid %d) has not forked %s within %.0f s", r->links[END_FIRST]->role,
                     r->links[END_FIRST]->pid, r->launch.roles[END_SECOND], (double) MEET_WITHIN_NS / 1e9);
        else if (util_now_ns() >= r->started_ns + r->order->timeout_ns)
                fail(r, "the run took longer than the limit run_timeout, %.0f s", (double) r->order->timeout_ns / 1e9);
        else
                fail(r, "the run did not end within %.0f s of its window's end",
                     (double) (DRAIN_NS + 2 * bytes_time(r->order->point)) / 1e9);
        return 0;
}

/* --- the beginning --- */

static void plan_setup(struct runner *r, enum end end) {
        const struct run_order *o = r->order;
        struct transport_options options = options_for_point(&o->spec->options, o->point);
        if (queues_are_used(o->point))
                options.msgq_depth =
                        options_queue_depth(&options, o->chunk_bytes ? o->chunk_bytes : o->point->message_size);
        uint64_t total = window_end_messages(&o->spec->end, o->point);
        r->setups[end] = (struct message_setup){
                .end = end,
                .point = *o->point,
                .verify = o->spec->verify,
                .duration_ns = o->spec->end.duration_ns,
                .messages = total / o->point->threads,
                .messages_over = total % o->point->threads,
                .warmup_ns = o->spec->warmup_ns,
                .interval_ns = INTERVAL_NS,
                .stall_ns =
                        STALL_NS + bytes_time(o->point) + (options.file_sync == FILE_SYNC_PAGE_CACHE ? 0 : DEVICE_NS),
                .rate = spec_point_rate(o->spec, o->point) / o->point->threads,
                .chunk_bytes = o->chunk_bytes,
                .options = options,
                .placement = o->placement->ends[end],
                .probes = true,
                .fresh = o->spec->fresh,
                .stamp = o->spec->stamp,
        };
}

static int on_begun(void *userdata, enum end end, struct agent_link_options *o) {
        struct runner *r = userdata;
        o->ops = &link_ops;
        o->userdata = r;
        if (end == END_SECOND && !r->deferred_error[0])
                (void) sd_event_source_set_enabled(r->timer, SD_EVENT_OFF); /* it has met its forked peer */
        int e = agent_link_new(&r->links[end], o);
        if (e < 0)
                fail(r, "%s (pid %d) cannot be watched: %s", o->role, o->process.pid, strerrordesc_np(-e));
        return e;
}

static void on_launch_failed(void *userdata, const char *words) {
        fail(userdata, "%s", words);
}

static void start(struct runner *r) {
        const struct run_order *o = r->order;
        uint64_t planned = o->spec->warmup_ns + o->spec->end.duration_ns;
        if (planned > o->timeout_ns) {
                fail(r, "the spec takes %.0f s, the limit run_timeout is %.0f s", (double) planned / 1e9,
                     (double) o->timeout_ns / 1e9);
                return;
        }
        for (unsigned i = 0; i < r->n_agents; i++)
                plan_setup(r, (enum end) i);
        launch_start(&r->launch);
        if (launch_is_meeting(&r->launch))
                set_timer(r, util_now_ns() + MEET_WITHIN_NS);
}

int runner_new(struct runner **ret, const struct runner_host *host, const struct run_order *order,
               const struct runner_ops *ops, void *userdata) {
        struct runner *r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        r->host = host;
        r->order = order;
        r->ops = ops;
        r->userdata = userdata;
        r->started_ns = util_now_ns();
        r->n_agents = workload_agents(order->point->workload);
        r->result.order = order;
        for (unsigned i = 0; i < r->n_agents; i++)
                r->result.roles[i] = role_name(order->point->workload, order->point->transport, (enum end) i);
        r->launch = (struct launch){.host = host,
                                    .order = order,
                                    .roles = {r->result.roles[END_FIRST], r->result.roles[END_SECOND]},
                                    .n_agents = r->n_agents,
                                    .setups = r->setups,
                                    .ops = {.begun = on_begun, .failed = on_launch_failed, .userdata = r}};
        launch_init(&r->launch);
        int e = sd_event_add_defer(host->event, &r->settle, on_settle, r);
        if (e >= 0)
                e = sd_event_source_set_enabled(r->settle, SD_EVENT_OFF);
        if (e >= 0)
                e = sd_event_add_time(host->event, &r->timer, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_timer, r);
        if (e < 0) {
                runner_free(r);
                return e;
        }
        start(r);
        *ret = r;
        return 0;
}

void runner_stop(struct runner *r, enum state as, const char *words) {
        set_verdict(r, as, words);
        kill_all(r);
}

void runner_free(struct runner *r) {
        if (!r)
                return;
        for (unsigned i = 0; i < END_COUNT; i++)
                agent_link_free(r->links[i]);
        sd_event_source_disable_unref(r->timer);
        sd_event_source_disable_unref(r->settle);
        launch_deinit(&r->launch, KILL_WITHIN_NS);
        watch_free(r->watch);
        result_deinit(&r->result);
        free(r->result_json);
        free(r);
}

void run_verdict_deinit(struct run_verdict *v) {
        free(v->error);
        free(v->agents_json);
        free(v->result_json);
        free(v->probes);
        *v = (struct run_verdict){0};
}
