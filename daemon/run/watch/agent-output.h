/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The standard error of an agent: a pipe that the daemon reads, so that no agent has the daemon's log. Each
 * line goes to the log with the run and the role before it, cut at 400 bytes, with everything but printable ASCII as
 * \xNN; at most 100 lines of an agent, and after 256 KiB its pipe is not read any more.
 */

#include <stdint.h>
#include <systemd/sd-event.h>

struct agent_output;

/* *ret_write_fd is for spawn_request.stderr_fd, closed by exec, and the caller's. 0 or negative errno. */
int agent_output_new(struct agent_output **ret, sd_event *event, int64_t run_id, const char *role, int *ret_write_fd);
/* Logs what is still in the pipe, and how much was dropped. To be called when the agents have ended. NULL-safe. */
void agent_output_free(struct agent_output *o);
