/* SPDX-License-Identifier: MIT */

#include "agent/workload/workload.h"

#include "schema/util.h"

static const struct workload_ops *const workloads[] = {
        &workload_stream,
        &workload_pingpong,
        &workload_syscall,
        &workload_context_switch,
};

const struct workload_ops *workload_find(enum workload w) {
        for (size_t i = 0; i < ELEMENTS(workloads); i++)
                if (workloads[i]->workload == w)
                        return workloads[i];
        return NULL;
}
