/* SPDX-License-Identifier: MIT */

/*
 * Preconditions and changes of the host's settings: `require`, of a whole experiment or of one placement, and `tune`.
 * Called by the spec parser and the writers of specs and points.
 */

#include "schema/spec/parser.h"

#include "schema/util.h"

#include <string.h>

static int take_governor(struct parser *p, const struct json *v, const char *pointer, char *ret) {
        const char *s;
        size_t n;

        if (json_as_string(v, &s) < 0)
                return parser_wrong_type(p, v, pointer, "the name of a cpufreq governor");
        n = strlen(s);
        if (n == 0 || n > SPEC_GOVERNOR_MAX || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") != n)
                return refuse(p->r, 422, "wrong-value", pointer, "governor is a name of 1 … %u of a-z, 0-9, _ and -",
                              SPEC_GOVERNOR_MAX);
        memcpy(ret, s, n + 1);
        return 0;
}

int require_take(struct parser *p, const struct json *v, const char *pointer, struct spec_require *ret) {
        static const char *const names[] = {"numa_balancing", "smt", "governor"};

        if (json_type(v) != JSON_OBJECT)
                return parser_wrong_type(p, v, pointer, "an object");
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                char here[JSON_POINTER_MAX];
                const char *key = json_key(m);
                int r;
                json_pointer_key(here, pointer, key);
                if (strcmp(key, "numa_balancing") == 0)
                        r = parser_toggle(p, m, here, &ret->numa_balancing);
                else if (strcmp(key, "smt") == 0)
                        r = parser_toggle(p, m, here, &ret->smt);
                else if (strcmp(key, "governor") == 0)
                        r = take_governor(p, m, here, ret->governor);
                else
                        r = parser_unknown_member(p, pointer, m, names, ELEMENTS(names));
                if (r < 0)
                        return r;
        }
        return 0;
}

bool require_any(const struct spec_require *q) {
        return q->numa_balancing != TOGGLE_UNSET || q->smt != TOGGLE_UNSET || q->governor[0];
}

bool require_equal(const struct spec_require *a, const struct spec_require *b) {
        return a->numa_balancing == b->numa_balancing && a->smt == b->smt && strcmp(a->governor, b->governor) == 0;
}

static void put_toggle(struct json_writer *w, const char *key, enum toggle t) {
        if (t != TOGGLE_UNSET)
                json_member_bool(w, key, t == TOGGLE_ON);
}

void require_put(struct json_writer *w, const struct spec_require *q) {
        json_put_key(w, "require");
        json_object_begin(w);
        put_toggle(w, "numa_balancing", q->numa_balancing);
        put_toggle(w, "smt", q->smt);
        if (q->governor[0])
                json_member_string(w, "governor", q->governor);
        json_object_end(w);
}

int tune_take(struct parser *p, const struct json *v, struct spec_tune *ret) {
        static const char *const names[] = {"numa_balancing"};

        if (json_type(v) != JSON_OBJECT)
                return parser_wrong_type(p, v, "/tune", "an object");
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                if (strcmp(json_key(m), names[0]) != 0)
                        return parser_unknown_member(p, "/tune", m, names, ELEMENTS(names));
                int r = parser_toggle(p, m, "/tune/numa_balancing", &ret->numa_balancing);
                if (r < 0)
                        return r;
        }
        return 0;
}

void tune_put(struct json_writer *w, const struct spec_tune *t) {
        if (t->numa_balancing == TOGGLE_UNSET)
                return;
        json_put_key(w, "tune");
        json_object_begin(w);
        put_toggle(w, "numa_balancing", t->numa_balancing);
        json_object_end(w);
}
