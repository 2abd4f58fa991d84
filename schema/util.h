/* SPDX-License-Identifier: MIT */
#pragma once

/* The few lines that every room needs: scope clean-up, the clock, growing arrays' overflow check. Header only. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)

#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

/* A macro's expansion as text, for numbers in sentences. */
#define UTIL_TEXT(macro) UTIL_TEXT_OF(macro)
#define UTIL_TEXT_OF(text) #text

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_free_ _cleanup_(util_freep)
#define _cleanup_close_ _cleanup_(util_closep)
#define _cleanup_fclose_ _cleanup_(util_fclosep)

/* For a function whose arguments are constants where it is called: each caller has a copy made for them. Unoptimized
 * copies are no faster than the one function, and a sanitizer's checks in each take minutes to compile and megabytes.
 */
#if defined __OPTIMIZE__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define UTIL_SPECIALIZED static inline __attribute__((always_inline))
#else
#define UTIL_SPECIALIZED static inline
#endif

static inline void util_freep(void *p) {
        free(*(void **) p);
}

/* Closes and keeps errno; -1 is ignored. Returns -1 so that `fd = util_close(fd)` reads well. */
static inline int util_close(int fd) {
        if (fd >= 0) {
                int saved = errno;
                (void) close(fd); /* nothing to do about EIO here; EINTR closes on Linux */
                errno = saved;
        }
        return -1;
}

static inline void util_closep(int *fd) {
        *fd = util_close(*fd);
}

static inline void util_fclosep(FILE **f) {
        if (*f)
                (void) fclose(*f);
}

/* Defines FUNCTION with a `p` behind its name, for _cleanup_(), by a function that frees a struct TYPE and takes NULL.
 */
#define UTIL_FREEP(type, function)                                                                                     \
        static inline void function##p(struct type **p) {                                                              \
                function(*p);                                                                                          \
        }

/* Takes the pointer that p points to and leaves NULL: for handing a cleaned-up local over. */
#define util_steal(p)                                                                                                  \
        __extension__({                                                                                                \
                __typeof__(*(p)) _v = *(p);                                                                            \
                *(p) = NULL;                                                                                           \
                _v;                                                                                                    \
        })

static inline int util_steal_fd(int *fd) {
        int v = *fd;
        *fd = -1;
        return v;
}

/* Has the array hold n elements. False: there is no memory for it, and it is as it was. */
#define util_resize(array, n)                                                                                          \
        __extension__({                                                                                                \
                void *_resized = reallocarray((array), (n), sizeof(*(array)));                                         \
                if (_resized)                                                                                          \
                        (array) = _resized;                                                                            \
                _resized != NULL;                                                                                      \
        })
/* Makes room for one more than n elements where that is more than `size`, the room that there is, which doubles. */
#define util_grow(array, n, size)                                                                                      \
        __extension__({                                                                                                \
                bool _full = (n) >= (size), _grown = !_full || util_resize(array, (size) ? 2 * (size) : 16);           \
                if (_full && _grown)                                                                                   \
                        (size) = (size) ? 2 * (size) : 16;                                                             \
                _grown;                                                                                                \
        })

/* CLOCK_MONOTONIC in ns; cannot fail on Linux. */
static inline uint64_t util_now_ns(void) {
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

/* CPU time of the calling thread in ns; cannot fail either. */
static inline uint64_t util_thread_cpu_ns(void) {
        struct timespec ts;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

/* CLOCK_REALTIME in ms since the epoch. */
static inline int64_t util_now_ms(void) {
        struct timespec ts;
        clock_gettime(CLOCK_REALTIME, &ts);
        return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
