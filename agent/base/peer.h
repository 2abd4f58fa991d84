/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PEER_H
#define IPCLAB_AGENT_PEER_H

/*
 * The channel between a run's two agents: small packets in a fixed order, with descriptors where a transport passes
 * some. Only the leader speaks here. The order of a run:
 *
 *      PEER_TRANSPORT …       the transport's own rendezvous
 *      PEER_CLOSED    second  its window (or warm-up) is over
 *      PEER_SENT      first   how many messages thread i has sent in all
 *      PEER_DRAINED   second  all of them have been received
 *      PEER_GO        first   after a warm-up that is followed by a count of messages: when the window begins
 *      PEER_DONE      both    after a count of messages: all of them have been sent, or received
 */

#include <stdbool.h>
#include <stdint.h>

struct agent;

enum peer_kind { PEER_TRANSPORT = 1, PEER_CLOSED, PEER_SENT, PEER_DRAINED, PEER_GO, PEER_DONE };

#define PEER_FDS_MAX 4u

struct peer_packet {
        uint32_t kind;
        uint32_t thread; /* PEER_TRANSPORT, PEER_SENT */
        uint64_t value;
};

/* Whether this is a socket such as agents talk over. */
bool peer_is_packet_socket(int fd);

/* 0; negative errno with a->failure (it blames the peer when that is gone, silent or out of turn). */
int peer_send(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t value, uint64_t deadline_ns);
int peer_send_fds(struct agent *a, uint32_t thread, const int *fds, unsigned n_fds, uint64_t deadline_ns);

/* The next packet, which must be of this kind and thread. *ret_value may be NULL. */
int peer_receive(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t *ret_value, uint64_t deadline_ns);
/* A PEER_TRANSPORT packet with exactly n_fds descriptors, which the caller closes. */
int peer_receive_fds(struct agent *a, uint32_t thread, int *ret_fds, unsigned n_fds, uint64_t deadline_ns);

#endif
