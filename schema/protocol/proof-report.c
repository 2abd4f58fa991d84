/* SPDX-License-Identifier: MIT */

#include "schema/protocol/proof-report.h"

#include "schema/detail.h"
#include "schema/json/json.h"
#include "schema/json/utf8.h"
#include "schema/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *page_kind_name(enum page_kind kind) {
        static const char *const names[PAGE_KIND_COUNT] = {[PAGES_STACK] = "stack",
                                                           [PAGES_BUFFER] = "buffer",
                                                           [PAGES_RING] = "ring",
                                                           [PAGES_SEMAPHORES] = "semaphores",
                                                           [PAGES_CACHE] = "page_cache"};
        return (unsigned) kind < PAGE_KIND_COUNT ? names[kind] : NULL;
}

void proof_report_free(struct proof_report *p) {
        if (!p)
                return;
        free(p->of.pages);
        free(p->of.threads);
        free(p->of.groups);
        free(p->of.sizes);
        free(p->of.counts);
        free(p->of.numbers);
        free(p);
}

/* --- collecting --- */

/* Makes room for one more element; its array doubles whenever it is full, at each power of two. */
static void *grow(struct proof_report *p, void *array, size_t *n, size_t size) {
        if (p->error == 0 && (*n & (*n - 1)) == 0) {
                void *larger = reallocarray(array, *n ? 2 * *n : 1, size);
                if (!larger)
                        p->error = -ENOMEM;
                array = larger ? larger : array;
        }
        if (p->error == 0)
                memset((char *) array + (*n)++ * size, 0, size);
        return array;
}

#define ADD(type, array)                                                                                               \
        p->of.array = grow(p, p->of.array, &p->of.n_##array, sizeof(struct type));                                     \
        return p->error == 0 ? &p->of.array[p->of.n_##array - 1] : NULL

struct proof_pages *proof_report_add_pages(struct proof_report *p) {
        ADD(proof_pages, pages);
}

struct proof_thread *proof_report_add_thread(struct proof_report *p) {
        ADD(proof_thread, threads);
}

struct proof_group *proof_report_add_group(struct proof_report *p) {
        ADD(proof_group, groups);
}

struct proof_page_sizes *proof_report_add_sizes(struct proof_report *p) {
        ADD(proof_page_sizes, sizes);
}

struct proof_list proof_report_numbers(const struct proof_report *p) {
        return (struct proof_list){.at = (uint32_t) p->of.n_numbers};
}

struct proof_list proof_report_counts(const struct proof_report *p) {
        return (struct proof_list){.at = (uint32_t) p->of.n_counts};
}

void proof_report_add_number(struct proof_report *p, struct proof_list *list, unsigned number) {
        p->of.numbers = grow(p, p->of.numbers, &p->of.n_numbers, sizeof(*p->of.numbers));
        if (p->error < 0)
                return;
        p->of.numbers[p->of.n_numbers - 1] = (uint16_t) number;
        list->n++;
}

void proof_report_add_count(struct proof_report *p, struct proof_list *list, uint64_t id, uint64_t pages) {
        p->of.counts = grow(p, p->of.counts, &p->of.n_counts, sizeof(*p->of.counts));
        if (p->error < 0)
                return;
        p->of.counts[p->of.n_counts - 1] = (struct proof_count){.id = id, .pages = pages};
        list->n++;
}

/* --- checking --- */

struct checker {
        const struct proof_report *p;
        size_t numbers, counts; /* that lists before this one have */
        char *detail;
};

static int malformed(const struct checker *c, const char *what) {
        return detail_fail(c->detail, -EBADMSG, "the agent's proof of its placement is malformed: %s", what);
}

static int check_numbers(struct checker *c, const struct proof_list *list, unsigned least, unsigned below,
                         const char *what) {
        if (list->at != c->numbers || list->n > c->p->of.n_numbers - c->numbers || list->n < least)
                return malformed(c, what);
        for (size_t i = list->at; i < list->at + list->n; i++)
                if (c->p->of.numbers[i] >= below || (i > list->at && c->p->of.numbers[i] <= c->p->of.numbers[i - 1]))
                        return malformed(c, what);
        c->numbers += list->n;
        return 0;
}

/* 0, which stands for none, or a number that an error has: any other has neither name nor text. */
static bool is_errno(uint64_t error) {
        return error <= INT32_MAX && strerrorname_np((int) error);
}

/* Pages by node, or (absent) by errno. */
static int check_counts(struct checker *c, const struct proof_list *list, bool absent, const char *what) {
        const struct proof_count *counts = c->p->of.counts;
        if (list->at != c->counts || list->n > c->p->of.n_counts - c->counts)
                return malformed(c, what);
        for (size_t i = list->at; i < list->at + list->n; i++) {
                if ((absent ? !is_errno(counts[i].id) : counts[i].id >= SPEC_NODES_MAX) || counts[i].pages == 0 ||
                    (i > list->at && counts[i].id <= counts[i - 1].id))
                        return malformed(c, what);
        }
        c->counts += list->n;
        return 0;
}

static int check_process(struct checker *c) {
        const struct proof_report *p = c->p;
        int r = check_numbers(c, &p->affinity, 1, SPEC_CPUS_MAX, "affinity");
        if (r == 0)
                r = check_numbers(c, &p->leader_affinity, 1, SPEC_CPUS_MAX, "leader");
        if (r == 0 && p->leader_cpu >= SPEC_CPUS_MAX)
                r = malformed(c, "leader");
        if (r == 0 && (p->policy >= MEMORY_COUNT || !is_errno(p->policy_error)))
                r = malformed(c, "policy");
        if (r == 0)
                r = check_numbers(c, &p->policy_nodes, 0, SPEC_NODES_MAX, "policy_nodes");
        if (r == 0 && p->placed_together == 0)
                r = malformed(c, "pages_placed_together");
        size_t length = strnlen(p->no_page_cache, sizeof(p->no_page_cache));
        for (size_t i = 0; r == 0 && i < length;) {
                size_t n = utf8_length(p->no_page_cache + i, length - i);
                r = n == 0 || length == sizeof(p->no_page_cache) ? malformed(c, "page_cache_reason") : 0;
                i += n;
        }
        return r;
}

static int check_pages(struct checker *c, const struct proof_pages *pages) {
        if (pages->kind >= PAGE_KIND_COUNT || pages->together > 1 || !is_errno(pages->error))
                return malformed(c, "pages");
        int r = check_counts(c, &pages->nodes, false, "pages by node");
        if (r == 0)
                r = check_counts(c, &pages->absent, true, "absent_errors");
        if (r == 0)
                r = check_numbers(c, &pages->nodes_seen, 0, SPEC_NODES_MAX, "nodes_seen");
        return r;
}

static int check_thread(struct checker *c, const struct proof_thread *thread) {
        int r = check_numbers(c, &thread->affinity, 1, SPEC_CPUS_MAX, "affinity");
        if (r == 0 && thread->cpu >= SPEC_CPUS_MAX)
                r = malformed(c, "cpu");
        if (r == 0)
                r = check_numbers(c, &thread->cpus_seen, 1, SPEC_CPUS_MAX, "cpus_seen");
        return r == 0 && !is_errno(thread->migrations_error) ? malformed(c, "migrations") : r;
}

static int check_group(struct checker *c, const struct proof_group *group) {
        int r = check_numbers(c, &group->threads, 1, SPEC_THREADS_MAX, "threads_together");
        if (r == 0)
                r = check_numbers(c, &group->affinity, 1, SPEC_CPUS_MAX, "affinity");
        if (r == 0)
                r = check_numbers(c, &group->cpus, 1, SPEC_CPUS_MAX, "cpus");
        if (r == 0)
                r = check_numbers(c, &group->nodes, 0, SPEC_NODES_MAX, "nodes");
        if (r == 0)
                r = check_numbers(c, &group->cpus_seen, 1, SPEC_CPUS_MAX, "cpus_seen");
        return r == 0 && !is_errno(group->migrations_error) ? malformed(c, "migrations") : r;
}

static int check_sizes(const struct checker *c, const struct proof_page_sizes *row) {
        bool ok = row->kind < PAGE_KIND_COUNT && row->n <= PAGE_SIZES_MAX;
        for (size_t i = 0; ok && i < row->n; i++)
                ok = row->sizes[i].page_bytes > (i ? row->sizes[i - 1].page_bytes : 0) && row->sizes[i].bytes > 0;
        return ok ? 0 : malformed(c, "page_sizes");
}

int proof_report_check(const struct proof_report *p, char *ret_detail) {
        struct checker c = {.p = p, .detail = ret_detail};
        int r = check_process(&c);
        for (size_t i = 0; r == 0 && i < p->of.n_pages; i++)
                r = check_pages(&c, &p->of.pages[i]);
        for (size_t i = 0; r == 0 && i < p->of.n_threads; i++)
                r = check_thread(&c, &p->of.threads[i]);
        for (size_t i = 0; r == 0 && i < p->of.n_groups; i++)
                r = check_group(&c, &p->of.groups[i]);
        for (size_t i = 0; r == 0 && i < p->of.n_sizes; i++)
                r = check_sizes(&c, &p->of.sizes[i]);
        if (r == 0 && (!is_errno(p->sizes_error) || (p->sizes_error && p->of.n_sizes)))
                r = malformed(&c, "page_sizes");
        if (r == 0 && (c.numbers != p->of.n_numbers || c.counts != p->of.n_counts))
                r = malformed(&c, "elements that belong to no list");
        return r;
}

/* --- writing --- */

static void put_numbers(const struct proof_report *p, struct json_writer *w, const char *key,
                        const struct proof_list *list) {
        json_member_array(w, key);
        for (size_t i = 0; i < list->n; i++)
                json_put_u64(w, p->of.numbers[list->at + i]);
        json_array_end(w);
}

static void put_unknown(struct json_writer *w, const char *key, const char *what, uint64_t error) {
        char reason[128];
        (void) snprintf(reason, sizeof(reason), "%s%s", what, strerrordesc_np((int) error));
        json_member_unknown(w, key, reason);
}

static void put_migrations(struct json_writer *w, uint64_t migrations, uint64_t error) {
        if (error)
                put_unknown(w, "migrations", "/proc/PID/sched: ", error);
        else
                json_member_u64(w, "migrations", migrations);
}

static void put_thread(const struct proof_report *p, struct json_writer *w, size_t i) {
        const struct proof_thread *thread = &p->of.threads[i];
        json_object_begin(w);
        json_member_u64(w, "thread", i);
        json_member_i64(w, "tid", thread->tid);
        put_numbers(p, w, "affinity", &thread->affinity);
        json_member_u64(w, "cpu", thread->cpu);
        json_member_u64(w, "node", thread->node);
        put_numbers(p, w, "cpus_seen", &thread->cpus_seen);
        put_migrations(w, thread->migrations, thread->migrations_error);
        json_object_end(w);
}

static void put_group(const struct proof_report *p, struct json_writer *w, const struct proof_group *group) {
        json_object_begin(w);
        put_numbers(p, w, "threads", &group->threads);
        put_numbers(p, w, "affinity", &group->affinity);
        put_numbers(p, w, "cpus", &group->cpus);
        put_numbers(p, w, "nodes", &group->nodes);
        put_numbers(p, w, "cpus_seen", &group->cpus_seen);
        put_migrations(w, group->migrations, group->migrations_error);
        json_object_end(w);
}

static void put_threads(const struct proof_report *p, struct json_writer *w) {
        json_member_array(w, "threads");
        for (size_t i = 0; i < p->of.n_threads; i++)
                put_thread(p, w, i);
        json_array_end(w);
        if (p->of.n_groups) {
                json_member_array(w, "threads_together");
                for (size_t i = 0; i < p->of.n_groups; i++)
                        put_group(p, w, &p->of.groups[i]);
                json_array_end(w);
        }
        json_member_u64(w, "threads_total", p->threads_total);
}

static void put_nodes(const struct proof_report *p, struct json_writer *w, const struct proof_pages *pages) {
        json_member_object(w, "nodes");
        for (size_t i = 0; i < pages->nodes.n; i++) {
                const struct proof_count *count = &p->of.counts[pages->nodes.at + i];
                char key[24];
                (void) snprintf(key, sizeof(key), "%" PRIu64, count->id);
                json_member_u64(w, key, count->pages);
        }
        json_object_end(w);
}

static void put_absent(const struct proof_report *p, struct json_writer *w, const struct proof_pages *pages) {
        const struct proof_count *counts = p->of.counts;
        const size_t from = pages->absent.at, to = from + pages->absent.n;
        uint64_t absent = 0;
        for (size_t i = from; i < to; i++)
                absent += counts[i].pages;
        json_member_u64(w, "absent", absent);
        if (absent == 0)
                return;
        json_member_object(w, "absent_errors");
        for (size_t i = from; i < to; i++)
                json_member_u64(w, counts[i].id ? strerrorname_np((int) counts[i].id) : "unknown", counts[i].pages);
        json_object_end(w);
}

void proof_report_put_pages(const struct proof_report *p, struct json_writer *w) {
        json_array_begin(w);
        for (size_t i = 0; i < p->of.n_pages; i++) {
                const struct proof_pages *pages = &p->of.pages[i];
                json_object_begin(w);
                json_member_string(w, "what", page_kind_name((enum page_kind) pages->kind));
                json_member_u64(w, pages->together ? "threads" : "thread", pages->thread);
                if (pages->ranges)
                        json_member_u64(w, "ranges", pages->ranges);
                json_member_u64(w, "total", pages->total);
                if (pages->error) {
                        char reason[128];
                        (void) snprintf(reason, sizeof(reason), "the nodes of the pages cannot be read: %s",
                                        strerrordesc_np((int) pages->error));
                        json_member_null(w, "nodes");
                        json_member_string(w, "reason", reason);
                } else {
                        put_nodes(p, w, pages);
                        put_absent(p, w, pages);
                        put_numbers(p, w, "nodes_seen", &pages->nodes_seen);
                        json_member_u64(w, "moved", pages->moved);
                }
                json_object_end(w);
        }
        json_array_end(w);
}

static void put_sizes(struct json_writer *w, const struct proof_page_sizes *row) {
        json_object_begin(w);
        json_member_string(w, "what", page_kind_name((enum page_kind) row->kind));
        json_member_u64(w, "mappings", row->mappings);
        json_member_object(w, "bytes");
        for (size_t i = 0; i < row->n; i++) {
                char key[24];
                (void) snprintf(key, sizeof(key), "%" PRIu64, row->sizes[i].page_bytes);
                json_member_u64(w, key, row->sizes[i].bytes);
        }
        json_object_end(w);
        json_object_end(w);
}

/* The kernel does not show in which sizes the page cache has a file, and a missing row would read as if there were no
 * such pages.
 */
static void put_unsized(const struct proof_report *p, struct json_writer *w) {
        for (size_t i = 0; i < p->of.n_pages; i++)
                if (p->of.pages[i].kind == PAGES_CACHE) {
                        json_object_begin(w);
                        json_member_string(w, "what", page_kind_name(PAGES_CACHE));
                        json_member_u64(w, "mappings", 0);
                        json_member_unknown(w, "bytes", "files are mapped only while their pages are counted");
                        json_object_end(w);
                        return;
                }
}

void proof_report_put(const struct proof_report *p, struct json_writer *w) {
        json_object_begin(w);
        put_numbers(p, w, "affinity", &p->affinity);
        json_member_object(w, "leader");
        json_member_i64(w, "tid", p->leader_tid);
        put_numbers(p, w, "affinity", &p->leader_affinity);
        json_member_u64(w, "cpu", p->leader_cpu);
        json_object_end(w);
        if (p->policy_error) {
                put_unknown(w, "policy", "get_mempolicy: ", p->policy_error);
        } else {
                json_member_string(w, "policy", memory_policy_name((enum memory_policy) p->policy));
                put_numbers(p, w, "policy_nodes", &p->policy_nodes);
        }
        put_threads(p, w);
        json_member_u64(w, "pages_placed_together", p->placed_together);
        json_put_key(w, "pages");
        proof_report_put_pages(p, w);
        if (p->sizes_error) {
                put_unknown(w, "page_sizes", "", p->sizes_error);
        } else {
                json_member_array(w, "page_sizes");
                for (size_t i = 0; i < p->of.n_sizes; i++)
                        put_sizes(w, &p->of.sizes[i]);
                put_unsized(p, w);
                json_array_end(w);
        }
        if (p->no_page_cache[0]) {
                json_member_unknown(w, "page_cache", p->no_page_cache);
        }
        json_object_end(w);
}
