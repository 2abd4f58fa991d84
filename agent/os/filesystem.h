/* SPDX-License-Identifier: MIT */
#pragma once

/* The type of a file's file system, by its magic number (man 2 fstatfs). */

struct effective;

/* Adds the rows file_system and file_system_in_memory; of an unknown one, file_system alone, null with its reason. */
void filesystem_put(struct effective *e, int fd);
