/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_ASSETS_H
#define IPCLAB_API_ASSETS_H

/*
 * The dashboard's files: index.html, and what lies under assets/. They are read once, at the start, into a fixed list;
 * a request is looked up in it and never becomes a path, so there is nothing to climb out of.
 *
 * NAME.gz beside NAME is its gzip form (RFC 9110, 8.4.1.3), sent in its place to who accepts it, and no asset by
 * itself. A name with a hash in it (STEM-HHHHHHHH.EXT, base 32 as esbuild writes it) may be kept by the client for ever
 * (RFC 8246); every other is validated by its ETag each time.
 */

#include <stddef.h>

struct assets;

/* A directory that is not there gives an empty list (and "/" then says how to build it). Symbolic links, files of
 * unknown type and what is hidden are left out. -E2BIG for more than 128 files, compressed forms included, -EFBIG for
 * one of more than 8 MiB; -errno. */
int assets_load(struct assets **ret, const char *dir);
void assets_free(struct assets *a); /* NULL-safe */

#endif
