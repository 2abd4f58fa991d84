/* SPDX-License-Identifier: MIT */
/* Every placement on nine machines, every refusal with its message. Proofs: test-placement-proof.c. */

#include "tests/unit/check.h"

#include "daemon/placement/placement.h"
#include "tests/unit/description.h"
#include "tests/unit/host-tree.h"

/* "0,2 bind 0 | 1,3 bind 0 | rest 4,5 +cpus +cores" */
static void describe(const struct run_placement *p, struct description *d) {
        for (unsigned e = 0; e < END_COUNT; e++) {
                const struct agent_placement *a = &p->ends[e];
                description_add(d, "%s%s", e ? " | " : "", a->n_cpus ? "" : "-");
                description_add_ids(d, a->cpus, a->n_cpus);
                description_add(d, "%s %s", a->roam ? "*" : "", memory_policy_name(a->memory));
                for (unsigned i = 0; i < SPEC_NODES_MAX; i++)
                        if (node_set_has(&a->memory_nodes, i))
                                description_add(d, " %u", i);
        }
        description_add(d, " | rest ");
        description_add_ids(d, p->daemon_cpus, p->n_daemon_cpus);
        description_add(d, "%s%s", p->shares_cpus ? " +cpus" : "", p->shares_cores ? " +cores" : "");
        description_add(d, "%s", p->memory_elsewhere ? " +memory" : "");
}

static int read_machine(const char *name, struct topology **ret) {
        char tree[64];
        int r = host_tree_unpack(name, tree);
        if (r < 0)
                return r;
        r = topology_read(tree, ret);
        host_tree_remove(tree);
        return r;
}

static struct point make_point(enum placement_kind kind, uint32_t threads) {
        struct point p = {
                .workload = WORKLOAD_STREAM, .transport = TRANSPORT_PIPE, .message_size = 1, .threads = threads};
        p.placement.kind = kind;
        for (unsigned e = 0; e < END_COUNT; e++)
                p.placement.ends[e] = (struct end_placement){.node = -1, .cpu = -1};
        return p;
}

static void resolve_to_text(const struct topology *t, const struct point *p, struct description *d) {
        struct run_placement got = {0};
        struct refusal r = {0};
        int x = placement_resolve(t, p, &got, &r);
        if (x == 0)
                describe(&got, d);
        else
                description_add(d, "%d %s %s: %s [%s = %s, requested %s]", r.status, r.code, r.pointer, r.detail,
                                r.limit, r.limit_value, r.value);
        run_placement_deinit(&got);
}

#define REFUSED(pointer, detail, limit, value, requested)                                                              \
        "422 limit-exceeded /placement" pointer ": " detail " [" limit " = " value ", requested " requested "]"
#define NO_SMT                                                                                                         \
        REFUSED("",                                                                                                    \
                "same-core needs a core with two CPUs; here no core has more than 1 CPU that ipclab may use (SMT is "  \
                "missing, switched off, or cut off by the cpuset)",                                                    \
                "CPUs per core (SMT)", "1", "2")

#define ONE_MEMORY(first, second, memory)                                                                              \
        REFUSED("",                                                                                                    \
                "cross-node needs the memory of two nodes; that of the CPUs of node " first " and of node " second     \
                " would be on node " memory,                                                                           \
                "memory nodes next to CPUs", "1", "2")

static void names_are_resolved_on_every_machine(void) {
        static const struct {
                const char *machine;
                enum placement_kind kind;
                uint32_t threads;
                const char *expected;
        } cases[] = {
                {"one-node", PLACEMENT_DEFAULT, 1, "- default | - default | rest "},
                {"one-node", PLACEMENT_SAME_CPU, 1, "0 bind 0 | 0 bind 0 | rest 1 +cpus"},
                {"one-node", PLACEMENT_SAME_CPU, 8, "0 bind 0 | 0 bind 0 | rest 1 +cpus"},
                {"one-node", PLACEMENT_SAME_CORE, 1, NO_SMT},
                {"one-node", PLACEMENT_SAME_NODE, 1, "0 bind 0 | 1 bind 0 | rest "},
                {"one-node", PLACEMENT_SAME_NODE, 2, "0,1 bind 0 | 1,0 bind 0 | rest  +cpus"},
                {"one-node", PLACEMENT_SAME_NODE, 1024, "0,1 bind 0 | 1,0 bind 0 | rest  +cpus"},
                {"one-node", PLACEMENT_CROSS_NODE, 1,
                 REFUSED("", "cross-node needs two nodes; this machine has one node", "nodes", "1", "2")},
                {"no-numa", PLACEMENT_SAME_NODE, 1, "0 default | 1 default | rest "},
                {"two-sockets-smt", PLACEMENT_SAME_CPU, 1, "0 bind 0 | 0 bind 0 | rest 2,3,4,5,6,7 +cpus"},
                {"two-sockets-smt", PLACEMENT_SAME_CORE, 1, "0 bind 0 | 1 bind 0 | rest 2,3,4,5,6,7"},
                {"two-sockets-smt", PLACEMENT_SAME_NODE, 1, "0 bind 0 | 2 bind 0 | rest 4,5,6,7"},
                /* four CPUs for two pairs: disjoint ends, and the threads of a pair on different cores */
                {"two-sockets-smt", PLACEMENT_SAME_NODE, 2, "0,2 bind 0 | 3,1 bind 0 | rest 4,5,6,7"},
                {"two-sockets-smt", PLACEMENT_SAME_NODE, 3, "0,2,1 bind 0 | 3,0,2 bind 0 | rest 4,5,6,7 +cpus"},
                {"two-sockets-smt", PLACEMENT_CROSS_NODE, 1, "0 bind 0 | 4 bind 1 | rest 2,3,6,7"},
                {"two-sockets-smt", PLACEMENT_CROSS_NODE, 2, "0,2 bind 0 | 4,6 bind 1 | rest 1,3,5,7"},
                {"two-sockets-smt", PLACEMENT_CROSS_NODE, 5, "0,2,1,3 bind 0 | 4,6,5,7 bind 1 | rest  +cpus"},
                {"offline-cpus", PLACEMENT_SAME_CORE, 1, "2 bind 0 | 3 bind 0 | rest 0,4,5,7"},
                {"offline-cpus", PLACEMENT_SAME_NODE, 1, "0 bind 0 | 2 bind 0 | rest 4,5,7"},
                /* node 0 has CPUs here, and no memory that may be used: node 1 is nearest */
                {"restricted-cpuset", PLACEMENT_SAME_CPU, 1, "4 bind 1 | 4 bind 1 | rest 2,3 +cpus"},
                {"restricted-cpuset", PLACEMENT_SAME_NODE, 1, "4 bind 1 | 5 bind 1 | rest 2,3 +cores"},
                {"restricted-cpuset", PLACEMENT_CROSS_NODE, 1, ONE_MEMORY("1", "0", "1")},
                {"memory-only-node", PLACEMENT_SAME_NODE, 2, "0,1 bind 0 | 2,3 bind 0 | rest "},
                {"memory-only-node", PLACEMENT_CROSS_NODE, 1,
                 REFUSED("",
                         "cross-node needs two nodes with CPUs; of this machine's 2 nodes 1 has CPUs that ipclab may "
                         "use",
                         "nodes with CPUs", "1", "2")},
                {"mixed-nodes", PLACEMENT_SAME_NODE, 1, "0 bind 0 | 1 bind 0 | rest 2,3,4,5"},
                {"mixed-nodes", PLACEMENT_CROSS_NODE, 1, "0 bind 0 | 2 bind 1 | rest 1,3,4,5"},
                {"node-gap", PLACEMENT_SAME_NODE, 1, "0 bind 0 | 1 bind 0 | rest 3"},
                {"node-gap", PLACEMENT_CROSS_NODE, 1, "0 bind 0 | 3 bind 1 | rest 1"},
                {"gaps", PLACEMENT_SAME_NODE, 1, "0 bind 0 | 4 bind 0 | rest 8,12"},
                {"gaps", PLACEMENT_CROSS_NODE, 2, "0,4 bind 0 | 8,12 bind 8 | rest "},
                {"eight-nodes", PLACEMENT_SAME_NODE, 1, "0 bind 0 | 1 bind 0 | rest 2,3,4,5,6,7,8,9,10,11,12,13,14,15"},
                {"eight-nodes", PLACEMENT_CROSS_NODE, 1,
                 "0 bind 0 | 2 bind 1 | rest 1,3,4,5,6,7,8,9,10,11,12,13,14,15"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct topology *t = NULL;
                struct description got = {.length = 0};
                const struct point p = make_point(cases[i].kind, cases[i].threads);
                CHECK_INT(read_machine(cases[i].machine, &t), 0);
                resolve_to_text(t, &p, &got);
                topology_free(t);
                if (strcmp(got.at, cases[i].expected) != 0)
                        CHECK_FAIL("%s %s x%u\n got      %s\n expected %s", cases[i].machine,
                                   placement_kind_name(cases[i].kind), cases[i].threads, got.at, cases[i].expected);
        }
}

/* The sender as given, the receiver anywhere. node, cpu, policy; memory node -1: none. */
static void objects_are_held_against_the_machine(void) {
        static const struct {
                const char *machine;
                int node, cpu;
                enum memory_policy memory;
                int memory_node;
                const char *expected;
        } cases[] = {
                {"two-sockets-smt", 1, -1, MEMORY_DEFAULT, -1, "4,6,5,7* default | - default | rest 0,1,2,3"},
                {"two-sockets-smt", 1, -1, MEMORY_BIND, 0, "4,6,5,7* bind 0 | - default | rest 0,1,2,3"},
                {"two-sockets-smt", 1, 5, MEMORY_PREFERRED, 1, "5 preferred 1 | - default | rest 0,1,2,3,6,7"},
                {"two-sockets-smt", -1, 3, MEMORY_LOCAL, -1, "3 local | - default | rest 0,1,4,5,6,7"},
                {"two-sockets-smt", -1, -1, MEMORY_INTERLEAVE, 1, "- interleave 1 | - default | rest "},
                {"no-numa", 0, 1, MEMORY_DEFAULT, -1, "1 default | - default | rest 0"},
                {"node-gap", 1, 3, MEMORY_BIND, 3, "3 bind 3 | - default | rest 0,1"},
                {"gaps", 8, 12, MEMORY_BIND, 252, "12 bind 252 | - default | rest 0,4,8"},
                {"one-node", 7, -1, MEMORY_DEFAULT, -1,
                 REFUSED("/sender/node", "node 7 does not exist; nodes online: 0", "nodes online", "0", "7")},
                {"gaps", 1, -1, MEMORY_DEFAULT, -1,
                 REFUSED("/sender/node", "node 1 does not exist; nodes online: 0,8,252,254-255", "nodes online",
                         "0,8,252,254-255", "1")},
                {"node-gap", 2, -1, MEMORY_DEFAULT, -1,
                 REFUSED("/sender/node", "node 2 does not exist; nodes online: 0-1,3", "nodes online", "0-1,3", "2")},
                {"memory-only-node", 1, -1, MEMORY_DEFAULT, -1,
                 REFUSED("/sender/node", "node 1 has no CPUs; nodes with CPUs: 0", "nodes with CPUs", "0", "1")},
                {"one-node", -1, 99, MEMORY_DEFAULT, -1,
                 REFUSED("/sender/cpu", "CPU 99 does not exist; CPUs present: 0-1", "CPUs present", "0-1", "99")},
                {"offline-cpus", -1, 6, MEMORY_DEFAULT, -1,
                 REFUSED("/sender/cpu", "CPU 6 is offline; CPUs online: 0,2-5,7", "CPUs online", "0,2-5,7", "6")},
                {"restricted-cpuset", -1, 6, MEMORY_DEFAULT, -1,
                 REFUSED("/sender/cpu", "CPU 6 is outside the cpuset of ipclabd; CPUs allowed: 2-5", "CPUs allowed",
                         "2-5", "6")},
                {"two-sockets-smt", 0, 4, MEMORY_DEFAULT, -1,
                 REFUSED("/sender/cpu", "CPU 4 is not on that node; CPUs of node 0: 0-3", "CPUs of node 0", "0-3",
                         "4")},
                {"two-sockets-smt", 0, 1, MEMORY_BIND, 2,
                 REFUSED("/sender/memory/nodes", "node 2 does not exist; nodes online: 0-1", "nodes online", "0-1",
                         "2")},
                {"mixed-nodes", 0, 1, MEMORY_BIND, 2,
                 REFUSED("/sender/memory/nodes", "node 2 has no memory; nodes with memory: 0-1,3", "nodes with memory",
                         "0-1,3", "2")},
                {"restricted-cpuset", -1, 2, MEMORY_BIND, 0,
                 REFUSED("/sender/memory/nodes", "node 0 is outside the cpuset of ipclabd; memory nodes allowed: 1",
                         "memory nodes allowed", "1", "0")},
                {"no-numa", -1, 0, MEMORY_BIND, 0,
                 REFUSED("/sender/memory", "this kernel has no NUMA support, so it knows no memory policy but default",
                         "kernel NUMA support", "none", "bind")},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct topology *t = NULL;
                struct description got = {.length = 0};
                struct point p = make_point(PLACEMENT_EXPLICIT, 1);
                p.placement.ends[END_FIRST] =
                        (struct end_placement){.node = cases[i].node, .cpu = cases[i].cpu, .memory = cases[i].memory};
                if (cases[i].memory_node >= 0)
                        node_set_add(&p.placement.ends[END_FIRST].memory_nodes, (unsigned) cases[i].memory_node);
                CHECK_INT(read_machine(cases[i].machine, &t), 0);
                resolve_to_text(t, &p, &got);
                topology_free(t);
                if (strcmp(got.at, cases[i].expected) != 0)
                        CHECK_FAIL("%s node %d cpu %d\n got      %s\n expected %s", cases[i].machine, cases[i].node,
                                   cases[i].cpu, got.at, cases[i].expected);
        }
}

/* {"node": n, "cpu": c} of each end. */
static void threads_over_tcp_have_a_cpu_each(void) {
        static const struct {
                const char *machine;
                uint32_t threads;
                struct {
                        int node, cpu;
                } ends[END_COUNT];
                const char *expected;
        } cases[] = {
                {"one-node", 1, {{0, -1}, {0, -1}}, "0 default | 1 default | rest "},
                {"one-node", 8, {{0, -1}, {0, -1}}, "0,1 default | 1,0 default | rest  +cpus"},
                {"two-sockets-smt", 1, {{0, -1}, {0, -1}}, "0 default | 2 default | rest 4,5,6,7"},
                {"two-sockets-smt", 2, {{0, -1}, {0, -1}}, "0,2 default | 3,1 default | rest 4,5,6,7"},
                {"two-sockets-smt", 3, {{0, -1}, {1, -1}}, "0,2,1 default | 4,6,5 default | rest 3,7"},
                {"two-sockets-smt", 9, {{1, -1}, {0, -1}}, "4,6,5,7 default | 0,2,1,3 default | rest  +cpus"},
                {"two-sockets-smt", 2, {{1, -1}, {-1, -1}}, "4,6 default | - default | rest 0,1,2,3"},
                /* the other end's own CPU comes last */
                {"two-sockets-smt", 2, {{0, -1}, {-1, 0}}, "2,1 default | 0 default | rest 4,5,6,7 +cpus"},
                {"two-sockets-smt", 2, {{1, 6}, {1, -1}}, "6 default | 4,5 default | rest 0,1,2,3 +cpus"},
                {"one-node", 2, {{-1, 0}, {0, -1}}, "0 default | 1,0 default | rest  +cpus"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct topology *t = NULL;
                struct description got = {.length = 0};
                struct point p = make_point(PLACEMENT_EXPLICIT, cases[i].threads);
                p.transport = TRANSPORT_TCP;
                for (unsigned e = 0; e < END_COUNT; e++)
                        p.placement.ends[e] =
                                (struct end_placement){.node = cases[i].ends[e].node, .cpu = cases[i].ends[e].cpu};
                CHECK_INT(read_machine(cases[i].machine, &t), 0);
                resolve_to_text(t, &p, &got);
                topology_free(t);
                if (strcmp(got.at, cases[i].expected) != 0)
                        CHECK_FAIL("%s x%u\n got      %s\n expected %s", cases[i].machine, cases[i].threads, got.at,
                                   cases[i].expected);
        }
}

/* A server has threads on whatever CPUs there are; any other pair on one CPU is what same-cpu is for. */
static void connections_share_the_only_cpu(void) {
        char tree[64];
        struct topology *t = NULL;
        struct description tcp = {.length = 0}, pipe = {.length = 0};
        struct point p = make_point(PLACEMENT_SAME_NODE, 8);
        CHECK_INT(host_tree_unpack("one-node", tree), 0);
        CHECK_INT(host_tree_write(tree, "/proc/self/status", "Cpus_allowed_list:\t1\nMems_allowed_list:\t0\n"), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        host_tree_remove(tree);
        resolve_to_text(t, &p, &pipe);
        p.transport = TRANSPORT_TCP;
        resolve_to_text(t, &p, &tcp);
        topology_free(t);
        CHECK_STRING(tcp.at, "1 bind 0 | 1 bind 0 | rest  +cpus");
        CHECK_STRING(pipe.at, REFUSED("",
                                      "same-node needs a node with two CPUs; here no node has more than 1 that ipclab "
                                      "may use (same-cpu puts both ends on one)",
                                      "CPUs per node", "1", "2"));
}

/* Two threads per end: an end that roams, or is not pinned, has as many CPUs as it may use. */
static void threads_outnumber_cpus_however_they_are_placed(void) {
        static const struct {
                const char *machine;
                enum workload workload;
                enum placement_kind kind;
                int node;
                uint32_t threads;
                bool flagged;
        } cases[] = {
                {"one-node", WORKLOAD_STREAM, PLACEMENT_DEFAULT, -1, 1, false},
                {"one-node", WORKLOAD_STREAM, PLACEMENT_DEFAULT, -1, 2, true},
                {"one-node", WORKLOAD_STREAM, PLACEMENT_EXPLICIT, 0, 1, false},
                {"one-node", WORKLOAD_STREAM, PLACEMENT_EXPLICIT, 0, 2, true},
                {"one-node", WORKLOAD_SYSCALL, PLACEMENT_DEFAULT, -1, 2, false},
                {"one-node", WORKLOAD_SYSCALL, PLACEMENT_SAME_NODE, -1, 2, false},
                {"one-node", WORKLOAD_SYSCALL, PLACEMENT_SAME_NODE, -1, 3, true},
                {"one-node", WORKLOAD_CONTEXT_SWITCH, PLACEMENT_DEFAULT, -1, 1, false},
                {"two-sockets-smt", WORKLOAD_STREAM, PLACEMENT_EXPLICIT, 1, 2, false},
                {"two-sockets-smt", WORKLOAD_STREAM, PLACEMENT_EXPLICIT, 1, 3, true}, /* of both ends on one node */
                {"two-sockets-smt", WORKLOAD_STREAM, PLACEMENT_DEFAULT, -1, 4, false},
                {"restricted-cpuset", WORKLOAD_STREAM, PLACEMENT_DEFAULT, -1, 3, true}, /* of four that are allowed */
                {"offline-cpus", WORKLOAD_STREAM, PLACEMENT_DEFAULT, -1, 4, true},      /* of six that are online */
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct topology *t = NULL;
                struct run_placement got = {0};
                struct refusal r = {0};
                struct point p = make_point(cases[i].kind, cases[i].threads);
                p.workload = cases[i].workload;
                p.placement.ends[END_FIRST].node = p.placement.ends[END_SECOND].node = cases[i].node;
                CHECK_INT(read_machine(cases[i].machine, &t), 0);
                CHECK_INT(placement_resolve(t, &p, &got, &r), 0);
                if (got.shares_cpus != cases[i].flagged)
                        CHECK_FAIL("case %zu: %s x%u", i, cases[i].machine, cases[i].threads);
                run_placement_deinit(&got);
                topology_free(t);
        }
}

static void the_pointer_names_the_role_of_the_workload(void) {
        struct topology *t = NULL;
        struct description got = {.length = 0};
        struct point p = make_point(PLACEMENT_EXPLICIT, 1);
        p.workload = WORKLOAD_PINGPONG;
        p.placement.ends[END_SECOND].cpu = 2;
        CHECK_INT(read_machine("one-node", &t), 0);
        resolve_to_text(t, &p, &got);
        topology_free(t);
        CHECK_STRING(got.at,
                     REFUSED("/responder/cpu", "CPU 2 does not exist; CPUs present: 0-1", "CPUs present", "0-1", "2"));
}

/* Node 2 has CPUs 4 and 5 and no memory: it is 17 to node 1, 28 to node 0, 40 to node 3. */
static void memory_comes_from_the_nearest_node(void) {
        static const struct {
                const char *cpus;
                enum placement_kind kind;
                const char *expected;
        } cases[] = {
                {"4-5", PLACEMENT_SAME_CPU, "4 bind 1 | 4 bind 1 | rest 5 +cpus +memory"},
                {"4-5", PLACEMENT_SAME_NODE, "4 bind 1 | 5 bind 1 | rest  +memory"},
                {"0-1,4-5", PLACEMENT_SAME_NODE, "0 bind 0 | 1 bind 0 | rest 4,5"},
                {"0-1,4-5", PLACEMENT_CROSS_NODE, "0 bind 0 | 4 bind 1 | rest 1,5 +memory"},
                {"2-5", PLACEMENT_CROSS_NODE, ONE_MEMORY("1", "2", "1")}, /* which is not across anything */
                {"0-1,4-5", PLACEMENT_EXPLICIT, "0,1* default | 4,5* default | rest  +memory"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64], status[100];
                struct topology *t = NULL;
                struct description got = {.length = 0};
                struct point p = make_point(cases[i].kind, 1);
                p.placement.ends[END_FIRST].node = 0;
                p.placement.ends[END_SECOND].node = 2;
                (void) snprintf(status, sizeof(status), "Cpus_allowed_list:\t%s\nMems_allowed_list:\t0-1,3\n",
                                cases[i].cpus);
                CHECK_INT(host_tree_unpack("mixed-nodes", tree), 0);
                CHECK_INT(host_tree_write(tree, "/proc/self/status", status), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                host_tree_remove(tree);
                resolve_to_text(t, &p, &got);
                topology_free(t);
                CHECK_STRING(got.at, cases[i].expected);
        }
}

/* A message to an agent has room for some of them; the daemon may go to all. */
static void everybody_keeps_off_on_the_largest_machines(void) {
        char tree[64];
        struct topology *t = NULL;
        struct run_placement got = {0};
        struct refusal r = {0};
        const struct point p = make_point(PLACEMENT_SAME_CPU, 1);
        CHECK_INT(host_tree_unpack("one-node", tree), 0);
        CHECK_INT(host_tree_write(tree, "/sys/devices/system/cpu/online", "0-1499\n"), 0);
        CHECK_INT(host_tree_write(tree, "/sys/devices/system/cpu/present", "0-1499\n"), 0);
        CHECK_INT(host_tree_write(tree, "/sys/devices/system/node/node0/cpulist", "0-1499\n"), 0);
        CHECK_INT(host_tree_write(tree, "/proc/self/status", "Cpus_allowed_list:\t0-1499\nMems_allowed_list:\t0\n"), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        host_tree_remove(tree);
        CHECK_INT(placement_resolve(t, &p, &got, &r), 0);
        topology_free(t);
        CHECK_UINT(got.n_daemon_cpus, 1499);
        CHECK_INT(got.daemon_cpus[1498], 1499);
        CHECK_UINT(got.ends[END_FIRST].n_leader_cpus, AGENT_CPUS_MAX);
        CHECK_UINT(got.ends[END_SECOND].n_leader_cpus, AGENT_CPUS_MAX);
        run_placement_deinit(&got);
}

static void one_agent_takes_one_place(void) {
        struct topology *t = NULL;
        struct description got = {.length = 0};
        struct point p = make_point(PLACEMENT_SAME_NODE, 1);
        p.workload = WORKLOAD_SYSCALL;
        CHECK_INT(read_machine("one-node", &t), 0);
        resolve_to_text(t, &p, &got);
        topology_free(t);
        CHECK_STRING(got.at, "0 bind 0 | - default | rest 1");
}

static void json_of_a_placement(void) {
        struct topology *t = NULL;
        struct run_placement got = {0};
        struct refusal r = {0};
        char *text = NULL;
        struct point p = make_point(PLACEMENT_CROSS_NODE, 2);
        CHECK_INT(read_machine("two-sockets-smt", &t), 0);
        CHECK_INT(placement_resolve(t, &p, &got, &r), 0);
        CHECK_INT(placement_to_json(t, &got.ends[END_SECOND], &text), 0);
        CHECK_STRING(text, "{\"cpus\":[4,6],\"roam\":false,\"node\":1,\"memory\":{\"policy\":\"bind\",\"nodes\":[1]},"
                           "\"leader_cpus\":[1,3,5,7]}");
        free(text);
        run_placement_deinit(&got);

        p = make_point(PLACEMENT_DEFAULT, 1);
        CHECK_INT(placement_resolve(t, &p, &got, &r), 0);
        CHECK_INT(placement_to_json(t, &got.ends[END_FIRST], &text), 0);
        CHECK_STRING(text, "{\"cpus\":[],\"roam\":false,\"node\":null,\"memory\":{\"policy\":\"default\",\"nodes\":[]},"
                           "\"leader_cpus\":[]}");
        free(text);
        run_placement_deinit(&got);
        topology_free(t);
}

/* "0 bind 0 | 0 bind 0; …": what each pair resolves to. */
static void describe_pairs(const char *machine, const char *word, struct description *d) {
        struct topology *t = NULL;
        struct spec *spec = NULL;
        struct refusal r = {0};
        char body[100];
        (void) snprintf(body, sizeof(body), "{\"placement\": \"%s\"}", word);
        CHECK_INT(read_machine(machine, &t), 0);
        CHECK_INT(spec_parse(body, strlen(body), &spec, &r), 0);
        CHECK_INT(placement_expand_pairs(t, spec, &r), 0);
        const struct placement *placements = spec->axes[AXIS_PLACEMENT].values;
        for (size_t i = 0; i < spec->axes[AXIS_PLACEMENT].n; i++) {
                struct point p = make_point(PLACEMENT_DEFAULT, 1);
                struct run_placement got = {0};
                p.placement = placements[i];
                CHECK_INT(placement_resolve(t, &p, &got, &r), 0);
                free(got.daemon_cpus);
                got.daemon_cpus = NULL;
                got.n_daemon_cpus = 0;
                describe(&got, d);
                description_add(d, "; ");
                run_placement_deinit(&got);
        }
        spec_free(spec);
        topology_free(t);
}

static void pairs_are_of_what_can_be_used(void) {
        static const struct {
                const char *machine, *word, *expected;
        } cases[] = {
                {"no-numa", "all-node-pairs", "0,1* default | 0,1* default | rest ; "},
                {"one-node", "all-cpu-pairs",
                 "0 bind 0 | 0 bind 0 | rest  +cpus; 0 bind 0 | 1 bind 0 | rest ; 1 bind 0 | 0 bind 0 | rest ; "
                 "1 bind 0 | 1 bind 0 | rest  +cpus; "},
                {"memory-only-node", "all-node-pairs", "0,1,2,3* bind 0 | 0,1,2,3* bind 0 | rest ; "},
                {"two-sockets-smt", "all-node-pairs",
                 "0,2,1,3* bind 0 | 0,2,1,3* bind 0 | rest ; 0,2,1,3* bind 0 | 4,6,5,7* bind 1 | rest ; "
                 "4,6,5,7* bind 1 | 0,2,1,3* bind 0 | rest ; 4,6,5,7* bind 1 | 4,6,5,7* bind 1 | rest ; "},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct description got = {.length = 0};
                describe_pairs(cases[i].machine, cases[i].word, &got);
                CHECK_STRING(got.at, cases[i].expected);
        }
}

static void buffers_are_placed_apart(void) {
        struct topology *t = NULL;
        struct run_placement got = {0};
        struct refusal r = {0};
        char *text = NULL;
        struct point p = make_point(PLACEMENT_EXPLICIT, 1);
        p.placement.ends[END_FIRST].cpu = 1;
        p.placement.ends[END_FIRST].buffer = MEMORY_BIND;
        node_set_add(&p.placement.ends[END_FIRST].buffer_nodes, 1);
        CHECK_INT(read_machine("two-sockets-smt", &t), 0);
        CHECK_INT(placement_resolve(t, &p, &got, &r), 0);
        CHECK_INT(placement_to_json(t, &got.ends[END_FIRST], &text), 0);
        CHECK(strstr(text, "\"memory\":{\"policy\":\"default\",\"nodes\":[]},"
                           "\"buffer\":{\"policy\":\"bind\",\"nodes\":[1]}"));
        free(text);
        run_placement_deinit(&got);

        struct description refused = {.length = 0};
        node_set_add(&p.placement.ends[END_FIRST].buffer_nodes, 2);
        resolve_to_text(t, &p, &refused);
        CHECK_STRING(refused.at, REFUSED("/sender/buffer/nodes", "node 2 does not exist; nodes online: 0-1",
                                         "nodes online", "0-1", "2"));
        topology_free(t);
}

int main(void) {
        RUN(names_are_resolved_on_every_machine);
        RUN(objects_are_held_against_the_machine);
        RUN(threads_over_tcp_have_a_cpu_each);
        RUN(connections_share_the_only_cpu);
        RUN(threads_outnumber_cpus_however_they_are_placed);
        RUN(the_pointer_names_the_role_of_the_workload);
        RUN(memory_comes_from_the_nearest_node);
        RUN(everybody_keeps_off_on_the_largest_machines);
        RUN(one_agent_takes_one_place);
        RUN(json_of_a_placement);
        RUN(pairs_are_of_what_can_be_used);
        RUN(buffers_are_placed_apart);
        return check_end();
}
