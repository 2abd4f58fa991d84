/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_STORE_PAGES_H
#define IPCLAB_DAEMON_STORE_PAGES_H

/*
 * A checksum in every page of the database, behind SQLite's back: a VFS that stands before the default one. SQLite
 * itself returns a page with a flipped bit as data, and its integrity check compares no values.
 *
 * The database file: the last PAGES_TRAILER bytes of a page, which SQLite reserves, hold the mark of the database, the
 * page's number and the CRC-32 of all before it. They are written with the page and compared whenever the page is read:
 * tables, indexes and free lists alike. The mark is a random number that a file gets when it is made, so that a page of
 * another database, or of a copy by VACUUM, does not match. The first page has the salts of the log that goes with the
 * file, too, since a log that begins anew has what is not in the file yet: with an older copy of the file it is a
 * mixture of two times, which SQLite would read as one.
 *
 * The write-ahead log: SQLite writes a running checksum with each frame, but compares it only when it recovers; here it
 * is compared at every read of a frame that has been synced. Its salts, which its index has, and its length show a log
 * that was exchanged or cut off in place.
 *
 * A mismatch is SQLITE_IOERR_DATA to SQLite and -EBADMSG to the store, and is noted here for /health.
 */

#include <stdbool.h>
#include <stdint.h>

struct sqlite3_file;

#define PAGES_VFS "ipclab-pages"
/* The same for files that nobody can write, as on a file system that is read-only: it makes and locks nothing there.
 * Each connection has an index of the log in its own memory, and a log that is missing is an empty one. */
#define PAGES_VFS_ALONE "ipclab-pages-alone"
#define PAGES_SIZE 4096u
#define PAGES_TRAILER 16u
#define PAGES_TRAILER_UNMARKED 8u /* of databases of earlier versions: no marks */

/* Whether a write that has failed with this errno needs room: on the disk, in a quota, or in the file (RLIMIT_FSIZE).
 * To SQLite, through this VFS, and to the store all of these are a full disk. */
bool pages_is_full(int error);
/* The errno with which a file of this thread's has failed, if it has done so with this code; else 0. What SQLite does
 * before it returns the code, such as rolling back, changes its own note of it (sqlite3_system_errno()). */
int pages_errno(int code);

/* Registers both; any number of times, from any thread. 0 or a negative errno. */
int pages_register(void);

/* Damage found in the database at this path, or in its log, since the process began. */
struct pages_damage {
        uint32_t n;    /* different pages and frames, up to PAGES_DAMAGE_MAX */
        uint32_t page; /* the first of them, from 1; 0: it was a frame of the log */
};
#define PAGES_DAMAGE_MAX 1024u
void pages_damage(const char *path, struct pages_damage *ret);

/* The kind of a database by the first 100 bytes of its file. To be called only before this process opens the database:
 * closing a descriptor of a file drops the process's locks on it (fcntl(2)), and SQLite's with them. */
enum pages_kind {
        PAGES_NONE,    /* no file, or an empty one */
        PAGES_CHECKED, /* its pages have trailers, with marks or without */
        PAGES_PLAIN,   /* a database without them: of an earlier version, or of another program */
};
int pages_kind(const char *path, enum pages_kind *ret);
/* Whether the log beside the database is the one that goes with it: false when it has frames that SQLite would take and
 * is of another database, or of another time of this one. To be called only before, as pages_kind(). -EAGAIN: a daemon
 * begins its log anew so often that no two readings agree. */
int pages_goes_with_log(const char *path, bool *ret);

/* For a database that this VFS has opened: */
int pages_reserved(struct sqlite3_file *file, unsigned *ret); /* at the end of each page, as its header has it */
int pages_file_kind(struct sqlite3_file *file, enum pages_kind *ret); /* as pages_kind() */
bool pages_has_trailer(unsigned reserved);
/* Compares the marks in the file, of which `fd` is a descriptor, with those that this connection has written or found
 * in it: -ESTALE when they are others. From any thread. */
int pages_check_marks(struct sqlite3_file *file, int fd);
/* Compares `n` pages from page `from` on (from 1) with their checksums, noting mismatches: no checkpoint may
 * be under way. A page of zeros has never been written. *ret_next: where to go on, 0 at the end of the file. */
int pages_scrub(struct sqlite3_file *file, uint32_t from, uint32_t n, uint32_t *ret_next, uint32_t *ret_total);

#endif
