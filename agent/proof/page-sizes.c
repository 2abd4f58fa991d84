/* SPDX-License-Identifier: MIT */

/* See page-sizes.h. Read by the leader while the workers are at rest. */

#include "agent/proof/page-sizes.h"

#include "agent/os/procfs.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A mapping of the file; in bytes. */
struct mapping {
        uintptr_t low, high;
        uint64_t page, resident, huge, hugetlb;
};

static int add_bytes(struct proof_page_sizes *row, uint64_t page_bytes, uint64_t bytes) {
        size_t i = 0;
        if (bytes == 0)
                return 0;
        while (i < row->n && row->sizes[i].page_bytes < page_bytes)
                i++;
        if (i == row->n || row->sizes[i].page_bytes != page_bytes) {
                if (row->n == PAGE_SIZES_MAX)
                        return -EOVERFLOW;
                memmove(&row->sizes[i + 1], &row->sizes[i], (row->n++ - i) * sizeof row->sizes[0]);
                row->sizes[i].page_bytes = page_bytes;
                row->sizes[i].bytes = 0;
        }
        row->sizes[i].bytes += bytes;
        return 0;
}

static struct proof_page_sizes *row_of(struct page_sizes *s, enum page_kind kind) {
        size_t i = 0;
        while (i < s->n && s->rows[i].kind != kind)
                i++;
        if (i == s->n)
                s->rows[s->n++].kind = kind;
        return &s->rows[i];
}

/* Counts a mapping of the process (0: this one) once for each kind of memory in it. Pages of hugetlbfs are not part of
 * the resident bytes; transparent huge pages are. */
static int account(const struct page_list *list, pid_t pid, const struct mapping *m, uint64_t huge_page,
                   struct page_sizes *s) {
        bool done[PAGE_KIND_COUNT] = {false};
        for (size_t i = 0; i < list->n + list->n_mapped; i++) {
                const struct page_range *range = i < list->n ? &list->ranges[i] : &list->mapped[i - list->n];
                bool is_within = range->fd < 0 && range->pid == pid && range->low < m->high && m->low < range->high;
                if (!is_within || done[range->kind])
                        continue;
                struct proof_page_sizes *row = row_of(s, range->kind);
                if (m->huge > m->resident || (m->huge && !huge_page))
                        return -EPROTO;
                done[range->kind] = true;
                row->mappings++;
                int r = add_bytes(row, (uint64_t) sysconf(_SC_PAGESIZE), m->resident - m->huge);
                if (r == 0)
                        r = add_bytes(row, huge_page, m->huge);
                if (r == 0)
                        r = add_bytes(row, m->page, m->hugetlb);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* "7f0000000000-7f0000200000 rw-p …" begins a mapping; "Rss:   2048 kB" is of the last one. */
static bool begins_mapping(const char *line, struct mapping *ret) {
        char *end;
        uintptr_t low = strtoul(line, &end, 16);
        if (end == line || *end != '-')
                return false;
        const char *rest = end + 1;
        uintptr_t high = strtoul(rest, &end, 16);
        if (end == rest || *end != ' ')
                return false;
        *ret = (struct mapping){.low = low, .high = high};
        return true;
}

static void take_field(const char *line, struct mapping *m) {
        const struct {
                const char *name;
                uint64_t *into;
        } fields[] = {{"KernelPageSize", &m->page},    {"Rss", &m->resident},       {"AnonHugePages", &m->huge},
                      {"ShmemPmdMapped", &m->huge},    {"FilePmdMapped", &m->huge}, {"Shared_Hugetlb", &m->hugetlb},
                      {"Private_Hugetlb", &m->hugetlb}};
        uint64_t kib;
        for (size_t i = 0; i < ELEMENTS(fields); i++)
                if (strncmp(line, fields[i].name, strlen(fields[i].name)) == 0 && line[strlen(fields[i].name)] == ':' &&
                    procfs_line_number(line, fields[i].name, &kib) == 0)
                        *fields[i].into += kib * 1024;
}

static int read_process(const struct page_list *list, pid_t pid, const char *path, uint64_t huge_page,
                        struct page_sizes *s) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        _cleanup_free_ char *line = NULL;
        struct mapping m = {.low = 0};
        size_t size = 0;
        int r = f ? 0 : -errno;
        errno = 0;
        while (r == 0 && getline(&line, &size, f) >= 0) {
                struct mapping next;
                if (!begins_mapping(line, &next)) {
                        take_field(line, &m);
                        continue;
                }
                r = account(list, pid, &m, huge_page, s);
                m = next;
        }
        if (r == 0 && ferror(f))
                r = errno ? -errno : -EIO;
        return r < 0 ? r : account(list, pid, &m, huge_page, s);
}

/* Whether a range before this one is of the same process. */
static bool is_repeated(const struct page_list *list, size_t at) {
        for (size_t i = at; i-- > 0;)
                if (list->ranges[i].pid == list->ranges[at].pid)
                        return true;
        return false;
}

/* The memory of a process that has ended is gone, which the full check of the pages finds, too (list->lost). */
void page_sizes_read(const struct page_list *list, const char *path, struct page_sizes *ret) {
        long pmd = procfs_setting("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        uint64_t huge_page = pmd > 0 ? (uint64_t) pmd : 0;
        *ret = (struct page_sizes){.error = 0};
        ret->error = read_process(list, 0, path, huge_page, ret);
        for (size_t i = 0; ret->error == 0 && i < list->n; i++) {
                char other[48];
                if (list->ranges[i].pid == 0 || is_repeated(list, i))
                        continue;
                (void) snprintf(other, sizeof other, "/proc/%d/smaps", (int) list->ranges[i].pid);
                int r = read_process(list, list->ranges[i].pid, other, huge_page, ret);
                ret->error = r == -ENOENT || r == -ESRCH ? 0 : r;
        }
}

uint64_t page_sizes_most(const struct page_sizes *s, enum page_kind kind) {
        uint64_t page_bytes = 0, most = 0;
        for (size_t i = 0; s->error == 0 && i < s->n; i++)
                for (size_t k = 0; s->rows[i].kind == kind && k < s->rows[i].n; k++)
                        if (s->rows[i].sizes[k].bytes > most) {
                                most = s->rows[i].sizes[k].bytes;
                                page_bytes = s->rows[i].sizes[k].page_bytes;
                        }
        return page_bytes;
}
