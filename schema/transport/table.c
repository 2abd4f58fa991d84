/* SPDX-License-Identifier: MIT */

/* The table of transports as an array; its rows are in the header. */

#include "schema/transport/table.h"

#include "schema/terms.h"

#define TRANSPORT_ROW(id, stem, ...) [TRANSPORT_##id] = {__VA_ARGS__},

const struct transport_term transport_terms[TRANSPORT_COUNT] = {TRANSPORTS(TRANSPORT_ROW)};
