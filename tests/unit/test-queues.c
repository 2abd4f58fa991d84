/* SPDX-License-Identifier: MIT */

/*
 * The message queues of a run: what a point needs, how its namespace is set, which limit refuses what; and real
 * namespaces, in which the settings are the requested ones and the machine's own are unchanged.
 */

#include "daemon/admission/capacity.h"
#include "daemon/run/sandbox/ipcns.h"
#include "daemon/run/spawn/spawn.h"
#include "schema/detail.h"
#include "schema/util.h"
#include "tests/bench/own-namespaces.h"
#include "tests/unit/admissions.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MIB (UINT64_C(1) << 20)

/* A daemon that may set all, one that may set nothing, and one whose runs have no namespace. */
static const struct queue_host able = {.settable = true, .rlimit_msgqueue = UINT64_MAX};
static const struct queue_host modest = {.settable = true, .rlimit_msgqueue = 819200};
static const struct queue_host unable = {
        .set_trouble = "cannot set it",
        .fresh = {4000, 8000, 100, 5, 6, 3000, 20},
        .rlimit_msgqueue = UINT64_MAX,
};
static const struct queue_host without = {.trouble = "there is none", .rlimit_msgqueue = UINT64_MAX};

static void plans(void) {
        /* on the recorded host: msgmax 8192, msgmnb 16384, msgmni 32000, msg_default 10, msg_max 10, msgsize_max 8192,
         * queues_max 256 */
        static const struct {
                const struct queue_host *host;
                struct point point;
                uint64_t depth, chunk;
                enum queue_setting setting;
                uint64_t expected;
        } cases[] = {
#define OVER(t, w, size, n) {.transport = TRANSPORT_##t, .workload = WORKLOAD_##w, .message_size = size, .threads = n}
                {&able, OVER(PIPE, STREAM, 65536, 1), 0, 0, QUEUE_MSGMAX, 0},
                {&able, OVER(PIPE, SYSCALL, 0, 1), 0, 0, QUEUE_MSGMAX, 0}, /* has neither a queue nor messages */
                {&able, OVER(MSGQ_SYSV, STREAM, 64, 1), 0, 0, QUEUE_MSGMAX, 8192},
                {&able, OVER(MSGQ_SYSV, STREAM, 64, 1), 0, 0, QUEUE_MSGMNB, 16384},
                {&able, OVER(MSGQ_SYSV, STREAM, 65536, 1), 0, 0, QUEUE_MSGMAX, 65536},
                {&able, OVER(MSGQ_SYSV, STREAM, 65536, 1), 0, 0, QUEUE_MSGMNB, 131072},
                {&able, OVER(MSGQ_SYSV, STREAM, 65536, 1), 0, 8192, QUEUE_MSGMAX, 8192},
                {&able, OVER(MSGQ_SYSV, STREAM, 100, 1), 0, 8192, QUEUE_MSGMAX, 8192},
                {&able, OVER(MSGQ_SYSV, STREAM, 1000, 1), 3, 0, QUEUE_MSGMNB, 16384},
                {&able, OVER(MSGQ_SYSV, STREAM, 1000, 1), 100, 0, QUEUE_MSGMNB, 100000},
                {&able, OVER(MSGQ_SYSV, PINGPONG, 1, 1024), 0, 0, QUEUE_MSGMNI, 32000},
                {&able, OVER(MSGQ_POSIX, STREAM, 65536, 1), 0, 0, QUEUE_MSGSIZE_MAX, 65536},
                {&able, OVER(MSGQ_POSIX, STREAM, 65536, 1), 0, 0, QUEUE_MSG_MAX, 10},
                {&able, OVER(MSGQ_POSIX, STREAM, 64, 1), 500, 0, QUEUE_MSG_MAX, 500},
                {&able, OVER(MSGQ_POSIX, PINGPONG, 64, 1000), 0, 0, QUEUE_QUEUES_MAX, 2000},
                {&able, OVER(MSGQ_POSIX, STREAM, 65536, 1), 0, 0, QUEUE_MSG_DEFAULT, 10},
                /* without a depth, no more than there is room for: 819200 / (2 * (65536 + 96)) */
                {&modest, OVER(MSGQ_POSIX, PINGPONG, 65536, 1), 0, 0, QUEUE_MSG_DEFAULT, 6},
                {&modest, OVER(MSGQ_POSIX, PINGPONG, MIB, 1), 0, 0, QUEUE_MSG_DEFAULT, 1},
                {&unable, OVER(MSGQ_SYSV, STREAM, 64, 1), 0, 0, QUEUE_MSGMAX, 0},
                {&without, OVER(MSGQ_SYSV, STREAM, 64, 1), 0, 0, QUEUE_MSGMAX, 0},
                {NULL, OVER(MSGQ_SYSV, STREAM, 64, 1), 0, 0, QUEUE_MSGMAX, 0},
#undef OVER
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct spec spec = {.options = {.msgq_depth = cases[i].depth}};
                uint64_t plan[QUEUE_SETTINGS] = {0};
                char tree[64];
                struct hostfs h;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(hostfs_init(&h, tree), 0);
                int r = queues_plan(&h, cases[i].host, &spec, &cases[i].point, cases[i].chunk, plan);
                CHECK(queues_are_used(&cases[i].point) ||
                      queues_bytes(plan, &spec, &cases[i].point, cases[i].chunk) == 0);
                hostfs_deinit(&h);
                host_tree_remove(tree);
                if (r != 0 || plan[cases[i].setting] != cases[i].expected)
                        CHECK_FAIL("case %zu: %d, %s is %" PRIu64 ", expected %" PRIu64, i, r,
                                   host_limits[queue_setting_terms[cases[i].setting].id].name, plan[cases[i].setting],
                                   cases[i].expected);
        }
}

static void limits_are_named(void) {
        static const struct {
                const struct queue_host *host;
                struct point point;
                uint64_t depth;
                bool chunk;
                const char *code, *pointer, *limit, *limit_value, *value; /* code NULL: admitted */
        } cases[] = {
#define OVER(t, w, size, n) {.transport = TRANSPORT_##t, .workload = WORKLOAD_##w, .message_size = size, .threads = n}
                {&able, OVER(MSGQ_SYSV, STREAM, 16 * MIB, 1), 0, false, .code = NULL},
                {&able, OVER(MSGQ_SYSV, STREAM, 16 * MIB + 1, 1), 0, false, "limit-exceeded", "/message_size",
                 "kernel.msgmax", "16777216", "16777217"},
                {&able, OVER(MSGQ_SYSV, STREAM, 16 * MIB + 1, 1), 0, true, .code = NULL},
                {&able, OVER(MSGQ_POSIX, STREAM, 16 * MIB + 1, 1), 0, false, "limit-exceeded", "/message_size",
                 "fs.mqueue.msgsize_max", "16777216", "16777217"},
                {&able, OVER(MSGQ_SYSV, STREAM, MIB, 1), 2048, false, "limit-exceeded", "/transport_options/msgq_depth",
                 "kernel.msgmnb", "2147483647", "2147483648"},
                {&able, OVER(MSGQ_POSIX, STREAM, 1, 1), 65536, false, .code = NULL},
                {&modest, OVER(MSGQ_POSIX, STREAM, 819104, 1), 0, false, .code = NULL},
                {&modest, OVER(MSGQ_POSIX, STREAM, 819105, 1), 0, false, "limit-exceeded", "/message_size",
                 "RLIMIT_MSGQUEUE", "819200", "819105"},
                {&modest, OVER(MSGQ_POSIX, PINGPONG, 819104, 1), 0, false, "limit-exceeded", "/message_size",
                 "RLIMIT_MSGQUEUE", "819200", "1638400"},
                {&modest, OVER(MSGQ_POSIX, STREAM, 904, 1), 820, false, "limit-exceeded",
                 "/transport_options/msgq_depth", "RLIMIT_MSGQUEUE", "819200", "820000"},
                {&modest, OVER(MSGQ_POSIX, STREAM, 4 * MIB, 1), 0, true, .code = NULL},
                {&modest, OVER(MSGQ_SYSV, STREAM, MIB, 1), 0, false, .code = NULL},
                /* a namespace that is as the kernel makes it, whatever the host has */
                {&unable, OVER(MSGQ_SYSV, STREAM, 4000, 1), 0, false, .code = NULL},
                {&unable, OVER(MSGQ_SYSV, STREAM, 4001, 1), 0, false, "limit-exceeded", "/message_size",
                 "kernel.msgmax", "4000", "4001"},
                {&unable, OVER(MSGQ_POSIX, STREAM, 3001, 1), 0, false, "limit-exceeded", "/message_size",
                 "fs.mqueue.msgsize_max", "3000", "3001"},
                {&unable, OVER(MSGQ_POSIX, STREAM, 3001, 1), 0, true, .code = NULL},
                {&unable, OVER(MSGQ_POSIX, STREAM, 100, 1), 7, false, "limit-exceeded", "/transport_options/msgq_depth",
                 "fs.mqueue.msg_max", "6", "7"},
                {&unable, OVER(MSGQ_SYSV, STREAM, 100, 1), 81, false, "limit-exceeded", "/transport_options/msgq_depth",
                 "kernel.msgmnb", "8000", "8100"},
                {&unable, OVER(MSGQ_POSIX, PINGPONG, 100, 11), 0, false, "limit-exceeded", "/threads",
                 "fs.mqueue.queues_max", "20", "22"},
                {&unable, OVER(MSGQ_SYSV, STREAM, 100, 101), 0, false, "limit-exceeded", "/threads", "kernel.msgmni",
                 "100", "101"},
                {&without, OVER(MSGQ_SYSV, STREAM, 100, 1), 0, false, "not-available", "/transport", "", "", ""},
                {&without, OVER(PIPE, STREAM, 100, 1), 0, false, .code = NULL},
#undef OVER
        };
        char tree[64];
        struct topology *t = NULL;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct spec spec = {.options = {.msgq_depth = cases[i].depth}, .chunk = cases[i].chunk};
                const struct admission_host host = {.root = tree, .topology = t, .queues = cases[i].host};
                struct refusal r = {.status = 0};
                int x = admission_check(&host, &spec, &cases[i].point, &r);
                CHECK_ADMISSION(i, x, &r, cases[i].code, cases[i].pointer, cases[i].limit, cases[i].limit_value,
                                cases[i].value);
        }
        topology_free(t);
        host_tree_remove(tree);
}

/* A buffer of so many bytes is a queue of as many messages, or pieces, as are not longer; their number goes before it.
 */
static void a_size_in_bytes_is_so_many_messages(void) {
        static const struct {
                enum transport transport;
                uint64_t size, chunk;
                struct transport_options options;
                enum queue_setting setting;
                uint64_t expected;
        } cases[] = {
                {TRANSPORT_MSGQ_SYSV, 64, 0, {.buffer_bytes = 65536}, QUEUE_MSGMNB, 65536},
                {TRANSPORT_MSGQ_SYSV, 1000, 0, {.buffer_bytes = 65536}, QUEUE_MSGMNB, 65000},
                {TRANSPORT_MSGQ_POSIX, 64, 0, {.buffer_bytes = 65536}, QUEUE_MSG_MAX, 1024},
                {TRANSPORT_MSGQ_POSIX, 65536, 4096, {.buffer_bytes = 65536}, QUEUE_MSG_MAX, 16},
                {TRANSPORT_MSGQ_POSIX, 64, 0, {.buffer_bytes = 65536, .msgq_depth = 500}, QUEUE_MSG_MAX, 500},
        };
        char tree[64];
        struct hostfs h;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(hostfs_init(&h, tree), 0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct spec spec = {.options = cases[i].options};
                const struct point p = {.transport = cases[i].transport, .message_size = cases[i].size, .threads = 1};
                uint64_t plan[QUEUE_SETTINGS] = {0};
                CHECK_INT(queues_plan(&h, &able, &spec, &p, cases[i].chunk, plan), 0);
                CHECK_UINT(plan[cases[i].setting], cases[i].expected);
        }
        hostfs_deinit(&h);
        host_tree_remove(tree);
}

/* And what cannot be had of it is refused under its own name. */
static void a_size_in_bytes_meets_the_limits(void) {
        static const struct {
                const struct queue_host *host;
                struct point point;
                uint64_t bytes;
                const char *limit, *limit_value, *value; /* NULL: admitted */
        } cases[] = {
#define OVER(t, size) {.transport = TRANSPORT_##t, .message_size = size, .threads = 1}
                {&able, OVER(MSGQ_SYSV, 65536), 65536, NULL, NULL, NULL},
                {&able, OVER(MSGQ_SYSV, 65537), 65536, "buffer_bytes", "65536", "65537"},
                {&able, OVER(MSGQ_POSIX, 1), 131072, "fs.mqueue.msg_max", "65536", "131072"},
                {&modest, OVER(MSGQ_POSIX, 4096), MIB, "RLIMIT_MSGQUEUE", "819200", "1073152"},
#undef OVER
        };
        char tree[64];
        struct topology *t = NULL;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(topology_read(tree, &t), 0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct spec spec = {.options = {.buffer_bytes = cases[i].bytes}};
                const struct admission_host host = {.root = tree, .topology = t, .queues = cases[i].host};
                struct refusal r = {.status = 0};
                CHECK_INT(admission_check(&host, &spec, &cases[i].point, &r), cases[i].limit ? -EINVAL : 0);
                if (!cases[i].limit)
                        continue;
                CHECK_STRING(r.pointer, "/transport_options/buffer_bytes");
                CHECK_STRING(r.limit, cases[i].limit);
                CHECK_STRING(r.limit_value, cases[i].limit_value);
                CHECK_STRING(r.value, cases[i].value);
                spec.chunk = true; /* a longer message goes in pieces of the whole buffer */
                if (strcmp(r.limit, "buffer_bytes") == 0)
                        CHECK_INT(admission_check(&host, &spec, &cases[i].point, &r), 0);
        }
        topology_free(t);
        host_tree_remove(tree);
}

/* Pieces have the size that a queue takes by default, though a run could have more. */
static void pieces(void) {
        const struct spec spec = {.chunk = true};
        const struct point p = {.transport = TRANSPORT_MSGQ_POSIX, .message_size = 4 * MIB, .threads = 1};
        uint64_t bytes = 0;
        char tree[64];
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(admission_chunk_bytes(&(struct admission_host){.root = tree, .queues = &able}, &spec, &p, &bytes), 0);
        CHECK_UINT(bytes, 8192);
        CHECK_INT(admission_chunk_bytes(&(struct admission_host){.root = tree, .queues = &unable}, &spec, &p, &bytes),
                  0);
        CHECK_UINT(bytes, 3000);
        host_tree_remove(tree);
}

/* Together the queues must not be more than RLIMIT_MSGQUEUE, so pieces may have to be shorter. */
static void pieces_leave_room_for_all_queues(void) {
        static const struct {
                bool settable;
                uint64_t rlimit, message_size, depth;
                enum workload workload;
                uint32_t threads;
                const char *longest; /* message that the host's queues take; settable: the run's have it, too */
                uint64_t expected;
                bool refused;
        } rows[] = {
                {true, UINT64_MAX, 4 * MIB, 0, WORKLOAD_PINGPONG, 1, "800000\n", 800000, false},
                {true, 819200, 4 * MIB, 0, WORKLOAD_STREAM, 1, "800000\n", 800000, false},
                {true, 819200, 4 * MIB, 0, WORKLOAD_PINGPONG, 1, "800000\n", 819200 / 2 - 96, false},
                {true, 819200, 4 * MIB, 0, WORKLOAD_PINGPONG, 60, "8192\n", 819200 / 120 - 96, false},
                {true, 819200, 819200 / 120 - 95, 0, WORKLOAD_PINGPONG, 60, "8192\n", 819200 / 120 - 96, false},
                {true, 819200, 819200 / 120 - 96, 0, WORKLOAD_PINGPONG, 60, "8192\n", 0, false}, /* fits whole */
                {true, 819200, 4 * MIB, 10, WORKLOAD_STREAM, 1, "800000\n", 819200 / 10 - 96, false},
                {true, 819200, 4 * MIB, 10, WORKLOAD_PINGPONG, 3, "800000\n", 819200 / 60 - 96, false},
                /* five messages in each, which cannot be changed */
                {false, 50000, 4 * MIB, 0, WORKLOAD_STREAM, 1, "8192\n", 3000, false},
                {false, 5000, 4 * MIB, 0, WORKLOAD_STREAM, 1, "8192\n", 5000 / 5 - 96, false},
                {false, 5000, 4 * MIB, 2, WORKLOAD_PINGPONG, 1, "8192\n", 5000 / 4 - 96, false},
                /* there is no room for a byte in each */
                {true, 10000, 4 * MIB, 0, WORKLOAD_PINGPONG, 60, "8192\n", 8192, true},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const struct spec spec = {.chunk = true, .options = {.msgq_depth = rows[i].depth}};
                const struct point p = {.transport = TRANSPORT_MSGQ_POSIX,
                                        .workload = rows[i].workload,
                                        .message_size = rows[i].message_size,
                                        .threads = rows[i].threads};
                struct queue_host queues = unable;
                struct topology *t = NULL;
                struct refusal r = {.status = 0};
                uint64_t bytes = 1;
                char tree[64];
                queues.settable = rows[i].settable;
                queues.rlimit_msgqueue = rows[i].rlimit;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(host_tree_write(tree, "/proc/sys/fs/mqueue/msgsize_max", rows[i].longest), 0);
                CHECK_INT(topology_read(tree, &t), 0);
                const struct admission_host host = {.root = tree, .topology = t, .queues = &queues};
                CHECK_INT(admission_chunk_bytes(&host, &spec, &p, &bytes), 0);
                int x = admission_check(&host, &spec, &p, &r);
                topology_free(t);
                host_tree_remove(tree);
                if (bytes != rows[i].expected || x != (rows[i].refused ? -EINVAL : 0) ||
                    (rows[i].refused && strcmp(r.limit, "RLIMIT_MSGQUEUE") != 0))
                        CHECK_FAIL("row %zu: pieces of %" PRIu64 "; %d %s", i, bytes, x, r.detail);
        }
}

static uint64_t own_setting(enum queue_setting s) {
        struct hostfs h;
        uint64_t v = 0;
        if (hostfs_init(&h, "") == 0 && queues_default(&h, NULL, s, &v) < 0)
                v = 0;
        hostfs_deinit(&h);
        return v;
}

static uint64_t value_of(const char *path) {
        char line[64] = "";
        FILE *f = fopen(path, "re");
        if (f && !fgets(line, sizeof(line), f))
                line[0] = '\0';
        if (f)
                (void) fclose(f);
        return strtoull(line, NULL, 10);
}

/* As a process of that namespace sees it; 0: it cannot be entered. */
static uint64_t value_in(const struct ipcns *ns, const char *path) {
        int result[2];
        uint64_t v = 0;
        if (pipe(result) < 0)
                return 0;
        pid_t pid = fork();
        if (pid == 0) {
                if ((ns->user_fd < 0 || setns(ns->user_fd, CLONE_NEWUSER) == 0) && setns(ns->ipc_fd, CLONE_NEWIPC) == 0)
                        v = value_of(path);
                _exit(write(result[1], &v, sizeof(v)) == (ssize_t) sizeof(v) ? 0 : 1);
        }
        if (pid > 0) {
                if (read(result[0], &v, sizeof(v)) != (ssize_t) sizeof(v))
                        v = 0;
                (void) waitpid(pid, NULL, 0);
        }
        util_close(result[0]);
        util_close(result[1]);
        return v;
}

static uint64_t setting_in(const struct ipcns *ns, enum queue_setting s) {
        char path[100];
        (void) snprintf(path, sizeof(path), "/proc/sys/%s", queue_setting_terms[s].path);
        return value_in(ns, path);
}

static void namespaces_have_what_is_requested(void) {
        struct queue_host host;
        struct ipcns ns = IPCNS_NONE;
        char detail[DETAIL_MAX] = "";
        uint64_t before[QUEUE_SETTINGS];
        const uint64_t wanted[QUEUE_SETTINGS] = {
                [QUEUE_MSGMAX] = 100000, [QUEUE_MSGMNB] = 200000, [QUEUE_MSG_MAX] = 77, [QUEUE_QUEUES_MAX] = 999};
        for (unsigned s = 0; s < QUEUE_SETTINGS; s++)
                before[s] = own_setting((enum queue_setting) s);
        ipcns_probe(&host);
        if (host.trouble[0])
                SKIP("%s", host.trouble);
        if (!host.settable)
                SKIP("%s", host.set_trouble);
        CHECK_INT(ipcns_new(wanted, &ns, detail), 0);
        for (unsigned s = 0; s < QUEUE_SETTINGS; s++) {
                CHECK_UINT(setting_in(&ns, (enum queue_setting) s), wanted[s] ? wanted[s] : host.fresh[s]);
                CHECK_UINT(own_setting((enum queue_setting) s), before[s]);
        }
        ipcns_close(&ns);
        CHECK_INT(ns.ipc_fd, -1);
}

static void what_cannot_be_set_is_reported(void) {
        const uint64_t beyond[QUEUE_SETTINGS] = {[QUEUE_MSGMAX] = 8192, [QUEUE_MSG_MAX] = 65537};
        struct queue_host host;
        struct ipcns ns = IPCNS_NONE;
        char detail[DETAIL_MAX] = "";
        ipcns_probe(&host);
        if (host.trouble[0] || !host.settable)
                SKIP("%s%s", host.trouble, host.set_trouble);
        CHECK_INT(ipcns_new(beyond, &ns, detail), -EINVAL);
        CHECK_STRING(detail, "cannot set fs.mqueue.msg_max in an IPC namespace: Invalid argument");
        CHECK_INT(ns.ipc_fd, -1);
}

enum { NAMED = 1, NOT_FORBIDDEN, NOT_NAMED };

/* In a process of its own, since there is no way back from a limit of 0. */
static int make_where_it_is_forbidden(void) {
        pid_t parent = getpid(), pid = fork();
        int status;
        if (pid == 0) {
                struct ipcns ns = IPCNS_NONE;
                char detail[DETAIL_MAX] = "";
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                        _exit(-1);
                if (own_namespaces(CLONE_NEWUSER) || own_namespaces_write("/proc/sys/user/max_ipc_namespaces", "0") < 0)
                        _exit(NOT_FORBIDDEN);
                bool refused = ipcns_new(NULL, &ns, detail) < 0;
                _exit(refused && strstr(detail, "user.max_ipc_namespaces") ? NAMED : NOT_NAMED);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
                return -1;
        return WEXITSTATUS(status);
}

static void the_limit_of_namespaces_is_named(void) {
        int status = make_where_it_is_forbidden();
        if (status == NOT_FORBIDDEN)
                SKIP("no user namespace with a limit of its own can be made here");
        CHECK_INT(status, NAMED);
        CHECK(strstr(spawn_limits_meant(EAGAIN), "pids.max"));
        CHECK_STRING(spawn_limits_meant(EINVAL), "");
}

/* System V segments are limited where the run is: in a namespace that has the kernel's values, whatever the host's. */
static void segments_have_the_limits_of_their_namespace(void) {
        struct queue_host host;
        struct ipcns ns = IPCNS_NONE;
        char detail[DETAIL_MAX] = "", tree[64];
        ipcns_probe(&host);
        if (host.trouble[0])
                SKIP("%s", host.trouble);
        CHECK_INT(ipcns_new(NULL, &ns, detail), 0);
        CHECK_UINT(host.shmmax, value_in(&ns, "/proc/sys/kernel/shmmax"));
        CHECK_UINT(host.shmall, value_in(&ns, "/proc/sys/kernel/shmall"));
        ipcns_close(&ns);

        const struct {
                const struct queue_host *queues;
                uint64_t shmmax;
        } rows[] = {{&host, host.shmmax}, {&without, 1048576}, {NULL, 1048576}};
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(host_tree_write(tree, "/proc/sys/kernel/shmmax", "1048576\n"), 0);
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct hostfs h;
                struct capacity c;
                const struct capacity_question q = {.transport = TRANSPORT_SHM_SYSV, .queues = rows[i].queues};
                CHECK_INT(hostfs_init(&h, tree), 0);
                CHECK_INT(capacity_read(&h, &q, &c), 0);
                hostfs_deinit(&h);
                CHECK_STRING(c.limit, "kernel.shmmax");
                CHECK_UINT(c.value, rows[i].shmmax);
        }
        host_tree_remove(tree);
}

/* A probe that finds something always finds the kernel's own figures, and leaves no child. */
static void the_probe_leaves_nothing(void) {
        struct queue_host host;
        ipcns_probe(&host);
        CHECK(host.trouble[0] || host.fresh[QUEUE_MSGMAX] > 0);
        CHECK(host.trouble[0] || host.settable == !host.set_trouble[0]);
        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
        CHECK_INT(errno, ECHILD);
}

/* Stands in for the C library's: children that are killed and yet do not end. */
static bool unending;
static unsigned unlimited; /* waits that had no end */

int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
        if (unending && options & WNOHANG) {
                info->si_pid = 0;
                return 0;
        }
        unlimited += unending;
        return (int) syscall(SYS_waitid, type, id, info, options, NULL);
}

static void a_helper_that_does_not_end_is_abandoned(void) {
        struct queue_host host;
        struct ipcns ns = IPCNS_NONE;
        char detail[DETAIL_MAX] = "";
        ipcns_probe(&host);
        if (host.trouble[0])
                SKIP("%s", host.trouble);
        unending = true;
        CHECK_INT(ipcns_new(NULL, &ns, detail), 0);
        unending = false;
        CHECK_UINT(unlimited, 0);
        CHECK(ns.ipc_fd >= 0);
        ipcns_close(&ns);
        (void) waitpid(-1, NULL, 0); /* the helper, which was left */
}

int main(void) {
        RUN(plans);
        RUN(limits_are_named);
        RUN(a_size_in_bytes_is_so_many_messages);
        RUN(a_size_in_bytes_meets_the_limits);
        RUN(pieces);
        RUN(pieces_leave_room_for_all_queues);
        RUN(namespaces_have_what_is_requested);
        RUN(what_cannot_be_set_is_reported);
        RUN(the_limit_of_namespaces_is_named);
        RUN(segments_have_the_limits_of_their_namespace);
        RUN(a_helper_that_does_not_end_is_abandoned);
        RUN(the_probe_leaves_nothing);
        return check_end();
}
