/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The ring of every transport that is shared memory: one writer, one reader, messages of one size, each whole in its
 * slot. The hot functions are here, the waits in ring.c, and the memory in area.c.
 *
 * Each slot has a state word of its own, beside a short message in the same cache line. So a message costs a hand-over
 * of the lines that it fills and of no index: the writer stores the message and then the state (release), the reader
 * loads the state of the next slot (acquire) and reads the message in place. In the other direction one word per ring
 * holds the number of messages that the reader is done with. The reader publishes it every quarter of the ring, and the
 * writer loads it only when its known room is used up. That suffices: a reader that has read all messages has published
 * more than half of the ring.
 *
 * The writer prefetches the lines that it will write some messages ahead, as far as it knows them to be free: a slot's
 * first and, of two lines, the other; for longer messages the CPU's own prefetchers suffice.
 *
 * Each message is published at once, by its own word, so that a writer that stops leaves no message unpublished.
 *
 *      state   2 * (number + 1) of the message in the slot, modulo 2^32, and the lowest bit: the reader sleeps here
 *      freed   2 * the number of messages that the reader is done with, and the lowest bit: the writer sleeps here
 *
 * A reader of a stream that has caught up with the writer pauses so that messages gather: directly behind the writer it
 * takes each line from the writer's cache just before the next store, and the transfers of lines make a message four
 * times as long. To avoid catching up, it also pauses when it publishes the freed messages, every quarter of the ring,
 * unless the writer is more than another quarter ahead. In a large ring the lines have then left the writer's own
 * caches when they are read, and neither end waits for the other.
 *
 * That pause is as long as a fast writer (RING_FAST_BYTES_PER_NS) takes for a quarter of the ring, so that the ring
 * does not become full meanwhile: of 2 to 200 us in a ring of 4 MiB, 20 to 50 moved the most, at all sizes, and
 * messages of 1 and 64 bytes at twice the rate of 2 us. The reader spins during a pause in every wait mode. After a
 * pause that ended with less than RING_BATCH messages to read the reader skips the next RING_SKIPPED_PAUSES: it gains
 * nothing when the writer is slow or shares its CPU. It also skips those after the last messages of a count, and all of
 * them in an open loop, where each message's latency is measured.
 *
 * A wait has one of three modes, constant in each loop:
 *
 *      spin    loads the word repeatedly. The other side only stores.
 *      block   sets the lowest bit and sleeps on the word, which is a futex (man 2 futex). The other side exchanges
 *              the word, so that the same instruction returns the sleeper's bit, and wakes it: without a sleeper
 *              there is no system call, and no fence beside the exchange.
 *      hybrid  spins for about RING_SPIN_NS, then blocks.
 */

#include "agent/loop/loops.h"
#include "schema/transport/ring-layout.h"

/* About the cost of a sleep and a wake-up; in round trips, a hybrid wait then costs at most twice the better choice. */
#define RING_SPIN_NS (50 * NSEC_PER_USEC)
/* Pauses: measured on CPUs that share a cache were 16 bytes per nanosecond for the shortest messages and 40 for 4 KiB.
 * Longer pauses were no better, and those of a slow writer's reader gain nothing. In a ring of fewer slots, whose
 * messages are long, each message takes longer than a hand-over. */
#define RING_FAST_BYTES_PER_NS 32u
#define RING_GATHER_NS_MAX (32 * NSEC_PER_USEC)
#define RING_GATHER_SLOTS 512u
#define RING_BATCH 8u
#define RING_SKIPPED_PAUSES 64u
#define RING_SLEEPS 1u
#define RING_AHEAD 16u /* the distance in slots at which the writer prefetches first lines */

/* An end's position in its ring, which changes with every message. */
struct ring_cursor {
        unsigned char *slot; /* of the next message */
        uint32_t due;        /* its state once it is published */
        uint32_t left;       /* a writer's: how many messages certainly fit; a reader's: how many until it publishes */
};

/* One end's private view of one ring. */
struct ring {
        alignas(WORKER_LINE) struct ring_cursor at;
        uint32_t publish_interval;
        size_t slot_bytes, message_at, size;
        size_t ahead, length; /* writer: bytes to the slot to prepare; of all slots */
        size_t other_line;    /* writer: of a slot of two lines, else 0 */
        unsigned char *slots, *end;
        uint32_t *freed;
        uint32_t n_slots;
        uint32_t skip;          /* reader: number of pauses to skip */
        bool may_stop;          /* the reader's wait ends when its worker's loop is over */
        uint64_t gather_ns;     /* reader: duration of a pause; 0 = no pauses */
        uint64_t sleeps, wakes; /* futex calls; the leader reads them when the worker rests */
};

/* A worker's channel. A stream uses one of the two. */
struct ring_channel {
        struct ring out, in;
};

/* memory: layout->ring_bytes, zeroed, the same for both ends; size: of a message. */
void ring_init(struct ring *r, const struct ring_layout *layout, unsigned char *memory, size_t size);
/* Initializes the reader's fields. A reader pauses only in a ring of many slots. */
void ring_init_reader(struct ring *r, bool may_stop, bool gathers);

/* Wait until the message of state `due` has room, and return the room in *ret; or until the next message is published.
 * 0; WORKER_STOP; negative errno with w->failure. */
int ring_wait_room(struct worker *w, struct ring *r, uint32_t due, uint32_t *ret, enum wait_mode wait);
int ring_wait_message(struct worker *w, struct ring *r, struct ring_cursor at, enum wait_mode wait);
void ring_wake(struct ring *r, uint32_t *word);
/* Pauses, unless the writer is more than a quarter of the ring ahead. */
void ring_fall_back(const struct worker *w, struct ring *r, struct ring_cursor at);

LOOP_INLINE void ring_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb" ::: "memory");
#endif
}

/* Prefetches a line for a store, so that the store does not wait for its transfer from the reader's cache. An exchange
 * waits for all stores before it, so without this a writer that blocks waits for a transfer with every message. */
LOOP_INLINE void ring_prepare(const unsigned char *line) {
#if defined(__x86_64__)
        __asm__ volatile("prefetchw %0" ::"m"(*line));
#else
        __builtin_prefetch(line, 1);
#endif
}

LOOP_INLINE uint32_t *ring_state(unsigned char *slot) {
        return (uint32_t *) (void *) slot;
}

/* Stores a word that the other side may sleep on. */
LOOP_INLINE void ring_publish(struct ring *r, uint32_t *word, uint32_t value, enum wait_mode wait) {
        if (wait == WAIT_SPIN) {
                __atomic_store_n(word, value, __ATOMIC_RELEASE);
                return;
        }
        if (LOOP_UNLIKELY(__atomic_exchange_n(word, value, __ATOMIC_RELEASE) & RING_SLEEPS))
                ring_wake(r, word);
}

LOOP_INLINE void ring_advance(const struct ring *r, struct ring_cursor *at) {
        at->due += 2;
        at->slot += r->slot_bytes;
        if (LOOP_UNLIKELY(at->slot == r->end))
                at->slot = r->slots;
}

/* Prefetches the slot that is RING_AHEAD after this one; in a ring of more slots than that. */
LOOP_INLINE void ring_prepare_ahead(const struct ring *r, unsigned char *slot) {
        slot += r->ahead;
        slot = slot < r->end ? slot : slot - r->length;
        ring_prepare(slot);
        ring_prepare(slot + r->other_line);
}

/* Waits until the next message has a slot. `at` is not passed on, so that a loop's own may live in registers. */
LOOP_INLINE int ring_acquire_at(struct worker *w, struct ring *r, struct ring_cursor *at, enum wait_mode wait) {
        if (LOOP_UNLIKELY(at->left == 0)) {
                uint32_t room = 0;
                int e = ring_wait_room(w, r, at->due, &room, wait);
                if (LOOP_UNLIKELY(e))
                        return e;
                at->left = room;
        }
        return 0;
}

LOOP_INLINE int ring_send_at(struct worker *w, struct ring *r, struct ring_cursor *at, const unsigned char *message,
                             enum wait_mode wait) {
        int e = ring_acquire_at(w, r, at, wait);
        if (LOOP_UNLIKELY(e))
                return e;
        memcpy(at->slot + r->message_at, message, r->size);
        ring_publish(r, ring_state(at->slot), at->due, wait);
        ring_advance(r, at);
        if (--at->left > RING_AHEAD) /* else that slot may hold an unread message */
                ring_prepare_ahead(r, at->slot);
        return 0;
}

LOOP_INLINE int ring_send(struct worker *w, struct ring *r, const unsigned char *message, enum wait_mode wait) {
        return ring_send_at(w, r, &r->at, message, wait);
}

/* The sender's loop of a stream whose messages lie in w->buffer. In loop_sender() the compiler must load and store the
 * position in the ring for every message, as the stores to slot and count may alias it: with 64 bytes that took a fifth
 * of the time. */
LOOP_INLINE int ring_sender(struct worker *w, struct ring *r, enum verify verify, enum wait_mode wait) {
        struct ring_cursor at = r->at;
        uint64_t n = w->messages;
        int e = 0;
        while (n < worker_limit(w)) {
                if (verify == VERIFY_CHECKSUM)
                        pattern_fill(w->buffer, r->size, pattern_key(w->index, 0, n));
                e = ring_send_at(w, r, &at, w->buffer, wait);
                if (LOOP_UNLIKELY(e))
                        break;
                loop_completed(w, ++n);
        }
        r->at = at;
        return e;
}

LOOP_INLINE int ring_receive_at(struct worker *w, struct ring *r, const struct ring_cursor *at, unsigned char **ret,
                                enum wait_mode wait) {
        if (__atomic_load_n(ring_state(at->slot), __ATOMIC_ACQUIRE) != at->due) {
                int e = ring_wait_message(w, r, *at, wait);
                if (LOOP_UNLIKELY(e))
                        return e;
        }
        *ret = at->slot + r->message_at;
        return 0;
}

LOOP_INLINE void ring_release_at(const struct worker *w, struct ring *r, struct ring_cursor *at, enum wait_mode wait) {
        uint32_t freed = at->due;
        ring_advance(r, at);
        if (--at->left > 0)
                return;
        at->left = r->publish_interval;
        ring_publish(r, r->freed, freed, wait);
        if (r->gather_ns > 0)
                ring_fall_back(w, r, *at);
}

LOOP_INLINE int ring_receive(struct worker *w, struct ring *r, unsigned char **ret, enum wait_mode wait) {
        return ring_receive_at(w, r, &r->at, ret, wait);
}

LOOP_INLINE void ring_release(const struct worker *w, struct ring *r, enum wait_mode wait) {
        ring_release_at(w, r, &r->at, wait);
}

/* The receiver's loop of such a stream. The less work each message takes, the more lines the CPU fetches at once. */
LOOP_INLINE int ring_receiver(struct worker *w, struct ring *r, enum verify verify, enum wait_mode wait) {
        struct ring_cursor at = r->at;
        uint64_t n = w->messages, sink = 0;
        int e = 0;
        while (n < worker_limit(w)) {
                unsigned char *message;
                e = ring_receive_at(w, r, &at, &message, wait);
                if (LOOP_UNLIKELY(e))
                        break;
                e = loop_verify(w, message, verify, 0, n, &sink);
                if (LOOP_UNLIKELY(e))
                        break;
                ring_release_at(w, r, &at, wait);
                loop_completed(w, ++n);
        }
        r->at = at;
        w->sink = sink;
        return e;
}
