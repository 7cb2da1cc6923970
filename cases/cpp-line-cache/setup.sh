#!/bin/sh
# Installs what is missing: libcurl's headers, clang-format, and a local S3 server (in OUT/venv).
set -eu

missing=""
echo '#include <curl/curl.h>' | g++ -E -x c++ - >/dev/null 2>&1 || missing="libcurl4-openssl-dev"
command -v clang-format >/dev/null || missing="$missing clang-format"
python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
if [ -n "$missing" ]; then
    echo "setup: installing $missing" >&2
    # The lists of a fresh image may be old or absent: refreshed only if the first try fails.
    install() {
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q \
            --no-install-recommends $missing >"$OUT/apt.log" 2>&1
    }
    install || { apt-get update -q >/dev/null && install; } ||
        { echo "setup: could not install $missing, see $OUT/apt.log" >&2; exit 1; }
fi

wanted=$(cat tests/requirements.txt)
if [ "$(cat "$OUT/venv/installed" 2>/dev/null)" != "$wanted" ]; then
    echo "setup: installing $wanted" >&2
    rm -rf "$OUT/venv"
    python3 -m venv "$OUT/venv"
    "$OUT/venv/bin/pip" install -q -r tests/requirements.txt >"$OUT/pip.log" 2>&1 ||
        { echo "setup: could not install $wanted, see $OUT/pip.log" >&2; exit 1; }
    printf '%s\n' "$wanted" >"$OUT/venv/installed"
fi
