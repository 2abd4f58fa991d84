/* SPDX-License-Identifier: MIT */

#include "daemon/store/records.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>

static void test_state_names(void) {
        static const struct {
                enum state state;
                const char *name;
        } table[] = {
                {STATE_QUEUED, "queued"}, {STATE_RUNNING, "running"},     {STATE_DONE, "done"},
                {STATE_FAILED, "failed"}, {STATE_CANCELLED, "cancelled"}, {STATE_INTERRUPTED, "interrupted"},
        };
        CHECK_UINT(sizeof(table) / sizeof(table[0]), STATE_COUNT);
        for (size_t i = 0; i < STATE_COUNT; i++) {
                enum state back;
                CHECK_STRING(state_name(table[i].state), table[i].name);
                CHECK_INT(state_from_name(table[i].name, &back), 0);
                CHECK_INT(back, table[i].state);
        }
        CHECK(state_name(STATE_COUNT) == NULL);
}

static void test_unknown_state(void) {
        static const char *const bad[] = {"", "Queued", "queued ", "don", "donee"};
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                enum state s = STATE_COUNT;
                CHECK_INT(state_from_name(bad[i], &s), -EINVAL);
                CHECK_INT(s, STATE_COUNT);
        }
}

/* The leak checker of a sanitizer build is the judge of these. */
static void test_deinit_leaves_empty(void) {
        struct experiment_record e = {.id = 1, .name = strdup("n"), .spec_json = strdup("{}"), .error = strdup("e")};
        struct run_record run = {.point_json = strdup("{}"), .agents_json = strdup("[]"), .result_json = strdup("{}")};
        struct sample_record sample = {
                .agent = strdup("sender"), .latency = calloc(1, sizeof(struct histogram)), .latency_v2 = malloc(1)};
        struct result_record row = {.point_json = strdup("{}"), .flags_json = strdup("[]"), .error = strdup("e")};
        row.loop = strdup("open");
        row.verify = strdup("touch");
        experiment_record_deinit(&e);
        run_record_deinit(&run);
        sample_record_deinit(&sample);
        result_record_deinit(&row);
        CHECK(!e.name && !e.spec_json && e.id == 0);
        CHECK(!run.point_json && !run.agents_json);
        CHECK(!sample.agent && !sample.latency && !sample.latency_v2);
        CHECK(!row.flags_json && !row.error && !row.loop && !row.verify);
        experiment_record_deinit(&e); /* twice is fine */
}

int main(void) {
        RUN(test_state_names);
        RUN(test_unknown_state);
        RUN(test_deinit_leaves_empty);
        return check_end();
}
