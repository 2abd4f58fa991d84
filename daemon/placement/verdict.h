/* SPDX-License-Identifier: MIT */
#pragma once

/* Private to verify.c (threads, policy) and pages.c (memory); see placement_verify(). */

#include "daemon/placement/placement.h"
#include "schema/protocol/proof-report.h"

struct verdict {
        const struct agent_placement *given;
        const struct point *point;
        enum end end;
        const struct proof_report *proof;
        char *detail;
        struct placement_doubts *doubts;
};

/* The proof's member that contradicts another. -EBADMSG. */
int verdict_bad(const struct verdict *v, const char *what);
/* Verifies the pages in a proof of `threads` threads. 0; -EPERM; -EBADMSG. */
int placement_check_pages(const struct verdict *v, uint32_t threads);
