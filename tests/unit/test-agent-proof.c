/* SPDX-License-Identifier: MIT */

/*
 * What real agents prove, held against the daemon's judgement: processes and pages that are the agent's without being a
 * worker's, and what is moved in mid-run.
 */

#include "check.h"
#include "daemon/placement.h"
#include "schema/json.h"
#include "schema/util.h"
#include "tests/bench/driver.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>

static const char *agent_path(void) {
        static char path[512];
        const char *root = getenv("IPCLAB_BUILD_ROOT");
        (void) snprintf(path, sizeof path, "%s/agent/ipclab-agent", root ? root : "build");
        return path;
}

static int allowed_cpus(int cpus[2]) {
        cpu_set_t set;
        int n = 0;
        if (sched_getaffinity(0, sizeof set, &set) < 0)
                return 0;
        for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
                if (CPU_ISSET(i, &set))
                        cpus[n++] = i;
        return n;
}

static bool run_well(struct driver *d, const struct driver_spec *s) {
        int r = driver_run(d, s);
        if (r < 0)
                fprintf(stderr, "%s: %s\n", transport_name(s->point.transport), d->trouble);
        return r == 0;
}

/* The daemon's judgement on an agent that was given this one CPU. */
static int verify(const char *proof, int32_t cpu, char *ret_detail) {
        const struct agent_placement given = {.cpus = &cpu, .n_cpus = 1};
        ret_detail[0] = '\0';
        return placement_verify(&given, proof, ret_detail);
}

/* Of how many threads the proof has pages of this kind, all of them somewhere. */
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
        char detail[PLACEMENT_DETAIL_MAX];
        struct driver d;
        CHECK(allowed_cpus(cpus) > 0);
        struct driver_spec s = ring_spec(cpus[0]);
        CHECK(run_well(&d, &s));
        for (unsigned i = 0; i < 2; i++) {
                const char *proof = i ? d.ends[END_FIRST].report.proof : d.ends[END_FIRST].proof;
                CHECK_UINT(threads_of(proof), 5);
                CHECK_UINT(ranges_of(proof, "buffer"), 5);
                CHECK_UINT(ranges_of(proof, "stack"), 5);
                CHECK_INT(verify(proof, cpus[0], detail), 0);
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

static int pin_process(pid_t pid, int cpu) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        return sched_setaffinity(pid, sizeof set, &set);
}

static void process_of_a_ring_is_moved(bool back) {
        int cpus[2];
        char detail[PLACEMENT_DETAIL_MAX];
        struct driver d;
        if (allowed_cpus(cpus) < 2)
                SKIP("one CPU only: there is no wrong one");
        struct driver_spec s = ring_spec(cpus[0]);
        s.duration_ns = 400 * NSEC_PER_MSEC;
        CHECK_INT(driver_open(&d, &s), 0);
        pid_t child = child_of(d.ends[END_FIRST].pid, 3);
        CHECK(child > 0);
        CHECK_INT(driver_start(&d), 0);
        (void) poll(NULL, 0, 50);
        CHECK_INT(pin_process(child, cpus[1]), 0);
        (void) poll(NULL, 0, 50); /* it wakes there, and so has been moved */
        if (back)
                CHECK_INT(pin_process(child, cpus[0]), 0);
        CHECK_INT(driver_collect(&d, util_now_ns() + 30 * NSEC_PER_SEC), 0);
        CHECK_INT(driver_close(&d), 0);
        CHECK_INT(verify(d.ends[END_FIRST].proof, cpus[0], detail), 0);
        CHECK_INT(verify(d.ends[END_FIRST].report.proof, cpus[0], detail), -EPERM);
        CHECK(strstr(detail, "thread 3 "));
        driver_deinit(&d);
}

static void test_a_moved_process_is_found_out(void) {
        process_of_a_ring_is_moved(false);
}

static void test_a_process_moved_and_back_is_found_out(void) {
        process_of_a_ring_is_moved(true);
}

int main(void) {
        RUN(test_processes_of_a_ring);
        RUN(test_a_moved_process_is_found_out);
        RUN(test_a_process_moved_and_back_is_found_out);
        return check_end();
}
