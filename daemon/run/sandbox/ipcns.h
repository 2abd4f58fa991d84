/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An IPC namespace for one run: SysV and POSIX queues, semaphores and SysV segments that a run leaves are gone with the
 * last descriptor, whatever killed its agents. The settings of the queues in it are its own, too.
 */

#include "daemon/admission/queues.h"

#include <stdbool.h>
#include <stdint.h>

struct ipcns {
        int ipc_fd;  /* -1: none */
        int user_fd; /* the user namespace that owns it, to be entered first; -1: the daemon's own */
};

#define IPCNS_NONE ((struct ipcns){.ipc_fd = -1, .user_fd = -1})

/* Makes one; where the daemon may not, inside a user namespace whose root is this user. settings: what to set in it, 0
 * = kernel default; NULL: all defaults. 0, or a negative errno with the reason in ret_detail[DETAIL_MAX]. */
int ipcns_new(const uint64_t settings[QUEUE_SETTINGS], struct ipcns *ret, char *ret_detail);
void ipcns_close(struct ipcns *ns);

/* Probes what runs can get on this host, in namespaces that are gone again afterwards. *ret has the reasons for what is
 * missing. */
void ipcns_probe(struct queue_host *ret);
