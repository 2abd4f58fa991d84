/* SPDX-License-Identifier: MIT */

/* Unlike settings in words: each setting, for two rows and for several, and rows of one name once. */

#include "daemon/analysis/unlike.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#define NOTHING                                                                                                        \
        { .buffer_bytes = 0 }

enum { N_ROWS = 3 };

static const struct point points[N_ROWS] = {
        {.transport = TRANSPORT_PIPE, .message_size = 4096, .threads = 1, .fields = 1},
        {.transport = TRANSPORT_TCP, .message_size = 4096, .threads = 1, .fields = 8},
        {.transport = TRANSPORT_SHM_POSIX, .message_size = 4096, .threads = 1, .fields = 1, .wait = WAIT_SPIN},
};

/* The caller frees it; NULL: nothing is unlike. */
static char *words_of(const struct unlike_row *rows, size_t n, bool with_axes) {
        char *text = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&text, &length);
        if (!f)
                return NULL;
        bool unlike = unlike_write(f, rows, n, with_axes, "");
        if (fclose(f) != 0 || (!unlike && length == 0)) {
                free(text);
                return NULL;
        }
        return text;
}

static void check_words(size_t line, const struct unlike_row *rows, size_t n, bool with_axes, const char *wanted) {
        char *words = words_of(rows, n, with_axes);
        if (wanted ? !words || strcmp(words, wanted) != 0 : words != NULL)
                CHECK_FAIL("case %zu: \"%s\"", line, words ? words : "nothing");
        free(words);
}

static void test_each_setting(void) {
        static const struct {
                size_t n;
                struct in_force in_force[N_ROWS];
                const char *wanted;
        } cases[] = {
                {3, {NOTHING, NOTHING, NOTHING}, NULL},
                {3,
                 {{.buffer_bytes = 4096}, {.buffer_bytes = 65536}, {.buffer_bytes = 4096}},
                 "buffers of 4 KiB (pipe, shm-posix), 64 KiB (tcp)"},
                {3,
                 {NOTHING, {.page_bytes = 4096}, {.page_bytes = -1}},
                 "pages of 4 KiB (tcp), several sizes (shm-posix)"},
                {3,
                 {NOTHING, {.gather_ns = 1000}, {.gather_ns = 2000}},
                 "gathering for 1 µs (tcp), 2 µs (shm-posix); tcp, shm-posix let messages gather"},
                {3, {{.stamped = true}, NOTHING, NOTHING}, "pipe writes a time into each message"},
                {3, {{.stamped = true}, {.stamped = true}, {.stamped = true}}, NULL},
                {2, {{.chunk_bytes = 1024}, {.chunk_bytes = 8192}}, "pipe sends a message in pieces of 1 KiB"},
                {2, {{.chunk_bytes = 8192}, NOTHING}, NULL},
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const char *const names[N_ROWS] = {"pipe", "tcp", "shm-posix"};
                struct unlike_row rows[N_ROWS];
                for (size_t k = 0; k < N_ROWS; k++)
                        rows[k] = (struct unlike_row){&points[k], &cases[i].in_force[k], names[k]};
                check_words(i, rows, cases[i].n, false, cases[i].wanted);
        }
}

static void test_settings_of_some_alone(void) {
        static const struct in_force none;
        const struct unlike_row rows[] = {
                {&points[0], &none, "pipe"}, {&points[1], &none, "tcp"}, {&points[2], &none, "shm-posix"}};
        check_words(0, rows, 2, true, "fields 8 is of tcp alone");
        check_words(1, rows, 3, true, "wait spin is of shm-posix alone; fields 8 is of tcp alone");
        check_words(2, rows, 3, false, NULL);
        check_words(3, rows, 1, true, NULL);
}

/* A crossover has each mechanism at two sizes and more. */
static void test_rows_of_one_name_are_one(void) {
        static const struct in_force own = {.chunk_bytes = 1024, .stamped = true}, none;
        const struct unlike_row rows[] = {{&points[0], &none, "pipe"},
                                          {&points[1], &own, "tcp"},
                                          {&points[0], &none, "pipe"},
                                          {&points[1], &own, "tcp"}};
        check_words(0, rows, 4, true,
                    "fields 8 is of tcp alone; tcp sends a message in pieces of 1 KiB; tcp writes a time into each "
                    "message");
}

int main(void) {
        RUN(test_each_setting);
        RUN(test_settings_of_some_alone);
        RUN(test_rows_of_one_name_are_one);
        return check_end();
}
