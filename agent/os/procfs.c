/* SPDX-License-Identifier: MIT */

/* Readers of /proc/self/task. The second field of stat is a name of arbitrary characters: counting starts after its
 * end. */

#include "agent/os/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/util.h"

static int read_file(const char *path, char *buffer, size_t size) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        size_t length = 0;
        while (length < size - 1) {
                ssize_t n = read(fd, buffer + length, size - 1 - length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
        }
        buffer[length] = '\0';
        return 0;
}

int procfs_read_task(pid_t tid, const char *name, char *buffer, size_t size) {
        return procfs_read_task_of(0, tid, name, buffer, size);
}

int procfs_read_task_of(pid_t pid, pid_t tid, const char *name, char *buffer, size_t size) {
        char path[96];
        if (pid)
                (void) snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int) pid, (int) tid, name);
        else
                (void) snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int) tid, name);
        return read_file(path, buffer, size);
}

int procfs_stat_number(const char *text, enum stat_field field, uint64_t *ret) {
        const char *p = strrchr(text, ')');
        if (!p)
                return -EBADMSG;
        for (int at = 2; at < (int) field; at++) { /* ')' ends field 2 */
                p = strchr(p + 1, ' ');
                if (!p)
                        return -EBADMSG;
        }
        char *end;
        errno = 0;
        unsigned long long v = strtoull(p + 1, &end, 10);
        if (errno || end == p + 1 || (*end != ' ' && *end != '\n' && *end != '\0'))
                return -EBADMSG;
        *ret = v;
        return 0;
}

int procfs_line_number(const char *text, const char *name, uint64_t *ret) {
        size_t length = strlen(name);
        for (const char *line = text; line; line = strchr(line, '\n')) {
                if (*line == '\n')
                        line++;
                if (strncmp(line, name, length) != 0)
                        continue;
                const char *p = line + length + strspn(line + length, " \t");
                if (*p != ':')
                        continue;
                p += 1 + strspn(p + 1, " \t");
                char *end;
                errno = 0;
                unsigned long long v = strtoull(p, &end, 10);
                if (errno || end == p)
                        return -ENODATA;
                *ret = v;
                return 0;
        }
        return -ENODATA;
}

uint64_t procfs_huge_page_bytes(void) {
        char text[8192];
        uint64_t kib;
        if (read_file("/proc/meminfo", text, sizeof text) < 0 || procfs_line_number(text, "Hugepagesize", &kib) < 0)
                return 0;
        return kib * 1024;
}

long procfs_setting(const char *path) {
        char line[32], *end;
        if (procfs_first_line(path, line, sizeof line) < 0)
                return -1;
        errno = 0;
        long value = strtol(line, &end, 10);
        return errno || end == line || *end != '\0' ? -1 : value;
}

int procfs_first_line(const char *path, char *buffer, size_t size) {
        int r = read_file(path, buffer, size);
        if (r == 0)
                buffer[strcspn(buffer, "\n")] = '\0';
        return r;
}
