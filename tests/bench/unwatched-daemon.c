/* SPDX-License-Identifier: MIT */

/*
 * An ipclabd that does not observe the machine during the second instance of a point: no CPU times, settings and
 * counts are read in its window. Both instances have the same agents and take turns, so that they differ by nothing
 * else. tests/bench/watching.py compares them.
 *
 * The link makes it: the runner calls watch_new(), and a run that cannot be observed goes on without.
 */

#include "daemon/run/watch/watch.h"
#include "schema/spec/spec.h"

#include <errno.h>

#define UNWATCHED_INSTANCE 2

int __wrap_watch_new(struct watch **ret, const struct watch_order *order);
int __real_watch_new(struct watch **ret, const struct watch_order *order);

int __wrap_watch_new(struct watch **ret, const struct watch_order *order) {
        return order->point->instance == UNWATCHED_INSTANCE ? -EOPNOTSUPP : __real_watch_new(ret, order);
}
