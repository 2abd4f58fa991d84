/* SPDX-License-Identifier: MIT */
/* Proofs of placement that hold and that do not. */

#include "tests/unit/check.h"
#include "tests/unit/proof-report.h"

#include "daemon/placement/placement.h"
#include "schema/detail.h"
#include "schema/util.h"

#include <stdlib.h>

/* Members of a proof as JSON; NULL: what is right for `pinned` below, one pinned thread. */
struct texts {
        const char *affinity, *leader, *policy, *policy_nodes, *threads, *total, *together, *pages;
};

#define THREAD(index, affinity, cpu, seen) MOVED(index, affinity, cpu, seen, "0")
#define MOVED(index, affinity, cpu, seen, times)                                                                       \
        "{\"thread\":" index ",\"tid\":4711,\"affinity\":" affinity ",\"cpu\":" cpu ",\"node\":0,\"cpus_seen\":" seen  \
        ",\"migrations\":" times "}"
#define UNKNOWN "null,\"migrations_reason\":\"no such file\""
#define RANGE(what, thread, total, nodes, more)                                                                        \
        "{\"what\":\"" what "\",\"thread\":" thread ",\"total\":" total ",\"nodes\":{" nodes "}," more "}"
#define STAYED(seen) "\"absent\":0,\"nodes_seen\":" seen ",\"moved\":0"
#define ABSENT(n, errors) "\"absent\":" n ",\"absent_errors\":{" errors "},\"nodes_seen\":[2],\"moved\":0"
#define PAGES(what) RANGE(what, "0", "4", "\"2\":4", STAYED("[2]"))
#define STACK PAGES("stack")
#define BUFFER PAGES("buffer")
#define LEADER(affinity, cpu) "{\"tid\":4712,\"affinity\":" affinity ",\"cpu\":" cpu "}"

struct proof_case {
        struct texts proof;
        int r;
        const char *detail; /* how it begins */
};

static const char *or_else(const char *text, const char *standard) {
        return text ? text : standard;
}

static char *proof_text(const struct texts *p) {
        char *text = NULL;
        if (asprintf(&text,
                     "{\"affinity\":%s,\"leader\":%s,\"policy\":%s,\"policy_nodes\":%s,\"threads\":[%s],"
                     "\"threads_total\":%s,\"pages_placed_together\":%s,\"pages\":[%s]}",
                     or_else(p->affinity, "[1,5]"), or_else(p->leader, LEADER("[5]", "5")),
                     or_else(p->policy, "\"bind\""), or_else(p->policy_nodes, "[2]"),
                     or_else(p->threads, THREAD("0", "[1]", "1", "[1]")), or_else(p->total, "1"),
                     or_else(p->together, "1"), or_else(p->pages, STACK "," BUFFER)) < 0)
                abort();
        return text;
}

static int verify(const struct agent_placement *given, const struct point *point, enum end end, const char *text,
                  struct placement_doubts *doubts, char *ret_detail) {
        PROOF *proof = proof_report_of(text);
        int r = proof_report_check(proof, ret_detail); /* as a message's decoder has it checked */
        return r < 0 ? r : placement_verify(given, point, end, proof, doubts, ret_detail);
}

static struct point make_point(enum workload w, enum transport t) {
        return (struct point){.workload = w, .transport = t, .message_size = 4096, .threads = 1};
}

static void check_proofs(const struct agent_placement *given, const struct point *point, enum end end,
                         const struct proof_case *cases, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char detail[DETAIL_MAX] = "";
                struct placement_doubts doubts = {0};
                _cleanup_free_ char *text = proof_text(&cases[i].proof);
                int r = verify(given, point, end, text, &doubts, detail);
                if (r != cases[i].r || strncmp(detail, cases[i].detail, strlen(cases[i].detail)) != 0 ||
                    (r == 0) != (detail[0] == '\0'))
                        CHECK_FAIL("%s\n got      %d %s\n expected %d %s", text, r, detail, cases[i].r,
                                   cases[i].detail);
        }
}

static void check_pinned(const struct proof_case *cases, size_t n) {
        int32_t cpus[] = {1}, leader[] = {5};
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        struct agent_placement given = {
                .cpus = cpus, .n_cpus = 1, .leader_cpus = leader, .n_leader_cpus = 1, .memory = MEMORY_BIND};
        node_set_add(&given.memory_nodes, 2);
        check_proofs(&given, &point, END_FIRST, cases, n);
}

#define BROKEN "the agent's proof of its placement is malformed: "

static void threads_where_they_were_put(void) {
        static const struct proof_case cases[] = {
                {{.affinity = NULL}, 0, ""},
                {{.affinity = "[1]"}, 0, ""},
                {{.affinity = "[1,2]"}, -EPERM, "the agent was started on CPU 2, which it was not given"},
                {{.affinity = "[]"}, -EBADMSG, BROKEN "affinity"},
                {{.threads = THREAD("0", "[1,3]", "1", "[1]")}, -EPERM, "thread 0 was allowed on CPU 3 instead of 1"},
                {{.threads = THREAD("0", "[1]", "3", "[1]")}, -EPERM, "thread 0 was on CPU 3 instead of 1"},
                {{.threads = THREAD("0", "[1]", "1", "[1,3]")}, -EPERM, "thread 0 ran on CPU 3 instead of 1"},
                {{.threads = MOVED("0", "[1]", "1", "[1]", "2")},
                 -EPERM,
                 "thread 0 migrated 2 times, though pinned to CPU 1"},
                {{.threads = MOVED("0", "[1]", "1", "[1]", UNKNOWN)}, 0, ""},
                {{.threads = THREAD("0", "[]", "1", "[1]")}, -EBADMSG, BROKEN "affinity"},
                {{.threads = THREAD("0", "[8192]", "1", "[1]")}, -EBADMSG, BROKEN "affinity"},
                {{.threads = THREAD("0", "[1,1]", "1", "[1]")}, -EBADMSG, BROKEN "affinity"},
                {{.threads = THREAD("0", "[1]", "8192", "[1]")}, -EBADMSG, BROKEN "cpu"},
                {{.threads = THREAD("0", "[1]", "1", "[]")}, -EBADMSG, BROKEN "cpus_seen"},
                {{.threads = ""}, -EBADMSG, BROKEN "threads"},
                {{.total = "2"}, -EBADMSG, BROKEN "some threads are missing"},
                {{.total = "0"}, -EBADMSG, BROKEN "some threads are missing"},
        };
        check_pinned(cases, ELEMENTS(cases));
}

#define COMPANY(threads, affinity, cpus, seen, times)                                                                  \
        "{\"threads\":" threads ",\"affinity\":" affinity ",\"cpus\":" cpus ",\"nodes\":[0],\"cpus_seen\":" seen       \
        ",\"migrations\":" times "}"
#define BESIDE(first, companies) first "],\"threads_together\":[" companies

/* Thread i has CPU 1 or CPU 3, or (roam) both; the first may be reported by itself. */
static void check_companies(bool roam, const struct proof_case *cases, size_t n) {
        int32_t cpus[] = {1, 3};
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        const struct agent_placement given = {.cpus = cpus, .n_cpus = 2, .roam = roam};
        for (size_t i = 0; i < n; i++) {
                struct proof_case c = cases[i];
                c.proof.affinity = "[1,3]";
                c.proof.policy = "\"default\"";
                c.proof.policy_nodes = "[]";
                c.proof.pages = "";
                check_proofs(&given, &point, END_FIRST, &c, 1);
        }
}

static void threads_that_are_reported_together(void) {
        static const struct proof_case pinned[] = {
                {{.threads = BESIDE(
                          "", COMPANY("[0,2]", "[1]", "[1]", "[1]", "0") "," COMPANY("[1]", "[3]", "[3]", "[3]", "0")),
                  .total = "3"},
                 0,
                 ""},
                {{.threads = BESIDE(
                          THREAD("0", "[1]", "1", "[1]"),
                          COMPANY("[1,3]", "[3]", "[3]", "[3]", UNKNOWN) "," COMPANY("[2]", "[1]", "[1]", "[1]", "0")),
                  .total = "4"},
                 0,
                 ""},
                /* thread 1 has another CPU */
                {{.threads = BESIDE("", COMPANY("[0,1]", "[1]", "[1]", "[1]", "0")), .total = "2"},
                 -EPERM,
                 "one of 2 threads (1 is one) was allowed on CPU 1 instead of 3"},
                {{.threads = BESIDE("", COMPANY("[0,2]", "[1]", "[1]", "[1,3]", "0") "," COMPANY("[1]", "[3]", "[3]",
                                                                                                 "[3]", "0")),
                  .total = "3"},
                 -EPERM,
                 "one of 2 threads (0 is one) ran on CPU 3 instead of 1"},
                {{.threads = BESIDE("", COMPANY("[0]", "[1]", "[1,3]", "[1]", "0")), .total = "1"},
                 -EPERM,
                 "one of 1 threads (0 is one) was on CPU 3 instead of 1"},
                {{.threads = BESIDE("", COMPANY("[0,2]", "[1]", "[1]", "[1]", "1")), .total = "3"},
                 -EPERM,
                 "one of 2 threads (0 is one) migrated 1 times"},
                {{.threads = BESIDE("", COMPANY("[0,2]", "[1]", "[1]", "[1]", "0")), .total = "3"},
                 -EBADMSG,
                 BROKEN "some threads are missing"},
                {{.threads = BESIDE("", COMPANY("[0,0]", "[1]", "[1]", "[1]", "0")), .total = "2"},
                 -EBADMSG,
                 BROKEN "thread"},
                {{.threads = BESIDE(THREAD("0", "[1]", "1", "[1]"), COMPANY("[0]", "[1]", "[1]", "[1]", "0")),
                  .total = "2"},
                 -EBADMSG,
                 BROKEN "thread"},
                {{.threads = BESIDE("", COMPANY("[1024]", "[1]", "[1]", "[1]", "0")), .total = "1"},
                 -EBADMSG,
                 BROKEN "thread"},
                {{.threads = BESIDE("", COMPANY("[]", "[1]", "[1]", "[1]", "0")), .total = "0"},
                 -EBADMSG,
                 BROKEN "threads_together"},
                {{.threads = BESIDE("", COMPANY("[0]", "[1]", "[]", "[1]", "0")), .total = "1"},
                 -EBADMSG,
                 BROKEN "cpus"},
                {{.threads = BESIDE("", "7"), .total = "0"}, -EBADMSG, BROKEN "threads_together"},
        };
        static const struct proof_case roaming[] = {
                {{.threads = BESIDE("", COMPANY("[0,1]", "[1,3]", "[1,3]", "[1,3]", "9")), .total = "2"}, 0, ""},
                {{.threads = BESIDE("", COMPANY("[0,1]", "[1]", "[1]", "[1]", "0")), .total = "2"},
                 -EPERM,
                 "one of 2 threads (0 is one) was allowed on 1 of its 2 CPUs (1,3)"},
        };
        check_companies(false, pinned, ELEMENTS(pinned));
        check_companies(true, roaming, ELEMENTS(roaming));
}

static void leader_where_it_was_put(void) {
        static const struct proof_case cases[] = {
                {{.leader = LEADER("[5]", "1")}, -EPERM, "the leader was on CPU 1, which it was not given"},
                {{.leader = LEADER("[1,5]", "5")}, -EPERM, "the leader was allowed on CPU 1, which it was not given"},
                {{.leader = LEADER("[]", "5")}, -EBADMSG, BROKEN "leader"},
                {{.leader = LEADER("[5]", "8192")}, -EBADMSG, BROKEN "leader"},
                {{.leader = "null"}, -EBADMSG, BROKEN "leader"},
        };
        check_pinned(cases, ELEMENTS(cases));
}

static void policy_that_was_given(void) {
        static const struct proof_case cases[] = {
                {{.policy = "\"default\"", .policy_nodes = "[]"}, -EPERM, "memory policy was default instead of bind"},
                {{.policy = "null"}, -EBADMSG, BROKEN "policy"},
                {{.policy = "\"nearby\""}, -EBADMSG, BROKEN "policy"},
                {{.policy_nodes = "[0,2]"}, -EPERM, "memory policy bind had node 0, which was not given"},
                {{.policy_nodes = "[]"}, -EPERM, "memory policy bind lacked node 2, which was given"},
        };
        check_pinned(cases, ELEMENTS(cases));
}

static void pages_where_they_were_put(void) {
        static const struct proof_case cases[] = {
                {{.pages = STACK "," RANGE("buffer", "0", "16", "\"2\":14", ABSENT("2", "\"ENOENT\":2"))}, 0, ""},
                {{.pages = STACK "," BUFFER "," BUFFER}, 0, ""},
                {{.pages = STACK "," RANGE("buffer", "0", "16", "\"0\":1,\"2\":15", STAYED("[0,2]"))},
                 -EPERM,
                 "1 of 16 pages of the buffer were on node 0, which its policy does not include"},
                {{.pages = STACK ",{\"what\":\"ring\",\"thread\":0,\"total\":1,\"nodes\":null,\"reason\":\"EPERM\"}"},
                 -EPERM,
                 "the nodes of the pages of the ring are unknown: Operation not permitted"},
                {{.pages = RANGE("stack", "0", "17", "\"2\":14", ABSENT("2", "\"ENOENT\":2"))}, -EBADMSG, BROKEN},
                {{.pages = RANGE("stack", "0", "1", "\"1024\":1", STAYED("[2]"))}, -EBADMSG, BROKEN "pages by node"},
                {{.pages = RANGE("stack", "0", "0", "\"2\":0", STAYED("[2]"))}, -EBADMSG, BROKEN "pages by node"},
                {{.pages = RANGE("stack", "0", "2", "\"2\":1,\"0\":1", STAYED("[2]"))}, -EBADMSG, BROKEN "pages by"},
                {{.pages = RANGE("stack", "0", "1", "\"2\":1", STAYED("[1024]"))}, -EBADMSG, BROKEN "nodes_seen"},
                {{.pages = RANGE("heap", "0", "1", "\"2\":1", STAYED("[2]"))}, -EBADMSG, BROKEN "pages"},
                {{.pages = RANGE("stack", "0", "0", "\"2\":-1", ABSENT("1", "\"ENOENT\":1"))}, -EBADMSG, BROKEN},
                {{.pages = RANGE("stack", "1", "4", "\"2\":4", STAYED("[2]"))}, -EBADMSG, BROKEN "the thread of pages"},
                {{.pages = RANGE("stack", "-1", "4", "\"2\":4", STAYED("[2]"))}, -EBADMSG, BROKEN "the thread"},
                {{.together = "0"}, -EBADMSG, BROKEN "pages_placed_together"},
        };
        check_pinned(cases, ELEMENTS(cases));
}

/* A proof without pages is refused. */
static void pages_that_are_not_shown(void) {
        static const struct proof_case cases[] = {
                {{.pages = ""}, -EPERM, "the proof lacks the pages of the stack of thread 0"},
                {{.pages = STACK}, -EPERM, "the proof lacks the pages of the buffer of thread 0"},
                {{.pages = BUFFER}, -EPERM, "the proof lacks the pages of the stack of thread 0"},
                {{.pages = STACK "," RANGE("buffer", "0", "0", "", STAYED("[]"))},
                 -EPERM,
                 "none of the 0 pages of the buffer is present"},
                {{.pages = STACK "," RANGE("buffer", "0", "9", "", ABSENT("9", "\"ENOENT\":9"))},
                 -EPERM,
                 "none of the 9 pages of the buffer is present"},
                {{.pages = STACK "," RANGE("buffer", "0", "9", "\"2\":8", ABSENT("1", "\"EFAULT\":1"))},
                 -EPERM,
                 "1 of 9 pages of the buffer are not mapped (EFAULT)"},
                {{.pages = STACK
                  "," RANGE("buffer", "0", "9", "\"2\":8", "\"absent\":1,\"nodes_seen\":[2],\"moved\":0")},
                 -EBADMSG,
                 BROKEN "pages by node do not add up"},
                {{.pages = STACK "," BUFFER "," RANGE("page_cache", "0", "9", "", ABSENT("9", "\"ENOENT\":9"))}, 0, ""},
        };
        check_pinned(cases, ELEMENTS(cases));
}

static void pages_that_moved(void) {
        static const struct proof_case cases[] = {
                {{.pages = BUFFER "," RANGE("stack", "0", "4", "\"2\":4", STAYED("[0,2]"))},
                 -EPERM,
                 "pages of the stack were meanwhile on node 0, which its policy does not include"},
                {{.pages = BUFFER
                  "," RANGE("stack", "0", "4", "\"2\":4", "\"absent\":0,\"nodes_seen\":[2],\"moved\":1")},
                 -EPERM,
                 "1 of 4 pages of the stack were moved to another node"},
                {{.pages = RANGE("stack", "0", "4", "\"2\":4", "\"absent\":0,\"nodes_seen\":[2],\"moved\":5")},
                 -EBADMSG,
                 BROKEN "moved"},
        };
        check_pinned(cases, ELEMENTS(cases));
}

/* Preferred and local promise no node; but nothing that was placed under them may wander, either. */
static void roaming_threads(void) {
#define ROAMING .affinity = "[1,3]", .policy = "\"local\"", .policy_nodes = "[]"
#define ANYWHERE                                                                                                       \
        .pages = RANGE("stack", "0", "4", "\"0\":3,\"1\":1", STAYED("[0,1]")) "," RANGE("buffer", "0", "1", "\"0\":1", \
                                                                                        STAYED("[0]"))
        static const struct proof_case cases[] = {
                {{ROAMING, ANYWHERE, .threads = THREAD("0", "[1,3]", "3", "[1,3]")}, 0, ""},
                {{ANYWHERE, .affinity = "[1,3]", .policy = "\"preferred\"", .policy_nodes = "[]",
                  .threads = THREAD("0", "[1,3]", "3", "[1]")},
                 0,
                 ""},
                {{ROAMING, ANYWHERE, .threads = MOVED("0", "[1,3]", "3", "[1,3]", "7")}, 0, ""},
                {{ROAMING, .threads = THREAD("0", "[1,3]", "3", "[1]"),
                  .pages = BUFFER
                  "," RANGE("stack", "0", "4", "\"1\":4", "\"absent\":0,\"nodes_seen\":[1,2],\"moved\":4")},
                 -EPERM,
                 "4 of 4 pages of the stack were moved to another node"},
                {{ROAMING, .threads = THREAD("0", "[1,3]", "3", "[1]"), .pages = STACK},
                 -EPERM,
                 "the proof lacks the pages of the buffer of thread 0"},
                {{ROAMING, .threads = THREAD("0", "[1]", "1", "[1]")},
                 -EPERM,
                 "thread 0 was allowed on 1 of its 2 CPUs (1,3)"},
                {{ROAMING, .threads = THREAD("0", "[1,3]", "1", "[1,2]")},
                 -EPERM,
                 "thread 0 ran on CPU 2 instead of 1,3"},
                {{.affinity = "[1,3]",
                  .policy = "\"preferred\"",
                  .policy_nodes = "[1]",
                  .threads = THREAD("0", "[1,3]", "3", "[1]")},
                 -EPERM,
                 "memory policy was preferred instead of local"},
        };
        int32_t cpus[] = {1, 3};
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        const struct agent_placement given = {.cpus = cpus, .n_cpus = 2, .roam = true, .memory = MEMORY_LOCAL};
        check_proofs(&given, &point, END_FIRST, cases, ELEMENTS(cases));
}

static void buffers_apart(void) {
#define ON_4(what) RANGE(what, "0", "2", "\"4\":2", STAYED("[4]"))
#define GONE(n, seen) "\"absent\":" n ",\"absent_errors\":{\"ENOENT\":" n "},\"nodes_seen\":" seen ",\"moved\":0"
        static const struct proof_case cases[] = {
                {{.pages = STACK "," ON_4("buffer")}, 0, ""},
                {{.pages = STACK "," ON_4("buffer") "," PAGES("semaphores")}, 0, ""},
                {{.pages = STACK "," ON_4("buffer") "," ON_4("page_cache")}, 0, ""},
                {{.pages = STACK "," ON_4("buffer") "," PAGES("page_cache")},
                 -EPERM,
                 "4 of 4 pages of the page_cache were on node 2, which its policy does not include"},
                /* what was dropped from the cache was on the right node, and proves nothing else */
                {{.pages = STACK "," ON_4("buffer") "," RANGE("page_cache", "0", "9", "\"4\":1", GONE("8", "[4]"))},
                 0,
                 ""},
                {{.pages = STACK "," ON_4("buffer") "," RANGE("page_cache", "0", "9", "", GONE("9", "[4]"))}, 0, ""},
                {{.pages = STACK "," ON_4("buffer") "," RANGE("page_cache", "0", "9", "", GONE("9", "[2,4]"))},
                 -EPERM,
                 "pages of the page_cache were meanwhile on node 2, which its policy does not include"},
                {{.pages = STACK "," BUFFER},
                 -EPERM,
                 "4 of 4 pages of the buffer were on node 2, which its policy does not include"},
                {{.pages = ON_4("stack") "," ON_4("buffer")},
                 -EPERM,
                 "2 of 2 pages of the stack were on node 4, which its policy does not include"},
        };
        int32_t cpus[] = {1};
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        struct agent_placement given = {.cpus = cpus, .n_cpus = 1, .memory = MEMORY_BIND, .buffer = MEMORY_BIND};
        node_set_add(&given.memory_nodes, 2);
        node_set_add(&given.buffer_nodes, 4);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct proof_case c = cases[i];
                c.proof.affinity = "[1]";
                check_proofs(&given, &point, END_FIRST, &c, 1);
        }
}

/* A ring belongs to its reader, which must show it. */
static void rings_are_shown_by_their_readers(void) {
        static const struct proof_case without = {
                {.affinity = "[1]"}, -EPERM, "the proof lacks the pages of the ring of thread 0"};
        static const struct proof_case allowed = {{.affinity = "[1]"}, 0, ""};
        static const struct proof_case with = {{.affinity = "[1]", .pages = STACK "," BUFFER "," PAGES("ring")}, 0, ""};
        static const enum transport shared[] = {TRANSPORT_SHM_POSIX, TRANSPORT_SHM_SYSV, TRANSPORT_MMAP_FILE,
                                                TRANSPORT_MMAP_ANONYMOUS};
        int32_t cpus[] = {1};
        struct agent_placement given = {.cpus = cpus, .n_cpus = 1, .memory = MEMORY_BIND};
        node_set_add(&given.memory_nodes, 2);
        for (size_t i = 0; i < ELEMENTS(shared); i++) {
                struct point p = make_point(WORKLOAD_STREAM, shared[i]);
                check_proofs(&given, &p, END_FIRST, &allowed, 1);
                check_proofs(&given, &p, END_SECOND, &without, 1);
                check_proofs(&given, &p, END_SECOND, &with, 1);
                p.workload = WORKLOAD_PINGPONG;
                check_proofs(&given, &p, END_FIRST, &without, 1);
                check_proofs(&given, &p, END_FIRST, &with, 1);
        }
}

/* A system call moves no messages; a context switch walks over working sets, if any. */
static void workloads_without_messages(void) {
        static const struct proof_case without = {{.affinity = "[1]", .pages = STACK}, 0, ""};
        static const struct proof_case due = {
                {.affinity = "[1]", .pages = STACK}, -EPERM, "the proof lacks the pages of the buffer of thread 0"};
        int32_t cpus[] = {1};
        struct agent_placement given = {.cpus = cpus, .n_cpus = 1, .memory = MEMORY_BIND};
        struct point p = {.workload = WORKLOAD_SYSCALL, .threads = 1};
        node_set_add(&given.memory_nodes, 2);
        check_proofs(&given, &p, END_FIRST, &without, 1);
        p.workload = WORKLOAD_CONTEXT_SWITCH;
        check_proofs(&given, &p, END_FIRST, &without, 1);
        p.working_set = 1;
        check_proofs(&given, &p, END_FIRST, &due, 1);
}

/* With very many threads each kind of pages is reported at once. */
static void pages_of_all_threads_together(void) {
#define TOGETHER(what, n) "{\"what\":\"" what "\",\"threads\":" n ",\"total\":9,\"nodes\":{\"2\":9}," STAYED("[2]") "}"
#define TWO THREAD("0", "[1]", "1", "[1]") "," THREAD("1", "[3]", "3", "[3]")
        static const struct proof_case cases[] = {
                {{.threads = TWO, .total = "2", .pages = TOGETHER("stack", "2") "," TOGETHER("buffer", "2")}, 0, ""},
                {{.threads = TWO, .total = "2", .pages = TOGETHER("stack", "2") "," TOGETHER("buffer", "4")},
                 -EBADMSG,
                 BROKEN "the thread of pages"},
                {{.threads = TWO, .total = "2", .pages = TOGETHER("stack", "2") "," TOGETHER("buffer", "1")},
                 -EPERM,
                 "the proof lacks the pages of the buffer of thread 0"},
                {{.threads = TWO, .total = "2", .pages = TOGETHER("stack", "0")}, -EBADMSG, BROKEN "the thread"},
                {{.threads = TWO, .total = "2", .pages = STACK "," BUFFER},
                 -EPERM,
                 "the proof lacks the pages of the stack of thread 1"},
        };
        int32_t cpus[] = {1, 3};
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        struct agent_placement given = {.cpus = cpus, .n_cpus = 2, .memory = MEMORY_BIND};
        node_set_add(&given.memory_nodes, 2);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct proof_case c = cases[i];
                c.proof.affinity = "[1]";
                check_proofs(&given, &point, END_FIRST, &c, 1);
        }
}

/* Interleaved pages that all lie on one of the nodes are not interleaved. */
static void interleaving_is_spread(void) {
#define INTERLEAVED .affinity = "[1]", .policy = "\"interleave\"", .policy_nodes = "[2,4]"
#define FEW RANGE("stack", "0", "1", "\"2\":1", STAYED("[2]"))
#define SPREAD(total, nodes) .pages = FEW "," RANGE("buffer", "0", total, nodes, STAYED("[2,4]"))
        static const struct proof_case cases[] = {
                {{INTERLEAVED, SPREAD("40", "\"2\":20,\"4\":20")}, 0, ""},
                {{INTERLEAVED, SPREAD("40", "\"2\":31,\"4\":9")}, 0, ""},
                {{INTERLEAVED, SPREAD("40", "\"2\":37,\"4\":3")},
                 -EPERM,
                 "3 of 41 pages were on node 4, interleaved over 2 nodes"},
                {{INTERLEAVED, SPREAD("40", "\"2\":40")},
                 -EPERM,
                 "0 of 41 pages were on node 4, interleaved over 2 nodes"},
                {{INTERLEAVED, SPREAD("6", "\"2\":6")}, 0, ""}, /* too few to judge */
                {{INTERLEAVED, SPREAD("40", "\"2\":40"), .together = "512"}, 0, ""},
                {{INTERLEAVED, SPREAD("5120", "\"2\":5120"), .together = "512"},
                 -EPERM,
                 "0 of 5121 pages were on node 4"},
                {{INTERLEAVED, SPREAD("40", "\"2\":20,\"5\":20")},
                 -EPERM,
                 "20 of 40 pages of the buffer were on node 5, which its policy does not include"},
        };
        int32_t cpus[] = {1};
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        struct agent_placement given = {.cpus = cpus, .n_cpus = 1, .memory = MEMORY_INTERLEAVE};
        node_set_add(&given.memory_nodes, 2);
        node_set_add(&given.memory_nodes, 4);
        check_proofs(&given, &point, END_FIRST, cases, ELEMENTS(cases));
}

static void no_placement(void) {
#define FREE_ON(cpus) .affinity = "[0,1]", .threads = THREAD("0", cpus, "1", "[0,1]")
#define FREE FREE_ON("[0,1]")
        static const struct proof_case cases[] = {
                {{FREE, .policy = "\"default\"", .policy_nodes = "[]"}, 0, ""},
                {{FREE, .policy = "\"default\"", .policy_nodes = "[]", .pages = ""}, 0, ""},
                {{FREE, .policy = "\"default\"", .policy_nodes = "[]", .total = "100", .pages = ""},
                 -EBADMSG,
                 BROKEN "some threads are missing"},
                {{FREE, .policy = "\"default\"", .policy_nodes = "[]",
                  .pages = RANGE("stack", "0", "4", "\"2\":4", "\"absent\":0,\"nodes_seen\":[1,2],\"moved\":4")},
                 0,
                 ""},
                {{FREE, .policy = "null", .policy_nodes = "[]",
                  .pages = "{\"what\":\"stack\",\"thread\":0,\"nodes\":null,\"reason\":\"no NUMA\"}"},
                 0,
                 ""},
                {{FREE, .policy = "\"bind\"", .policy_nodes = "[0]"},
                 -EPERM,
                 "memory policy was bind instead of default"},
                {{FREE_ON("[1]"), .policy = "\"default\"", .policy_nodes = "[]"},
                 -EPERM,
                 "thread 0 was not allowed on CPU 0, its process was"},
                {{FREE_ON("[0]"), .policy = "\"default\"", .policy_nodes = "[]"},
                 -EPERM,
                 "thread 0 was allowed on 1 CPUs, its process on 2"},
                {{FREE_ON("[0,1,2]"), .policy = "\"default\"", .policy_nodes = "[]"},
                 -EPERM,
                 "thread 0 was allowed on 3 CPUs, its process on 2"},
                {{.affinity = "[1,2]",
                  .threads = THREAD("0", "[0,1,2]", "1", "[1]"),
                  .policy = "\"default\"",
                  .policy_nodes = "[]"},
                 -EPERM,
                 "thread 0 was allowed on CPU 0, its process was not"},
        };
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        const struct agent_placement given = {.n_cpus = 0};
        check_proofs(&given, &point, END_FIRST, cases, ELEMENTS(cases));
}

static void migrations_that_are_not_counted(void) {
        static const struct texts roaming = {.affinity = "[1,3]",
                                             .policy = "\"default\"",
                                             .policy_nodes = "[]",
                                             .threads = MOVED("0", "[1,3]", "1", "[1]", UNKNOWN)};
        static const struct texts pinned = {.affinity = "[1]",
                                            .policy = "\"default\"",
                                            .policy_nodes = "[]",
                                            .threads = MOVED("0", "[1]", "1", "[1]", UNKNOWN)};
        int32_t cpus[] = {1, 3};
        char detail[DETAIL_MAX] = "";
        struct placement_doubts doubts = {0};
        const struct agent_placement two = {.cpus = cpus, .n_cpus = 2, .roam = true}, one = {.cpus = cpus, .n_cpus = 1};
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        _cleanup_free_ char *first = proof_text(&roaming), *second = proof_text(&pinned);
        CHECK_INT(verify(&two, &point, END_FIRST, first, &doubts, detail), 0);
        CHECK(!doubts.migrations_unknown);
        CHECK_INT(verify(&one, &point, END_FIRST, second, &doubts, detail), 0);
        CHECK(doubts.migrations_unknown && !doubts.pages_moved);
}

/* The kernel may move pages without a policy; the result has a flag for that. */
static void pages_without_a_policy_have_moved(void) {
#define LOST(moved) RANGE("stack", "0", "4", "\"2\":4", "\"absent\":0,\"nodes_seen\":[1,2],\"moved\":" moved)
        static const struct texts stayed = {FREE, .policy = "\"default\"", .policy_nodes = "[]", .pages = LOST("0")},
                                  moved = {FREE, .policy = "\"default\"", .policy_nodes = "[]", .pages = LOST("1")};
        char detail[DETAIL_MAX] = "";
        struct placement_doubts doubts = {0};
        const struct agent_placement given = {.n_cpus = 0};
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        _cleanup_free_ char *first = proof_text(&stayed), *second = proof_text(&moved);
        CHECK_INT(verify(&given, &point, END_FIRST, first, &doubts, detail), 0);
        CHECK(!doubts.pages_moved);
        CHECK_INT(verify(&given, &point, END_FIRST, second, &doubts, detail), 0);
        CHECK(doubts.pages_moved && !doubts.migrations_unknown);
}

static void texts_that_are_no_proof(void) {
        static const char *const texts[] = {"[]", "{}", "{\"affinity\":[1]}", "null"};
        int32_t cpus[] = {1};
        const struct agent_placement given = {.cpus = cpus, .n_cpus = 1};
        const struct point point = make_point(WORKLOAD_STREAM, TRANSPORT_PIPE);
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                char detail[DETAIL_MAX] = "";
                struct placement_doubts doubts = {0};
                CHECK_INT(verify(&given, &point, END_FIRST, texts[i], &doubts, detail), -EBADMSG);
                CHECK(strncmp(detail, BROKEN, strlen(BROKEN)) == 0);
        }
}

int main(void) {
        RUN(threads_where_they_were_put);
        RUN(threads_that_are_reported_together);
        RUN(leader_where_it_was_put);
        RUN(policy_that_was_given);
        RUN(pages_where_they_were_put);
        RUN(pages_that_are_not_shown);
        RUN(pages_that_moved);
        RUN(roaming_threads);
        RUN(buffers_apart);
        RUN(rings_are_shown_by_their_readers);
        RUN(workloads_without_messages);
        RUN(pages_of_all_threads_together);
        RUN(interleaving_is_spread);
        RUN(no_placement);
        RUN(migrations_that_are_not_counted);
        RUN(pages_without_a_policy_have_moved);
        RUN(texts_that_are_no_proof);
        return check_end();
}
