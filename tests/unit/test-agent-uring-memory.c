/* SPDX-License-Identifier: MIT */

/*
 * What agents lock of memory with io_uring, where RLIMIT_MEMLOCK has room for the buffers of all their threads and
 * where it has not: they are registered by all or by none, and in no case is a run lost for them. (What sends without
 * copying pin is in test-agent-tcp-faults.c.)
 */

#include "check.h"
#include "child.h"
#include "pairs.h"
#include "rings.h"
#include "schema/util.h"
#include "tests/bench/driver.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define MEMLOCK_PAGES 256u

/* The limit is for all but the privileged, which agents then are not. */
static bool lower_memlock(void) {
        rlim_t bytes = MEMLOCK_PAGES * (rlim_t) sysconf(_SC_PAGESIZE);
        struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
        if (geteuid() == 0 && prctl(PR_CAPBSET_DROP, (unsigned long) CAP_IPC_LOCK, 0UL, 0UL, 0UL) < 0)
                return false;
        return setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

/* Buffers of 25 pages at both ends, with four for the rings: four threads have room, twelve have not. */
static int run_all(void *unused) {
        (void) unused;
        static const struct {
                enum copy_mode mode;
                enum workload workload;
                uint32_t threads;
                const char *sender, *receiver; /* the buffers in each end's report */
        } rows[] = {
                {COPY_TWO, WORKLOAD_STREAM, 4, "true", "true"},
                {COPY_TWO, WORKLOAD_PINGPONG, 4, "true", "true"},
                {COPY_TWO, WORKLOAD_STREAM, 12, "false,\"registered_buffers_reason\":\"RLIMIT_MEMLOCK\"",
                 "false,\"registered_buffers_reason\":\"RLIMIT_MEMLOCK\""},
                {COPY_TWO, WORKLOAD_PINGPONG, 12, "false,\"registered_buffers_reason\":\"RLIMIT_MEMLOCK\"",
                 "false,\"registered_buffers_reason\":\"RLIMIT_MEMLOCK\""},
                /* only the receiver's, of which there is room for eight */
                {COPY_ONE, WORKLOAD_STREAM, 8, "false,\"registered_buffers_reason\":\"writev", "true"},
        };
        int fault = 0;
        if (!lower_memlock())
                return 77;
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const char *expected[END_COUNT] = {rows[i].sender, rows[i].receiver};
                struct driver d;
                struct driver_spec s = driver_spec_default(agent_path());
                s.point.engine = ENGINE_IO_URING;
                s.point.copy_mode = rows[i].mode;
                s.point.workload = rows[i].workload;
                s.point.threads = rows[i].threads;
                s.point.message_size = 25 * (uint64_t) sysconf(_SC_PAGESIZE);
                s.messages = 20;
                int r = driver_run(&d, &s);
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        char words[120];
                        const char *effective = d.ends[end].effective_at_end;
                        (void) snprintf(words, sizeof words, "\"registered_buffers\":%s", expected[end]);
                        if (r == 0 && effective && strstr(effective, words))
                                continue;
                        fprintf(stderr, "row %zu, end %d: %s; %s\n", i, (int) end, d.trouble,
                                effective ? effective : "no report");
                        fault = 1;
                }
                driver_deinit(&d);
        }
        return fault;
}

static void test_buffers_are_registered_where_all_fit(void) {
        const char *no_rings = ring_trouble();
        if (no_rings)
                SKIP("%s", no_rings);
        int r = child_does(run_all, NULL);
        if (r == 77)
                SKIP("RLIMIT_MEMLOCK cannot be made to hold here");
        CHECK_INT(r, 0);
}

int main(void) {
        RUN(test_buffers_are_registered_where_all_fit);
        return check_end();
}
