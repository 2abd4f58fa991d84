/* SPDX-License-Identifier: MIT */

/* Why an agent gives up: the first failure stays, and what is returned is what the caller passes on. */

#include "agent/failure.h"
#include "schema/util.h"
#include "tests/unit/check.h"

static void the_first_failure_is_the_cause(void) {
        struct failure f = {0};
        CHECK_INT(failure_set(&f, ENOSPC, "%s is full: %d", "the disk", 7), -ENOSPC);
        CHECK_INT(f.error, ENOSPC);
        CHECK_STRING(f.detail, "the disk is full: 7");
        CHECK_INT(failure_set(&f, EPIPE, "the peer is gone"), -EPIPE); /* of this call, also when it is not kept */
        CHECK_INT(f.error, ENOSPC);
        CHECK_STRING(f.detail, "the disk is full: 7");
}

static void without_an_errno_it_is_still_a_failure(void) {
        struct failure f = {0};
        CHECK_INT(failure_set(&f, 0, "the numbers differ"), -EIO);
        CHECK_INT(f.error, 0);
        CHECK_STRING(f.detail, "the numbers differ");
        CHECK_INT(failure_set(&f, ENOSPC, "later"), -ENOSPC);
        CHECK_INT(f.error, 0);
}

static void long_words_stay_in_their_room(void) {
        struct {
                struct failure f;
                char behind[8];
        } s = {.behind = "#######"};
        CHECK_INT(failure_set(&s.f, EINVAL, "%0500d", 1), -EINVAL);
        CHECK_UINT(strlen(s.f.detail), sizeof s.f.detail - 1);
        CHECK_STRING(s.behind, "#######");
}

int main(void) {
        RUN(the_first_failure_is_the_cause);
        RUN(without_an_errno_it_is_still_a_failure);
        RUN(long_words_stay_in_their_room);
        return check_end();
}
