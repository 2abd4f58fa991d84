/* SPDX-License-Identifier: MIT */

/* Where the daemon's cgroup is, on the ways that machines mount it; and that a run's cgroup takes everything with it.
 */

#include "daemon/run/cgroup.h"

#include "check.h"
#include "daemon/log.h"
#include "schema/detail.h"
#include "schema/util.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define UNIFIED "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define HYBRID                                                                                                         \
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"                                                   \
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"                                                  \
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

static const struct place {
        const char *mountinfo, *groups;
        const char *path;       /* NULL: none */
        const char *controller; /* NULL: of version 2 */
} places[] = {
        {UNIFIED, "0::/system.slice/ipclabd.service\n", "/sys/fs/cgroup/system.slice/ipclabd.service", NULL},
        {UNIFIED, "0::/\n", "/sys/fs/cgroup/", NULL},
        {HYBRID, "9:name=systemd:/x\n1:cpu:/\n0::/y\n", "/sys/fs/cgroup/unified/y", NULL},
        {HYBRID, "9:name=systemd:/x\n1:cpu:/\n", NULL, NULL},
        {"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "0::/\n", NULL, NULL},
        {"", "", NULL, NULL},
        /* a container that sees a part of the hierarchy, and one that stands outside of what it sees */
        {"30 23 0:26 /machine/a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/machine/a/b\n", "/sys/fs/cgroup/b",
         NULL},
        {"30 23 0:26 /machine/a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/other\n", NULL, NULL},
        {UNIFIED, "0::/../outside\n", NULL, NULL},
        {"30 23 0:26 / /mnt/with\\040blank rw - cgroup2 cgroup2 rw\n", "0::/a\n", "/mnt/with blank/a", NULL},
        /* the CPU controller of version 1, alone and beside others; and two whose names begin or end so */
        {HYBRID, "9:name=systemd:/x\n1:cpu:/z\n0::/y\n", "/sys/fs/cgroup/cpu/z", "cpu"},
        {"32 31 0:29 / /mnt rw shared:9 - cgroup cgroup rw,cpuacct,cpu\n", "4:cpuset:/a\n3:cpuacct,cpu:/b:c\n",
         "/mnt/b:c", "cpu"},
        {"32 31 0:29 / /mnt rw - cgroup cgroup rw,cpuset\n", "4:cpuset:/a\n", NULL, "cpu"},
        {"32 31 0:29 / /mnt rw - cgroup cgroup rw,cpu\n", "4:cpuset,cpuacct:/a\n", NULL, "cpu"},
        {UNIFIED, "0::/a\n", NULL, "cpu"},
};

static void own_cgroup_is_found(void) {
        for (size_t i = 0; i < ELEMENTS(places); i++) {
                _cleanup_free_ char *path = NULL;
                int r = cgroup_find(places[i].mountinfo, places[i].groups, places[i].controller, &path);
                if (places[i].path ? r != 0 || strcmp(path, places[i].path) != 0 : r != -ENOENT)
                        CHECK_FAIL("case %zu: %d %s", i, r, path ? path : "-");
        }
}

static struct cgroup_tree *tree;
static char detail[DETAIL_MAX], owner[64];

static int open_tree(void) {
        (void) snprintf(owner, sizeof(owner), "ipclab-test-cgroup-%d", getpid());
        return cgroup_tree_new(&tree, owner, detail);
}

/* A child in the cgroup, with a child of its own; both sleep. */
static pid_t put_processes(const struct cgroup_run *g) {
        int ready[2];
        char byte;
        if (pipe2(ready, O_CLOEXEC) < 0)
                return -1;
        pid_t pid = fork();
        if (pid == 0) {
                int procs = openat(cgroup_run_fd(g), "cgroup.procs", O_WRONLY | O_CLOEXEC);
                if (procs < 0 || write(procs, "0", 1) != 1)
                        _exit(1);
                (void) fork();
                if (write(ready[1], "x", 1) != 1)
                        _exit(1);
                for (;;)
                        (void) pause();
        }
        close(ready[1]);
        ssize_t n = read(ready[0], &byte, 1);
        n += read(ready[0], &byte, 1);
        close(ready[0]);
        return n == 2 ? pid : -1;
}

static void run_ends_with_all_its_processes(void) {
        struct cgroup_run *g;
        int status = 0;
        if (open_tree() < 0)
                SKIP("%s", detail);
        CHECK_INT(cgroup_run_new(tree, 12, &g), 0);
        pid_t pid = put_processes(g);
        CHECK(pid > 0);
        CHECK_INT(cgroup_run_end(g, 2 * NSEC_PER_SEC), 0);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK_INT(cgroup_run_new(tree, 12, &g), 0); /* the name is free again */
        CHECK_INT(cgroup_run_end(g, 2 * NSEC_PER_SEC), 0);
        cgroup_tree_free(tree);
}

static void leftovers_are_killed_and_removed_at_start(void) {
        struct cgroup_run *g, *of_another;
        struct cgroup_tree *another;
        char name[80];
        int status = 0;
        if (open_tree() < 0)
                SKIP("%s", detail);
        CHECK_INT(cgroup_run_new(tree, 13, &g), 0);
        (void) snprintf(name, sizeof(name), "%s-b", owner);
        CHECK_INT(cgroup_tree_new(&another, name, detail), 0);
        CHECK_INT(cgroup_run_new(another, 13, &of_another), 0);
        pid_t mine = put_processes(g), theirs = put_processes(of_another);
        CHECK(mine > 0 && theirs > 0);
        cgroup_tree_free(tree); /* as if killed: the run's group stays */
        CHECK_INT(open_tree(), 0);
        CHECK_INT(waitpid(mine, &status, 0), mine);
        CHECK(WIFSIGNALED(status));
        CHECK_INT(waitpid(theirs, &status, WNOHANG), 0); /* another daemon's lives on */
        CHECK_INT(faccessat(cgroup_run_fd(g), "cgroup.procs", F_OK, 0), -1);
        CHECK_INT(cgroup_run_end(of_another, 2 * NSEC_PER_SEC), 0);
        CHECK_INT(waitpid(theirs, &status, 0), theirs);
        close(cgroup_run_fd(g));
        free(g);
        cgroup_tree_free(another);
        cgroup_tree_free(tree);
}

int main(void) {
        log_open(LOG_ERR);
        RUN(own_cgroup_is_found);
        RUN(run_ends_with_all_its_processes);
        RUN(leftovers_are_killed_and_removed_at_start);
        return check_end();
}
