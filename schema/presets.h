/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Named specs that ship with ipclab: one file in schema/presets/ each ({"title": …, "description": …, "spec": {…}}),
 * compiled in by the build, so that a daemon needs no data directory to know them.
 */

#include <stdbool.h>
#include <stddef.h>

struct preset {
        const char *name; /* the file's name without .json */
        const char *json; /* the file's text */
        size_t length;
};

extern const struct preset presets[]; /* generated, sorted by name */
extern const size_t n_presets;

const struct preset *preset_find(const char *name);

/* Whether the preset of this name is the study's own, which has the study's name, or its -quick form. */
bool preset_is_of(const char *name, const char *study);
