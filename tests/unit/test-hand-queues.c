/* SPDX-License-Identifier: MIT */

/* The limits of queues that a bench uses are the kernel's, and are named with their namespace. */

#include "tests/bench/hand-queues.h"

#include "schema/util.h"
#include "tests/bench/own-namespaces.h"
#include "tests/unit/check.h"

#include <mqueue.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* 0; -errno of sending a System V message of that size where it cannot wait for room. */
static int try_sysv(uint64_t size) {
        _cleanup_free_ long *message = calloc(1, sizeof *message + size);
        int id = msgget(IPC_PRIVATE, 0600);
        if (!message || id < 0)
                return -errno;
        *message = 1;
        int r = msgsnd(id, message, size, IPC_NOWAIT) < 0 ? -errno : 0;
        (void) msgctl(id, IPC_RMID, NULL);
        return r;
}

/* 0; -errno of making the two queues of a round trip. */
static int try_posix(uint64_t size) {
        struct mq_attr attr = {.mq_maxmsg = HAND_POSIX_DEPTH, .mq_msgsize = (long) size};
        mqd_t made[2];
        int r = 0;
        for (unsigned i = 0; i < 2; i++) {
                char name[40];
                (void) snprintf(name, sizeof name, "/ipclab-test-%d-%u", getpid(), i);
                made[i] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
                if (made[i] < 0)
                        r = -errno;
                (void) mq_unlink(name);
        }
        for (unsigned i = 0; i < 2; i++)
                if (made[i] >= 0)
                        (void) mq_close(made[i]);
        return r;
}

static uint64_t least(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static void the_limits_are_those_that_the_kernel_applies(void) {
        struct hand_queues q;
        hand_queues_isolate(&q);
        uint64_t sysv = least(q.msgmax, q.msgmnb), posix = least(q.msgsize_max, q.posix_room);
        if (sysv == 0 || posix == 0)
                SKIP("a kernel without message queues");
        CHECK_INT(try_sysv(sysv), 0);
        CHECK(!hand_queues_refuse(&q, TRANSPORT_MSGQ_SYSV, sysv));
        CHECK(try_sysv(sysv + 1) < 0);
        CHECK(strstr(hand_queues_refuse(&q, TRANSPORT_MSGQ_SYSV, sysv + 1), q.whose));
        CHECK_INT(try_posix(posix), 0);
        CHECK(!hand_queues_refuse(&q, TRANSPORT_MSGQ_POSIX, posix));
        CHECK(hand_queues_refuse(&q, TRANSPORT_MSGQ_POSIX, posix + 1));
        CHECK(!hand_queues_refuse(&q, TRANSPORT_PIPE, UINT64_MAX));
}

/* A message of 4 MiB in a System V queue is the usual largest of a bench, and of a run. */
static void a_namespace_of_ones_own_has_room_for_two_long_messages(void) {
        struct hand_queues q;
        hand_queues_isolate(&q);
        if (strcmp(q.whose, "an IPC namespace of its own") != 0)
                SKIP("%s", q.whose);
        CHECK_UINT(q.msgmax, 4u << 20);
        CHECK_UINT(q.msgmnb, 8u << 20);
        CHECK_UINT(q.msgsize_max, 4u << 20);
        CHECK_UINT(hand_queues_depth(&q, TRANSPORT_MSGQ_SYSV, 4u << 20), 2);
}

/* Where neither kind of namespace is to be had: as in a container. */
static bool forbid_namespaces(void) {
        return !own_namespaces(CLONE_NEWUSER) && own_namespaces_write("/proc/sys/user/max_ipc_namespaces", "0") == 0 &&
               own_namespaces_write("/proc/sys/user/max_user_namespaces", "0") == 0;
}

enum { ISOLATED = 1, NOT_FORBIDDEN };

/* In a process of its own, since there is no way back. Its exit status, or -1. */
static int isolate_where_it_is_forbidden(struct hand_queues *ret) {
        pid_t parent = getpid(), pid = fork();
        int status;
        if (pid == 0) {
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                        _exit(-1);
                if (!forbid_namespaces())
                        _exit(NOT_FORBIDDEN);
                hand_queues_isolate(ret);
                _exit(ISOLATED);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
                return -1;
        return WEXITSTATUS(status);
}

static uint64_t present(const char *path) {
        unsigned long long v = 0;
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        return f && fscanf(f, "%llu", &v) == 1 ? v : 0;
}

/* What is set there is the host's, or its tenants': it is gone by, and left as it is. */
static void without_a_namespace_the_present_limits_are_gone_by(void) {
        struct hand_queues *q = mmap(NULL, sizeof *q, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(q != MAP_FAILED);
        uint64_t msgmax = present("/proc/sys/kernel/msgmax");
        int status = isolate_where_it_is_forbidden(q);
        struct hand_queues got = *q;
        (void) munmap(q, sizeof *q);
        if (status == NOT_FORBIDDEN)
                SKIP("no user namespace in which others could be forbidden");
        CHECK_INT(status, ISOLATED);
        CHECK_UINT(got.msgmax, msgmax);
        CHECK_UINT(got.msgmnb, present("/proc/sys/kernel/msgmnb"));
        CHECK_UINT(got.msgsize_max, present("/proc/sys/fs/mqueue/msgsize_max"));
        CHECK_UINT(present("/proc/sys/kernel/msgmax"), msgmax);
        const char *words = hand_queues_refuse(&got, TRANSPORT_MSGQ_SYSV, msgmax + 1);
        CHECK(words && strstr(words, "kernel.msgmax is "));
        CHECK(strstr(words, "the present IPC namespace"));
}

static void queues_hold_as_much_as_is_good_for_a_stream(void) {
        struct hand_queues q = {.msgmax = 4u << 20, .msgmnb = 8u << 20, .msgsize_max = 8192};
        static const struct {
                uint64_t size, depth;
        } cases[] = {{1, 65536}, {2, 65536}, {64, 2048}, {65536, 2}, {100000, 2}, {4u << 20, 2}, {5u << 20, 1}, {0, 0}};
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK_UINT(hand_queues_depth(&q, TRANSPORT_MSGQ_SYSV, cases[i].size), cases[i].depth);
        CHECK_UINT(hand_queues_depth(&q, TRANSPORT_MSGQ_POSIX, 64), HAND_POSIX_DEPTH);
        CHECK_UINT(hand_queues_depth(&q, TRANSPORT_PIPE, 64), 0);
        q.msgmnb = 16384; /* as the kernel makes a namespace */
        CHECK_UINT(hand_queues_depth(&q, TRANSPORT_MSGQ_SYSV, 1), 16384);
        CHECK_UINT(hand_queues_depth(&q, TRANSPORT_MSGQ_SYSV, 8192), 2);
}

int main(void) {
        RUN(without_a_namespace_the_present_limits_are_gone_by); /* first: the others leave the namespace */
        RUN(the_limits_are_those_that_the_kernel_applies);
        RUN(a_namespace_of_ones_own_has_room_for_two_long_messages);
        RUN(queues_hold_as_much_as_is_good_for_a_stream);
        return check_end();
}
