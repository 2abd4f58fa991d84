/* SPDX-License-Identifier: MIT */

/* Parses /proc/interrupts: a column for each CPU that is online, a line for each interrupt. */

#include "daemon/host/disturbance/interrupts.h"

#include "schema/util.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *next_line(const char *line) {
        line += strcspn(line, "\n");
        return line + (*line == '\n');
}

static ptrdiff_t index_of(const int *ids, size_t n, long id) {
        for (size_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return (ptrdiff_t) i;
        return -1;
}

/* "           CPU0       CPU1": the number of columns. Where they are of CPUs in `ids`, their indexes there, else -1.
 */
static size_t parse_columns(const char *line, const int *ids, size_t n_ids, ptrdiff_t *ret) {
        size_t n = 0, length = strcspn(line, "\n");
        for (const char *at = line;; n++) {
                at += strspn(at, " ");
                if (at >= line + length || strncmp(at, "CPU", 3) != 0)
                        return n;
                char *end = NULL;
                long id = strtol(at + 3, &end, 10);
                if (ret)
                        ret[n] = index_of(ids, n_ids, id);
                at = end;
        }
}

static void add_line(const char *line, const ptrdiff_t *columns, size_t n, struct interrupt_counts *ret) {
        bool device = isdigit((unsigned char) line[strspn(line, " ")]);
        size_t length = strcspn(line, "\n");
        const char *colon = memchr(line, ':', length);
        const char *at = colon ? colon + 1 : line + length;

        for (size_t i = 0; i < n; i++) {
                at += strspn(at, " ");
                if (!isdigit((unsigned char) *at))
                        return;
                char *end = NULL;
                uint64_t count = strtoull(at, &end, 10);
                if (columns[i] >= 0) {
                        ret[columns[i]].all += count;
                        ret[columns[i]].devices += device ? count : 0;
                }
                at = end;
        }
}

/* ERR and MIS are one number for the machine, and would be added to its first CPU. */
static bool one_number_rows(const char *line) {
        line += strspn(line, " ");
        return strncmp(line, "ERR:", 4) == 0 || strncmp(line, "MIS:", 4) == 0;
}

int interrupts_parse(const char *text, const int *ids, size_t n, struct interrupt_counts *ret) {
        size_t n_columns = parse_columns(text, ids, n, NULL);
        if (n_columns == 0)
                return -EBADMSG;
        _cleanup_free_ ptrdiff_t *columns = calloc(n_columns, sizeof(*columns));
        if (!columns)
                return -ENOMEM;
        memset(ret, 0, n * sizeof(*ret));
        (void) parse_columns(text, ids, n, columns);
        for (const char *line = next_line(text); *line; line = next_line(line))
                if (!one_number_rows(line))
                        add_line(line, columns, n_columns, ret);
        for (size_t i = 0; i < n_columns; i++)
                if (columns[i] >= 0)
                        ret[columns[i]].known = true;
        return 0;
}
