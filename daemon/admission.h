/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ADMISSION_H
#define IPCLAB_DAEMON_ADMISSION_H

/*
 * Whether this host can do a point, asked when it is posted, so that nothing impossible is ever queued: limits of the
 * kernel and its settings (capacity.c reads them), CPUs and nodes (placement_resolve), privileges of the daemon.
 */

#include "daemon/topology.h"
#include "schema/refusal.h"
#include "schema/spec.h"

/* 0; -EINVAL with *r naming the limit and its value. root: "" or a captured tree. */
int admission_check(const char *root, const struct topology *t, const struct spec *spec, const struct point *p,
                    struct refusal *r);

/*
 * GET /transports, malloc()ed:
 *
 *      {"items": [{"name", "title", "available", "reason", "workloads": […], "engines": {"syscall": {"available",
 * "reason"}, "io_uring": …}, "copy_modes": […], "waits": […], "message_bound", "capacity": {"largest_message",
 * "largest_transfer", "limit": {"name", "value", "raise"}, "reason"}}], "next": null, "io_uring": {"allowed",
 * "reason"}}
 *
 * largest_transfer is what the mechanism takes in one piece and `limit` decides it; largest_message is what a spec may
 * ask for, which for byte streams is more: they carry a message in many transfers. engines, copy_modes and waits list
 * what the transport can mean and this build measures. A value above 2^53 - 1 (shmmax as it comes) is a decimal string.
 */
int capacity_to_json(const char *root, char **ret);

#endif
