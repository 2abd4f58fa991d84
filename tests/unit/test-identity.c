/* SPDX-License-Identifier: MIT */

/* The identity's file is read while a daemon may write over it: what is returned has been read twice alike. */

#include "daemon/store/database/identity.h"

#include "check.h"
#include "daemon/log.h"
#include "schema/util.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READING 511u /* bytes that are read at once */
#define STORE "01234567-89ab-cdef-0123-456789abcdef"

/* A directory whose identity is a FIFO: each reading takes the next text out of it. */
struct scene {
        char dir[40], path[80];
        int fd;
};

static void scene_close(struct scene *s) {
        util_close(s->fd);
        (void) unlink(s->path);
        (void) rmdir(s->dir);
}
#define SCENE __attribute__((cleanup(scene_close))) struct scene

static bool scene_open(struct scene *s) {
        *s = (struct scene){.dir = "/tmp/ipclab-test-identity-XXXXXX", .fd = -1};
        if (!mkdtemp(s->dir))
                return false;
        (void) snprintf(s->path, sizeof(s->path), "%s/" IDENTITY_FILE, s->dir);
        if (mkfifo(s->path, 0600) < 0)
                return false;
        s->fd = open(s->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        return s->fd >= 0;
}

/* A whole text with this number, as much as one reading takes. */
static bool put(const struct scene *s, unsigned change) {
        char text[READING + 1];
        int n = snprintf(text, sizeof(text), "store " STORE "\nopen no \nchange %u\nexperiment 2\nrun 3\n", change);
        memset(text + n, '#', READING - (size_t) n);
        return write(s->fd, text, READING) == (ssize_t) READING;
}

static void two_readings_that_agree_are_enough(void) {
        SCENE s;
        struct identity i = {0};
        CHECK(scene_open(&s));
        CHECK(put(&s, 6) && put(&s, 7) && put(&s, 7) && put(&s, 8));
        CHECK_INT(identity_read(s.dir, &i), 0);
        CHECK_INT(i.change, 7);
        CHECK_INT(i.experiment, 2);
        CHECK_INT(i.run, 3);
        CHECK(!i.open);
        CHECK_STRING(i.store, STORE);
}

/* Each is whole, and could yet be half of one and half of another. */
static void readings_that_never_agree_are_none(void) {
        SCENE s;
        struct identity i = {0};
        CHECK(scene_open(&s));
        for (unsigned change = 1; change <= 120; change++)
                CHECK(put(&s, change));
        CHECK_INT(identity_read(s.dir, &i), -EAGAIN);
        CHECK_INT(i.change, 0);
        CHECK_STRING(i.store, "");
}

int main(void) {
        log_open(LOG_CRIT); /* that they do not agree is logged */
        RUN(two_readings_that_agree_are_enough);
        RUN(readings_that_never_agree_are_none);
        return check_end();
}
