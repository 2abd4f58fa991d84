/* SPDX-License-Identifier: MIT */
/* The limit of each transport on a recorded host, as the settings change, and that io_uring's answer is the kernel's.
 */

#include "tests/unit/check.h"
#include "tests/unit/child.h"

#include "daemon/admission/admission.h"
#include "daemon/admission/capacity.h"
#include "schema/json/json.h"
#include "schema/spec/spec.h"
#include "schema/transport/file-layout.h"
#include "schema/transport/ring-layout.h"
#include "tests/unit/host-tree.h"

#include <linux/io_uring.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define SYS "/proc/sys/"
#define GIB (UINT64_C(1) << 30)

/* The capacity of a recorded host, one of whose files (NULL: none) has this content instead (NULL: is missing). */
static int read_at_busy_lab(const char *file, const char *content, const struct capacity_question *q,
                            struct capacity *ret) {
        char tree[64];
        struct hostfs h;
        *ret = (struct capacity){.known = false};
        int r = host_tree_unpack("busy-lab", tree);
        if (r < 0)
                return r;
        if (file)
                r = host_tree_write(tree, file, content);
        if (r == 0)
                r = hostfs_init(&h, tree);
        if (r == 0) {
                r = capacity_read(&h, q, ret);
                hostfs_deinit(&h);
        }
        host_tree_remove(tree);
        return r;
}

static void settings_decide(void) {
        static const struct {
                enum transport transport;
                const char *file, *content; /* changed in the recorded tree; NULL: as it is, content NULL: missing */
                const char *limit;          /* NULL: not known */
                uint64_t value, transfer, message;
        } cases[] = {
                {TRANSPORT_PIPE, NULL, NULL, "fs.pipe-max-size", 1048576, 1048576, GIB},
                {TRANSPORT_FIFO, SYS "fs/pipe-max-size", "65536\n", "fs.pipe-max-size", 65536, 65536, GIB},
                {TRANSPORT_PIPE, SYS "fs/pipe-max-size", NULL, NULL, 0, 0, 0},
                {TRANSPORT_PIPE, SYS "fs/pipe-max-size", "-1\n", NULL, 0, 0, 0},
                {TRANSPORT_UNIX_STREAM, NULL, NULL, "net.core.wmem_max", 4194304, 8388608, GIB},
                {TRANSPORT_UNIX_DGRAM, SYS "net/core/wmem_max", "212992\n", "net.core.wmem_max", 212992, 425952,
                 425952},
                {TRANSPORT_UNIX_DGRAM, NULL, NULL, "kernel's largest socket buffer", 4263616, 4263616, 4263616},
                {TRANSPORT_UNIX_SEQPACKET, SYS "net/core/wmem_max", "4608\n", "net.core.wmem_max", 4608, 9184, 9184},
                {TRANSPORT_UNIX_SEQPACKET, SYS "net/core/wmem_max", "lots\n", NULL, 0, 0, 0},
                {TRANSPORT_TCP, NULL, NULL, "net.ipv4.tcp_wmem", 4194304, 4194304, GIB},
                {TRANSPORT_TCP, SYS "net/ipv4/tcp_wmem", "4096 16384\n", NULL, 0, 0, 0},
                {TRANSPORT_SHM_SYSV, NULL, NULL, "kernel.shmmax", UINT64_C(18446744073692774399),
                 UINT64_C(18446744073692774399), GIB},
                {TRANSPORT_SHM_SYSV, SYS "kernel/shmmax", "33554432\n", "kernel.shmmax", 33554432, 33554432, 16775040},
                {TRANSPORT_SHM_SYSV, SYS "kernel/shmall", "16\n", "kernel.shmall", 16, 65536, 0},
                {TRANSPORT_MSGQ_SYSV, NULL, NULL, "kernel.msgmax", 8192, 8192, 8192},
                {TRANSPORT_MSGQ_SYSV, SYS "kernel/msgmnb", "4096\n", "kernel.msgmnb", 4096, 4096, 4096},
                {TRANSPORT_MSGQ_SYSV, SYS "kernel/msgmax", NULL, NULL, 0, 0, 0},
                {TRANSPORT_MSGQ_POSIX, NULL, NULL, "fs.mqueue.msgsize_max", 8192, 8192, 8192},
                {TRANSPORT_MSGQ_POSIX, SYS "fs/mqueue/msgsize_max", "16777216\n", "fs.mqueue.msgsize_max", 16777216,
                 16777216, 16777216},
                {TRANSPORT_MMAP_ANONYMOUS, "/proc/meminfo", "MemAvailable: 16384 kB\n", "memory available", 16777216,
                 16777216, 3799040},
                {TRANSPORT_MMAP_ANONYMOUS, "/proc/self/limits",
                 "Limit  Soft Limit  Hard Limit  Units\nMax address space         65536                unlimited    "
                 "bytes\n",
                 "RLIMIT_AS", 65536, 65536, 0},
                {TRANSPORT_PROCESS_VM, "/proc/meminfo", "MemAvailable: 16384 kB\n", "memory available", 16777216,
                 16777216, 3801088},
                {TRANSPORT_MEMFD, "/proc/meminfo", "MemAvailable: 16384 kB\n", "memory available", 16777216, 16777216,
                 3801088},
                {TRANSPORT_SHM_POSIX, NULL, NULL, NULL, 0, 0, 0},
                {TRANSPORT_MMAP_FILE, NULL, NULL, NULL, 0, 0, 0},
                {TRANSPORT_FILE, NULL, NULL, NULL, 0, 0, 0},
        };
        if (sysconf(_SC_PAGESIZE) != 4096)
                SKIP("the expected figures are for pages of 4096 bytes, here they have %ld", sysconf(_SC_PAGESIZE));
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct capacity_question q = {.transport = cases[i].transport};
                struct capacity c;
                CHECK_INT(read_at_busy_lab(cases[i].file, cases[i].content, &q, &c), 0);
                if (c.known != (cases[i].limit != NULL) || c.known == (c.reason[0] != '\0') ||
                    (c.known &&
                     (strcmp(c.limit, cases[i].limit) != 0 || c.value != cases[i].value ||
                      c.largest_transfer != cases[i].transfer || c.largest_message != cases[i].message || !c.raise)))
                        CHECK_FAIL("case %zu, %s: %s %s = %" PRIu64 ", transfer %" PRIu64 ", message %" PRIu64, i,
                                   transport_name(cases[i].transport), c.reason, c.known ? c.limit : "", c.value,
                                   c.largest_transfer, c.largest_message);
        }
}

#define MEMORY(kib) "MemAvailable: " #kib " kB\n"
#define MEMINFO "/proc/meminfo"
#define ADDRESS_SPACE(bytes) "Limit  Soft Limit  Hard Limit  Units\nMax address space  " #bytes "  unlimited  bytes\n"

/* A sixteenth of the memory stays free. Two slots and both buffers take four times what a message has, where one lies
 * in memory; the buffers alone do where a disk has the slots. What it lies in, and not memory, still ends it where that
 * is less.
 */
static void memory_ends_what_lies_in_it(void) {
        static const struct capacity_space wide = {.free_bytes = 64 * GIB, .in_memory = true},
                                           narrow = {.free_bytes = 64 << 20, .in_memory = true},
                                           disk = {.free_bytes = 64 * GIB};
        static const struct {
                enum transport transport;
                const struct capacity_space *space;
                const char *file, *content;
                uint64_t memory, least, most; /* 0: not memory; what largest_message is between */
                const char *carrier;          /* of largest_transfer */
        } cases[] = {
                {TRANSPORT_SHM_SYSV, NULL, MEMINFO, MEMORY(16384), 16 << 20, 3799040, 3799040, "kernel.shmmax"},
                {TRANSPORT_SHM_SYSV, NULL, MEMINFO, MEMORY(1048576), GIB, 239 << 20, 240 << 20, "kernel.shmmax"},
                {TRANSPORT_SHM_SYSV, NULL, MEMINFO, MEMORY(8388608), 0, GIB, GIB, "kernel.shmmax"},
                {TRANSPORT_SHM_POSIX, &wide, MEMINFO, MEMORY(16384), 16 << 20, 3799040, 3799040,
                 "free space of /dev/shm"},
                {TRANSPORT_SHM_POSIX, &narrow, NULL, NULL, 0, 31 << 20, 32 << 20, "free space of /dev/shm"},
                {TRANSPORT_MMAP_FILE, &wide, MEMINFO, MEMORY(16384), 16 << 20, 3799040, 3799040,
                 "free space of the runtime directory"},
                {TRANSPORT_MMAP_FILE, &disk, MEMINFO, MEMORY(16384), 16 << 20, 3799040, 3799040,
                 "free space of the runtime directory"},
                {TRANSPORT_FILE, &wide, MEMINFO, MEMORY(1048576), GIB, 239 << 20, 240 << 20,
                 "free space of the runtime directory"},
                {TRANSPORT_FILE, &disk, MEMINFO, MEMORY(1048576), GIB, (480 << 20) - (256 << 10),
                 (480 << 20) - (256 << 10), "free space of the runtime directory"},
                {TRANSPORT_FILE, &disk, MEMINFO, MEMORY(8388608), 0, GIB, GIB, "free space of the runtime directory"},
                {TRANSPORT_FILE, &disk, MEMINFO, "", 0, GIB, GIB, "free space of the runtime directory"},
                {TRANSPORT_MMAP_ANONYMOUS, NULL, "/proc/self/limits", ADDRESS_SPACE(67108864), 0, 31 << 20, 32 << 20,
                 "RLIMIT_AS"},
        };
        if (sysconf(_SC_PAGESIZE) != 4096)
                SKIP("the expected figures are for pages of 4096 bytes, here they have %ld", sysconf(_SC_PAGESIZE));
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct capacity_question q = {.transport = cases[i].transport, .space = cases[i].space};
                struct capacity c;
                CHECK_INT(read_at_busy_lab(cases[i].file, cases[i].content, &q, &c), 0);
                if (!c.known || c.by_memory != (cases[i].memory != 0) || c.memory.bytes != cases[i].memory ||
                    c.largest_message < cases[i].least || c.largest_message > cases[i].most ||
                    strcmp(c.limit, cases[i].carrier) != 0)
                        CHECK_FAIL("case %zu, %s: %s, memory %" PRIu64 ", message %" PRIu64, i,
                                   transport_name(cases[i].transport), c.known ? c.limit : c.reason, c.memory.bytes,
                                   c.largest_message);
        }
}

static void messages_above_a_limit_are_refused_by_its_name(void) {
        char tree[64];
        struct hostfs h;
        struct refusal r = {0};
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(hostfs_init(&h, tree), 0);
        CHECK_INT(capacity_check_message(&h, &(struct capacity_question){.transport = TRANSPORT_MSGQ_POSIX}, 8192, &r),
                  0);
        CHECK_INT(capacity_check_message(&h, &(struct capacity_question){.transport = TRANSPORT_PIPE}, GIB, &r), 0);
        CHECK_INT(capacity_check_message(&h, &(struct capacity_question){.transport = TRANSPORT_FILE}, GIB, &r),
                  0); /* not known here: refuses nothing */
        CHECK_INT(r.status, 0);
        CHECK_INT(capacity_check_message(&h, &(struct capacity_question){.transport = TRANSPORT_MSGQ_POSIX}, 8193, &r),
                  -EINVAL);
        hostfs_deinit(&h);
        host_tree_remove(tree);
        CHECK_INT(r.status, 422);
        CHECK_STRING(r.pointer, "/message_size");
        CHECK_STRING(r.limit, "fs.mqueue.msgsize_max");
        CHECK_STRING(r.limit_value, "8192");
        CHECK_STRING(r.value, "8193");
        CHECK_STRING(r.detail,
                     "a message of 8193 bytes does not fit the POSIX message queue: 8192 at most, as "
                     "fs.mqueue.msgsize_max is 8192; to raise it: sysctl fs.mqueue.msgsize_max=BYTES (16777216 at "
                     "most); chunk: true sends it in pieces");
}

/* Whatever decides how long a message may be, and whether a run can have that raised. */
static void messages_in_pieces_have_their_length(void) {
        static const struct queue_host able = {.settable = true,
                                               .rlimit_msgqueue = 819200,
                                               .fresh = {[QUEUE_MSGSIZE_MAX] = 8192}},
                                       tight = {.settable = true,
                                                .rlimit_msgqueue = 4096,
                                                .fresh = {[QUEUE_MSGSIZE_MAX] = 8192}};
        static const struct transport_options sent = {.sndbuf = 65536};
        static const struct {
                enum transport transport;
                const struct queue_host *queues;
                const struct transport_options *options;
                const char *limit;
        } rows[] = {
                {TRANSPORT_MSGQ_SYSV, NULL, NULL, "kernel.msgmax"},
                {TRANSPORT_MSGQ_SYSV, &able, NULL, "kernel.msgmax"},
                {TRANSPORT_MSGQ_POSIX, NULL, NULL, "fs.mqueue.msgsize_max"},
                {TRANSPORT_MSGQ_POSIX, &able, NULL, "RLIMIT_MSGQUEUE"},
                {TRANSPORT_MSGQ_POSIX, &tight, NULL, "RLIMIT_MSGQUEUE"},
                {TRANSPORT_UNIX_DGRAM, NULL, NULL, "kernel's largest socket buffer"},
                {TRANSPORT_UNIX_SEQPACKET, NULL, &sent, "transport_options.sndbuf"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const struct capacity_question q = {
                        .transport = rows[i].transport, .queues = rows[i].queues, .options = rows[i].options};
                struct hostfs h;
                struct refusal r = {0};
                char tree[64];
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(hostfs_init(&h, tree), 0);
                int x = capacity_check_message(&h, &q, GIB, &r);
                hostfs_deinit(&h);
                host_tree_remove(tree);
                CHECK_INT(x, -EINVAL);
                CHECK_STRING(r.limit, rows[i].limit);
                if (!strstr(r.detail, "; chunk: true sends it in pieces"))
                        CHECK_FAIL("row %zu: %s", i, r.detail);
        }
}

/* The largest value of a row is admitted, and not a byte more. */
static void the_largest_message_is_admitted_and_no_larger_one(void) {
        static const struct queue_host queues = {
                .settable = true,
                .rlimit_msgqueue = 819200,
                .fresh = {[QUEUE_MSGMAX] = 8192, [QUEUE_MSGMNB] = 16384, [QUEUE_MSGSIZE_MAX] = 8192}};
        static const struct capacity_space wide = {.free_bytes = 64 * GIB, .in_memory = true},
                                           disk = {.free_bytes = 64 * GIB};
        static const struct {
                enum transport transport;
                const char *file, *content;
                const struct queue_host *queues;
                const struct capacity_space *space;
        } cases[] = {
                {TRANSPORT_PIPE, NULL, NULL, NULL, NULL},
                {TRANSPORT_FIFO, NULL, NULL, NULL, NULL},
                {TRANSPORT_UNIX_STREAM, NULL, NULL, NULL, NULL},
                {TRANSPORT_TCP, NULL, NULL, NULL, NULL},
                {TRANSPORT_UNIX_DGRAM, NULL, NULL, NULL, NULL},
                {TRANSPORT_UNIX_SEQPACKET, SYS "net/core/wmem_max", "212992\n", NULL, NULL},
                {TRANSPORT_SHM_SYSV, SYS "kernel/shmmax", "67108864\n", NULL, NULL},
                {TRANSPORT_SHM_SYSV, SYS "kernel/shmmax", "6000000\n", NULL, NULL},
                {TRANSPORT_SHM_SYSV, SYS "kernel/shmall", "2000\n", NULL, NULL},
                {TRANSPORT_SHM_SYSV, SYS "kernel/shmmax", "2147483648\n", NULL, NULL},
                {TRANSPORT_MMAP_ANONYMOUS, MEMINFO, MEMORY(16384), NULL, NULL},
                {TRANSPORT_MMAP_ANONYMOUS, MEMINFO, MEMORY(65537), NULL, NULL},
                {TRANSPORT_MMAP_ANONYMOUS, MEMINFO, MEMORY(4000000), NULL, NULL},
                {TRANSPORT_MMAP_ANONYMOUS, "/proc/self/limits", ADDRESS_SPACE(67108864), NULL, NULL},
                {TRANSPORT_MSGQ_SYSV, NULL, NULL, NULL, NULL},
                {TRANSPORT_MSGQ_SYSV, NULL, NULL, &queues, NULL},
                {TRANSPORT_MSGQ_POSIX, NULL, NULL, NULL, NULL},
                {TRANSPORT_MSGQ_POSIX, NULL, NULL, &queues, NULL},
                {TRANSPORT_SHM_SYSV, MEMINFO, MEMORY(16384), NULL, NULL},
                {TRANSPORT_SHM_SYSV, MEMINFO, MEMORY(65537), NULL, NULL},
                {TRANSPORT_SHM_SYSV, MEMINFO, MEMORY(4000000), NULL, NULL},
                {TRANSPORT_SHM_POSIX, MEMINFO, MEMORY(65537), NULL, &wide},
                {TRANSPORT_MMAP_FILE, MEMINFO, MEMORY(65537), NULL, &wide},
                {TRANSPORT_MMAP_FILE, MEMINFO, MEMORY(4000000), NULL, &disk},
                {TRANSPORT_FILE, MEMINFO, MEMORY(65537), NULL, &disk},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct capacity_question q = {
                        .transport = cases[i].transport, .queues = cases[i].queues, .space = cases[i].space};
                const struct spec spec = {.repetitions = 1};
                struct point p = {.transport = cases[i].transport, .threads = 1};
                struct capacity c = {.known = false};
                struct refusal r = {0};
                struct topology *t = NULL;
                struct hostfs h;
                char tree[64];
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                if (cases[i].file)
                        CHECK_INT(host_tree_write(tree, cases[i].file, cases[i].content), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                CHECK_INT(hostfs_init(&h, tree), 0);
                CHECK_INT(capacity_read(&h, &q, &c), 0);
                hostfs_deinit(&h);
                struct admission_host host = {.root = tree, .topology = t, .queues = cases[i].queues};
                p.message_size = c.largest_message;
                int most = admission_check(&host, &spec, &p, &r);
                p.message_size++;
                int more = admission_check(&host, &spec, &p, &r);
                topology_free(t);
                host_tree_remove(tree);
                if (c.largest_message == 0 || most < 0 || (c.largest_message < GIB && more != -EINVAL))
                        CHECK_FAIL("case %zu, %s, %" PRIu64 ": %d, and %d for one byte more: %s", i,
                                   transport_name(cases[i].transport), c.largest_message, most, more, r.detail);
        }
}

/* File systems are in no recorded tree: the arithmetic of all that has slots, by itself. */
static void a_message_leaves_room_for_the_slots_that_come(void) {
        static const enum transport all[] = {TRANSPORT_SHM_POSIX, TRANSPORT_SHM_SYSV, TRANSPORT_MMAP_FILE,
                                             TRANSPORT_MMAP_ANONYMOUS, TRANSPORT_FILE};
        static const uint64_t spaces[] = {0,
                                          4096,
                                          200000,
                                          270336,
                                          300000,
                                          1 << 20,
                                          3 << 20,
                                          4 << 20,
                                          6000000,
                                          8 << 20,
                                          8400896,
                                          9 << 20,
                                          UINT64_C(64) << 20,
                                          3 * GIB,
                                          UINT64_MAX};
        const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
        const struct transport_options none = {0};
        for (size_t i = 0; i < ELEMENTS(all) * ELEMENTS(spaces); i++) {
                const uint64_t space = spaces[i % ELEMENTS(spaces)];
                struct point p = {.transport = all[i / ELEMENTS(spaces)], .threads = 1};
                const uint64_t most = capacity_largest_in_slots(p.transport, space);
                uint64_t takes[2] = {0};
                for (unsigned k = 0; k < 2; k++) {
                        p.message_size = most + k;
                        if (p.message_size > 0)
                                takes[k] = p.transport == TRANSPORT_FILE ? file_layout_of(&p, page).bytes
                                                                         : ring_layout_of(&p, &none, page).area_bytes;
                }
                if (takes[0] > space || (most < GIB && takes[1] <= space) || most > GIB)
                        CHECK_FAIL("%s in %" PRIu64 ": a message of %" PRIu64 " takes %" PRIu64
                                   ", and one more %" PRIu64,
                                   transport_name(p.transport), space, most, takes[0], takes[1]);
        }
}

/* This very machine's answer, without the library. */
static int kernel_setup(void) {
        struct io_uring_params params = {.flags = 0};
        long fd = syscall(SYS_io_uring_setup, 2, &params);
        if (fd < 0)
                return -errno;
        (void) close((int) fd);
        return 0;
}

static void io_uring_is_tried_in_the_kernel(void) {
        struct hostfs h;
        char reason[200] = "";
        int64_t disabled = 0;
        CHECK_INT(hostfs_init(&h, ""), 0);
        (void) hostfs_i64(&h, &disabled, SYS "kernel/io_uring_disabled");
        const char *why = capacity_io_uring(&h, NULL, reason);
        hostfs_deinit(&h);
        CHECK_INT(why == NULL, disabled == 0 && kernel_setup() == 0);
        CHECK_INT(why == NULL, reason[0] == '\0');
}

static const struct json *row_of(const struct json *root, const char *name) {
        for (const struct json *row = json_first(json_get(root, "items")); row; row = json_next(row)) {
                const char *text = NULL;
                if (json_as_string(json_get(row, "name"), &text) == 0 && strcmp(text, name) == 0)
                        return row;
        }
        return NULL;
}

/* Makes some with a limit that has room for one. 1: the result is right; 0: it is wrong; 77: no rings. */
static int finds_whether_rings_are_locked(void *unused) {
        (void) unused;
        struct rlimit limit = {0}, after = {0};
        struct io_uring_params p[2] = {{0}};
        bool refused = false;
        if (geteuid() == 0 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
                return 77; /* root may lock what it likes */
        if (syscall(SYS_io_uring_setup, 4, &p[0]) < 0 && errno != ENOMEM)
                return 77;
        limit.rlim_cur = limit.rlim_max = 2 * (rlim_t) sysconf(_SC_PAGESIZE);
        if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
                return 77;
        for (size_t i = 0; i < ELEMENTS(p); i++) {
                p[i] = (struct io_uring_params){0};
                refused = refused || (syscall(SYS_io_uring_setup, 4, &p[i]) < 0 && errno == ENOMEM);
        }
        bool locked = capacity_rings_are_locked("");
        bool elsewhere = capacity_rings_are_locked("/captured"); /* another machine's rings are not known */
        return locked == refused && !elsewhere && getrlimit(RLIMIT_MEMLOCK, &after) == 0 &&
               after.rlim_cur == limit.rlim_cur;
}

static void rings_are_locked_where_the_kernel_locks_them(void) {
        int r = child_does(finds_whether_rings_are_locked, NULL);
        if (r == 77)
                SKIP("no rings without privilege here");
        CHECK_INT(r, 1);
}

/* Kernels that end before an operation, and one that has it but for the flag. */
static void zerocopy_is_in_the_list_of_operations(void) {
        static const struct {
                int last;
                int without;
                const char *reason;
        } cases[] = {
                {IORING_OP_SENDMSG_ZC, -1, NULL},
                {IORING_OP_SENDMSG_ZC + 9, -1, NULL},
                {IORING_OP_SEND_ZC, -1, "this kernel's io_uring has no sendmsg_zc (since Linux 6.1), which"},
                {IORING_OP_SEND_ZC - 1, -1, "this kernel's io_uring has no send_zc (since Linux 6.0), which"},
                {IORING_OP_SENDMSG_ZC, IORING_OP_SENDMSG_ZC, "this kernel's io_uring has no sendmsg_zc"},
                {IORING_OP_SENDMSG_ZC, IORING_OP_SEND_ZC, "this kernel's io_uring has no send_zc"},
        };
        char reason[200] = "";
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct io_uring_probe *probe = calloc(1, sizeof *probe + 256 * sizeof(struct io_uring_probe_op));
                CHECK(probe);
                probe->last_op = (uint8_t) cases[i].last;
                for (int k = 0; k <= cases[i].last; k++)
                        if (k != cases[i].without)
                                probe->ops[k].flags = IO_URING_OP_SUPPORTED;
                const char *why = capacity_zerocopy_of(probe, reason);
                free(probe);
                CHECK_INT(why == NULL, cases[i].reason == NULL);
                CHECK(!why || strncmp(why, cases[i].reason, strlen(cases[i].reason)) == 0);
        }
        CHECK(capacity_zerocopy_of(NULL, reason));
}

/* The tcp row of this very machine has the values that admission uses. */
static void zerocopy_is_shown(void) {
        struct hostfs h;
        struct json *root = NULL;
        char *text = NULL, reason[200] = "";
        bool shown = false;
        CHECK_INT(hostfs_init(&h, ""), 0);
        const char *why = capacity_io_uring_zerocopy(&h, NULL, reason);
        hostfs_deinit(&h);
        CHECK_INT(capacity_to_json(&(struct admission_host){.root = "", .runtime_dir = "/"}, &text), 0);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        free(text);
        const struct json *uring = json_get(json_get(row_of(root, "tcp"), "engines"), "io_uring");
        CHECK_INT(json_as_bool(json_get(uring, "zero_copy"), &shown), 0);
        CHECK_INT(shown, why == NULL);
        CHECK_INT(json_type(json_get(uring, "zero_copy_reason")), shown ? JSON_NULL : JSON_STRING);
        CHECK(!json_get(json_get(json_get(row_of(root, "pipe"), "engines"), "io_uring"), "zero_copy"));
        json_free(root);
}

/* The setting may let one group have it, which agents are known to be in or not. */
static void io_uring_names_the_setting(void) {
#define FREE "a captured tree cannot be probed for io_uring"
        static const struct agent_identity agents = {.change = true, .uid = 65534, .gid = 65534};
        static const struct {
                const char *value, *group;
                const struct agent_identity *agents;
                const char *reason;
        } cases[] = {
                {"0\n", "-1\n", &agents, FREE},
                {NULL, NULL, &agents, FREE},
                {"1\n", "65534\n", &agents, FREE},
                {"1\n", "-1\n", &agents,
                 "kernel.io_uring_disabled is 1, and kernel.io_uring_group is -1, not the agents'; to allow it: sysctl "
                 "kernel.io_uring_group=65534, or kernel.io_uring_disabled=0"},
                {"1\n", "100\n", &agents,
                 "kernel.io_uring_disabled is 1, and kernel.io_uring_group is 100, not the agents'; to allow it: "
                 "sysctl kernel.io_uring_group=65534, or kernel.io_uring_disabled=0"},
                {"1\n", NULL, NULL,
                 "kernel.io_uring_disabled is 1, and kernel.io_uring_group is -1, not the agents'; to allow it: sysctl "
                 "kernel.io_uring_group=GID, or kernel.io_uring_disabled=0"},
                {"2\n", "65534\n", &agents,
                 "kernel.io_uring_disabled is 2 (for nobody); to allow it: sysctl kernel.io_uring_disabled=0"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64], reason[200] = "";
                struct hostfs h;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(host_tree_write(tree, SYS "kernel/io_uring_disabled", cases[i].value), 0);
                if (cases[i].group) /* the recorded kernel reports none */
                        CHECK_INT(host_tree_write(tree, SYS "kernel/io_uring_group", cases[i].group), 0);
                CHECK_INT(hostfs_init(&h, tree), 0);
                const char *why = capacity_io_uring(&h, cases[i].agents, reason);
                hostfs_deinit(&h);
                host_tree_remove(tree);
                CHECK_STRING(why, cases[i].reason);
        }
#undef FREE
}

static void json_has_a_row_for_every_transport(void) {
        char tree[64], *text = NULL;
        struct json *root = NULL;
        int64_t v = 0;
        uint64_t value = 0;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(capacity_to_json(&(struct admission_host){.root = tree, .runtime_dir = "/"}, &text), 0);
        host_tree_remove(tree);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        free(text);
        CHECK_UINT(json_length(json_get(root, "items")), TRANSPORT_COUNT);
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++) {
                const struct json *row = row_of(root, transport_name((enum transport) t));
                bool available = false;
                CHECK(row);
                CHECK_INT(json_as_bool(json_get(row, "available"), &available), 0);
                CHECK(available);
                CHECK_INT(json_type(json_get(row, "reason")), JSON_NULL);
                const struct json *capacity = json_get(row, "capacity");
                bool known = json_type(json_get(capacity, "limit")) == JSON_OBJECT;
                CHECK_INT(json_type(json_get(capacity, "reason")), known ? JSON_NULL : JSON_STRING);
                CHECK_INT(json_type(json_get(capacity, "largest_message")), known ? JSON_INTEGER : JSON_NULL);
        }
        const struct json *limit = json_get(json_get(row_of(root, "shm-sysv"), "capacity"), "limit");
        CHECK_INT(json_as_u64_text(json_get(limit, "value"), &value), 0);
        CHECK_UINT(value, UINT64_C(18446744073692774399)); /* more than a JSON number carries */
        limit = json_get(json_get(row_of(root, "msgq-sysv"), "capacity"), "limit");
        CHECK_INT(json_as_i64(json_get(limit, "value"), &v), 0);
        CHECK_INT(v, 8192);
        _cleanup_free_ char *options = json_print(json_get(row_of(root, "fifo"), "options"));
        CHECK_STRING(options, "[\"buffer_bytes\",\"pipe_size\"]");
        const struct json *uring = json_get(json_get(row_of(root, "pipe"), "engines"), "io_uring");
        bool available = true;
        CHECK_INT(json_as_bool(json_get(uring, "available"), &available), 0);
        CHECK(!available);
        CHECK_INT(json_type(json_get(uring, "reason")), JSON_STRING);
        CHECK_INT(json_as_bool(json_get(uring, "kernel_allows"), &available), 0);
        CHECK(!available); /* a captured tree has no system call to try */
        CHECK(!json_get(json_get(row_of(root, "shm-posix"), "engines"), "io_uring"));
        json_free(root);
}

/* The JSON names the limit that largest_message ends at, and the value that a run finds by default. */
static void json_names_the_limit_that_limits(void) {
        static const struct {
                const char *transport;
                bool settable;
                uint64_t rlimit;
                const char *capacity; /* up to the text for people */
        } cases[] = {
                {"msgq-posix", true, 819200,
                 "{\"largest_message\":819104,\"largest_transfer\":8192,\"limit\":{\"name\":\"RLIMIT_MSGQUEUE\","
                 "\"value\":819200,\"raise\":\"LimitMSGQUEUE=BYTES in the unit, or ulimit -q\"},\"at_start\":{\"name\":"
                 "\"fs.mqueue.msgsize_max\",\"value\":8192,"},
                {"msgq-posix", true, UINT64_MAX,
                 "{\"largest_message\":16777216,\"largest_transfer\":8192,\"limit\":{\"name\":"
                 "\"fs.mqueue.msgsize_max\",\"value\":16777216,\"raise\":\"cannot be raised"},
                {"msgq-posix", true, 1000,
                 "{\"largest_message\":904,\"largest_transfer\":904,\"limit\":{\"name\":\"RLIMIT_MSGQUEUE\",\"value\":"
                 "1000,"},
                {"msgq-posix", false, 819200,
                 "{\"largest_message\":8192,\"largest_transfer\":8192,\"limit\":{\"name\":\"fs.mqueue.msgsize_max\","
                 "\"value\":8192,\"raise\":\"run ipclabd as root"},
                {"msgq-sysv", true, 819200,
                 "{\"largest_message\":16777216,\"largest_transfer\":8192,\"limit\":{\"name\":\"kernel.msgmax\","
                 "\"value\":16777216,\"raise\":\"cannot be raised"},
        };
        char tree[64];
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct queue_host queues = {.settable = cases[i].settable, .rlimit_msgqueue = cases[i].rlimit};
                char *text = NULL;
                struct json *root = NULL;
                queues.fresh[QUEUE_MSGMAX] = queues.fresh[QUEUE_MSGSIZE_MAX] = 8192;
                queues.fresh[QUEUE_MSGMNB] = 16384;
                CHECK_INT(capacity_to_json(&(struct admission_host){.root = tree, .queues = &queues}, &text), 0);
                CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
                free(text);
                _cleanup_free_ char *row = json_print(json_get(row_of(root, cases[i].transport), "capacity"));
                json_free(root);
                if (strncmp(row, cases[i].capacity, strlen(cases[i].capacity)) != 0)
                        CHECK_FAIL("case %zu: %s", i, row);
        }
        host_tree_remove(tree);
}

/* largest_transfer goes on being what it is made in. */
static void json_names_memory_where_it_ends_the_message(void) {
        static const struct {
                const char *transport, *file, *content, *capacity;
        } cases[] = {
#define BY_MEMORY(bytes)                                                                                               \
        "\"limit\":{\"name\":\"memory available\",\"value\":" #bytes ",\"raise\":\"free memory, or add some\"},"       \
        "\"at_start\":null,\"message_limit\":null,\"reason\":null}"
                {"shm-sysv", MEMINFO, MEMORY(16384),
                 "{\"largest_message\":3799040,\"largest_transfer\":\"18446744073692774399\"," BY_MEMORY(16777216)},
                {"mmap-anonymous", MEMINFO, MEMORY(16384),
                 "{\"largest_message\":3799040,\"largest_transfer\":16777216," BY_MEMORY(16777216)},
                {"mmap-anonymous", "/proc/self/limits", ADDRESS_SPACE(65536),
                 "{\"largest_message\":0,\"largest_transfer\":65536,\"limit\":{\"name\":\"RLIMIT_AS\",\"value\":65536,"
                 "\"raise\":\"LimitAS= in the unit, or ulimit -v\"},\"at_start\":null,\"message_limit\":null,"
                 "\"reason\":null}"},
        };
        if (sysconf(_SC_PAGESIZE) != 4096)
                SKIP("the expected figures are for pages of 4096 bytes, here they have %ld", sysconf(_SC_PAGESIZE));
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64], *text = NULL;
                struct json *root = NULL;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(host_tree_write(tree, cases[i].file, cases[i].content), 0);
                CHECK_INT(capacity_to_json(&(struct admission_host){.root = tree}, &text), 0);
                host_tree_remove(tree);
                CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
                free(text);
                _cleanup_free_ char *row = json_print(json_get(row_of(root, cases[i].transport), "capacity"));
                json_free(root);
                if (strcmp(row, cases[i].capacity) != 0)
                        CHECK_FAIL("case %zu: %s", i, row);
        }
#undef BY_MEMORY
}

/* The address space has room for the slots, and memory for less than the buffers beside them. */
static void memory_is_named_below_the_address_space(void) {
        struct capacity c = {.known = false};
        struct hostfs h;
        char tree[64];
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(host_tree_write(tree, "/proc/self/limits", ADDRESS_SPACE(3221225472)), 0);
        CHECK_INT(host_tree_write(tree, MEMINFO, MEMORY(3670016)), 0);
        CHECK_INT(hostfs_init(&h, tree), 0);
        CHECK_INT(capacity_read(&h, &(struct capacity_question){.transport = TRANSPORT_MMAP_ANONYMOUS}, &c), 0);
        hostfs_deinit(&h);
        host_tree_remove(tree);
        CHECK(c.known && c.by_memory);
        CHECK_UINT(c.memory.bytes, UINT64_C(3670016) * 1024);
        CHECK_STRING(c.limit, "RLIMIT_AS"); /* of a transfer */
        CHECK_UINT(c.largest_transfer, 3 * GIB);
        CHECK(c.largest_message < c.memory.bytes / 4);
}

/* A byte stream carries any message in pieces, and the default shmmax is near 2^64: there the spec ends it. */
static void the_spec_is_named_where_it_ends_the_message(void) {
        static const struct {
                const char *transport, *limit;
                bool by_spec;
        } cases[] = {
                {"pipe", "fs.pipe-max-size", true},
                {"fifo", "fs.pipe-max-size", true},
                {"unix-stream", "net.core.wmem_max", true},
                {"tcp", "net.ipv4.tcp_wmem", true},
                {"shm-sysv", "kernel.shmmax", true},
                {"unix-dgram", "kernel's largest socket buffer", false},
                {"msgq-posix", "fs.mqueue.msgsize_max", false},
        };
        static const char spec_limit[] = "{\"name\":\"message_size of a spec\",\"value\":1073741824,\"raise\":"
                                         "\"cannot be raised: no spec may request more\"}";
        struct json *root = NULL;
        char tree[64], *text = NULL;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(capacity_to_json(&(struct admission_host){.root = tree}, &text), 0);
        host_tree_remove(tree);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        free(text);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct json *capacity = json_get(row_of(root, cases[i].transport), "capacity");
                const struct json *by_spec = json_get(capacity, "message_limit");
                const char *limit = NULL;
                int64_t message = 0;
                CHECK_INT(json_as_string(json_get(json_get(capacity, "limit"), "name"), &limit), 0);
                CHECK_INT(json_as_i64(json_get(capacity, "largest_message"), &message), 0);
                CHECK_STRING(limit, cases[i].limit);
                CHECK(by_spec);
                _cleanup_free_ char *printed = json_print(by_spec);
                CHECK_STRING(printed, cases[i].by_spec ? spec_limit : "null");
                CHECK_INT(message == (int64_t) GIB, cases[i].by_spec);
        }
        json_free(root);
}

static void this_machine_has_its_file_systems(void) {
        char *text = NULL;
        CHECK_INT(capacity_to_json(&(struct admission_host){.root = "", .runtime_dir = "/"}, &text), 0);
        CHECK(strstr(text, "\"name\":\"free space of /dev/shm\",\"value\":") || strstr(text, "statvfs(/dev/shm)"));
        CHECK(strstr(text, "fs.pipe-max-size"));
        free(text);
}

int main(void) {
        RUN(settings_decide);
        RUN(memory_ends_what_lies_in_it);
        RUN(memory_is_named_below_the_address_space);
        RUN(messages_above_a_limit_are_refused_by_its_name);
        RUN(messages_in_pieces_have_their_length);
        RUN(the_largest_message_is_admitted_and_no_larger_one);
        RUN(a_message_leaves_room_for_the_slots_that_come);
        RUN(io_uring_is_tried_in_the_kernel);
        RUN(rings_are_locked_where_the_kernel_locks_them);
        RUN(zerocopy_is_in_the_list_of_operations);
        RUN(zerocopy_is_shown);
        RUN(io_uring_names_the_setting);
        RUN(json_has_a_row_for_every_transport);
        RUN(json_names_the_limit_that_limits);
        RUN(json_names_memory_where_it_ends_the_message);
        RUN(the_spec_is_named_where_it_ends_the_message);
        RUN(this_machine_has_its_file_systems);
        return check_end();
}
