/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the tables do not have of an experiment's JSON Schema, compiled in from schema/spec/frame.schema.json: the
 * fields that are neither an axis nor an object of rows, and what an explicit placement looks like. spec_schema() makes
 * the whole of it.
 */

extern const char schema_frame_json[];
