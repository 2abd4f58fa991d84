/* SPDX-License-Identifier: MIT */

#include "schema/detail.h"

#include <stdarg.h>
#include <stdio.h>

int detail_fail(char *detail, int error, const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        if (vsnprintf(detail, DETAIL_MAX, format, arguments) < 0)
                detail[0] = '\0';
        va_end(arguments);
        return error;
}
