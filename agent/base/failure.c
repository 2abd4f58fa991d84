/* SPDX-License-Identifier: MIT */

/* Composes the sentences of failures. Each thread writes only its own: a worker its worker's, the leader the
 * agent's. */

#include "agent/base/failure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static int returned(int error) {
        return error ? -error : -EIO;
}

int failure_set(struct failure *f, int error, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        if (f->detail[0] == '\0') {
                f->fault = FAULT_OWN;
                f->error = error;
                (void) vsnprintf(f->detail, sizeof f->detail, format, ap);
        }
        va_end(ap);
        return returned(error);
}

int failure_limit(struct failure *f, int error, enum host_limit limit, uint64_t have, uint64_t need, const char *why) {
        char sentence[LIMIT_SENTENCE_MAX];
        return failure_set(f, error, "%s", limit_sentence(sentence, limit, have, need, why));
}

int failure_set_peer(struct failure *f, const char *peer_role, int error, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        if (f->detail[0] == '\0') {
                f->fault = FAULT_PEER;
                f->error = error;
                (void) snprintf(f->detail, sizeof f->detail, "peer %s ", peer_role);
                size_t n = strlen(f->detail);
                (void) vsnprintf(f->detail + n, sizeof f->detail - n, format, ap);
        }
        va_end(ap);
        return returned(error);
}

int failure_thread(struct failure *f, int error, const char *thread) {
        struct rlimit limit = {};
        (void) getrlimit(RLIMIT_NPROC, &limit);
        return failure_set(f, error, "%s cannot be started: %s (RLIMIT_NPROC is %ju; the cgroup's pids.max counts too)",
                           thread, strerrordesc_np(error), (uintmax_t) limit.rlim_cur);
}

int failure_adopt(struct failure *f, const struct failure *from) {
        if (f->detail[0] == '\0')
                *f = *from;
        return returned(from->error);
}
