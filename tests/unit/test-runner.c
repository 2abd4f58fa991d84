/* SPDX-License-Identifier: MIT */

/*
 * The runner against agents that behave and agents that do not. Every case checks the verdict and its words, and that
 * nothing is left: no child, no descriptor, no file, no cgroup.
 */

#include "daemon/run/runner.h"

#include "check.h"
#include "daemon/log.h"
#include "daemon/run/sandbox/cgroup.h"
#include "daemon/run/sandbox/rundir.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RUN_ID 77
#define DEADLINE_NS (60 * NSEC_PER_SEC)

static char owner[64];
static char runtime_dir[] = "/tmp/ipclab-test-runner-XXXXXX";
static struct runner_host host;
static struct topology *topology;
static struct run_verdict verdict;
static bool over;
static unsigned n_samples;
static uint64_t sampled_messages;

static void on_sample(void *userdata, struct sample_record *sample) {
        (void) userdata;
        n_samples++;
        sampled_messages += sample->messages;
        sample_record_deinit(sample);
}

/* Without what the machine's other programs did meanwhile, which no test here is about. */
static void drop_noise(struct run_verdict *v) {
        size_t n_left = 0;
        for (size_t i = 0; i < v->n_flags; i++)
                if (strncmp(v->flags[i], "noisy:", 6) != 0 && strncmp(v->flags[i], "environment-changed:", 20) != 0)
                        v->flags[n_left++] = v->flags[i];
        v->n_flags = n_left;
}

static void on_ended(void *userdata, struct run_verdict *v) {
        (void) userdata;
        verdict = *v;
        drop_noise(&verdict);
        over = true;
}

static const struct runner_ops ops = {.sample = on_sample, .ended = on_ended};

static unsigned count_entries(const char *path) {
        unsigned n = 0;
        DIR *dir = opendir(path);
        if (!dir)
                return 0;
        while (readdir(dir))
                n++;
        closedir(dir);
        return n - 2;
}

/* The program under the name that is the wish; a hard link, since the name must show in /proc/self/exe. */
static int open_agent(const char *wish) {
        char from[512], to[512];
        const char *build = getenv("IPCLAB_BUILD_ROOT");
        (void) snprintf(from, sizeof(from), "%s/tests/unit/fake-agent", build);
        (void) snprintf(to, sizeof(to), "%s/tests/unit/fake.%d", build, getpid());
        if (mkdir(to, 0755) < 0 && errno != EEXIST)
                return -errno;
        (void) snprintf(to, sizeof(to), "%s/tests/unit/fake.%d/%s", build, getpid(), wish);
        if (link(from, to) < 0 && errno != EEXIST)
                return -errno;
        int fd = open(to, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static void close_agent(const char *wish) {
        char path[512];
        const char *build = getenv("IPCLAB_BUILD_ROOT");
        (void) snprintf(path, sizeof(path), "%s/tests/unit/fake.%d/%s", build, getpid(), wish);
        (void) unlink(path);
        *strrchr(path, '/') = 0;
        (void) rmdir(path);
        host.program_fd = util_close(host.program_fd);
}

struct order {
        struct spec spec;
        struct point point;
        struct run_placement placement;
        int32_t cpu;
        struct run_order run;
};

static void make_order(struct order *o) {
        *o = (struct order){.cpu = topology->nodes[0].cpus[0]};
        o->spec.end.duration_ns = NSEC_PER_SEC / 5;
        o->spec.warmup_ns = NSEC_PER_SEC / 20;
        o->spec.verify = VERIFY_TOUCH;
        o->point = (struct point){.message_size = 4096, .threads = 1};
        for (int i = 0; i < END_COUNT; i++)
                o->placement.ends[i] = (struct agent_placement){.cpus = &o->cpu, .n_cpus = 1};
        o->run = (struct run_order){.experiment_id = 1,
                                    .run_id = RUN_ID,
                                    .spec = &o->spec,
                                    .point = &o->point,
                                    .placement = &o->placement,
                                    .timeout_ns = 60 * NSEC_PER_SEC};
}

/* Runs to the end; false: there was none. stop_after_ns: UINT64_MAX never. */
static bool run_order(const struct run_order *order, const char *wish, uint64_t stop_after_ns, enum state stop_as) {
        struct runner *r = NULL;
        uint64_t began = util_now_ns();
        over = false;
        n_samples = 0;
        sampled_messages = 0;
        host.program_fd = open_agent(wish);
        if (host.program_fd < 0 || runner_new(&r, &host, order, &ops, NULL) < 0)
                return false;
        while (!over && util_now_ns() - began < DEADLINE_NS) {
                if (sd_event_run(host.event, 10000) < 0)
                        return false;
                if (util_now_ns() - began >= stop_after_ns) {
                        runner_stop(r, stop_as, NULL);
                        stop_after_ns = UINT64_MAX;
                }
        }
        runner_free(r);
        close_agent(wish);
        return over;
}

static char *read_proc(const char *path) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = fopen(path, "re");
        if (f && getdelim(&text, &size, 0, f) < 0)
                fprintf(stderr, "cannot read %s\n", path);
        if (f)
                fclose(f);
        return text;
}

/* A cgroup of ours in this process's own. */
static bool cgroup_left(void) {
        _cleanup_free_ char *mounts = read_proc("/proc/self/mountinfo"), *self = read_proc("/proc/self/cgroup");
        _cleanup_free_ char *own = NULL;
        char path[600];
        if (!host.cgroups || !mounts || !self || cgroup_find(mounts, self, NULL, &own) < 0)
                return false;
        (void) snprintf(path, sizeof(path), "%.500s/run-%d.%s", own, RUN_ID, owner);
        return access(path, F_OK) == 0;
}

/* Nothing of a run may be left. */
static bool nothing_left(void) {
        siginfo_t info;
        char runs[64];
        (void) snprintf(runs, sizeof(runs), "%s/runs", runtime_dir);
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 || errno != ECHILD) {
                fprintf(stderr, "a child is left\n");
                return false;
        }
        if (count_entries(runs) != 0) {
                fprintf(stderr, "the run directory is left\n");
                return false;
        }
        if (cgroup_left()) {
                fprintf(stderr, "the run's cgroup is left\n");
                return false;
        }
        return true;
}

static const struct bad_case {
        const char *wish;
        const char *words; /* that the error must contain */
        double window_s;   /* 0: the order's own. Where the second is named it must not be another too soon. */
        double given_s;    /* the time that a silent agent was given, as the error has it, at least */
} bad_cases[] = {
        {"sender.silent-hello", "sender (pid %d) was silent for %d.%d s before it sent hello", 0, 5},
        {"sender.wrong-version", "sender (pid %d) sent a malformed message", 0, 0},
        {"receiver.wrong-pid", "receiver (pid %d) claims to be pid", 0, 0},
        {"receiver.dies-in-setup", "receiver (pid %d) was killed by signal 6 (SIGABRT) while it set up", 0, 0},
        {"sender.early-report", "sent \"report\" where count, probe or ready was expected", 0, 0},
        {"sender.counts-too-much", "sender (pid %d) requests the counters of more than its 1 threads", 0, 0},
        {"receiver.counts-at-once", "sent \"count\" where hello was expected", 0, 0},
        {"receiver.counts-late", "receiver (pid %d) sent \"count\" where alive, parts, ", 0, 0},
        {"receiver.unprobed", "receiver (pid %d) sent 0 of 1 probes", 0, 0},
        {"sender.lies-at-ready", "placement_violated: sender: ", 0, 0},
        {"receiver.ready-twice", "receiver (pid %d) sent \"ready\" where ", 0, 0},
        {"sender.killed", "sender (pid %d) was killed by signal 9 (SIGKILL) in second 1", 2, 0},
        {"receiver.killed", "receiver (pid %d) was killed by signal 9 (SIGKILL) in second 1", 2, 0},
        {"sender.exits", "sender (pid %d) exited with status 5 in second 1", 2, 0},
        {"receiver.stops", "receiver (pid %d) went silent for %d.%d s", 0, 2.5},
        {"receiver.stops", "(state T, stopped)", 0, 2.5},
        {"sender.silent", "sender (pid %d) went silent for %d.%d s", 0, 2.5},
        {"sender.stops-its-child", "(state S, sleeping); process %d of sender (pid %d) is stopped", 0, 2.5},
        {"receiver.stops-its-peer", "receiver (pid %d) gave up: peer sender is silent; sender (pid %d) is stopped", 0,
         0},
        {"receiver.garbage", "receiver (pid %d) sent a malformed message", 0, 0},
        {"receiver.gives-up", "above fs.pipe-max-size = 1048576", 0, 0},
        {"receiver.blames", "sender (pid %d) gave up: cannot go on alone", 0, 0},
        {"receiver.sounds-like-blame", "receiver (pid %d) gave up: peer sender is not understood here", 0, 0},
        {"sender.hangs-up", "sender (pid %d) closed its control socket", 0, 0},
        {"sender.floods", "sender (pid %d) floods its control socket", 0, 0},
        {"receiver.impossible-sample", "receiver (pid %d) sent an impossible sample: thread 7 of 1", 0, 0},
        {"receiver.same-second-twice", "receiver (pid %d) sent an impossible sample", 0, 0},
        {"sender.endless-sample", "sender (pid %d) sent an impossible sample", 0, 0},
        {"receiver.vast-sample", "receiver (pid %d) sent an impossible sample", 0, 0},
        {"receiver.long-window", "samples of receiver (pid %d) add up to %d ns, its report has a window of %d ns", 0,
         0},
        {"sender.short-samples", "counts_disagree: samples of sender (pid %d) add up to 999 messages", 0, 0},
        {"sender.short-threads", "counts_disagree: threads of sender (pid %d) add up to 999 messages", 0, 0},
        {"receiver.no-threads", "receiver (pid %d) reports without the totals of thread 0", 0, 0},
        {"sender.same-thread-twice", "sender (pid %d) sent the totals of thread 0 of 1, after those of 1", 0, 0},
        {"receiver.lies-at-report", "placement_violated: receiver: ", 0, 0},
        {"sender.lingers", "sender (pid %d) did not exit within %d.%d s of its report", 0, 5},
        {"sender.buries", "an agent has made a directory in the run's directory, where", 0, 0},
        {"receiver.leaves-a-directory", "an agent has made a directory in the run's directory, where", 0, 0},
        {"receiver.makes-many-files", "the agents have made more than 4 files in the run's directory", 0, 0},
        {"receiver.fills-the-disk", "receiver (pid %d) gave up: a long file: EFBIG", 0, 0},
        {"sender.lets-a-child-speak", "sender (pid %d) has a control socket that pid %d (uid ", 0, 0},
        {"receiver.exits-badly", "receiver (pid %d) exited with status 6", 0, 0},
};

static void signal_children(int signal) {
        char path[64], text[256];
        (void) snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        for (char *at = f ? fgets(text, sizeof(text), f) : NULL, *end; at && *at; at = end) {
                long pid = strtol(at, &end, 10);
                if (end == at)
                        break;
                (void) kill((pid_t) pid, signal);
        }
}

static void run_for(uint64_t ns) {
        uint64_t until = util_now_ns() + ns;
        while (!over && util_now_ns() < until)
                if (sd_event_run(host.event, 10000) < 0)
                        return;
}

/* The machine stands still, daemon and agents alike: no agent was silent. */
static void standstill_of_all_is_no_silence(void) {
        struct order o;
        struct runner *r = NULL;
        make_order(&o);
        o.spec.end.duration_ns = NSEC_PER_SEC;
        over = false;
        host.program_fd = open_agent("nobody.nothing");
        CHECK_INT(runner_new(&r, &host, &o.run, &ops, NULL), 0);
        run_for(NSEC_PER_SEC / 5);
        signal_children(SIGSTOP);
        (void) poll(NULL, 0, 4000);
        run_for(NSEC_PER_SEC / 5); /* and it runs again before they do */
        signal_children(SIGCONT);
        run_for(DEADLINE_NS);
        CHECK(over);
        CHECK_STRING(verdict.error ? verdict.error : "", "");
        CHECK_INT(verdict.state, STATE_DONE);
        runner_free(r);
        close_agent("nobody.nothing");
        run_verdict_deinit(&verdict);
}

/* "%d" in the expected words stands for any number. */
static bool begins(const char *text, const char *words) {
        while (*words) {
                size_t digits = words[0] == '%' && words[1] == 'd' ? strspn(text, "0123456789") : 0;
                if (digits == 0 && *text != *words)
                        return false;
                text += digits ? digits : 1;
                words += digits ? 2 : 1;
        }
        return true;
}

static bool contains(const char *text, const char *words) {
        for (; *text; text++)
                if (begins(text, words))
                        return true;
        return false;
}

/* "… silent for 2.6 s …", "… within 5.0 s …"; 0: the error names no time. */
static double seconds_named(const char *error) {
        static const char *const before[] = {"silent for ", "did not exit within "};
        for (size_t i = 0; i < ELEMENTS(before); i++) {
                const char *at = strstr(error, before[i]);
                if (at)
                        return strtod(at + strlen(before[i]), NULL);
        }
        return 0;
}

static void misbehaviour_fails_the_run_with_its_reason(void) {
        for (size_t i = 0; i < ELEMENTS(bad_cases); i++) {
                const struct bad_case *c = &bad_cases[i];
                struct order o;
                make_order(&o);
                if (c->window_s > 0)
                        o.spec.end.duration_ns = (uint64_t) (c->window_s * 1e9);
                unsigned descriptors = count_entries("/proc/self/fd");
                bool ended = run_order(&o.run, c->wish, UINT64_MAX, STATE_FAILED);
                printf("     %-28s %s\n", c->wish, verdict.error ? verdict.error : "-");
                if (!ended)
                        CHECK_FAIL("%s: the run did not end", c->wish);
                if (verdict.state != STATE_FAILED || !verdict.error || !contains(verdict.error, c->words))
                        CHECK_FAIL("%s: state %s, error \"%s\", expected \"%s\"", c->wish, state_name(verdict.state),
                                   verdict.error ? verdict.error : "(null)", c->words);
                if (seconds_named(verdict.error ? verdict.error : "") < c->given_s)
                        CHECK_FAIL("%s: given less than %.1f s: %s", c->wish, c->given_s, verdict.error);
                if (verdict.result_json || !verdict.agents_json)
                        CHECK_FAIL("%s: a failed run has a result or no agents", c->wish);
                if (!nothing_left())
                        CHECK_FAIL("%s: something is left", c->wish);
                if (count_entries("/proc/self/fd") != descriptors)
                        CHECK_FAIL("%s: descriptors leak", c->wish);
                run_verdict_deinit(&verdict);
        }
}

static const struct json *member(const struct json *object, const char *key) {
        const struct json *v = json_get(object, key);
        if (!v)
                fprintf(stderr, "no member %s\n", key);
        return v;
}

static void good_run_has_the_receivers_figures(void) {
        struct order o;
        make_order(&o);
        o.point.workload = WORKLOAD_PINGPONG;
        CHECK(run_order(&o.run, "nobody.nothing", UINT64_MAX, STATE_FAILED));
        CHECK_STRING(verdict.error ? verdict.error : "", "");
        CHECK_INT(verdict.state, STATE_DONE);
        CHECK_UINT(n_samples, 2);
        CHECK_UINT(sampled_messages, 2000);
        CHECK_UINT(verdict.n_flags, 0);

        struct json *result = NULL, *agents = NULL;
        int64_t messages = 0, bytes = 0, window = 0, p50 = 0, half = 0, uid = 0;
        double throughput = 0;
        const char *kind = NULL;
        CHECK_INT(json_parse(verdict.result_json, strlen(verdict.result_json), &result, NULL), 0);
        CHECK_INT(json_as_i64(member(result, "messages"), &messages), 0);
        CHECK_INT(json_as_i64(member(result, "bytes"), &bytes), 0);
        CHECK_INT(json_as_i64(member(result, "window_ns"), &window), 0);
        CHECK_INT(json_as_double(member(result, "throughput_bytes_per_second"), &throughput), 0);
        CHECK_INT(messages, 1000);
        CHECK_INT(bytes, 4096000);
        CHECK_INT(window, 200000000);
        CHECK(throughput > 20479999 && throughput < 20480001);
        const struct json *latency = member(result, "latency_ns");
        CHECK_INT(json_as_i64(member(latency, "p50"), &p50), 0);
        CHECK_INT(json_as_string(member(latency, "kind"), &kind), 0);
        CHECK_STRING(kind, "rtt");
        CHECK(p50 >= 2480 && p50 <= 2520);
        CHECK_INT(json_as_i64(member(member(result, "latency_one_way_ns"), "p50"), &half), 0);
        CHECK_INT(half, p50 / 2);
        CHECK(member(member(result, "counters"), "responder"));
        CHECK(member(result, "initiator"));
        const struct json *threads = member(member(result, "threads"), "responder");
        CHECK_UINT(json_length(threads), 1);
        CHECK_INT(json_as_i64(member(json_first(threads), "messages"), &messages), 0);
        CHECK_INT(messages, 1000);
        CHECK(member(json_first(threads), "bytes") && member(json_first(threads), "counters"));

        CHECK_INT(json_parse(verdict.agents_json, strlen(verdict.agents_json), &agents, NULL), 0);
        CHECK_UINT(json_length(agents), 2);
        const struct json *isolation = member(json_first(agents), "isolation");
        CHECK_INT(json_as_i64(member(isolation, "uid"), &uid), 0);
        CHECK(uid != 0);
        json_free(result);
        json_free(agents);
        run_verdict_deinit(&verdict);
        CHECK(nothing_left());
}

static void ends_that_differ_are_flagged(void) {
        struct order o;
        make_order(&o);
        CHECK(run_order(&o.run, "sender.later", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_DONE);
        CHECK_UINT(verdict.n_flags, 1);
        CHECK_STRING(verdict.flags[0], "ends_differ");
        run_verdict_deinit(&verdict);
}

/* A rate is of messages: an end that sends none is not given it, and its loop is closed. */
static void a_rate_is_for_senders(void) {
        struct order o;
        make_order(&o);
        o.spec.rate = 1000;
        CHECK(run_order(&o.run, "sender.unpaced", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_FAILED);
        CHECK(strstr(verdict.error, "its set-up has a rate") != NULL);
        run_verdict_deinit(&verdict);

        o.point = (struct point){.workload = WORKLOAD_SYSCALL, .threads = 1};
        CHECK(run_order(&o.run, "initiator.unpaced", UINT64_MAX, STATE_FAILED));
        CHECK_STRING(verdict.error ? verdict.error : "", "");
        CHECK_INT(verdict.state, STATE_DONE);
        CHECK(strstr(verdict.result_json, "\"loop\":\"closed\"") != NULL);
        run_verdict_deinit(&verdict);
        CHECK(nothing_left());
}

/* Some options of a spec with several transports are for one of them only. */
static void options_are_for_ends_that_use_them(void) {
        static const struct {
                enum workload workload;
                enum transport transport;
                const char *role, *expected;
        } rows[] = {
                {WORKLOAD_STREAM, TRANSPORT_PIPE, "sender",
                 "pipe_size 65536, ring_bytes 0, huge_pages 0, file_sync page-cache, congestion '', and a stall limit "
                 "of 5000 ms"},
                {WORKLOAD_PINGPONG, TRANSPORT_SHM_POSIX, "responder",
                 "pipe_size 0, ring_bytes 8192, huge_pages 1, file_sync page-cache, congestion '', and a stall limit "
                 "of 5000 ms"},
                {WORKLOAD_STREAM, TRANSPORT_MMAP_FILE, "receiver",
                 "pipe_size 0, ring_bytes 8192, huge_pages 0, file_sync page-cache, congestion '', and a stall limit "
                 "of 5000 ms"},
                {WORKLOAD_STREAM, TRANSPORT_FILE, "sender",
                 "pipe_size 0, ring_bytes 0, huge_pages 0, file_sync fsync, congestion '', and a stall limit of "
                 "15000 ms"},
                {WORKLOAD_SYSCALL, TRANSPORT_PIPE, "initiator",
                 "pipe_size 0, ring_bytes 0, huge_pages 0, file_sync page-cache, congestion '', and a stall limit of "
                 "5000 ms"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct order o;
                char wish[64];
                make_order(&o);
                o.point.workload = rows[i].workload;
                o.point.transport = rows[i].transport;
                o.point.message_size = workload_has_transport(rows[i].workload) ? o.point.message_size : 0;
                o.spec.options = (struct transport_options){.pipe_size = 65536,
                                                            .ring_bytes = 8192,
                                                            .huge_pages = TOGGLE_ON,
                                                            .file_sync = FILE_SYNC_FSYNC,
                                                            .congestion = "reno"};
                (void) snprintf(wish, sizeof(wish), "%s.reports-its-options", rows[i].role);
                CHECK(run_order(&o.run, wish, UINT64_MAX, STATE_FAILED));
                const char *found = verdict.error ? strstr(verdict.error, "its set-up has ") : NULL;
                CHECK(found);
                CHECK_STRING(found + strlen("its set-up has "), rows[i].expected);
                run_verdict_deinit(&verdict);
        }
        CHECK(nothing_left());
}

/* A thread on one CPU of a kernel that does not count migrations may have been away and come back. */
static void uncounted_migrations_are_flagged(void) {
        struct order o;
        make_order(&o);
        o.placement.ends[END_FIRST].n_cpus = 0;
        CHECK(run_order(&o.run, "sender.uncounted", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_DONE);
        CHECK_UINT(verdict.n_flags, 0); /* not pinned: nothing to miss */
        run_verdict_deinit(&verdict);

        o.placement.ends[END_FIRST].n_cpus = 1;
        CHECK(run_order(&o.run, "sender.uncounted", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_DONE);
        CHECK_UINT(verdict.n_flags, 1);
        CHECK_STRING(verdict.flags[0], "migrations_unknown");
        run_verdict_deinit(&verdict);
}

static void moved_pages_are_flagged(void) {
        struct order o;
        make_order(&o);
        CHECK(run_order(&o.run, "receiver.wandered", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_DONE);
        CHECK_UINT(verdict.n_flags, 1);
        CHECK_STRING(verdict.flags[0], "pages_moved");
        run_verdict_deinit(&verdict);
}

/* Both ends' probes are with the verdict, and of one that did not get to its end those that came. */
static void probes_come_with_the_verdict(void) {
        struct order o;
        make_order(&o);
        CHECK(run_order(&o.run, "receiver.slowed", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_DONE);
        CHECK(verdict.probes);
        const struct probe_sitting *s = verdict.probes->at;
        bool good = s[PROBE_BEFORE].known && s[PROBE_BEFORE].n_ends == 2 && s[PROBE_AFTER].known &&
                    s[PROBE_BEFORE].ends[END_SECOND].rounds[PROBE_GETPID][0] == 100000 / 2000.0 &&
                    s[PROBE_AFTER].ends[END_FIRST].rounds[PROBE_GETPID][0] == 100000 / 2000.0 &&
                    s[PROBE_AFTER].ends[END_SECOND].rounds[PROBE_GETPID][0] == 120000 / 2000.0 &&
                    strcmp(verdict.probes->roles[END_SECOND], "receiver") == 0;
        run_verdict_deinit(&verdict);
        CHECK(good);
        CHECK(run_order(&o.run, "sender.killed", UINT64_MAX, STATE_FAILED));
        good = verdict.probes && verdict.probes->at[PROBE_BEFORE].known && !verdict.probes->at[PROBE_AFTER].known;
        run_verdict_deinit(&verdict);
        CHECK(good);
        CHECK(run_order(&o.run, "receiver.dies-in-setup", UINT64_MAX, STATE_FAILED));
        good = !verdict.probes;
        run_verdict_deinit(&verdict);
        CHECK(good);
}

/* The daemon's own thread, its neighbour's, and one that nobody has: nothing is opened, and the run goes on. */
static void counters_are_an_agents_own(void) {
        static const char *const wishes[] = {"sender.counts-itself", "sender.counts-the-daemon", "receiver.counts-init",
                                             "receiver.counts-nobody"};
        for (size_t i = 0; i < ELEMENTS(wishes); i++) {
                struct order o;
                make_order(&o);
                unsigned descriptors = count_entries("/proc/self/fd");
                CHECK(run_order(&o.run, wishes[i], UINT64_MAX, STATE_FAILED));
                CHECK_STRING(verdict.error ? verdict.error : "", "");
                CHECK_INT(verdict.state, STATE_DONE);
                CHECK_UINT(count_entries("/proc/self/fd"), descriptors);
                run_verdict_deinit(&verdict);
        }
}

static void counted_runs_must_agree(void) {
        struct order o;
        make_order(&o);
        o.spec.end = (struct window_end){.messages = 1000};
        CHECK(run_order(&o.run, "nobody.nothing", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_DONE);
        run_verdict_deinit(&verdict);
        CHECK(run_order(&o.run, "receiver.miscounts", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_FAILED);
        CHECK(strstr(verdict.error, "counts_disagree") != NULL);
        run_verdict_deinit(&verdict);
}

static void files_left_are_removed(void) {
        struct order o;
        make_order(&o);
        CHECK(run_order(&o.run, "sender.leaves-files", UINT64_MAX, STATE_FAILED));
        CHECK_STRING(verdict.error ? verdict.error : "", "");
        CHECK_INT(verdict.state, STATE_DONE);
        CHECK(nothing_left());
        CHECK(access("/etc/passwd", F_OK) == 0);
        run_verdict_deinit(&verdict);
}

static void children_of_an_agent_end_with_the_run(void) {
        struct order o;
        if (!host.cgroups)
                SKIP("no cgroup: %s", host.cgroup_reason);
        make_order(&o);
        CHECK(run_order(&o.run, "receiver.child", UINT64_MAX, STATE_FAILED));
        CHECK_STRING(verdict.error ? verdict.error : "", "");
        CHECK_INT(verdict.state, STATE_DONE);
        run_verdict_deinit(&verdict);
        CHECK(nothing_left());
}

/* Processes whose program is the one of this test's agents. */
static unsigned count_agents(void) {
        char path[300], exe[512], ours[64];
        unsigned n = 0;
        (void) snprintf(ours, sizeof(ours), "/fake.%d/", getpid());
        DIR *dir = opendir("/proc");
        struct dirent *d;
        while (dir && (d = readdir(dir))) {
                (void) snprintf(path, sizeof(path), "/proc/%s/exe", d->d_name);
                ssize_t length = readlink(path, exe, sizeof(exe) - 1);
                exe[length > 0 ? length : 0] = 0;
                n += strstr(exe, ours) != NULL;
        }
        if (dir)
                closedir(dir);
        return n;
}

/* Neither a child of an agent nor what that has forked outlives a run, where there is no cgroup either. */
static void what_agents_leave_ends_without_a_cgroup(void) {
        static const char *const wishes[] = {"receiver.child", "sender.grandchild"};
        struct cgroup_tree *cgroups = util_steal(&host.cgroups);
        char reason[DETAIL_MAX];
        memcpy(reason, host.cgroup_reason, sizeof(reason));
        (void) snprintf(host.cgroup_reason, sizeof(host.cgroup_reason), "this test has none");
        bool good[ELEMENTS(wishes)] = {false};
        for (size_t i = 0; i < ELEMENTS(wishes); i++) {
                struct order o;
                make_order(&o);
                good[i] = run_order(&o.run, wishes[i], UINT64_MAX, STATE_FAILED) && verdict.state == STATE_DONE &&
                          count_agents() == 0 && nothing_left();
                run_verdict_deinit(&verdict);
        }
        host.cgroups = cgroups;
        memcpy(host.cgroup_reason, reason, sizeof(reason));
        for (size_t i = 0; i < ELEMENTS(wishes); i++)
                if (!good[i])
                        CHECK_FAIL("%s: something is left", wishes[i]);
}

/* Agents that have the daemon's user, as those of the service do, may write to its cgroups. */
static void what_leaves_the_cgroup_ends_with_the_run(void) {
        struct agent_identity before = host.identity;
        struct order o;
        if (!host.cgroups)
                SKIP("no cgroup: %s", host.cgroup_reason);
        host.identity = (struct agent_identity){.uid = geteuid(), .gid = getegid()};
        make_order(&o);
        bool good = run_order(&o.run, "sender.escaped", UINT64_MAX, STATE_FAILED) && verdict.state == STATE_DONE &&
                    count_agents() == 0 && nothing_left();
        run_verdict_deinit(&verdict);
        host.identity = before;
        CHECK(good);
}

static void stopping_ends_a_run_at_once(void) {
        static const enum state states[] = {STATE_CANCELLED, STATE_INTERRUPTED};
        static const uint64_t moments[] = {0, 5, 60, 150};
        for (size_t i = 0; i < ELEMENTS(states); i++)
                for (size_t j = 0; j < ELEMENTS(moments); j++) {
                        struct order o;
                        make_order(&o);
                        o.spec.end.duration_ns = 2 * DEADLINE_NS;
                        o.run.timeout_ns = 3 * DEADLINE_NS;
                        CHECK(run_order(&o.run, "nobody.nothing", moments[j] * NSEC_PER_MSEC, states[i]));
                        CHECK_INT(verdict.state, states[i]);
                        CHECK(verdict.error == NULL);
                        CHECK(nothing_left());
                        run_verdict_deinit(&verdict);
                }
}

static void limits_are_named(void) {
        struct order o;
        make_order(&o);
        o.run.timeout_ns = NSEC_PER_SEC / 10;
        CHECK(run_order(&o.run, "nobody.nothing", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_FAILED);
        CHECK(strstr(verdict.error, "run_timeout") != NULL);
        run_verdict_deinit(&verdict);

        make_order(&o);
        o.spec.end = (struct window_end){.messages = 1000};
        o.spec.warmup_ns = 3 * NSEC_PER_SEC;
        o.run.timeout_ns = 3 * NSEC_PER_SEC + NSEC_PER_SEC / 100;
        CHECK(run_order(&o.run, "nobody.nothing", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_FAILED);
        run_verdict_deinit(&verdict);
        CHECK(nothing_left());
}

static void an_agent_that_cannot_be_executed_fails_the_run(void) {
        struct order o;
        struct runner *r;
        make_order(&o);
        over = false;
        host.program_fd = open("/etc/passwd", O_PATH | O_CLOEXEC);
        CHECK(host.program_fd >= 0);
        CHECK_INT(runner_new(&r, &host, &o.run, &ops, NULL), 0);
        run_for(DEADLINE_NS);
        runner_free(r);
        host.program_fd = util_close(host.program_fd);
        CHECK(over);
        CHECK_INT(verdict.state, STATE_FAILED);
        /* Both ends are started side by side: either may be the first whose start has failed. */
        CHECK(verdict.error &&
              (strncmp(verdict.error, "sender ", 7) == 0 || strncmp(verdict.error, "receiver ", 9) == 0));
        CHECK(verdict.error && strstr(verdict.error, "er cannot be started: exec: Permission denied") != NULL);
        run_verdict_deinit(&verdict);
        CHECK(nothing_left());
}

/* --- agents that another process stops before their program begins, as one of their user can --- */

/* Holds each child of its parent at this system call until it is killed, and answers for each with a byte. */
static void hold_children(long call, int ready) {
        pid_t parent = getppid(), pid;
        const uintptr_t options =
                PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD;
        int status;
        char byte = ptrace(PTRACE_SEIZE, parent, NULL, (void *) options) == 0 ? 'y' : 'n'; /* NOLINT: an integer */
        if (write(ready, &byte, 1) != 1 || byte == 'n')
                _exit(1);
        while ((pid = waitpid(-1, &status, __WALL)) > 0) {
                struct __ptrace_syscall_info info = {0};
                int signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
                if (!signal)
                        continue;
                bool calls = signal == (SIGTRAP | 0x80) &&
                             ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *) sizeof(info), &info) > 0 && /* NOLINT */
                             info.op == PTRACE_SYSCALL_INFO_ENTRY && (long) info.entry.nr == call;
                if (calls && write(ready, "h", 1) == 1)
                        continue;
                bool event = status >> 16 != 0 || signal == (SIGTRAP | 0x80);
                (void) ptrace(pid == parent ? PTRACE_CONT : PTRACE_SYSCALL, pid, NULL,
                              (void *) (intptr_t) (event ? 0 : signal)); /* NOLINT */
        }
        _exit(0);
}

static pid_t start_holder(long call, int *ret_ready) {
        int ready[2];
        char byte = 'n';
        if (pipe2(ready, O_CLOEXEC) < 0)
                return -1;
        (void) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
        pid_t pid = fork();
        if (pid == 0)
                hold_children(call, ready[1]);
        util_close(ready[1]);
        if (read(ready[0], &byte, 1) == 1 && byte == 'y') {
                *ret_ready = ready[0];
                return pid;
        }
        util_close(ready[0]);
        (void) waitpid(pid, NULL, 0);
        return -1;
}

static unsigned held(int ready) {
        char bytes[16];
        ssize_t n = poll(&(struct pollfd){.fd = ready, .events = POLLIN}, 1, 0) == 1 ? read(ready, bytes, sizeof(bytes))
                                                                                     : 0;
        return n > 0 ? (unsigned) n : 0;
}

/* The loop goes on while they are held, and the run is a good one when they are let go: `n` of them at `call`. */
static void hold_start(const char *build_path, enum transport transport, long call, unsigned n) {
        struct order o;
        struct runner *r = NULL;
        char path[512];
        int ready = -1;
        make_order(&o);
        o.point.transport = transport;
        o.point.workload = WORKLOAD_STREAM;
        (void) snprintf(path, sizeof(path), "%s/%s", getenv("IPCLAB_BUILD_ROOT"), build_path);
        over = false;
        host.program_fd = open(path, O_PATH | O_CLOEXEC);
        CHECK(host.program_fd >= 0);
        pid_t holder = start_holder(call, &ready);
        if (holder < 0)
                SKIP("no process may be traced here");
        int created = runner_new(&r, &host, &o.run, &ops, NULL);
        unsigned n_held = 0;
        for (uint64_t until = util_now_ns() + 4 * NSEC_PER_SEC; n_held < n && util_now_ns() < until;) {
                (void) sd_event_run(host.event, 10000);
                n_held += held(ready);
        }
        bool early = over;
        (void) kill(holder, SIGKILL);
        (void) waitpid(holder, NULL, 0);
        util_close(ready);
        CHECK_INT(created, 0);
        CHECK_UINT(n_held, n);
        CHECK(!early);
        run_for(DEADLINE_NS);
        runner_free(r);
        host.program_fd = util_close(host.program_fd);
        CHECK(over);
        CHECK_STRING(verdict.error ? verdict.error : "", "");
        CHECK_INT(verdict.state, STATE_DONE);
        run_verdict_deinit(&verdict);
        CHECK(nothing_left());
}

static void a_start_that_is_stopped_does_not_hold_the_daemon(void) {
        hold_start("tests/unit/fake-agent", TRANSPORT_PIPE, SYS_execveat, 2);
}

static void a_fork_that_is_stopped_does_not_hold_the_daemon(void) {
        hold_start("agent/ipclab-agent", TRANSPORT_MMAP_ANONYMOUS, SYS_clone3, 1);
}

static void a_forked_peer_that_is_hidden_ends_with_the_run(void) {
        struct order o;
        make_order(&o);
        o.point.transport = TRANSPORT_MMAP_ANONYMOUS;
        CHECK(run_order(&o.run, "sender.hides-its-peer", UINT64_MAX, STATE_FAILED));
        CHECK_INT(verdict.state, STATE_FAILED);
        if (!contains(verdict.error, "sender (pid %d) has not forked receiver within 5 s"))
                CHECK_FAIL("%s", verdict.error);
        CHECK(nothing_left());
        run_verdict_deinit(&verdict);
}

static int on_event(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        uint64_t n;
        (void) source;
        (void) events;
        (void) userdata;
        return read(fd, &n, sizeof(n)) < 0 ? -errno : 0;
}

/* Waits until an agent has ended, which is not reaped yet. */
static bool await_exit(void) {
        uint64_t until = util_now_ns() + DEADLINE_NS / 3;
        do {
                siginfo_t info = {0};
                if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0)
                        return true;
                (void) poll(NULL, 0, 1);
        } while (util_now_ns() < until);
        return false;
}

/* An agent that reports why it cannot fork its peer, and has ended before the loop looks: of sources with one priority
 * sd-event takes the last one first when it has dispatched one of as many others as there are here. */
static void check_fork_that_fails(unsigned n_others) {
        struct order o;
        struct runner *r = NULL;
        sd_event_source *others[4] = {NULL};
        make_order(&o);
        o.point.transport = TRANSPORT_MMAP_ANONYMOUS;
        over = false;
        int error = 0;
        for (unsigned i = 0; i < n_others && error >= 0; i++) {
                int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
                error = sd_event_add_io(host.event, &others[i], fd, EPOLLIN, on_event, NULL);
                if (error >= 0)
                        error = sd_event_source_set_io_fd_own(others[i], true);
        }
        host.program_fd = open_agent("sender.cannot-fork");
        if (error >= 0)
                error = runner_new(&r, &host, &o.run, &ops, NULL);
        bool ended = error >= 0 && await_exit();
        run_for(error >= 0 ? DEADLINE_NS : 0);
        runner_free(r);
        close_agent("sender.cannot-fork");
        for (unsigned i = 0; i < ELEMENTS(others); i++)
                sd_event_source_disable_unref(others[i]);
        CHECK(error >= 0 && ended && over);
        CHECK_INT(verdict.state, STATE_FAILED);
        CHECK_STRING(verdict.error ? verdict.error : "",
                     "receiver cannot be started: clone: Resource temporarily unavailable (RLIMIT_NPROC, or the "
                     "cgroup's pids.max)");
        run_verdict_deinit(&verdict);
        CHECK(nothing_left());
}

static void a_fork_that_fails_explains_the_exit_behind_it(void) {
        for (unsigned n = 0; n <= 4 && !check_case_failed; n++)
                check_fork_that_fails(n);
}

/* --- agents that are killed one after the other --- */

static bool slow_kills;

/* NOLINTBEGIN(bugprone-reserved-identifier) */
int __real_pidfd_send_signal(int fd, int signal, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int fd, int signal, siginfo_t *info, unsigned flags); /* by the linker's --wrap */
/* NOLINTEND(bugprone-reserved-identifier) */

/* On a busy machine a process goes on for a while after the call that stops it, until one of its threads has run. */
int __wrap_pidfd_send_signal(int fd, int signal, siginfo_t *info, unsigned flags) {
        siginfo_t stopped;
        int r = __real_pidfd_send_signal(fd, signal, info, flags);
        if (slow_kills && signal == SIGSTOP && r == 0)
                (void) waitid(P_PIDFD, (id_t) fd, &stopped, WSTOPPED | WEXITED | WNOWAIT);
        if (slow_kills && signal == SIGKILL)
                (void) poll(NULL, 0, 200); /* the machine is busy */
        return r;
}

/* --- agents that a tracer holds, which does not take their exit status --- */

/* The last of the agent's threads, its first one, or 0. */
static pid_t thread_of(pid_t pid, bool leader) {
        char path[64];
        pid_t found = 0;
        (void) snprintf(path, sizeof(path), "/proc/%d/task", pid);
        DIR *tasks = opendir(path);
        struct dirent *d;
        while (!leader && tasks && (d = readdir(tasks)))
                if (strtol(d->d_name, NULL, 10) > 0 && strtol(d->d_name, NULL, 10) != pid)
                        found = (pid_t) strtol(d->d_name, NULL, 10);
        if (tasks)
                closedir(tasks);
        return leader ? pid : found;
}

/* Traces it and sleeps. 0 or negative errno. */
static int start_tracer(pid_t tid, uintptr_t options, pid_t *ret) {
        int ready[2], error = EPIPE;
        if (pipe2(ready, O_CLOEXEC) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0) {
                error = ptrace(PTRACE_SEIZE, tid, NULL, (void *) options) < 0 ? errno : 0; /* NOLINT: an integer */
                if (write(ready[1], &error, sizeof(error)) != (ssize_t) sizeof(error) || error)
                        _exit(1);
                (void) poll(NULL, 0, 120000);
                _exit(0);
        }
        util_close(ready[1]);
        if (pid > 0 && read(ready[0], &error, sizeof(error)) != (ssize_t) sizeof(error))
                error = EPIPE;
        util_close(ready[0]);
        if (pid > 0 && error)
                (void) waitpid(pid, NULL, 0);
        *ret = pid;
        return -error;
}

static void open_real_agent(void) {
        char path[512];
        (void) snprintf(path, sizeof(path), "%s/agent/ipclab-agent", getenv("IPCLAB_BUILD_ROOT"));
        over = false;
        host.program_fd = open(path, O_PATH | O_CLOEXEC);
}

/* The second one has time to notice that the first is gone, and would end with a status of its own. */
static void agents_that_are_killed_end_by_it(void) {
        struct order o;
        struct runner *r = NULL;
        make_order(&o);
        o.spec.end.duration_ns = DEADLINE_NS / 2;
        open_real_agent();
        int created = runner_new(&r, &host, &o.run, &ops, NULL);
        run_for(created == 0 ? NSEC_PER_SEC / 2 : 0);
        slow_kills = true;
        if (created == 0)
                runner_stop(r, STATE_FAILED, "the test ends it");
        slow_kills = false;
        run_for(created == 0 ? DEADLINE_NS : 0);
        runner_free(r);
        host.program_fd = util_close(host.program_fd);
        CHECK_INT(created, 0);
        CHECK(over);
        unsigned n = 0;
        for (const char *at = verdict.agents_json; at && (at = strstr(at, "\"exit\":{\"signal\":9}")); at++)
                n++;
        if (n != END_COUNT)
                CHECK_FAIL("%s", verdict.agents_json ? verdict.agents_json : "(null)");
        CHECK_STRING(verdict.error ? verdict.error : "", "the test ends it");
        run_verdict_deinit(&verdict);
        CHECK(nothing_left());
}

static void end_tracer(pid_t tracer) {
        (void) kill(tracer, SIGKILL);
        for (unsigned i = 0; i < 1000 && !spawn_reap_strays(); i++)
                (void) poll(NULL, 0, 10);
}

/* The pid of an agent that runs, the one of the first child. */
static pid_t first_child(void) {
        char path[64], text[64];
        (void) snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        return f && fgets(text, sizeof(text), f) ? (pid_t) strtol(text, NULL, 10) : 0;
}

/* Traces a thread of an agent in its window, as soon as it has begun, then ends the run. 0 or negative errno: it is not
 * traced, -EPERM: no process may be here. */
static int run_held(const struct run_order *order, bool leader, uintptr_t options, pid_t *ret_agent,
                    pid_t *ret_tracer) {
        struct runner *r = NULL;
        open_real_agent();
        int e = runner_new(&r, &host, order, &ops, NULL);
        if (e < 0)
                return e;
        run_for(NSEC_PER_SEC / 2);
        uint64_t until = util_now_ns() + DEADLINE_NS / 3;
        for (e = -ESRCH; e == -ESRCH && !over && util_now_ns() < until;) {
                *ret_agent = first_child();
                if (*ret_agent > 0 && thread_of(*ret_agent, false) > 0) /* its first one alone may not be the agent's */
                        e = start_tracer(thread_of(*ret_agent, leader), options, ret_tracer);
                if (e == -ESRCH)
                        run_for(NSEC_PER_SEC / 50);
        }
        runner_stop(r, STATE_FAILED, "the test ends it");
        run_for(DEADLINE_NS);
        runner_free(r);
        host.program_fd = util_close(host.program_fd);
        return e;
}

/* It is tried again where an agent has missed a deadline of the runner, as it may on a busy machine. */
static bool run_well(int64_t id) {
        struct order o;
        make_order(&o);
        o.run.run_id = id;
        bool well = false, late = true;
        for (unsigned tries = 0; late && tries < 3; tries++) {
                well = run_order(&o.run, "nobody.nothing", UINT64_MAX, STATE_FAILED) && verdict.state == STATE_DONE;
                late = verdict.error && (strstr(verdict.error, "silent for") || strstr(verdict.error, "within"));
                run_verdict_deinit(&verdict);
        }
        return well;
}

static void check_held(bool leader, uintptr_t options) {
        struct order o;
        char words[128];
        pid_t agent = 0, tracer = -1;
        unsigned descriptors = count_entries("/proc/self/fd");
        make_order(&o);
        o.spec.end.duration_ns = DEADLINE_NS / 2;
        int e = run_held(&o.run, leader, options, &agent, &tracer);
        if (e < 0)
                run_verdict_deinit(&verdict);
        if (e == -EPERM)
                SKIP("no process may be traced here");
        CHECK_INT(e, 0);
        bool ended = over;
        enum state state = verdict.state;
        _cleanup_free_ char *error = util_steal(&verdict.error), *agents = util_steal(&verdict.agents_json);
        run_verdict_deinit(&verdict);
        bool next = ended && run_well(RUN_ID + 1); /* its tracer is still there */
        end_tracer(tracer);
        bool last = ended && run_well(RUN_ID + 2); /* which removes what the tracer had held */
        CHECK(ended && next && last);
        CHECK_INT(state, STATE_FAILED);
        (void) snprintf(words, sizeof(words), "er (pid %d) was killed, and a tracer (pid %d) holds it", agent, tracer);
        if (!error || strncmp(error, "the test ends it; ", 18) != 0 || !strstr(error, words))
                CHECK_FAIL("\"%s\", expected \"%s\"", error ? error : "(null)", words);
        CHECK(agents && strstr(agents, "\"cpu_ns\":null,\"cpu_ns_reason\":\"a tracer ") != NULL);
        CHECK(agents && strstr(agents, "\"exit\":null,\"exit_reason\":\"a tracer ") != NULL);
        CHECK(agents && strstr(agents, "\"signal\":9") != NULL); /* the other one */
        CHECK(agents && !strstr(agents, "\"signal\":0"));
        CHECK(nothing_left());
        CHECK_UINT(count_entries("/proc/self/fd"), descriptors);
}

static void an_agent_that_a_tracer_holds_ends(void) {
        check_held(true, 0);
}

static void an_agent_of_which_a_tracer_holds_a_thread_ends(void) {
        check_held(false, 0);
}

/* It does not die: it stands in its exit, before it has given back its memory. */
static void an_agent_that_a_tracer_stops_in_its_exit_ends(void) {
        check_held(true, PTRACE_O_TRACEEXIT);
}

static int set_up(void) {
        log_open(LOG_WARNING);
        (void) snprintf(owner, sizeof(owner), "ipclab-test-runner-%d", getpid());
        if (!mkdtemp(runtime_dir) || sd_event_default(&host.event) < 0 || topology_read("", &topology) < 0 ||
            affinity_get(0, &host.affinity) < 0 || agent_identity_find("nobody", &host.identity) < 0 ||
            rundir_root_new(&host.rundirs, runtime_dir) < 0)
                return -1;
        host.topology = topology;
        if (cgroup_tree_new(&host.cgroups, owner, host.cgroup_reason) < 0)
                host.cgroups = NULL;
        return 0;
}

int main(void) {
        if (!getenv("IPCLAB_BUILD_ROOT") || set_up() < 0) {
                fprintf(stderr, "cannot set up\n");
                return 1;
        }
        RUN(good_run_has_the_receivers_figures);
        RUN(ends_that_differ_are_flagged);
        RUN(a_rate_is_for_senders);
        RUN(options_are_for_ends_that_use_them);
        RUN(uncounted_migrations_are_flagged);
        RUN(moved_pages_are_flagged);
        RUN(probes_come_with_the_verdict);
        RUN(counters_are_an_agents_own);
        RUN(counted_runs_must_agree);
        RUN(files_left_are_removed);
        RUN(children_of_an_agent_end_with_the_run);
        RUN(what_leaves_the_cgroup_ends_with_the_run);
        RUN(what_agents_leave_ends_without_a_cgroup);
        RUN(stopping_ends_a_run_at_once);
        RUN(limits_are_named);
        RUN(an_agent_that_cannot_be_executed_fails_the_run);
        RUN(a_start_that_is_stopped_does_not_hold_the_daemon);
        RUN(a_fork_that_is_stopped_does_not_hold_the_daemon);
        RUN(a_forked_peer_that_is_hidden_ends_with_the_run);
        RUN(a_fork_that_fails_explains_the_exit_behind_it);
        RUN(agents_that_are_killed_end_by_it);
        RUN(an_agent_that_a_tracer_holds_ends);
        RUN(an_agent_of_which_a_tracer_holds_a_thread_ends);
        RUN(an_agent_that_a_tracer_stops_in_its_exit_ends);
        RUN(misbehaviour_fails_the_run_with_its_reason);
        RUN(standstill_of_all_is_no_silence);
        cgroup_tree_free(host.cgroups);
        rundir_root_free(host.rundirs);
        topology_free(topology);
        sd_event_unref(host.event);
        char runs[64];
        (void) snprintf(runs, sizeof(runs), "%s/runs", runtime_dir);
        if (rmdir(runs) < 0 || rmdir(runtime_dir) < 0) {
                fprintf(stderr, "%s is not empty\n", runtime_dir);
                return 1;
        }
        return check_end();
}
