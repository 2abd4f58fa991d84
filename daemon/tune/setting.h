/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SETTING_H
#define IPCLAB_DAEMON_SETTING_H

/*
 * The settings of the host that ipclab may change, and no other. Reading needs no privilege; writing needs to be root,
 * or ipclab-tune (tune-main.c), which is, and which changes and puts back these for the daemon's user.
 */

#include <stdbool.h>
#include <stddef.h>

#define SETTING_SOCKET "/run/ipclab-tune.sock"
/* What the daemon and ipclab-tune say to each other beside "NAME=VALUE" and "ok". */
#define SETTING_RESTORE "restore "
#define SETTING_NOTHING_KEPT "nothing is kept of it"
#define SETTING_VALUE_MAX 32u
#define SETTING_DETAIL_MAX 300u

/* "kernel.numa_balancing" of "numa_balancing"; NULL: not one that may be changed. */
const char *setting_title(const char *name);
bool setting_allows(const char *name, const char *value);

/* root: "" or a captured tree, where the files are plain ones. 0; -EINVAL for a name or value that is not in the table;
 * -errno. setting_write() reads the value back: -EIO when the kernel has taken another. */
int setting_read(const char *root, const char *name, char *ret /* [SETTING_VALUE_MAX] */);
int setting_write(const char *root, const char *name, const char *value);

/* Whether setting_change() has a way at all. 0; -EACCES with words. */
int setting_may_change(const char *root, const char *name, char *ret_detail);
/* Writes by itself, or where it may not, by ipclab-tune. 0; -errno with words in ret_detail[SETTING_DETAIL_MAX]. Takes
 * at most five seconds. */
int setting_change(const char *root, const char *name, const char *value, char *ret_detail);
/* The way back of setting_change(), open whatever the configuration says by now: ipclab-tune puts back what it found
 * itself, and is not told to which value. As that one in all else; -ESTALE: it has not changed anything. */
int setting_restore(const char *root, const char *name, const char *original, char *ret_detail);

/* Says a line to the ipclab-tune behind this socket: twice, when it goes away without a word the first time. 0 for
 * "ok"; -ESTALE for SETTING_NOTHING_KEPT; -errno with words in ret_detail. */
int setting_ask(const char *socket_path, const char *question, char *ret_detail);

#endif
