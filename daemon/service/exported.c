/* SPDX-License-Identifier: MIT */

/* The exporter's acknowledgement of what it has stored elsewhere, and the refusal to delete what it has not. */

#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct acknowledgement {
        char store[sizeof(((struct service_health *) NULL)->store)];
        int64_t change;
};

static int run_acknowledge(struct service *s, void *payload, struct refusal *r) {
        const struct acknowledgement *a = payload;
        int64_t newest;
        if (strcmp(a->store, store_identity(s->store)) != 0)
                return refuse(r, 409, "other-store", "/store", "this ipclabd has the store %s, not %s",
                              store_identity(s->store), a->store);
        int error = store_acknowledge_export(s->store, a->change, &newest);
        if (error == -ERANGE) {
                char limit[24], value[24];
                (void) snprintf(limit, sizeof(limit), "%" PRId64, newest);
                (void) snprintf(value, sizeof(value), "%" PRId64, a->change);
                return refuse_limit(r, "/change", "newest_change", limit, value,
                                    "change %" PRId64 " cannot have been exported: the newest change of this store is "
                                    "%" PRId64,
                                    a->change, newest);
        }
        return error < 0 ? service_fail(s, r, error, "storing the acknowledgement", 0) : 0;
}

int service_acknowledge_export(struct service *s, const char *store, int64_t change, struct refusal *r) {
        static const struct call_type type = {OPERATION_EXPORTED, run_acknowledge, free};
        _cleanup_free_ struct acknowledgement *a = calloc(1, sizeof(*a));
        if (!a)
                return service_fail(s, r, -ENOMEM, "the call", 0);
        (void) snprintf(a->store, sizeof(a->store), "%s", store);
        a->change = change;
        return service_call(s, &type, (void **) &a, r);
}

int service_exported(struct service *s, int64_t *ret, struct refusal *r) {
        return SERVICE_READ(s, r, "reading what was exported", 0, store_exported(store, ret));
}

int service_refuse_unexported(struct service *s, int64_t experiment_id, struct refusal *r) {
        static const char way[] = "have it exported (systemctl start ipclab-export), or set keep_until_exported to "
                                  "false in the configuration and restart ipclabd";
        int64_t newest, exported;
        int error = store_export_of(s->store, experiment_id, &newest, &exported);
        if (error < 0)
                return service_fail(s, r, error, "experiment", experiment_id);
        if (exported < 0)
                (void) refuse(r, 409, "not-exported", "",
                              "experiment %" PRId64 " is kept until it is exported: its newest change is %" PRId64
                              ", and nothing of this store was exported: %s",
                              experiment_id, newest, way);
        else
                (void) refuse(r, 409, "not-exported", "",
                              "experiment %" PRId64 " is kept until it is exported: its newest change is %" PRId64
                              ", and the store was exported up to %" PRId64 ": %s",
                              experiment_id, newest, exported, way);
        return -EPERM;
}
