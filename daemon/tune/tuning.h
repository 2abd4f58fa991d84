/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * `tune` of a spec: settings of the host that are changed for a run and restored after it. The undo journal is in the
 * store: a record is committed before the change and removed after the restore, so that after a kill at any moment the
 * next start knows the pending restores. A record of another boot needs none: the change ended with that boot. All but
 * tuning_check() run on the main thread.
 */

#include "daemon/store/store.h"
#include "schema/detail.h"
#include "schema/refusal.h"
#include "schema/spec/spec.h"

#define TUNING_DETAIL_MAX (DETAIL_MAX + 128u)

/* Whether this daemon may and can change the settings of a spec; any thread. 0; -EINVAL with *r. */
int tuning_check(const char *root, bool host_tuning, const struct spec_tune *tune, struct refusal *r);

/* Changes the settings that differ. 0; -errno with the reason in ret_detail[TUNING_DETAIL_MAX]; settings that were
 * changed before the failure are in the journal. */
int tuning_apply(struct store *store, const char *root, bool host_tuning, const struct spec_tune *tune, int64_t run_id,
                 char *ret_detail);
/* Restores all settings in the journal; -EAGAIN: one of a CPU that is offline, whose record stays. A setting that
 * somebody else has changed meanwhile is left as it is. 0; -errno of the first that could not be restored, with its
 * reason in ret_detail[TUNING_DETAIL_MAX]: its record stays. All that could not be restored are logged. After an
 * ipclab-tune that does not reply (-ETIMEDOUT) no other is tried. */
int tuning_restore(struct store *store, const char *root, char *ret_detail);
