/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Packets that each CPU has received in softirqs, of all network namespaces, and those that passed the loopback device
 * of this one: what CPUs received beyond the latter came from other devices, or from others' namespaces, and is not a
 * run's own, whose connections are over this loopback device. Read by run/watch/watch.c every second.
 *
 * Source: net/core/net-procfs.c (softnet_seq_show), man 5 proc_net (/proc/net/dev).
 */

#include <stddef.h>
#include <stdint.h>

struct packets {
        int softnet_fd, dev_fd;
        char *buffer;
        size_t size;
};

/* The counters at one moment; only differences mean something. */
struct packets_reading {
        /* Through the loopback device, before and after the CPUs' counts were read. -1: one of the files could not be
         * read, or has not the form that the kernel writes. */
        int64_t loopback[2];
        uint32_t *cpus; /* of each CPU; it begins at 0 again after the largest */
};

/* What cannot be opened leaves every reading unknown. root: "", or the folder of a captured tree. */
void packets_open(const char *root, struct packets *ret);
void packets_close(struct packets *p);
/* ret->cpus[i] is of CPU ids[i], the CPUs that are online, ascending. */
void packets_read(struct packets *p, const int *ids, size_t n, struct packets_reading *ret);
