/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_CHECK_H
#define IPCLAB_TESTS_CHECK_H

/*
 * The macros of the unit tests. A test program calls RUN(function) for each case and ends with `return check_end();`.
 * The first failed check of a case prints file, line and values and ends the case; the program goes on with the next,
 * and exits 1, as does one without a case. SKIP(reason) ends a case as skipped; a program all of whose cases were
 * skipped exits 77. A case that is never RUN is a function that is never used: the compiler refuses it.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned check_passed, check_failed, check_skipped;
static bool check_case_failed, check_case_skipped;

#define CHECK_FAIL(...)                                                                                                \
        do {                                                                                                           \
                fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                        \
                fprintf(stderr, __VA_ARGS__);                                                                          \
                fputc('\n', stderr);                                                                                   \
                check_case_failed = true;                                                                              \
                return;                                                                                                \
        } while (0)

#define CHECK(condition)                                                                                               \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        CHECK_FAIL("failed: %s", #condition);                                                          \
        } while (0)

#define CHECK_INT(got, want)                                                                                           \
        do {                                                                                                           \
                int64_t _got = (int64_t) (got), _want = (int64_t) (want);                                              \
                if (_got != _want)                                                                                     \
                        CHECK_FAIL("%s is %" PRId64 ", expected %" PRId64, #got, _got, _want);                         \
        } while (0)

#define CHECK_UINT(got, want)                                                                                          \
        do {                                                                                                           \
                uint64_t _got = (uint64_t) (got), _want = (uint64_t) (want);                                           \
                if (_got != _want)                                                                                     \
                        CHECK_FAIL("%s is %" PRIu64 ", expected %" PRIu64, #got, _got, _want);                         \
        } while (0)

#define CHECK_STRING(got, want)                                                                                        \
        do {                                                                                                           \
                const char *_got = (got), *_want = (want);                                                             \
                if (!_got || !_want || strcmp(_got, _want) != 0)                                                       \
                        CHECK_FAIL("%s is \"%s\", expected \"%s\"", #got, _got ? _got : "(null)",                      \
                                   _want ? _want : "(null)");                                                          \
        } while (0)

#define SKIP(...)                                                                                                      \
        do {                                                                                                           \
                printf("skipped: ");                                                                                   \
                printf(__VA_ARGS__);                                                                                   \
                putchar('\n');                                                                                         \
                check_case_skipped = true;                                                                             \
                return;                                                                                                \
        } while (0)

#define RUN(function)                                                                                                  \
        do {                                                                                                           \
                check_case_failed = check_case_skipped = false;                                                        \
                function();                                                                                            \
                if (check_case_failed)                                                                                 \
                        check_failed++;                                                                                \
                else if (check_case_skipped)                                                                           \
                        check_skipped++;                                                                               \
                else                                                                                                   \
                        check_passed++;                                                                                \
                printf("%s %s\n", check_case_failed ? "FAIL" : check_case_skipped ? "SKIP" : "ok  ", #function);       \
        } while (0)

static inline int check_end(void) {
        printf("%u passed, %u failed, %u skipped\n", check_passed, check_failed, check_skipped);
        if (check_failed)
                return 1;
        if (check_passed)
                return 0;
        if (check_skipped)
                return 77;
        fputs("this program runs no case\n", stderr);
        return 1;
}

#endif
