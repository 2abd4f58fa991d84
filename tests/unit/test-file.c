/* SPDX-License-Identifier: MIT */

/*
 * Which end has the slots of files, on a file system in memory and on the one of /tmp. One node is enough to see that
 * pages were taken under an interleaving policy: the node counts them.
 */

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "agent/transport/file/slots.h"
#include "allowed-node.h"
#include "check.h"
#include "schema/json/json.h"
#include "schema/transport/file-layout.h"
#include "schema/util.h"
#include "tests/unit/proof-report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROBED_PAGES 16

static const char *const places[] = {"/dev/shm", "/tmp"};

struct ends {
        char dir[64];
        struct agent agents[END_COUNT];
        struct worker workers[END_COUNT];
};

/* In place of the C library's: whether something was written, and what of it has not been synced. */
static struct {
        unsigned writes, unsynced;
        int error; /* of syncing; 0: it goes well */
} disk;

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset) {
        disk.writes++;
        disk.unsynced++;
        return syscall(SYS_pwrite64, fd, data, n, offset);
}

int fdatasync(int fd) {
        errno = disk.error;
        if (disk.error)
                return -1;
        disk.unsynced = 0;
        return (int) syscall(SYS_fdatasync, fd);
}

/* Pages that were interleaved and came from the node they were to come from; -1: it is not counted. */
static int64_t interleaved_on(unsigned node) {
        char path[64], line[128];
        int64_t n = -1;
        int counted = 1;
        _cleanup_fclose_ FILE *setting = fopen("/proc/sys/vm/numa_stat", "re");
        if (setting && fscanf(setting, "%d", &counted) == 1 && !counted) /* NOLINT(cert-err34-c) */
                return -1;
        (void) snprintf(path, sizeof path, "/sys/devices/system/node/node%u/numastat", node);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
                if (sscanf(line, "interleave_hit %" SCNd64, &n) == 1) /* NOLINT(cert-err34-c) */
                        break;
        return n;
}

static void set_up(struct ends *e, enum workload workload, const char *place) {
        int fds[END_COUNT];
        (void) snprintf(e->dir, sizeof e->dir, "%s/ipclab-file-XXXXXX", place);
        if (!mkdtemp(e->dir) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                abort();
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                struct agent *a = &e->agents[end];
                struct worker *w = &e->workers[end];
                *w = (struct worker){.agent = a, .size = 4096, .send_fd = -1, .receive_fd = -1};
                *a = (struct agent){.end = end,
                                    .peer_role = "other",
                                    .control_fd = -1,
                                    .peer_fd = fds[end],
                                    .run_dir_fd = open(e->dir, O_PATH | O_DIRECTORY | O_CLOEXEC),
                                    .event_fd = -1,
                                    .workers = w,
                                    .n_workers = 1};
                a->setup.point = (struct point){
                        .workload = workload, .transport = TRANSPORT_FILE, .message_size = 4096, .threads = 1};
        }
}

static void tear_down(struct ends *e) {
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                struct agent *a = &e->agents[end];
                file_detach(&e->workers[end]);
                (void) util_close(e->workers[end].send_fd);
                (void) util_close(a->run_dir_fd);
                (void) util_close(a->peer_fd);
        }
        (void) rmdir(e->dir);
}

/* Whether all pages of the cache that this end shows are there, `n` of them. */
static bool has_all(struct agent *a, uint64_t n) {
        PROOF *proof = calloc(1, sizeof *proof);
        char words[96];
        struct page_list pages = {.n = 0};
        int r = proof ? file_pages(a, &pages) : -ENOMEM;
        if (r == 0)
                page_list_report(&pages, SIZE_MAX, proof);
        page_list_deinit(&pages);
        _cleanup_free_ char *text = r == 0 ? proof_report_text(proof) : NULL;
        (void) snprintf(words, sizeof words, "\"page_cache\",\"thread\":0,\"total\":%" PRIu64 ",\"nodes\":{", n);
        bool all = text && strstr(text, words) && !strstr(text, "absent_errors");
        if (!all)
                fprintf(stderr, "%s\n", text ? text : "no pages");
        return all;
}

static int policy(void) {
        int mode = -1;
        return syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) < 0 ? -errno : mode;
}

/* Each end's own, before any message, whatever the process has for all else. */
static void check_slots(struct ends *e, unsigned node) {
        bool both = e->agents[END_FIRST].setup.point.workload == WORKLOAD_PINGPONG;
        uint64_t slots = file_layout_of(&e->agents[END_FIRST].setup.point, 4096).slots;
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                struct agent *a = &e->agents[end];
                bool writes = both || end == END_FIRST;
                a->setup.placement.buffer = MEMORY_INTERLEAVE;
                node_set_add(&a->setup.placement.buffer_nodes, node);
                int64_t before = interleaved_on(node);
                if (file_open(a) < 0)
                        CHECK_FAIL("%s: %s", e->dir, a->failure.detail);
                int64_t taken = interleaved_on(node) - before;
                if (writes && taken < (int64_t) slots)
                        CHECK_FAIL("%s: %" PRId64 " pages of %" PRIu64 " slots were interleaved", e->dir, taken, slots);
                CHECK(!writes || has_all(a, slots));
                CHECK_INT(policy(), MPOL_DEFAULT);
        }
}

/* Whether pages of files are counted one by one there: not without a page cache, nor where huge ones are taken. */
static bool counts_pages(const char *place, unsigned node) {
        static const char page[4096];
        char path[64];
        unsigned long mask[SPEC_NODES_MAX / 8 / sizeof(unsigned long)] = {};
        (void) snprintf(path, sizeof path, "%s/ipclab-file-XXXXXX", place);
        _cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
                return false;
        (void) unlink(path);
        mask[node / 64] = 1UL << (node % 64);
        int64_t before = interleaved_on(node), n = 0;
        if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, mask, (unsigned long) SPEC_NODES_MAX) < 0)
                return false;
        while (n < PROBED_PAGES && write(fd, page, sizeof page) == (ssize_t) sizeof page)
                n++;
        int64_t taken = interleaved_on(node) - before;
        return syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL) == 0 && n == PROBED_PAGES && taken >= n;
}

static const char *place; /* of the case that runs */

static void test_slots_lie_where_buffers_are_to_be(void) {
        static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};
        unsigned node = 0;
        if (allowed_node(&node) < 0 || interleaved_on(node) < 0)
                SKIP("this kernel does not count interleaved pages");
        if (sysconf(_SC_PAGESIZE) != 4096)
                SKIP("pages are not of 4096 bytes, as the messages are");
        if (!counts_pages(place, node))
                SKIP("pages of files in %s are not counted one by one", place);
        for (size_t i = 0; i < ELEMENTS(workloads) && !check_case_failed; i++) {
                static struct ends e; /* aligned, as no stack need be under the address sanitizer */
                set_up(&e, workloads[i], place);
                check_slots(&e, node);
                tear_down(&e);
        }
}

static void test_policy_that_cannot_be(void) {
        unsigned node = 0;
        static struct ends e; /* aligned, as no stack need be under the address sanitizer */
        if (allowed_node(&node) < 0)
                SKIP("a kernel without NUMA");
        set_up(&e, WORKLOAD_STREAM, places[0]);
        e.agents[END_FIRST].setup.placement.buffer = MEMORY_BIND;
        node_set_add(&e.agents[END_FIRST].setup.placement.buffer_nodes, SPEC_NODES_MAX - 1);
        int r = file_open(&e.agents[END_FIRST]);
        const char *text = e.agents[END_FIRST].failure.detail;
        bool right = r == -EINVAL && strstr(text, "the policy of buffers cannot be set");
        if (!right)
                fprintf(stderr, "%d %s\n", r, text);
        tear_down(&e);
        CHECK(right);
        CHECK_INT(policy(), MPOL_DEFAULT);
}

static int open_filled(struct agent *a, unsigned node, enum file_sync sync) {
        disk.writes = disk.unsynced = 0;
        a->setup.options.file_sync = sync;
        a->setup.placement.buffer = MEMORY_INTERLEAVE;
        node_set_add(&a->setup.placement.buffer_nodes, node);
        return file_open(a);
}

static void check_synced(struct ends *e, unsigned node, enum file_sync sync) {
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                struct agent *a = &e->agents[end];
                if (open_filled(a, node, sync) < 0)
                        CHECK_FAIL("%s: %s", e->dir, a->failure.detail);
                CHECK(disk.writes > 0);
                CHECK_INT(disk.unsynced == 0, sync == FILE_SYNC_FSYNC);
        }
}

/* What fills the slots is on the device before a message is synced, which is not to wait for that too. */
static void test_what_fills_is_synced_where_messages_are(void) {
        unsigned node = 0;
        if (allowed_node(&node) < 0)
                SKIP("a kernel without NUMA");
        for (unsigned sync = 0; sync < FILE_SYNC_COUNT && !check_case_failed; sync++) {
                static struct ends e; /* aligned, as no stack need be under the address sanitizer */
                if (sync == FILE_SYNC_DIRECT)
                        continue;
                set_up(&e, WORKLOAD_PINGPONG, places[1]);
                check_synced(&e, node, (enum file_sync) sync);
                tear_down(&e);
        }
}

static void test_device_that_fails(void) {
        static struct ends e;
        unsigned node = 0;
        if (allowed_node(&node) < 0)
                SKIP("a kernel without NUMA");
        set_up(&e, WORKLOAD_STREAM, places[1]);
        disk.error = EIO;
        int r = open_filled(&e.agents[END_FIRST], node, FILE_SYNC_FSYNC);
        disk.error = 0;
        const char *text = e.agents[END_FIRST].failure.detail;
        bool right = r == -EIO && strstr(text, "cannot be filled: Input/output error");
        if (!right)
                fprintf(stderr, "%d %s\n", r, text);
        tear_down(&e);
        CHECK(right);
        CHECK_INT(policy(), MPOL_DEFAULT);
}

/* The more bytes both ends may have to write before, the longer; an end cannot know whether its peer does. */
static void test_time_to_open(void) {
        static struct agent a = {.setup.point = {.workload = WORKLOAD_STREAM,
                                                 .transport = TRANSPORT_FILE,
                                                 .message_size = UINT64_C(1) << 30,
                                                 .threads = 4}};
        for (a.end = END_FIRST; a.end < END_COUNT; a.end++) {
                a.setup.options.file_sync = FILE_SYNC_FSYNC;
                CHECK_UINT(file_opening_ns(&a), AGENT_RENDEZVOUS_NS + (UINT64_C(8) << 30) * 20);
                a.setup.options.file_sync = FILE_SYNC_DIRECT;
                CHECK_UINT(file_opening_ns(&a), AGENT_RENDEZVOUS_NS);
        }
}

int main(void) {
        for (size_t i = 0; i < ELEMENTS(places); i++) {
                place = places[i];
                printf("in %s:\n", place);
                RUN(test_slots_lie_where_buffers_are_to_be);
        }
        RUN(test_policy_that_cannot_be);
        RUN(test_what_fills_is_synced_where_messages_are);
        RUN(test_device_that_fails);
        RUN(test_time_to_open);
        return check_end();
}
