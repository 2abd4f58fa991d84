/* SPDX-License-Identifier: MIT */

/*
 * The beginning of a run: its directory, cgroup and IPC namespace, then a program for each agent, or one program that
 * makes the memory of both and forks the second, which is met when its pid is known. Called by the runner.
 */

#include "daemon/run/launch.h"

#include "daemon/admission/queues.h"
#include "daemon/log.h"
#include "daemon/run/sandbox/cgroup.h"
#include "daemon/run/sandbox/file-limits.h"
#include "daemon/run/watch/agent-output.h"
#include "schema/transport/ring-layout.h"
#include "schema/util.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define WORDS_MAX 700u
#define STRAYS_LOOK_MS 5

static void fail(struct launch *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct launch *l, const char *format, ...) {
        char words[WORDS_MAX];
        va_list ap;
        va_start(ap, format);
        (void) vsnprintf(words, sizeof(words), format, ap);
        va_end(ap);
        l->ops.failed(l->ops.userdata, words);
}

static void fail_start(struct launch *l, const char *role, const struct spawn_error *error) {
        bool cloned = strcmp(error->step, "clone") == 0;
        fail(l, "%s cannot be started: %s: %s%s", role, error->step, strerrordesc_np(error->error),
             cloned ? spawn_limits_meant(error->error) : "");
}

/* --- what the agents are in --- */

/* For agents that no cgroup holds, or that may leave theirs. The owner of a cgroup and of the one above it may move
 * processes from the one to the other, and agents of the daemon's user own the cgroups that it has made. */
static void adopt_strays(struct launch *l) {
        static bool logged;
        l->adopts = true;
        int e = strays_adopt();
        if (e < 0 && !logged) {
                log_warning("what agents fork and leave behind outlives their runs: it cannot be adopted: %s",
                            strerrordesc_np(-e));
                logged = true;
        }
}

/* A run without isolation does not fail: the reason stands in its result, and once in the log. */
static void make_isolation(struct launch *l) {
        static bool logged_ipcns, logged_cgroup;
        if (!l->host->cgroups)
                (void) snprintf(l->cgroup_reason, sizeof(l->cgroup_reason), "%s", l->host->cgroup_reason);
        else {
                int e = cgroup_run_new(l->host->cgroups, l->order->run_id, &l->cgroup);
                if (e < 0)
                        (void) snprintf(l->cgroup_reason, sizeof(l->cgroup_reason), "cannot make the run's cgroup: %s",
                                        strerrordesc_np(-e));
        }
        if (l->cgroup_reason[0] && !logged_cgroup) {
                log_notice("runs have no cgroup of their own: %s", l->cgroup_reason);
                logged_cgroup = true;
        }
        if (l->cgroup_reason[0] || l->host->identity.uid == geteuid())
                adopt_strays(l);
        if (ipcns_new(l->order->queue_settings, &l->ipcns, l->ipcns_reason) < 0 && !logged_ipcns) {
                log_notice("runs have no IPC namespace of their own: %s", l->ipcns_reason);
                logged_ipcns = true;
        }
}

static int on_made(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct launch *l = userdata;
        unsigned most = run_files(l->order->point);
        (void) fd;
        (void) events;
        rundir_take_made(l->host->rundirs, &l->made);
        if (l->made.directories == 0 && l->made.names <= most)
                return 0;
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (l->made.directories > 0)
                fail(l, "an agent has made a directory in the run's directory, where there may be only files");
        else
                fail(l, "the agents have made more than %u files in the run's directory, the limit of this run", most);
        return 0;
}

/* Where directories cannot be watched, the length of each file is limited and their number is not. The source is
 * dispatched first: what an agent made explains how it ended. */
static void watch_names(struct launch *l) {
        int fd = rundir_watch(l->host->rundirs, l->run_dir_fd), e = fd;
        if (e >= 0)
                e = sd_event_add_io(l->host->event, &l->making, fd, EPOLLIN, on_made, l);
        if (e >= 0)
                e = sd_event_source_set_priority(l->making, SD_EVENT_PRIORITY_IMPORTANT);
        if (e < 0)
                log_warning("run %" PRId64 ": the files that its agents make are not counted: %s", l->order->run_id,
                            strerrordesc_np(-e));
}

/* --- an agent's process --- */

/* The request to spawn an agent, and the daemon's end of its control socket. */
struct birth {
        struct spawn_request request;
        struct agent_link_options link;
        int theirs, output; /* the agent's ends of its control socket and of its standard error */
};

static void birth_deinit(struct birth *b) {
        b->link.control_fd = util_close(b->link.control_fd);
        b->theirs = util_close(b->theirs);
        b->output = util_close(b->output);
}

static int plan_spawn(const struct launch *l, enum end end, struct spawn_request *q) {
        const struct agent_placement *p = &l->order->placement->ends[end];
        const struct runner_host *h = l->host;
        q->program_fd = h->program_fd;
        q->role = l->roles[end];
        q->run_dir_fd = l->run_dir_fd;
        q->file_bytes = run_file_bytes(l->order->point, &l->order->spec->options);
        q->cgroup_fd = l->cgroup ? cgroup_run_fd(l->cgroup) : -1;
        q->ipc_ns_fd = l->ipcns.ipc_fd;
        q->user_ns_fd = l->ipcns.user_fd;
        q->identity = h->identity;
        q->memory = p->memory;
        q->memory_nodes = p->memory_nodes;
        q->numa = h->topology->numa;
        q->affinity = h->affinity;
        return p->n_cpus ? affinity_from_list(p->cpus, p->n_cpus, &q->affinity) : 0;
}

/* A cgroup that exists may still refuse members (a threaded domain, a limit of pids). */
static int spawn_somewhere(struct launch *l, struct spawn_request *q, struct spawn_start *ret,
                           struct spawn_error *error) {
        int e = spawn_agent(q, ret, error);
        if (e >= 0 || q->cgroup_fd < 0 || strcmp(error->step, "clone") != 0)
                return e;
        log_warning("run %" PRId64 ": the cgroup takes no process: %s", l->order->run_id, strerrordesc_np(-e));
        (void) snprintf(l->cgroup_reason, sizeof(l->cgroup_reason), "the run's cgroup takes no process: %s",
                        strerrordesc_np(-e));
        q->cgroup_fd = -1;
        adopt_strays(l);
        return spawn_agent(q, ret, error);
}

/* Two agents that are started as one program, and have one standard error. */
static bool are_forked(const struct launch *l) {
        return l->n_agents > 1 && transport_terms[l->order->point->transport].by_descent;
}

static int make_output(struct launch *l, enum end end, int *ret_write_fd) {
        char who[48];
        if (are_forked(l))
                (void) snprintf(who, sizeof(who), "%s or %s", l->roles[END_FIRST], l->roles[END_SECOND]);
        else
                (void) snprintf(who, sizeof(who), "%s", l->roles[end]);
        return agent_output_new(&l->outputs[end], l->host->event, l->order->run_id, who, ret_write_fd);
}

/* peer_fd -1: the run has one agent. */
static int prepare(struct launch *l, enum end end, int peer_fd, struct birth *ret) {
        *ret = (struct birth){.request = {.peer_fd = peer_fd}, .link = {.control_fd = -1}, .theirs = -1, .output = -1};
        int e = plan_spawn(l, end, &ret->request);
        ret->link = (struct agent_link_options){.event = l->host->event,
                                                .role = l->roles[end],
                                                .setup = &l->setups[end],
                                                .cache_bytes = topology_last_cache(l->host->topology),
                                                .control_fd = -1};
        if (e == 0)
                e = agent_link_socketpair(&ret->link.control_fd, &ret->theirs);
        if (e == 0)
                e = make_output(l, end, &ret->output);
        ret->request.control_fd = ret->theirs;
        ret->request.stderr_fd = ret->output;
        if (e < 0)
                fail(l, "cannot prepare %s: %s", l->roles[end], strerrordesc_np(-e));
        return e;
}

/* Hands the running process over; on failure it is ended. */
static int hand_over(struct launch *l, enum end end, struct agent_link_options *o) {
        int e = l->ops.begun(l->ops.userdata, end, o);
        if (e < 0) {
                spawn_abort(&o->process);
                return e;
        }
        o->control_fd = -1;
        return 0;
}

static int begin(struct launch *l, enum end end, struct birth *b) {
        struct spawn_error error = {{0}, 0};
        struct spawn_start start;
        int e = spawn_somewhere(l, &b->request, &start, &error);
        if (e < 0) {
                fail_start(l, b->link.role, &error);
                return e;
        }
        b->link.process = start.process;
        l->report_fds[end] = start.report_fd;
        l->meeting.fd = start.meeting_fd;
        e = hand_over(l, end, &b->link);
        if (e == 0 && end == END_FIRST)
                l->first = start.process.pid;
        return e;
}

/* --- a forked peer --- */

static void end_meeting(struct launch *l) {
        l->meeting.source = sd_event_source_disable_unref(l->meeting.source);
        l->meeting.fd = util_close(l->meeting.fd);
        l->meeting.link.control_fd = util_close(l->meeting.link.control_fd);
}

static int on_meeting(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct launch *l = userdata;
        struct spawn_error error = {{0}, 0};
        (void) source;
        (void) events;
        int e = spawn_meet(fd, l->first, &l->meeting.forked, &l->meeting.link.process, &error);
        if (e == -EAGAIN)
                return 0;
        if (e == -EPIPE) { /* its link fails, or the timer */
                l->meeting.source = sd_event_source_disable_unref(l->meeting.source);
                return 0;
        }
        if (e < 0) {
                fail_start(l, l->meeting.link.role, &error);
                return 0;
        }
        struct agent_link_options link = l->meeting.link;
        l->meeting.link.control_fd = -1;
        end_meeting(l);
        (void) hand_over(l, END_SECOND, &link);
        util_close(link.control_fd);
        return 0;
}

/* Starts both agents from one program, which makes their shared memory and forks the second. */
static void start_forked(struct launch *l, const int peers[2]) {
        _cleanup_(birth_deinit) struct birth first = {.link = {.control_fd = -1}, .theirs = -1, .output = -1};
        _cleanup_(birth_deinit) struct birth second = {.link = {.control_fd = -1}, .theirs = -1, .output = -1};
        const struct transport_options o = options_for_point(&l->order->spec->options, l->order->point);
        if (prepare(l, END_FIRST, peers[0], &first) < 0 || prepare(l, END_SECOND, peers[1], &second) < 0)
                return;
        bool huge = o.huge_pages == TOGGLE_ON;
        uint64_t page = huge ? run_huge_page_bytes() : (uint64_t) sysconf(_SC_PAGESIZE);
        if (page == 0) {
                fail(l, "huge_pages: this kernel has none");
                return;
        }
        l->meeting.forked = (struct spawn_forked){
                .role = second.link.role,
                .control_fd = second.theirs,
                .peer_fd = peers[1],
                .affinity = second.request.affinity,
                .memory = second.request.memory,
                .memory_nodes = second.request.memory_nodes,
                .numa = second.request.numa,
                .shared_bytes = ring_layout_of(l->order->point, &o, page).area_bytes,
                .huge_pages = huge,
        };
        first.request.forked = &l->meeting.forked;
        if (begin(l, END_FIRST, &first) < 0)
                return;
        l->meeting.link = second.link;
        second.link.control_fd = -1;
        int e = sd_event_add_io(l->host->event, &l->meeting.source, l->meeting.fd, EPOLLIN, on_meeting, l);
        if (e >= 0) /* before the exit of the first agent, which a fork that fails explains */
                e = sd_event_source_set_priority(l->meeting.source, SD_EVENT_PRIORITY_IMPORTANT);
        if (e < 0)
                fail(l, "%s cannot be waited for: %s", l->meeting.link.role, strerrordesc_np(-e));
}

static void start_agents(struct launch *l) {
        int peers[2] = {-1, -1};
        if (l->n_agents > 1 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, peers) < 0) {
                fail(l, "cannot connect the agents: %s", strerrordesc_np(errno));
                return;
        }
        if (are_forked(l))
                start_forked(l, peers);
        else
                for (unsigned i = 0; i < l->n_agents; i++) {
                        _cleanup_(birth_deinit) struct birth b = {};
                        if (prepare(l, (enum end) i, peers[i], &b) < 0 || begin(l, (enum end) i, &b) < 0)
                                break;
                }
        util_close(peers[0]);
        util_close(peers[1]);
}

/* --- the interface --- */

void launch_init(struct launch *l) {
        l->run_dir_fd = l->meeting.fd = l->meeting.link.control_fd = -1;
        l->report_fds[END_FIRST] = l->report_fds[END_SECOND] = -1;
        l->ipcns = IPCNS_NONE;
}

void launch_start(struct launch *l) {
        const struct run_order *o = l->order;
        const struct agent_identity *id = &l->host->identity;
        int e = rundir_new(l->host->rundirs, o->run_id, id->change ? id->uid : (uid_t) -1, id->gid, &l->run_dir_fd);
        if (e < 0) {
                fail(l, "cannot make the run's directory: %s", strerrordesc_np(-e));
                return;
        }
        watch_names(l);
        make_isolation(l);
        if (l->ipcns_reason[0] && queues_are_used(o->point)) {
                /* a queue has no owner whose death would end it */
                fail(l, "transport %s needs an IPC namespace of the run's own: %s", transport_name(o->point->transport),
                     l->ipcns_reason);
                return;
        }
        start_agents(l);
}

bool launch_is_meeting(const struct launch *l) {
        return l->meeting.fd >= 0;
}

void launch_ready(struct launch *l, enum end end) {
        l->report_fds[end] = util_close(l->report_fds[end]);
}

bool launch_gave_up(const struct launch *l, enum end end, struct spawn_error *ret) {
        return l->report_fds[end] >= 0 && spawn_report(l->report_fds[end], ret) < 0;
}

void launch_kill(struct launch *l) {
        int e = l->cgroup ? cgroup_run_kill(l->cgroup) : 0;
        if (e < 0)
                log_error("cannot kill the cgroup of run %" PRId64 ": %s", l->order->run_id, strerrordesc_np(-e));
        if (l->meeting.fd >= 0 && l->first > 0) {
                l->unmet = l->first;
                spawn_kill_group(l->unmet);
        }
        end_meeting(l);
}

bool launch_end_strays(struct launch *l) {
        return !l->adopts || strays_end(&l->host->identity, &l->strays);
}

void launch_deinit(struct launch *l, uint64_t wait_ns) {
        uint64_t until = util_now_ns() + wait_ns;
        end_meeting(l);
        while (wait_ns > 0 && !l->removed && !launch_end_strays(l) && util_now_ns() < until)
                (void) poll(NULL, 0, STRAYS_LOOK_MS);
        l->removed = true;
        cgroup_run_end(util_steal(&l->cgroup), wait_ns); /* has logged what went wrong, and so has rundir_remove() */
        ipcns_close(&l->ipcns);
        for (unsigned i = 0; i < END_COUNT; i++) {
                agent_output_free(util_steal(&l->outputs[i]));
                l->report_fds[i] = util_close(l->report_fds[i]);
        }
        if (l->run_dir_fd >= 0) {
                l->run_dir_fd = util_close(l->run_dir_fd);
                l->making = sd_event_source_disable_unref(l->making);
                rundir_unwatch(l->host->rundirs);
                (void) rundir_remove(l->host->rundirs, l->order->run_id);
        }
}
