/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_TOPOLOGY_H
#define IPCLAB_DAEMON_TOPOLOGY_H

/*
 * The machine's nodes, CPUs, caches and distances, read from /sys and /proc below a settable root, so that trees
 * captured on other machines are test data. Never assumes that node ids or CPU ids are contiguous.
 *
 * A daemon lives on while CPUs come and go. Who owns the topology, its main thread, asks before each run whether it
 * still holds and reads it again when not, into the same struct; so it does between runs when somebody wants to know
 * (daemon/run/scheduler.h). Every other thread holds it while it looks.
 *
 * Source: Documentation/ABI/stable/sysfs-devices-node, .../sysfs-devices-system-cpu; cpuset(7) for the allowed sets.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct topology_cpu {
        int id;
        bool online;
        bool allowed;  /* in this process's cpuset (Cpus_allowed_list) */
        int node;      /* -1: none, or offline */
        int package;   /* -1: unknown, or offline */
        int core;      /* unique within the package; -1: unknown, or offline */
        int *siblings; /* online CPUs of the same core, itself included, ascending; none when offline */
        size_t n_siblings;
};

struct topology_node {
        int id;
        int *cpus; /* online and allowed, in topology order: one per core first, then the SMT siblings */
        size_t n_cpus;
        bool has_memory;
        bool memory_allowed; /* Mems_allowed_list */
        uint64_t memory_bytes, memory_free_bytes;
        uint32_t *distances; /* to nodes[i], same order as topology.nodes */
};

struct topology_cache {
        int level;
        char type[16]; /* "Data", "Instruction", "Unified" */
        uint64_t size_bytes;
        uint32_t line_bytes;
        int *cpus; /* that share it */
        size_t n_cpus;
};

struct topology {
        struct topology_cpu *cpus; /* ascending id, online and offline */
        size_t n_cpus;
        struct topology_node *nodes; /* online ones, ascending id */
        size_t n_nodes;
        struct topology_cache *caches; /* each once */
        size_t n_caches;
        bool numa;          /* false: a kernel without NUMA, shown as one node 0; it has no memory policies either */
        int numa_balancing; /* -1: this kernel has none; else 0, 1, 2 */
};

/* root: "" for this machine, else a captured tree. 0; -errno with the path at fault in the log. */
int topology_read(const char *root, struct topology **ret);
void topology_free(struct topology *t);
/* 1 when other CPUs or nodes are online, or allowed, than were when t was read, or other nodes have memory; 0; -errno
 * with the path in the log. What is allowed to a CPU that is offline does not count. Of the calling process' main
 * thread, as topology_read(). */
int topology_has_changed(const char *root, const struct topology *t);
/* Replaces what t holds by what is so now; pointers to t stay good, pointers into it do not. Waits for those that hold
 * it. The owner alone calls it, and not while it holds. On failure t is as it was. As topology_read(). */
int topology_reread(const char *root, struct topology *t);
/* Around every look from another thread than the owner's. Not to be nested. */
void topology_hold(void);
void topology_release(void);
const struct topology_cpu *topology_find_cpu(const struct topology *t, int id);
const struct topology_node *topology_find_node(const struct topology *t, int id);
/* Malloc()ed. */
int topology_to_json(const struct topology *t, char **ret);
/* As GET /topology: with the memory of the nodes and the setting of NUMA balancing as they are now. Malloc()ed. 0;
 * -errno. */
int topology_to_json_now(const char *root, const struct topology *t, char **ret);

#endif
