/* SPDX-License-Identifier: MIT */

/*
 * What real agents prove, checked against the daemon's judgement: processes and pages that are the agent's without
 * being a worker's, and what is moved in mid-run.
 */

#include "allowed-node.h"
#include "check.h"
#include "daemon/placement/placement.h"
#include "pairs.h"
#include "schema/detail.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/bench/driver.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool bound;    /* this process, and so the agents, to memory of… */
static unsigned node; /* …the first node that there is */

static long set_policy(int mode) {
        unsigned long nodes[SPEC_NODES_MAX / 64] = {};
        int found = allowed_node(&node);
        if (found < 0)
                return found;
        nodes[node / 64] = 1UL << (node % 64);
        long r = syscall(SYS_set_mempolicy, mode, mode == MPOL_DEFAULT ? NULL : nodes,
                         mode == MPOL_DEFAULT ? 0 : SPEC_NODES_MAX + 1);
        bound = r == 0 && mode == MPOL_BIND;
        return r < 0 ? -errno : 0;
}

/* The daemon's judgement on an agent that was given one CPU. */
static int verify(const struct driver *d, enum end end, const struct proof_report *proof, char *ret_detail) {
        int32_t cpu = d->spec.cpus[end];
        struct agent_placement given = {.cpus = &cpu,
                                        .n_cpus = cpu >= 0 ? 1 : 0,
                                        .memory = bound ? MEMORY_BIND : MEMORY_DEFAULT,
                                        .buffer = d->spec.buffer,
                                        .buffer_nodes = d->spec.buffer_nodes};
        struct placement_doubts doubts = {0};
        if (bound)
                node_set_add(&given.memory_nodes, node);
        ret_detail[0] = '\0';
        return placement_verify(&given, &d->spec.point, end, proof, &doubts, ret_detail);
}

/* The number of threads for which the proof has pages of this kind, all of them somewhere. */
static unsigned ranges_of(const char *proof, const char *what) {
        struct json *root = NULL;
        unsigned n = 0;
        if (json_parse(proof, strlen(proof), &root, NULL) < 0)
                return 0;
        for (const struct json *range = json_first(json_get(root, "pages")); range; range = json_next(range)) {
                const char *name = "";
                int64_t absent = -1;
                if (json_as_string(json_get(range, "what"), &name) == 0 && strcmp(name, what) == 0 &&
                    json_as_i64(json_get(range, "absent"), &absent) == 0 && absent == 0)
                        n++;
        }
        json_free(root);
        return n;
}

static size_t threads_of(const char *proof) {
        struct json *root = NULL;
        if (json_parse(proof, strlen(proof), &root, NULL) < 0)
                return 0;
        size_t n = json_length(json_get(root, "threads"));
        json_free(root);
        return n;
}

static struct driver_spec ring_spec(int cpu) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.workload = WORKLOAD_CONTEXT_SWITCH;
        s.point.message_size = 0;
        s.point.processes = 5;
        s.point.working_set = 20000;
        s.duration_ns = 60 * NSEC_PER_MSEC;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        s.cpus[0] = cpu;
        return s;
}

static void test_processes_of_a_ring(void) {
        int cpus[2];
        char detail[DETAIL_MAX];
        struct driver d;
        CHECK(allowed_cpus(cpus) > 0);
        struct driver_spec s = ring_spec(cpus[0]);
        CHECK(run_well(&d, &s));
        for (unsigned i = 0; i < 2; i++) {
                const struct driver_end *first = &d.ends[END_FIRST];
                const char *proof = i ? first->proof_at_end : first->proof;
                CHECK_UINT(threads_of(proof), 5);
                CHECK_UINT(ranges_of(proof, "buffer"), 5);
                CHECK_UINT(ranges_of(proof, "stack"), 5);
                CHECK_INT(verify(&d, END_FIRST, i ? first->report.proof : first->proof_at_start, detail), 0);
        }
        driver_deinit(&d);
}

/* The n-th child of a process; 0 when it has not so many. */
static pid_t child_of(pid_t pid, unsigned n) {
        char path[64];
        int child = 0;
        (void) snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        for (unsigned i = 0; f && i < n; i++)
                if (fscanf(f, "%d", &child) != 1)
                        return 0;
        return child;
}

/* Whether it has run on this CPU, in time: it wakes there, whenever its turn comes. */
static bool comes_to(pid_t pid, int cpu) {
        char path[64];
        (void) snprintf(path, sizeof path, "/proc/%d/stat", pid);
        for (uint64_t until_ns = util_now_ns() + 10 * NSEC_PER_SEC; util_now_ns() < until_ns; (void) poll(NULL, 0, 1)) {
                char text[1024];
                int last = -1;
                _cleanup_fclose_ FILE *f = fopen(path, "re");
                const char *field = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
                for (unsigned n = 2; field && n < 39; n++) /* man 5 proc: 39 is the CPU it last ran on */
                        field = strchr(field + 1, ' ');
                if (field && sscanf(field, "%d", &last) == 1 && last == cpu) /* NOLINT(cert-err34-c) */
                        return true;
        }
        return false;
}

static int pin_process(pid_t pid, int cpu) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        return sched_setaffinity(pid, sizeof set, &set);
}

static void process_of_a_ring_is_moved(bool back) {
        int cpus[2];
        char detail[DETAIL_MAX];
        struct driver d;
        if (allowed_cpus(cpus) < 2)
                SKIP("one CPU only: there is no wrong one");
        struct driver_spec s = ring_spec(cpus[0]);
        s.duration_ns = 2 * NSEC_PER_SEC; /* it is to be open when the process is moved */
        CHECK_INT(driver_open(&d, &s), 0);
        pid_t child = child_of(d.ends[END_FIRST].pid, 3);
        CHECK(child > 0);
        CHECK_INT(driver_start(&d), 0);
        (void) poll(NULL, 0, 50);
        CHECK_INT(pin_process(child, cpus[1]), 0);
        CHECK(comes_to(child, cpus[1])); /* and so has been moved */
        if (back)
                CHECK_INT(pin_process(child, cpus[0]), 0);
        CHECK_INT(driver_collect(&d, util_now_ns() + 60 * NSEC_PER_SEC), 0);
        CHECK_INT(driver_close(&d), 0);
        CHECK_INT(verify(&d, END_FIRST, d.ends[END_FIRST].proof_at_start, detail), 0);
        CHECK_INT(verify(&d, END_FIRST, d.ends[END_FIRST].report.proof, detail), -EPERM);
        CHECK(strstr(detail, "thread 3 "));
        driver_deinit(&d);
}

static void test_a_moved_process_is_found_out(void) {
        process_of_a_ring_is_moved(false);
}

static void test_a_process_moved_and_back_is_found_out(void) {
        process_of_a_ring_is_moved(true);
}

/* Agents whose memory is bound show all that was requested, whatever carries their messages. */
static void test_bound_agents_prove_it(void) {
        static const struct {
                enum transport transport;
                enum engine engine;
                enum copy_mode mode;
        } cases[] = {
                {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_TWO},           {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ONE},
                {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ZERO},          {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_TWO},
                {TRANSPORT_FILE, ENGINE_SYSCALL, COPY_TWO},           {TRANSPORT_TCP, ENGINE_SYSCALL, COPY_TWO},
                {TRANSPORT_TCP, ENGINE_SYSCALL, COPY_ZERO},           {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_ONE},
                {TRANSPORT_MSGQ_SYSV, ENGINE_SYSCALL, COPY_TWO},      {TRANSPORT_SHM_POSIX, ENGINE_SYSCALL, COPY_TWO},
                {TRANSPORT_SHM_SYSV, ENGINE_SYSCALL, COPY_TWO},       {TRANSPORT_MMAP_FILE, ENGINE_SYSCALL, COPY_TWO},
                {TRANSPORT_MMAP_ANONYMOUS, ENGINE_SYSCALL, COPY_TWO},
        };
        char detail[DETAIL_MAX];
        if (set_policy(MPOL_BIND) == -ENOSYS)
                SKIP("a kernel without NUMA");
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                for (unsigned apart = 0; apart < 2; apart++) {
                        struct driver d;
                        struct driver_spec s = driver_spec_default(agent_path());
                        s.point.transport = cases[i].transport;
                        s.point.engine = cases[i].engine;
                        s.point.copy_mode = cases[i].mode;
                        s.point.workload = apart ? WORKLOAD_PINGPONG : WORKLOAD_STREAM;
                        s.point.threads = 2;
                        s.messages = 50;
                        s.buffer = apart ? MEMORY_BIND : MEMORY_DEFAULT;
                        node_set_add(&s.buffer_nodes, node);
                        CHECK(run_well(&d, &s));
                        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                                CHECK_INT(verify(&d, end, d.ends[end].proof_at_start, detail), 0);
                                if (verify(&d, end, d.ends[end].report.proof, detail) < 0)
                                        CHECK_FAIL("%s: %s", transport_name(cases[i].transport), detail);
                        }
                        driver_deinit(&d);
                }
        CHECK_INT(set_policy(MPOL_DEFAULT), 0);
}

/* What the cache has of a file is shown by the end that wrote it; the words by which the ends wait for each other by
 * the one that made them. */
static void test_pages_of_files(void) {
        static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};
        for (size_t i = 0; i < ELEMENTS(workloads); i++) {
                struct driver d;
                struct driver_spec s = driver_spec_default(agent_path());
                s.point.transport = TRANSPORT_FILE;
                s.point.workload = workloads[i];
                s.point.threads = 2;
                s.messages = 100; /* more than there are slots: all are written */
                CHECK(run_well(&d, &s));
                const char *first = d.ends[END_FIRST].proof_at_end, *second = d.ends[END_SECOND].proof_at_end;
                CHECK_UINT(ranges_of(first, "semaphores"), 1);
                CHECK_UINT(ranges_of(second, "semaphores"), 0);
                CHECK_UINT(ranges_of(first, "page_cache"), 2);
                CHECK_UINT(ranges_of(second, "page_cache"), workloads[i] == WORKLOAD_STREAM ? 0 : 2);
                CHECK(!strstr(first, "\"page_cache\":null"));
                CHECK(!strstr(second, "\"page_cache\":null") == (workloads[i] == WORKLOAD_PINGPONG));
                driver_deinit(&d);
        }
}

/* So many threads that their pages are reported together. */
static void test_many_bound_threads(void) {
        char detail[DETAIL_MAX];
        struct driver d;
        struct driver_spec s = driver_spec_default(agent_path());
        if (set_policy(MPOL_BIND) == -ENOSYS)
                SKIP("a kernel without NUMA");
        s.point.transport = TRANSPORT_SHM_POSIX;
        s.point.threads = 100;
        s.point.message_size = 64;
        s.messages = 10;
        CHECK(run_well(&d, &s));
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                CHECK_INT(verify(&d, end, d.ends[end].proof_at_start, detail), 0);
                CHECK_INT(verify(&d, end, d.ends[end].report.proof, detail), 0);
        }
        driver_deinit(&d);
        CHECK_INT(set_policy(MPOL_DEFAULT), 0);
}

/* Each thread's pool is many pieces of memory. */
static void test_pools_of_many_threads(void) {
        static const uint32_t threads[] = {64, 65};
        char detail[DETAIL_MAX];
        if (set_policy(MPOL_BIND) == -ENOSYS)
                SKIP("a kernel without NUMA");
        for (size_t i = 0; i < ELEMENTS(threads); i++) {
                struct driver d;
                struct driver_spec s = driver_spec_default(agent_path());
                s.point.transport = TRANSPORT_TCP;
                s.point.copy_mode = COPY_ZERO;
                s.point.threads = threads[i];
                s.point.message_size = 64;
                s.messages = 10;
                CHECK(run_well(&d, &s));
                const char *proof = d.ends[END_FIRST].proof_at_end;
                CHECK(strlen(proof) < (size_t) 64 * 1024);
                CHECK_UINT(ranges_of(proof, "buffer"), threads[i] == 64 ? 64 : 1);
                CHECK(strstr(proof, threads[i] == 64 ? "\"thread\":63,\"ranges\":" : "\"threads\":65,\"ranges\":"));
                for (enum end end = END_FIRST; end < END_COUNT; end++)
                        CHECK_INT(verify(&d, end, d.ends[end].report.proof, detail), 0);
                driver_deinit(&d);
        }
        CHECK_INT(set_policy(MPOL_DEFAULT), 0);
}

int main(void) {
        RUN(test_bound_agents_prove_it);
        RUN(test_pages_of_files);
        RUN(test_many_bound_threads);
        RUN(test_pools_of_many_threads);
        RUN(test_processes_of_a_ring);
        RUN(test_a_moved_process_is_found_out);
        RUN(test_a_process_moved_and_back_is_found_out);
        return check_end();
}
