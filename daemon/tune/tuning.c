/* SPDX-License-Identifier: MIT */

/* See tuning.h. Owns no state beyond the journal's records; setting.c writes the settings. */

#include "daemon/tune/tuning.h"

#include "daemon/host/hostfs.h"
#include "daemon/log.h"
#include "daemon/tune/setting.h"
#include "schema/detail.h"
#include "schema/spec/tune.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

#define BOOT_ID_MAX 64u

struct change {
        const char *name, *value; /* of a setting */
};

static size_t list_changes(const struct spec_tune *tune, struct change ret[static SPEC_SETTINGS_MAX]) {
        struct spec_setting given[SPEC_SETTINGS_MAX];
        size_t n = spec_settings(tune, given);
        for (size_t i = 0; i < n; i++)
                ret[i] = (struct change){given[i].name,
                                         given[i].word ? given[i].word : setting_switched(given[i].name, given[i].on)};
        return n;
}

static int check_change(const char *root, bool host_tuning, const struct change *c, struct refusal *r) {
        char detail[DETAIL_MAX], now[SETTING_VALUE_MAX], pointer[64], offered[SETTING_OFFERED_MAX] = "";
        (void) snprintf(pointer, sizeof(pointer), "/tune/%s", c->name);
        if (!host_tuning)
                return refuse_set(r, pointer, "host_tuning", "false", "true",
                                  "tune changes settings of the host, which this ipclabd may not do: set "
                                  "host_tuning = true in its configuration");
        int e = setting_read(root, c->name, now);
        if (e == -EFBIG)
                return refuse_set(r, pointer, setting_title(c->name), "saved", c->value,
                                  "%s cannot be saved: its value is too long, or differs between too many CPUs",
                                  setting_title(c->name));
        if (e == -ENOENT)
                return refuse_set(r, pointer, setting_title(c->name), "none", c->value, "%s", setting_absent(c->name));
        if (e < 0)
                return refuse(r, 422, "not-available", pointer, "%s cannot be read: %s", setting_title(c->name),
                              strerrordesc_np(-e));
        if (!setting_allows_saved(c->name, now))
                return refuse_set(r, pointer, setting_title(c->name), now, c->value,
                                  "%s is %s, to which it could not be restored", setting_title(c->name), now);
        e = setting_offers(root, c->name, c->value, offered);
        if (e == -ENOENT)
                return refuse_set(r, pointer, setting_title(c->name), offered, c->value,
                                  "%s of this host has the values %s, not %s", setting_title(c->name), offered,
                                  c->value);
        if (e < 0)
                return refuse(r, 422, "not-available", pointer, "the values of %s cannot be read: %s",
                              setting_title(c->name), strerrordesc_np(-e));
        if (setting_may_change(root, c->name, detail) < 0)
                return refuse_set(r, pointer, "privilege", "none", "root", "%s", detail);
        return 0;
}

int tuning_check(const char *root, bool host_tuning, const struct spec_tune *tune, struct refusal *r) {
        struct change changes[SPEC_SETTINGS_MAX];
        size_t n = list_changes(tune, changes);
        int e = 0;
        for (size_t i = 0; e == 0 && i < n; i++)
                e = check_change(root, host_tuning, &changes[i], r);
        return e;
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

static bool is_in_force(const struct change *c, const char *now) {
        /* A bit of it; the other one is tiering alone, which may be on as well. */
        return strcmp(now, c->value) == 0 ||
               (strcmp(c->name, "numa_balancing") == 0 && strcmp(c->value, "1") == 0 && strcmp(now, "3") == 0);
}

static int apply(struct store *store, const char *root, const struct change *c, int64_t run_id, char *ret_detail) {
        char now[SETTING_VALUE_MAX], detail[DETAIL_MAX], name[64], value[SETTING_WORD_MAX], boot[BOOT_ID_MAX];
        char saved[SETTING_VALUE_MAX];
        (void) snprintf(name, sizeof(name), "%s", c->name);
        (void) snprintf(value, sizeof(value), "%s", c->value);
        int r = setting_read(root, name, now);
        if (r == 0 && is_in_force(c, now))
                return 0;
        if (r == 0)
                r = setting_save(root, name, saved);
        if (r == 0)
                r = read_boot_id(root, boot);
        if (r == 0)
                r = store_add_tuning(
                        store,
                        &(struct tuning_record){
                                .name = name, .run_id = run_id, .original = saved, .wanted = value, .boot_id = boot});
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

int tuning_apply(struct store *store, const char *root, bool host_tuning, const struct spec_tune *tune, int64_t run_id,
                 char *ret_detail) {
        struct change changes[SPEC_SETTINGS_MAX];
        struct refusal refusal = {0};
        size_t n = list_changes(tune, changes);
        int r = 0;
        /* the configuration may have changed since the submission */
        if (tuning_check(root, host_tuning, tune, &refusal) < 0) {
                (void) snprintf(ret_detail, TUNING_DETAIL_MAX, "%s", refusal.detail);
                return -EPERM;
        }
        for (size_t i = 0; r == 0 && i < n; i++)
                r = apply(store, root, &changes[i], run_id, ret_detail);
        return r;
}

static void log_restored(const struct tuning_record *record, const char *now) {
        log_info("%s is %s, as before run %" PRId64, setting_title(record->name), now, record->run_id);
}

static int compare(const char *root, const struct tuning_record *record, enum setting_state *ret_state, char *ret_now) {
        int r = setting_read(root, record->name, ret_now);
        return r < 0 ? r : setting_compare(root, record->name, record->original, record->wanted, ret_state);
}

/* Restores the saved value and looks at it again. */
static int restore_saved(const char *root, const struct tuning_record *record, char *detail) {
        char now[SETTING_VALUE_MAX];
        enum setting_state state = SETTING_PENDING;
        const char *title = setting_title(record->name);
        int r = setting_restore(root, record->name, record->original, record->wanted, detail);
        if (r == -ESTALE) {
                log_notice("%s is %s, for which ipclab-tune has no undo record: it stays", title, record->wanted);
                return 0;
        }
        if (r < 0)
                return r;
        r = compare(root, record, &state, now);
        if (r < 0 || state == SETTING_PENDING) {
                (void) snprintf(detail, DETAIL_MAX, "it was written, and %s",
                                r < 0 ? "cannot be read" : "has not changed");
                return r < 0 ? r : -EIO;
        }
        log_restored(record, now);
        return 0;
}

/* A CPU that is offline takes no value, and may have the run's when it is back: the record is kept until then. A CPU
 * that has been removed loses its settings with it. */
static int wait_for_cpus(const char *root, const struct tuning_record *record, char *detail) {
        char list[SETTING_LIST_MAX];
        int r = setting_out_of_reach(root, record->name, record->original, SETTING_CPUS_OFFLINE, list);
        if (r == 0)
                return detail_fail(detail, -EAGAIN,
                                   "CPUs %s are offline and may have %s, of run %" PRId64
                                   ", when they are back; it is restored then, and not after the next boot",
                                   list, record->wanted, record->run_id);
        if (r != -ENOENT)
                return detail_fail(detail, r, "which CPUs are offline cannot be read: %s", strerrordesc_np(-r));
        r = setting_out_of_reach(root, record->name, record->original, SETTING_CPUS_REMOVED, list);
        if (r == 0)
                log_notice("%s of CPUs %s is not restored, as this machine no longer has them",
                           setting_title(record->name), list);
        return r == 0 || r == -ENOENT
                       ? 0
                       : detail_fail(detail, r, "which CPUs this machine has cannot be read: %s", strerrordesc_np(-r));
}

static int restore_of_this_boot(const char *root, const struct tuning_record *record, char *detail) {
        char now[SETTING_VALUE_MAX];
        enum setting_state state = SETTING_PENDING;
        int r = compare(root, record, &state, now);
        if (r < 0)
                return detail_fail(detail, r, "it cannot be read: %s", strerrordesc_np(-r));
        if (state == SETTING_PENDING)
                r = restore_saved(root, record, detail);
        if (r == 0)
                r = wait_for_cpus(root, record, detail);
        if (r < 0 || state == SETTING_PENDING)
                return r;
        if (state == SETTING_AS_BEFORE) /* never changed, or restored by a helper whose reply came too late */
                log_restored(record, now);
        else
                log_notice("%s is %s, and was set to %s by run %" PRId64 ": it was changed since and stays",
                           setting_title(record->name), now, record->wanted, record->run_id);
        return 0;
}

/* 0 when the record can be removed. */
static int restore(const char *root, const struct tuning_record *record, char *ret_detail) {
        char boot[BOOT_ID_MAX], detail[DETAIL_MAX] = "";
        const char *title = setting_title(record->name);
        if (!title || !setting_allows_saved(record->name, record->original) ||
            !setting_allows(record->name, record->wanted)) {
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

static int settle_record(struct store *store, const char *root, const struct tuning_record *record, char *ret_detail) {
        int r = restore(root, record, ret_detail);
        if (r < 0)
                return r;
        r = store_remove_tuning(store, record->name);
        if (r < 0) {
                (void) snprintf(ret_detail, TUNING_DETAIL_MAX,
                                "%s is restored, but its undo record cannot be removed: %s", record->name,
                                strerrordesc_np(-r));
                log_error("%s", ret_detail);
        }
        return r;
}

int tuning_restore(struct store *store, const char *root, char *ret_detail) {
        struct tuning_record record = {0};
        int first = 0;
        for (;;) {
                struct tuning_record next = {0};
                char detail[TUNING_DETAIL_MAX] = "";
                int r = store_next_tuning(store, record.name ? record.name : "", &next);
                tuning_record_deinit(&record);
                if (r == -ENOENT)
                        return first;
                bool readable = r == 0;
                if (readable) {
                        record = next;
                        r = settle_record(store, root, &record, detail);
                } else {
                        (void) snprintf(detail, sizeof(detail), "the undo journal cannot be read: %s",
                                        strerrordesc_np(-r));
                        log_error("%s", detail);
                }
                if (r < 0 && first == 0) {
                        first = r;
                        memcpy(ret_detail, detail, sizeof(detail));
                }
                if (!readable || r == -ETIMEDOUT) { /* the next request would hang as well */
                        tuning_record_deinit(&record);
                        return first;
                }
        }
}
