/* SPDX-License-Identifier: MIT */

/* Settings in files and on the command line: accepted values, precedence, and the messages of refusals. */

#include "daemon/config.h"

#include "check.h"
#include "schema/util.h"

#include <sys/stat.h>
#include <syslog.h>

static char dir[] = "/tmp/ipclab-test-config-XXXXXX";
static char path[128], drop_in_dir[160];

static int put(const char *file, const char *text) {
        FILE *f = fopen(file, "we");
        if (!f)
                return -errno;
        fputs(text, f);
        return fclose(f) == 0 ? 0 : -errno;
}

static int load(int argc, const char *const *argv, struct config *c, enum config_action *action,
                struct config_error *e) {
        char *copy[32] = {NULL};
        for (int i = 0; i < argc; i++)
                copy[i] = strdup(argv[i]);
        int r = config_load(argc, copy, c, action, e);
        for (int i = 0; i < argc; i++)
                free(copy[i]);
        return r;
}

static const struct bad_file {
        const char *text;
        const char *words;
} bad_files[] = {
        {"nonsense\n", ":1: not \"key = value\": nonsense"},
        {"# fine\n\nprot = 1\n", ":3: unknown key \"prot\""},
        {"state_dir = /a\nstate_dir = /b\n", ":2: state_dir is set twice (first in line 1)"},
        {"state_dir = relative\n", "must be an absolute path"},
        {"state_dir =\n", "state_dir needs a path"},
        {"listen = 0.0.0.0:8620\n", "not a loopback address"},
        {"listen = 192.168.1.1:80\n", "not a loopback address"},
        {"listen = [::]:80\n", "not a loopback address"},
        {"listen = 127.0.0.1\n", "neither ADDR:PORT"},
        {"listen = 127.0.0.1:\n", "neither ADDR:PORT"},
        {"listen = 127.0.0.1:65536\n", "neither ADDR:PORT"},
        {"listen = 127.0.0.1:+80\n", "neither ADDR:PORT"},
        {"listen = 127.0.0.1:80x\n", "neither ADDR:PORT"},
        {"listen = example.org:80\n", "neither ADDR:PORT"},
        {"log_level = loud\n", "log level \"loud\" is none of"},
        {"log_level = emergency\n", "is none of"},
        {"run_timeout = 0\n", "run_timeout \"0\" is not a number of seconds"},
        {"run_timeout = -5\n", "not a number of seconds"},
        {"run_timeout = 5s\n", "not a number of seconds"},
        {"run_timeout = 99999999999999999999\n", "not a number of seconds"},
        {"max_queued_runs = 0\n", "max_queued_runs \"0\" is not a number from 1 to"},
        {"max_database_bytes = 64G\n", "is not a number from 1 to"},
        {"keep_until_exported = yes\n", "keep_until_exported \"yes\" is neither true nor false"},
        {"agent_user = ../x\n", "is not a name"},
        {"socket_group = \n", "is not a name"},
        {"State_Dir = /a\n", "unknown key \"State_Dir\""},
        {"state-dir = /a\n", "unknown key \"state-dir\""},
};

static void bad_files_are_refused_with_their_line(void) {
        for (size_t i = 0; i < ELEMENTS(bad_files); i++) {
                struct config c = {0};
                struct config_error e = {""};
                CHECK_INT(put(path, bad_files[i].text), 0);
                int r = config_read_file(&c, path, &e);
                config_deinit(&c);
                if (r != -EINVAL || !strstr(e.detail, bad_files[i].words) || !strstr(e.detail, path))
                        CHECK_FAIL("file \"%s\": %d \"%s\", expected \"%s\"", bad_files[i].text, r, e.detail,
                                   bad_files[i].words);
        }
}

static void long_lines_and_odd_files_are_refused(void) {
        struct config c = {0};
        struct config_error e = {""};
        FILE *f = fopen(path, "we");
        CHECK(f != NULL);
        fputs("state_dir = /", f);
        for (int i = 0; i < 5000; i++)
                fputc('a', f);
        fclose(f);
        CHECK_INT(config_read_file(&c, path, &e), -EINVAL);
        CHECK(strstr(e.detail, "line longer than") != NULL);
        CHECK_INT(config_read_file(&c, dir, &e), -EINVAL);
        CHECK(strstr(e.detail, "not a regular file") != NULL);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(mkfifo(path, 0600), 0); /* must not hang */
        CHECK_INT(config_read_file(&c, path, &e), -EINVAL);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(config_read_files(&c, path, true, &e), -ENOENT);
        CHECK_INT(config_read_files(&c, path, false, &e), 0);
        config_deinit(&c);
}

/* Text after a NUL byte would be ignored, and thought to be in force. */
static void a_nul_byte_is_refused(void) {
        static const struct {
                const char *text;
                size_t length;
                const char *where;
        } files[] = {
                {"state_dir = /a\0/b\n", 18, ":1: "},
                {"# fine\n\0state_dir = /a\n", 23, ":2: "},
                {"# fine\n# not\0", 13, ":2: "},
        };
        for (size_t i = 0; i < ELEMENTS(files); i++) {
                struct config c = {0};
                struct config_error e = {""};
                FILE *f = fopen(path, "we");
                CHECK(f != NULL);
                CHECK_UINT(fwrite(files[i].text, 1, files[i].length, f), files[i].length);
                CHECK_INT(fclose(f), 0);
                CHECK_INT(config_read_file(&c, path, &e), -EINVAL);
                CHECK(strstr(e.detail, "NUL byte") && strstr(e.detail, files[i].where));
                config_deinit(&c);
        }
        CHECK_INT(unlink(path), 0);
}

static void options_win_over_drop_ins_over_the_file(void) {
        char file[200];
        struct config c = {0};
        struct config_error e = {""};
        enum config_action action = CONFIG_HELP;
        CHECK_INT(put(path, "  state_dir\t=  /one \nruntime_dir = /one\ntoken_file = /one\nlisten=none\r\n"), 0);
        CHECK(mkdir(drop_in_dir, 0700) == 0 || errno == EEXIST);
        (void) snprintf(file, sizeof(file), "%s/20-b.conf", drop_in_dir);
        CHECK_INT(put(file, "runtime_dir = /two\ntoken_file = /two\n"), 0);
        (void) snprintf(file, sizeof(file), "%s/10-a.conf", drop_in_dir);
        CHECK_INT(put(file, "runtime_dir = /not\n# token_file = /not\nrun_timeout = 60\nmax_queued_runs = 7\n"), 0);
        (void) snprintf(file, sizeof(file), "%s/30-c.conf.bak", drop_in_dir);
        CHECK_INT(put(file, "nonsense\n"), 0);

        const char *argv[] = {"ipclabd", "--config", path, "--token-file", "/three", "--log-level=debug"};
        int r = load((int) ELEMENTS(argv), argv, &c, &action, &e);
        if (r < 0)
                CHECK_FAIL("%s", e.detail);
        CHECK_INT(action, CONFIG_RUN);
        CHECK_STRING(c.state_dir, "/one");
        CHECK_STRING(c.runtime_dir, "/two");
        CHECK_STRING(c.token_file, "/three");
        CHECK_STRING(c.listen, "none");
        CHECK_STRING(c.socket_path, "/two/ipclabd.sock");
        CHECK_STRING(c.socket_group, "ipclab");
        CHECK_STRING(c.agent_user, "ipclab-agent");
        CHECK_INT(c.log_level, LOG_DEBUG);
        CHECK_UINT(c.run_timeout_ns, 60 * NSEC_PER_SEC);
        CHECK_UINT(c.max_queued_runs, 7);
        CHECK_UINT(c.max_queued_experiments, 10000);
        config_deinit(&c);

        const char *names[] = {"10-a.conf", "20-b.conf", "30-c.conf.bak"};
        for (size_t i = 0; i < ELEMENTS(names); i++) {
                (void) snprintf(file, sizeof(file), "%s/%s", drop_in_dir, names[i]);
                CHECK_INT(unlink(file), 0);
        }
        CHECK_INT(rmdir(drop_in_dir), 0);
}

static void options_may_be_relative(void) {
        char want[300], cwd[200];
        struct config c = {0};
        struct config_error e = {""};
        enum config_action action;
        CHECK_INT(put(path, ""), 0);
        const char *argv[] = {"ipclabd", "--config", path, "--state-dir", "here"};
        CHECK_INT(load((int) ELEMENTS(argv), argv, &c, &action, &e), 0);
        CHECK(getcwd(cwd, sizeof(cwd)) != NULL);
        (void) snprintf(want, sizeof(want), "%s/here", cwd);
        CHECK_STRING(c.state_dir, want);
        (void) snprintf(want, sizeof(want), "%s/here/token", cwd);
        CHECK_STRING(c.token_file, want);
        CHECK_STRING(c.root, "");
        CHECK(strstr(c.agent_path, "ipclab-agent") != NULL);
        config_deinit(&c);
}

static const struct bad_arguments {
        const char *argv[4];
        const char *words;
} bad_arguments[] = {
        {{"ipclabd", "--prot", "1", NULL}, "unknown option --prot"},
        {{"ipclabd", "--listen", NULL}, "option --listen needs a value"},
        {{"ipclabd", "--listen", "0.0.0.0:8620", NULL}, "not a loopback address"},
        {{"ipclabd", "stray", NULL}, "unexpected argument \"stray\""},
        {{"ipclabd", "-x", NULL}, "unknown option -x"},
        {{"ipclabd", "--config", "/nonexistent/x", NULL}, "cannot open /nonexistent/x"},
        {{"ipclabd", "--help=yes", NULL}, "unknown option --help=yes"},
};

static void bad_arguments_are_refused(void) {
        for (size_t i = 0; i < ELEMENTS(bad_arguments); i++) {
                struct config c = {0};
                struct config_error e = {""};
                enum config_action action;
                int n = 0;
                while (n < 4 && bad_arguments[i].argv[n])
                        n++;
                int r = load(n, bad_arguments[i].argv, &c, &action, &e);
                if (r >= 0 || !strstr(e.detail, bad_arguments[i].words))
                        CHECK_FAIL("%s: %d \"%s\"", bad_arguments[i].words, r, e.detail);
        }
}

static void help_and_version_need_no_files(void) {
        struct config c = {0};
        struct config_error e = {""};
        enum config_action action = CONFIG_RUN;
        const char *help[] = {"ipclabd", "--config", "/nonexistent/x", "--help"};
        CHECK_INT(load(4, help, &c, &action, &e), 0);
        CHECK_INT(action, CONFIG_HELP);
        const char *version[] = {"ipclabd", "--version"};
        CHECK_INT(load(2, version, &c, &action, &e), 0);
        CHECK_INT(action, CONFIG_VERSION);
}

static void listen_addresses_are_taken_apart(void) {
        char host[64];
        uint16_t port = 1;
        CHECK_INT(config_parse_listen("127.0.0.1:0", host, &port), 0);
        CHECK_STRING(host, "127.0.0.1");
        CHECK_UINT(port, 0);
        CHECK_INT(config_parse_listen("localhost:8620", host, &port), 0);
        CHECK_STRING(host, "127.0.0.1");
        CHECK_UINT(port, 8620);
        CHECK_INT(config_parse_listen("[::1]:65535", host, &port), 0);
        CHECK_STRING(host, "::1");
        CHECK_UINT(port, 65535);
        CHECK_INT(config_parse_listen("::1:80", host, &port), -EINVAL);
        CHECK_INT(config_parse_listen("[::1:80", host, &port), -EINVAL);
        CHECK_INT(config_parse_listen("[]:80", host, &port), -EINVAL);
        CHECK_INT(config_parse_listen(":80", host, &port), -EINVAL);
        CHECK_INT(config_parse_listen("", host, &port), -EINVAL);
        CHECK_INT(config_parse_listen("10.0.0.1:80", host, &port), -EADDRNOTAVAIL);
}

int main(void) {
        if (!mkdtemp(dir))
                return 1;
        (void) snprintf(path, sizeof(path), "%s/ipclabd.conf", dir);
        (void) snprintf(drop_in_dir, sizeof(drop_in_dir), "%s.d", path);
        RUN(bad_files_are_refused_with_their_line);
        RUN(long_lines_and_odd_files_are_refused);
        RUN(a_nul_byte_is_refused);
        RUN(options_win_over_drop_ins_over_the_file);
        RUN(options_may_be_relative);
        RUN(bad_arguments_are_refused);
        RUN(help_and_version_need_no_files);
        RUN(listen_addresses_are_taken_apart);
        (void) unlink(path);
        return rmdir(dir) < 0 ? 1 : check_end();
}
