/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_FUZZ_H
#define IPCLAB_TESTS_FUZZ_H

/* What every target needs: libFuzzer's entry, and a check that stays in whatever the build. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                                                                          \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        abort();                                                                                       \
        } while (0)

#endif
