#!/bin/sh
# Installs what is missing: the Crystal compiler, and what its standard library links to.
set -eu

packages="crystal libssl-dev libpcre3-dev libgc-dev libevent-dev zlib1g-dev pkg-config"
command -v crystal >/dev/null && pkg-config --exists libssl libcrypto bdw-gc libevent && exit 0
echo "setup: installing $packages" >&2
[ "$(id -u)" = 0 ] && sudo="" || sudo="sudo"
log=$(mktemp)
# The lists of a fresh image may be old or absent: refreshed only if the first try fails.
install() {
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $sudo apt-get -o DPkg::Lock::Timeout=300 install -y -q \
        --no-install-recommends $packages >"$log" 2>&1
}
install || { $sudo apt-get update -q >/dev/null && install; } ||
    { tail -5 "$log" >&2; echo "setup: could not install Crystal: apt-get said the above" >&2; exit 1; }
rm -f "$log"
