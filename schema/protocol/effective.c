/* SPDX-License-Identifier: MIT */

#include "schema/protocol/effective.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOP(upper, name, kind) [SETTING_##upper] = {name, EFFECTIVE_##kind, false},
#define MEMBER(upper, name, kind) [SETTING_##upper] = {name, EFFECTIVE_##kind, true},
const struct setting_term setting_terms[SETTING_COUNT] = {SETTINGS(TOP) SETTINGS_OF_GROUPS(MEMBER)};

struct effective *effective_new(void) {
        struct effective *e = calloc(1, sizeof(*e));
        if (e)
                e->group = SETTING_COUNT;
        return e;
}

static bool is_same_key(const struct effective_row *a, const struct effective_row *b) {
        return a->setting == b->setting && a->group == b->group &&
               (a->kind == EFFECTIVE_REASON) == (b->kind == EFFECTIVE_REASON);
}

static bool is_row(const struct effective_row *row) {
        if ((unsigned) row->setting >= SETTING_COUNT || (unsigned) row->group > SETTING_COUNT)
                return false;
        const struct setting_term *t = &setting_terms[row->setting];
        bool grouped = row->group < SETTING_COUNT;
        if (t->kind == EFFECTIVE_GROUP || grouped != t->in_group ||
            (grouped && setting_terms[row->group].kind != EFFECTIVE_GROUP))
                return false;
        switch (row->kind) {
        case EFFECTIVE_NULL:
                return true;
        case EFFECTIVE_REASON:
                return row->text[0];
        case EFFECTIVE_BOOL:
                return t->kind == row->kind && row->number <= 1;
        case EFFECTIVE_REAL:
                return t->kind == row->kind && isfinite(row->real);
        default:
                return t->kind == row->kind;
        }
}

int effective_check(const struct effective *e) {
        const struct effective_row *last = &e->rows[e->n - 1];
        if (!is_row(last))
                return -EINVAL;
        for (size_t i = 0; i + 1 < e->n; i++)
                if (is_same_key(&e->rows[i], last) ||
                    (last->group < SETTING_COUNT && e->rows[i].group == last->group && last[-1].group != last->group))
                        return -EINVAL;
        return 0;
}

static void add(struct effective *e, struct effective_row row) {
        if (e->error == 0 && e->n == EFFECTIVE_ROWS_MAX)
                e->error = -ENOBUFS;
        if (e->error < 0)
                return;
        row.group = e->group;
        e->rows[e->n++] = row;
        e->error = effective_check(e);
}

void effective_add_number(struct effective *e, enum setting setting, uint64_t value) {
        add(e, (struct effective_row){.setting = setting, .kind = EFFECTIVE_NUMBER, .number = value});
}

void effective_add_bool(struct effective *e, enum setting setting, bool value) {
        add(e, (struct effective_row){.setting = setting, .kind = EFFECTIVE_BOOL, .number = value});
}

void effective_add_real(struct effective *e, enum setting setting, double value) {
        add(e, (struct effective_row){.setting = setting, .kind = EFFECTIVE_REAL, .real = value});
}

void effective_add_null(struct effective *e, enum setting setting) {
        add(e, (struct effective_row){.setting = setting, .kind = EFFECTIVE_NULL});
}

static void add_text(struct effective *e, enum setting setting, enum effective_kind kind, const char *text) {
        struct effective_row row = {.setting = setting, .kind = kind};
        size_t length = strlen(text);
        if (length >= sizeof(row.text)) {
                e->error = e->error < 0 ? e->error : -EMSGSIZE;
                return;
        }
        memcpy(row.text, text, length);
        row.text[length] = '\0';
        add(e, row);
}

void effective_add_text(struct effective *e, enum setting setting, const char *value) {
        if (value)
                add_text(e, setting, EFFECTIVE_TEXT, value);
        else
                effective_add_null(e, setting);
}

void effective_add_reason(struct effective *e, enum setting setting, const char *reason) {
        add_text(e, setting, EFFECTIVE_REASON, reason);
}

void effective_add_unknown(struct effective *e, enum setting setting, const char *reason) {
        effective_add_null(e, setting);
        effective_add_reason(e, setting, reason);
}

void effective_group(struct effective *e, enum setting group) {
        e->group = group;
}

static const struct effective_row *find(const struct effective *e, enum setting setting, bool reason) {
        for (size_t i = 0; e && i < e->n; i++)
                if (e->rows[i].setting == setting && e->rows[i].group == SETTING_COUNT &&
                    (e->rows[i].kind == EFFECTIVE_REASON) == reason)
                        return &e->rows[i];
        return NULL;
}

const struct effective_row *effective_find(const struct effective *e, enum setting setting) {
        return find(e, setting, false);
}

const struct effective_row *effective_find_reason(const struct effective *e, enum setting setting) {
        return find(e, setting, true);
}

uint64_t effective_number(const struct effective *e, enum setting setting) {
        const struct effective_row *row = effective_find(e, setting);
        return row && row->kind == EFFECTIVE_NUMBER ? row->number : 0;
}

void effective_put_row(const struct effective_row *row, struct json_writer *w) {
        const char *name = setting_terms[row->setting].name;
        char key[64];
        switch (row->kind) {
        case EFFECTIVE_NULL:
                json_member_null(w, name);
                break;
        case EFFECTIVE_NUMBER:
                json_member_u64(w, name, row->number);
                break;
        case EFFECTIVE_BOOL:
                json_member_bool(w, name, row->number);
                break;
        case EFFECTIVE_REAL:
                json_member_double(w, name, row->real);
                break;
        case EFFECTIVE_TEXT:
                json_member_string(w, name, row->text);
                break;
        case EFFECTIVE_REASON:
                (void) snprintf(key, sizeof(key), "%s_reason", name);
                json_member_string(w, key, row->text);
                break;
        case EFFECTIVE_GROUP:
        case EFFECTIVE_KIND_COUNT:
                break;
        }
}

void effective_put(const struct effective *e, struct json_writer *w) {
        enum setting group = SETTING_COUNT;
        json_object_begin(w);
        for (size_t i = 0; i < e->n; i++) {
                const struct effective_row *row = &e->rows[i];
                if (group != row->group && group < SETTING_COUNT)
                        json_object_end(w);
                if (group != row->group && row->group < SETTING_COUNT)
                        json_member_object(w, setting_terms[row->group].name);
                group = row->group;
                effective_put_row(row, w);
        }
        if (group < SETTING_COUNT)
                json_object_end(w);
        json_object_end(w);
}
