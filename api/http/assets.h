/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_ASSETS_H
#define IPCLAB_API_ASSETS_H

/*
 * The dashboard's files: index.html, and what lies under assets/. They are read once, at the start, into a fixed list;
 * a request is looked up in it and never becomes a path, so there is nothing to climb out of.
 */

#include <stddef.h>

struct assets;

/* A directory that is not there gives an empty list (and "/" then says how to build it). Symbolic links, files of
 * unknown type and what is hidden are left out. -E2BIG for more than 128 files, -EFBIG for one of more than 8 MiB;
 * -errno. */
int assets_load(struct assets **ret, const char *dir);
void assets_free(struct assets *a); /* NULL-safe */

#endif
