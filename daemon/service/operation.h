/* SPDX-License-Identifier: MIT */
#pragma once

/* Operations of the main loop that may take long. */
#define OPERATIONS(ROW)                                                                                                \
        ROW(OTHER, "other")                                                                                            \
        ROW(SUBMIT, "submit")                                                                                          \
        ROW(CANCEL, "cancel")                                                                                          \
        ROW(DELETE, "delete")                                                                                          \
        ROW(AGAIN, "extend or retry")                                                                                  \
        ROW(BASELINE, "baseline")                                                                                      \
        ROW(IMPORT, "import")                                                                                          \
        ROW(EXPORTED, "acknowledge an export")                                                                         \
        ROW(LOOK, "look at the machine")                                                                               \
        ROW(DECIDE, "decide on repetitions")                                                                           \
        ROW(RUN_START, "run start")                                                                                    \
        ROW(RUN_END, "run end")                                                                                        \
        ROW(SAMPLES, "samples")                                                                                        \
        ROW(HOUSEKEEPING, "housekeeping")

enum service_operation {
#define ROW(id, name) OPERATION_##id,
        OPERATIONS(ROW)
#undef ROW
                OPERATION_COUNT
};

const char *service_operation_name(enum service_operation operation);
