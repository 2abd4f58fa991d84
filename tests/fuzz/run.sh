#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh TARGET CORPUS: IPCLAB_FUZZ_RUNS inputs (20000 unless set), the fixed-length mode of a fuzz target for the test
# suite. With IPCLAB_FUZZ_SECONDS it runs for that time instead, from another seed each time, and the smallest inputs of
# all that reach what CORPUS does not are added to CORPUS.
# Works on a copy of the corpus; fails on a crash, a leak, an input that takes 10 s or 512 MiB.
set -eu
target=$(realpath "$1")
corpus=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$corpus" "$work/corpus"
cd "$work"
if [ -n "${IPCLAB_FUZZ_SECONDS:-}" ]; then
        set -- "-max_total_time=$IPCLAB_FUZZ_SECONDS"
else
        set -- "-runs=${IPCLAB_FUZZ_RUNS:-20000}" -seed=1
fi
status=0
"$target" "$@" -timeout=10 -rss_limit_mb=512 -print_final_stats=1 "$work/corpus" >"$work/log" 2>&1 || status=$?
cat "$work/log"
[ "$status" -eq 0 ] || {
        for found in crash-* leak-* timeout-* oom-*; do
                [ -e "$found" ] && echo "input that failed ($found), base64:" && base64 "$found"
        done
        exit "$status"
}
[ -n "${IPCLAB_FUZZ_SECONDS:-}" ] || exit 0
before=$(find "$corpus" -type f | wc -l)
"$target" -merge=1 -timeout=10 -rss_limit_mb=512 "$corpus" "$work/corpus" 2>"$work/merge" || {
        cat "$work/merge"
        exit 1
}
inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
after=$(find "$corpus" -type f | wc -l)
echo "counted: $(basename "$target"): $inputs inputs in $IPCLAB_FUZZ_SECONDS s, $((after - before)) of them added to the corpus of $before"
