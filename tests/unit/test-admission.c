/* SPDX-License-Identifier: MIT */
/* What a recorded host refuses, each with the limit, its value and the requested value; and what it does not refuse. */

#include "tests/unit/admissions.h"

#define LIMITS(processes, files)                                                                                       \
        "Limit                     Soft Limit           Hard Limit           Units\n"                                  \
        "Max processes             10                   " processes "        processes\n"                              \
        "Max open files            64                   " files "            files\n"

#define HUGE(free, surplus)                                                                                            \
        "MemAvailable: 1000000 kB\nHugePages_Free: " free "\nHugePages_Surp: " surplus "\nHugepagesize: 2048 kB\n"

static const struct admission_case {
        const char *machine;
        const char *file, *content; /* one change to the machine; NULL: none */
        enum transport transport;
        enum workload workload;
        enum engine engine;
        enum placement_kind placement;
        uint32_t threads;
        uint64_t message_size, pipe_size;
        const char *code, *pointer, *limit, *limit_value, *value; /* code NULL: admitted */
} cases[] = {
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1, 4096, 0,
         .code = NULL},
        {"busy-lab", NULL, NULL, TRANSPORT_FIFO, WORKLOAD_PINGPONG, ENGINE_SYSCALL, PLACEMENT_SAME_NODE, 8, 65536, 0,
         .code = NULL},
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1,
         UINT64_C(1) << 30, 0, .code = NULL},
        /* placement */
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_CROSS_NODE, 1, 1, 0,
         "limit-exceeded", "/placement", "nodes", "1", "2"},
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_SAME_CORE, 1, 1, 0,
         "limit-exceeded", "/placement", "CPUs per core (SMT)", "1", "2"},
        /* the engine */
        {"busy-lab", "/proc/sys/kernel/io_uring_disabled", "2\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_IO_URING,
         PLACEMENT_DEFAULT, 1, 1, 0, "not-available", "/engine", "", "", ""},
        /* Yama lets agents at a peer that they declared, up to 1 */
        {"busy-lab", "/proc/sys/kernel/yama/ptrace_scope", "2\n", TRANSPORT_PROCESS_VM, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1, 0, "not-available", "/transport", "", "", ""},
        {"busy-lab", "/proc/sys/kernel/yama/ptrace_scope", "3\n", TRANSPORT_PROCESS_VM, WORKLOAD_PINGPONG,
         ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1, 1, 0, "not-available", "/transport", "", "", ""},
        {"busy-lab", "/proc/sys/kernel/yama/ptrace_scope", "1\n", TRANSPORT_PROCESS_VM, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1, 0, .code = NULL},
        {"busy-lab", NULL, NULL, TRANSPORT_PROCESS_VM, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1, 1, 0,
         .code = NULL},
        {"busy-lab", "/proc/sys/kernel/yama/ptrace_scope", "3\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1, 0, .code = NULL},
        /* pipe sizes: the kernel rounds up to a power of two of pages before it compares */
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1, 1, 1048576,
         .code = NULL},
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1, 1, 600001,
         .code = NULL},
        {"busy-lab", NULL, NULL, TRANSPORT_FIFO, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1, 1, 1048577,
         "limit-exceeded", "/transport_options/pipe_size", "fs.pipe-max-size", "1048576", "1048577"},
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1, 1,
         UINT64_C(9007199254740991), "limit-exceeded", "/transport_options/pipe_size", "fs.pipe-max-size", "1048576",
         "9007199254740991"},
        {"busy-lab", "/proc/sys/fs/pipe-max-size", "1000000\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1, 600000, "limit-exceeded", "/transport_options/pipe_size", "fs.pipe-max-size",
         "1000000", "600000"},
        {"busy-lab", "/proc/sys/fs/pipe-max-size", "4096\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1, 4097, "limit-exceeded", "/transport_options/pipe_size", "fs.pipe-max-size", "4096",
         "4097"},
        {"busy-lab", "/proc/sys/fs/pipe-max-size", NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1, 65536, .code = NULL},
        /* 64 pipes of 256 pages are 16384 pages, which is the limit of a user; a pingpong has two pipes */
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 64, 1, 1048576,
         .code = NULL},
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 65, 1, 1048576,
         "limit-exceeded", "/transport_options/pipe_size", "fs.pipe-user-pages-soft", "16384", "16640"},
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_PINGPONG, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 33, 1, 1048576,
         "limit-exceeded", "/transport_options/pipe_size", "fs.pipe-user-pages-soft", "16384", "16896"},
        {"busy-lab", "/proc/sys/fs/pipe-user-pages-soft", "0\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 65, 1, 1048576, .code = NULL},
        /* memory: two ends of 1 MiB and 256 KiB of a thread's own are 2560 KiB, and 1/16 stays free */
        {"busy-lab", "/proc/meminfo", "MemAvailable: 2731 kB\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1048576, 0, .code = NULL},
        {"busy-lab", "/proc/meminfo", "MemAvailable: 2730 kB\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1048576, 0, "limit-exceeded", "/message_size", "memory available", "2795520", "2621440"},
        {"busy-lab", "/proc/meminfo", "MemAvailable: 2731 kB\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1048576, 65536, "limit-exceeded", "/message_size", "memory available", "2796544",
         "2686976"},
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1024,
         UINT64_C(1) << 30, 0, "limit-exceeded", "/message_size", "memory available", NULL, "2199560126464"},
        {"busy-lab", "/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8192 kB\nNode 0 MemFree: 4096 kB\n",
         TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_SAME_NODE, 1, 3932160, 0, .code = NULL},
        {"busy-lab", "/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8192 kB\nNode 0 MemFree: 4096 kB\n",
         TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_SAME_NODE, 1, 3932161, 0, "limit-exceeded",
         "/message_size", "memory of the bound nodes", "8388608", "8388610"},
        /* threads: two agents of n, four others */
        {"busy-lab", "/proc/self/limits", LIMITS("204", "4096"), TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 100, 1, 0, .code = NULL},
        {"busy-lab", "/proc/self/limits", LIMITS("203", "4096"), TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 100, 1, 0, "limit-exceeded", "/threads", "RLIMIT_NPROC", "203", "204"},
        {"busy-lab", "/proc/self/limits", LIMITS("unlimited", "163"), TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 100, 1, 0, "limit-exceeded", "/threads", "RLIMIT_NOFILE", "163", "164"},
        {"busy-lab", "/proc/self/limits", LIMITS("unlimited", "263"), TRANSPORT_PIPE, WORKLOAD_PINGPONG, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 100, 1, 0, "limit-exceeded", "/threads", "RLIMIT_NOFILE", "263", "264"},
        /* the daemon itself, whose run would fail */
        {"busy-lab", "/proc/self/limits", LIMITS("unlimited", "120"), TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1, 0, .code = NULL},
        {"busy-lab", "/proc/self/limits", LIMITS("unlimited", "119"), TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1, 0, "limit-exceeded", "", "RLIMIT_NOFILE", "119", "120"},
        {"busy-lab", "/proc/sys/kernel/pid_max", "301\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 149, 1, 0, "limit-exceeded", "/threads", "kernel.pid_max", "301", "302"},
        {"busy-lab", "/proc/sys/kernel/threads-max", "300\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 149, 1, 0, "limit-exceeded", "/threads", "kernel.threads-max", "300", "302"},
};

static void every_limit_is_named(void) {
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct admission_case *c = &cases[i];
                const struct spec spec = {.options = {.pipe_size = c->pipe_size}};
                const struct point p = {.workload = c->workload,
                                        .transport = c->transport,
                                        .engine = c->engine,
                                        .threads = c->threads,
                                        .message_size = c->message_size,
                                        .placement = {.kind = c->placement}};
                struct refusal r;
                int x = admissions_try(c->machine, c->file, c->content, &spec, &p, &r);
                CHECK_ADMISSION(i, x, &r, c->code, c->pointer, c->limit, c->limit_value, c->value);
        }
}

/* Every other request of a spec, and the setting that it meets, on one recorded host or another. */
static const struct option_case {
        const char *machine, *file, *content;
        struct point point;
        struct transport_options options;
        bool chunk;
        const char *code, *pointer, *limit, *limit_value, *value; /* code NULL: admitted */
} option_cases[] = {
#define STREAM(t, bytes, n, ...)                                                                                       \
        { .transport = TRANSPORT_##t, .message_size = bytes, .threads = n, ##__VA_ARGS__ }
#define SENT(...)                                                                                                      \
        { __VA_ARGS__ }
        /* the kernel would cut these down silently */
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(UNIX_STREAM, 4096, 1), SENT(.sndbuf = 212992),
         .code = NULL},
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(UNIX_STREAM, 4096, 1), SENT(.sndbuf = 212993),
         false, "limit-exceeded", "/transport_options/sndbuf", "net.core.wmem_max", "212992", "212993"},
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(PIPE, 4096, 1), SENT(.sndbuf = 212993),
         .code = NULL},
        {"busy-lab", "/proc/sys/net/core/wmem_max", NULL, STREAM(UNIX_DGRAM, 4096, 1), SENT(.sndbuf = 1 << 20),
         .code = NULL},
        {"busy-lab", "/proc/sys/net/core/rmem_max", "212992\n", STREAM(TCP, 4096, 1), SENT(.rcvbuf = 300000), false,
         "limit-exceeded", "/transport_options/rcvbuf", "net.core.rmem_max", "212992", "300000"},
        {"busy-lab", "/proc/sys/net/core/busy_read", "50\n", STREAM(TCP, 4096, 1), SENT(.busy_poll = 50), .code = NULL},
        {"busy-lab", "/proc/sys/net/core/busy_read", "0\n", STREAM(TCP, 4096, 1), SENT(.busy_poll = 50), false,
         "limit-exceeded", "/transport_options/busy_poll", "net.core.busy_read", "0", "50"},
        {"busy-lab", "/proc/sys/net/ipv4/tcp_allowed_congestion_control", "reno cubic\n", STREAM(TCP, 4096, 1),
         SENT(.congestion = "cubic"), .code = NULL},
        {"busy-lab", "/proc/sys/net/ipv4/tcp_allowed_congestion_control", "reno cubic\n", STREAM(TCP, 4096, 1),
         SENT(.congestion = "cub"), false, "limit-exceeded", "/transport_options/congestion",
         "net.ipv4.tcp_allowed_congestion_control", "reno cubic", "cub"},
        {"busy-lab", NULL, NULL, STREAM(TCP, 4096, 1), SENT(.congestion = "bbr"), .code = NULL},
        /* a size for whatever buffer there is meets the limit of each, unless its own option goes before it */
        {"busy-lab", "/proc/sys/fs/pipe-max-size", "1048576\n", STREAM(PIPE, 4096, 1), SENT(.buffer_bytes = 1 << 20),
         .code = NULL},
        {"busy-lab", "/proc/sys/fs/pipe-max-size", "1048576\n", STREAM(PIPE, 4096, 1), SENT(.buffer_bytes = 1 << 21),
         false, "limit-exceeded", "/transport_options/buffer_bytes", "fs.pipe-max-size", "1048576", "2097152"},
        {"busy-lab", "/proc/sys/fs/pipe-max-size", "1048576\n", STREAM(FIFO, 4096, 1),
         SENT(.buffer_bytes = 1 << 21, .pipe_size = 65536), .code = NULL},
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(UNIX_STREAM, 4096, 1),
         SENT(.buffer_bytes = 262144), false, "limit-exceeded", "/transport_options/buffer_bytes", "net.core.wmem_max",
         "212992", "262144"},
        {"busy-lab", "/proc/sys/net/core/rmem_max", "212992\n", STREAM(TCP, 4096, 1),
         SENT(.buffer_bytes = 262144, .sndbuf = 4096), false, "limit-exceeded", "/transport_options/buffer_bytes",
         "net.core.rmem_max", "212992", "262144"},
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(UNIX_SEQPACKET, 131041, 1),
         SENT(.buffer_bytes = 65536), false, "limit-exceeded", "/message_size", "transport_options.buffer_bytes",
         "65536", "131041"},
        {"busy-lab", NULL, NULL, STREAM(SHM_SYSV, 4096, 1), SENT(.buffer_bytes = 4096), false, "limit-exceeded",
         "/transport_options/buffer_bytes", "buffer_bytes", "4096", "4160"},
        {"busy-lab", NULL, NULL, STREAM(FILE, 1 << 20, 1), SENT(.buffer_bytes = 4096), .code = NULL},
        /* a port for each connection, and the server's */
        {"busy-lab", "/proc/sys/net/ipv4/ip_local_port_range", "40000\t40008\n", STREAM(TCP, 4096, 8), SENT(0),
         .code = NULL},
        {"busy-lab", "/proc/sys/net/ipv4/ip_local_port_range", "40000\t40007\n", STREAM(TCP, 4096, 8), SENT(0), false,
         "limit-exceeded", "/threads", "ports of net.ipv4.ip_local_port_range", "8", "9"},
        /* datagrams: as long as the requested buffer, else as the largest that may be requested */
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(UNIX_DGRAM, 425952, 1), SENT(0), .code = NULL},
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(UNIX_DGRAM, 425953, 1), SENT(0), false,
         "limit-exceeded", "/message_size", "net.core.wmem_max", "212992", "425953"},
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(UNIX_SEQPACKET, 131040, 1),
         SENT(.sndbuf = 65536), .code = NULL},
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(UNIX_SEQPACKET, 131041, 1),
         SENT(.sndbuf = 65536), false, "limit-exceeded", "/message_size", "transport_options.sndbuf", "65536",
         "131041"},
        {"busy-lab", "/proc/sys/net/core/wmem_max", "212992\n", STREAM(UNIX_SEQPACKET, 131041, 1),
         SENT(.sndbuf = 65536), true, .code = NULL},
        {"busy-lab", NULL, NULL, STREAM(UNIX_DGRAM, 4263617, 1), SENT(0), false, "limit-exceeded", "/message_size",
         "kernel's largest socket buffer", "4263616", "4263617"},
        /* rings: one message with its state at least, and all of them in what they lie in */
        {"busy-lab", NULL, NULL, STREAM(SHM_SYSV, 4032, 1), SENT(.ring_bytes = 4096), .code = NULL},
        {"busy-lab", NULL, NULL, STREAM(SHM_SYSV, 4033, 1), SENT(.ring_bytes = 4096), false, "limit-exceeded",
         "/transport_options/ring_bytes", "ring_bytes", "4096", "4160"},
        {"busy-lab", "/proc/sys/kernel/shmmax", "1048576\n", STREAM(SHM_SYSV, 4096, 1), SENT(.ring_bytes = 1 << 20),
         false, "limit-exceeded", "/transport_options/ring_bytes", "kernel.shmmax", "1048576", "1052672"},
        {"busy-lab", "/proc/sys/kernel/shmmax", "1048576\n", STREAM(SHM_SYSV, 1 << 20, 1), SENT(0), false,
         "limit-exceeded", "/message_size", "kernel.shmmax", "1048576", "3153920"},
        {"busy-lab", "/proc/meminfo", HUGE("2", "0"), STREAM(SHM_SYSV, 4096, 1), SENT(.huge_pages = TOGGLE_ON), false,
         "limit-exceeded", "/transport_options/huge_pages", "huge pages free", "2", "3"},
        {"busy-lab", "/proc/meminfo", HUGE("3", "0"), STREAM(SHM_SYSV, 4096, 1), SENT(.huge_pages = TOGGLE_ON),
         .code = NULL},
        {"busy-lab", "/proc/meminfo", "MemAvailable: 1000000 kB\n", STREAM(SHM_POSIX, 4096, 1),
         SENT(.huge_pages = TOGGLE_ON), false, "not-available", "/transport_options/huge_pages", "", "", ""},
        {"busy-lab", "/proc/meminfo", HUGE("0", "0"), STREAM(PIPE, 4096, 1), SENT(.huge_pages = TOGGLE_ON),
         .code = NULL},
        /* a mapped file has none: its ring is of the memory that there is, beside both ends' buffers */
        {"busy-lab", "/proc/meminfo", "MemAvailable: 6016 kB\n", STREAM(MMAP_FILE, 1 << 20, 1),
         SENT(.huge_pages = TOGGLE_ON), .code = NULL},
        {"busy-lab", "/proc/meminfo", "MemAvailable: 6015 kB\n", STREAM(MMAP_FILE, 1 << 20, 1),
         SENT(.huge_pages = TOGGLE_ON), false, "limit-exceeded", "/message_size", "memory available", "6159360",
         "5775360"},
        /* a server over tcp: its sockets and its pending connections */
        {"busy-lab", "/proc/self/limits", LIMITS("unlimited", "292"), STREAM(TCP, 4096, 100), SENT(0), false,
         "limit-exceeded", "/threads", "RLIMIT_NOFILE", "292", "293"},
        {"busy-lab", "/proc/self/limits", LIMITS("unlimited", "293"), STREAM(TCP, 4096, 100), SENT(0), .code = NULL},
        /* processes that hand the CPU round: tasks, and two descriptors each */
        {"busy-lab",
         "/proc/self/limits",
         LIMITS("68", "4096"),
         {.workload = WORKLOAD_CONTEXT_SWITCH, .threads = 1, .processes = 64},
         SENT(0),
         .code = NULL},
        {"busy-lab",
         "/proc/self/limits",
         LIMITS("67", "4096"),
         {.workload = WORKLOAD_CONTEXT_SWITCH, .threads = 1, .processes = 64},
         SENT(0),
         false,
         "limit-exceeded",
         "/processes",
         "RLIMIT_NPROC",
         "67",
         "68"},
        {"busy-lab",
         "/proc/self/limits",
         LIMITS("unlimited", "100"),
         {.workload = WORKLOAD_CONTEXT_SWITCH, .threads = 1, .processes = 64},
         SENT(0),
         false,
         "limit-exceeded",
         "/processes",
         "RLIMIT_NOFILE",
         "100",
         "192"},
#undef STREAM
#undef SENT
};

static void every_option_meets_its_setting(void) {
        for (size_t i = 0; i < ELEMENTS(option_cases); i++) {
                const struct option_case *c = &option_cases[i];
                const struct spec spec = {.options = c->options, .chunk = c->chunk};
                struct refusal r;
                int x = admissions_try(c->machine, c->file, c->content, &spec, &c->point, &r);
                CHECK_ADMISSION(i, x, &r, c->code, c->pointer, c->limit, c->limit_value, c->value);
        }
}

/* Pieces are as long as the mechanism takes, and only where they are requested and needed. */
static void messages_go_in_pieces(void) {
        static const struct {
                enum transport transport;
                uint64_t message_size;
                bool chunk;
                uint64_t expected;
        } rows[] = {
                {TRANSPORT_MSGQ_SYSV, 4 << 20, true, 8192}, {TRANSPORT_MSGQ_SYSV, 8192, true, 0},
                {TRANSPORT_MSGQ_SYSV, 8193, true, 8192},    {TRANSPORT_MSGQ_SYSV, 4 << 20, false, 0},
                {TRANSPORT_MSGQ_POSIX, 9000, true, 8192},   {TRANSPORT_FIFO, 4 << 20, true, 0},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const struct spec spec = {.chunk = rows[i].chunk};
                const struct point p = {
                        .transport = rows[i].transport, .message_size = rows[i].message_size, .threads = 1};
                uint64_t bytes = 1;
                char tree[64];
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                int x = admission_chunk_bytes(&(struct admission_host){.root = tree}, &spec, &p, &bytes);
                CHECK_INT(host_tree_write(tree, "/proc/sys/kernel/msgmax", NULL), 0);
                CHECK_INT(host_tree_write(tree, "/proc/sys/fs/mqueue/msgsize_max", NULL), 0);
                int without = admission_chunk_bytes(&(struct admission_host){.root = tree}, &spec, &p, &(uint64_t){0});
                host_tree_remove(tree);
                CHECK_INT(x, 0);
                CHECK_UINT(bytes, rows[i].expected);
                CHECK_INT(without,
                          rows[i].chunk && transport_terms[p.transport].delivery == DELIVERY_WHOLE ? -ENODATA : 0);
        }
}

/* An end on CPU 0, its memory or its buffer bound: node 0 has plenty, node 1 has 8 MiB. */
static void bound_pages_fit_into_their_nodes(void) {
        enum { KIB = 1024, NONE = -1 };
        static const struct {
                enum transport transport;
                enum data_direction direction;
                uint64_t message_size;
                struct {
                        int memory, buffer; /* node */
                } ends[END_COUNT];
                const char *need; /* NULL: admitted */
        } rows[] = {
                /* where the buffer is counts, not where its owner's memory is */
                {TRANSPORT_PIPE, DIRECTION_DOWN, 131072 * KIB, {{1, 0}, {NONE, NONE}}, NULL},
                {TRANSPORT_PIPE, DIRECTION_DOWN, 16384 * KIB, {{0, 1}, {NONE, NONE}}, "16777216"},
                {TRANSPORT_PIPE, DIRECTION_DOWN, 16384 * KIB, {{NONE, 1}, {NONE, NONE}}, "16777216"},
                {TRANSPORT_PIPE, DIRECTION_DOWN, 8192 * KIB, {{NONE, 1}, {NONE, NONE}}, NULL},
                {TRANSPORT_PIPE, DIRECTION_DOWN, 8192 * KIB, {{1, NONE}, {NONE, NONE}}, "8650752"},
                /* both ends on one node */
                {TRANSPORT_PIPE, DIRECTION_DOWN, 4000 * KIB, {{1, NONE}, {1, NONE}}, "8716288"},
                {TRANSPORT_PIPE, DIRECTION_DOWN, 4200 * KIB, {{NONE, 1}, {NONE, 1}}, "8601600"},
                /* the ring is its reader's: two messages, each with a line, behind two lines, in whole pages */
                {TRANSPORT_SHM_POSIX, DIRECTION_DOWN, 2048 * KIB, {{NONE, NONE}, {NONE, 1}}, NULL},
                {TRANSPORT_SHM_POSIX, DIRECTION_DOWN, 4096 * KIB, {{NONE, NONE}, {NONE, 1}}, "12587008"},
                {TRANSPORT_SHM_POSIX, DIRECTION_DOWN, 4096 * KIB, {{NONE, 1}, {NONE, NONE}}, NULL},
                /* slots are the sender's where the receiver reads them; two messages beside the buffer */
                {TRANSPORT_PROCESS_VM, DIRECTION_DOWN, 4096 * KIB, {{NONE, 1}, {NONE, NONE}}, "12582912"},
                {TRANSPORT_PROCESS_VM, DIRECTION_DOWN, 4096 * KIB, {{NONE, NONE}, {NONE, 1}}, NULL},
                /* the fields are their sender's, each in pages of its own */
                {TRANSPORT_TCP, DIRECTION_DOWN, 4800 * KIB, {{NONE, 1}, {NONE, NONE}}, "9863168"},
                {TRANSPORT_TCP, DIRECTION_DOWN, 4800 * KIB, {{NONE, NONE}, {NONE, 1}}, NULL},
                {TRANSPORT_TCP, DIRECTION_UP, 4800 * KIB, {{NONE, NONE}, {NONE, 1}}, "9863168"},
                {TRANSPORT_TCP, DIRECTION_UP, 4800 * KIB, {{NONE, 1}, {NONE, NONE}}, NULL},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct refusal r;
                const struct spec spec = {.repetitions = 1};
                struct point p = {.transport = rows[i].transport,
                                  .direction = rows[i].direction,
                                  .message_size = rows[i].message_size,
                                  .threads = 1,
                                  .fields = 8,
                                  .placement = {.kind = PLACEMENT_EXPLICIT}};
                for (unsigned e = 0; e < END_COUNT; e++) {
                        struct end_placement *end = &p.placement.ends[e];
                        end->node = -1;
                        end->memory = rows[i].ends[e].memory == NONE ? MEMORY_DEFAULT : MEMORY_BIND;
                        end->buffer = rows[i].ends[e].buffer == NONE ? MEMORY_DEFAULT : MEMORY_BIND;
                        if (end->memory == MEMORY_BIND)
                                node_set_add(&end->memory_nodes, (unsigned) rows[i].ends[e].memory);
                        if (end->buffer == MEMORY_BIND)
                                node_set_add(&end->buffer_nodes, (unsigned) rows[i].ends[e].buffer);
                }
                int x = admissions_try("two-sockets-smt", "/sys/devices/system/node/node1/meminfo",
                                       "Node 1 MemTotal: 8192 kB\nNode 1 MemFree: 8192 kB\n", &spec, &p, &r);
                CHECK_ADMISSION(i, x, &r, rows[i].need ? "limit-exceeded" : NULL, NULL, "memory of the bound nodes",
                                "8388608", rows[i].need);
        }
}

/* Interleaving puts an even share on each node, which has to have room for it: node 0 has plenty, node 1 has 1 MiB. */
static void interleaved_pages_fit_into_each_node(void) {
        enum { KIB = 1024 };
        static const struct {
                uint64_t message_size;
                bool memory, buffer; /* of the first end are interleaved */
                int bound;           /* to this node is the second end's memory; -1: to none */
                const char *need;    /* NULL: admitted */
        } rows[] = {
                {1792 * KIB, true, false, -1, NULL},         {1792 * KIB + 2, true, false, -1, "1048577"},
                {2048 * KIB, false, true, -1, NULL},         {2048 * KIB + 2, false, true, -1, "1048577"},
                {1792 * KIB + 2, true, false, 0, "1048577"}, /* and what is bound counts beside it */
                {256 * KIB, true, false, 1, NULL},           {640 * KIB, true, false, 1, "1376256"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct refusal r;
                const struct spec spec = {.repetitions = 1};
                struct point p = {.transport = TRANSPORT_PIPE,
                                  .message_size = rows[i].message_size,
                                  .threads = 1,
                                  .placement = {.kind = PLACEMENT_EXPLICIT}};
                struct end_placement *first = &p.placement.ends[END_FIRST], *second = &p.placement.ends[END_SECOND];
                first->node = second->node = -1;
                first->memory = rows[i].memory ? MEMORY_INTERLEAVE : MEMORY_DEFAULT;
                first->buffer = rows[i].buffer ? MEMORY_INTERLEAVE : MEMORY_DEFAULT;
                for (unsigned node = 0; node < 2; node++)
                        node_set_add(rows[i].memory ? &first->memory_nodes : &first->buffer_nodes, node);
                if (rows[i].bound >= 0) {
                        second->memory = MEMORY_BIND;
                        node_set_add(&second->memory_nodes, (unsigned) rows[i].bound);
                }
                int x = admissions_try("two-sockets-smt", "/sys/devices/system/node/node1/meminfo",
                                       "Node 1 MemTotal: 1024 kB\nNode 1 MemFree: 1024 kB\n", &spec, &p, &r);
                CHECK_ADMISSION(i, x, &r, rows[i].need ? "limit-exceeded" : NULL, NULL, "memory of node 1", "1048576",
                                rows[i].need);
        }
}

/* A ring of one message is the way out where two do not fit, and is named only where it is one. */
static void a_smaller_ring_is_named_where_it_helps(void) {
        static const struct {
                uint64_t message_size;
                uint32_t threads;
                enum workload workload;
                uint64_t ring_bytes;
                const char *detail; /* NULL: admitted */
        } rows[] = {
                {1 << 20, 1, WORKLOAD_STREAM, 0,
                 "the rings of all threads, in bytes, do not fit (to have more: sysctl kernel.shmmax=BYTES; or "
                 "transport_options.ring_bytes of 2097152, which holds one message): 3153920 needed, kernel.shmmax is "
                 "2000000"},
                {1 << 20, 1, WORKLOAD_STREAM, 2097152, NULL},
                {1 << 20, 1, WORKLOAD_PINGPONG, 0,
                 "the rings of all threads, in bytes, do not fit (to have more: sysctl kernel.shmmax=BYTES): 4206592 "
                 "needed, kernel.shmmax is 2000000"},
                {1, 1, WORKLOAD_STREAM, 1 << 21,
                 "the rings of all threads, in bytes, do not fit (to have more: sysctl kernel.shmmax=BYTES): 2105344 "
                 "needed, kernel.shmmax is 2000000"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const struct spec spec = {.options = {.ring_bytes = rows[i].ring_bytes}};
                const struct point p = {.transport = TRANSPORT_SHM_SYSV,
                                        .workload = rows[i].workload,
                                        .message_size = rows[i].message_size,
                                        .threads = rows[i].threads};
                struct topology *t = NULL;
                struct refusal r = {.status = 0};
                char tree[64];
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(host_tree_write(tree, "/proc/sys/kernel/shmmax", "2000000\n"), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                int x = admission_check(&(struct admission_host){.root = tree, .topology = t}, &spec, &p, &r);
                topology_free(t);
                host_tree_remove(tree);
                CHECK_INT(x, rows[i].detail ? -EINVAL : 0);
                CHECK_STRING(r.detail, rows[i].detail ? rows[i].detail : "");
        }
}

/* Where the longest message is too much for as many queues as there are, pieces may not be. */
static void queues_that_are_too_large_may_take_pieces(void) {
        static const struct {
                uint64_t rlimit;
                uint32_t threads;
                bool chunk;
                const char *detail; /* NULL: admitted */
        } rows[] = {
                {819200, 1, false,
                 "the queues of all threads are too large, in bytes (chunk: true sends messages in pieces): 1638400 "
                 "needed, RLIMIT_MSGQUEUE is 819200 (to raise it: LimitMSGQUEUE=BYTES in the unit, or ulimit -q)"},
                {819200, 1, true, NULL},
                {819200, 60, false,
                 "the queues of all threads are too large, in bytes (chunk: true sends messages in pieces): 98304000 "
                 "needed, RLIMIT_MSGQUEUE is 819200 (to raise it: LimitMSGQUEUE=BYTES in the unit, or ulimit -q)"},
                {819200, 60, true, NULL},
                {10000, 60, false,
                 "the queues of all threads are too large, in bytes: 1200000 needed, RLIMIT_MSGQUEUE is 10000 (to "
                 "raise "
                 "it: LimitMSGQUEUE=BYTES in the unit, or ulimit -q)"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct queue_host queues = {.settable = true, .rlimit_msgqueue = rows[i].rlimit};
                const struct spec spec = {.chunk = rows[i].chunk};
                const struct point p = {.transport = TRANSPORT_MSGQ_POSIX,
                                        .workload = WORKLOAD_PINGPONG,
                                        .message_size = rows[i].rlimit - QUEUES_POSIX_OVERHEAD,
                                        .threads = rows[i].threads};
                struct topology *t = NULL;
                struct refusal r = {.status = 0};
                char tree[64];
                queues.fresh[QUEUE_MSGSIZE_MAX] = 8192;
                queues.fresh[QUEUE_MSG_MAX] = queues.fresh[QUEUE_MSG_DEFAULT] = 10;
                queues.fresh[QUEUE_QUEUES_MAX] = 256;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                const struct admission_host host = {.root = tree, .topology = t, .queues = &queues};
                int x = admission_check(&host, &spec, &p, &r);
                topology_free(t);
                host_tree_remove(tree);
                CHECK_STRING(r.detail, rows[i].detail ? rows[i].detail : "");
                CHECK_INT(x, rows[i].detail ? -EINVAL : 0);
        }
}

/* A precondition that this host can never meet is no reason to run and fail. */
static void preconditions_that_cannot_be_met(void) {
        static const struct {
                const char *machine, *setting;
                enum toggle wanted;
                const char *code, *detail;
        } rows[] = {
                {"busy-lab", "0\n", TOGGLE_UNSET, "", ""},
                {"busy-lab", "0\n", TOGGLE_OFF, "", ""},
                {"busy-lab", "0\n", TOGGLE_ON, "limit-exceeded", "nodes with memory is 1"},
                {"busy-lab", NULL, TOGGLE_ON, "impossible-combination", "this kernel has none"},
                {"two-sockets-smt", "0\n", TOGGLE_ON, "", ""}, /* can be set: the run reports the value */
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const struct spec spec = {.repetitions = 1};
                struct point p = {.message_size = 4096, .threads = 1};
                struct topology *t = NULL;
                struct refusal r = {.status = 0};
                char tree[64];
                p.placement.require.numa_balancing = rows[i].wanted;
                CHECK_INT(host_tree_unpack(rows[i].machine, tree), 0);
                CHECK_INT(host_tree_write(tree, "/proc/sys/kernel/numa_balancing", rows[i].setting), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                int x = admission_check(&(struct admission_host){.root = tree, .topology = t}, &spec, &p, &r);
                topology_free(t);
                host_tree_remove(tree);
                CHECK_INT(x, rows[i].code[0] ? -EINVAL : 0);
                CHECK_STRING(r.code, rows[i].code);
                CHECK(strstr(r.detail, rows[i].detail));
        }
}

static void this_machine_admits_what_is_modest(void) {
        struct topology *t = NULL;
        struct refusal r = {.status = 0};
        const struct spec spec = {.repetitions = 1};
        const struct point p = {.message_size = 4096, .threads = 1};
        CHECK_INT(topology_read("", &t), 0);
        int x = admission_check(&(struct admission_host){.root = "", .topology = t}, &spec, &p, &r),
            without_root =
                    admission_check(&(struct admission_host){.root = "/nonexistent", .topology = t}, &spec, &p, &r);
        topology_free(t);
        if (x < 0)
                CHECK_FAIL("refused: %s", r.detail);
        CHECK_INT(without_root, -ENOENT);
}

#define NOBODY                                                                                                         \
        { .change = true, .uid = 65534, .gid = 65534 }
#define MUCH "18446744073692774399\n"

/* Huge pages of System V segments are for a group, and agents are known to be in it or not. */
/* All pages of a zero-copy message are pinned, and one more where it begins within a page. */
static void pages_that_a_send_pins(void) {
        enum { LIMIT = 1 << 20, PAGE = 4096 };
        static const struct {
                uint64_t message_size, memlock_bytes;
                enum copy_mode mode;
                enum engine engine;
                const char *need; /* NULL: admitted */
        } rows[] = {
                {255 * PAGE - 1, LIMIT, COPY_ZERO, ENGINE_SYSCALL, NULL},
                {255 * PAGE, LIMIT, COPY_ZERO, ENGINE_SYSCALL, "1052672"},
                {255 * PAGE, LIMIT, COPY_ONE, ENGINE_SYSCALL, NULL},
                {255 * PAGE, LIMIT, COPY_TWO, ENGINE_SYSCALL, NULL},
                {64 << 20, 0, COPY_ZERO, ENGINE_SYSCALL, NULL}, /* not known */
                {64 << 20, UINT64_MAX, COPY_ZERO, ENGINE_SYSCALL, NULL},
                {64 << 20, 8 << 20, COPY_ZERO, ENGINE_SYSCALL, "67117056"},
        };
        if (sysconf(_SC_PAGESIZE) != PAGE)
                SKIP("pages are of another size");
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                char tree[64];
                struct topology *t = NULL;
                struct refusal r = {.status = 0};
                const struct spec spec = {.repetitions = 1};
                const struct point p = {.transport = TRANSPORT_TCP,
                                        .message_size = rows[i].message_size,
                                        .copy_mode = rows[i].mode,
                                        .engine = rows[i].engine,
                                        .threads = 1,
                                        .fields = 8};
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                int x = admission_check(
                        &(struct admission_host){.root = tree, .topology = t, .memlock_bytes = rows[i].memlock_bytes},
                        &spec, &p, &r);
                topology_free(t);
                host_tree_remove(tree);
                if (x != (rows[i].need ? -EINVAL : 0))
                        CHECK_FAIL("case %zu: %d, %s", i, x, r.detail);
                if (!rows[i].need)
                        continue;
                CHECK_INT(r.status, 422);
                CHECK_STRING(r.pointer, "/message_size");
                CHECK_STRING(r.limit, "RLIMIT_MEMLOCK");
                CHECK_STRING(r.value, rows[i].need);
        }
}

static void huge_segments_have_a_group_and_a_size(void) {
        static const struct {
                const char *group; /* of the host */
                enum transport transport;
                struct agent_identity agents;
                const char *shmmax;
                const char *limit, *limit_value, *value; /* NULL: admitted */
        } rows[] = {
                {"0\n", TRANSPORT_SHM_SYSV, NOBODY, MUCH, "vm.hugetlb_shm_group", "0", "65534"},
                {"65534\n", TRANSPORT_SHM_SYSV, NOBODY, MUCH, .limit = NULL},
                {"65534\n", TRANSPORT_SHM_SYSV, NOBODY, "2097152\n", "kernel.shmmax", "2097152", "6291456"},
                {"0\n", TRANSPORT_SHM_SYSV, {.uid = 0, .gid = 0}, MUCH, .limit = NULL},
                {"0\n", TRANSPORT_SHM_POSIX, NOBODY, "2097152\n", .limit = NULL},
                {NULL, TRANSPORT_SHM_SYSV, NOBODY, MUCH, .limit = NULL},
        };
        const struct spec spec = {.options = {.huge_pages = TOGGLE_ON}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const struct point p = {.transport = rows[i].transport, .message_size = 4096, .threads = 1};
                struct refusal r = {.status = 0};
                struct topology *t = NULL;
                char tree[64];
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(host_tree_write(tree, "/proc/meminfo", HUGE("3", "0")), 0);
                if (rows[i].group) /* the recorded kernel reports none */
                        CHECK_INT(host_tree_write(tree, "/proc/sys/vm/hugetlb_shm_group", rows[i].group), 0);
                CHECK_INT(host_tree_write(tree, "/proc/sys/kernel/shmmax", rows[i].shmmax), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                struct admission_host host = {.root = tree, .topology = t, .agents = &rows[i].agents};
                int x = admission_check(&host, &spec, &p, &r);
                topology_free(t);
                host_tree_remove(tree);
                if (rows[i].limit ? x != -EINVAL || strcmp(r.limit, rows[i].limit) != 0 ||
                                            strcmp(r.limit_value, rows[i].limit_value) != 0 ||
                                            strcmp(r.value, rows[i].value) != 0
                                  : x != 0)
                        CHECK_FAIL("row %zu: %d %s", i, x, r.detail);
        }
}

int main(void) {
        RUN(every_limit_is_named);
        RUN(every_option_meets_its_setting);
        RUN(pages_that_a_send_pins);
        RUN(huge_segments_have_a_group_and_a_size);
        RUN(messages_go_in_pieces);
        RUN(bound_pages_fit_into_their_nodes);
        RUN(interleaved_pages_fit_into_each_node);
        RUN(a_smaller_ring_is_named_where_it_helps);
        RUN(queues_that_are_too_large_may_take_pieces);
        RUN(preconditions_that_cannot_be_met);
        RUN(this_machine_admits_what_is_modest);
        return check_end();
}
