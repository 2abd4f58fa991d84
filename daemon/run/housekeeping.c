/* SPDX-License-Identifier: MIT */

/* Moves the daemon's threads out of a run's way and back: main loop, HTTP threads, those of libraries. Owns no state;
 * the scheduler has the initial affinity. */

#include "daemon/run/housekeeping.h"

#include "schema/util.h"

#include <dirent.h>

static int move_all(DIR *tasks, const struct affinity *to) {
        int result = 0;
        for (;;) {
                errno = 0;
                struct dirent *d = readdir(tasks); /* NOLINT(concurrency-mt-unsafe): a stream of our own */
                if (!d)
                        return result ? result : -errno;
                char *end;
                long tid = strtol(d->d_name, &end, 10);
                if (*end || tid <= 0)
                        continue;
                int r = affinity_set((pid_t) tid, to);
                if (r < 0 && r != -ESRCH && result == 0)
                        result = r;
        }
}

int housekeeping_move(const struct affinity *to) {
        DIR *tasks = opendir("/proc/self/task");
        if (!tasks)
                return -errno;
        int r = move_all(tasks, to);
        closedir(tasks);
        return r;
}
