/* SPDX-License-Identifier: MIT */

/* Flags from two snapshots that are made here member by member: CPUs that come and go, counters that begin again, facts
 * that cannot be read any more. test-environment has the thresholds, from recorded trees. */

#include "daemon/host/environment/environment-internal.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#define SECOND NSEC_PER_SEC

/* A machine of two CPUs that has idled for a hundred seconds. */
struct machine {
        struct cpu_state cpus[3];
        struct fact facts[2];
        struct mitigation mitigations[2];
        struct environment e;
};

static char old[] = "old", other[] = "other", meltdown[] = "meltdown", spectre[] = "spectre", safe[] = "Not affected";

static void machine_init(struct machine *m) {
        *m = (struct machine){
                .cpus = {{.id = 0, .user_ns = 50 * SECOND, .has_interrupts = true, .device_interrupts = 5000},
                         {.id = 1, .user_ns = 50 * SECOND, .has_interrupts = true, .device_interrupts = 5000},
                         {.id = 5, .user_ns = 50 * SECOND}},
                .facts = {{.key = "number", .is_number = true, .number = 7}, {.key = "text", .text = old}},
                .mitigations = {{meltdown, safe}, {spectre, safe}},
        };
        m->e = (struct environment){.facts = m->facts,
                                    .n_facts = 2,
                                    .mitigations = m->mitigations,
                                    .n_mitigations = 2,
                                    .uptime_ns = 100 * SECOND,
                                    .cpus = m->cpus,
                                    .n_cpus = 2};
}

struct case_of_two {
        struct machine before, after;
        struct flags_found found;       /* in the seconds of the window */
        struct run_placement placement; /* unpinned: both CPUs are measured */
};

static void init(struct case_of_two *c) {
        *c = (struct case_of_two){0};
        machine_init(&c->before);
        machine_init(&c->after);
        c->after.e.uptime_ns = 110 * SECOND;
}

#define CHECK_FLAGS(c, want)                                                                                           \
        do {                                                                                                           \
                struct json_writer _w;                                                                                 \
                _cleanup_free_ char *_text = NULL;                                                                     \
                json_writer_init(&_w);                                                                                 \
                json_array_begin(&_w);                                                                                 \
                environment_flags(&(c)->before.e, &(c)->after.e, &(c)->placement, &(c)->found, &_w);                   \
                json_array_end(&_w);                                                                                   \
                int _r = json_writer_steal(&_w, &_text, NULL);                                                         \
                json_writer_deinit(&_w);                                                                               \
                CHECK_INT(_r, 0);                                                                                      \
                CHECK_STRING(_text, want);                                                                             \
        } while (0)

static void a_quiet_machine_has_no_flags(void) {
        struct case_of_two c;
        init(&c);
        CHECK_FLAGS(&c, "[]");
}

static void cpus_that_come_and_go(void) {
        struct case_of_two c;
        init(&c);
        c.after.e.n_cpus = 1;
        CHECK_FLAGS(&c, "[\"environment-changed:cpus\"]");
        init(&c);
        c.after.e.n_cpus = 3;
        CHECK_FLAGS(&c, "[\"environment-changed:cpus\"]");
        init(&c); /* as many as before, but another one */
        c.after.cpus[1].id = 5;
        CHECK_FLAGS(&c, "[\"environment-changed:cpus\"]");
}

/* A CPU that was away and came back counts from 0: that is no work of 2^64 ns. */
static void counters_that_began_again(void) {
        struct case_of_two c;
        init(&c);
        c.before.cpus[1].steal_ns = 9 * SECOND;
        c.before.cpus[1].system_ns = 9 * SECOND;
        c.before.cpus[1].has_throttles = c.after.cpus[1].has_throttles = true;
        c.before.cpus[1].throttles = 3;
        c.after.cpus[1] = (struct cpu_state){.id = 1, .has_interrupts = true, .has_throttles = true};
        CHECK_FLAGS(&c, "[]");
}

/* The end is not after the beginning: rates cannot be computed, the facts can be compared. */
static void without_a_window_nothing_is_noisy(void) {
        for (uint64_t uptime = 99 * SECOND; uptime <= 100 * SECOND; uptime += SECOND) {
                struct case_of_two c;
                init(&c);
                c.after.e.uptime_ns = uptime;
                c.after.cpus[0].steal_ns = c.after.cpus[0].user_ns = 90 * SECOND;
                c.after.facts[0].number = 8;
                CHECK_FLAGS(&c, "[\"environment-changed:number\"]");
        }
}

static void facts_that_differ(void) {
        struct case_of_two c;
        init(&c);
        c.after.facts[1].text = other;
        CHECK_FLAGS(&c, "[\"environment-changed:text\"]");
        init(&c); /* it cannot be read any more */
        c.after.facts[1] = (struct fact){.key = "text", .reason = "gone"};
        CHECK_FLAGS(&c, "[\"environment-changed:text\"]");
        init(&c); /* … and never could: the reason may be another */
        c.before.facts[1] = (struct fact){.key = "text", .reason = "gone"};
        c.after.facts[1] = (struct fact){.key = "text", .reason = "forbidden"};
        CHECK_FLAGS(&c, "[]");
}

static void mitigations_that_differ(void) {
        struct case_of_two c;
        init(&c);
        c.after.e.n_mitigations = 1;
        CHECK_FLAGS(&c, "[\"environment-changed:mitigations\"]");
        init(&c);
        c.after.mitigations[1].text = other;
        CHECK_FLAGS(&c, "[\"environment-changed:mitigations\"]");
        init(&c);
        c.after.mitigations[0].name = other;
        CHECK_FLAGS(&c, "[\"environment-changed:mitigations\"]");
}

/* Interrupts and throttling are compared only where both snapshots have them. */
static void what_one_snapshot_lacks_is_not_compared(void) {
        struct case_of_two c;
        init(&c);
        c.after.cpus[0].has_throttles = true;
        c.after.cpus[0].throttles = 5;
        c.after.cpus[0].device_interrupts = 900000;
        c.before.cpus[0].has_interrupts = false;
        CHECK_FLAGS(&c, "[]");
        c.before.cpus[0].has_throttles = c.before.cpus[0].has_interrupts = true;
        CHECK_FLAGS(&c, "[\"noisy:interrupts\",\"noisy:throttled\"]");
}

/* Either end's CPUs are measured ones, and no others; one that is not pinned may be on any. */
static void both_ends_are_measured(void) {
        int32_t none[] = {0}, one[] = {1};
        struct case_of_two c;
        init(&c);
        c.after.cpus[1].steal_ns = SECOND;
        c.placement.ends[END_FIRST] = (struct agent_placement){.cpus = none, .n_cpus = 1};
        CHECK_FLAGS(&c, "[\"noisy:steal\"]");
        c.found.one_end = true;
        CHECK_FLAGS(&c, "[]");
        c.found.one_end = false;
        c.placement.ends[END_SECOND] = (struct agent_placement){.cpus = none, .n_cpus = 1};
        CHECK_FLAGS(&c, "[]");
        c.placement.ends[END_SECOND] = (struct agent_placement){.cpus = one, .n_cpus = 1};
        CHECK_FLAGS(&c, "[\"noisy:steal\"]");
}

/* A step is more than 1 % of half a second, and may have begun long before. */
static void one_step_of_steal_is_no_flag(void) {
        int32_t none[] = {0};
        struct case_of_two c;
        init(&c);
        c.found.one_end = true;
        c.placement.ends[END_FIRST] = (struct agent_placement){.cpus = none, .n_cpus = 1};
        c.after.e.uptime_ns = c.before.e.uptime_ns + SECOND / 2;
        c.after.cpus[0].steal_ns = SECOND / 100;
        CHECK_FLAGS(&c, "[]");
        c.after.cpus[0].steal_ns = SECOND / 50;
        CHECK_FLAGS(&c, "[\"noisy:steal\"]");
}

/* Each of the two may have begun long before: of a window of up to a second they are more than 1 %, and no sign of it.
 */
static void a_step_of_steal_on_each_cpu_is_no_flag(void) {
        static const struct {
                uint64_t window_ns, steal_ns[2];
                bool flagged;
        } cases[] = {
                {SECOND / 4, {SECOND / 100, SECOND / 100}, false},
                {SECOND * 9 / 10, {SECOND / 100, SECOND / 100}, false},
                {SECOND / 4, {SECOND / 50, SECOND / 100}, true},
                {SECOND * 9 / 10, {SECOND / 50, SECOND / 50}, true},
                {SECOND * 4, {SECOND * 4 / 100, SECOND / 20}, true},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct case_of_two c;
                init(&c);
                c.after.e.uptime_ns = c.before.e.uptime_ns + cases[i].window_ns;
                c.after.cpus[0].steal_ns = cases[i].steal_ns[0];
                c.after.cpus[1].steal_ns = cases[i].steal_ns[1];
                CHECK_FLAGS(&c, cases[i].flagged ? "[\"noisy:steal\"]" : "[]");
        }
}

/* Each of 64 CPUs shows one or two steps of a second in which 1.5 % were taken: the sum is beyond doubt. */
static void steal_of_many_cpus_is_judged_as_a_sum(void) {
        static struct cpu_state before[64], after[64];
        struct case_of_two c;
        init(&c);
        for (int i = 0; i < 64; i++) {
                before[i] = after[i] = (struct cpu_state){.id = i};
                after[i].steal_ns = SECOND / 100 * (1 + (uint64_t) i % 2);
        }
        c.before.e.cpus = before;
        c.after.e.cpus = after;
        c.before.e.n_cpus = c.after.e.n_cpus = 64;
        c.after.e.uptime_ns = c.before.e.uptime_ns + SECOND;
        CHECK_FLAGS(&c, "[\"noisy:steal\"]");
}

static void a_flag_is_listed_once(void) {
        const char *const found[] = {"noisy:load", "noisy:steal", "noisy:throttled"};
        struct case_of_two c;
        init(&c);
        c.after.cpus[1].steal_ns = SECOND;
        c.after.cpus[0].device_interrupts = 900000;
        c.before.cpus[0].has_interrupts = c.after.cpus[0].has_interrupts = true;
        c.before.cpus[1].has_throttles = c.after.cpus[1].has_throttles = true;
        c.after.cpus[1].throttles = 1;
        CHECK_FLAGS(&c, "[\"noisy:steal\",\"noisy:interrupts\",\"noisy:throttled\"]");
        c.found = (struct flags_found){.flags = found, .n = 3};
        CHECK_FLAGS(&c, "[\"noisy:interrupts\"]");
}

int main(void) {
        RUN(a_quiet_machine_has_no_flags);
        RUN(cpus_that_come_and_go);
        RUN(counters_that_began_again);
        RUN(without_a_window_nothing_is_noisy);
        RUN(facts_that_differ);
        RUN(mitigations_that_differ);
        RUN(what_one_snapshot_lacks_is_not_compared);
        RUN(both_ends_are_measured);
        RUN(one_step_of_steal_is_no_flag);
        RUN(a_step_of_steal_on_each_cpu_is_no_flag);
        RUN(steal_of_many_cpus_is_judged_as_a_sum);
        RUN(a_flag_is_listed_once);
        return check_end();
}
