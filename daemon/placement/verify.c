/* SPDX-License-Identifier: MIT */
/*
 * Verifies that an agent's threads were where they were placed. The agent reports what the kernel returned, and this
 * file judges it; the text is untrusted. Called by the runner for the proof in ready and for the one in report. Pages
 * are verified in pages.c.
 */

#include "daemon/placement/verdict.h"

#include "schema/util.h"

#include <stdarg.h>
#include <string.h>

int verdict_fail(const struct verdict *v, int error, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        (void) vsnprintf(v->detail, PLACEMENT_DETAIL_MAX, format, ap);
        va_end(ap);
        return error;
}

int verdict_bad(const struct verdict *v, const char *what) {
        return verdict_fail(v, -EBADMSG, "the agent's proof of its placement is malformed: %s", what);
}

int verdict_number(const struct json *object, const char *key, int64_t *ret) {
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
        char who[64]; /* for messages */
};

static struct share share_of(const struct agent_placement *given, int64_t thread) {
        struct share s = {.cpus = given->cpus, .n = given->n_cpus, .text = ""};
        (void) snprintf(s.who, sizeof(s.who), "thread %" PRId64, thread);
        if (!given->roam && given->n_cpus) {
                s.cpus = &given->cpus[(size_t) thread % given->n_cpus];
                s.n = 1;
        }
        (void) cpus_text(s.cpus, s.n, s.text, sizeof(s.text));
        return s;
}

/* Every CPU in the list must be one of the share's. */
static int check_within(const struct verdict *v, const struct json *list, const struct share *s, const char *member,
                        const char *verb) {
        if (!list || json_type(list) != JSON_ARRAY || !json_first(list))
                return verdict_bad(v, member);
        for (const struct json *item = json_first(list); item; item = json_next(item)) {
                int64_t cpu = 0;
                if (json_as_i64(item, &cpu) < 0)
                        return verdict_bad(v, member);
                if (s->n && !has_cpu(s->cpus, s->n, cpu))
                        return verdict_fail(v, -EPERM, "%s %s CPU %" PRId64 " instead of %s", s->who, verb, cpu,
                                            s->text);
        }
        return 0;
}

/* A thread that is not placed may run on the CPUs that its process was started with, as long as nothing else has
 * changed them: with fewer CPUs, something outside the run has set its affinity. */
static int check_free(const struct verdict *v, const struct json *list, const struct share *s) {
        const struct json *want = json_first(v->started), *got = json_first(list);
        for (; want && got; want = json_next(want), got = json_next(got)) {
                int64_t cpu = -1, given = -1;
                if (json_as_i64(got, &cpu) < 0 || json_as_i64(want, &given) < 0)
                        return verdict_bad(v, "affinity");
                if (cpu != given)
                        return verdict_fail(v, -EPERM, "%s was %sallowed on CPU %" PRId64 ", its process was%s", s->who,
                                            cpu < given ? "" : "not ", cpu < given ? cpu : given,
                                            cpu < given ? " not" : "");
        }
        if (want || got)
                return verdict_fail(v, -EPERM, "%s was allowed on %zu CPUs, its process on %zu", s->who,
                                    json_length(list), json_length(v->started));
        return 0;
}

static int check_affinity(const struct verdict *v, const struct json *list, const struct share *s) {
        int r = check_within(v, list, s, "affinity", "was allowed on");
        if (r < 0)
                return r;
        if (s->n == 0)
                return check_free(v, list, s);
        if (json_length(list) != s->n)
                return verdict_fail(v, -EPERM, "%s was allowed on %zu of its %zu CPUs (%s)", s->who, json_length(list),
                                    s->n, s->text);
        return 0;
}

/* A thread that is pinned to one CPU and has migrated was elsewhere, even if no reading shows it there. Without the
 * kernel's count this cannot be known. */
static int check_migrations(const struct verdict *v, const struct json *proof, const struct share *s) {
        const struct json *count = json_get(proof, "migrations"), *reason = json_get(proof, "migrations_reason");
        const char *text = NULL;
        int64_t n = 0;
        if (count && json_type(count) == JSON_NULL) {
                if (!reason || json_as_string(reason, &text) < 0 || !text[0])
                        return verdict_bad(v, "migrations without a number and without a reason");
                v->doubts->migrations_unknown |= s->n == 1;
                return 0;
        }
        if (!count || json_as_i64(count, &n) < 0 || n < 0)
                return verdict_bad(v, "migrations");
        if (s->n == 1 && n > 0)
                return verdict_fail(v, -EPERM, "%s migrated %" PRId64 " times, though pinned to CPU %s", s->who, n,
                                    s->text);
        return 0;
}

static int check_thread(const struct verdict *v, const struct json *proof, int64_t index) {
        int64_t thread = -1, cpu = -1;

        if (json_type(proof) != JSON_OBJECT || verdict_number(proof, "thread", &thread) < 0 || thread != index)
                return verdict_bad(v, "thread");
        const struct share s = share_of(v->given, thread);
        int r = check_affinity(v, json_get(proof, "affinity"), &s);
        if (r < 0)
                return r;
        if (verdict_number(proof, "cpu", &cpu) < 0)
                return verdict_bad(v, "cpu");
        if (s.n && !has_cpu(s.cpus, s.n, cpu))
                return verdict_fail(v, -EPERM, "%s was on CPU %" PRId64 " instead of %s", s.who, cpu, s.text);
        r = check_within(v, json_get(proof, "cpus_seen"), &s, "cpus_seen", "ran on");
        return r < 0 ? r : check_migrations(v, proof, &s);
}

/* Threads that are reported as a group, verified against the placement of one of them. Where every thread has all of
 * the CPUs, one stands for all. */
static int check_group_thread(const struct verdict *v, const struct json *group, int64_t thread, size_t n) {
        struct share s = share_of(v->given, thread);
        (void) snprintf(s.who, sizeof(s.who), "one of %zu threads (%" PRId64 " is one)", n, thread);
        int r = check_affinity(v, json_get(group, "affinity"), &s);
        if (r == 0)
                r = check_within(v, json_get(group, "cpus"), &s, "cpus", "was on");
        if (r == 0)
                r = check_within(v, json_get(group, "cpus_seen"), &s, "cpus_seen", "ran on");
        return r < 0 ? r : check_migrations(v, group, &s);
}

/* Threads that the proof has reported. */
struct reported {
        bool of[SPEC_THREADS_MAX];
        int64_t n;
};

static int mark_reported(const struct verdict *v, struct reported *t, int64_t thread) {
        if (thread < 0 || thread >= (int64_t) SPEC_THREADS_MAX || t->of[thread])
                return verdict_bad(v, "thread");
        t->of[thread] = true;
        t->n++;
        return 0;
}

static int check_group(const struct verdict *v, const struct json *group, struct reported *reported) {
        const struct json *threads = json_type(group) == JSON_OBJECT ? json_get(group, "threads") : NULL;
        bool one_each = v->given->n_cpus > 0 && !v->given->roam;
        if (!threads || json_type(threads) != JSON_ARRAY || !json_first(threads))
                return verdict_bad(v, "threads_together");
        for (const struct json *item = json_first(threads); item; item = json_next(item)) {
                int64_t thread = -1;
                int r = json_as_i64(item, &thread) < 0 ? verdict_bad(v, "threads_together")
                                                       : mark_reported(v, reported, thread);
                if (r == 0 && (item == json_first(threads) || one_each))
                        r = check_group_thread(v, group, thread, json_length(threads));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_together(const struct verdict *v, const struct json *root, struct reported *reported) {
        const struct json *together = json_get(root, "threads_together");
        if (together && (json_type(together) != JSON_ARRAY || !json_first(together)))
                return verdict_bad(v, "threads_together");
        for (const struct json *c = together ? json_first(together) : NULL; c; c = json_next(c)) {
                int r = check_group(v, c, reported);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Every thread is reported once: one by one from the first on, or in a group. */
static int check_threads(const struct verdict *v, const struct json *root, int64_t *ret_total) {
        const struct json *threads = json_get(root, "threads");
        struct reported reported = {.n = 0};

        if (!threads || json_type(threads) != JSON_ARRAY ||
            (!json_first(threads) && !json_get(root, "threads_together")))
                return verdict_bad(v, "threads");
        for (const struct json *thread = json_first(threads); thread; thread = json_next(thread)) {
                int r = check_thread(v, thread, reported.n);
                if (r == 0)
                        r = mark_reported(v, &reported, reported.n);
                if (r < 0)
                        return r;
        }
        int r = check_together(v, root, &reported);
        if (r < 0)
                return r;
        int64_t total = reported.n;
        if (json_get(root, "threads_total") && verdict_number(root, "threads_total", &total) < 0)
                return verdict_bad(v, "threads_total");
        if (total != reported.n)
                return verdict_bad(v, "some threads are missing");
        *ret_total = total;
        return 0;
}

/* The process was started with its workers' CPUs and its leader's, and with no other. */
static int check_process(const struct verdict *v, const struct json *root) {
        const struct json *list = json_get(root, "affinity");
        const struct agent_placement *given = v->given;

        if (!list || json_type(list) != JSON_ARRAY || !json_first(list))
                return verdict_bad(v, "affinity");
        for (const struct json *item = json_first(list); item; item = json_next(item)) {
                int64_t cpu = 0;
                if (json_as_i64(item, &cpu) < 0)
                        return verdict_bad(v, "affinity");
                if (given->n_cpus && !has_cpu(given->cpus, given->n_cpus, cpu) &&
                    !has_cpu(given->leader_cpus, given->n_leader_cpus, cpu))
                        return verdict_fail(v, -EPERM,
                                            "the agent was started on CPU %" PRId64 ", which it was not given", cpu);
        }
        return 0;
}

/* A leader with CPUs of its own must be there: elsewhere it may take time from the measured threads, and the stored
 * placement would be wrong. */
static int check_leader(const struct verdict *v, const struct json *root) {
        const struct json *leader = json_get(root, "leader");
        const struct agent_placement *given = v->given;
        const struct json *list = leader && json_type(leader) == JSON_OBJECT ? json_get(leader, "affinity") : NULL;
        int64_t cpu = -1;

        if (!list || json_type(list) != JSON_ARRAY || !json_first(list) || verdict_number(leader, "cpu", &cpu) < 0)
                return verdict_bad(v, "leader");
        if (given->n_leader_cpus == 0)
                return 0;
        if (!has_cpu(given->leader_cpus, given->n_leader_cpus, cpu))
                return verdict_fail(v, -EPERM, "the leader was on CPU %" PRId64 ", which it was not given", cpu);
        for (const struct json *item = json_first(list); item; item = json_next(item)) {
                if (json_as_i64(item, &cpu) < 0)
                        return verdict_bad(v, "leader");
                if (!has_cpu(given->leader_cpus, given->n_leader_cpus, cpu))
                        return verdict_fail(v, -EPERM,
                                            "the leader was allowed on CPU %" PRId64 ", which it was not given", cpu);
        }
        return 0;
}

static int take_policy_nodes(const struct verdict *v, const struct json *root, struct node_set *ret) {
        const struct json *list = json_get(root, "policy_nodes");
        if (!list || json_type(list) != JSON_ARRAY)
                return verdict_bad(v, "policy_nodes");
        for (const struct json *item = json_first(list); item; item = json_next(item)) {
                int64_t id = 0;
                if (json_as_i64(item, &id) < 0 || id < 0 || id >= SPEC_NODES_MAX)
                        return verdict_bad(v, "policy_nodes");
                node_set_add(ret, (unsigned) id);
        }
        return 0;
}

/* Before 5.14 the kernel reports "local" as preferred without a node. */
static bool same_policy(enum memory_policy given, enum memory_policy reported, bool has_nodes) {
        return given == reported || (given == MEMORY_LOCAL && reported == MEMORY_PREFERRED && !has_nodes);
}

static int check_policy(const struct verdict *v, const struct json *root) {
        const struct json *word = json_get(root, "policy");
        const char *name = NULL;
        enum memory_policy policy = MEMORY_DEFAULT;
        struct node_set nodes = {0};
        static const struct node_set none;

        if (word && json_type(word) == JSON_NULL && v->given->memory == MEMORY_DEFAULT)
                return 0; /* a kernel that does not report it was given no policy */
        if (!word || json_as_string(word, &name) < 0 || memory_policy_from_name(name, &policy) < 0)
                return verdict_bad(v, "policy");
        int r = take_policy_nodes(v, root, &nodes);
        if (r < 0)
                return r;
        if (!same_policy(v->given->memory, policy, memcmp(&nodes, &none, sizeof(none)) != 0))
                return verdict_fail(v, -EPERM, "memory policy was %s instead of %s", name,
                                    memory_policy_name(v->given->memory));
        if (memcmp(&nodes, &v->given->memory_nodes, sizeof(nodes)) == 0)
                return 0;
        for (unsigned id = 0; id < SPEC_NODES_MAX; id++)
                if (node_set_has(&nodes, id) != node_set_has(&v->given->memory_nodes, id))
                        return verdict_fail(v, -EPERM, "memory policy %s %s node %u, which was%s given", name,
                                            node_set_has(&nodes, id) ? "had" : "lacked", id,
                                            node_set_has(&nodes, id) ? " not" : "");
        return 0;
}

int placement_verify(const struct agent_placement *given, const struct point *point, enum end end,
                     const struct json *proof, struct placement_doubts *doubts, char *ret_detail) {
        struct verdict v = {.given = given, .point = point, .end = end, .detail = ret_detail, .doubts = doubts};
        int64_t threads = 0;

        int r = json_type(proof) == JSON_OBJECT ? check_process(&v, proof) : verdict_bad(&v, "not an object");
        v.started = r == 0 ? json_get(proof, "affinity") : NULL;
        if (r == 0)
                r = check_threads(&v, proof, &threads);
        if (r == 0)
                r = check_leader(&v, proof);
        if (r == 0)
                r = check_policy(&v, proof);
        if (r == 0)
                r = placement_check_pages(&v, proof, threads);
        return r;
}
