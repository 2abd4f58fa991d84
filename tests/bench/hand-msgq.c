/* SPDX-License-Identifier: MIT */

/* Message queues by hand: msgsnd(2) and msgrcv(2), mq_send(3) and mq_receive(3), in a process with one thread. */

#include "tests/bench/hand-loops.h"

#include <mqueue.h>
#include <sys/msg.h>

/* A System V message as its calls want it: the type lies before the bytes. */
static int open_sysv(struct hand_end *e) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        unsigned char *memory = hand_memory(page + e->size);
        if (!memory)
                return -1;
        e->buffer = memory + page;
        memcpy(e->buffer - sizeof(long), &(long){1}, sizeof(long));
        return 0;
}

HAND_INLINE int send_sysv(struct hand_end *e, unsigned char *message) {
        return msgsnd(e->out, message - sizeof(long), e->size, 0);
}

HAND_INLINE int receive_sysv(struct hand_end *e) {
        return msgrcv(e->in, e->buffer - sizeof(long), e->size, 0, 0) == (ssize_t) e->size ? 0 : -1;
}

HAND_INLINE int send_posix(struct hand_end *e, unsigned char *message) {
        return mq_send(e->out, (const char *) message, e->size, 0);
}

HAND_INLINE int receive_posix(struct hand_end *e) {
        return mq_receive(e->in, (char *) e->buffer, e->size, NULL) == (ssize_t) e->size ? 0 : -1;
}

static const struct hand_way sysv_way = {
        .open = open_sysv, .next = hand_next_buffer, .send = send_sysv, .receive = receive_sysv};
static const struct hand_way posix_way = {.next = hand_next_buffer, .send = send_posix, .receive = receive_posix};
HAND_LOOPS(sysv, sysv_way);
HAND_LOOPS(posix, posix_way);
