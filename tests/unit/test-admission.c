/* SPDX-License-Identifier: MIT */
/* What a recorded host refuses, each with the limit, its value and the value asked; and what it does not refuse. */

#include "tests/unit/check.h"

#include "daemon/admission.h"
#include "tests/unit/host-tree.h"

#define LIMITS(processes, files)                                                                                       \
        "Limit                     Soft Limit           Hard Limit           Units\n"                                  \
        "Max processes             10                   " processes "        processes\n"                              \
        "Max open files            64                   " files "            files\n"

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
        /* memory: two ends of 1 MiB and 256 KiB of a thread's own are 2560 KiB */
        {"busy-lab", "/proc/meminfo", "MemAvailable: 2560 kB\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1048576, 0, .code = NULL},
        {"busy-lab", "/proc/meminfo", "MemAvailable: 2559 kB\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1048576, 0, "limit-exceeded", "/message_size", "memory available", "2620416", "2621440"},
        {"busy-lab", "/proc/meminfo", "MemAvailable: 2560 kB\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 1, 1048576, 65536, "limit-exceeded", "/message_size", "memory available", "2621440",
         "2686976"},
        {"busy-lab", NULL, NULL, TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_DEFAULT, 1024,
         UINT64_C(1) << 30, 0, "limit-exceeded", "/message_size", "memory available", NULL, "2199560126464"},
        {"busy-lab", "/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8192 kB\nNode 0 MemFree: 4096 kB\n",
         TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_SAME_NODE, 1, 8388608, 0, .code = NULL},
        {"busy-lab", "/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8192 kB\nNode 0 MemFree: 4096 kB\n",
         TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL, PLACEMENT_SAME_NODE, 1, 8388609, 0, "limit-exceeded",
         "/message_size", "memory of the bound nodes", "8388608", "8388609"},
        /* threads: two agents of n, four others */
        {"busy-lab", "/proc/self/limits", LIMITS("204", "4096"), TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 100, 1, 0, .code = NULL},
        {"busy-lab", "/proc/self/limits", LIMITS("203", "4096"), TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 100, 1, 0, "limit-exceeded", "/threads", "RLIMIT_NPROC", "203", "204"},
        {"busy-lab", "/proc/self/limits", LIMITS("unlimited", "163"), TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 100, 1, 0, "limit-exceeded", "/threads", "RLIMIT_NOFILE", "163", "164"},
        {"busy-lab", "/proc/self/limits", LIMITS("unlimited", "263"), TRANSPORT_PIPE, WORKLOAD_PINGPONG, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 100, 1, 0, "limit-exceeded", "/threads", "RLIMIT_NOFILE", "263", "264"},
        {"busy-lab", "/proc/sys/kernel/pid_max", "301\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 149, 1, 0, "limit-exceeded", "/threads", "kernel.pid_max", "301", "302"},
        {"busy-lab", "/proc/sys/kernel/threads-max", "300\n", TRANSPORT_PIPE, WORKLOAD_STREAM, ENGINE_SYSCALL,
         PLACEMENT_DEFAULT, 149, 1, 0, "limit-exceeded", "/threads", "kernel.threads-max", "300", "302"},
};

static int admit(const struct admission_case *c, struct refusal *r) {
        char tree[64];
        struct topology *t = NULL;
        struct spec spec = {.options = {.pipe_size = c->pipe_size}};
        struct point p = {.workload = c->workload,
                          .transport = c->transport,
                          .engine = c->engine,
                          .threads = c->threads,
                          .message_size = c->message_size,
                          .placement = {.kind = c->placement}};
        int x = host_tree_unpack(c->machine, tree);
        if (x == 0 && c->file)
                x = host_tree_write(tree, c->file, c->content);
        if (x == 0)
                x = topology_read(tree, &t);
        if (x == 0)
                x = admission_check(&(struct admission_host){.root = tree, .topology = t}, &spec, &p, r);
        topology_free(t);
        host_tree_remove(tree);
        return x;
}

static void every_limit_is_named(void) {
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct admission_case *c = &cases[i];
                struct refusal r = {.status = 0};
                int x = admit(c, &r);
                bool same = c->code ? x == -EINVAL && r.status == 422 && strcmp(r.code, c->code) == 0 &&
                                              strcmp(r.pointer, c->pointer) == 0 && strcmp(r.limit, c->limit) == 0 &&
                                              (!c->limit_value || strcmp(r.limit_value, c->limit_value) == 0) &&
                                              strcmp(r.value, c->value) == 0 && r.detail[0]
                                    : x == 0;
                if (!same)
                        CHECK_FAIL("case %zu gave %d %d %s %s: %s [%s = %s, asked %s]", i, x, r.status, r.code,
                                   r.pointer, r.detail, r.limit, r.limit_value, r.value);
        }
}

static void the_cgroup_limits_processes(void) {
        char tree[64];
        struct topology *t = NULL;
        struct refusal r = {.status = 0};
        const struct spec spec = {.repetitions = 1};
        const struct point p = {.message_size = 1, .threads = 8};
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        CHECK_INT(host_tree_write(tree, "/proc/self/cgroup", "0::/system.slice/ipclabd.service\n"), 0);
        CHECK_INT(host_tree_write(tree, "/sys/fs/cgroup/system.slice/ipclabd.service/pids.max", "max\n"), 0);
        CHECK_INT(admission_check(&(struct admission_host){.root = tree, .topology = t}, &spec, &p, &r), 0);
        CHECK_INT(host_tree_write(tree, "/sys/fs/cgroup/system.slice/ipclabd.service/pids.max", "19\n"), 0);
        CHECK_INT(admission_check(&(struct admission_host){.root = tree, .topology = t}, &spec, &p, &r), -EINVAL);
        topology_free(t);
        host_tree_remove(tree);
        CHECK_STRING(r.limit, "pids.max of the cgroup");
        CHECK_STRING(r.value, "20");
        CHECK_STRING(r.detail, "too many threads for this host: 20 needed, pids.max of the cgroup is 19");
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
                {"two-sockets-smt", "0\n", TOGGLE_ON, "", ""}, /* can be set: the run will say how */
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

int main(void) {
        RUN(every_limit_is_named);
        RUN(the_cgroup_limits_processes);
        RUN(preconditions_that_cannot_be_met);
        RUN(this_machine_admits_what_is_modest);
        return check_end();
}
