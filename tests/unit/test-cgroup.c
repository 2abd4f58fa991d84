/* SPDX-License-Identifier: MIT */

/* Where the daemon's cgroup is, on the ways that machines mount it; and that a run's cgroup takes everything with it.
 */

#include "daemon/run/sandbox/cgroup.h"

#include "check.h"
#include "child.h"
#include "daemon/log.h"
#include "schema/detail.h"
#include "schema/util.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
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

static bool write_file(const char *directory, const char *name, const char *text) {
        char path[120];
        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        _cleanup_fclose_ FILE *f = fopen(path, "we");
        return f && fputs(text, f) >= 0 && fflush(f) == 0;
}

static struct cgroup_tree *tree;
static char detail[DETAIL_MAX], owner[64];

static int open_tree(void) {
        (void) snprintf(owner, sizeof(owner), "ipclab-test-cgroup-%d", getpid());
        return cgroup_tree_new(&tree, owner, detail);
}

/* A child in the cgroup, with a child of its own; both sleep. */
static pid_t put_processes(const struct cgroup_run *g) {
        int ready;
        pid_t pid = child_fork(&ready);
        if (pid == 0) {
                int procs = openat(cgroup_run_fd(g), "cgroup.procs", O_WRONLY | O_CLOEXEC);
                if (procs < 0 || write(procs, "0", 1) != 1)
                        _exit(1);
                (void) fork();
                if (!child_report(ready))
                        _exit(1);
                for (;;)
                        (void) pause();
        }
        return child_is_ready(pid, ready, 2) ? pid : -1;
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

/* A limit stands in a cgroup or above it; without a number there is none, and what is above the hierarchy is none of
 * its cgroups. */
static void the_least_limit_counts(void) {
        static const struct {
                const char *of_root, *of_middle, *of_own; /* NULL: it has no such file */
                uint64_t least;
        } cases[] = {
                {NULL, NULL, NULL, UINT64_MAX},
                {NULL, "max\n", "max\n", UINT64_MAX},
                {NULL, "max\n", "50331648\n", 50331648},
                {NULL, "50331648\n", "max\n", 50331648},
                {NULL, "50331648\n", NULL, 50331648}, /* the controller is not given on */
                {NULL, "4096\n", "50331648\n", 4096},
                {"9223372036854771712\n", "8192\n", "9223372036854771712\n", 8192},
                {NULL, NULL, "0\n", 0},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char root[] = "/tmp/ipclab-test-limit-XXXXXX", path[80];
                static const char *const levels[] = {"", "/a", "/a/b"};
                const char *const texts[] = {cases[i].of_root, cases[i].of_middle, cases[i].of_own};
                CHECK(mkdtemp(root));
                bool made = true;
                for (size_t p = 0; p < ELEMENTS(levels); p++) {
                        (void) snprintf(path, sizeof(path), "%s%s", root, levels[p]);
                        made = made && (p == 0 || mkdir(path, 0755) == 0);
                        made = made && write_file(path, "cgroup.procs", "") &&
                               (!texts[p] || write_file(path, "memory.max", texts[p]));
                }
                int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                uint64_t least = cgroup_least_limit(fd, "memory.max");
                util_close(fd);
                for (size_t p = ELEMENTS(levels); p-- > 0;) {
                        (void) snprintf(path, sizeof(path), "%s%s/memory.max", root, levels[p]);
                        (void) unlink(path);
                        (void) snprintf(path, sizeof(path), "%s%s/cgroup.procs", root, levels[p]);
                        (void) unlink(path);
                        (void) snprintf(path, sizeof(path), "%s%s", root, levels[p]);
                        (void) rmdir(path);
                }
                CHECK(made);
                CHECK_UINT(least, cases[i].least);
        }
}

static bool write_number(const char *path, uint64_t number) {
        _cleanup_fclose_ FILE *f = fopen(path, "we");
        return f && fprintf(f, "%" PRIu64 "\n", number) > 0 && fflush(f) == 0;
}

/* A process that enters a cgroup of 48 MiB has that limit. */
static void the_own_limit_is_found(void) {
        static const struct {
                const char *base, *file;
        } versions[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}};
        for (size_t i = 0; i < ELEMENTS(versions); i++) {
                char directory[128], path[200];
                int status = -1;
                (void) snprintf(directory, sizeof(directory), "%s/ipclab-test-limit-%d", versions[i].base, getpid());
                (void) snprintf(path, sizeof(path), "%s/%s", directory, versions[i].file);
                if (mkdir(directory, 0755) < 0)
                        continue;
                if (access(path, W_OK) == 0 && write_number(path, 48 << 20)) {
                        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
                        pid_t pid = fork();
                        if (pid == 0)
                                _exit(!write_number(path, (uint64_t) getpid()) ? 2 : cgroup_memory_limit() != 48 << 20);
                        if (waitpid(pid, &status, 0) != pid)
                                status = -1;
                }
                CHECK_INT(rmdir(directory), 0);
                if (status < 0 || WEXITSTATUS(status) == 2)
                        continue;
                CHECK_INT(status, 0);
                return;
        }
        SKIP("this host has no memory cgroup to give");
}

int main(void) {
        log_open(LOG_ERR);
        RUN(own_cgroup_is_found);
        RUN(the_least_limit_counts);
        RUN(the_own_limit_is_found);
        RUN(run_ends_with_all_its_processes);
        RUN(leftovers_are_killed_and_removed_at_start);
        return check_end();
}
