/* SPDX-License-Identifier: MIT */

#include "daemon/host/environment/build.h"

#include "build-commit.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define READ_BYTES 65536u

static int digest(int fd, struct build_digest *ret) {
        _cleanup_free_ uint8_t *buffer = malloc(READ_BYTES);
        struct sha256_ctx s;
        uint8_t bytes[SHA256_DIGEST_SIZE];
        if (!buffer)
                return -ENOMEM;
        sha256_init(&s);
        for (off_t at = 0;;) {
                ssize_t n = pread(fd, buffer, READ_BYTES, at);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                sha256_update(&s, (size_t) n, buffer);
                at += n;
        }
        sha256_digest(&s, sizeof(bytes), bytes);
        for (size_t i = 0; i < sizeof(bytes); i++)
                (void) snprintf(ret->text + 2 * i, 3, "%02x", bytes[i]);
        return 0;
}

static void take(struct build_digest *d, int fd) {
        *d = (struct build_digest){0};
        int r = fd < 0 ? fd : digest(fd, d);
        if (r == 0)
                return;
        d->text[0] = '\0';
        (void) snprintf(d->reason, sizeof(d->reason), "the program cannot be read: %s", strerrordesc_np(-r));
}

void build_take(struct build *b, int agent_fd) {
        _cleanup_close_ int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        int error = errno;
        take(&b->daemon, own < 0 ? -error : own);
        take(&b->agent, agent_fd);
}

static const char *digest_value(const struct build_digest *d, const char **ret_reason) {
        *ret_reason = d->reason;
        return d->text[0] ? d->text : NULL;
}

const char *build_value(const struct build *b, enum build_fact fact, const char **ret_reason) {
        static const char commit[] = IPCLAB_COMMIT;
        switch (fact) {
        case BUILD_COMMIT:
                *ret_reason = "it was built from sources that are no repository";
                return commit[0] ? commit : NULL;
        case BUILD_DAEMON_SHA256:
                return digest_value(&b->daemon, ret_reason);
        case BUILD_AGENT_SHA256:
                return digest_value(&b->agent, ret_reason);
        case BUILD_VERSION:
        case BUILD_COUNT:
                break;
        }
        *ret_reason = "";
        return IPCLAB_VERSION;
}

bool build_differs(const struct build *b, const struct json *stored) {
        if (!stored || json_type(stored) != JSON_OBJECT)
                return false;
        for (unsigned i = 0; i < BUILD_COUNT; i++) {
                const struct json *member = json_get(stored, build_rows[i].name);
                const char *reason, *mine = build_value(b, (enum build_fact) i, &reason), *theirs = NULL;
                if (mine && member && json_as_string(member, &theirs) == 0 && strcmp(mine, theirs) != 0)
                        return true;
        }
        return false;
}

void build_put(const struct build *b, struct json_writer *w) {
        char name[64];
        json_object_begin(w);
        for (unsigned i = 0; i < BUILD_COUNT; i++) {
                const char *reason, *value = build_value(b, (enum build_fact) i, &reason);
                json_member_string(w, build_rows[i].name, value);
                (void) snprintf(name, sizeof(name), "%s_reason", build_rows[i].name);
                if (!value)
                        json_member_string(w, name, reason);
        }
        json_object_end(w);
}
