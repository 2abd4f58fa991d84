/* SPDX-License-Identifier: MIT */

/* Work in a thread of its own, and what follows it on the main loop. */

#include "daemon/run/aside.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <pthread.h>

#define DEADLINE_US 60000000u
#define PIECES 3u

struct piece {
        struct aside *aside;
        pthread_t worker, main;
        pthread_mutex_t gate; /* held: the work waits */
        unsigned worked, done;
};

static void work(void *userdata) {
        struct piece *p = userdata;
        (void) pthread_mutex_lock(&p->gate);
        p->worker = pthread_self();
        p->worked++;
        (void) pthread_mutex_unlock(&p->gate);
}

static void done(void *userdata) {
        struct piece *p = userdata;
        CHECK(pthread_equal(pthread_self(), p->main));
        CHECK(!aside_is_busy(p->aside));
        p->done++;
        CHECK_UINT(p->worked, p->done);
        if (p->done < PIECES)
                CHECK_INT(aside_start(p->aside, work, done, p), 0);
}

static void one_piece_follows_the_other(void) {
        struct piece p = {.main = pthread_self(), .gate = PTHREAD_MUTEX_INITIALIZER};
        sd_event *event = NULL;
        CHECK_INT(sd_event_new(&event), 0);
        CHECK_INT(aside_new(&p.aside, event), 0);
        CHECK(!aside_is_busy(p.aside));
        (void) pthread_mutex_lock(&p.gate);
        CHECK_INT(aside_start(p.aside, work, done, &p), 0);
        CHECK(aside_is_busy(p.aside));
        CHECK_INT(aside_start(p.aside, work, done, &p), -EBUSY);
        CHECK_INT(sd_event_run(event, 0), 0); /* the loop goes on meanwhile */
        CHECK_UINT(p.done, 0);
        (void) pthread_mutex_unlock(&p.gate);
        while (p.done < PIECES && sd_event_run(event, DEADLINE_US) > 0)
                continue;
        CHECK_UINT(p.done, PIECES);
        CHECK(!pthread_equal(p.worker, p.main));
        aside_free(p.aside);
        sd_event_unref(event);
}

static void it_is_freed_when_the_work_has_ended(void) {
        struct piece p = {.main = pthread_self(), .gate = PTHREAD_MUTEX_INITIALIZER};
        sd_event *event = NULL;
        CHECK_INT(sd_event_new(&event), 0);
        CHECK_INT(aside_new(&p.aside, event), 0);
        CHECK_INT(aside_start(p.aside, work, done, &p), 0);
        aside_free(p.aside);
        CHECK_UINT(p.worked, 1);
        CHECK_UINT(p.done, 0);
        aside_free(NULL);
        sd_event_unref(event);
}

int main(void) {
        RUN(one_piece_follows_the_other);
        RUN(it_is_freed_when_the_work_has_ended);
        return check_end();
}
