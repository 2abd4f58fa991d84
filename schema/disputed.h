/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The flags of a run whose figures are not of what was requested, or not what they seem: one row each,
 * with the figures that it disputes. What rests on such a figure has reduced confidence, and the flag is named beside
 * it. What else happened beside a run (noisy:…, environment-…) is in no row here, as it disputes every figure.
 */

#include "schema/figures.h"

enum disputed {
        DISPUTED_ENOBUFS,
        DISPUTED_RATE,
        DISPUTED_CEILING,
        DISPUTED_ENDS,
        DISPUTED_PIPES,
        DISPUTED_SHARED_CPUS,
        DISPUTED_SHARED_CORES,
        DISPUTED_MEMORY,
        DISPUTED_LATENCY_LIMIT,
        DISPUTED_LATENCY_COUNTS,
        DISPUTED_LATENCY_QUANTUM,
        DISPUTED_COUNT,
};

/* A set of groups of figures. */
#define FIGURES_BIT(group) (1u << (group))

extern const struct disputed_flag {
        const char *flag;
        const char *words;   /* after "runs in which" */
        const char *decides; /* after "Conclusions … have reduced confidence"; NULL: nothing general */
        unsigned figures;    /* groups that it disputes */
} disputed_flags[DISPUTED_COUNT];

/* Adds 1 to *n of each flag that is in flags_json, an array of texts without escapes; NULL has none. */
void disputed_count(const char *flags_json, uint32_t n[DISPUTED_COUNT]);
/* Whether a flag with runs disputes one of these groups. */
bool disputed_any(const uint32_t n[DISPUTED_COUNT], unsigned figures);
