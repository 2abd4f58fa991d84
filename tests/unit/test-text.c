/* SPDX-License-Identifier: MIT */

/* Text that grows, its one error, CSV fields, and texts in HTML. */

#include "api/http/text.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <wchar.h>

#define TEXT __attribute__((cleanup(text_deinit))) struct text

static void grows_by_bytes_and_by_strings(void) {
        TEXT t = {0};
        char want[5001] = "";
        for (unsigned i = 0; i < 1000; i++) {
                text_append(&t, "abc!", 3);
                text_puts(&t, "de");
                memcpy(want + (size_t) 5 * i, "abcde", 6);
        }
        CHECK_INT(t.error, 0);
        CHECK_UINT(t.length, 5000);
        CHECK_STRING(t.data, want);
        text_clear(&t);
        text_puts(&t, "short");
        CHECK_STRING(t.data, "short");
        CHECK_UINT(t.length, 5);
}

/* Through the buffer on the stack, at its end, and beyond it. */
static void prints_at_any_length(void) {
        char word[2100];
        for (size_t n = 0; n < sizeof word; n += n >= 509 && n < 515 ? 1 : n < 509 ? 509 : 397) {
                TEXT t = {0};
                memset(word, 'w', n);
                word[n] = '\0';
                text_puts(&t, "<");
                text_printf(&t, "%s%d", word, 7);
                text_puts(&t, ">");
                CHECK_INT(t.error, 0);
                CHECK_UINT(t.length, n + 3);
                CHECK_UINT(strlen(t.data), n + 3);
                CHECK(t.data[0] == '<' && strncmp(t.data + 1, word, n) == 0 && strcmp(t.data + 1 + n, "7>") == 0);
        }
}

static void bytes_may_be_nul(void) {
        TEXT t = {0};
        text_append(&t, "a\0b", 3);
        text_append(&t, "", 0);
        CHECK_UINT(t.length, 3);
        CHECK(memcmp(t.data, "a\0b", 4) == 0);
}

/* The first error stays, and nothing is appended behind it: what is there is whole up to where it went wrong. */
static void the_first_error_stays(void) {
        const wchar_t none[] = {0x7fffffff, 0}; /* no character of any locale */
        TEXT t = {0}, u = {0};
        text_puts(&t, "before");
        text_append(&t, "x", SIZE_MAX);
        CHECK_INT(t.error, -EOVERFLOW);
        text_append(&t, "x", SIZE_MAX - 6); /* one too few for the NUL */
        text_printf(&t, "%ls", none);
        text_puts(&t, "after");
        text_printf(&t, "%600d", 1);
        text_csv(&t, "a,b");
        CHECK_INT(t.error, -EOVERFLOW);
        CHECK_STRING(t.data, "before");
        text_printf(&u, "%ls", none);
        CHECK_INT(u.error, -EINVAL);
        CHECK(!u.data);
        text_deinit(&t); /* and afterwards it is as new */
        text_puts(&t, "again");
        CHECK_INT(t.error, 0);
        CHECK_STRING(t.data, "again");
}

/* More than any machine has. */
static void without_memory_it_has_an_error(void) {
        TEXT t = {0};
#ifdef __SANITIZE_ADDRESS__
        SKIP("AddressSanitizer takes a request for more than there is for a fault");
#endif
        text_puts(&t, "kept");
        text_append(&t, "x", SIZE_MAX / 2 + 1);
        CHECK_INT(t.error, -ENOMEM);
        CHECK_STRING(t.data, "kept");
}

static void quotes_csv_where_it_must(void) {
        static const struct {
                const char *field, *csv;
        } cases[] = {{NULL, ""},
                     {"", ""},
                     {"plain words; 'quoted'", "plain words; 'quoted'"},
                     {"a,b", "\"a,b\""},
                     {"\"", "\"\"\"\""},
                     {"say \"no\"", "\"say \"\"no\"\"\""},
                     {"two\nlines", "\"two\nlines\""},
                     {"cr\r", "\"cr\r\""},
                     {"\xc3\xa4,", "\"\xc3\xa4,\""}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                TEXT t = {0};
                text_puts(&t, "|");
                text_csv(&t, cases[i].field);
                CHECK_STRING(t.data + 1, cases[i].csv);
        }
}

/* No text begins markup, in an element and in an attribute's quotes; and no JSON ends its script element. */
static void html_keeps_texts_texts(void) {
        static const struct {
                const char *from, *html, *script;
        } cases[] = {
                {"", "", ""},
                {"plain \xc3\xa4", "plain \xc3\xa4", "plain \xc3\xa4"},
                {"<b a='1' c=\"2\">&amp;", "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;",
                 "\\u003cb a='1' c=\"2\">&amp;"},
                {"[\"</script><!--\"]", "[&quot;&lt;/script&gt;&lt;!--&quot;]", "[\"\\u003c/script>\\u003c!--\"]"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                TEXT html = {0}, script = {0};
                text_puts(&html, ""); /* there is a text, whatever follows */
                text_puts(&script, "");
                text_html(&html, cases[i].from);
                text_script_json(&script, cases[i].from);
                CHECK_STRING(html.data, cases[i].html);
                CHECK_STRING(script.data, cases[i].script);
        }
        TEXT t = {0};
        text_html(&t, NULL);
        CHECK_UINT(t.length, 0);
}

static void numbers_have_no_exponent(void) {
        static const struct {
                double value;
                const char *text;
        } cases[] = {{0, "0"},
                     {16, "16"},
                     {1.162345, "1.162"},
                     {-0.5, "-0.5"},
                     {11390, "11390"},
                     {999.96, "1000"},
                     {1809327.4, "1809327"},
                     {0.00001234567, "0.00001235"},
                     {0.61431, "0.6143"},
                     {1e22, "10000000000000000000000"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                TEXT t = {0};
                text_number(&t, cases[i].value);
                text_append(&t, "", 0);
                CHECK_STRING(t.data, cases[i].text);
        }
}

/* At the end of the text, or of a buffer of its own, which makes no difference; of a value with an error, nothing
 * stays. */
static void takes_json_that_a_writer_makes(void) {
        TEXT t = {0};
        struct json_writer w;
        text_json_begin(&t, &w);
        json_put_u64(&w, 1);
        text_json(&t, &w);
        CHECK_STRING(t.data, "1");
        for (unsigned i = 0; i < 2; i++) {
                text_puts(&t, ",");
                if (i == 0)
                        json_writer_init(&w);
                else
                        text_json_begin(&t, &w);
                json_array_begin(&w);
                json_put_string(&w, "two");
                json_array_end(&w);
                text_json(&t, &w);
        }
        CHECK_STRING(t.data, "1,[\"two\"],[\"two\"]");
        CHECK_UINT(t.length, strlen(t.data));
        text_json_begin(&t, &w);
        json_array_begin(&w);
        json_put_string(&w, "is not ended");
        text_json(&t, &w);
        CHECK_INT(t.error, -EINVAL);
        CHECK_STRING(t.data, "1,[\"two\"],[\"two\"]");
        text_json_begin(&t, &w);
        json_put_u64(&w, 3);
        text_json(&t, &w);
        CHECK_INT(t.error, -EINVAL);
        CHECK_STRING(t.data, "1,[\"two\"],[\"two\"]");
}

/* A writer that was never begun is no value, of whatever text. */
static void json_of_nothing_is_an_error(void) {
        TEXT t = {0}, u = {0};
        struct json_writer w;
        text_json_begin(&t, &w);
        text_json(&t, &w);
        CHECK_INT(t.error, -EINVAL);
        text_puts(&u, "before");
        text_json_begin(&u, &w);
        text_json(&u, &w);
        CHECK_INT(u.error, -EINVAL);
        CHECK_STRING(u.data, "before");
}

int main(void) {
        RUN(numbers_have_no_exponent);
        RUN(grows_by_bytes_and_by_strings);
        RUN(prints_at_any_length);
        RUN(bytes_may_be_nul);
        RUN(the_first_error_stays);
        RUN(without_memory_it_has_an_error);
        RUN(quotes_csv_where_it_must);
        RUN(html_keeps_texts_texts);
        RUN(takes_json_that_a_writer_makes);
        RUN(json_of_nothing_is_an_error);
        return check_end();
}
