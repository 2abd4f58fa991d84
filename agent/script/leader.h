/* SPDX-License-Identifier: MIT */
#pragma once

/* The leader's thread: hello, set-up, rendezvous, ready, start, the workload, report. */

/* Returns NULL when all went well; ends the process when not. userdata: struct agent. */
void *leader_main(void *userdata);
