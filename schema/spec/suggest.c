/* SPDX-License-Identifier: MIT */

/* "Did you mean": the nearest of a few names by edit distance. Called by the spec parser when a word is unknown. */

#include "schema/spec/value.h"

#include "schema/util.h"

#include <string.h>

#define WORD_MAX 32u /* longer than any name; what is longer is close to none */

static unsigned least(unsigned a, unsigned b) {
        return a < b ? a : b;
}

/* Insertions, deletions, substitutions and swaps of neighbours that make b of a. */
static unsigned distance(const char *a, const char *b) {
        unsigned rows[3][WORD_MAX + 1];
        size_t n = strlen(a), m = strlen(b);

        for (unsigned j = 0; j <= m; j++)
                rows[0][j] = j;
        for (unsigned i = 1; i <= n; i++) {
                unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
                now[0] = i;
                for (unsigned j = 1; j <= m; j++) {
                        now[j] = least(least(now[j - 1], before[j]) + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                now[j] = least(now[j], earlier[j - 2] + 1);
                }
        }
        return rows[n % 3][m];
}

const char *suggest(const char *word, const char *const *names, size_t n) {
        const char *best = NULL;
        unsigned best_distance = 3; /* two slips at most, and fewer in a short word */

        if (strlen(word) > WORD_MAX)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                if (strlen(names[i]) > WORD_MAX)
                        continue;
                unsigned d = distance(word, names[i]);
                if (d < best_distance && 3 * d <= strlen(names[i])) {
                        best = names[i];
                        best_distance = d;
                }
        }
        return best;
}
