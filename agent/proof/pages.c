/* SPDX-License-Identifier: MIT */

/* Checks the nodes of pages and counts them; see pages.h. Only the leader's thread runs this. */

#include "agent/proof/pages.h"

#include "agent/os/procfs.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES_AT_ONCE 1024u
/* Pages of one sample: a fraction of a millisecond, off the measured CPUs where other CPUs exist. */
#define SAMPLE_PAGES 1024u
#define ERRORS_MAX 256

#define INITIAL_UNKNOWN ((int16_t) -1)
#define INITIAL_NODE 0x3ff
#define INITIAL_LEFT 0x400 /* was observed on another node, and is counted */
_Static_assert(SPEC_NODES_MAX - 1 <= INITIAL_NODE, "a node's id fits in its mask");

static uintptr_t page_size(void) {
        return (uintptr_t) sysconf(_SC_PAGESIZE);
}

static size_t pages_of(const struct page_range *range) {
        return (range->high - range->low) / page_size();
}

/* Adds the range [low, high) of whole pages; *ret is the new entry. 0; -ENOMEM. */
static int add_range(struct page_list *list, enum page_kind kind, uint32_t thread, uintptr_t low, uintptr_t high,
                     struct page_range **ret) {
        if (!util_grow(list->ranges, list->n, list->size))
                return -ENOMEM;
        struct page_range *range = &list->ranges[list->n];
        *range = (struct page_range){.kind = kind, .thread = thread, .fd = -1, .low = low, .high = high};
        size_t n = pages_of(range);
        range->initial_nodes = malloc(n * sizeof *range->initial_nodes);
        if (!range->initial_nodes)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                range->initial_nodes[i] = INITIAL_UNKNOWN;
        list->n++;
        *ret = range;
        return 0;
}

int page_list_add_of(struct page_list *list, enum page_kind kind, uint32_t thread, pid_t pid, uintptr_t start,
                     size_t length) {
        uintptr_t page = page_size(), low = start / page * page, high = (start + length + page - 1) / page * page;
        struct page_range *range;
        int r = length ? add_range(list, kind, thread, low, high, &range) : 0;
        if (r == 0 && length)
                range->pid = pid;
        return r;
}

int page_list_add_file(struct page_list *list, uint32_t thread, int fd, off_t offset, size_t length) {
        uintptr_t page = page_size();
        struct page_range *range;
        int r = length ? add_range(list, PAGES_CACHE, thread, 0, (length + page - 1) / page * page, &range) : 0;
        if (r == 0 && length) {
                range->fd = fd;
                range->offset = offset;
        }
        return r;
}

int page_list_add(struct page_list *list, enum page_kind kind, uint32_t thread, const void *start, size_t length) {
        return page_list_add_of(list, kind, thread, 0, (uintptr_t) start, length);
}

int page_list_add_mapped(struct page_list *list, enum page_kind kind, const void *start, size_t length) {
        if (!util_resize(list->mapped, list->n_mapped + 1))
                return -ENOMEM;
        list->mapped[list->n_mapped++] = (struct page_range){
                .kind = kind, .fd = -1, .low = (uintptr_t) start, .high = (uintptr_t) start + length};
        return 0;
}

void page_list_deinit(struct page_list *list) {
        free(list->mapped);
        for (size_t i = 0; i < list->n; i++)
                free(list->ranges[i].initial_nodes);
        free(list->ranges);
        *list = (struct page_list){};
}

#define HUGE_PAGE_SETTINGS "/sys/kernel/mm/transparent_hugepage"

/* Whether one of these words is selected in a setting of transparent huge pages ("always [madvise] never"). */
static bool setting_is(const char *path, const char *word, const char *other) {
        char line[128];
        return procfs_first_line(path, line, sizeof line) == 0 &&
               (strstr(line, word) || (other && strstr(line, other)));
}

/* The agent requests no huge pages with madvise(2): only the kernel's own use of them counts. */
static bool has_transparent_huge_pages(void) {
        bool always = setting_is(HUGE_PAGE_SETTINGS "/enabled", "[always]", NULL);
        for (uint64_t kib = 8; kib < 2 * procfs_huge_page_bytes() / 1024; kib *= 2) {
                char path[96];
                (void) snprintf(path, sizeof path, HUGE_PAGE_SETTINGS "/hugepages-%" PRIu64 "kB/enabled", kib);
                if (setting_is(path, "[always]", always ? "[inherit]" : NULL))
                        return true;
        }
        return always || setting_is(HUGE_PAGE_SETTINGS "/shmem_enabled", "[always]", "[within_size]") ||
               setting_is(HUGE_PAGE_SETTINGS "/shmem_enabled", "[force]", NULL);
}

uint64_t pages_placed_together(bool huge) {
        uint64_t bytes = huge || has_transparent_huge_pages() ? procfs_huge_page_bytes() : 0;
        return bytes > page_size() ? bytes / page_size() : 1;
}

static void observe(struct page_range *range, size_t i, int node) {
        int16_t *initial = &range->initial_nodes[i];
        node_set_add(&range->seen, (unsigned) node);
        if (*initial == INITIAL_UNKNOWN) {
                *initial = (int16_t) node;
        } else if ((*initial & INITIAL_NODE) != node && !(*initial & INITIAL_LEFT)) {
                *initial |= INITIAL_LEFT;
                range->moved++;
        }
}

static bool is_node(int status) {
        return status >= 0 && status < (int) SPEC_NODES_MAX;
}

static int query_nodes(pid_t pid, size_t n, void **pages, int *status) {
        return syscall(SYS_move_pages, pid, n, pages, NULL, status, 0) < 0 ? -errno : 0;
}

/* --- the full check --- */

struct page_count {
        uint64_t total;
        uint64_t nodes[SPEC_NODES_MAX];
        uint64_t absent[ERRORS_MAX]; /* by errno; 0: a value that is neither a node nor an errno */
        struct node_set seen;
        uint64_t moved;
};

/* Counts up to PAGES_AT_ONCE pages from number `first` on. 0 or negative errno. */
static int count_some(struct page_range *range, size_t first, size_t n, struct page_count *count) {
        void *pages[PAGES_AT_ONCE];
        int status[PAGES_AT_ONCE];
        for (size_t i = 0; i < n; i++)
                pages[i] = (void *) (range->low + (first + i) * page_size());
        int r = query_nodes(range->pid, n, pages, status);
        for (size_t i = 0; r == 0 && i < n; i++) {
                if (is_node(status[i])) {
                        count->nodes[status[i]]++;
                        observe(range, first + i, status[i]);
                } else {
                        count->absent[status[i] < 0 && -status[i] < ERRORS_MAX ? -status[i] : 0]++;
                }
        }
        return r;
}

static int count_mapped(struct page_range *range, struct page_count *count) {
        size_t n = pages_of(range);
        int r = 0;
        for (size_t first = 0; r == 0 && first < n; first += PAGES_AT_ONCE)
                r = count_some(range, first, n - first < PAGES_AT_ONCE ? n - first : PAGES_AT_ONCE, count);
        return r;
}

/* move_pages(2) finds only mapped pages: this maps those that are in the cache, and no others. */
static int touch_cached(unsigned char *memory, size_t n) {
        _cleanup_free_ unsigned char *cached = calloc(n, 1);
        if (!cached)
                return -ENOMEM;
        if (mincore(memory, n * page_size(), cached) < 0)
                return -errno;
        for (size_t i = 0; i < n; i++) {
                const volatile unsigned char *p = memory + i * page_size();
                if (!(cached[i] & 1))
                        continue;
                if (madvise(memory + i * page_size(), page_size(), MADV_POPULATE_READ) == 0)
                        continue;
                if (errno != EINVAL) /* before 5.14 */
                        return -errno;
                (void) *p;
        }
        return 0;
}

static int count_file(struct page_range *range, struct page_count *count) {
        size_t length = range->high;
        void *p = mmap(NULL, length, PROT_READ, MAP_SHARED, range->fd, range->offset);
        if (p == MAP_FAILED)
                return -errno;
        range->low = (uintptr_t) p;
        range->high = range->low + length;
        int r = touch_cached(p, length / page_size());
        if (r == 0)
                r = count_mapped(range, count);
        (void) munmap(p, length);
        range->low = 0;
        range->high = length;
        return r;
}

static int count_pages(struct page_range *range, struct page_count *count) {
        count->total += pages_of(range);
        int r = range->fd >= 0 ? count_file(range, count) : count_mapped(range, count);
        for (size_t i = 0; i < ELEMENTS(count->seen.bits); i++)
                count->seen.bits[i] |= range->seen.bits[i];
        count->moved += range->moved;
        return r;
}

/* Adds the counts and lists that the row has; nothing where the nodes could not be read. */
static void report_count(struct proof_report *p, struct proof_pages *row, const struct page_count *count) {
        row->moved = count->moved;
        for (unsigned n = 0; n < SPEC_NODES_MAX; n++)
                if (count->nodes[n])
                        proof_report_add_count(p, &row->nodes, n, count->nodes[n]);
        row->absent = proof_report_counts(p);
        uint64_t unknown = 0;
        for (int e = 0; e < ERRORS_MAX; e++)
                unknown += e == 0 || !strerrorname_np(e) ? count->absent[e] : 0;
        if (unknown)
                proof_report_add_count(p, &row->absent, 0, unknown);
        for (int e = 1; e < ERRORS_MAX; e++)
                if (count->absent[e] && strerrorname_np(e))
                        proof_report_add_count(p, &row->absent, (uint64_t) e, count->absent[e]);
        for (unsigned n = 0; n < SPEC_NODES_MAX; n++)
                if (node_set_has(&count->seen, n))
                        proof_report_add_number(p, &row->nodes_seen, n);
}

/* The sum of a kind's pages, of all threads or of one, as a ring, a pool or a file for each thread makes very many
 * ranges. */
struct page_sum {
        enum page_kind kind;
        uint64_t threads, ranges;
        int error;
        struct page_count count;
        uint64_t of[SPEC_THREADS_MAX / 64]; /* set of its threads */
};

static void sum_range(struct page_list *list, struct page_sum *sum, struct page_range *range) {
        int r = count_pages(range, &sum->count);
        if (range->pid && (r == -EINVAL || r == -ESRCH)) /* the process has ended: it has no memory, or no id */
                list->lost = range->pid;
        uint64_t *of = &sum->of[range->thread / 64 % ELEMENTS(sum->of)], bit = UINT64_C(1) << (range->thread % 64);
        sum->error = r < 0 ? r : sum->error;
        sum->ranges++;
        sum->threads += !(*of & bit);
        *of |= bit;
}

static void add_sum(struct page_sum *into, const struct page_sum *s) {
        into->threads += s->threads;
        into->ranges += s->ranges;
        into->error = s->error < 0 ? s->error : into->error;
        into->count.total += s->count.total;
        into->count.moved += s->count.moved;
        for (size_t i = 0; i < ELEMENTS(s->count.nodes); i++)
                into->count.nodes[i] += s->count.nodes[i];
        for (size_t i = 0; i < ELEMENTS(s->count.absent); i++)
                into->count.absent[i] += s->count.absent[i];
        for (size_t i = 0; i < ELEMENTS(s->count.seen.bits); i++)
                into->count.seen.bits[i] |= s->count.seen.bits[i];
}

/* Adds a row with the sum of one thread, or (thread NULL) of all that have some. */
static void report_sum(struct proof_report *p, const struct page_sum *sum, const uint32_t *thread) {
        struct proof_pages *row = proof_report_add_pages(p);
        if (!row)
                return;
        row->kind = sum->kind;
        row->together = !thread;
        row->thread = thread ? *thread : (uint32_t) sum->threads;
        row->error = (uint32_t) -sum->error;
        row->ranges = sum->ranges > sum->threads ? sum->ranges : 0;
        row->total = sum->count.total;
        row->nodes = row->absent = proof_report_counts(p);
        row->nodes_seen = proof_report_numbers(p);
        if (sum->error == 0)
                report_count(p, row, &sum->count);
}

static bool is_alike(const struct page_range *a, const struct page_range *b, bool of_thread) {
        return (!of_thread || a->thread == b->thread) && a->kind == b->kind;
}

static bool is_first(const struct page_list *list, size_t at, bool of_thread) {
        for (size_t i = 0; i < at; i++)
                if (is_alike(&list->ranges[i], &list->ranges[at], of_thread))
                        return false;
        return true;
}

/* Sums the ranges of the same kind as that at `at`, of its thread or of all threads. */
static void sum_alike(struct page_list *list, size_t at, bool of_thread, struct page_sum *ret) {
        *ret = (struct page_sum){.kind = list->ranges[at].kind};
        for (size_t i = at; i < list->n; i++)
                if (is_alike(&list->ranges[i], &list->ranges[at], of_thread))
                        sum_range(list, ret, &list->ranges[i]);
}

/* Sums of each kind, in the order in which the kinds appear. */
struct page_sums {
        size_t n;
        struct page_sum of[PAGE_KIND_COUNT];
};

static void add_to_kind(struct page_sums *sums, const struct page_sum *sum) {
        size_t i = 0;
        while (i < sums->n && sums->of[i].kind != sum->kind)
                i++;
        if (i == sums->n)
                sums->of[sums->n++].kind = sum->kind;
        add_sum(&sums->of[i], sum);
}

/* Adds a row for each kind and thread, and computes the sums of each kind. */
static void report_each(struct proof_report *p, struct page_list *list, struct page_sums *sums) {
        struct page_sum sum;
        for (size_t i = 0; i < list->n; i++)
                if (is_first(list, i, true)) {
                        sum_alike(list, i, true, &sum);
                        report_sum(p, &sum, &list->ranges[i].thread);
                        add_to_kind(sums, &sum);
                }
}

static void report_together(struct proof_report *p, struct page_list *list) {
        struct page_sum sum;
        for (size_t i = 0; i < list->n; i++)
                if (is_first(list, i, false)) {
                        sum_alike(list, i, false, &sum);
                        report_sum(p, &sum, NULL);
                }
}

static bool is_longer(struct proof_report *p, size_t most) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        proof_report_put_pages(p, &w);
        if (p->error == 0)
                p->error = w.error;
        return w.length > most;
}

void page_list_report(struct page_list *list, size_t most, struct proof_report *p) {
        size_t n_counts = p->of.n_counts, n_numbers = p->of.n_numbers;
        list->lost = 0;
        if (!most) {
                report_together(p, list);
                return;
        }
        _cleanup_free_ struct page_sums *sums = calloc(1, sizeof *sums);
        if (!sums) {
                p->error = p->error ? p->error : -ENOMEM;
                return;
        }
        report_each(p, list, sums);
        if (p->error < 0 || !is_longer(p, most))
                return;
        p->of.n_pages = 0;
        p->of.n_counts = n_counts;
        p->of.n_numbers = n_numbers;
        for (size_t i = 0; i < sums->n; i++)
                report_sum(p, &sums->of[i], NULL);
}

/* --- the sample --- */

/* Pages of one process for one call of move_pages(2). */
struct batch {
        pid_t pid;
        size_t n;
        void *pages[PAGES_AT_ONCE];
        int status[PAGES_AT_ONCE];
        struct page_range *of[PAGES_AT_ONCE];
};

static void batch_query(struct batch *b) {
        if (b->n && query_nodes(b->pid, b->n, b->pages, b->status) == 0)
                for (size_t i = 0; i < b->n; i++)
                        if (is_node(b->status[i]))
                                observe(b->of[i], ((uintptr_t) b->pages[i] - b->of[i]->low) / page_size(),
                                        b->status[i]);
        b->n = 0;
}

static void batch_add(struct batch *b, struct page_range *range, size_t i) {
        if (b->n == PAGES_AT_ONCE || b->pid != range->pid)
                batch_query(b);
        b->pid = range->pid;
        b->pages[b->n] = (void *) (range->low + i * page_size());
        b->of[b->n++] = range;
}

static size_t pages_to_sample(const struct page_range *range) {
        return range->fd >= 0 ? 0 : pages_of(range);
}

/* Checks every step-th page across all ranges, with another offset each time. */
void page_list_sample(struct page_list *list) {
        struct batch b = {.n = 0};
        size_t total = 0, passed = 0;
        for (size_t i = 0; i < list->n; i++)
                total += pages_to_sample(&list->ranges[i]);
        size_t step = (total + SAMPLE_PAGES - 1) / SAMPLE_PAGES;
        size_t at = step ? list->samples++ % step : 0;
        for (size_t i = 0; i < list->n; i++) {
                size_t n = pages_to_sample(&list->ranges[i]);
                for (; at < passed + n; at += step)
                        batch_add(&b, &list->ranges[i], at - passed);
                passed += n;
        }
        batch_query(&b);
}
