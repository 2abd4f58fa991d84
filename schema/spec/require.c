/* SPDX-License-Identifier: MIT */

/* Preconditions and changes of the host's settings: `require`, of a whole experiment or of one placement, and `tune`.
 */

#include "schema/spec/internal.h"

#include "schema/facts.h"
#include "schema/spec/tune.h"
#include "schema/util.h"

#include <string.h>

static int governor_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                         struct refusal *r) {
        const char *s;

        if (json_as_string(json, &s) < 0)
                return refuse_type(json, pointer, "the name of a cpufreq governor", r);
        size_t n = strlen(s);
        if (n < v->least || n > v->most || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") != n)
                return refuse(r, 422, "wrong-value", pointer, "governor is a name of 1 … %u of a-z, 0-9, _ and -",
                              SPEC_GOVERNOR_MAX);
        memcpy(ret, s, n + 1);
        return 0;
}

/* Reads a name; one sentence refuses a wrong length or wrong letters. */
static const struct value_type governor = {governor_read, value_name_write, value_same_bytes, value_name_describe};

static const struct value requirements[] = {
        {"numa_balancing", "Whether automatic NUMA balancing must be on or off",
         VALUE(value_toggle, struct spec_require, numa_balancing)},
        {"smt", "Whether simultaneous multithreading must be in use or not",
         VALUE(value_toggle, struct spec_require, smt)},
        {"governor", "The cpufreq governor that every CPU must have", VALUE(governor, struct spec_require, governor),
         .least = 1, .most = SPEC_GOVERNOR_MAX},
};

const struct value_table require_values = {VALUE_ROWS(requirements)};

/* Facts of the environment, in three groups: members of `require` itself, of "build" and of "mitigations". */

#define TEXT_CHARACTERS_MAX 4095u
#define NAME_MAX 64u
#define NUMBER_LEAST (-1)
#define NUMBER_MOST ((INT64_C(1) << 53) - 1)
#define MITIGATION_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

static const struct group {
        const char *name, *description;
        const struct fact_row *rows; /* NULL: the names are the kernel's */
        size_t n;
} groups[] = {
        [GROUP_HOST] = {"require", NULL, fact_rows, FACT_COUNT},
        [GROUP_BUILD] = {"build", "The build that measures: its commit, and the digests of its programs", build_rows,
                         BUILD_COUNT},
        [GROUP_MITIGATIONS] = {"mitigations",
                               "What /sys/devices/system/cpu/vulnerabilities has under the name of the file", NULL, 0},
};

static const struct fact_row *find_row(enum fact_group group, const char *name) {
        for (size_t i = 0; i < groups[group].n; i++)
                if (strcmp(groups[group].rows[i].name, name) == 0)
                        return &groups[group].rows[i];
        return NULL;
}

static int read_number(const struct json *v, const char *pointer, const char *name, int64_t *ret, struct refusal *r) {
        int x = json_as_i64(v, ret);
        if (x == -EINVAL)
                return refuse_type(v, pointer, "an integer", r);
        if (x < 0)
                return refuse(r, 422, "wrong-value", pointer,
                              "%s is a number of %d … 2^53 - 1, and this one has more bits", name, NUMBER_LEAST);
        return *ret >= NUMBER_LEAST && *ret <= NUMBER_MOST
                       ? 0
                       : refuse(r, 422, "wrong-value", pointer, "%s is a number of %d … 2^53 - 1, not %" PRId64, name,
                                NUMBER_LEAST, *ret);
}

static int refuse_choice(const struct fact_row *row, const char *text, const char *pointer, struct refusal *r) {
        char list[128] = "";
        size_t n = 0, length = 0;
        for (; n < FACT_CHOICES_MAX && row->choices[n]; n++)
                length +=
                        (size_t) snprintf(list + length, sizeof(list) - length, "%s%s", n ? ", " : "", row->choices[n]);
        const char *meant = suggest(text, row->choices, n);
        return refuse(r, 422, "unknown-value", pointer, "%s \"%.60s\" is not known%s%s%s; the values are %s", row->name,
                      text, meant ? " (did you mean \"" : "", meant ? meant : "", meant ? "\"?)" : "", list);
}

static int check_text(const struct fact_row *row, const char *name, const char *text, const char *pointer,
                      struct refusal *r) {
        size_t characters = 0;
        for (const char *at = text; *at; at++) {
                if ((unsigned char) *at < ' ')
                        return refuse(r, 422, "wrong-value", pointer, "%s is one line, without control characters",
                                      name);
                characters += ((unsigned char) *at & 0xc0) != 0x80;
        }
        if (characters > TEXT_CHARACTERS_MAX)
                return refuse(r, 422, "wrong-value", pointer, "%s has at most %u characters, not %zu", name,
                              TEXT_CHARACTERS_MAX, characters);
        if (row && row->form == FACT_SHA256 && (characters != 64 || strspn(text, "0123456789abcdef") != 64))
                return refuse(r, 422, "wrong-value", pointer, "%s is 64 hexadecimal digits, in lower case", name);
        for (size_t i = 0; row && row->form == FACT_CHOICE; i++) {
                if (i == FACT_CHOICES_MAX || !row->choices[i])
                        return refuse_choice(row, text, pointer, r);
                if (strcmp(row->choices[i], text) == 0)
                        break;
        }
        return 0;
}

/* 0; -ENOENT: there is no such fact; -EINVAL with *r; -ENOMEM. */
static int read_fact(const struct json *m, enum fact_group group, const char *pointer, struct spec *spec,
                     struct refusal *r) {
        const struct fact_row *row = find_row(group, json_key(m));
        const char *text = NULL;
        int64_t number = 0;
        int x = 0;
        if (!row && groups[group].rows)
                return -ENOENT;
        if (row && row->form == FACT_NUMBER)
                x = read_number(m, pointer, json_key(m), &number, r);
        else
                x = json_as_string(m, &text) < 0 ? refuse_type(m, pointer, "a string", r)
                                                 : check_text(row, json_key(m), text, pointer, r);
        if (x < 0)
                return x;
        if (!util_resize(spec->facts, spec->n_facts + 1))
                return -ENOMEM;
        struct spec_fact *f = &spec->facts[spec->n_facts++];
        *f = (struct spec_fact){
                .group = group, .name = strdup(json_key(m)), .text = text ? strdup(text) : NULL, .number = number};
        return f->name && (f->text || !text) ? 0 : -ENOMEM;
}

static int read_group(const struct json *object, enum fact_group group, const char *pointer, struct spec *spec,
                      struct refusal *r) {
        const char *names[BUILD_COUNT];
        char here[JSON_POINTER_MAX];
        if (json_type(object) != JSON_OBJECT)
                return refuse_type(object, pointer, "an object", r);
        for (size_t i = 0; i < groups[group].n; i++)
                names[i] = groups[group].rows[i].name;
        for (const struct json *m = json_first(object); m; m = json_next(m)) {
                size_t n = strlen(json_key(m));
                json_pointer_key(here, pointer, json_key(m));
                if (group == GROUP_MITIGATIONS &&
                    (n == 0 || n > NAME_MAX || strspn(json_key(m), MITIGATION_LETTERS) != n))
                        return refuse(r, 422, "unknown-field", here,
                                      "the name of a mitigation is 1 … %u of a-z, 0-9 and _", NAME_MAX);
                int x = read_fact(m, group, here, spec, r);
                if (x < 0)
                        return x == -ENOENT ? refuse_member(m, pointer, names, groups[group].n, r) : x;
        }
        return 0;
}

static int refuse_unknown(const struct json *m, struct refusal *r) {
        const char *names[ELEMENTS(requirements) + FACT_COUNT + ELEMENTS(groups)];
        size_t n = 0;
        for (size_t i = 0; i < ELEMENTS(requirements); i++)
                names[n++] = requirements[i].name;
        for (size_t i = 0; i < FACT_COUNT; i++)
                names[n++] = fact_rows[i].name;
        for (size_t i = GROUP_BUILD; i < ELEMENTS(groups); i++)
                names[n++] = groups[i].name;
        return refuse_member(m, "/require", names, n, r);
}

static int read_member(const struct json *m, struct spec *spec, struct refusal *r) {
        const struct value *v = value_find(&require_values, json_key(m));
        char here[JSON_POINTER_MAX];
        json_pointer_key(here, "/require", json_key(m));
        if (v)
                return v->type->read(v, m, here, (char *) &spec->require + v->offset, r);
        for (size_t i = GROUP_BUILD; i < ELEMENTS(groups); i++)
                if (strcmp(groups[i].name, json_key(m)) == 0)
                        return read_group(m, (enum fact_group) i, here, spec, r);
        int x = read_fact(m, GROUP_HOST, here, spec, r);
        return x == -ENOENT ? refuse_unknown(m, r) : x;
}

/* Host and build facts as their rows are, mitigations by name. */
static int in_order(const void *a, const void *b) {
        const struct spec_fact *x = a, *y = b;
        if (x->group != y->group)
                return x->group < y->group ? -1 : 1;
        const struct fact_row *at = find_row(x->group, x->name), *other = find_row(y->group, y->name);
        return at == other ? strcmp(x->name, y->name) : at < other ? -1 : 1;
}

int require_read(const struct json *v, struct spec *spec, struct refusal *r) {
        if (json_type(v) != JSON_OBJECT)
                return refuse_type(v, "/require", "an object", r);
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                int x = read_member(m, spec, r);
                if (x < 0)
                        return x;
        }
        if (spec->n_facts > 0) /* equal requirements are equal text, in whichever order they were posted */
                qsort(spec->facts, spec->n_facts, sizeof(spec->facts[0]), in_order);
        return 0;
}

static void put_group(struct json_writer *w, const struct spec *spec, enum fact_group group) {
        bool open = group == GROUP_HOST;
        for (size_t i = 0; i < spec->n_facts; i++) {
                const struct spec_fact *f = &spec->facts[i];
                if (f->group != group)
                        continue;
                if (!open) {
                        json_member_object(w, groups[group].name);
                        open = true;
                }
                if (f->text)
                        json_member_string(w, f->name, f->text);
                else
                        json_member_i64(w, f->name, f->number);
        }
        if (open && group != GROUP_HOST)
                json_object_end(w);
}

void require_write(struct json_writer *w, const struct spec *spec) {
        if (spec->n_facts == 0 && !values_any(&require_values, &spec->require))
                return;
        json_member_object(w, "require");
        values_put(&require_values, w, &spec->require);
        for (size_t i = 0; i < ELEMENTS(groups); i++)
                put_group(w, spec, (enum fact_group) i);
        json_object_end(w);
}

static void put_choices(struct json_writer *w, const struct fact_row *row) {
        json_member_array(w, "enum");
        for (size_t i = 0; i < FACT_CHOICES_MAX && row->choices[i]; i++)
                json_put_string(w, row->choices[i]);
        json_array_end(w);
}

static void describe_fact(struct json_writer *w, const struct fact_row *row) {
        json_object_begin(w);
        json_member_string(w, "type", row && row->form == FACT_NUMBER ? "integer" : "string");
        if (row && row->form == FACT_NUMBER) {
                json_member_i64(w, "minimum", NUMBER_LEAST);
                json_member_i64(w, "maximum", NUMBER_MOST);
        } else if (row && row->form == FACT_CHOICE) {
                put_choices(w, row);
        } else if (row && row->form == FACT_SHA256)
                json_member_string(w, "pattern", "^[0-9a-f]{64}$");
        else {
                json_member_u64(w, "maxLength", TEXT_CHARACTERS_MAX);
                json_member_string(w, "pattern", "^[^\\u0000-\\u001f]*$");
        }
        json_object_end(w);
}

static void describe_group(struct json_writer *w, const struct group *g) {
        json_member_object(w, g->name);
        json_member_string(w, "description", g->description);
        json_member_string(w, "type", "object");
        json_member_bool(w, "additionalProperties", false);
        json_member_object(w, g->rows ? "properties" : "patternProperties");
        for (size_t i = 0; i < g->n; i++) {
                json_put_key(w, g->rows[i].name);
                describe_fact(w, &g->rows[i]);
        }
        if (!g->rows) {
                json_put_key(w, "^[a-z0-9_]{1,64}$");
                describe_fact(w, NULL);
        }
        json_object_end(w);
        json_object_end(w);
}

/* What an experiment may require besides. */
static void describe_facts(struct json_writer *w) {
        for (size_t i = 0; i < FACT_COUNT; i++) {
                if (value_find(&require_values, fact_rows[i].name))
                        continue; /* which has a meaning of its own for the name */
                json_put_key(w, fact_rows[i].name);
                describe_fact(w, &fact_rows[i]);
        }
        for (size_t i = GROUP_BUILD; i < ELEMENTS(groups); i++)
                describe_group(w, &groups[i]);
}

static void put_require(struct json_writer *w, void (*more)(struct json_writer *w)) {
        json_member_object(w, "require");
        json_member_string(w, "description",
                           "Preconditions: a host that does not meet them fails the run. A whole experiment may also "
                           "require any fact or "
                           "setting of the environment, as GET /environment shows it, and the build that measures");
        values_describe(&require_values, more, w);
        json_object_end(w);
}

void require_describe(struct json_writer *w) {
        put_require(w, describe_facts);
}

void require_define(struct json_writer *w) {
        put_require(w, NULL);
}

/* `tune`. What it sets of a fact has the fact's name, and takes its choices. */

static int choice_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                       struct refusal *r) {
        const char *text;
        if (json_as_string(json, &text) < 0)
                return refuse_type(json, pointer, "a word", r);
        int x = check_text(find_row(GROUP_HOST, v->name), v->name, text, pointer, r);
        if (x == 0)
                memcpy(ret, text, strlen(text) + 1); /* the longest choice fits, see the table */
        return x;
}

static void choice_describe(const struct value *v, struct json_writer *w) {
        put_choices(w, find_row(GROUP_HOST, v->name));
}

static const struct value_type choice = {choice_read, value_name_write, value_same_bytes, choice_describe};

static const struct value tunings[] = {
        {"numa_balancing", "Automatic NUMA balancing", VALUE(value_toggle, struct spec_tune, numa_balancing)},
        {"governor", "The cpufreq governor of every CPU", VALUE(governor, struct spec_tune, governor), .least = 1,
         .most = SPEC_GOVERNOR_MAX},
        {"idle_states",
         "Whether every CPU may enter the idle states after its first (cpuidle's state1 and on): "
         "false disables each of them, true enables each",
         VALUE(value_toggle, struct spec_tune, idle_states)},
        {"transparent_hugepage", "Transparent huge pages of private memory", VALUE(choice, struct spec_tune, thp)},
        {"transparent_hugepage_shmem", "Transparent huge pages of shared memory",
         VALUE(choice, struct spec_tune, thp_shmem)},
};

const struct value_table tune_values = {VALUE_ROWS(tunings)};
_Static_assert(ELEMENTS(tunings) == SPEC_SETTINGS_MAX, "a setting for each row");

size_t spec_settings(const struct spec_tune *tune, struct spec_setting ret[static SPEC_SETTINGS_MAX]) {
        size_t n = 0;
        for (size_t i = 0; i < ELEMENTS(tunings); i++) {
                const struct value *v = &tunings[i];
                const char *member = (const char *) tune + v->offset;
                enum toggle toggle = TOGGLE_UNSET;
                if (!value_is_given(v, tune))
                        continue;
                if (v->type == &value_toggle)
                        memcpy(&toggle, member, sizeof(toggle));
                ret[n++] = (struct spec_setting){
                        .name = v->name, .word = toggle == TOGGLE_UNSET ? member : NULL, .on = toggle == TOGGLE_ON};
        }
        return n;
}

/* Facts that a setting changes, and that have another name than the setting. With intel_pstate, a governor sets the
 * energy preference too (Documentation/admin-guide/pm/intel_pstate.rst). */
static const enum fact_name changed_facts[] = {FACT_CPUFREQ_GOVERNOR, FACT_CPUFREQ_ENERGY_PREFERENCE,
                                               FACT_CPUIDLE_STATES};

static bool is_changed_by_tune(const struct spec_fact *f) {
        if (f->group != GROUP_HOST)
                return false;
        for (size_t i = 0; i < ELEMENTS(changed_facts); i++)
                if (strcmp(fact_rows[changed_facts[i]].name, f->name) == 0)
                        return true;
        return value_find(&tune_values, f->name) != NULL;
}

static bool requires_tunable(const struct spec_require *require) {
        for (size_t i = 0; i < ELEMENTS(requirements); i++)
                if (value_find(&tune_values, requirements[i].name) && value_is_given(&requirements[i], require))
                        return true;
        return false;
}

bool spec_depends_on_host(const struct spec *spec, const struct point *p) {
        for (size_t i = 0; i < spec->n_facts; i++)
                if (is_changed_by_tune(&spec->facts[i]))
                        return true;
        return values_any(&tune_values, &spec->tune) || requires_tunable(&spec->require) ||
               requires_tunable(&p->placement.require);
}
