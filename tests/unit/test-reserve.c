/* SPDX-License-Identifier: MIT */

/* The reserve of a full disk: it is given up in steps, made longer again, and stays where it cannot be made longer. */

#include "daemon/log.h"
#include "daemon/store/database/reserve.h"
#include "tests/unit/check.h"
#include "tests/unit/store-fixture.h"

#include <signal.h>
#include <sys/resource.h>

/* What the disk holds for it; -1: there is none. */
static int64_t allocated(const struct fixture *f) {
        struct stat st;
        return stat(fixture_path(f, RESERVE_FILE), &st) < 0 ? -1 : (int64_t) st.st_blocks * 512;
}

static int64_t length(const struct fixture *f) {
        struct stat st;
        return stat(fixture_path(f, RESERVE_FILE), &st) < 0 ? -1 : (int64_t) st.st_size;
}

/* With no file longer than `most`, as where a quota is used up. */
static int keep_below(const struct fixture *f, rlim_t most) {
        struct rlimit before;
        if (getrlimit(RLIMIT_FSIZE, &before) < 0 ||
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = most, .rlim_max = before.rlim_max}) < 0)
                return -errno;
        int r = reserve_keep(f->dir);
        return setrlimit(RLIMIT_FSIZE, &before) < 0 ? -errno : r;
}

static void test_steps(void) {
        FIXTURE f;
        fixture_dir(&f);
        CHECK_INT(reserve_keep(f.dir), 0);
        int64_t all = length(&f);
        CHECK(all > 0 && all <= RESERVE_BYTES && all % RESERVE_STEP_BYTES == 0 && allocated(&f) >= all);
        for (int64_t left = all; left > 0; left -= RESERVE_STEP_BYTES) {
                CHECK_INT(length(&f), left);
                CHECK(reserve_release(f.dir));
        }
        CHECK_INT(length(&f), -1);
        CHECK(!reserve_release(f.dir));
}

static void test_it_stays_where_it_cannot_be_longer(void) {
        FIXTURE f;
        fixture_dir(&f);
        CHECK_INT(keep_below(&f, 1), -EFBIG);
        CHECK_INT(length(&f), -1); /* there was none */
        CHECK_INT(reserve_keep(f.dir), 0);
        int64_t all = length(&f);
        if (all < 2 * (int64_t) RESERVE_STEP_BYTES)
                SKIP("the disk of %s has no room for a reserve of two steps", f.dir);
        CHECK(reserve_release(f.dir));
        int64_t left = all - RESERVE_STEP_BYTES;
        CHECK_INT(keep_below(&f, (rlim_t) left), -EFBIG);
        CHECK_INT(length(&f), left);
        CHECK(allocated(&f) >= left);
        CHECK_INT(reserve_keep(f.dir), 0);
        CHECK(length(&f) > left);
}

int main(void) {
        log_open(LOG_ERR - 1); /* the steps are wanted */
        (void) signal(SIGXFSZ, SIG_IGN);
        RUN(test_steps);
        RUN(test_it_stays_where_it_cannot_be_longer);
        return check_end();
}
