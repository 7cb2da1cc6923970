#!/usr/bin/env bash
# Gets a Debian-like machine ready: `./setup.sh` for building, `./setup.sh tests` for all tests.
# Installs only what is missing, and can be run again. Says what it cannot get, and goes on: what
# then fails says why.
set -uo pipefail

sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"

# Installs the packages of those `tool:package` pairs whose tool is missing.
install() {
    local missing="" pair
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
    done
    [ -n "$missing" ] || return 0
    echo "setup: installing$missing" >&2
    # The lists of a fresh image may be old or absent: refreshed only if the first try fails.
    # shellcheck disable=SC2086
    apt $missing || { $sudo apt-get update -q >/dev/null; apt $missing; } ||
        echo "setup: could not install$missing" >&2
}

apt() {
    DEBIAN_FRONTEND=noninteractive $sudo apt-get -o DPkg::Lock::Timeout=300 install -y -q \
        --no-install-recommends "$@" >/dev/null 2>&1
}

# Rust as old as Cargo.toml allows, or newer.
rust() {
    [ -e "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
    local needed have
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "${BASH_SOURCE[0]}")/Cargo.toml")
    have=$(cargo --version 2>/dev/null | cut -d ' ' -f 2)
    if [ "$(printf '%s\n' "$needed" "${have:-0}" | sort -V | head -n 1)" = "$needed" ]; then
        return 0
    fi
    echo "setup: installing Rust (needed: $needed, here: ${have:-none})" >&2
    install curl:curl
    curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y -q --profile default >&2
    . "$HOME/.cargo/env"
}

# Zig comes as a Python package.
zig() {
    python3 -m ziglang version >/dev/null 2>&1 && return 0
    echo "setup: installing Zig" >&2
    python3 -m pip --version >/dev/null 2>&1 || apt python3-pip
    python3 -m pip install -q ziglang==0.14.1 >/dev/null 2>&1 ||
        python3 -m pip install -q --break-system-packages ziglang==0.14.1 >/dev/null 2>&1 ||
        echo "setup: could not install Zig" >&2
}

install gcc:gcc
rust
# Tracepoints are found through tracefs; some images do not mount it.
if [ "$(id -u)" = 0 ] && [ ! -e /sys/kernel/tracing/events ]; then
    mount -t tracefs tracefs /sys/kernel/tracing || echo "setup: tracefs cannot be mounted" >&2
fi
if [ "${1:-}" = tests ]; then
    install g++:g++ git:git go:golang-go sqlite3:sqlite3 tar:tar gzip:gzip \
        python3:python3 strace:strace objcopy:binutils
    zig
    # benchstat, with its published test data: what ours is compared with.
    (cd / && go mod download golang.org/x/perf@v0.0.0-20260908200009-22c9c6c9d4da) ||
        echo "setup: could not fetch benchstat" >&2
fi
