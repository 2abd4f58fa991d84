/* SPDX-License-Identifier: MIT */

/*
 * The table of the host's limits. Called by the daemon's admission and by the agents' transports.
 *
 * Source: Documentation/admin-guide/sysctl/{fs,kernel,net}.rst, getrlimit(2), systemd.exec(5),
 * systemd.resource-control(5).
 */

#include "schema/limits.h"

#include <inttypes.h>
#include <stdio.h>

#define ROW(id, name, raise) [HOST_##id] = {name, raise},
const struct host_limit_term host_limits[HOST_LIMIT_COUNT] = {HOST_LIMITS(ROW)};

const char *limit_sentence(char *ret, enum host_limit limit, uint64_t have, uint64_t need, const char *why) {
        const struct host_limit_term *term = &host_limits[limit];
        (void) snprintf(ret, LIMIT_SENTENCE_MAX, "%s: %" PRIu64 " needed, %s is %" PRIu64 " (to raise it: %s)", why,
                        need, term->name, have, term->raise);
        return ret;
}
