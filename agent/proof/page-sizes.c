/* SPDX-License-Identifier: MIT */

/* See page-sizes.h. Read by the leader while the workers are at rest. */

#include "agent/proof/page-sizes.h"

#include "agent/os/procfs.h"
#include "schema/json/json.h"
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

static bool holds(const struct mapping *m, const struct page_range *range) {
        return range->fd < 0 && range->pid == 0 && range->low < m->high && m->low < range->high;
}

static int add_bytes(struct page_size_row *row, uint64_t page_bytes, uint64_t bytes) {
        size_t i = 0;
        if (bytes == 0)
                return 0;
        while (i < row->n && row->sizes[i].page_bytes < page_bytes)
                i++;
        if (i == row->n || row->sizes[i].page_bytes != page_bytes) {
                if (row->n == PAGE_SIZES_MAX)
                        return -EOVERFLOW;
                memmove(&row->sizes[i + 1], &row->sizes[i], (row->n++ - i) * sizeof row->sizes[0]);
                row->sizes[i] = (struct page_size_count){.page_bytes = page_bytes};
        }
        row->sizes[i].bytes += bytes;
        return 0;
}

static struct page_size_row *row_of(struct page_sizes *s, const char *what) {
        for (size_t i = 0; i < s->n; i++)
                if (strcmp(s->rows[i].what, what) == 0)
                        return &s->rows[i];
        if (s->n == PAGE_KINDS_MAX)
                return NULL;
        s->rows[s->n].what = what;
        return &s->rows[s->n++];
}

/* Once to each kind of memory that lies in it. Large pages of a file system of their own (hugetlbfs) are no part of
 * what is resident; transparent ones are. */
static int account(const struct page_list *list, const struct mapping *m, uint64_t huge_page, struct page_sizes *s) {
        const char *done[PAGE_KINDS_MAX];
        size_t n_done = 0;
        for (size_t i = 0; i < list->n + list->n_mapped; i++) {
                const struct page_range *range = i < list->n ? &list->ranges[i] : &list->mapped[i - list->n];
                size_t k = 0;
                if (!holds(m, range))
                        continue;
                while (k < n_done && strcmp(done[k], range->what) != 0)
                        k++;
                if (k < n_done)
                        continue;
                struct page_size_row *row = row_of(s, range->what);
                if (!row || m->huge > m->resident || (m->huge && !huge_page))
                        return -EPROTO;
                done[n_done++] = range->what;
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

void page_sizes_read(const struct page_list *list, const char *path, struct page_sizes *ret) {
        long pmd = procfs_setting("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        uint64_t huge_page = pmd > 0 ? (uint64_t) pmd : 0;
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        _cleanup_free_ char *line = NULL;
        struct mapping m = {.low = 0};
        size_t size = 0;
        *ret = (struct page_sizes){.error = f ? 0 : -errno};
        while (ret->error == 0 && getline(&line, &size, f) >= 0) {
                struct mapping next;
                if (!begins_mapping(line, &next)) {
                        take_field(line, &m);
                        continue;
                }
                ret->error = account(list, &m, huge_page, ret);
                m = next;
        }
        if (ret->error == 0)
                ret->error = ferror(f) ? -EIO : account(list, &m, huge_page, ret);
}

uint64_t page_sizes_most(const struct page_sizes *s, const char *what) {
        struct page_size_count most = {.bytes = 0};
        for (size_t i = 0; s->error == 0 && i < s->n; i++)
                for (size_t k = 0; strcmp(s->rows[i].what, what) == 0 && k < s->rows[i].n; k++)
                        if (s->rows[i].sizes[k].bytes > most.bytes)
                                most = s->rows[i].sizes[k];
        return most.page_bytes;
}

void page_sizes_put(const struct page_sizes *s, struct json_writer *w) {
        if (s->error < 0) {
                json_put_null(w);
                return;
        }
        json_array_begin(w);
        for (size_t i = 0; i < s->n; i++) {
                json_object_begin(w);
                json_member_string(w, "what", s->rows[i].what);
                json_member_u64(w, "mappings", s->rows[i].mappings);
                json_put_key(w, "bytes");
                json_object_begin(w);
                for (size_t k = 0; k < s->rows[i].n; k++) {
                        char key[24];
                        (void) snprintf(key, sizeof key, "%" PRIu64, s->rows[i].sizes[k].page_bytes);
                        json_member_u64(w, key, s->rows[i].sizes[k].bytes);
                }
                json_object_end(w);
                json_object_end(w);
        }
        json_array_end(w);
}
