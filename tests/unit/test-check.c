/* SPDX-License-Identifier: MIT */

/* How a test program ends: a pass is something that passed. */

#include "check.h"

static int end_with(unsigned passed, unsigned failed, unsigned skipped) {
        unsigned saved[] = {check_passed, check_failed, check_skipped};
        check_passed = passed;
        check_failed = failed;
        check_skipped = skipped;
        int status = check_end();
        check_passed = saved[0];
        check_failed = saved[1];
        check_skipped = saved[2];
        return status;
}

static void test_exit_status(void) {
        CHECK_INT(end_with(2, 0, 0), 0);
        CHECK_INT(end_with(1, 0, 2), 0);
        CHECK_INT(end_with(3, 1, 0), 1);
        CHECK_INT(end_with(0, 1, 1), 1);
        CHECK_INT(end_with(0, 0, 1), 77);
}

static void test_no_case_is_no_skip(void) {
        CHECK_INT(end_with(0, 0, 0), 1);
}

int main(void) {
        RUN(test_exit_status);
        RUN(test_no_case_is_no_skip);
        return check_end();
}
