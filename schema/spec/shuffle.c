/* SPDX-License-Identifier: MIT */

/* The order of the runs. A recorded seed must give the recorded order on any build of any version. */

#include "schema/random.h"
#include "schema/spec/spec.h"

void spec_shuffle(uint64_t seed, size_t n_points, uint32_t repetitions, uint32_t *order) {
        struct random r;
        random_init_starred(&r, seed);
        for (uint32_t k = 0; k < repetitions; k++, order += n_points) {
                for (size_t i = 0; i < n_points; i++)
                        order[i] = (uint32_t) i;
                random_shuffle(&r, order, n_points);
        }
}
