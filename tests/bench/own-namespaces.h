/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_OWN_NAMESPACES_H
#define IPCLAB_TESTS_OWN_NAMESPACES_H

/* Namespaces of this process's own, as root of a user namespace where there is no other way. */

#include "schema/util.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>

static int own_namespaces_write(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Maps root of the new user namespace to the user and group that this process had before. */
static int own_namespaces_map(unsigned uid, unsigned gid) {
        char map[32];
        (void) snprintf(map, sizeof map, "0 %u 1", uid);
        int r = own_namespaces_write("/proc/self/setgroups", "deny");
        if (r == 0)
                r = own_namespaces_write("/proc/self/uid_map", map);
        (void) snprintf(map, sizeof map, "0 %u 1", gid);
        return r < 0 ? r : own_namespaces_write("/proc/self/gid_map", map);
}

/* flags: of unshare(2). While there is one thread. NULL; or why there are none, errno being the reason. */
static const char *own_namespaces(int flags) {
        unsigned uid = geteuid(), gid = getegid();
        if (unshare(flags) == 0)
                return NULL;
        if (unshare(CLONE_NEWUSER | flags) < 0)
                return "neither these namespaces nor a user namespace are to be had here";
        int r = own_namespaces_map(uid, gid);
        errno = -r;
        return r < 0 ? "this user cannot be mapped into a user namespace" : NULL;
}

#endif
