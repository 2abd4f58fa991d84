/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The identity of the state directory's database: a small text file beside it, ipclab.identity, with the store's UUID
 * and the highest numbers that were handed out. It is rewritten in place after each commit, without a sync: it may be
 * behind the database, and is never ahead of it. A database that is behind its identity has lost something that was
 * acknowledged.
 */

#include <stdbool.h>
#include <stdint.h>

#define IDENTITY_FILE "ipclab.identity"
#define IDENTITY_UUID 36

struct identity {
        char store[IDENTITY_UUID + 1];   /* UUID, in lower case */
        int64_t change, experiment, run; /* the highest that were handed out */
        bool open;                       /* a daemon has it, or ended without notice */
};

/* -ENOENT: there is none; -EBADMSG: it is not what identity_create() writes; -EAGAIN, and logged: it is written so
 * often that no two readings agree. */
int identity_read(const char *dir, struct identity *ret);
/* Puts a new one in its place, durably. *ret_fd is for identity_note(). */
int identity_create(const char *dir, const struct identity *identity, int *ret_fd);
/* Writes over the one that is there, of the same store: a full disk has no room for a new one. */
int identity_rewrite(const char *dir, const struct identity *identity, int *ret_fd);
int identity_note(int fd, const struct identity *identity);
