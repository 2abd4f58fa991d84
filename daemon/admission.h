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

/* GET /transports: {"items": [{"name", "title", "available", "reason", "workloads": […], "engines": {…},
 * "copy_modes": […], "capacity": {"largest_message", "limit": {"name", "value", "raise"}}, …}]}; malloc()ed. */
int capacity_to_json(const char *root, char **ret);

#endif
