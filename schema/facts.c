/* SPDX-License-Identifier: MIT */

#include "schema/facts.h"

const struct fact_row fact_rows[FACT_COUNT] = {
#define ROW(id, name, form, in_bundle, comparable, path, description, ...)                                             \
        [FACT_##id] = {name, FACT_##form, comparable, path, description, {__VA_ARGS__}},
        FACTS(ROW)
#undef ROW
};

const struct fact_row build_rows[BUILD_COUNT] = {
        [BUILD_VERSION] = {.name = "version", .form = FACT_TEXT},
        [BUILD_COMMIT] = {.name = "commit", .form = FACT_TEXT}, /* as git describes it */
        [BUILD_DAEMON_SHA256] = {.name = "daemon_sha256", .form = FACT_SHA256},
        [BUILD_AGENT_SHA256] = {.name = "agent_sha256", .form = FACT_SHA256},
};
