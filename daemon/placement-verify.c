/* SPDX-License-Identifier: MIT */
/*
 * Whether an agent was where it was put. The agent states what the kernel told it, this file judges; it trusts nothing
 * about the text. Called by the runner for the proof in ready and for the one in report.
 */

#include "daemon/placement.h"

#include "schema/json.h"
#include "schema/util.h"

#include <stdarg.h>
#include <string.h>

struct verdict {
        const struct agent_placement *given;
        char *detail;
};

static int verdict_say(const struct verdict *v, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static int verdict_say(const struct verdict *v, int error, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        (void) vsnprintf(v->detail, PLACEMENT_DETAIL_MAX, format, ap);
        va_end(ap);
        return error;
}

static int bad(const struct verdict *v, const char *what) {
        return verdict_say(v, -EBADMSG, "the agent's proof of its placement is not in order: %s", what);
}

static int get_number(const struct json *object, const char *key, int64_t *ret) {
        const struct json *value = json_get(object, key);
        return value ? json_as_i64(value, ret) : -EINVAL;
}

static bool has_cpu(const int32_t *cpus, size_t n, int64_t cpu) {
        for (size_t i = 0; i < n; i++)
                if (cpus[i] == cpu)
                        return true;
        return false;
}

/* A list of CPUs as text for a message: "1,2". */
static const char *cpus_text(const int32_t *cpus, size_t n, char *ret, size_t size) {
        size_t length = 0;
        ret[0] = '\0';
        for (size_t i = 0; i < n && length + 1 < size; i++) {
                int used = snprintf(ret + length, size - length, "%s%d", i ? "," : "", cpus[i]);
                length += used > 0 ? (size_t) used : 0;
        }
        return ret;
}

/* What a thread may use: the one CPU that is its own, or all of them. */
struct share {
        const int32_t *cpus;
        size_t n;
        char text[64];
};

static struct share share_of(const struct agent_placement *given, int64_t thread) {
        struct share s = {.cpus = given->cpus, .n = given->n_cpus, .text = ""};
        if (!given->roam && given->n_cpus) {
                s.cpus = &given->cpus[(size_t) thread % given->n_cpus];
                s.n = 1;
        }
        (void) cpus_text(s.cpus, s.n, s.text, sizeof(s.text));
        return s;
}

/* Every CPU in the list must be one of the share's. */
static int check_within(const struct verdict *v, const struct json *list, const struct share *s, const char *member,
                        const char *sentence, int64_t thread) {
        if (!list || json_type(list) != JSON_ARRAY || !json_first(list))
                return bad(v, member);
        for (const struct json *item = json_first(list); item; item = json_next(item)) {
                int64_t cpu = 0;
                if (json_as_i64(item, &cpu) < 0)
                        return bad(v, member);
                if (s->n && !has_cpu(s->cpus, s->n, cpu))
                        return verdict_say(v, -EPERM, "thread %" PRId64 " %s CPU %" PRId64 ", asked %s", thread,
                                           sentence, cpu, s->text);
        }
        return 0;
}

static int check_affinity(const struct verdict *v, const struct json *list, const struct share *s, int64_t thread) {
        int r = check_within(v, list, s, "affinity", "was allowed on", thread);
        if (r < 0 || s->n == 0)
                return r;
        if (json_length(list) != s->n)
                return verdict_say(v, -EPERM, "thread %" PRId64 " was allowed on %zu CPUs of the %zu asked (%s)",
                                   thread, json_length(list), s->n, s->text);
        return 0;
}

/* A thread that may use one CPU and was moved has been elsewhere, even if nobody saw it there. */
static int check_migrations(const struct verdict *v, const struct json *proof, const struct share *s, int64_t thread) {
        const struct json *count = json_get(proof, "migrations");
        int64_t n = 0;
        if (!count || json_type(count) == JSON_NULL)
                return 0;
        if (json_as_i64(count, &n) < 0 || n < 0)
                return bad(v, "migrations");
        if (s->n == 1 && n > 0)
                return verdict_say(v, -EPERM, "thread %" PRId64 " was moved %" PRId64 " times, asked to stay on CPU %s",
                                   thread, n, s->text);
        return 0;
}

static int check_thread(const struct verdict *v, const struct json *proof, int64_t index) {
        int64_t thread = -1, cpu = -1;

        if (json_type(proof) != JSON_OBJECT || get_number(proof, "thread", &thread) < 0 || thread != index)
                return bad(v, "thread");
        const struct share s = share_of(v->given, thread);
        int r = check_affinity(v, json_get(proof, "affinity"), &s, thread);
        if (r < 0)
                return r;
        if (get_number(proof, "cpu", &cpu) < 0)
                return bad(v, "cpu");
        if (s.n && !has_cpu(s.cpus, s.n, cpu))
                return verdict_say(v, -EPERM, "thread %" PRId64 " was on CPU %" PRId64 ", asked %s", thread, cpu,
                                   s.text);
        r = check_within(v, json_get(proof, "cpus_seen"), &s, "cpus_seen", "ran on", thread);
        return r < 0 ? r : check_migrations(v, proof, &s, thread);
}

static int check_threads(const struct verdict *v, const struct json *root) {
        const struct json *threads = json_get(root, "threads");
        int64_t index = 0;

        if (!threads || json_type(threads) != JSON_ARRAY || !json_first(threads))
                return bad(v, "threads");
        for (const struct json *thread = json_first(threads); thread; thread = json_next(thread)) {
                int r = check_thread(v, thread, index++);
                if (r < 0)
                        return r;
        }
        int64_t total = index; /* of threads that were put nowhere some may be left out; of pinned ones none */
        if (json_get(root, "threads_total") && get_number(root, "threads_total", &total) < 0)
                return bad(v, "threads_total");
        if (total < index || (v->given->n_cpus && total != index))
                return bad(v, "some threads are missing");
        return 0;
}

/* What the process was started with: its workers' CPUs and its leader's, and no other. */
static int check_process(const struct verdict *v, const struct json *root) {
        const struct json *list = json_get(root, "affinity");
        const struct agent_placement *given = v->given;

        if (!list || json_type(list) != JSON_ARRAY || !json_first(list))
                return bad(v, "affinity");
        for (const struct json *item = json_first(list); item; item = json_next(item)) {
                int64_t cpu = 0;
                if (json_as_i64(item, &cpu) < 0)
                        return bad(v, "affinity");
                if (given->n_cpus && !has_cpu(given->cpus, given->n_cpus, cpu) &&
                    !has_cpu(given->leader_cpus, given->n_leader_cpus, cpu))
                        return verdict_say(v, -EPERM,
                                           "the agent was started on CPU %" PRId64 ", which it was not given", cpu);
        }
        return 0;
}

static int take_policy_nodes(const struct verdict *v, const struct json *root, struct node_set *ret) {
        const struct json *list = json_get(root, "policy_nodes");
        if (!list || json_type(list) != JSON_ARRAY)
                return bad(v, "policy_nodes");
        for (const struct json *item = json_first(list); item; item = json_next(item)) {
                int64_t id = 0;
                if (json_as_i64(item, &id) < 0 || id < 0 || id >= SPEC_NODES_MAX)
                        return bad(v, "policy_nodes");
                node_set_add(ret, (unsigned) id);
        }
        return 0;
}

/* Before 5.14 the kernel tells of "local" as preferred without a node. */
static bool same_policy(enum memory_policy given, enum memory_policy told, bool told_nodes) {
        return given == told || (given == MEMORY_LOCAL && told == MEMORY_PREFERRED && !told_nodes);
}

static int check_policy(const struct verdict *v, const struct json *root) {
        const struct json *word = json_get(root, "policy");
        const char *name = NULL;
        enum memory_policy policy = MEMORY_DEFAULT;
        struct node_set nodes = {0};
        static const struct node_set none;

        if (word && json_type(word) == JSON_NULL && v->given->memory == MEMORY_DEFAULT)
                return 0; /* a kernel that cannot tell was not asked for anything */
        if (!word || json_as_string(word, &name) < 0 || memory_policy_from_name(name, &policy) < 0)
                return bad(v, "policy");
        int r = take_policy_nodes(v, root, &nodes);
        if (r < 0)
                return r;
        if (!same_policy(v->given->memory, policy, memcmp(&nodes, &none, sizeof(none)) != 0))
                return verdict_say(v, -EPERM, "memory policy was %s, asked %s", name,
                                   memory_policy_name(v->given->memory));
        if (memcmp(&nodes, &v->given->memory_nodes, sizeof(nodes)) == 0)
                return 0;
        for (unsigned id = 0; id < SPEC_NODES_MAX; id++)
                if (node_set_has(&nodes, id) != node_set_has(&v->given->memory_nodes, id))
                        return verdict_say(v, -EPERM, "memory policy %s %s node %u, which was%s asked", name,
                                           node_set_has(&nodes, id) ? "had" : "lacked", id,
                                           node_set_has(&nodes, id) ? " not" : "");
        return 0;
}

/* Node ids are keys, and so text. */
static int node_from_key(const char *key, unsigned *ret) {
        char *end = NULL;
        errno = 0;
        unsigned long id = strtoul(key, &end, 10);
        if (errno || end == key || *end || key[0] < '0' || key[0] > '9' || id >= SPEC_NODES_MAX)
                return -EINVAL;
        *ret = (unsigned) id;
        return 0;
}

/* The nodes that pages of a kind were promised to, NULL where the policy promises none. The stack is the thread's own;
 * all else carries messages. */
static const struct node_set *promised(const struct agent_placement *given, const char *what) {
        bool apart = given->buffer != MEMORY_DEFAULT && strcmp(what, "stack") != 0;
        enum memory_policy policy = apart ? given->buffer : given->memory;
        if (policy != MEMORY_BIND && policy != MEMORY_INTERLEAVE)
                return NULL;
        return apart ? &given->buffer_nodes : &given->memory_nodes;
}

static int check_unknown_pages(const struct verdict *v, const struct json *range, const char *what) {
        const struct json *reason = json_get(range, "reason");
        const char *text = NULL;
        if (!reason || json_as_string(reason, &text) < 0 || !text[0])
                return bad(v, "pages without nodes and without a reason");
        if (promised(v->given, what))
                return verdict_say(v, -EPERM, "where the %s's pages are cannot be proven: %.200s", what, text);
        return 0;
}

static int check_counted_pages(const struct verdict *v, const struct json *range, const struct json *nodes,
                               const char *what) {
        int64_t total = 0, absent = 0, sum = 0;
        const struct node_set *nodes_promised = promised(v->given, what);

        if (get_number(range, "total", &total) < 0 || get_number(range, "absent", &absent) < 0 || absent < 0)
                return bad(v, "total and absent pages");
        for (const struct json *node = json_first(nodes); node; node = json_next(node)) {
                unsigned id = 0;
                int64_t count = 0;
                if (node_from_key(json_key(node), &id) < 0 || json_as_i64(node, &count) < 0 || count < 0)
                        return bad(v, "pages by node");
                sum += count;
                if (count > 0 && nodes_promised && !node_set_has(nodes_promised, id))
                        return verdict_say(v, -EPERM,
                                           "%" PRId64 " of %" PRId64 " pages of the %s were on node %u, "
                                           "which was not asked",
                                           count, total, what, id);
        }
        return sum + absent == total ? 0 : bad(v, "pages by node do not add up to the total");
}

static int check_pages(const struct verdict *v, const struct json *root) {
        const struct json *pages = json_get(root, "pages");

        if (!pages || json_type(pages) != JSON_ARRAY)
                return bad(v, "pages");
        for (const struct json *range = json_first(pages); range; range = json_next(range)) {
                const struct json *what = json_get(range, "what"), *nodes = json_get(range, "nodes");
                const char *name = NULL;
                if (!what || json_as_string(what, &name) < 0 || !nodes)
                        return bad(v, "pages");
                int r = json_type(nodes) == JSON_NULL     ? check_unknown_pages(v, range, name)
                        : json_type(nodes) == JSON_OBJECT ? check_counted_pages(v, range, nodes, name)
                                                          : bad(v, "pages by node");
                if (r < 0)
                        return r;
        }
        return 0;
}

int placement_verify(const struct agent_placement *given, const char *proof_json, char *ret_detail) {
        const struct verdict v = {.given = given, .detail = ret_detail};
        struct json_error error;
        struct json *root = NULL;

        int r = json_parse(proof_json, strlen(proof_json), &root, &error);
        if (r == -EINVAL)
                return bad(&v, error.detail);
        if (r < 0)
                return r;
        r = json_type(root) == JSON_OBJECT ? check_process(&v, root) : bad(&v, "not an object");
        if (r == 0)
                r = check_threads(&v, root);
        if (r == 0)
                r = check_policy(&v, root);
        if (r == 0)
                r = check_pages(&v, root);
        json_free(root);
        return r;
}
