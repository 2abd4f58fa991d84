/* SPDX-License-Identifier: MIT */

/*
 * Real pairs of agents whose messages come from a cold source, or are written anew each time: every transport, engine
 * and copy mode, with every byte checked, and without checks; more messages than a cold source has; and what was done
 * in the report.
 */

#include "check.h"
#include "figure.h"
#include "lanes.h"
#include "pairs.h"
#include "rings.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/bench/driver.h"

#include <string.h>

#define SOURCE_LANES 2u /* each has memory of twice the last cache */
#define MESSAGES 40u

static const char *no_rings; /* NULL: io_uring works */

/* What a source may be, but for what every other test has: a hot one, whose bytes stay as they are. */
static const struct kind {
        enum source source;
        bool fresh;
} kinds[] = {{SOURCE_COLD, false}, {SOURCE_COLD, true}, {SOURCE_HOT, true}};

static bool is_possible(const struct point *p) {
        const struct transport_term *t = &transport_terms[p->transport];
        unsigned copy_modes = t->copy_modes ? t->copy_modes : 1u << COPY_TWO;
        if (!(copy_modes & 1u << p->copy_mode) || (p->engine == ENGINE_IO_URING && (!t->has_engine || no_rings)))
                return false;
        if (p->copy_mode == COPY_ZERO && p->source == SOURCE_COLD) /* refused by the schema */
                return false;
        return p->engine == ENGINE_SYSCALL || point_zero_copy(p) != ZERO_COPY_SPLICE;
}

static void check_report(const struct driver_spec *s, const char *effective, enum end end) {
        bool cold = s->point.source == SOURCE_COLD, written = s->fresh || s->verify == VERIFY_CHECKSUM;
        if (!point_sends(&s->point, end)) {
                CHECK(!strstr(effective, "\"fresh\":") && !strstr(effective, "\"source_bytes\""));
                return;
        }
        CHECK(strstr(effective, written ? "\"fresh\":true" : "\"fresh\":false"));
        double cache = figure(effective, "last_cache_bytes"), messages = figure(effective, "source_messages");
        if (!cold) {
                CHECK(!strstr(effective, "\"source_bytes\"") && !strstr(effective, "\"last_cache_bytes\""));
                return;
        }
        if (cache < 0)
                cache = (double) SPEC_LAST_CACHE_DEFAULT;
        uint64_t n = point_source_pieces(&s->point), piece = (s->point.message_size + n - 1) / n;
        uint64_t in_lines = (piece + SPEC_LINE - 1) / SPEC_LINE * SPEC_LINE;
        CHECK(messages * (double) (n * in_lines) >= 2 * cache);
        CHECK(figure(effective, "source_bytes") >= messages * (double) s->point.message_size);
}

static void run(const struct driver_spec *s) {
        const struct point *p = &s->point;
        struct driver d;
        if (!run_well(&d, s))
                CHECK_FAIL("%s", d.trouble);
        else
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        CHECK_UINT(d.ends[end].report.messages, s->messages * p->threads);
                        check_report(s, d.ends[end].effective_at_end, end);
                }
        driver_deinit(&d);
}

static struct driver_spec spec_of(const struct kind *kind, uint64_t messages) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.source = kind->source;
        s.fresh = kind->fresh;
        s.messages = messages;
        s.interval_ns = 50 * NSEC_PER_MSEC;
        return s;
}

/* Workloads, sizes, threads and verification take turns. */
static void test_every_mode(void) {
        IN_LANES(SOURCE_LANES, NULL, test_every_mode);
        static const uint64_t sizes[] = {4096, 5000, 512, 7};
        unsigned turn = 0;
        for (size_t n = 0; n < (size_t) TRANSPORT_COUNT * ENGINE_COUNT * COPY_COUNT * ELEMENTS(kinds); n++) {
                const struct kind *kind = &kinds[n % ELEMENTS(kinds)];
                size_t rest = n / ELEMENTS(kinds);
                struct driver_spec s = spec_of(kind, MESSAGES);
                s.point.workload = (n + rest) % 2 ? WORKLOAD_PINGPONG : WORKLOAD_STREAM;
                s.point.copy_mode = (enum copy_mode)(rest % COPY_COUNT);
                s.point.engine = (enum engine)(rest / COPY_COUNT % ENGINE_COUNT);
                s.point.transport = (enum transport)(rest / COPY_COUNT / ENGINE_COUNT);
                s.point.fields = point_sends_fields(&s.point) ? (turn % 3 ? 8 : 1) : 0;
                s.point.message_size = sizes[turn % ELEMENTS(sizes)];
                s.point.threads = 1 + turn % 2;
                s.verify = turn % 5 ? VERIFY_CHECKSUM : VERIFY_TOUCH;
                if (!is_possible(&s.point))
                        continue;
                turn++;
                if (lanes_my_turn())
                        run(&s);
        }
}

/* A stream both ways, by tcp's own loop; and streams of messages that carry their time, or have a due one. */
static void test_loops_of_tcp(void) {
        IN_LANES(SOURCE_LANES, NULL, test_loops_of_tcp);
        static const enum data_direction directions[] = {DIRECTION_DOWN, DIRECTION_BOTH};
        for (size_t n = 0; n < ELEMENTS(kinds) * ELEMENTS(directions) * COPY_COUNT * 4; n++) {
                struct driver_spec s = spec_of(&kinds[n % ELEMENTS(kinds)], MESSAGES);
                size_t rest = n / ELEMENTS(kinds);
                s.point.transport = TRANSPORT_TCP;
                s.point.direction = directions[rest % 2];
                s.point.copy_mode = (enum copy_mode)(rest / 2 % COPY_COUNT);
                s.point.fields = rest / 2 % 2 ? 8 : 1;
                s.verify = VERIFY_CHECKSUM;
                s.stamp = rest / 2 / COPY_COUNT % 2;
                s.rate = rest / 2 / COPY_COUNT / 2 ? 5000 : 0;
                if (is_possible(&s.point) && lanes_my_turn())
                        run(&s);
        }
}

/* The sources are used a second time. */
static void test_more_messages_than_a_source_has(void) {
        IN_LANES(SOURCE_LANES, NULL, test_more_messages_than_a_source_has);
        static const enum transport transports[] = {TRANSPORT_PIPE, TRANSPORT_TCP, TRANSPORT_SHM_POSIX};
        for (size_t i = 0; i < ELEMENTS(transports) * 2; i++) {
                struct driver_spec s = spec_of(&kinds[0], 0);
                s.point.transport = transports[i / 2];
                s.point.message_size = 1 << 20;
                s.point.fields = s.point.transport == TRANSPORT_TCP ? 1 : 0;
                s.messages = point_source_messages(&s.point, UINT64_C(64) << 20) + 10;
                s.verify = i % 2 ? VERIFY_CHECKSUM : VERIFY_TOUCH;
                if (lanes_my_turn())
                        run(&s);
        }
}

int main(void) {
        no_rings = ring_trouble();
        RUN(test_every_mode);
        RUN(test_loops_of_tcp);
        RUN(test_more_messages_than_a_source_has);
        return check_end();
}
