/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_TUNING_H
#define IPCLAB_DAEMON_TUNING_H

/*
 * `tune` of a spec: settings of the host that are changed for a run and put back after it. The journal is in the store:
 * a row is committed before the change and removed after the restoration, so whatever is killed and whenever, the next
 * start knows what it owes the host. A row of another boot is no debt: the change is gone with that boot. On the main
 * thread but for tuning_check().
 */

#include "daemon/store/store.h"
#include "schema/refusal.h"
#include "schema/spec/spec.h"

#define TUNING_DETAIL_MAX 400u

/* Whether this daemon may and can do what a spec asks; any thread. 0; -EINVAL with *r. */
int tuning_check(const char *root, bool host_tuning, const struct spec_tune *tune, struct refusal *r);

/* Changes what differs. 0; -errno with words in ret_detail[TUNING_DETAIL_MAX]; what was changed before the failure is
 * in the journal. */
int tuning_apply(struct store *store, const char *root, bool host_tuning, const struct spec_tune *tune, int64_t run_id,
                 char *ret_detail);
/* Puts back all that the journal has. A setting that somebody else has changed meanwhile is left as it is. 0; -errno
 * of what could not be put back, logged and with words in ret_detail[TUNING_DETAIL_MAX]: its row stays. */
int tuning_restore(struct store *store, const char *root, char *ret_detail);

#endif
