/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_QUEUES_H
#define IPCLAB_TESTS_HAND_QUEUES_H

/* The limits of message queues where a bench runs, and to which namespace they belong. */

#include "schema/terms.h"

#include <stdint.h>

/* Messages in a POSIX queue: two queues of 64 KiB messages fit the usual RLIMIT_MSGQUEUE. */
#define HAND_POSIX_DEPTH 6u

struct hand_queues {
        uint64_t msgmax, msgmnb; /* bytes of a System V message and queue; 0: there are none */
        uint64_t msgsize_max;    /* bytes of a POSIX message; 0: there are none */
        uint64_t posix_room;     /* the same, by what RLIMIT_MSGQUEUE has for two queues */
        char whose[200];         /* IPC namespace these settings are of */
};

/* Puts this process into an IPC namespace of its own, whose queues take 4 MiB where that is allowed. Where no namespace
 * can be made it stays where it is, and the settings there are not changed. To be called while there is one thread. */
void hand_queues_isolate(struct hand_queues *ret);

/* For a message of that size: NULL where it goes; else which limit it is that it exceeds. Static. */
const char *hand_queues_refuse(const struct hand_queues *q, enum transport t, uint64_t size);

/* How many messages a queue is to hold, of agents and of loops by hand; 0 of what is no queue. System V's hold 128 KiB,
 * or two messages, as far as option msgq_depth goes: in a queue of megabytes short ones would run full or empty for
 * seconds. */
uint64_t hand_queues_depth(const struct hand_queues *q, enum transport t, uint64_t size);

#endif
