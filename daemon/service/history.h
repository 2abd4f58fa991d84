/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_HISTORY_H
#define IPCLAB_DAEMON_SERVICE_HISTORY_H

/*
 * A baseline over time. Every later experiment of the same spec is compared with it when it has finished, across unlike
 * environments too (the purpose of a baseline; the check reports them), and the outcome is stored. The ratios of each
 * figure of each point are searched for change points: the experiments from which on the level is another.
 */

#include "daemon/analysis/segments.h"
#include "daemon/store/records.h"

struct refusal;
struct service;

#define HISTORY_LIMIT_MAX 1000u
#define HISTORY_VALUES_MIN 8 /* of a series that is searched for change points */
#define HISTORY_LEAST 3u     /* experiments between two of them */

struct history_series {
        struct series_record record;
        struct segment *segments; /* of the values; mean: of the ratios' logarithms. n_segments = 0: not searched */
        size_t n_segments;
};

struct history {
        struct baseline_record baseline;
        struct check_record *checks; /* oldest first */
        size_t n_checks;
        struct history_series *series;
        size_t n_series;
};

/* The newest `limit` checks, at most HISTORY_LIMIT_MAX. 0; negative errno with *r: 404. From any thread. */
int service_history(struct service *s, const char *name, uint32_t limit, struct history **ret, struct refusal *r);
size_t history_bytes(const struct history *h); /* in memory, within a few kilobytes */
void history_free(struct history *h);          /* NULL-safe */

#endif
