/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_CONFIG_H
#define IPCLAB_DAEMON_CONFIG_H

/*
 * Settings: built-in, then /etc/ipclab/ipclabd.conf, then /etc/ipclab/ipclabd.conf.d/ *.conf by name, then options.
 * A file is lines of `key = value`, `#` comments; the keys are the long options without dashes, with underscores. An
 * unknown key or a bad value is an error that names file and line: the daemon does not start on half a configuration.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct config {
        char *state_dir;   /* /var/lib/ipclab */
        char *runtime_dir; /* /run/ipclab */
        char *socket_path; /* /run/ipclab/ipclabd.sock */
        char *socket_group;/* "ipclab"; a group that does not exist: the daemon's own, with a notice */
        char *listen;      /* "127.0.0.1:8620" or "none" */
        char *token_file;  /* STATE_DIR/token, made with 32 random bytes in hex (mode 0600) when it is missing */
        char *web_dir;
        char *agent_path;  /* ipclab-agent */
        char *agent_user;  /* "ipclab"; when the daemon is root */
        char *root;        /* "" or a captured tree for topology and environment */
        int log_level;
        bool host_tuning;
        uint64_t run_timeout_ns; /* no run may take longer */
};

#endif
