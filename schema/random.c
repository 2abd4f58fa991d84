/* SPDX-License-Identifier: MIT */

/* See random.h. The order of runs, that of added blocks and resampling draw from it. */

#include "schema/random.h"

static uint64_t rotate(uint64_t x, unsigned k) {
        return x << k | x >> (64 - k);
}

void random_init(struct random *r, uint64_t seed) {
        r->is_starred = false;
        for (unsigned i = 0; i < 4; i++) {
                uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
                z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
                z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
                r->state[i] = z ^ z >> 31;
        }
}

void random_init_starred(struct random *r, uint64_t seed) {
        random_init(r, seed);
        r->is_starred = true;
}

uint64_t random_next(struct random *r) {
        uint64_t *s = r->state, t = s[1] << 17;
        uint64_t result = r->is_starred ? rotate(s[1] * 5, 7) * 9 : rotate(s[0] + s[3], 23) + s[0];
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotate(s[3], 45);
        return result;
}

double random_unit(struct random *r) {
        return (double) (random_next(r) >> 11) * 0x1p-53;
}

uint64_t random_below(struct random *r, uint64_t n) {
        uint64_t first_fair = -n % n; /* 2^64 mod n: draws below it would favour small numbers */
        for (;;) {
                uint64_t x = random_next(r);
                if (x >= first_fair)
                        return x % n;
        }
}

void random_shuffle(struct random *r, uint32_t *values, size_t n) {
        for (size_t i = n; i > 1; i--) {
                size_t j = random_below(r, i);
                uint32_t last = values[i - 1];
                values[i - 1] = values[j];
                values[j] = last;
        }
}
