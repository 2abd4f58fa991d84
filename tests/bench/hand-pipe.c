/* SPDX-License-Identifier: MIT */

/* Pipes and FIFOs by hand: read(2) and write(2) of glibc, in a process with one thread. */

#include "agent/pattern.h"
#include "schema/util.h"
#include "tests/bench/hand.h"

#include <sys/mman.h>

static volatile uint64_t sink;

static unsigned char *buffer_of(size_t size) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                return NULL;
        memset(p, 0x5a, size);
        return p;
}

static int send_all(int fd, const unsigned char *p, size_t size) {
        while (size) {
                ssize_t n = write(fd, p, size);
                if (n <= 0)
                        return -1;
                p += n;
                size -= (size_t) n;
        }
        return 0;
}

static int receive_all(int fd, unsigned char *p, size_t size) {
        while (size) {
                ssize_t n = read(fd, p, size);
                if (n <= 0)
                        return -1;
                p += n;
                size -= (size_t) n;
        }
        return 0;
}

static int check(const struct hand *h, const unsigned char *p, unsigned direction, uint64_t number) {
        if (h->verify == VERIFY_TOUCH) {
                uint64_t sum = 0;
                for (size_t i = 0; i < h->size; i += 64)
                        sum += p[i];
                sink = sum;
        }
        if (h->verify == VERIFY_CHECKSUM)
                return pattern_matches(p, h->size, pattern_key(0, direction, number)) ? 0 : -1;
        return 0;
}

static void fill(const struct hand *h, unsigned char *p, unsigned direction, uint64_t number) {
        if (h->verify == VERIFY_CHECKSUM)
                pattern_fill(p, h->size, pattern_key(0, direction, number));
}

static uint64_t sender(const struct hand *h, int receive_fd, int send_fd) {
        unsigned char *p = buffer_of(h->size);
        (void) receive_fd;
        if (!p)
                return 0;
        for (uint64_t i = 0; i < h->warmup + h->messages + h->tail; i++) {
                fill(h, p, 0, i);
                if (send_all(send_fd, p, h->size) < 0)
                        return 0;
        }
        return 1;
}

static int receive_some(const struct hand *h, int fd, unsigned char *p, uint64_t from, uint64_t to) {
        for (uint64_t i = from; i < to; i++)
                if (receive_all(fd, p, h->size) < 0 || check(h, p, 0, i) < 0)
                        return -1;
        return 0;
}

static uint64_t receiver(const struct hand *h, int receive_fd, int send_fd) {
        unsigned char *p = buffer_of(h->size);
        (void) send_fd;
        if (!p || receive_some(h, receive_fd, p, 0, h->warmup) < 0)
                return 0;
        uint64_t end = h->warmup + h->messages, begin = util_now_ns();
        if (receive_some(h, receive_fd, p, h->warmup, end) < 0)
                return 0;
        uint64_t ns = util_now_ns() - begin;
        return receive_some(h, receive_fd, p, end, end + h->tail) < 0 ? 0 : ns;
}

static int exchange(const struct hand *h, int in, int out, unsigned char *p, uint64_t from, uint64_t to) {
        for (uint64_t i = from; i < to; i++) {
                fill(h, p, 0, i);
                if (send_all(out, p, h->size) < 0 || receive_all(in, p, h->size) < 0 || check(h, p, 1, i) < 0)
                        return -1;
        }
        return 0;
}

static uint64_t initiator(const struct hand *h, int receive_fd, int send_fd) {
        unsigned char *p = buffer_of(h->size);
        if (!p || exchange(h, receive_fd, send_fd, p, 0, h->warmup) < 0)
                return 0;
        uint64_t begin = util_now_ns();
        if (exchange(h, receive_fd, send_fd, p, h->warmup, h->warmup + h->messages) < 0)
                return 0;
        return util_now_ns() - begin;
}

static uint64_t responder(const struct hand *h, int receive_fd, int send_fd) {
        unsigned char *p = buffer_of(h->size);
        if (!p)
                return 0;
        for (uint64_t i = 0; i < h->warmup + h->messages; i++) {
                if (receive_all(receive_fd, p, h->size) < 0 || check(h, p, 0, i) < 0)
                        return 0;
                fill(h, p, 1, i);
                if (send_all(send_fd, p, h->size) < 0)
                        return 0;
        }
        return 1;
}

const struct hand_loops hand_pipe_stream = {.first = sender, .second = receiver};
const struct hand_loops hand_pipe_pingpong = {.first = initiator, .second = responder};
