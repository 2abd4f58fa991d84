# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Functions that the commands in tools/ share: messages, installation of missing packages, building. Sourced with bash;
# `root` is the checkout. Nothing here prompts or needs a terminal. Long output goes to a log in .cache/ and is shown only
# when a command fails.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=$root/.cache
venv=$cache/venv

# A word is either a package, which dpkg must have installed, or command=package: the command from any source is enough.
# shellcheck disable=SC2034 # read by the files that source this one
packages_run=(gcc libc6-dev meson=meson ninja=ninja-build pkg-config=pkgconf python3=python3 curl=curl ca-certificates
              libcjson-dev libmicrohttpd-dev libnuma-dev nettle-dev liburing-dev libsqlite3-dev libsystemd-dev zlib1g-dev node=nodejs
              npm=npm)
# shellcheck disable=SC2034
packages_test=(python3-venv python3-rich zsh=zsh clang=clang libclang-rt-14-dev llvm-symbolizer=llvm chromium=chromium
               chromedriver=chromium-driver)
# shellcheck disable=SC2034 # for the comparison of TCP
packages_bench_tcp=(iperf3=iperf3 sockperf=sockperf)
# shellcheck disable=SC2034
packages_vm=(qemu-system-x86_64=qemu-system-x86 mmdebstrap=mmdebstrap cpio=cpio e2fsprogs)
# shellcheck disable=SC2034 # Debian's packages start a PostgreSQL server and a munged of their own, which the tests leave alone
packages_fleet=(postgresql-15 python3-psycopg munge slurmctld slurmd slurm-client)
# shellcheck disable=SC2034
packages_lint=(python3-venv clang=clang clang-format=clang-format clang-tidy=clang-tidy shellcheck=shellcheck)

# Options of meson for the builds with sanitizers; with -O0 the same tests take a third longer and find nothing more. Of
# debugging information the lines are enough for a stack trace, and compile in three quarters of the time. A finding ends
# the program in any case (see UBSAN_OPTIONS), and the code needs no way back from it.
sanitized=(--buildtype=debug -Doptimization=1 -Db_lundef=false "-Dc_args=-g1 -fno-sanitize-recover=all")
# An agent has 3 MB of the undefined-behaviour sanitizer's data, all of it addresses: at a fixed place they are not
# relocated at each of some thousand starts.
# shellcheck disable=SC2034
addresses=("-Db_sanitize=address,undefined" "${sanitized[@]}" -Dc_link_args=-no-pie)
# A finding ends the program with a stack trace: one that is only printed would be overlooked. The status is the same with
# every sanitizer, and an agent's own failures end it with others: what runs agents recognizes it.
found=exitcode=23
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:$found
export ASAN_OPTIONS=detect_stack_use_after_return=1:$found
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$root/tests/tsan.supp:$found

info() {
        printf '%s\n' "$*"
}

die() {
        printf '%s: %s\n' "${0##*/}" "$*" >&2
        exit 1
}

# need_own DIRECTORY…: fails unless the existing ones belong to the calling user. Another user cannot write into a
# directory that root has made, and files that root makes in a user's directory would block that user later.
need_own() {
        local directory owner
        for directory in "$@"; do
                [[ -e $directory && ! -O $directory ]] || continue
                owner=$(stat -L -c '%U (uid %u)' "$directory")
                die "$directory belongs to $owner: run this as that user, or in another checkout"
        done
}

# git in this checkout, whoever owns it: git refuses another user's checkout because its configuration may start programs,
# but the caller already runs programs of this checkout. It leaves no files there.
git_here() {
        git --no-optional-locks -C "$root" -c safe.directory="$root" "$@"
}

# quietly NAME COMMAND…: writes the output to .cache/NAME.log. When the command fails, prints the end of the log and its
# path, and sets failed_log to it.
quietly() {
        local log=$cache/$1.log
        shift
        mkdir -p "$cache"
        if ! "$@" >"$log" 2>&1 </dev/null; then
                tail -n 40 "$log" >&2
                printf '%s: failed: %s\n  (the whole log: %s)\n' "${0##*/}" "$*" "$log" >&2
                # shellcheck disable=SC2034 # read by the files that source this one
                failed_log=$log
                return 1
        fi
}

# The words of "$@" that are not installed, as package names, one a line. Starts dpkg-query once.
packages_missing() {
        local word installed
        installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${@##*=}" 2>/dev/null) || true
        for word in "$@"; do
                if [[ $word == *=* ]]; then
                        command -v "${word%%=*}" >/dev/null || printf '%s\n' "${word#*=}"
                else
                        [[ $'\n'$installed$'\n' == *$'\n'"installed $word"$'\n'* ]] || printf '%s\n' "$word"
                fi
        done
}

# need_packages WORD…: installs what is missing; no network and no privilege when nothing is.
need_packages() {
        local missing as_root=()
        mapfile -t missing < <(packages_missing "$@")
        [[ ${#missing[@]} -gt 0 ]] || return 0
        command -v apt-get >/dev/null || die "this is not Debian; install the equivalents of: ${missing[*]}"
        if [[ $EUID -ne 0 ]]; then
                command -v sudo >/dev/null || die "there is no sudo; as root: apt-get install ${missing[*]}"
                as_root=(sudo)
                # Without a terminal nobody can enter a password.
                if ! sudo -n true 2>/dev/null; then
                        [[ -t 1 ]] || die "sudo needs a password, and there is no terminal; as root: apt-get install ${missing[*]}"
                        sudo -v || die "sudo failed; as root: apt-get install ${missing[*]}"
                fi
        fi
        info "Installing ${#missing[@]} packages and what they depend on: ${missing[*]}"
        local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300
                   -o Acquire::Retries=3)
        quietly apt-update "${apt[@]}" update
        quietly apt-install "${apt[@]}" install --no-install-recommends "${missing[@]}"
}

# Installs the locked packages of web/, unless they are those that were installed last.
need_web() {
        local stamp=$root/web/node_modules/.ipclab-lock
        cmp -s "$root/web/package-lock.json" "$stamp" && return 0
        info "Installing the dashboard's packages (npm ci)"
        quietly npm npm --prefix "$root/web" ci --ignore-scripts --no-audit --no-fund --no-update-notifier
        cp "$root/web/package-lock.json" "$stamp"
}

# need_python FILE: makes a virtual environment with that file's pinned requirements, unless they are installed.
need_python() {
        local stamp=$venv/installed-${1//\//-}
        cmp -s "$1" "$stamp" && return 0
        info "Installing Python packages into .cache/venv"
        [[ -x $venv/bin/pip ]] || quietly venv python3 -m venv "$venv"
        quietly pip "$venv/bin/pip" install --disable-pip-version-check -r "$1"
        cp "$1" "$stamp"
}

# configure DIRECTORY [MESON OPTION…]: sets the directory up once; ninja detects later changes. CC is used. A file that
# sources this one may set meson_options for all of its builds.
meson_options=()
configure() {
        local directory=$1
        shift
        set -- "${meson_options[@]}" "$@"
        [[ -f $directory/build.ninja ]] || quietly "${directory##*/}-setup" meson setup "$directory" "$root" "$@"
}

# compile DIRECTORY [TARGET…]: as nice as compile_nice, which a file that sources this one may set.
compile_nice=0
compile() {
        quietly "${1##*/}" nice -n "$compile_nice" ninja -C "$@"
}

# build DIRECTORY [MESON OPTION…]: all of it.
build() {
        configure "$@" && compile "$1"
}

# built DIRECTORY [MESON OPTION…]: build, for which another process that builds the same waits.
built() {
        local lock=$cache/${1##*/}.lock
        mkdir -p "$cache"
        { flock 9 && build "$@" 9>&-; } 9>"$lock"
}
