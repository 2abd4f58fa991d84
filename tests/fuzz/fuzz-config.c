/* SPDX-License-Identifier: MIT */

/* Any bytes as a file of settings. A refusal must name the file; what is accepted must be accepted again, over
 * itself, with the same result. */

#include "daemon/config.h"
#include "fuzz.h"
#include "schema/util.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool same_text(const char *a, const char *b) {
        return a == b || (a && b && strcmp(a, b) == 0);
}

static void check_same(const struct config *a, const struct config *b) {
        FUZZ_CHECK(same_text(a->state_dir, b->state_dir) && same_text(a->runtime_dir, b->runtime_dir) &&
                   same_text(a->socket_path, b->socket_path) && same_text(a->socket_group, b->socket_group) &&
                   same_text(a->listen, b->listen) && same_text(a->token_file, b->token_file) &&
                   same_text(a->web_dir, b->web_dir) && same_text(a->agent_path, b->agent_path) &&
                   same_text(a->agent_user, b->agent_user) && same_text(a->root, b->root));
        FUZZ_CHECK(a->host_tuning == b->host_tuning && a->keep_until_exported == b->keep_until_exported &&
                   a->log_level == b->log_level && a->run_timeout_ns == b->run_timeout_ns &&
                   a->max_queued_experiments == b->max_queued_experiments && a->max_queued_runs == b->max_queued_runs &&
                   a->max_database_bytes == b->max_database_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(config_deinit) struct config c = {0};
        _cleanup_(config_deinit) struct config again = {0};
        struct config_error e = {""};
        char path[32];
        _cleanup_close_ int fd = memfd_create("config", MFD_CLOEXEC);
        FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t) size);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        int k = config_read_file(&c, path, &e);
        if (k < 0) {
                FUZZ_CHECK(strstr(e.detail, path) && strnlen(e.detail, sizeof(e.detail)) < sizeof(e.detail));
                return 0;
        }
        char host[64];
        uint16_t port;
        if (c.listen && strcmp(c.listen, "none") != 0)
                (void) config_parse_listen(c.listen, host, &port); /* refused when it starts, or not */
        for (int round = 0; round < 2; round++)
                FUZZ_CHECK(config_read_file(&again, path, &e) == 0);
        check_same(&c, &again);
        return 0;
}
