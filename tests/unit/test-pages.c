/* SPDX-License-Identifier: MIT */

/*
 * Observations of pages: present, never touched and not mapped; what has moved since it was first seen. No page needs
 * to be moved for that: the account is given another first node.
 */

#include "agent/proof/pages.h"

#include "check.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/proof-report.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ELSEWHERE 1023

static size_t page(void) {
        return (size_t) sysconf(_SC_PAGESIZE);
}

/* Ranges of so many pages in a row of their own, all written to. */
static unsigned char *map_pages(size_t n) {
        void *p = mmap(NULL, n * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                abort();
        for (size_t i = 0; i < n; i++)
                ((unsigned char *) p)[i * page()] = 1;
        return p;
}

static char *put_at_most(struct page_list *list, size_t most) {
        PROOF *p = calloc(1, sizeof *p);
        struct json_writer w;
        char *text = NULL;
        if (!p)
                abort();
        json_writer_init(&w);
        page_list_report(list, most, p);
        proof_report_put_pages(p, &w);
        if (p->error < 0 || json_writer_steal(&w, &text, NULL) < 0)
                abort();
        json_writer_deinit(&w);
        return text;
}

static char *put(struct page_list *list, bool together) {
        return put_at_most(list, together ? 0 : SIZE_MAX);
}

static size_t rows_of(const char *text) {
        size_t n = 0;
        while ((text = strstr(text, "{\"what\"")) != NULL) {
                text++;
                n++;
        }
        return n;
}

/* A kernel without NUMA answers ENOSYS. */
static bool has_numa(void) {
        struct page_list list = {};
        unsigned char *p = map_pages(1);
        bool can = false;
        if (page_list_add(&list, PAGES_STACK, 0, p, page()) == 0) {
                _cleanup_free_ char *text = put(&list, false);
                can = text && !strstr(text, "\"nodes\":null");
        }
        page_list_deinit(&list);
        (void) munmap(p, page());
        return can;
}

static void test_absent_pages_have_their_reason(void) {
        if (!has_numa())
                SKIP("a kernel without NUMA");
        struct page_list list = {};
        unsigned char *p = map_pages(6);
        CHECK_INT(madvise(p + page(), 2 * page(), MADV_DONTNEED), 0);
        CHECK_INT(munmap(p + 5 * page(), page()), 0);
        CHECK_INT(page_list_add(&list, PAGES_STACK, 3, p, 6 * page()), 0);
        CHECK_INT(page_list_add(&list, PAGES_BUFFER, 0, NULL, 0), 0);
        CHECK_UINT(list.n, 1);
        _cleanup_free_ char *text = put(&list, false);
        CHECK(strstr(text, "{\"what\":\"stack\",\"thread\":3,\"total\":6,"));
        CHECK(strstr(text, "\"absent\":3,"));
        CHECK(strstr(text, "\"ENOENT\":2"));
        CHECK(strstr(text, "\"EFAULT\":1"));
        CHECK(strstr(text, "\"moved\":0"));
        page_list_deinit(&list);
        CHECK_INT(munmap(p, 5 * page()), 0);
}

/* Each page counts once, however often it is found; one that was not there at first has not moved. */
static void test_moved_pages_are_counted(void) {
        if (!has_numa())
                SKIP("a kernel without NUMA");
        struct page_list list = {};
        unsigned char *p = map_pages(6);
        CHECK_INT(madvise(p, page(), MADV_DONTNEED), 0);
        CHECK_INT(page_list_add(&list, PAGES_STACK, 0, p, 6 * page()), 0);
        free(put(&list, false));
        p[0] = 1;
        list.ranges[0].initial_nodes[2] = list.ranges[0].initial_nodes[3] = ELSEWHERE;
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *text = put(&list, false);
                CHECK(strstr(text, "\"absent\":0,"));
                CHECK(strstr(text, "\"moved\":2"));
        }
        _cleanup_free_ char *together = put(&list, true);
        CHECK(strstr(together, "{\"what\":\"stack\",\"threads\":1,\"total\":6,"));
        CHECK(strstr(together, "\"moved\":2"));
        page_list_deinit(&list);
        CHECK_INT(munmap(p, 6 * page()), 0);
}

/* Pieces of a thread's memory are one row; rows that are too long are one for all threads, of which each counts once.
 */
static void test_many_ranges_are_summed(void) {
        if (!has_numa())
                SKIP("a kernel without NUMA");
        struct page_list list = {};
        unsigned char *p = map_pages(12);
        for (unsigned i = 0; i < 12; i++)
                CHECK_INT(page_list_add(&list, PAGES_BUFFER, i % 3, p + i * page(), page()), 0);
        CHECK_INT(page_list_add(&list, PAGES_RING, 0, p, page()), 0);
        list.ranges[4].initial_nodes[0] = ELSEWHERE;
        _cleanup_free_ char *each = put(&list, false);
        CHECK_UINT(rows_of(each), 4);
        CHECK(strstr(each, "{\"what\":\"buffer\",\"thread\":0,\"ranges\":4,\"total\":4,"));
        CHECK(strstr(each, "{\"what\":\"buffer\",\"thread\":2,\"ranges\":4,\"total\":4,"));
        CHECK(strstr(each, "{\"what\":\"ring\",\"thread\":0,\"total\":1,"));
        _cleanup_free_ char *together = put(&list, true);
        CHECK_UINT(rows_of(together), 2);
        CHECK(strstr(together, "{\"what\":\"buffer\",\"threads\":3,\"ranges\":12,\"total\":12,"));
        CHECK(strstr(together, "\"moved\":1"));
        /* a byte too long for rows of each: one row is of all, from the same observation */
        for (size_t less = 0; less < 2; less++) {
                _cleanup_free_ char *text = put_at_most(&list, strlen(each) - less);
                CHECK_STRING(text, less ? together : each);
        }
        page_list_deinit(&list);
        CHECK_INT(munmap(p, 12 * page()), 0);
}

/* A few pages are all observed in one sample, very many in some; and what a sample found is reported later. */
static void test_samples_of_pages(void) {
        static const struct {
                size_t pages;
                unsigned samples;
        } cases[] = {{0, 1}, {1, 1}, {1000, 1}, {1024, 1}, {1025, 2}, {5000, 5}};
        if (!has_numa())
                SKIP("a kernel without NUMA");
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct page_list list = {};
                size_t first = cases[i].pages / 3, second = cases[i].pages - first;
                unsigned char *p = map_pages(cases[i].pages + 1);
                CHECK_INT(page_list_add(&list, PAGES_RING, 0, p, first * page()), 0);
                CHECK_INT(page_list_add(&list, PAGES_RING, 1, p + first * page(), second * page()), 0);
                free(put(&list, false));
                for (size_t r = 0; r < list.n; r++)
                        for (uintptr_t k = 0; k < (list.ranges[r].high - list.ranges[r].low) / page(); k++)
                                list.ranges[r].initial_nodes[k] = ELSEWHERE;
                for (unsigned g = 0; g < cases[i].samples; g++)
                        page_list_sample(&list);
                size_t moved = 0;
                for (size_t r = 0; r < list.n; r++)
                        moved += list.ranges[r].moved;
                CHECK_UINT(moved, cases[i].pages);
                page_list_deinit(&list);
                CHECK_INT(munmap(p, (cases[i].pages + 1) * page()), 0);
        }
}

/* What is in the cache is counted; what is not there is not brought in by the look. */
static void test_pages_of_a_file(void) {
        if (!has_numa())
                SKIP("a kernel without NUMA");
        struct page_list list = {};
        struct stat st;
        _cleanup_close_ int fd = memfd_create("pages", MFD_CLOEXEC);
        CHECK(fd >= 0 && ftruncate(fd, (off_t) (8 * page())) == 0);
        CHECK_INT(page_list_add_file(&list, 1, fd, (off_t) (2 * page()), 4 * page()), 0);
        _cleanup_free_ char *empty = put(&list, false);
        CHECK(strstr(empty, "{\"what\":\"page_cache\",\"thread\":1,\"total\":4,\"nodes\":{},\"absent\":4,"));
        CHECK(strstr(empty, "\"ENOENT\":4"));

        CHECK_INT(pwrite(fd, "x", 1, (off_t) page()), 1); /* before the range */
        CHECK_INT(pwrite(fd, "x", 1, (off_t) (5 * page())), 1);
        page_list_sample(&list); /* it has nothing about files */
        _cleanup_free_ char *text = put(&list, false);
        CHECK(strstr(text, "\"absent\":3,"));
        CHECK_UINT(list.ranges[0].moved, 0);
        CHECK_INT(fstat(fd, &st), 0);
        CHECK_UINT((uint64_t) st.st_blocks * 512, 2 * page());
        page_list_deinit(&list);
}

static void test_pages_placed_together(void) {
        CHECK(pages_placed_together(false) >= 1);
        CHECK(pages_placed_together(true) >= pages_placed_together(false));
}

int main(void) {
        RUN(test_absent_pages_have_their_reason);
        RUN(test_moved_pages_are_counted);
        RUN(test_many_ranges_are_summed);
        RUN(test_samples_of_pages);
        RUN(test_pages_of_a_file);
        RUN(test_pages_placed_together);
        return check_end();
}
