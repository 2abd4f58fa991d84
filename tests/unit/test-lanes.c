/* SPDX-License-Identifier: MIT */

/* Cases in lanes: each is run once, and nothing that goes wrong in a lane is overlooked. */

#include "lanes.h"

#include <errno.h>

#define CASES 100u

static unsigned *runs; /* of each case; shared */

static void each_case(void) {
        for (unsigned i = 0; i < CASES; i++)
                if (lanes_my_turn())
                        (void) __atomic_add_fetch(&runs[i], 1, __ATOMIC_RELAXED);
}

static bool each_ran_once(void) {
        for (unsigned i = 0; i < CASES; i++)
                if (runs[i] != 1)
                        return false;
        return true;
}

static void test_each_case_is_run_once(void) {
        static const unsigned lanes_of[] = {1, 2, LANES, LANES_MAX};
        for (size_t i = 0; i < sizeof lanes_of / sizeof *lanes_of; i++) {
                memset(runs, 0, CASES * sizeof *runs);
                CHECK_LANES(lanes_of[i], NULL, each_case);
                CHECK(each_ran_once());
        }
}

static void test_without_lanes_each_is_its_own(void) {
        memset(runs, 0, CASES * sizeof *runs);
        each_case();
        CHECK(each_ran_once());
}

static void one_fails(void) {
        for (unsigned i = 0; i < CASES; i++)
                if (lanes_my_turn())
                        CHECK(i != 7);
}

static void one_is_skipped(void) {
        for (unsigned i = 0; i < CASES; i++)
                if (lanes_my_turn() && i == 7)
                        SKIP("not in a lane");
}

static void one_dies(void) {
        for (unsigned i = 0; i < CASES; i++)
                if (lanes_my_turn() && i == 7)
                        (void) raise(SIGKILL);
}

static void one_exits(void) {
        for (unsigned i = 0; i < CASES; i++)
                if (lanes_my_turn() && i == 7)
                        _exit(23);
}

static void one_hangs(void) {
        for (unsigned i = 0; i < CASES; i++)
                while (lanes_my_turn() && i == 7)
                        (void) pause();
}

static void no_case(void) {}

/* Each lane has more cases than those before it. */
static void not_the_same(void) {
        unsigned n = __atomic_add_fetch(&runs[0], 1, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < n; i++)
                (void) lanes_my_turn();
}

static const char *unprepared(void) {
        return "unprepared";
}

/* Whether lanes of f have a fault that is so called, among others that a machine that stands still may add. */
static bool has_fault(const char *(*prepare)(void), void (*f)(void), const char *fault) {
        const char *found = lanes_run(3, prepare, f);
        if (found && strstr(found, fault))
                return true;
        fprintf(stderr, "\"%s\", expected: %s\n", found ? found : "no fault", fault);
        return false;
}

static void test_nothing_is_overlooked(void) {
        memset(runs, 0, CASES * sizeof *runs);
        CHECK(has_fault(NULL, one_fails, "a lane failed in case 8"));
        CHECK(has_fault(NULL, one_is_skipped, "a lane failed in case 8"));
        CHECK(has_fault(NULL, one_dies, "a lane was ended by signal 9 in case 8"));
        CHECK(has_fault(NULL, one_exits, "a lane ended with status 23 in case 8"));
        CHECK(has_fault(unprepared, each_case, "a lane failed outside of its cases; a lane failed outside"));
        CHECK(has_fault(NULL, no_case, "not all have come by the same cases"));
        CHECK(has_fault(NULL, not_the_same, "not all have come by the same cases"));
        CHECK(lanes_run(0, NULL, each_case));
        CHECK(lanes_run(LANES_MAX + 1, NULL, each_case));
}

static void test_one_that_hangs(void) {
        uint64_t patience_ns = lanes_patience_ns;
        lanes_patience_ns = NSEC_PER_SEC;
        bool found = has_fault(NULL, one_hangs, "a lane did not move for 1 s in case 8");
        lanes_patience_ns = patience_ns;
        CHECK(found);
}

static void leave_process(void) {
        pid_t pid = fork();
        if (pid == 0)
                for (;;)
                        (void) raise(SIGSTOP); /* so that it takes no notice of anything */
        runs[0] = (unsigned) pid;
}

static void one_leaves_a_process(void) {
        for (unsigned i = 0; i < CASES; i++)
                if (lanes_my_turn() && i == 7)
                        leave_process();
}

static void one_fails_and_leaves_a_process(void) {
        one_leaves_a_process();
        CHECK(runs[0] == 0);
}

/* Once the words are said, no such process is there any more. */
static bool is_told_and_ended(void (*f)(void), const char *words) {
        memset(runs, 0, CASES * sizeof *runs);
        bool told = has_fault(NULL, f, words);
        return told && runs[0] && kill((pid_t) runs[0], 0) < 0 && errno == ESRCH;
}

static void test_nothing_is_left(void) {
        uint64_t left_ns = lanes_left_ns;
        lanes_left_ns = 100 * NSEC_PER_MSEC;
        bool ended = is_told_and_ended(one_leaves_a_process, "1 process was left behind");
        lanes_left_ns = left_ns;
        CHECK(ended);
        CHECK(is_told_and_ended(one_fails_and_leaves_a_process, "a lane failed in case "));
}

int main(void) {
        runs = mmap(NULL, CASES * sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (runs == MAP_FAILED)
                return 1;
        RUN(test_each_case_is_run_once);
        RUN(test_without_lanes_each_is_its_own);
        RUN(test_nothing_is_overlooked);
        RUN(test_one_that_hangs);
        RUN(test_nothing_is_left);
        return check_end();
}
