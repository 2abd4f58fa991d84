/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_JSON_SCAN_H
#define IPCLAB_SCHEMA_JSON_SCAN_H

/* The strict check that a text passes before it is parsed; called by json_parse() and nobody else. */

#include "schema/json/json.h"

/* 0; -EINVAL with *e filled; -ENOMEM. */
int json_scan(const char *text, size_t length, struct json_error *e);

#endif
