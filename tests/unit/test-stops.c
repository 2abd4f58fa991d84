/* SPDX-License-Identifier: MIT */

/* Sleeps that lasted too long: which of them were a stop. The thread's own wait for a CPU, which is the kernel's, is
 * hardly anything here. */

#include "agent/measure/stops.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <errno.h>

#define MS NSEC_PER_MSEC
#define TENTH (100 * MS)

struct nap {
        uint64_t late_ns, moved; /* beyond its tenth of a second; messages in all of it */
};

/* The total of these naps, which follow one in time that moved 1000 messages. */
static uint64_t total_of(const struct nap *naps, size_t n, bool paced) {
        struct stops s;
        uint64_t now = NSEC_PER_SEC, messages = 5;
        stops_begin(&s);
        for (size_t i = 0; i <= n; i++) {
                const struct nap *nap = i ? &naps[i - 1] : &(struct nap){0, 1000};
                stops_sleep(&s, now, messages);
                now += TENTH;
                messages += nap->moved;
                stops_wake(&s, now, now + nap->late_ns, messages, paced);
                now += nap->late_ns;
        }
        stops_end(&s);
        return s.fd == -EBADF ? s.total_ns : UINT64_MAX; /* else its clock could not be read */
}

static void test_which_is_one(void) {
        static const struct {
                struct nap nap;
                bool paced;
                uint64_t least_ns, most_ns;
        } table[] = {
                {{0, 1000}, false, 0, 0},
                {{40 * MS, 0}, false, 0, 0},                  /* too short */
                {{100 * MS, 10}, false, 90 * MS, 100 * MS},   /* nothing was moved */
                {{100 * MS, 1100}, false, 90 * MS, 100 * MS}, /* what was moved came before it */
                {{100 * MS, 2000}, false, 0, 0},              /* the workers went on */
                {{100 * MS, 2000}, true, 90 * MS, 100 * MS},  /* they caught up */
                {{NSEC_PER_SEC, 900}, false, 990 * MS, NSEC_PER_SEC},
        };
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                uint64_t total = total_of(&table[i].nap, 1, table[i].paced);
                if (total < table[i].least_ns || total > table[i].most_ns)
                        CHECK_FAIL("case %zu: %" PRIu64 " ns", i, total);
        }
}

static void test_they_add_up(void) {
        static const struct nap naps[] = {{100 * MS, 0}, {0, 1000}, {60 * MS, 0}, {0, 0}};
        uint64_t total = total_of(naps, ELEMENTS(naps), false);
        CHECK(total >= 150 * MS && total <= 160 * MS);
}

/* An event that ends a sleep before its time makes it no stop. */
static void test_woken_early(void) {
        struct stops s;
        stops_begin(&s);
        stops_sleep(&s, 1000, 0);
        stops_wake(&s, TENTH, 500 * 1000, 7, false);
        CHECK_UINT(s.total_ns, 0);
        stops_end(&s);
}

static void test_not_known(void) {
        struct stops s;
        stops_begin(&s);
        stops_end(&s);
        s.fd = -ENOENT;
        stops_sleep(&s, 1000, 0);
        stops_wake(&s, TENTH, 5 * TENTH, 0, false);
        CHECK_UINT(s.total_ns, 0);
        CHECK_INT(s.fd, -ENOENT);
}

int main(void) {
        RUN(test_which_is_one);
        RUN(test_they_add_up);
        RUN(test_woken_early);
        RUN(test_not_known);
        return check_end();
}
