/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_KEPT_H
#define IPCLAB_DAEMON_KEPT_H

/*
 * What ipclab-tune keeps: the value that a setting had before it was changed, in a file of the setting's name in a
 * directory that is root's alone and is gone with the boot, as the change is. So the way back is open whatever has
 * become of the configuration, and needs nobody's word: the one who asks cannot say to which value.
 */

#define KEPT_DIR "/run/ipclab-tune"

/* The directory's descriptor; -errno; -EPERM when others may write there. */
int kept_open(const char *path);

/* Both hold the directory's lock meanwhile. root: "" or a captured tree, see setting.h. */

/* Sets the value, its original kept first. A setting that is changed twice keeps the first original, unless somebody
 * else has changed it in between. 0; -EINVAL for what is not in the table; -errno. */
int kept_change(const char *root, int dir_fd, const char *name, const char *value);
/* Puts the original back and forgets it. A value that is not the one that was set is somebody else's, and stays. 0;
 * -ENOENT: nothing is kept of it; -errno, and it is kept on. */
int kept_restore(const char *root, int dir_fd, const char *name);

#endif
