# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The program knows its commands and options, and asks the daemon for ids and presets; files are left to the shell.
_ipclab() {
        local IFS=$'\n'
        # shellcheck disable=SC2207 # a candidate a line, none with a space
        COMPREPLY=($("$1" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _ipclab ipclab
