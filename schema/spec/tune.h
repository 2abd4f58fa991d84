/* SPDX-License-Identifier: MIT */
#pragma once

/* What `tune` of a spec sets, as a list. daemon/tune/ carries it out. */

#include "schema/spec/spec.h"

#include <stddef.h>

#define SPEC_SETTINGS_MAX 5u

struct spec_setting {
        const char *name;
        const char *word; /* NULL: it is switched */
        bool on;
};

/* The members of `tune` that are given. Returns their number. */
size_t spec_settings(const struct spec_tune *tune, struct spec_setting ret[static SPEC_SETTINGS_MAX]);
