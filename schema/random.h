/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Random numbers that a stored seed repeats on any build of any version: xoshiro256++, its state filled by splitmix64.
 * Sources: Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47 (2021); Steele, Lea and
 * Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014 (splitmix64). The order of runs is of
 * xoshiro256**, whose state is the same and whose output is another, because seeds are stored that it must repeat.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
        uint64_t state[4]; /* not all 0 */
        bool is_starred;   /* xoshiro256** */
};

void random_init(struct random *r, uint64_t seed);
/* The same seed of xoshiro256**. */
void random_init_starred(struct random *r, uint64_t seed);
uint64_t random_next(struct random *r);
/* Uniform in [0, 1), a multiple of 2^-53. */
double random_unit(struct random *r);
/* Uniform in 0 … n - 1, n >= 1, without bias. */
uint64_t random_below(struct random *r, uint64_t n);
/* Fisher and Yates: every order is as likely. */
void random_shuffle(struct random *r, uint32_t *values, size_t n);
