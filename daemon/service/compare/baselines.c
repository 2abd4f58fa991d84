/* SPDX-License-Identifier: MIT */

/* Baselines: pinning, listing, forgetting. Changes hop to the main thread as all others do. */

#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "daemon/service/submission.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* A name of digits alone would be an id where one of the two is taken. */
static bool is_name(const char *name) {
        size_t n = strlen(name);
        return n > 0 && n <= BASELINE_NAME_MAX && strspn(name, NAME_CHARACTERS) == n &&
               strspn(name, "0123456789") != n && name[0] != '.';
}

static int refuse_unknown(struct refusal *r, const char *name) {
        (void) refuse(r, 404, "not-found", "", "there is no baseline \"%.80s\"", name);
        return -ENOENT;
}

static int refuse_full(struct refusal *r) {
        char most[16];
        (void) snprintf(most, sizeof(most), "%u", BASELINES_MAX);
        return refuse_limit(r, "", "baselines", most, "",
                            "there are %s baselines, as many as may be pinned: DELETE one that is not needed", most);
}

struct pin {
        char name[BASELINE_NAME_MAX + 1];
        int64_t experiment_id; /* 0: forget it */
};

/* A name that is moved is stored already. */
static int check_bytes(struct service *s, const struct pin *pin, struct refusal *r) {
        struct baseline_record b = {0};
        int error = pin->experiment_id > 0 ? store_baseline(s->store, pin->name, &b) : 0;
        baseline_record_deinit(&b);
        if (error == -ENOENT)
                return submission_check_bytes(s, r);
        return error < 0 ? service_fail(s, r, error, "baselines", 0) : 0;
}

static int run_pin(struct service *s, void *payload, struct refusal *r) {
        const struct pin *pin = payload;
        int error = check_bytes(s, pin, r);
        if (error < 0)
                return error;
        error = pin->experiment_id > 0 ? store_pin_baseline(s->store, pin->name, pin->experiment_id)
                                       : store_remove_baseline(s->store, pin->name);
        if (error == -ENOENT && pin->experiment_id == 0)
                return refuse_unknown(r, pin->name);
        if (error == -E2BIG)
                return refuse_full(r);
        if (error < 0)
                return service_fail(s, r, error, "experiment", pin->experiment_id);
        if (pin->experiment_id > 0) {
                s->has_baselines = true;
                service_check_baselines(s); /* later experiments may be there already */
        }
        service_arm_tidy(s);                    /* removes what was compared with another one */
        service_changed(s, pin->experiment_id); /* of none: wakes the subscribers to all experiments */
        return 0;
}

static int call_pin(struct service *s, const char *name, int64_t experiment_id, struct refusal *r) {
        static const struct call_type type = {OPERATION_BASELINE, run_pin, free};
        _cleanup_free_ struct pin *pin = calloc(1, sizeof(*pin));
        if (!pin)
                return service_fail(s, r, -ENOMEM, "the call", 0);
        (void) snprintf(pin->name, sizeof(pin->name), "%s", name);
        pin->experiment_id = experiment_id;
        return service_call(s, &type, (void **) &pin, r);
}

/* Only an experiment that has figures, and does not change any more, can be a baseline. */
static int require_finished(struct service *s, int64_t id, struct refusal *r) {
        struct experiment_record e;
        int error = service_experiment(s, id, &e, r);
        if (error < 0)
                return error;
        bool finished = e.state != STATE_QUEUED && e.state != STATE_RUNNING;
        uint32_t done = e.runs_done;
        const char *state = state_name(e.state);
        experiment_record_deinit(&e);
        if (!finished)
                return refuse(r, 409, "not-finished", "/experiment",
                              "experiment %" PRId64 " is %s: it can be pinned when it has finished", id, state);
        if (done == 0)
                return refuse(r, 409, "no-results", "/experiment",
                              "experiment %" PRId64 " has no done run that later ones could be compared with", id);
        return 0;
}

int service_pin_baseline(struct service *s, const char *name, int64_t experiment_id, struct refusal *r) {
        if (!is_name(name))
                return refuse(
                        r, 422, "invalid-name", "",
                        "a baseline's name has 1 to %u characters of A-Z, a-z, 0-9, '.', '_' and '-', begins with "
                        "no '.' and is no number: not \"%.80s\"",
                        BASELINE_NAME_MAX, name);
        int error = require_finished(s, experiment_id, r);
        return error < 0 ? error : call_pin(s, name, experiment_id, r);
}

int service_remove_baseline(struct service *s, const char *name, struct refusal *r) {
        return is_name(name) ? call_pin(s, name, 0, r) : refuse_unknown(r, name);
}

int service_baseline(struct service *s, const char *name, struct baseline_record *ret, struct refusal *r) {
        int error = SERVICE_READ(s, r, "reading the baseline", 0, store_baseline(store, name, ret));
        return error == -ENOENT ? refuse_unknown(r, name) : error;
}

int service_baselines(struct service *s, struct baseline_record **ret, size_t *ret_n, struct refusal *r) {
        return SERVICE_READ(s, r, "listing baselines", 0, store_baselines(store, 0, ret, ret_n));
}

int service_refuse_pinned(struct service *s, struct store *store, int64_t experiment_id, struct refusal *r) {
        struct baseline_record *pins = NULL;
        size_t n = 0;
        int error = store_baselines(store, experiment_id, &pins, &n);
        if (error < 0)
                return service_fail(s, r, error, "looking up the baselines", 0);
        if (n > 0) {
                (void) refuse(r, 409, "pinned", "",
                              "experiment %" PRId64 " is the baseline \"%s\"%s: DELETE /baselines/%s first",
                              experiment_id, pins[0].name, n > 1 ? " and others" : "", pins[0].name);
                error = -EEXIST;
        }
        store_baselines_free(pins, n);
        return error;
}
