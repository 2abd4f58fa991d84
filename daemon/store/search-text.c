/* SPDX-License-Identifier: MIT */

/* The text of a spec that is searched: made once, when an experiment is stored. */

#include "daemon/store/search-text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES (SEARCH_TEXT_MAX / 2)

struct bytes {
        const char *data;
        size_t length;
};

/* ASCII alone, as lower() in SQLite: other bytes are parts of a character. */
static void copy_lower(char *to, const char *from, size_t n) {
        for (size_t i = 0; i < n; i++)
                to[i] = (char) (from[i] >= 'A' && from[i] <= 'Z' ? from[i] + ('a' - 'A') : from[i]);
}

/* The string that begins with the quotation mark at p, with both of its marks; one without an end has the rest. */
static struct bytes string_at(const char *p) {
        size_t n = 1;
        while (p[n] && p[n] != '"')
                n += p[n] == '\\' && p[n + 1] ? 2 : 1;
        return (struct bytes){p, p[n] ? n + 1 : n};
}

/* Appends ` "key":"value"`, or the value alone, unless the text has it. False: there is no room. */
static bool add_word(char *text, size_t *length, struct bytes key, struct bytes value) {
        size_t colon = key.length > 0, n = 1 + key.length + colon + value.length;
        if (n > SEARCH_TEXT_MAX - *length)
                return false;
        char *p = text + *length;
        *p = ' ';
        copy_lower(p + 1, key.data, key.length);
        if (colon)
                p[1 + key.length] = ':';
        copy_lower(p + 1 + key.length + colon, value.data, value.length);
        if (!memmem(text, *length, p + 1, n - 1))
                *length += n;
        return true;
}

static size_t add_words(char *text, size_t length, const char *spec_json) {
        struct bytes key = {"", 0};
        for (const char *p = spec_json; *p; p++) {
                if (*p == '[') /* the key of a list is not that of each of its values */
                        key = (struct bytes){"", 0};
                if (*p != '"')
                        continue;
                struct bytes s = string_at(p);
                p += s.length - 1;
                if (p[1] == ':')
                        key = s;
                else if (!add_word(text, &length, key, s))
                        break;
        }
        return length;
}

char *search_text(const char *spec_json) {
        size_t n = strnlen(spec_json, SEARCH_TEXT_MAX + 1);
        bool whole = n <= SEARCH_TEXT_MAX;
        char *text = malloc(SEARCH_TEXT_MAX + 1);
        if (!text)
                return NULL;
        if (!whole) {
                n = HEAD_BYTES;
                while (n > 0 && ((unsigned char) spec_json[n] & 0xc0) == 0x80) /* within a character */
                        n--;
        }
        copy_lower(text, spec_json, n);
        if (!whole)
                n = add_words(text, n, spec_json);
        text[n] = '\0';
        return text;
}
