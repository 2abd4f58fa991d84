/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_SCHEDULING_H
#define IPCLAB_AGENT_SCHEDULING_H

/* What an agent inherits from the process that started the daemon, and what each of its turns and system calls depends
 * on. */

struct effective;

/* Adds the rows scheduling, of the first thread and so of the workers that it has created, and seccomp. */
void scheduling_put(struct effective *e);

#endif
