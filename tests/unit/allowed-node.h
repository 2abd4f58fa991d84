/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_ALLOWED_NODE_H
#define IPCLAB_TESTS_ALLOWED_NODE_H

/* A node to bind to, on whatever machine a test runs: the first that this process may use. man 2 get_mempolicy. */

#include "schema/spec/spec.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 0; negative errno, as of a kernel without NUMA. */
static inline int allowed_node(unsigned *ret) {
        unsigned long nodes[SPEC_NODES_MAX / 8 / sizeof(unsigned long)] = {};
        unsigned node = 0;
        if (syscall(SYS_get_mempolicy, NULL, nodes, (unsigned long) SPEC_NODES_MAX, NULL, MPOL_F_MEMS_ALLOWED) < 0)
                return -errno;
        while (node < SPEC_NODES_MAX && !(nodes[node / 64] >> (node % 64) & 1))
                node++;
        *ret = node;
        return 0;
}

#endif
