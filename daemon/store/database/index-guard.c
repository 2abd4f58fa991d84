/* SPDX-License-Identifier: MIT */

/* The handler of SIGBUS. Only the index is mapped from a file that others can make shorter. */

#include "daemon/store/database/index-guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_bool is_lost; /* lock-free, as a handler needs */
static uintptr_t page_bytes;

/* mmap(2) is no function that a handler may call by POSIX, and a mere system call on Linux. */
static void handle(int number, siginfo_t *info, void *context) {
        int error = errno;
        void *page = (void *) ((uintptr_t) info->si_addr & ~(page_bytes - 1)); /* NOLINT(performance-no-int-to-ptr) */
        (void) context;
        if (info->si_code == BUS_ADRERR)
                is_lost = true; /* before there are zeros to be found */
        /* sent by a process, or a fault of the memory itself: it comes again, and ends the process */
        if (info->si_code != BUS_ADRERR || mmap(page, page_bytes, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
                (void) signal(number, SIG_DFL);
                if (info->si_code <= 0)
                        (void) raise(number);
        }
        errno = error;
}

int index_guard_install(void) {
        struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
        page_bytes = (uintptr_t) sysconf(_SC_PAGESIZE);
        return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

bool index_guard_is_lost(void) {
        return is_lost;
}
