/* SPDX-License-Identifier: MIT */

/* The strict reader, checked against what RFC 8259 refuses and cJSON would let pass, and the writer. */

#include "schema/json/json.h"
#include "schema/json/view.h"

#include "check.h"
#include "schema/util.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* Allocation number `failing` from now on fails; 0: none. */
static unsigned failing;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size) {
        return failing > 0 && --failing == 0 ? NULL : __real_malloc(size);
}

struct bad {
        const char *text;
        size_t length; /* 0: strlen */
        const char *pointer;
        const char *detail; /* a part of it */
};

static const struct bad bad[] = {
        {"", 0, "", "no JSON value"},
        {"  ", 0, "", "no JSON value"},
        {"{", 0, "", "ends inside an object"},
        {"[1,2", 0, "/1", "ends inside an array"},
        {"[1,]", 0, "/1", "array is malformed"},
        {"{\"a\":1,}", 0, "", "object is malformed"},
        {"{\"a\" 1}", 0, "/a", "object is malformed"},
        {"{a:1}", 0, "", "object is malformed"},
        {"[1 2]", 0, "/0", "array is malformed"},
        {"[1}", 0, "/0", "closes an array"},
        {"{} x", 0, "", "more after"},
        {"{}{}", 0, "", "more after"},
        {"1 ", 3, "", "more after"}, /* a NUL behind the value */
        {"nul", 0, "", "no JSON value"},
        {"True", 0, "", "no JSON value"},
        {"NaN", 0, "", "no JSON value"},
        {"\xef\xbb\xbf{}", 0, "", "byte 0xef"},
        {"'a'", 0, "", "no JSON value"},
        {"[01]", 0, "/0", "leading zero"},
        {"[-01]", 0, "/0", "leading zero"},
        {"-", 0, "", "a digit"},
        {"+1", 0, "", "no JSON value"},
        {".5", 0, "", "no JSON value"},
        {"1.", 0, "", "a digit"},
        {"1e", 0, "", "a digit"},
        {"1e+", 0, "", "a digit"},
        {"0x10", 0, "", "more after"},
        {"{\"a\":{\"b\":[0,1e400]}}", 0, "/a/b/1", "too large"},
        {"-1e400", 0, "", "too large"},
        {"9007199254740992", 0, "", "2^53"},
        {"[9007199254740993]", 0, "/0", "2^53"},
        {"-9007199254740992", 0, "", "2^53"},
        {"18446744073709551616", 0, "", "2^53"},
        {"0.0000000000000000000000000000000000000000000000000000000000001", 0, "", "characters"},
        {"\"a\nb\"", 0, "", "control character 0x0a"},
        {"\"a\0b\"", 5, "", "control character 0x00"},
        {"\"abc", 0, "", "no end"},
        {"\"abc\\", 0, "", "no end"},
        {"\"\\x41\"", 0, "", "escape"},
        {"\"\\u12g4\"", 0, "", "hexadecimal"},
        {"\"\\u12", 0, "", "hexadecimal"},
        {"\"\\u0000\"", 0, "", "NUL"},
        {"\"\\ud800\"", 0, "", "surrogate"},
        {"\"\\ud800\\u0041\"", 0, "", "surrogate"},
        {"\"\\udc00\"", 0, "", "surrogate"},
        {"\"\x80\"", 0, "", "UTF-8"},
        {"\"\xc0\xaf\"", 0, "", "UTF-8"},
        {"\"\xe0\x9f\xbf\"", 0, "", "UTF-8"},
        {"\"\xed\xa0\x80\"", 0, "", "UTF-8"},
        {"\"\xf0\x8f\xbf\xbf\"", 0, "", "UTF-8"},
        {"\"\xf4\x90\x80\x80\"", 0, "", "UTF-8"},
        {"\"\xe2\x82\"", 0, "", "UTF-8"},
        {"{\"\xff\":1}", 0, "", "UTF-8"},
        {"{\"a\":1,\"b\":2,\"a\":3}", 0, "/a", "twice"},
        {"{\"a\":1,\"\\u0061\":3}", 0, "/a", "twice"},
        {"{\"x\":[0,{\"k\":1,\"l\":{\"k\":1},\"k\":2}]}", 0, "/x/1/k", "twice"},
        {"{\"\":1,\"\":2}", 0, "/", "twice"},
        {"[1,\x01 2]", 0, "/1", "byte 0x01"},
        {"{\"a\":[1,{\"b\":nul}]}", 0, "/a/1/b", "object is malformed"},
        {"{\"a\":[{},{\"b\":\"\\ud800\"}]}", 0, "/a/1/b", "surrogate"},
        {"{\"\\u00e4\":[0,{\"b\" \"c\"}]}", 0, "/\xc3\xa4/1/b", "object is malformed"},
        {"[\"a\",{\"b\":1 \"c\":2}]", 0, "/1/b", "object is malformed"},
        {"[1]]", 0, "", "more after"},
        {"[1] \x0c", 0, "", "more after"},
        {"[1 2,01]", 0, "/0", "array is malformed"}, /* the first of two faults */
        {"[01,1 2]", 0, "/0", "leading zero"},
        {"]", 0, "", "no JSON value"},
        {"[1.5.5]", 0, "/0", "array is malformed"},
        {"[1-2]", 0, "/0", "array is malformed"},
        {"{\"a/b~c\":[01]}", 0, "/a~1b~0c/0", "leading zero"},
};

static void bad_texts(void) {
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                struct json *root = NULL;
                struct json_error e;
                size_t length = bad[i].length ? bad[i].length : strlen(bad[i].text);
                int r = json_parse(bad[i].text, length, &root, &e);
                if (r != -EINVAL || root)
                        CHECK_FAIL("accepted: %s", bad[i].text);
                if (strcmp(e.pointer, bad[i].pointer) != 0 || !strstr(e.detail, bad[i].detail))
                        CHECK_FAIL("%s: pointer \"%s\", detail \"%s\"", bad[i].text, e.pointer, e.detail);
        }
}

/* Text and what printing its tree gives. */
static const char *const good[][2] = {
        {" null ", "null"},
        {"true", "true"},
        {"[ ]", "[]"},
        {"{\n}", "{}"},
        {"{\"a\":1,\"A\":2,\"b\":{\"a\":3}}", "{\"a\":1,\"A\":2,\"b\":{\"a\":3}}"},
        {"[9007199254740991,-9007199254740991,0,-0,2147483648]", "[9007199254740991,-9007199254740991,0,0,2147483648]"},
        {"[0.1,1e3,4096.0,1E-7,1e300,0.5]", "[0.1,1000,4096,1e-07,1e+300,0.5]"},
        {"\"\\u00e4\\ud83d\\ude00\\n\\/\"", "\"\xc3\xa4\xf0\x9f\x98\x80\\n/\""},
        {"[[],{},[{}]]", "[[],{},[{}]]"},
        {"\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\"", "\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\""},
};

static void good_texts(void) {
        for (size_t i = 0; i < ELEMENTS(good); i++) {
                struct json *root = NULL;
                struct json_error e = {.pointer = ""};
                int r = json_parse(good[i][0], strlen(good[i][0]), &root, &e);
                if (r < 0)
                        CHECK_FAIL("refused: %s: %s", good[i][0], e.detail);
                char *text = json_print(root);
                bool same = text && strcmp(text, good[i][1]) == 0;
                if (!same)
                        fprintf(stderr, "printed %s\n", text ? text : "(null)");
                free(text);
                json_free(root);
                CHECK(same);
        }
}

static void nothing_behind_the_end_is_read(void) {
        /* the buffer ends with the number: no byte after it may be read */
        static const char number[] = {'1', '2', '3'};
        struct json *root = NULL;
        int64_t v = 0;
        CHECK_INT(json_parse(number, 2, &root, NULL), 0);
        CHECK_INT(json_as_i64(root, &v), 0);
        json_free(root);
        CHECK_INT(v, 12);
}

static void depth(void) {
        char text[2 * JSON_DEPTH_MAX + 3];
        struct json *root = NULL;
        struct json_error e;

        memset(text, '[', JSON_DEPTH_MAX);
        memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
        CHECK_INT(json_parse(text, 2 * JSON_DEPTH_MAX, &root, NULL), 0);
        json_free(root);
        root = NULL;

        memset(text, '[', JSON_DEPTH_MAX + 1);
        memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
        CHECK_INT(json_parse(text, 2 * JSON_DEPTH_MAX + 2, &root, &e), -EINVAL);
        CHECK(strstr(e.detail, "32 levels"));
}

static void long_keys_give_a_bounded_pointer(void) {
        char text[2000] = "{\"";
        struct json *root = NULL;
        struct json_error e;
        for (int i = 0; i < 400; i++)
                strcat(text, "\xc3\xa4");
        strcat(text, "\":01}");
        CHECK_INT(json_parse(text, strlen(text), &root, &e), -EINVAL);
        CHECK_UINT(strlen(e.pointer), 255); /* "/" and 127 whole characters */
        CHECK(strstr(e.detail, "leading zero"));
}

/* Many keys stay fast, and the one that stands twice is found among them. */
static void many_keys(void) {
        size_t n = 0, size = 2000000;
        char *text = malloc(size);
        struct json *root = NULL;
        struct json_error e;

        CHECK(text);
        text[n++] = '{';
        for (int i = 0; i < 60000; i++)
                n += (size_t) sprintf(text + n, "\"k%d\":0,", i);
        n += (size_t) sprintf(text + n, "\"k777\":0}");
        int r = json_parse(text, n, &root, &e);
        free(text);
        CHECK_INT(r, -EINVAL);
        CHECK_STRING(e.pointer, "/k777");
}

static void reading(void) {
        static const char text[] = "{\"s\":\"x\",\"i\":42,\"neg\":-7,\"r\":1.5,\"big\":1e17,\"t\":true,\"n\":null,"
                                   "\"u\":\"18446744073709551615\",\"over\":\"18446744073709551616\",\"l\":[1,2,3]}";
        struct json *root = NULL;
        const char *s = NULL;
        int64_t i = 0;
        double d = 0;
        bool b = false;
        uint64_t u = 0;

        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        CHECK(json_type(root) == JSON_OBJECT);
        CHECK_UINT(json_length(root), 10);
        CHECK(!json_get(root, "S"));
        CHECK(!json_get(json_get(root, "l"), "x"));
        CHECK_INT(json_as_string(json_get(root, "s"), &s), 0);
        CHECK_STRING(s, "x");
        CHECK_INT(json_as_i64(json_get(root, "i"), &i), 0);
        CHECK_INT(i, 42);
        CHECK_INT(json_as_i64(json_get(root, "neg"), &i), 0);
        CHECK_INT(i, -7);
        CHECK_INT(json_as_i64(json_get(root, "r"), &i), -EINVAL);
        CHECK_INT(json_as_i64(json_get(root, "big"), &i), -ERANGE);
        CHECK_INT(json_as_i64(json_get(root, "s"), &i), -EINVAL);
        CHECK_INT(json_as_i64(json_get(root, "absent"), &i), -EINVAL);
        CHECK_INT(i, -7);
        CHECK_INT(json_as_double(json_get(root, "i"), &d), 0);
        CHECK(d == 42.0);
        CHECK_INT(json_as_bool(json_get(root, "t"), &b), 0);
        CHECK(b);
        CHECK_INT(json_as_bool(json_get(root, "i"), &b), -EINVAL);
        CHECK_INT(json_as_u64_text(json_get(root, "u"), &u), 0);
        CHECK_UINT(u, UINT64_MAX);
        CHECK_INT(json_as_u64_text(json_get(root, "over"), &u), -ERANGE);
        CHECK_INT(json_as_u64_text(json_get(root, "s"), &u), -EINVAL);
        CHECK_INT(json_as_u64_text(json_get(root, "i"), &u), -EINVAL);
        CHECK_STRING(json_key(json_first(root)), "s");
        const struct json *list = json_get(root, "l");
        CHECK_UINT(json_length(list), 3);
        CHECK(!json_key(json_first(list)));
        CHECK(!json_next(json_next(json_next(json_first(list)))));
        json_free(root);
}

/* Want of memory is not taken for a bad text, whichever allocation it is, nor the other way round. */
static void memory_runs_out(void) {
        static const char good_text[] = "{\"a\":[1,\"x\"],\"b\":{}}", bad_text[] = "{\"a\":[1,\"x\"] \"b\":{}}";
        struct json *root = NULL;
        unsigned n = 0;
        int r;

        do {
                failing = ++n;
                r = json_parse(good_text, strlen(good_text), &root, NULL);
                CHECK(r == 0 || (r == -ENOMEM && !root));
        } while (r < 0);
        CHECK(n > 8);
        CHECK(failing > 0); /* one more than there are */
        failing = 0;
        json_free(root);
        root = NULL;
        CHECK_INT(json_parse(bad_text, strlen(bad_text), &root, NULL), -EINVAL);
}

static void u64_text_has_one_form(void) {
        static const char *const forms[] = {"\"\"",   "\"01\"", "\"+1\"",  "\"-1\"",
                                            "\" 1\"", "\"1 \"", "\"1.0\"", "\"0x1\""};
        for (size_t i = 0; i < ELEMENTS(forms); i++) {
                struct json *root = NULL;
                uint64_t u;
                CHECK_INT(json_parse(forms[i], strlen(forms[i]), &root, NULL), 0);
                int r = json_as_u64_text(root, &u);
                json_free(root);
                CHECK_INT(r, -EINVAL);
        }
}

static void writing(void) {
        struct json_writer w;
        char *text = NULL;
        size_t length = 0;

        json_writer_init(&w);
        json_object_begin(&w);
        json_member_u64(&w, "u", UINT64_MAX);
        json_member_i64(&w, "i", INT64_MIN);
        json_member_u64_text(&w, "t", UINT64_MAX);
        json_member_string(&w, "q\"k", "a\"\\\n\r\t\x01\x7f/");
        json_member_string(&w, "none", NULL);
        json_member_string(&w, "bad", "x\xff\xc3y\xe2\x82");
        json_put_key(&w, "l");
        json_array_begin(&w);
        json_put_bool(&w, true);
        json_put_null(&w);
        json_put_string_n(&w, "abc", 2);
        json_array_begin(&w);
        json_array_end(&w);
        json_array_end(&w);
        json_member_raw(&w, "raw", "{\"x\":[]}");
        json_member_raw(&w, "noraw", NULL);
        json_member_double(&w, "nan", NAN);
        json_member_double(&w, "inf", -INFINITY);
        json_member_unknown(&w, "cost", "no call");
        json_member_bool(&w, "b", false);
        json_object_end(&w);
        CHECK_INT(json_writer_steal(&w, &text, &length), 0);
        json_writer_deinit(&w);
        CHECK_STRING(text, "{\"u\":18446744073709551615,\"i\":-9223372036854775808,\"t\":\"18446744073709551615\","
                           "\"q\\\"k\":\"a\\\"\\\\\\n\\r\\t\\u0001\\u007f/\",\"none\":null,"
                           "\"bad\":\"x\xef\xbf\xbd\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbd\",\"l\":[true,null,\"ab\",[]],"
                           "\"raw\":{\"x\":[]},\"noraw\":null,\"nan\":null,\"inf\":null,\"cost\":null,\"cost_reason\":"
                           "\"no call\",\"b\":false}");
        CHECK_UINT(length, strlen(text));
        free(text);
}

/* Each byte in front of plain characters, among them and behind them. */
static void every_byte_wherever_it_stands(void) {
        for (unsigned byte = 0; byte < 0x100; byte++)
                for (size_t at = 0; at <= 4; at++) {
                        struct json_writer w;
                        char plain[6] = "abcd", want[16], escape[8] = {(char) byte}, *text = NULL;
                        const char *known = byte ? strchr("\"\"\\\\\nn\rr\tt", (int) byte) : NULL;
                        memmove(plain + at + 1, plain + at, 4 - at);
                        plain[at] = (char) byte;
                        if (known && strchr("\"\\\n\r\t", (int) byte))
                                (void) snprintf(escape, sizeof(escape), "\\%c", known[1]);
                        else if (byte < ' ' || byte == 0x7f)
                                (void) snprintf(escape, sizeof(escape), "\\u%04x", byte);
                        else if (byte >= 0x80) /* alone it is no character */
                                (void) snprintf(escape, sizeof(escape), "\xef\xbf\xbd");
                        (void) snprintf(want, sizeof(want), "\"%.*s%s%s\"", (int) at, "abcd", escape, &"abcd"[at]);
                        json_writer_init(&w);
                        json_put_string_n(&w, plain, 5);
                        CHECK_INT(json_writer_steal(&w, &text, NULL), 0);
                        json_writer_deinit(&w);
                        CHECK_STRING(text, want);
                        free(text);
                }
}

/* Around each power of ten, where one more digit begins. */
static void integers_as_printf_has_them(void) {
        struct json_writer w;
        char *text = NULL;
        char want[4096] = "";
        size_t n = 0;
        json_writer_init(&w);
        json_array_begin(&w);
        for (uint64_t power = 1; power <= UINT64_C(1000000000000000000); power *= 10)
                for (uint64_t v = power - 1; v <= power + 1; v++) {
                        json_put_u64(&w, v);
                        json_put_i64(&w, -(int64_t) v);
                        n += (size_t) snprintf(want + n, sizeof(want) - n, ",%" PRIu64 ",%" PRId64, v, -(int64_t) v);
                }
        json_array_end(&w);
        want[0] = '[';
        CHECK_INT(json_writer_steal(&w, &text, NULL), 0);
        json_writer_deinit(&w);
        CHECK(n < sizeof(want) - 1);
        CHECK_UINT(strlen(text), n + 1);
        CHECK_INT(strncmp(text, want, n), 0);
        CHECK_STRING(text + n, "]");
        free(text);
}

static void doubles_read_back(void) {
        static const double values[] = {0,
                                        0.1,
                                        1.0 / 3,
                                        1e22,
                                        123456789012345680.0,
                                        5e-324,
                                        DBL_MAX,
                                        -2.5,
                                        100,
                                        9007199254740992.0,
                                        -9007199254740994.0};
        for (size_t i = 0; i < ELEMENTS(values); i++) {
                struct json_writer w;
                char *text = NULL;
                size_t length = 0;
                json_writer_init(&w);
                json_put_double(&w, values[i]);
                CHECK_INT(json_writer_steal(&w, &text, &length), 0);
                struct json *root = NULL;
                struct json_error e;
                double back = NAN;
                int r = json_parse(text, length, &root, &e);
                if (r == 0)
                        r = json_as_double(root, &back);
                json_free(root);
                free(text);
                CHECK_INT(r, 0);
                CHECK(back == values[i]);
        }
}

static void unbalanced_writing_is_an_error(void) {
        struct json_writer w;
        char *text = NULL;
        size_t length;

        json_writer_init(&w);
        json_object_begin(&w);
        CHECK_INT(json_writer_steal(&w, &text, &length), -EINVAL);
        json_writer_deinit(&w);
        json_array_end(&w);
        CHECK_INT(json_writer_steal(&w, &text, &length), -EINVAL);
        json_writer_deinit(&w);
        CHECK_INT(json_writer_steal(&w, &text, &length), -EINVAL); /* nothing was written */
        json_writer_deinit(&w);
        CHECK(!text);
}

static void member_is(const char *text, const char *key, const char *expected) {
        const char *value = NULL;
        size_t length = 0;
        bool found = json_find_member(text, key, &value, &length);
        CHECK(found == (expected != NULL));
        if (found && expected)
                CHECK(strlen(expected) == length && strncmp(value, expected, length) == 0);
}

static void one_member_is_found_without_a_tree(void) {
        static const char text[] = "{\"a\":[1,{\"b\":\"]}\"}],\"b\" : \"x\\\"},{\" , \"ab\":{},\"c\":-1.5e3}";
        member_is(text, "a", "[1,{\"b\":\"]}\"}]");
        member_is(text, "b", "\"x\\\"},{\"");
        member_is(text, "ab", "{}");
        member_is(text, "c", "-1.5e3");
        member_is(text, "d", NULL); /* nor a member of a member */
        member_is("{}", "a", NULL);
        member_is(" { \"a\" : null } ", "a", "null");
        member_is("[\"a\"]", "a", NULL);
        member_is("", "a", NULL);
        member_is("{\"a", "a", NULL); /* what is cut off is not read beyond its end */
}

/* That a part and its members are what the tree has there. */
static void check_part(const struct json_part *part, const struct json *value) {
        _cleanup_free_ char *text = NULL;
        const char *word;
        double number, expected;
        bool flag, other;
        if (json_type(value) == JSON_OBJECT) {
                size_t members = 0;
                for (const struct json_part *i = part + 1; i < part + part->span; i += i->span)
                        members++;
                CHECK_UINT(members, json_length(value));
        }
        for (const struct json *i = json_type(value) == JSON_OBJECT ? json_first(value) : NULL; i; i = json_next(i)) {
                const struct json_part *member = json_part_get(part, json_key(i));
                CHECK(member != NULL);
                if (member)
                        check_part(member, i);
        }
        CHECK_INT(json_part_string(part, &text), json_as_string(value, &word));
        if (text) {
                CHECK_STRING(text, word);
                CHECK(json_part_is(part, word) == !memchr(part->text, '\\', part->length));
        }
        CHECK(json_part_double(part, &number) == (json_as_double(value, &expected) == 0));
        if (json_as_double(value, &expected) == 0)
                CHECK(number == expected);
        CHECK(json_part_bool(part, &flag) == (json_as_bool(value, &other) == 0));
        if (json_as_bool(value, &other) == 0)
                CHECK(flag == other);
}

static void a_view_has_what_the_tree_has(void) {
        static const char *const texts[] = {
                "{\"a\":1,\"b\":{\"a\":-2.5e3,\"c\":{\"d\":\"e\"},\"f\":[{\"a\":4},{}]},\"c\":{},\"ab\":true}",
                " { \"a\" : [ \"]\" , { \"b\" : 1 } ] , \"b\" : \"\\\\\" , \"c\" : { \"d\" : null } } ",
                "{\"a\":\"x\\\"},{\",\"b\":\"\\u00e9\\\\\",\"c\":\"\",\"d\":false,\"e\":0,\"f\":\"\xc3\xa9\"}",
                "[1,{\"a\":2}]",
                "null",
                "12",
                "\"a\"",
                "{}",
        };
        _cleanup_(json_view_deinit) struct json_view view = {0};
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                struct json *tree = NULL;
                CHECK_INT(json_parse(texts[i], strlen(texts[i]), &tree, NULL), 0);
                CHECK_INT(json_view_read(&view, texts[i]), 0);
                check_part(view.parts, tree);
                CHECK(!json_part_get(view.parts, "none") && !json_part_get(NULL, "a"));
                json_free(tree);
        }
        /* more than there is room for at first, and as deep as a tree may be */
        struct json_writer w;
        _cleanup_free_ char *many = NULL, *cut = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        for (unsigned i = 0; i < 1000; i++) {
                char key[16];
                (void) snprintf(key, sizeof(key), "k%u", i);
                json_member_u64(&w, key, i);
        }
        json_object_end(&w);
        CHECK_INT(json_writer_steal(&w, &many, NULL), 0);
        CHECK_INT(json_view_read(&view, many), 0);
        double last = 0;
        CHECK(json_part_double(json_part_get(view.parts, "k999"), &last) && last == 999);
        /* what is cut off is not read beyond its end, wherever it was cut */
        for (size_t n = 0; n < strlen(texts[0]); n++) {
                cut = strndup(texts[0], n);
                CHECK_INT(json_view_read(&view, cut), -EBADMSG);
                free(util_steal(&cut));
        }
        static const char *const faults[] = {"{} {}", "{\"a\" 1}", "{a:1}", "{\"a\":1 \"b\":2}", "{\"a\":}", "]"};
        for (size_t i = 0; i < ELEMENTS(faults); i++)
                CHECK_INT(json_view_read(&view, faults[i]), -EBADMSG);
}

typedef int parse_function(const char *text, size_t length, struct json **ret, struct json_error *ret_error);

/* An array of n times `element`, with commas between them, whose last bracket is replaced by `end`. */
static char *array_of(size_t n, const char *element, const char *end) {
        char *text = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&text, &length);
        if (!f)
                return NULL;
        for (size_t i = 0; i < n; i++)
                (void) fprintf(f, "%c%s", i ? ',' : '[', element);
        (void) fputs(end, f);
        return fclose(f) == 0 ? text : NULL;
}

/* `fault`: a part of the error's words; NULL: there is none. */
static void array_is(size_t n, const char *element, const char *end, parse_function *parse, const char *fault,
                     const char *pointer) {
        struct json_error e = {.detail = ""};
        struct json *root = NULL;
        _cleanup_free_ char *text = array_of(n, element, end);
        CHECK(text);
        int r = parse(text, strlen(text), &root, &e);
        CHECK_INT(r, fault ? -EINVAL : 0);
        CHECK_UINT(r < 0 ? n : json_length(root), n);
        if (fault && (!strstr(e.detail, fault) || strcmp(e.pointer, pointer) != 0))
                CHECK_FAIL("%zu times %s, then '%s': \"%s\" at \"%s\"", n, element, end, e.detail, e.pointer);
        json_free(root);
}

static void a_request_has_a_bounded_number_of_values(void) {
        static const char most[] = "more than 262144 values";
        /* what each element has of them; a key is none, its value is one */
        static const struct {
                const char *element;
                size_t n;
        } elements[] = {{"1", 1},
                        {"-1.5e3", 1},
                        {"\"a\"", 1},
                        {"true", 1},
                        {"null", 1},
                        {"[]", 1},
                        {"{}", 1},
                        {"[1]", 2},
                        {"[[]]", 2},
                        {"[[1]]", 3},
                        {"{\"a\":1}", 2},
                        {"{\"a\":\"b\"}", 2},
                        {"{\"a\":1,\"b\":[]}", 3},
                        {"[false,{}]", 3}};
        for (size_t i = 0; i < ELEMENTS(elements); i++) {
                const char *element = elements[i].element;
                size_t n = (JSON_REQUEST_VALUES_MAX - 1) / elements[i].n;
                array_is(n, element, "]", json_parse_request, NULL, "");
                array_is(n + 1, element, "]", json_parse_request, most, "");
        }
        array_is(JSON_REQUEST_VALUES_MAX, "1", "]", json_parse, NULL, "");
        /* whatever is wrong behind them: a stray byte, no end, another bracket, a second value */
        static const char *const ends[] = {",\x01]", "", "}", "] 1"};
        for (size_t i = 0; i < ELEMENTS(ends); i++)
                array_is(JSON_REQUEST_VALUES_MAX, "1", ends[i], json_parse_request, most, "");
        /* what is wrong before there are too many is reported as it is */
        array_is(8, "1", "}", json_parse_request, "'}' at byte 16 closes an array", "/7");
        array_is(8, "1", "] 1", json_parse_request, "there is more after the value's end, from byte 18 on", "");
}

int main(void) {
        RUN(bad_texts);
        RUN(good_texts);
        RUN(nothing_behind_the_end_is_read);
        RUN(depth);
        RUN(long_keys_give_a_bounded_pointer);
        RUN(many_keys);
        RUN(reading);
        RUN(memory_runs_out);
        RUN(u64_text_has_one_form);
        RUN(writing);
        RUN(every_byte_wherever_it_stands);
        RUN(integers_as_printf_has_them);
        RUN(doubles_read_back);
        RUN(unbalanced_writing_is_an_error);
        RUN(one_member_is_found_without_a_tree);
        RUN(a_view_has_what_the_tree_has);
        RUN(a_request_has_a_bounded_number_of_values);
        return check_end();
}
