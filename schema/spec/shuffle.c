/* SPDX-License-Identifier: MIT */

/*
 * The order of the runs. A recorded seed must give the recorded order on any build of any version, so the generator
 * is written out here: xoshiro256** (Blackman and Vigna 2018), its state filled by splitmix64, as its authors advise.
 */

#include "schema/spec/spec.h"

static uint64_t rotate(uint64_t x, unsigned k) {
        return x << k | x >> (64 - k);
}

static uint64_t splitmix64(uint64_t *state) {
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

static uint64_t xoshiro256(uint64_t s[4]) {
        uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotate(s[3], 45);
        return result;
}

/* Uniform in 0 … n - 1: draws that would favour small numbers are thrown away. */
static uint64_t below(uint64_t s[4], uint64_t n) {
        uint64_t first_fair = -n % n; /* 2^64 mod n */
        for (;;) {
                uint64_t x = xoshiro256(s);
                if (x >= first_fair)
                        return x % n;
        }
}

void spec_shuffle(uint64_t seed, size_t n_points, uint32_t repetitions, uint32_t *order) {
        uint64_t s[4];
        for (unsigned i = 0; i < 4; i++)
                s[i] = splitmix64(&seed);

        for (uint32_t k = 0; k < repetitions; k++, order += n_points) {
                for (size_t i = 0; i < n_points; i++)
                        order[i] = (uint32_t) i;
                for (size_t i = n_points; i > 1; i--) {
                        size_t j = below(s, i);
                        uint32_t last = order[i - 1];
                        order[i - 1] = order[j];
                        order[j] = last;
                }
        }
}
