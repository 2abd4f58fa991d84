/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_SCHEMA_H
#define IPCLAB_SCHEMA_SCHEMA_H

/*
 * The experiment spec as a JSON Schema (2020-12), compiled in from schema/spec/experiment.schema.json: what
 * /openapi.json shows to clients. The parser in spec-parse.c is what decides; one table of documents holds the two
 * together (tests/unit/data/spec).
 */

extern const char experiment_schema_json[];

#endif
