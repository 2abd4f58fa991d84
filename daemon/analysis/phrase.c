/* SPDX-License-Identifier: MIT */

/* Numbers in words; see the header. */

#include "daemon/analysis/phrase.h"

#include "schema/spec/axes.h"
#include "schema/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct step {
        double from, factor;
        const char *unit;
};

/* The largest step that the value reaches, or the first. */
static const struct step *step_for(const struct step *steps, size_t n, double value) {
        size_t i = n;
        while (i > 1 && fabs(value) < steps[i - 1].from)
                i--;
        return &steps[i - 1];
}

/* Three significant digits, without an exponent below 1e15. */
static void print_short(char *ret, size_t size, double v, const char *unit) {
        int decimals = fabs(v) >= 100 || v == 0 ? 0 : fabs(v) >= 10 ? 1 : 2;
        char number[64];
        (void) snprintf(number, sizeof(number), "%.*f", decimals, v);
        if (decimals > 0) { /* "4.00" is 4 */
                char *end = number + strlen(number);
                while (end[-1] == '0')
                        *--end = '\0';
                if (end[-1] == '.')
                        end[-1] = '\0';
        }
        (void) snprintf(ret, size, "%s %s", number, unit);
}

void phrase_value(double value, const char *unit, char ret[static PHRASE_MAX]) {
        static const struct step times[] = {{0, 1, "ns"}, {1e3, 1e-3, "µs"}, {1e6, 1e-6, "ms"}, {1e9, 1e-9, "s"}};
        static const struct step rates[] = {
                {0, 1, "B/s"}, {1e3, 1e-3, "kB/s"}, {1e6, 1e-6, "MB/s"}, {1e9, 1e-9, "GB/s"}};
        static const struct step sizes[] = {{0, 1, "B"}, {1024, 0x1p-10, "KiB"}, {0x1p20, 0x1p-20, "MiB"}};
        const struct step *step = NULL;
        if (strcmp(unit, "ns") == 0)
                step = step_for(times, ELEMENTS(times), value);
        else if (strcmp(unit, "bytes/s") == 0)
                step = step_for(rates, ELEMENTS(rates), value);
        else if (strcmp(unit, "bytes") == 0)
                step = step_for(sizes, ELEMENTS(sizes), value);
        print_short(ret, PHRASE_MAX, step ? value * step->factor : value, step ? step->unit : unit);
}

static void print_share(double share, int more, char ret[static PHRASE_MAX]) {
        double percent = fabs(share) < 0.00005 ? 0 : 100 * share; /* without the sign of what is rounded to none */
        (void) snprintf(ret, PHRASE_MAX, "%.*f %%",
                        more + (fabs(percent) < 1    ? 2
                                : fabs(percent) < 10 ? 1
                                                     : 0),
                        percent);
}

void phrase_share(double share, char ret[static PHRASE_MAX]) {
        print_share(share, 0, ret);
}

void phrase_shares(const double shares[static 3], char ret[static 3][PHRASE_MAX]) {
        bool apart = shares[1] < shares[2] || shares[1] > shares[2];
        int more = 0;
        do
                for (size_t i = 0; i < 3; i++)
                        print_share(shares[i], more, ret[i]);
        while (apart && strcmp(ret[1], ret[2]) == 0 && ++more <= 2);
}

const char *phrase_number(double value, char ret[static PHRASE_MAX]) {
        (void) snprintf(ret, PHRASE_MAX, fabs(value) >= 100 ? "%.0f" : "%.3g", value);
        return ret;
}

const char *phrase_article(const char *number) {
        static const char *const teens[] = {"11", "18"}; /* eleven, eighteen; 110 begins with "one hundred" */
        size_t digits = strspn(number, "0123456789");
        bool vowel = number[0] == '8';
        for (size_t i = 0; i < ELEMENTS(teens); i++)
                vowel |= digits == strlen(teens[i]) && strncmp(number, teens[i], digits) == 0;
        return vowel ? "an " : "a ";
}

void phrase_axis_name(enum axis_name axis, char ret[static PHRASE_MAX]) {
        bool counted = axis == AXIS_THREADS || axis == AXIS_FIELDS || axis == AXIS_PROCESSES;
        (void) snprintf(ret, PHRASE_MAX, "%s%s", counted ? "number of " : "", axes[axis].value.name);
        for (char *c = ret; (c = strchr(c, '_'));)
                *c = ' ';
}

void phrase_axis(enum axis_name axis, const struct point *p, char ret[static PHRASE_MAX]) {
        const struct axis *a = &axes[axis];
        struct json_writer w;
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        if (axis == AXIS_MESSAGE_SIZE || axis == AXIS_WORKING_SET) {
                uint64_t n = axis == AXIS_MESSAGE_SIZE ? p->message_size : p->working_set;
                const char *unit = n >> 20 && n % (1u << 20) == 0 ? "MiB" : n >> 10 && n % 1024 == 0 ? "KiB" : "B";
                (void) snprintf(ret, PHRASE_MAX, "%" PRIu64 " %s",
                                unit[0] == 'M'   ? n >> 20
                                : unit[0] == 'K' ? n >> 10
                                                 : n,
                                unit);
                return;
        }
        json_writer_init(&w);
        if (axis == AXIS_PLACEMENT && p->placement.kind != PLACEMENT_EXPLICIT)
                json_put_string(&w, placement_kind_name(p->placement.kind));
        else
                a->value.type->write(&a->value, &w, axis_of(a, p));
        (void) json_writer_steal(&w, &text, &length); /* NULL without memory: the words are "?" then */
        json_writer_deinit(&w);
        if (text && text[0] == '"')
                (void) snprintf(ret, PHRASE_MAX, "%.*s", (int) (length - 2), text + 1);
        else
                (void) snprintf(ret, PHRASE_MAX, "%s", text ? text : "?");
}

const char *phrase_setting(enum axis_name axis, const struct point *p, char ret[static PHRASE_SETTING_MAX]) {
        char value[PHRASE_MAX];
        phrase_axis(axis, p, value);
        (void) snprintf(ret, PHRASE_SETTING_MAX, "%s %s", axes[axis].value.name, value);
        for (char *c = ret; c < ret + strlen(axes[axis].value.name); c++)
                *c = *c == '_' ? ' ' : *c;
        return ret;
}
