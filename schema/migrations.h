/* SPDX-License-Identifier: MIT */
#pragma once

/* SQL migrations, one file in schema/migrations/ each (0001-name.sql, …), compiled in by the build. migrations[i]
 * takes a database from user_version i to i + 1; the store runs each in a transaction of its own. */

#include <stddef.h>

struct migration {
        const char *name;
        const char *sql;
};

extern const struct migration migrations[];
extern const size_t n_migrations;
