/* SPDX-License-Identifier: MIT */
/* Nine other machines, each with what a person reads off its files, and what happens when a file is wrong. */

#include "tests/unit/check.h"

#include "daemon/host/topology.h"
#include "schema/json/json.h"
#include "tests/unit/description.h"
#include "tests/unit/host-tree.h"

#include <pthread.h>
#include <sched.h>

/* The machine in a few lines, to compare with the expected ones. */
static void describe(const struct topology *t, struct description *d) {
        description_add(d, "cpus");
        for (size_t i = 0; i < t->n_cpus; i++) {
                const struct topology_cpu *c = &t->cpus[i];
                description_add(d, " %d%s%s", c->id, c->online ? "" : "-off", c->allowed ? "" : "-out");
                if (c->online) {
                        description_add(d, "@n%d.p%d.c%d(", c->node, c->package, c->core);
                        description_add_ids(d, c->siblings, c->n_siblings);
                        description_add(d, ")");
                }
        }
        for (size_t i = 0; i < t->n_nodes; i++) {
                const struct topology_node *n = &t->nodes[i];
                description_add(d, "\nnode %d cpus ", n->id);
                description_add_ids(d, n->cpus, n->n_cpus);
                description_add(d, " %s%s distances", n->has_memory ? "memory" : "none",
                                n->memory_allowed ? "" : "-out");
                for (size_t k = 0; k < t->n_nodes; k++)
                        description_add(d, " %u", n->distances[k]);
        }
        for (size_t i = 0; i < t->n_caches; i++) {
                const struct topology_cache *c = &t->caches[i];
                if (c->level < 3)
                        continue;
                description_add(d, "\nL%d %s %" PRIu64 "K/%u ", c->level, c->type, c->size_bytes / 1024, c->line_bytes);
                description_add_ids(d, c->cpus, c->n_cpus);
        }
        description_add(d, "\nnuma %d balancing %d caches %zu", t->numa, t->numa_balancing, t->n_caches);
}

static const struct {
        const char *name, *expected;
} machines[] = {
        {"one-node", "cpus 0@n0.p0.c0(0) 1@n0.p0.c1(1)\n"
                     "node 0 cpus 0,1 memory distances 10\n"
                     "L3 Unified 107520K/64 0,1\n"
                     "numa 1 balancing 0 caches 7"},
        {"no-numa", "cpus 0@n0.p0.c0(0) 1@n0.p0.c1(1)\n"
                    "node 0 cpus 0,1 memory distances 10\n"
                    "L3 Unified 107520K/64 0,1\n"
                    "numa 0 balancing -1 caches 7"},
        {"two-sockets-smt", "cpus 0@n0.p0.c0(0,1) 1@n0.p0.c0(0,1) 2@n0.p0.c1(2,3) 3@n0.p0.c1(2,3)"
                            " 4@n1.p1.c0(4,5) 5@n1.p1.c0(4,5) 6@n1.p1.c1(6,7) 7@n1.p1.c1(6,7)\n"
                            "node 0 cpus 0,2,1,3 memory distances 10 21\n"
                            "node 1 cpus 4,6,5,7 memory distances 21 10\n"
                            "L3 Unified 16384K/64 0,1,2,3\n"
                            "L3 Unified 16384K/64 4,5,6,7\n"
                            "numa 1 balancing 1 caches 22"},
        {"offline-cpus", "cpus 0@n0.p0.c0(0) 1-off 2@n0.p0.c1(2,3) 3@n0.p0.c1(2,3)"
                         " 4@n1.p1.c0(4,5) 5@n1.p1.c0(4,5) 6-off 7@n1.p1.c1(7)\n"
                         "node 0 cpus 0,2,3 memory distances 10 21\n"
                         "node 1 cpus 4,7,5 memory distances 21 10\n"
                         "L3 Unified 16384K/64 0,2,3\n"
                         "L3 Unified 16384K/64 4,5,7\n"
                         "numa 1 balancing 1 caches 18"},
        {"restricted-cpuset", "cpus 0-out@n0.p0.c0(0,1) 1-out@n0.p0.c0(0,1) 2@n0.p0.c1(2,3) 3@n0.p0.c1(2,3)"
                              " 4@n1.p1.c0(4,5) 5@n1.p1.c0(4,5) 6-out@n1.p1.c1(6,7) 7-out@n1.p1.c1(6,7)\n"
                              "node 0 cpus 2,3 memory-out distances 10 21\n"
                              "node 1 cpus 4,5 memory distances 21 10\n"
                              "L3 Unified 16384K/64 0,1,2,3\n"
                              "L3 Unified 16384K/64 4,5,6,7\n"
                              "numa 1 balancing 1 caches 22"},
        {"memory-only-node", "cpus 0@n0.p0.c0(0) 1@n0.p0.c1(1) 2@n0.p0.c2(2) 3@n0.p0.c3(3)\n"
                             "node 0 cpus 0,1,2,3 memory distances 10 31\n"
                             "node 1 cpus  memory distances 31 10\n"
                             "L3 Unified 16384K/64 0,1,2,3\n"
                             "numa 1 balancing 1 caches 13"},
        {"mixed-nodes", "cpus 0@n0.p0.c0(0) 1@n0.p1.c0(1) 2@n1.p2.c0(2) 3@n1.p3.c0(3) 4@n2.p4.c0(4) 5@n2.p5.c0(5)\n"
                        "node 0 cpus 0,1 memory distances 10 21 28 31\n"
                        "node 1 cpus 2,3 memory distances 21 10 17 26\n"
                        "node 2 cpus 4,5 none-out distances 28 17 10 40\n"
                        "node 3 cpus  memory distances 31 26 40 10\n"
                        "L3 Unified 16384K/64 0\nL3 Unified 16384K/64 1\nL3 Unified 16384K/64 2\n"
                        "L3 Unified 16384K/64 3\nL3 Unified 16384K/64 4\nL3 Unified 16384K/64 5\n"
                        "numa 1 balancing 1 caches 24"},
        /* distances are listed by nodes that are there, not by their ids; this kernel names CPU 2 as a sharer of the L3
         * of CPU 3 although it is offline */
        {"node-gap", "cpus 0@n0.p0.c0(0) 1@n0.p0.c1(1) 2-off 3@n1.p0.c3(3)\n"
                     "node 0 cpus 0,1 memory distances 10 21 31\n"
                     "node 1 cpus 3 memory distances 21 10 17\n"
                     "node 3 cpus  memory distances 31 17 10\n"
                     "L3 Unified 16384K/64 0,1\n"
                     "L3 Unified 16384K/64 3\n"
                     "numa 1 balancing 1 caches 11"},
        {"gaps", "cpus 0@n0.p0.c0(0) 1-off-out 2-off-out 3-off-out 4@n0.p0.c4(4) 5-off-out 6-off-out 7-off-out"
                 " 8@n8.p8.c8(8) 9-off-out 10-off-out 11-off-out 12@n8.p8.c12(12) 13-off-out 14-off-out 15-off-out\n"
                 "node 0 cpus 0,4 memory distances 10 40 80 80 80\n"
                 "node 8 cpus 8,12 memory distances 40 10 80 80 80\n"
                 "node 252 cpus  memory distances 80 80 10 80 80\n"
                 "node 254 cpus  none-out distances 80 80 80 10 80\n"
                 "node 255 cpus  memory distances 80 80 80 80 10\n"
                 "L3 Unified 0K/0 0,4\n"
                 "L3 Unified 0K/0 8,12\n"
                 "numa 1 balancing 1 caches 6"},
};

static void machines_are_read_as_they_are(void) {
        for (size_t i = 0; i < ELEMENTS(machines); i++) {
                char tree[64];
                struct topology *t = NULL;
                struct description got = {.length = 0};
                CHECK_INT(host_tree_unpack(machines[i].name, tree), 0);
                int r = topology_read(tree, &t);
                host_tree_remove(tree);
                if (r < 0)
                        CHECK_FAIL("%s: %s", machines[i].name, strerror(-r));
                describe(t, &got);
                topology_free(t);
                if (strcmp(got.at, machines[i].expected) != 0)
                        CHECK_FAIL("%s is\n%s\nexpected\n%s", machines[i].name, got.at, machines[i].expected);
        }
}

static void eight_nodes_of_two_cpus(void) {
        char tree[64];
        struct topology *t = NULL;
        CHECK_INT(host_tree_unpack("eight-nodes", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        host_tree_remove(tree);
        CHECK_UINT(t->n_cpus, 16);
        CHECK_UINT(t->n_nodes, 8);
        for (int i = 0; i < 8; i++) {
                const struct topology_node *node = topology_find_node(t, i);
                CHECK(node);
                CHECK_UINT(node->n_cpus, 2);
                CHECK_INT(node->cpus[0], 2 * i);
                CHECK_INT(node->cpus[1], 2 * i + 1);
                CHECK(node->has_memory && node->memory_allowed && node->memory_bytes > UINT64_C(64) << 20);
                CHECK(node->memory_free_bytes <= node->memory_bytes);
                for (int k = 0; k < 8; k++)
                        CHECK_UINT(node->distances[k], i == k ? 10 : 20);
                CHECK_INT(topology_find_cpu(t, 2 * i + 1)->package, i);
        }
        CHECK(!topology_find_node(t, 8) && !topology_find_cpu(t, 16));
        topology_free(t);
}

static void dies_that_count_their_cores_alike_get_cores_of_their_own(void) {
        char tree[64];
        struct topology *t = NULL;
        CHECK_INT(host_tree_unpack("one-node", tree), 0);
        CHECK_INT(host_tree_write(tree, "/sys/devices/system/cpu/cpu1/topology/core_id", "0\n"), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        host_tree_remove(tree);
        CHECK(topology_find_cpu(t, 0)->core != topology_find_cpu(t, 1)->core);
        topology_free(t);
}

/* CPU 0 is cut off by the cpuset: its sibling 1 is the first of that core then. */
static void a_sibling_moves_up_when_the_first_is_not_allowed(void) {
        char tree[64];
        struct topology *t = NULL;
        struct description got = {.length = 0};
        CHECK_INT(host_tree_unpack("two-sockets-smt", tree), 0);
        CHECK_INT(host_tree_write(tree, "/proc/self/status", "Cpus_allowed_list:\t1-3\n"), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        host_tree_remove(tree);
        description_add_ids(&got, t->nodes[0].cpus, t->nodes[0].n_cpus);
        CHECK_UINT(t->nodes[1].n_cpus, 0);
        topology_free(t);
        CHECK_STRING(got.at, "1,2,3");
}

static void a_tree_that_is_wrong_is_refused(void) {
        static const struct {
                const char *file, *content;
                int r;
        } cases[] = {
                {"/sys/devices/system/cpu/online", NULL, -ENOENT},
                {"/sys/devices/system/cpu/online", "\n", -EBADMSG},
                {"/sys/devices/system/cpu/online", "0-x\n", -EBADMSG},
                {"/sys/devices/system/cpu/cpu0/topology/core_id", "first\n", -EBADMSG},
                {"/sys/devices/system/cpu/cpu0/topology/core_cpus_list", "1\n", -EBADMSG},
                {"/sys/devices/system/cpu/cpu0/cache/index0/size", "48Q\n", -EBADMSG},
                {"/sys/devices/system/cpu/cpu0/cache/index0/level", "99999999999999999999\n", -EBADMSG},
                {"/sys/devices/system/cpu/cpu1/cache/index10/level", "4\n", -EBADMSG},
                {"/sys/devices/system/node/online", "\n", -EBADMSG},
                {"/sys/devices/system/node/online", "0-1\n", -EBADMSG}, /* node 0 knows one distance */
                {"/sys/devices/system/node/node0/distance", "\n", -EBADMSG},
                {"/sys/devices/system/node/node0/distance", "10 20\n", -EBADMSG},
                {"/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: lots\n", -EBADMSG},
                {"/proc/self/status", NULL, -ENOENT},
                {"/proc/self/status", "Cpus_allowed_list:\t1-\n", -EBADMSG},
                {"/proc/sys/kernel/numa_balancing", "on\n", -EBADMSG},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64];
                struct topology *t = NULL;
                CHECK_INT(host_tree_unpack("one-node", tree), 0);
                /* index 10 is one too many, once it has a level */
                CHECK_INT(host_tree_write(tree, "/sys/devices/system/cpu/cpu1/cache/index10/type", "Unified\n"), 0);
                CHECK_INT(host_tree_write(tree, "/sys/devices/system/cpu/cpu1/cache/index10/shared_cpu_list", "1\n"),
                          0);
                CHECK_INT(host_tree_write(tree, cases[i].file, cases[i].content), 0);
                int r = topology_read(tree, &t);
                host_tree_remove(tree);
                topology_free(t);
                if (r != cases[i].r)
                        CHECK_FAIL("%s = %s gave %d, expected %d", cases[i].file,
                                   cases[i].content ? cases[i].content : "(missing)", r, cases[i].r);
        }
}

static const struct json *item(const struct json *array, size_t index) {
        const struct json *v = json_first(array);
        while (v && index--)
                v = json_next(v);
        return v;
}

static void json_shows_what_is_not_known_as_null(void) {
        char tree[64], *text = NULL;
        struct topology *t = NULL;
        struct json *root = NULL;
        int64_t v = 0;
        CHECK_INT(host_tree_unpack("gaps", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        host_tree_remove(tree);
        CHECK_INT(topology_to_json(t, &text), 0);
        topology_free(t);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        free(text);

        CHECK_UINT(json_length(json_get(root, "nodes")), 5);
        CHECK_UINT(json_length(json_get(root, "cpus")), 16);
        CHECK_INT(json_as_i64(json_get(root, "packages"), &v), 0);
        CHECK_INT(v, 2);
        const struct json *node = item(json_get(root, "nodes"), 1), *offline = item(json_get(root, "cpus"), 1);
        CHECK_INT(json_as_i64(json_get(node, "id"), &v), 0);
        CHECK_INT(v, 8);
        CHECK_INT(json_as_i64(json_get(node, "memory_bytes"), &v), 0);
        CHECK_INT(v, INT64_C(2000000) * 1024);
        CHECK_UINT(json_length(json_get(node, "distances")), 5);
        CHECK_INT(json_type(json_get(offline, "node")), JSON_NULL);
        CHECK_INT(json_type(json_get(offline, "core")), JSON_NULL);
        const struct json *l3 = item(json_get(root, "caches"), 4);
        CHECK_INT(json_type(json_get(l3, "size_bytes")), JSON_NULL);
        json_free(root);
}

static void what_comes_and_goes_is_noticed(void) {
        static const struct {
                const char *file, *content;
                int changed;
        } cases[] = {
                {"/sys/devices/system/cpu/online", "0-4,7\n", 1},
                {"/sys/devices/system/cpu/online", "0,2-5,7\n", 0},
                {"/sys/devices/system/cpu/present", "0-8\n", 1},
                {"/sys/devices/system/node/online", "0\n", 1},
                {"/sys/devices/system/node/online", NULL, 1},
                {"/sys/devices/system/node/has_memory", "0\n", 1},
                {"/sys/devices/system/node/has_memory", "0,1\n", 0},
                {"/sys/devices/system/node/has_memory", NULL, 0}, /* meminfo has it too */
                {"/sys/devices/system/node/has_memory", "some\n", -EBADMSG},
                {"/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 0 kB\nNode 1 MemFree: 0 kB\n", 1},
                {"/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 64 kB\nNode 1 MemFree: 1 kB\n", 0},
                {"/sys/devices/system/node/node1/meminfo", NULL, 1},
                {"/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: lots\n", -EBADMSG},
                {"/proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n", 0},
                {"/proc/self/status", "Cpus_allowed_list:\t0,2-5,7\nMems_allowed_list:\t0-1\n", 0},
                {"/proc/self/status", "Cpus_allowed_list:\t0,2-5\nMems_allowed_list:\t0-1\n", 1},
                {"/proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0\n", 1},
                {"/proc/sys/kernel/numa_balancing", "0\n", 0},
                {"/proc/self/status", NULL, -ENOENT},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64];
                struct topology *t = NULL;
                CHECK_INT(host_tree_unpack("offline-cpus", tree), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                CHECK_INT(host_tree_write(tree, cases[i].file, cases[i].content), 0);
                int r = topology_has_changed(tree, t);
                topology_free(t);
                host_tree_remove(tree);
                if (r != cases[i].changed)
                        CHECK_FAIL("%s = %s gave %d, expected %d", cases[i].file,
                                   cases[i].content ? cases[i].content : "(missing)", r, cases[i].changed);
        }
}

/* As on a machine that gives a node of CPUs its memory while the daemon lives. */
static void memory_that_a_known_node_is_given_is_noticed(void) {
        char tree[64];
        struct topology *t = NULL;
        CHECK_INT(host_tree_unpack("mixed-nodes", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        CHECK(!topology_find_node(t, 2)->has_memory);
        CHECK_INT(topology_has_changed(tree, t), 0);
        CHECK_INT(host_tree_write(tree, "/sys/devices/system/node/node2/meminfo",
                                  "Node 2 MemTotal: 131072 kB\nNode 2 MemFree: 131072 kB\n"),
                  0);
        CHECK_INT(host_tree_write(tree, "/sys/devices/system/node/has_memory", "0-3\n"), 0);
        CHECK_INT(topology_has_changed(tree, t), 1);
        CHECK_INT(topology_reread(tree, t), 0);
        CHECK(topology_find_node(t, 2)->has_memory);
        CHECK_INT(topology_has_changed(tree, t), 0);
        topology_free(t);
        host_tree_remove(tree);
}

static void a_topology_is_read_again_in_its_place(void) {
        char tree[64];
        struct topology *t = NULL;
        CHECK_INT(host_tree_unpack("two-sockets-smt", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        CHECK_INT(host_tree_write(tree, "/proc/self/status", "Cpus_allowed_list:\t4-5\nMems_allowed_list:\t0-1\n"), 0);
        CHECK_INT(topology_reread(tree, t), 0);
        CHECK_UINT(t->nodes[0].n_cpus, 0);
        CHECK_UINT(t->nodes[1].n_cpus, 2);
        CHECK_INT(topology_has_changed(tree, t), 0);
        CHECK_INT(host_tree_write(tree, "/proc/self/status", NULL), 0);
        CHECK_INT(topology_reread(tree, t), -ENOENT);
        CHECK_UINT(t->nodes[1].n_cpus, 2);
        topology_free(t);
        host_tree_remove(tree);
}

#define READS 30

struct onlooker {
        const char *tree;
        const struct topology *t;
        size_t odd; /* neither the one machine nor the other */
};

static void *read_again(void *userdata) {
        struct onlooker *o = userdata;
        for (int i = 0; i < READS; i++) {
                char *text = NULL;
                topology_hold();
                size_t n = o->t->nodes[0].n_cpus + o->t->nodes[1].n_cpus;
                int r = topology_to_json_now(o->tree, o->t, &text);
                o->odd += r < 0 || (n != 8 && n != 2) || o->t->nodes[0].n_cpus + o->t->nodes[1].n_cpus != n;
                topology_release();
                free(text);
        }
        return NULL;
}

/* A thread that holds the topology sees no change of it, and no freed content. */
static void others_read_while_it_is_read_again(void) {
        char tree[64];
        struct topology *t = NULL;
        struct onlooker onlookers[2];
        pthread_t threads[2];
        CHECK_INT(host_tree_unpack("two-sockets-smt", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        for (size_t i = 0; i < ELEMENTS(threads); i++) {
                onlookers[i] = (struct onlooker){.tree = tree, .t = t};
                CHECK_INT(pthread_create(&threads[i], NULL, read_again, &onlookers[i]), 0);
        }
        for (int i = 0; i < READS; i++) {
                CHECK_INT(host_tree_write(tree, "/proc/self/status",
                                          i % 2 ? "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n"
                                                : "Cpus_allowed_list:\t4-5\nMems_allowed_list:\t0-1\n"),
                          0);
                int r;
                while ((r = topology_reread(tree, t)) == -EBUSY) /* the onlookers come to an end */
                        (void) sched_yield();
                CHECK_INT(r, 0);
        }
        for (size_t i = 0; i < ELEMENTS(threads); i++) {
                CHECK_INT(pthread_join(threads[i], NULL), 0);
                CHECK_UINT(onlookers[i].odd, 0);
        }
        topology_free(t);
        host_tree_remove(tree);
}

struct holder {
        pthread_barrier_t held, released;
};

static void *hold_it(void *userdata) {
        struct holder *h = userdata;
        topology_hold();
        (void) pthread_barrier_wait(&h->held);
        (void) pthread_barrier_wait(&h->released);
        topology_release();
        return NULL;
}

/* The main loop has others to serve than the thread that holds it. */
static void what_is_held_is_not_waited_for(void) {
        char tree[64];
        struct topology *t = NULL;
        struct holder h;
        pthread_t thread;
        CHECK_INT(host_tree_unpack("two-sockets-smt", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        CHECK_INT(pthread_barrier_init(&h.held, NULL, 2), 0);
        CHECK_INT(pthread_barrier_init(&h.released, NULL, 2), 0);
        CHECK_INT(pthread_create(&thread, NULL, hold_it, &h), 0);
        (void) pthread_barrier_wait(&h.held);
        int held = topology_reread(tree, t);
        (void) pthread_barrier_wait(&h.released);
        CHECK_INT(pthread_join(thread, NULL), 0);
        CHECK_INT(held, -EBUSY);
        CHECK_INT(topology_reread(tree, t), 0);
        (void) pthread_barrier_destroy(&h.held);
        (void) pthread_barrier_destroy(&h.released);
        topology_free(t);
        host_tree_remove(tree);
}

static void json_is_of_this_moment(void) {
        char tree[64], *text = NULL;
        struct topology *t = NULL;
        struct json *root = NULL;
        int64_t v = 0;
        CHECK_INT(host_tree_unpack("offline-cpus", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        CHECK_INT(host_tree_write(tree, "/sys/devices/system/node/node1/meminfo",
                                  "Node 1 MemTotal: 4096 kB\nNode 1 MemFree: 1024 kB\n"),
                  0);
        CHECK_INT(host_tree_write(tree, "/proc/sys/kernel/numa_balancing", "2\n"), 0);
        CHECK_INT(topology_to_json_now(tree, t, &text), 0);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        free(text);
        CHECK_INT(json_as_i64(json_get(root, "numa_balancing"), &v), 0);
        CHECK_INT(v, 2);
        const struct json *node = item(json_get(root, "nodes"), 1);
        CHECK_INT(json_as_i64(json_get(node, "memory_bytes"), &v), 0);
        CHECK_INT(v, 4096 * 1024);
        CHECK_INT(json_as_i64(json_get(node, "memory_free_bytes"), &v), 0);
        CHECK_INT(v, 1024 * 1024);
        json_free(root);

        CHECK_INT(host_tree_write(tree, "/sys/devices/system/node/node1/meminfo", NULL), 0); /* it has just gone */
        CHECK_INT(topology_to_json_now(tree, t, &text), 0);
        free(text);
        CHECK_INT(host_tree_write(tree, "/sys/devices/system/node/node0/meminfo", "MemTotal: much\n"), 0);
        CHECK_INT(topology_to_json_now(tree, t, &text), -EBADMSG);
        topology_free(t);
        host_tree_remove(tree);
}

static void this_machine_can_be_read(void) {
        struct topology *t = NULL;
        CHECK_INT(topology_read("", &t), 0);
        size_t usable = 0;
        for (size_t i = 0; i < t->n_nodes; i++)
                usable += t->nodes[i].n_cpus;
        cpu_set_t allowed;
        CHECK_INT(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
        CHECK_UINT(usable, CPU_COUNT(&allowed));
        topology_free(t);
}

/* tools/capture-host takes all that is read: the tree of this machine is this machine. */
static void a_capture_of_this_machine_is_this_machine(void) {
        const char *source = getenv("IPCLAB_SOURCE_ROOT");
        char folder[64] = "/tmp/ipclab-capture.XXXXXX", tree[80], command[1100];
        struct topology *live = NULL, *captured = NULL;
        struct description a = {.length = 0}, b = {.length = 0};

        CHECK(mkdtemp(folder));
        (void) snprintf(tree, sizeof(tree), "%s/tree", folder);
        (void) snprintf(command, sizeof(command), "%.900s/tools/capture-host %s >/dev/null", source ? source : ".",
                        tree);
        int status = system(command); /* NOLINT(concurrency-mt-unsafe): one thread */
        int r = status == 0 ? topology_read(tree, &captured) : -ECHILD;
        host_tree_remove(folder);
        CHECK_INT(r, 0);
        CHECK_INT(topology_read("", &live), 0);
        describe(live, &a);
        describe(captured, &b);
        topology_free(live);
        topology_free(captured);
        CHECK_STRING(b.at, a.at);
}

int main(void) {
        RUN(machines_are_read_as_they_are);
        RUN(eight_nodes_of_two_cpus);
        RUN(dies_that_count_their_cores_alike_get_cores_of_their_own);
        RUN(a_sibling_moves_up_when_the_first_is_not_allowed);
        RUN(a_tree_that_is_wrong_is_refused);
        RUN(json_shows_what_is_not_known_as_null);
        RUN(what_comes_and_goes_is_noticed);
        RUN(memory_that_a_known_node_is_given_is_noticed);
        RUN(a_topology_is_read_again_in_its_place);
        RUN(others_read_while_it_is_read_again);
        RUN(what_is_held_is_not_waited_for);
        RUN(json_is_of_this_moment);
        RUN(this_machine_can_be_read);
        RUN(a_capture_of_this_machine_is_this_machine);
        return check_end();
}
