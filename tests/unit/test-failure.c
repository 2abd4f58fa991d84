/* SPDX-License-Identifier: MIT */

/* Why an agent gives up: the first failure stays, and what is returned is what the caller passes on. */

#include "agent/base/failure.h"
#include "schema/util.h"
#include "tests/unit/check.h"

static void the_first_failure_is_the_cause(void) {
        struct failure f = {0};
        CHECK_INT(failure_set(&f, ENOSPC, "%s is full: %d", "the disk", 7), -ENOSPC);
        CHECK_INT(f.error, ENOSPC);
        CHECK_STRING(f.detail, "the disk is full: 7");
        CHECK_INT(failure_set(&f, EPIPE, "the peer is gone"),
                  -EPIPE); /* of this call, also when it is not the one that is stored */
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

static void a_long_detail_stays_in_its_room(void) {
        struct {
                struct failure f;
                char behind[8];
        } s = {.behind = "#######"};
        CHECK_INT(failure_set(&s.f, EINVAL, "%0500d", 1), -EINVAL);
        CHECK_UINT(strlen(s.f.detail), sizeof s.f.detail - 1);
        CHECK_STRING(s.behind, "#######");
}

static void the_peer_is_named_by_its_role(void) {
        struct failure f = {0};
        CHECK_INT(failure_set_peer(&f, "server", EPIPE, "is gone after %d", 7), -EPIPE);
        CHECK_INT(f.fault, FAULT_PEER);
        CHECK_INT(f.error, EPIPE);
        CHECK_STRING(f.detail, "peer server is gone after 7");
        CHECK_INT(failure_set(&f, ENOSPC, "no room"), -ENOSPC);
        CHECK_INT(f.fault, FAULT_PEER);
        f = (struct failure){0};
        CHECK_INT(failure_set(&f, ENOSPC, "no room"), -ENOSPC);
        CHECK_INT(failure_set_peer(&f, "server", EPIPE, "is gone"), -EPIPE);
        CHECK_INT(f.fault, FAULT_OWN);
        CHECK_STRING(f.detail, "no room");
        f = (struct failure){0};
        CHECK_INT(failure_set_peer(&f, "server", 0, "%0500d", 1), -EIO);
        CHECK_UINT(strlen(f.detail), sizeof f.detail - 1);
}

static void another_failure_is_adopted_whole(void) {
        struct failure f = {0}, blames = {0}, own = {0};
        (void) failure_set_peer(&blames, "server", EPIPE, "is gone");
        (void) failure_set(&own, 0, "no room");
        CHECK_INT(failure_adopt(&f, &blames), -EPIPE);
        CHECK_INT(failure_adopt(&f, &own), -EIO);
        CHECK_INT(f.fault, FAULT_PEER);
        CHECK_INT(f.error, EPIPE);
        CHECK_STRING(f.detail, "peer server is gone");
}

int main(void) {
        RUN(the_first_failure_is_the_cause);
        RUN(the_peer_is_named_by_its_role);
        RUN(another_failure_is_adopted_whole);
        RUN(without_an_errno_it_is_still_a_failure);
        RUN(a_long_detail_stays_in_its_room);
        return check_end();
}
