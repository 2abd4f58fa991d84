/* SPDX-License-Identifier: MIT */

/* Sizes of pages, from files as the kernel prints them, and of this process's own memory. */

#include "agent/proof/page-sizes.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include "check.h"
#include "tests/unit/proof-report.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAPPING(range, rss, anon, shmem, page, hugetlb)                                                                \
        range " rw-p 00000000 00:00 0\n"                                                                               \
              "Size: 16384 kB\nKernelPageSize: " page " kB\nMMUPageSize: " page " kB\nRss: " rss " kB\n"               \
              "Pss: 4 kB\nPss_Dirty: 4 kB\nAnonHugePages: " anon " kB\nShmemPmdMapped: " shmem " kB\n"                 \
              "FilePmdMapped: 0 kB\nShared_Hugetlb: " hugetlb " kB\nPrivate_Hugetlb: 0 kB\n"                           \
              "VmFlags: rd wr mr mw me ac \n"

static const char smaps[] = MAPPING("10000000-11000000", "16344", "0", "14336", "4", "0")
        MAPPING("20000000-20400000", "4096", "4096", "0", "4", "0")
                MAPPING("30000000-30400000", "0", "0", "0", "2048", "4096")
                        MAPPING("40000000-40001000", "4", "0", "0", "4", "0")
                                MAPPING("50000000-50001000", "0", "0", "0", "4", "0");

static bool write_to(const char *path, const char *text) {
        FILE *f = fopen(path, "we");
        return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

/* The member of a proof that has these sizes. */
static char *put(const struct page_sizes *s) {
        struct proof_report p = {.placed_together = 1, .sizes_error = (uint32_t) -s->error};
        for (size_t i = 0; s->error == 0 && i < s->n; i++) {
                struct proof_page_sizes *row = proof_report_add_sizes(&p);
                if (row)
                        *row = s->rows[i];
        }
        _cleanup_free_ char *text = NULL;
        struct json_writer w;
        json_writer_init(&w);
        proof_report_put(&p, &w);
        (void) json_writer_steal(&w, &text, NULL);
        json_writer_deinit(&w);
        free(p.of.sizes);
        const char *found = text ? strstr(text, "\"page_sizes\":") : NULL;
        char *ret = found ? strdup(found + strlen("\"page_sizes\":")) : NULL; /* the comparison fails on NULL */
        if (ret)
                ret[strlen(ret) - 1] = '\0'; /* of the object */
        return ret;
}

static void test_kinds_have_their_mappings(void) {
        static const struct {
                enum page_kind kind;
                uintptr_t at;
        } ranges[] = {{PAGES_RING, 0x10001000},   {PAGES_RING, 0x10002000},  {PAGES_BUFFER, 0x20000000},
                      {PAGES_BUFFER, 0x30000000}, {PAGES_STACK, 0x40000000}, {PAGES_SEMAPHORES, 0x50000000}};
        char path[] = "/tmp/ipclab-smaps-XXXXXX";
        _cleanup_close_ int fd = mkstemp(path);
        CHECK(fd >= 0 && write_to(path, smaps));
        struct page_list list = {};
        struct page_sizes s;
        for (size_t i = 0; i < ELEMENTS(ranges); i++)
                CHECK_INT(page_list_add_of(&list, ranges[i].kind, 0, 0, ranges[i].at, 4096), 0);
        CHECK_INT(page_list_add_of(&list, PAGES_STACK, 0, INT_MAX, 0x20000000, 4096), 0); /* of one that is gone */
        CHECK_INT(page_list_add_mapped(&list, PAGES_RING, (void *) 0x10000000, 0x1000000), 0);
        page_sizes_read(&list, path, &s);
        _cleanup_free_ char *text = put(&s);
        (void) unlink(path);
        page_list_deinit(&list);
        if (access("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", R_OK) < 0)
                SKIP("a kernel without transparent huge pages");
        CHECK_STRING(text, "[{\"what\":\"ring\",\"mappings\":1,\"bytes\":{\"4096\":2056192,\"2097152\":14680064}},"
                           "{\"what\":\"buffer\",\"mappings\":2,\"bytes\":{\"2097152\":8388608}},"
                           "{\"what\":\"stack\",\"mappings\":1,\"bytes\":{\"4096\":4096}},"
                           "{\"what\":\"semaphores\",\"mappings\":1,\"bytes\":{}}]");
        CHECK_UINT(page_sizes_most(&s, PAGES_RING), 2097152);
        CHECK_UINT(page_sizes_most(&s, PAGES_STACK), 4096);
        CHECK_UINT(page_sizes_most(&s, PAGES_SEMAPHORES), 0); /* nothing of it is there */
        CHECK_UINT(page_sizes_most(&s, PAGES_CACHE), 0);
}

static void test_what_cannot_be_read(void) {
        struct page_list list = {};
        struct page_sizes s;
        page_sizes_read(&list, "/nonexistent/smaps", &s);
        CHECK_INT(s.error, -ENOENT);
        _cleanup_free_ char *text = put(&s);
        CHECK_STRING(text, "null,\"page_sizes_reason\":\"No such file or directory\"");
        CHECK_UINT(page_sizes_most(&s, PAGES_RING), 0);
}

/* Eight pages of which three are there. */
static void test_own_memory(void) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        struct page_list list = {};
        struct page_sizes s;
        unsigned char *p = mmap(NULL, 10 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED && mprotect(p + page, 8 * page, PROT_READ | PROT_WRITE) == 0);
        for (size_t i = 1; i <= 3; i++)
                p[i * page] = 1;
        CHECK_INT(page_list_add(&list, PAGES_BUFFER, 0, p + page, 8 * page), 0);
        page_sizes_read(&list, "/proc/self/smaps", &s);
        page_list_deinit(&list);
        CHECK_INT(munmap(p, 10 * page), 0);
        CHECK_INT(s.error, 0);
        CHECK_UINT(s.n, 1);
        CHECK_UINT(s.rows[0].mappings, 1);
        CHECK_UINT(s.rows[0].n, 1);
        CHECK_UINT(s.rows[0].sizes[0].page_bytes, page);
        CHECK_UINT(s.rows[0].sizes[0].bytes, 3 * page);
}

/* Processes that the leader has forked have mappings of their own at the same place. */
static void test_memory_of_other_processes(void) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        struct page_list list = {};
        struct page_sizes s;
        pid_t children[2];
        int ready[2];
        unsigned char *p = mmap(NULL, 10 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED && mprotect(p + page, 8 * page, PROT_READ | PROT_WRITE) == 0);
        CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
        for (size_t i = 0; i < ELEMENTS(children); i++) {
                children[i] = fork();
                if (children[i] == 0) {
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                        for (size_t k = 1; k <= 3; k++)
                                p[k * page] = 1;
                        if (write(ready[1], "", 1) == 1)
                                (void) pause();
                        _exit(1);
                }
                CHECK(children[i] > 0);
                char byte;
                CHECK_INT(read(ready[0], &byte, 1), 1);
                CHECK_INT(page_list_add_of(&list, PAGES_STACK, (uint32_t) i, children[i], (uintptr_t) p + page, page),
                          0);
                CHECK_INT(page_list_add_of(&list, PAGES_STACK, (uint32_t) i, children[i], (uintptr_t) p + page, page),
                          0);
        }
        CHECK_INT(page_list_add(&list, PAGES_BUFFER, 0, p + page, 8 * page), 0);
        page_sizes_read(&list, "/proc/self/smaps", &s);
        for (size_t i = 0; i < ELEMENTS(children); i++)
                CHECK(kill(children[i], SIGKILL) == 0 && waitpid(children[i], NULL, 0) == children[i]);
        page_list_deinit(&list);
        CHECK(munmap(p, 10 * page) == 0 && close(ready[0]) == 0 && close(ready[1]) == 0);
        _cleanup_free_ char *text = put(&s), *wanted = NULL;
        CHECK(asprintf(&wanted,
                       "[{\"what\":\"buffer\",\"mappings\":1,\"bytes\":{}},"
                       "{\"what\":\"stack\",\"mappings\":2,\"bytes\":{\"%zu\":%zu}}]",
                       page, 6 * page) > 0);
        CHECK_STRING(text, wanted);
}

/* The proof has the pages of files in the page cache; that their sizes are unknown stands there once. */
static void test_files_have_no_sizes(void) {
        static const enum page_kind kinds[] = {PAGES_BUFFER, PAGES_CACHE, PAGES_CACHE};
        for (size_t n = 1; n <= ELEMENTS(kinds); n++) {
                struct proof_report p = {.placed_together = 1};
                _cleanup_free_ char *text = NULL;
                struct json_writer w;
                for (size_t i = 0; i < n; i++) {
                        struct proof_pages *pages = proof_report_add_pages(&p);
                        CHECK(pages);
                        if (pages)
                                pages->kind = kinds[i];
                }
                json_writer_init(&w);
                proof_report_put(&p, &w);
                CHECK_INT(json_writer_steal(&w, &text, NULL), 0);
                json_writer_deinit(&w);
                free(p.of.pages);
                CHECK(text && strstr(text, n == 1 ? "\"page_sizes\":[]"
                                                  : "\"page_sizes\":[{\"what\":\"page_cache\",\"mappings\":0,"
                                                    "\"bytes\":null,\"bytes_reason\":\"files are mapped only while "
                                                    "their pages are counted\"}]"));
        }
}

int main(void) {
        RUN(test_kinds_have_their_mappings);
        RUN(test_what_cannot_be_read);
        RUN(test_own_memory);
        RUN(test_memory_of_other_processes);
        RUN(test_files_have_no_sizes);
        return check_end();
}
