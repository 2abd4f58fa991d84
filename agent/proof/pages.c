/* SPDX-License-Identifier: MIT */

/* Looks at pages and keeps account of them; see pages.h. All of it in the leader's thread. */

#include "agent/proof/pages.h"

#include "agent/os/procfs.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES_AT_ONCE 1024u
/* One glance: a fraction of a millisecond, off the measured CPUs where there are others. */
#define GLANCE_PAGES 1024u
#define ERRORS_MAX 256

#define HOME_UNKNOWN ((int16_t) -1)
#define HOME_NODE 0x3ff
#define HOME_LEFT 0x400 /* has been found elsewhere, and was counted */
_Static_assert(SPEC_NODES_MAX - 1 <= HOME_NODE, "a node's id fits in its mask");

static uintptr_t page_size(void) {
        return (uintptr_t) sysconf(_SC_PAGESIZE);
}

static size_t pages_of(const struct page_range *range) {
        return (range->high - range->low) / page_size();
}

/* Room for the account of [low, high), whole pages; *ret is the range that was added. 0; -ENOMEM. */
static int add_range(struct page_list *list, const char *what, uint32_t thread, uintptr_t low, uintptr_t high,
                     struct page_range **ret) {
        if (list->n == list->size) {
                size_t size = list->size ? 2 * list->size : 64;
                struct page_range *ranges = reallocarray(list->ranges, size, sizeof *ranges);
                if (!ranges)
                        return -ENOMEM;
                list->ranges = ranges;
                list->size = size;
        }
        struct page_range *range = &list->ranges[list->n];
        *range = (struct page_range){.what = what, .thread = thread, .fd = -1, .low = low, .high = high};
        size_t n = pages_of(range);
        range->homes = malloc(n * sizeof *range->homes);
        if (!range->homes)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                range->homes[i] = HOME_UNKNOWN;
        list->n++;
        *ret = range;
        return 0;
}

int page_list_add_of(struct page_list *list, const char *what, uint32_t thread, pid_t pid, uintptr_t start,
                     size_t length) {
        uintptr_t page = page_size(), low = start / page * page, high = (start + length + page - 1) / page * page;
        struct page_range *range;
        int r = length ? add_range(list, what, thread, low, high, &range) : 0;
        if (r == 0 && length)
                range->pid = pid;
        return r;
}

int page_list_add_file(struct page_list *list, uint32_t thread, int fd, off_t offset, size_t length) {
        uintptr_t page = page_size();
        struct page_range *range;
        int r = length ? add_range(list, "page_cache", thread, 0, (length + page - 1) / page * page, &range) : 0;
        if (r == 0 && length) {
                range->fd = fd;
                range->offset = offset;
        }
        return r;
}

int page_list_add(struct page_list *list, const char *what, uint32_t thread, const void *start, size_t length) {
        return page_list_add_of(list, what, thread, 0, (uintptr_t) start, length);
}

int page_list_add_mapped(struct page_list *list, const char *what, const void *start, size_t length) {
        struct page_range *mapped = reallocarray(list->mapped, list->n_mapped + 1, sizeof *mapped);
        if (!mapped)
                return -ENOMEM;
        list->mapped = mapped;
        mapped[list->n_mapped++] = (struct page_range){
                .what = what, .fd = -1, .low = (uintptr_t) start, .high = (uintptr_t) start + length};
        return 0;
}

void page_list_deinit(struct page_list *list) {
        free(list->mapped);
        for (size_t i = 0; i < list->n; i++)
                free(list->ranges[i].homes);
        free(list->ranges);
        *list = (struct page_list){};
}

#define HUGE_PAGE_SETTINGS "/sys/kernel/mm/transparent_hugepage"

/* Whether a setting of transparent huge pages, "always [madvise] never", stands at one of these words. */
static bool setting_is(const char *path, const char *word, const char *other) {
        char line[128];
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        return f && fgets(line, sizeof line, f) && (strstr(line, word) || (other && strstr(line, other)));
}

/* Nobody here asks for huge pages with madvise(2): what counts is what the kernel does of its own accord. */
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
        int16_t *home = &range->homes[i];
        node_set_add(&range->seen, (unsigned) node);
        if (*home == HOME_UNKNOWN) {
                *home = (int16_t) node;
        } else if ((*home & HOME_NODE) != node && !(*home & HOME_LEFT)) {
                *home |= HOME_LEFT;
                range->moved++;
        }
}

static bool is_node(int status) {
        return status >= 0 && status < (int) SPEC_NODES_MAX;
}

static int ask(pid_t pid, size_t n, void **pages, int *status) {
        return syscall(SYS_move_pages, pid, n, pages, NULL, status, 0) < 0 ? -errno : 0;
}

/* --- the full look --- */

struct page_count {
        uint64_t total;
        uint64_t nodes[SPEC_NODES_MAX];
        uint64_t absent[ERRORS_MAX]; /* by errno; 0: what is none, and no node either */
        struct node_set seen;
        uint64_t moved;
};

/* Up to PAGES_AT_ONCE pages from number `first` on. 0 or negative errno. */
static int count_some(struct page_range *range, size_t first, size_t n, struct page_count *count) {
        void *pages[PAGES_AT_ONCE];
        int status[PAGES_AT_ONCE];
        for (size_t i = 0; i < n; i++)
                pages[i] = (void *) (range->low + (first + i) * page_size());
        int r = ask(range->pid, n, pages, status);
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

/* move_pages(2) finds what this process has mapped: what is in the cache, and nothing else, is brought there. */
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

static void put_nodes(struct json_writer *w, const struct page_count *count) {
        json_put_key(w, "nodes");
        json_object_begin(w);
        for (unsigned n = 0; n < SPEC_NODES_MAX; n++)
                if (count->nodes[n]) {
                        char key[16];
                        (void) snprintf(key, sizeof key, "%u", n);
                        json_member_u64(w, key, count->nodes[n]);
                }
        json_object_end(w);
}

static void put_absent(struct json_writer *w, const struct page_count *count) {
        uint64_t absent = 0;
        for (int e = 0; e < ERRORS_MAX; e++)
                absent += count->absent[e];
        json_member_u64(w, "absent", absent);
        if (absent == 0)
                return;
        json_put_key(w, "absent_errors");
        json_object_begin(w);
        for (int e = 0; e < ERRORS_MAX; e++)
                if (count->absent[e]) {
                        const char *name = e ? strerrorname_np(e) : NULL;
                        json_member_u64(w, name ? name : "unknown", count->absent[e]);
                }
        json_object_end(w);
}

static void put_count(struct json_writer *w, const struct page_count *count, int error) {
        json_member_u64(w, "total", count->total);
        if (error < 0) {
                char reason[128];
                (void) snprintf(reason, sizeof reason, "where pages are cannot be told: %s", strerrordesc_np(-error));
                json_member_null(w, "nodes");
                json_member_string(w, "reason", reason);
                return;
        }
        put_nodes(w, count);
        put_absent(w, count);
        json_put_key(w, "nodes_seen");
        json_array_begin(w);
        for (unsigned n = 0; n < SPEC_NODES_MAX; n++)
                if (node_set_has(&count->seen, n))
                        json_put_u64(w, n);
        json_array_end(w);
        json_member_u64(w, "moved", count->moved);
}

/* All pages of a kind, or those of one thread: with a ring, a pool or a file for each thread, ranges are very many. */
struct page_sum {
        const char *what;
        uint64_t threads, ranges;
        int error;
        struct page_count count;
        uint64_t of[SPEC_THREADS_MAX / 64]; /* threads that are among them */
};

static void sum_range(struct page_list *list, struct page_sum *sum, struct page_range *range) {
        int r = count_pages(range, &sum->count);
        if (range->pid && (r == -EINVAL || r == -ESRCH)) /* it has ended: it has no memory any more, or no number */
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

/* Of one thread, or (thread NULL) of `threads`. */
static void put_sum(struct json_writer *w, const struct page_sum *sum, const uint32_t *thread) {
        json_object_begin(w);
        json_member_string(w, "what", sum->what);
        json_member_u64(w, thread ? "thread" : "threads", thread ? *thread : sum->threads);
        if (sum->ranges > sum->threads)
                json_member_u64(w, "ranges", sum->ranges);
        put_count(w, &sum->count, sum->error);
        json_object_end(w);
}

static bool is_alike(const struct page_range *a, const struct page_range *b, bool of_thread) {
        return (!of_thread || a->thread == b->thread) && strcmp(a->what, b->what) == 0;
}

static bool is_first(const struct page_list *list, size_t at, bool of_thread) {
        for (size_t i = 0; i < at; i++)
                if (is_alike(&list->ranges[i], &list->ranges[at], of_thread))
                        return false;
        return true;
}

/* What is like the range at `at`, of its thread or of all. */
static void sum_alike(struct page_list *list, size_t at, bool of_thread, struct page_sum *ret) {
        *ret = (struct page_sum){.what = list->ranges[at].what};
        for (size_t i = at; i < list->n; i++)
                if (is_alike(&list->ranges[i], &list->ranges[at], of_thread))
                        sum_range(list, ret, &list->ranges[i]);
}

static struct page_sum *sum_of_kind(struct page_sum sums[PAGE_KINDS_MAX], const char *what) {
        size_t i = 0;
        while (i < PAGE_KINDS_MAX && sums[i].what && strcmp(sums[i].what, what) != 0)
                i++;
        assert(i < PAGE_KINDS_MAX);
        sums[i].what = what;
        return &sums[i];
}

/* A row for each kind and thread, and on the way the sums of each kind. */
static void put_each(struct json_writer *w, struct page_list *list, struct page_sum sums[PAGE_KINDS_MAX]) {
        struct page_sum sum;
        for (size_t i = 0; i < list->n; i++)
                if (is_first(list, i, true)) {
                        sum_alike(list, i, true, &sum);
                        put_sum(w, &sum, &list->ranges[i].thread);
                        add_sum(sum_of_kind(sums, sum.what), &sum);
                }
}

static void put_together(struct json_writer *w, struct page_list *list) {
        struct page_sum sum;
        for (size_t i = 0; i < list->n; i++)
                if (is_first(list, i, false)) {
                        sum_alike(list, i, false, &sum);
                        put_sum(w, &sum, NULL);
                }
}

/* 1: they are in *w; 0: they would take more than `most` bytes, and *sums have them. */
static int try_each(struct json_writer *w, struct page_list *list, size_t most, struct page_sum sums[PAGE_KINDS_MAX]) {
        _cleanup_free_ char *text = NULL;
        _cleanup_(json_writer_deinit) struct json_writer each;
        size_t length = 0;
        json_writer_init(&each);
        json_array_begin(&each);
        put_each(&each, list, sums);
        json_array_end(&each);
        int r = json_writer_steal(&each, &text, &length);
        if (r < 0 || length > most)
                return r < 0 ? r : 0;
        json_put_raw(w, text);
        return 1;
}

void page_list_put(struct page_list *list, size_t most, struct json_writer *w) {
        list->lost = 0;
        _cleanup_free_ struct page_sum *sums = most ? calloc(PAGE_KINDS_MAX, sizeof *sums) : NULL;
        int r = !most ? 0 : sums ? try_each(w, list, most, sums) : -ENOMEM;
        if (r < 0 && w->error == 0)
                w->error = r;
        if (r != 0)
                return;
        json_array_begin(w);
        if (!sums)
                put_together(w, list);
        for (size_t i = 0; sums && i < PAGE_KINDS_MAX && sums[i].what; i++)
                put_sum(w, &sums[i], NULL);
        json_array_end(w);
}

/* --- the glance --- */

/* Pages of one process, asked for in one call. */
struct batch {
        pid_t pid;
        size_t n;
        void *pages[PAGES_AT_ONCE];
        int status[PAGES_AT_ONCE];
        struct page_range *of[PAGES_AT_ONCE];
};

static void batch_ask(struct batch *b) {
        if (b->n && ask(b->pid, b->n, b->pages, b->status) == 0)
                for (size_t i = 0; i < b->n; i++)
                        if (is_node(b->status[i]))
                                observe(b->of[i], ((uintptr_t) b->pages[i] - b->of[i]->low) / page_size(),
                                        b->status[i]);
        b->n = 0;
}

static void batch_add(struct batch *b, struct page_range *range, size_t i) {
        if (b->n == PAGES_AT_ONCE || b->pid != range->pid)
                batch_ask(b);
        b->pid = range->pid;
        b->pages[b->n] = (void *) (range->low + i * page_size());
        b->of[b->n++] = range;
}

static size_t pages_to_glance(const struct page_range *range) {
        return range->fd >= 0 ? 0 : pages_of(range);
}

/* Every step-th page of all, counted through the ranges, from another one on each time. */
void page_list_glance(struct page_list *list) {
        struct batch b = {.n = 0};
        size_t total = 0, passed = 0;
        for (size_t i = 0; i < list->n; i++)
                total += pages_to_glance(&list->ranges[i]);
        size_t step = (total + GLANCE_PAGES - 1) / GLANCE_PAGES;
        size_t at = step ? list->glances++ % step : 0;
        for (size_t i = 0; i < list->n; i++) {
                size_t n = pages_to_glance(&list->ranges[i]);
                for (; at < passed + n; at += step)
                        batch_add(&b, &list->ranges[i], at - passed);
                passed += n;
        }
        batch_ask(&b);
}
