/* SPDX-License-Identifier: MIT */

/* See tuning.h. Owns no state beyond the journal's rows; setting.c does the writing. */

#include "daemon/tuning.h"

#include "daemon/log.h"
#include "daemon/setting.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

#define NUMA_BALANCING "numa_balancing"

static const char *wanted_value(const struct spec_tune *tune) {
        return tune->numa_balancing == TOGGLE_ON ? "1" : "0";
}

int tuning_check(const char *root, bool host_tuning, const struct spec_tune *tune, struct refusal *r) {
        char detail[SETTING_DETAIL_MAX], now[SETTING_VALUE_MAX];
        if (tune->numa_balancing == TOGGLE_UNSET)
                return 0;
        if (!host_tuning)
                return refuse_limit(r, "/tune/" NUMA_BALANCING, "host_tuning", "false", "true",
                                    "tune changes settings of the host, which this ipclabd may not do: set "
                                    "host_tuning = true in its configuration");
        if (setting_read(root, NUMA_BALANCING, now) < 0)
                return refuse_limit(r, "/tune/" NUMA_BALANCING, "kernel.numa_balancing", "none", wanted_value(tune),
                                    "this kernel has no automatic NUMA balancing to be switched");
        if (setting_may_change(root, NUMA_BALANCING, detail) < 0)
                return refuse_limit(r, "/tune/" NUMA_BALANCING, "privilege", "none", "root", "%s", detail);
        return 0;
}

static bool is_so(const char *now, const char *wanted) {
        /* 2 is balancing, too: for tiers of memory */
        return strcmp(now, wanted) == 0 || (wanted[0] == '1' && now[0] >= '1');
}

int tuning_apply(struct store *store, const char *root, bool host_tuning, const struct spec_tune *tune, int64_t run_id,
                 char *ret_detail) {
        char now[SETTING_VALUE_MAX], detail[SETTING_DETAIL_MAX], name[] = NUMA_BALANCING, value[2];
        struct refusal refusal = {0};
        if (tune->numa_balancing == TOGGLE_UNSET)
                return 0;
        if (tuning_check(root, host_tuning, tune, &refusal) < 0) { /* the configuration may be another by now */
                (void) snprintf(ret_detail, TUNING_DETAIL_MAX, "%.390s", refusal.detail);
                return -EPERM;
        }
        (void) snprintf(value, sizeof(value), "%s", wanted_value(tune));
        int r = setting_read(root, name, now);
        if (r == 0 && is_so(now, value))
                return 0;
        if (r == 0)
                r = store_add_tuning(store, &(struct tuning_record){
                                                    .name = name, .run_id = run_id, .original = now, .wanted = value});
        if (r < 0) {
                (void) snprintf(ret_detail, TUNING_DETAIL_MAX, "%s is not changed, as its value cannot be kept: %s",
                                setting_title(name), strerrordesc_np(-r));
                return r;
        }
        r = setting_change(root, name, value, detail);
        if (r < 0)
                (void) snprintf(ret_detail, TUNING_DETAIL_MAX, "%s", detail);
        else
                log_info("%s is %s for run %" PRId64 ", was %s", setting_title(name), value, run_id, now);
        return r;
}

/* 0 when the row has done its duty. */
static int restore(const char *root, const struct tuning_record *record) {
        char now[SETTING_VALUE_MAX], detail[SETTING_DETAIL_MAX];
        const char *title = setting_title(record->name);
        if (!title || !setting_allows(record->name, record->original)) {
                log_error("the journal has the setting %s = %s, which this version does not know: it is left alone",
                          record->name, record->original);
                return 0;
        }
        int r = setting_read(root, record->name, now);
        if (r == 0 && strcmp(now, record->original) == 0)
                return 0;
        if (r == 0 && strcmp(now, record->wanted) != 0) {
                log_notice("%s is %s, and was set to %s by run %" PRId64 ": somebody has changed it since, it stays",
                           title, now, record->wanted, record->run_id);
                return 0;
        }
        if (r == 0)
                r = setting_change(root, record->name, record->original, detail);
        else
                (void) snprintf(detail, sizeof(detail), "it cannot be read: %s", strerrordesc_np(-r));
        if (r < 0)
                log_error("%s cannot be put back to %s: %s", title, record->original, detail);
        else
                log_info("%s is %s again", title, record->original);
        return r;
}

int tuning_restore(struct store *store, const char *root) {
        for (;;) {
                struct tuning_record record = {0};
                int r = store_first_tuning(store, &record);
                if (r == -ENOENT)
                        return 0;
                if (r == 0)
                        r = restore(root, &record);
                if (r == 0)
                        r = store_remove_tuning(store, record.name);
                tuning_record_deinit(&record);
                if (r < 0)
                        return r;
        }
}
