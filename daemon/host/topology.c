/* SPDX-License-Identifier: MIT */
/*
 * Reads the machine's topology from sysfs, in this order: CPUs, their packages and cores, the allowed sets, the nodes
 * (which give the CPUs their node), the caches. Called at the daemon's start, when CPUs have come or gone, and by tests
 * on captured trees.
 */

#include "daemon/host/topology.h"

#include "daemon/host/hostfs.h"
#include "daemon/log.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <pthread.h>
#include <string.h>

#define CPU_DIR "/sys/devices/system/cpu"
#define NODE_DIR "/sys/devices/system/node"
#define CACHE_INDEX_MAX 10 /* the kernel numbers leaves from 0 and may hide some; no machine has as many */
#define DISTANCE_LOCAL 10u /* ACPI SLIT: a node to itself */
#define KIB 1024u

static pthread_rwlock_t holders = PTHREAD_RWLOCK_INITIALIZER;

static void drop_content(struct topology *t) {
        for (size_t i = 0; i < t->n_cpus; i++)
                free(t->cpus[i].siblings);
        for (size_t i = 0; i < t->n_nodes; i++) {
                free(t->nodes[i].cpus);
                free(t->nodes[i].distances);
        }
        for (size_t i = 0; i < t->n_caches; i++)
                free(t->caches[i].cpus);
        free(t->cpus);
        free(t->nodes);
        free(t->caches);
}

void topology_free(struct topology *t) {
        if (!t)
                return;
        drop_content(t);
        free(t);
}

UTIL_FREEP(topology, topology_free)

static int compare_cpu_id(const void *key, const void *cpu) {
        int id = *(const int *) key, other = ((const struct topology_cpu *) cpu)->id;
        return (id > other) - (id < other);
}

static struct topology_cpu *find_cpu(const struct topology *t, int id) {
        return t->n_cpus ? bsearch(&id, t->cpus, t->n_cpus, sizeof(t->cpus[0]), compare_cpu_id) : NULL;
}

const struct topology_cpu *topology_find_cpu(const struct topology *t, int id) {
        return find_cpu(t, id);
}

const struct topology_node *topology_find_node(const struct topology *t, int id) {
        for (size_t i = 0; i < t->n_nodes; i++)
                if (t->nodes[i].id == id)
                        return &t->nodes[i];
        return NULL;
}

uint64_t topology_last_cache(const struct topology *t) {
        uint64_t bytes = 0;
        int level = 0;
        for (size_t i = 0; i < t->n_caches; i++) {
                const struct topology_cache *c = &t->caches[i];
                if (c->level > level || (c->level == level && c->size_bytes > bytes)) {
                        level = c->level;
                        bytes = c->size_bytes;
                }
        }
        return bytes ? bytes : SPEC_LAST_CACHE_DEFAULT;
}

/* Logs the file that could not be read and the reason, and returns the error. */
static int fail(const struct hostfs *h, int error) {
        log_error("Cannot read the topology: %s: %s.", h->path,
                  error == -EBADMSG ? "malformed" : strerrordesc_np(-error));
        return error;
}

/* Where the file is missing, *ret is unchanged. */
static int optional_i64(struct hostfs *h, int r, int64_t v, int *ret) {
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return fail(h, r);
        if (v < INT32_MIN || v > INT32_MAX)
                return fail(h, -EBADMSG);
        *ret = (int) v;
        return 0;
}

static int read_cpus(struct hostfs *h, struct topology *t) {
        _cleanup_free_ int *present = NULL, *online = NULL;
        size_t n_present = 0, n_online = 0;

        int r = hostfs_list(h, &online, &n_online, CPU_DIR "/online");
        if (r < 0 || n_online == 0)
                return fail(h, r < 0 ? r : -EBADMSG);
        r = hostfs_list(h, &present, &n_present, CPU_DIR "/present");
        if (r < 0 && r != -ENOENT)
                return fail(h, r);

        t->cpus = calloc(n_present + n_online, sizeof(t->cpus[0]));
        if (!t->cpus)
                return -ENOMEM;
        for (size_t p = 0, o = 0; p < n_present || o < n_online;) {
                bool is_online = o < n_online && (p >= n_present || online[o] <= present[p]);
                int id = is_online ? online[o] : present[p];
                t->cpus[t->n_cpus++] = (struct topology_cpu){
                        .id = id, .online = is_online, .allowed = true, .node = -1, .package = -1, .core = -1};
                p += p < n_present && present[p] == id;
                o += is_online;
        }
        return 0;
}

/* Online CPUs only: some kernels list a sibling that has just gone offline. */
static int read_siblings(struct hostfs *h, struct topology *t, struct topology_cpu *cpu) {
        int r = hostfs_list(h, &cpu->siblings, &cpu->n_siblings, CPU_DIR "/cpu%d/topology/core_cpus_list", cpu->id);
        if (r == -ENOENT) /* before 5.3 */
                r = hostfs_list(h, &cpu->siblings, &cpu->n_siblings, CPU_DIR "/cpu%d/topology/thread_siblings_list",
                                cpu->id);
        if (r < 0 && r != -ENOENT)
                return fail(h, r);

        size_t n = 0;
        bool self = false;
        for (size_t i = 0; i < cpu->n_siblings; i++) {
                const struct topology_cpu *other = find_cpu(t, cpu->siblings[i]);
                self |= cpu->siblings[i] == cpu->id;
                if (other && other->online)
                        cpu->siblings[n++] = cpu->siblings[i];
        }
        cpu->n_siblings = n;
        if (self)
                return 0;
        if (r == 0)
                return fail(h, -EBADMSG);

        cpu->siblings = malloc(sizeof(int)); /* without a topology directory the CPU counts as a core */
        if (!cpu->siblings)
                return -ENOMEM;
        cpu->siblings[0] = cpu->id;
        cpu->n_siblings = 1;
        return 0;
}

static int read_cpu_topology(struct hostfs *h, struct topology *t) {
        for (size_t i = 0; i < t->n_cpus; i++) {
                struct topology_cpu *cpu = &t->cpus[i];
                if (!cpu->online)
                        continue;
                int64_t v = 0;
                int r = hostfs_i64(h, &v, CPU_DIR "/cpu%d/topology/physical_package_id", cpu->id);
                r = optional_i64(h, r, v, &cpu->package);
                if (r < 0)
                        return r;
                r = hostfs_i64(h, &v, CPU_DIR "/cpu%d/topology/core_id", cpu->id);
                r = optional_i64(h, r, v, &cpu->core);
                if (r < 0)
                        return r;
                r = read_siblings(h, t, cpu);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Some kernels number cores per die, or not at all: where two cores of a package have one number, the package's cores
 * are numbered by their lowest CPU instead. */
static void unique_cores(struct topology *t) {
        for (size_t i = 0; i < t->n_cpus; i++) {
                const struct topology_cpu *a = &t->cpus[i];
                bool clash = false;
                for (size_t k = i + 1; k < t->n_cpus && !clash; k++) {
                        const struct topology_cpu *b = &t->cpus[k];
                        bool same = a->n_siblings && b->n_siblings && a->siblings[0] == b->siblings[0];
                        clash = a->online && b->online && a->package == b->package && a->core == b->core && !same;
                }
                if (!clash)
                        continue;
                int package = a->package;
                for (size_t k = 0; k < t->n_cpus; k++)
                        if (t->cpus[k].online && t->cpus[k].package == package)
                                t->cpus[k].core = t->cpus[k].siblings[0];
        }
}

/* A list in /proc/self/status; *ret NULL and -ENOENT where the kernel has none (no cpusets). */
static int status_list(struct hostfs *h, const char *status, const char *key, int **ret, size_t *ret_n) {
        char *list = malloc(strlen(status) + 1);
        if (!list)
                return -ENOMEM;
        int r = hostfs_field(status, key, list, strlen(status) + 1);
        if (r == 0)
                r = hostfs_parse_list(list, ret, ret_n);
        free(list);
        return r < 0 && r != -ENOENT ? fail(h, r) : r;
}

static bool list_has(const int *ids, size_t n, int id) {
        for (size_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

struct allowed {
        int *mems;
        size_t n_mems;
        bool all_mems;
};

static int read_allowed(struct hostfs *h, struct topology *t, struct allowed *ret) {
        _cleanup_free_ char *status = NULL;
        _cleanup_free_ int *cpus = NULL;
        size_t n_cpus = 0;

        int r = hostfs_text(h, &status, "/proc/self/status");
        if (r < 0)
                return fail(h, r);
        r = status_list(h, status, "Cpus_allowed_list", &cpus, &n_cpus);
        if (r < 0 && r != -ENOENT)
                return r;
        for (size_t i = 0; r == 0 && i < t->n_cpus; i++)
                t->cpus[i].allowed = list_has(cpus, n_cpus, t->cpus[i].id);

        r = status_list(h, status, "Mems_allowed_list", &ret->mems, &ret->n_mems);
        ret->all_mems = r == -ENOENT;
        return r == -ENOENT ? 0 : r;
}

/* Rank of a CPU among the usable ones of its core: 0 for the first, 1 for its sibling. */
static size_t sibling_rank(const struct topology *t, const struct topology_cpu *cpu) {
        size_t rank = 0;
        for (size_t i = 0; i < cpu->n_siblings && cpu->siblings[i] != cpu->id; i++) {
                const struct topology_cpu *other = find_cpu(t, cpu->siblings[i]);
                rank += other && other->online && other->allowed;
        }
        return rank;
}

/* The node's usable CPUs, one per core first. */
static int order_cpus(const struct topology *t, struct topology_node *node) {
        size_t n = 0, most = 0;
        for (size_t i = 0; i < t->n_cpus; i++) {
                n += t->cpus[i].node == node->id;
                most = t->cpus[i].n_siblings > most ? t->cpus[i].n_siblings : most;
        }
        if (n == 0)
                return 0;
        node->cpus = malloc(n * sizeof(int));
        if (!node->cpus)
                return -ENOMEM;
        for (size_t rank = 0; rank < most; rank++)
                for (size_t i = 0; i < t->n_cpus; i++) {
                        const struct topology_cpu *cpu = &t->cpus[i];
                        if (cpu->node == node->id && cpu->online && cpu->allowed && sibling_rank(t, cpu) == rank)
                                node->cpus[node->n_cpus++] = cpu->id;
                }
        return 0;
}

/* "Node 0 MemTotal:  5073100 kB" of a node, or "MemTotal: 5073100 kB" of the machine, in bytes. */
static int meminfo_bytes(const char *text, const char *key, uint64_t *ret) {
        const char *at = strstr(text, key);
        if (!at)
                return -EBADMSG;
        at += strlen(key);
        char *end = NULL;
        errno = 0;
        unsigned long long kib = strtoull(at, &end, 10);
        if (errno || end == at || strncmp(end, " kB", 3) != 0 || kib > UINT64_MAX / KIB)
                return -EBADMSG;
        *ret = (uint64_t) kib * KIB;
        return 0;
}

static int take_memory(struct hostfs *h, struct topology_node *node, bool of_node) {
        _cleanup_free_ char *text = NULL;
        int r = of_node ? hostfs_text(h, &text, NODE_DIR "/node%d/meminfo", node->id)
                        : hostfs_text(h, &text, "/proc/meminfo");
        if (r == 0)
                r = meminfo_bytes(text, "MemTotal:", &node->memory_bytes);
        if (r == 0)
                r = meminfo_bytes(text, "MemFree:", &node->memory_free_bytes);
        return r;
}

static int read_memory(struct hostfs *h, struct topology_node *node, bool of_node) {
        int r = take_memory(h, node, of_node);
        return r < 0 ? fail(h, r) : 0;
}

/* "10 21": to the online nodes, in their order. */
static int read_distances(struct hostfs *h, const struct topology *t, struct topology_node *node) {
        _cleanup_free_ char *text = NULL;
        int r = hostfs_text(h, &text, NODE_DIR "/node%d/distance", node->id);
        if (r < 0)
                return fail(h, r);
        node->distances = calloc(t->n_nodes, sizeof(node->distances[0]));
        if (!node->distances)
                return -ENOMEM;

        char *at = text;
        for (size_t i = 0; i < t->n_nodes; i++) {
                char *end = NULL;
                unsigned long v = strtoul(at, &end, 10);
                if (end == at || v > UINT32_MAX)
                        return fail(h, -EBADMSG);
                node->distances[i] = (uint32_t) v;
                at = end;
        }
        return at[strspn(at, " \n")] ? fail(h, -EBADMSG) : 0;
}

static int read_node(struct hostfs *h, struct topology *t, struct topology_node *node) {
        _cleanup_free_ int *cpus = NULL;
        size_t n_cpus = 0;

        int r = hostfs_list(h, &cpus, &n_cpus, NODE_DIR "/node%d/cpulist", node->id);
        if (r < 0)
                return fail(h, r);
        for (size_t i = 0; i < n_cpus; i++) {
                struct topology_cpu *cpu = find_cpu(t, cpus[i]);
                if (cpu && cpu->online)
                        cpu->node = node->id;
        }
        r = read_memory(h, node, true);
        return r < 0 ? r : read_distances(h, t, node);
}

/* The nodes with memory, where the kernel has that file; a node that is not in it has no usable memory, whatever its
 * meminfo contains. */
static int read_has_memory(struct hostfs *h, struct topology *t) {
        _cleanup_free_ int *ids = NULL;
        size_t n = 0;

        int r = hostfs_list(h, &ids, &n, NODE_DIR "/has_memory");
        if (r < 0 && r != -ENOENT)
                return fail(h, r);
        for (size_t i = 0; i < t->n_nodes; i++)
                t->nodes[i].has_memory =
                        t->nodes[i].memory_bytes > 0 && (r == -ENOENT || list_has(ids, n, t->nodes[i].id));
        return 0;
}

/* A kernel without NUMA: everything is one node 0. */
static int single_node(struct hostfs *h, struct topology *t) {
        t->nodes = calloc(1, sizeof(t->nodes[0]));
        if (!t->nodes)
                return -ENOMEM;
        t->n_nodes = 1;
        t->nodes[0].distances = malloc(sizeof(t->nodes[0].distances[0]));
        if (!t->nodes[0].distances)
                return -ENOMEM;
        t->nodes[0].distances[0] = DISTANCE_LOCAL;
        for (size_t i = 0; i < t->n_cpus; i++)
                if (t->cpus[i].online)
                        t->cpus[i].node = 0;
        int r = read_memory(h, &t->nodes[0], false);
        t->nodes[0].has_memory = true;
        return r;
}

static int read_numa_nodes(struct hostfs *h, struct topology *t, const int *ids, size_t n) {
        t->nodes = calloc(n, sizeof(t->nodes[0]));
        if (!t->nodes)
                return -ENOMEM;
        t->n_nodes = n;
        for (size_t i = 0; i < n; i++)
                t->nodes[i].id = ids[i];
        for (size_t i = 0; i < n; i++) {
                int r = read_node(h, t, &t->nodes[i]);
                if (r < 0)
                        return r;
        }
        return read_has_memory(h, t);
}

static int read_nodes(struct hostfs *h, struct topology *t, const struct allowed *allowed) {
        _cleanup_free_ int *ids = NULL;
        size_t n = 0;

        int r = hostfs_list(h, &ids, &n, NODE_DIR "/online");
        if (r < 0 && r != -ENOENT)
                return fail(h, r);
        t->numa = r == 0;
        if (t->numa && n == 0)
                return fail(h, -EBADMSG);
        r = t->numa ? read_numa_nodes(h, t, ids, n) : single_node(h, t);
        for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
                t->nodes[i].memory_allowed =
                        allowed->all_mems || list_has(allowed->mems, allowed->n_mems, t->nodes[i].id);
                r = order_cpus(t, &t->nodes[i]);
        }
        return r;
}

/* "48K", "107520K", "2M". */
static int parse_size(const char *text, uint64_t *ret) {
        char *end = NULL;
        errno = 0;
        unsigned long long v = strtoull(text, &end, 10);
        uint64_t unit = *end == 'K' ? KIB : *end == 'M' ? KIB * KIB : 1;
        if (errno || end == text || end[unit > 1] || v > UINT64_MAX / unit)
                return -EBADMSG;
        *ret = (uint64_t) v * unit;
        return 0;
}

/* One cache of one CPU. -ENOENT when it does not exist, or has no list of CPUs that share it. */
static int read_cache(struct hostfs *h, int cpu, int index, struct topology_cache *ret) {
        struct topology_cache c = {0};
        char size[32];
        int64_t v = 0;

        int r = hostfs_i64(h, &v, CPU_DIR "/cpu%d/cache/index%d/level", cpu, index);
        if (r < 0)
                return r;
        c.level = (int) v;
        r = hostfs_line(h, c.type, sizeof(c.type), CPU_DIR "/cpu%d/cache/index%d/type", cpu, index);
        if (r < 0)
                return r;
        r = hostfs_line(h, size, sizeof(size), CPU_DIR "/cpu%d/cache/index%d/size", cpu, index);
        if (r == 0)
                r = parse_size(size, &c.size_bytes);
        if (r < 0 && r != -ENOENT)
                return r;
        v = 0;
        r = hostfs_i64(h, &v, CPU_DIR "/cpu%d/cache/index%d/coherency_line_size", cpu, index);
        if ((r < 0 && r != -ENOENT) || v < 0 || v > UINT32_MAX)
                return r < 0 ? r : -EBADMSG;
        c.line_bytes = (uint32_t) v;
        r = hostfs_list(h, &c.cpus, &c.n_cpus, CPU_DIR "/cpu%d/cache/index%d/shared_cpu_list", cpu, index);
        if (r < 0)
                return r;
        *ret = c;
        return 0;
}

/* Some kernels list offline CPUs among those that share a cache. */
static void drop_offline(const struct topology *t, struct topology_cache *c) {
        size_t n = 0;
        for (size_t i = 0; i < c->n_cpus; i++) {
                const struct topology_cpu *cpu = find_cpu(t, c->cpus[i]);
                if (cpu && cpu->online)
                        c->cpus[n++] = c->cpus[i];
        }
        c->n_cpus = n;
}

/* Every CPU that shares a cache lists it; it is taken from the lowest of them. */
static int add_cache(struct topology *t, int cpu, struct topology_cache *c) {
        drop_offline(t, c);
        if (c->n_cpus == 0 || c->cpus[0] != cpu) {
                free(c->cpus);
                return 0;
        }
        if (!util_resize(t->caches, t->n_caches + 1)) {
                free(c->cpus);
                return -ENOMEM;
        }
        t->caches[t->n_caches++] = *c;
        return 0;
}

static int compare_caches(const void *a, const void *b) {
        const struct topology_cache *x = a, *y = b;
        if (x->level != y->level)
                return x->level < y->level ? -1 : 1;
        int by_type = strcmp(x->type, y->type);
        return by_type ? by_type : (x->cpus[0] > y->cpus[0]) - (x->cpus[0] < y->cpus[0]);
}

static int read_caches(struct hostfs *h, struct topology *t) {
        for (size_t i = 0; i < t->n_cpus; i++) {
                for (int index = 0; t->cpus[i].online && index <= CACHE_INDEX_MAX; index++) {
                        struct topology_cache c;
                        int r = read_cache(h, t->cpus[i].id, index, &c);
                        if (r == -ENOENT)
                                continue;
                        if (r < 0)
                                return fail(h, r);
                        if (index == CACHE_INDEX_MAX) {
                                free(c.cpus);
                                log_error("Cannot read the topology: CPU %d has a cache beyond index %d, the last that "
                                          "is read.",
                                          t->cpus[i].id, CACHE_INDEX_MAX - 1);
                                return -EBADMSG;
                        }
                        r = add_cache(t, t->cpus[i].id, &c);
                        if (r < 0)
                                return r;
                }
        }
        if (t->n_caches)
                qsort(t->caches, t->n_caches, sizeof(t->caches[0]), compare_caches);
        return 0;
}

static int read_balancing(struct hostfs *h, struct topology *t) {
        int64_t v = 0;
        t->numa_balancing = -1;
        int r = hostfs_i64(h, &v, "/proc/sys/kernel/numa_balancing");
        return optional_i64(h, r, v, &t->numa_balancing);
}

static int read_all(struct hostfs *h, struct topology *t) {
        struct allowed allowed = {0};

        int r = read_cpus(h, t);
        if (r == 0)
                r = read_cpu_topology(h, t);
        if (r == 0)
                r = read_allowed(h, t, &allowed);
        if (r == 0) {
                unique_cores(t);
                r = read_nodes(h, t, &allowed);
        }
        free(allowed.mems);
        if (r == 0)
                r = read_caches(h, t);
        return r < 0 ? r : read_balancing(h, t);
}

int topology_read(const char *root, struct topology **ret) {
        _cleanup_(hostfs_deinit) struct hostfs h = {};
        _cleanup_(topology_freep) struct topology *t = NULL;

        int r = hostfs_init(&h, root);
        if (r < 0)
                return fail(&h, r);
        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        r = read_all(&h, t);
        if (r < 0)
                return r;
        *ret = util_steal(&t);
        return 0;
}

static bool same_cpus(const struct topology *a, const struct topology *b) {
        if (a->n_cpus != b->n_cpus)
                return false;
        for (size_t i = 0; i < a->n_cpus; i++) {
                const struct topology_cpu *x = &a->cpus[i], *y = &b->cpus[i];
                if (x->id != y->id || x->online != y->online || (x->online && x->allowed != y->allowed))
                        return false;
        }
        return true;
}

/* A node may gain or lose its memory (memory hotplug). Its amount decides nothing. */
static int same_memory(struct hostfs *h, const struct topology *t) {
        _cleanup_free_ struct topology_node *nodes = calloc(t->n_nodes + 1, sizeof(nodes[0]));
        struct topology now = {.nodes = nodes, .n_nodes = t->n_nodes};

        if (!nodes)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_nodes; i++) {
                nodes[i].id = t->nodes[i].id;
                int r = take_memory(h, &nodes[i], true);
                if (r == -ENOENT) /* the node has just gone offline */
                        return false;
                if (r < 0)
                        return fail(h, r);
        }
        int r = read_has_memory(h, &now);
        if (r < 0)
                return r;
        for (size_t i = 0; i < t->n_nodes; i++)
                if (nodes[i].has_memory != t->nodes[i].has_memory)
                        return false;
        return true;
}

static int same_nodes(struct hostfs *h, const struct topology *t, const struct allowed *allowed) {
        _cleanup_free_ int *ids = NULL;
        size_t n = 0;

        int r = hostfs_list(h, &ids, &n, NODE_DIR "/online");
        if (r < 0 && r != -ENOENT)
                return fail(h, r);
        if ((r == 0) != t->numa || (t->numa && n != t->n_nodes))
                return false;
        for (size_t i = 0; i < t->n_nodes; i++) {
                const struct topology_node *node = &t->nodes[i];
                bool may = allowed->all_mems || list_has(allowed->mems, allowed->n_mems, node->id);
                if ((t->numa && ids[i] != node->id) || may != node->memory_allowed)
                        return false;
        }
        return t->numa ? same_memory(h, t) : true;
}

int topology_has_changed(const char *root, const struct topology *t) {
        _cleanup_(hostfs_deinit) struct hostfs h = {};
        _cleanup_(topology_freep) struct topology *now = calloc(1, sizeof(*now));
        struct allowed allowed = {0};

        int r = hostfs_init(&h, root);
        if (r < 0 || !now)
                return r < 0 ? fail(&h, r) : -ENOMEM;
        r = read_cpus(&h, now);
        if (r == 0)
                r = read_allowed(&h, now, &allowed);
        if (r == 0)
                r = same_cpus(t, now) ? same_nodes(&h, t, &allowed) : false;
        free(allowed.mems);
        return r < 0 ? r : !r;
}

int topology_reread(const char *root, struct topology *t) {
        struct topology *now = NULL;
        int r = -pthread_rwlock_trywrlock(&holders);
        if (r < 0)
                return r;
        r = topology_read(root, &now);
        if (r < 0) {
                (void) pthread_rwlock_unlock(&holders);
                return r;
        }
        struct topology before = *t;
        *t = *now;
        (void) pthread_rwlock_unlock(&holders);
        drop_content(&before);
        free(now);
        return 0;
}

void topology_hold(void) {
        (void) pthread_rwlock_rdlock(&holders);
}

void topology_release(void) {
        (void) pthread_rwlock_unlock(&holders);
}

/* A node that has gone offline keeps its values; the check before the next run detects it. */
static int refresh(struct hostfs *h, struct topology *t) {
        for (size_t i = 0; i < t->n_nodes; i++) {
                int r = take_memory(h, &t->nodes[i], t->numa);
                if (r < 0 && r != -ENOENT)
                        return fail(h, r);
        }
        return read_balancing(h, t);
}

int topology_to_json_now(const char *root, const struct topology *t, char **ret) {
        _cleanup_(hostfs_deinit) struct hostfs h = {};
        struct topology now = *t;

        int r = hostfs_init(&h, root);
        if (r < 0)
                return fail(&h, r);
        now.nodes = calloc(t->n_nodes + 1, sizeof(*now.nodes));
        if (!now.nodes)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_nodes; i++)
                now.nodes[i] = t->nodes[i]; /* shares the lists of t */
        r = refresh(&h, &now);
        if (r == 0)
                r = topology_to_json(&now, ret);
        free(now.nodes);
        return r;
}
