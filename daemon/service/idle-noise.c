/* SPDX-License-Identifier: MIT */

/*
 * Looks at the CPUs' times every few seconds while nothing is measured, so that a client which asks whether the machine
 * is quiet gets an answer at once, of seconds before it asked. The looks end with the start of a run: two of them never
 * have a run between them.
 */

#include "daemon/log.h"
#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define EVERY_SECONDS 5u
/* After a run, and after the first look, so that something is known soon: the times are in steps of 10 ms, 2 % of the
 * latter. */
#define FIRST_LOOK_MS 100u
#define SECOND_LOOK_MS 500u
#define USEC_PER_MSEC UINT64_C(1000)

/* What a second look may wait to be taken together with something else that wakes the daemon. */
#define ACCURACY_US (100 * USEC_PER_MSEC)

static int arm_in(struct service *s, unsigned ms) {
        int r = sd_event_source_set_time_relative(s->look_source, ms * USEC_PER_MSEC);
        return r < 0 ? r : sd_event_source_set_enabled(s->look_source, SD_EVENT_ONESHOT);
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata) {
        (void) source, (void) usec;
        struct service *s = userdata;
        service_doing(s, OPERATION_LOOK);
        if (s->measuring) /* the run's end arms it again */
                return 0;
        pthread_mutex_lock(&s->lock);
        idle_noise_look(&s->idle_noise, s->hooks.topology, util_now_ns());
        pthread_mutex_unlock(&s->lock);
        return arm_in(s, s->idle_noise.looks[0].at_ns > 0 ? 1000 * EVERY_SECONDS : SECOND_LOOK_MS);
}

int service_watch_idle(struct service *s, sd_event *event) {
        idle_noise_init(&s->idle_noise, s->root);
        int r = sd_event_add_time_relative(event, &s->look_source, CLOCK_MONOTONIC, 0, ACCURACY_US, on_look, s);
        return r < 0 ? r : sd_event_source_set_priority(s->look_source, SD_EVENT_PRIORITY_IDLE);
}

void service_look_when_idle(struct service *s) {
        pthread_mutex_lock(&s->lock);
        idle_noise_forget(&s->idle_noise);
        pthread_mutex_unlock(&s->lock);
        int r = s->measuring ? 0 : arm_in(s, FIRST_LOOK_MS);
        if (r < 0)
                log_warning("the machine's noise is not watched: %s", strerrordesc_np(-r));
}

int service_noise_json(struct service *s, char **ret, struct refusal *r) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_writer_init(&w);
        json_object_begin(&w);
        json_member_u64(&w, "every_seconds", EVERY_SECONDS);
        pthread_mutex_lock(&s->lock);
        idle_noise_put(&s->idle_noise, util_now_ns(),
                       s->status.experiment_id > 0
                               ? "an experiment runs: what disturbs its runs stands in their results"
                               : NULL,
                       &w);
        pthread_mutex_unlock(&s->lock);
        json_object_end(&w);
        int error = json_writer_steal(&w, ret, NULL);
        return error < 0 ? service_fail(s, r, error, "rendering the machine's noise", 0) : 0;
}
