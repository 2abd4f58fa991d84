/* SPDX-License-Identifier: MIT */

#include "agent/transport/ring/ring.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#define LOOKS_PER_CLOCK 64u /* loads per clock reading in a hybrid wait */

void ring_init(struct ring *r, const struct ring_layout *layout, unsigned char *memory, size_t size) {
        *r = (struct ring){
                .at = {.slot = memory + RING_HEAD_BYTES, .due = 2, .left = layout->slots},
                .publish_interval = layout->slots < 4 ? 1 : layout->slots / 4,
                .slot_bytes = layout->slot_bytes,
                .message_at = layout->message_at,
                .size = size,
                .ahead = RING_AHEAD * layout->slot_bytes,
                .length = layout->slots * layout->slot_bytes,
                .other_line = layout->slot_bytes == 2 * RING_LINE_BYTES ? RING_LINE_BYTES : 0,
                .slots = memory + RING_HEAD_BYTES,
                .end = memory + RING_HEAD_BYTES + layout->slots * layout->slot_bytes,
                .freed = (uint32_t *) (void *) memory,
                .n_slots = layout->slots,
        };
}

void ring_init_reader(struct ring *r, bool may_stop, bool gathers) {
        r->may_stop = may_stop;
        r->at.left = r->publish_interval;
        r->gather_ns = 0;
        if (!gathers || r->n_slots < RING_GATHER_SLOTS)
                return;
        r->gather_ns = r->length / 4 / RING_FAST_BYTES_PER_NS;
        if (r->gather_ns > RING_GATHER_NS_MAX)
                r->gather_ns = RING_GATHER_NS_MAX;
}

void ring_wake(struct ring *r, uint32_t *word) {
        r->wakes++;
        (void) syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL,
                       0); /* cannot fail for a word that FUTEX_WAIT accepts */
}

/* One wait: its number of loads, and when its spin ends. */
struct patience {
        uint32_t looks;
        uint64_t until_ns;
};

static bool may_spin(struct patience *p, enum wait_mode wait) {
        if (wait != WAIT_HYBRID)
                return wait == WAIT_SPIN;
        if (++p->looks % LOOKS_PER_CLOCK)
                return true;
        uint64_t now = util_now_ns();
        if (p->until_ns == 0)
                p->until_ns = now + RING_SPIN_NS;
        return now < p->until_ns;
}

/* The word was `seen`, which is not the awaited value. Relaxes the CPU once, or sleeps until a wake-up. The caller
 * loads the word again, also after an interruption. */
static int pass_time(struct worker *w, struct ring *r, uint32_t *word, uint32_t seen, struct patience *p,
                     enum wait_mode wait) {
        if (may_spin(p, wait)) {
                ring_relax();
                return 0;
        }
        uint32_t asleep = seen | RING_SLEEPS;
        if (seen != asleep &&
            !__atomic_compare_exchange_n(word, &seen, asleep, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                return 0;
        r->sleeps++;
        if (syscall(SYS_futex, word, FUTEX_WAIT, asleep, NULL, NULL, 0) == 0 || errno == EAGAIN)
                return 0;
        if (errno == EINTR) {
                worker_count(&w->eintr);
                return 0;
        }
        return failure_set(&w->failure, errno, "futex: thread %" PRIu32 " cannot wait for peer %s: %s", w->index,
                           w->agent->peer_role, strerrordesc_np(errno));
}

/* Whether the message that follows the next one by `messages`, at most the ring's slots, is published. */
static bool has_message(const struct ring *r, struct ring_cursor at, uint32_t messages) {
        unsigned char *slot = at.slot + messages * r->slot_bytes;
        if (slot >= r->end)
                slot -= r->length;
        return __atomic_load_n(ring_state(slot), __ATOMIC_ACQUIRE) == at.due + 2 * messages;
}

static void let_gather(const struct worker *w, struct ring *r, struct ring_cursor at) {
        if (worker_messages(w) + 1 + r->publish_interval >=
            worker_limit(w)) /* the count may end before as many messages */
                return;
        if (r->skip > 0) {
                r->skip--;
                return;
        }
        uint64_t until_ns = util_now_ns() + r->gather_ns;
        while (util_now_ns() < until_ns)
                ring_relax();
        if (!has_message(r, at, RING_BATCH - 1))
                r->skip = RING_SKIPPED_PAUSES;
}

void ring_fall_back(const struct worker *w, struct ring *r, struct ring_cursor at) {
        if (!has_message(r, at, r->publish_interval))
                let_gather(w, r, at);
}

int ring_wait_message(struct worker *w, struct ring *r, struct ring_cursor at, enum wait_mode wait) {
        struct patience p = {};
        if (r->gather_ns > 0)
                let_gather(w, r, at);
        for (;;) {
                uint32_t *word = ring_state(at.slot), seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
                if (seen == at.due)
                        return 0;
                if (r->may_stop && worker_over(w))
                        return WORKER_STOP;
                int e = pass_time(w, r, word, seen, &p, wait);
                if (e < 0)
                        return e;
        }
}

int ring_wait_room(struct worker *w, struct ring *r, uint32_t due, uint32_t *ret, enum wait_mode wait) {
        struct patience p = {};
        for (;;) {
                uint32_t seen = __atomic_load_n(r->freed, __ATOMIC_ACQUIRE);
                uint32_t under_way = (due - 2 - (seen & ~RING_SLEEPS)) / 2;
                uint32_t room = r->n_slots - under_way;
                if (room > 0) {
                        *ret = room;
                        return 0;
                }
                if (worker_over(w))
                        return WORKER_STOP;
                int e = pass_time(w, r, r->freed, seen, &p, wait);
                if (e < 0)
                        return e;
        }
}
