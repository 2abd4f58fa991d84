/* SPDX-License-Identifier: MIT */

/*
 * A ring between two threads of one process, where a sanitizer sees both sides: every wait, rings from one message on,
 * messages beside the state and beyond it, numbers that wrap. And a thread that is to stop.
 */

#include "agent/transport/ring/ring.h"

#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define MESSAGES 3000u
#define FULL_ROUND (UINT32_C(1) << 31) /* after so many messages a state comes again */

static struct agent agent = {.peer_role = "peer"};

static struct worker *new_worker(size_t size) {
        struct worker *w = aligned_alloc(WORKER_LINE, sizeof *w);
        if (!w)
                abort();
        memset(w, 0, sizeof *w);
        w->agent = &agent;
        w->size = size;
        w->limit = WORKER_UNLIMITED;
        return w;
}

/* Static: gcc 12 aligns what lies on AddressSanitizer's fake stack to 32 bytes, and a ring wants 64. */
struct pair {
        struct ring_layout layout;
        unsigned char *memory;
        struct ring out, in;
        size_t size;
        enum wait_mode wait;
        bool well;
};

static void pair_init(struct pair *p, size_t size, uint32_t slots, enum wait_mode wait) {
        struct point point = {.message_size = size, .threads = 1};
        struct transport_options o = {.ring_bytes = 4096};
        *p = (struct pair){.size = size, .wait = wait, .well = true};
        p->layout = ring_layout_of(&point, &o, 4096);
        p->layout.slots = slots;
        size_t bytes = (RING_HEAD_BYTES + slots * p->layout.slot_bytes + 4095) / 4096 * 4096;
        p->memory = aligned_alloc(4096, bytes);
        if (!p->memory)
                abort();
        memset(p->memory, 0, bytes);
        ring_init(&p->out, &p->layout, p->memory, size);
        ring_init(&p->in, &p->layout, p->memory, size);
        ring_init_reader(&p->in, true, true);
}

static void *send_all(void *userdata) {
        struct pair *p = userdata;
        struct worker *w = new_worker(p->size);
        unsigned char message[200];
        for (uint64_t i = 0; i < MESSAGES && p->well; i++) {
                pattern_fill(message, p->size, pattern_key(0, 0, i));
                int r = p->wait == WAIT_SPIN    ? ring_send(w, &p->out, message, WAIT_SPIN)
                        : p->wait == WAIT_BLOCK ? ring_send(w, &p->out, message, WAIT_BLOCK)
                                                : ring_send(w, &p->out, message, WAIT_HYBRID);
                p->well = p->well && r == 0;
        }
        free(w);
        return NULL;
}

static bool receive_all(struct pair *p) {
        struct worker *w = new_worker(p->size);
        bool well = true;
        for (uint64_t i = 0; i < MESSAGES && well; i++) {
                unsigned char *message = NULL;
                int r = p->wait == WAIT_SPIN    ? ring_receive(w, &p->in, &message, WAIT_SPIN)
                        : p->wait == WAIT_BLOCK ? ring_receive(w, &p->in, &message, WAIT_BLOCK)
                                                : ring_receive(w, &p->in, &message, WAIT_HYBRID);
                well = r == 0 && pattern_matches(message, p->size, pattern_key(0, 0, i));
                ring_release(w, &p->in, p->wait);
        }
        free(w);
        return well;
}

/* Brings the ring to where it is after so many messages. */
static void begin_at(struct pair *p, uint32_t begin) {
        p->out.at.due += 2 * begin;
        p->in.at.due += 2 * begin;
        *p->out.freed = 2 * begin;
}

static void transfer(size_t size, uint32_t slots, enum wait_mode wait, uint32_t begin) {
        static struct pair p;
        pthread_t sender;
        pair_init(&p, size, slots, wait);
        begin_at(&p, begin);
        CHECK_INT(pthread_create(&sender, NULL, send_all, &p), 0);
        bool well = receive_all(&p);
        (void) pthread_join(sender, NULL);
        if (!well || !p.well)
                CHECK_FAIL("%zu bytes, %u slots, wait %s, from message %u on", size, slots, wait_mode_name(wait),
                           begin);
        CHECK(wait != WAIT_SPIN || p.in.sleeps + p.out.sleeps + p.in.wakes + p.out.wakes == 0);
        free(p.memory);
}

static void test_every_wait(void) {
        static const size_t sizes[] = {1, 56, 57, 200};
        static const uint32_t slots[] = {1, 2, 3, 5, 64, RING_GATHER_SLOTS};
        for (enum wait_mode wait = WAIT_BLOCK; wait < WAIT_COUNT; wait++)
                for (size_t i = 0; i < ELEMENTS(sizes); i++)
                        for (size_t k = 0; k < ELEMENTS(slots); k++)
                                transfer(sizes[i], slots[k], wait, 0);
}

static void test_numbers_wrap(void) {
        for (enum wait_mode wait = WAIT_BLOCK; wait < WAIT_COUNT; wait++)
                transfer(8, 64, wait, FULL_ROUND - 64 * 20);
}

/* A full ring holds its number of slots, and the reader frees room in time. */
static void test_room(void) {
        static struct pair p;
        struct worker *w = new_worker(8);
        unsigned char message[8] = "1234567", *got = NULL;
        pair_init(&p, 8, 8, WAIT_SPIN);
        for (unsigned i = 0; i < 8; i++)
                CHECK_INT(ring_send(w, &p.out, message, WAIT_SPIN), 0);
        worker_set_limit(w, 0); /* nothing more to do: a wait ends at once */
        CHECK_INT(ring_send(w, &p.out, message, WAIT_SPIN), WORKER_STOP);
        worker_set_limit(w, WORKER_UNLIMITED);
        for (unsigned i = 0; i < 8; i++) {
                CHECK_INT(ring_receive(w, &p.in, &got, WAIT_SPIN), 0);
                CHECK_INT(memcmp(got, message, 8), 0);
                ring_release(w, &p.in, WAIT_SPIN);
        }
        CHECK_UINT(*p.out.freed, 16);
        worker_set_limit(w, 0);
        CHECK_INT(ring_receive(w, &p.in, &got, WAIT_SPIN), WORKER_STOP);
        CHECK_INT(ring_send(w, &p.out, message, WAIT_SPIN), 0); /* there is room: no wait */
        free(p.memory);
        free(w);
}

/* Where it publishes what it has freed, a reader pauses unless the writer is more than as much again ahead: in every
 * lap, in rings of any number of slots that are many, and where states begin anew. */
static void test_falling_back(void) {
        static const uint32_t slots[] = {RING_GATHER_SLOTS, RING_GATHER_SLOTS + 1, RING_GATHER_SLOTS + 3,
                                         RING_GATHER_SLOTS - 1};
        static struct pair p;
        struct worker *w = new_worker(8);
        unsigned char message[8] = "1234567", *got = NULL;
        for (size_t k = 0; k < ELEMENTS(slots); k++)
                for (uint32_t more = 0; more < 2; more++) {
                        const uint32_t quarter = slots[k] / 4, all = 3 * slots[k];
                        bool pauses = more == 0 && slots[k] >= RING_GATHER_SLOTS;
                        pair_init(&p, 8, slots[k], WAIT_SPIN);
                        begin_at(&p,
                                 FULL_ROUND - 2 * slots[k]); /* in the third lap: untouched slots have the state 0 */
                        p.in.skip = 100;                     /* no pause that is due is taken, and each counts */
                        for (uint32_t i = 0; i < quarter + more; i++)
                                CHECK_INT(ring_send(w, &p.out, message, WAIT_SPIN), 0);
                        for (uint32_t i = 0; i < all; i++) {
                                CHECK_INT(ring_send(w, &p.out, message, WAIT_SPIN), 0);
                                CHECK_INT(ring_receive(w, &p.in, &got, WAIT_SPIN), 0);
                                ring_release(w, &p.in, WAIT_SPIN);
                        }
                        CHECK_UINT(p.in.skip, pauses ? 100 - all / quarter : 100);
                        free(p.memory);
                }
        free(w);
}

struct sending {
        struct pair *p;
        struct worker *w;
        int result;
};

static void *send_alike(void *userdata) {
        struct sending *s = userdata;
        s->result = ring_sender(s->w, &s->p->out, VERIFY_NONE, WAIT_SPIN);
        return NULL;
}

static void read_some(struct worker *w, struct pair *p, unsigned n, const unsigned char *expected) {
        unsigned char *got = NULL;
        for (unsigned i = 0; i < n; i++) {
                CHECK_INT(ring_receive(w, &p->in, &got, WAIT_SPIN), 0);
                CHECK_INT(memcmp(got, expected, 8), 0);
                ring_release(w, &p->in, WAIT_SPIN);
        }
}

/* What sends alike messages leaves the ring as one by one would: at its limit, and when it is stopped for want of room.
 */
static void test_sender(void) {
        static struct pair p;
        struct worker *w = new_worker(8), *reader = new_worker(8);
        unsigned char message[8] = "1234567";
        struct sending s = {.p = &p, .w = w, .result = -1};
        pthread_t thread;
        w->buffer = message;
        pair_init(&p, 8, 8, WAIT_SPIN);
        for (uint64_t limit = 5; limit <= 30; limit += 5) {
                worker_set_limit(w, limit);
                CHECK_INT(ring_sender(w, &p.out, VERIFY_NONE, WAIT_SPIN), 0);
                CHECK_UINT(worker_messages(w), limit);
                CHECK_UINT(p.out.at.due, 2 + 2 * limit);
                read_some(reader, &p, 5, message);
        }
        worker_set_limit(w, WORKER_UNLIMITED);
        CHECK_INT(pthread_create(&thread, NULL, send_alike, &s), 0);
        while (worker_messages(w) < 38)
                (void) sched_yield();
        worker_set_limit(w, 0);
        (void) pthread_join(thread, NULL);
        CHECK_INT(s.result, WORKER_STOP);
        CHECK_UINT(worker_messages(w), 38);
        CHECK_UINT(p.out.at.due, 2 + 2 * 38);
        CHECK_UINT(p.out.at.left, 0);
        read_some(reader, &p, 8, message);
        worker_set_limit(w, 46);
        CHECK_INT(ring_sender(w, &p.out, VERIFY_NONE, WAIT_SPIN), 0);
        for (uint64_t limit = 3; limit <= 8; limit += 5) { /* so does what receives them */
                worker_set_limit(reader, limit);
                CHECK_INT(ring_receiver(reader, &p.in, VERIFY_TOUCH, WAIT_SPIN), 0);
                CHECK_UINT(worker_messages(reader), limit);
                CHECK_UINT(p.in.at.due, 2 + 2 * (38 + limit));
                CHECK_UINT(p.in.at.left, limit == 3 ? 1 : 2);
        }
        CHECK_UINT(reader->sink, 5 * '1');
        CHECK_UINT(*p.in.freed, 2 * 46);
        free(p.memory);
        free(w);
        free(reader);
}

/* A reader of a stream pauses before a wait, unless the last pause brought too little or too few messages can come; in
 * a ring of few slots no reader pauses. */
static void test_gathering(void) {
        static struct pair p;
        struct worker *w = new_worker(8);
        unsigned char message[8] = "1234567", *got = NULL;
        pair_init(&p, 8, RING_GATHER_SLOTS - 1, WAIT_SPIN);
        CHECK_UINT(p.in.gather_ns, 0);
        free(p.memory);
        pair_init(&p, 8, RING_GATHER_SLOTS, WAIT_SPIN);
        CHECK_UINT(p.in.gather_ns, RING_GATHER_SLOTS * 64 / 128);
        CHECK_UINT(p.out.gather_ns, 0);
        free(p.memory);
        pair_init(&p, 8, 65536, WAIT_SPIN);
        CHECK_UINT(p.in.gather_ns, RING_GATHER_NS_MAX);
        CHECK_INT(ring_send(w, &p.out, message, WAIT_SPIN), 0);
        uint64_t begin = util_now_ns();
        CHECK_INT(ring_wait_message(w, &p.in, p.in.at, WAIT_SPIN), 0);
        CHECK(util_now_ns() - begin >= p.in.gather_ns);
        for (unsigned i = RING_SKIPPED_PAUSES + 1; i-- > 0;) {
                CHECK_UINT(p.in.skip, i);
                CHECK_INT(ring_wait_message(w, &p.in, p.in.at, WAIT_SPIN), 0);
        }
        CHECK_UINT(p.in.skip, RING_SKIPPED_PAUSES); /* the one that was to be tried again */
        for (unsigned i = 1; i < RING_BATCH; i++)
                CHECK_INT(ring_send(w, &p.out, message, WAIT_SPIN), 0);
        p.in.skip = 0;
        CHECK_INT(ring_wait_message(w, &p.in, p.in.at, WAIT_SPIN), 0);
        CHECK_UINT(p.in.skip, 0); /* it was worth it */
        p.in.skip = 5;
        CHECK_INT(ring_receive(w, &p.in, &got, WAIT_SPIN), 0); /* what is there is taken at once */
        CHECK_UINT(p.in.skip, 5);
        worker_set_limit(w, p.in.publish_interval + 1);
        CHECK_INT(ring_wait_message(w, &p.in, p.in.at, WAIT_SPIN), 0);
        CHECK_UINT(p.in.skip, 5);
        worker_set_limit(w, p.in.publish_interval + 2);
        CHECK_INT(ring_wait_message(w, &p.in, p.in.at, WAIT_SPIN), 0);
        CHECK_UINT(p.in.skip, 4);
        free(p.memory);
        free(w);
}

struct sleeper {
        struct pair *p;
        struct worker *w;
        int result;
        uint32_t ended;
};

static void *sleep_for_message(void *userdata) {
        struct sleeper *s = userdata;
        unsigned char *got;
        s->result = ring_receive(s->w, &s->p->in, &got, WAIT_BLOCK);
        __atomic_store_n(&s->ended, 1, __ATOMIC_RELEASE);
        return NULL;
}

static void on_signal(int signal) {
        (void) signal;
}

/* A reader that sleeps for a message that never comes is got out of it by the kick, once its limit is reached. */
static void test_kick(void) {
        struct sigaction kick = {.sa_handler = on_signal};
        static struct pair p;
        struct worker *w = new_worker(8);
        pthread_t thread;
        CHECK_INT(sigaction(SIGUSR1, &kick, NULL), 0);
        pair_init(&p, 8, 4, WAIT_BLOCK);
        struct sleeper s = {.p = &p, .w = w};
        CHECK_INT(pthread_create(&thread, NULL, sleep_for_message, &s), 0);
        while (!(__atomic_load_n(ring_state(p.in.at.slot), __ATOMIC_RELAXED) & RING_SLEEPS))
                (void) usleep(100);
        worker_set_limit(w, 0);
        while (!__atomic_load_n(&s.ended, __ATOMIC_ACQUIRE)) {
                (void) pthread_kill(thread, SIGUSR1);
                (void) usleep(1000);
        }
        (void) pthread_join(thread, NULL);
        CHECK_INT(s.result, WORKER_STOP);
        CHECK(p.in.sleeps >= 1);
        free(p.memory);
        free(w);
}

int main(void) {
        RUN(test_room);
        RUN(test_gathering);
        RUN(test_falling_back);
        RUN(test_sender);
        RUN(test_every_wait);
        RUN(test_numbers_wrap);
        RUN(test_kick);
        return check_end();
}
