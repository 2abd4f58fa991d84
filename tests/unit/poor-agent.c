/* SPDX-License-Identifier: MIT */

/*
 * An ipclab-agent that cannot get the memory of its probes: with messages of 1 byte the first end no memory file for
 * the page that both ends share, with 2 bytes the second end no mapping of that page, with 3 bytes neither end the
 * memory that it copies. With other messages it has all of it.
 *
 * The link makes it: the agent calls memfd_create(2) and mmap(2), which is mmap64() for the linker, and
 * message_receive() takes the set-up, which has the point.
 */

#include "agent/measure/probe.h"
#include "schema/protocol/protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int __wrap_message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail);
int __real_message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail);
int __wrap_memfd_create(const char *name, unsigned flags);
int __real_memfd_create(const char *name, unsigned flags);
void *__wrap_mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset);
void *__real_mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset);

static uint64_t message_size; /* written before the workers start */
static bool is_second;

int __wrap_message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail) {
        int r = __real_message_receive(fd, ret, deadline_ns, ret_detail);
        if (r == 0 && ret->type == MESSAGE_SETUP)
                message_size = ret->setup.point.message_size, is_second = ret->setup.end == END_SECOND;
        return r;
}

int __wrap_memfd_create(const char *name, unsigned flags) {
        if (message_size == 1 && strcmp(name, "ipclab-probe") == 0) {
                errno = ENFILE;
                return -1;
        }
        return __real_memfd_create(name, flags);
}

/* Over a pipe nothing else is mapped like these. */
void *__wrap_mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
        bool is_page = length == PROBE_PAGE_BYTES && flags == MAP_SHARED && protection & PROT_WRITE;
        bool is_copied = length == 2 * (size_t) PROBE_COPY_BYTES && flags == (MAP_PRIVATE | MAP_ANONYMOUS);
        if ((message_size == 2 && is_second && is_page) || (message_size == 3 && is_copied)) {
                errno = ENOMEM;
                return MAP_FAILED;
        }
        return __real_mmap64(address, length, protection, flags, fd, offset);
}
