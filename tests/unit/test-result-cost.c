/* SPDX-License-Identifier: MIT */

/* The cost of a call and of a context switch, from made-up reports, and from agents that do not report what is
 * needed. */

#include "daemon/result/cost.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/effective.h"

/* The cost of a run that had half of the CPU, while another program had the other half. */
static int cost(const struct point *p, uint64_t window_ns, uint64_t messages, const char *effective, char **ret) {
        EFFECTIVE *in_force = effective_of(effective);
        const struct message_report m = {.window_ns = window_ns,
                                         .messages = messages,
                                         .effective = in_force,
                                         .counters.usage.cpu_ns = window_ns / 2};
        struct json_writer w;
        *ret = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        int r = result_cost_to_json(p, &m, &w);
        json_object_end(&w);
        if (r == 0)
                r = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        return r;
}

static void a_call_is_a_share_of_the_cpu_time(void) {
        const struct point p = {.workload = WORKLOAD_SYSCALL};
        _cleanup_free_ char *text = NULL;
        CHECK_INT(cost(&p, 1000000000, 8000000, "{}", &text), 0);
        CHECK_STRING(text, "{\"cost_ns\":62.5,\"cost_of\":\"call\"}");
}

/* A round of 4 processes is 4 hops; a hop is a switch and what the pipe costs without one. */
static void a_switch_is_a_hop_without_its_pipe(void) {
        const struct point p = {.workload = WORKLOAD_CONTEXT_SWITCH, .processes = 4};
        _cleanup_free_ char *text = NULL, *other = NULL;
        CHECK_INT(cost(&p, 8000, 2, "{\"pipe_overhead_ns\": 250.5}", &text), 0);
        CHECK_STRING(text, "{\"cost_ns\":749.5,\"cost_of\":\"context switch\",\"hop_ns\":1000,"
                           "\"pipe_overhead_ns\":250.5}");
        /* an overhead that is more than the hop is what was measured: not hidden behind a 0 */
        CHECK_INT(cost(&p, 8000, 2, "{\"pipe_overhead_ns\": 1001}", &other), 0);
        CHECK(strstr(other, "\"cost_ns\":-1,"));
}

static void workloads_that_move_data_have_none(void) {
        for (enum workload w = 0; w < WORKLOAD_COUNT; w++) {
                const struct point p = {.workload = w};
                _cleanup_free_ char *text = NULL;
                if (w == WORKLOAD_SYSCALL || w == WORKLOAD_CONTEXT_SWITCH)
                        continue;
                CHECK_INT(cost(&p, 1000, 1, "{}", &text), 0);
                CHECK_STRING(text, "{\"cost_ns\":null,\"cost_ns_reason\":\"of syscall and context-switch "
                                   "only\",\"cost_of\":null}");
        }
}

static void an_overhead_that_is_not_reported(void) {
        static const char *const bad[] = {"{}", "{\"pipe_overhead_ns\": null}", "{\"pipe_overhead_ns\": \"1\"}"};
        const struct point p = {.workload = WORKLOAD_CONTEXT_SWITCH, .processes = 2};
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                char *text;
                int r = cost(&p, 1000, 1, bad[i], &text);
                free(text);
                if (r != -EBADMSG)
                        CHECK_FAIL("%s gave %d", bad[i], r);
        }
}

int main(void) {
        RUN(a_call_is_a_share_of_the_cpu_time);
        RUN(a_switch_is_a_hop_without_its_pipe);
        RUN(workloads_that_move_data_have_none);
        RUN(an_overhead_that_is_not_reported);
        return check_end();
}
