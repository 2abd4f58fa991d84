/* SPDX-License-Identifier: MIT */

/*
 * ipclab-tune: what the daemon's user may not do itself. Started by systemd for one connection to a socket that only
 * that user may open; reads a line, writes one setting out of a table, answers, ends. That it may do so at all is the
 * administrator's to say (host_tuning), which it reads for itself: the daemon is not believed.
 */

#include "daemon/config.h"
#include "daemon/setting.h"
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

int main(int argc, char **argv) {
        struct config_error error = {""};
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        char line[64] = "";
        if (argc != 1) {
                fputs("ipclab-tune is started by systemd (ipclab-tune.socket)\n", stderr);
                return 2;
        }
        if (!is_allowed(argv[0], &error))
                return answer(error.detail);
        /* one packet's worth: the asker is the daemon, whose line fits */
        ssize_t n = poll(&p, 1, ASKED_WITHIN_MS) == 1 ? read(STDIN_FILENO, line, sizeof(line) - 1) : 0;
        char *equals = n > 0 && line[n - 1] == '\n' ? strchr(line, '=') : NULL;
        if (!equals)
                return answer("not a line of NAME=VALUE");
        line[n - 1] = '\0';
        *equals = '\0';
        if (!setting_allows(line, equals + 1))
                return answer("not a setting and value that may be set");
        int r = setting_write("", line, equals + 1);
        return answer(r < 0 ? strerrordesc_np(-r) : "ok");
}
