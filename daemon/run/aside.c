/* SPDX-License-Identifier: MIT */

/* See aside.h. Called by the scheduler. */

#include "daemon/run/aside.h"

#include "schema/signals.h"
#include "schema/util.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

struct aside {
        pthread_t thread;
        bool busy;    /* the thread is to be joined */
        int ended_fd; /* an eventfd, which the thread writes last */
        sd_event_source *source;
        void (*work)(void *userdata);
        void (*done)(void *userdata);
        void *userdata;
};

static void *thread_main(void *userdata) {
        struct aside *a = userdata;
        a->work(a->userdata);
        while (eventfd_write(a->ended_fd, 1) < 0 && errno == EINTR)
                continue;
        return NULL;
}

static void join(struct aside *a) {
        if (a->busy)
                (void) pthread_join(a->thread, NULL);
        a->busy = false;
}

static int on_ended(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct aside *a = userdata;
        eventfd_t n;
        (void) source;
        (void) events;
        if (eventfd_read(fd, &n) < 0)
                return 0;
        join(a);
        a->done(a->userdata);
        return 0;
}

int aside_new(struct aside **ret, sd_event *event) {
        struct aside *a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        a->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        int r = a->ended_fd < 0 ? -errno : sd_event_add_io(event, &a->source, a->ended_fd, EPOLLIN, on_ended, a);
        if (r < 0) {
                aside_free(a);
                return r;
        }
        *ret = a;
        return 0;
}

void aside_free(struct aside *a) {
        if (!a)
                return;
        join(a);
        sd_event_source_disable_unref(a->source);
        if (a->ended_fd >= 0)
                util_close(a->ended_fd);
        free(a);
}

bool aside_is_busy(const struct aside *a) {
        return a->busy;
}

int aside_start(struct aside *a, void (*work)(void *userdata), void (*done)(void *userdata), void *userdata) {
        if (a->busy)
                return -EBUSY;
        a->work = work;
        a->done = done;
        a->userdata = userdata;
        int r = signals_start_thread(&a->thread, thread_main, a);
        a->busy = r == 0;
        return r;
}
