/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The part of a spec in which words are searched. A spec may have a megabyte, most of it lists of numbers, and a search
 * reads the text of every experiment: so it has a bound.
 */

#include <stddef.h>

#define SEARCH_TEXT_MAX 4096u

/* The spec in lower case (of ASCII letters), if it has SEARCH_TEXT_MAX bytes at most. Of a longer one half as many from
 * its beginning, then each text in it once, in their order and with its key, as `"transport":"fifo"`, as many as there
 * is room for. The spec is JSON in UTF-8; of any other bytes it makes some text as short. malloc()ed; NULL: no
 * memory. */
char *search_text(const char *spec_json);
