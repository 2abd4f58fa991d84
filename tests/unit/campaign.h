/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_CAMPAIGN_H
#define IPCLAB_TESTS_CAMPAIGN_H

/* How often a case with a random part is repeated: a few times in the suites, and as often as tools/campaign was asked
 * to. The figures of a case are lines that begin with "counted: ", which it prints in its table. */

#include <stdio.h>
#include <stdlib.h>

static inline unsigned campaign_count(const char *variable, unsigned few) {
        const char *text = getenv(variable);
        char *end;
        if (!text)
                return few;
        unsigned long n = strtoul(text, &end, 10);
        if (end == text || *end || *text == '-' || n == 0 || n > 100000000) {
                fprintf(stderr, "%s is \"%s\": it must be a number from 1 to 100000000\n", variable, text);
                exit(2);
        }
        return (unsigned) n;
}

#endif
