/* SPDX-License-Identifier: MIT */

/* See tuning.h. Owns no state beyond the journal's records; setting.c writes the settings. */

#include "daemon/tune/tuning.h"

#include "daemon/host/hostfs.h"
#include "daemon/log.h"
#include "daemon/tune/setting.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

#define NUMA_BALANCING "numa_balancing"
#define BOOT_ID_MAX 64u

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

static int read_boot_id(const char *root, char *ret) {
        struct hostfs h;
        int r = hostfs_init(&h, root);
        if (r < 0)
                return r;
        r = hostfs_line(&h, ret, BOOT_ID_MAX, "/proc/sys/kernel/random/boot_id");
        hostfs_deinit(&h);
        return r;
}

static bool is_in_force(const char *now, const char *wanted) {
        /* 2 switches balancing on as well, for tiered memory */
        return strcmp(now, wanted) == 0 || (wanted[0] == '1' && now[0] >= '1');
}

int tuning_apply(struct store *store, const char *root, bool host_tuning, const struct spec_tune *tune, int64_t run_id,
                 char *ret_detail) {
        char now[SETTING_VALUE_MAX], detail[SETTING_DETAIL_MAX], name[] = NUMA_BALANCING, value[2], boot[BOOT_ID_MAX];
        struct refusal refusal = {0};
        if (tune->numa_balancing == TOGGLE_UNSET)
                return 0;
        /* the configuration may have changed since the submission */
        if (tuning_check(root, host_tuning, tune, &refusal) < 0) {
                (void) snprintf(ret_detail, TUNING_DETAIL_MAX, "%.390s", refusal.detail);
                return -EPERM;
        }
        (void) snprintf(value, sizeof(value), "%s", wanted_value(tune));
        int r = setting_read(root, name, now);
        if (r == 0 && is_in_force(now, value))
                return 0;
        if (r == 0)
                r = read_boot_id(root, boot);
        if (r == 0)
                r = store_add_tuning(
                        store,
                        &(struct tuning_record){
                                .name = name, .run_id = run_id, .original = now, .wanted = value, .boot_id = boot});
        if (r < 0) {
                (void) snprintf(ret_detail, TUNING_DETAIL_MAX, "%s is not changed, as its value cannot be saved: %s",
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

static void log_restored(const struct tuning_record *record, const char *now) {
        log_info("%s is %s, as before run %" PRId64, setting_title(record->name), now, record->run_id);
}

/* Restores the saved value and reads it again. */
static int restore_saved(const char *root, const struct tuning_record *record, char *detail) {
        char now[SETTING_VALUE_MAX];
        const char *title = setting_title(record->name);
        int r = setting_restore(root, record->name, record->original, detail);
        if (r == -ESTALE) {
                log_notice("%s is %s, for which ipclab-tune has no undo record: it stays", title, record->wanted);
                return 0;
        }
        if (r < 0)
                return r;
        r = setting_read(root, record->name, now);
        if (r < 0 || strcmp(now, record->wanted) == 0) {
                (void) snprintf(detail, SETTING_DETAIL_MAX, "it was written, and %s",
                                r < 0 ? "cannot be read" : "has not changed");
                return r < 0 ? r : -EIO;
        }
        log_restored(record, now);
        return 0;
}

static int restore_of_this_boot(const char *root, const struct tuning_record *record, char *detail) {
        char now[SETTING_VALUE_MAX];
        int r = setting_read(root, record->name, now);
        if (r < 0) {
                (void) snprintf(detail, SETTING_DETAIL_MAX, "it cannot be read: %s", strerrordesc_np(-r));
                return r;
        }
        if (strcmp(now, record->original) == 0) { /* never changed, or restored by a helper whose reply came too late */
                log_restored(record, now);
                return 0;
        }
        if (strcmp(now, record->wanted) == 0)
                return restore_saved(root, record, detail);
        log_notice("%s is %s, and was set to %s by run %" PRId64 ": it was changed since and stays",
                   setting_title(record->name), now, record->wanted, record->run_id);
        return 0;
}

/* 0 when the record can be removed. */
static int restore(const char *root, const struct tuning_record *record, char *ret_detail) {
        char boot[BOOT_ID_MAX], detail[SETTING_DETAIL_MAX] = "";
        const char *title = setting_title(record->name);
        if (!title || !setting_allows(record->name, record->original)) {
                log_error("the journal has the setting %s = %s, which this version does not know: it is not restored",
                          record->name, record->original);
                return 0;
        }
        int r = read_boot_id(root, boot);
        if (r < 0)
                (void) snprintf(detail, sizeof(detail), "the boot in which it was changed is not known: %s",
                                strerrordesc_np(-r));
        else if (record->boot_id && strcmp(record->boot_id, boot) != 0)
                log_info("%s was changed by run %" PRId64 " before this boot: there is nothing to restore", title,
                         record->run_id);
        else
                r = restore_of_this_boot(root, record, detail);
        if (r < 0) {
                (void) snprintf(ret_detail, TUNING_DETAIL_MAX, "%s cannot be restored to %s: %s", title,
                                record->original, detail);
                log_error("%s", ret_detail);
        }
        return r;
}

int tuning_restore(struct store *store, const char *root, char *ret_detail) {
        for (;;) {
                struct tuning_record record = {0};
                int r = store_first_tuning(store, &record);
                if (r == -ENOENT)
                        return 0;
                if (r < 0)
                        (void) snprintf(ret_detail, TUNING_DETAIL_MAX, "the undo journal cannot be read: %s",
                                        strerrordesc_np(-r));
                else
                        r = restore(root, &record, ret_detail);
                if (r == 0) {
                        r = store_remove_tuning(store, record.name);
                        if (r < 0)
                                (void) snprintf(ret_detail, TUNING_DETAIL_MAX,
                                                "%s is restored, but its undo record cannot be removed: %s",
                                                record.name, strerrordesc_np(-r));
                }
                tuning_record_deinit(&record);
                if (r < 0)
                        return r;
        }
}
