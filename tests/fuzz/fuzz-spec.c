/* SPDX-License-Identifier: MIT */

/*
 * Any bytes into the spec parser, and what it accepts into the points. A refusal must name its status, code and reason;
 * an accepted spec must come out of its merged form as itself; each point must survive its JSON; the order of the runs
 * must be a permutation per repetition.
 */

#include "fuzz.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

static void check_refusal(const struct refusal *r) {
        FUZZ_CHECK(r->status == 400 || r->status == 422);
        FUZZ_CHECK(r->code[0] && r->detail[0]);
        FUZZ_CHECK(!r->pointer[0] || r->pointer[0] == '/');
}

static void check_point(const struct point *p) {
        struct point back;
        char *text = point_to_json(p);
        FUZZ_CHECK(text && point_from_json(text, strlen(text), &back) == 0);
        char *again = point_to_json(&back);
        FUZZ_CHECK(again && strcmp(text, again) == 0);
        free(again);
        free(text);
}

static void check_order(size_t n, uint32_t repetitions) {
        uint32_t *order = calloc(n * repetitions, sizeof(*order));
        uint8_t *seen = calloc(n, 1);
        FUZZ_CHECK(order && seen);
        spec_shuffle(n, n, repetitions, order);
        for (uint32_t k = 0; k < repetitions; k++)
                for (size_t i = 0; i < n; i++) {
                        uint32_t point = order[k * n + i];
                        FUZZ_CHECK(point < n && seen[point] == k % 2);
                        seen[point] ^= 1;
                }
        free(seen);
        free(order);
}

/* As on a host of two nodes and three CPUs. */
static void check_points(struct spec *spec) {
        const struct end_placement nodes[] = {{.node = 0, .cpu = -1}, {.node = 2, .cpu = -1}},
                                   cpus[] = {{.node = -1, .cpu = 0}, {.node = -1, .cpu = 1}, {.node = -1, .cpu = 7}};
        struct point_list list = {.points = NULL};
        struct refusal r = {.status = 0};

        int x = spec_expand_pairs(spec, nodes, ELEMENTS(nodes), cpus, ELEMENTS(cpus), &r);
        if (x == 0)
                x = spec_points(spec, &list, &r);
        if (x < 0) {
                FUZZ_CHECK(x == -EINVAL);
                check_refusal(&r);
                return;
        }
        FUZZ_CHECK(list.n_points > 0 && list.n_points + list.n_skipped <= SPEC_POINTS_MAX);
        FUZZ_CHECK(list.n_points * spec->repetitions <= SPEC_RUNS_MAX);
        for (size_t i = 0; i < list.n_points && i < 64; i++)
                check_point(&list.points[i]);
        if (spec->repetitions <= 4)
                check_order(list.n_points, spec->repetitions);
        point_list_deinit(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct spec *spec = NULL, *again = NULL;
        struct refusal r = {.status = 0};

        if (spec_parse((const char *) data, size, &spec, &r) < 0) {
                FUZZ_CHECK(!spec);
                check_refusal(&r);
                return 0;
        }
        FUZZ_CHECK(spec->repetitions >= 1);
        for (size_t i = 0; i < AXIS_COUNT; i++)
                FUZZ_CHECK(spec->axes[i].n >= 1);
        FUZZ_CHECK(!spec->end.duration_ns + !spec->end.messages + !spec->end.bytes == 2);
        FUZZ_CHECK(spec_parse(spec->merged_json, strlen(spec->merged_json), &again, &r) == 0);
        FUZZ_CHECK(strcmp(spec->merged_json, again->merged_json) == 0);
        FUZZ_CHECK(memcmp(&spec->end, &again->end, sizeof(spec->end)) == 0 && spec->warmup_ns == again->warmup_ns);
        check_points(spec);
        spec_free(again);
        spec_free(spec);
        return 0;
}
