/* SPDX-License-Identifier: MIT */
#pragma once

/* The OpenAPI 3.1 description of the route table, with the components of api/openapi/components.json, and those that
 * are made of the table of axes: ExperimentSpec, which is the experiment's own JSON Schema, and Point. */

#include <stddef.h>

extern const char openapi_components_json[]; /* generated from components.json */

/* malloc()ed text. -ENOMEM, -EBADMSG when a component is not JSON. */
int openapi_make(char **ret, size_t *ret_length);
