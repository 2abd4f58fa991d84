/* SPDX-License-Identifier: MIT */

/*
 * What the kernel does for a ring in threads of its own, beside a real agent's workers: where those threads run. An
 * fsync always goes to one, and so does what is written to some file systems.
 */

#include "check.h"
#include "pairs.h"
#include "rings.h"
#include "schema/util.h"
#include "tests/bench/driver.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

static int first_cpu(void) {
        cpu_set_t set;
        int cpu = 0;
        if (sched_getaffinity(0, sizeof set, &set) < 0)
                return -1;
        while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &set))
                cpu++;
        return cpu;
}

/* What stands behind `key` in /proc/PID/task/TID/status; "" when it is not there. */
static void read_status(pid_t pid, const char *tid, const char *key, char *ret, size_t size) {
        char path[320];
        size_t length = strlen(key);
        (void) snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int) pid, tid);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        while (f && fgets(ret, (int) size, f))
                if (strncmp(ret, key, length) == 0) {
                        ret[strcspn(ret, "\n")] = '\0';
                        memmove(ret, ret + length, strlen(ret + length) + 1);
                        return;
                }
        *ret = '\0';
}

/* How many threads the kernel has given the process for its rings, and which CPUs the last of them that may leave
 * `cpu` is allowed; "" where none may. */
static unsigned kernel_threads(pid_t pid, int cpu, char *ret_allowed, size_t size) {
        char path[64], name[64], allowed[256], wanted[16];
        unsigned n = 0;
        (void) snprintf(path, sizeof path, "/proc/%d/task", (int) pid);
        (void) snprintf(wanted, sizeof wanted, "%d", cpu);
        *ret_allowed = '\0';
        DIR *d = opendir(path);
        for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
                read_status(pid, e->d_name, "Name:\t", name, sizeof name);
                if (strncmp(name, "iou-wrk-", 8) != 0)
                        continue;
                n++;
                read_status(pid, e->d_name, "Cpus_allowed_list:\t", allowed, sizeof allowed);
                if (strcmp(allowed, wanted) != 0)
                        (void) snprintf(ret_allowed, size, "%s", allowed);
        }
        if (d)
                (void) closedir(d);
        return n;
}

static struct driver_spec synced_file(void) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = TRANSPORT_FILE;
        s.point.engine = ENGINE_IO_URING;
        s.point.workload = WORKLOAD_PINGPONG;
        s.options.file_sync = FILE_SYNC_FSYNC;
        s.verify = VERIFY_CHECKSUM;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        s.duration_ns = 300 * NSEC_PER_MSEC;
        return s;
}

/* The agents are gone once they have reported: what there is to see is looked for as long as they run. */
static int observe_while_it_runs(struct driver *d, unsigned *ret_n, char (*ret_allowed)[256]) {
        uint64_t until_ns = util_now_ns() + d->spec.duration_ns;
        int r = driver_start(d);
        for (bool seen = false; r == 0 && !seen && util_now_ns() < until_ns; (void) poll(NULL, 0, 10)) {
                seen = true;
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        ret_n[end] = kernel_threads(d->ends[end].pid, d->spec.cpus[end], ret_allowed[end],
                                                    sizeof ret_allowed[end]);
                        seen = seen && ret_n[end] > 0;
                }
        }
        return r < 0 ? r : driver_collect(d, util_now_ns() + 60 * NSEC_PER_SEC);
}

static void test_kernels_threads_stay_with_their_worker(void) {
        const char *trouble = ring_trouble();
        if (trouble)
                SKIP("%s", trouble);
        if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
                SKIP("there is one CPU");
        unsigned n[END_COUNT] = {};
        char allowed[END_COUNT][256] = {};
        struct driver d;
        struct driver_spec s = synced_file();
        s.cpus[END_FIRST] = s.cpus[END_SECOND] = first_cpu();
        CHECK_INT(driver_open(&d, &s), 0);
        CHECK_INT(observe_while_it_runs(&d, n, allowed), 0);
        CHECK_INT(driver_close(&d), 0);
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                CHECK_STRING(allowed[end], "");
                CHECK(strstr(d.ends[end].effective_at_end, "\"workers_affinity\":true"));
        }
        driver_deinit(&d);
        if (n[END_FIRST] == 0 || n[END_SECOND] == 0)
                SKIP("this kernel does an fsync without a thread of its own");
}

int main(void) {
        RUN(test_kernels_threads_stay_with_their_worker);
        return check_end();
}
