/* SPDX-License-Identifier: MIT */

/* See the header. Owns nothing. Called by the agents' links, on the main loop. */

#include "daemon/run/watch/procs.h"

#include "daemon/host/hostfs.h"
#include "schema/util.h"

#include <dirent.h>
#include <inttypes.h>
#include <string.h>

bool procs_read_stat(pid_t pid, pid_t tid, struct procs_stat *ret) {
        struct hostfs h = HOSTFS_MACHINE;
        _cleanup_free_ char *text = NULL;
        int parent;
        if (hostfs_text(&h, &text, "/proc/%d/task/%d/stat", pid, tid) < 0)
                return false;
        const char *begin = strchr(text, '('), *end = strrchr(text, ')'); /* a command may have any byte in it */
        if (!begin || !end ||
            sscanf(end + 1, /* NOLINT(cert-err34-c): the kernel's own numbers */
                   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64, &ret->state,
                   &parent, &ret->start_ticks) != 3)
                return false;
        ret->parent = parent;
        (void) snprintf(ret->name, sizeof(ret->name), "%.*s", (int) (end - begin - 1), begin + 1);
        return true;
}

char procs_state(pid_t pid) {
        struct procs_stat stat;
        return procs_read_stat(pid, pid, &stat) ? stat.state : '?';
}

bool procs_is_stopped(pid_t pid) {
        char letter = procs_state(pid);
        return letter == 'T' || letter == 't';
}

FILE *procs_open_children(pid_t pid, pid_t tid) {
        char path[64];
        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
        return fopen(path, "re");
}

pid_t procs_stopped_child(pid_t pid, bool *ret_more) {
        int child;
        *ret_more = false;
        _cleanup_fclose_ FILE *f = procs_open_children(pid, pid);
        for (unsigned n = 0; f && fscanf(f, "%d", &child) == 1; n++) { /* NOLINT(cert-err34-c): the kernel's numbers */
                if (n == PROCS_CHILDREN_MAX) {
                        *ret_more = true;
                        return 0;
                }
                if (procs_is_stopped(child))
                        return child;
        }
        return 0;
}

static bool has_live_child(pid_t pid, pid_t tid) {
        int child;
        bool lives = false;
        _cleanup_fclose_ FILE *f = procs_open_children(pid, tid);
        for (unsigned n = 0; f && !lives && fscanf(f, "%d", &child) == 1; n++) /* NOLINT(cert-err34-c) */
                lives = n == PROCS_CHILDREN_MAX || !strchr("ZX?", procs_state(child));
        return lives;
}

bool procs_has_live_child(pid_t pid) {
        char path[64];
        unsigned n = 0;
        bool lives = false;
        (void) snprintf(path, sizeof(path), "/proc/%d/task", pid);
        DIR *tasks = opendir(path);
        struct dirent *d;
        while (tasks && !lives && (d = readdir(tasks))) { /* NOLINT(concurrency-mt-unsafe) */
                pid_t tid = (pid_t) strtol(d->d_name, NULL, 10);
                lives = tid > 0 && (n++ == PROCS_TASKS_MAX || has_live_child(pid, tid));
        }
        if (tasks)
                closedir(tasks);
        return lives;
}

static pid_t tracer_of(pid_t pid, pid_t tid) {
        struct hostfs h = HOSTFS_MACHINE;
        _cleanup_free_ char *text = NULL;
        char tracer[16];
        if (hostfs_text(&h, &text, "/proc/%d/task/%d/status", pid, tid) < 0 ||
            hostfs_field(text, "TracerPid", tracer, sizeof(tracer)) < 0)
                return 0;
        return (pid_t) strtol(tracer, NULL, 10);
}

bool procs_is_held(pid_t pid, pid_t *ret_tracer) {
        char path[64];
        unsigned n = 0;
        bool stands = true;
        pid_t tracer = 0;
        (void) snprintf(path, sizeof(path), "/proc/%d/task", pid);
        DIR *tasks = opendir(path);
        struct dirent *d;
        while (tasks && stands && (d = readdir(tasks))) { /* NOLINT(concurrency-mt-unsafe) */
                struct procs_stat stat;
                pid_t tid = (pid_t) strtol(d->d_name, NULL, 10);
                if (tid <= 0)
                        continue;
                stands = n++ < PROCS_TASKS_MAX && procs_read_stat(pid, tid, &stat) && strchr("ZXt", stat.state);
                if (tracer == 0)
                        tracer = tracer_of(pid, tid);
        }
        if (tasks)
                closedir(tasks);
        if (n == 0 || !stands)
                return false;
        *ret_tracer = tracer;
        return true;
}
