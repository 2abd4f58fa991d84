/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The settings of the host that ipclab may change, and no other. Reading needs no privilege; writing needs to be root,
 * or ipclab-tune (main.c), which runs as root and changes and restores settings for the daemon's user.
 */

#include <stdbool.h>
#include <stddef.h>

#define SETTING_SOCKET "/run/ipclab-tune.sock"
/* The protocol with ipclab-tune, beside "NAME=VALUE" and "ok". */
#define SETTING_RESTORE "restore "
#define SETTING_NO_UNDO_RECORD "there is no undo record"
#define SETTING_WORD_MAX 32u    /* bytes of what one file has */
#define SETTING_VALUE_MAX 4096u /* of a setting that is many files: each word with its CPUs */
#define SETTING_OFFERED_MAX 64u
#define SETTING_LIST_MAX 256u

/* "kernel.numa_balancing" of "numa_balancing"; NULL: not one that may be changed. */
const char *setting_title(const char *name);
/* The sentence about a host that lacks it. */
const char *setting_absent(const char *name);
/* The word that switches a setting on, or off; NULL: it cannot be switched. */
const char *setting_switched(const char *name, bool on);
/* Whether a setting may be set to this word; and whether this is a value that setting_read() can have returned. */
bool setting_allows(const char *name, const char *value);
bool setting_allows_saved(const char *name, const char *value);

/* root: "" or a captured tree, where the files are plain ones. 0; -EINVAL for a name or value that is not in the table;
 * -ENOENT: the host has no such setting; -EFBIG: its CPUs differ too much, or one file's word does not fit
 * SETTING_WORD_MAX; -errno. */
int setting_read(const char *root, const char *name, char *ret /* [SETTING_VALUE_MAX] */);
/* The same, with its CPUs beside every word, even when all have one: what is to be restored later, when CPUs may have
 * gone and come. */
int setting_save(const char *root, const char *name, char *ret /* [SETTING_VALUE_MAX] */);
/* Sets every file of the setting to one word, and reads it back: -EIO when the kernel has taken another. */
int setting_write(const char *root, const char *name, const char *value);
/* Undoes setting_write(…, wanted): `original` is what setting_save() had before it. Files with another word than
 * `wanted` were set by somebody else, and stay. */
int setting_revert(const char *root, const char *name, const char *original, const char *wanted);
/* What setting_revert() would find. 0; -errno. */
enum setting_state {
        SETTING_AS_BEFORE,     /* every file has what `original` has for it */
        SETTING_CHANGED_SINCE, /* some do not, and none has `wanted` instead */
        SETTING_PENDING,       /* one at least has `wanted` instead: it would be reverted */
};
int setting_compare(const char *root, const char *name, const char *original, const char *wanted,
                    enum setting_state *ret);
/* The CPUs that setting_revert() does not reach, among those that `original` has a value for: those that are offline,
 * or that the machine has no longer. 0 with a list of them; -ENOENT: there are none; -errno. */
enum setting_cpus { SETTING_CPUS_OFFLINE, SETTING_CPUS_REMOVED };
int setting_out_of_reach(const char *root, const char *name, const char *original, enum setting_cpus which,
                         char *ret /* [SETTING_LIST_MAX] */);
/* Whether this host knows the word. 0; -ENOENT with the words that it knows; -errno. */
int setting_offers(const char *root, const char *name, const char *value, char *ret_offered /* [_OFFERED_MAX] */);

/* Whether setting_change() can work at all. 0; -EACCES with the reason. */
int setting_may_change(const char *root, const char *name, char *ret_detail);
/* Writes the setting itself, or through ipclab-tune where it has not the privilege. 0; -errno with the reason in
 * ret_detail[DETAIL_MAX]. Takes at most five seconds. */
int setting_change(const char *root, const char *name, const char *value, char *ret_detail);
/* Undoes setting_change() as setting_revert() does, whatever the configuration is by then: ipclab-tune restores the
 * value that it has saved, and does not receive one. As setting_change() in all else; -ESTALE: ipclab-tune has no undo
 * record. */
int setting_restore(const char *root, const char *name, const char *original, const char *wanted, char *ret_detail);

/* Sends a request to the ipclab-tune behind this socket, and a second time when the connection ends without a reply. 0
 * for "ok"; -ESTALE for SETTING_NO_UNDO_RECORD; -errno with the reason in ret_detail. */
int setting_request(const char *socket_path, const char *request, char *ret_detail);
