/* SPDX-License-Identifier: MIT */

/*
 * ipclab-tune changes settings that the daemon's user may not change. systemd starts it for one connection to a socket
 * that only that user may open. It reads one request, changes one setting of a table, replies, and ends.
 *
 *      NAME=VALUE      set the value. The administrator must have allowed it (host_tuning), which is read here, as the
 *                      daemon is not trusted.
 *      restore NAME    restore the saved value; always allowed, because the client cannot choose the value.
 */

#include "daemon/config.h"
#include "daemon/tune/setting.h"
#include "daemon/tune/undo.h"
#include "schema/util.h"

#include <poll.h>
#include <string.h>

#define REQUEST_WITHIN_MS 2000

static int reply(const char *line) {
        return printf("%s\n", line) < 0 || fflush(stdout) != 0;
}

static bool is_allowed(char *argv0, struct config_error *e) {
        char *argv[] = {argv0, NULL};
        struct config c;
        enum config_action action;
        if (config_load(1, argv, &c, &action, e) < 0)
                return false;
        bool allowed = c.host_tuning;
        config_deinit(&c);
        if (!allowed)
                (void) snprintf(e->detail, sizeof(e->detail), "host_tuning is not true in " CONFIG_FILE);
        return allowed;
}

static int change(int undo_fd, const char *name, const char *value, char *argv0) {
        struct config_error error = {""};
        if (!is_allowed(argv0, &error))
                return reply(error.detail);
        if (!setting_allows(name, value))
                return reply("not a setting and value that may be set");
        int r = undo_change("", undo_fd, name, value);
        return reply(r < 0 ? strerrordesc_np(-r) : "ok");
}

int main(int argc, char **argv) {
        static const char restore_prefix[] = SETTING_RESTORE;
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        char line[64] = "";
        if (argc != 1) {
                fputs("ipclab-tune is started by systemd (ipclab-tune.socket)\n", stderr);
                return 2;
        }
        _cleanup_close_ int undo_fd = undo_open(UNDO_DIR);
        if (undo_fd < 0) {
                (void) snprintf(line, sizeof(line), UNDO_DIR ": %.40s", strerrordesc_np(-undo_fd));
                return reply(line);
        }
        /* one read is enough: the client is the daemon, which sends a request at once */
        ssize_t n = poll(&p, 1, REQUEST_WITHIN_MS) == 1 ? read(STDIN_FILENO, line, sizeof(line) - 1) : 0;
        if (n <= 0 || line[n - 1] != '\n')
                return reply("not a line");
        line[n - 1] = '\0';
        if (strncmp(line, restore_prefix, strlen(restore_prefix)) == 0) {
                int r = undo_restore("", undo_fd, line + strlen(restore_prefix));
                return reply(r == 0 ? "ok" : r == -ENOENT ? SETTING_NO_UNDO_RECORD : strerrordesc_np(-r));
        }
        char *equals = strchr(line, '=');
        if (!equals)
                return reply("not a line of NAME=VALUE");
        *equals = '\0';
        return change(undo_fd, line, equals + 1, argv[0]);
}
