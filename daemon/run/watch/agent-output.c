/* SPDX-License-Identifier: MIT */

/*
 * The standard error of one agent, or of two that were one program. Owns the reading end of the pipe and its event
 * source. The text is not trusted, and each dispatch takes a bounded time.
 */

#include "daemon/run/watch/agent-output.h"

#include "daemon/log.h"
#include "schema/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define LINE_MAX_BYTES 400u
#define LINES_MAX 100u
#define BYTES_MAX (256u * 1024u)
#define BYTES_AT_ONCE 16384u

struct agent_output {
        sd_event_source *source;
        int fd;
        int64_t run_id;
        char role[48];
        char line[LINE_MAX_BYTES];
        size_t length;         /* of the line that has begun */
        bool cut;              /* the line that has begun is longer */
        uint64_t lines, bytes; /* in all */
};

static void escape(const char *bytes, size_t n, char *ret) {
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char) bytes[i];
                if (c >= 0x20 && c < 0x7f && c != '\\')
                        *ret++ = (char) c;
                else
                        ret += sprintf(ret, "\\x%02x", c);
        }
        *ret = 0;
}

static void end_line(struct agent_output *o) {
        char text[4 * LINE_MAX_BYTES + 1];
        if (o->lines++ < LINES_MAX) {
                escape(o->line, o->length, text);
                log_warning("run %" PRId64 ": %s wrote: %s%s", o->run_id, o->role, text, o->cut ? "..." : "");
        }
        o->length = 0;
        o->cut = false;
}

static void take(struct agent_output *o, const char *bytes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (bytes[i] == '\n')
                        end_line(o);
                else if (o->length < LINE_MAX_BYTES)
                        o->line[o->length++] = bytes[i];
                else
                        o->cut = true;
        o->bytes += n;
}

/* false: nothing more can be read. */
static bool read_some(struct agent_output *o) {
        char buffer[4096];
        for (size_t got = 0; got < BYTES_AT_ONCE;) {
                ssize_t n = o->bytes < BYTES_MAX ? read(o->fd, buffer, sizeof(buffer)) : 0;
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 && errno == EAGAIN;
                take(o, buffer, (size_t) n);
                got += (size_t) n;
        }
        return true;
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct agent_output *o = userdata;
        (void) fd;
        (void) events;
        if (read_some(o))
                return 0;
        if (o->bytes >= BYTES_MAX)
                log_warning("run %" PRId64 ": %s wrote more than %u bytes to its standard error, which is not read any "
                            "more",
                            o->run_id, o->role, BYTES_MAX);
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

int agent_output_new(struct agent_output **ret, sd_event *event, int64_t run_id, const char *role, int *ret_write_fd) {
        int ends[2];
        struct agent_output *o = calloc(1, sizeof(*o));
        if (!o)
                return -ENOMEM;
        *o = (struct agent_output){.fd = -1, .run_id = run_id};
        (void) snprintf(o->role, sizeof(o->role), "%s", role);
        if (pipe2(ends, O_CLOEXEC) < 0) {
                int r = -errno;
                free(o);
                return r;
        }
        o->fd = ends[0];
        int r = fcntl(o->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
        if (r == 0)
                r = sd_event_add_io(event, &o->source, o->fd, EPOLLIN, on_readable, o);
        if (r < 0) {
                util_close(ends[1]);
                agent_output_free(o);
                return r;
        }
        *ret = o;
        *ret_write_fd = ends[1];
        return 0;
}

void agent_output_free(struct agent_output *o) {
        if (!o)
                return;
        if (o->source) {
                uint64_t before;
                do
                        before = o->bytes;
                while (read_some(o) && o->bytes > before);
        }
        if (o->length > 0)
                end_line(o);
        if (o->lines > LINES_MAX)
                log_warning("run %" PRId64 ": %s wrote %" PRIu64 " lines to its standard error, %u are logged",
                            o->run_id, o->role, o->lines, LINES_MAX);
        sd_event_source_disable_unref(o->source);
        util_close(o->fd);
        free(o);
}
