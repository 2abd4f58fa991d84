/* SPDX-License-Identifier: MIT */

/*
 * Owns the timer, the open files and two readings that take turns. Everything that is there is opened before the window
 * begins; from then on a reading is a pread() for each file and a clock_gettime() for each process. Settings alone are
 * opened anew, some 60 small files, one for each of up to 64 device interrupts, and a dozen for each CPU where it has
 * cpufreq and cpuidle. The rest takes less than a millisecond of CPU time in each second, and some 2 us more for each
 * thread that is observed one by one.
 *
 *      the machine      CPU times (host/disturbance); interrupts and packets of each CPU; of the measured CPUs the
 *                       frequency, how often they were throttled for their temperature, and ksoftirqd's CPU time
 *      the agents       CPU time of each process by its clock, which has the threads that have ended, too; of each
 *                       thread its CPU time, its wait for a CPU and its involuntary switches
 *      settings         of the whole machine, which may be changed and put back (host/environment)
 *      around them      periods throttled by a quota of the run's cgroup and those above it
 *
 * Source: man 3 clock_getcpuclockid, man 5 proc_pid_status, Documentation/scheduler/sched-stats.rst
 * (/proc/PID/task/TID/schedstat), Documentation/admin-guide/cgroup-v2.rst (cpu.stat).
 */

#include "daemon/run/watch/watch.h"

#include "daemon/host/disturbance/cpu-frequency.h"
#include "daemon/host/disturbance/interrupts.h"
#include "daemon/host/hostfs.h"
#include "daemon/log.h"
#include "daemon/run/sandbox/cgroup.h"
#include "daemon/run/spawn/affinity.h"
#include "daemon/run/watch/procs.h"
#include "schema/limits.h"
#include "schema/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define PROCESSES_MAX 64u /* agents, and what a workload has forked */
/* The most threads of all agents together. Their times are known CPU by CPU only where each is observed: else a
 * disturbance of one CPU is lost among those of all that are measured. */
#define THREADS_MAX (END_COUNT * (SPEC_THREADS_MAX + 1u) + PROCESSES_MAX)
#define GROUPS_MAX 16u /* the run's cgroup and those above it */
/* A read of /proc/interrupts takes the kernel some 30 ns for each byte: of a longer one, as a machine with more than
 * about 50 CPUs has it, no second would be cheap. */
#define INTERRUPTS_MAX (128u * 1024u)
/* The reading at the window's end is taken a little before it, while every thread is alive. */
#define BEFORE_END_NS (5 * NSEC_PER_MSEC)

#define NO_DESCRIPTOR_FOR_CLOCKS                                                                                       \
        "the daemon had no descriptor to spare for the clock of each measured CPU: RLIMIT_NOFILE"
#define NO_DESCRIPTOR_FOR_THROTTLES                                                                                    \
        "the daemon had no descriptor to spare for the counts of each measured CPU in thermal_throttle: RLIMIT_NOFILE"

struct watched_process {
        pid_t pid;
        enum end end;
        clockid_t clock;
        int64_t cpu_ns; /* at the last reading */
};

struct watched_thread {
        size_t process;
        ptrdiff_t cpu;  /* index of the only one that it may be on; -1: it may be on several */
        bool elsewhere; /* it may be on no measured CPU, as the leader */
        bool alone;     /* it has a measured CPU to itself: its switches and delays are others' doing */
        int schedstat_fd, status_fd;
        int64_t cpu_ns;
};

struct watch {
        struct watch_order order;
        struct cpu_time time;
        struct disturbance disturbance;
        struct disturbance_cpu *cpus;
        int *ids;
        size_t n_cpus;
        struct cpu_frequency *frequencies;   /* n_cpus */
        const char *frequency_source;        /* NULL: none */
        bool frequencies_unread;             /* of each, as there is no descriptor to spare for one */
        int interrupts_fd;                   /* -1: not read */
        const char *no_interrupts;           /* why; NULL: it is */
        struct interrupt_counts *interrupts; /* n_cpus */
        char *text;                          /* of the file, and its room */
        size_t text_size;
        struct packets packets;
        int *ksoftirqd_fds;     /* n_cpus: schedstat of the CPU's thread; -1 */
        int (*throttle_fds)[2]; /* n_cpus: of core and package; -1 */
        bool throttles_unread;  /* of some measured CPU, as there is no descriptor to spare */
        struct watched_process processes[PROCESSES_MAX];
        size_t n_processes;
        struct watched_thread threads[THREADS_MAX];
        size_t n_threads;
        int group_fds[GROUPS_MAX];
        size_t n_groups;
        bool groups_unknown; /* there is one that cannot be read */
        uint64_t files_max;  /* a descriptor from here on is one that others may need */
        struct disturbance_reading readings[2];
        unsigned latest; /* of the two */
        bool has_reading;
        uint64_t begin_ns;
        uint64_t end_ns;  /* of the window as planned; 0: not planned */
        uint64_t last_ns; /* when the last reading is due; 0: as above */
        int64_t begin_ms; /* wall clock */
        int error;        /* of the last reading that failed */
        sd_event_source *timer;
};

/* --- open files --- */

static int open_file(int dir, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int open_file(int dir, const char *format, ...) {
        char path[256];
        va_list ap;
        va_start(ap, format);
        int n = vsnprintf(path, sizeof(path), format, ap);
        va_end(ap);
        return n < 0 || n >= (int) sizeof(path) ? -1 : openat(dir, path, O_RDONLY | O_CLOEXEC);
}

/* -1 when it cannot be read. NUL-terminated. */
static ssize_t read_file(int fd, char *text, size_t size) {
        ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        return n;
}

/* The number behind a key at the beginning of a line; -1 when there is none. */
static int64_t number_after(const char *text, const char *key) {
        size_t n = strlen(key);
        for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                if (strncmp(line, key, n) == 0)
                        return (int64_t) strtoull(line + n, NULL, 10);
        return -1;
}

static bool has_cpu(const struct agent_placement *p, int id) {
        for (size_t i = 0; i < p->n_cpus; i++)
                if (p->cpus[i] == id)
                        return true;
        return p->n_cpus == 0; /* an agent that is not pinned may be anywhere */
}

static bool is_measured(const struct watch_order *o, int id) {
        for (unsigned e = 0; e < END_COUNT; e++)
                if (o->pids[e] > 0 && has_cpu(&o->placement->ends[e], id))
                        return true;
        return false;
}

static bool has_measured_sibling(const struct watch_order *o, const struct topology_cpu *cpu) {
        for (size_t i = 0; i < cpu->n_siblings; i++)
                if (is_measured(o, cpu->siblings[i]))
                        return true;
        return false;
}

static const char *root_of(const struct watch *w) {
        return w->order.root ? w->order.root : "";
}

static void open_throttles(struct watch *w, int cpu, int ret[2]) {
        static const char *const of[] = {"core", "package"};
        for (size_t i = 0; i < ELEMENTS(of); i++) {
                int fd = open_file(AT_FDCWD, "%s/sys/devices/system/cpu/cpu%d/thermal_throttle/%s_throttle_count",
                                   root_of(w), cpu, of[i]);
                const bool spare = fd >= 0 && (uint64_t) fd < w->files_max;
                w->throttles_unread |= fd >= 0 ? !spare : errno == EMFILE || errno == ENFILE;
                ret[i] = spare ? fd : util_close(fd);
        }
}

/* The clock of each measured CPU is read, or none: the slowest of some would pass as that of all. The numbers of the
 * counters are those of this machine, whatever tree cpufreq is read from: its kernel opens them. */
static void open_frequencies(struct watch *w) {
        struct cpu_frequency_pmu pmu;
        bool counted = cpu_frequency_pmu("", &pmu) == 0;
        for (size_t i = 0; i < w->n_cpus && !w->frequencies_unread; i++)
                if (w->cpus[i].measured)
                        w->frequencies_unread = cpu_frequency_open(&w->frequencies[i], root_of(w), w->cpus[i].id,
                                                                   counted ? &pmu : NULL, w->files_max) < 0;
        for (size_t i = 0; i < w->n_cpus; i++) {
                if (w->frequencies_unread)
                        cpu_frequency_close(&w->frequencies[i]);
                if (!w->frequency_source)
                        w->frequency_source = cpu_frequency_source(&w->frequencies[i]);
        }
}

static int list_cpus(struct watch *w) {
        const struct topology *t = w->order.topology;
        w->cpus = calloc(t->n_cpus, sizeof(*w->cpus));
        w->ids = calloc(t->n_cpus, sizeof(*w->ids));
        w->frequencies = calloc(t->n_cpus, sizeof(*w->frequencies));
        w->ksoftirqd_fds = calloc(t->n_cpus, sizeof(*w->ksoftirqd_fds));
        w->interrupts = calloc(t->n_cpus, sizeof(*w->interrupts));
        w->throttle_fds = calloc(t->n_cpus, sizeof(*w->throttle_fds));
        if (!w->cpus || !w->ids || !w->frequencies || !w->ksoftirqd_fds || !w->interrupts || !w->throttle_fds)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_cpus; i++) {
                const struct topology_cpu *cpu = &t->cpus[i];
                if (!cpu->online)
                        continue;
                bool measured = is_measured(&w->order, cpu->id);
                w->ids[w->n_cpus] = cpu->id;
                w->frequencies[w->n_cpus] = CPU_FREQUENCY_NONE;
                w->ksoftirqd_fds[w->n_cpus] = -1;
                w->throttle_fds[w->n_cpus][0] = w->throttle_fds[w->n_cpus][1] = -1;
                if (measured)
                        open_throttles(w, cpu->id, w->throttle_fds[w->n_cpus]);
                w->cpus[w->n_cpus++] = (struct disturbance_cpu){
                        .id = cpu->id,
                        .measured = measured,
                        .sibling = !measured && has_measured_sibling(&w->order, cpu),
                };
        }
        return 0;
}

/* "ksoftirqd/3": the index of CPU 3, if it is a measured one; else -1. */
static ptrdiff_t softirqs_of(const struct watch *w, const char *name) {
        static const char prefix[] = "ksoftirqd/";
        if (strncmp(name, prefix, strlen(prefix)) != 0)
                return -1;
        long id = strtol(name + strlen(prefix), NULL, 10);
        for (size_t i = 0; i < w->n_cpus; i++)
                if (w->cpus[i].measured && w->cpus[i].id == id)
                        return (ptrdiff_t) i;
        return -1;
}

static bool has_each_ksoftirqd(const struct watch *w) {
        for (size_t i = 0; i < w->n_cpus; i++)
                if (w->cpus[i].measured && w->ksoftirqd_fds[i] < 0)
                        return false;
        return true;
}

/* The kernel's threads are kthreadd's children, which is process 2 of the host and of no other PID namespace. Where one
 * cannot be found or opened, all stay unknown: the sum of some would pass as that of all. */
static int find_ksoftirqd(struct watch *w) {
        _cleanup_(hostfs_deinit) struct hostfs h = {.root_fd = -1};
        _cleanup_free_ char *children = NULL;
        char name[64];
        size_t missing = 0;
        for (size_t i = 0; i < w->n_cpus; i++)
                missing += w->cpus[i].measured;
        int r = hostfs_init(&h, "");
        if (r == 0 && hostfs_line(&h, name, sizeof(name), "/proc/2/comm") == 0 && strcmp(name, "kthreadd") == 0)
                r = hostfs_text(&h, &children, "/proc/2/task/2/children");
        /* the oldest come first, and a large host has thousands */
        for (char *at = children, *stop; missing > 0 && at && *at; at = stop) {
                long pid = strtol(at, &stop, 10);
                if (stop == at)
                        break;
                stop += strspn(stop, " \n");
                if (hostfs_line(&h, name, sizeof(name), "/proc/%ld/comm", pid) < 0)
                        continue;
                ptrdiff_t i = softirqs_of(w, name);
                if (i < 0)
                        continue;
                int fd = open_file(AT_FDCWD, "/proc/%ld/schedstat", pid);
                w->ksoftirqd_fds[i] = fd >= 0 && (uint64_t) fd < w->files_max ? fd : util_close(fd);
                missing--;
        }
        const bool whole = has_each_ksoftirqd(w);
        for (size_t i = 0; i < w->n_cpus && !whole; i++)
                w->ksoftirqd_fds[i] = util_close(w->ksoftirqd_fds[i]);
        return r == -ENOMEM ? r : 0;
}

static void open_interrupts(struct watch *w) {
        w->interrupts_fd = open_file(AT_FDCWD, "/proc/interrupts");
        if (w->interrupts_fd < 0 || hostfs_read_again(w->interrupts_fd, &w->text, &w->text_size) < 0)
                w->no_interrupts = "/proc/interrupts cannot be read";
        else if (strlen(w->text) > INTERRUPTS_MAX)
                w->no_interrupts =
                        "/proc/interrupts is longer than 128 KiB, which is not read every second: judged are "
                        "the interrupts of the run from start to end";
        if (w->no_interrupts)
                w->interrupts_fd = util_close(w->interrupts_fd);
}

static bool may_be_on(const struct affinity *a, int id) {
        struct affinity one;
        if (affinity_from_list(&id, 1, &one) < 0)
                return true;
        for (size_t i = 0; i < ELEMENTS(a->bits); i++)
                if (a->bits[i] & one.bits[i])
                        return true;
        return false;
}

/* Threads of such an end may move among its CPUs. */
static bool end_roams(const struct watch_order *o, unsigned end) {
        const struct agent_placement *p = &o->placement->ends[end];
        return o->pids[end] > 0 && (p->n_cpus == 0 || p->roam);
}

/* Where a thread may be, by its affinity: of one whose affinity cannot be read nothing is concluded. */
static void locate(const struct watch *w, pid_t tid, struct watched_thread *t) {
        struct affinity a;
        size_t n = 0;
        t->cpu = -1;
        if (affinity_get(tid, &a) < 0)
                return;
        t->elsewhere = true;
        for (size_t i = 0; i < w->n_cpus; i++)
                if (may_be_on(&a, w->cpus[i].id)) {
                        t->cpu = n++ ? -1 : (ptrdiff_t) i;
                        t->elsewhere &= !w->cpus[i].measured;
                }
        t->alone = t->cpu >= 0 && !t->elsewhere && !w->order.placement->shares_cpus &&
                   w->order.point->workload != WORKLOAD_CONTEXT_SWITCH;
        for (unsigned e = 0; e < END_COUNT && t->alone; e++)
                t->alone = !end_roams(&w->order, e) || !has_cpu(&w->order.placement->ends[e], w->cpus[t->cpu].id);
}

static void add_process(struct watch *w, pid_t pid, enum end end) {
        struct watched_process p = {.pid = pid, .end = end};
        if (w->n_processes < PROCESSES_MAX && clock_getcpuclockid(pid, &p.clock) == 0)
                w->processes[w->n_processes++] = p;
}

/* Processes that a workload has forked belong to the run. */
static void add_children(struct watch *w, pid_t pid, pid_t tid, enum end end) {
        int child;
        _cleanup_fclose_ FILE *f = procs_open_children(pid, tid);
        while (f && w->n_processes < PROCESSES_MAX && fscanf(f, "%d", &child) == 1) /* NOLINT(cert-err34-c) */
                add_process(w, child, end);
}

static void close_threads(struct watch *w) {
        for (size_t i = 0; i < w->n_threads; i++) {
                util_close(w->threads[i].schedstat_fd);
                util_close(w->threads[i].status_fd);
        }
        w->n_threads = 0;
}

/* Nothing is concluded from the time of one that may be on several CPUs, nor from the switches of one that has none to
 * itself; and that of one on the only CPU of its end is among what share_out() has left for it. False: there is no
 * descriptor to spare. */
static bool open_thread(const struct watch *w, int tasks, pid_t tid, struct watched_thread *t) {
        const struct agent_placement *end = &w->order.placement->ends[w->processes[t->process].end];
        const bool only = t->cpu >= 0 && end->n_cpus == 1 && end->cpus[0] == w->cpus[t->cpu].id;
        if ((t->cpu < 0 && !t->elsewhere) || (only && !t->alone))
                return true;
        t->schedstat_fd = open_file(tasks, "%d/schedstat", tid);
        if (t->alone)
                t->status_fd = open_file(tasks, "%d/status", tid);
        int last = t->alone ? t->status_fd : t->schedstat_fd;
        return t->schedstat_fd >= 0 && last >= 0 && (uint64_t) last < w->files_max;
}

/* False when there are more threads than are observed one by one, or than there are descriptors to spare for. */
static bool add_threads(struct watch *w, size_t process) {
        char path[64];
        const struct watched_process *p = &w->processes[process];
        (void) snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
        DIR *tasks = opendir(path);
        struct dirent *d;
        bool fits = true;
        while (fits && tasks && (d = readdir(tasks))) { /* NOLINT(concurrency-mt-unsafe): a stream of our own */
                pid_t tid = (pid_t) strtol(d->d_name, NULL, 10);
                if (tid <= 0)
                        continue;
                fits = w->n_threads < THREADS_MAX;
                if (!fits)
                        break;
                add_children(w, p->pid, tid, p->end);
                struct watched_thread t = {.process = process, .schedstat_fd = -1, .status_fd = -1};
                locate(w, tid, &t);
                fits = open_thread(w, dirfd(tasks), tid, &t);
                w->threads[w->n_threads++] = t;
        }
        if (tasks)
                closedir(tasks);
        return fits;
}

static void find_threads(struct watch *w) {
        for (unsigned e = 0; e < END_COUNT; e++)
                if (w->order.pids[e] > 0)
                        add_process(w, w->order.pids[e], (enum end) e);
        for (size_t i = 0; i < w->n_processes; i++) /* grows by what they have forked */
                if (!add_threads(w, i)) {
                        close_threads(w);
                        return;
                }
}

/* cpu.stat of a cgroup and of each above it; one without a CPU controller has no such count, and above the root there
 * is no such file. */
static void open_groups_from(struct watch *w, int dir) {
        char up[4 * GROUPS_MAX + 1] = "", text[1024];
        for (size_t i = 0; dir >= 0 && i < GROUPS_MAX && w->n_groups < GROUPS_MAX; i++, strcat(up, "../")) {
                int fd = open_file(dir, "%scpu.stat", up);
                if (fd < 0) {
                        w->groups_unknown |= errno != ENOENT;
                        return;
                }
                ssize_t n = read_file(fd, text, sizeof(text));
                w->groups_unknown |= n < 0;
                if (number_after(text, "nr_throttled ") < 0)
                        util_close(fd);
                else
                        w->group_fds[w->n_groups++] = fd;
        }
}

/* The CPU controller is in one hierarchy, of version 1 or 2. A run without a cgroup of its own is in the daemon's. */
static void open_groups(struct watch *w) {
        const pid_t pid = w->order.pids[END_FIRST];
        _cleanup_close_ int v1 = cgroup_open(pid, "cpu");
        _cleanup_close_ int v2 = w->order.cgroup_fd >= 0 ? -1 : cgroup_open(pid, NULL);
        open_groups_from(w, v1);
        open_groups_from(w, v2 >= 0 ? v2 : w->order.cgroup_fd);
}

/* --- readings --- */

static int64_t process_ns(struct watched_process *p) {
        struct timespec t;
        if (clock_gettime(p->clock, &t) == 0)
                p->cpu_ns = (int64_t) t.tv_sec * (int64_t) NSEC_PER_SEC + t.tv_nsec;
        return p->cpu_ns; /* of one that has ended, as it was */
}

/* "CPU-TIME DELAY TIMESLICES" */
static void read_thread(struct watched_thread *t, struct disturbance_reading *to, size_t i) {
        char text[4096], *end = NULL;
        to->involuntary[i] = to->delay_ns[i] = -1;
        if (read_file(t->schedstat_fd, text, sizeof(text)) > 0) {
                t->cpu_ns = (int64_t) strtoull(text, &end, 10);
                to->delay_ns[i] = t->alone ? (int64_t) strtoull(end, NULL, 10) : -1;
        }
        if (t->alone && read_file(t->status_fd, text, sizeof(text)) > 0)
                to->involuntary[i] = number_after(text, "nonvoluntary_ctxt_switches:");
}

/* Each thread's time is its CPU's, and of no measured CPU where it may be on none. What is left, that of threads that
 * may move or have come since, is spread over all CPUs of the end. */
static void share_out(struct watch *w, size_t process, int64_t total, struct disturbance_reading *to) {
        const struct agent_placement *end = &w->order.placement->ends[w->processes[process].end];
        to->own_total_ns += total;
        to->own_measured_ns += total;
        for (size_t i = 0; i < w->n_threads; i++) {
                const struct watched_thread *t = &w->threads[i];
                if (t->process != process)
                        continue;
                if (t->elsewhere)
                        to->own_measured_ns -= t->cpu_ns;
                else if (t->cpu >= 0)
                        to->own_ns[t->cpu] += t->cpu_ns;
                if (t->elsewhere || t->cpu >= 0)
                        total -= t->cpu_ns;
        }
        for (size_t i = 0; i < w->n_cpus && end->n_cpus > 0; i++)
                if (has_cpu(end, w->cpus[i].id))
                        to->own_ns[i] += total / (int64_t) end->n_cpus;
}

/* -1: there is none, or one cannot be read, as the sum of the others would pass as that of all. */
static int64_t sum_of(const int *fds, size_t n, const char *key) {
        char text[1024];
        int64_t sum = n ? 0 : -1;
        for (size_t i = 0; i < n && sum >= 0; i++) {
                int64_t v = read_file(fds[i], text, sizeof(text)) > 0 ? number_after(text, key) : -1;
                sum = v < 0 ? -1 : sum + v;
        }
        return sum;
}

static void read_interrupts(struct watch *w, struct disturbance_reading *to) {
        bool known = w->interrupts_fd >= 0 && hostfs_read_again(w->interrupts_fd, &w->text, &w->text_size) == 0 &&
                     interrupts_parse(w->text, w->ids, w->n_cpus, w->interrupts) == 0;
        for (size_t i = 0; i < w->n_cpus; i++)
                to->device_interrupts[i] = known && w->interrupts[i].known ? (int64_t) w->interrupts[i].devices : -1;
}

/* -1: not known. */
static int64_t read_throttles(const int fds[2]) {
        char text[32];
        int64_t sum = 0;
        for (size_t i = 0; i < 2; i++) {
                if (read_file(fds[i], text, sizeof(text)) <= 0)
                        return -1;
                sum += strtoll(text, NULL, 10);
        }
        return sum;
}

static int take(struct watch *w, struct disturbance_reading *to) {
        struct timespec daemon;
        char text[64];
        to->own_total_ns = to->own_measured_ns = 0;
        memset(to->own_ns, 0, w->n_cpus * sizeof(*to->own_ns));
        for (size_t i = 0; i < w->n_cpus; i++) {
                to->frequency_khz[i] = cpu_frequency_read(&w->frequencies[i]);
                to->throttles[i] = read_throttles(w->throttle_fds[i]);
        }
        to->throttled = w->groups_unknown ? -1 : sum_of(w->group_fds, w->n_groups, "nr_throttled ");
        read_interrupts(w, to);
        packets_read(&w->packets, w->ids, w->n_cpus, &to->packets);
        for (size_t i = 0; i < w->n_threads; i++)
                read_thread(&w->threads[i], to, i);
        /* The clocks bring the account of a task that is running up to date, in the sources below, too. */
        to->at_ns = util_now_ns();
        for (size_t i = 0; i < w->n_processes; i++)
                share_out(w, i, process_ns(&w->processes[i]), to);
        to->daemon_ns = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &daemon) == 0
                                ? (int64_t) daemon.tv_sec * (int64_t) NSEC_PER_SEC + daemon.tv_nsec
                                : 0;
        for (size_t i = 0; i < w->n_cpus; i++)
                to->ksoftirqd_ns[i] =
                        read_file(w->ksoftirqd_fds[i], text, sizeof(text)) > 0 ? strtoll(text, NULL, 10) : -1;
        int r = cpu_time_read(&w->time, util_now_ns(), w->ids, w->n_cpus, to->cpus);
        memcpy(to->stat_ns, w->time.stat_ns, sizeof(to->stat_ns));
        return r;
}

static int step(struct watch *w) {
        struct disturbance_reading *to = &w->readings[!w->latest];
        int r = take(w, to);
        if (r == 0 && w->order.environment)
                r = environment_observe(w->order.root, w->order.topology, w->order.environment);
        if (r == 0 && w->has_reading)
                r = disturbance_add(&w->disturbance, &w->readings[w->latest], to);
        if (r == 0) {
                w->latest = !w->latest;
                w->has_reading = true;
        }
        return r;
}

static void note_error(struct watch *w, int r) {
        if (r < 0 && w->error == 0)
                log_warning("the machine beside a run cannot be observed: %s", strerrordesc_np(-r));
        if (r < 0)
                w->error = r;
}

/* A second whose reading fails becomes a part of the one after it. */
static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        struct watch *w = userdata;
        (void) usec;
        note_error(w, step(w));
        if (w->last_ns && util_now_ns() >= w->last_ns)
                return 0;
        uint64_t next_ns = w->begin_ns + ((util_now_ns() - w->begin_ns) / NSEC_PER_SEC + 1) * NSEC_PER_SEC;
        if (w->last_ns && next_ns + OBSERVED_REST_NS > w->last_ns)
                next_ns = w->last_ns;
        int r = sd_event_source_set_time(source, next_ns / NSEC_PER_USEC);
        if (r >= 0)
                r = sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        note_error(w, r);
        return 0;
}

void watch_end(struct watch *w, const struct watch_report *report) {
        int armed = SD_EVENT_OFF;
        if (report->begin_ns) {
                w->begin_ms = report->begin_ms;
                w->begin_ns = report->begin_ns;
        }
        const struct disturbance_window window = {
                .begin_ns = w->begin_ns,
                .end_ns = w->end_ns        ? w->end_ns
                          : report->end_ns ? report->end_ns
                                           : util_now_ns(),
                .counted = w->end_ns == 0,
        };
        w->disturbance.stopped_ns = report->stopped_ns;
        (void) sd_event_source_get_enabled(w->timer, &armed);
        (void) sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
        if (armed != SD_EVENT_OFF && w->has_reading &&
            (w->disturbance.n == 0 || util_now_ns() - w->readings[w->latest].at_ns >= OBSERVED_REST_NS))
                note_error(w, step(w));
        disturbance_end(&w->disturbance, &window);
}

int watch_note(struct watch *w, const struct disturbance_note *note) {
        return w ? disturbance_note(&w->disturbance, note) : 0;
}

/* --- the object --- */

/* The daemon's threads have one affinity (housekeeping.c). */
static bool daemon_is_measured(const struct watch *w) {
        struct affinity own;
        if (affinity_get(0, &own) < 0)
                return true;
        for (size_t i = 0; i < w->n_cpus; i++)
                if (w->cpus[i].measured && may_be_on(&own, w->cpus[i].id))
                        return true;
        return false;
}

/* Then the measured CPUs are judged together, as it is not known on which of them the agents' time was. */
static bool roams(const struct watch *w) {
        for (unsigned e = 0; e < END_COUNT; e++)
                if (end_roams(&w->order, e) ||
                    (w->order.pids[e] > 0 && w->order.placement->ends[e].n_cpus > 1 && w->n_threads == 0))
                        return true;
        return false;
}

static bool threads_share_cpus(const struct watch *w) {
        for (size_t i = 0; i < w->n_threads; i++)
                if (w->threads[i].alone)
                        return false;
        return w->n_threads > 0;
}

static int make_readings(struct watch *w) {
        for (size_t i = 0; i < ELEMENTS(w->readings); i++) {
                struct disturbance_reading *r = &w->readings[i];
                r->cpus = calloc(w->n_cpus, sizeof(*r->cpus));
                r->own_ns = calloc(w->n_cpus, sizeof(*r->own_ns));
                r->frequency_khz = calloc(w->n_cpus, sizeof(*r->frequency_khz));
                r->ksoftirqd_ns = calloc(w->n_cpus, sizeof(*r->ksoftirqd_ns));
                r->device_interrupts = calloc(w->n_cpus, sizeof(*r->device_interrupts));
                r->throttles = calloc(w->n_cpus, sizeof(*r->throttles));
                r->packets.cpus = calloc(w->n_cpus, sizeof(*r->packets.cpus));
                r->involuntary = calloc(w->n_threads + 1, sizeof(*r->involuntary));
                r->delay_ns = calloc(w->n_threads + 1, sizeof(*r->delay_ns));
                if (!r->cpus || !r->own_ns || !r->frequency_khz || !r->ksoftirqd_ns || !r->device_interrupts ||
                    !r->throttles || !r->packets.cpus || !r->involuntary || !r->delay_ns)
                        return -ENOMEM;
        }
        return 0;
}

/* The coarse clock advances with it. */
static int64_t tick_ns(void) {
        struct timespec t;
        return clock_getres(CLOCK_MONOTONIC_COARSE, &t) == 0 ? t.tv_sec * (int64_t) NSEC_PER_SEC + t.tv_nsec : 0;
}

static int prepare(struct watch *w) {
        const struct point *point = w->order.point;
        int r = list_cpus(w);
        if (r == 0)
                r = cpu_time_open("", &w->time);
        if (r < 0)
                return r;
        open_frequencies(w);
        find_threads(w);
        r = find_ksoftirqd(w);
        if (r < 0)
                return r;
        open_groups(w);
        open_interrupts(w);
        packets_open("", &w->packets);
        const struct disturbance_run run = {
                .source = w->time.source,
                .frequency_source = w->frequency_source,
                .no_frequency = w->frequencies_unread ? NO_DESCRIPTOR_FOR_CLOCKS : NULL,
                .no_throttles = w->throttles_unread ? NO_DESCRIPTOR_FOR_THROTTLES : NULL,
                .cpus = w->cpus,
                .n_cpus = w->n_cpus,
                .n_threads = w->n_threads,
                .roams = roams(w),
                .shares_cpus = threads_share_cpus(w),
                .network = point_has_carrier(point, CARRIER_TCP),
                .softirqs_apart = cpu_time_softirqs_apart(&w->time),
                .irq_apart = w->time.irq_apart,
                .tick_ns = tick_ns(),
                .no_interrupts = w->no_interrupts,
                .cgroups = w->n_groups > 0 || w->groups_unknown,
                .daemon_measured = daemon_is_measured(w),
        };
        r = disturbance_init(&w->disturbance, &run);
        return r == 0 ? make_readings(w) : r;
}

/* The kernel gives the lowest number that is free. */
static int spare_files(struct watch *w) {
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        w->files_max = DESCRIPTORS_OF_DAEMON + descriptors_of_threads(limit.rlim_cur);
        return 0;
}

int watch_new(struct watch **ret, const struct watch_order *order) {
        struct watch *w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        w->order = *order;
        w->time.source_fd = w->time.stat_fd = w->interrupts_fd = -1;
        w->packets.softnet_fd = w->packets.dev_fd = -1;
        int r = spare_files(w);
        if (r == 0)
                r = prepare(w);
        if (r == 0)
                r = sd_event_add_time(order->event, &w->timer, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_timer, w);
        if (r >= 0)
                r = sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
        if (r < 0) {
                watch_free(w);
                return r;
        }
        *ret = w;
        return 0;
}

int watch_start(struct watch *w, uint64_t begin_ns, uint64_t duration_ns) {
        w->begin_ns = begin_ns;
        if (duration_ns) {
                w->end_ns = begin_ns + duration_ns;
                w->last_ns = w->end_ns - (duration_ns > 4 * BEFORE_END_NS ? BEFORE_END_NS : 0);
        }
        w->begin_ms = util_now_ms() + ((int64_t) begin_ns - (int64_t) util_now_ns()) / (int64_t) NSEC_PER_MSEC;
        int r = sd_event_source_set_time(w->timer, begin_ns / NSEC_PER_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(w->timer, SD_EVENT_ONESHOT);
}

int watch_result(const struct watch *w, char **ret_json, const char **flags, size_t max, size_t *ret_n) {
        struct json_writer j;
        char *json = NULL;
        json_writer_init(&j);
        json_object_begin(&j);
        json_member_u64(&j, "begin_ns", w->begin_ns);
        json_member_i64(&j, "begin_unix_ms", w->begin_ms);
        disturbance_put(&w->disturbance, &j);
        if (w->error < 0)
                json_member_string(&j, "error", strerrordesc_np(-w->error));
        json_object_end(&j);
        int r = json_writer_steal(&j, &json, NULL);
        json_writer_deinit(&j);
        if (r < 0)
                return r;
        size_t n = 0;
        for (int kind = 0; kind < DISTURBANCE_KINDS && n < max; kind++)
                if (disturbance_has(&w->disturbance, (enum disturbance_kind) kind))
                        flags[n++] = disturbance_flag((enum disturbance_kind) kind);
        if ((w->error < 0 || disturbance_unobserved(&w->disturbance)) && n < max)
                flags[n++] = WATCH_FLAG_NOT_OBSERVED;
        *ret_json = json;
        *ret_n = n;
        return 0;
}

const struct disturbance *watch_disturbance(const struct watch *w) {
        return &w->disturbance;
}

void watch_free(struct watch *w) {
        if (!w)
                return;
        sd_event_source_disable_unref(w->timer);
        close_threads(w);
        cpu_time_close(&w->time);
        packets_close(&w->packets);
        util_close(w->interrupts_fd);
        disturbance_deinit(&w->disturbance);
        for (size_t i = 0; i < w->n_groups; i++)
                util_close(w->group_fds[i]);
        for (size_t i = 0; i < w->n_cpus; i++) {
                cpu_frequency_close(&w->frequencies[i]);
                util_close(w->ksoftirqd_fds[i]);
                util_close(w->throttle_fds[i][0]);
                util_close(w->throttle_fds[i][1]);
        }
        for (size_t i = 0; i < ELEMENTS(w->readings); i++) {
                free(w->readings[i].cpus);
                free(w->readings[i].own_ns);
                free(w->readings[i].frequency_khz);
                free(w->readings[i].ksoftirqd_ns);
                free(w->readings[i].device_interrupts);
                free(w->readings[i].throttles);
                free(w->readings[i].packets.cpus);
                free(w->readings[i].involuntary);
                free(w->readings[i].delay_ns);
        }
        free(w->cpus);
        free(w->ids);
        free(w->frequencies);
        free(w->ksoftirqd_fds);
        free(w->throttle_fds);
        free(w->interrupts);
        free(w->text);
        free(w);
}
