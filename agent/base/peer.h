/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The channel between a run's two agents: small packets in a fixed order, with descriptors where a transport passes
 * some. Only the leaders send and receive on it. The order of a run:
 *
 *      PEER_TRANSPORT …       the transport's own rendezvous
 *      PEER_PROBE     first   whether it has a page for the probes; if so, a PEER_TRANSPORT with it
 *      PEER_PROBE     both    ready for the probe before the warm-up, and whether the page is there. If it is not,
 *                             each end sends one more after its probe, for which the second end awaits the first's;
 *                             and once more, in any case, after the probes of its further threads, where it has any
 *      PEER_CLOSED    second  its window (or warm-up) is over
 *      PEER_SENT      first   the number of messages that thread i has sent in all
 *      PEER_DRAINED   second  all of them have been received
 *      PEER_GO        first   the start of a window that a count of messages ends, after the warm-up
 *      PEER_DONE      both    after a count of messages: this end has sent, or received, all of them
 *      PEER_PROBE     both    ready for the probe after the window, likewise
 */

#include <stdbool.h>
#include <stdint.h>

struct agent;

enum peer_kind { PEER_TRANSPORT = 1, PEER_CLOSED, PEER_SENT, PEER_DRAINED, PEER_GO, PEER_DONE, PEER_PROBE };

#define PEER_FDS_MAX 4u

struct peer_packet {
        uint32_t kind;
        uint32_t thread; /* PEER_TRANSPORT, PEER_SENT */
        uint64_t value;
};

/* Whether the descriptor is a socket of the type that agents exchange packets over. */
bool peer_is_packet_socket(int fd);

/* 0; negative errno with a->failure, which names the peer as the cause when it has closed the channel, misses the
 * deadline or sends an unexpected packet. */
int peer_send(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t value, uint64_t deadline_ns);
int peer_send_fds(struct agent *a, uint32_t thread, const int *fds, unsigned n_fds, uint64_t deadline_ns);

/* Receives the next packet, which must be of this kind and thread. *ret_value may be NULL. */
int peer_receive(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t *ret_value, uint64_t deadline_ns);
/* Receives a PEER_TRANSPORT packet with exactly n_fds descriptors, which the caller closes. */
int peer_receive_fds(struct agent *a, uint32_t thread, int *ret_fds, unsigned n_fds, uint64_t deadline_ns);
