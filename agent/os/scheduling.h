/* SPDX-License-Identifier: MIT */
#pragma once

/* What an agent inherits from the process that started the daemon, and what each of its turns and system calls depends
 * on. */

#include "schema/scheduling.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct effective;

struct scheduling {
        int policy, priority, nice; /* priority: of real-time policies, else 0 */
};

/* 0 or negative errno. */
int scheduling_read(pid_t tid, struct scheduling *ret);
bool scheduling_equal(const struct scheduling *a, const struct scheduling *b);
/* The text of scheduling_text(), and its return value. */
bool scheduling_print(const struct scheduling *s, char ret[static SCHEDULING_TEXT_MAX]);

/* Adds the rows scheduling, of the first thread and so of the workers that it has created, and seccomp. */
void scheduling_put(struct effective *e);
