/* SPDX-License-Identifier: MIT */

/* The kind of a sample's latency, learned from its run once; in front of runs that this file makes up. */

#include "api/handle/render/kinds.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <string.h>

struct service {
        unsigned calls;
};

/* Run 1 is a pingpong, 2 a stream, 3 is forgotten, 4 cannot be read. */
int service_run(struct service *s, int64_t id, struct run_record *ret, struct refusal *r) {
        s->calls++;
        if (id == 3) {
                refuse(r, 404, "not-found", "", "there is none");
                return -ENOENT;
        }
        if (id == 4)
                return -EIO;
        *ret = (struct run_record){
                .id = id,
                .state = STATE_RUNNING,
                .point_json = strdup(id == 1 ? "{\"workload\":\"pingpong\"}" : "{\"workload\":\"stream\"}")};
        return 0;
}

static void knows_the_run_that_it_has_learned(void) {
        struct service s = {0};
        _cleanup_(kinds_deinit) struct kinds k = {0};
        struct refusal r = {0};
        CHECK(kinds_get(&k, 1) == NULL);
        CHECK_INT(kinds_read(&k, &s, 1, &r), 0);
        CHECK_STRING(kinds_get(&k, 1), "rtt");
        CHECK_STRING(kinds_get(&k, 1), "rtt");
        CHECK_STRING(k.point_json, "{\"workload\":\"pingpong\"}");
        CHECK(kinds_get(&k, 2) == NULL); /* another run is not taken for it */
        CHECK_INT(kinds_read(&k, &s, 2, &r), 0);
        CHECK_STRING(kinds_get(&k, 2), "one_way");
        CHECK(kinds_get(&k, 1) == NULL); /* only the last one is remembered */
        CHECK_UINT(s.calls, 2);
}

static void a_run_that_cannot_be_had_changes_nothing(void) {
        struct service s = {0};
        _cleanup_(kinds_deinit) struct kinds k = {0};
        struct refusal r = {0};
        CHECK_INT(kinds_read(&k, &s, 1, &r), 0);
        CHECK_INT(kinds_read(&k, &s, 3, &r), -ENOENT);
        CHECK_INT(r.status, 404);
        CHECK_INT(kinds_read(&k, &s, 4, &r), -EIO);
        CHECK(kinds_get(&k, 3) == NULL && kinds_get(&k, 4) == NULL);
        CHECK_STRING(kinds_get(&k, 1), "rtt");
}

/* It has the noise of the last one alone. */
static void has_the_noise_of_the_run(void) {
        struct service s = {0};
        _cleanup_(kinds_deinit) struct kinds k = {0};
        struct refusal r = {0};
        for (int64_t id = 1; id <= 2; id++) {
                CHECK_INT(kinds_read(&k, &s, id, &r), 0);
                CHECK(k.noise.reason && strstr(k.noise.reason, "has not ended"));
        }
}

int main(void) {
        RUN(knows_the_run_that_it_has_learned);
        RUN(a_run_that_cannot_be_had_changes_nothing);
        RUN(has_the_noise_of_the_run);
        return check_end();
}
