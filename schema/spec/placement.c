/* SPDX-License-Identifier: MIT */

/*
 * The placement of a spec or point: a word, or an object per role with CPU, node and memory policy. Called by the spec
 * parser, by point_from_json() and the writers of both.
 */

#include "schema/spec/internal.h"

#include "schema/util.h"

#include <string.h>

#define ANYWHERE                                                                                                       \
        { .node = -1, .cpu = -1, .memory = MEMORY_DEFAULT }

const struct placement placement_default = {.kind = PLACEMENT_DEFAULT, .ends = {ANYWHERE, ANYWHERE}};

static bool end_equal(const struct end_placement *a, const struct end_placement *b) {
        return a->node == b->node && a->cpu == b->cpu && a->memory == b->memory && a->buffer == b->buffer &&
               memcmp(&a->memory_nodes, &b->memory_nodes, sizeof(a->memory_nodes)) == 0 &&
               memcmp(&a->buffer_nodes, &b->buffer_nodes, sizeof(a->buffer_nodes)) == 0;
}

bool placement_same(const struct placement *a, const struct placement *b) {
        return a->kind == b->kind && a->otherwise == b->otherwise &&
               values_equal(&require_values, &a->require, &b->require) &&
               end_equal(&a->ends[END_FIRST], &b->ends[END_FIRST]) &&
               end_equal(&a->ends[END_SECOND], &b->ends[END_SECOND]);
}

bool placement_equal(const struct placement *a, const struct placement *b) {
        return a->roles == b->roles && placement_same(a, b);
}

/* A node or CPU number below `limit`. */
static int take_number(const struct json *v, const char *pointer, const char *what, unsigned limit, int *ret,
                       struct refusal *r) {
        int64_t number;
        if (json_as_i64(v, &number) < 0)
                return refuse(r, 422, "wrong-type", pointer, "a %s is an integer", what);
        if (number < 0 || number >= limit) {
                char value[32], most[32];
                snprintf(value, sizeof(value), "%" PRId64, number);
                snprintf(most, sizeof(most), "%u", limit - 1);
                return refuse_limit(r, pointer, what, most, value, "a %s is 0 … %s, not %s", what, most, value);
        }
        *ret = (int) number;
        return 0;
}

/* A list may have a thousand nodes, and a spec hundreds of lists: only a refusal is worth a pointer. */
static int refuse_node(const struct json *v, const char *list, size_t i, struct refusal *r) {
        char here[JSON_POINTER_MAX];
        int node;
        json_pointer_index(here, list, i);
        int x = take_number(v, here, "node", SPEC_NODES_MAX, &node, r);
        return x < 0 ? x : refuse(r, 422, "duplicate-value", here, "node %d stands twice in the list", node);
}

static int take_nodes(const struct json *list, const char *pointer, struct node_set *ret, struct refusal *r) {
        size_t i = 0;
        if (json_type(list) != JSON_ARRAY || !json_first(list))
                return refuse(r, 422, "wrong-type", pointer, "nodes is a list of node numbers, at least one");
        for (const struct json *v = json_first(list); v; v = json_next(v), i++) {
                int64_t number;
                if (json_as_i64(v, &number) < 0 || number < 0 || number >= SPEC_NODES_MAX ||
                    node_set_has(ret, (unsigned) number))
                        return refuse_node(v, pointer, i, r);
                node_set_add(ret, (unsigned) number);
        }
        return 0;
}

static int check_nodes(enum memory_policy policy, size_t n, const char *pointer, struct refusal *r) {
        const char *name = memory_policy_name(policy);
        switch (policy) {
        case MEMORY_BIND:
        case MEMORY_INTERLEAVE:
                return n > 0 ? 0 : refuse(r, 422, "missing-field", pointer, "memory policy %s needs nodes", name);
        case MEMORY_PREFERRED:
                return n == 1 ? 0
                              : refuse(r, 422, "wrong-combination", pointer,
                                       "memory policy preferred needs nodes with exactly one node, not %zu", n);
        default:
                return n == 0 ? 0
                              : refuse(r, 422, "wrong-combination", pointer, "memory policy %s takes no nodes", name);
        }
}

static int take_memory(const struct json *v, const char *pointer, enum memory_policy *ret_policy,
                       struct node_set *ret_nodes, struct refusal *r) {
        const char *word;
        size_t n = 0;

        if (json_type(v) != JSON_OBJECT)
                return refuse(r, 422, "wrong-type", pointer, "memory is an object with policy and nodes");
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                char here[JSON_POINTER_MAX];
                json_pointer_key(here, pointer, json_key(m));
                if (strcmp(json_key(m), "nodes") == 0) {
                        if (take_nodes(m, here, ret_nodes, r) < 0)
                                return -EINVAL;
                        n = json_length(m);
                } else if (strcmp(json_key(m), "policy") != 0)
                        return refuse(r, 422, "unknown-field", here, "memory has policy and nodes, no such field");
        }

        const struct json *policy = json_get(v, "policy");
        if (!policy)
                return refuse(r, 422, "missing-field", pointer, "memory needs a policy");
        char here[JSON_POINTER_MAX];
        json_pointer_key(here, pointer, "policy");
        int value = json_as_string(policy, &word) < 0 ? -EINVAL : vocabulary_find(&memory_policy_words, word);
        if (value < 0)
                return refuse(r, 422, "unknown-value", here,
                              "a memory policy is one of default, bind, preferred, interleave, local");
        *ret_policy = (enum memory_policy) value;
        return check_nodes(*ret_policy, n, pointer, r);
}

/* Reads the placement of the pages of an end's messages: {"node": 1} for short, or a memory policy. */
static int take_buffer(const struct json *v, const char *pointer, struct end_placement *ret, struct refusal *r) {
        const struct json *node = json_type(v) == JSON_OBJECT ? json_get(v, "node") : NULL;
        char here[JSON_POINTER_MAX];
        int id = -1;

        if (!node || json_length(v) > 1)
                return take_memory(v, pointer, &ret->buffer, &ret->buffer_nodes, r);
        json_pointer_key(here, pointer, "node");
        int x = take_number(node, here, "node", SPEC_NODES_MAX, &id, r);
        if (x < 0)
                return x;
        ret->buffer = MEMORY_BIND;
        node_set_add(&ret->buffer_nodes, (unsigned) id);
        return 0;
}

static int take_end(const struct json *v, const char *pointer, struct end_placement *ret, struct refusal *r) {
        if (json_type(v) != JSON_OBJECT || !json_first(v))
                return refuse(r, 422, "wrong-type", pointer,
                              "a role's placement is an object with at least one of node, cpu, memory and buffer");
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                char here[JSON_POINTER_MAX];
                const char *key = json_key(m);
                int x;
                json_pointer_key(here, pointer, key);
                if (strcmp(key, "node") == 0)
                        x = take_number(m, here, "node", SPEC_NODES_MAX, &ret->node, r);
                else if (strcmp(key, "cpu") == 0)
                        x = take_number(m, here, "cpu", SPEC_CPUS_MAX, &ret->cpu, r);
                else if (strcmp(key, "memory") == 0)
                        x = take_memory(m, here, &ret->memory, &ret->memory_nodes, r);
                else if (strcmp(key, "buffer") == 0)
                        x = take_buffer(m, here, ret, r);
                else
                        x = refuse(r, 422, "unknown-field", here,
                                   "a role's placement has node, cpu, memory and buffer, no such field");
                if (x < 0)
                        return x;
        }
        return 0;
}

static int parse_word(const struct json *v, const char *pointer, struct placement *p, struct refusal *r) {
        unsigned kind = 0;
        int x = read_word(v, pointer, "placement", &placement_kind_words, &kind, r);
        if (x == 0)
                p->kind = (enum placement_kind) kind;
        return x;
}

/* A role's word determines the end, and the pair of words that the placement uses. */
static int find_role(const char *word, enum role_pair *ret_pair, enum end *ret_end) {
        if (role_from_name(word, ret_end) < 0)
                return -EINVAL;
        for (unsigned i = 0; i < ROLES_COUNT; i++)
                if (strcmp(role_pair_name((enum role_pair) i, *ret_end), word) == 0)
                        *ret_pair = (enum role_pair) i;
        return 0;
}

static int parse_roles(const struct json *v, const char *pointer, struct placement *p, struct refusal *r) {
        bool first = true;

        p->kind = PLACEMENT_EXPLICIT;
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                char here[JSON_POINTER_MAX];
                enum role_pair pair = ROLES_STREAM;
                enum end end;
                json_pointer_key(here, pointer, json_key(m));
                if (strcmp(json_key(m), "require") == 0)
                        continue;
                if (find_role(json_key(m), &pair, &end) < 0)
                        return refuse(r, 422, "unknown-field", here,
                                      "a role is sender, receiver, initiator, responder, server or client");
                if (!first && pair != p->roles)
                        return refuse(r, 422, "wrong-combination", here, "%s does not go together with the other role",
                                      json_key(m));
                p->roles = pair;
                first = false;
                if (take_end(m, here, &p->ends[end], r) < 0)
                        return -EINVAL;
        }
        return first ? refuse(r, 422, "missing-field", pointer,
                              "a placement with require needs kind, or an object per role, too")
                     : 0;
}

/* {"kind": "default", "require": {…}, "otherwise": true}, or an object per role with or without require. */
static int parse_object(const struct json *v, const char *pointer, struct placement *p, struct refusal *r) {
        const struct json *require = json_get(v, "require"), *kind = json_get(v, "kind");
        const struct json *otherwise = json_get(v, "otherwise");
        char here[JSON_POINTER_MAX];

        json_pointer_key(here, pointer, "require");
        if (require && values_read(&require_values, require, here, &p->require, r) < 0)
                return -EINVAL;
        if (!kind)
                return parse_roles(v, pointer, p, r);
        json_pointer_key(here, pointer, "kind");
        if (parse_word(kind, here, p, r) < 0)
                return -EINVAL;
        json_pointer_key(here, pointer, "otherwise");
        if (otherwise && json_as_bool(otherwise, &p->otherwise) < 0)
                return refuse(r, 422, "wrong-type", here, "otherwise is true or false");
        for (const struct json *m = json_first(v); m; m = json_next(m))
                if (m != kind && m != require && m != otherwise) {
                        json_pointer_key(here, pointer, json_key(m));
                        return refuse(r, 422, "unknown-field", here,
                                      "beside kind a placement has require and otherwise, no such field");
                }
        return 0;
}

int placement_parse(const struct json *v, const char *pointer, struct placement *ret, struct refusal *r) {
        struct placement p = placement_default;
        int x;

        if (json_type(v) == JSON_STRING)
                x = parse_word(v, pointer, &p, r);
        else if (json_type(v) == JSON_OBJECT && json_first(v))
                x = parse_object(v, pointer, &p, r);
        else
                x = refuse(r, 422, "wrong-type", pointer, "a placement is a word or an object with a member per role");
        if (x < 0)
                return x;
        *ret = p;
        return 0;
}

static bool end_is_empty(const struct end_placement *e) {
        return e->node < 0 && e->cpu < 0 && e->memory == MEMORY_DEFAULT && e->buffer == MEMORY_DEFAULT;
}

static void put_memory(struct json_writer *w, const char *key, enum memory_policy policy,
                       const struct node_set *nodes) {
        bool any = false;

        json_member_object(w, key);
        json_member_string(w, "policy", memory_policy_name(policy));
        for (unsigned node = 0; node < SPEC_NODES_MAX; node++) {
                if (!node_set_has(nodes, node))
                        continue;
                if (!any) {
                        json_member_array(w, "nodes");
                        any = true;
                }
                json_put_u64(w, node);
        }
        if (any)
                json_array_end(w);
        json_object_end(w);
}

static void put_end(struct json_writer *w, const struct end_placement *e) {
        json_object_begin(w);
        if (e->node >= 0)
                json_member_i64(w, "node", e->node);
        if (e->cpu >= 0)
                json_member_i64(w, "cpu", e->cpu);
        if (e->memory != MEMORY_DEFAULT || end_is_empty(e))
                put_memory(w, "memory", e->memory, &e->memory_nodes);
        if (e->buffer != MEMORY_DEFAULT)
                put_memory(w, "buffer", e->buffer, &e->buffer_nodes);
        json_object_end(w);
}

bool placement_is_pairs(const struct placement *p) {
        return p->kind == PLACEMENT_ALL_NODE_PAIRS || p->kind == PLACEMENT_ALL_CPU_PAIRS;
}

bool placement_make_single(struct placement *p) {
        if (!end_equal(&p->ends[END_FIRST], &p->ends[END_SECOND]))
                return false;
        p->ends[END_SECOND] = (struct end_placement) ANYWHERE;
        return true;
}

bool placement_fits(const struct placement *p, enum workload w, enum transport t) {
        if (p->kind != PLACEMENT_EXPLICIT)
                return true;
        return (p->roles == ROLES_ANY || p->roles == role_pair_of(w, t)) &&
               (workload_agents(w) == 2 || end_is_empty(&p->ends[END_SECOND]));
}

static void put_ends(struct json_writer *w, const struct placement *p, enum role_pair roles) {
        bool none = end_is_empty(&p->ends[END_FIRST]) && end_is_empty(&p->ends[END_SECOND]);
        for (unsigned i = 0; i < END_COUNT; i++) /* an empty end is left out, unless both are empty */
                if (!end_is_empty(&p->ends[i]) || (none && i == END_FIRST)) {
                        json_put_key(w, role_pair_name(roles, (enum end) i));
                        put_end(w, &p->ends[i]);
                }
}

void placement_put(struct json_writer *w, const struct placement *p, enum role_pair roles) {
        bool require = values_any(&require_values, &p->require);
        if (p->kind != PLACEMENT_EXPLICIT && !require && !p->otherwise) {
                json_put_string(w, placement_kind_name(p->kind));
                return;
        }
        json_object_begin(w);
        if (p->kind != PLACEMENT_EXPLICIT)
                json_member_string(w, "kind", placement_kind_name(p->kind));
        else
                put_ends(w, p, roles);
        if (require) {
                json_put_key(w, "require");
                values_write(&require_values, w, &p->require);
        }
        if (p->otherwise)
                json_member_bool(w, "otherwise", true);
        json_object_end(w);
}

static int placement_read(const struct value *v, const struct json *json, const char *pointer, void *ret,
                          struct refusal *r) {
        (void) v;
        return placement_parse(json, pointer, ret, r);
}

static void placement_write(const struct value *v, struct json_writer *w, const void *value) {
        const struct placement *p = value;
        (void) v;
        placement_put(w, p, p->roles);
}

static bool placement_are_equal(const struct value *v, const void *a, const void *b) {
        (void) v;
        return placement_equal(a, b);
}

/* Too long for a row: it stands in frame.schema.json. */
const struct value_type value_placement = {placement_read, placement_write, placement_are_equal, NULL};
