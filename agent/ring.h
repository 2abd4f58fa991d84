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
 * times as long a message. The longer it rests, the less of its time it spends there; but the ring must not run full
 * meanwhile. So it rests as long as a fast writer (RING_FAST_BYTES_PER_NS) takes for a quarter of the ring: of rests of
 * 2 to 200 us in a ring of 4 MiB, 20 to 50 moved the most, at all sizes, and messages of 1 and 64 bytes at twice the
 * rate of 2 us. It does so in rings of many slots, and leaves it be for RING_BARREN_WAITS waits when nothing came in
 * that time: a slow writer's reader, or one that shares its CPU with the writer, has nothing to win. An open loop does
 * not: there each message's time counts. Rather than catch up, it rests before: where it tells of what it is done with,
 * every quarter of the ring, it looks whether the writer is another quarter ahead. In a large ring lines have then left
 * the writer's own caches when they are read, and nobody waits for the other.
 *
 * Who waits does so in one of three ways, constant in each loop:
 *
 *      spin    looks at the word again and again. The other side only stores.
 *      block   sets the lowest bit and sleeps on the word, which is a futex (man 2 futex). The other side exchanges
 *              the word, so that it learns of the sleeper in the same instruction, and wakes it: without a sleeper
 *              there is no system call, and no fence beside the exchange.
 *      hybrid  spins for about RING_SPIN_NS, then blocks.
 */

#include "agent/loops.h"
#include "schema/ring-layout.h"

#define RING_SPIN_NS (50 * NSEC_PER_USEC) /* about what a sleep and a wake-up cost: at most twice the best choice */
#define RING_FAST_BYTES_PER_NS 32u /* seen on CPUs that share a cache: 16 of the shortest messages, 40 of 4 KiB */
#define RING_GATHER_NS_MAX (32 * NSEC_PER_USEC)
#define RING_GATHER_SLOTS 512u /* few messages are not many at a time */
#define RING_BARREN_WAITS 64u
#define RING_SLEEPS 1u
#define RING_AHEAD 16u /* slots whose first line the writer asks for before it needs it */

/* Where an end is in its ring: what changes with every message. */
struct ring_cursor {
        unsigned char *slot; /* of the next message */
        uint32_t due;        /* its state once it is published */
        uint32_t room;       /* writer: how many messages fit for certain */
};

/* One end's view of one ring; nobody else's. */
struct ring {
        alignas(WORKER_LINE) struct ring_cursor at;
        uint32_t held; /* reader: messages done with, and not told of */
        uint32_t tell_every;
        size_t slot_bytes, message_at, size;
        size_t ahead, length; /* writer: bytes to the slot to prepare; of all slots */
        size_t other_line;    /* writer: of a slot of two lines, else 0 */
        unsigned char *slots, *end;
        uint32_t *freed;
        uint32_t n_slots;
        uint32_t barren;        /* reader: waits until it lets messages gather again */
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
/* What else a reader does; see the fields. It gathers only in a ring that has room for that. */
void ring_init_reader(struct ring *r, bool may_stop, bool gathers);

/* Until there is room, of which *ret says how much, before the message of state `due`; or until the next message is
 * there. 0; WORKER_STOP; negative errno with w->failure. */
int ring_wait_room(struct worker *w, struct ring *r, uint32_t due, uint32_t *ret, enum wait_mode wait);
int ring_wait_message(struct worker *w, struct ring *r, enum wait_mode wait);
void ring_wake(struct ring *r, uint32_t *word);
/* The reader lets messages gather where the writer is less ahead than they are told of at a time. */
void ring_fall_back(struct ring *r);

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

/* `at` is not passed on, so that a loop's own may live in registers. */
LOOP_INLINE int ring_send_at(struct worker *w, struct ring *r, struct ring_cursor *at, const unsigned char *message,
                             enum wait_mode wait) {
        if (LOOP_UNLIKELY(at->room == 0)) {
                uint32_t room = 0;
                int e = ring_wait_room(w, r, at->due, &room, wait);
                if (LOOP_UNLIKELY(e))
                        return e;
                at->room = room;
        }
        memcpy(at->slot + r->message_at, message, r->size);
        ring_tell(r, ring_state(at->slot), at->due, wait);
        ring_advance(r, at);
        if (--at->room > RING_AHEAD) { /* else the slot may hold a message that is still to be read */
                unsigned char *slot = at->slot + r->ahead;
                slot = slot < r->end ? slot : slot - r->length;
                ring_prepare(slot);
                ring_prepare(slot + r->other_line);
        }
        return 0;
}

LOOP_INLINE int ring_send(struct worker *w, struct ring *r, const unsigned char *message, enum wait_mode wait) {
        return ring_send_at(w, r, &r->at, message, wait);
}

/* The sender's loop of a stream whose messages are all w->buffer as it is. loop_sender() has to look up where it is in
 * the ring, and store that, for every message, as anybody might have changed it: of 64 bytes that is a third of the
 * time. */
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

LOOP_INLINE int ring_receive(struct worker *w, struct ring *r, unsigned char **ret, enum wait_mode wait) {
        if (__atomic_load_n(ring_state(r->at.slot), __ATOMIC_ACQUIRE) != r->at.due) {
                int e = ring_wait_message(w, r, wait);
                if (LOOP_UNLIKELY(e))
                        return e;
        }
        *ret = r->at.slot + r->message_at;
        return 0;
}

LOOP_INLINE void ring_release(struct ring *r, enum wait_mode wait) {
        uint32_t freed = r->at.due;
        ring_advance(r, &r->at);
        if (++r->held < r->tell_every)
                return;
        r->held = 0;
        ring_tell(r, r->freed, freed, wait);
        if (r->gather_ns > 0)
                ring_fall_back(r);
}

#endif
