/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_FILESYSTEM_H
#define IPCLAB_AGENT_FILESYSTEM_H

/* What kind of file system a file lies on, by its magic number (man 2 fstatfs). */

struct json_writer;

/* Members "file_system" (its name; null with "file_system_reason") and "file_system_in_memory". */
void filesystem_put(struct json_writer *w, int fd);

#endif
