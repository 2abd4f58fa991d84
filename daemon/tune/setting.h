/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SETTING_H
#define IPCLAB_DAEMON_SETTING_H

/*
 * The settings of the host that ipclab may change, and no other. Reading needs no privilege; writing needs to be root,
 * or ipclab-tune (main.c), which runs as root and changes and restores settings for the daemon's user.
 */

#include <stdbool.h>
#include <stddef.h>

#define SETTING_SOCKET "/run/ipclab-tune.sock"
/* The protocol with ipclab-tune, beside "NAME=VALUE" and "ok". */
#define SETTING_RESTORE "restore "
#define SETTING_NO_UNDO_RECORD "there is no undo record"
#define SETTING_VALUE_MAX 32u
#define SETTING_DETAIL_MAX 300u

/* "kernel.numa_balancing" of "numa_balancing"; NULL: not one that may be changed. */
const char *setting_title(const char *name);
bool setting_allows(const char *name, const char *value);

/* root: "" or a captured tree, where the files are plain ones. 0; -EINVAL for a name or value that is not in the table;
 * -errno. setting_write() reads the value back: -EIO when the kernel has taken another. */
int setting_read(const char *root, const char *name, char *ret /* [SETTING_VALUE_MAX] */);
int setting_write(const char *root, const char *name, const char *value);

/* Whether setting_change() can work at all. 0; -EACCES with the reason. */
int setting_may_change(const char *root, const char *name, char *ret_detail);
/* Writes the setting itself, or through ipclab-tune where it has not the privilege. 0; -errno with the reason in
 * ret_detail[SETTING_DETAIL_MAX]. Takes at most five seconds. */
int setting_change(const char *root, const char *name, const char *value, char *ret_detail);
/* Undoes setting_change(), whatever the configuration is by then: ipclab-tune restores the value that it has saved, and
 * does not receive one. As setting_change() in all else; -ESTALE: ipclab-tune has no undo record. */
int setting_restore(const char *root, const char *name, const char *original, char *ret_detail);

/* Sends a request to the ipclab-tune behind this socket, and a second time when the connection ends without a reply. 0
 * for "ok"; -ESTALE for SETTING_NO_UNDO_RECORD; -errno with the reason in ret_detail. */
int setting_request(const char *socket_path, const char *request, char *ret_detail);

#endif
