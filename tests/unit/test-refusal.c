/* SPDX-License-Identifier: MIT */

/* Refusals: what they hold, that nothing of an earlier one stays, and how text that is too long is cut. */

#include "schema/json/utf8.h"
#include "schema/refusal.h"
#include "schema/util.h"
#include "tests/unit/check.h"

static bool is_utf8(const char *s) {
        size_t n = strlen(s);
        for (size_t at = 0, k; at < n; at += k) {
                k = utf8_length(s + at, n - at);
                if (k == 0)
                        return false;
        }
        return true;
}

static void holds_its_members(void) {
        struct refusal r;
        memset(&r, 0xa5, sizeof r);
        CHECK_INT(refuse_limit(&r, "/message_size", "fs.mqueue.msgsize_max", "8192", "9000", "%d is above %s", 9000,
                               "8192"),
                  -EINVAL);
        CHECK_INT(r.status, 422);
        CHECK_STRING(r.code, "limit-exceeded");
        CHECK_STRING(r.pointer, "/message_size");
        CHECK_STRING(r.detail, "9000 is above 8192");
        CHECK_STRING(r.limit, "fs.mqueue.msgsize_max");
        CHECK_STRING(r.limit_value, "8192");
        CHECK_STRING(r.value, "9000");
}

static void a_set_is_known_as_one(void) {
        struct refusal r;
        CHECK_INT(refuse_set(&r, "/a", "CPUs present", "0", "7", "CPU %d does not exist", 7), -EINVAL);
        CHECK(r.is_set);
        CHECK_STRING(r.code, "limit-exceeded");
        CHECK_STRING(r.detail, "CPU 7 does not exist");
        CHECK_STRING(r.limit, "CPUs present");
        CHECK_STRING(r.limit_value, "0");
        CHECK_STRING(r.value, "7");
        refuse_limit(&r, "/a", "limit", "1", "2", "too much");
        CHECK(!r.is_set);
}

static void leaves_nothing_of_the_one_before(void) {
        struct refusal r;
        refuse_limit(&r, "/a", "limit", "1", "2", "too much");
        CHECK_INT(refuse(&r, 404, "not-found", "", "There is no %s.", "such thing"), -EINVAL);
        CHECK_INT(r.status, 404);
        CHECK_STRING(r.code, "not-found");
        CHECK_STRING(r.pointer, "");
        CHECK_STRING(r.detail, "There is no such thing.");
        CHECK_STRING(r.limit, "");
        CHECK_STRING(r.limit_value, "");
        CHECK_STRING(r.value, "");
}

/* A long text is cut before the character that does not fit whole, wherever in it the end of the room falls. */
static void cuts_between_characters(void) {
        static const char *const characters[] = {"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
        for (size_t i = 0; i < ELEMENTS(characters); i++)
                for (size_t before = 0; before < 4; before++) {
                        char text[2048] = "";
                        size_t width = strlen(characters[i]);
                        struct refusal r;
                        memset(text, 'x', before);
                        while (strlen(text) + width < sizeof text)
                                strcat(text, characters[i]);
                        refuse_limit(&r, text, text, text, text, "%s", text);
                        const struct {
                                const char *got;
                                size_t size;
                        } fields[] = {{r.pointer, sizeof r.pointer},
                                      {r.detail, sizeof r.detail},
                                      {r.limit, sizeof r.limit},
                                      {r.limit_value, sizeof r.limit_value},
                                      {r.value, sizeof r.value}};
                        for (size_t k = 0; k < ELEMENTS(fields); k++) {
                                size_t fits = before + (fields[k].size - 1 - before) / width * width;
                                CHECK_UINT(strlen(fields[k].got), fits);
                                CHECK(is_utf8(fields[k].got) && strncmp(fields[k].got, text, fits) == 0);
                        }
                }
}

/* What just fits is whole: the room's last byte is the NUL's. */
static void what_fits_is_not_cut(void) {
        struct refusal r;
        char text[sizeof r.detail + 1];
        memset(text, 'y', sizeof text);
        text[sizeof r.detail - 1] = '\0';
        refuse(&r, 400, "", "", "%s", text);
        CHECK_STRING(r.detail, text);
        memset(text, 'y', sizeof text);
        text[sizeof r.detail] = '\0';
        refuse(&r, 400, "", "", "%s", text);
        CHECK_UINT(strlen(r.detail), sizeof r.detail - 1);
}

/* Bytes that begin no character at all: nothing sensible is left, and nothing before the text is read. */
static void continuations_alone_become_nothing(void) {
        char text[300];
        struct refusal r;
        memset(text, 0x80, sizeof text);
        text[sizeof text - 1] = '\0';
        refuse(&r, 400, "code", text, "x");
        CHECK_STRING(r.pointer, "");
}

int main(void) {
        RUN(holds_its_members);
        RUN(a_set_is_known_as_one);
        RUN(leaves_nothing_of_the_one_before);
        RUN(cuts_between_characters);
        RUN(what_fits_is_not_cut);
        RUN(continuations_alone_become_nothing);
        return check_end();
}
