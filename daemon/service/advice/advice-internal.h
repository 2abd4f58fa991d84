/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_ADVICE_INTERNAL_H
#define IPCLAB_DAEMON_SERVICE_ADVICE_INTERNAL_H

/* Shared by the files of the advice: what is gathered and ranked (advice.c), the spec that would settle what is open
 * (advice-settle.c), and both in words (advice-words.c). */

#include "daemon/service/service.h"

#define SETTLE_MECHANISMS_MAX 8u /* that a spec is about */
/* A longer one is not proposed: 12 repetitions of 11 transports would take hours. The messages' bytes are known before,
 * and 1 GB/s is about what a slow transport of long messages carries. */
#define SETTLE_WINDOW_MAX_SECONDS 60.0

static inline bool advice_is_open(const struct advice_item *item) {
        return item->standing == STANDING_OPEN;
}

/* Whether further runs may decide it. */
static inline bool advice_may_settle(const struct advice_item *item) {
        return advice_is_open(item) && !item->out_of_reach;
}

/* Whether it is about the latency of a stream, whose messages have to carry the time of their sending. */
bool advice_is_stamped(const struct advice_question *q);

/* The mechanisms that the spec is about, and how many runs would decide all of it; 0: runs would decide nothing. */
size_t advice_list_contenders(const struct advice *a, const struct advice_item *ret[static SETTLE_MECHANISMS_MAX]);
uint32_t advice_repetitions_wanted(const struct advice_item *const *items, size_t n);

/* The name of an experiment that answers the question. */
void advice_name_question(const struct advice_question *q, char ret[static SPEC_NAME_MAX + 1]);

/* Write a->settle_json, NULL where no runs are proposed, with its repetitions; and the sentence. -ENOMEM; others of the
 * admission. */
int advice_write_settling(struct service *s, struct advice_record *a, uint32_t *ret_repetitions);
int advice_write_sentence(struct advice_record *a, uint32_t repetitions);

#endif
