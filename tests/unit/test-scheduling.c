/* SPDX-License-Identifier: MIT */

/* Policies, priorities and seccomp modes in words. */

#include "schema/scheduling.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <sched.h>

static void each_policy_has_a_word(void) {
        static const struct {
                int policy, priority, nice;
                bool known;
                const char *text;
        } cases[] = {
                {SCHED_OTHER, 0, 0, true, "other, nice 0"},
                {SCHED_OTHER, 0, -20, true, "other, nice -20"},
                {SCHED_BATCH | SCHED_RESET_ON_FORK, 0, 19, true, "batch, nice 19"},
                {SCHED_IDLE, 0, 0, true, "idle, nice 0"},
                {SCHED_FIFO, 99, 0, true, "fifo, priority 99"},
                {SCHED_RR, 1, 5, true, "rr, priority 1"},
                {6, 0, 0, true, "deadline, nice 0"},
                {7, 0, 0, false, "policy 7 is not known here"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char text[SCHEDULING_TEXT_MAX];
                CHECK(scheduling_text(cases[i].policy, cases[i].priority, cases[i].nice, text) == cases[i].known);
                CHECK_STRING(text, cases[i].text);
        }
}

static void each_mode_has_a_word(void) {
        CHECK_STRING(seccomp_mode_name(0), "disabled");
        CHECK_STRING(seccomp_mode_name(1), "strict");
        CHECK_STRING(seccomp_mode_name(2), "filter");
        CHECK(!seccomp_mode_name(3) && !seccomp_mode_name(-1));
}

int main(void) {
        RUN(each_policy_has_a_word);
        RUN(each_mode_has_a_word);
        return check_end();
}
