/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The undo journal of ipclab-tune: a record per changed setting, with the value that the setting had before. A record
 * is a file with the setting's name in a directory that only root may write and that ends with the boot, as the change
 * does. So a value can be restored whatever the configuration is by then, and the client of ipclab-tune cannot choose
 * the value.
 */

#define UNDO_DIR "/run/ipclab-tune"

/* The directory's descriptor; -errno; -EPERM when others may write there. */
int undo_open(const char *path);

/* Both hold the directory's lock meanwhile. root: "" or a captured tree, see setting.h. */

/* Writes the undo record, then sets the value. A setting that is changed twice keeps the first saved value, unless
 * somebody else has changed it in between. 0; -EINVAL for what is not in the table; -EBADMSG for a damaged record, or
 * when the setting has a value to which it could not be restored; -errno. */
int undo_change(const char *root, int dir_fd, const char *name, const char *value);
/* Restores the saved value and removes the record, which stays while a CPU of it is offline. A value other than the one
 * that was set was set by somebody else, and stays. 0; -ENOENT: there is no record; -errno, and the record stays. */
int undo_restore(const char *root, int dir_fd, const char *name);
