/* SPDX-License-Identifier: MIT */
/* Which properties of file systems are tried before a run: whether they take O_DIRECT, and whether they have room. */

#include "tests/unit/check.h"

#include "daemon/admission/admission.h"
#include "daemon/admission/capacity.h"
#include "schema/util.h"
#include "tests/unit/host-tree.h"
#include "tests/unit/nameless.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* In memory a write is nowhere but in the page cache, whatever file_sync is. */
static void syncing_needs_a_disk(void) {
        static const char *const names[] = {[FILE_SYNC_DIRECT] = "direct", [FILE_SYNC_FSYNC] = "fsync"};
        const struct point p = {.transport = TRANSPORT_FILE, .message_size = 65536, .threads = 1};
        struct topology *t = NULL;
        CHECK_INT(topology_read("", &t), 0);
        const struct admission_host host = {.root = "", .topology = t, .runtime_dir = "/dev/shm"};
        for (unsigned sync = 0; sync < FILE_SYNC_COUNT; sync++) {
                const struct spec spec = {.options = {.file_sync = (enum file_sync) sync}};
                struct refusal r = {.status = 0};
                char words[200];
                int x = admission_check(&host, &spec, &p, &r);
                if (!names[sync]) {
                        CHECK_INT(x, 0);
                        continue;
                }
                (void) snprintf(words, sizeof(words),
                                "file_sync %s is not available: /dev/shm is in memory, where the page cache is all "
                                "there is (to change it: --runtime-dir on another file system)",
                                names[sync]);
                CHECK_INT(x, -EINVAL);
                CHECK_STRING(r.code, "not-available");
                CHECK_STRING(r.pointer, "/transport_options/file_sync");
                CHECK_STRING(r.detail, words);
        }
        topology_free(t);
}

static void files_on_a_disk_are_synced(void) {
        const struct spec spec = {.options = {.file_sync = FILE_SYNC_FSYNC}};
        const struct point p = {.transport = TRANSPORT_FILE, .message_size = 4097, .threads = 1};
        struct topology *t = NULL;
        struct refusal r = {.status = 0};
        CHECK_INT(topology_read("", &t), 0);
        const struct admission_host host = {.root = "", .topology = t, .runtime_dir = "."};
        int x = admission_check(&host, &spec, &p, &r);
        topology_free(t);
        if (x < 0 && strcmp(r.code, "not-available") == 0)
                SKIP("%s", r.detail);
        CHECK_INT(x, 0);
}

/* Whether a file system takes O_DIRECT, and in what units, is found by trying it. */
static void direct_files_are_tried(void) {
        const struct spec spec = {.options = {.file_sync = FILE_SYNC_DIRECT}};
        struct point p = {.transport = TRANSPORT_FILE, .message_size = 4097, .threads = 1};
        struct topology *t = NULL;
        struct refusal r = {.status = 0};
        CHECK_INT(topology_read("", &t), 0);
        struct admission_host host = {.root = "", .topology = t, .runtime_dir = "/proc"};
        CHECK_INT(admission_check(&host, &spec, &p, &r), -EINVAL); /* no file can be made there to try O_DIRECT */
        CHECK_STRING(r.limit, "free space of the runtime directory");
        host.runtime_dir = ".";
        int odd = admission_check(&host, &spec, &p, &r);
        p.message_size = 65536;
        int even = odd < 0 ? admission_check(&host, &spec, &p, &r) : 0;
        topology_free(t);
        if (odd < 0 && strcmp(r.code, "not-available") == 0)
                SKIP("%s", r.detail);
        CHECK_INT(odd, -EINVAL);
        CHECK_STRING(r.limit, "alignment of O_DIRECT");
        CHECK_STRING(r.value, "4097");
        CHECK_INT(even, 0);
}

enum answer { ADMITTED, REFUSED_BY_ALIGNMENT, REFUSED, NO_FILTER };

static enum answer try_direct(const char *dir, const struct topology *t) {
        const struct spec spec = {.options = {.file_sync = FILE_SYNC_DIRECT}};
        const struct point p = {.transport = TRANSPORT_FILE, .message_size = 4097, .threads = 1};
        const struct admission_host host = {.root = "", .topology = t, .runtime_dir = dir};
        struct refusal r = {.status = 0};
        if (admission_check(&host, &spec, &p, &r) == 0)
                return ADMITTED;
        return strcmp(r.limit, "alignment of O_DIRECT") == 0 ? REFUSED_BY_ALIGNMENT : REFUSED;
}

/* The answer is the same where a file must have a name, and the file is gone. */
static void direct_files_may_have_to_have_a_name(void) {
        char dir[] = "direct-test.XXXXXX";
        struct topology *t = NULL;
        int status = 0;
        CHECK(mkdtemp(dir));
        CHECK_INT(topology_read("", &t), 0);
        enum answer usual = try_direct(dir, t);
        pid_t child = fork();
        if (child == 0)
                _exit(forbid_nameless_files() < 0 ? NO_FILTER : try_direct(dir, t));
        topology_free(t);
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(rmdir(dir), 0);
        CHECK(WIFEXITED(status));
        if (WEXITSTATUS(status) == NO_FILTER)
                SKIP("this process may not set a seccomp filter");
        CHECK_INT(WEXITSTATUS(status), usual);
        if (usual != REFUSED_BY_ALIGNMENT)
                SKIP("the file system of the build has no O_DIRECT");
}

/* Two slots for each thread, of which one each would just fit. */
static void files_need_room(void) {
        const struct spec spec = {.repetitions = 1};
        struct point p = {.transport = TRANSPORT_FILE, .message_size = 4096, .threads = 1};
        struct topology *t = NULL;
        struct refusal r = {.status = 0};
        struct statvfs fs;
        CHECK_INT(statvfs("/dev/shm", &fs), 0);
        CHECK_INT(topology_read("", &t), 0);
        struct admission_host host = {.root = "", .topology = t, .runtime_dir = "/dev/shm"};
        int modest = admission_check(&host, &spec, &p, &r);
        p.threads = 256;
        p.message_size = fs.f_bavail * fs.f_frsize / 256 / 4096 * 4096;
        int much = p.message_size > SPEC_MESSAGE_SIZE_MAX ? 0 : admission_check(&host, &spec, &p, &r);
        topology_free(t);
        CHECK_INT(modest, 0);
        if (p.message_size > SPEC_MESSAGE_SIZE_MAX || p.message_size < 4096)
                SKIP("/dev/shm has %ju bytes", (uintmax_t) (fs.f_bavail * fs.f_frsize));
        CHECK_INT(much, -EINVAL);
        CHECK_STRING(r.limit, "free space of the runtime directory");
        CHECK_STRING(r.pointer, "/message_size");
}

#define GIB (UINT64_C(1) << 30)

static const struct capacity_space in_memory = {.free_bytes = 64 * GIB, .in_memory = true},
                                   on_a_disk = {.free_bytes = 64 * GIB};

/* The largest size that GET /transports names is admitted, and a byte more is not. */
static void the_largest_size_is_admitted(void) {
        static const struct capacity_space *const spaces[] = {&in_memory, &on_a_disk};
        const struct spec spec = {.repetitions = 1};
        for (size_t i = 0; i < ELEMENTS(spaces); i++) {
                const struct capacity_question q = {.transport = TRANSPORT_FILE, .space = spaces[i]};
                struct point p = {.transport = TRANSPORT_FILE, .threads = 1};
                struct capacity c = {.known = false};
                struct refusal r = {.status = 0};
                struct topology *t = NULL;
                struct hostfs h;
                char tree[64];
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(host_tree_write(tree, "/proc/meminfo", "MemAvailable: 1048576 kB\n"), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                CHECK_INT(hostfs_init(&h, tree), 0);
                int error = capacity_read(&h, &q, &c);
                hostfs_deinit(&h);
                const struct admission_host host = {.root = tree, .topology = t, .space = spaces[i]};
                p.message_size = c.largest_message;
                int most = error == 0 ? admission_check(&host, &spec, &p, &r) : error;
                p.message_size++;
                int more = most == 0 ? admission_check(&host, &spec, &p, &r) : most;
                topology_free(t);
                host_tree_remove(tree);
                CHECK(c.by_memory);
                CHECK_INT(most, 0);
                if (more != -EINVAL)
                        CHECK_FAIL("case %zu: %" PRIu64 " bytes and more are admitted", i, c.largest_message);
                CHECK_STRING(r.limit, "memory available");
                CHECK_STRING(r.limit_value, "1073741824");
        }
}

static const struct {
        const struct capacity_space *space;
        enum workload workload;
        uint64_t message_size;
        enum end bound;   /* to node 1, its buffers */
        const char *need; /* NULL: admitted */
} bound_rows[] = {
        /* two slots of the writer beside the buffer */
        {&in_memory, WORKLOAD_STREAM, 2 << 20, END_FIRST, NULL},
        {&in_memory, WORKLOAD_STREAM, 4 << 20, END_FIRST, "12582912"},
        {&on_a_disk, WORKLOAD_STREAM, 4 << 20, END_FIRST, NULL},
        {&in_memory, WORKLOAD_STREAM, 4 << 20, END_SECOND, NULL},
        /* one of each end's own */
        {&in_memory, WORKLOAD_PINGPONG, 4 << 20, END_FIRST, NULL},
        {&in_memory, WORKLOAD_PINGPONG, 5 << 20, END_FIRST, "10485760"},
        {&in_memory, WORKLOAD_PINGPONG, 4 << 20, END_SECOND, NULL},
        {&in_memory, WORKLOAD_PINGPONG, 5 << 20, END_SECOND, "10485760"},
        {&on_a_disk, WORKLOAD_PINGPONG, 5 << 20, END_SECOND, NULL},
};

/* Node 1 has 8 MiB. */
static void slots_in_memory_fit_into_their_nodes(void) {
        for (size_t i = 0; i < ELEMENTS(bound_rows); i++) {
                char tree[64];
                struct topology *t = NULL;
                struct refusal r = {.status = 0};
                const struct spec spec = {.repetitions = 1};
                struct point p = {.transport = TRANSPORT_FILE,
                                  .workload = bound_rows[i].workload,
                                  .message_size = bound_rows[i].message_size,
                                  .threads = 1,
                                  .placement = {.kind = PLACEMENT_EXPLICIT}};
                for (enum end e = END_FIRST; e < END_COUNT; e++)
                        p.placement.ends[e].node = -1;
                p.placement.ends[bound_rows[i].bound].buffer = MEMORY_BIND;
                node_set_add(&p.placement.ends[bound_rows[i].bound].buffer_nodes, 1);
                CHECK_INT(host_tree_unpack("two-sockets-smt", tree), 0);
                CHECK_INT(host_tree_write(tree, "/sys/devices/system/node/node1/meminfo",
                                          "Node 1 MemTotal: 8192 kB\nNode 1 MemFree: 8192 kB\n"),
                          0);
                CHECK_INT(topology_read(tree, &t), 0);
                const struct admission_host host = {.root = tree, .topology = t, .space = bound_rows[i].space};
                int x = admission_check(&host, &spec, &p, &r);
                topology_free(t);
                host_tree_remove(tree);
                if (bound_rows[i].need
                            ? x != -EINVAL || strcmp(r.limit, "memory of the bound nodes") != 0 ||
                                      strcmp(r.limit_value, "8388608") != 0 || strcmp(r.value, bound_rows[i].need) != 0
                            : x != 0)
                        CHECK_FAIL("row %zu gave %d %s: %s", i, x, r.pointer, r.detail);
        }
}

int main(void) {
        RUN(syncing_needs_a_disk);
        RUN(files_on_a_disk_are_synced);
        RUN(direct_files_are_tried);
        RUN(direct_files_may_have_to_have_a_name);
        RUN(files_need_room);
        RUN(the_largest_size_is_admitted);
        RUN(slots_in_memory_fit_into_their_nodes);
        return check_end();
}
