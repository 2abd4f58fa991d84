/* SPDX-License-Identifier: MIT */

/* Preconditions and changes of the host's settings: `require`, of a whole experiment or of one placement, and `tune`.
 */

#include "schema/spec/internal.h"

#include "schema/util.h"

#include <string.h>

static int governor_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                         struct refusal *r) {
        const char *s;

        if (json_as_string(json, &s) < 0)
                return refuse_type(json, pointer, "the name of a cpufreq governor", r);
        size_t n = strlen(s);
        if (n < v->least || n > v->most || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") != n)
                return refuse(r, 422, "wrong-value", pointer, "governor is a name of 1 … %u of a-z, 0-9, _ and -",
                              SPEC_GOVERNOR_MAX);
        memcpy(ret, s, n + 1);
        return 0;
}

/* A name, whose length and letters are refused in one sentence. */
static const struct value_type governor = {governor_read, value_name_write, value_same_bytes, value_name_describe};

static const struct value requirements[] = {
        {"numa_balancing", "Whether automatic NUMA balancing must be on or off",
         VALUE(value_toggle, struct spec_require, numa_balancing)},
        {"smt", "Whether simultaneous multithreading must be in use or not",
         VALUE(value_toggle, struct spec_require, smt)},
        {"governor", "The cpufreq governor that every CPU must have", VALUE(governor, struct spec_require, governor),
         .least = 1, .most = SPEC_GOVERNOR_MAX},
};

static const struct value tunings[] = {
        {"numa_balancing", "Automatic NUMA balancing", VALUE(value_toggle, struct spec_tune, numa_balancing)},
};

const struct value_table require_values = {requirements, ELEMENTS(requirements), sizeof(requirements[0])};
const struct value_table tune_values = {tunings, ELEMENTS(tunings), sizeof(tunings[0])};
