# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The program completes its commands and options, and requests ids and presets from the daemon; the shell completes
# files.
_ipclab() {
        local IFS=$'\n'
        # shellcheck disable=SC2207 # a candidate a line, none with a space
        COMPREPLY=($("$1" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
        [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace # its value follows
}
complete -o default -F _ipclab ipclab
