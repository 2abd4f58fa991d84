/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Work between two runs that would hold the main loop too long: to parse a spec of a megabyte takes tens of
 * milliseconds, to compare a thousand pairs of rows half a second. It is done in a thread of its own, one piece at a
 * time. Main thread only, but for `work`.
 */

#include <stdbool.h>
#include <systemd/sd-event.h>

struct aside;

int aside_new(struct aside **ret, sd_event *event);
/* NULL-safe. Waits for the work that is under way; `done` is not called for it any more. */
void aside_free(struct aside *a);

bool aside_is_busy(const struct aside *a);
/* Calls work(userdata) in a thread, then done(userdata) from the main loop, which may start the next piece. -EBUSY; a
 * negative errno of pthread_create(3): neither is called. */
int aside_start(struct aside *a, void (*work)(void *userdata), void (*done)(void *userdata), void *userdata);
