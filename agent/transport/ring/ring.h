/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_RING_H
#define IPCLAB_AGENT_RING_H

/*
 * The ring of every transport that is shared memory: one writer, one reader, messages of one size, each whole in its
 * slot. The hot functions are here, whatever waits is in ring.c; the memory comes from ring-area.c.
 *
 * Each slot has a state word of its own, beside a short message in the same cache line. So a message costs a hand-over
 * of the lines that it fills and of no index: the writer stores the message and then the state (release), the reader
 * looks at the state of the slot that is next (acquire) and reads the message where it lies. In the other direction
 * one word per ring says how many messages the reader is done with. The reader writes it only now and then, every
 * quarter of the ring, and the writer looks at it only when the room that it knows of is used up. That is enough: a
 * reader that has read all there is has told of more than half of the ring.
 *
 * The writer asks for the lines that it is about to write some messages ahead, as far as it knows them to be free: a
 * slot's first and, where there are but two, the other; of longer messages the CPU's own prefetchers see what comes.
 *
 * A message is published at once, each by its own word; there is nothing that a writer which stops could leave behind.
 *
 *      state   2 * (number + 1) of the message in the slot, modulo 2^32, and the lowest bit: the reader sleeps here
 *      freed   2 * the number of messages that the reader is done with, and the lowest bit: the writer sleeps here
 *
 * A reader of a stream that has caught up lets messages gather before it looks again: at the writer's heels it takes
 * each line from the writer just before the store, and all that the stream then does is hand lines to and fro, four
 * times as long a message. Rather than catch up, it lets them gather before: where it tells of what it is done with,
 * every quarter of the ring, unless the writer is more than another quarter ahead. In a large ring lines have then left
 * the writer's own caches when they are read, and nobody waits for the other.
 *
 * That pause is as long as a fast writer (RING_FAST_BYTES_PER_NS) takes for a quarter of the ring, so that the ring
 * does not run full meanwhile: of 2 to 200 us in a ring of 4 MiB, 20 to 50 moved the most, at all sizes, and messages
 * of 1 and 64 bytes at twice the rate of 2 us. It is spent spinning, whatever `wait` says. After one that ended with
 * less than RING_BATCH messages to read there is none for the next RING_BARREN_PAUSES times: the reader of a slow
 * writer, or of one that shares its CPU, has nothing to win. Nor is there any behind the last messages of a count, or
 * in an open loop, where each message's time counts.
 *
 * Who waits does so in one of three ways, constant in each loop:
 *
 *      spin    looks at the word again and again. The other side only stores.
 *      block   sets the lowest bit and sleeps on the word, which is a futex (man 2 futex). The other side exchanges
 *              the word, so that it learns of the sleeper in the same instruction, and wakes it: without a sleeper
 *              there is no system call, and no fence beside the exchange.
 *      hybrid  spins for about RING_SPIN_NS, then blocks.
 */

#include "agent/loop/loops.h"
#include "schema/transport/ring-layout.h"

/* About what a sleep and a wake-up cost; in round trips, at most twice the best choice. */
#define RING_SPIN_NS (50 * NSEC_PER_USEC)
/* Pauses: seen on CPUs that share a cache were 16 bytes of the shortest messages in a nanosecond and 40 of 4 KiB.
 * Longer pauses were no better, and those of a slow writer's reader are in vain. Of fewer messages, which are long
 * ones, each takes more than a hand-over anyway. */
#define RING_FAST_BYTES_PER_NS 32u
#define RING_GATHER_NS_MAX (32 * NSEC_PER_USEC)
#define RING_GATHER_SLOTS 512u
#define RING_BATCH 8u
#define RING_BARREN_PAUSES 64u
#define RING_SLEEPS 1u
#define RING_AHEAD 16u /* slots whose first lines the writer asks for before it needs them */

/* Where an end is in its ring: what changes with every message. */
struct ring_cursor {
        unsigned char *slot; /* of the next message */
        uint32_t due;        /* its state once it is published */
        uint32_t left;       /* how many messages fit for certain; a reader's: until it tells of them */
};

/* One end's view of one ring; nobody else's. */
struct ring {
        alignas(WORKER_LINE) struct ring_cursor at;
        uint32_t tell_every;
        size_t slot_bytes, message_at, size;
        size_t ahead, length; /* writer: bytes to the slot to prepare; of all slots */
        size_t other_line;    /* writer: of a slot of two lines, else 0 */
        unsigned char *slots, *end;
        uint32_t *freed;
        uint32_t n_slots;
        uint32_t barren;        /* reader: pauses to be left out */
        bool may_stop;          /* the reader's wait ends when its worker has nothing more to do */
        uint64_t gather_ns;     /* reader: how long messages may wait for each other; 0 = not */
        uint64_t sleeps, wakes; /* futex calls; read by the leader when the worker rests */
};

/* A worker's channel. A stream uses one of the two. */
struct ring_channel {
        struct ring out, in;
};

/* memory: layout->ring_bytes, zeroed, the same for both ends; size: of a message. */
void ring_init(struct ring *r, const struct ring_layout *layout, unsigned char *memory, size_t size);
/* What else a reader does; see the fields. It gathers only in a ring of many slots. */
void ring_init_reader(struct ring *r, bool may_stop, bool gathers);

/* Until there is room, of which *ret says how much, before the message of state `due`; or until the next message is
 * there. 0; WORKER_STOP; negative errno with w->failure. */
int ring_wait_room(struct worker *w, struct ring *r, uint32_t due, uint32_t *ret, enum wait_mode wait);
int ring_wait_message(struct worker *w, struct ring *r, struct ring_cursor at, enum wait_mode wait);
void ring_wake(struct ring *r, uint32_t *word);
/* Lets messages gather unless the writer is more than a quarter of the ring ahead. */
void ring_fall_back(const struct worker *w, struct ring *r, struct ring_cursor at);

LOOP_INLINE void ring_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb" ::: "memory");
#endif
}

/* The line is going to be written: it leaves the reader's cache now and not when the store waits for it. An exchange
 * waits for all stores before it, so without this a writer that blocks pays a hand-over for every message. */
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
LOOP_INLINE void ring_tell(struct ring *r, uint32_t *word, uint32_t value, enum wait_mode wait) {
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

/* The slot that is RING_AHEAD behind this one is going to be written; in a ring of more slots than that. */
LOOP_INLINE void ring_prepare_ahead(const struct ring *r, unsigned char *slot) {
        slot += r->ahead;
        slot = slot < r->end ? slot : slot - r->length;
        ring_prepare(slot);
        ring_prepare(slot + r->other_line);
}

/* Until the next message has a slot. `at` is not passed on, so that a loop's own may live in registers. */
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
        ring_tell(r, ring_state(at->slot), at->due, wait);
        ring_advance(r, at);
        if (--at->left > RING_AHEAD) /* else that slot may hold a message that is still to be read */
                ring_prepare_ahead(r, at->slot);
        return 0;
}

LOOP_INLINE int ring_send(struct worker *w, struct ring *r, const unsigned char *message, enum wait_mode wait) {
        return ring_send_at(w, r, &r->at, message, wait);
}

/* The sender's loop of a stream whose messages are all w->buffer as it is. In loop_sender() the compiler has to load
 * and store the place in the ring for every message, as the stores to slot and count might be to it: with 64 bytes that
 * took a fifth of the time. */
LOOP_INLINE int ring_sender(struct worker *w, struct ring *r, enum wait_mode wait) {
        struct ring_cursor at = r->at;
        uint64_t n = w->messages;
        int e = 0;
        while (n < worker_limit(w)) {
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
        at->left = r->tell_every;
        ring_tell(r, r->freed, freed, wait);
        if (r->gather_ns > 0)
                ring_fall_back(w, r, *at);
}

LOOP_INLINE int ring_receive(struct worker *w, struct ring *r, unsigned char **ret, enum wait_mode wait) {
        return ring_receive_at(w, r, &r->at, ret, wait);
}

LOOP_INLINE void ring_release(const struct worker *w, struct ring *r, enum wait_mode wait) {
        ring_release_at(w, r, &r->at, wait);
}

/* The receiver's, of messages of which no checksum is wanted. The less there is to do for each, the more lines are on
 * their way at once. */
LOOP_INLINE int ring_receiver(struct worker *w, struct ring *r, enum verify verify, enum wait_mode wait) {
        struct ring_cursor at = r->at;
        uint64_t n = w->messages, sink = 0;
        int e = 0;
        while (n < worker_limit(w)) {
                unsigned char *message;
                e = ring_receive_at(w, r, &at, &message, wait);
                if (LOOP_UNLIKELY(e))
                        break;
                if (verify == VERIFY_TOUCH)
                        sink += pattern_touch(message, r->size);
                ring_release_at(w, r, &at, wait);
                loop_completed(w, ++n);
        }
        r->at = at;
        w->sink = sink;
        return e;
}

#endif
