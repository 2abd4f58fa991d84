/* SPDX-License-Identifier: MIT */

/*
 * ipclab-tune: what the daemon's user may not do itself. Started by systemd for one connection to a socket that only
 * that user may open; reads a line, does what it says to one setting out of a table, answers, ends.
 *
 *      NAME=VALUE      change it. That this may be done at all is the administrator's to say (host_tuning), which is
 *                      read here: the daemon is not believed.
 *      restore NAME    put back what was kept before the change; always allowed, as nothing else can come of it.
 */

#include "daemon/config.h"
#include "daemon/tune/kept.h"
#include "daemon/tune/setting.h"
#include "schema/util.h"

#include <poll.h>
#include <string.h>

#define ASKED_WITHIN_MS 2000

static int answer(const char *words) {
        return printf("%s\n", words) < 0 || fflush(stdout) != 0;
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

static int restore(int kept_fd, const char *name) {
        int r = kept_restore("", kept_fd, name);
        return answer(r == 0 ? "ok" : r == -ENOENT ? SETTING_NOTHING_KEPT : strerrordesc_np(-r));
}

static int change(int kept_fd, const char *name, const char *value, char *argv0) {
        struct config_error error = {""};
        if (!is_allowed(argv0, &error))
                return answer(error.detail);
        if (!setting_allows(name, value))
                return answer("not a setting and value that may be set");
        int r = kept_change("", kept_fd, name, value);
        return answer(r < 0 ? strerrordesc_np(-r) : "ok");
}

int main(int argc, char **argv) {
        static const char restore_word[] = SETTING_RESTORE;
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        char line[64] = "";
        if (argc != 1) {
                fputs("ipclab-tune is started by systemd (ipclab-tune.socket)\n", stderr);
                return 2;
        }
        _cleanup_close_ int kept_fd = kept_open(KEPT_DIR);
        if (kept_fd < 0) {
                (void) snprintf(line, sizeof(line), KEPT_DIR ": %.40s", strerrordesc_np(-kept_fd));
                return answer(line);
        }
        /* one packet's worth: the asker is the daemon, whose line fits */
        ssize_t n = poll(&p, 1, ASKED_WITHIN_MS) == 1 ? read(STDIN_FILENO, line, sizeof(line) - 1) : 0;
        if (n <= 0 || line[n - 1] != '\n')
                return answer("not a line");
        line[n - 1] = '\0';
        if (strncmp(line, restore_word, strlen(restore_word)) == 0)
                return restore(kept_fd, line + strlen(restore_word));
        char *equals = strchr(line, '=');
        if (!equals)
                return answer("not a line of NAME=VALUE");
        *equals = '\0';
        return change(kept_fd, line, equals + 1, argv[0]);
}
