/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The machine's nodes, CPUs, caches and distances, read from /sys and /proc below a settable root, so that trees
 * captured on other machines are test data. Never assumes that node ids or CPU ids are contiguous.
 *
 * CPUs may come and go while the daemon runs. The main thread owns the topology. Before each run it checks whether the
 * topology is still valid, and reads it again into the same struct when it is not; between runs it does so at a request
 * (daemon/run/scheduler.h). Every other thread holds the topology while it reads.
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
        int *cpus; /* the CPUs that share it */
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
        int numa_balancing; /* -1: this kernel has no such setting; else 0, 1, 2 */
};

/* root: "" for this machine, else a captured tree. 0; -errno with the path at fault in the log. */
int topology_read(const char *root, struct topology **ret);
void topology_free(struct topology *t);
/* 1 when other CPUs or nodes are online, or allowed, than were when t was read, or other nodes have memory; 0; -errno
 * with the path in the log. An offline CPU may become allowed or not without a change. As
 * topology_read(), it reads the allowed sets of the process' main thread. */
int topology_has_changed(const char *root, const struct topology *t);
/* Replaces the content of t by a new reading; pointers to t stay valid, pointers into it do not. -EBUSY: a
 * thread holds it, which may take seconds. Only the owner calls it, and not while it holds it itself. On failure t is
 * unchanged. As topology_read(). */
int topology_reread(const char *root, struct topology *t);
/* Every access by a thread other than the owner must be between these two. Not recursive. */
void topology_hold(void);
void topology_release(void);
const struct topology_cpu *topology_find_cpu(const struct topology *t, int id);
const struct topology_node *topology_find_node(const struct topology *t, int id);
/* Bytes of the largest cache of the highest level; SPEC_LAST_CACHE_DEFAULT where the kernel shows none. */
uint64_t topology_last_cache(const struct topology *t);
/* Malloc()ed. */
int topology_to_json(const struct topology *t, char **ret);
/* The same with the memory of the nodes and the setting of NUMA balancing read now, for GET /topology. Malloc()ed. 0;
 * -errno. */
int topology_to_json_now(const char *root, const struct topology *t, char **ret);
