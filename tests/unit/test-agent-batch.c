/* SPDX-License-Identifier: MIT */

/*
 * A queue depth of more than one through real agents, over every transport that has it: messages stay whole and in
 * order, none is lost or counted twice, whatever ends the window, and the end of either agent is seen by the other.
 */

#include "check.h"
#include "lanes.h"
#include "pairs.h"
#include "rings.h"
#include "schema/spec/axes.h"
#include "schema/util.h"
#include "tests/bench/driver.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

static struct driver_spec queued(enum transport t, enum copy_mode copy, uint32_t depth) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = t;
        s.point.copy_mode = copy;
        s.point.engine = ENGINE_IO_URING;
        s.point.queue_depth = depth;
        s.point.fields = axis_applies(&axes[AXIS_FIELDS], &s.point) ? SPEC_FIELDS_OF_STUDY : 0;
        s.verify = VERIFY_CHECKSUM;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        return s;
}

static bool is_possible(const struct driver_spec *s) {
        return axis_applies(&axes[AXIS_QUEUE_DEPTH], &s->point) &&
               transport_terms[s->point.transport].copy_modes & 1u << s->point.copy_mode &&
               s->point.copy_mode != COPY_ZERO;
}

static const char *batch_fault(const struct driver *d) {
        char depth[32];
        (void) snprintf(depth, sizeof depth, "\"queue_depth\":%" PRIu32 ",", d->spec.point.queue_depth);
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                const struct message_report *report = &d->ends[end].report;
                const char *effective = d->ends[end].effective_at_end;
                bool many = strstr(effective, "\"recv multishot\"") != NULL;
                if (d->spec.messages && report->messages != d->spec.messages * d->spec.point.threads)
                        return "not as many messages as were asked for";
                if (report->messages != d->ends[END_FIRST].report.messages && d->spec.messages)
                        return "the ends counted differently";
                if (!strstr(effective, depth) && !many)
                        return effective;
        }
        return NULL;
}

static void test_every_transport_by_count(void) {
        static const uint64_t sizes[] = {1, 4096, 70001};
        static const uint32_t depths[] = {2, 8, SPEC_QUEUE_DEPTH_MAX};
        const char *trouble = ring_trouble();
        if (trouble)
                SKIP("%s", trouble);
        IN_LANES(LANES, NULL, test_every_transport_by_count);
        unsigned n = 0;
        for (size_t i = 0; i < (size_t) TRANSPORT_COUNT * COPY_COUNT * ELEMENTS(sizes) * ELEMENTS(depths); i++) {
                struct driver d;
                struct driver_spec s = queued((enum transport)(i / COPY_COUNT / ELEMENTS(sizes) / ELEMENTS(depths)),
                                              (enum copy_mode)(i / ELEMENTS(sizes) / ELEMENTS(depths) % COPY_COUNT),
                                              depths[i % ELEMENTS(depths)]);
                if (!is_possible(&s))
                        continue;
                n++;
                if (!lanes_my_turn())
                        continue;
                s.point.message_size = sizes[i / ELEMENTS(depths) % ELEMENTS(sizes)];
                s.verify = (enum verify)(VERIFY_COUNT - 1 - i % VERIFY_COUNT);
                s.messages = 997; /* no multiple of a depth */
                s.warmup_ns = i % 2 ? 5 * NSEC_PER_MSEC : 0;
                s.point.threads = i % 2 ? 1 : 3;
                CHECK(run_pair(&d, &s, batch_fault));
                driver_deinit(&d);
        }
        CHECK(n >= 6 * 2 * ELEMENTS(sizes) * ELEMENTS(depths)); /* pipes, Unix sockets, tcp; two copy modes */
}

static void test_every_transport_by_time(void) {
        const char *trouble = ring_trouble();
        if (trouble)
                SKIP("%s", trouble);
        IN_LANES(LANES, NULL, test_every_transport_by_time);
        for (size_t i = 0; i < (size_t) TRANSPORT_COUNT * COPY_COUNT; i++) {
                struct driver d;
                struct driver_spec s = queued((enum transport)(i / COPY_COUNT), (enum copy_mode)(i % COPY_COUNT), 16);
                if (!is_possible(&s) || !lanes_my_turn())
                        continue;
                s.point.message_size = 10007;
                s.duration_ns = 60 * NSEC_PER_MSEC;
                s.warmup_ns = 20 * NSEC_PER_MSEC;
                CHECK(run_pair(&d, &s, batch_fault));
                driver_deinit(&d);
        }
}

/* Either end dies while a batch is under way: the other one says so, and ends. */
static void test_a_dead_peer(void) {
        const char *trouble = ring_trouble();
        if (trouble)
                SKIP("%s", trouble);
        IN_LANES(LANES, NULL, test_a_dead_peer);
        for (size_t i = 0; i < (size_t) TRANSPORT_COUNT * END_COUNT; i++) {
                struct driver d;
                struct driver_spec s = queued((enum transport)(i / END_COUNT), COPY_TWO, 8);
                enum end dead = (enum end)(i % END_COUNT), left = dead == END_FIRST ? END_SECOND : END_FIRST;
                if (!is_possible(&s) || !lanes_my_turn())
                        continue;
                s.duration_ns = 600 * NSEC_PER_SEC;
                CHECK_INT(driver_open(&d, &s), 0);
                CHECK_INT(driver_start(&d), 0);
                (void) poll(NULL, 0, 50);
                CHECK_INT(kill(d.ends[dead].pid, SIGKILL), 0);
                CHECK(driver_collect(&d, util_now_ns() + 60 * NSEC_PER_SEC) < 0);
                CHECK(!d.ends[left].reported);
                (void) driver_close(&d);
                CHECK(WIFEXITED(d.ends[left].status));
                driver_deinit(&d);
        }
}

int main(void) {
        RUN(test_every_transport_by_count);
        RUN(test_every_transport_by_time);
        RUN(test_a_dead_peer);
        return check_end();
}
