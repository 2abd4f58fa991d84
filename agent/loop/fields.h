/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_FIELDS_H
#define IPCLAB_AGENT_FIELDS_H

/*
 * A message that lies in several places (copy modes of pipes and sockets): the fields that a program would gather with
 * writev(2) or sendmsg(2). Their lengths differ by at most a byte, and none is empty, so that a message has at most as
 * many fields as bytes.
 *
 * Each lies apart from the next, as allocations of their own do: on cache lines of its own, and from half a page on it
 * begins on a page's boundary. For a kernel that only copies, one place is as good as another; one that sends pages as
 * they lie (MSG_ZEROCOPY, sendmsg_zc) takes an entry of the socket buffer for each page that a field touches. A field
 * of two pages that begins within one touches three, and eight of those no longer fit into the 17 entries of one socket
 * buffer. Whatever the copy mode, the layout is the same, so that what is compared is what becomes of the fields and
 * not where they were.
 *
 * Source: Linux net/core/datagram.c (zerocopy_fill_skb_from_iter), include/linux/skbuff.h (MAX_SKB_FRAGS).
 */

#include "agent/base/worker.h"
#include "schema/spec/spec.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct fields {
        struct iovec iov[SPEC_FIELDS_MAX];
        unsigned n;
        unsigned char *memory;
        size_t length; /* of memory */
};

_Static_assert(SPEC_FIELDS_MAX <= IOV_MAX, "a message goes in one call");

/* Fields for messages of `size` bytes, in the worker's own thread. 0; -EINVAL; -ENOMEM; what buffer_map() returns. */
int fields_new(struct worker *w, size_t size, unsigned n, struct fields **ret);
struct fields *fields_free(struct fields *f);

/* The pattern's bytes (pattern.h) over all fields, as if they were one message. */
void fields_fill(const struct fields *f, uint64_t key);

/* What remains behind the first `done` bytes, which are less than all. Returns how many entries of ret it takes. */
unsigned fields_after(const struct fields *f, size_t done, struct iovec ret[SPEC_FIELDS_MAX]);

/* The bytes [from, from + length), which are not more than there are: a packet's. Returns how many entries it takes. */
unsigned fields_part(const struct fields *f, size_t from, size_t length, struct iovec ret[SPEC_FIELDS_MAX]);

/* Parts of a struct channel whose worker's `channel` is a struct fields: a message in several places has no address. */
static inline int fields_acquire(struct worker *w, unsigned char **ret) {
        (void) w;
        *ret = NULL;
        return 0;
}

static inline void fields_fill_message(struct worker *w, unsigned char *message, uint64_t key) {
        (void) message;
        fields_fill(w->channel, key);
}

#endif
