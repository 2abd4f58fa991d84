/* SPDX-License-Identifier: MIT */

/* A runner in miniature; see driver.h. */

#include "tests/bench/driver.h"

#include "schema/detail.h"
#include "schema/measure/perf-pass.h"
#include "schema/transport/ring-layout.h"
#include "schema/util.h"
#include "tests/unit/effective.h"
#include "tests/unit/proof-report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define READY_NS (180 * NSEC_PER_SEC) /* a thousand threads under a sanitizer, on a machine with other work */
#define MESSAGE_NS (20 * NSEC_PER_SEC)
#define FOUND 23                        /* a sanitizer's finding ends an agent with this status: tools/lib.sh */
#define END_NS (20 * NSEC_PER_SEC)      /* from the hang-up; a sanitizer looks for leaks meanwhile */
#define COLLECT_NS (180 * NSEC_PER_SEC) /* beyond the window */
#define START_NS (10 * NSEC_PER_MSEC)

static int complain(struct driver *d, int error, const char *what) {
        if (d->trouble[0] == '\0')
                (void) snprintf(d->trouble, sizeof d->trouble, "%s: %s", what, strerrordesc_np(error));
        return -error;
}

struct driver_spec driver_spec_default(const char *agent) {
        return (struct driver_spec){
                .agent = agent,
                .point = {.workload = WORKLOAD_STREAM,
                          .transport = TRANSPORT_PIPE,
                          .message_size = 4096,
                          .threads = 1,
                          .fields = SPEC_FIELDS_OF_STUDY},
                .verify = VERIFY_TOUCH,
                .interval_ns = NSEC_PER_SEC,
                .stall_ns = 20 * NSEC_PER_SEC, /* a thread of a busy machine may have no turn for seconds */
                .cpus = {-1, -1},
                .peer_fds = {-1, -1},
                .perf = &perf_source_kernel,
        };
}

/* What is at [i] goes to the agent's descriptor AGENT_CONTROL_FD + i. */
struct inherited {
        int fds[6];
        unsigned n;
};

static void pin_or_exit(int cpu) {
        cpu_set_t set;
        if (cpu < 0)
                return;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set) < 0)
                _exit(126);
}

static int real_cpu(const struct driver_spec *s, enum end end) {
        return s->lie ? s->real_cpus[end] : s->cpus[end];
}

/* In the child: descriptors to their numbers, affinity, exec. */
static __attribute__((noreturn)) void become_agent(struct driver *d, enum end end, struct inherited from,
                                                   const char *shared_bytes) {
        const struct driver_spec *s = &d->spec;
        /* up and out of the way first, so that none is overwritten before it is moved */
        for (unsigned i = 0; i < from.n; i++) {
                from.fds[i] = fcntl(from.fds[i], F_DUPFD_CLOEXEC, 20);
                if (from.fds[i] < 0)
                        _exit(126);
        }
        for (unsigned i = 0; i < from.n; i++)
                if (dup2(from.fds[i], AGENT_CONTROL_FD + (int) i) < 0)
                        _exit(126);
        pin_or_exit(real_cpu(s, end));
        if (shared_bytes)
                execl(s->agent, "ipclab-agent", d->ends[end].role, d->ends[END_SECOND].role, shared_bytes,
                      s->options.huge_pages == TOGGLE_ON ? "huge" : NULL, (char *) NULL);
        else
                execl(s->agent, "ipclab-agent", d->ends[end].role, (char *) NULL);
        _exit(127);
}

static int make_control(struct driver *d, enum end end, int *ret_theirs) {
        int control[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
                return complain(d, errno, "socketpair");
        d->ends[end].control_fd = control[0];
        *ret_theirs = control[1];
        return 0;
}

static int fork_agent(struct driver *d, enum end end, const struct inherited *from, const char *shared_bytes) {
        struct driver_end *e = &d->ends[end];
        e->pid = fork();
        if (e->pid < 0)
                return complain(d, errno, "fork");
        if (e->pid == 0)
                become_agent(d, end, *from, shared_bytes);
        return 0;
}

static int spawn(struct driver *d, enum end end, int peer_fd) {
        _cleanup_close_ int theirs = -1;
        int r = make_control(d, end, &theirs);
        if (r < 0)
                return r;
        _cleanup_close_ int dir = open(d->run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                return complain(d, errno, d->run_dir);
        /* an agent without a peer is given a device in its place, as by the daemon */
        _cleanup_close_ int no_peer = peer_fd < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
        if (peer_fd < 0 && no_peer < 0)
                return complain(d, errno, "/dev/null");
        return fork_agent(d, end, &(struct inherited){{theirs, peer_fd < 0 ? no_peer : peer_fd, dir}, 3}, NULL);
}

/* Receives the forked peer's pid, and sends it its place. The pidfd that comes along is not needed here. */
static int place_forked_peer(struct driver *d, int fd) {
        struct forked_report born = {};
        struct forked_placement place = {};
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int cpu = real_cpu(&d->spec, END_SECOND);
        if (poll(&p, 1, (int) (MESSAGE_NS / NSEC_PER_MSEC)) != 1 ||
            recv(fd, &born, sizeof born, 0) != (ssize_t) sizeof born)
                return complain(d, EPROTO, "no second agent");
        if (born.error)
                return complain(d, born.error, born.step);
        d->ends[END_SECOND].pid = born.pid;
        if (cpu >= 0)
                place.cpus[cpu / 64] = UINT64_C(1) << (cpu % 64);
        else
                memset(place.cpus, 0xff, sizeof place.cpus);
        return send(fd, &place, sizeof place, MSG_NOSIGNAL) < 0 ? complain(d, errno, "place of the second agent") : 0;
}

static uint64_t huge_page_bytes(void) {
        unsigned long long kib = 0;
        char line[128];
        _cleanup_fclose_ FILE *f = fopen("/proc/meminfo", "re");
        while (f && fgets(line, sizeof line, f))
                if (sscanf(line, "Hugepagesize: %llu kB", &kib) == 1)
                        break;
        return kib * 1024;
}

/* Both agents out of one program. */
static int spawn_forked_pair(struct driver *d, const int peer[END_COUNT]) {
        const struct driver_spec *s = &d->spec;
        uint64_t page = s->options.huge_pages == TOGGLE_ON ? huge_page_bytes() : (uint64_t) sysconf(_SC_PAGESIZE);
        struct ring_layout layout = ring_layout_of(&s->point, &s->options, page ? page : 4096);
        _cleanup_close_ int first = -1, second = -1;
        char bytes[24];
        int meeting[2];
        int r = make_control(d, END_FIRST, &first);
        if (r == 0)
                r = make_control(d, END_SECOND, &second);
        if (r < 0)
                return r;
        _cleanup_close_ int dir = open(d->run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                return complain(d, errno, d->run_dir);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, meeting) < 0)
                return complain(d, errno, "socketpair");
        (void) snprintf(bytes, sizeof bytes, "%" PRIu64, layout.area_bytes);
        struct inherited from = {{first, peer[END_FIRST], dir, second, peer[END_SECOND], meeting[1]}, 6};
        r = fork_agent(d, END_FIRST, &from, bytes);
        (void) util_close(meeting[1]);
        if (r == 0)
                r = place_forked_peer(d, meeting[0]);
        (void) util_close(meeting[0]);
        return r;
}

static int send_setup(struct driver *d, enum end end) {
        const struct driver_spec *s = &d->spec;
        int32_t cpus[1 + PROBE_OTHERS_MAX + 2];
        size_t n_cpus = s->cpus[end] < 0 ? 0 : s->cpus_listed > 0 ? s->cpus_listed : 1;
        if (n_cpus > ELEMENTS(cpus))
                return complain(d, EINVAL, "set-up");
        for (size_t i = 0; i < n_cpus; i++)
                cpus[i] = s->cpus[end];
        struct message m = {
                .type = MESSAGE_SETUP,
                .setup = {.end = end,
                          .point = s->point,
                          .verify = s->verify,
                          .duration_ns = s->duration_ns,
                          .messages = s->messages,
                          .warmup_ns = s->warmup_ns,
                          .interval_ns = s->interval_ns,
                          .rate = s->rate,
                          .stall_ns = s->stall_ns,
                          .stamp = s->stamp,
                          .fresh = s->fresh,
                          .probes = s->probes,
                          .chunk_bytes = s->chunk_bytes,
                          .options = s->options,
                          .placement = {.cpus = cpus,
                                        .n_cpus = n_cpus,
                                        .buffer = s->buffer,
                                        .buffer_nodes = s->buffer_nodes}},
        };
        int r = message_send(d->ends[end].control_fd, &m, util_now_ns() + MESSAGE_NS);
        return r < 0 ? complain(d, -r, "set-up") : 0;
}

static void take_sample(struct driver_end *e, const struct message_sample *s) {
        e->samples++;
        e->sampled_messages += s->messages;
        e->sampled_bytes += s->bytes;
        e->sampled_cpu_ns += s->counters.usage.cpu_ns;
        if (s->thread == 0)
                e->sampled_ns += s->interval_ns;
        if (s->latency)
                histogram_add(&e->latency, s->latency);
}

static void answer_count(struct driver *d, struct driver_end *e) {
        if (e->count_tid) /* should the thread be gone, the next message reports it */
                (void) perf_pass_answer(e->control_fd, d->spec.perf, e->pid, e->count_tid);
        e->count_tid = 0;
}

static void take_count(struct driver *d, struct driver_end *e, const struct message_count *m) {
        e->count_tid = m->tid;
        e->counted++;
        if (d->spec.counters == COUNTERS_GIVEN)
                answer_count(d, e);
}

/* Stores the content of one packet. */
static void take(struct driver *d, struct driver_end *e, struct message *m) {
        switch (m->type) {
        case MESSAGE_COUNT:
                take_count(d, e, &m->count);
                break;
        case MESSAGE_READY:
                if (d->spec.counters == COUNTERS_GIVEN_LATE)
                        answer_count(d, e);
                e->ready = true;
                e->proof_at_start = util_steal(&m->ready.proof);
                e->proof = proof_report_text(e->proof_at_start);
                e->effective = effective_text(m->ready.effective);
                break;
        case MESSAGE_ALIVE:
                e->alive++;
                break;
        case MESSAGE_PROBE:
                if (e->n_probes < DRIVER_PROBES_MAX)
                        e->probes[e->n_probes++] = m->probe;
                break;
        case MESSAGE_SAMPLE:
                take_sample(e, &m->sample);
                break;
        case MESSAGE_THREAD:
                e->threads++;
                e->threads_messages += m->thread.messages;
                e->threads_bytes += m->thread.bytes;
                e->threads_cpu_ns += m->thread.counters.usage.cpu_ns;
                break;
        case MESSAGE_REPORT:
                e->reported = true;
                e->report = m->report;
                m->report = (struct message_report){};
                e->proof_at_end = proof_report_text(e->report.proof);
                e->effective_at_end = effective_text(e->report.effective);
                (void) counters_to_json(&e->report.counters, &e->counters); /* the tests that read it check for NULL */
                break;
        case MESSAGE_ERROR:
                e->failed = true;
                e->error = m->error;
                break;
        default:
                break;
        }
        message_deinit(m);
}

static bool settled(const struct driver_end *e, bool for_ready) {
        return e->gone || e->failed || (for_ready ? e->ready : e->reported);
}

static int receive_one(struct driver *d, enum end end) {
        struct driver_end *e = &d->ends[end];
        struct message m;
        char detail[DETAIL_MAX] = "";
        int r = message_receive(e->control_fd, &m, util_now_ns() + MESSAGE_NS, detail);
        if (r == -ECONNRESET) {
                e->gone = true;
                return 0;
        }
        if (r < 0)
                return complain(d, -r, detail[0] ? detail : "message_receive");
        take(d, e, &m);
        return 0;
}

static int receive_both(struct driver *d, bool for_ready, uint64_t deadline_ns) {
        for (;;) {
                struct pollfd p[END_COUNT];
                bool waiting = false;
                for (enum end end = END_FIRST; end < d->n_ends; end++) {
                        bool more = !settled(&d->ends[end], for_ready);
                        p[end] = (struct pollfd){.fd = more ? d->ends[end].control_fd : -1, .events = POLLIN};
                        waiting |= more;
                }
                if (!waiting)
                        return 0;
                uint64_t now = util_now_ns();
                if (now >= deadline_ns)
                        return complain(d, ETIMEDOUT, "the agents are silent");
                if (poll(p, END_COUNT, (int) ((deadline_ns - now) / NSEC_PER_MSEC) + 1) < 0 && errno != EINTR)
                        return complain(d, errno, "poll");
                for (enum end end = END_FIRST; end < d->n_ends; end++)
                        if (p[end].fd >= 0 && p[end].revents) {
                                int r = receive_one(d, end);
                                if (r < 0)
                                        return r;
                        }
        }
}

/* An agent that closed its control socket is at its end, or soon. */
static void describe_end(const struct driver_end *e, char *ret, size_t size) {
        siginfo_t info = {.si_pid = 0};
        for (unsigned n = 0; n < 1000 && info.si_pid == 0; n++) {
                if (n)
                        (void) poll(NULL, 0, 1);
                if (waitid(P_PID, (id_t) e->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                        break;
        }
        if (info.si_pid == 0)
                (void) snprintf(ret, size, "closed its control socket and lives on");
        else
                (void) snprintf(ret, size, "ended without a message, %s %d",
                                info.si_code == CLD_EXITED ? "status" : "by signal", info.si_status);
}

/* Takes the first end's own error when an agent failed; a peer's "… is gone" only when there is nothing better. */
static int judge(struct driver *d, bool for_ready) {
        const struct driver_end *bad = NULL;
        for (enum end end = END_FIRST; end < d->n_ends; end++) {
                const struct driver_end *e = &d->ends[end];
                if (for_ready ? e->ready && !e->failed : e->reported)
                        continue;
                if (!bad || (e->failed && (!bad->failed || bad->error.fault == FAULT_PEER)))
                        bad = e;
        }
        if (!bad)
                return 0;
        char end[64];
        if (!bad->failed)
                describe_end(bad, end, sizeof end);
        if (d->trouble[0] == '\0')
                (void) snprintf(d->trouble, sizeof d->trouble, "%s: %.250s", bad->role,
                                bad->failed ? bad->error.detail : end);
        return bad->failed && bad->error.error ? -bad->error.error : -ECONNRESET;
}

static int make_peer_channel(struct driver *d, int ret[END_COUNT]) {
        if (d->spec.peer_fds[END_FIRST] >= 0) {
                memcpy(ret, d->spec.peer_fds, sizeof d->spec.peer_fds);
                return 0;
        }
        ret[END_FIRST] = ret[END_SECOND] = -1;
        if (d->n_ends > 1 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
                return complain(d, errno, "socketpair");
        return 0;
}

int driver_open(struct driver *d, const struct driver_spec *spec) {
        int peer[END_COUNT];

        *d = (struct driver){.spec = *spec, .n_ends = workload_agents(spec->point.workload)};
        for (enum end end = END_FIRST; end < END_COUNT; end++)
                d->ends[end].control_fd = -1;
        for (enum end end = END_FIRST; end < d->n_ends; end++)
                d->ends[end].role = role_name(spec->point.workload, spec->point.transport, end);
        (void) snprintf(d->run_dir, sizeof d->run_dir, "/tmp/ipclab-driver-XXXXXX");
        if (!mkdtemp(d->run_dir)) {
                d->run_dir[0] = '\0';
                return complain(d, errno, "mkdtemp");
        }
        int r = make_peer_channel(d, peer);
        if (r < 0)
                return r;
        if (d->n_ends > 1 && spec->point.transport == TRANSPORT_MMAP_ANONYMOUS)
                r = spawn_forked_pair(d, peer);
        else
                for (enum end end = END_FIRST; r == 0 && end < d->n_ends; end++)
                        r = spawn(d, end, peer[end]);
        for (enum end end = END_FIRST; end < END_COUNT; end++)
                (void) util_close(peer[end]);
        for (enum end end = END_FIRST; r == 0 && end < d->n_ends; end++)
                r = send_setup(d, end);
        if (r == 0)
                r = receive_both(d, true, util_now_ns() + READY_NS);
        return r < 0 ? r : judge(d, true);
}

int driver_start(struct driver *d) {
        struct message m = {.type = MESSAGE_START, .start = {.start_ns = util_now_ns() + START_NS}};
        for (enum end end = END_FIRST; end < d->n_ends; end++) {
                int r = message_send(d->ends[end].control_fd, &m, util_now_ns() + MESSAGE_NS);
                if (r < 0)
                        return complain(d, -r, "start");
        }
        return 0;
}

int driver_collect(struct driver *d, uint64_t deadline_ns) {
        int r = receive_both(d, false, deadline_ns);
        return r < 0 ? r : judge(d, false);
}

static int reap(struct driver_end *e) {
        uint64_t deadline_ns = util_now_ns() + END_NS;
        if (e->pid <= 0)
                return 0;
        while (waitpid(e->pid, &e->status, WNOHANG) == 0) {
                if (util_now_ns() >= deadline_ns) {
                        (void) kill(e->pid, SIGKILL);
                        (void) waitpid(e->pid, &e->status, 0);
                        e->pid = 0;
                        return -ETIMEDOUT;
                }
                (void) poll(NULL, 0, 1);
        }
        e->pid = 0;
        return 0;
}

int driver_close(struct driver *d) {
        int r = 0;
        for (enum end end = END_FIRST; end < d->n_ends; end++)
                d->ends[end].control_fd = util_close(d->ends[end].control_fd);
        for (enum end end = END_FIRST; end < d->n_ends; end++)
                if (reap(&d->ends[end]) < 0)
                        r = complain(d, ETIMEDOUT, "an agent did not end when it was hung up on");
        for (enum end end = END_FIRST; end < d->n_ends; end++)
                if (WIFEXITED(d->ends[end].status) && WEXITSTATUS(d->ends[end].status) == FOUND)
                        r = complain(d, EPROTO, "a sanitizer has found something in an agent, a leak for instance");
        if (d->run_dir[0] && rmdir(d->run_dir) < 0)
                r = complain(d, errno, "the run's directory cannot be removed");
        d->run_dir[0] = '\0';
        return r;
}

int driver_run(struct driver *d, const struct driver_spec *spec) {
        int r = driver_open(d, spec);
        if (r == 0)
                r = driver_start(d);
        if (r == 0)
                r = driver_collect(d, util_now_ns() + spec->warmup_ns + spec->duration_ns + COLLECT_NS);
        int closed = driver_close(d);
        return r < 0 ? r : closed;
}

void driver_deinit(struct driver *d) {
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                struct message m = {.type = MESSAGE_REPORT, .report = d->ends[end].report};
                message_deinit(&m);
                free(d->ends[end].proof);
                free(d->ends[end].effective);
                free(d->ends[end].effective_at_end);
                free(d->ends[end].proof_at_end);
                proof_report_free(d->ends[end].proof_at_start);
                free(d->ends[end].counters);
        }
}
