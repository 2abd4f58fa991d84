/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_LOG_H
#define IPCLAB_DAEMON_LOG_H

/* Log lines, to the journal when stderr is connected to it (JOURNAL_STREAM), else to stderr. Levels as in syslog(3). */

#include <syslog.h>

void log_open(int level); /* messages above this level are dropped */
int log_level_from_name(const char *name, int *ret);
void log_write(int level, const char *file, int line, const char *format, ...) __attribute__((format(printf, 4, 5)));

#define log_error(...) log_write(LOG_ERR, __FILE__, __LINE__, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __FILE__, __LINE__, __VA_ARGS__)
#define log_notice(...) log_write(LOG_NOTICE, __FILE__, __LINE__, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __FILE__, __LINE__, __VA_ARGS__)

#endif
