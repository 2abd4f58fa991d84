/* SPDX-License-Identifier: MIT */

/* The two processes of a loop by hand: whose result counts, and that no end waits for one that has gone. */

#include "tests/bench/hand-two.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const int anywhere[2] = {-1, -1};

static int one_goes_on(void *userdata, int end, struct hand_result *ret) {
        const int *clocked = userdata;
        if (end != *clocked)
                for (;;)
                        pause();
        *ret = (struct hand_result){10, 20};
        return 0;
}

static void test_the_other_is_ended(void) {
        for (int clocked = 0; clocked < 2; clocked++) {
                struct hand_two t = {.run = one_goes_on, .userdata = &clocked, .cpus = anywhere, .clocked = clocked};
                struct hand_result result = {};
                CHECK_INT(hand_two_run(&t, &result), 0);
                CHECK_UINT(result.messages, 10);
                CHECK_UINT(result.ns, 20);
                CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
                CHECK_INT(errno, ECHILD);
        }
}

/* Ends like a sender whose reader has gone, before that one has quite ended. */
static int other_is_cut_off(void *userdata, int end, struct hand_result *ret) {
        const int *fds = userdata;
        char c = 0;
        if (end == 0) {
                (void) close(fds[0]);
                while (write(fds[1], &c, 1) == 1)
                        ;
                return -1;
        }
        *ret = (struct hand_result){1, 1};
        return 0;
}

static void close_both(void *userdata) {
        const int *fds = userdata;
        (void) close(fds[0]);
        (void) close(fds[1]);
}

static void test_a_result_outlives_the_sender(void) {
        for (unsigned i = 0; i < 50; i++) { /* which end is seen first is chance */
                int fds[2];
                CHECK_INT(pipe(fds), 0);
                struct hand_two t = {
                        .run = other_is_cut_off, .forked = close_both, .userdata = fds, .cpus = anywhere, .clocked = 1};
                struct hand_result result = {};
                CHECK_INT(hand_two_run(&t, &result), 0);
        }
}

static int both_end(void *userdata, int end, struct hand_result *ret) {
        (void) userdata;
        if (end == 0)
                (void) usleep(20000);
        *ret = (struct hand_result){5, 7};
        return 0;
}

static void test_one_that_ends_early_and_well_is_no_failure(void) {
        struct hand_two t = {.run = both_end, .cpus = anywhere, .clocked = 0};
        struct hand_result result = {};
        CHECK_INT(hand_two_run(&t, &result), 0);
        CHECK_UINT(result.ns, 7);
}

/* The end that userdata names fails, while the other would wait for ever. */
static int one_fails(void *userdata, int end, struct hand_result *ret) {
        const int *bad = userdata;
        (void) ret;
        if (end != *bad)
                for (;;)
                        pause();
        return -1;
}

static void test_failure_of_either_is_seen(void) {
        for (int bad = 0; bad < 2; bad++)
                for (int clocked = 0; clocked < 2; clocked++) {
                        struct hand_two t = {.run = one_fails, .userdata = &bad, .cpus = anywhere, .clocked = clocked};
                        struct hand_result result = {};
                        CHECK_INT(hand_two_run(&t, &result), -EIO);
                        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
                }
}

static void test_a_cpu_that_is_not_there(void) {
        static const int nowhere[2] = {CPU_SETSIZE - 1, -1};
        int clocked = 0;
        struct hand_two t = {.run = one_goes_on, .userdata = &clocked, .cpus = nowhere, .clocked = 0};
        struct hand_result result = {};
        CHECK_INT(hand_two_run(&t, &result), -EIO);
}

int main(void) {
        RUN(test_the_other_is_ended);
        RUN(test_a_result_outlives_the_sender);
        RUN(test_one_that_ends_early_and_well_is_no_failure);
        RUN(test_failure_of_either_is_seen);
        RUN(test_a_cpu_that_is_not_there);
        return check_end();
}
