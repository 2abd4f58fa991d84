/* SPDX-License-Identifier: MIT */

/*
 * Reads settings from files and options into struct config. Options, file keys and --help are made from one table of
 * settings. Owns no state: main calls it once, before the log is open.
 */

#include "daemon/config.h"

#include "daemon/log.h"
#include "schema/detail.h"
#include "schema/util.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#define LINE_MAX_BYTES 4096u
#define FILE_MAX_BYTES (1024u * 1024u)
#define COUNT_MAX (UINT64_C(1) << 53) /* exact in every JSON reader */

enum kind { KIND_PATH, KIND_ROOT, KIND_NAME, KIND_LISTEN, KIND_LEVEL, KIND_SECONDS, KIND_COUNT, KIND_SWITCH };

struct setting {
        const char *key; /* in files; the option is the same with dashes */
        enum kind kind;
        size_t offset; /* in struct config */
        const char *argument;
        const char *help;
};

#define FIELD(member) offsetof(struct config, member)
static const struct setting settings[] = {
        {"state_dir", KIND_PATH, FIELD(state_dir), "DIR", "database and token (" IPCLAB_STATE_DIR ")"},
        {"runtime_dir", KIND_PATH, FIELD(runtime_dir), "DIR", "socket and run directories (" IPCLAB_RUNTIME_DIR ")"},
        {"socket", KIND_PATH, FIELD(socket_path), "PATH", "unix socket of the API (RUNTIME_DIR/ipclabd.sock)"},
        {"socket_group", KIND_NAME, FIELD(socket_group), "GROUP", "group that may open the socket (ipclab)"},
        {"listen", KIND_LISTEN, FIELD(listen), "ADDR:PORT", "TCP on loopback, or \"none\" (127.0.0.1:8620)"},
        {"token_file", KIND_PATH, FIELD(token_file), "PATH", "token for writing over TCP (STATE_DIR/token)"},
        {"web_dir", KIND_PATH, FIELD(web_dir), "DIR", "the dashboard's files"},
        {"agent", KIND_PATH, FIELD(agent_path), "PATH", "the ipclab-agent program"},
        {"agent_user", KIND_NAME, FIELD(agent_user), "USER",
         "user of the agents when the daemon is root (ipclab-agent)"},
        {"run_timeout", KIND_SECONDS, FIELD(run_timeout_ns), "SECONDS", "no run may take longer (90000)"},
        {"max_queued_experiments", KIND_COUNT, FIELD(max_queued_experiments), "N", "experiments that may wait (10000)"},
        {"max_queued_runs", KIND_COUNT, FIELD(max_queued_runs), "N", "runs that may wait, of all experiments (200000)"},
        {"max_database_bytes", KIND_COUNT, FIELD(max_database_bytes), "N",
         "no new experiments above this size (68719476736)"},
        {"host_tuning", KIND_SWITCH, FIELD(host_tuning), "true|false",
         "experiments may change settings of the host (false)"},
        {"keep_until_exported", KIND_SWITCH, FIELD(keep_until_exported), "true|false",
         "delete only what ipclab-export has exported (false)"},
        {"log_level", KIND_LEVEL, FIELD(log_level), "LEVEL", "error, warning, notice, info or debug (info)"},
        {"root", KIND_ROOT, FIELD(root), "DIR", "read /sys and /proc below DIR: a captured machine"},
};

int config_parse_listen(const char *text, char *ret_host, uint16_t *ret_port) {
        const char *colon = strrchr(text, ':');
        if (!colon || colon == text || colon - text >= 64)
                return -EINVAL;
        char host[64], *end = NULL;
        size_t length = (size_t) (colon - text);
        memcpy(host, text, length);
        host[length] = 0;
        if (colon[1] < '0' || colon[1] > '9')
                return -EINVAL;
        unsigned long port = strtoul(colon + 1, &end, 10);
        if (*end || port > UINT16_MAX || end - colon > 6)
                return -EINVAL;

        struct in_addr v4;
        struct in6_addr v6;
        if (strcmp(host, "localhost") == 0)
                strcpy(host, "127.0.0.1");
        if (host[0] == '[' && host[length - 1] == ']') {
                host[length - 1] = 0;
                memmove(host, host + 1, length - 1);
                if (inet_pton(AF_INET6, host, &v6) != 1)
                        return -EINVAL;
                if (!IN6_IS_ADDR_LOOPBACK(&v6))
                        return -EADDRNOTAVAIL;
        } else if (inet_pton(AF_INET, host, &v4) != 1)
                return -EINVAL;
        else if (ntohl(v4.s_addr) >> 24 != 127)
                return -EADDRNOTAVAIL;
        strcpy(ret_host, host);
        *ret_port = (uint16_t) port;
        return 0;
}

static int set_string(struct config *c, const struct setting *s, char *value) {
        char **member = (char **) ((char *) c + s->offset);
        if (!value)
                return -ENOMEM;
        free(*member);
        *member = value;
        return 0;
}

/* A path in an option may be relative to the current directory; in a file it must be absolute. */
static int set_path(struct config *c, const struct setting *s, const char *value, bool relative, const char *where,
                    struct config_error *e) {
        char cwd[PATH_MAX], *path = NULL;
        if (!*value)
                return detail_fail(e->detail, -EINVAL, "%s: %s needs a path", where, s->key);
        if (strlen(value) >= PATH_MAX)
                return detail_fail(e->detail, -EINVAL, "%s: %s is longer than %d bytes", where, s->key, PATH_MAX - 1);
        if (*value == '/')
                return set_string(c, s, strdup(value));
        if (!relative)
                return detail_fail(e->detail, -EINVAL, "%s: %s must be an absolute path, not \"%s\"", where, s->key,
                                   value);
        if (!getcwd(cwd, sizeof(cwd)))
                return detail_fail(e->detail, -errno, "the current directory is unknown: %s", strerrordesc_np(errno));
        if (asprintf(&path, "%s/%s", cwd, value) < 0)
                return -ENOMEM;
        return set_string(c, s, path);
}

static int set_name(struct config *c, const struct setting *s, const char *value, const char *where,
                    struct config_error *e) {
        size_t n = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
        if (n == 0 || value[n] || n > 32)
                return detail_fail(e->detail, -EINVAL,
                                   "%s: %s \"%.64s\" is not a name (1 to 32 letters, digits, '_', '-', '.')", where,
                                   s->key, value);
        return set_string(c, s, strdup(value));
}

static int set_listen(struct config *c, const struct setting *s, const char *value, const char *where,
                      struct config_error *e) {
        char host[64];
        uint16_t port;
        int r = strcmp(value, "none") == 0 ? 0 : config_parse_listen(value, host, &port);
        if (r == -EADDRNOTAVAIL)
                return detail_fail(
                        e->detail, -EINVAL,
                        "%s: listen %s is not a loopback address: ipclabd serves this machine only (use 127.0.0.1 "
                        "or [::1]; ssh -L forwards it to other machines)",
                        where, value);
        if (r < 0)
                return detail_fail(e->detail, -EINVAL, "%s: listen \"%.128s\" is neither ADDR:PORT nor \"none\"", where,
                                   value);
        return set_string(c, s, strdup(value));
}

static int set_seconds(struct config *c, const struct setting *s, const char *value, const char *where,
                       struct config_error *e) {
        char *end = NULL;
        errno = 0;
        unsigned long long v = strtoull(value, &end, 10);
        if (errno || *value < '0' || *value > '9' || *end || v < 1 || v > 1000000)
                return detail_fail(e->detail, -EINVAL, "%s: %s \"%.64s\" is not a number of seconds from 1 to 1000000",
                                   where, s->key, value);
        *(uint64_t *) (void *) ((char *) c + s->offset) = v * NSEC_PER_SEC;
        return 0;
}

static int set_count(struct config *c, const struct setting *s, const char *value, const char *where,
                     struct config_error *e) {
        char *end = NULL;
        errno = 0;
        unsigned long long v = strtoull(value, &end, 10);
        if (errno || *value < '0' || *value > '9' || *end || v < 1 || v > COUNT_MAX)
                return detail_fail(e->detail, -EINVAL, "%s: %s \"%.64s\" is not a number from 1 to %llu", where, s->key,
                                   value, (unsigned long long) COUNT_MAX);
        *(uint64_t *) (void *) ((char *) c + s->offset) = v;
        return 0;
}

static int set_switch(struct config *c, const struct setting *s, const char *value, const char *where,
                      struct config_error *e) {
        bool on = strcmp(value, "true") == 0;
        if (!on && strcmp(value, "false") != 0)
                return detail_fail(e->detail, -EINVAL, "%s: %s \"%.64s\" is neither true nor false", where, s->key,
                                   value);
        *(bool *) (void *) ((char *) c + s->offset) = on;
        return 0;
}

static int set_value(struct config *c, const struct setting *s, const char *value, bool relative, const char *where,
                     struct config_error *e) {
        switch (s->kind) {
        case KIND_ROOT:
                if (!*value)
                        return set_string(c, s, strdup(""));
                return set_path(c, s, value, relative, where, e);
        case KIND_PATH:
                return set_path(c, s, value, relative, where, e);
        case KIND_NAME:
                return set_name(c, s, value, where, e);
        case KIND_LISTEN:
                return set_listen(c, s, value, where, e);
        case KIND_LEVEL:
                if (log_level_from_name(value, &c->log_level) < 0)
                        return detail_fail(e->detail, -EINVAL,
                                           "%s: log level \"%.64s\" is none of error, warning, notice, info, debug",
                                           where, value);
                return 0;
        case KIND_SECONDS:
                return set_seconds(c, s, value, where, e);
        case KIND_COUNT:
                return set_count(c, s, value, where, e);
        case KIND_SWITCH:
                return set_switch(c, s, value, where, e);
        }
        return -EINVAL;
}

static const struct setting *find_setting(const char *key) {
        for (size_t i = 0; i < ELEMENTS(settings); i++)
                if (strcmp(settings[i].key, key) == 0)
                        return &settings[i];
        return NULL;
}

static char *trim(char *s) {
        s += strspn(s, " \t");
        for (size_t n = strlen(s); n > 0 && strchr(" \t\r\n", s[n - 1]); n--)
                s[n - 1] = 0;
        return s;
}

static int read_line(struct config *c, char *line, unsigned number, const char *path, unsigned *seen,
                     struct config_error *e) {
        char where[PATH_MAX + 16];
        (void) snprintf(where, sizeof(where), "%.300s:%u", path, number);
        line = trim(line);
        if (!*line || *line == '#')
                return 0;
        char *equals = strchr(line, '=');
        if (!equals)
                return detail_fail(e->detail, -EINVAL, "%s: not \"key = value\": %.100s", where, line);
        *equals = 0;
        char *key = trim(line), *value = trim(equals + 1);
        const struct setting *s = find_setting(key);
        if (!s)
                return detail_fail(e->detail, -EINVAL, "%s: unknown key \"%.64s\"", where, key);
        if (seen[s - settings])
                return detail_fail(e->detail, -EINVAL, "%s: %s is set twice (first in line %u)", where, key,
                                   seen[s - settings]);
        seen[s - settings] = number;
        return set_value(c, s, value, false, where, e);
}

static int read_lines(struct config *c, FILE *f, const char *path, struct config_error *e) {
        unsigned seen[ELEMENTS(settings)] = {0};
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        ssize_t n;
        errno = 0;
        for (unsigned number = 1; (n = getline(&line, &size, f)) >= 0; number++) {
                if ((size_t) n > LINE_MAX_BYTES)
                        return detail_fail(e->detail, -EINVAL, "%.300s:%u: line longer than %u bytes", path, number,
                                           LINE_MAX_BYTES);
                if (strlen(line) != (size_t) n)
                        return detail_fail(e->detail, -EINVAL, "%.300s:%u: a NUL byte", path, number);
                int r = read_line(c, line, number, path, seen, e);
                if (r < 0)
                        return r;
                errno = 0;
        }
        if (!feof(f)) /* getline also ends when memory is short, without an error of the file */
                return detail_fail(e->detail, errno ? -errno : -EIO, "cannot read %.300s", path);
        return 0;
}

int config_read_file(struct config *c, const char *path, struct config_error *e) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct stat st;
        if (fd < 0)
                return detail_fail(e->detail, -errno, "cannot open %.300s: %s", path, strerrordesc_np(errno));
        if (fstat(fd, &st) < 0)
                return detail_fail(e->detail, -errno, "cannot stat %.300s: %s", path, strerrordesc_np(errno));
        if (!S_ISREG(st.st_mode))
                return detail_fail(e->detail, -EINVAL, "%.300s is not a regular file", path);
        if (st.st_size > (off_t) FILE_MAX_BYTES)
                return detail_fail(e->detail, -EINVAL, "%.300s is longer than %u bytes", path, FILE_MAX_BYTES);
        _cleanup_fclose_ FILE *f = fdopen(fd, "re");
        if (!f)
                return -ENOMEM;
        (void) util_steal_fd(&fd);

        return read_lines(c, f, path, e);
}

static int is_conf(const struct dirent *d) {
        size_t n = strlen(d->d_name);
        return d->d_name[0] != '.' && n > 5 && strcmp(d->d_name + n - 5, ".conf") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name); /* by bytes, in every locale */
}

int config_read_files(struct config *c, const char *path, bool required, struct config_error *e) {
        int r = config_read_file(c, path, e);
        if (r < 0 && (r != -ENOENT || required))
                return r;

        _cleanup_free_ char *dir = NULL;
        if (asprintf(&dir, "%s.d", path) < 0)
                return -ENOMEM;
        struct dirent **entries = NULL;
        int n = scandir(dir, &entries, is_conf, by_name);
        if (n < 0 && errno != ENOENT && errno != ENOTDIR)
                return detail_fail(e->detail, -errno, "cannot list %.300s: %s", dir, strerrordesc_np(errno));
        r = 0;
        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *file = NULL;
                if (r == 0 && asprintf(&file, "%s/%s", dir, entries[i]->d_name) < 0)
                        r = -ENOMEM;
                if (r == 0)
                        r = config_read_file(c, file, e);
                free(entries[i]);
        }
        free(entries);
        return r;
}

/* The build tree from which this program is run; NULL: it is installed. */
static char *build_tree(void) {
        char exe[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
        if (n <= 0)
                return NULL;
        exe[n] = 0;
        for (int i = 0; i < 2; i++) {
                char *slash = strrchr(exe, '/');
                if (!slash)
                        return NULL;
                *slash = 0;
        }
        _cleanup_free_ char *mark = NULL;
        if (asprintf(&mark, "%s/meson-private", exe) < 0 || access(mark, F_OK) < 0)
                return NULL;
        return strdup(exe);
}

static int set_programs(struct config *c) {
        _cleanup_free_ char *build = build_tree();
        if (!build) {
                c->agent_path = strdup(IPCLAB_AGENT_PATH);
                c->web_dir = strdup(IPCLAB_WEB_DIR);
                return c->agent_path && c->web_dir ? 0 : -ENOMEM;
        }
        if (asprintf(&c->agent_path, "%s/agent/ipclab-agent", build) < 0) {
                c->agent_path = NULL;
                return -ENOMEM;
        }
        if (asprintf(&c->web_dir, "%s/web", build) < 0) {
                c->web_dir = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int set_defaults(struct config *c) {
        *c = (struct config){.log_level = LOG_INFO,
                             .run_timeout_ns = UINT64_C(90000) * NSEC_PER_SEC,
                             .max_queued_experiments = 10000,
                             .max_queued_runs = 200000,
                             .max_database_bytes = UINT64_C(64) << 30};
        c->state_dir = strdup(IPCLAB_STATE_DIR);
        c->runtime_dir = strdup(IPCLAB_RUNTIME_DIR);
        c->socket_group = strdup("ipclab");
        c->listen = strdup("127.0.0.1:8620");
        c->agent_user = strdup("ipclab-agent");
        c->root = strdup("");
        if (!c->state_dir || !c->runtime_dir || !c->socket_group || !c->listen || !c->agent_user || !c->root)
                return -ENOMEM;
        return set_programs(c);
}

/* Paths whose defaults depend on others. */
static int set_derived(struct config *c) {
        if (!c->socket_path && asprintf(&c->socket_path, "%s/ipclabd.sock", c->runtime_dir) < 0) {
                c->socket_path = NULL;
                return -ENOMEM;
        }
        if (!c->token_file && asprintf(&c->token_file, "%s/token", c->state_dir) < 0) {
                c->token_file = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* Options that are no settings. */
enum { OPTION_CONFIG = 1000, OPTION_ACTIONS };

static const struct action {
        const char *name;
        enum config_action action;
        const char *argument; /* NULL: none */
        const char *help;
} actions[] = {
        {"check", CONFIG_CHECK, NULL, "read the whole database and name what is damaged"},
        {"backup", CONFIG_BACKUP, "FILE", "copy the database, which a daemon may be using, to FILE"},
        {"adopt", CONFIG_ADOPT, NULL, "accept the database that is in the state directory"},
        {"help", CONFIG_HELP, NULL, "this text"},
        {"version", CONFIG_VERSION, NULL, "the version"},
};

struct option_table {
        struct option options[ELEMENTS(settings) + ELEMENTS(actions) + 2];
        char names[ELEMENTS(settings)][32];
};

static void build_options(struct option_table *t) {
        size_t n = 0;
        memset(t, 0, sizeof(*t));
        for (; n < ELEMENTS(settings); n++) {
                char *name = t->names[n];
                (void) snprintf(name, sizeof(t->names[n]), "%s", settings[n].key);
                for (char *p = name; *p; p++)
                        if (*p == '_')
                                *p = '-';
                t->options[n] = (struct option){name, required_argument, NULL, (int) n};
        }
        t->options[n++] = (struct option){"config", required_argument, NULL, OPTION_CONFIG};
        for (size_t i = 0; i < ELEMENTS(actions); i++)
                t->options[n++] =
                        (struct option){actions[i].name, actions[i].argument ? required_argument : no_argument, NULL,
                                        (int) (OPTION_ACTIONS + i)};
}

/* The command line. It is parsed before any file is read, and applied last. */
struct arguments {
        const char *values[ELEMENTS(settings)];
        const char *config;
        enum config_action action;
        const char *file; /* of the action */
};

static int read_arguments(int argc, char **argv, struct arguments *a, struct config_error *e) {
        struct option_table table;
        build_options(&table);
        *a = (struct arguments){.action = CONFIG_RUN};
        opterr = 0;
        optind = 0;
        for (;;) {
                int at = optind ? optind : 1;
                int c = getopt_long(argc, argv, ":", table.options, NULL); /* NOLINT(concurrency-mt-unsafe) */
                if (c < 0)
                        break;
                if (c == '?')
                        return detail_fail(e->detail, -EINVAL, "unknown option %.100s (see --help)", argv[at]);
                if (c == ':')
                        return detail_fail(e->detail, -EINVAL, "option %.100s needs a value", argv[at]);
                if (c == OPTION_CONFIG)
                        a->config = optarg;
                else if (c >= OPTION_ACTIONS) {
                        a->action = actions[c - OPTION_ACTIONS].action;
                        a->file = optarg;
                        if (a->action == CONFIG_HELP || a->action == CONFIG_VERSION)
                                return 0;
                } else
                        a->values[c] = optarg;
        }
        if (optind < argc)
                return detail_fail(e->detail, -EINVAL, "unexpected argument \"%.100s\" (see --help)", argv[optind]);
        return 0;
}

int config_load(int argc, char **argv, struct config *ret, enum config_action *ret_action, struct config_error *e) {
        struct arguments a;
        struct config c = {0};
        e->detail[0] = 0;
        int r = read_arguments(argc, argv, &a, e);
        if (r < 0)
                return r;
        if (a.action != CONFIG_HELP && a.action != CONFIG_VERSION) {
                r = set_defaults(&c);
                if (r == 0)
                        r = config_read_files(&c, a.config ? a.config : CONFIG_FILE, a.config != NULL, e);
                for (size_t i = 0; r == 0 && i < ELEMENTS(settings); i++)
                        if (a.values[i])
                                r = set_value(&c, &settings[i], a.values[i], true, "option", e);
                if (r == 0)
                        r = set_derived(&c);
                if (r == 0 && a.file && !(c.backup_file = strdup(a.file)))
                        r = -ENOMEM;
        }
        if (r < 0) {
                config_deinit(&c);
                return r;
        }
        *ret = c;
        *ret_action = a.action;
        return 0;
}

void config_deinit(struct config *c) {
        char *strings[] = {c->state_dir, c->runtime_dir, c->socket_path, c->socket_group, c->listen,     c->token_file,
                           c->web_dir,   c->agent_path,  c->agent_user,  c->root,         c->backup_file};
        for (size_t i = 0; i < ELEMENTS(strings); i++)
                free(strings[i]);
        *c = (struct config){0};
}

void config_print_help(FILE *out) {
        fputs("Usage: ipclabd [OPTION]...\n"
              "Measures what it costs to move data between two processes on this machine.\n\n",
              out);
        struct option_table t;
        build_options(&t);
        for (size_t i = 0; i < ELEMENTS(settings); i++) {
                char left[64];
                (void) snprintf(left, sizeof(left), "--%s %s", t.names[i], settings[i].argument);
                fprintf(out, "  %-24s %s\n", left, settings[i].help);
        }
        fprintf(out, "  %-24s %s\n\n", "--config FILE", "read FILE and FILE.d/*.conf instead");
        for (size_t i = 0; i < ELEMENTS(actions); i++) {
                char left[64];
                (void) snprintf(left, sizeof(left), "--%s %s", actions[i].name,
                                actions[i].argument ? actions[i].argument : "");
                fprintf(out, "  %-24s %s\n", left, actions[i].help);
        }
        fprintf(out, "\nFiles: " CONFIG_FILE ", then " CONFIG_FILE ".d/*.conf, with lines of \"key = value\";\n"
                     "keys are the options above with '_' for '-'. Options override files.\n");
}
