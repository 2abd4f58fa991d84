/* SPDX-License-Identifier: MIT */

/*
 * Processes on one CPU that pass a byte round a circle of pipes, after lmbench's lat_ctx: a hop is a write, a switch, a
 * read, and a walk over the working set of the process that was woken. A message is one round of the circle. The cost
 * of pipes and walk without a switch is measured beforehand, in one process that passes the byte to itself through the
 * same pipes; the daemon subtracts it.
 *
 * The agent's own process is the circle's first member and measures the time; the others are forked from it once it is
 * pinned, share nothing with it but the pipes and a page in which each stores its memory's addresses, die with it, and
 * are killed when the run is over. The placement's proof lists them as threads 1 and on.
 *
 * Source: L. McVoy, C. Staelin, "lmbench: Portable Tools for Performance Analysis", USENIX 1996, section 6.6.
 */

#include "agent/base/agent.h"
#include "agent/loop/buffer.h"
#include "agent/proof/proof.h"
#include "agent/workload/workload.h"
#include "schema/measure/recorder.h"
#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROCESSES_MAX 64u
#define MEMBER_UNPREPARED 2 /* its exit status */
#define EXIT_NS (5 * NSEC_PER_SEC)
/* Least and greatest number of rounds of which the median is used; OVERHEAD_NS limits them, since they delay set-up. */
#define OVERHEAD_ROUNDS_LEAST 11u
#define OVERHEAD_ROUNDS_MOST 201u
#define OVERHEAD_NS (300 * NSEC_PER_MSEC)
#define OVERHEAD_HOPS 200u /* at least, in each of them */

struct circle {
        uint32_t n;
        int pipes[PROCESSES_MAX][2];                /* pipes[i] leads from member i to the next */
        struct proof_member members[PROCESSES_MAX]; /* [i - 1] is member i: the first is this process */
        struct member_memory *memory;               /* shared: each member stores its own */
        unsigned char *set;                         /* the working set of this process; NULL without one */
        size_t set_bytes;
        double overhead_ns;       /* of a hop without a switch */
        uint32_t overhead_rounds; /* the number of rounds of which it is the median */
};

/* The addresses of a member's memory in its own address space, for the proof of its pages. */
struct member_memory {
        struct stack_range stack;
        uintptr_t set;
};

static inline uint64_t walk(const unsigned char *set, size_t bytes) {
        uint64_t sum = 0;
        for (size_t i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t))
                sum += *(const volatile uint64_t *) (const void *) (set + i);
        return sum;
}

/* These move one byte; the callers distinguish an interruption from a failure by errno. */
static inline long pass(int fd, char *byte) {
        return syscall(SYS_write, fd, byte, 1);
}

static inline long take(int fd, char *byte) {
        return syscall(SYS_read, fd, byte, 1);
}

/* Makes the working set of each process, under the placement of buffers. */
static int make_set(struct worker *w, struct circle *circle) {
        return circle->set_bytes ? buffer_map(w, circle->set_bytes, &circle->set) : 0;
}

/* The main function of a member. It was forked from a process with threads, so it makes only async-signal-safe calls,
 * apart from formatting a failure that is not reported. */
static __attribute__((noreturn)) void member_main(struct worker *w, struct circle *circle, uint32_t i, pid_t parent) {
        uint64_t sink = 0;
        char byte;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
        /* it keeps only the two ends: the control socket must not outlive the agent here */
        int in = STDIN_FILENO, out = STDOUT_FILENO;
        if (dup2(circle->pipes[i - 1][0], in) < 0 || dup2(circle->pipes[i][1], out) < 0 ||
            syscall(SYS_close_range, STDERR_FILENO, ~0U, 0) < 0 || make_set(w, circle) < 0)
                _exit(MEMBER_UNPREPARED);
        /* The leader may query the nodes of this process's pages only while it is dumpable. The process holds nothing
         * confidential: two ends of pipes and its working set. */
        if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
                _exit(MEMBER_UNPREPARED);
        struct member_memory *memory = &circle->memory[i - 1];
        memory->set = (uintptr_t) circle->set;
        proof_take_stack(&memory->stack);
        for (;;) {
                if (take(in, &byte) != 1)
                        _exit(errno == EINTR ? 3 : 0);
                sink += walk(circle->set, circle->set_bytes);
                if (pass(out, &byte) != 1)
                        _exit(sink == 0); /* so that the compiler keeps the sum */
        }
}

static int fork_members(struct worker *w, struct circle *circle) {
        pid_t parent = getpid();
        for (uint32_t i = 1; i < circle->n; i++) {
                pid_t pid = fork();
                if (pid < 0)
                        return failure_set(&w->failure, errno, "process %" PRIu32 " of %" PRIu32 " cannot be made: %s",
                                           i + 1, circle->n, strerrordesc_np(errno));
                if (pid == 0)
                        member_main(w, circle, i, parent);
                circle->members[i - 1].pid = pid;
        }
        return 0;
}

/* Closes the ends that other members use, so that the next member reads the end of file when one is gone. */
static void drop_pipes(struct circle *circle) {
        for (uint32_t i = 0; i < circle->n; i++)
                for (unsigned k = 0; k < 2; k++)
                        if ((i > 0 || k == 0) && (i < circle->n - 1 || k == 1))
                                circle->pipes[i][k] = util_close(circle->pipes[i][k]);
}

/* The descriptor table is unshared first: while the leader shares it, each read(2) and write(2) takes and drops a
 * reference on the file, so that the overhead would be measured about 100 ns a hop above what the circle's hops
 * contain. The leader has no copy of the pipes either, which would keep them open when a member is gone. */
static int make_pipes(struct worker *w, struct circle *circle) {
        if (unshare(CLONE_FILES) < 0)
                return failure_set(&w->failure, errno, "the pipes cannot have a descriptor table of their own: %s",
                                   strerrordesc_np(errno));
        for (uint32_t i = 0; i < circle->n; i++)
                if (pipe2(circle->pipes[i], O_CLOEXEC) < 0)
                        return failure_set(&w->failure, errno, "pipe %" PRIu32 " of %" PRIu32 ": %s", i + 1, circle->n,
                                           strerrordesc_np(errno));
        return 0;
}

static int by_value(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;
        return (x > y) - (x < y);
}

/* Does `hops` hops in one process: through all the pipes in turn, as in the circle. */
static int hop_alone(struct worker *w, const struct circle *circle, uint32_t hops) {
        char byte = 0;
        for (uint32_t i = 0; i < hops; i++) {
                const int *p = circle->pipes[i % circle->n];
                if (pass(p[1], &byte) != 1 || take(p[0], &byte) != 1)
                        return failure_set(&w->failure, errno, "the pipes cannot be tried: %s", strerrordesc_np(errno));
                w->sink += walk(circle->set, circle->set_bytes);
        }
        return 0;
}

/* Measures the cost of such a hop. A round of many processes with large working sets walks over hundreds of
 * megabytes. */
static int measure_overhead(struct worker *w, struct circle *circle) {
        uint32_t hops = (OVERHEAD_HOPS + circle->n - 1) / circle->n * circle->n, n = 0;
        uint64_t end_ns = util_now_ns() + OVERHEAD_NS;
        double values[OVERHEAD_ROUNDS_MOST];
        while (n < OVERHEAD_ROUNDS_LEAST || (n < OVERHEAD_ROUNDS_MOST && util_now_ns() < end_ns)) {
                uint64_t begin = util_now_ns();
                int r = hop_alone(w, circle, hops);
                if (r < 0)
                        return r;
                values[n++] = (double) (util_now_ns() - begin) / hops;
        }
        qsort(values, n, sizeof(values[0]), by_value);
        circle->overhead_ns = values[n / 2];
        circle->overhead_rounds = n;
        return 0;
}

/* True, with *f filled, when member i ended by a fault of its own and not because its pipes closed. It remains
 * waitable. */
static bool find_failure(const struct circle *circle, uint32_t i, struct failure *f, uint32_t *n_ended) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_PID, (id_t) circle->members[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
                return false;
        ++*n_ended;
        if (info.si_code != CLD_EXITED)
                (void) failure_set(f, EPIPE, "process %" PRIu32 " of %" PRIu32 " was killed by signal %d", i + 2,
                                   circle->n, info.si_status);
        else if (info.si_status == MEMBER_UNPREPARED)
                (void) failure_set(f, EPIPE,
                                   "process %" PRIu32 " of %" PRIu32
                                   " could not prepare itself (a working set of %zu bytes)",
                                   i + 2, circle->n, circle->set_bytes);
        else
                return false;
        return true;
}

/* Waits for the member that failed: a dying process closes its pipes shortly before it becomes waitable, and the others
 * end when their pipes close. */
static bool await_failed(const struct circle *circle, struct failure *f) {
        uint64_t deadline_ns = util_now_ns() + EXIT_NS;
        uint32_t n_ended = 0;
        do {
                n_ended = 0;
                for (uint32_t i = 0; i < circle->n - 1; i++)
                        if (find_failure(circle, i, f, &n_ended))
                                return true;
                (void) poll(NULL, 0, 1);
        } while (n_ended < circle->n - 1 && util_now_ns() < deadline_ns);
        return false;
}

static int explain_break(struct worker *w, const struct circle *circle, uint64_t round) {
        int error = errno;
        if (await_failed(circle, &w->failure))
                return -EPIPE;
        return failure_set(&w->failure, error ? error : EPIPE,
                           "the circle of %" PRIu32 " processes broke in round %" PRIu64 ": %s", circle->n, round,
                           strerrordesc_np(error ? error : EPIPE));
}

/* Completes a round that has begun, also after interruptions: the byte must not remain in the circle. */
static long take_back(struct worker *w, int fd, char *byte) {
        for (;;) {
                long r = take(fd, byte);
                if (r == 1 || (r < 0 && errno != EINTR))
                        return r;
                if (r == 0) {
                        errno = EPIPE;
                        return -1;
                }
                worker_count(&w->eintr);
        }
}

static int circle_loop(struct worker *w) {
        struct circle *circle = w->channel;
        int out = circle->pipes[0][1], in = circle->pipes[circle->n - 1][0];
        uint64_t n = w->messages, sink = 0, began = util_now_ns();
        char byte = 0;
        while (n < worker_limit(w)) {
                if (pass(out, &byte) != 1 || take_back(w, in, &byte) != 1)
                        return explain_break(w, circle, n);
                sink += walk(circle->set, circle->set_bytes);
                if (w->latency) { /* the end of a round is the start of the next */
                        uint64_t now = util_now_ns();
                        recorder_record(w->latency, (now - began + circle->n / 2) / circle->n);
                        began = now;
                }
                __atomic_store_n(&w->messages, ++n, __ATOMIC_RELAXED);
        }
        w->sink += sink;
        return 0;
}

/* Runs the first round: when the byte returns, every member has its memory and has stored its addresses. */
static int await_members(struct worker *w, struct circle *circle) {
        char byte = 0;
        if (pass(circle->pipes[0][1], &byte) != 1 || take_back(w, circle->pipes[circle->n - 1][0], &byte) != 1)
                return explain_break(w, circle, 0);
        for (uint32_t i = 0; i < circle->n - 1; i++)
                circle->members[i].proof.stack = circle->memory[i].stack;
        return 0;
}

static int share_memory(struct worker *w, struct circle *circle) {
        void *p = mmap(NULL, PROCESSES_MAX * sizeof *circle->memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0);
        if (p == MAP_FAILED)
                return failure_set(&w->failure, errno, "memory that processes share: %s", strerrordesc_np(errno));
        circle->memory = p;
        return 0;
}

static int check_one_cpu(struct worker *w) {
        const struct agent_placement *p = &w->agent->setup.placement;
        if (p->n_cpus == 1)
                return 0;
        return failure_set(&w->failure, EINVAL,
                           "a context switch is measured on one CPU, and the placement has %zu (0: not pinned)",
                           p->n_cpus);
}

static int switch_prepare(struct worker *w) {
        const struct point *p = &w->agent->setup.point;
        struct circle *circle = calloc(1, sizeof(*circle));
        if (!circle)
                return failure_set(&w->failure, ENOMEM, "no memory for a circle of processes");
        memset(circle->pipes, 0xff, sizeof(circle->pipes));
        circle->n = p->processes;
        circle->set_bytes = (size_t) p->working_set;
        w->channel = circle; /* from here on switch_close() frees it */
        if (circle->n < 2 || circle->n > PROCESSES_MAX)
                return failure_set(&w->failure, EINVAL, "%" PRIu32 " processes; 2 to %u can be run", circle->n,
                                   PROCESSES_MAX);
        int r = check_one_cpu(w);
        if (r == 0)
                r = make_pipes(w, circle);
        if (r == 0)
                r = share_memory(w, circle);
        if (r == 0)
                r = make_set(w, circle);
        if (r == 0)
                r = measure_overhead(w, circle);
        if (r == 0)
                r = fork_members(w, circle);
        if (r == 0) {
                drop_pipes(circle);
                r = await_members(w, circle);
        }
        w->loop = circle_loop;
        return r < 0 ? r : worker_make_recorder(w);
}

/* In the leader's thread, with the workers at rest or the run failed. */
static void switch_close(struct agent *a) {
        struct circle *circle = a->n_workers ? a->workers[0].channel : NULL;
        if (!circle)
                return;
        for (uint32_t i = 0; i < PROCESSES_MAX; i++) {
                pid_t *pid = &circle->members[i].pid;
                if (*pid <= 0)
                        continue;
                (void) kill(*pid, SIGKILL); /* the pid is still the child's, as it was not waited for */
                while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
                        ;
                *pid = 0;
        }
}

static void switch_detach(struct worker *w) {
        struct circle *circle = w->channel;
        if (!circle)
                return;
        for (uint32_t i = 0; i < circle->n; i++)
                for (unsigned k = 0; k < 2; k++)
                        (void) util_close(circle->pipes[i][k]);
        buffer_unmap(circle->set, circle->set_bytes);
        if (circle->memory)
                (void) munmap(circle->memory, PROCESSES_MAX * sizeof *circle->memory);
        free(circle);
        w->channel = NULL;
}

static struct proof_member *switch_members(const struct agent *a, uint32_t *ret_n) {
        struct circle *circle = a->workers[0].channel;
        *ret_n = circle->n - 1;
        return circle->members;
}

static int switch_missing(struct agent *a) {
        return await_failed(a->workers[0].channel, &a->failure) ? -EPIPE : 0;
}

/* Finds a stopped member. Its pipes stay open, so that no read or write of another fails. */
static int switch_stuck(struct agent *a) {
        const struct circle *circle = a->workers[0].channel;
        for (uint32_t i = 0; i < circle->n - 1; i++) {
                siginfo_t info = {.si_pid = 0};
                id_t pid = (id_t) circle->members[i].pid;
                if (waitid(P_PID, pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid)
                        return failure_set(&a->failure, ETIMEDOUT,
                                           "process %" PRIu32 " of %" PRIu32 " was stopped by signal %d", i + 2,
                                           circle->n, info.si_status);
        }
        return 0;
}

static int switch_pages(const struct agent *a, struct page_list *list) {
        const struct circle *circle = a->workers[0].channel;
        int r = page_list_add(list, PAGES_BUFFER, 0, circle->set, circle->set_bytes);
        for (uint32_t i = 0; r == 0 && i < circle->n - 1; i++)
                r = page_list_add_of(list, PAGES_BUFFER, i + 1, circle->members[i].pid, circle->memory[i].set,
                                     circle->set_bytes);
        return r;
}

static void switch_effective(const struct agent *a, struct effective *e) {
        const struct circle *circle = a->workers[0].channel;
        effective_add_number(e, SETTING_PROCESSES, circle->n);
        effective_add_number(e, SETTING_WORKING_SET_BYTES, circle->set_bytes);
        effective_add_real(e, SETTING_PIPE_OVERHEAD_NS, circle->overhead_ns);
        effective_add_number(e, SETTING_PIPE_OVERHEAD_ROUNDS, circle->overhead_rounds);
}

const struct workload_ops workload_context_switch = {
        .workload = WORKLOAD_CONTEXT_SWITCH,
        .one_agent = true,
        .prepare = switch_prepare,
        .close = switch_close,
        .detach = switch_detach,
        .members = switch_members,
        .pages = switch_pages,
        .missing = switch_missing,
        .stuck = switch_stuck,
        .effective = switch_effective,
};
