/* SPDX-License-Identifier: MIT */

/*
 * An ipclab-agent whose first end takes memory until it is stopped, of another kind for each message size: of its own,
 * in files without a name, in System V segments that no process has mapped, or in processes that it forks. It leaves
 * room for nobody; the test puts it into a cgroup with little memory.
 *
 * The link makes it: message_receive() takes the set-up, which has the point.
 */

#include "schema/protocol/protocol.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define PIECE ((size_t) 1 << 20)
#define PIECES_MAX 2048
#define CHILDREN_MAX 400
#define OF_A_CHILD 8

int __wrap_message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail);
int __real_message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail);

static void take_own(void) {
        void *piece = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece != MAP_FAILED)
                memset(piece, 1, PIECE);
}

static void take_file(void) {
        static const char block[PIECE] = {1};
        int fd = memfd_create("greedy", MFD_CLOEXEC);
        (void) !write(fd, block, sizeof(block)); /* stays open */
}

static void take_segment(void) {
        int id = shmget(IPC_PRIVATE, PIECE, IPC_CREAT | 0600);
        void *piece = id < 0 ? NULL : shmat(id, NULL, 0);
        if (!piece || piece == (void *) -1) /* NOLINT(performance-no-int-to-ptr): what shmat(2) returns */
                return;
        memset(piece, 1, PIECE);
        (void) shmdt(piece);
}

static void take_child(void) {
        if (fork() != 0)
                return;
        for (int i = 0; i < OF_A_CHILD; i++)
                take_own();
        for (;;)
                (void) pause();
}

static void take_all(uint64_t kind) {
        static void (*const takes[])(void) = {NULL, take_own, take_file, take_segment, take_child};
        if (kind >= sizeof(takes) / sizeof(takes[0]) || !takes[kind])
                return;
        for (int i = 0; i < (takes[kind] == take_child ? CHILDREN_MAX : PIECES_MAX); i++)
                takes[kind]();
}

int __wrap_message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail) {
        int r = __real_message_receive(fd, ret, deadline_ns, ret_detail);
        if (r == 0 && ret->type == MESSAGE_SETUP && ret->setup.end == END_FIRST)
                take_all(ret->setup.point.message_size);
        return r;
}
