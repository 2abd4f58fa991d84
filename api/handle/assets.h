/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The dashboard's files: index.html, report.html (the template of report.c), and the files under assets/. They are read
 * once, at the start, into a fixed list; a request is looked up in it and never becomes a path, so path traversal is
 * impossible.
 *
 * NAME.gz beside NAME is its gzip form (RFC 9110, 8.4.1.3), sent in its place to clients that accept it, and no asset
 * by itself. Clients may cache a name with a hash in it (STEM-HHHHHHHH.EXT, base 32 as esbuild writes it) for ever (RFC
 * 8246); every other is validated by its ETag each time.
 */

#include <stddef.h>

struct assets;

/* A missing directory gives an empty list (and the response to "/" then names the command that builds it). Symbolic
 * links, files of unknown type and hidden files are left out. -E2BIG for more than 128 files, compressed forms
 * included, -EFBIG for one of more than 8 MiB; -errno. */
int assets_load(struct assets **ret, const char *dir);
void assets_free(struct assets *a); /* NULL-safe */
/* The file of that name as text, which lives as long as the list; NULL where there is none. */
const char *assets_text(const struct assets *a, const char *name);
