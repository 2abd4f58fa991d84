/* SPDX-License-Identifier: MIT */

/* "Did you mean": which slips are understood, and what is close to nothing. */

#include "schema/spec/internal.h"
#include "schema/util.h"
#include "tests/unit/check.h"

static const char *const names[] = {"stream", "pingpong", "syscall", "context-switch", "pipe", "fifo", "tcp"};

static void understands_slips(void) {
        static const struct {
                const char *word, *meant; /* NULL: none */
        } cases[] = {
                {"stram", "stream"},      /* a letter left out */
                {"streeam", "stream"},    /* … too many */
                {"strean", "stream"},     /* … another */
                {"straem", "stream"},     /* two swapped count as one slip */
                {"pignpogn", "pingpong"}, /* twice */
                {"contextswitch", "context-switch"},
                {"context_swich", "context-switch"},
                {"contxt_swich", NULL}, /* three slips */
                {"pip", "pipe"},
                {"pi", NULL}, /* half of a short name */
                {"tpc", "tcp"},
                {"udp", NULL},
                {"tc", "tcp"},
                {"t", NULL},
                {"", NULL},
                {"STREAM", NULL},
                {"something else", NULL},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const char *got = suggest(cases[i].word, names, ELEMENTS(names));
                if ((got == NULL) != (cases[i].meant == NULL) || (got && strcmp(got, cases[i].meant) != 0))
                        CHECK_FAIL("\"%s\" is taken for %s, expected %s", cases[i].word, got ? got : "nothing",
                                   cases[i].meant ? cases[i].meant : "nothing");
        }
}

static void takes_the_nearest_and_the_first_of_equals(void) {
        static const char *const near[] = {"messages", "message", "massage"};
        CHECK_STRING(suggest("mesage", near, 3), "message");
        CHECK_STRING(suggest("mssage", near, 3), "message");
        CHECK_STRING(suggest("messagess", near, 3), "messages");
        CHECK(suggest("message", near, 0) == NULL);
}

/* Room is made for 32 letters: a longer name is close to none, and writes nowhere. */
static void long_words_are_close_to_nothing(void) {
        char word[40], name[40];
        const char *const one[] = {name};
        memset(name, 'a', sizeof name);
        memset(word, 'a', sizeof word);
        name[32] = word[31] = '\0';
        CHECK(suggest(word, one, 1) == name);
        name[31] = word[32] = '\0';
        word[31] = 'a';
        CHECK(suggest(word, one, 1) == name);
        name[31] = 'a';
        name[32] = 'a';
        name[33] = '\0';
        CHECK(suggest(word, one, 1) == NULL);
        word[32] = 'a';
        word[33] = '\0';
        name[32] = '\0';
        CHECK(suggest(word, one, 1) == NULL);
}

int main(void) {
        RUN(understands_slips);
        RUN(takes_the_nearest_and_the_first_of_equals);
        RUN(long_words_are_close_to_nothing);
        return check_end();
}
