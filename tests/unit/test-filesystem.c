/* SPDX-License-Identifier: MIT */

/* What a file lies on: one in memory, one on a file system without a name here, and no file at all. */

#include "agent/os/filesystem.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/effective.h"

#include <fcntl.h>
#include <sys/mman.h>

/* malloc()ed; NULL when it cannot be */
static char *shown(int fd) {
        EFFECTIVE *e = effective_new();
        filesystem_put(e, fd);
        return effective_text(e);
}

static void a_file_in_memory(void) {
        _cleanup_close_ int fd = memfd_create("memory", MFD_CLOEXEC);
        _cleanup_free_ char *text = shown(fd);
        CHECK_STRING(text, "{\"file_system\":\"tmpfs\",\"file_system_in_memory\":true}");
}

static void a_file_system_without_a_name_here(void) {
        _cleanup_close_ int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
        _cleanup_free_ char *text = shown(fd);
        CHECK_STRING(text, "{\"file_system\":null,\"file_system_reason\":\"magic number 0x9fa0 is not known here\"}");
}

static void no_file(void) {
        _cleanup_free_ char *text = shown(-1);
        CHECK_STRING(text, "{\"file_system\":null,\"file_system_reason\":\"fstatfs: Bad file descriptor\"}");
}

/* Whatever the sources lie on: it has a name, or a reason, and never both. */
static void the_working_directory(void) {
        _cleanup_close_ int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *text = shown(fd);
        CHECK(text);
        bool named = strstr(text, "\"file_system_in_memory\":") != NULL;
        CHECK(named != (strstr(text, "\"file_system_reason\":") != NULL));
        CHECK(named != (strstr(text, "\"file_system\":null") != NULL));
}

int main(void) {
        RUN(a_file_in_memory);
        RUN(a_file_system_without_a_name_here);
        RUN(no_file);
        RUN(the_working_directory);
        return check_end();
}
