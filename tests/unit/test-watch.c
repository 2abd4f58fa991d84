/* SPDX-License-Identifier: MIT */

/* The watch on this machine, beside a process that stands for an agent, and below cgroups that the test writes: this
 * machine's may have no CPU controller. */

#include "daemon/run/watch/watch.h"
#include "schema/limits.h"
#include "schema/spec/spec.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define DEADLINE_NS (60 * NSEC_PER_SEC)

static int keep_on(pid_t tid, int cpu) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        return sched_setaffinity(tid, sizeof(set), &set);
}

static int stay_on(int cpu) {
        return keep_on(0, cpu);
}

/* Spins, or sleeps, on one CPU until it is killed. Returns when it is where it stays. */
static pid_t start_process(int cpu, bool spins) {
        pid_t parent = getpid(), pid = fork();
        if (pid != 0)
                return pid > 0 && keep_on(pid, cpu) < 0 ? -1 : pid;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
        for (volatile unsigned n = 0;; n++)
                if (!spins)
                        pause();
}

static void end_process(pid_t pid) {
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
}

/* The n-th of the CPUs that this process may use; -1: there are fewer. */
static int nth_cpu(int n) {
        cpu_set_t set;
        if (sched_getaffinity(0, sizeof(set), &set) < 0)
                return -1;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &set) && n-- == 0)
                        return cpu;
        return -1;
}

struct led {
        int cpu, leader_cpu, ready_fd;
};

static void *lead(void *userdata) {
        const struct led *led = userdata;
        if (stay_on(led->leader_cpu) < 0 || write(led->ready_fd, "", 1) != 1)
                _exit(1);
        for (volatile unsigned n = 0;; n++)
                ;
        return NULL;
}

/* Sleeps on one CPU, while a thread of it spins on another. Returns when both are where they stay. */
static pid_t start_led_process(int cpu, int leader_cpu) {
        int fds[2];
        char byte;
        pid_t parent = getpid();
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -1;
        pid_t pid = fork();
        if (pid == 0) {
                struct led led = {.cpu = cpu, .leader_cpu = leader_cpu, .ready_fd = fds[1]};
                pthread_t leader;
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || stay_on(led.cpu) < 0 ||
                    pthread_create(&leader, NULL, lead, &led) != 0)
                        _exit(1);
                for (;;)
                        pause();
        }
        close(fds[1]);
        bool ready = pid > 0 && read(fds[0], &byte, 1) == 1;
        close(fds[0]);
        return ready ? pid : -1;
}

#define MANY_THREADS 150u

static void *wait_for_ever(void *userdata) {
        (void) userdata;
        for (;;)
                pause();
        return NULL;
}

/* Many threads that sleep, in turn on one of two CPUs. Returns when each is where it stays. */
static pid_t start_wide_process(const int32_t cpus[2]) {
        int fds[2];
        char byte;
        pid_t parent = getpid();
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -1;
        pid_t pid = fork();
        if (pid == 0) {
                pthread_t thread;
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                        _exit(1);
                for (unsigned i = 0; i < MANY_THREADS; i++) /* each inherits where its maker is */
                        if (stay_on(cpus[i % 2]) < 0 || pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
                                _exit(1);
                if (write(fds[1], "", 1) != 1)
                        _exit(1);
                (void) wait_for_ever(NULL);
        }
        close(fds[1]);
        bool ready = pid > 0 && read(fds[0], &byte, 1) == 1;
        close(fds[0]);
        return ready ? pid : -1;
}

struct bench {
        sd_event *event;
        struct topology *topology;
        struct run_placement placement;
        int32_t cpu;
        struct point point;
        char tree[64];
        int cgroup_fd;
        pid_t pid;
        struct watch *watch;
};

static void bench_init(struct bench *b, bool spins) {
        *b = (struct bench){.cpu = nth_cpu(0), .point = {.transport = TRANSPORT_PIPE}};
        b->placement.ends[END_FIRST] = (struct agent_placement){.cpus = &b->cpu, .n_cpus = 1};
        CHECK_INT(host_tree_unpack("busy-lab", b->tree), 0);
        CHECK_INT(host_tree_write(b->tree, "/group/cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 4\n"), 0);
        CHECK_INT(host_tree_write(b->tree, "/group/run/cpu.stat", "usage_usec 1\n"), 0); /* without a controller */
        char path[128];
        (void) snprintf(path, sizeof(path), "%s/group/run", b->tree);
        b->cgroup_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(b->cgroup_fd >= 0);
        CHECK_INT(topology_read("", &b->topology), 0);
        CHECK(sd_event_new(&b->event) >= 0);
        b->pid = start_process(b->cpu, spins);
        CHECK(b->pid > 0);
        const struct watch_order order = {.event = b->event,
                                          .topology = b->topology,
                                          .placement = &b->placement,
                                          .point = &b->point,
                                          .pids = {b->pid, 0},
                                          .cgroup_fd = b->cgroup_fd};
        CHECK_INT(watch_new(&b->watch, &order), 0);
}

/* The loop turns until so much time is over. */
static void pass(const struct bench *b, uint64_t ns) {
        uint64_t until = util_now_ns() + ns;
        while (util_now_ns() < until)
                CHECK(sd_event_run(b->event, (until - util_now_ns()) / NSEC_PER_USEC + 1) >= 0);
}

/* The "noise" of it, and whether a flag is there; NULL on failure. */
static struct json *conclude(const struct bench *b, const char *flag, bool *ret_flagged) {
        _cleanup_free_ char *text = NULL;
        const char *flags[DISTURBANCE_KINDS + 1];
        struct json *root = NULL;
        size_t n = 0;
        watch_end(b->watch, &(struct watch_report){.stopped_ns = 0});
        if (watch_result(b->watch, &text, flags, ELEMENTS(flags), &n) < 0 ||
            json_parse(text, strlen(text), &root, NULL) < 0)
                return NULL;
        *ret_flagged = false;
        for (size_t i = 0; i < n; i++)
                *ret_flagged |= strcmp(flags[i], flag) == 0;
        return root;
}

static void bench_end(struct bench *b) {
        watch_free(b->watch);
        end_process(b->pid);
        close(b->cgroup_fd);
        host_tree_remove(b->tree);
        topology_free(b->topology);
        sd_event_unref(b->event);
}

static double share_in(const struct json *second, const char *key) {
        double share = -1;
        return json_as_double(json_get(second, key), &share) < 0 ? -1 : share;
}

/* The agent's own time is not foreign; that of another process on its CPU is. They share it, so neither gets it all. */
static void what_is_not_the_agents_is_foreign(void) {
        struct bench b;
        bool flagged;
        bench_init(&b, true);
        pid_t other = start_process(b.cpu, true);
        CHECK_INT(watch_start(b.watch, util_now_ns(), 2 * NSEC_PER_SEC), 0);
        pass(&b, 2100 * NSEC_PER_MSEC);
        end_process(other);
        struct json *noise = conclude(&b, "noisy:foreign-cpu", &flagged);
        CHECK(noise);
        CHECK(flagged);
        const struct json *seconds = json_get(noise, "seconds");
        CHECK(json_length(seconds) >= 1);
        for (const struct json *s = json_first(seconds); s; s = json_next(s)) {
                double foreign = share_in(s, "foreign_share");
                CHECK(foreign > 0.05);
                CHECK(foreign < 1.03);
        }
        json_free(noise);
        bench_end(&b);
}

/* A leader that works on a CPU that is not measured, and an agent that is not pinned: neither is the use of CPU 0. */
static void what_agents_use_elsewhere_hides_nobody(void) {
        const int other_cpu = nth_cpu(1);
        if (other_cpu < 0)
                SKIP("there is one CPU");
        for (int unpinned = 0; unpinned < 2; unpinned++) {
                struct bench b;
                bool flagged;
                bench_init(&b, false);
                watch_free(b.watch);
                b.watch = NULL;
                pid_t agent = unpinned ? start_process(other_cpu, true) : start_led_process(b.cpu, other_cpu);
                CHECK(agent > 0);
                pid_t other = start_process(b.cpu, true);
                const struct watch_order order = {.event = b.event,
                                                  .topology = b.topology,
                                                  .placement = &b.placement,
                                                  .point = &b.point,
                                                  .pids = {unpinned ? b.pid : agent, unpinned ? agent : 0},
                                                  .cgroup_fd = b.cgroup_fd};
                CHECK_INT(watch_new(&b.watch, &order), 0);
                CHECK_INT(watch_start(b.watch, util_now_ns(), 2 * NSEC_PER_SEC), 0);
                pass(&b, 2100 * NSEC_PER_MSEC);
                end_process(other);
                end_process(agent);
                struct json *noise = conclude(&b, "noisy:foreign-cpu", &flagged);
                CHECK(noise);
                CHECK(flagged);
                const struct json *seconds = json_get(noise, "seconds");
                CHECK(json_length(seconds) >= 1);
                for (const struct json *s = json_first(seconds); s; s = json_next(s))
                        CHECK(share_in(s, "foreign_share") > 0.1);
                json_free(noise);
                bench_end(&b);
        }
}

/* Then a second has the CPU that was disturbed the most, however many there are. */
static void each_of_many_threads_is_observed(void) {
        int32_t cpus[2] = {nth_cpu(0), nth_cpu(1)};
        if (cpus[1] < 0)
                SKIP("there is one CPU");
        struct bench b;
        bool flagged;
        bench_init(&b, false);
        watch_free(b.watch);
        b.watch = NULL;
        b.placement.ends[END_FIRST] = (struct agent_placement){.cpus = cpus, .n_cpus = 2};
        pid_t agent = start_wide_process(cpus);
        CHECK(agent > 0);
        const struct watch_order order = {.event = b.event,
                                          .topology = b.topology,
                                          .placement = &b.placement,
                                          .point = &b.point,
                                          .pids = {agent, 0},
                                          .cgroup_fd = b.cgroup_fd};
        CHECK_INT(watch_new(&b.watch, &order), 0);
        CHECK_INT(watch_start(b.watch, util_now_ns(), 0), 0);
        pass(&b, 300 * NSEC_PER_MSEC);
        struct json *noise = conclude(&b, "noisy:foreign-cpu", &flagged);
        end_process(agent);
        CHECK(noise);
        int64_t cpu = -1;
        const struct json *second = json_first(json_get(noise, "seconds"));
        CHECK(second && json_as_i64(json_get(second, "cpu"), &cpu) == 0);
        CHECK(cpu == cpus[0] || cpu == cpus[1]);
        CHECK(!json_get(noise, "threads_reason"));
        json_free(noise);
        bench_end(&b);
}

/* A group above the run's: its count before the window is not the window's. */
static void a_quota_above_the_run_is_seen(void) {
        for (int throttled = 4; throttled < 6; throttled++) {
                struct bench b;
                bool flagged;
                int64_t periods = -1;
                bench_init(&b, false);
                CHECK_INT(watch_start(b.watch, util_now_ns(), 0), 0);
                pass(&b, 100 * NSEC_PER_MSEC);
                char text[64];
                (void) snprintf(text, sizeof(text), "nr_periods 9\nnr_throttled %d\n", throttled);
                CHECK_INT(host_tree_write(b.tree, "/group/cpu.stat", text), 0);
                struct json *noise = conclude(&b, "noisy:quota", &flagged);
                CHECK(noise);
                CHECK_INT(json_as_i64(json_get(noise, "quota_throttled_periods"), &periods), 0);
                CHECK_INT(periods, throttled - 4);
                CHECK(flagged == (throttled > 4));
                CHECK_UINT(json_length(json_get(noise, "seconds")), 1); /* the rest is all there is */
                json_free(noise);
                bench_end(&b);
        }
}

/* For a reading in the middle the file has no count: no period was stopped when it is there again. */
static void a_quota_that_cannot_be_read_is_unknown(void) {
        struct bench b;
        bool flagged;
        bench_init(&b, false);
        CHECK_INT(watch_start(b.watch, util_now_ns(), 0), 0);
        pass(&b, 100 * NSEC_PER_MSEC);
        CHECK_INT(host_tree_write(b.tree, "/group/cpu.stat", ""), 0);
        pass(&b, NSEC_PER_SEC);
        CHECK_INT(host_tree_write(b.tree, "/group/cpu.stat", "nr_periods 9\nnr_throttled 4\n"), 0);
        pass(&b, NSEC_PER_SEC);
        struct json *noise = conclude(&b, "noisy:quota", &flagged);
        CHECK(noise);
        CHECK(!flagged);
        CHECK_INT(json_type(json_get(noise, "quota_throttled_periods")), JSON_NULL);
        CHECK(json_get(noise, "quota_throttled_periods_reason"));
        json_free(noise);
        bench_end(&b);
}

static void an_agent_that_ends_is_no_error(void) {
        struct bench b;
        bool flagged;
        bench_init(&b, false);
        CHECK_INT(watch_start(b.watch, util_now_ns(), 0), 0);
        pass(&b, 50 * NSEC_PER_MSEC);
        end_process(b.pid);
        struct json *noise = conclude(&b, "", &flagged);
        CHECK(noise);
        CHECK_UINT(json_length(json_get(noise, "seconds")), 1);
        CHECK(!json_get(noise, "error"));
        json_free(noise);
        b.pid = start_process(b.cpu, false);
        bench_end(&b);
}

/* This process's descriptor of a file; -1: there is none. */
static int descriptor_of(const char *path) {
        char link[128], at[32];
        for (int fd = 0; fd < 1024; fd++) {
                (void) snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
                ssize_t n = readlink(at, link, sizeof(link) - 1);
                link[n > 0 ? n : 0] = '\0';
                if (strcmp(link, path) == 0)
                        return fd;
        }
        return -1;
}

/* /proc/stat is a directory for a second: its time is in the second after it, and the run has a flag. */
static void a_reading_that_fails_is_taken_again(void) {
        struct bench b;
        bool flagged;
        int64_t total = -1;
        bench_init(&b, false);
        CHECK_INT(watch_start(b.watch, util_now_ns(), 3 * NSEC_PER_SEC), 0);
        pass(&b, 100 * NSEC_PER_MSEC);
        int stat_fd = descriptor_of("/proc/stat"), saved = fcntl(stat_fd, F_DUPFD_CLOEXEC, 0);
        CHECK(saved >= 0);
        CHECK_INT(dup2(b.cgroup_fd, stat_fd), stat_fd);
        pass(&b, 1200 * NSEC_PER_MSEC);
        CHECK_INT(dup2(saved, stat_fd), stat_fd);
        close(saved);
        pass(&b, 1800 * NSEC_PER_MSEC);
        struct json *noise = conclude(&b, "not_observed", &flagged);
        CHECK(noise);
        CHECK(flagged);
        CHECK(json_get(noise, "error"));
        CHECK_INT(json_as_i64(json_get(noise, "seconds_total"), &total), 0);
        CHECK(total >= 1);
        json_free(noise);
        bench_end(&b);
}

/* The daemon does not come to its timer: at the window's begin, or between two of its seconds. */
static void a_daemon_that_is_late_has_not_observed(void) {
        for (int between = 0; between < 2; between++) {
                struct bench b;
                bool flagged;
                const char *reason = NULL;
                int64_t longest_ns = 0;
                bench_init(&b, false);
                CHECK_INT(watch_start(b.watch, util_now_ns(), (between ? 3 : 1) * NSEC_PER_SEC), 0);
                if (between)
                        pass(&b, 100 * NSEC_PER_MSEC);
                usleep(between ? 1700 * 1000 : 300 * 1000);
                pass(&b, between ? 1300 * NSEC_PER_MSEC : 800 * NSEC_PER_MSEC);
                struct json *noise = conclude(&b, "not_observed", &flagged);
                CHECK(noise);
                CHECK(flagged);
                CHECK(!json_get(noise, "error"));
                CHECK_INT(json_as_string(json_get(noise, "not_observed_reason"), &reason), 0);
                CHECK(strstr(reason, between ? "longest_interval_ns: " : "observed_share: "));
                CHECK(share_in(noise, "observed_share") < (between ? 1 : 0.75));
                CHECK_INT(json_as_i64(json_get(noise, "longest_interval_ns"), &longest_ns), 0);
                CHECK(longest_ns > (between ? 1600 : 200) * (int64_t) NSEC_PER_MSEC);
                json_free(noise);
                bench_end(&b);
        }
}

/* It is known afterwards; a window of planned length has its planned end. */
static void the_end_of_a_window_by_count(void) {
        for (int counted = 0; counted < 2; counted++) {
                struct bench b;
                bench_init(&b, false);
                const uint64_t begin_ns = util_now_ns(), end_ns = begin_ns + 8 * NSEC_PER_MSEC;
                CHECK_INT(watch_start(b.watch, begin_ns, counted ? 0 : 8 * NSEC_PER_MSEC), 0);
                pass(&b, 10 * NSEC_PER_MSEC);
                watch_end(b.watch, &(struct watch_report){.begin_ns = begin_ns,
                                                          .begin_ms = 1234567890123,
                                                          .end_ns = end_ns + !counted});
                _cleanup_free_ char *text = NULL;
                const char *flags[DISTURBANCE_KINDS + 1];
                size_t n;
                CHECK_INT(watch_result(b.watch, &text, flags, ELEMENTS(flags), &n), 0);
                CHECK(strstr(text, "\"begin_unix_ms\":1234567890123,"));
                const struct disturbance *d = watch_disturbance(b.watch);
                CHECK_UINT(d->window.begin_ns, begin_ns);
                CHECK_UINT(d->window.end_ns, end_ns);
                CHECK(d->window.counted == counted);
                bench_end(&b);
        }
}

static void a_window_that_never_began(void) {
        struct bench b;
        bool flagged;
        bench_init(&b, false);
        CHECK_INT(watch_start(b.watch, util_now_ns() + DEADLINE_NS, NSEC_PER_SEC), 0);
        struct json *noise = conclude(&b, "", &flagged);
        CHECK(noise);
        CHECK_INT(json_type(json_get(noise, "worst")), JSON_NULL);
        CHECK_UINT(json_length(json_get(noise, "seconds")), 0);
        json_free(noise);
        bench_end(&b);
}

static bool is_ksoftirqd(const char *link) {
        char path[64], name[32] = "";
        int pid = 0, end = 0;
        if (sscanf(link, "/proc/%d/schedstat%n", &pid, &end) != 1 || end == 0 || link[end])
                return false;
        (void) snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        return f && fgets(name, sizeof(name), f) && strncmp(name, "ksoftirqd/", strlen("ksoftirqd/")) == 0;
}

/* Counts this process's open files that are of the threads that run softirqs. */
static size_t open_ksoftirqds(void) {
        char link[128];
        size_t n = 0;
        DIR *d = opendir("/proc/self/fd");
        for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) { /* NOLINT(concurrency-mt-unsafe) */
                ssize_t length = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
                link[length > 0 ? length : 0] = '\0';
                n += is_ksoftirqd(link);
        }
        if (d)
                closedir(d);
        return n;
}

/* Takes every number below this one. */
static void fill_below(int number, int *filled, size_t *n) {
        for (int fd; (fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0; filled[(*n)++] = fd)
                if (fd >= number) {
                        close(fd);
                        return;
                }
}

/* Whichever number is the first that is free: a sum of some CPUs would stand for all. */
static void every_ksoftirqd_is_observed_or_none(void) {
        struct bench b;
        struct rlimit was, limit;
        _cleanup_fclose_ FILE *f = fopen("/proc/2/comm", "re");
        char name[32] = "";
        if (!f || !fgets(name, sizeof(name), f) || strcmp(name, "kthreadd\n") != 0)
                SKIP("this PID namespace does not show the kernel's threads");
        bench_init(&b, false);
        watch_free(b.watch);
        b.watch = NULL;
        b.placement.ends[END_FIRST] = (struct agent_placement){0}; /* anywhere: every CPU is measured */
        size_t n_cpus = 0, n = 0, none = 0, all = 0;
        for (size_t i = 0; i < b.topology->n_cpus; i++)
                n_cpus += b.topology->cpus[i].online;
        CHECK_INT(getrlimit(RLIMIT_NOFILE, &was), 0);
        limit = was;
        limit.rlim_cur = DESCRIPTORS_OF_DAEMON + 4 * (2 * n_cpus + 32);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const int files_max = (int) (DESCRIPTORS_OF_DAEMON + descriptors_of_threads(limit.rlim_cur));
        _cleanup_free_ int *filled = calloc((size_t) files_max, sizeof(*filled));
        CHECK(filled);
        const struct watch_order order = {.event = b.event,
                                          .topology = b.topology,
                                          .placement = &b.placement,
                                          .point = &b.point,
                                          .pids = {b.pid, 0},
                                          .cgroup_fd = b.cgroup_fd};
        for (int first = files_max - (int) (2 * n_cpus) - 16; first < files_max; first++) {
                fill_below(first, filled, &n);
                CHECK_INT(watch_new(&b.watch, &order), 0);
                size_t open = open_ksoftirqds();
                if (open != 0 && open != n_cpus)
                        CHECK_FAIL("from %d on %zu of %zu are observed", first, open, n_cpus);
                none += open == 0;
                all += open == n_cpus;
                watch_free(b.watch);
                b.watch = NULL;
        }
        while (n > 0)
                close(filled[--n]);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), 0);
        CHECK(none > 0);
        CHECK(all > 0);
        bench_end(&b);
}

/* Counts this process's open files whose names end so; -1 where the number of one is not below files_max. */
static int open_files(const char *suffix, int files_max) {
        char link[256];
        int n = 0;
        DIR *d = opendir("/proc/self/fd");
        for (struct dirent *e = d ? readdir(d) : NULL; e && n >= 0;
             e = readdir(d)) { /* NOLINT(concurrency-mt-unsafe) */
                ssize_t length = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
                link[length > 0 ? length : 0] = '\0';
                if (length < (ssize_t) strlen(suffix) || strcmp(link + length - strlen(suffix), suffix) != 0)
                        continue;
                n = strtol(e->d_name, NULL, 10) < files_max ? n + 1 : -1;
        }
        if (d)
                closedir(d);
        return n;
}

/* -1: it cannot be read. */
static double cpu_ns_of(pid_t pid) {
        clockid_t clock;
        struct timespec t;
        return clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0
                       ? (double) t.tv_sec * NSEC_PER_SEC + (double) t.tv_nsec
                       : -1;
}

/* Threads that share the only CPU of their end are observed by their process's own time: a thousand take no thousand
 * readings a second. */
static void threads_on_one_cpu_are_observed_together(void) {
        for (int shares = 0; shares < 2; shares++) {
                struct bench b;
                bool flagged;
                bench_init(&b, true);
                watch_free(b.watch);
                b.watch = NULL;
                b.placement.shares_cpus = shares;
                const struct watch_order order = {.event = b.event,
                                                  .topology = b.topology,
                                                  .placement = &b.placement,
                                                  .point = &b.point,
                                                  .pids = {b.pid, 0},
                                                  .cgroup_fd = b.cgroup_fd};
                char file[64];
                (void) snprintf(file, sizeof(file), "/proc/%d/task/%d/schedstat", b.pid, b.pid);
                CHECK_INT(watch_new(&b.watch, &order), 0);
                CHECK_INT(open_files(file, INT_MAX), !shares);
                const uint64_t began_ns = util_now_ns();
                const double own_ns = cpu_ns_of(b.pid);
                CHECK_INT(watch_start(b.watch, util_now_ns(), NSEC_PER_SEC), 0);
                pass(&b, 1100 * NSEC_PER_MSEC);
                struct json *noise = conclude(&b, "noisy:foreign-cpu", &flagged);
                const struct json *seconds = noise ? json_get(noise, "seconds") : NULL;
                CHECK(json_length(seconds) >= 1);
                double foreign_ns = 0,
                       without_agent_ns = (double) (util_now_ns() - began_ns) - cpu_ns_of(b.pid) + own_ns;
                for (const struct json *s = json_first(seconds); s; s = json_next(s))
                        foreign_ns += share_in(s, "foreign_share") * share_in(s, "interval_ns");
                CHECK(foreign_ns < without_agent_ns + 0.03 * NSEC_PER_SEC);
                json_free(noise);
                bench_end(&b);
        }
}

/* One file of each CPU, in a tree. How many; -1 on failure. */
static int write_for_each_cpu(const struct bench *b, const char *name, const char *text) {
        int n = 0;
        for (size_t i = 0; i < b->topology->n_cpus && n >= 0; i++) {
                char path[128];
                (void) snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", b->topology->cpus[i].id, name);
                n = host_tree_write(b->tree, path, text) < 0 ? -1 : n + b->topology->cpus[i].online;
        }
        return n;
}

/* A machine may have hundreds of measured CPUs. The counts of core and package are two files of each, and its clock is
 * one, or three: all clocks are read or none, whichever number is the first that is free. */
static void files_of_cpus_leave_descriptors_to_others(void) {
        struct bench b;
        struct rlimit was, limit;
        size_t n = 0;
        bench_init(&b, false);
        watch_free(b.watch);
        b.watch = NULL;
        b.placement.ends[END_FIRST] = (struct agent_placement){0}; /* anywhere: every CPU is measured */
        const int n_cpus = write_for_each_cpu(&b, "cpufreq/scaling_cur_freq", "2400000\n");
        CHECK(n_cpus > 0);
        CHECK_INT(write_for_each_cpu(&b, "thermal_throttle/core_throttle_count", "0\n"), n_cpus);
        CHECK_INT(write_for_each_cpu(&b, "thermal_throttle/package_throttle_count", "0\n"), n_cpus);
        CHECK_INT(getrlimit(RLIMIT_NOFILE, &was), 0);
        limit = was;
        limit.rlim_cur = DESCRIPTORS_OF_DAEMON + 4 * (3 * (rlim_t) n_cpus + 32);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const int files_max = (int) (DESCRIPTORS_OF_DAEMON + descriptors_of_threads(limit.rlim_cur));
        _cleanup_free_ int *filled = calloc((size_t) files_max, sizeof(*filled));
        CHECK(filled);
        const struct watch_order order = {.event = b.event,
                                          .topology = b.topology,
                                          .placement = &b.placement,
                                          .point = &b.point,
                                          .pids = {b.pid, 0},
                                          .cgroup_fd = b.cgroup_fd,
                                          .root = b.tree};
        int none = 0, all = 0;
        for (int first = files_max - 5 * n_cpus - 16; first <= files_max; first++) {
                fill_below(first, filled, &n);
                CHECK_INT(watch_new(&b.watch, &order), 0);
                int throttles = open_files("_throttle_count", files_max);
                int counters = open_files("[perf_event]", files_max); /* where the kernel counts APERF and MPERF */
                int clocks = counters < 0 ? -1 : open_files("scaling_cur_freq", files_max) + counters / 3;
                if (throttles < 0 || counters % 3 != 0 || (clocks != 0 && clocks != n_cpus))
                        CHECK_FAIL("from %d on %d of %d clocks are read, and %d counts", first, clocks, n_cpus,
                                   throttles);
                CHECK((throttles == 2 * n_cpus) == !watch_disturbance(b.watch)->run.no_throttles);
                none += throttles == 0 && clocks == 0;
                all += throttles == 2 * n_cpus && clocks == n_cpus;
                watch_free(b.watch);
                b.watch = NULL;
        }
        while (n > 0)
                close(filled[--n]);
        CHECK(none > 0);
        CHECK(all > 0);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), 0);
        bench_end(&b);
}

int main(void) {
        RUN(what_is_not_the_agents_is_foreign);
        RUN(what_agents_use_elsewhere_hides_nobody);
        RUN(each_of_many_threads_is_observed);
        RUN(a_quota_above_the_run_is_seen);
        RUN(a_quota_that_cannot_be_read_is_unknown);
        RUN(an_agent_that_ends_is_no_error);
        RUN(a_reading_that_fails_is_taken_again);
        RUN(a_daemon_that_is_late_has_not_observed);
        RUN(the_end_of_a_window_by_count);
        RUN(a_window_that_never_began);
        RUN(every_ksoftirqd_is_observed_or_none);
        RUN(threads_on_one_cpu_are_observed_together);
        RUN(files_of_cpus_leave_descriptors_to_others);
        return check_end();
}
