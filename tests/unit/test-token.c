/* SPDX-License-Identifier: MIT */

/* The token file: made once, used again, and refused when it is not secret. */

#include "daemon/token.h"

#include "check.h"
#include "schema/detail.h"
#include "schema/util.h"

#include <fcntl.h>
#include <sys/stat.h>

static char dir[] = "/tmp/ipclab-test-token-XXXXXX";
static char path[64], detail[DETAIL_MAX];

static int put(const char *text, mode_t mode) {
        (void) unlink(path);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, text, strlen(text)) < 0 || fchmod(fd, mode) < 0)
                return -errno;
        return 0;
}

static int load(char **ret) {
        detail[0] = 0;
        return token_load(path, ret, detail);
}

static void missing_token_is_made_and_used_again(void) {
        char *first = NULL, *second = NULL;
        struct stat st;
        CHECK_INT(load(&first), 0);
        CHECK_UINT(strlen(first), 64);
        CHECK_UINT(strspn(first, "0123456789abcdef"), 64);
        CHECK_INT(stat(path, &st), 0);
        CHECK_INT(st.st_mode & 07777, 0600);
        CHECK_INT(st.st_size, 65);
        CHECK_INT(load(&second), 0);
        CHECK_STRING(second, first);
        free(second);
        second = NULL;
        CHECK_INT(unlink(path), 0);
        CHECK_INT(load(&second), 0);
        CHECK(strcmp(first, second) != 0);
        free(first);
        free(second);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(rmdir(dir), 0); /* nothing temporary is left */
        CHECK_INT(mkdir(dir, 0700), 0);
}

static void token_of_ones_own_is_taken(void) {
        char *token = NULL;
        CHECK_INT(put("correct-horse-battery-staple-and-more", 0400), 0);
        CHECK_INT(load(&token), 0);
        CHECK_STRING(token, "correct-horse-battery-staple-and-more");
        free(token);
}

#define GOOD "0123456789abcdef0123456789abcdef"

static const struct bad {
        const char *text;
        mode_t mode;
        int error;
        const char *words;
} bad_files[] = {
        {GOOD "\n", 0640, -EPERM, "mode 0640"},
        {GOOD "\n", 0604, -EPERM, "mode 0604"},
        {GOOD "\n", 0602, -EPERM, "mode 0602"},
        {GOOD "\n", 0610, -EPERM, "mode 0610"},
        {"", 0600, -EBADMSG, "is not one line"},
        {"short\n", 0600, -EBADMSG, "is not one line"},
        {GOOD "\n" GOOD "\n", 0600, -EBADMSG, "a character that is not printable ASCII"},
        {GOOD " \n", 0600, -EBADMSG, "a character that is not printable ASCII"},
        {GOOD "\xc3\xa4\n", 0600, -EBADMSG, "a character that is not printable ASCII"},
};

static void bad_token_files_are_refused(void) {
        for (size_t i = 0; i < ELEMENTS(bad_files); i++) {
                char *token = NULL;
                CHECK_INT(put(bad_files[i].text, bad_files[i].mode), 0);
                int r = load(&token);
                if (r != bad_files[i].error || !strstr(detail, bad_files[i].words) || token)
                        CHECK_FAIL("case %zu: %d \"%s\", expected %d \"%s\"", i, r, detail, bad_files[i].error,
                                   bad_files[i].words);
        }
        char longer[TOKEN_LENGTH_MAX + 2], *token = NULL;
        memset(longer, 'a', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = 0;
        CHECK_INT(put(longer, 0600), 0);
        CHECK_INT(load(&token), -EBADMSG);
        longer[TOKEN_LENGTH_MAX] = 0;
        CHECK_INT(put(longer, 0600), 0);
        CHECK_INT(load(&token), 0);
        free(token);
}

static void links_fifos_and_foreign_files_are_refused(void) {
        char *token = NULL, target[80];
        CHECK_INT(put(GOOD "\n", 0600), 0);
        (void) snprintf(target, sizeof(target), "%s.real", path);
        CHECK_INT(rename(path, target), 0);
        CHECK_INT(symlink(target, path), 0);
        CHECK_INT(load(&token), -ELOOP);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(unlink(target), 0);
        CHECK_INT(mkfifo(path, 0600), 0);
        CHECK_INT(load(&token), -EPERM);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(mkdir(path, 0700), 0);
        CHECK(load(&token) < 0);
        CHECK_INT(rmdir(path), 0);
        if (geteuid() == 0) {
                CHECK_INT(put(GOOD "\n", 0600), 0);
                CHECK_INT(chown(path, 65534, (gid_t) -1), 0);
                CHECK_INT(load(&token), -EPERM);
                CHECK(strstr(detail, "belongs to user 65534") != NULL);
        }
        CHECK_INT(token_load("/nonexistent/dir/token", &token, detail), -ENOENT);
        CHECK(token == NULL);
}

int main(void) {
        if (!mkdtemp(dir))
                return 1;
        (void) snprintf(path, sizeof(path), "%s/token", dir);
        RUN(missing_token_is_made_and_used_again);
        RUN(token_of_ones_own_is_taken);
        RUN(bad_token_files_are_refused);
        RUN(links_fifos_and_foreign_files_are_refused);
        (void) unlink(path);
        return rmdir(dir) < 0 ? 1 : check_end();
}
