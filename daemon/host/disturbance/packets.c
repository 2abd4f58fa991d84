/* SPDX-License-Identifier: MIT */

/* Parses /proc/net/softnet_stat, a line of hexadecimal numbers for each CPU, and one line of /proc/net/dev. */

#include "daemon/host/disturbance/packets.h"

#include "daemon/host/hostfs.h"
#include "schema/util.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define PROCESSED 0 /* columns */
#define CPU_ID 12   /* from Linux 5.10 on; before, the lines are those of the CPUs that are online */

static int open_below(const char *root, const char *path) {
        char full[PATH_MAX];
        int n = snprintf(full, sizeof(full), "%s%s", root, path);
        return n < 0 || n >= (int) sizeof(full) ? -1 : open(full, O_RDONLY | O_CLOEXEC);
}

void packets_open(const char *root, struct packets *ret) {
        *ret = (struct packets){.softnet_fd = open_below(root, "/proc/net/softnet_stat"),
                                .dev_fd = open_below(root, "/proc/net/dev")};
}

void packets_close(struct packets *p) {
        p->softnet_fd = util_close(p->softnet_fd);
        p->dev_fd = util_close(p->dev_fd);
        free(p->buffer);
        p->buffer = NULL;
}

static const char *next_line(const char *line) {
        line += strcspn(line, "\n");
        return line + (*line == '\n');
}

/* Packets that "lo" has received: "    lo: BYTES PACKETS …". -1: there is no such line. */
static int64_t parse_loopback(const char *text) {
        for (const char *line = text; *line; line = next_line(line)) {
                const char *at = line + strspn(line, " ");
                if (strncmp(at, "lo:", 3) != 0)
                        continue;
                char *end = NULL;
                (void) strtoull(at + 3, &end, 10);
                at = end + strspn(end, " ");
                return isdigit((unsigned char) *at) ? (int64_t) strtoull(at, NULL, 10) : -1;
        }
        return -1;
}

static ptrdiff_t index_of(const int *ids, size_t n, uint64_t id) {
        for (size_t i = 0; i < n; i++)
                if ((uint64_t) ids[i] == id)
                        return (ptrdiff_t) i;
        return -1;
}

/* Each of the CPUs has a line. */
static int parse_softnet(const char *text, const int *ids, size_t n, uint32_t *ret) {
        size_t found = 0, line_number = 0;
        for (const char *line = text; *line; line = next_line(line), line_number++) {
                uint64_t v[CPU_ID + 1];
                size_t n_values = 0, length = strcspn(line, "\n");
                for (const char *at = line; n_values < ELEMENTS(v); n_values++) {
                        char *end = NULL;
                        at += strspn(at, " ");
                        if (at >= line + length || !isxdigit((unsigned char) *at))
                                break;
                        v[n_values] = strtoull(at, &end, 16);
                        at = end;
                }
                if (n_values == 0)
                        return -EBADMSG;
                ptrdiff_t i = n_values > CPU_ID ? index_of(ids, n, v[CPU_ID]) : (ptrdiff_t) line_number;
                if (i < 0 || (size_t) i >= n)
                        continue;
                ret[i] = (uint32_t) v[PROCESSED];
                found++;
        }
        return found == n ? 0 : -EBADMSG;
}

void packets_read(struct packets *p, const int *ids, size_t n, struct packets_reading *ret) {
        ret->loopback[0] = ret->loopback[1] = -1;
        if (p->softnet_fd < 0 || p->dev_fd < 0 || hostfs_read_again(p->dev_fd, &p->buffer, &p->size) < 0)
                return;
        int64_t before = parse_loopback(p->buffer);
        if (before < 0 || hostfs_read_again(p->softnet_fd, &p->buffer, &p->size) < 0 ||
            parse_softnet(p->buffer, ids, n, ret->cpus) < 0 || hostfs_read_again(p->dev_fd, &p->buffer, &p->size) < 0)
                return;
        ret->loopback[0] = before;
        ret->loopback[1] = parse_loopback(p->buffer);
}
