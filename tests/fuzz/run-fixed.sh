#!/bin/sh
# SPDX-License-Identifier: MIT
# run-fixed.sh TARGET CORPUS: IPCLAB_FUZZ_RUNS inputs (20000 unless set), the fixed-length mode of a fuzz target for the test
# suite. Works on a copy of the corpus, so that the source tree stays as it is; fails on a crash, a leak, an input that takes 10 s or 512 MiB.
set -eu
target=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$2" "$work/corpus"
cd "$work"
"$target" -runs="${IPCLAB_FUZZ_RUNS:-20000}" -seed=1 -timeout=10 -rss_limit_mb=512 -print_final_stats=1 "$work/corpus" || {
        status=$?
        for found in crash-* leak-* timeout-* oom-*; do
                [ -e "$found" ] && echo "input that failed ($found), base64:" && base64 "$found"
        done
        exit "$status"
}
