/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_NOTIFY_H
#define IPCLAB_DAEMON_NOTIFY_H

/*
 * Messages to the service manager (NOTIFY_SOCKET). sd_notify(3), and with it the watchdog of sd-event, would wait for a
 * manager that stands still, and hold the main loop. Called by the main thread.
 */

#include <stdint.h>
#include <systemd/sd-event.h>

#define NOTIFY_READY_NS (UINT64_C(5) * 1000000000) /* it starts no unit behind this one without that message */

/* Assignments, one a line, as in sd_notify(3). 0, also where there is no manager; -EAGAIN: there was no room for it
 * within that time, and it is lost; another negative errno. */
int notify_within(uint64_t patience_ns, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define notify(...) ((void) notify_within(0, __VA_ARGS__)) /* what the next one replaces */

/* Keeps the manager's watchdog quiet as long as the loop dispatches events, where it has one. 0 or negative errno. */
int notify_watchdog(sd_event *event);

#endif
