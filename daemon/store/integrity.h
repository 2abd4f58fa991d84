/* SPDX-License-Identifier: MIT */
#pragma once

/* Private to the store: the steps of store.c that are about the database being the right one, and whole. */

#include "daemon/store/internal.h"

/* Called before the opening of a writer, after it, and after its migration: the first refuses a directory whose
 * database is missing, and gives an older database its checksums; the second compares the database with the identity,
 * before anything is written to the one or its log; the third updates the identity from then on. -EUCLEAN, with the
 * remedy in the log. */
int integrity_before_open(struct store *s);
int integrity_compare(struct store *s);
int integrity_keep(struct store *s);
/* In place of the third where nothing can be written. */
int integrity_know(struct store *s);
void integrity_close(struct store *s); /* once the database is closed */

/* A step of the check after an unclean end: 1: there is more to do; 0: there is not, or not now; negative errno. */
int integrity_scrub(struct store *s);

/* Before the database is opened. -EUCLEAN, logged: the log is that of another one, which adopting would mix in. */
int integrity_compare_log(struct store *s);
int integrity_adopt(struct store *s, const struct identity *above);
/* Both compare the database with the identity first, as a start does. */
int integrity_verify(struct store *s, void (*report)(const char *fault), unsigned *ret_faults);
int integrity_backup(struct store *s, const char *to); /* -EUCLEAN, logged, and no file */
