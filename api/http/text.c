/* SPDX-License-Identifier: MIT */

#include "api/http/text.h"

#include "schema/util.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void text_deinit(struct text *t) {
        free(t->data);
        *t = (struct text){0};
}

void text_clear(struct text *t) {
        t->length = 0;
}

static bool resize(struct text *t, size_t size) {
        char *data = realloc(t->data, size);
        if (!data) {
                t->error = -ENOMEM;
                return false;
        }
        t->data = data;
        t->size = size;
        return true;
}

void text_reserve(struct text *t, size_t size) {
        if (t->error >= 0 && size > t->size)
                (void) resize(t, size);
}

static char *reserve(struct text *t, size_t more) {
        if (t->error < 0)
                return NULL;
        size_t wanted;
        if (__builtin_add_overflow(t->length, more, &wanted) || __builtin_add_overflow(wanted, 1, &wanted)) {
                t->error = -EOVERFLOW;
                return NULL;
        }
        if (wanted > t->size) {
                size_t size = t->size ? t->size : 1024;
                while (size < wanted)
                        size = size > SIZE_MAX / 2 ? wanted : size * 2;
                if (!resize(t, size))
                        return NULL;
        }
        return t->data + t->length;
}

void text_append(struct text *t, const char *data, size_t length) {
        char *to = reserve(t, length);
        if (!to)
                return;
        memcpy(to, data, length);
        to[length] = '\0';
        t->length += length;
}

void text_puts(struct text *t, const char *s) {
        text_append(t, s, strlen(s));
}

void text_printf(struct text *t, const char *format, ...) {
        char buffer[512];
        va_list args, again;
        va_start(args, format);
        va_copy(again, args);
        int n = vsnprintf(buffer, sizeof(buffer), format, args);
        va_end(args);
        if (n >= 0 && (size_t) n < sizeof(buffer)) {
                text_append(t, buffer, (size_t) n);
        } else if (n >= 0) {
                char *to = reserve(t, (size_t) n);
                if (to) {
                        vsnprintf(to, (size_t) n + 1, format, again);
                        t->length += (size_t) n;
                }
        } else if (t->error == 0) {
                t->error = -EINVAL;
        }
        va_end(again);
}

void text_number(struct text *t, double value) {
        char number[352];
        int digits = value == 0 ? 0 : 3 - (int) floor(log10(fabs(value)));
        int n = snprintf(number, sizeof(number), "%.*f", digits < 0 ? 0 : digits > 12 ? 12 : digits, value);
        while (digits > 0 && n > 1 && number[n - 1] == '0')
                n--;
        if (digits > 0 && n > 1 && number[n - 1] == '.')
                n--;
        text_append(t, number, (size_t) n);
}

void text_csv(struct text *t, const char *field) {
        if (!field)
                return;
        if (field[strcspn(field, ",\"\r\n")] == '\0') {
                text_puts(t, field);
                return;
        }
        text_puts(t, "\"");
        for (; *field; field++)
                text_append(t, *field == '"' ? "\"\"" : field, *field == '"' ? 2 : 1);
        text_puts(t, "\"");
}

void text_html(struct text *t, const char *s) {
        static const struct {
                char character;
                const char *reference;
        } markup[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
        while (s && *s) {
                size_t plain = strcspn(s, "&<>\"'");
                text_append(t, s, plain);
                s += plain;
                for (size_t i = 0; *s && i < ELEMENTS(markup); i++)
                        if (markup[i].character == *s) {
                                text_puts(t, markup[i].reference);
                                s++;
                                break;
                        }
        }
}

void text_script_json(struct text *t, const char *json) {
        while (*json) {
                size_t plain = strcspn(json, "<");
                text_append(t, json, plain);
                json += plain;
                if (*json) {
                        text_puts(t, "\\u003c");
                        json++;
                }
        }
}

void text_item(struct text *t, bool *begun) {
        text_puts(t, *begun ? "," : "{\"items\":[");
        *begun = true;
}

void text_list_end(struct text *t, bool begun, const char *next) {
        if (!begun)
                text_puts(t, "{\"items\":[");
        if (*next)
                text_printf(t, "],\"next\":\"%s\"}", next);
        else
                text_puts(t, "],\"next\":null}");
}

void text_json_begin(struct text *t, struct json_writer *w) {
        json_writer_init_behind(w, util_steal(&t->data), t->length, t->size);
        w->error = t->error;
}

void text_json(struct text *t, struct json_writer *w) {
        _cleanup_free_ char *json = NULL;
        size_t length = 0, size = w->size;
        int k = json_writer_steal(w, &json, &length);
        if (k < 0 && t->error == 0)
                t->error = k;
        if (t->data) {
                text_append(t, json ? json : "", length);
        } else if (k >= 0) {
                *t = (struct text){.data = util_steal(&json), .length = length, .size = size};
        } else if (w->text) {
                t->data = util_steal(&w->text);
                t->size = w->size;
                t->data[t->length] = '\0';
        }
}
