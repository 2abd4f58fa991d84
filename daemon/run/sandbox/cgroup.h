/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A cgroup (v2) per run, so that a run ends as a whole, with whatever it forked: run-ID.OWNER in the daemon's own
 * cgroup. OWNER distinguishes the daemons of one machine.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_tree; /* where runs' cgroups are made */
struct cgroup_run;

/* Finds the daemon's cgroup; kills and removes what a dead daemon of the same owner's name (no dots) left in it.
 * 0, or a negative errno with the reason in ret_detail[DETAIL_MAX]. */
int cgroup_tree_new(struct cgroup_tree **ret, const char *owner, char *ret_detail);
void cgroup_tree_free(struct cgroup_tree *t); /* NULL-safe */

/* Tries again to remove those of earlier runs that something had survived. There is one run at a time. */
int cgroup_run_new(struct cgroup_tree *t, int64_t run_id, struct cgroup_run **ret);
int cgroup_run_fd(const struct cgroup_run *g); /* for CLONE_INTO_CGROUP */
const char *cgroup_run_name(const struct cgroup_run *g);
/* SIGKILL to everything in it. 0 or negative errno. */
int cgroup_run_kill(struct cgroup_run *g);
/* Whether cgroup_run_end() has nothing to wait for. */
bool cgroup_run_is_empty(const struct cgroup_run *g);
/* Kills, waits as long as that until it is empty, and removes it. 0; -EBUSY when something survived; the object is gone
 * either way. NULL-safe. */
int cgroup_run_end(struct cgroup_run *g, uint64_t wait_ns);

/* A directory descriptor of the cgroup that a process is in: of the version 1 hierarchy with this controller ("cpu"),
 * or of version 2 (NULL). -ENOENT when there is none, or none that can be reached; -errno. */
int cgroup_open(pid_t pid, const char *controller);
/* The least limit of memory of the cgroups that this process is in, of either version, and of those above them;
 * UINT64_MAX: there is none that can be read. */
uint64_t cgroup_memory_limit(void);
/* For tests: the least number in files of this name in a cgroup and in those above it. */
uint64_t cgroup_least_limit(int fd, const char *name);
/* For tests: its path, from the texts of /proc/self/mountinfo and /proc/PID/cgroup. ret_path is malloc()ed. */
int cgroup_find(const char *mountinfo, const char *groups, const char *controller, char **ret_path);
