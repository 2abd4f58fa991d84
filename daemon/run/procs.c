/* SPDX-License-Identifier: MIT */

/* See the header. Owns nothing. Called by the agents' links, on the main loop. */

#include "daemon/run/procs.h"

#include "schema/util.h"

#include <dirent.h>
#include <string.h>

static char state_in(const char *path) {
        char text[512];
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
        text[n] = 0;
        const char *after = strrchr(text, ')'); /* of the command, which may have any byte in it */
        return after && after[1] == ' ' && after[2] ? after[2] : '?';
}

char procs_state(pid_t pid) {
        char path[64];
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        return state_in(path);
}

bool procs_is_stopped(pid_t pid) {
        char letter = procs_state(pid);
        return letter == 'T' || letter == 't';
}

pid_t procs_stopped_child(pid_t pid, bool *ret_more) {
        char path[64];
        int child;
        *ret_more = false;
        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
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

static pid_t tracer_of(pid_t pid, long tid) {
        static const char key[] = "TracerPid:";
        char path[64], line[256];
        (void) snprintf(path, sizeof(path), "/proc/%d/task/%ld/status", pid, tid);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, key, strlen(key)) == 0)
                        return (pid_t) strtol(line + strlen(key), NULL, 10);
        return 0;
}

bool procs_is_held(pid_t pid, pid_t *ret_tracer) {
        char path[64];
        unsigned n = 0;
        bool stands = true;
        pid_t tracer = 0;
        (void) snprintf(path, sizeof(path), "/proc/%d/task", pid);
        DIR *tasks = opendir(path);
        struct dirent *d;
        while (tasks && stands && n < PROCS_TASKS_MAX && (d = readdir(tasks))) { /* NOLINT(concurrency-mt-unsafe) */
                long tid = strtol(d->d_name, NULL, 10);
                if (tid <= 0)
                        continue;
                n++;
                (void) snprintf(path, sizeof(path), "/proc/%d/task/%ld/stat", pid, tid);
                char letter = state_in(path);
                stands = letter == 'Z' || letter == 'X' || letter == 't';
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
