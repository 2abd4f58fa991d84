/* SPDX-License-Identifier: MIT */

/* What others take of a machine between two looks at its CPUs' times, on a tree whose times a test sets. */

#include "daemon/host/disturbance/idle-noise.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)

static struct topology_cpu cpus[] = {{.id = 0, .online = true}, {.id = 1, .online = false}, {.id = 2, .online = true}};
static const struct topology topology = {.cpus = cpus, .n_cpus = 3};

struct machine {
        char tree[64];
        struct idle_noise noise;
};

/* A tree without cpuacct or schedstat: what a CPU ran is the time that passed less its idle time and its steal. */
static void machine_begin(struct machine *m) {
        CHECK_INT(host_tree_unpack("busy-lab", m->tree), 0);
        CHECK_INT(host_tree_write(m->tree, "/proc/schedstat", "version 17\n"), 0);
}

/* In hundredths of a second. */
static void machine_set(struct machine *m, int idle0, int steal0, int idle2) {
        char text[256];
        (void) snprintf(text, sizeof(text),
                        "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 %d 0 0 0 %d 0 0\ncpu2 0 0 0 %d 0 0 0 0 0 0\n", idle0,
                        steal0, idle2);
        CHECK_INT(host_tree_write(m->tree, "/proc/stat", text), 0);
}

/* The document is `expected`. */
static void check(const struct machine *m, uint64_t now_ns, const char *why_not, const char *expected) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        _cleanup_free_ char *json = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        idle_noise_put(&m->noise, now_ns, why_not, &w);
        json_object_end(&w);
        CHECK_INT(json_writer_steal(&w, &json, NULL), 0);
        CHECK_STRING(json, expected);
}

static void test_the_share_of_others_is_what_was_neither_idle_nor_stolen(void) {
        struct machine m;
        machine_begin(&m);
        machine_set(&m, 1000, 50, 2000);
        idle_noise_init(&m.noise, m.tree);
        check(&m, SECOND, NULL,
              "{\"cpus\":[],\"load\":null,\"window_ns\":null,\"age_seconds\":null,"
              "\"reason\":\"the daemon has not looked twice yet\"}");
        idle_noise_look(&m.noise, &topology, 100 * SECOND);
        machine_set(&m, 1200, 100, 2400);
        idle_noise_look(&m.noise, &topology, 104 * SECOND);
        check(&m, 106 * SECOND, NULL,
              "{\"cpus\":[{\"id\":0,\"foreign\":0.375,\"steal\":0.125},{\"id\":2,\"foreign\":0,\"steal\":0}],"
              "\"load\":0.375,\"window_ns\":4000000000,\"age_seconds\":2,\"reason\":null}");
        check(&m, 106 * SECOND, "busy",
              "{\"cpus\":[],\"load\":null,\"window_ns\":null,\"age_seconds\":null,\"reason\":\"busy\"}");
        idle_noise_forget(&m.noise);
        idle_noise_look(&m.noise, &topology, 108 * SECOND);
        check(&m, 109 * SECOND, NULL,
              "{\"cpus\":[],\"load\":null,\"window_ns\":null,\"age_seconds\":null,"
              "\"reason\":\"the daemon has not looked twice yet\"}");
        idle_noise_deinit(&m.noise);
        host_tree_remove(m.tree);
}

static void test_times_that_stand_still_are_not_known(void) {
        struct machine m;
        machine_begin(&m);
        machine_set(&m, 1000, 50, 2000);
        idle_noise_init(&m.noise, m.tree);
        idle_noise_look(&m.noise, &topology, 100 * SECOND);
        idle_noise_look(&m.noise, &topology, 104 * SECOND);
        check(&m, 104 * SECOND, NULL,
              "{\"cpus\":[],\"load\":null,\"window_ns\":4000000000,\"age_seconds\":0,"
              "\"reason\":\"the CPUs' times did not advance between two looks\"}");
        machine_set(&m, 1000, 50, 2400);
        idle_noise_look(&m.noise, &topology, 108 * SECOND);
        check(&m, 108 * SECOND, NULL,
              "{\"cpus\":[{\"id\":2,\"foreign\":0,\"steal\":0}],\"load\":null,\"window_ns\":4000000000,\"age_seconds\":"
              "0,"
              "\"reason\":\"a CPU was not listed in /proc/stat at both looks\"}");
        idle_noise_deinit(&m.noise);
        host_tree_remove(m.tree);
}

static void test_a_machine_without_times_says_so(void) {
        struct machine m;
        machine_begin(&m);
        idle_noise_init(&m.noise, "/nonexistent");
        idle_noise_look(&m.noise, &topology, 100 * SECOND);
        check(&m, 101 * SECOND, NULL,
              "{\"cpus\":[],\"load\":null,\"window_ns\":null,\"age_seconds\":null,"
              "\"reason\":\"the CPUs' times cannot be read: No such file or directory\"}");
        idle_noise_deinit(&m.noise);
        host_tree_remove(m.tree);
}

int main(void) {
        RUN(test_the_share_of_others_is_what_was_neither_idle_nor_stolen);
        RUN(test_times_that_stand_still_are_not_known);
        RUN(test_a_machine_without_times_says_so);
        return check_end();
}
