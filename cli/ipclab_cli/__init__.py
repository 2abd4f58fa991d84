# SPDX-License-Identifier: MIT
"""ipclab's command line: a client of ipclabd's API that needs Python's standard library alone.

http sends requests and reads event streams; figures reads the daemon's own description of a row of results; table and
progress draw; commands has a function for each subcommand; main has the parser, the exit status and the completion.
"""
