/* SPDX-License-Identifier: MIT */

/* Real pairs of agents: every transport, workload and verification, and what they do when something goes wrong. */

#include "check.h"
#include "schema/util.h"
#include "tests/bench/driver.h"

#include <signal.h>
#include <stdlib.h>

static const char *agent_path(void) {
        static char path[512];
        const char *root = getenv("IPCLAB_BUILD_ROOT");
        (void) snprintf(path, sizeof path, "%s/agent/ipclab-agent", root ? root : "build");
        return path;
}

static const enum transport tried_transports[] = {TRANSPORT_PIPE, TRANSPORT_FIFO};
static const enum workload tried_workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};

static struct driver_spec short_spec(void) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.duration_ns = 60 * NSEC_PER_MSEC;
        s.warmup_ns = 10 * NSEC_PER_MSEC;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        return s;
}

static bool check_sums(const struct driver *d) {
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                const struct driver_end *e = &d->ends[end];
                if (e->sampled_messages != e->report.messages || e->sampled_bytes != e->report.bytes ||
                    e->sampled_ns != e->report.window_ns || e->samples == 0)
                        return false;
        }
        return true;
}

static void test_every_combination(void) {
        for (size_t t = 0; t < ELEMENTS(tried_transports); t++)
                for (size_t k = 0; k < ELEMENTS(tried_workloads); k++)
                        for (enum verify v = VERIFY_NONE; v < VERIFY_COUNT; v++) {
                                struct driver d;
                                struct driver_spec s = short_spec();
                                s.point.transport = tried_transports[t];
                                s.point.workload = tried_workloads[k];
                                s.verify = v;
                                int r = driver_run(&d, &s);
                                if (r)
                                        CHECK_FAIL("%s %s %s: %d %s", transport_name(s.point.transport),
                                                   workload_name(s.point.workload), verify_name(v), r, d.trouble);
                                CHECK(check_sums(&d));
                                CHECK(d.ends[END_SECOND].report.messages > 0);
                                driver_deinit(&d);
                        }
}

int main(void) {
        RUN(test_every_combination);
        return check_end();
}
