/* SPDX-License-Identifier: MIT */

#include "schema/spec/value.h"

#include "schema/util.h"

#include <math.h>
#include <string.h>

#define STRING_SHOWN 60u
#define WORDS_SHOWN 80u

/* No character of UTF-8 is cut. */
static void describe_string(const char *string, char ret[static WORDS_SHOWN]) {
        size_t shown = strnlen(string, STRING_SHOWN + 1);
        bool whole = shown <= STRING_SHOWN;
        while (!whole && (shown > STRING_SHOWN || ((unsigned char) string[shown] & 0xc0) == 0x80))
                shown--;
        snprintf(ret, WORDS_SHOWN, "the string \"%.*s%s\"", (int) shown, string, whole ? "" : "…");
}

/* A value in words: what is short as it stands, lists and objects by their type. */
static void describe(const struct json *json, char ret[static WORDS_SHOWN]) {
        const char *string;
        int64_t integer;
        double number;
        bool yes;
        if (json_as_string(json, &string) == 0)
                describe_string(string, ret);
        else if (json_as_i64(json, &integer) == 0)
                snprintf(ret, WORDS_SHOWN, "%" PRId64, integer);
        else if (json_as_bool(json, &yes) == 0)
                snprintf(ret, WORDS_SHOWN, "%s", yes ? "true" : "false");
        else if (json_as_double(json, &number) == 0)
                snprintf(ret, WORDS_SHOWN, "%.15g", number);
        else
                snprintf(ret, WORDS_SHOWN, "%s",
                         json_type(json) == JSON_NULL    ? "null"
                         : json_type(json) == JSON_ARRAY ? "a list"
                                                         : "an object");
}

int refuse_type(const struct json *json, const char *pointer, const char *wanted, struct refusal *r) {
        char value[WORDS_SHOWN];
        describe(json, value);
        return refuse(r, 422, "wrong-type", pointer, "%s must be %s, not %s", *pointer ? pointer + 1 : "the body",
                      wanted, value);
}

int refuse_member(const struct json *member, const char *parent, const char *const *names, size_t n,
                  struct refusal *r) {
        char pointer[JSON_POINTER_MAX];
        const char *meant = suggest(json_key(member), names, n);

        json_pointer_key(pointer, parent, json_key(member));
        return refuse(r, 422, "unknown-field", pointer, "there is no field \"%.60s\"%s%s%s", json_key(member),
                      meant ? "; did you mean \"" : "", meant ? meant : "", meant ? "\"?" : "");
}

int read_integer(const struct json *json, const char *pointer, const char *what, uint64_t least, uint64_t most,
                 uint64_t *ret, struct refusal *r) {
        int64_t number = 0;
        double real;
        char value[40], limit_value[40];
        int x = json_as_i64(json, &number);

        if (x == -EINVAL)
                return refuse_type(json, pointer, "an integer", r);
        if (x == 0 && number >= 0 && (uint64_t) number >= least && (uint64_t) number <= most) {
                *ret = (uint64_t) number;
                return 0;
        }
        bool low = x == 0 && (number < 0 || (uint64_t) number < least);
        if (x == 0)
                snprintf(value, sizeof(value), "%" PRId64, number);
        else { /* too large to be exact: the sign alone decides the side */
                (void) json_as_double(json, &real);
                low = real < 0;
                snprintf(value, sizeof(value), "%g", real);
        }
        snprintf(limit_value, sizeof(limit_value), "%" PRIu64, low ? least : most);
        return refuse_limit(r, pointer, what, limit_value, value, "%s is %" PRIu64 " … %" PRIu64 ", not %s", what,
                            least, most, value);
}

int read_word(const struct json *json, const char *pointer, const char *what, const struct vocabulary *words,
              unsigned *ret, struct refusal *r) {
        const char *word, *names[32];
        char list[256];
        size_t used = 0;

        if (json_as_string(json, &word) < 0)
                return refuse_type(json, pointer, "a word", r);
        for (unsigned i = 0; i < words->n; i++) {
                names[i] = words->name(i);
                if (strcmp(names[i], word) == 0) {
                        *ret = i;
                        return 0;
                }
                used += (size_t) snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
        }
        const char *meant = suggest(word, names, words->n);
        return refuse(r, 422, "unknown-value", pointer, "%s \"%.60s\" is not known%s%s%s; the values are %s", what,
                      word, meant ? " (did you mean \"" : "", meant ? meant : "", meant ? "\"?)" : "", list);
}

void words_list(char list[WORDS_LIST_MAX], const struct vocabulary *words, unsigned bits) {
        const char *joint = "";
        size_t used = 0;
        list[0] = '\0';
        for (unsigned i = 0; bits >> i && used < WORDS_LIST_MAX; i++) {
                unsigned rest = bits >> i >> 1;
                if (!(bits >> i & 1u))
                        continue;
                used += (size_t) snprintf(list + used, WORDS_LIST_MAX - used, "%s%s", joint, words->name(i));
                joint = rest & (rest - 1) ? ", " : " and ";
        }
}

void words_put_some(struct json_writer *w, const char *key, const struct vocabulary *words, unsigned bits) {
        if (bits == 0 || bits == (1u << words->n) - 1)
                return;
        json_member_array(w, key);
        for (unsigned i = 0; i < words->n; i++)
                if (bits >> i & 1u)
                        json_put_string(w, words->name(i));
        json_array_end(w);
}

bool value_same_bytes(const struct value *v, const void *a, const void *b) {
        return memcmp(a, b, v->size) == 0;
}

/* Numbers, of 32 or 64 bits. */

static int number_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                       struct refusal *r) {
        uint64_t n = 0;
        int x = read_integer(json, pointer, v->name, v->least, v->most, &n, r);
        if (x < 0)
                return x;
        if (v->size == sizeof(uint32_t))
                *(uint32_t *) ret = (uint32_t) n;
        else
                *(uint64_t *) ret = n;
        return 0;
}

static void number_write(const struct value *v, struct json_writer *w, const void *value) {
        json_put_u64(w, v->size == sizeof(uint32_t) ? *(const uint32_t *) value : *(const uint64_t *) value);
}

static void number_describe(const struct value *v, struct json_writer *w) {
        json_member_string(w, "type", "integer");
        json_member_u64(w, "minimum", v->least_posted ? v->least_posted : v->least);
        json_member_u64(w, "maximum", v->most);
}

const struct value_type value_number = {number_read, number_write, value_same_bytes, number_describe};

static int power_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                      struct refusal *r) {
        uint64_t n = 0;
        int x = read_integer(json, pointer, v->name, v->least, v->most, &n, r);
        if (x < 0)
                return x;
        if ((n & (n - 1)) != 0)
                return refuse(r, 422, "wrong-value", pointer, "%s is a power of two, not %" PRIu64, v->name, n);
        *(uint64_t *) ret = n;
        return 0;
}

static void power_describe(const struct value *v, struct json_writer *w) {
        json_member_array(w, "enum");
        for (uint64_t n = v->least; n <= v->most; n *= 2)
                json_put_u64(w, n);
        json_array_end(w);
}

const struct value_type value_power_of_two = {power_read, number_write, value_same_bytes, power_describe};

/* Numbers that need not be whole. */

#define MILLION 1e6

/* parts: how many of the range's units make one. */
static int read_real(const struct value *v, const struct json *json, const char *pointer, double parts, double *ret,
                     struct refusal *r) {
        const double least = (double) v->least / parts, most = (double) v->most / parts;
        const char *unit = v->unit ? v->unit : "";
        char value[40], limit[40], wanted[64];
        double number;

        if (json_as_double(json, &number) < 0) {
                snprintf(wanted, sizeof(wanted), "a number%s%s", v->unit ? " of " : "", unit);
                return refuse_type(json, pointer, wanted, r);
        }
        if (number >= least && number <= most) {
                *ret = number;
                return 0;
        }
        snprintf(value, sizeof(value), "%g", number);
        snprintf(limit, sizeof(limit), "%g", number < least ? least : most);
        return refuse_limit(r, pointer, v->name, limit, value, "%s is %g … %g%s%s, not %s", v->name, least, most,
                            v->unit ? " " : "", unit, value);
}

static void describe_real(const struct value *v, struct json_writer *w, double parts) {
        json_member_string(w, "type", "number");
        json_member_double(w, "minimum", (double) v->least / parts);
        json_member_double(w, "maximum", (double) v->most / parts);
}

static int real_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                     struct refusal *r) {
        return read_real(v, json, pointer, MILLION, ret, r);
}

static void real_write(const struct value *v, struct json_writer *w, const void *value) {
        (void) v;
        json_put_double(w, *(const double *) value);
}

static void real_describe(const struct value *v, struct json_writer *w) {
        describe_real(v, w, MILLION);
}

const struct value_type value_real = {real_read, real_write, value_same_bytes, real_describe};

static int seconds_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                        struct refusal *r) {
        double seconds = 0;
        int x = read_real(v, json, pointer, NSEC_PER_SEC, &seconds, r);
        if (x == 0)
                *(uint64_t *) ret = (uint64_t) llround(seconds * NSEC_PER_SEC);
        return x;
}

/* Reads back as the same nanoseconds: a day of them has 47 bits, a double 53. */
static void seconds_write(const struct value *v, struct json_writer *w, const void *value) {
        (void) v;
        json_put_double(w, (double) *(const uint64_t *) value / NSEC_PER_SEC);
}

static void seconds_describe(const struct value *v, struct json_writer *w) {
        describe_real(v, w, NSEC_PER_SEC);
}

const struct value_type value_seconds = {seconds_read, seconds_write, value_same_bytes, seconds_describe};

/* Words: enums, which are unsigned. */

static int word_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                     struct refusal *r) {
        return read_word(json, pointer, v->name, v->words, ret, r);
}

static void word_write(const struct value *v, struct json_writer *w, const void *value) {
        json_put_string(w, v->words->name(*(const unsigned *) value));
}

static void word_describe(const struct value *v, struct json_writer *w) {
        json_member_array(w, "enum");
        for (unsigned i = 0; i < v->words->n; i++)
                json_put_string(w, v->words->name(i));
        json_array_end(w);
        if (!v->words->meanings)
                return;
        json_member_object(w, "x-meanings");
        for (unsigned i = 0; i < v->words->n; i++)
                json_member_string(w, v->words->name(i), v->words->meanings[i]);
        json_object_end(w);
}

const struct value_type value_word = {word_read, word_write, value_same_bytes, word_describe};

static int toggle_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                       struct refusal *r) {
        bool on;
        (void) v;
        if (json_as_bool(json, &on) < 0)
                return refuse_type(json, pointer, "true or false", r);
        *(enum toggle *) ret = on ? TOGGLE_ON : TOGGLE_OFF;
        return 0;
}

static void toggle_write(const struct value *v, struct json_writer *w, const void *value) {
        (void) v;
        json_put_bool(w, *(const enum toggle *) value == TOGGLE_ON);
}

static void toggle_describe(const struct value *v, struct json_writer *w) {
        (void) v;
        json_member_string(w, "type", "boolean");
}

const struct value_type value_toggle = {toggle_read, toggle_write, value_same_bytes, toggle_describe};

static int flag_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                     struct refusal *r) {
        (void) v;
        return json_as_bool(json, ret) < 0 ? refuse_type(json, pointer, "true or false", r) : 0;
}

static void flag_write(const struct value *v, struct json_writer *w, const void *value) {
        (void) v;
        json_put_bool(w, *(const bool *) value);
}

const struct value_type value_flag = {flag_read, flag_write, value_same_bytes, toggle_describe};

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_-"

/* A name as the kernel has them: it must not become part of a path or of another setting. */
static int name_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                     struct refusal *r) {
        const char *s;

        if (json_as_string(json, &s) < 0)
                return refuse_type(json, pointer, "a name", r);
        size_t n = strlen(s);
        if (n < v->least || n > v->most) {
                char value[32], limit[32];
                snprintf(value, sizeof(value), "%zu", n);
                snprintf(limit, sizeof(limit), "%" PRIu64, n < v->least ? v->least : v->most);
                return refuse_limit(r, pointer, "characters of a name", limit, value,
                                    "%s has %" PRIu64 " … %" PRIu64 " characters, not %s", v->name, v->least, v->most,
                                    value);
        }
        if (strspn(s, NAME_LETTERS) != n)
                return refuse(r, 422, "wrong-value", pointer, "%s is of a-z, 0-9, _ and -", v->name);
        memcpy(ret, s, n + 1);
        return 0;
}

void value_name_write(const struct value *v, struct json_writer *w, const void *value) {
        (void) v;
        json_put_string(w, value);
}

void value_name_describe(const struct value *v, struct json_writer *w) {
        char pattern[64];
        snprintf(pattern, sizeof(pattern), "^[a-z0-9_-]{%" PRIu64 ",%" PRIu64 "}$", v->least, v->most);
        json_member_string(w, "type", "string");
        json_member_string(w, "pattern", pattern);
}

const struct value_type value_name = {name_read, value_name_write, value_same_bytes, value_name_describe};

const struct value *value_at(const struct value_table *t, size_t i) {
        return (const void *) ((const char *) t->rows + i * t->stride);
}

const struct value *value_find(const struct value_table *t, const char *name) {
        for (size_t i = 0; i < t->n; i++)
                if (strcmp(value_at(t, i)->name, name) == 0)
                        return value_at(t, i);
        return NULL;
}

bool value_is_given(const struct value *v, const void *holder) {
        const unsigned char *bytes = (const unsigned char *) holder + v->offset;
        for (size_t i = 0; i < v->size; i++)
                if (bytes[i] != 0)
                        return true;
        return false;
}

void value_drop(const struct value *v, void *holder) {
        memset((char *) holder + v->offset, 0, v->size);
}

int values_read(const struct value_table *t, const struct json *object, const char *pointer, void *holder,
                struct refusal *r) {
        if (json_type(object) != JSON_OBJECT)
                return refuse_type(object, pointer, "an object", r);
        for (const struct json *m = json_first(object); m; m = json_next(m)) {
                const struct value *v = value_find(t, json_key(m));
                char here[JSON_POINTER_MAX];
                if (!v) {
                        const char *names[32];
                        for (size_t i = 0; i < t->n; i++)
                                names[i] = value_at(t, i)->name;
                        return refuse_member(m, pointer, names, t->n, r);
                }
                json_pointer_key(here, pointer, json_key(m));
                int x = v->type->read(v, m, here, (char *) holder + v->offset, r);
                if (x < 0)
                        return x;
        }
        return 0;
}

void values_fill(const struct value_table *t, void *holder) {
        for (size_t i = 0; i < t->n; i++) {
                const struct value *v = value_at(t, i);
                if (v->standard && !value_is_given(v, holder))
                        memcpy((char *) holder + v->offset, v->standard, v->size);
        }
}

void values_put(const struct value_table *t, struct json_writer *w, const void *holder) {
        for (size_t i = 0; i < t->n; i++) {
                const struct value *v = value_at(t, i);
                if (!value_is_given(v, holder))
                        continue;
                json_put_key(w, v->name);
                v->type->write(v, w, (const char *) holder + v->offset);
        }
}

void values_write(const struct value_table *t, struct json_writer *w, const void *holder) {
        json_object_begin(w);
        values_put(t, w, holder);
        json_object_end(w);
}

bool values_any(const struct value_table *t, const void *holder) {
        for (size_t i = 0; i < t->n; i++)
                if (value_is_given(value_at(t, i), holder))
                        return true;
        return false;
}

bool values_equal(const struct value_table *t, const void *a, const void *b) {
        for (size_t i = 0; i < t->n; i++) {
                const struct value *v = value_at(t, i);
                if (!v->type->equal(v, (const char *) a + v->offset, (const char *) b + v->offset))
                        return false;
        }
        return true;
}

/* Letters, and nothing but NULs behind them. */
static int check_name(const struct value *v, const char *name, char *ret_detail, size_t size) {
        size_t n = strnlen(name, v->size), letters = n;
        while (letters < v->size && name[letters] == '\0')
                letters++;
        if (n < v->size && letters == v->size && strspn(name, NAME_LETTERS) == n)
                return 0;
        (void) snprintf(ret_detail, size, "%s is of a-z, 0-9, _ and -", v->name);
        return -EINVAL;
}

int value_check(const struct value *v, const void *value, char *ret_detail, size_t size) {
        bool power = v->type == &value_power_of_two, is_number = power || v->type == &value_number;
        uint64_t least = is_number ? v->least : 0, most = is_number ? v->most : v->words ? v->words->n - 1 : TOGGLE_OFF;
        uint64_t number;
        uint32_t narrow;
        if (v->type == &value_name)
                return check_name(v, value, ret_detail, size);
        memcpy(&narrow, value, sizeof(narrow));
        if (v->size == sizeof(number))
                memcpy(&number, value, sizeof(number));
        else
                number = narrow;
        if (number >= least && number <= most && (!power || (number & (number - 1)) == 0))
                return 0;
        (void) snprintf(ret_detail, size, "%s is %" PRIu64 " … %" PRIu64 "%s, not %" PRIu64, v->name, least, most,
                        power ? ", a power of two" : "", number);
        return -EINVAL;
}

void value_put_description(const struct value *v, unsigned transports, struct json_writer *w) {
        char names[WORDS_LIST_MAX], text[600];
        if (transports == 0 || transports == (1u << TRANSPORT_COUNT) - 1)
                return json_member_string(w, "description", v->description);
        words_list(names, &transport_words, transports);
        (void) snprintf(text, sizeof(text), "%s; for %s", v->description, names);
        json_member_string(w, "description", text);
}

void value_describe(const struct value *v, unsigned transports, struct json_writer *w) {
        json_member_object(w, v->name);
        value_put_description(v, transports, w);
        v->type->describe(v, w);
        if (v->standard) {
                json_put_key(w, "default");
                v->type->write(v, w, v->standard);
        }
        json_object_end(w);
}

void values_describe(const struct value_table *t, void (*more)(struct json_writer *w), struct json_writer *w) {
        json_member_string(w, "type", "object");
        json_member_bool(w, "additionalProperties", false);
        json_member_object(w, "properties");
        for (size_t i = 0; i < t->n; i++)
                value_describe(value_at(t, i), t->transports ? t->transports(i) : 0, w);
        if (more)
                more(w);
        json_object_end(w);
}

/* Objects of such values. */

static int object_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                       struct refusal *r) {
        return values_read(v->members, json, pointer, ret, r);
}

static void object_write(const struct value *v, struct json_writer *w, const void *value) {
        values_write(v->members, w, value);
}

static bool object_equal(const struct value *v, const void *a, const void *b) {
        return values_equal(v->members, a, b);
}

static void object_describe(const struct value *v, struct json_writer *w) {
        values_describe(v->members, NULL, w);
}

const struct value_type value_object = {object_read, object_write, object_equal, object_describe};
