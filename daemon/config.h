/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Settings: built-in, then /etc/ipclab/ipclabd.conf, then /etc/ipclab/ipclabd.conf.d/ *.conf by name, then options.
 * A file is lines of `key = value`, `#` comments; the keys are the long options without dashes, with underscores. An
 * unknown key or a bad value is an error that names file and line: the daemon does not start.
 */

#include "schema/detail.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define CONFIG_FILE "/etc/ipclab/ipclabd.conf"

struct config {
        char *state_dir;    /* /var/lib/ipclab */
        char *runtime_dir;  /* /run/ipclab */
        char *socket_path;  /* RUNTIME_DIR/ipclabd.sock */
        char *socket_group; /* "ipclab"; a group that does not exist: the daemon's own, with a notice */
        char *listen;       /* "127.0.0.1:8620" or "none" */
        char *token_file;   /* STATE_DIR/token, made with 32 random bytes in hex (mode 0600) when it is missing */
        char *web_dir;
        char *agent_path;         /* ipclab-agent */
        char *agent_user;         /* "ipclab-agent"; when the daemon is root */
        char *root;               /* "" or a captured tree for topology and environment */
        bool host_tuning;         /* whether `tune` of a spec may change settings of the host */
        bool keep_until_exported; /* whether what was not exported is not deleted */
        int log_level;
        uint64_t run_timeout_ns; /* no run may take longer */
        /* Limits on what is stored and waits; over them POST is refused. */
        uint64_t max_queued_experiments, max_queued_runs, max_database_bytes;
        char *backup_file; /* of --backup alone */
};

enum config_action {
        CONFIG_RUN,
        CONFIG_HELP,
        CONFIG_VERSION,
        /* on the database of state_dir, instead of running */
        CONFIG_CHECK,
        CONFIG_ADOPT,
        CONFIG_BACKUP, /* to backup_file */
};

struct config_error {
        char detail[DETAIL_MAX]; /* "/etc/ipclab/ipclabd.conf:3: unknown key \"prot\"" */
};

/* Reads options and files into *ret, which config_deinit() frees. 0; -EINVAL with *e filled; -errno of a file that
 * cannot be read, with *e filled; -ENOMEM. With CONFIG_HELP and CONFIG_VERSION no file was read. */
int config_load(int argc, char **argv, struct config *ret, enum config_action *ret_action, struct config_error *e);
/* One file, into a config that already has values. For config_load() and its test. */
int config_read_file(struct config *c, const char *path, struct config_error *e);
/* `path` and then path.d/ *.conf in the order of their names. A missing file is -ENOENT only when required. */
int config_read_files(struct config *c, const char *path, bool required, struct config_error *e);
void config_deinit(struct config *c);

/* "127.0.0.1:8620", "[::1]:0", "localhost:8620". 0; -EINVAL for anything else; -EADDRNOTAVAIL for an address that is
 * not loopback. ret_host has room for 64. */
int config_parse_listen(const char *text, char *ret_host, uint16_t *ret_port);

void config_print_help(FILE *out);
